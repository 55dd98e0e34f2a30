"""What the minimax paper package lists besides its results, and the special cases and closed forms that it states."""

import numpy as np
import pytest

from fedbounds import main
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.audit.limit_checker import CHECKER
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.papers.fed_norm_sgda.concave import THEOREM_4
from fedbounds.bounds.papers.fed_norm_sgda.limits import LIMITS, closed_form_limits
from fedbounds.bounds.theory.registry import load, paper, statements
from fedbounds.cli import catalog as places

PAPER = "fed-norm-sgda"
NUMBERED = [*range(1, 13), 14, 15, 16, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 31, 32, 33, 34, 35, 36, 37, 38, 41,
            42, 43, 44, 45, 48, *range(49, 68), 69, 70, 71, 72, 73]  # fmt: skip
LISTED = {one.name: one for one in statements(PAPER)}


@pytest.fixture(scope="module")
def claim_set():
    return ClaimSet.of(PAPER, only=[CHECKER])


def test_show_finds_every_numbered_equation(monkeypatch):
    steps = list(places._steps(PAPER))  # once for all numbers
    monkeypatch.setattr(places, "_steps", lambda name: steps)
    for number in NUMBERED:
        assert places.equation_places(PAPER, str(number)), number


def test_an_equation_of_a_proof_is_shown_with_its_verdict(capsys):
    assert main(["show", f"{PAPER}/(65)"]) == 0
    assert "drift-at-a-snapshot" in capsys.readouterr().out


def test_definitions_assumptions_and_remarks_are_listed(capsys):
    wanted = {f"definition-{k}" for k in range(1, 5)} | {f"assumption-{k}" for k in range(1, 9)}
    assert wanted | {"remark-7", "remark-8", "remark-9"} <= set(LISTED)
    assert main(["show", f"{PAPER}/assumption-3"]) == 0
    assert "betaG >= 1" in capsys.readouterr().out


def test_every_claim_that_a_statement_names_is_on_trial(claim_set):
    named = {f"{PAPER}/{claim}" for one in LISTED.values() for claim in one.claims}
    assert len(named) > 15 and named <= set(claim_set.claims)


def test_the_closed_forms_and_the_special_cases_are_identities(claim_set):
    for name in [f"limit/{one.name}" for one in (*closed_form_limits(), *LIMITS[:8])]:
        assert claim_set.verdict(f"{PAPER}/{name}").outcome == "proved", name


def test_the_closed_forms_minimize_the_bound_they_are_for():
    """Both sides of (50) to (53) by a search over S, the step in y and the step in x, one after the other."""
    L, R, Gx, first, second, P, T, gap, taueff = 2.0, 3.0, 0.5, 1.7, 2.3, 4, 1e4, 0.9, 5.0
    around = np.geomspace(0.5, 2, 20001)
    x, y = 1e-3, 2e-2
    S = np.sqrt(R / (taueff**2 * x * y * Gx * first)) * around
    assert around[np.argmin(L * taueff * x * Gx * S * first + L * R / (taueff * y * S))] == pytest.approx(1, rel=1e-3)
    ascent = (P / (2 * second)) ** (2 / 3) * (R * x * Gx * first) ** (1 / 3) * around
    assert around[np.argmin(np.sqrt(R * x * Gx * first / ascent) + ascent * second / P)] == pytest.approx(1, rel=1e-3)
    rest = second * R * Gx * first / P
    descent = (3 * gap / (taueff * L * T)) ** 0.75 * rest**-0.25 * around
    bound = gap / (taueff * descent * T) + L * (rest * descent) ** (1 / 3)
    assert around[np.argmin(bound)] == pytest.approx(1, rel=1e-3)
    assert bound.min() == pytest.approx(4 / 3**0.75 * L**0.75 * (gap * rest / (taueff * T)) ** 0.25)


@pytest.mark.parametrize("tau", [1, 3])
def test_the_special_cases_are_what_theorem_4_evaluates_to(tau):
    """(58) and (59): I_1^2 from the descent noise of (48), I_2 from its ascent noise."""
    n, sigmaL, betaL, sigmaG, Gx = 4, 0.7, 0.4, 0.6, 1.3
    c = dict(Lf=1, sigmaL=sigmaL, betaL=betaL, sigmaG=sigmaG, betaG=1, tau=[tau] * n, w=[1 / n] * n, P=n, T=10, S=2)
    c |= dict(Gammax=0.1, Gammay=0.01, etax=0, etay=0, Gx=Gx, R=1, Deltabar=1)
    there = evaluate(THEOREM_4, c, form="printed")
    first = Gx**2 + (sigmaL**2 + betaL**2 * Gx**2) / (n * tau)
    assert float(there.terms["descent noise"]) == pytest.approx(0.1 * first)
    second = sigmaL**2 + betaL**2 * sigmaG**2
    assert float(there.terms["full synchronization"]) == pytest.approx(0.01 * second / (n * tau))
    assert float(there.constants["taueff"].value if "taueff" in there.constants else tau) == tau


def test_jensen_is_stated_for_any_convex_function():
    lemma = load(f"{PAPER}/lemma-a.3")
    value = evaluate(lemma, dict(w=[0.25, 0.75], fvalues=[-1.0, 3.0]), form="printed").value
    assert float(value) == 2 and float(evaluate(lemma, dict(w=[0.5, 0.5], squares=[1, 3])).value) == 2


def test_the_pl_section_adds_a_kappa_to_lemma_b_8_that_is_not_needed():
    lemma = load(f"{PAPER}/lemma-b.8")
    c = dict(Lf=1, mu=0.25, sigmaG=0.5, betaG=1.5, tau=[2, 3], w=[0.5, 0.5], P=2, gap=0.3, noisydrift=0.1, betaL=0)
    plain, pl = (evaluate(lemma, c, form=form) for form in ("printed", "printed:pl"))
    assert float(pl.terms["dual gap"]) == pytest.approx(4 * float(plain.terms["dual gap"]))
    assert {k: float(v) for k, v in pl.terms.items() if k != "dual gap"} == {
        k: float(v) for k, v in plain.terms.items() if k != "dual gap"
    }


def test_what_the_symbols_mean_is_no_condition_of_a_printed_theorem(capsys):
    """That amax is the largest coefficient is said of the symbols; the paper prints no such condition."""
    assert main(["show", f"{PAPER}/theorem-4", "--form", "printed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    conditions = [line for line in lines if line.startswith("  if ")]
    assert len(conditions) == 3 and not any("alast" in line or "w) == 1" in line for line in conditions)
    legal = next(line for line in lines if line.startswith("  legal constants: "))
    assert legal.endswith("; amax is the largest of the coefficients with these norms")


def test_strong_concavity_and_the_pl_condition_are_each_what_its_assumption_says():
    """Both once read "every f_i(x, .) is mu-strongly concave (or sum_i w_i f_i is mu-PL in y)", which neither says."""
    said = {a.label: a.statement for r in paper(PAPER).results for f in r.forms for a in f.assumptions}
    assert said["Assumption 4"] + "." == LISTED["assumption-4"].says.replace("Every", "every")
    assert "PL condition" in said["Assumption 5"] and ">= 2 mu (max_y f - f)" in said["Assumption 5"]
    assert "PL" not in said["Assumption 4"] and "f_i" not in said["Assumption 5"].replace("w_i f_i", "")
