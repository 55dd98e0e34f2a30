"""The experiments as sweep documents: periodic availability of image classes, and the toy example."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from fedbounds.empirical.sweep import Sweep, resolve
from fedbounds.figures.charts.tuning import describe_decay, describe_images, images_of, scale_named, with_data

AMPLIFIED, PLAIN = "amplified", "no amplification"
WAIT_MINIBATCH, WAIT_FULL = "wait-minibatch", "wait-full"


@dataclass(frozen=True)
class Scale:
    """The size of an experiment.

    The paper: N = 250, S = 10, slots of 100 rounds, P = 500, 300,000 rounds (FashionMNIST) or 600,000 (CIFAR-10) after
    2,000 or 4,000 initial ones, 10 or 5 seeds, I = 5, batch 16.
    """

    dataset: str
    network: str
    clients: int  # clients, participants, slot: N, S and the rounds that a group of classes is available
    participants: int
    slot: int
    initial_step: float  # initial_step, initial_rounds: of plain FedAvg before the methods start
    initial_rounds: int
    rounds: int  # rounds, seeds: of the methods
    seeds: int
    step_grid: Sequence[float]  # local step sizes for tuning, ascending
    record_every: int  # some cycles and one slot, so that five records in a row meet all groups
    tuning_seeds: int = 2
    tuning_rounds: int | None = None  # of the runs that choose step sizes, and of Figure D.2 (default: `rounds`)
    size: tuple[int, ...] | None = None  # training images, test images and side of a generated data set
    waits_fully: bool = True  # whether wait-full is among the methods
    steps: Mapping[str, float] | None = None  # the step sizes, if tuned before
    seeds_per_run: int | None = None  # computed together (default: all; one for CNNs)
    weight_decay: float = 0.0  # with it losses reach a plateau within fewer rounds

    @property
    def interval(self) -> int:
        """P: one cycle through the five groups."""
        return 5 * self.slot

    @property
    def last(self) -> int:
        """The last rounds, over which levels are taken: a tenth of the rounds, and at least five records."""
        return max(5 * self.record_every, self.rounds // 10)

    @property
    def shorter(self) -> Scale:
        """The scale of the runs that choose step sizes."""
        return replace(self, rounds=self.tuning_rounds or self.rounds)

    @property
    def data(self) -> str | dict[str, Any]:
        """The data set as specifications have it."""
        return images_of(self.dataset, self.size)

    @property
    def methods(self) -> tuple[str, ...]:
        """Those of Figure 1 that are run."""
        return (AMPLIFIED, WAIT_MINIBATCH, *([WAIT_FULL] if self.waits_fully else []), PLAIN)

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        left_out = "" if self.waits_fully else ", without wait-full, which passes over all images in every interval"
        return self._describe(
            f"five groups of two classes available for {self.slot} rounds cyclically, P = {self.interval}, "
            f"{self.rounds} rounds after {self.initial_rounds} initial ones{left_out}",
            "slots of 100 rounds, P = 500 and 300,000 rounds or more",
        )

    @property
    def words_if_always_available(self) -> str:
        """The same for runs in which all clients are available."""
        return self._describe(f"all available, {self.initial_rounds + self.rounds} rounds", "300,000 rounds or more")

    def _describe(self, availability: str, paper: str) -> str:
        return (
            f"{describe_images(self.dataset, self.size)}, network {self.network}, "
            f"{describe_decay(self.weight_decay)}N = {self.clients}, S = {self.participants}, I = 5, batch 16, "
            f"{availability}, {self.seeds} seeds; the paper has N = 250, S = 10, {paper}"
        )


PAPER_NETWORKS = ("cnn", "cnn-cifar")  # the paper's, scaled to the image
# The paper's grid is {1, 0.1, ..., 0.0001} times the initial step; this one is finer and less long.
GRID = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
DECADES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
DIGITS = Scale("digits", "mlp", 50, 5, 10, 0.1, 960, 100_000, 10, GRID, 160, tuning_rounds=24_000, weight_decay=0.02)
SCALES = {
    "digits": DIGITS,
    "glyphs": Scale(
        "glyphs", "mlp", 50, 5, 10, 0.1, 3120, 20_040, 5, GRID, 60, size=(20_000, 4_000, 14), waits_fully=False
    ),
    "fashion-mnist": Scale("fashion-mnist", "cnn", 50, 5, 20, 0.1, 120, 600, 2, GRID, 120),
    "cifar-10": Scale("cifar-10", "cnn-cifar", 50, 5, 20, 0.05, 120, 600, 2, GRID, 120),
}
SMOKE = Scale("digits", "linear", 20, 2, 2, 0.1, 24, 60, 2, (1e-3, 1e-2), 12)


def demo_scale() -> Scale:
    """The scale of `fedbounds demo`: the gallery's with fewer seeds and rounds, and step sizes tuned before."""
    manifest = json.loads(files("fedbounds.figures.papers.arbitrary_participation").joinpath("tuned.json").read_text())
    winners = {name: float(found["winner"]["gamma"]) for name, found in manifest["provenance"].items()}
    return replace(DIGITS, seeds=3, rounds=6000, record_every=120, steps=winners, seeds_per_run=1)


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale of a data set, with another network if given; `full`: the paper's clients, rounds, seeds and grid."""
    scale = scale_named(SCALES, dataset, network)
    if not full:
        return scale
    cifar = dataset == "cifar-10"
    grid = tuple(float(f"{factor * scale.initial_step:g}") for factor in DECADES)
    return replace(scale, clients=250, participants=10, slot=100, initial_rounds=4000 if cifar else 2000,
                   rounds=600_000 if cifar else 300_000, seeds=5 if cifar else 10, record_every=600,
                   step_grid=grid, waits_fully=True, weight_decay=0.0, tuning_rounds=None)  # fmt: skip


def four_methods(scale: Scale, steps: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Algorithm 1 with and without amplification and the waiting methods, with their step sizes."""
    return {name: method(scale, name, steps[name]) for name in scale.methods}


def method(scale: Scale, name: str, size: float) -> dict[str, Any]:
    """One of the methods with a step size."""
    if name == AMPLIFIED:
        return generalized_fedavg(size, 10.0, scale.interval)
    return step("fedavg", size) if name == PLAIN else step(name, size, interval=scale.interval)


def step(kind: str, size: float, **more: Any) -> dict[str, Any]:
    """An algorithm with five local steps of this size."""
    return {"kind": kind, "local_step_size": size, "local_steps": 5, **more}


def generalized_fedavg(size: float, multiplier: float, interval: int) -> dict[str, Any]:
    """Algorithm 1."""
    return step("generalized-fedavg", size, server_multiplier=multiplier, interval=interval)


def image_sweep(
    name: str,
    scale: Scale,
    methods: Mapping[str, Mapping[str, Any]],
    participation: Mapping[str, Any] | None = None,
    data: str | None = None,
    seeds: Sequence[int] | None = None,
) -> Sweep:
    """Methods after a common phase of plain FedAvg, by default under periodic availability and for all seeds."""
    problem: dict[str, Any] = {
        "kind": "images",
        "dataset": scale.data,
        "network": scale.network,
        "clients": scale.clients,
        "weight_decay": scale.weight_decay,
    }
    periodic = {"kind": "periodic-groups", "clients": scale.clients, "participants": scale.participants,
                "groups": 5, "slot": scale.slot}  # fmt: skip
    run = list(range(scale.seeds) if seeds is None else seeds)
    first = {"rounds": scale.initial_rounds, "algorithm": step("fedavg", scale.initial_step)}
    document = {
        "name": name,
        "rounds": scale.initial_rounds + scale.rounds,
        "seeds": run,
        "seeds_per_run": scale.seeds_per_run or (1 if scale.network.startswith("cnn") else len(run)),
        "record_every": scale.record_every,
        "problem": with_data(problem, data),
        "participation": dict(participation or periodic),
        "algorithms": {label: {"phases": [first, {"algorithm": dict(m)}]} for label, m in methods.items()},
    }
    return resolve(document, name)


def intervals(scale: Scale) -> list[int]:
    """Figure 2's P: the paper's 1, 100, 300, 500, 700, 900 in units of one slot."""
    return [1, *(k * scale.slot for k in (1, 3, 5, 7, 9))]


def toy_sweep(name: str, algorithms: Mapping[str, Mapping[str, Any]]) -> Sweep:
    """The toy example of Appendix B.1: three clients, one per round in turn, 15 rounds, I = 1, no noise."""
    document = {
        "name": name,
        "rounds": 15,
        "record_models": True,
        "problem": {"kind": "toy"},
        "participation": {"kind": "cyclic", "clients": 3},
        "algorithms": {label: dict(a) for label, a in algorithms.items()},
    }
    return resolve(document, name)
