"""What the paper reads off its Figures 3 to 9, against what was trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from fedbounds.empirical.papers.tdcd.traffic import round_time
from fedbounds.empirical.trace import Trace
from fedbounds.figures.claims import Claim, Level, above, every, mean_in_words, positive
from fedbounds.figures.paper_gallery import series
from fedbounds.figures.papers.tdcd import experiments as ex
from fedbounds.figures.papers.tdcd.bounds import LATENCIES
from fedbounds.figures.papers.tdcd.trained import TrainedGallery

REACHED = 0.95  # of the smallest of the final metrics
FIGURES = {
    ex.IMAGES: ("Figure 3", "Figure 6"),
    ex.SEQUENCES: ("Figure 4", "Figure 7"),
    ex.VIEWS: ("Figure 5", "Figure 8"),
}

Values = Mapping[int, np.ndarray]  # Q, K or N -> one number for each seed


def all_trained_claims(gallery: TrainedGallery) -> list[Claim]:
    """C1 to C7 of what the text says of the experiments."""
    claims = []
    for name in gallery.scale.tasks:
        by_clients = {clients: gallery.over_steps(name, clients) for clients in gallery.scale.task(name).clients}
        claims += task_claims(gallery, name, by_clients)
    return [*claims, *silo_claims(gallery)]


def task_claims(
    gallery: TrainedGallery, name: str, by_clients: Mapping[int, Mapping[int, Sequence[Trace]]]
) -> list[Claim]:
    """What is said of one task."""
    task, (timed, counted) = gallery.scale.task(name), FIGURES[name]
    claims = []
    for clients, runs in by_clients.items():
        where = f"{name}, K = {clients}"
        for latency in LATENCIES:
            claims.append(earlier(timed, where, runs, task.metric, latency))
        claims.append(gap_grows(timed, where, runs, task.metric))
        for metric, words, sign in (
            ("train_loss", "a higher training loss", 1),
            (task.metric, f"a lower {task.metric_in_words}", -1),
        ):
            ends = {Q: sign * at_the_end(one, metric) for Q, one in runs.items()}
            claims.append(
                Claim(
                    counted,
                    f"with more local steps iterations end at {words} ({where})",
                    told("Q", ends, sign),
                    every(above(more, fewer) for fewer, more in pairwise(ends.values())),
                )
            )
        claims.append(converges(counted, where, runs))
    few, many = by_clients.values()
    for metric, words, sign in (
        ("train_loss", "a slightly higher loss", 1),
        (task.metric, f"a slightly lower {task.metric_in_words}", -1),
    ):
        gaps = {Q: sign * (at_the_end(many[Q], metric) - at_the_end(few[Q], metric)) for Q in few}
        told_ = ", ".join(f"Q = {Q}: {mean_in_words(gap, '+.4f')}" for Q, gap in gaps.items())
        claims.append(
            Claim(
                counted,
                f"more clients in a silo end at {words} ({name})",
                f"by {told_}",
                every(map(positive, gaps.values())),
            )
        )
    return claims


def silo_claims(gallery: TrainedGallery) -> list[Claim]:
    """What is said of the number of silos."""
    runs, task = gallery.over_silos(), gallery.scale.task(ex.SEQUENCES)
    losses = {N: at_the_end(one, "train_loss") for N, one in runs.items()}
    finals = {N: at_the_end(one, task.metric) for N, one in runs.items()}
    target = REACHED * min(float(one.mean()) for one in finals.values())
    reached = {N: time_to(one, task.metric, target, gallery.scale.shown_steps) for N, one in runs.items()}
    most, fewest = max(finals), min(finals)
    return [
        Claim(
            "Figure 9",
            "more silos end at a higher training loss",
            told("N", losses, 1),
            every(above(more, fewer) for fewer, more in pairwise(losses.values())),
        ),
        Claim(
            "Figure 9",
            f"more silos reach an {task.metric_in_words} later",
            f"{target:.3f} after {told('N', reached, 1, 0)}",
            every(above(more, fewer) for fewer, more in pairwise(reached.values())),
        ),
        Claim(
            "Introduction",
            "more silos degrade little (within 10 %)",
            told("N", finals, 1),
            Level.of(finals[most]).alike(Level.of(finals[fewest])),
        ),
    ]


def earlier(source: str, where: str, runs: Mapping[int, Sequence[Trace]], metric: str, latency: float) -> Claim:
    """Whether every Q > 1 reaches earlier than Q = 1 what both of them reach in the end; not told where Q = 1 is there
    at its first record, as it may have been much before."""
    (_, one), *others = sorted(runs.items())
    parts, told_ = [], []
    for Q, more in others:
        target = REACHED * min(float(at_the_end(some, metric).mean()) for some in (one, more))
        first = time_to(one, metric, target, round_time(1, latency, 1))
        then = time_to(more, metric, target, round_time(Q, latency, 1))
        known = first.min() > series(one, metric)[0][1] * round_time(1, latency, 1)
        parts.append(above(first, then) if known else None)
        when = [mean_in_words(values, ".0f") for values in (then, first)]
        told_.append(f"Q = {Q}: {target:.3f} after {' against '.join(when)}")
    text = f"more local steps reach a level earlier than one ({where}, latency {latency:g})"
    return Claim(source, text, "; ".join(told_), every(parts))


def gap_grows(source: str, where: str, runs: Mapping[int, Sequence[Trace]], metric: str) -> Claim:
    """Whether, when the first run ends on slow links, others lead Q = 1 by more there than on quick links, where runs
    that have ended count as at their end."""
    ends = {Q: series(one, metric)[0][-1] * round_time(Q, max(LATENCIES), 1) for Q, one in runs.items()}
    when = min(ends.values())
    leads = []
    for latency in sorted(LATENCIES):
        found = {Q: at_time(one, metric, when / round_time(Q, latency, 1)) for Q, one in runs.items()}
        first = found.pop(min(found))
        leads.append({Q: value - first for Q, value in found.items()})
    quick, slow = leads
    told_ = ", ".join(f"Q = {Q}: {quick[Q].mean():+.3f}, then {slow[Q].mean():+.3f}" for Q in quick)
    return Claim(
        source,
        f"the lead over Q = 1 at a time grows with the latency ({where})",
        f"at {when:.0f}: {told_}",
        every(above(slow[Q], quick[Q]) for Q in quick),
    )


def converges(source: str, where: str, runs: Mapping[int, Sequence[Trace]]) -> Claim:
    """Whether the training loss of every seed is lower in the last quarter of a run than in the first."""
    falls = []
    for one in runs.values():
        values = series(one, "train_loss")[1][:, 1:]
        quarter = -(-values.shape[1] // 4)
        falls.append(bool((values[:, -quarter:].mean(1) < values[:, :quarter].mean(1)).all()))
    told_ = ", ".join(f"Q = {Q}: {'yes' if fell else 'no'}" for Q, fell in zip(runs, falls, strict=True))
    return Claim(
        source, f"TDCD converges: every seed's loss is lower in the last quarter than in the first ({where})", told_,
        all(falls)
    )  # fmt: skip


def at_the_end(runs: Sequence[Trace], metric: str) -> np.ndarray:
    """The mean over the last tenth of the records, (seeds,)."""
    values = series(runs, metric)[1]
    return values[:, -max(1, values.shape[1] // 10) :].mean(axis=1)


def at_time(runs: Sequence[Trace], metric: str, round_: float) -> np.ndarray:
    """A metric after so many rounds, between records by a line, (seeds,)."""
    rounds, values = series(runs, metric)
    return np.array([np.interp(round_, rounds, row) for row in values])


def time_to(runs: Sequence[Trace], metric: str, target: float, each: float) -> np.ndarray:
    """When a metric first reaches a level after the start, between records by a line, (seeds,); else the end."""
    rounds, values = (found[..., 1:] for found in series(runs, metric))
    found = []
    for row in values:
        best = np.maximum.accumulate(row)
        at = int(np.searchsorted(best, target))
        if at in (0, len(best)):
            found.append(rounds[min(at, len(rounds) - 1)] * each)
        else:
            share = (target - best[at - 1]) / (best[at] - best[at - 1])
            found.append((rounds[at - 1] + share * (rounds[at] - rounds[at - 1])) * each)
    return np.array(found, float)


def told(letter: str, found: Values, sign: int, digits: int = 4) -> str:
    """Means with standard errors, by Q, K or N."""
    return ", ".join(f"{letter} = {k}: {mean_in_words(sign * v, f'.{digits}f')}" for k, v in found.items())
