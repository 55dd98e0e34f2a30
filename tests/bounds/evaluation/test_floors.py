"""Constants that contradict each other are refused: what each paper says that one of them implies for another."""

from fractions import Fraction

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.evaluation.numpy_code import numeric_rule
from fedbounds.bounds.evaluation.resolution import _apply
from fedbounds.bounds.papers.fedau.notation import least_second_moment
from fedbounds.bounds.theory.registry import results
from fedbounds.bounds.theory.symbols import Constant, Derived
from tests.papers.fedau.exact_weights import exact_weight_moments

FEDAU = dict(L=1, F=1, I=1, T=100, gamma=1e-3, eta=1, delta=1, sigma=1)


def of_weights(rng: np.random.Generator, even: bool) -> dict[str, np.ndarray]:
    """Every constant of FedAU that is tied to another one, of random weights on random paths; `even`: of equal ones."""
    N, settings = rng.integers(1, 5), 6  # rounds and paths
    p = np.full(N, rng.choice([rng.uniform(0.05, 1), 1.0])) if even else rng.uniform(0.05, 1, N)
    near = rng.choice([0.0, 0.1, 1.0])
    u = np.full((settings, N), 1 + near * rng.uniform(-1, 0)) if even else 1 + near * rng.uniform(-1, 1, (settings, N))
    omega = np.abs(u) / p
    varphi = np.full(N, 1 / N) if even else rng.dirichlet(np.ones(N))
    error, moment = ((p * omega - 1) ** 2).mean(1), (p * omega**2).mean(1)
    gap = ((p * omega[0] / N - varphi) ** 2).sum()
    P = (p * omega[0]).sum()
    return dict(
        p=p, N=np.array(N), W=error.mean(), Q=moment.max(), Qmean=moment.mean(), Wt=error[0], Qt=moment[0],
        Wmax=error.max(), R=-1 / (2 * np.log1p(-p.min())) if p.min() < 1 else np.array(0.0),
        varphi=varphi, V=gap, Z=(p * omega[0] ** 2).sum(), Qtilde=(p * (omega[0] * N / P) ** 2).mean(),
    )  # fmt: skip


def of_coefficients(rng: np.random.Generator, even: bool) -> dict[str, np.ndarray]:
    """The composite constants of Fed-Norm-SGDA, of random weights and random local coefficients."""
    n = rng.integers(1, 5)
    tau = np.full(n, rng.integers(1, 6)) if even else rng.integers(1, 6, n)
    w = np.full(n, 1 / n) if even else rng.dirichlet(np.ones(n))
    p = w if even else rng.dirichlet(np.ones(n))
    a = [np.ones(k) if even else rng.uniform(0.01, 2, k) for k in tau]
    a1, a2 = (np.array([(x**k).sum() for x in a]) for k in (1, 2))
    taueff = (w * a1).sum()
    return dict(
        tau=tau, w=w, p=p, taueff=taueff, taubar=tau.mean(), E_w=n * w.max(), chi2=((p - w) ** 2 / w).sum(),
        A_w=n * taueff * (w**2 * a2 / a1**2).sum(), B_w=n * taueff * (w * a2 / a1**2).max(),
    )  # fmt: skip


def of_participation(rng: np.random.Generator, even: bool) -> dict[str, np.ndarray]:
    """The weights of one round, in the paper package of arbitrary participation."""
    N = rng.integers(1, 6)
    q = np.full(N, 1 / N) if even else rng.dirichlet(np.full(N, 0.5))
    shared = dict(S=np.array(N)) if even else {}
    return dict(N=np.array(N), sumsq=(q**2).sum(), rho=np.sqrt((q**2).sum())) | shared


def of_silos(rng: np.random.Generator, even: bool) -> dict[str, np.ndarray]:
    """The noise and the gaps of TDCD."""
    silos = rng.integers(1, 5)
    sigma, K = rng.uniform(0, 2, silos), np.full(silos, 3) if even else rng.integers(1, 9, silos)
    gap = rng.uniform(0, 2)
    noise = dict(sigma=sigma, K=K, S=(sigma**2).sum(), SK=(sigma**2 / K).sum())
    return noise | dict(Deltainf=np.array(gap), Delta=np.array(gap if even else gap * rng.uniform(0, 1)))


TRUE = {
    "fedau": of_weights,
    "fed-norm-sgda": of_coefficients,
    "arbitrary-participation": of_participation,
    "tdcd": of_silos,
}
FIRST = {result.paper: result for result in reversed([*results()])}
FLOORS = [(paper, rule) for paper, result in FIRST.items() for rule in result.notation.floors]


def floor_at(paper: str, rule: Derived, constants: dict[str, np.ndarray]) -> float:
    known = {name: Constant(np.asarray(value, dtype=float), "given") for name, value in constants.items()}
    return float(_apply(numeric_rule(rule, FIRST[paper].notation), known))


@pytest.mark.parametrize(("paper", "rule"), FLOORS, ids=[f"{p} {r.name} of {','.join(r.inputs)}" for p, r in FLOORS])
def test_no_weights_have_constants_beyond_a_floor_and_some_attain_it(paper, rule):
    rng, closest = np.random.default_rng(12), 0.0
    for trial in range(400):
        constants = TRUE[paper](rng, trial % 2 == 0)
        if not constants.keys() >= {rule.name, *rule.inputs}:
            continue
        true, floor = float(constants[rule.name]), floor_at(paper, rule, constants)
        assert rule.free == "downwards" or true >= floor * (1 - 1e-12) - 1e-12, constants
        assert rule.free == "upwards" or true <= floor * (1 + 1e-12) + 1e-12, constants
        if rule.free == "downwards":
            true, floor = floor, true
        closest = max(closest, floor / true if true else 1.0)
    assert closest > 1 - 1e-9


def test_the_floor_is_below_the_exact_law_of_fedau():
    for p in ([Fraction(1, 2), Fraction(1, 3)], [Fraction(1, 10), Fraction(9, 10)]):
        for K in (1, 2, 3, None):
            laws = [exact_weight_moments(rate, K, 12) for rate in p]
            W = sum(error for law in laws for _, error in law) / 24
            second = sum((e - 1 + 2 * r * m) / r for r, law in zip(p, laws, strict=True) for m, e in law) / 24
            assert least_second_moment(np.array(p, dtype=float), np.array(float(W))) <= float(second)
    assert float(least_second_moment(np.array([0.25, 0.5]), np.array(0.0))) == 3  # omega = 1/p surely


@pytest.mark.parametrize(
    ("key", "constants", "says"),
    [
        ("fedau/theorem-2", dict(p=[0.1, 0.1], W=0, Q=1, G=1), "^Q = 1 is below 10, computed from p, W "),
        ("fedau/theorem-2-option-1", dict(p=[0.5, 0.5], Wmax=0, W=0, Q=1e-3), "^Q = 0.001 is below 2, .* from p, W "),
        ("fedau/theorem-2-option-1", dict(p=[0.5, 0.5], Wmax=0.001, Q=0.01), r"^Q = 0.01 is below 1.87"),
        ("fedau/theorem-2-option-1", dict(N=2, Wmax=1e-4, Q=1e-9), "^Q = 1e-09 is below 0.9801, computed from W "),
    ],
)
def test_a_second_moment_that_no_weights_with_this_error_have_is_refused(key, constants, says):
    with pytest.raises(FedboundsError, match=says):
        evaluate(key, FEDAU | constants, form="sharp", assume=["all"])


def test_a_mean_second_moment_that_contradicts_the_error_is_refused():
    with pytest.raises(FedboundsError, match=r"^Qmean = 1e-12 is below 0.9801"):
        evaluate("fedau/theorem-2", FEDAU | dict(N=2, W=1e-4, Q=1, Qmean=1e-12, G=1), assume=["all"])


def test_what_a_floor_allows_is_evaluated():
    evaluation = evaluate("fedau/theorem-2", FEDAU | dict(p=[0.1, 0.1], W=0, Q=10, G=1), form="sharp", assume=["all"])
    assert evaluation.valid and evaluation.guarantee


def test_constants_of_a_run_are_not_held_against_each_other():
    known = FEDAU | dict(N=2, W=Constant(1e-4, "trajectory"), Q=Constant(0.9, "trajectory"), G=1)
    assert evaluate("fedau/theorem-2", known, form="sharp").value > 0


def test_fewer_squares_than_equal_weights_have_are_refused():
    with pytest.raises(FedboundsError, match=r"^rho = 0.1 is below 0.5, computed from N "):
        evaluate(
            "arbitrary-participation/theorem-3.1",
            dict(L=1, F=5, I=2, P=2, T=8, gamma=1 / 48, eta=6, rho=0.1, nu=2, beta=0.5, delta=0, sigma=0.5, N=4),
        )
