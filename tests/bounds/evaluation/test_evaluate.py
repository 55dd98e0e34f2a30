"""Evaluation: broadcasting, validity, guarantees and every way a user's constants can be wrong."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.numpy_code import compile_expressions, compile_form
from fedbounds.bounds.evaluation.program import CHUNK
from fedbounds.bounds.theory.client_reductions import MaxOverClients, MeanOverClients, SumOverClients
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.registry import load, paper_module, results
from fedbounds.bounds.theory.result import Condition, Form, Result, Source, Term
from fedbounds.bounds.theory.symbols import (
    COUNT,
    NONE,
    POSITIVE,
    Constant,
    Derived,
    Domain,
    NoConstant,
    Notation,
    Quantity,
)

THEOREM = load("arbitrary-participation/theorem-3.1")
GOOD = dict(L=1, F=5, I=2, P=2, T=8, gamma=1 / 48, eta=6, rho=0.75, nu=2, beta=0.5, delta=0, sigma=0.5)


def explicit(constants=None, **changes):
    keywords = {k: changes.pop(k) for k in ("assume", "checked") if k in changes}
    return evaluate(THEOREM, dict(constants or GOOD, **changes), form="explicit", **keywords)


# --- settings --------------------------------------------------------------------------------------------------


def test_settings_broadcast_and_equal_one_evaluation_each():
    T = np.array([4, 8, 5000])
    sigma = np.array([[0.0], [1.0]])
    grid = explicit(T=T, sigma=sigma)
    assert grid.value.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert grid.value[i, j] == float(explicit(T=T[j], sigma=sigma[i, 0]).value)


@pytest.mark.parametrize("shape", [(2 * CHUNK + 1,), (3, CHUNK // 2), (CHUNK // 2, 3), (1, CHUNK + 1)])
def test_chunks_do_not_change_a_value(shape):
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0, 2, shape)
    T = rng.integers(4, 100, shape[-1:]).astype(float)
    got = explicit(sigma=sigma, T=T).value
    slope = float(explicit(sigma=1, T=4).value - explicit(sigma=0, T=4).value)
    gap = 8 * 5 / (1 / 48 * 6 * 2)
    assert got == pytest.approx(float(explicit(sigma=0, T=4).value) - gap / 4 + gap / T + slope * sigma**2)


def test_terms_add_up_to_the_value():
    evaluation = explicit()
    assert sum(float(v) for v in evaluation.terms.values()) == pytest.approx(float(evaluation.value))
    assert evaluation.dominant == "initial gap"


def test_a_window_that_raised_the_objective_leaves_a_finite_negative_bound_and_no_run():
    window = load("arbitrary-participation/equation-c.16")
    known = dict(L=1, I=1, P=1, gamma=1 / 12, eta=1, rho=1, sigma=0, nu=0, beta=0, delta=1)
    fell, rose = (evaluate(window, known | {"decrease": d}, assume=["all"]) for d in (1, -1))
    assert float(fell.value) == pytest.approx(48 + 6) and fell.guarantee
    assert float(rose.value) == pytest.approx(-48 + 6) and rose.valid
    assert float(rose.terms["decrease"]) == pytest.approx(-48) and float(rose.terms["window divergence"]) == 6
    assert not rose.guarantee and "no problem is known to have these constants" in rose.why_not[0]
    assert "no run has these constants" in rose.why_not[1]
    shares = {name: float(share) for name, share in rose.shares.items()}
    assert shares["decrease"] == pytest.approx(48 / 54) and shares["window divergence"] == pytest.approx(6 / 54)


def test_beyond_a_sharp_cap_no_term_has_a_share_and_none_dominates():
    theorem = load("fedau/theorem-2")
    known = dict(L=1, F=1, I=1, N=4, T=100, sigma=1, delta=1, G=1, W=0.1, Q=2, Qmean=2)
    there, beyond = (evaluate(theorem, known | steps) for steps in ({"gamma": 0.01, "eta": 1}, {"gamma": 1, "eta": 1}))
    assert sum(float(share) for share in there.shares.values()) == pytest.approx(1) and there.dominant in there.terms
    assert float(beyond.value) == np.inf and not beyond.valid
    assert all(np.isnan(share) for share in beyond.shares.values()) and beyond.dominant == ""


def test_the_largest_term_and_its_share_are_reported_at_every_setting():
    T = np.array([4.0, 1e3, 1e9])
    along = explicit(T=T)
    one_by_one = [explicit(T=t) for t in T]
    assert list(along.dominant) == [one.dominant for one in one_by_one] and len(set(along.dominant)) > 1
    for name, shares in along.shares.items():
        assert shares == pytest.approx([float(one.shares[name]) for one in one_by_one])


def test_constants_that_the_form_has_no_use_for_are_named():
    assert explicit().unused == ()
    assert explicit(d=3, M=7).unused == ("d", "M")
    assert explicit(oracle_calls=7).unused == ("M",)  # by its concept
    assert explicit(rho=0.5, S=4).unused == ()  # rho and S are held against each other
    steps = load("arbitrary-participation/corollary-3.2")
    known = {k: v for k, v in GOOD.items() if k not in ("gamma", "eta")}
    assert evaluate(steps, known | {"gamma": 0.1}).unused == ("gamma",)  # the corollary sets its own


# --- conditions and guarantees -----------------------------------------------------------------------------------


def test_a_condition_at_equality_holds_in_spite_of_rounding():
    for L, I, P in [(1, 1, 3), (3, 7, 5), (0.1, 3, 7), (1.7, 13, 11)]:
        assert explicit(L=L, I=I, P=P, T=2 * P, gamma=1 / (12 * L * I * P), eta=6).valid


def test_a_broken_condition_keeps_the_value_and_gives_both_sides_and_the_largest_step():
    evaluation = explicit(gamma=0.03, assume=["all"])
    assert float(evaluation.value) > 0
    assert not evaluation.valid and not evaluation.guarantee
    first = evaluation.conditions[0]
    assert (float(first.left), float(first.right)) == (0.03, pytest.approx(1 / 48))
    assert not first.holds and first.limits == "gamma"
    assert first.admissible is not None
    assert float(first.admissible) == pytest.approx(1 / 48)
    second = evaluation.conditions[1]
    assert second.admissible == pytest.approx(1 / (2 * 1 * 2 * 2) / 6)
    assert any("a condition fails" in reason for reason in evaluation.why_not)
    assert explicit(gamma=float(first.admissible)).valid


@pytest.mark.parametrize(("name", "factor"), [("gamma", 1 + 1e-9), ("eta", 1 + 1e-9), ("P", 2.5)])
def test_each_of_the_three_conditions_can_fail(name, factor):
    at_caps = dict(GOOD, P=4, gamma=1 / 96, eta=6)
    assert explicit(at_caps).valid
    assert not explicit(
        at_caps, **{name: np.ceil(at_caps[name] * factor) if name == "P" else at_caps[name] * factor}
    ).valid


def test_a_guarantee_needs_assumptions_checked_or_assumed():
    assert not explicit().guarantee
    assert explicit(assume=["all"]).guarantee
    checked = {a.name: True for a in THEOREM.form("explicit").assumptions}
    assert explicit(checked=checked).guarantee
    assert not explicit(checked=dict(checked, smooth=False), assume=["all"]).guarantee
    partly = explicit(assume=["smooth"])
    assert partly.assumptions["smooth"] == "assumed" and not partly.guarantee


@pytest.mark.parametrize("source", ["trajectory", "estimated"])
def test_constants_seen_along_a_run_or_estimated_never_guarantee(source):
    soft = explicit(delta=Constant(0.1, source), assume=["all"])
    assert not soft.guarantee
    assert soft.constants["delta"].source == source
    assert explicit(delta=Constant(0.1, "exact"), assume=["all"]).guarantee


def test_order_only_asymptotic_and_refuted_forms_never_guarantee():
    printed = evaluate(THEOREM, GOOD, form="printed", assume=["all"])
    assert not printed.guarantee and "O(.)" in printed.why_not[0]
    lemma = evaluate(load("arbitrary-participation/lemma-4.5"), dict(P=5, upsilonhat=1), assume=["all"])
    assert not lemma.guarantee and "limit" in lemma.why_not[0]
    false = evaluate(load("arbitrary-participation/proposition-4.1"), dict(d=1), form="printed", assume=["all"])
    assert not false.guarantee and false.verdict == "refuted"


def test_a_derived_constant_is_as_soft_as_its_softest_input():
    result = weighted()
    soft = evaluate(result, dict(p=Constant(np.array([0.5, 1.0]), "estimated"), T=3), assume=["all"])
    assert soft.constants["N"].source == "estimated"


# --- constants ---------------------------------------------------------------------------------------------------


def test_constants_may_be_given_by_concept():
    renamed = {THEOREM.notation[k].concept: v for k, v in GOOD.items()}
    assert float(evaluate(THEOREM, renamed, form="explicit").value) == float(explicit().value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gama": 1}, "unknown constant of arbitrary-participation/theorem-3.1 'gama'; did you mean gamma"),
        ({"R": 1}, r"theorem-3.1 'R'; did you mean T \(number of rounds\)\?"),  # as in fedau
        ({"sigma": -1}, r"sigma = -1 is outside its domain \[0, inf\): gradient noise"),
        ({"T": 10.5}, r"T = 10.5 is outside its domain integers in \[1, inf\)"),
        ({"rho": 2}, r"rho = 2 is outside its domain \(0, 1\]"),
        ({"L": float("nan")}, "L = nan is outside"),
        ({"F": float("inf")}, "F = inf is outside"),
        ({"gamma": 0}, "gamma = 0 is outside"),
        ({"T": [8, -1]}, r"T\[1\] = -1 is outside"),
        ({"L": "os"}, r"L \(.*\) = .os. must be a real number .*, not text"),
        ({"L": [[1], [2, 3]]}, "must be a real number .*, not list"),
        ({"L": []}, "L is empty"),
        ({"smoothness": 2}, "L is given twice, unequal"),
        ({"S": 4}, "rho = 0.75 conflicts with 0.5, computed from S"),
        ({"nu": NoConstant("the Hessians differ")}, "nu .* has no finite value: the Hessians differ"),
    ],
)
def test_a_wrong_constant_is_one_clear_line(changes, message):
    with pytest.raises(FedboundsError, match=message) as error:
        explicit(changes | {k: v for k, v in GOOD.items() if k not in changes})
    assert "\n" not in str(error.value)


def test_a_million_is_an_integer():
    assert explicit(T=1e6).valid


def test_missing_constants_are_listed_with_their_meaning():
    with pytest.raises(FedboundsError, match=r"needs F \(initial gap .*\), I \(local SGD steps per round\)"):
        evaluate(THEOREM, dict(L=1), form="explicit")


def test_an_unknown_form_or_assumption_names_those_there_are():
    with pytest.raises(FedboundsError, match="did you mean explicit"):
        evaluate(THEOREM, GOOD, form="explict")
    with pytest.raises(FedboundsError, match="did you mean smooth"):
        explicit(assume=["smoot"])


def test_participants_give_the_participation_norm():
    without_rho = {k: v for k, v in GOOD.items() if k != "rho"}
    evaluation = explicit(without_rho, S=4)
    assert float(evaluation.constants["rho"].value) == 0.5
    assert evaluation.constants["rho"].source == "derived"
    assert explicit(dict(without_rho, rho=0.5), S=4).valid


@given(st.dictionaries(st.sampled_from([*GOOD, "x", "P "]), st.floats() | st.text(max_size=3) | st.none(), max_size=14))
def test_whatever_is_given_the_answer_is_a_value_or_one_line(constants):
    try:
        evaluation = evaluate(THEOREM, constants, form="explicit")
    except FedboundsError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(float(evaluation.value), float)


# --- vectors over clients ------------------------------------------------------------------------------------------


def weighted():
    symbols = Notation(
        [
            Quantity("p", "p", "rates", "rates", Domain(high=1, low_open=True), shape=("clients",)),
            Quantity("N", "N", "number of clients", "clients", COUNT),
            Quantity("T", "T", "rounds", "rounds", POSITIVE, NONE),
            Quantity("W", "W", "mean of 1/p", "mean_inverse", POSITIVE),
        ]
    )
    p, N, T, W = symbols.p, symbols.N, symbols.T, symbols.W
    form = Form(
        "explicit",
        (
            Term("mean", MeanOverClients((1 - p) ** T)),
            Term("sum", SumOverClients(p * T) / N),
            Term("max", MaxOverClients(1 / p) * W),
        ),
        (Condition(SumOverClients(p), "<=", N, "rates"),),
        derived=(
            Derived("N", ("p",), lambda p: float(p.shape[-1]), "the length of p"),
            Derived("W", ("p",), MeanOverClients(1 / p), "by definition"),
        ),
    )
    result = Result("x/y", "lemma", "t", Source("x", "y"), LEAST_GRADIENT, symbols, (form,), "explicit", "s")
    return result


def test_reductions_over_clients_broadcast_with_settings():
    result = weighted()
    rates = np.array([0.1, 0.35, 0.8])
    evaluation = evaluate(result, dict(p=rates, T=np.array([1.0, 2.0])))
    for j, T in enumerate([1.0, 2.0]):
        mean = np.mean((1 - rates) ** T)
        assert evaluation.value[j] == pytest.approx(mean + rates.sum() * T / 3 + 10 * np.mean(1 / rates))
    many = evaluate(result, dict(p=np.stack([rates, rates[::-1]]), T=np.arange(1.0, 9001.0)[:, None]))
    assert many.value.shape == (9000, 2)
    assert many.value[1] == pytest.approx(evaluation.value[1])
    assert bool(np.all(evaluation.valid))


def test_the_number_of_clients_is_inferred_and_a_conflict_is_an_error():
    result = weighted()
    assert float(evaluate(result, dict(p=[0.5, 1], T=1)).constants["N"].value) == 2
    with pytest.raises(FedboundsError, match="N = 3 conflicts with 2, computed from p"):
        evaluate(result, dict(p=[0.5, 1], T=1, N=3))
    with pytest.raises(FedboundsError, match=r"p = 0\.5 is one number; it needs one per client"):
        evaluate(result, dict(p=0.5, T=1))
    with pytest.raises(FedboundsError, match=r"p\[1\] = 1.5 is outside"):
        evaluate(result, dict(p=[0.5, 1.5], T=1))


def test_a_derived_vector_reduction_may_be_given_as_a_number_or_by_its_inputs():
    result = weighted()
    assert float(evaluate(result, dict(p=[0.5, 1], T=1, W=1.5)).value) == pytest.approx(
        float(evaluate(result, dict(p=[0.5, 1], T=1)).value)
    )
    with pytest.raises(FedboundsError, match=r"W = 2 conflicts with 1\.5"):
        evaluate(result, dict(p=[0.5, 1], T=1, W=2))


def test_an_infinite_value_within_the_conditions_is_no_guarantee():
    found = explicit(F=1e308, gamma=1e-6, assume="all")
    assert found.valid and found.value == np.inf and not found.guarantee
    assert found.why_not == ("the value is infinite, which bounds nothing",)
    several = explicit(F=np.array([5, 1e308]), gamma=1e-6, assume="all")
    assert several.valid.all() and not several.guarantee and "the value is infinite" in several.why_not[0]


def test_minima_broadcast_and_infinite_branches_are_ignored():
    corollary = load("arbitrary-participation/corollary-3.2")
    setting = {k: v for k, v in GOOD.items() if k not in ("gamma", "eta", "sigma")}
    evaluation = evaluate(corollary, dict(setting, sigma=np.array([0.0, 100.0]), T=900), form="explicit")
    assert evaluation.prescribed["eta"][0] == pytest.approx(6 * 30)
    assert evaluation.prescribed["eta"][1] < 6 * 30


def test_a_form_that_divides_by_what_is_no_longer_positive_says_nothing():
    """Far beyond its caps the slope of the sharp form is negative; the bound is then infinite, never negative."""
    found = evaluate(THEOREM, {**GOOD, "gamma": np.array([1 / 48, 1.0])}, form="sharp")
    assert np.isfinite(found.value[0]) and found.value[1] == np.inf
    assert all(term[1] == np.inf for term in found.terms.values() if np.size(term) > 1)
    assert found.valid.tolist() == [True, False]


def test_the_increase_of_an_objective_may_be_bounded_by_a_negative_number():
    lemma = load("fedau/lemma-b.5.1")
    found = evaluate(lemma, dict(L=1, I=5, N=3, gamma=0.001, eta=2, sigma=0, delta=0, gradsq=1, Wt=0, Qt=1))
    assert -0.0025 < float(found.value) < -0.0024


def test_a_ratio_of_whole_numbers_is_rounded_as_whole_numbers_are():
    """98/49 is 2, although 98 times 1/49 is a bit less."""
    T, P = sp.symbols("T P", positive=True)
    function = compile_expressions((P, T), (sp.floor(T / P), sp.ceiling(T / P), 1 / P))
    rounds = np.arange(1, 2000.0)
    for interval in range(1, 400):
        down, up, _ = function(float(interval), rounds)
        assert (down == rounds // interval).all() and (up == -(-rounds // interval)).all()


def test_the_value_alone_is_the_sum_of_the_parts():
    form = THEOREM.form("sharp")
    constants = {k: np.asarray(v, float) for k, v in GOOD.items()}
    terms, *_ = compile_form(form).parts(constants)
    assert float(compile_form(form).value(constants)) == pytest.approx(float(sum(terms)), rel=1e-13)


def test_an_unproved_theorem_is_no_guarantee_unless_it_is_trusted_and_then_the_answer_says_so():
    theorem = load("fed-norm-sgda/theorem-2")
    c = dict(Lf=1, sigmaL=1, betaL=0, sigmaG=1, betaG=1, P=2, n=2, T=10**6, tau=[2, 2], w=[0.5, 0.5])
    c |= dict(Deltabar=1, Gx=1, R=1)
    alone = evaluate(theorem, c, assume=["all"])
    assert alone.valid and alone.verdict == "survived" and not alone.guarantee and alone.guarantee_text == "no"
    assert alone.why_not == ("the audit has not proved it: its verdict is survived",)
    for name in ("fed-norm-sgda/theorem-2", "fed-norm-sgda/theorem-2[repaired]"):
        trusted = evaluate(theorem, c, assume=["all"], trust=[name])
        assert (
            trusted.guarantee
            and trusted.guarantee_text == "yes, conditional on fed-norm-sgda/theorem-2[repaired] (survived)"
        )
    assert not evaluate(theorem, c, assume=["all"], trust=["fed-norm-sgda/theorem-2[printed]"]).guarantee
    with pytest.raises(FedboundsError, match="unknown claim to trust"):
        evaluate(theorem, c, trust=["fed-norm-sgda/theorem-9"])


def test_trust_cannot_save_a_refuted_form_and_adds_nothing_to_a_proved_one():
    false = evaluate(THEOREM, GOOD, form="explicit", assume=["all"], trust=[THEOREM.key])
    assert false.guarantee and false.conditional_on == ""
    proposition = load("arbitrary-participation/proposition-4.1")
    refuted = evaluate(proposition, dict(d=1), form="printed", assume=["all"], trust=[proposition.key])
    assert refuted.verdict == "refuted" and not refuted.guarantee and refuted.conditional_on == ""


def test_a_form_that_has_changed_since_its_trial_has_no_verdict(monkeypatch):
    """The ledger's hash is of what was tried: a constant that is edited afterwards takes the verdict away."""
    form = THEOREM.form("explicit")
    hundredth = tuple(replace(term, expression=term.expression / 100) for term in form.terms)
    for terms, verdict in ((form.terms, "proved"), (hundredth, "unknown")):
        edited = replace(THEOREM, forms=(replace(form, terms=terms),), default="explicit")
        monkeypatch.setattr(paper_module(THEOREM.paper), "RESULTS", (edited,))
        found = evaluate(edited, GOOD, assume=["all"])
        assert found.verdict == verdict and found.guarantee == (verdict == "proved")


def test_in_a_console_a_result_a_form_and_an_evaluation_are_one_line_each():
    evaluation, several = explicit(), explicit(T=[8, 16])
    assert repr(evaluation) == (
        "<Evaluation of arbitrary-participation/theorem-3.1 [explicit]: "
        f"<= {float(evaluation.value):.6g}, guarantee: no, verdict: {evaluation.verdict}>"
    )
    assert "[explicit]: 2 settings, " in repr(several)
    assert repr(THEOREM) == (
        "<Result arbitrary-participation/theorem-3.1: Convergence of generalized FedAvg under arbitrary participation, "
        f"in {len(THEOREM.forms)} forms>"
    )
    assert repr(THEOREM.form("explicit")).startswith("<Form [explicit]: initial gap, ")
    for result in results():
        assert all("\n" not in text and len(text) < 300 for text in [repr(result), *map(repr, result.forms)])


def test_more_participants_than_clients_are_no_run_whether_a_form_uses_both_or_not():
    theorem = load("arbitrary-participation/theorem-3.1")
    known = dict(L=1, F=1, I=1, P=3, T=30, gamma=1e-3, eta=6, sigma=0, nu=0, beta=0, delta=0)
    assert evaluate(theorem, known | dict(S=2, N=2), assume="all").guarantee
    with pytest.raises(
        FedboundsError, match=r"S = 2 \(participants per round, equal weights\) exceeds N = 1 .*give S <= N"
    ):
        evaluate(theorem, known | dict(S=2, N=1), assume="all")
    some = evaluate(theorem, known | dict(S=np.array([2, 1]), N=1), assume="all")
    assert not some.guarantee and some.why_not[0].startswith("no run has these constants: S = 2")
    assert "at 1 of 2 settings" in some.why_not[0]
    loose = evaluate(theorem, known | dict(S=2, N=1), assume="all", strict=False)
    assert not loose.guarantee and loose.valid
    with pytest.raises(FedboundsError, match="N = 3 conflicts with 2, computed from qbar"):
        evaluate("arbitrary-participation/equation-15", dict(qbar=[0.5, 0.5], N=3, d=1))


def test_participants_that_no_form_uses_are_counted_against_derived_clients():
    known = dict(L=1, F=1, I=2, gamma=1e-3, eta=1, sigma=0.1, delta=1, G=1, T=10, K=3, p=[0.5, 0.5])
    assert evaluate("fedau/theorem-2", known | dict(S=2), assume="all").guarantee
    with pytest.raises(FedboundsError, match=r"S = 3 .* exceeds N = 2"):
        evaluate("fedau/theorem-2", known | dict(S=3), assume="all")


def test_what_is_missing_is_named_with_the_fewer_constants_that_it_follows_from():
    known = dict(L=1, F=1, I=2, gamma=1e-3, eta=1, sigma=0.1, delta=1, G=1, T=10)
    with pytest.raises(FedboundsError, match=r"; N, Q, W follow from K, p$"):
        evaluate("fedau/theorem-2", known)
    assert evaluate("fedau/theorem-2", known | dict(K=3, p=[0.5, 0.5])).valid
    with pytest.raises(FedboundsError) as plain:
        evaluate("fedau/theorem-2", {name: value for name, value in known.items() if name != "L"} | dict(N=2, Q=1, W=0))
    assert "follow" not in str(plain.value)
