"""Verification of an outside theorem: the example of docs/own-theorem.md, and errors inserted into it."""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import gradient_descent
import pytest
from gradient_descent.errata import ERRATA, large_steps
from gradient_descent.notation import BELOW, SMOOTH
from gradient_descent.proof import KEPT, PROOF, STEP, G, X, decrease, g
from gradient_descent.results import CAP, LEAST, THEOREM, F, L, T, eta
from sympy import Integer, Rational, Symbol

from fedbounds.authoring import Assumption
from fedbounds.authoring.proof import Atom, Chain, ProofSetting, Uncorrelated, Vec, by, le
from fedbounds.bounds.audit.axioms import Assumed, Descent
from fedbounds.bounds.audit.claim import Relation, ResultForm
from fedbounds.bounds.audit.claim_set import Checker, ClaimSet, check_targets, checkers, result_claims
from fedbounds.bounds.audit.proof_step_checker import Step, measure_symbol
from fedbounds.bounds.audit.rules import Combine, Telescope
from fedbounds.bounds.audit.vectors import inner, square
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.result import Condition, Form, Term
from tests.command_line import declare, run_apart

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "gradient_descent"
EXPLICIT = THEOREM.form("explicit")
FIRST, SECOND, THIRD = PROOF.steps
LEFT = measure_symbol(LEAST)
LESS = Rational(9, 10)
TOO_SMALL = replace(EXPLICIT, terms=(Term("initial gap", LESS * KEPT * F / T),))


def judge(form: Form = EXPLICIT, steps: Iterable[Step] = PROOF.steps, end: str = "3") -> dict[str, Verdict]:
    """The verdicts on one form and on the steps of its proof, by the last part of their ids."""
    result = replace(THEOREM, forms=(form,))
    proof = replace(PROOF, result=result, steps=tuple(steps), ends={form.name: end})
    claim_set = ClaimSet.from_claims([*result_claims(result), *proof.claims()])
    return {judged.claim.id.rpartition("/")[2]: judged.verdict for judged in claim_set.verdicts() if judged.verdict}


def verdict(*change: object, **named: object) -> Verdict:
    return judge(*change, **named)["theorem-1[explicit]"]


def test_the_explicit_form_is_proved_and_the_printed_one_refuted_by_its_counterexample():
    claim_set = ClaimSet.from_package(gradient_descent)
    found = {claim: claim_set.verdict(claim).outcome for claim in claim_set.claims}
    false = {"gradient-descent/theorem-1[printed]", "gradient-descent/erratum/large-steps"}
    assert {claim for claim, outcome in found.items() if outcome == "refuted"} == false
    assert {outcome for claim, outcome in found.items() if claim not in false} == {"proved"}
    assert len(found) == 11
    assert claim_set.verdict("gradient-descent/theorem-1[printed]").checker == "refutations"
    assert len(claim_set.verdict("gradient-descent/theorem-1[explicit]").axioms) == 2


def test_an_additional_checker_removes_a_trust_if_its_instances_come_within_a_factor_of_two():
    """The form that ends at the step trusts it no longer either."""
    word, step, form = "how far the algorithm moves (gradient-descent/proof/1)", "proof/1", "theorem-1[explicit]"
    for trial, expected in (
        (None, ("proved", (word,))),
        (Verdict("survived", "ours", "", "", tightness=0.49), ("proved", (word,))),
        (Verdict("unknown", "ours", "", "no instances"), ("proved", (word,))),
        (Verdict("survived", "ours", "", "", tightness=0.5), ("proved", ())),
        (Verdict("survived", "ours", "", "", tightness=0.9), ("proved", ())),
        (Verdict("refuted", "ours", "", ""), ("refuted", ())),
    ):
        own = [] if trial is None else [Checker("ours", lambda c, _: c.id.endswith(step), lambda c, _, v=trial: v)]
        claim_set = ClaimSet.from_package(gradient_descent, [*checkers(), *own])
        found, whole = (claim_set.verdict(f"gradient-descent/{name}") for name in (step, form))
        assert (found.outcome, found.trusts) == expected
        assert found.may_hide == ((f"an error up to a factor 2 in {word}",) if trial and trial.tightness == 0.5 else ())
        assert whole.outcome != "proved" or whole.may_hide == found.may_hide
        telescope = ("the rounds averaged over (gradient-descent/proof/3)",)
        assert whole.outcome == ("proved" if found.outcome == "proved" else "unknown")
        for claim in (form, "repair/large-steps"):
            trusts = claim_set.verdict(f"gradient-descent/{claim}").trusts
            assert found.outcome == "refuted" or trusts == (*found.trusts, *telescope)


def test_an_erratum_of_a_paper_that_is_not_installed_refutes_the_step_it_names():
    """The draft's own step, f falls by eta/2 |grad f|^2, which large steps break."""
    printed = replace(
        SECOND, id="2-printed", conclusion=Relation(square(g), 2 / eta * decrease), rule=Combine((2 / eta,))
    )
    proof = replace(PROOF, steps=(FIRST, printed), ends={})
    direct = replace(ERRATA[0], refutes=("theorem-1[printed]", "proof/2-printed"), under=(SMOOTH, CAP.text))
    step = "gradient-descent/proof/2-printed"
    for errata, outcome in (((), "unknown"), ((direct,), "refuted")):
        claims = [*proof.claims(), *(claim for erratum in errata for claim in erratum.claims("gradient-descent"))]
        assert ClaimSet.from_claims(claims).verdict(step).outcome == outcome


@pytest.fixture
def drafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """The paper under another name and on the path only, its claims without the errata; one of these refutes more."""
    name = "drafted_descent"
    monkeypatch.syspath_prepend(str(tmp_path))

    def copy_paper(refutes: str) -> ModuleType:
        shutil.copytree(EXAMPLE / "gradient_descent", tmp_path / name)
        for file in (tmp_path / name).glob("*.py"):
            text = file.read_text().replace("from gradient_descent.", f"from {name}.")
            text = text.replace("for erratum in ERRATA:", 'for erratum in errata_claims("gradient-descent"):')
            text = text.replace("yield from erratum.claims(PAPER)", "yield erratum")
            text = text.replace(
                "import Claim\n", "import Claim\nfrom fedbounds.bounds.audit.errata import errata_claims\n"
            )
            file.write_text(text.replace('refutes=("theorem-1[printed]",)', f'refutes=("{refutes}",)'))
        return import_module(name)

    yield copy_paper
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]


def test_the_errata_of_a_paper_that_is_only_on_the_path_count(drafted):
    claim_set = ClaimSet.from_package(drafted("theorem-1[printed]"))
    assert claim_set.verdict("gradient-descent/erratum/large-steps").outcome == "refuted"
    assert claim_set.verdict("gradient-descent/theorem-1[printed]").outcome == "refuted"
    assert claim_set.verdict("gradient-descent/repair/large-steps").outcome == "proved"


def test_an_erratum_about_a_missing_step_is_an_error(drafted):
    with pytest.raises(FedboundsError, match=r"erratum large-steps refutes.*gradient-descent/proof/nothing"):
        ClaimSet.from_package(drafted("proof/nothing"))


@pytest.mark.parametrize(
    ("refuted_by", "error"),
    [
        ("", r"theorem-1\[printed\] is refuted by large-steps, but its form names no erratum"),
        ("large-step", r"erratum that refutes gradient-descent/theorem-1\[printed\].*large-steps"),
    ],
)
def test_a_form_and_the_erratum_that_refutes_it_must_agree(refuted_by, error):
    claims = list(ClaimSet.from_package(gradient_descent).claims.values())
    form = THEOREM.form("printed")
    changed = ResultForm(THEOREM, replace(form, refuted_by=refuted_by)).claim()
    claim_set = ClaimSet.from_claims(changed if claim.id == changed.id else claim for claim in claims)
    with pytest.raises(FedboundsError, match=error):
        check_targets(claim_set)


def test_gradient_descent_on_quadratics_obeys_the_explicit_form_and_attains_it_at_one_over_L():
    draw, worst = random.Random(0), 0.0
    for _ in range(300):
        L0, x, steps = draw.uniform(0.1, 9), draw.uniform(0.1, 4), draw.randint(1, 30)
        curvature, step = draw.uniform(0, L0), draw.uniform(0.01, 1.99) / L0
        start, least = curvature * x**2 / 2, float("inf")
        for _ in range(steps):
            least, x = min(least, (curvature * x) ** 2), x - step * curvature * x
        bound = evaluate(THEOREM, dict(L=L0, F=start, T=steps, eta=step), assume=["all"], trust=[THEOREM.key])
        assert bound.guarantee and bound.conditional_on == f"{THEOREM.key}[explicit]"  # it is not installed here
        worst = max(worst, least / float(bound.value))
    assert 0.5 < worst <= 1 + 1e-12
    replay = large_steps()
    at_replay, at_inverse = (evaluate(THEOREM, dict(L=1, F=0.5, T=1, eta=step), assume=["all"]) for step in (1.5, 1.0))
    assert (replay.claimed, replay.true) == (Fraction(2, 3), 1)
    assert float(at_replay.value) == pytest.approx(4 / 3) and float(at_inverse.value) == pytest.approx(1)


def test_an_error_of_ten_percent_is_found_wherever_it_is_inserted():
    assert "the last step ends at" in verdict(TOO_SMALL).evidence
    third = replace(THIRD, conclusion=Relation(LEFT, LESS * KEPT * F / T))
    found = judge(TOO_SMALL, (FIRST, SECOND, third))
    assert found["3"].outcome == found["theorem-1[explicit]"].outcome == "unknown"
    assert "gradient-descent/proof/3" in found["theorem-1[explicit]"].evidence
    second = replace(SECOND, conclusion=Relation(square(g), LESS * KEPT * decrease), rule=Combine((LESS * KEPT,)))
    found = judge(TOO_SMALL, (FIRST, second, third))
    assert [found[name].outcome for name in "123"] == ["proved", "unknown", "unknown"]
    assert "leave -<g,g>/10 >= 0" in found["2"].evidence and "it follows, but 2" in found["3"].evidence
    first = replace(FIRST, conclusion=Relation(-decrease, inner(g, STEP) + LESS * L / 2 * square(STEP)))
    assert "the axiom says" in judge(steps=(first, SECOND, THIRD))["1"].evidence


def test_a_telescope_averages_what_it_says_and_no_multiple_of_it():
    second = replace(
        SECOND, conclusion=Relation(LESS * square(g), LESS * KEPT * decrease), rule=Combine((LESS * KEPT,))
    )
    third = replace(THIRD, conclusion=Relation(LEFT, LESS * KEPT * F / T))
    found = judge(TOO_SMALL, (FIRST, second, third))
    assert found["2"].outcome == "proved"
    assert "does not bound <g,g>" in found["3"].evidence


def test_a_strict_condition_is_more_than_its_weakening():
    weak = Condition(eta, "<=", 2 / L, "each step must descend")
    assert "eta < 2/L, which does not follow" in verdict(replace(EXPLICIT, conditions=(weak,))).evidence
    steps = (FIRST, replace(SECOND, premises=("1", weak)), replace(THIRD, premises=("2", BELOW, weak)))
    assert "which may be 0" in judge(replace(EXPLICIT, conditions=(weak,)), steps)["2"].evidence
    small = Condition(eta, "<=", 1 / L, "small steps")
    assert verdict(replace(EXPLICIT, conditions=(small,))).outcome == "proved"
    strict = replace(SECOND, conclusion=replace(SECOND.conclusion, strict=True))
    assert "no rule shows a strict inequality" in judge(steps=(FIRST, strict, THIRD))["2"].evidence


def test_whatever_the_proof_uses_the_form_must_assume():
    assert "eta < 2/L" in verdict(replace(EXPLICIT, conditions=())).evidence
    assert "bounded-below" in verdict(replace(EXPLICIT, assumptions=(SMOOTH,))).evidence
    assert "needs smooth" in judge(steps=(replace(FIRST, premises=()), SECOND, THIRD))["1"].evidence
    assert "may be 0" in judge(steps=(FIRST, replace(SECOND, premises=("1",)), THIRD))["2"].evidence
    nobody = Step("3", "", Relation(LEFT, Integer(0)), Assumed(LEFT, Integer(0), ()))
    assert "no assumption is named" in judge(steps=(nobody,))["3"].evidence


def test_a_decrease_that_is_declared_positive_is_no_decrease_of_f():
    sure = Symbol("decrease", positive=True)
    first = replace(FIRST, conclusion=FIRST.conclusion, rule=Descent("g", STEP, sure, L))
    assert "has a sign" in judge(steps=(first, SECOND, THIRD))["1"].evidence


def test_a_step_cannot_rest_on_itself_even_by_its_whole_name():
    false = Relation(LEFT, F / T)
    with pytest.raises(FedboundsError, match=r"proof/c rests on itself: .*proof/c -> .*proof/d -> .*proof/c"):
        judge(
            steps=(
                Step("c", "", false, Combine((1,)), ("gradient-descent/proof/d",)),
                Step("d", "", false, Combine((1,)), ("c",)),
            ),
            end="c",
        )


def test_a_misspelt_name_is_named():
    assert "premise 11 is not" in judge(steps=(FIRST, replace(SECOND, premises=("11", CAP)), THIRD))["2"].evidence
    unknown = replace(FIRST, rule=Descent("gg", STEP, decrease, L))
    assert "'gg' is not one of the atoms: x, g" in judge(steps=(unknown, SECOND, THIRD))["1"].evidence
    assert "0 multipliers for 1 premises" in judge(steps=(FIRST, replace(SECOND, rule=Combine()), THIRD))["2"].evidence
    other = replace(THIRD, rule=Telescope(Symbol("fall", real=True), F, T, LEFT, of=square(g)))
    assert "the average is at most" in judge(steps=(FIRST, SECOND, other))["3"].evidence
    with pytest.raises(FedboundsError, match="did you mean explicit"):
        replace(PROOF, ends={"explict": "3"})
    with pytest.raises(FedboundsError, match=r"theorem-1\[explicit\]: not a symbol of the notation: c$"):
        replace(THEOREM, forms=(replace(EXPLICIT, terms=(Term("initial gap", Symbol("c") * F),)),))


def test_one_step_with_noise_that_is_only_unbiased_at_its_point_is_proved():
    sigma = Symbol("sigma", positive=True)
    unbiased = Assumption("unbiased-noise", "E[xi | x_t] = 0", "Assumption 3")
    variance = Assumption("bounded-variance", "E|xi|^2 <= sigma^2", "Assumption 3")
    noise = Atom("xi", "noise", 0, "noise of the gradient at x_t", per_client=False)
    xi = Vec.atom("xi")
    c = Chain(ProofSetting.of("expectation over the noise", X, G, noise))
    c["1", "descent lemma"] = Descent("g", -eta * (g + xi), decrease, L), SMOOTH
    c["2", "no correlation"] = Uncorrelated(xi, g, needs=("unbiased-noise",)), unbiased
    c["3", "variance"] = le(square(xi), sigma**2), variance
    c["4", "gain of one step"] = by(
        le((eta - L * eta**2 / 2) * square(g), decrease + L * eta**2 / 2 * sigma**2), "1 2 3"
    )
    judged = list(ClaimSet.from_claims(c.proof("gradient-descent/noisy", THEOREM, {}).claims()).verdicts())
    assert [each.verdict.outcome for each in judged] == ["proved"] * 4


def test_without_the_check_of_one_hypothesis_the_counterexample_refutes_nothing():
    erratum = gradient_descent.errata.ERRATA[0]

    def unchecked():
        replay = large_steps()
        return replace(replay, hypotheses=tuple(c for c in replay.hypotheses if c.name != CAP.text))

    claims = [*result_claims(THEOREM), *replace(erratum, replay=unchecked).claims("gradient-descent")]
    claim_set = ClaimSet.from_claims(claims)
    assert claim_set.verdict("gradient-descent/theorem-1[printed]").outcome == "unknown"
    found = claim_set.verdict("gradient-descent/erratum/large-steps")
    assert found.outcome == "unknown" and "no check that eta < 2/L holds" in found.evidence


def test_the_page_shows_the_files_of_the_example_and_names_them_all():
    page = (ROOT / "docs" / "own-theorem.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL))
    texts = {
        p.relative_to(EXAMPLE).as_posix(): p.read_text(encoding="utf-8")
        for p in EXAMPLE.rglob("*")
        if p.suffix in (".py", ".toml")
    }
    assert shown.pop("gradient_descent/results.py") == texts["gradient_descent/results.py"]
    assert shown.pop("from gradient_descent/proof.py") in texts["gradient_descent/proof.py"]
    assert not shown
    assert [name for name in texts if f"`{Path(name).name}`" not in page] == []


# --- installed -----------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path):
    """The command where a copy of the example is installed, with the entry points that its pyproject.toml declares."""
    shutil.copytree(EXAMPLE / "gradient_descent", tmp_path / "gradient_descent")
    declare(EXAMPLE, tmp_path)
    return partial(run_apart, path=(tmp_path, ROOT), cwd=tmp_path)


def test_the_command_audits_an_installed_paper_and_keeps_its_ledger_beside_it(installed, tmp_path: Path):
    written = installed("audit", "--paper", "gradient-descent", "--write")
    ledger = tmp_path / "gradient_descent" / "ledger.json"
    assert written.returncode == 0 and ledger.exists(), written.stderr
    assert "gradient-descent: 9 proved, 0 survived, 0 argued, 2 refuted, 0 unknown" in written.stdout
    evaluated = installed("eval", "gradient-descent/theorem-1", "L=1", "F=2", "T=100", "eta=0.5", "--assume", "all")
    word = "how far the algorithm moves (gradient-descent/proof/1) and 1 more that nobody has tried"
    assert f"guarantee: yes, conditional on {word} (proved)" in evaluated.stdout, evaluated.stdout + evaluated.stderr
    assert (
        f"  conditional on {word}"
        in installed("rounds", "gradient-descent/theorem-1", "--epsilon", "0.1", "L=1", "F=2", "eta=0.5").stdout
    )
    assert f"  proved, conditional on {word}" in installed("show", "gradient-descent/theorem-1").stdout
    ledger.write_text(ledger.read_text().replace('"refuted"', '"proved"'))
    again = installed("audit", "--paper", "gradient-descent")
    assert again.returncode == 1 and again.stdout.count("DIFFERS") == 2
    replayed = installed("refute", "large-steps")
    assert replayed.returncode == 0 and "2F/(eta T) = 2/3 (0.666667) < |grad f(x_0)|^2 = 1" in replayed.stdout


def test_a_paper_under_another_name_than_its_results_is_refused(installed, tmp_path: Path):
    points = tmp_path / "gradient_descent-1.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("gradient-descent =", "descent ="))
    listed = installed("list")
    assert listed.returncode == 0 and "theorem-3.1" in listed.stdout and "'descent' cannot be loaded" in listed.stderr
    done = installed("audit", "--paper", "descent")
    assert (
        done.returncode == 2
        and done.stderr.count("\n") == 1
        and "must have a key that starts with descent/" in done.stderr
    )
