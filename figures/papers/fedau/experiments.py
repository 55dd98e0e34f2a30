"""The experiments as sweep documents: participation that depends on the clients' data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any

import numpy as np

from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import class_mix_partition
from fedbounds.empirical.participation.rates import class_frequencies, dirichlet_frequencies, participation_rates
from fedbounds.empirical.sweep import Sweep
from fedbounds.figures.charts.tuning import (
    describe_decay,
    describe_images,
    images_of,
    scale_named,
    sweep_of,
    tuning_seeds,
    with_data,
)

FEDAU_INF, FEDAU = "FedAU, K = inf", "FedAU, K = 50"
PARTICIPATING, ALL = "average participating", "average all"
FEDVARP, MIFA, KNOWN = "FedVarp", "MIFA", "known statistics"
TOP = (FEDAU_INF, FEDAU, PARTICIPATING, ALL)  # of the paper's tables: neither more memory nor known rates
METHODS = (*TOP, FEDVARP, MIFA, KNOWN)
KINDS: Mapping[str, dict[str, Any]] = {
    FEDAU_INF: {"kind": "fedau", "cutoff": inf},
    FEDAU: {"kind": "fedau", "cutoff": 50},
    PARTICIPATING: {"kind": "average-participating"},
    ALL: {"kind": "average-all"},
    FEDVARP: {"kind": "fedvarp"},
    MIFA: {"kind": "mifa"},
    KNOWN: {"kind": "known-participation"},
}
PAPER_NETWORKS = ("fedau-svhn", "fedau-cifar-10", "fedau-cifar-100", "fedau-cinic-10")  # the paper's
# "cyclic" is the stationary process that the paper describes; the one of its code is "cyclic-from-inactive"
PATTERNS = {"Bernoulli": "bernoulli", "Markovian": "markovian", "cyclic": "cyclic-clients"}
FLOOR, MEAN, ALPHA = 0.02, 0.1, 0.1
ALPHAS = (0.01, 0.05, 0.1, 0.5, 1.0)  # of the paper's Table D.1.1
MEANS = (0.1, 0.01, 0.001)  # of Table D.6.1
FLOORS = (0.0, 0.02)  # of Figures 1 and D.5.2
# The paper's grids of gamma and eta, and every other value of them
FULL_GRID = {"gamma": tuple(float(f"{10**k:.6g}") for k in (-2, -1.75, -1.5, -1.25, -1, -0.75, -0.5)),
             "eta": tuple(float(f"{10**k:.6g}") for k in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5))}  # fmt: skip
GRID = {name: values[::2] for name, values in FULL_GRID.items()}


@dataclass(frozen=True)
class Scale:
    """The size of an experiment.

    The paper: N = 250, 2,000 to 20,000 rounds, averages over the last 200, 5 seeds; I = 5 and batch 16 by its code.
    """

    dataset: str
    network: str
    clients: int  # clients, rounds, seeds: N, T and the number of runs
    rounds: int
    seeds: int
    last: int  # rounds over which results are averaged
    grid: Mapping[str, Sequence[float]]  # of gamma and eta; every method takes its best pair
    tuning_rounds: int  # tuning_rounds, tuning_seeds: of the runs that choose step sizes
    tuning_seeds: int = 2
    size: tuple[int, ...] | None = None  # training images, test images and side of a generated data set
    cutoffs: tuple[float, ...] = (1, 5, 50, 200, inf)  # K of Figures 1 and D.5.2; the last is no cut-off
    alphas: tuple[float, ...] = (0.01, 0.1, 1.0)  # of Table D.1.1
    augmentation: tuple[str, ...] = ()  # of the training images
    weight_decay: float = 0.0  # with it accuracies reach a plateau within fewer rounds
    record_every: int = 10
    patterns: tuple[str, ...] = tuple(PATTERNS)  # of Table 1

    @property
    def tuning_last(self) -> int:
        """The rounds over which a score is averaged: at most a fifth of a run that chooses step sizes."""
        return min(self.last, max(self.tuning_rounds // 5, 1))

    @property
    def data(self) -> str | dict[str, Any]:
        """The data set as specifications have it."""
        return images_of(self.dataset, self.size)

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        decay = describe_decay(self.weight_decay)
        return (
            f"{describe_images(self.dataset, self.size)}, network {self.network}, N = {self.clients}, I = 5, batch 16, "
            f"{decay}{self.rounds} rounds, {self.seeds} seeds, each with its own data split and rates; the paper has "
            "SVHN, CIFAR-10, CIFAR-100 and CINIC-10, N = 250, 2,000 to 20,000 rounds and 5 seeds"
        )


_COLORS = ("sharpness", "jitter", "posterize", "equalize", "crop", "flip")
SCALES = {
    "glyphs": Scale(
        "glyphs", "mlp", 100, 7000, 10, 700, GRID, 500, size=(10_000, 2_000, 14), weight_decay=0.01, record_every=20
    ),
    "digits": Scale("digits", "mlp", 50, 500, 3, 100, GRID, 500),
    "svhn": Scale("svhn", "fedau-svhn", 50, 200, 2, 50, GRID, 200, augmentation=("crop",)),
    "cifar-10": Scale("cifar-10", "fedau-cifar-10", 50, 200, 2, 50, GRID, 200, augmentation=("crop", "flip")),
    "cifar-100": Scale("cifar-100", "fedau-cifar-100", 50, 200, 2, 50, GRID, 200, augmentation=_COLORS),
    "cinic-10": Scale("cinic-10", "fedau-cinic-10", 50, 200, 2, 50, GRID, 200, augmentation=("crop", "flip")),
}
CONVOLUTIONS = Scale(
    "glyphs",
    "cnn-small",
    50,
    3000,
    6,
    300,
    {name: [value for value in values if 0.02 < value < 20] for name, values in GRID.items()},
    500,
    size=(2000, 1000, 14),
    weight_decay=0.005,  # with 0.015 FedAU without a cut-off learns nothing (Bernoulli)
    record_every=20,
    patterns=("Bernoulli", "Markovian"),
)
FULL_ROUNDS = {
    "glyphs": 10_000,
    "digits": 10_000,
    "svhn": 2_000,
    "cifar-10": 10_000,
    "cifar-100": 20_000,
    "cinic-10": 10_000,
}
SMOKE = Scale("digits", "linear", 12, 30, 2, 10, {"gamma": (0.3, 0.9, 2.7), "eta": (1.0,)}, 20, 1, cutoffs=(1, 50, inf))


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale of a data set, with another network if given.

    With `full` the paper's clients, rounds, seeds and grid, which the paper searches for gamma first; the step size on
    CIFAR-100 is not halved at round 10,000.
    """
    scale = scale_named(SCALES, dataset, network)
    if not full:
        return scale
    return replace(scale, clients=250, rounds=FULL_ROUNDS[dataset], seeds=5, last=200, alphas=ALPHAS, grid=FULL_GRID,
                   tuning_rounds=500, weight_decay=0.0)  # fmt: skip


def convolutional(scale: Scale) -> Scale:
    """The scale of Table 1 with convolutions: on glyphs one of its own, else with a small network unless it has one."""
    if scale.dataset == "glyphs":
        return CONVOLUTIONS
    network = scale.network if scale.network in PAPER_NETWORKS else CONVOLUTIONS.network
    return replace(scale, network=network, patterns=CONVOLUTIONS.patterns)


def cutoff(K: float) -> str:
    """The label of FedAU with a cut-off."""
    return f"FedAU, K = {K:g}"


def method(scale: Scale, label: str, gamma: float, eta: float) -> dict[str, Any]:
    """A method, or FedAU with one of the cut-offs, with its step sizes."""
    cutoffs = {cutoff(K): {"kind": "fedau", "cutoff": K} for K in scale.cutoffs}
    return {**(cutoffs | dict(KINDS))[label], "local_step_size": gamma, "local_steps": 5, "server_multiplier": eta}


def rates(
    scale: Scale, seed: int, alpha: float = ALPHA, mean: float = MEAN, floor: float = FLOOR, data: str | None = None
) -> np.ndarray:
    """The participation rates of a seed, (clients,): eq. (C.6.1) with the clients' classes, capped at 1."""
    frequencies = _frequencies(scale.dataset, scale.size, scale.clients, seed, data)
    return participation_rates(frequencies, alpha=alpha, mean=mean, floor=floor, cap=1.0, seed=seed)


@cache
def _frequencies(dataset: str, size: tuple[int, ...] | None, clients: int, seed: int, data: str | None) -> np.ndarray:
    labels = load_dataset(images_of(dataset, size), data).train_labels
    split = class_mix_partition(labels, clients, np.random.default_rng(seed))
    return class_frequencies(labels, split.assignment, clients)


def paper_rates(seed: int, clients: int = 250, mean: float = MEAN, floor: float = FLOOR) -> np.ndarray:
    """Rates without data, (clients,): eq. (C.6.1) for ten classes, by default for the paper's N."""
    return participation_rates(dirichlet_frequencies(clients, 10, 0.1, seed), mean=mean, floor=floor, seed=seed)


def training_sweep(
    name: str,
    scale: Scale,
    methods: Mapping[str, Mapping[str, Any]],
    pattern: str = "Bernoulli",
    data: str | None = None,
    final_models: bool = False,
    tuning: bool = False,
    **of_rates: float,
) -> Sweep:
    """The methods with every seed, which also fixes the data split and the rates.

    `pattern` is a key of `PATTERNS`, `of_rates` are arguments of `rates`. With `final_models` only the first and last
    models are recorded; with `tuning` the seeds and rounds are those for tuning.
    """
    documents, rounds = [], scale.tuning_rounds if tuning else scale.rounds
    for seed in tuning_seeds(scale.tuning_seeds) if tuning else range(scale.seeds):
        problem = {"kind": "images", "dataset": scale.data, "network": scale.network, "clients": scale.clients,
                   "partition": "class-mix", "alpha": 0.1, "partition_seed": seed,
                   "weight_decay": scale.weight_decay, "augmentation": list(scale.augmentation)}  # fmt: skip
        participation = {"kind": PATTERNS[pattern], "clients": scale.clients,
                         "probability": rates(scale, seed, data=data, **of_rates).tolist()}  # fmt: skip
        documents.append(
            {
                "name": name,
                "rounds": rounds,
                "seeds": [seed],
                "record_every": rounds if final_models else scale.record_every,
                "record_models": final_models,
                "problem": with_data(problem, data),
                "participation": participation | ({"normalize": False} if pattern == "Bernoulli" else {}),
                "algorithms": {label: dict(one) for label, one in methods.items()},
            }
        )
    return sweep_of(name, documents)
