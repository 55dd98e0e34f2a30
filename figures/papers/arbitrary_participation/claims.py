"""The paper's experimental claims against what we measured, with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedbounds.empirical.trace import Trace
from fedbounds.figures.claims import Claim, Level, every, in_words, levels
from fedbounds.figures.papers.arbitrary_participation import experiments as ex
from fedbounds.figures.papers.arbitrary_participation.drawing import CENTERS, Gallery

METRICS = {"train_loss": "training loss", "test_accuracy": "test error"}


def ordering(runs: Mapping[str, Sequence[Trace]], cycle: int) -> list[Claim]:
    """Figure 1's ordering, part by part, in training loss and in test error."""
    return figure_1({name: levels(runs, cycle, metric) for metric, name in METRICS.items()})


def figure_1(by_metric: Mapping[str, Mapping[str, Level]]) -> list[Claim]:
    """The ordering of the four methods."""
    claims = []
    for name, found in by_metric.items():
        amplified, plain = found[ex.AMPLIFIED], found[ex.PLAIN]
        minibatch, full = found[ex.WAIT_MINIBATCH], found[ex.WAIT_FULL]
        measured = f"{name} over the last cycle: {in_words(found)}"
        claims += [
            Claim("Figure 1", f"amplified Algorithm 1 is best ({name})", measured,
                  every(amplified.below(other) for other in (plain, minibatch, full))),
            Claim("Figure 1", f"wait-minibatch and wait-full are about equal ({name})", measured,
                  minibatch.alike(full)),
            Claim("Figure 1", f"FedAvg without amplification is last ({name})", measured,
                  every(other.below(plain) for other in (amplified, minibatch, full))),
        ]  # fmt: skip
    return claims


def all_claims(gallery: Gallery) -> list[Claim]:
    """Every experimental claim of the paper, on the runs of this room."""
    cycle, scale = gallery.scale.interval, gallery.scale
    return [
        *ordering(gallery.four_methods(), cycle),
        *figure_2(levels(gallery.interval_runs(), cycle), ex.intervals(scale)),
        *figure_d_1(levels(gallery.always_available_runs(), cycle)),
        *figure_d_2(levels(gallery.step_size_runs(), cycle), scale.step_grid),
        *figure_d_3(levels(gallery.multiplier_runs(), cycle)),
        *toy_claims(gallery),
    ]


def figure_2(found: Mapping[str, Level], P: Sequence[int]) -> list[Claim]:
    """The amplification interval."""
    middle = [found[f"P = {p}"] for p in P[1:4]]
    best = min(middle, key=lambda one: one.mean)
    measured = in_words(found)
    return [
        Claim("Figure 2", "P = 1 is not the best", measured, best.below(found["P = 1"])),
        Claim("Figure 2", f"P = {P[1]}, {P[2]} and {P[3]} are about equally good", measured,
              every(one.alike(best) for one in middle)),
        Claim("Figure 2", f"P = {P[4]} and {P[5]} are worse than {P[3]}", measured,
              every(middle[2].below(found[f"P = {p}"]) for p in P[4:])),
    ]  # fmt: skip


def figure_d_1(found: Mapping[str, Level]) -> list[Claim]:
    """Always available clients."""
    independent, regularized = found["independent"], found["regularized"]
    return [
        Claim("Figure D.1", "independent and regularized participation are similar", in_words(found),
              independent.alike(regularized)),
        Claim("Figure D.1", "regularized participation is marginally better", in_words(found),
              regularized.below(independent)),
    ]  # fmt: skip


def figure_d_2(found: Mapping[str, Level], grid: Sequence[float]) -> list[Claim]:
    """Step sizes with and without amplification."""
    largest, smallest = (found[f"eta = 10, gamma = {grid[k]:g}"] for k in (0, -1))
    twice = Level(2 * min(s.mean for s in found.values()), 0.0)
    return [
        Claim("Figure D.2", "the largest amplified step is unstable", in_words(found), twice.below(largest)),
        Claim("Figure D.2", "at the smallest step eta = 10 beats eta = 1", in_words(found),
              smallest.below(found[f"eta = 1, gamma = {grid[-1]:g}"])),
    ]  # fmt: skip


def figure_d_3(found: Mapping[str, Level]) -> list[Claim]:
    """Amplification factors."""
    around = [found[f"eta = {eta}"] for eta in (5, 10, 15)]
    best = min(around, key=lambda one: one.mean)
    return [
        Claim("Figure D.3", "eta = 5, 10 and 15 end alike", in_words(found), every(one.alike(best) for one in around)),
        Claim("Figure D.3", "eta = 2 is worse", in_words(found), best.below(found["eta = 2"])),
        Claim("Figure D.3", "eta = 20 is worse", in_words(found), best.below(found["eta = 20"])),
    ]


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
