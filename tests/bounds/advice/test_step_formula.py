"""Formulas of step sizes: exact suprema of monomials, proofs of other ratios, counterexamples, and units."""

import math

import pytest

from fedbounds.bounds.advice import step_formula
from fedbounds.bounds.advice.step_formula import check_formulas, describe_factor
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.standard_symbols import STANDARD
from fedbounds.bounds.theory.theorem_file import theorem

L, I, N, S, mu, q = (STANDARD[name].symbol for name in ("L", "I", "N", "S", "mu", "q"))


def stated(*conditions, **more):
    terms = more.pop("terms", {"gap": "2*F/(gamma*I*T)"})
    measure = "minimum over rounds of squared gradient norm of f"
    return theorem("draft/one", measure=measure, terms=terms, conditions=[*conditions], **more)


def one(result, formula, **given):
    found = check_formulas(result, result.form(), {"": formula}, given)
    (check,) = found.checks
    return found, check


@pytest.mark.parametrize(
    ("formula", "answer", "ratio", "factor"),
    [
        ("1/(8*L*I)", "holds", "1/2", 2),
        ("1/(4*L*I)", "holds", "1", 1),
        ("1/(4*L*I**2)", "holds", "1/I", 1),  # I >= 1
        ("1/(3*L*I)", "fails", "4/3", 0.75),
        ("1/(8*L)", "fails", "I/2", 0),  # any factor fails at a large I
        ("1/(8*L*sqrt(I))", "fails", "sqrt(I)/2", 0),
        ("1/(4*smoothness*local_steps)", "holds", "1", 1),  # concepts
        ("min(1/(8*L), 1/(8*L*I))", "holds", None, 2),
    ],
)
def test_a_formula_against_one_condition(formula, answer, ratio, factor):
    found, check = one(stated("gamma <= 1/(4*L*I)"), formula)
    assert (check.answer, found.legal) == (answer, answer == "holds")
    assert ratio is None or check.ratio == ratio
    assert found.largest_factor == pytest.approx(factor)
    if answer == "fails":  # the counterexample is one
        at = check.at
        assert check.left > check.right == pytest.approx(1 / (4 * at["L"] * at["I"]))
    assert check.exact


def test_other_ratios_are_proved_and_their_suprema_found():
    found, check = one(stated("gamma*L*(I - 1) <= 1/8"), "1/(8*L*I)")
    assert check.answer == "holds" and found.largest_factor == pytest.approx(1, abs=1e-3)
    assert not one(stated("gamma*L*(I - 1) <= 1/8"), "1/(7*L*I)")[0].legal
    found, check = one(stated("gamma <= 1/(4*L + mu)", terms={"gap": "2*F*mu/(gamma*I*T*L)"}), "1/(5*L)")
    assert check.answer == "holds" and found.largest_factor == pytest.approx(1)  # as mu <= L
    found, check = one(stated("gamma <= 1/(4*L + mu)", terms={"gap": "2*F*mu/(gamma*I*T*L)"}), "1/(4*L)")
    assert check.answer == "fails" and found.largest_factor == pytest.approx(0.8)
    found, check = one(stated("gamma*L*(1 + gamma*L*I) <= 1"), "1/(2*L*sqrt(I))")
    assert (check.answer, check.ratio, found.largest_factor) == ("holds", "", None)
    assert "not known" in describe_factor(found)


def test_the_other_conditions_hold_at_a_counterexample():
    found, check = one(stated("gamma <= 1/(4*L*I)", "I <= 2"), "1/(8*L)")
    assert check.answer == "holds" and found.largest_factor == pytest.approx(1) and check.exact
    found, check = one(stated("gamma <= 1/(4*L*I)", "I <= 3"), "1/(8*L)")
    assert check.answer == "fails" and check.at["I"] == 3 and found.largest_factor == pytest.approx(2 / 3)
    terms = {"gap": "2*F/(gamma*I*T)", "noise": "gamma*sigma**2*L/S"}
    found, check = one(stated("gamma <= N/(4*L*S)", terms=terms), "1/(4*L)")
    assert check.answer == "holds" and found.largest_factor == pytest.approx(1)  # as S <= N


def test_without_a_proof_the_settings_that_meet_the_other_conditions_are_counted(monkeypatch):
    monkeypatch.setattr(step_formula._Search, "_proved", lambda *_: False)
    found, check = one(stated("gamma <= 1/(4*L*I)", "I*(I + 1) <= 6"), "1/(8*L)")
    assert check.answer == "no counterexample" and check.how == "no counterexample in 20480 settings"
    assert found.largest_factor == pytest.approx(1) and not check.exact and "at most about 1" in describe_factor(found)


def test_a_strict_condition_excludes_the_edge():
    assert one(stated("gamma < 1/L"), "1/L")[1].answer == "fails"
    assert one(stated("gamma < 1/L"), "1/(2*L)")[1].answer == "holds"


def test_units_are_checked_before_conditions():
    found = check_formulas(stated("gamma <= 1/L"), stated("gamma <= 1/L").form(), {"": "1/L**2"})
    assert not found.legal and not found.checks and "has unit x^4/f^2, not x^2/f" in found.unit_faults[0]
    found = check_formulas(stated("gamma <= 1/L"), stated("gamma <= 1/L").form(), {"gamma": "1/(L + F)"})
    assert "L + F" in found.unit_faults[0] or "F + L" in found.unit_faults[0]


def test_a_formula_may_have_constants_that_the_theorem_has_not():
    _, check = one(stated("gamma <= 1/L"), "sqrt(F*N/(L*I*T*sigma**2))")
    assert check.answer == "fails" and {"N", "sigma"} <= check.at.keys()
    at = check.at
    assert check.left == pytest.approx(math.sqrt(at["F"] * at["N"] / (at["L"] * at["I"] * at["T"])) / at["sigma"])


def test_several_step_sizes_of_a_paper():
    result = load("arbitrary-participation/theorem-3.1")
    with pytest.raises(FedboundsError, match=r'several step sizes: gamma, eta; name one, e.g. --step gamma="FORMULA"'):
        check_formulas(result, result.form(), {"": "1/(12*L*I*P)"})
    alone = check_formulas(result, result.form(), {"gamma": "1/(12*L*I*P)"})
    assert [check.answer for check in alone.checks] == ["holds", "fails"] and alone.checks[1].ratio == "eta/6"
    assert "no factor" in describe_factor(alone)
    both = check_formulas(result, result.form(), {"gamma": "1/(12*L*I*P)", "eta": "6"})
    fixed = check_formulas(result, result.form(), {"gamma": "1/(12*L*I*P)"}, {"eta": 6})
    assert both.legal and fixed.legal and both.largest_factor == fixed.largest_factor == 1
    evaluated = evaluate(result, dict(L=2, F=1, I=3, P=2, T=10, gamma=1 / 144, eta=6, rho=1, sigma=0, nu=0, beta=0,
                                      delta=0))  # fmt: skip
    assert evaluated.valid


def test_a_formula_needs_no_name_where_the_other_step_sizes_are_fixed():
    result = load("arbitrary-participation/theorem-3.1")
    unnamed = check_formulas(result, result.form(), {"": "1/(12*L*I*P)"}, {"eta": 6})
    assert unnamed == check_formulas(result, result.form(), {"gamma": "1/(12*L*I*P)"}, {"eta": 6})
    with pytest.raises(FedboundsError, match="several step sizes: gamma, eta"):
        check_formulas(result, result.form(), {"": "1/(12*L*I*P)"}, {"I": 6})


def test_a_prescribed_step_size_must_be_the_same():
    result = load("fedau/corollary-4")
    wrong = check_formulas(result, result.form(), {"gamma": "1/(8*I*L)"})
    assert not wrong.legal and wrong.checks[0].at
    right = check_formulas(result, result.form(), {"gamma": "min(1/(I*L*sqrt(T)), sqrt(15)/(60*I*L))"})
    assert right.legal


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"": "1/(8*l)"}, "unknown symbol 'l'"),
        ({"gama": "1/L"}, "unknown step size 'gama'; did you mean gamma"),
        ({"": "gamma/2"}, "contains gamma"),
        ({"": "1/(8*L"}, "--step"),
        ({"I": "3"}, "unknown step size 'I'"),
        ({"gamma": "5/L", "": "1/L"}, "--step gamma is given twice"),
        ({"local_step_size": "5/L", "gamma": "1/L"}, "--step gamma is given twice"),
        ({"": "1e400/L"}, "contains a number of about 1e400; numbers are from 1e-100 to 1e100"),
        ({"": "1/(L*(1e-400))"}, "contains a number of about 1e400; numbers"),
        ({"": "1e80*1e80*(1/L)"}, "contains a number of about 1e160; numbers"),
        ({"": "1/L*(1e-400 + 1e-401)"}, "contains a number of about 1e-400; numbers"),
    ],
)
def test_wrong_input_is_refused(texts, message):
    result = stated("gamma <= 1/L")
    with pytest.raises(FedboundsError) as error:
        check_formulas(result, result.form(), texts)
    assert message in str(error.value)


def test_a_form_without_a_condition_on_the_step_size_is_refused():
    with pytest.raises(FedboundsError, match="has no condition on gamma"):
        one(stated("T >= 2"), "1/L")
    with pytest.raises(FedboundsError, match="unknown constant 'l'"):
        one(stated("gamma <= 1/L"), "1/L", l=2)


def test_other_factors_do_not_hide_that_a_ratio_has_no_bound():
    result = load("gorbunov-2021/marina")  # gamma*(L + Lp*sqrt(omega*(1 - ps)/(N*ps))) <= 1
    found = check_formulas(result, result.form(), {"gamma": "1/(20*L*I)"})
    assert found.largest_factor == 0 and found.checks[0].exact
    assert check_formulas(result, result.form(), {"gamma": "1/(20*(L + Lp*sqrt(omega/(N*ps))))"}).legal


def test_a_form_without_step_sizes_is_refused():
    result = load("karimireddy-2020/scaffold-nonconvex")
    with pytest.raises(FedboundsError, match="has no step size"):
        check_formulas(result, result.form(), {"gamma": "1/L"})


FEDVARP = "jhunjhunwala-2022/fedvarp"  # gamma*eta <= S^(3/2)/(8 L I N), 5 S/(48 L I), 1/(4 L I); S <= N


@pytest.mark.parametrize(
    ("eta", "factor", "exact"),
    [
        ("S/N*sqrt(S)", 0, True),  # at S = N the ratio is sqrt(N) times a number
        ("S/N*sqrt(S) + 1/N", 0, True),
        ("1/(1/S + 1/N)", 0, True),
        ("S/N", 25 / 24, True),
        ("min(S/N*sqrt(S), 1)", 25 / 24, True),
        ("S**2/N**2", 25 / 24, True),
    ],
)
def test_the_largest_factor_is_legal_where_several_constants_grow_together(eta, factor, exact):
    result = load(FEDVARP)
    found = check_formulas(result, result.form(), {"eta": eta, "gamma": "1/(10*L*I)"})
    assert found.largest_factor == pytest.approx(factor) and all(check.exact for check in found.checks) == exact
    if factor:
        assert check_formulas(result, result.form(), {"eta": f"25/24*({eta})", "gamma": "1/(10*L*I)"}).legal
        assert not check_formulas(result, result.form(), {"eta": f"1.05*({eta})", "gamma": "1/(10*L*I)"}).legal


def test_a_factor_of_one_formula_does_not_repair_a_condition_on_another():
    result = load(FEDVARP)
    found = check_formulas(result, result.form(), {"eta": "S/N", "gamma": "1/(8*L*I)"})
    assert found.largest_factor == 0
    assert "gamma <= 1/(10*I*L) does not depend on eta, and fails" in describe_factor(found)


def test_a_factor_that_a_search_found_is_called_an_upper_bound():
    found, check = one(stated("gamma*L*(I - 1) <= 1/8"), "1/(8*L*I)")
    assert check.exact or "at most about" in describe_factor(found)
    found, check = one(stated("gamma <= (I + sqrt(I))/(8*L)", "I*(I + 1) <= 6"), "sqrt(1 + I)/(8*L)")
    assert not check.exact and describe_factor(found).endswith("legal: at most about 1.41421")  # at I = 1


def test_an_upper_bound_of_the_ratio_is_no_largest_factor():
    """S/(N + S) is at most 1, and at most 1/2 as S <= N."""
    terms = {"gap": "2*F/(gamma*I*T)", "noise": "gamma*sigma**2*L/S"}
    found, check = one(stated("gamma <= 1/L", terms=terms), "1/(L*(1 + N/S))")
    assert check.answer == "holds" and found.largest_factor == pytest.approx(2)


@pytest.mark.parametrize(
    ("formula", "factor"),
    [
        ("1/(L*max(1/I, I/max(I, 10)))", 1 / 3),
        ("1/(L*max(1/I, min(I, 10)/10))", 1 / 3),
        ("1/(L*(1/I + min(I, 10)/10))", 1 / 3 + 3 / 10),
        ("1/(L*max(I, 10/max(I, 2)))", 10 / 3),
    ],
)
def test_a_minimum_in_a_denominator_is_no_reason_for_no_factor(formula, factor):
    found, _ = one(stated("gamma <= 1/L"), formula)
    assert found.largest_factor == pytest.approx(factor) and "no factor" not in describe_factor(found)


def test_a_strict_condition_excludes_the_largest_factor():
    found, check = one(stated("gamma < 1/L"), "1/(2*L)")
    assert check.strict and describe_factor(found).endswith("every c < 2")


@pytest.mark.parametrize(
    ("formula", "known", "message"),
    [("1/L*sqrt(-1)", {}, "no finite real number"), ("1/L", {"I": 0.5}, "outside its domain"),
     ("1/L", {"I": float("inf")}, "finite"),
     ("1/L", {"L": 1e-300}, "a constant is about 1e-300; numbers are from 1e-100 to 1e100")],
)  # fmt: skip
def test_what_is_no_step_size_or_no_constant_is_refused(formula, known, message):
    result = stated("gamma <= 1/(L*I)")
    with pytest.raises(FedboundsError, match=message):
        check_formulas(result, result.form(), {"": formula}, known)


@pytest.mark.parametrize("formula", ["-1/L", "1/(8*L) - 1/L"])
def test_a_formula_that_is_not_positive_fails(formula):
    result = stated("gamma <= 1/L")
    answers = {check.condition: check.answer for check in check_formulas(result, result.form(), {"": formula}).checks}
    assert answers == {"gamma <= 1/L": "holds", "gamma > 0": "fails"}


def test_a_formula_that_is_zero_for_some_constants_has_no_legal_factor():
    result = stated("gamma <= 1/L")
    found = check_formulas(result, result.form(), {"": "(1 - 1/I)/L"})
    assert found.checks[1].answer == "fails" and found.checks[1].at["I"] == 1
    assert found.largest_factor == 0 and describe_factor(found).startswith("no factor c > 0")


@pytest.mark.parametrize("formula", ["1/(L*(2*I - 1))", "N/(L*(N + I - 1))", "1/(L*max(1, I - 1))"])
def test_an_open_sign_leaves_the_factor_exact(formula):
    result = stated("gamma <= 1/L")
    found = check_formulas(result, result.form(), {"": formula})
    assert found.largest_factor == pytest.approx(1) and describe_factor(found).endswith("always legal: 1")


def test_a_vector_with_a_fixed_sum_is_drawn_with_this_sum():
    _, check = one(stated("gamma <= 1/L"), "w/L")
    assert check.answer == "holds"
    found, check = one(stated("gamma <= 1/L"), "2*w/L")
    assert check.answer == "fails" and found.largest_factor == pytest.approx(1 / 2)
    assert check.left == pytest.approx(2 * check.at["w"] / check.at["L"]) and check.right < check.left


def test_a_constant_of_an_open_interval_is_drawn_inside_it():
    result = load("yang-2021/fedavg-full")  # cstep < 1/2 - 15*I^2*gamma^2*L^2, cstep in (0, 1)
    found = check_formulas(result, result.form(), {"gamma": "1/(8*L*I)", "eta": "1"})
    answers = [check.answer for check in found.checks]
    assert answers == ["holds", "holds", "fails"] and 17 / 64 < found.checks[2].at["cstep"] < 1


def test_a_difference_without_a_bound_has_no_factor():
    result = load("khaled-2020/local-sgd")  # 8*L*gamma*(I - 1) <= 1
    found = check_formulas(result, result.form(), {"": "1/(6*L)"})
    assert found.largest_factor == 0 and describe_factor(found).startswith("no factor c > 0")
    assert check_formulas(result, result.form(), {"": "1/(8*L*I)"}).legal


def test_no_factor_is_known_where_another_condition_has_no_closed_form():
    result = load("yang-2021/fedavg-full")
    found = check_formulas(result, result.form(), {"gamma": "1/(8*L*I)", "eta": "sqrt(N*I)"}, {"cstep": 0.2})
    assert None in [check.largest_factor for check in found.checks] and found.largest_factor == 0


def test_numbers_of_many_digits_are_short_decimals_and_those_that_differ_look_different():
    found, check = one(stated("gamma*eta <= 1/(I*L)"), "1/(I*L)", eta=1 / 3)
    assert (check.how, check.ratio) == ("the ratio is 1/3", "1/3")
    found, check = one(stated("gamma*eta <= 1/(I*L)"), "1/(I*L)", eta=0.333333333333333314e-3)
    assert check.ratio == "0.000333333"
    found, check = one(stated("gamma <= 1/L"), "1.0000000001/L")
    assert (found.formulas["gamma"], check.ratio) == ("1.0000000001/L", "1.0000000001")
    assert describe_factor(found).endswith(": 0.999999")  # a legal factor
