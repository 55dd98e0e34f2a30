"""The benchmark of in-hospital mortality: small tables written here, read back by the rules of its public scripts."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.mimic_files import CHANNELS, FEATURES, read_stay
from fedbounds.empirical.problems import problem_from_spec

NAMES = list(CHANNELS)
HEADER = ",".join(["Hours", *NAMES])
# where channels begin among the 59 columns before those that say what was measured: 2 + 1 + 1 + 8 + 12 + 13 + 12 + 10
RATE, PRESSURE, EYES, GLUCOSE, HEART = 0, 2, 4, 49, 50


def _row(hour, **values):
    """`Heart_Rate = "80"` and so on; all else is not measured."""
    return ",".join([str(hour), *(values.get(name.replace(" ", "_"), "") for name in NAMES)])


def _stay(path, *rows, header=HEADER):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def _benchmark(folder, train=("1", "0", "0", "1"), test=("0", "1")):
    for split, labels in (("train", train), ("test", test)):
        names = [f"{k}_episode1_timeseries.csv" for k in range(len(labels))]
        for k, name in enumerate(names):
            _stay(folder / split / name, _row(0.5, Heart_Rate=str(80 + k), Glucose="100"), _row(40, pH=f"7.{k + 1}"))
        lines = [f"{name},{label}" for name, label in zip(names, labels, strict=True)]
        (folder / split / "listfile.csv").write_text("\n".join(["stay,y_true", *lines]) + "\n")


def test_a_stay_has_seventy_six_features_of_which_the_last_seventeen_say_what_was_measured(tmp_path):
    found = read_stay(_stay(tmp_path / "a.csv", _row(3.5, Heart_Rate="91", Capillary_refill_rate="1.0")))
    assert found.shape == (48, FEATURES) == (48, 76) and found.dtype == np.float32
    measured = np.zeros((48, 17))
    measured[3, [NAMES.index("Heart Rate"), NAMES.index("Capillary refill rate")]] = 1
    np.testing.assert_array_equal(found[:, 59:], measured)


def test_what_is_not_measured_is_what_was_before_and_at_first_what_is_normal(tmp_path):
    rows = [_row(1.2, Heart_Rate="100"), _row(1.9, Heart_Rate="104"), _row(30.1, Heart_Rate="60")]
    heart = read_stay(_stay(tmp_path / "a.csv", *rows))[:, HEART]
    np.testing.assert_array_equal(heart, [86] + [104] * 29 + [60] * 18)  # of two in an hour the later one
    other = read_stay(_stay(tmp_path / "a.csv", *rows))
    assert (other[:, PRESSURE] == 59).all() and (other[:, GLUCOSE] == 128).all()


def test_what_is_no_number_has_a_column_for_each_value(tmp_path):
    found = read_stay(_stay(tmp_path / "a.csv", _row(10, Glascow_coma_scale_eye_opening="To Pain")))
    assert (found[:, EYES : EYES + 8].sum(1) == 1).all() and (found[:, RATE : RATE + 2] == [1, 0]).all()
    assert (found[:9, EYES + 3] == 1).all()  # 4 Spontaneously is normal
    assert (found[9:, EYES] == 1).all()  # what lies on the border of two hours belongs to the earlier one


def test_hours_after_the_first_48_are_not_looked_at(tmp_path):
    rows = [_row(0, Heart_Rate="70"), _row(48, Heart_Rate="71"), _row(48.1, Heart_Rate="72")]
    heart = read_stay(_stay(tmp_path / "a.csv", *rows))[:, HEART]
    np.testing.assert_array_equal(heart, [70] * 47 + [71])


def test_columns_may_come_in_any_order(tmp_path):
    mixed = ",".join(["Hours", *reversed(NAMES)])
    row = ",".join(["2.5", *("91" if name == "Heart Rate" else "" for name in reversed(NAMES))])
    found = read_stay(_stay(tmp_path / "a.csv", row, header=mixed))
    np.testing.assert_array_equal(found, read_stay(_stay(tmp_path / "b.csv", _row(2.5, Heart_Rate="91"))))


def test_numbers_are_normalized_by_the_training_stays_and_nothing_else_is(tmp_path):
    home = tmp_path / "in-hospital-mortality"
    _benchmark(home)
    data = load_dataset("mimic-iii", tmp_path)
    assert data.image == (1, 48, 76) and data.classes == 2
    assert data.train_labels.tolist() == [1, 0, 0, 1] and data.test_labels.tolist() == [0, 1]
    heart = data.train_images[..., HEART]
    assert heart.mean() == pytest.approx(0, abs=1e-6) and heart.std(ddof=1) == pytest.approx(1)
    raw = [read_stay(home / "train" / f"{k}_episode1_timeseries.csv")[:, HEART] for k in range(4)]
    expected = (read_stay(home / "test" / "1_episode1_timeseries.csv")[:, HEART] - np.mean(raw)) / np.std(raw, ddof=1)
    np.testing.assert_allclose(data.test_images[1, 0, :, HEART], expected, rtol=1e-5)
    assert set(np.unique(data.train_images[..., EYES : EYES + 8])) == {0, 1}
    assert (data.train_images[..., PRESSURE] == 0).all()  # what never varies
    problem = problem_from_spec({"kind": "images", "dataset": "mimic-iii", "data": str(tmp_path), "clients": 2,
                                 "network": "lstm-small", "partition": "even"})  # fmt: skip
    assert problem.dimension == 4 * 16 * (76 + 16 + 1) + 34


def test_the_benchmarks_list_without_validation_stays_is_taken_where_it_is(tmp_path):
    home = tmp_path / "in-hospital-mortality"
    _benchmark(home)
    (home / "train_listfile.csv").write_text("stay,y_true\n3_episode1_timeseries.csv,1\n0_episode1_timeseries.csv,1\n")
    assert load_dataset("mimic-iii", tmp_path).train_labels.tolist() == [1, 1]


@pytest.mark.parametrize(("rows", "message"), [
    ([], "no measurements"),
    (["1,2"], r"line 2: 2 values for 18 columns"),
    ([_row("x")], r"line 2: Hours is 'x', must be a number"),
    ([_row(-1)], r"line 2: hour -1 comes after hour 0"),
    ([_row(2), _row(1)], r"line 3: hour 1 comes after hour 2"),
    ([_row(1, Heart_Rate="fast")], r"line 2: Heart Rate is 'fast', must be a number"),
    ([_row(1, Heart_Rate="nan")], r"line 2: Heart Rate is 'nan', must be a number"),
    ([_row(1, Glascow_coma_scale_total="16")], r"line 2: Glascow coma scale total is '16', must be one of 11, 10"),
    (['1,"2'], r"line 2: not a table of values between commas"),
])  # fmt: skip
def test_a_damaged_stay_is_one_line(tmp_path, rows, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        read_stay(_stay(tmp_path / "a.csv", *rows))
    assert "\n" not in str(refused.value) and "a.csv" in str(refused.value)


@pytest.mark.parametrize("header", ["", "Hours", HEADER.replace("pH", "Ph"), HEADER[6:], HEADER + ",pH"])
def test_other_columns_are_refused(tmp_path, header):
    with pytest.raises(FedboundsError, match=r"columns must be Hours and the 17 channels of the benchmark"):
        read_stay(_stay(tmp_path / "a.csv", header=header))


@pytest.mark.parametrize(("content", "message"), [
    ("", r"begins with '', must begin with 'stay,y_true'"),
    ("stay,y_true\n", "lists no stays"),
    ("a.csv,1\n", r"begins with 'a\.csv,1', must begin"),
    ("stay,y_true\na.csv,2\n", r"line 2: 'a\.csv,2' must be the name of a file, and 0 or 1"),
    ("stay,y_true\na.csv\n", "line 2"),
    ("stay,y_true\n../../etc/passwd,1\n", r"line 2: '\.\./\.\./etc/passwd' must be the name of a file in the same"),
    ("stay,y_true\nnone.csv,1\n", r"cannot read .*none\.csv: No such file"),
])  # fmt: skip
def test_a_damaged_list_or_a_missing_stay_is_one_line(tmp_path, content, message):
    home = tmp_path / "in-hospital-mortality"
    _benchmark(home)
    (home / "test" / "listfile.csv").write_text(content)
    with pytest.raises(FedboundsError, match=message) as refused:
        load_dataset("mimic-iii", tmp_path)
    assert "\n" not in str(refused.value)


def test_without_the_files_one_line_says_where_they_come_from_and_where_they_belong(tmp_path):
    with pytest.raises(FedboundsError, match=r"missing file train/listfile\.csv: get it from .*mimic3-benchmarks.*with "
                       r"access.* into .*in-hospital-mortality"):  # fmt: skip
        load_dataset("mimic-iii", tmp_path)
