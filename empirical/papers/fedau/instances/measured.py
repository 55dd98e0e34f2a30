"""The left-hand sides of the results of Wang & Ji (2024) on instances, and which assumptions these meet."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fedbounds.empirical.papers.fedau.instances.intervals import IntervalInstances
from fedbounds.empirical.papers.fedau.instances.kinked import KinkedInstances
from fedbounds.empirical.papers.fedau.instances.records import Records
from fedbounds.empirical.papers.fedau.instances.weighted import ConstantWeightRuns, WeightedInstances, sum_over_clients

CANCELED = 1e-12  # error of a left side relative to the sizes of its summands
Values = dict[str, np.ndarray]

# What holds by construction, as the rules of the classes are checked. L, sigma and the divergences are exact because
# the slopes have mean zero, or clients are the same far away; noise is drawn anew in every step, and participation
# before it, by coins; weights are constant or FedAU's, so that they depend on the past at most; phi sums to one.
LOCAL = {"smooth", "unbiased-noise", "independent-clients", "martingale-noise", "bounded-divergence"}
ONE_STEP = LOCAL | {"bernoulli-participation", "past-weights", "objective-weights"}


class Measured(NamedTuple):
    """A left-hand side, the symbols of the right-hand side, and which assumptions each instance meets."""

    left: np.ndarray
    values: Values
    met: Mapping[str, np.ndarray | bool]


def always(names: Iterable[str]) -> dict[str, np.ndarray | bool]:
    """Assumptions that hold by construction."""
    return dict.fromkeys(names, True)


def client_weights(z: WeightedInstances | KinkedInstances) -> tuple[np.ndarray, np.ndarray]:
    """phi, (B, N), and the slopes, (B, N, d)."""
    if isinstance(z, WeightedInstances):
        return z.phi, z.slopes
    return np.ones((len(z), 1)), np.zeros((len(z), 1, 1))


def divergences(z: WeightedInstances | KinkedInstances) -> np.ndarray:
    r"""$\|\nabla F_n-\nabla\tilde f\|^2$, the same everywhere, (B, N)."""
    phi, slopes = client_weights(z)
    return ((slopes - sum_over_clients(phi, slopes)[:, None]) ** 2).sum(axis=2)


def lemma_symbols(z: WeightedInstances | KinkedInstances) -> Values:
    """Symbols of the one-round lemmas."""
    phi, _ = client_weights(z)
    values = z.constants()
    values |= {"varphi": phi[:, None], "deltatilde": np.sqrt(divergences(z).max(axis=1))[:, None]}
    return values | {"Wt": values["W"], "Qt": values["Q"]}


def divergence(z: WeightedInstances, form: str) -> Measured:
    """Lemma B.3.1."""
    return Measured(divergences(z), lemma_symbols(z), always(ONE_STEP))


def drift(z: WeightedInstances | KinkedInstances, form: str) -> Measured:
    """Lemma B.3.2: at every local step, or averaged over them."""
    left = z.drift()
    if form == "sharp:average":
        left = left.reshape(len(z), -1, z.local_steps + 1)[:, :, :-1].mean(axis=2)
    return Measured(left, lemma_symbols(z), always(ONE_STEP))


def ascent(z: WeightedInstances | KinkedInstances, form: str) -> Measured:
    """Lemma B.3.3."""
    return Measured(z.ascent(), lemma_symbols(z), always(ONE_STEP))


def ascent_of_mean(z: WeightedInstances | KinkedInstances, form: str) -> Measured:
    """Lemma B.5.1, for f alone; weights of another objective are not covered."""
    even = np.ptp(client_weights(z)[0], axis=1, keepdims=True) <= 1e-15
    return Measured(np.where(even, z.ascent(), np.nan), lemma_symbols(z), always(ONE_STEP))


@lru_cache(maxsize=64)
def constant_weights(z: ConstantWeightRuns, form: str) -> Measured:
    """Theorems 1 and B.4.1: the gradient of h."""
    weights, values, N = z.objective_weights(), z.constants(), z.clients
    P = (z.p * z.omega).sum(axis=1)[:, None]
    normalized = z.omega * N / P
    values |= {
        "P": P,
        "alphatilde": normalized[:, None],
        "etatilde": values["eta"] * P / N,
        "Qtilde": (z.p * normalized**2).mean(axis=1)[:, None],
        "deltatilde": np.sqrt(z.divergences_from(weights).max(axis=1))[:, None],
        "cgamma": values["gamma"] * np.sqrt(z.rounds),
        "cboth": values["gamma"] * values["eta"] * np.sqrt(z.rounds),
    }
    met = always(ONE_STEP | {"constant-weights"}) | {"h-bounded-below": z.bounded_below(weights)}
    return Measured(z.average_gradient(weights), values, met)


@lru_cache(maxsize=64)
def average(z: ConstantWeightRuns, form: str) -> Measured:
    """Theorem 2 with constant weights, and Appendix A.3 with those that are 1/p_n."""
    uniform, values = np.full_like(z.p, 1 / z.clients), z.constants()
    values |= {"Qmean": values["Q"], "Wmax": values["W"], "S": z.p.sum(axis=1)[:, None]}
    met = always(ONE_STEP | {"sure-Q"}) | {
        "bounded-below": z.bounded_below(uniform),
        "nearly-optimal-weights": values["W"][:, 0] <= 1 / 81,
        "inverse-rates": np.abs(z.p * z.omega - 1).max(axis=1) <= 1e-12,
        "equal-rates": np.ptp(z.p, axis=1) <= 1e-15,
    }
    return Measured(z.average_gradient(uniform), values, met)


@lru_cache(maxsize=64)
def recorded(z: Records, form: str) -> Measured:
    """Theorem 2 and Corollary 4 with FedAU's own weights."""
    values = z.constants() | {"R": rarity(z.p)}
    met = always(ONE_STEP | {"sure-Q", "fedau-weights"}) | {"bounded-below": z.covered, "bounded-gradient": z.covered}
    return Measured(z.average_gradient(), values, met | {"nearly-optimal-weights": values["Wmax"][:, 0] <= 1 / 81})


def average_of_either(z: ConstantWeightRuns | Records, form: str) -> Measured:
    """Option 1 of Corollary 4, for weights of any kind or FedAU's."""
    return average(z, form) if isinstance(z, ConstantWeightRuns) else recorded(z, form)


def rarity(p: np.ndarray) -> np.ndarray:
    """R = 1/log c, (B, 1)."""
    rarest = p.min(axis=1)[:, None]
    with np.errstate(divide="ignore"):
        return np.where(rarest < 1, -1 / (2 * np.log1p(-np.minimum(rarest, 1))), 0.0)


def error_of_weights(z: IntervalInstances, form: str) -> Measured:
    """Theorem 3 and Lemma B.7.1."""
    return Measured(
        z.weight_error, z.constants() | {"R": rarity(z.p)}, always({"bernoulli-participation", "fedau-weights"})
    )


def cut_interval(which: int) -> Callable[[IntervalInstances, str], Measured]:
    """Lemma B.6.1, client by client: the mean (0) or the variance (1)."""

    def moment(z: IntervalInstances, form: str) -> Measured:
        return Measured(z.cut_moments()[which], z.constants() | {"rate": z.p}, always({"cut-off-geometric"}))

    return moment
