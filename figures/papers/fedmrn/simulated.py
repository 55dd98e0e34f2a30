r"""FedMRN's theorems against simulations of the analyzed algorithm: bounded clients, and a network.

On cosines with noise of random signs every constant is exact. For the network they are measured along the run, and the
bound is not a guarantee.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from fedbounds.empirical.comparison.compare_run import RunComparison, confront, confront_family
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN, masking_errors
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import Displaced, Problem, problem_from_spec, random_displaced
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.overlay import overlay, overlays
from fedbounds.figures.charts.picture import Curve, Picture

CLIENTS, DIMENSION, COHORT, LOCAL_STEPS = 8, 3, 3, 4
DRAWN = WithoutReplacement(CLIENTS, COHORT)
PLAIN = ("repaired:R2", "sharp:R2", "sharp:masks")
PROGRESSIVE = ("sharp:progressive-masks",)
NETWORK = {"kind": "images", "dataset": "digits", "network": "cnn-small-smooth", "clients": 8, "partition": "class-mix",
           "alpha": 1.0, "batch": 8, "gradient_norm": True}  # fmt: skip
ON_NETWORK = AnalyzedFedMRN(5e-4, 8, amplitude=0.012)
UPLOADING = WithoutReplacement(8, 4)


def cosines() -> Displaced:
    """Eight clients with a cosine in each of three coordinates, and noise of random signs."""
    return random_displaced(CLIENTS, DIMENSION, noise=0.1, noise_law="signs", seed=0)


@cache
def bounded_run(algorithm: AnalyzedFedMRN, iterations: int, seeds: int) -> Trace:
    """A run on the cosines, the same for all forms."""
    return simulate(algorithm, cosines(), DRAWN, iterations, seeds=range(seeds))


def family(form: str, horizons: Sequence[int], seeds: int) -> RunComparison:
    """One run per T, with the step size and the amplitude that the form sets."""
    return confront_family(
        "fedmrn/theorem-2", cosines(), DRAWN, horizons, local_steps=LOCAL_STEPS, form=form,
        run=lambda algorithm, T: bounded_run(algorithm, T, seeds),
    )  # fmt: skip


def bounded_clients(horizons: Sequence[int], seeds: int) -> Picture:
    """Theorem 2 for FedMRN's masks with almost surely bounded gradients: a guarantee."""
    title = "Theorem 2 for real masks: bounded clients"
    forms = {"masks": PLAIN, "progressive masks": PROGRESSIVE}
    found = {name: [family(form, horizons, seeds) for form in some] for name, some in forms.items()}
    every = [c for some in found.values() for c in some]
    said = "Every bound is a guarantee." if all(c.guarantee for c in every) else "Not every bound is a guarantee."
    G = every[0].constants["G"]
    return overlays(
        {"": found},
        title=title,
        caption=f"{title}. Alg-T on {CLIENTS} clients whose functions are cosines at centers of their own, d = "
        f"{DIMENSION}, K = {COHORT}, S = {LOCAL_STEPS}, noise of random signs, so that gradients are surely at most "
        f"{float(G.value):.4g}: every constant is exact. {said} One run of {seeds} seeds for each T, at eta = "
        "1/(L sqrt(T)) and the amplitude 2 eta S G. FedMRN's masks satisfy Assumption 4 with no q, so that eq. (12) as "
        "printed says nothing here; these forms have the number of parameters in its place.",
    )


@cache
def digits_problem() -> Problem:
    """A convolutional network on digits."""
    return problem_from_spec(NETWORK)


def network_run(iterations: int) -> RunComparison:
    """A convolutional network under the form for any amplitude, with the constants of the run."""
    every = max(1, iterations // 100)
    run = simulate(ON_NETWORK, digits_problem(), UPLOADING, iterations, record_every=every, record_models=True)
    return confront(
        run, "fedmrn/theorem-2", "explicit:any-amplitude", problem=digits_problem(), participation=UPLOADING
    )


def network(iterations: int) -> Picture:
    """The bound of a network, for the constants of its run."""
    found = network_run(iterations)
    picture = overlay(found, "Theorem 2 for real masks: a network")
    said = (
        f"A convolutional network on digits (8 clients, K = {UPLOADING.participants}, S = {ON_NETWORK.local_steps}, "
        f"eta = {ON_NETWORK.local_step_size:g}, amplitude {ON_NETWORK.amplitude:g}, one seed, {iterations} "
        "iterations; scaled down). No guarantee: L, sigma and G are those that this run has seen. The bound has the "
        f"number of parameters where the paper has q^2, and is mostly the masking of the upload."
    )
    return replace(picture, caption=f"{said} {picture.caption}")


def errors_of_uses(iterations: int) -> np.ndarray:
    """The relative error of masks at every use along the network's run, (rounds, S + 1, N); the last is the upload."""
    S = ON_NETWORK.local_steps
    errors = masking_errors(ON_NETWORK, digits_problem(), UPLOADING, iterations).reshape(
        -1, S, digits_problem().clients, 2
    )
    return np.concatenate([errors[..., 0], errors[:, -1:, :, 1]], axis=1)


def masking_error(iterations: int) -> Picture:
    """The relative error of masks at every use along the network's run: no finite q."""
    used = errors_of_uses(iterations)
    S, d = ON_NETWORK.local_steps, digits_problem().dimension
    uses = np.arange(1, S + 2)
    with np.errstate(invalid="ignore"):
        low, middle, high = (np.quantile(used, share, axis=(0, 2)) for share in (0.0, 0.5, 1.0))
    low, middle, high = (np.where(np.isfinite(each), each, np.nan) for each in (low, middle, high))
    title = "Assumption 4 along a run: what q would have to be"
    least = float(np.nanmin(low))
    return panels(
        {"": [Curve("median of clients and rounds", uses, middle, low, high),
              Curve("$\\sqrt{d}$", uses, np.full(len(uses), d**0.5))]},
        x_label=f"use in the round ({S + 1}: the upload)",
        y_labels=[r"$\|\mathcal{S}(u)-u\|/\|u\|$"],
        title=title,
        caption=f"{title}. Signed masks on the convolutional network of the figure `network`, {len(used)} rounds, one "
        f"seed, d = {d}. In the first use of every round u = 0, and the error is not: it is infinite, and not drawn. "
        f"Later it is {least:.3g} at least, and {float(np.nanmax(high)):.3g} at most. Measured along one run: it says "
        "that no finite q satisfies Assumption 4 here, and is no guarantee. Band: from the least to the largest.",
        alternative="Relative error of masks against the use in a round: it falls, and stays far above one.",
        provenance={"algorithm": ON_NETWORK.spec(), "problem": NETWORK, "dimension": d},
        y_scales=["log"],
    )  # fmt: skip
