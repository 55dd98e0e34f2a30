"""The paper's experimental claims, compared with our runs."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import FigureClaim, describe_levels, levels, limits_of
from fedbounds.figures.charts.significance import ALIKE, Level, all_agree, any_agrees
from fedbounds.figures.papers.arbitrary_participation import experiments as ex
from fedbounds.figures.papers.arbitrary_participation import rates
from fedbounds.figures.papers.arbitrary_participation.drawing import CENTERS, Gallery
from fedbounds.figures.papers.arbitrary_participation.network import NETWORKS

METRICS = {"train_loss": "training loss", "test_accuracy": "test error"}
WITHIN = f"our border: {ALIKE:.0%} of the smaller"
Runs = Mapping[str, Sequence[Trace]]
Judge = Callable[[Mapping[str, Level], str], list[FigureClaim]]  # of levels by setting, and the metric in words


def final_claims(scale: ex.Scale, runs: Runs, judge: Judge) -> list[FigureClaim]:
    """The claims about the ends of some runs, in training loss and in test error, with the limits of the scale."""
    return [
        claim
        for metric, name in METRICS.items()
        for claim in limits_of(scale.network, ex.PAPER_NETWORKS, runs, scale.last, metric).apply(
            judge(levels(runs, scale.last, metric), name)
        )
    ]


def figure_1(found: Mapping[str, Level], name: str) -> list[FigureClaim]:
    """The ordering of the methods."""
    amplified, plain = found[ex.AMPLIFIED], found[ex.PLAIN]
    waiting = [found[label] for label in (ex.WAIT_MINIBATCH, ex.WAIT_FULL) if label in found]
    claims = [
        FigureClaim("Figure 1", f"amplified Algorithm 1 is best ({name})", describe_levels(found, ex.AMPLIFIED),
              all_agree(amplified.below(other) for other in (plain, *waiting)),
              "Text on Figure 1: Algorithm 1 with amplification performs best of the four methods"),
        FigureClaim("Figure 1", f"FedAvg without amplification is last ({name})", describe_levels(found, ex.PLAIN),
              all_agree(other.below(plain) for other in (amplified, *waiting)),
              "Text on Figure 1: the waiting methods come next, Algorithm 1 without amplification last"),
    ]  # fmt: skip
    if len(waiting) < 2:
        return claims
    text = f"both ways of waiting end about equal ({name}; {WITHIN})"
    said = "Text on Figure 1: wait-full gives no substantial gain over wait-minibatch"
    return [
        *claims,
        FigureClaim("Figure 1", text, describe_levels(found, ex.WAIT_MINIBATCH), waiting[0].alike(waiting[1]), said),
    ]


def all_claims(gallery: Gallery) -> list[FigureClaim]:
    """Every experimental claim of the paper."""
    scale = gallery.scale
    return [
        *final_claims(scale, gallery.four_methods(), figure_1),
        *final_claims(scale, gallery.interval_runs(), lambda found, name: figure_2(found, name, ex.intervals(scale))),
        *final_claims(scale, gallery.always_available_runs(), figure_d_1),
        *final_claims(
            scale.shorter,
            gallery.shorter.step_size_runs(),
            lambda found, name: figure_d_2(found, name, scale.step_grid),
        ),
        *final_claims(scale, gallery.multiplier_runs(), figure_d_3),
        *toy_claims(gallery),
        *rates.claims(),
        *NETWORKS.claims(gallery),
    ]


def figure_2(found: Mapping[str, Level], name: str, P: Sequence[int]) -> list[FigureClaim]:
    """The amplification interval."""
    shorter, longest = [found[f"P = {p}"] for p in P[1:3]], found[f"P = {P[3]}"]
    measured = describe_levels(found, f"P = {P[3]}")
    return [
        FigureClaim("Figure 2", f"P = 1 is not the best ({name})", measured,
              any_agrees(one.below(found["P = 1"]) for one in (*shorter, longest)),
              "Text on Figure 2: amplification in every round, P = 1, is not the best choice"),
        FigureClaim("Figure 2", f"P = {P[1]} and {P[2]} are about as good as {P[3]} ({name}; {WITHIN})", measured,
              all_agree(one.alike(longest) for one in shorter),
              "Text on Figure 2: P = 100 and 300 are about as good as 500, on CIFAR-10 slightly better"),
        FigureClaim("Figure 2", f"P = {P[4]} and {P[5]} are worse than {P[3]} ({name})", measured,
              all_agree(longest.below(found[f"P = {p}"]) for p in P[4:]),
              "Text on Figure 2, of CIFAR-10: P = 700 and 900 are worse than 500"),
    ]  # fmt: skip


def figure_d_1(found: Mapping[str, Level], name: str) -> list[FigureClaim]:
    """Always available clients."""
    independent, regularized = found["independent"], found["regularized"]
    measured, said = (
        describe_levels(found, "regularized"),
        "Appendix D, on Figure D.1: the two are similar, regularized ",
    )
    return [
        FigureClaim("Figure D.1", f"independent and regularized participation are similar ({name}; {WITHIN})", measured,
              independent.alike(regularized), f"{said}participation marginally better"),
        FigureClaim("Figure D.1", f"regularized participation is better ({name})", measured,
              regularized.below(independent), f"{said}participation marginally better"),
    ]  # fmt: skip


def figure_d_2(found: Mapping[str, Level], name: str, grid: Sequence[float]) -> list[FigureClaim]:
    """Step sizes with and without amplification; the grid is ascending."""
    largest, smallest = (f"eta = 10, gamma = {grid[k]:g}" for k in (-1, 0))
    best, measured = min(found.values(), key=lambda one: one.mean), describe_levels(found, smallest)
    return [
        FigureClaim("Figure D.2",
              f"the largest amplified step is unstable ({name}; our border: ends above twice the best)", measured,
              best.times(2).below(found[largest]),
              "Appendix D, on Figure D.2: large local step sizes are unstable with amplification"),
        FigureClaim("Figure D.2", f"at the smallest step eta = 10 is better than eta = 1 ({name})", measured,
              found[smallest].below(found[f"eta = 1, gamma = {grid[0]:g}"]),
              "Appendix D, on Figure D.2: at the smallest gamma, eta = 10 is better than eta = 1"),
    ]  # fmt: skip


def figure_d_3(found: Mapping[str, Level], name: str) -> list[FigureClaim]:
    """Amplification factors."""
    five, ten, fifteen = (found[f"eta = {eta}"] for eta in (5, 10, 15))
    measured, said = describe_levels(found, "eta = 10"), "Appendix D, on Figure D.3: "
    return [
        FigureClaim("Figure D.3", f"eta = 5 and 15 are similar to 10 near convergence ({name}; {WITHIN})", measured,
              all_agree(one.alike(ten) for one in (five, fifteen)),
              f"{said}eta = 5, 10 and 15 are similar near convergence"),
        FigureClaim("Figure D.3", f"eta = 2 is worse than 10 ({name})", measured, ten.below(found["eta = 2"]),
              f"{said}eta = 2 is worse"),
        FigureClaim("Figure D.3", f"eta = 20 is worse than 10 ({name})", measured, ten.below(found["eta = 20"]),
              f"{said}eta = 20 fluctuates more and is worse"),
    ]  # fmt: skip


def toy_claims(gallery: Gallery) -> list[FigureClaim]:
    """Appendix B.1: at equal gamma*eta, small steps with amplification end nearer to the optimum."""
    larger = {f"gamma = {g:g}": ex.step("fedavg", g) | {"local_steps": 1} for g in (0.05, 0.1, 0.25, 0.5)}
    amplified = {f"eta = {e:g}": ex.generalized_fedavg(0.05, e, 3) | {"local_steps": 1} for e in (1.0, 2.0, 5.0, 10.0)}
    optimum = CENTERS.mean(axis=0)

    def distances(name: str, runs: Mapping[str, Mapping[str, object]]) -> list[float]:
        ends = (v[0].arrays["model"][0, -1] for v in gallery.toy_runs(name, runs).values())
        return [float(np.linalg.norm(end - optimum)) for end in ends]

    plain, with_eta = distances("figure-b.1", larger), distances("figure-b.2", amplified)
    pairs = list(zip(plain, with_eta, strict=True))[1:]
    measured = "; ".join(f"gamma*eta = {0.05 * e:g}: {b:.4f} with amplification, {a:.4f} without"
                         for e, (a, b) in zip((2, 5, 10), pairs, strict=True))  # fmt: skip
    fixed = fixed_point_distance(0.05)
    return [
        FigureClaim("Figures B.1, B.2", "at equal gamma*eta, amplification ends nearer to x*", measured,
              all(b < a for a, b in pairs),
              "Appendix B.1, on Figures B.1 and B.2: small gamma with a larger eta ends nearer to the optimum"),
        FigureClaim("Appendix B.1", "the amplified iteration converges to x* or a neighborhood of it",
              f"it converges to a fixed point of the cycle at distance {fixed:.4f}, the same for every eta",
              fixed < 0.05),
    ]  # fmt: skip


def fixed_point_distance(gamma: float) -> float:
    """The distance from x* of the fixed point of one cycle of the toy example, which does not depend on eta."""
    weights = np.array([(1 - gamma) ** 2, 1 - gamma, 1.0])
    return float(np.linalg.norm(weights @ CENTERS / weights.sum() - CENTERS.mean(axis=0)))
