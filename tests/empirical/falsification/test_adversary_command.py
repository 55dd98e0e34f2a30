"""The adversary as a verb: it climbs, its finds are replayed, planted errors show, and the tables are current."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pytest

import fedbounds as fb
from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.comparison.worst_ratios import read_rows, worst_ratio, worst_ratios, worst_ratios_path, write_rows
from fedbounds.bounds.theory.registry import PAPERS, load, paper
from fedbounds.empirical.falsification.adversary import (
    EFFORTS,
    AdversaryEffort,
    WorstInstance,
    describe_instance,
    domains,
    population,
    replay,
    search_form,
    subclasses,
)
from fedbounds.empirical.falsification.adversary_table import rows, worse
from fedbounds.empirical.falsification.instances.ascent import ascend, coordinates, in_range, moderate, neighbors
from fedbounds.empirical.falsification.instances.climbing import climb, ratio
from fedbounds.empirical.falsification.instances.instance_checker import instance_test
from fedbounds.empirical.falsification.instances.population import Population
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from tests.command_line import run

LIGHT = EFFORTS["light"]
SHORT = AdversaryEffort(cells=6, starts=2, evaluations=300, longest=30)


def claim_of(key: str, form: str) -> Claim:
    result = load(key)
    return ResultForm(result, result.form(form)).claim()


def found(claim: Claim, effort: AdversaryEffort = SHORT) -> WorstInstance:
    worst = search_form(claim, effort, 61)
    assert isinstance(worst, WorstInstance), worst
    return worst


# --- the ascent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["arbitrary-participation/theorem-3.1", "fedau/lemma-b.3.3", "tdcd/theorem-1"])
def test_neighbors_at_no_distance_are_the_instance_itself(key: str) -> None:
    claim = ResultForm(load(key), load(key).form()).claim()
    how = instance_test(claim)
    assert how is not None
    for drawn in list(how.draw(claim, 10))[:8]:
        z = drawn.take(np.arange(1))
        here, there = (ratio(how.sides(claim, y)) for y in (z, neighbors(z, np.zeros((1, coordinates(z))))))
        assert here == pytest.approx(there, rel=1e-9)


@pytest.mark.parametrize(
    ("key", "form"), [("fedau/theorem-2-option-1", "sharp"), ("fed-norm-sgda/theorem-4", "sharp:any-T")]
)
def test_the_ascent_ends_higher_than_neighbors_by_chance_at_the_same_budget(key: str, form: str) -> None:
    claim = claim_of(key, form)
    how = instance_test(claim)
    assert how is not None
    drawn = [(float(ratio(how.sides(claim, z)).max()), z) for z in how.draw(claim, 12)]
    start = max((one for one in drawn if 0 < one[0] < 1 and one[1].cost <= 60), key=lambda one: one[0])[1]

    def score(z: Population) -> np.ndarray:
        return ratio(how.sides(claim, z))

    first = start.take(score(start).argmax(keepdims=True))
    by_chance = climb(start, lambda y: how.sides(claim, y), 50, np.random.default_rng(5))
    uphill = ascend(first, score, 50 * len(start), np.random.default_rng(5))
    assert uphill.height > score(by_chance).max() > score(start).max()
    assert uphill.evaluations <= 50 * len(start) + 300 and uphill.height == pytest.approx(score(uphill.end)[0])


# --- what is found -----------------------------------------------------------------------------------------------


def test_the_worst_instance_meets_every_hypothesis_and_is_replayed_from_its_file(tmp_path) -> None:
    file = tmp_path / "worst.json"
    words = ["arbitrary-participation/lemma-c.2", "--form", "sharp", "--effort", "light", "--seed", "3"]
    status, out, err = run("adversary", *words, "--out", str(file), "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["status"] == "below" and 0.5 < document["ratio"] < 1 and document["left_side"] != "sampled"
    hypotheses = [*document["assumptions"], *document["conditions"]]
    assert len(document["assumptions"]) >= 5 and all(h["holds"] for h in hypotheses)
    assert all(h["left"] <= h["right"] * (1 + 1e-9) for h in document["conditions"] if h["op"] == "<=")
    assert document["budget"]["instances"] > 1000 and document["budget"]["seed"] == 3
    status, again, err = run("adversary", "--replay", str(file), "--json")
    assert (status, err) == (0, "") and json.loads(again)["ratio"] == pytest.approx(document["ratio"], rel=1e-12)
    status, text, _ = run("adversary", "--replay", str(file))
    assert status == 0 and "holds" in text and "FAILS" not in text


def test_the_same_seed_finds_the_same_instance() -> None:
    claim = claim_of("fedau/lemma-b.3.2", "sharp:average")
    once, again = found(claim), found(claim)
    assert once.ratio == again.ratio and once.instance == again.instance


def test_the_verb_refuses_what_has_no_number() -> None:
    with pytest.raises(fb.FedboundsError, match="order only"):
        fb.adversary("fedau/theorem-2", "printed")
    with pytest.raises(fb.FedboundsError, match="the audit tries the steps"):
        fb.adversary("fedmrn/proposition-1", "repaired")
    with pytest.raises(fb.FedboundsError, match="the erratum first-moment-of-masks refutes it"):
        fb.adversary("fedmrn/lemma-3", "printed")
    theorem = load("fedmrn/theorem-2")
    other = replace(theorem.form().assumptions[0], name="met-nowhere")
    form = replace(theorem.form(), assumptions=(*theorem.form().assumptions, other))
    assert search_form(ResultForm(theorem, form).claim(), SHORT, 61) == "no run here meets met-nowhere"
    with pytest.raises(fb.FedboundsError, match="effort"):
        fb.adversary("fedau/theorem-2", effort="heroic")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "Nonsense"}, "kind of instance"),
        ({"instance": {}}, "the instance has no"),
        ({"instance": 3}, "must be a table"),
        ({"key": "fedau/nothing"}, "unknown result"),
        ({"form": "nothing"}, "form"),
    ],
)
def test_a_damaged_document_is_refused_in_one_line(tmp_path, changed, said) -> None:
    row = dict(worst_ratios("arbitrary-participation")["arbitrary-participation/lemma-c.2", "sharp"])
    file = tmp_path / "worst.json"
    file.write_text(json.dumps(row | changed))
    status, out, err = run("adversary", "--replay", str(file))
    assert (status, out) == (2, "") and said in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fedau/theorem-2", "--paper", "fedau"],
        ["--paper", "fedau", "--form", "sharp"],
        ["fedau/theorem-2", "--merge", "found.json"],
        ["--paper", "fedau", "--merge", "nowhere.json"],
    ],
)
def test_the_command_says_what_it_takes(words) -> None:
    status, out, err = run("adversary", *words)
    assert (status, out) == (2, "") and len(err.splitlines()) == 1


# --- errors that are planted -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "form"),
    [
        ("fedau/lemma-b.3.1", "sharp"),
        ("arbitrary-participation/equation-15", "sharp:median"),
        ("fed-norm-sgda/corollary-2.1", "explicit"),
        ("arbitrary-participation/lemma-c.2", "sharp"),
        ("fedmrn/lemma-3", "sharp"),
        ("tdcd/lemma-2", "sharp:growth"),
    ],
)
def test_a_bound_that_is_too_small_by_half_is_refuted_with_more_digits(key: str, form: str) -> None:
    result = load(key)
    honest = result.form(form)
    halved = replace(honest, terms=tuple(replace(t, expression=t.expression / 2) for t in honest.terms))
    assert found(ResultForm(result, honest).claim()).status in ("below", "attained")
    worst = found(ResultForm(result, halved).claim())
    assert worst.ratio > 1 and worst.status == "refuted" and "too" in worst.why
    assert all(h.holds for h in (*worst.assumptions, *worst.conditions))


@pytest.mark.parametrize(
    ("key", "form", "term"),
    [
        ("arbitrary-participation/theorem-3.1", "sharp", "initial gap"),
        ("fedau/theorem-3", "sharp", "bias"),
        ("fedau/theorem-b.4.1", "sharp:no-gap", "initial gap"),
        pytest.param("fedmrn/theorem-2", "sharp", "gradient noise", marks=pytest.mark.long),
        ("tdcd/theorem-1", "sharp:B3", "initial gap"),
        ("fed-norm-sgda/theorem-1", "sharp", "initial gap"),
    ],
)
def test_a_theorem_with_one_constant_a_third_of_what_it_is_is_refuted(key: str, form: str, term: str) -> None:
    result = load(key)
    terms = tuple(replace(t, expression=t.expression / (3 if t.name == term else 1)) for t in result.form(form).terms)
    assert terms != result.form(form).terms
    worst = found(ResultForm(result, replace(result.form(form), terms=terms)).claim())
    assert worst.ratio > 1.05 and worst.status == "refuted" and worst.left_side != "sampled"
    assert all(h.holds for h in (*worst.assumptions, *worst.conditions))


@pytest.mark.parametrize(
    ("key", "form", "premise"),
    [
        ("arbitrary-participation/proposition-4.2", "printed", "regularized"),
        ("arbitrary-participation/proposition-4.7", "printed", "independent-rounds"),
    ],
)
def test_without_a_premise_a_bound_is_refuted_and_with_it_the_instance_does_not_count(key, form, premise) -> None:
    whole = claim_of(key, form)
    assert any(a.name == premise for a in whole.assumptions)
    assert found(whole).status in ("below", "attained")
    worst = found(replace(whole, assumptions=tuple(a for a in whole.assumptions if a.name != premise)))
    assert worst.ratio > 1.05 and worst.status == "refuted"
    again = replay(worst.as_document())
    assert again.ratio == -np.inf and again.status == "not covered"
    assert [h.name for h in again.assumptions if not h.holds] == [premise]


def test_a_step_beyond_its_cap_does_not_count() -> None:
    row = dict(worst_ratios("arbitrary-participation")["arbitrary-participation/theorem-3.1", "explicit"])
    row["instance"] = row["instance"] | {"gamma": 2 / row["instance"]["curvature"][0]}
    again = replay(row)
    failing = [h for h in again.conditions if not h.holds]
    assert again.status == "not covered" and failing and all((h.left or 0) > (h.right or 0) for h in failing)


@dataclass(frozen=True, eq=False)
class Coins(Population):
    """The mean of 400 tosses, which is at most 1/2 in expectation; by chance it is more."""

    measured = "sampled"
    chance: np.ndarray
    seed: np.ndarray

    def resample(self) -> Self:
        return replace(self, seed=self.seed + 1)

    def sides(self) -> Sides:
        tosses = [np.random.default_rng(int(s)).random(400) < p for s, p in zip(self.seed, self.chance, strict=True)]
        half_width = 2 / np.sqrt(400)
        left, right = np.mean(tosses, axis=1, keepdims=True), {"half": np.full((len(self), 1), 0.5)}
        return Sides(left, right, np.ones((1, 1), dtype=bool), half_width, "", self.describe)


@pytest.mark.parametrize(("chance", "status"), [(0.5, "below"), (0.58, "below"), (0.9, "refuted")])
def test_a_sampled_left_side_refutes_by_its_confidence_interval_on_other_samples(chance, status) -> None:
    claim = claim_of("arbitrary-participation/proposition-4.2", "printed")
    how = InstanceTest(lambda claim, cells: [], lambda claim, z: z.sides())
    worst = describe_instance(claim, how, Coins(np.array([chance]), np.array([7])), {})
    assert worst.status == status and worst.left_side == "sampled"


# --- the committed tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAPERS)
def test_every_form_of_every_result_has_a_row_that_is_not_stale(name: str) -> None:
    listed = [(r.key, f.name) for r in paper(name).results for f in r.forms]
    assert list(worst_ratios(name)) == listed
    for result in paper(name).results:
        for form in result.forms:
            row = worst_ratio(result, form)
            assert row is not None, f"{result.key}[{form.name}] has changed: make adversary"
            assert (row["ratio"] is not None) or row["why"]
            assert (row["ratio"] is None) or not form.order_only


def test_no_two_kinds_of_instances_have_one_name() -> None:
    """A document names the kind of its instance: with two of a name, which were loaded would decide what it is."""
    for name in PAPERS:
        for result in paper(name).results:
            for form in result.forms:
                instance_test(ResultForm(result, form).claim())
    names = Counter(kind.__name__ for kind in set(subclasses(Population)))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("name", PAPERS)
def test_every_committed_instance_is_replayed_with_its_hypotheses(name: str) -> None:
    ledger = read_ledger(name)
    for row in worst_ratios(name).values():
        if row["ratio"] is None:
            continue
        again, claim = replay(row), f"{row['key']}[{row['form']}]"
        assert again.ratio == pytest.approx(float(row["ratio"]), rel=1e-9), claim
        assert all(h.holds for h in (*again.assumptions, *again.conditions)), claim
        assert again.status == row["status"], claim
        assert again.ratio <= 1 + 1e-9 or ledger[claim]["verdict"] == "refuted", claim
        assert (again.ratio < 1 - 1e-9) == (again.status == "below"), claim
        z = population(again)
        sizes = [again.constants[n] for n, q in domains(claim_of(row["key"], row["form"])).items()
                 if n in again.constants and not q.domain.integer]  # fmt: skip
        assert in_range(z).all() and all(moderate(np.asarray([size], dtype=float)).all() for size in sizes), claim


def test_a_table_is_resumed_where_it_stopped_and_searches_changed_forms_anew(monkeypatch) -> None:
    known = [row for row in read_rows(worst_ratios_path("tdcd")) if row["ratio"] is not None]
    known = [row | {"budget": row["budget"] | {"effort": "light", "seed": 5}} for row in known]
    tried: list[str] = []
    monkeypatch.setattr(
        "fedbounds.empirical.falsification.adversary_table.search_form",
        lambda claim, *_: tried.append(claim.id) or "not searched",
    )
    found = list(rows("tdcd", "light", 5, known))
    assert [row for row in found if row["ratio"] is not None] == known and len(tried) == len(found) - len(known)
    tried.clear()
    list(rows("tdcd", "light", 5, [row | {"claim": "0"} if row["form"] == "sharp:B3" else row for row in known]))
    assert len(tried) == len(found) - len(known) + 2 and "tdcd/wall-clock[sharp:B3]" in tried


def test_a_second_search_keeps_the_worse_instance_and_adds_the_budgets() -> None:
    row = worst_ratios("arbitrary-participation")["arbitrary-participation/lemma-c.1", "sharp"]
    first = replay(row)
    lucky = replace(first, ratio=first.ratio / 2, budget={**first.budget, "seed": 7})
    both = worse(first, lucky)
    assert both.ratio == first.ratio and both.instance == first.instance and both.budget["seed"] == 7
    assert both.budget["instances"] == 2 * first.budget["instances"] and both.budget["effort"] == first.budget["effort"]
    assert worse(lucky, first).ratio == first.ratio


def test_a_search_climbs_from_what_is_known_too() -> None:
    claim, few = (
        claim_of("fedau/theorem-2-option-1", "sharp"),
        AdversaryEffort(cells=3, starts=1, evaluations=600, longest=60),
    )
    known = replay(worst_ratios("fedau")["fedau/theorem-2-option-1", "sharp"])
    alone, further = (search_form(claim, few, 5, "", start) for start in (None, known))
    assert isinstance(alone, WorstInstance) and isinstance(further, WorstInstance)
    assert alone.ratio < known.ratio <= further.ratio
    assert further.budget["ascents"] == alone.budget["ascents"] + 1


def test_rows_of_other_searches_are_merged_once_and_never_for_less(tmp_path) -> None:
    rows_ = [dict(row) for row in worst_ratios("fedmrn").values()]
    place = next(k for k, row in enumerate(rows_) if row["ratio"] is not None)
    known, silent = rows_[place], next(row for row in rows_ if row["ratio"] is None)
    other = known | {"budget": known["budget"] | {"seed": 7, "instances": 100}}
    files = tmp_path / "table.json", tmp_path / "found.json"
    write_rows(files[0], "fedmrn", rows_)
    write_rows(files[1], "fedmrn", [other, silent, known | {"claim": "0"}])
    for _ in range(2):  # the second time there is nothing new in it
        status, out, err = run("adversary", "--paper", "fedmrn", "--merge", str(files[1]), "--out", str(files[0]))
        assert (status, err) == (0, "") and "written" in out
        after = read_rows(files[0])
        assert after[:place] + after[place + 1 :] == rows_[:place] + rows_[place + 1 :]
        assert after[place]["ratio"] == pytest.approx(known["ratio"], rel=1e-9)
        assert after[place]["budget"]["instances"] == known["budget"]["instances"] + 100
        assert after[place]["budget"]["seed"] == 7


def test_show_says_the_largest_ratio_found() -> None:
    said = run("show", "arbitrary-participation/theorem-3.1", "--form", "sharp")[1]
    assert "largest found left/bound 0." in said and " instances)" in said


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_above_a_bound_in_a_table_was_reckoned_with_more_digits(paper: str) -> None:
    rows = [row for row in read_rows(worst_ratios_path(paper)) if row["ratio"] is not None]
    assert not [row["key"] for row in rows if row["status"] == "lead"]
    assert all(row["why"].startswith("long doubles say") for row in rows if row["status"] == "refuted")
