"""The experiments behind the figures as sweep documents: periodic availability of image classes, the toy example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedbounds.bounds.errors import unknown_name
from fedbounds.empirical.sweep import Sweep, resolve

AMPLIFIED, PLAIN = "amplified", "no amplification"
WAIT_MINIBATCH, WAIT_FULL = "wait-minibatch", "wait-full"


@dataclass(frozen=True)
class Scale:
    """How large an experiment is; the paper's own numbers are N = 250, S = 10, slots of 100 rounds, P = 500, 300,000
    rounds (FashionMNIST) or 600,000 (CIFAR-10) after 2,000 or 4,000 initial ones, 10 or 5 seeds, I = 5, batch 16.

    Args:
        dataset, network: what is learned.
        clients, participants, slot: N, S and the rounds that a group of classes is available.
        initial_step, initial_rounds: plain FedAvg before the methods part.
        rounds: after the initial ones.
        seeds: how many runs.
        steps: the local step size of each method.
        step_grid: of Figure D.2.
        record_every: rounds between evaluations.
    """

    dataset: str
    network: str
    clients: int
    participants: int
    slot: int
    initial_step: float
    initial_rounds: int
    rounds: int
    seeds: int
    steps: Mapping[str, float]
    step_grid: Sequence[float]
    record_every: int = 10

    @property
    def interval(self) -> int:
        """P: one cycle through the five groups."""
        return 5 * self.slot

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        return (
            f"{self.dataset}, network {self.network}, N = {self.clients}, S = {self.participants}, I = 5, batch 16, "
            f"five groups of two classes available for {self.slot} rounds in turn, P = {self.interval}, "
            f"{self.rounds} rounds after {self.initial_rounds} initial ones, {self.seeds} seeds; the paper has "
            "N = 250, S = 10, slots of 100 rounds, P = 500 and 300,000 rounds or more"
        )


# Picked for each method from GRID (and 0.5 for the waiting methods) by training loss, at the scale of DEMO.
STEPS = {AMPLIFIED: 1e-4, PLAIN: 1e-2, WAIT_MINIBATCH: 0.5, WAIT_FULL: 0.5}
GRID = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
SCALES = {
    "digits": Scale("digits", "mlp", 50, 5, 20, 0.1, 200, 2000, 3, STEPS, GRID, record_every=10),
    "fashion-mnist": Scale("fashion-mnist", "cnn", 50, 5, 20, 0.1, 100, 500, 2, STEPS, GRID, record_every=50),
    "cifar-10": Scale("cifar-10", "cnn-cifar", 50, 5, 20, 0.05, 100, 500, 2, STEPS, GRID, record_every=50),
}
DEMO = Scale("digits", "mlp", 50, 5, 50, 0.1, 500, 5000, 4, STEPS, GRID, record_every=25)
SMOKE = Scale("digits", "linear", 20, 2, 4, 0.1, 20, 60, 2, STEPS, GRID, record_every=5)


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale used for a data set; with another network than the default one where that is asked for.

    With `full`, the paper's own numbers of clients, rounds and seeds.

    Raises:
        FedboundsError: no such data set; names those there are.
    """
    if dataset not in SCALES:
        raise unknown_name("data set", dataset, SCALES)
    scale = SCALES[dataset] if network is None else replace(SCALES[dataset], network=network)
    if not full:
        return scale
    cifar = dataset == "cifar-10"
    return replace(scale, clients=250, participants=10, slot=100, initial_rounds=4000 if cifar else 2000,
                   rounds=600_000 if cifar else 300_000, seeds=5 if cifar else 10, record_every=500)  # fmt: skip


def four_methods(scale: Scale) -> dict[str, dict[str, Any]]:
    """Amplified and plain Algorithm 1, wait-minibatch and wait-full, each with its step size."""
    P = scale.interval
    return {
        AMPLIFIED: generalized(scale.steps[AMPLIFIED], 10.0, P),
        WAIT_MINIBATCH: step("wait-minibatch", scale.steps[WAIT_MINIBATCH], interval=P),
        WAIT_FULL: step("wait-full", scale.steps[WAIT_FULL], interval=P),
        PLAIN: step("fedavg", scale.steps[PLAIN]),
    }


def step(kind: str, size: float, **more: Any) -> dict[str, Any]:
    """An algorithm with five local steps of this size."""
    return {"kind": kind, "local_step_size": size, "local_steps": 5, **more}


def generalized(size: float, multiplier: float, interval: int) -> dict[str, Any]:
    """Algorithm 1."""
    return step("generalized-fedavg", size, server_multiplier=multiplier, interval=interval)


def image_sweep(
    name: str,
    scale: Scale,
    methods: Mapping[str, Mapping[str, Any]],
    participation: Mapping[str, Any] | None = None,
    data: str | None = None,
) -> Sweep:
    """Methods after a common initial phase of plain FedAvg, under periodic availability unless said otherwise."""
    problem = {"kind": "images", "dataset": scale.dataset, "network": scale.network, "clients": scale.clients}
    periodic = {"kind": "periodic-groups", "clients": scale.clients, "participants": scale.participants,
                "groups": 5, "slot": scale.slot}  # fmt: skip
    first = {"rounds": scale.initial_rounds, "algorithm": step("fedavg", scale.initial_step)}
    document = {
        "name": name,
        "rounds": scale.initial_rounds + scale.rounds,
        "seeds": scale.seeds,
        "seeds_per_run": 1 if scale.network.startswith("cnn") else scale.seeds,
        "record_every": scale.record_every,
        "problem": problem if data is None else {**problem, "data": data},
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
