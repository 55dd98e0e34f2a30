"""Advice from a log of who took part, or from a declared process; the command and its picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fedbounds
from fedbounds.bounds.advice.advise import Advised
from fedbounds.bounds.advice.search import Costs
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Evaluation
from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.cli.advise import describe
from fedbounds.command_line import main
from fedbounds.figures.charts.advice import advice_picture
from tests.bounds.participation.reference_constants import window_divergence

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
THEOREM = "arbitrary-participation/theorem-3.1"
ASKED = {
    "setting": "non-convex, arbitrary participation, bounded heterogeneity, bounded variance, local steps",
    "target": 0.1,
    "measure": "squared gradient norm of f",
    "assume": "all",
    "constants": {"smoothness": 1.0, "initial_gap": 2.0, "gradient_noise": 1.0, "gradient_divergence_sup": 0.5},
    "choose": {"local_steps": [1, 3], "interval": [1, 12]},
    "cost": {"message": 0.5, "gradient": 0.01},
}


def spent(one: Advised) -> Costs:
    assert one.costs is not None
    return one.costs


def there(one: Advised) -> Evaluation:
    assert one.evaluation is not None
    return one.evaluation


def log(tmp_path, record) -> dict[str, str]:
    (tmp_path / "log.csv").write_text("\n".join(",".join(map(str, row)) for row in record) + "\n", encoding="utf-8")
    return {"log": str(tmp_path / "log.csv")}


def advice_of(key, **changes):
    return fedbounds.advise({**ASKED, **changes}, paper="arbitrary-participation").of(key)


def test_a_log_of_clients_in_turn_makes_their_period_the_interval_and_is_no_guarantee(tmp_path):
    one = advice_of(THEOREM, participation=log(tmp_path, [np.eye(7, dtype=int)[t % 7] for t in range(140)]))
    assert one.status == "reached" and one.at["P"] == 7 and there(one).constants["delta"].value == 0
    assert not one.guarantee and "delta is only estimated" in one.why_not


def test_the_window_divergence_of_a_log_bounds_that_of_every_offsets_within_d(tmp_path):
    rng = np.random.default_rng(0)
    record = (rng.random((60, 5)) < 0.6).astype(int)
    record[record.sum(axis=1) == 0, 0] = 1
    one = advice_of(THEOREM, participation=log(tmp_path, record), target=5.0)
    v = rng.normal(size=(5, 3))
    v -= v.mean(axis=0)
    v *= 0.5 / np.linalg.norm(v, axis=1).max()
    q = record / record.sum(axis=1, keepdims=True)
    assert window_divergence(q, v, int(one.at["P"])) <= float(there(one).constants["delta"].value) + 1e-12


def test_all_clients_in_every_round_is_declared_and_gives_a_guarantee():
    one = advice_of(THEOREM, participation={"kind": "full", "clients": 10})
    assert one.guarantee and one.at["P"] == 1 and there(one).constants["rho"].value == pytest.approx(10**-0.5)
    assert spent(one).gradients == pytest.approx(spent(one).rounds * 10 * one.at["I"])


def test_a_random_process_is_asked_about_in_expectation_over_participation():
    random = {"kind": "without-replacement", "clients": 10, "participants": 9}
    few = {"local_steps": [1, 1], "interval": [1, 4]}
    found = fedbounds.advise(
        {**ASKED, "participation": random, "target": 1.0, "choose": few}, paper="arbitrary-participation"
    )
    one = found.of(f"{THEOREM}-expected")
    assert one.status == "reached" and one.guarantee and THEOREM not in [row.key for row in found.results]
    sure = fedbounds.advise({**ASKED, "participation": {"kind": "full", "clients": 10}, "choose": few},
                            paper="arbitrary-participation")  # fmt: skip
    assert THEOREM in [row.key for row in sure.results] and f"{THEOREM}-expected" not in [
        row.key for row in sure.results
    ]


BLOCKS = [[1, 1, 0, 0] if t // 5 % 2 == 0 else [0, 0, 1, 1] for t in range(60)]


@pytest.mark.parametrize(
    "said", ["unknown rates", "bernoulli participation", "independent rounds", "full participation"]
)
def test_a_log_is_tested_against_the_participation_that_the_setting_names(tmp_path, said: str):
    setting = ASKED["setting"].replace("arbitrary participation", said)
    with pytest.raises(FedboundsError, match=r"the log is not of the participation that setting names: .*arbitrary"):
        advice_of(THEOREM, setting=setting, participation=log(tmp_path, BLOCKS))
    order = np.random.default_rng(3).permutation(60)
    shuffled = log(tmp_path, np.array(BLOCKS)[order])
    if said != "full participation":
        assert (
            advice_of(THEOREM, setting=setting, participation=shuffled, choose={"local_steps": [1, 1]}).key == THEOREM
        )


def test_a_log_that_is_not_what_was_declared_is_refused(tmp_path):
    record = log(tmp_path, [[1, 1, 0, 0], [0, 0, 1, 1]] * 20)
    with pytest.raises(FedboundsError, match="the log is not of the declared process"):
        advice_of(THEOREM, participation={**record, "kind": "full", "clients": 4})


def test_rounds_without_participants_are_not_counted(tmp_path):
    with_empty = advice_of(THEOREM, participation=log(tmp_path, [[1, 1], [0, 0], [1, 1], [1, 1]] * 5))
    without = advice_of(THEOREM, participation=log(tmp_path, [[1, 1]] * 15))
    assert with_empty.status == "reached" and with_empty.choice == without.choice


def test_an_example_says_what_to_do_and_draws_it():
    tiers = read_toml(EXAMPLES / "advise-tiers.toml")
    found = fedbounds.advise({**tiers, "choose": {"local_steps": [1, 3]}})
    assert found.of("tdcd/theorem-1").guarantee
    text = describe(found)
    assert "guarantee: yes" in text and max(map(len, text.splitlines())) <= 120
    drawn = advice_picture(found)
    one = found.of("tdcd/theorem-1")
    curve = next(c for c in drawn.curves if c.label.startswith("Das et al. 2022, Theorem 1 ["))
    assert curve.y.min() == spent(one).seconds and curve.x[curve.y.argmin()] == one.at["Q"]
    assert "by bounds, not by runs" in drawn.caption
    assert f"Das et al. 2022, Theorem 1: Q = {int(one.at['Q'])}" in drawn.caption
    assert not any("/" in c.label or "_" in c.label for c in drawn.curves)
    assert len(found.to_dataframe()) == sum(len(rows) for _, rows in found.groups)


def test_the_command_prints_one_document_and_writes_the_picture(tmp_path, capsys):
    source = tmp_path / "mine.toml"
    source.write_text(
        (EXAMPLES / "advise-tiers.toml").read_text(encoding="utf-8") + "\n[choose]\nlocal_steps = [1, 3]\n", "utf-8"
    )
    assert main(["advise", str(source), "--json", "--out", str(tmp_path / "a.png")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "fedbounds.advise/1" and len(document["written"]) == 3
    row = next(r for r in document["results"] if r["key"] == "tdcd/theorem-1")
    assert row["guarantee"] is True and row["costs"]["rounds"] > 0 and len(row["curve"]) == 3
    assert all(r["excluded_by"] for r in document["not_covered"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"participation": {"log": "nowhere.csv"}}, "nowhere.csv"),
        ({"participation": 3}, "participation = 3 must be a table"),
        ({"participation": {"kind": "ful"}}, "did you mean full"),
        ({"participation": {}}, "participation needs a kind"),
    ],
)
def test_bad_participation_is_one_line(change, said):
    with pytest.raises(FedboundsError) as error:
        fedbounds.advise({**ASKED, **change})
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_bad_file_is_one_line_on_standard_error_and_status_2(tmp_path, capsys):
    (tmp_path / "bad.toml").write_text("setting = 'non-convex'\ntarget = -1\n", encoding="utf-8")
    for arguments in (
        ["missing.toml"],
        [str(tmp_path / "bad.toml")],
        [str(EXAMPLES / "advise-log.toml"), "--out", "x.gif"],
    ):
        assert main(["advise", *arguments]) == 2
        out, error = capsys.readouterr()
        assert not out and error.startswith("fedbounds: ") and error.count("\n") == 1


def test_never_is_about_the_ranges_of_choose_and_says_where_they_end(tmp_path):
    record = [np.eye(12, dtype=int)[t % 12] for t in range(240)]
    short = advice_of(THEOREM, participation=log(tmp_path, record), choose={"local_steps": [1, 1], "interval": [1, 6]})
    assert short.status == "never"
    assert short.why.endswith("for P <= 6 ([choose] interval); larger ones, which were not tried, may reach the target")
    long = advice_of(THEOREM, participation=log(tmp_path, record), choose={"local_steps": [1, 1], "interval": [1, 12]})
    assert long.status == "reached" and long.at["P"] == 12


def test_a_declared_process_without_expectations_says_why_its_constants_are_estimated():
    few = {"local_steps": [1, 1], "interval": [1, 3]}
    coins = {"kind": "bernoulli", "clients": 10, "probability": 0.9}
    found = fedbounds.advise({**ASKED, "participation": coins, "choose": few}, paper="arbitrary-participation")
    assert "constants of participation are estimated from 400 drawn rounds, because" in found.headline
    assert "nobody takes part in a round with probability 1e-10" in found.headline
    sampled = {"kind": "without-replacement", "clients": 10, "participants": 9}
    exact = fedbounds.advise({**ASKED, "participation": sampled, "choose": few}, paper="arbitrary-participation")
    assert "estimated" not in exact.headline


def test_the_version_of_a_result_that_is_not_asked_is_listed_with_the_reason(tmp_path):
    few, expected = {"local_steps": [1, 1], "interval": [1, 3]}, f"{THEOREM}-expected"
    for participation, other, why in (
        (log(tmp_path, np.eye(3, dtype=int)[[0, 1, 2] * 9]), expected, "it needs a declared stationary process"),
        (
            {"kind": "without-replacement", "clients": 10, "participants": 9},
            THEOREM,
            "it holds given the participation",
        ),
    ):
        found = fedbounds.advise(
            {**ASKED, "participation": participation, "choose": few}, paper="arbitrary-participation"
        )
        assert found._versions[other].startswith(why) and other in describe(found)
        with pytest.raises(FedboundsError, match=f"{other} covers the setting and is not asked: {why}"):
            found.of(other)
        covering = {row.key for row in found.covered.results if row.of_a_run and row.answer != "not covered"}
        assert covering == {one.key for one in found.results} | found._versions.keys()


def test_empty_rounds_of_a_log_are_counted_apart(tmp_path):
    record = [[1, 1]] * 5 + [[0, 0]] + [[1, 1]] * 14
    asked = {**ASKED, "participation": log(tmp_path, record), "choose": {"local_steps": [1, 1], "interval": [1, 3]}}
    found = fedbounds.advise(asked, paper="arbitrary-participation")
    assert "1 of 20 rounds of the log have no participants" in found.headline
    assert found.of(THEOREM).status == "reached" and found.of(THEOREM).at["P"] == 1
