"""The paper's experimental claims against what we measured, with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedbounds.empirical.trace import Trace
from fedbounds.figures.claims import Claim, Level, every, in_words, levels
from fedbounds.figures.papers.arbitrary_participation import experiments as ex
from fedbounds.figures.papers.arbitrary_participation import rates
from fedbounds.figures.papers.arbitrary_participation.drawing import CENTERS, Gallery
from fedbounds.figures.papers.arbitrary_participation.network import NETWORKS

METRICS = {"train_loss": "training loss", "test_accuracy": "test error"}


def ordering(runs: Mapping[str, Sequence[Trace]], last: int) -> list[Claim]:
    """Figure 1's ordering, part by part, in training loss and in test error."""
    return [claim for metric, name in METRICS.items() for claim in figure_1(levels(runs, last, metric), name)]


def figure_1(found: Mapping[str, Level], name: str) -> list[Claim]:
    """The ordering of the methods."""
    amplified, plain = found[ex.AMPLIFIED], found[ex.PLAIN]
    waiting = [found[label] for label in (ex.WAIT_MINIBATCH, ex.WAIT_FULL) if label in found]
    claims = [
        Claim("Figure 1", f"amplified Algorithm 1 is best ({name})", in_words(found, ex.AMPLIFIED),
              every(amplified.below(other) for other in (plain, *waiting))),
        Claim("Figure 1", f"FedAvg without amplification is last ({name})", in_words(found, ex.PLAIN),
              every(other.below(plain) for other in (amplified, *waiting))),
    ]  # fmt: skip
    if len(waiting) < 2:
        return claims
    text = f"wait-full gives no substantial gain: both ways of waiting end about equal ({name})"
    return [*claims, Claim("Figure 1", text, in_words(found, ex.WAIT_MINIBATCH), waiting[0].alike(waiting[1]))]


def all_claims(gallery: Gallery) -> list[Claim]:
    """Every experimental claim of the paper, on the runs of this room."""
    last, scale = gallery.scale.last, gallery.scale
    return [
        *ordering(gallery.four_methods(), last),
        *figure_2(levels(gallery.interval_runs(), last), ex.intervals(scale)),
        *figure_d_1(levels(gallery.always_available_runs(), last)),
        *figure_d_2(levels(gallery.step_size_runs(), last), scale.step_grid),
        *figure_d_3(levels(gallery.multiplier_runs(), last)),
        *toy_claims(gallery),
        *rates.claims(),
        *NETWORKS.claims(gallery),
    ]


def figure_2(found: Mapping[str, Level], P: Sequence[int]) -> list[Claim]:
    """The amplification interval."""
    middle = {f"P = {p}": found[f"P = {p}"] for p in P[1:4]}
    best = min(middle, key=lambda label: middle[label].mean)
    longest = f"P = {P[3]}"
    return [
        Claim("Figure 2", "P = 1 is not the best", in_words(found, best), found[best].below(found["P = 1"])),
        Claim("Figure 2", f"P = {P[1]}, {P[2]} and {P[3]} are about equally good", in_words(found, best),
              every(one.alike(found[best]) for one in middle.values())),
        Claim("Figure 2", f"P = {P[4]} and {P[5]} are worse than {P[3]} (said of CIFAR-10)", in_words(found, longest),
              every(found[longest].below(found[f"P = {p}"]) for p in P[4:])),
    ]  # fmt: skip


def figure_d_1(found: Mapping[str, Level]) -> list[Claim]:
    """Always available clients."""
    independent, regularized = found["independent"], found["regularized"]
    measured = in_words(found, "regularized")
    return [
        Claim("Figure D.1", "independent and regularized participation are similar", measured,
              independent.alike(regularized)),
        Claim("Figure D.1", "regularized participation is marginally better", measured, regularized.below(independent)),
    ]  # fmt: skip


def figure_d_2(found: Mapping[str, Level], grid: Sequence[float]) -> list[Claim]:
    """Step sizes with and without amplification; the grid is ascending."""
    largest, smallest = (f"eta = 10, gamma = {grid[k]:g}" for k in (-1, 0))
    twice = Level(2 * min(s.mean for s in found.values()), 0.0)
    measured = in_words(found, smallest)
    return [
        Claim("Figure D.2", "the largest amplified step is unstable (ends above twice the best)", measured,
              twice.below(found[largest])),
        Claim("Figure D.2", "at the smallest step eta = 10 beats eta = 1", measured,
              found[smallest].below(found[f"eta = 1, gamma = {grid[0]:g}"])),
    ]  # fmt: skip


def figure_d_3(found: Mapping[str, Level]) -> list[Claim]:
    """Amplification factors."""
    around = {label: found[label] for label in ("eta = 5", "eta = 10", "eta = 15")}
    best = min(around, key=lambda label: around[label].mean)
    measured = in_words(found, best)
    return [
        Claim("Figure D.3", "eta = 5, 10 and 15 are similar near convergence", measured,
              every(one.alike(found[best]) for one in around.values())),
        Claim("Figure D.3", "eta = 2 is worse", measured, found[best].below(found["eta = 2"])),
        Claim("Figure D.3", "eta = 20 is worse", measured, found[best].below(found["eta = 20"])),
    ]  # fmt: skip


def toy_claims(gallery: Gallery) -> list[Claim]:
    """Appendix B.1: at equal gamma*eta, small steps with amplification end nearer to the optimum."""
    larger = {f"gamma = {g:g}": ex.step("fedavg", g) | {"local_steps": 1} for g in (0.05, 0.1, 0.25, 0.5)}
    amplified = {f"eta = {e:g}": ex.generalized(0.05, e, 3) | {"local_steps": 1} for e in (1.0, 2.0, 5.0, 10.0)}
    optimum = CENTERS.mean(axis=0)

    def distances(name: str, runs: Mapping[str, Mapping[str, object]]) -> list[float]:
        ends = (v[0].arrays["model"][0, -1] for v in gallery.toy_runs(name, runs).values())
        return [float(np.linalg.norm(end - optimum)) for end in ends]

    plain, with_eta = distances("figure-b.1", larger), distances("figure-b.2", amplified)
    pairs = list(zip(plain, with_eta, strict=True))[1:]
    measured = "; ".join(f"gamma*eta = {0.05 * e:g}: {b:.4f} against {a:.4f}"
                         for e, (a, b) in zip((2, 5, 10), pairs, strict=True))  # fmt: skip
    fixed = fixed_point_distance(0.05)
    return [
        Claim("Figures B.1, B.2", "at equal gamma*eta, amplification ends nearer to x*", measured,
              all(b < a for a, b in pairs)),
        Claim("Appendix B.1", "the amplified iteration converges to x* or a neighborhood of it",
              f"it converges to a fixed point of the cycle at distance {fixed:.4f}, the same for every eta",
              fixed < 0.05),
    ]  # fmt: skip


def fixed_point_distance(gamma: float) -> float:
    """The distance from x* of the fixed point of one cycle of the toy example, which does not depend on eta."""
    weights = np.array([(1 - gamma) ** 2, 1 - gamma, 1.0])
    return float(np.linalg.norm(weights @ CENTERS / weights.sum() - CENTERS.mean(axis=0)))
