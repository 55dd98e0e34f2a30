"""Best step sizes: every answer against a dense grid, and the closed forms that the explicit constants have."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import divisors

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize import Infeasible, Minimum, NotAttained, Undecided, optimize
from fedbounds.bounds.theory.registry import load
from tests.command_line import run

THEOREM = load("arbitrary-participation/theorem-3.1")
KNOWN = dict(L=1, F=5, I=2, P=2, T=800, rho=math.sqrt(0.5), sigma=1, nu=2, beta=0.5, delta=0.01)

constants = st.fixed_dictionaries(
    dict(
        L=st.floats(0.1, 10),
        F=st.floats(0.1, 10),
        I=st.integers(1, 10),
        P=st.integers(1, 10),
        rho=st.floats(0.1, 1),
        sigma=st.floats(0.01, 10),
        nu=st.floats(0, 5),
        beta=st.floats(0, 5),
        delta=st.floats(0, 1),
    )
)


def grid_minimum(known, form, gammas, etas):
    evaluation = evaluate(THEOREM, dict(known, gamma=gammas[:, None], eta=etas[None, :]), form=form)
    return float(np.where(evaluation.valid, evaluation.value, np.inf).min())


@settings(max_examples=15)
@given(constants, st.sampled_from(["explicit", "sharp"]))
def test_no_point_of_a_dense_grid_is_better(c, form):
    known = dict(c, T=400)
    answer = optimize(THEOREM, known, within={"eta": (1, 100)}, form=form)
    assert isinstance(answer, Minimum)
    cap = 1 / (12 * c["L"] * c["I"] * c["P"])
    best = grid_minimum(known, form, cap * np.geomspace(1e-5, 1, 400), np.geomspace(1, 100, 400))
    assert answer.value <= best * (1 + 1e-9)
    assert answer.value >= best * (1 - 0.01)
    assert answer.evaluation.valid
    assert float(evaluate(THEOREM, dict(known, **answer.at), form=form).value) == pytest.approx(answer.value)


def test_at_a_fixed_product_the_bound_falls_for_ever_as_gamma_falls():
    answer = optimize(THEOREM, KNOWN, form="explicit")
    assert isinstance(answer, NotAttained)
    # 8F/(x I T) + 4 x L rho^2 sigma^2 is least at x = sqrt(2F/(L I T rho^2 sigma^2)), the other terms vanish
    x = math.sqrt(2 * 5 / (2 * 800 * 0.5))
    assert f"gamma*eta = {x:.6g}" in answer.direction
    assert answer.infimum == pytest.approx(8 * 5 / (x * 2 * 800) + 4 * x * 0.5 + 6 * 0.01**2)


def test_the_best_eta_at_a_fixed_gamma_is_the_closed_form():
    gamma = 1e-4
    answer = optimize(THEOREM, dict(KNOWN, gamma=gamma), over=("eta",), form="explicit")
    assert isinstance(answer, Minimum)
    assert gamma * answer.at["eta"] == pytest.approx(math.sqrt(2 * 5 / (2 * 800 * 0.5)), rel=1e-6)


def test_corollary_3_2_takes_a_product_that_is_smaller_by_root_two_than_the_best():
    corollary = evaluate(load("arbitrary-participation/corollary-3.2"), KNOWN, form="explicit")
    product = float(corollary.prescribed["gamma"] * corollary.prescribed["eta"])
    best = optimize(THEOREM, dict(KNOWN, gamma=1e-6), over=("eta",), form="explicit")
    assert isinstance(best, Minimum)
    assert 1e-6 * best.at["eta"] / product == pytest.approx(math.sqrt(2), rel=1e-6)


def test_without_noise_the_caps_are_active():
    quiet = dict(KNOWN, sigma=0, nu=0, beta=0, gamma=1 / 48)
    answer = optimize(THEOREM, quiet, over=("eta",), form="explicit")
    assert isinstance(answer, Minimum)
    assert answer.at["eta"] == pytest.approx(6)
    assert any("eta*gamma" in text for text in answer.active)


def test_an_empty_admissible_set_says_why():
    answer = optimize(THEOREM, dict(KNOWN, T=1), within={"eta": (1, 2)}, form="explicit")
    assert isinstance(answer, Infeasible) and "P <= T/2" in answer.why


def test_the_interval_is_chosen_only_where_the_divergence_is_a_function_of_it():
    known = {k: v for k, v in KNOWN.items() if k not in ("P", "delta")} | {"gamma": 1e-4, "eta": 10}
    with pytest.raises(FedboundsError, match="delta"):
        optimize(THEOREM, dict(known, delta=0.1), over=("P",), form="explicit")
    answer = optimize(THEOREM, known, over=("P",), form="explicit", functions={"delta": lambda P: 1 / P})
    assert isinstance(answer, Minimum)
    scanned = {P: evaluate(THEOREM, dict(known, P=P, delta=1 / P), form="explicit") for P in range(1, 401)}
    best = min((P for P, e in scanned.items() if e.valid), key=lambda P: float(scanned[P].value))
    assert answer.at["P"] == best


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(over=("gama",)), "did you mean gamma"),
        (dict(over=()), "at least one"),
        (dict(over=("gamma", "gamma")), "each once"),
        (dict(within={"eta": (5, 1)}), "eta"),
        (dict(within={"eta": (-1, 1)}), "eta"),
        (dict(within={"L": (1, 2)}), "L"),
    ],
)
def test_a_wrong_question_is_one_line(arguments, message):
    with pytest.raises(FedboundsError, match=message) as error:
        optimize(THEOREM, KNOWN, form="explicit", **arguments)
    assert "\n" not in str(error.value)


# --- Every form, whole numbers, and forms that are not convex ---


@pytest.mark.parametrize("name", [form.name for form in THEOREM.forms])
def test_every_form_of_the_theorem_has_the_minimizer_of_a_dense_grid(name):
    known = dict(KNOWN, sumsq=0.5)
    known |= {"I": 1} if "I=" in name else {}
    known |= {"P": 1} if "P=1" in name else {}
    answer = optimize(THEOREM, known, within={"eta": (1, 100), "gamma": (1e-5, 1e-2)}, form=name)
    assert isinstance(answer, Minimum)
    best = grid_minimum(known, name, np.geomspace(1e-5, 1e-2, 500), np.geomspace(1, 100, 500))
    assert best * (1 - 0.002) <= answer.value <= best * (1 + 1e-9)
    assert bool(answer.note) == (name == "explicit:I=P=1")  # there only gamma*eta matters


@pytest.mark.parametrize("name", ["printed", "explicit", "sharp", "sharp:worst"])
def test_the_infimum_is_approached_along_the_direction_and_never_crossed(name):
    answer = optimize(THEOREM, KNOWN, form=name)
    assert isinstance(answer, NotAttained) and answer.advice
    product = float(answer.direction.rpartition("= ")[2])
    values = [
        float(evaluate(THEOREM, dict(KNOWN, gamma=g, eta=product / g), form=name).value) for g in (1e-3, 1e-5, 1e-7)
    ]
    assert sorted(values, reverse=True) == values
    assert values[-1] == pytest.approx(answer.infimum, rel=1e-6)
    assert sum(answer.terms.values()) == pytest.approx(answer.infimum)
    assert answer.infimum <= grid_minimum(KNOWN, name, np.geomspace(1e-7, 1e-2, 300), np.geomspace(0.1, 1e6, 300))


def test_without_noise_and_a_range_the_product_goes_to_its_cap():
    answer = optimize(THEOREM, dict(KNOWN, sigma=0), form="explicit")
    assert isinstance(answer, NotAttained)
    assert "gamma*eta = 0.125" in answer.direction  # 1/(2 L I P)
    assert answer.infimum == pytest.approx(16 * 1 * 2 * 5 / 800 + 6 * 0.01**2)


def test_without_an_initial_gap_both_step_sizes_vanish():
    answer = optimize(THEOREM, dict(KNOWN, F=0), form="explicit")
    assert isinstance(answer, NotAttained)
    assert answer.direction == "gamma -> 0 and eta -> 0" and answer.infimum == pytest.approx(6 * 0.01**2)


def test_the_scale_that_corollary_3_3_hides_is_best_at_root_two_over_sigma():
    corollary = load("arbitrary-participation/corollary-3.3")
    answer = optimize(corollary, dict(KNOWN, sigma=0.5, T=10**5), over=("s",), form="repaired:s")
    assert isinstance(answer, Minimum)
    assert answer.at["s"] == pytest.approx(math.sqrt(2) / 0.5, rel=1e-9)  # 8/s + 4 s sigma^2
    assert answer.active == ()


def test_an_end_of_a_range_and_a_condition_are_reported_as_active():
    answer = optimize(THEOREM, KNOWN, within={"gamma": (1 / 48, 1), "eta": (1, 100)}, form="explicit")
    assert isinstance(answer, Minimum)
    assert answer.at["gamma"] == pytest.approx(1 / 48, rel=1e-12)
    assert answer.active == ("gamma <= 1/(12*I*L*P)", "gamma >= 0.0208333")


def test_ranges_that_the_conditions_exclude_are_named():
    answer = optimize(THEOREM, KNOWN, within={"gamma": (0.1, 1)}, form="explicit")
    assert isinstance(answer, Infeasible) and "gamma <= 1/(12*I*L*P)" in answer.why and "0.1 <= gamma" in answer.why


@pytest.mark.parametrize("form", ["explicit", "repaired", "sharp"])
def test_whole_numbers_are_those_of_an_enumeration(form):
    corollary = load("arbitrary-participation/corollary-4.3")
    known = dict(L=1, F=0.01, I=2, T=500, rho=0.5, sigma=3, d=9)
    answer = optimize(corollary, known, over=("P",), form=form)
    P = np.arange(1, 501)
    evaluation = evaluate(corollary, dict(known, P=P), form=form)
    values = np.where(evaluation.valid, evaluation.value, np.inf)
    assert isinstance(answer, Minimum)
    assert answer.at["P"] == P[values.argmin()] > 1 and answer.value == pytest.approx(values.min())


def test_whole_numbers_and_step_sizes_are_chosen_together():
    known = {k: v for k, v in KNOWN.items() if k not in ("P", "delta")}
    rule = {"delta": lambda P: 0.5 / P}
    answer = optimize(
        THEOREM,
        known,
        over=("P", "gamma", "eta"),
        within={"eta": (1, 50), "P": (1, 12)},
        form="explicit",
        functions=rule,
    )
    each = {
        P: optimize(THEOREM, dict(known, P=P, delta=0.5 / P), within={"eta": (1, 50)}, form="explicit")
        for P in range(1, 13)
    }
    best = min(each, key=lambda P: each[P].value)
    assert isinstance(answer, Minimum) and answer.at["P"] == best
    assert answer.value == pytest.approx(each[best].value, rel=1e-12)


def test_more_local_steps_help_for_ever_where_gamma_shrinks_with_them():
    known = {k: v for k, v in KNOWN.items() if k != "I"}
    answer = optimize(THEOREM, known, over=("I", "gamma", "eta"), within={"eta": (1, 10)}, form="explicit")
    assert isinstance(answer, NotAttained) and "I -> infinity" in answer.direction
    large = optimize(THEOREM, dict(known, I=10**6), within={"eta": (1, 10)}, form="explicit")
    assert isinstance(large, Minimum) and large.value == pytest.approx(answer.infimum, rel=1e-5)
    assert large.value > answer.infimum


def test_a_form_that_is_not_convex_is_searched_on_grids():
    tail = load("arbitrary-participation/proposition-4.7")
    known = dict(N=10, d=1, c=0.1, P=20)
    answer = optimize(tail, known, over=("theta",), form="repaired:probability")
    theta = np.linspace(1e-4, 1 - 1e-4, 20001)
    values = evaluate(tail, dict(known, theta=theta), form="repaired:probability").value
    assert isinstance(answer, Minimum) and "starts" in answer.method
    assert answer.at["theta"] == pytest.approx(theta[values.argmin()], abs=1e-4)
    assert values.min() * (1 - 1e-6) <= answer.value <= values.min()


def test_an_open_end_of_a_domain_is_not_attained():
    tail = load("arbitrary-participation/proposition-4.7")
    answer = optimize(tail, dict(N=10, d=1, theta=0.9, P=20), over=("c",), form="repaired:probability")
    assert isinstance(answer, NotAttained) and answer.direction == "c -> 1"
    closed = optimize(
        tail, dict(N=10, d=1, theta=0.9, P=20), over=("c",), within={"c": (0.1, 0.5)}, form="repaired:probability"
    )
    assert isinstance(closed, Minimum) and closed.at["c"] == 0.5 and closed.active == ("c <= 0.5",)


@pytest.mark.parametrize(
    ("name", "known", "over", "message"),
    [
        ("corollary-3.2", KNOWN, ("gamma",), "prescribes gamma"),
        ("theorem-3.1", KNOWN, ("d",), "does not enter"),
        ("theorem-3.1", dict(KNOWN, gamma=0.1), ("gamma", "eta"), "left free"),
        ("equation-15", dict(d=1), ("qbar",), "per client"),
        ("theorem-3.1", {k: v for k, v in KNOWN.items() if k != "rho"}, ("S",), "beta, delta, nu"),
        ("theorem-3.1", {k: v for k, v in KNOWN.items() if k != "L"}, ("gamma", "eta"), "needs L"),
    ],
)
def test_a_constant_that_cannot_be_chosen_is_refused(name, known, over, message):
    with pytest.raises(FedboundsError, match=message) as error:
        optimize(load(f"arbitrary-participation/{name}"), known, over, form=None)
    assert "\n" not in str(error.value)


def test_a_whole_number_that_runs_off_is_not_attained():
    corollary = load("arbitrary-participation/corollary-4.3")
    known = dict(L=1, F=5, I=2, P=3, rho=0.7, sigma=1, d=1)
    exact = optimize(corollary, known, over=("T",), form="explicit")
    assert isinstance(exact, NotAttained) and exact.direction == "T -> infinity" and exact.infimum == 0
    scanned = optimize(corollary, known, over=("T",), form="sharp")
    assert isinstance(scanned, NotAttained) and "scanned up to 1000000" in scanned.direction


def test_a_constant_that_follows_from_the_chosen_one_moves_with_it():
    known = {k: v for k, v in KNOWN.items() if k not in ("rho", "nu", "beta", "delta")} | {"gamma": 1e-3, "eta": 20}
    rules = {"nu": lambda S: 2 - 1 / S, "beta": lambda S: 1 / S, "delta": lambda S: 0.01 * S}
    answer = optimize(THEOREM, known, over=("S",), within={"S": (1, 20)}, form="explicit", functions=rules)
    S = np.arange(1, 21)
    moving = dict(known, S=S, nu=2 - 1 / S, beta=1 / S, delta=0.01 * S)
    values = evaluate(THEOREM, moving, form="explicit").value
    assert isinstance(answer, Minimum) and 1 < answer.at["S"] == S[values.argmin()] < 20
    assert answer.value == pytest.approx(values.min())


def test_step_sizes_are_best_where_some_constants_are_vectors_over_clients():
    averaged = load("fedau/theorem-2")
    known = dict(L=1, F=5, I=2, T=1000, sigma=1, delta=0.3, G=2, K=20, p=np.array([0.1, 0.35, 0.8]))
    answer = optimize(averaged, known, within={"eta": (1, 20)})
    assert isinstance(answer, Minimum)
    gammas, etas = np.geomspace(1e-7, 1e-2, 200), np.geomspace(1, 20, 100)
    grid = {
        (g, e): evaluate(averaged, dict(known, gamma=g, eta=e))
        for g, e in zip(np.repeat(gammas[::10], 10), np.tile(etas[::10], 20), strict=True)
    }
    best = min(float(e.value) for e in grid.values() if e.valid)
    assert answer.value <= best * (1 + 1e-9)
    assert "eta <= 20" in answer.active and answer.at["eta"] == 20


# --- A whole number that must divide another ----------------------------------------------------------------------

SNAPSHOTS = dict(
    Lf=4, sigmaL=0.5, betaL=0.1, sigmaG=1, betaG=1.2, P=2, tau=(2, 3, 4), w=(0.5, 0.25, 0.25), Deltabar=1, rho=0,
    Gx=2, R=4, etax=1e-6, etay=1e-6,
)  # fmt: skip


@pytest.mark.parametrize("T", [360, 30030, 10007])
def test_a_period_is_sought_among_the_divisors_of_the_rounds(T: int):
    theorem = load("fed-norm-sgda/theorem-4")
    found = optimize(theorem, {**SNAPSHOTS, "T": T}, ("Gammax", "Gammay", "S"))
    each = {S: optimize(theorem, {**SNAPSHOTS, "T": T, "S": S}, ("Gammax", "Gammay")) for S in divisors(T)}
    best = min(each, key=lambda S: each[S].value if isinstance(each[S], Minimum) else np.inf)
    assert isinstance(found, Minimum) and found.at["S"] == best and found.value == pytest.approx(each[best].value)
    within = optimize(theorem, {**SNAPSHOTS, "rounds": T}, ("Gammax", "Gammay", "S"), within={"S": (1, best - 1)})
    assert isinstance(within, Minimum) and within.value > found.value and T % within.at["S"] == 0


def test_no_divisor_in_the_range_of_a_period_is_said():
    found = optimize(
        load("fed-norm-sgda/theorem-4"), {**SNAPSHOTS, "T": 10007}, ("Gammax", "S", "Gammay"), within={"S": (2, 99)}
    )
    assert isinstance(found, Infeasible) and "no S in its range" in found.why


def test_a_whole_number_that_is_given_is_not_left_free():
    with pytest.raises(FedboundsError, match="S is given and also left free"):
        optimize(load("fed-norm-sgda/theorem-4"), {**SNAPSHOTS, "T": 360, "S": 10}, ("Gammax", "Gammay", "S"))


def test_an_infimum_that_is_not_attained_says_where_every_constant_is():
    theorem = load("fedau/theorem-2")
    known = dict(L=1, F=5, I=2, T=1000, sigma=1, delta=0.3, G=2, p=np.array([0.1, 0.35, 0.8]))
    answer = optimize(theorem, known, ("gamma", "eta", "K"))
    assert isinstance(answer, NotAttained)
    told = {word.partition(" -> ")[0] for word in answer.direction.split(" with ")[0].split(" and ")} | set(answer.at)
    assert told == {"gamma", "eta", "K"} and answer.at["K"] >= 1
    near = [
        optimize(theorem, dict(known, K=answer.at["K"] + step), ("gamma", "eta")).infimum
        for step in (-1, 0, 1)
        if answer.at["K"] + step >= 1
    ]
    assert answer.infimum == min(near)


def test_no_evaluations_left_is_undecided_or_the_best_so_far():
    theorem = load("fedau/theorem-2")
    known = dict(L=1, F=5, I=2, T=1000, sigma=1, delta=0.3, G=2, p=np.array([0.1, 0.35, 0.8]))
    assert isinstance(optimize(theorem, known, ("gamma", "eta", "K"), effort=1e-4), Undecided)
    within = {"eta": (1, 100)}
    part = optimize(theorem, known, ("gamma", "eta", "K"), within=within, effort=0.05)
    more = optimize(theorem, known, ("gamma", "eta", "K"), within=within, effort=0.2)
    assert isinstance(part, Minimum) and "more with --effort" in part.note
    assert isinstance(more, Minimum) and more.value <= part.value


def test_a_step_that_a_form_prescribes_is_pointed_to_where_it_is_free():
    with pytest.raises(FedboundsError, match="it is not free; it is in these forms: explicit:any-step, explicit:any-a"):
        optimize("fedmrn/theorem-2", {}, "eta")


def test_whole_numbers_that_do_as_well_are_named():
    known = dict(L=2, mu=0.5, sigma=0.3, G=1.5, N=10, T=1000, q=0.3, Delta1=1e5, Gamma=0)
    answer = optimize("fedmrn/theorem-1", known, "S,K")
    assert isinstance(answer, Minimum) and answer.note == "S = 2 does as well; K = 4 and K = 6 do as well"
    for other in ({"S": 2}, {"K": 4}, {"K": 6}):
        assert float(evaluate("fedmrn/theorem-1", {**known, **answer.at, **other}).value) == pytest.approx(answer.value)
    alone = optimize("fedmrn/theorem-1", known | {"Delta1": 1e-9, "q": 3.0}, "S,K")
    assert isinstance(alone, Minimum) and "as well" not in alone.note


IMPOSSIBLE = ["L=1", "mu=0.1", "sigma=1", "q=0.5", "G=0.1", "Gamma=0", "Delta1=400", "N=10", "K=5"]
EMPTY = "no problem has these constants: (T - 1)*(Delta1*mu**2 + 2*Gamma*mu) <= G**2*(T - 1)"


def test_a_minimum_that_no_problem_has_says_so_as_eval_does():
    found = run("optimize", "fedmrn/theorem-1", "--over", "S", "T=1000", *IMPOSSIBLE)[1]
    lines = found.splitlines()
    assert lines[-1].startswith(f"  guarantee: no: {EMPTY}") and "neither checked nor assumed" in lines[-1]
    there = run("eval", "fedmrn/theorem-1", "S=17", "T=1000", *IMPOSSIBLE)[1]
    assert EMPTY in there
    table = run("compare", "fedmrn/theorem-1", "--vary", "T=1000,1002", "S=17", *IMPOSSIBLE)[1]
    assert f"fedmrn/theorem-1 [sharp]: {EMPTY}" in table.replace(" at 2 of 2 settings", "")
    best = ["compare", "fedmrn/theorem-1", "--vary", "T=1000,1002", "--optimize", "S", *IMPOSSIBLE]
    assert f"fedmrn/theorem-1 [sharp]: {EMPTY}" in run(*best)[1]


def test_an_infimum_that_no_problem_has_says_so():
    words = ["L=1", "F=1", "I=1", "P=1", "T=800", "rho=0.6", "sigma=1", "nu=0", "beta=0", "delta=0", "sumsq=0.5"]
    command = ["optimize", "arbitrary-participation/theorem-3.1", "--form", "explicit:sumsq", "--over", "gamma,eta"]
    found = run(*command, *words)[1]
    assert "not attained" in found
    assert found.splitlines()[-1].startswith("  guarantee: no: no problem has these constants: sumsq <= rho**2")
    possible = run(*command, *words[:-1], "sumsq=0.3")[1]
    assert "not attained" in possible and "no problem" not in possible
