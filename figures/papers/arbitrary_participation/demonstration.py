"""The demo: generalized FedAvg against its baselines on images, and under Theorem 3.1."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import check_outputs
from fedbounds.bounds.participation.constants import window_means
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.comparison.compare_run import RunComparison, confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.participation import PeriodicGroups
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.moments import moments
from fedbounds.figures.charts.claims import FigureClaim, claims_output, correct, level, write_claims
from fedbounds.figures.charts.overlay import overlay
from fedbounds.figures.charts.paper_gallery import Traces
from fedbounds.figures.charts.picture import COLORS, Curve, Picture, figure_outputs, new_figure
from fedbounds.figures.charts.theory import breakdown
from fedbounds.figures.charts.verdicts import COLUMNS
from fedbounds.figures.papers.arbitrary_participation.claims import figure_1, final_claims
from fedbounds.figures.papers.arbitrary_participation.drawing import Gallery, compare_all, guarantee_picture
from fedbounds.figures.papers.arbitrary_participation.experiments import SMOKE, Scale, demo_scale

WIDTH = 110  # of a line of the summary
EXACT = ("explicit", "sharp")  # forms of the theorem
FIGURES = ("periodic", *(f"theorem-3.1-{form}" for form in EXACT), "breakdown", "timeline", "guarantee")
THEOREM = "arbitrary-participation/theorem-3.1"
SMALL = {
    "scale": SMOKE,
    "rounds": 500,
    "real_rounds": 20,
}  # of `demonstrate`: the same in seconds, too small to show anything


@dataclass(frozen=True)
class Demonstration:
    """The results of the demo."""

    setting: str  # setting, steps: the experiment and its step sizes, in words
    steps: str
    levels: dict[str, dict[str, float]]  # method to final training loss and test accuracy with standard errors
    claims: list[FigureClaim]  # the paper's ordering
    comparisons: dict[str, RunComparison]  # the exact run under two forms of Theorem 3.1
    real: dict[str, RunComparison]  # runs on digits under the sharp form, by participation
    written: list[Path]  # every file

    @property
    def text(self) -> str:
        """The summary."""
        lines = ["Generalized FedAvg on images under periodic availability", ""]
        lines += [*textwrap.wrap(f"{self.setting}.", WIDTH), ""]
        lines += [*textwrap.wrap(f"Step sizes: {self.steps}", WIDTH), ""]
        lines.append(f"  {'method':<18} {'training loss':>18} {'test accuracy':>18}   over the last rounds")
        for name, row in sorted(self.levels.items(), key=lambda item: item[1]["train_loss"]):
            loss = f"{row['train_loss']:.4f} +- {row['train_loss_error']:.4f}"
            accuracy = f"{row['test_accuracy']:.4f} +- {row['test_accuracy_error']:.4f}"
            lines.append(f"  {name:<18} {loss:>18} {accuracy:>18}")
        lines += ["", "The ordering that the paper reports, at this scale, seed by seed"]
        for c in self.claims:
            lines += textwrap.wrap(f"{c.verdict:<14}  {c.text}{f' ({c.note})' if c.note else ''}", WIDTH,
                                   initial_indent="  ", subsequent_indent=" " * 18)  # fmt: skip
        lines += ["", *textwrap.wrap(self.gain, WIDTH, initial_indent="  ", subsequent_indent="  ")]
        lines += ["", "The exact expected gradient norm under Theorem 3.1, on a quadratic with known constants"]
        for name, c in self.comparisons.items():
            covered = "a guarantee" if c.guarantee else f"not a guarantee: {'; '.join(c.why_not)}"
            lines.append(
                f"  [{name}] T = {c.rounds[-1]}: {c.measured[-1]:.4g} <= {c.bound[-1]:.4g} ({covered}); "
                f"crossed {len(c.crossings)} times in {len(c.rounds)} T"
            )
        lines += ["", "Logistic regression on scikit-learn's digits under Theorem 3.1, every constant exact or proved"]
        for name, c in self.real.items():
            covered = "a guarantee" if c.guarantee else f"not a guarantee: {'; '.join(c.why_not)}"
            lines.append(f"  {name}, T = {c.rounds[-1]}: {c.measured[-1]:.4g} <= {c.bound[-1]:.4g} ({covered})")
        lines += ["", "Written"]
        lines += [f"  {path}" for path in self.written if path.suffix != ".json"]
        return "\n".join(lines)

    @property
    def gain(self) -> str:
        """The effect of amplification in a sentence."""
        best = self.claims[0]
        if best.agrees is None:
            return f"Whether amplification helps cannot be told from these runs: {best.measured}"
        return f"Amplification {'helps' if best.agrees else 'is not best'} here: {best.measured}"

    def to_dict(self) -> dict[str, Any]:
        """The document that `fedbounds demo --json` prints."""
        return {
            "setting": self.setting,
            "steps": self.steps,
            "levels": self.levels,
            "claims": [dict(zip(COLUMNS, claim.row, strict=True)) for claim in self.claims],
            "theorem": {name: _end(c) for name, c in self.comparisons.items()},
            "real": {name: _end(c) for name, c in self.real.items()},
            "written": [str(path) for path in self.written],
        }


def demonstrate(
    out: Path,
    *,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
    device: str | None = None,
    scale: Scale | None = None,
    rounds: int = 5000,
    real_rounds: int = 600,
    force: bool = False,
) -> Demonstration:
    """Run everything and write figures, data and tables into a directory; runs are kept in `out/runs`.

    `scale` is of the image experiment (default: `demo_scale`), `rounds` and `real_rounds` are T of the exact part and
    of the part on digits, `progress` is called after every run.
    """
    figures = [output for name in FIGURES for output in figure_outputs(out / f"{name}.png")]
    check_outputs([*figures, claims_output(out / "claims.csv")], force)
    scale = demo_scale() if scale is None else scale
    gallery = Gallery(out / "runs", workers=workers, scale=scale, progress=progress, device=device)
    traces = gallery.four_methods()
    claims = correct(final_claims(scale, traces, figure_1))
    note = f"Amplification eta = 10. Local step sizes: {gallery.describe_tuning()}"
    title = "Periodic availability: amplified FedAvg and its baselines"
    written = gallery.convergence(title, traces, note).save(out / "periodic.png", force=force)
    written.append(write_claims(claims, out / "claims.csv", force=force))

    comparisons = exact_run(rounds)
    for name, comparison in comparisons.items():
        written += overlay(comparison).save(out / f"theorem-3.1-{name}.png", force=force)
    written += breakdown(comparisons["explicit"].evaluation).save(out / "breakdown.png", force=force)
    weights = periodic(50, 5, 10).matrix(200, np.random.default_rng(0))
    timeline = participation_timeline(weights, 50, {"process": "periodic groups", "seed": 0})
    written += timeline.save(out / "timeline.png", force=force)
    real = compare_all(real_rounds)
    written += guarantee_picture(real).save(out / "guarantee.png", force=force)
    levels = _levels(traces, scale)
    return Demonstration(scale.words, gallery.describe_tuning(), levels, claims, comparisons, real, written)


def periodic(clients: int, participants: int, slot: int) -> PeriodicGroups:
    """Five groups of clients, available cyclically."""
    return PeriodicGroups(clients, participants, slot=slot, groups=5)


def exact_run(rounds: int) -> dict[str, RunComparison]:
    """Algorithm 1 on a quadratic with a shared Hessian, at the theorem's caps, given one record of participation."""
    problem = random_quadratic(50, 20, heterogeneity=1.0, condition=10.0, noise=0.1, initial_gap=5.0, seed=0)
    local_steps, interval = 5, 50
    step = 1 / (12 * local_steps * interval)  # gamma = 1/(12 L I P) with L = 1; eta = 6 makes gamma eta = 1/(2 L I P)
    weights = periodic(50, 5, 10).matrix(rounds, np.random.default_rng(0))
    run = moments(GeneralizedFedAvg(step, local_steps, 6.0, interval), problem, weights)
    theorem = load(THEOREM)
    return {form: confront(run, theorem, form) for form in EXACT}


def _end(c: RunComparison) -> dict[str, Any]:
    """Measured value and bound at the largest T."""
    return {
        "T": int(c.rounds[-1]),
        "measured": float(c.measured[-1]),
        "bound": float(c.bound[-1]),
        "guarantee": c.guarantee,
        "why_not": list(c.why_not),
        "crossings": len(c.crossings),
    }


def _levels(traces: Traces, scale: Scale) -> dict[str, dict[str, float]]:
    rows = {}
    for name, some in traces.items():
        loss, wrong = (level(some, scale.last, metric) for metric in ("train_loss", "test_accuracy"))
        rows[name] = {
            "train_loss": loss.mean,
            "train_loss_error": loss.error,
            "test_accuracy": 1 - wrong.mean,
            "test_accuracy_error": wrong.error,
        }
    return rows


def participation_timeline(weights: np.ndarray, interval: int, provenance: Mapping[str, Any] | None = None) -> Picture:
    """Weights q (rounds, clients) by round, above the range of the clients' mean weights in windows of P rounds."""
    q = np.asarray(weights, dtype=float)
    if q.ndim != 2 or len(q) < interval:
        raise FedboundsError(f"participation timeline: shape {q.shape} is not (rounds >= {interval}, clients)")
    means = window_means(q, interval)
    starts = interval * np.arange(len(means))
    with new_figure(6.8, 4.6) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
        top.grid(visible=False)
        image = top.imshow(q.T, aspect="auto", interpolation="nearest", cmap="Greys", origin="lower",
                           extent=(-0.5, len(q) - 0.5, 0.5, q.shape[1] + 0.5))  # fmt: skip
        figure.colorbar(image, ax=top, label="weight $q_t^n$", shrink=0.9)
        top.yaxis.get_major_locator().set_params(integer=True)
        top.set_ylabel("client $n$")
        for start in starts[1:]:
            top.axvline(start - 0.5, color=COLORS[0], linewidth=0.6, alpha=0.6)
        edges = interval * np.arange(len(means) + 1)
        bottom.stairs(means.max(axis=1), edges, baseline=None, color=COLORS[1], label="largest", linewidth=1.6)
        bottom.stairs(
            means.min(axis=1), edges, baseline=None, color=COLORS[0], label="smallest", linewidth=1.6, linestyle="--"
        )
        bottom.axhline(1 / q.shape[1], color="black", linewidth=0.8, linestyle=":", label="$1/N$")
        bottom.set(ylabel="mean weight\nper window", xlabel="round $t$")
        bottom.margins(y=0.35)
        bottom.legend(ncols=3, loc="upper right")
        top.set_title(f"Participation of {q.shape[1]} clients, windows of {interval} rounds")
    return Picture(
        figure,
        f"Weights of {q.shape[1]} clients over {len(q)} rounds (above) and the largest and smallest mean weight of a "
        f"client over each window of {interval} rounds (below); equal means make the window divergence vanish.",
        f"Timeline of participation; window means range from {means.min():.3g} to {means.max():.3g}.",
        [
            Curve("largest window mean", starts.astype(float), means.max(axis=1)),
            Curve("smallest window mean", starts.astype(float), means.min(axis=1)),
            Curve("participants", np.arange(len(q), dtype=float), (q > 0).sum(axis=1).astype(float)),
        ],
        provenance or {},
    )
