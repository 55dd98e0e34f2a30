r"""Figures 3 and 5 as the theory has them: $\tau_i$ fixed for each client, four step sizes tuned for each method.

All clients hold equally many images, so that $p_i=1/n$ and $\tau_i$ has nothing to do with how much a client holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedbounds.empirical.algorithms.workload import DrawnWork
from fedbounds.empirical.streams import Streams
from fedbounds.empirical.sweep import Sweep, resolve
from fedbounds.empirical.trace import Trace
from fedbounds.figures.claims import Claim, Found, above, level
from fedbounds.figures.curves import panels, seed_curve
from fedbounds.figures.paper_gallery import Traces, series
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda.surrogate import chi_squared
from fedbounds.figures.picture import Picture
from fedbounds.figures.tuning import Setting, Tuned, search, tuning_seeds

PHI = {ex.ROBUST: "envelope_lower_estimate", ex.FAIR: "envelope"}
PHI_WORDS = {ex.ROBUST: "$\\Phi$, from below by attack", ex.FAIR: "$\\Phi$, exact"}
STEPS = ("server_step_size", "server_ascent_step_size", "local_step_size", "local_ascent_step_size")


@dataclass(frozen=True)
class Comparison:
    """How large it is.

    Args:
        dataset, network, clients, rounds, seeds, period: as of `experiments.Scale`.
        last: the rounds over which results are averaged; the plateau is judged over twice as many.
        work: the least and the largest number of local steps, one panel each.
        start: all four step sizes, where the search begins.
        budget: settings that each method may try.
        tuning: seeds on which they are tried.
    """

    dataset: str = "digits"
    network: str = "linear"
    clients: int = 15
    rounds: int = 60
    seeds: int = 20
    last: int = 15
    period: int = 5
    work: Sequence[tuple[int, int]] = ((6, 15), (2, 30))
    start: Setting = field(default_factory=lambda: dict.fromkeys(STEPS, 0.1))
    budget: int = 14
    tuning: int = 2

    @property
    def words(self) -> str:
        """For captions."""
        return (
            f"{self.dataset}, network {self.network}, n = {self.clients} clients with equally many images and class "
            f"mixes from Dir({ex.ALPHA:g}), all taking part, batch 32, {self.rounds} rounds, {self.seeds} seeds; the "
            "paper has CIFAR-10 and VGG11, and epochs for steps"
        )


SMOKE = Comparison(clients=10, rounds=10, seeds=2, last=5, work=((2, 3), (1, 4)), budget=2, tuning=1)


def of_scale(scale: ex.Scale) -> Comparison:
    """The comparison on the data of a scale; with a scale of a few rounds, one in seconds."""
    small = scale.rounds < Comparison.rounds
    network = scale.network if small or scale.dataset != "digits" or scale.network != "cnn-small" else "linear"
    return replace(SMOKE if small else Comparison(), dataset=scale.dataset, network=network)


def method(one: Comparison, problem: str, label: str, work: tuple[int, int], steps: Setting) -> dict[str, Any]:
    """Normalized or naive averaging with these step sizes, of clients who always do the same work."""
    drawn = {"low": work[0], "high": work[1], "redraw": False}
    made: dict[str, Any] = {"kind": "fed-norm-sgda", **steps, "local_steps": drawn}
    made["normalized"] = label == ex.NORMALIZED
    if label == ex.MOMENTUM:
        made["optimizer"] = {"momentum": 0.9}
    return made | ({"snapshot_period": one.period} if problem == ex.ROBUST else {})


def sweep(
    one: Comparison, problem: str, methods: Mapping[str, Mapping[str, Any]], seeds: Sequence[int], data: str | None
) -> Sweep:
    """The methods on every seed; a seed decides the split of the data, the work and the minibatches of all alike."""
    name, tasks = f"fed-norm-sgda-comparison-{one.dataset}-{one.network}", []
    for seed in seeds:
        document = {
            "name": name,
            "rounds": one.rounds,
            "seeds": [seed],
            "record_every": one.period,
            "problem": {"kind": problem, "dataset": one.dataset, "network": one.network, "clients": one.clients,
                        "partition": "class-mix", "alpha": ex.ALPHA, "partition_seed": seed,
                        **({} if data is None else {"data": data})},
            "participation": {"kind": "full", "clients": one.clients},
            "algorithms": {label: dict(each) for label, each in methods.items()},
        }  # fmt: skip
        tasks += resolve(document, name).tasks
    return Sweep(name, tuple(tasks), name)


@dataclass(frozen=True)
class Compared:
    """One problem and amount of work: each method's runs, and how it got its step sizes."""

    problem: str
    work: tuple[int, int]
    scale: Comparison
    runs: Traces
    tuned: Mapping[str, Tuned]

    @property
    def chi_squared(self) -> float:
        """Between equal weights and those of naive averaging without momentum, the mean over seeds."""
        p = np.full(self.scale.clients, 1 / self.scale.clients)
        drawn = (DrawnWork(*self.work).numbers(len(p), 0, Streams(seed)) for seed in range(self.scale.seeds))
        return float(np.mean([chi_squared(p, steps / steps.sum()) for steps in drawn]))

    def ends(self, metric: str) -> dict[str, np.ndarray]:
        """The mean over the last rounds, (seeds,), by method."""
        return {label: self._mean(traces, metric, 0) for label, traces in self.runs.items()}

    @property
    def drift(self) -> float:
        """By how much of itself Phi still changes between the last two stretches of rounds, at most."""
        metric = PHI[self.problem]
        pairs = ((self._mean(t, metric, 1).mean(), self._mean(t, metric, 0).mean()) for t in self.runs.values())
        return float(max(abs(after / before - 1) for before, after in pairs))

    def _mean(self, traces: Sequence[Trace], metric: str, back: int) -> np.ndarray:
        rounds, values = series(traces, metric)
        end = rounds[-1] - back * self.scale.last
        return values[:, (rounds > end - self.scale.last) & (rounds <= end)].mean(axis=1)

    def claims(self, source: str) -> list[Claim]:
        """The normalized method against each other: accuracy, which the paper shows, and Phi, which it is about."""
        accuracy, phi = self.ends(ex.ACCURACY[self.problem]), self.ends(PHI[self.problem])
        measured = (
            f"accuracy in %: {_in_words(accuracy, 100)}; Phi: {_in_words(phi)}; chi^2 {self.chi_squared:.2f}; "
            f"Phi moves by {self.drift:.1%} or less over the last {self.scale.last} rounds"
        )
        where, claims = f"tau in {self.work[0]}..{self.work[1]}", []
        for label in (ex.NAIVE, ex.MOMENTUM):
            own, other = ex.written(self.problem, ex.NORMALIZED), ex.written(self.problem, label)
            claims += [
                Claim(source, f"{own} is better than {other} ({where})", measured,
                      above(accuracy[ex.NORMALIZED], accuracy[label])),
                Claim(source, f"{own} ends with a smaller Phi than {other} ({where})", measured,
                      above(phi[label], phi[ex.NORMALIZED])),
            ]  # fmt: skip
        return claims


def _in_words(found: Found, unit: float = 1) -> str:
    return ", ".join(
        f"{k} {unit * v.mean():.4g} +- {unit * v.std(ddof=1) / len(v) ** 0.5:.2g}" for k, v in found.items()
    )


def compare(gallery: Any, problem: str) -> list[Compared]:
    """Tune every method by Phi on seeds of their own, then run it on those that are judged."""
    one, found = of_scale(gallery.scale), []
    for work in one.work:
        tuned, runs = {}, {}
        for label in ex.METHODS:

            def scores(settings: Sequence[Setting], label: str = label, work: tuple[int, int] = work) -> list[float]:
                made = {str(k): method(one, problem, label, work, steps) for k, steps in enumerate(settings)}
                traces = gallery.run(sweep(one, problem, made, tuning_seeds(one.tuning), gallery.data))
                return [level(traces[k], one.last, PHI[problem]).mean for k in made]

            tuned[label] = search(one.start, scores, one.budget)
            made = {label: method(one, problem, label, work, tuned[label].winner)}
            runs |= gallery.run(sweep(one, problem, made, range(one.seeds), gallery.data))
        found.append(Compared(problem, work, one, runs, tuned))
    return found


def picture(title: str, found: Sequence[Compared]) -> Picture:
    """Phi and accuracy against rounds, a panel for each amount of work."""
    groups, labels, notes, provenance = {}, [], [], {}
    for metric in ("phi", "accuracy"):
        for one in found:
            names = PHI if metric == "phi" else ex.ACCURACY
            head = "$\\Phi$" if metric == "phi" else "Accuracy"
            groups[f"{head}, $\\tau_i$ in {one.work[0]}..{one.work[1]}"] = [
                seed_curve(ex.written(one.problem, label), *series(traces, names[one.problem]))
                for label, traces in one.runs.items()
            ]
            labels.append(PHI_WORDS[one.problem] if metric == "phi" else "test accuracy")
    for one in found:
        notes.append(f"tau in {one.work[0]}..{one.work[1]}: chi^2 of naive averaging {one.chi_squared:.2f}")
        provenance[f"tau {one.work}"] = {label: tuned.to_dict() for label, tuned in one.tuned.items()}
    scale = found[0].scale
    return panels(
        groups,
        x_label="round $t$",
        y_labels=labels,
        title=title,
        caption=f"{title}. Each client's tau_i is drawn once per seed and kept, whatever it holds; every method's four "
        f"step sizes have the lowest Phi of {scale.budget} settings of the same search on {scale.tuning} other seeds. "
        f"{'; '.join(notes)}. {scale.words}. Mean and standard deviation over seeds.",
        alternative="Phi and test accuracy against rounds for normalized averaging, naive averaging and momentum.",
        provenance={"scale": scale.words, "tuning": provenance},
    )
