"""The paper's claims, compared with its bound and with our runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite

import numpy as np

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.convergence_slopes import least_squares
from fedbounds.empirical.papers.tdcd.traffic import round_time
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import FigureClaim, Limits, describe_level, levels_by_name
from fedbounds.figures.charts.paper_gallery import series
from fedbounds.figures.charts.significance import ALIKE, Level, Part, Test, all_agree, is_above_zero
from fedbounds.figures.papers.tdcd import experiments as ex
from fedbounds.figures.papers.tdcd import runs as exact
from fedbounds.figures.papers.tdcd.bounds import LATENCIES, PROBLEM, best_bound_in_time, bound_in_time, steps_up_to
from fedbounds.figures.papers.tdcd.drawing import REACHED, Gallery, Runs, common_level, final_metric, movement

AT = {"L": 1.0, "Lmax": 1.0, "Deltainf": 1.0, "Q": 4, "R": 1000, "eta": 0.01}
SMALL = 1e-4  # a step size at which one local step is far from enough
UNKNOWN = "; not decided, as it is before the first record of Q = 1"


def all_claims(gallery: Gallery) -> list[FigureClaim]:
    """Every claim of the paper."""
    return [*bound_claims(gallery), *exact.claims(), *exact.NETWORKS.claims(gallery), *all_trained_claims(gallery)]


def bound_claims(gallery: Gallery) -> list[FigureClaim]:
    """The claims that the bound decides."""
    Q = steps_up_to(1000, gallery.scale.points)
    given = [bound_in_time(latency, SMALL, Q) for latency in LATENCIES]
    wanted = [float(curve.x[np.nanargmin(curve.y)]) for curve in given]
    best = [best_bound_in_time(latency, Q[::6]) for latency in LATENCIES]
    chosen = [float(curve.x[np.nanargmin(curve.y)]) for curve in best]
    R = np.geomspace(1e6, 1e9, 10)
    rate = evaluate(load("tdcd/remark-5"), {**PROBLEM, "Q": 4, "R": R.round()}, form="explicit:best-c").value
    power = least_squares(R, np.asarray(rate))
    one, two = (
        float(evaluate(load("tdcd/theorem-1"), {**AT, "sigma": sigma}, form="repaired").terms["gradient noise"])
        for sigma in ([2.0], [2.0**0.5, 2.0**0.5])
    )
    at = ", ".join(f"{latency:g}" for latency in LATENCIES)
    return [
        FigureClaim("Theorem 1, text", "more local steps do better in a given time, at a small step size",
              "least at Q = "
              f"{', '.join(f'{q:g}' for q in wanted)} for latencies {at}, step size {SMALL:g}", min(wanted) > 1),
        FigureClaim("Theorem 1, text", "they do so at the step size that is best for each number of them",
              "least at Q = "
              f"{', '.join(f'{q:g}' for q in chosen)} for latencies {at}", min(chosen) > 1),
        FigureClaim("Section 5", "the best number of local steps grows with the latency, at a given step size",
              f"from {wanted[0]:g} to {wanted[-1]:g} where links are ten times slower", wanted[-1] > wanted[0]),
        FigureClaim("Remark 5", "the bound falls like 1/sqrt(R)", f"like R^{power:.2f}", abs(power + 0.5) < 0.01),
        FigureClaim("Theorem 1, text", "the error of one problem grows linearly with the number of silos",
              "noise times "
              f"{two / one:.3g} with two silos, its parameters being divided", abs(two / one - 2) < 0.01),
    ]  # fmt: skip


FIGURES = {
    ex.IMAGES: ("Figure 3", "Figure 6"),
    ex.SEQUENCES: ("Figure 4", "Figure 7"),
    ex.VIEWS: ("Figure 5", "Figure 8"),
}


def all_trained_claims(gallery: Gallery) -> list[FigureClaim]:
    """C1 to C7, the claims of the text on the experiments."""
    claims = []
    for name in gallery.scale.tasks:
        by_clients = {clients: gallery.over_steps(name, clients) for clients in gallery.scale.task(name).clients}
        claims += task_claims(gallery, name, by_clients)
    return [*claims, *silo_claims(gallery)]


def limits(task: ex.Task, symbol: str, runs: Runs, metric: str, steps: int = 0) -> Limits:
    """The runs of a claim, in iterations; `steps` is Q if the runs are not by Q."""
    cells = {f"{symbol} = {value}": (one, steps or value) for value, one in runs.items()}
    return of_network(task) | movement(cells, metric)


def of_network(task: ex.Task) -> Limits:
    """The limit of a task's network."""
    return Limits.of_network(str(task.problem["network"]), ex.PAPER_NETWORKS, "iterations")


def limits_of_times(task: ex.Task, symbol: str, runs: Runs, target: float, steps: int = 0) -> Limits:
    """The limits of times to a level: only runs of which some seed does not reach it need a plateau."""
    missed = {value: one for value, one in runs.items() if not np.isfinite(time_to(one, task.metric, target, 1)).all()}
    return limits(task, symbol, missed, task.metric, steps)


def task_claims(gallery: Gallery, name: str, by_clients: Mapping[int, Runs]) -> list[FigureClaim]:
    """The claims about one task."""
    task, (timed, counted) = gallery.scale.task(name), FIGURES[name]
    claims = []
    for clients, runs in by_clients.items():
        where = f"{name}, K = {clients}"
        target = common_level(gallery.over_steps(name, clients, tuning=True), task.metric)
        reached = limits_of_times(task, "Q", runs, target)
        early = gallery.over_steps(name, clients, early=True)
        claims += reached.apply(is_earlier(timed, where, early, task.metric, latency, target) for latency in LATENCIES)
        when = first_time(gallery.over_steps(name, clients, tuning=True, early=True), task.metric, target)
        quick = {Q: round_time(Q, min(LATENCIES), 1) for Q in runs}
        ended = {Q: one for Q, one in runs.items() if quick[Q] * series(one, task.metric)[0][-1] <= when}
        growing = is_gap_growing(timed, where, early, task.metric, when)
        claims += limits(task, "Q", ended, task.metric).apply([growing])
        for metric, words in (("train_loss", "a higher training loss"), (task.metric, f"a lower {task.metric_name}")):
            finals = {Q: final_metric(one, metric) for Q, one in runs.items()}
            errors = levels_by_name({Q: as_error(values, metric) for Q, values in finals.items()}, "Q")
            found = FigureClaim(
                counted,
                f"with more local steps iterations end at {words} ({where})",
                describe_means(levels_by_name(finals, "Q")),
                all_agree(more.above(fewer) for fewer, more in pairwise(errors.values())),
                f"Text on {counted}: the larger Q, the slower per iteration, and the worse the final loss and metric",
            )
            claims += limits(task, "Q", runs, metric).apply([found])
        claims += limits(task, "Q", {}, "train_loss").apply([converges(counted, where, runs)])
    cells = {f"Q = {Q}, K = {K}": (one, Q) for K, runs in by_clients.items() for Q, one in runs.items()}
    for metric, words in (("train_loss", "a higher loss"), (task.metric, f"a lower {task.metric_name}")):
        errors = levels_by_name({cell: as_error(final_metric(one, metric), metric) for cell, (one, _) in cells.items()})
        few, most = by_clients
        pairs = {Q: [errors[f"Q = {Q}, K = {K}"] for K in (few, most)] for Q in by_clients[few]}
        gaps = {Q: replace(more.minus(less), name=f"Q = {Q}") for Q, (less, more) in pairs.items()}
        found = FigureClaim(
            counted,
            f"more clients in a silo end at {words} ({name})",
            f"by {describe_means(gaps, '+.4f')}",
            all_agree(more.above(less) for less, more in pairs.values()),
            f"Text on {counted}: more clients in a silo end at a slightly higher loss and a slightly lower metric",
        )
        claims += (of_network(task) | movement(cells, metric)).apply([found])
    return claims


def silo_claims(gallery: Gallery) -> list[FigureClaim]:
    """The claims about the number of silos."""
    runs, task = gallery.over_silos(), gallery.scale.task(ex.SEQUENCES)
    losses = levels_by_name({N: final_metric(one, "train_loss") for N, one in runs.items()}, "N")
    finals = levels_by_name({N: final_metric(one, task.metric) for N, one in runs.items()}, "N")
    target = common_level(gallery.over_silos(tuning=True), task.metric)
    early = gallery.over_silos(early=True)
    times = {N: time_to(one, task.metric, target, gallery.scale.shown_steps) for N, one in early.items()}
    reached, said = (
        levels_by_name(times, "N"),
        "Text on Figure 9: more silos end at a higher loss and reach an F1 later",
    )
    most, fewest = max(finals), min(finals)
    lost, scored = (
        limits(task, "N", runs, metric, gallery.scale.shown_steps) for metric in ("train_loss", task.metric)
    )
    return [
        *lost.apply([
            FigureClaim("Figure 9", "more silos end at a higher training loss", describe_means(losses),
                  all_agree(more.above(fewer) for fewer, more in pairwise(losses.values())), said),
        ]),
        *limits_of_times(task, "N", runs, target, gallery.scale.shown_steps).apply([
            FigureClaim("Figure 9", f"more silos reach {REACHED:.0%} of the best gain in {task.metric_name} later",
                  f"{target:.3f} after {describe_means(reached, '.0f')}",
                  all_agree(more.above(fewer) for fewer, more in pairwise(reached.values())), said),
        ]),
        *scored.apply([
            FigureClaim("Introduction", f"more silos degrade little (our border: {ALIKE:.0%})", describe_means(finals),
                  is_little_lower(finals[most], finals[fewest]),
                  "Introduction: little degrades as vertical and horizontal partitions increase"),
        ]),
    ]  # fmt: skip


def is_earlier(source: str, where: str, runs: Runs, metric: str, latency: float, target: float) -> FigureClaim:
    """Whether every Q > 1 reaches a level before Q = 1; None if a model of Q = 1 is there by its first record."""
    times = {Q: time_to(one, metric, target, round_time(Q, latency, 1)) for Q, one in runs.items()}
    known = (series(runs[1], metric)[1][:, :2] < target).all()
    found = levels_by_name(times, "time of Q")
    first, *others = found.values()
    return FigureClaim(
        source,
        f"more local steps reach {REACHED:.0%} of the best gain before one step does ({where}, latency {latency:g})",
        f"{target:.3f} after {describe_means(found, '.0f')}{'' if known else UNKNOWN}",
        all_agree(one.below(first) if known else None for one in others),
        f"Text on {source}: in time Q > 1 reaches a given test metric earlier than Q = 1",
    )


def first_time(runs: Runs, metric: str, target: float) -> float:
    """The time at which the first Q reaches a level on slow links in half of the seeds; infinite if none does."""
    times = {Q: time_to(one, metric, target, round_time(Q, max(LATENCIES), 1)) for Q, one in runs.items()}
    return min(float(np.median(of)) for of in times.values())


def is_gap_growing(source: str, where: str, runs: Runs, metric: str, when: float) -> FigureClaim:
    """Whether others lead over Q = 1 at a time on slow links, and by more than on fast ones.

    Of runs that have ended by then on fast links the end counts, which must be a plateau. None if Q = 1 has no record
    by then on slow links.
    """
    known = series(runs[1], metric)[0][1] * round_time(1, max(LATENCIES), 1) <= when
    leads = []
    for latency in sorted(LATENCIES):
        found = {Q: metric_at_time(one, metric, when / round_time(Q, latency, 1)) for Q, one in runs.items()}
        first = found.pop(min(found))
        leads.append(
            {Q: Level.from_values(value - first, f"lead of Q = {Q}, latency {latency:g}") for Q, value in found.items()}
        )
    quick, slow = leads
    fast, long = (f"{latency:g}" for latency in sorted(LATENCIES))
    told_ = ", ".join(f"Q = {Q}: {quick[Q].mean:+.3f} at latency {fast}, {slow[Q].mean:+.3f} at {long}" for Q in quick)
    parts = [part for Q in quick for part in (is_above_zero(slow[Q]), slow[Q].above(quick[Q]))]
    return FigureClaim(
        source,
        f"at the time of the first to reach {REACHED:.0%} of the best gain the lead over Q = 1 grows with the latency "
        f"({where})",
        f"at {when:.0f}: {told_}{'' if known else UNKNOWN}",
        all_agree(parts if known and isfinite(when) else [None]),
        f"Text on {source}: at a given time the gap between Q > 1 and Q = 1 grows with the latency",
    )


def converges(source: str, where: str, runs: Runs) -> FigureClaim:
    """Whether the training loss falls from the first quarter of the runs to the last, which needs no plateau."""
    parts, told_ = [], []
    for Q, one in runs.items():
        values = series(one, "train_loss")[1][:, 1:]
        quarter = -(-values.shape[1] // 4)
        first = Level.from_values(values[:, :quarter].mean(axis=1), f"first quarter of Q = {Q}")
        last = Level.from_values(values[:, -quarter:].mean(axis=1), f"last quarter of Q = {Q}")
        parts.append(last.below(first))
        told_.append(f"Q = {Q}: {first.mean:.4g}, then {last.mean:.4g}")
    return FigureClaim(
        source, f"TDCD converges: the training loss is lower in the last quarter than in the first ({where})",
        ", ".join(told_), all_agree(parts), "Text on Figures 3 to 9: TDCD converges for all Q, K and N that were tried"
    )  # fmt: skip


def is_little_lower(one: Level, other: Level) -> Part:
    """Whether a score is at most 10 % below another, or above it."""
    gap, margin = one.minus(other), one.times(1 + ALIKE).minus(other)
    return Test(gap, (margin,), f"at most {ALIKE:.0%} lower") if isfinite(gap.mean) and isfinite(gap.error) else None


def as_error(values: np.ndarray, metric: str) -> np.ndarray:
    """A loss, or 1 minus a score, so that runs that diverged are the worst."""
    return values if metric == "train_loss" else 1 - values


def metric_at_time(runs: Sequence[Trace], metric: str, round_: float) -> np.ndarray:
    """A metric at a time, interpolated between records, (seeds,)."""
    rounds, values = series(runs, metric)
    return np.array([np.interp(round_, rounds, row) for row in values])


def time_to(runs: Sequence[Trace], metric: str, target: float, each: float) -> np.ndarray:
    """The first time at which a metric reaches a level, interpolated between records, (seeds,); else infinite.

    A level that an untrained model has counts from the first record after it on.
    """
    rounds, values = series(runs, metric)
    found = []
    for row in values:
        skipped = int(row[0] >= target)
        when, best = rounds[skipped:], np.maximum.accumulate(row[skipped:])
        at = int(np.searchsorted(best, target))
        if at in (0, len(best)):
            found.append(when[0] * each if at == 0 else np.inf)
        else:
            share = (target - best[at - 1]) / (best[at] - best[at - 1])
            found.append((when[at - 1] + share * (when[at] - when[at - 1])) * each)
    return np.array(found, float)


def describe_means(found: Mapping[int, Level], form: str = ".4f") -> str:
    """Means with standard errors, by Q, K or N; infinite ones as not reached."""
    words = {one.name: describe_level(one, form) if isfinite(one.mean) else "not reached" for one in found.values()}
    return ", ".join(f"{name}: {said}" for name, said in words.items())
