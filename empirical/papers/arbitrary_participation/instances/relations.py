r"""Steps of a proof, read as they stand: their relation is evaluated at the exact inner products of every instance.

A step's brackets average over the clients of a round with their weights (over a window's rounds and local steps too)
and over the gradient noise. They are kept for *differences* of the step's vectors, so that nothing cancels:
$e=y-\bar y$, $D=\bar y-x_{t_0}$, $k_y=\nabla F_n(y)-\nabla F_n(\bar y)$, $k_m=\nabla F_n(\bar y)-\nabla F_n(x_{t_0})$,
$o=\nabla F_n(x_{t_0})-\nabla f(x_{t_0})$, with their weighted means `m...`, and $f_0$, $\xi$. In a window
$s_1,s_2,s_3$ are the means of $k_y,k_m,o$ over it and z that of the noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Self

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf, measure_symbol
from fedbounds.bounds.audit.vectors import factors_of_product
from fedbounds.bounds.papers.arbitrary_participation.participation import OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.proof import PROOFS
from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.empirical.falsification.instances.population import Population, perturb
from fedbounds.empirical.falsification.instances.readable import (
    Readable,
    conditions_hold,
    evaluate_sides,
    hypotheses,
    not_measured,
    product_key,
    readable,
)
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from fedbounds.empirical.papers.arbitrary_participation.instances.fedavg import (
    FedAvgInstances,
    Path,
    QuadraticMoments,
    slope,
    slope_change,
    split,
)
from fedbounds.empirical.papers.arbitrary_participation.instances.participating import all_of, met

# The proof's vectors in these differences; points are taken from x_{t_0}, as only differences of points occur.
ROUND_BASIS = {
    "y": ("e", "D"), "ybar": ("D",), "x0": (), "f0": ("f0",), "xi": ("xi",), "mxi": ("mxi",),
    "gy": ("ky", "km", "o", "f0"), "gm": ("km", "o", "f0"), "g0": ("o", "f0"),
    "mgy": ("mky", "km", "mo", "f0"), "mgm": ("km", "mo", "f0"), "mg0": ("mo", "f0"),
}  # fmt: skip
WINDOW_BASIS = {
    "y": ("e", "D"), "ybar": ("D",), "x0": (), "f0": ("f0",), "mxi": ("mxi",), "z": ("z",),
    "gy": ("ky", "km", "o", "f0"), "gm": ("km", "o", "f0"), "g0": ("o", "f0"),
    "s": ("s1", "s2", "s3", "f0"), "m": ("s2", "s3", "f0"), "w0": ("s3", "f0"),
}  # fmt: skip
POINT_BASIS = {"g": ("o", "f0"), "f": ("f0",), "mg": ("mo", "f0")}  # at the model with which a window starts
Products = dict[tuple[str, str], np.ndarray]


def round_products(z: FedAvgInstances) -> Products:
    """The products of a round before every local step, each (B, T, I+1) or broadcasting; pairs not given are zero."""
    behind = z.course.behind
    return _quadratic_round(z, behind) if isinstance(behind, QuadraticMoments) else _rippled_round(z, behind)


def window_products(z: FedAvgInstances) -> Products:
    """The products of a complete window, each (B, K); pairs not given are zero or do not occur in the proof."""
    I, P, K = z.local_steps, z.interval, z.rounds // z.interval
    wanted = [("e", "e"), ("D", "D"), ("ky", "ky"), ("km", "km"), ("mxi", "mxi"), ("f0", "f0")]
    products = round_products(z)

    def averaged(values: np.ndarray) -> np.ndarray:
        whole = np.broadcast_to(values, (len(z), z.rounds, I + 1))
        return whole[:, : K * P, :I].reshape(len(z), K, -1).mean(axis=2)

    found = {pair: averaged(products[pair]) for pair in wanted if pair in products}
    behind = z.course.behind
    means = _quadratic_window(z, behind) if isinstance(behind, QuadraticMoments) else _rippled_window(z, behind)
    return found | means


def _quadratic_round(z: FedAvgInstances, law: QuadraticMoments) -> Products:
    a, gamma = z.curvature[:, None, None], z.gamma[:, None, None, None]
    powers = (1 - gamma * a) ** np.arange(z.local_steps)[:, None]
    zero = np.zeros((len(z), 1, 1, a.shape[3]))
    sums = np.concatenate([zero, np.cumsum(powers, axis=2)], axis=2)
    squares = np.concatenate([zero, np.cumsum(powers**2, axis=2)], axis=2)
    cohort, pull, noise = z.cohort[:, :, None], z.pulls[:, :, None], z.noise[:, None, None] ** 2
    own = np.einsum("btn,bnn->bt", z.weights, z.correlation)[:, :, None, None]
    left = z.noise_weight[:, :, None, None]
    m, C, zeta = law.m[:, :, None], law.C[:, :, None], law.zeta
    ee = gamma**2 * (sums**2 * cohort + squares * noise * (own - left))
    DD, Dx, xx = zeta**2 + law.psi**2 * C + law.rest, m * zeta + law.psi * C, m**2 + C
    basic = {
        ("e", "e"): ee, ("e", "ky"): a * ee, ("ky", "ky"): a**2 * ee, ("e", "o"): -gamma * sums * cohort,
        ("ky", "o"): -gamma * a * sums * cohort, ("D", "D"): DD, ("D", "km"): a * DD, ("km", "km"): a**2 * DD,
        ("D", "f0"): a * Dx, ("f0", "km"): a**2 * Dx, ("D", "o"): zeta * pull, ("D", "mo"): zeta * pull,
        ("km", "o"): a * zeta * pull, ("km", "mo"): a * zeta * pull, ("f0", "f0"): a**2 * xx,
        ("f0", "o"): a * m * pull, ("f0", "mo"): a * m * pull, ("o", "o"): cohort + pull**2, ("mo", "o"): pull**2,
        ("mo", "mo"): pull**2, ("xi", "xi"): noise * own, ("mxi", "xi"): noise * left, ("mxi", "mxi"): noise * left,
    }  # fmt: skip
    return {product_key(*pair): value.sum(axis=3) for pair, value in basic.items()}


def _rippled_round(z: FedAvgInstances, path: Path) -> Products:
    q = z.weights[:, :, None, :, None]
    mean, apart = split(z, path)
    D = path.moved[:, :, None, None] + mean[:, :, :, None]
    start, ky = path.anchor[:, :, None, None], _from_their_mean(z, path)
    vectors = {
        "e": apart, "D": D, "ky": ky, "mky": (q * ky).sum(axis=3, keepdims=True),
        "km": slope_change(z, start, D), "o": z.slopes[:, None, None], "mo": z.pulls[:, :, None, None],
        "f0": slope(z, start),
    }  # fmt: skip
    names = sorted(vectors)
    return {(a, b): (q * vectors[a] * vectors[b]).sum(axis=(3, 4)) for a in names for b in names if a <= b}


def _from_their_mean(z: FedAvgInstances, path: Path) -> np.ndarray:
    """The gradients at the local models less those at their mean, (B, T, I+1, N, d)."""
    mean, apart = split(z, path)
    middle = (path.anchor + path.moved)[:, :, None, None] + mean[:, :, :, None]
    return slope_change(z, middle, apart)


def _quadratic_window(z: FedAvgInstances, law: QuadraticMoments) -> Products:
    K, P, a = law.mean_zeta.shape[1], z.interval, z.curvature[:, None]
    m, C = (v[:, : K * P : P] for v in (law.m, law.C))
    pull = z.pulled(z.window_weights)
    DD = law.mean_zeta**2 + law.mean_psi**2 * C + law.mean_rest
    basic = {
        ("s2", "s2"): a**2 * DD, ("f0", "s2"): a**2 * (m * law.mean_zeta + law.mean_psi * C),
        ("s2", "s3"): a * law.mean_zeta * pull, ("s2", "z"): a * law.mean_cross, ("z", "z"): law.mean_noise,
        ("s3", "s3"): pull**2, ("f0", "s3"): a * m * pull,
    }  # fmt: skip
    return {product_key(*pair): value.sum(axis=2) for pair, value in basic.items()}


def _rippled_window(z: FedAvgInstances, path: Path) -> Products:
    I, P, K = z.local_steps, z.interval, z.rounds // z.interval
    q = z.weights[:, :, None, :, None]
    mean = path.moved[:, :, None] + split(z, path)[0]  # (B, T, I+1, d)
    start = path.anchor[:, :, None]

    def averaged(values: np.ndarray) -> np.ndarray:
        return values[:, : K * P, :I].reshape(len(z), K, I * P, -1).mean(axis=2)

    f0 = slope(z, path.anchor[:, : K * P : P])
    vectors = {
        "s1": averaged((q * _from_their_mean(z, path)).sum(axis=3)),
        "s2": averaged(slope_change(z, start, mean)),
        "s3": z.pulled(z.window_weights),
        "f0": f0,
    }
    names = sorted(vectors)
    return {(a, b): (vectors[a] * vectors[b]).sum(axis=2) for a in names for b in names if a <= b}


CANCELED = 1e-12  # error of both sides relative to the sizes of their summands
ROUND_OFF = 1e-15  # of a mean of the clients' gradients, relative to the largest of them
LEAST = measure_symbol(LEAST_GRADIENT).name, measure_symbol(OVER_PARTICIPATION).name
BASES = {
    kind: tuple(basis.items())
    for kind, basis in (("round", ROUND_BASIS), ("window", WINDOW_BASIS), ("point", POINT_BASIS))
}
SECOND_MOMENTS = "sum_n q_n^2 E|xi_n|^2"


def setting_of(subject: StepOf) -> str | None:
    """round, window or point, by the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((kind for kind, basis in BASES.items() if set(dict(basis)) == atoms), None)


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    return readable(subject.step.conclusion, BASES[setting_of(subject) or "round"])


def relation_sides(claim: Claim, z: FedAvgInstances) -> Sides:
    """A step's relation at every round and local step, or at every window, of every instance."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    kind = setting_of(subject)
    window = kind == "window"
    relation = reading(subject)
    values = z.constants() | (_window_values(z) if window else _round_values(z))
    needed = set(relation.names)
    if needed & set(LEAST):  # one number for the whole run, so the divergence is that of all windows
        values |= {"delta": z.constants()["delta"]}
    zero = np.zeros((1, 1))
    for name in needed - set(values):
        if factors_of_product(name):
            values[name] = zero
    if missing := needed - set(values):
        return not_measured(missing, len(z))
    left, size, summands = evaluate_sides(relation, values, len(z))
    shape = left.shape
    assumptions, conditions = hypotheses(subject, PROOFS)
    assumed, unmet = met(z, dict.fromkeys((*claim.assumptions, *assumptions)))
    held = all_of(assumed, z)
    covered = held & (values["eta"] > 0) & conditions_hold(conditions, z.constants())
    if shape[1] > 1 and not window:
        covered = covered & _round_places(z, subject.step.quantifiers)
    rounding = (CANCELED + ROUND_OFF * _at_places(z, z.cancellation, shape[1])) * size
    if subject.step.conclusion.op == "==":
        total = sum(summands, start=np.zeros(shape))
        return Sides(np.abs(left - total), {}, covered, rounding, unmet, z.describe)
    return Sides(left, dict(zip(relation.terms, summands, strict=True)), covered, rounding, unmet, z.describe)


def _at_places(z: FedAvgInstances, per_round: np.ndarray, places: int) -> np.ndarray:
    """Values of every round, (B, T), at each of its local steps, or the largest of each window or of the run."""
    if places == z.rounds * (z.local_steps + 1):
        return np.repeat(per_round, z.local_steps + 1, axis=1)
    K = z.rounds // z.interval
    if places == K:
        return per_round[:, : K * z.interval].reshape(len(z), K, z.interval).max(axis=2)
    return per_round.max(axis=1, keepdims=True)


@lru_cache(maxsize=128)
def _round_values(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Products and weights at every place (t, i), each (B, T (I+1))."""
    places = (len(z), z.rounds, z.local_steps + 1)

    def flat(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, places).reshape(len(z), -1)

    variance = (z.noise**2).sum(axis=1)[:, None]
    second = variance * np.einsum("btn,bnn->bt", z.weights**2, z.correlation)
    named = {f"<{a},{b}>": flat(v) for (a, b), v in round_products(z).items()}
    named |= {"sumsq": flat(z.sum_of_squares[:, :, None]), SECOND_MOMENTS: flat(second[:, :, None])}
    return named | _suprema(z)


def _suprema(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Suprema over the rounds under the names that the proof gives them, each (B, 1)."""
    v = z.constants()
    return {"S_min": v["sumsq"], "sup (5)": v["beta"] ** 2, "sup (6)": v["nu"] ** 2}


def _round_places(z: FedAvgInstances, quantifiers: str) -> np.ndarray:
    """The rounds and local steps of a step's quantifiers."""
    t, i = np.meshgrid(np.arange(z.rounds), np.arange(z.local_steps + 1), indexing="ij")
    held = (i < z.local_steps) if "i < I" in quantifiers else np.ones_like(i, dtype=bool)
    if "i = 0" in quantifiers:
        held &= i == 0
    if "t = t_0" in quantifiers:
        held &= t % z.interval == 0
    return held.reshape(1, -1)


@lru_cache(maxsize=128)
def _window_values(z: FedAvgInstances) -> dict[str, np.ndarray]:
    """Products, decrease and divergence of every window, each (B, K); the run's least gradient, (B, 1)."""
    run = z.course
    named = {f"<{a},{b}>": v for (a, b), v in window_products(z).items()}
    named |= {"decrease": run.decrease, "delta": np.sqrt(z.window)}
    least = run.gradient[:, :-1].min(axis=1, keepdims=True)
    return named | {name: least for name in LEAST} | _suprema(z)


# --- steps about the constants alone ---------------------------------------------------------------------------------

MOST = 300


@dataclass(frozen=True, eq=False)
class Settings(Population):
    """B settings of the paper's constants, each (B,)."""

    L: np.ndarray
    I: np.ndarray
    P: np.ndarray
    T: np.ndarray
    gamma: np.ndarray
    eta: np.ndarray
    sigma: np.ndarray

    def constants(self) -> dict[str, np.ndarray]:
        """By symbol, (B, 1)."""
        return {f.name: getattr(self, f.name)[:, None] for f in fields(self)}

    def mutate(self, rng: np.random.Generator) -> Self:
        """Other constants; the step sizes stay at the same shares of their caps, or move to them."""
        local = self.gamma * 12 * self.L * self.I * self.P
        update = self.gamma * self.eta * 2 * self.L * self.I * self.P
        I, P = (np.clip(np.rint(perturb(v, rng)), 1, MOST) for v in (self.I, self.P))
        T = np.clip(np.rint(perturb(self.T, rng)), P, None)
        L = perturb(self.L, rng)
        local, update = np.minimum(perturb(local, rng), 1), np.minimum(perturb(update, rng), 1)
        gamma = local / (12 * L * I * P)
        return replace(self, L=L, I=I, P=P, T=T, gamma=gamma, eta=update / (2 * L * I * P * gamma))


def draw_settings(claim: Claim, cells: int) -> Iterator[Settings]:
    """Whole numbers I and P from 1 to 300, small ones more often, and step sizes at the caps and inside."""
    rng = np.random.default_rng(67)
    B = 40 * cells
    I, P = (np.floor(MOST ** rng.uniform(0, 1, B) ** 2) for _ in range(2))
    T = P * np.floor(10 ** rng.uniform(0, 3, B)) + np.floor(rng.random(B) * P)
    L, local, update = 10 ** rng.uniform(-1, 1, B), rng.choice([1, 1, 0.3, 1e-3], B), rng.choice([1, 1, 0.3, 1e-3], B)
    wide = rng.choice([1, P.max()], B)  # some local steps up to 1/(12LI)
    gamma = local / (12 * L * I * np.maximum(P / wide, 1))
    yield Settings(L, I, P, T, gamma, update / (2 * L * I * P * gamma), rng.uniform(0, 2, B))


def about_constants(claim: Claim) -> bool:
    """Whether the step's relation has no other symbols than these constants."""
    subject = claim.subject
    return isinstance(subject, StepOf) and set(reading(subject).names) <= {f.name for f in fields(Settings)}


def setting_sides(claim: Claim, z: Settings) -> Sides:
    """The relation at every setting that meets its conditions."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    relation, values = reading(subject), z.constants()
    left, size, *summands = relation.function(*(values[name] for name in relation.names))
    left, *summands = (np.broadcast_to(np.asarray(v, dtype=float), (len(z), 1)) for v in (left, *summands))
    covered = conditions_hold(hypotheses(subject, PROOFS)[1], values)
    rounding = 1e-15 * size * values["I"] * values["P"]  # a ratio of a geometric sum is 1 + 1/(IP) or so
    return Sides(left, dict(zip(relation.terms, summands, strict=True)), covered, rounding, "", z.describe)


SETTINGS = InstanceTest(draw_settings, setting_sides)
