"""What holds of the errata of every paper: each counterexample is exact, meets its hypotheses and is minimal."""

from fractions import Fraction
from importlib import import_module
from typing import get_args

import pytest

from fedbounds.bounds.audit.counterexample import Degree
from fedbounds.bounds.audit.counterexample_checker import judge_replay
from fedbounds.bounds.audit.errata import describe_findings, findings, paper_errata, paper_supplements, paper_wording
from fedbounds.bounds.theory.registry import PAPERS, paper, paper_module, submodule

ROOMS = [name for name in PAPERS if paper_errata(name)]
ERRATA = {f"{name}/{erratum.id}": (name, erratum) for name in ROOMS for erratum in paper_errata(name)}
ARGUED = {
    f"{name}/{entry.id}": entry
    for name in ROOMS
    for entry in (*paper_errata(name), *paper_supplements(name))
    if entry.argument
}


def forms(name):
    return {f"{r.key.partition('/')[2]}[{f.name}]": f for r in paper(name).results for f in r.forms}


@pytest.mark.parametrize("erratum", [e for _, e in ERRATA.values()], ids=list(ERRATA))
def test_the_counterexample_meets_every_hypothesis_exceeds_the_claim_and_is_minimal(erratum):
    verdict = judge_replay(erratum.replay(), erratum.hypotheses, erratum.id)
    assert (verdict.outcome, verdict.flags) == ("refuted", ())
    claimed, true = erratum.counterexample()
    assert true > claimed


@pytest.mark.parametrize("erratum", [e for _, e in ERRATA.values()], ids=list(ERRATA))
def test_every_counterexample_is_recomputed_in_exact_fractions(erratum):
    replay = erratum.replay()
    numbers = [replay.claimed, replay.true, *(line.value for line in replay.lines)]
    numbers += [side for check in replay.hypotheses for side in (check.left, check.right)]
    numbers += [side for small in replay.smaller for side in (small.claimed, small.true)]
    assert all(isinstance(number, Fraction | int) for number in numbers)
    assert replay.instance and replay.minimal and len(replay.lines) >= 2


@pytest.mark.parametrize("name", ROOMS)
def test_all_evidence_belongs_to_an_entry(name):
    module = submodule(paper_module(name), "errata")
    assert set(module.EVIDENCE) == {erratum.id for erratum in paper_errata(name)}
    assert set(module.ARGUMENTS) == {entry.id for entry in paper_supplements(name) if not entry.open}


@pytest.mark.parametrize("name", ROOMS)
def test_every_refuted_form_names_an_erratum_that_exists(name):
    named = {form.refuted_by for form in forms(name).values() if form.refuted_by}
    assert named and named <= {erratum.id for erratum in paper_errata(name)}


@pytest.mark.parametrize("name", ROOMS)
def test_every_form_that_an_erratum_names_exists_and_no_guarantee_rests_on_one_that_is_refuted(name):
    known = forms(name)
    for erratum in paper_errata(name):
        false, repairs = ([p for p in places if p.endswith("]")] for places in (erratum.refutes, erratum.repair))
        assert {*false, *repairs} <= set(known)
        assert all(known[place].refuted_by for place in false)
        assert not any(known[place].refuted_by for place in repairs)
        assert erratum.repair or erratum.argument or erratum.open


@pytest.mark.parametrize("name", ROOMS)
def test_every_erratum_has_a_name_of_its_own_and_says_what_fails_and_what_holds(name):
    listed = [*paper_errata(name), *paper_supplements(name), *paper_wording(name)]
    assert len({entry.id for entry in listed}) == len(listed)
    for entry in listed:
        assert set(entry.id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.") and entry.id[0].isalpha()
    for erratum in paper_errata(name):
        assert erratum.claim and erratum.fails and erratum.instead and erratum.where


@pytest.mark.parametrize("name", ROOMS)
def test_every_step_that_an_erratum_names_is_one_of_a_proof_of_the_paper(name):
    places = [place for erratum in paper_errata(name) for place in (*erratum.refutes, *erratum.repair)]
    limits = {place for place in places if place.startswith("limit/")}
    steps = {f"{name}/{place}" for place in places if not place.endswith("]")} - {f"{name}/{one}" for one in limits}
    special = import_module(f"{paper_module(name).__name__}.limits").LIMITS if limits else ()
    assert limits <= {f"limit/{limit.name}" for limit in special}
    proofs = import_module(f"{paper_module(name).__name__}.proof").PROOFS if steps else ()
    assert steps <= {f"{proof.id}/{step.id}" for proof in proofs for step in proof.steps}


def test_no_two_papers_share_the_name_of_an_erratum():
    ids = [erratum.id for _, erratum in ERRATA.values()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("entry", ARGUED.values(), ids=list(ARGUED))
def test_every_inequality_of_an_argument_of_our_own_holds(entry):
    argument = entry.argument()
    assert argument.checks and all(check.holds for check in argument.checks)


@pytest.mark.parametrize("name", ROOMS)
def test_findings_are_counted_once_and_by_degree(name):
    found = findings(name)
    ids = [entry for degree in found.values() for entry in degree]
    repeated = {e.id for e in paper_errata(name) if e.repeats}
    assert len(ids) == len(set(ids)) and not repeated & set(ids)
    assert set(ids) | repeated == {entry.id for entry in (*paper_errata(name), *paper_wording(name))}
    assert str(len(ids)) == describe_findings(name).partition(" ")[0]


@pytest.mark.parametrize("name", ROOMS)
def test_an_erratum_that_repeats_a_remark_names_one_of_its_own_paper_that_is_as_grave(name):
    known = {e.id: e for e in paper_errata(name)}
    for erratum in known.values():
        if erratum.repeats:
            first = known[erratum.repeats]
            grave = get_args(Degree).index
            assert not first.repeats and grave(first.degree) <= grave(erratum.degree)


def test_the_first_paper_has_one_statement_that_is_false_as_stated():
    found = findings("arbitrary-participation")
    assert found["false as stated"] == ("suprema-at-different-rounds",)
    assert found["units"] == ("step-size-with-a-unit",)
    assert "chebyshev-for-one-window" not in found["false under a literal reading"]  # one remark at two places
    assert sum(map(len, found.values())) == len(paper_wording("arbitrary-participation")) + 10


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("noise-bounded-as-a-whole", [f"noise-of-one-block-in-lemma-c.{k}" for k in (1, 2, 4)]),
        ("smoothness-of-the-envelope", ["descent-with-too-smooth-an-envelope"]),
        ("rounds-beyond-the-cap", ["steps-beyond-the-cap"]),
        ("cross-term-of-local-noise", ["descent-without-the-cross-term"]),
        ("dropped-cross-term", ["descent-lemma"]),
        ("mean-of-a-random-number-of-intervals", ["variance-of-a-random-number-of-intervals"]),
        ("one-window-is-not-all-windows", ["chebyshev-for-one-window"]),
    ],
)
def test_a_remark_made_at_several_places_is_one_finding(first, others):
    by_id = {erratum.id: erratum for _, erratum in ERRATA.values()}
    assert all(by_id[other].repeats == first for other in others)


def test_where_only_an_inference_fails_the_conclusion_is_true_or_open():
    """(B.4.4) is true although it does not follow; nobody knows how many rounds Fed-Norm-SGDA needs."""
    inferences = {e.id: e for _, e in ERRATA.values() if e.degree == "false as an inference"}
    assert {"halved-initial-gap", "rounds-beyond-the-cap", "quarter-of-lemma-c.3"} <= inferences.keys()
    assert "is true all the same" in inferences["halved-initial-gap"].instead
    assert "is open" in inferences["rounds-beyond-the-cap"].instead
    assert not any(erratum.refutes for erratum in inferences.values())  # no form, no step
