"""The checker of refutations believes a counterexample only if it meets every hypothesis and exceeds the claim."""

from dataclasses import replace
from fractions import Fraction

import pytest

from fedbounds.bounds.audit import counterexample_checker as refutations
from fedbounds.bounds.audit.claim import ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet
from fedbounds.bounds.audit.counterexample import (
    Argument,
    Check,
    Erratum,
    Line,
    Replay,
    Smaller,
    Supplement,
    format_fraction,
)
from fedbounds.bounds.audit.counterexample_checker import CHECKER, applies_to, judge_argument, judge_replay
from fedbounds.bounds.audit.errata import errata_claims, paper_errata
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.papers.arbitrary_participation.assumptions import BOUNDED_DIVERGENCE, WEIGHTS
from fedbounds.bounds.theory.registry import paper, results

PAPER = "arbitrary-participation"
ERRATA = {erratum.id: erratum for erratum in paper_errata(PAPER)}
SUPREMA = ERRATA["suprema-at-different-rounds"]


def claim_set(*checkers, name=PAPER):
    forms = [ResultForm(result, form).claim() for result in paper(name).results for form in result.forms]
    claims = [*forms, *errata_claims(name)]
    return ClaimSet(name, {claim.id: claim for claim in claims}, checkers or (CHECKER,))


def planted(erratum, **changes):
    return replace(erratum, replay=lambda: replace(erratum.replay(), **changes))


def tried(erratum):
    false, _ = erratum.claims(PAPER)
    return CHECKER.verify(false, ClaimSet(PAPER, {}, ()))


@pytest.mark.parametrize("name", ERRATA)
def test_a_counterexample_that_breaks_one_hypothesis_is_not_covered(name):
    replay = ERRATA[name].replay()
    for k, check in enumerate(replay.hypotheses):
        worse = {"<=": Fraction(check.right) + 1, "<": check.right, "==": Fraction(check.right) + 1}
        broken = replace(check, left=worse.get(check.op, Fraction(check.right) - 1))
        hypotheses = (*replay.hypotheses[:k], broken, *replay.hypotheses[k + 1 :])
        verdict = tried(planted(ERRATA[name], hypotheses=hypotheses))
        assert verdict.outcome == "unknown" and verdict.evidence.startswith("not covered") and broken.of in str(verdict)


@pytest.mark.parametrize("name", ERRATA)
def test_a_counterexample_that_leaves_one_hypothesis_out_is_not_covered(name):
    replay = ERRATA[name].replay()
    for wanted in ERRATA[name].hypotheses:
        kept = tuple(check for check in replay.hypotheses if check.name != wanted)
        verdict = tried(planted(ERRATA[name], hypotheses=kept))
        assert verdict.outcome == "unknown" and wanted in verdict.evidence


@pytest.mark.parametrize("name", ERRATA)
def test_swapped_sides_refute_nothing(name):
    replay = ERRATA[name].replay()
    verdict = tried(planted(ERRATA[name], claimed=replay.true, true=replay.claimed))
    assert verdict.outcome == "unknown" and "does not exceed" in verdict.evidence


def test_equal_sides_refute_nothing():
    assert tried(planted(SUPREMA, true=1)).outcome == "unknown"


def test_a_smaller_instance_that_refutes_too_is_reported():
    verdict = tried(planted(SUPREMA, smaller=(Smaller("half of it", 1, 2),)))
    assert verdict.outcome == "refuted" and verdict.flags == ("not minimal: half of it",)


def test_every_erratum_of_the_paper_is_refuted_and_every_form_it_names():
    verdicts = claim_set()
    for erratum in ERRATA.values():
        assert verdicts.verdict(f"{PAPER}/erratum/{erratum.id}").outcome == "refuted"
        for form in erratum.refutes:
            verdict = verdicts.verdict(f"{PAPER}/{form}")
            assert verdict.outcome == "refuted" and verdict.evidence


def test_a_form_whose_proof_alone_is_false_is_not_called_refuted():
    verdict = claim_set().verdict(f"{PAPER}/corollary-4.8[explicit]")
    assert verdict.outcome == "unknown" and "derivation" in verdict.evidence
    assert verdict.flags == (f"rests on {PAPER}/erratum/{SUPREMA.id}",)


def test_the_explicit_corollary_4_3_is_true_although_its_proof_is_not():
    # term by term its sharp form is smaller, at every P <= T/2: so `refuted` would contradict a proof
    from fedbounds.bounds.evaluation.evaluate import evaluate

    for P in (1, 2, 7, 50):
        for T in (2 * P, 3 * P + 1, 1000 * P):
            constants = {"L": 1, "F": 2, "I": 3, "P": P, "T": T, "rho": 0.5, "sigma": 0.7, "d": 1.5}
            key = paper(PAPER).results
            result = next(r for r in key if r.key.endswith("corollary-4.3"))
            explicit, sharp = (evaluate(result, constants, form=f) for f in ("explicit", "sharp"))
            for name in ("divergence",):
                both = sum(v for k, v in sharp.terms.items() if "divergence" in k)
                assert both <= explicit.terms[name]


def test_refuted_forms_without_a_counterexample_here_are_unknown():
    for result in results():
        for form in result.forms:
            claim = ResultForm(result, form).claim()
            if form.refuted_by and not paper_errata(claim.paper):
                verdict = CHECKER.verify(claim, ClaimSet(claim.paper, {}, ()))
                assert verdict.outcome == "unknown" and form.refuted_by in verdict.evidence


def test_a_repair_is_as_strong_as_the_weakest_claim_it_names():
    outcomes = {}
    forms = Checker("forms", lambda c, d: c.kind == "result" and not applies_to(c, d), lambda c, _: outcomes[c.id])
    names = [f"{PAPER}/{local}" for local in SUPREMA.repair]
    repair = f"{PAPER}/repair/{SUPREMA.id}"
    for outcome in ("proved", "survived", "unknown", "refuted"):
        outcomes.update({name: Verdict("proved", "forms", "", "", ("an axiom",)) for name in names})
        outcomes[names[1]] = Verdict(outcome, "forms", "", "this one")
        verdict = claim_set(CHECKER, forms).verdict(repair)
        assert verdict.outcome == outcome
        assert verdict.axioms == ("an axiom",)
        assert outcome == "proved" or names[1] in verdict.evidence


def test_a_repair_trusts_what_the_claims_that_state_it_trust():
    trusting = Verdict("proved", "forms", "", "", ("an axiom",), trusts=("how far the algorithm moves (p/1)",))
    forms = Checker("forms", lambda c, d: c.kind == "result" and not applies_to(c, d), lambda c, _: trusting)
    verdict = claim_set(CHECKER, forms).verdict(f"{PAPER}/repair/{SUPREMA.id}")
    assert verdict.outcome == "proved" and verdict.trusts == trusting.trusts
    assert verdict.rests_on == ("an axiom", "trusts how far the algorithm moves (p/1)")


def test_a_repair_that_names_no_claim_is_unknown():
    orphan = replace(SUPREMA, repair=("proposition-9.9[printed]",))
    _, repair = orphan.claims(PAPER)
    assert CHECKER.verify(repair, claim_set()).outcome == "unknown"
    _, nothing = replace(SUPREMA, repair=(), open="nobody knows").claims(PAPER)
    assert CHECKER.verify(nothing, claim_set()).evidence == "nobody knows"


def test_an_argument_in_words_proves_nothing_whatever_its_numbers_are():
    """Nobody reads the words: one that says a thousandth of what its numbers show must not look proved."""
    words = Argument("a < b/1000", (Check("x", "1 < 2", 1, "<", 2),), ("an axiom",))
    assert judge_argument(words) == Verdict("argued", "refutations", "argument in words", "1 < 2: 1 < 2", ("an axiom",))
    assert judge_argument(replace(words, checks=(Check("x", "3 < 2", 3, "<", 2),))).outcome == "unknown"
    repaired = replace(SUPREMA, repair=("lemma-c.1[printed]",), argument=lambda: words)
    _, repair = repaired.claims(PAPER)
    best = claim_set()
    best._verdicts[f"{PAPER}/lemma-c.1[printed]"] = Verdict("proved", "steps", "graph", "")
    assert CHECKER.verify(repair, best).outcome == "argued"


def test_open_statements_are_unknown_with_the_reason():
    (claim,) = Supplement("open", "nowhere", "a statement", open="because").claims(PAPER)
    verdict = CHECKER.verify(claim, ClaimSet(PAPER, {}, ()))
    assert (verdict.outcome, verdict.evidence) == ("unknown", "because")


def test_wording_is_checked_by_nobody():
    wording = {claim.id: claim for claim in errata_claims(PAPER) if claim.kind == "wording"}
    assert len(wording) >= 8 and not any(applies_to(claim, claim_set()) for claim in wording.values())
    judged = {j.claim.id: j.verdict for j in replace(claim_set(), claims=wording).verdicts()}
    assert judged == dict.fromkeys(wording)


def test_the_hash_of_an_erratum_changes_with_its_instance_and_its_sides():
    false, _ = SUPREMA.claims(PAPER)
    for changed in (
        planted(SUPREMA, true=3),
        planted(SUPREMA, lines=(Line("another", 1),)),
        planted(SUPREMA, hypotheses=SUPREMA.replay().hypotheses[:-1]),
        replace(SUPREMA, claim="another claim"),
        replace(SUPREMA, under=(WEIGHTS,)),
    ):
        assert next(iter(changed.claims(PAPER))).hash != false.hash


def test_papers_without_a_module_of_errata_have_none():
    assert paper_errata("not-a-paper") == ()


def test_a_claim_under_other_hypotheses_than_were_checked_is_not_refuted():
    replay = SUPREMA.replay()
    known = (BOUNDED_DIVERGENCE.name, WEIGHTS.name)
    assert judge_replay(replay, known, "x").outcome == "refuted"
    assert judge_replay(replay, (*known, "regularized"), "x").evidence == "not covered: no check that regularized holds"


def test_numbers_are_shown_exactly_where_they_are_short():
    assert format_fraction(Fraction(2, 7)) == "2/7 (0.285714)"
    assert format_fraction(10**13) == "10000000000000 (1e+13)"
    assert format_fraction(Fraction(1, 10**9)) == "1e-09 (rounded)"


def test_there_is_one_class_of_errata():
    assert refutations.Erratum is Erratum
    assert all(type(erratum) is Erratum for erratum in ERRATA.values())
    assert all(type(erratum.replayed) is Replay for erratum in ERRATA.values())
