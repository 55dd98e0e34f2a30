"""What is replayed is judged only if its numbers are an instance: ranges, rules, symbols and hypotheses are checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import fedbounds as fb
from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.comparison.worst_ratios import worst_ratios
from fedbounds.bounds.theory.registry import PAPERS, load, paper
from fedbounds.empirical.falsification import adversary
from fedbounds.empirical.falsification.adversary import evaluate_claim, loaded_kinds, replay
from fedbounds.empirical.falsification.adversary_table import cross_rows, row_of
from fedbounds.empirical.falsification.instances.climbing import ratio
from fedbounds.empirical.falsification.instances.instance_checker import instance_test
from fedbounds.empirical.falsification.instances.ranges import Range
from tests.command_line import run

KINDS = (
    "FedAvgInstances", "KinkedRuns", "RandomRounds", "ShiftProcesses", "HeldCoins", "FairCoins", "Patterns",
    "WeightedInstances", "KinkedWeighted", "KinkedInstances", "KinkedRecords", "RecordedInstances", "IntervalInstances",
    "MaskedRuns", "KinkedMasked", "SignedMasked", "MaskedIterations", "TieredRuns", "KinkedTiers", "BlockRounds",
    "QuadraticRuns", "BoundedRuns", "MeantRuns", "TwoEnvelopes", "Facts",
)  # fmt: skip
Row = dict[str, Any]


@lru_cache(maxsize=1)
def drawn() -> dict[str, Row]:
    """Of every kind that is drawn for a form an instance that meets all hypotheses, as a row of a table has it."""
    found: dict[str, Row] = {}
    for result in (result for name in PAPERS for result in paper(name).results):
        for form in result.forms:
            claim = ResultForm(result, form).claim()
            how = None if form.order_only else instance_test(claim)
            for z in () if how is None else how.draw(claim, 6):
                if type(z).__name__ not in found:
                    ratios = ratio(evaluate_claim(claim, how)(z))  # type: ignore[arg-type]
                    k = int(np.nanargmax(np.where(np.isfinite(ratios) & (ratios <= 1), ratios, -1)))
                    head = {"key": result.key, "form": form.name, "kind": type(z).__name__}
                    if 0 < ratios[k] <= 1:
                        numbers = json.loads(json.dumps(z.describe(k)))
                        found[type(z).__name__] = head | {"ratio": float(ratios[k]), "instance": numbers}
    one = dict(worst_ratios("arbitrary-participation")["arbitrary-participation/proposition-4.4", "printed"])
    return found | {"HeldCoins": one}  # which are above their bound or below, and nothing between


def changed(row: Row, **numbers: Any) -> Row:
    return {**row, "instance": row["instance"] | numbers}


def committed(key: str, form: str) -> Row:
    return dict(worst_ratios(key.partition("/")[0])[key, form])


def beyond(range_: Range) -> list[float]:
    """Numbers that are outside."""
    low, high, whole = range_.domain.low, range_.domain.high, range_.domain.integer
    ends = [low - 1 if np.isfinite(low) else -np.inf, high + 1 if np.isfinite(high) else np.inf, np.nan]
    ends += [low] if range_.domain.low_open else []
    ends += [high] if range_.domain.high_open and np.isfinite(high) else []
    ends += [low + 0.5] if whole else []
    return [end for end in ends if not range_.domain.contains(end)]


def test_every_kind_that_is_drawn_for_a_form_is_tried_here() -> None:
    assert set(drawn()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_instance_is_judged_as_the_search_judges_it(kind: str) -> None:
    row = drawn()[kind]
    again = replay(row)
    assert again.ratio == pytest.approx(float(row["ratio"]), rel=1e-9) and again.status != "not covered"
    assert all(h.holds for h in (*again.assumptions, *again.conditions)) and not again.recorded


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_outside_its_range_is_refused(kind: str) -> None:
    row, ranges = drawn()[kind], loaded_kinds()[kind].all_ranges()
    assert set(ranges) == set(row["instance"])
    for name, value in row["instance"].items():
        if value is None:
            continue
        array = np.asarray(value, dtype=float)
        assert beyond(ranges[name]), name
        for wrong in beyond(ranges[name]):
            spoiled = array.copy()
            spoiled[(-1,) * array.ndim] = wrong
            with pytest.raises(fb.FedboundsError, match=f"^{name} "):
                replay(changed(row, **{name: spoiled.tolist()}))
        for shape in ([array.tolist()], [], "many"):
            with pytest.raises(fb.FedboundsError):
                replay(changed(row, **{name: shape}))


def scaled(name: str, factor: float) -> Callable[[Row], Row]:
    return lambda numbers: {name: (factor * np.asarray(numbers[name])).tolist()}


def shifted(name: str) -> Callable[[Row], Row]:
    """The first client's, or row's, moved by more than what it is."""

    def move(numbers: Row) -> Row:
        array = np.asarray(numbers[name], dtype=float)
        array[0] += 1 + np.abs(array).max()
        return {name: array.tolist()}

    return move


def skewed(name: str) -> Callable[[Row], Row]:
    """No longer symmetric."""

    def skew(numbers: Row) -> Row:
        array = np.zeros((*np.shape(numbers[name])[:-2], 2, 2))
        array[..., 0, 1], array[..., 0, 0] = 0.5, 1.0
        return {name: array.tolist()}

    return skew


def two_coordinates(skew: Callable[[Row], Row], **others: Any) -> Callable[[Row], Row]:
    return lambda numbers: skew(numbers) | others


@pytest.mark.parametrize(
    ("kind", "change", "rule"),
    [
        ("FedAvgInstances", scaled("weights", 0.5), "weights of a round sum to one"),
        ("FedAvgInstances", shifted("slopes"), "slopes sum to zero"),
        ("FedAvgInstances", lambda n: {k: [1.0] * len(n[k]) for k in ("ripple", "noise")}, "no noise beside ripples"),
        ("FedAvgInstances", lambda n: {k: [0.0] * len(n[k]) for k in ("ripple", "curvature")}, "some curvature"),
        ("KinkedRuns", lambda n: {"knots": [one[::-1] for one in n["knots"]]}, "knots ascend"),
        ("KinkedRuns", lambda n: {"curvatures": (-1 - np.abs(n["curvatures"])).tolist()}, "outer curvatures"),
        ("KinkedRuns", lambda n: {"samples": 7}, "enough for a confidence bound"),
        ("RandomRounds", scaled("base", 2), "weights sum to one"),
        ("RandomRounds", shifted("slopes"), "slopes sum to zero"),
        ("ShiftProcesses", scaled("increments", 2), "increments sums to one"),
        ("ShiftProcesses", scaled("base", 2), "weights sum to one"),
        ("Patterns", lambda n: {"clients": 3}, "is even"),
        ("WeightedInstances", shifted("slopes"), "slopes sum to zero"),
        ("WeightedInstances", scaled("phi", 0.5), "phi sums to one"),
        ("KinkedWeighted", scaled("curvatures", 0), "some curvature"),
        ("KinkedInstances", lambda n: {"inside": -2 * n["smoothness"]}, "inside is at most L"),
        ("RecordedInstances", shifted("slopes"), "slopes sum to zero"),
        ("MaskedRuns", lambda n: {"iterations": 7, "local_steps": 2}, "multiple of local_steps"),
        ("MaskedRuns", lambda n: {"cohort": 50}, "cohort is at most"),
        ("KinkedMasked", lambda n: {"cohort": 50}, "cohort is at most"),
        ("SignedMasked", lambda n: {"iterations": 7, "local_steps": 2}, "multiple of local_steps"),
        ("MaskedIterations", lambda n: {"cohort": 50}, "cohort is at most"),
        ("TieredRuns", lambda n: {"silos": 50}, "equally many coordinates"),
        ("KinkedTiers", scaled("directions", 0), "linearly independent"),
        ("BlockRounds", lambda n: {"silos": 50}, "equally many coordinates"),
        ("QuadraticRuns", scaled("weights", 2), "weights sum to one"),
        ("QuadraticRuns", lambda n: {"slopes": (1 + np.abs(n["slopes"])).tolist()}, "weighted slopes sum to zero"),
        ("QuadraticRuns", lambda n: {"participants": 50}, "participants are at most"),
        ("QuadraticRuns", lambda n: {"growth": 1.0, "growing": False}, "noise that grows"),
        ("BoundedRuns", lambda n: {"lifts": (1 + n["depth"] + np.abs(n["lifts"])).tolist()}, "less than the depth"),
        ("BoundedRuns", lambda n: {"growth": 1.0, "noise": [1.0, 1.0]}, "no noise is added"),
        ("MeantRuns", scaled("p", 2), "p sums to one"),
        ("TwoEnvelopes", lambda n: {"smoothness": np.abs(n["curvatures"]).max() / 2}, "above the smoothness"),
        ("Facts", scaled("weights", 2), "weights sum to one"),
    ],
)
def test_numbers_that_break_a_rule_of_their_class_are_refused(kind, change, rule) -> None:
    row = drawn()[kind]
    with pytest.raises(fb.FedboundsError, match=rule):
        replay(changed(row, **change(row["instance"])))


@pytest.mark.parametrize(
    ("kind", "many"),
    [
        ("SignedMasked", {"iterations": 16}),
        ("KinkedRecords", {"rounds": 16}),
        ("KinkedTiers", {"rounds": 200, "steps": 200}),
        ("KinkedMasked", {"iterations": 100, "local_steps": 1}),
    ],
)
def test_what_would_be_gone_through_for_ever_is_refused(kind: str, many: Row) -> None:
    row = drawn()[kind]
    numbers = {name: (0 * np.asarray(row["instance"][name]) + most).tolist() for name, most in many.items()}
    with pytest.raises(fb.FedboundsError, match=r"^the instance takes more than 10,000 steps to"):
        replay(changed(row, **numbers))


def test_no_instance_of_a_table_takes_long() -> None:
    rows = [row for name in PAPERS for row in worst_ratios(name).values() if row.get("instance")]
    drawn()  # all kinds are known then
    costs = [loaded_kinds()[row["kind"]].from_numbers(row["instance"]).cost for row in rows]
    assert max(costs) <= adversary.MOST_STEPS / 10


@pytest.mark.parametrize(
    ("key", "form", "name"),
    [("tdcd/theorem-1", "sharp:B3", "hessians"), ("fed-norm-sgda/theorem-1", "sharp", "bend")],
)
def test_a_matrix_that_is_no_hessian_is_refused(key: str, form: str, name: str) -> None:
    row = committed(key, form)
    matrix = np.asarray(row["instance"][name], dtype=float)
    wide = np.zeros((*matrix.shape[:-2], 2, 2))
    wide[..., 0, 0], wide[..., 0, 1] = 1.0, 0.5
    others = {"hessians": {"silos": 2, "start": [1.0, 1.0], "noise": [[0.0, 0.0]] * 2}, "bend": {}}[name]
    if name == "hessians":
        others["pulls"] = np.zeros((len(matrix), 2)).tolist()
    else:
        numbers = row["instance"]
        n, y = len(numbers["weights"]), len(numbers["coupling"][0])
        others = {"coupling": np.zeros((2, y)).tolist(), "slopes": np.zeros((n, 2 + y)).tolist()}
        others |= {"start": [1.0] * (2 + y), "noise": np.zeros((2 + y, 2)).tolist()}
    with pytest.raises(fb.FedboundsError, match="symmetric"):
        replay(changed(row, **{name: wide.tolist()}, **others))
    wide[..., 1, 0] = 0.5
    assert replay(changed(row, **{name: wide.tolist()}, **others)).kind == row["kind"]


# --- symbols and hypotheses --------------------------------------------------------------------------------------


def test_a_symbol_outside_its_domain_covers_nothing() -> None:
    row = committed("fed-norm-sgda/lemma-c.2", "sharp")
    zero = {"ripple": 0.0, "bend": 0.0, "slopes": np.zeros_like(row["instance"]["slopes"]).tolist()}
    again = replay(changed(row, **zero))
    assert again.status == "not covered" and again.ratio == -np.inf
    assert "Gx = 0 is outside its domain" in again.why


@pytest.mark.parametrize(
    ("key", "form", "change", "assumption"),
    [
        ("tdcd/lemma-1", "printed", lambda n: {"centers": [*n["centers"], np.add(n["centers"][0], 1).tolist()],
            "hessians": [*n["hessians"], n["hessians"][0]], "noise": [*n["noise"], n["noise"][0]]}, "unbiased-clients"),
        ("fedmrn/lemma-2", "repaired", lambda n: {"steps": [n["steps"][0], 2 * n["steps"][0]]}, "falling-steps"),
        ("fedmrn/theorem-2", "sharp:masks", lambda n: {"progressive": True}, ""),
        ("fedmrn/theorem-2", "sharp:masks", lambda n: {"convex": True}, "surely-bounded-gradients"),
        ("fedmrn/theorem-1", "sharp:masks", lambda n: {"straight": 1.0}, "strongly-convex"),
        ("fedau/lemma-b.5.1", "sharp", lambda n: {"phi": [1.0] + [0.0] * (len(n["phi"]) - 1)}, ""),
        ("arbitrary-participation/theorem-3.1", "explicit", lambda n: {"correlation": np.ones((len(n["slopes"]),) * 2)
            .tolist()}, "independent-clients"),
    ],
)  # fmt: skip
def test_an_instance_that_breaks_a_hypothesis_is_not_covered(key, form, change, assumption) -> None:
    row = committed(key, form)
    again = replay(changed(row, **change(row["instance"])))
    failing = [h.name for h in again.assumptions if not h.holds]
    assert (again.status, again.ratio) == ("not covered", -np.inf)
    assert assumption in failing if assumption else not failing


def test_the_variance_of_tdcd_is_the_largest_of_all_rounds() -> None:
    row = committed("tdcd/theorem-1", "sharp:B3")
    found = replay(row)
    z = loaded_kinds()[row["kind"]].from_numbers(row["instance"])
    per_round = z.measurements.variances[0]  # type: ignore[attr-defined]
    assert found.constants["S"] == pytest.approx(per_round.max(axis=0).sum(), rel=1e-12)
    assert (per_round.sum(axis=1) <= found.constants["S"] * (1 + 1e-12)).all()


# --- what a file says of itself ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{"ratio": 0.999}, {"status": "refuted"}, {"ratio": [1]}, {"left": 1.0}, {"right": "inf"}, {"left_side": "sampled"},
     {"constants": {"L": 1.0}}, {"constants": None}, {"claim": "of another form"}],
)  # fmt: skip
def test_a_file_that_says_something_else_than_what_is_found_is_reported_so(tmp_path, wrong) -> None:
    file, row = tmp_path / "worst.json", committed("arbitrary-participation/lemma-c.2", "sharp")
    file.write_text(json.dumps(row))
    assert run("adversary", "--replay", str(file))[0] == 0
    file.write_text(json.dumps(row | wrong))
    status, out, _ = run("adversary", "--replay", str(file))
    said = "the form has changed since" if "claim" in wrong else "which is not what is found"
    assert status == 1 and said in out and all(name in out for name in wrong if name != "claim")
    assert said in json.loads(run("adversary", "--replay", str(file), "--json")[1])["recorded"]


def test_every_number_of_a_file_is_compared_and_rounding_is_none() -> None:
    row = committed("arbitrary-participation/lemma-c.2", "sharp")
    symbols = row["constants"]
    for name, value in symbols.items():
        moved = np.multiply(value, 1.001) + 1e-9
        said = replay(row | {"constants": symbols | {name: moved.tolist()}}).recorded
        assert f"constants.{name}" in said and said.count("now") == 1, name
        assert not replay(row | {"constants": symbols | {name: np.multiply(value, 1 + 1e-9).tolist()}}).recorded
    more = replay(row | {"constants": symbols | {"zeta": 1.0}}).recorded
    assert "constants.zeta = 1 (now None)" in more
    assert not replay(replay(row).as_document()).recorded


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"schema": "fedbounds.adversary/2"}, "its schema is"), ({"raito": 1.0}, "did you mean ratio"),
     ({"kind": "ParticipatingRuns"}, "unknown kind of instance"), ({"kind": "Records"}, "unknown kind")],
)  # fmt: skip
def test_a_file_of_another_schema_or_kind_or_with_an_unknown_entry_is_refused(wrong: Row, said: str) -> None:
    with pytest.raises(fb.FedboundsError, match=said):
        replay(committed("arbitrary-participation/lemma-c.2", "sharp") | wrong)


@pytest.mark.parametrize("option", [("--form", "sharp"), ("--seed", "61"), ("--effort", "light")])
def test_a_replay_takes_no_options_of_a_search(tmp_path, option: tuple[str, str]) -> None:
    file = tmp_path / "worst.json"
    file.write_text(json.dumps(committed("arbitrary-participation/lemma-c.2", "sharp")))
    status, out, err = run("adversary", "--replay", str(file), *option)
    assert (status, out) == (2, "") and f"leave out {option[0]}" in err


@pytest.mark.parametrize(
    "numbers",
    [{"interval": 0}, {"gamma": -0.1}, {"weights": 3}, {"local_steps": 1.5}, {"gamma": True}, {"gama": 0.1}],
)
def test_the_command_refuses_numbers_that_are_none_in_one_line(tmp_path, numbers) -> None:
    file, row = tmp_path / "worst.json", committed("arbitrary-participation/theorem-3.1", "sharp")
    file.write_text(json.dumps(changed(row, **numbers)))
    status, out, err = run("adversary", "--replay", str(file))
    assert (status, out) == (2, "") and next(iter(numbers)) in err and len(err.splitlines()) == 1


def test_every_row_takes_the_worst_instance_of_its_class_that_its_form_covers() -> None:
    key = "arbitrary-participation/theorem-3.1"
    worst = committed(key, "sharp")
    start = np.multiply(worst["instance"]["start"], 0.5).tolist()
    lesser = row_of(replay(changed(worst, start=start)))
    rows = [{n: one[n] for n in ("key", "form", "claim")} | rest for one, rest in ((worst, lesser), (worst, worst))]
    assert lesser["ratio"] < worst["ratio"]
    first, second = cross_rows(rows)
    assert first["ratio"] == pytest.approx(worst["ratio"], rel=1e-9) and first["instance"] == worst["instance"]
    assert second["instance"] == worst["instance"]
    assert load(key).form("sharp").name == first["form"]
