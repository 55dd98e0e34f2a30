"""Rounds to a target: the smallest T against a scan of every T, floors, inverse questions."""

import math

import numpy as np
import pytest
import sympy as sp

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.form_cache import as_compiled
from fedbounds.bounds.evaluation.numpy_code import compiled_form
from fedbounds.bounds.papers.arbitrary_participation.notation import NOTATION
from fedbounds.bounds.papers.tdcd.drift import DriftGrowth
from fedbounds.bounds.search import arb_enclosures as balls
from fedbounds.bounds.search.effort import EVALUATIONS, EvaluationBudget
from fedbounds.bounds.search.interval_arithmetic import enclose
from fedbounds.bounds.search.optimize import Minimum, optimize
from fedbounds.bounds.search.partial_evaluation import leave_free
from fedbounds.bounds.search.round_lower_bounds import least_possible_rounds
from fedbounds.bounds.search.rounds import Between, Largest, Never, Reached, rounds
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Condition, Form, Result, Source, Term

KNOWN = dict(L=1, F=5, I=2, P=2, S=2, sigma=math.sqrt(0.5), nu=2, beta=0.5, delta=0)
COROLLARIES = ["corollary-3.2", "corollary-3.3"]


def result(name):
    return load(f"arbitrary-participation/{name}")


def scan(one, known, form, epsilon, most):
    T = np.arange(1.0, most + 1)
    evaluation = evaluate(one, dict(known, T=T), form=form)
    reached = (evaluation.value <= epsilon) & evaluation.valid
    return int(T[np.argmax(reached)]) if reached.any() else None


@pytest.mark.parametrize("name", COROLLARIES)
@pytest.mark.parametrize("form", ["explicit", "sharp"])
@pytest.mark.parametrize("epsilon", [3.0, 0.5, 0.11])
def test_the_smallest_number_of_rounds_is_that_of_a_complete_scan(name, form, epsilon):
    answer = rounds(result(name), epsilon, KNOWN, form=form)
    assert isinstance(answer, Reached)
    assert answer.rounds == scan(result(name), KNOWN, form, epsilon, 40_000)
    assert answer.cost.iterations == 2 * answer.rounds and answer.cost.oracle_calls == 4 * answer.rounds


def test_a_fixed_step_size_reaches_its_floor_and_no_further():
    theorem = result("theorem-3.1")
    known = dict({k: v for k, v in KNOWN.items()}, gamma=1e-3, eta=10)
    terms = evaluate(theorem, dict(known, T=10), form="explicit").terms
    floor = float(sum(v for n, v in terms.items() if n != "initial gap"))
    never = rounds(theorem, 0.99 * floor, known, form="explicit")
    assert isinstance(never, Never) and never.floor == pytest.approx(floor, rel=1e-6)
    reached = rounds(theorem, 1.01 * floor, known, form="explicit")
    assert isinstance(reached, Reached)
    # 8F/(gamma eta I T) <= 0.01 floor
    assert reached.rounds == math.ceil(8 * 5 / (1e-2 * 2) / (0.01 * floor))


def test_a_divergence_that_stays_is_named():
    never = rounds(result("corollary-3.2"), 0.1, dict(KNOWN, delta=0.2), form="explicit")
    assert isinstance(never, Never)
    assert never.floor == pytest.approx(6 * 0.04) and "window divergence" in never.why


def test_the_largest_divergence_that_still_reaches_epsilon_solves_the_equation():
    known = {k: v for k, v in KNOWN.items() if k != "delta"} | {"T": 5000}
    rest = float(evaluate(result("corollary-3.2"), dict(known, delta=0), form="explicit").value)
    answer = rounds(result("corollary-3.2"), 0.5, known, form="explicit", solve="delta")
    assert isinstance(answer, Largest)
    assert answer.value == pytest.approx(math.sqrt((0.5 - rest) / 6), rel=1e-9)
    none = rounds(result("corollary-3.2"), 0.5 * rest, known, form="explicit", solve="delta")
    assert isinstance(none, Largest) and none.value is None and none.why


def test_step_sizes_chosen_anew_need_fewer_rounds():
    theorem = result("theorem-3.1")
    free = rounds(theorem, 0.5, KNOWN, optimize=("gamma", "eta"), within={"eta": (1, 1000)}, form="explicit")
    fixed = rounds(result("corollary-3.2"), 0.5, KNOWN, form="explicit")
    assert isinstance(free, Reached) and isinstance(fixed, Reached)
    assert free.rounds < fixed.rounds
    assert free.evaluation is not None and float(free.evaluation.value) <= 0.5


@pytest.mark.parametrize("epsilon", [0, -1, float("nan")])
def test_a_target_that_is_not_positive_is_refused(epsilon):
    with pytest.raises(FedboundsError, match="epsilon"):
        rounds(result("corollary-3.2"), epsilon, KNOWN)


# --- No monotonicity is assumed ---

T, x = NOTATION.T, NOTATION.sigma


def made(expression, *conditions):
    """A result with one term, for bounds that no paper has."""
    form = Form("explicit", (Term("made", expression),), conditions)
    source = Source("none", "none")
    return Result("made/up", "remark", "made up", source, LEAST_GRADIENT, NOTATION, (form,), "explicit")


def test_the_sharp_corollary_jumps_where_a_window_is_left_incomplete_and_rounds_knows():
    corollary, known = result("corollary-3.3"), dict(KNOWN, P=5)
    values = evaluate(corollary, dict(known, T=np.arange(5, 15_000))).value
    rises = np.flatnonzero(np.diff(values) > 0)
    assert len(rises) > 1000
    epsilon = float(values[rises[len(rises) // 2]]) * (1 + 1e-9)  # reached at a T after which the bound rises again
    answer = rounds(corollary, epsilon, known)
    assert isinstance(answer, Reached) and answer.proved
    assert answer.rounds == scan(corollary, known, None, epsilon, 15_000)


@pytest.mark.parametrize(
    ("expression", "epsilon", "smallest"),
    [
        ((T - 1000) ** 2, 4, 998),
        ((T - 1000) ** 2 * (T - 10**9) ** 2, 0.5, 1000),
        (sp.Abs(T - 123456789), 0.5, 123456789),
        (1 / (1 + (T - 77777) ** 2 - 1 / sp.Integer(2)) + T / 10**5, 2 + 0.77777, 1),
        (sp.Abs(T - 500) * sp.Abs(T - 40) + 1, 1, 40),
    ],
)
def test_a_bound_that_dips_is_caught_at_its_first_dip(expression, epsilon, smallest):
    answer = rounds(made(expression), epsilon, {})
    assert isinstance(answer, Reached) and answer.rounds == smallest and answer.proved


def test_conditions_leave_a_window_of_rounds():
    least, most = Condition(T, ">=", sp.Integer(1234), "a warm-up", T), Condition(T, "<=", sp.Integer(2000), "a cap", T)
    assert rounds(made(1 / T, least, most), 0.01, {}).rounds == 1234
    assert rounds(made(1 / T, least, most), 1 / 1500, {}).rounds == 1500
    never = rounds(made(1 / T, least, most), 1 / 3000, {})
    assert isinstance(never, Never) and never.proved and "T <= 2000" in never.why


def test_rounds_beyond_float_precision_are_not_bounded():
    answer = rounds(made(1 / T), 1e-17, {})
    assert isinstance(answer, Between) and "not within 2^53" in answer.why
    assert answer.low is not None and answer.low >= 2**53 and answer.high == np.inf


@pytest.mark.parametrize("power", [1, sp.Rational(1, 2), sp.Rational(1, 4)])
def test_a_floor_is_what_the_bound_tends_to_and_what_still_falls_has_none(power):
    level, eta = sp.Rational(1, 10**9), NOTATION.gamma
    fixed, chosen = made(level + 1 / T**power), made(level + eta + 1 / (eta * T ** (2 * power)))
    for answer in (rounds(fixed, 0.9e-9, {}), rounds(chosen, 0.9e-9, {}, optimize=["gamma"])):
        assert isinstance(answer, Never) and answer.floor == pytest.approx(1e-9, rel=1e-9)
        assert "stays above 1e-09" in answer.why
    for answer in (rounds(made(1 / T**power), 1e-18, {}), rounds(chosen, 1.0000001e-9, {}, optimize=["gamma"])):
        assert isinstance(answer, Between) and "not within 2^53" in answer.why


def test_the_best_bound_of_a_theorem_is_no_floor_where_it_only_falls_slowly():
    over, within = ["gamma", "eta"], {"eta": (1.0, 100.0)}
    answer = rounds(result("theorem-3.1"), 1e-9, KNOWN, optimize=over, within=within)
    assert isinstance(answer, Between) and "there the bound is" in answer.why
    assert isinstance(rounds(result("theorem-3.1"), 1e-5, KNOWN, optimize=over, within=within), Reached)


def test_an_infimum_that_was_searched_for_within_decades_is_no_floor():
    answer = rounds("tdcd/theorem-1", 1e-12, dict(Deltainf=1, L=1, Lmax=1, Q=2, S=1), optimize=["eta"])
    assert isinstance(answer, Between) and "there the bound is" in answer.why


def test_a_bound_that_rises_has_no_floor():
    never = rounds(made(T + 1), 0.5, {})
    assert isinstance(never, Never) and never.proved and np.isnan(never.floor) and "no T reaches it" in never.why


@pytest.mark.parametrize("name", ["corollary-3.2", "corollary-3.3", "corollary-4.3", "corollary-4.8"])
def test_every_form_of_every_corollary_agrees_with_a_complete_scan(name):
    one = result(name)
    known = dict(L=1e-3, F=0.5, I=2, P=7, S=3, N=10, sigma=1, d=0.5, nu=2, beta=0.5, delta=0.02)
    known |= dict(windowvar=1e-4, upsilonhat=0.04)
    for form in one.forms:
        here = {k: v for k, v in known.items() if k != "P" or "P" not in form.prescribes}
        if form.name == "repaired:integer-P":
            del here["P"]  # it follows from T
        for epsilon in (0.05, 0.4):
            answer = rounds(one, epsilon, here, form=form.name)
            found = scan(one, here, form.name, epsilon, 20_000)
            if found is None:
                assert isinstance(answer, Never) or answer.rounds > 20_000, form.name
            else:
                assert isinstance(answer, Reached) and answer.rounds == found, form.name


def test_a_polynomial_in_one_over_root_t_has_its_root():
    known = dict(KNOWN, delta=0.05)
    epsilon = 0.2
    a = 12 * known["sigma"] * math.sqrt(0.5) * math.sqrt(5) / math.sqrt(2)
    b = 16 * 2 * 5 + 7 * 4 / (8 * 4) + 0.25 + (7 / 96 + 0.5 / 8) * 0.5 / 4
    rest = epsilon - 6 * 0.05**2
    root = (a + math.sqrt(a**2 + 4 * b * rest)) / (2 * rest)  # a/sqrt(T) + b/T = rest
    assert rounds(result("corollary-3.2"), epsilon, known, form="explicit").rounds == math.ceil(root**2)


def test_the_bound_is_met_at_the_answer_and_not_one_round_before_when_step_sizes_are_chosen_anew():
    theorem, steps = result("theorem-3.1"), dict(over=("gamma", "eta"), within={"eta": (1, 100)})
    for form in ("explicit", "sharp"):
        answer = rounds(theorem, 0.7, KNOWN, optimize=steps["over"], within=steps["within"], form=form)
        assert isinstance(answer, Reached) and not answer.proved  # minima are found numerically
        best = [
            optimize(theorem, dict(KNOWN, T=t), form=form, **steps).value for t in (answer.rounds - 1, answer.rounds)
        ]
        assert best[0] > 0.7 >= best[1] * (1 - 1e-12)


def test_no_choice_of_step_sizes_goes_below_the_window_divergence():
    theorem = result("theorem-3.1")
    never = rounds(theorem, 0.2, dict(KNOWN, delta=0.2), optimize=("gamma", "eta"), form="explicit")
    assert isinstance(never, Never) and never.proved
    assert never.floor == pytest.approx(6 * 0.04, rel=1e-4) and "window divergence" in never.why


def test_the_interval_is_chosen_with_the_rounds_where_its_divergence_is_known():
    theorem, known = result("theorem-3.1"), {k: v for k, v in KNOWN.items() if k not in ("P", "delta")}
    over, within, rule = ("P", "gamma", "eta"), {"eta": (1, 50), "P": (1, 3)}, {"delta": lambda P: 0.3 / P}
    answer = rounds(theorem, 0.9, known, optimize=over, within=within, functions=rule, form="explicit")
    assert isinstance(answer, Reached) and not answer.proved
    each = [
        rounds(
            theorem,
            0.9,
            dict(known, P=P, delta=0.3 / P),
            optimize=over[1:],
            within={"eta": (1, 50)},
            form="explicit",
        )
        for P in (1, 2, 3)
    ]
    assert answer.rounds == min(one.rounds for one in each if isinstance(one, Reached))


def test_what_a_round_costs_is_what_the_constants_say():
    answer = rounds(result("corollary-3.2"), 0.5, dict(KNOWN, N=10), form="explicit", dimension=1000)
    assert isinstance(answer, Reached)
    T = answer.rounds
    assert answer.cost.iterations == 2 * T and answer.cost.oracle_calls == 2 * 2 * T
    assert answer.cost.oracle_calls_per_client == pytest.approx(2 * 2 * T / 10)
    assert answer.cost.floats == 2 * 2 * T * 1000 and answer.cost.bits == 32 * answer.cost.floats
    known = {k: v for k, v in KNOWN.items() if k != "S"} | {"rho": 0.7}
    assert rounds(result("corollary-3.2"), 0.5, known, form="explicit").cost.oracle_calls is None


# --- The inverse question ---


@pytest.mark.parametrize("name", ["nu", "beta", "sigma", "F", "L", "gamma", "eta", "I", "P", "rho"])
def test_the_largest_value_reaches_epsilon_and_a_larger_one_does_not(name):
    theorem = result("theorem-3.1")
    known = dict(L=1, F=5, I=2, P=2, T=5000, rho=0.5, sigma=1, nu=2, beta=0.5, delta=0.01, gamma=1e-3, eta=20)
    del known[name]
    answer = rounds(theorem, 0.5, known, form="explicit", solve=name)
    assert isinstance(answer, Largest) and answer.value is not None
    at, beyond = (
        (
            evaluate(theorem, dict(known, **{name: v}), form="explicit")
            for v in (answer.value, answer.value + 1 if name in "IP" else answer.value * (1 + 1e-9))
        )
        if name != "rho"
        else (evaluate(theorem, dict(known, rho=answer.value), form="explicit"), None)
    )
    assert at.valid and float(at.value) <= 0.5 * (1 + 1e-12)
    if beyond is None:
        assert answer.value == 1.0  # the end of its domain
    else:
        assert not beyond.valid or float(beyond.value) > 0.5


def test_any_value_will_do_where_the_bound_does_not_see_it():
    assert (
        rounds(made(1 / T, Condition(x, ">=", sp.Integer(1), "a floor")), 0.1, {"T": 100}, solve="sigma").value
        == math.inf
    )


def test_the_inverse_question_takes_its_rounds_as_given():
    with pytest.raises(FedboundsError, match="with the others fixed"):
        rounds(result("theorem-3.1"), 0.5, KNOWN, optimize=("gamma",), solve="delta")
    with pytest.raises(FedboundsError, match="does not depend on a number of rounds"):
        rounds(result("proposition-4.7"), 0.5, dict(N=10, d=1, upsilon=0.1, P=5))


def test_where_the_best_bound_may_rise_again_the_fewest_rounds_are_a_geometric_program():
    gamma = NOTATION.gamma
    one = made(gamma + T / (10**4 * gamma) + 100 / T)  # at the best gamma: sqrt(T)/50 + 100/T, least near T = 464
    best = np.sqrt(np.arange(1, 3000)) / 50 + 100 / np.arange(1, 3000)
    answer = rounds(one, 0.9, {}, optimize=("gamma",))
    assert isinstance(answer, Reached) and not answer.proved and "geometric program" in answer.method
    assert answer.rounds == np.argmax(best <= 0.9) + 1
    never = rounds(one, 0.5, {}, optimize=("gamma",))
    assert isinstance(never, Never)


FEDAU = dict(L=1, F=5, I=2, gamma=1e-3, eta=3, sigma=1, delta=0.3, G=2, p=np.array([0.1, 0.35, 0.8]))


def test_weights_that_are_known_only_by_value_are_scanned():
    theorem = load("fedau/theorem-3")
    known = dict(p=FEDAU["p"], K=20)
    answer = rounds(theorem, 0.05, known, form="sharp")
    assert isinstance(answer, Reached) and not answer.proved
    assert answer.rounds == scan(theorem, known, "sharp", 0.05, 6000)
    averaged = load("fedau/theorem-2")
    answer = rounds(averaged, 700, dict(FEDAU, K=20))
    assert isinstance(answer, Reached) and answer.rounds == scan(averaged, dict(FEDAU, K=20), None, 700, 50)
    with pytest.raises(FedboundsError, match="only known by value"):
        rounds(averaged, 700, dict(FEDAU, T=100), solve="K")


def test_rounds_in_whole_blocks_are_the_fewest():
    theorem = load("fed-norm-sgda/theorem-4")
    known = dict(
        Lf=4, sigmaL=0.5, betaL=0.1, sigmaG=1, betaG=1.2, P=2, tau=(2, 3, 4), w=(0.5, 0.25, 0.25), Deltabar=1, rho=0,
        Gx=2, R=4, etax=1e-6, etay=1e-6,
    )  # fmt: skip
    free = ("Gammax", "Gammay", "S")
    found = rounds(theorem, 7000, known, optimize=free)
    assert isinstance(found, Reached) and found.rounds > 10 and found.rounds % found.at["S"] == 0
    assert found.evaluation is not None and found.evaluation.valid and found.evaluation.value <= 7000
    for T in range(1, found.rounds):
        fewer = optimize(theorem, {**known, "T": T}, free)
        assert isinstance(fewer, Minimum) and fewer.value > 7000
    narrow = rounds(theorem, 1e4, known, optimize=free, within={"S": (1, 2)})
    assert isinstance(narrow, Never) and "ascent from the snapshot" in narrow.why


PERIODIC = dict(
    Lf=2, P=5, tau=(4,) * 10, w=(0.1,) * 10, betaL=0.5, betaG=1.2, sigmaL=0.5, sigmaG=0.8, Deltabar=1.5, R=2, Gx=1.1,
    etax=1e-4, etay=1e-4, rho=0,
)  # fmt: skip


def test_rounds_for_a_given_period_are_its_multiples():
    theorem = load("fed-norm-sgda/theorem-4")
    known = PERIODIC | dict(S=49, Gammax=1e-4, Gammay=0.01)
    found = rounds(theorem, 1500, known)
    reached = [T for T in range(49, 500, 49) if evaluate(theorem, known | {"T": T}).value <= 1500]
    assert isinstance(found, Reached) and found.proved and found.rounds == reached[0] == 147
    free = PERIODIC | dict(S=98)
    found = rounds(theorem, 175, free, optimize=("Gammax", "Gammay"))
    assert isinstance(found, Reached) and found.rounds % 98 == 0
    before = optimize(theorem, free | {"T": found.rounds - 98}, ("Gammax", "Gammay"))
    assert isinstance(before, Minimum) and before.value > 175 >= float(found.evaluation.value)


@pytest.mark.parametrize(
    ("epsilon", "fewest", "S"), [(20, 35145, 2343), pytest.param(8, 574770, 5865, marks=pytest.mark.long)]
)
def test_the_best_period_is_found_between_the_points_of_the_grid(epsilon, fewest, S):
    found = rounds(load("fed-norm-sgda/theorem-4"), epsilon, PERIODIC, optimize=("Gammax", "Gammay", "S"))
    assert isinstance(found, Reached) and (found.rounds, found.at["S"]) == (fewest, S)  # by a scan of every S


def test_rounds_with_a_period_that_need_not_divide_them():
    theorem, free = load("fed-norm-sgda/theorem-4"), ("Gammax", "Gammay", "S")
    found = rounds(theorem, 2000, PERIODIC, optimize=free, form="sharp:any-T")
    assert isinstance(found, Reached) and found.rounds < 200
    best = {
        S: rounds(theorem, 2000, PERIODIC | {"S": S}, optimize=free[:2], form="sharp:any-T") for S in range(20, 60, 3)
    }
    assert found.rounds == min(r.rounds for r in best.values() if isinstance(r, Reached))


def test_rounds_where_local_steps_may_vanish():
    theorem, over = load("fed-norm-sgda/theorem-4"), ("Gammax", "Gammay", "S")
    known = {k: v for k, v in PERIODIC.items() if not k.startswith("eta")}
    found = rounds(theorem, 50, known, optimize=(*over, "etax", "etay"))
    assert isinstance(found, Reached) and "not attained" in found.method and found.at == {"S": 759.0}
    assert found.rounds == rounds(theorem, 50, known | dict(etax=1e-9, etay=1e-9), optimize=over).rounds == 2277


# --- What is proved, and what a search may cost ---


def test_what_is_proved_is_confirmed_in_balls_and_only_searched_without_them(monkeypatch):
    reached = rounds(result("corollary-3.2"), 0.5, KNOWN, form="explicit")
    never = rounds(result("corollary-3.2"), 0.1, dict(KNOWN, delta=0.2), form="explicit")
    known = {k: v for k, v in KNOWN.items() if k != "delta"} | {"T": 5000}
    largest = rounds(result("corollary-3.2"), 0.5, known, form="explicit", solve="delta")
    assert reached.proved and never.proved and largest.proved
    monkeypatch.setattr(balls, "available", lambda: False)
    again = rounds(result("corollary-3.2"), 0.5, KNOWN, form="explicit")
    assert again.rounds == reached.rounds and not again.proved
    assert not rounds(result("corollary-3.2"), 0.1, dict(KNOWN, delta=0.2), form="explicit").proved
    assert not rounds(result("corollary-3.2"), 0.5, known, form="explicit", solve="delta").proved


@pytest.mark.parametrize("kind", [int, np.int64, np.float32, np.longdouble])
def test_epsilon_may_be_a_number_of_any_kind(kind):
    assert rounds(result("corollary-3.2"), kind(1), KNOWN, form="explicit").rounds == 335


def test_a_condition_in_which_what_is_solved_for_cancels_is_settled():
    """B_w is reckoned from taueff, and in one condition taueff divides it out again."""
    known = dict(
        Gammay=4.7, Gx=0.015, Lf=4.9, P=3, R=0.007, S=1, betaG=1.7, betaL=1.6, etax=3e-6, etay=2e-5, sigmaG=0.006
    )
    known |= dict(sigmaL=24, tau=np.array([20.0, 10, 10, 1, 2]), w=np.array([0.25, 0.25, 0.125, 0.125, 0.25]))
    answer = rounds(load("fed-norm-sgda/lemma-c.5"), 603.0, known, form="sharp", solve="taueff")
    assert isinstance(answer, Largest | Never | Between)


def test_what_floats_swallow_is_not_called_proved():
    swallowed = sp.Add(T, sp.Integer(10) ** 17, -(sp.Integer(10) ** 17), evaluate=False)  # floats see 0 at T = 1
    answer = rounds(made(100 / T + swallowed), 20.5, {})  # T + 100/T is 25 at T = 5, and 20 at T = 10
    exact = next(count for count in range(1, 100) if count + 100 / count <= 20.5)
    assert not answer.proved or answer.rounds == exact


HARD = [
    ("fed-norm-sgda/table-2-nc-c", "printed", 10, "", dict(P=2, n=1, taubar=1), "has no value"),
    (
        "arbitrary-participation/corollary-4.8",
        "repaired:integer-P",
        1e-12,
        "I",
        dict(F=5, L=1, N=4, d=1, rho=0.7, sigma=0.5, upsilon=1),
        "and no smaller T reaches 1e-12",
    ),
    (
        "fedmrn/theorem-1",
        "printed",
        1e3,
        "K,S",
        dict(N=10, L=1, mu=100, sigma=1, G=1, q=0.5, Gamma=0.1, Delta1=1),
        "mu <= L fails whatever K, S, T are",
    ),
    (
        "fed-norm-sgda/theorem-2",
        "repaired",
        1e-12,
        "P",
        dict(
            Lf=1, sigmaL=1, betaL=0.1, sigmaG=1, betaG=1.2, tau=(2, 3, 4), w=(0.25, 0.25, 0.5), Gx=1, R=1, Deltabar=1,
            rho=0,
        ),
        "the ascent noise",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("key", "form", "epsilon", "over", "known", "why"), HARD)
def test_a_question_without_an_answer_ends_within_its_evaluations(key, form, epsilon, over, known, why):
    counts = []
    answer = rounds(
        load(key),
        epsilon,
        known,
        form=form,
        optimize=over.split(",") if over else (),
        watch=lambda spent, allowed: counts.append((spent, allowed)),
    )
    assert isinstance(answer, Never | Between) and why in answer.why
    assert not counts or counts[-1][0] <= counts[-1][1] <= EVALUATIONS


def test_a_search_that_must_stop_says_between_what_and_more_effort_finds_it():
    corollary, known = result("corollary-3.3"), dict(KNOWN, P=5)
    stopped = rounds(corollary, 0.1, known, effort=0.002)
    found = rounds(corollary, 0.1, known)
    assert isinstance(stopped, Between) and isinstance(found, Reached)
    assert stopped.low <= found.rounds <= stopped.high < math.inf and "between" in stopped.words
    with pytest.raises(FedboundsError, match="effort"):
        rounds(corollary, 0.1, known, effort=0)


def test_a_chosen_step_size_with_too_little_effort_is_bracketed_too():
    theorem, over = result("theorem-3.1"), ("gamma", "eta")
    found = rounds(theorem, 0.7, KNOWN, optimize=over, within={"eta": (1, 100)}, form="explicit")
    for evaluations in (5, 40, 60, 90):
        effort = 0.5 * evaluations / EVALUATIONS
        one = rounds(theorem, 0.7, KNOWN, optimize=over, within={"eta": (1, 100)}, form="explicit", effort=effort)
        assert isinstance(one, Between) and (one.low or 0) <= found.rounds <= one.high


# --- Undecided ends: never without numbers, and no worse for more freedom ---

TIERED = ("tdcd/theorem-1", 0.1, dict(Delta=1, L=1, Lmax=1, S=1))
WEIGHTED = ("fedau/theorem-2", 1, dict(p=np.array([0.1, 0.2, 0.3]), L=1, F=1, sigma=1, delta=1, G=1, I=2))
MASKED = ("fedmrn/theorem-1", 1, dict(N=20, L=1, mu=0.1, sigma=1, G=1, q=0.5, Gamma=0.1, Delta1=1))
AMPLIFIED = ("arbitrary-participation/theorem-3.1", 0.5, KNOWN)


def smallest_known(answer):
    """The number of rounds that is known to reach epsilon."""
    return answer.rounds if isinstance(answer, Reached) else answer.high if isinstance(answer, Between) else math.inf


@pytest.mark.parametrize(
    ("question", "fewer", "more"),
    [
        pytest.param(TIERED, ("eta", dict(Q=1)), "eta,Q", marks=pytest.mark.long),
        pytest.param(TIERED, ("eta", dict(Q=5)), "eta,Q", marks=pytest.mark.long),
        pytest.param(TIERED, ("Q", dict(eta=0.01)), "eta,Q", marks=pytest.mark.long),
        pytest.param(WEIGHTED, ("gamma,eta", dict(K=60)), "gamma,eta,K", marks=pytest.mark.long),
        (MASKED, ("K", dict(S=3)), "K,S"),
        pytest.param(MASKED, ("S", dict(K=10)), "K,S", marks=pytest.mark.long),
        (AMPLIFIED, ("gamma", dict(eta=3)), "gamma,eta"),
        (AMPLIFIED, ("eta", dict(gamma=0.01)), "gamma,eta"),
    ],
)
def test_more_constants_to_choose_never_need_more_rounds(question, fewer, more):
    key, epsilon, known = question
    some = rounds(key, epsilon, {**known, **fewer[1]}, optimize=fewer[0].split(","))
    every = rounds(key, epsilon, known, optimize=more.split(","))
    assert smallest_known(every) <= smallest_known(some) < math.inf
    if isinstance(every, Between):
        assert every.low <= smallest_known(some)


@pytest.mark.parametrize("target", [1e9, 40.0])
def test_one_round_is_not_excluded_where_it_reaches_the_target(target):
    known = dict(Deltainf=1, L=1, Lmax=1, Q=2, S=0)
    form = as_compiled("tdcd/theorem-1").form()
    one = rounds("tdcd/theorem-1", target, known, optimize=("eta",))
    assert one.rounds == 1
    free = leave_free(form, known, ["eta", "R"])
    assert least_possible_rounds(free, "R", target, {}, EvaluationBudget.of(1)) == 1


def test_what_is_excluded_holds_no_choice_that_a_dense_grid_finds():
    key, epsilon, known = TIERED
    one = load(key)
    least = least_possible_rounds(
        leave_free(compiled_form(one, one.form(None)), known, ["eta", "Q", "R"], symbolic=True),
        "R",
        epsilon,
        {},
        EvaluationBudget.of(1),
    )
    eta, Q = np.geomspace(1e-4, 1, 400)[:, None], np.arange(1.0, 30.0)
    below = evaluate(one, dict(known, eta=eta, Q=Q, R=least - 1))
    assert least > 1000 and not (below.valid & (below.value <= epsilon)).any()
    enough = evaluate(one, dict(known, eta=eta, Q=Q, R=2 * least))
    assert (enough.valid & (enough.value <= epsilon)).any()


@pytest.mark.parametrize(("question", "over"), [(TIERED, "eta,Q"), (WEIGHTED, "gamma,eta,K")])
def test_an_undecided_end_always_says_between_what(question, over):
    key, epsilon, known = question
    answer = rounds(key, epsilon, known, optimize=over.split(","), effort=0.1)
    assert isinstance(answer, Between) and answer.low is not None and answer.low >= 1
    assert math.isfinite(answer.high) or (answer.tried and "none found up to" in answer.words)
    document = answer.to_dict()
    assert document["low"] == answer.low and document["tried"] == answer.tried


def test_a_condition_on_weights_known_by_value_that_fails_for_large_t_is_never():
    """Q grows with T up to the cut-off, and the condition on the step sizes fails from then on."""
    key, _, known = WEIGHTED
    quiet = dict(known, gamma=1e-3, eta=1, K=50)
    answer = rounds(key, 1e-2, quiet, effort=0.3)
    assert isinstance(answer, Never) and "eta*gamma <= N/(27*I*L*Q) fails" in answer.why
    tried = [evaluate(key, quiet | {"T": T}, strict=False) for T in (*range(1, 60), 1e3, 1e6)]
    assert not tried[-1].valid and not tried[-2].valid
    assert not any(found.valid and found.value <= 1e-2 for found in tried)


def test_a_function_that_rises_is_enclosed_by_its_ends():
    x, Q = sp.symbols("x Q")
    low, high = enclose(
        DriftGrowth(x, Q), {"x": (np.array([0.1]), np.array([0.2])), "Q": (np.array([2]), np.array([3]))}
    )
    assert low == pytest.approx(0.1**2) and high == pytest.approx(0.2**2 + 0.44**2)
    assert low <= 0.1**2 and high >= 0.2**2 + 0.44**2
