"""The main job: generalized FedAvg against its baselines on real images, and exactly under Theorem 3.1."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds.registry import load
from fedbounds.empirical.confront import Confrontation, confront
from fedbounds.empirical.moments import moments
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.participation import PeriodicGroups
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.sweep.executor import Progress
from fedbounds.figures.claims import Claim, level, write_claims
from fedbounds.figures.overlay import overlay
from fedbounds.figures.paper_gallery import Traces, convergence
from fedbounds.figures.papers.arbitrary_participation.claims import ordering
from fedbounds.figures.papers.arbitrary_participation.drawing import Gallery
from fedbounds.figures.papers.arbitrary_participation.experiments import DEMO, SMOKE, Scale
from fedbounds.figures.participation import participation_timeline
from fedbounds.figures.theory import breakdown

THEOREM = "arbitrary-participation/theorem-3.1"
SMALL = {"scale": SMOKE, "rounds": 500}  # of `demonstrate`: the same in seconds, too small to show anything


@dataclass(frozen=True)
class Demonstration:
    """What was found and what was written.

    Attributes:
        levels: method to its (training loss, test accuracy) over the last cycle, with standard errors.
        claims: the paper's ordering, part by part.
        comparisons: the exact run under two forms of Theorem 3.1.
        written: every file.
    """

    levels: dict[str, dict[str, float]]
    claims: list[Claim]
    comparisons: dict[str, Confrontation]
    written: list[Path]

    @property
    def text(self) -> str:
        """The summary for people."""
        lines = ["Generalized FedAvg on images of digits under periodic availability", ""]
        lines.append(f"  {'method':<18} {'training loss':>18} {'test accuracy':>18}   over the last cycle")
        for name, row in sorted(self.levels.items(), key=lambda item: item[1]["train_loss"]):
            loss = f"{row['train_loss']:.4f} +- {row['train_loss_error']:.4f}"
            accuracy = f"{row['test_accuracy']:.4f} +- {row['test_accuracy_error']:.4f}"
            lines.append(f"  {name:<18} {loss:>18} {accuracy:>18}")
        lines += ["", "The ordering that the paper reports"]
        lines += [f"  {c.verdict:<12}  {c.text}" for c in self.claims]
        lines += ["", "The exact expected gradient norm under Theorem 3.1, on a quadratic with known constants"]
        for name, c in self.comparisons.items():
            covered = "a guarantee" if c.guarantee else f"not a guarantee: {'; '.join(c.why_not)}"
            lines.append(
                f"  [{name}] T = {c.rounds[-1]}: {c.measured[-1]:.4g} <= {c.bound[-1]:.4g} ({covered}); "
                f"crossed {len(c.crossings)} times in {len(c.rounds)} T"
            )
        lines += ["", "Written"]
        lines += [f"  {path}" for path in self.written if path.suffix != ".json"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The document that `fedbounds demo --json` prints."""
        return {
            "levels": self.levels,
            "claims": [asdict(claim) for claim in self.claims],
            "theorem": {
                name: {
                    "T": int(c.rounds[-1]),
                    "measured": float(c.measured[-1]),
                    "bound": float(c.bound[-1]),
                    "guarantee": c.guarantee,
                    "why_not": list(c.why_not),
                    "crossings": len(c.crossings),
                }
                for name, c in self.comparisons.items()
            },
            "written": [str(path) for path in self.written],
        }


def demonstrate(
    out: Path,
    *,
    workers: int = 2,
    progress: Progress | None = None,
    device: str | None = None,
    scale: Scale = DEMO,
    rounds: int = 5000,
) -> Demonstration:
    """Run both halves and write figures, data and tables into a directory.

    Args:
        out: the directory; runs are kept in `out/runs`, so that a second call only draws.
        workers: local processes.
        progress: called after every run.
        device: where to compute; a CUDA device, if there is one, by default.
        scale: of the image experiment.
        rounds: T of the exact half.

    Raises:
        FedboundsError: a run failed or a place cannot be written.
    """
    gallery = Gallery(out / "runs", workers=workers, scale=scale, progress=progress, device=device)
    traces = gallery.four_methods()
    claims = ordering(traces, scale.interval)
    steps = ", ".join(f"{name} {size:g}" for name, size in scale.steps.items())
    written = convergence(
        "Periodic availability: amplified FedAvg and its baselines",
        traces,
        scale,
        f"Amplification eta = 10. Local step sizes: {steps}.",
    ).save(out / "periodic.png")
    written.append(write_claims(claims, out / "claims.csv"))

    comparisons = exact_run(rounds)
    for name, comparison in comparisons.items():
        written += overlay(comparison).save(out / f"theorem-3.1-{name}.png")
    written += breakdown(comparisons["explicit"].evaluation).save(out / "breakdown.png")
    weights = periodic(50, 5, 10).matrix(200, np.random.default_rng(0))
    written += participation_timeline(weights, 50, {"process": "periodic groups", "seed": 0}).save(out / "timeline.png")
    return Demonstration(_levels(traces, scale), claims, comparisons, written)


def periodic(clients: int, participants: int, slot: int) -> PeriodicGroups:
    """Five groups of clients, available in turn."""
    return PeriodicGroups(clients, participants, slot=slot, groups=5)


def exact_run(rounds: int) -> dict[str, Confrontation]:
    """Algorithm 1 on a quadratic with a shared Hessian, at the theorem's caps, given one record of participation."""
    problem = random_quadratic(50, 20, heterogeneity=1.0, condition=10.0, noise=0.1, initial_gap=5.0, seed=0)
    local_steps, interval = 5, 50
    step = 1 / (12 * local_steps * interval)  # gamma = 1/(12 L I P) with L = 1; eta = 6 makes gamma eta = 1/(2 L I P)
    weights = periodic(50, 5, 10).matrix(rounds, np.random.default_rng(0))
    run = moments(GeneralizedFedAvg(step, local_steps, 6.0, interval), problem, weights)
    theorem = load(THEOREM)
    return {form: confront(run, theorem, form) for form in ("explicit", "sharp")}


def _levels(traces: Traces, scale: Scale) -> dict[str, dict[str, float]]:
    rows = {}
    for name, some in traces.items():
        loss, wrong = (level(some, scale.interval, metric) for metric in ("train_loss", "test_accuracy"))
        rows[name] = {
            "train_loss": loss.mean,
            "train_loss_error": loss.error,
            "test_accuracy": 1 - wrong.mean,
            "test_accuracy_error": wrong.error,
        }
    return rows
