"""The experiments as sweep documents: methods with few bits, on data split in three ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

from fedbounds.empirical.sweep import Sweep
from fedbounds.figures.charts.tuning import (
    TunedSetting,
    describe_decay,
    describe_images,
    images_of,
    scale_named,
    sweep_of,
    tuning_seeds,
    with_data,
)

FEDAVG, FEDPM, FEDSPARSIFY, TOP_K = "FedAvg", "FedPM", "FedSparsify", "Top-k"
SIGN, FIXED_SIGN = "SignSGD", "SignSGD, tuned scale"
TERNGRAD, DRIVE, EDEN = "TernGrad", "DRIVE", "EDEN"
MRN, MRNS = "FedMRN", "FedMRNS"
METHODS = (FEDAVG, FEDPM, FEDSPARSIFY, SIGN, FIXED_SIGN, TOP_K, TERNGRAD, DRIVE, EDEN, MRN, MRNS)
NO_SM, NO_PM, NO_PSM, POST = "FedMRN w.o. SM", "FedMRN w.o. PM", "FedMRN w.o. PSM", "FedAvg w. SM"
ON_TEXT = (FEDAVG, SIGN, FIXED_SIGN, EDEN, MRN, NO_PM)  # the last is the variant of the authors' code for Table 3
ABLATION = (MRN, NO_PM, NO_SM, NO_PSM, POST, SIGN, FIXED_SIGN)


def _compressed_kind(kind: str, **agreed: Any) -> dict[str, Any]:
    return {"kind": "compressed", "compressor": {"kind": kind, **agreed}}


_MRN: dict[str, Any] = {"kind": "fedmrn", "masks": "binary"}
KINDS: Mapping[str, dict[str, Any]] = {
    FEDAVG: _compressed_kind("full-precision"),
    FEDPM: {"kind": "fedpm"},
    FEDSPARSIFY: {"kind": "fedsparsify", "share": 0.03},
    SIGN: _compressed_kind("stochastic-sign"),
    FIXED_SIGN: _compressed_kind("masked-noise", law="bernoulli", masks="signed"),  # the scale is the amplitude
    TOP_K: _compressed_kind("top-k", share=0.03),
    TERNGRAD: _compressed_kind("terngrad"),
    DRIVE: _compressed_kind("drive"),
    EDEN: _compressed_kind("eden"),
    MRN: _MRN,
    MRNS: {"kind": "fedmrn", "masks": "signed"},
    NO_SM: _MRN | {"stochastic": False},
    NO_PM: _MRN | {"progressive": False},
    NO_PSM: _MRN | {"stochastic": False, "progressive": False},
    POST: _compressed_kind("masked-noise", masks="binary"),
}
# Where searches begin: the middle of the paper's learning rates, its code's on text; by trials on a seed of its own,
# amplitudes, FedPM's, and SignSGD's on text
START, START_OF_SCORES = 0.1, 100.0
MASKED_START: Mapping[str, TunedSetting] = {
    **{label: {"local_step_size": 0.3, "amplitude": 0.1} for label in (MRN, NO_SM, NO_PM, NO_PSM)},
    MRNS: {"local_step_size": 0.3, "amplitude": 0.05},
    FIXED_SIGN: {"local_step_size": START, "amplitude": 0.03},
    POST: {"local_step_size": START, "amplitude": 0.1},
}
TEXT_START: TunedSetting = {"local_step_size": 3.0}
OTHER_TEXT_START: Mapping[str, TunedSetting] = {
    SIGN: {"local_step_size": 0.1},
    **{label: {**TEXT_START, "amplitude": 0.3} for label in (MRN, NO_PM)},
    FIXED_SIGN: {**TEXT_START, "amplitude": 0.1},
}
PAPER_NETWORKS = ("cnn4-bn", "cnn8-bn")  # the paper's
TEXT_STEPS = 10  # characters that are seen
LAWS = ("uniform", "gaussian", "bernoulli")
PAPER_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)  # of 10^-2, in the paper's Figure 5
SHARES = (1 / 64, 1 / 32, *PAPER_SHARES, 4.0, 8.0)  # of FedMRN's tuned amplitude, in ours
IID, DIRICHLET, LABELS, SPEAKERS = "IID", "Non-IID-1", "Non-IID-2", "speakers"
MANY_CLASSES = {"cifar-100": {DIRICHLET: {"alpha": 0.2}, LABELS: {"labels_per_client": 20}}}


@dataclass(frozen=True)
class Scale:
    """The size of the experiments.

    The paper: K = 10 of N = 100 clients, 10 local epochs of batches of 64, 100 or 200 rounds, 5 runs.
    """

    dataset: str
    network: str
    rounds: int  # clients, participants, rounds, seeds: N, K, R and the number of runs
    local_steps: int  # local_steps, batch: S and the samples of a gradient
    batch: int
    last: int  # rounds over which results are averaged
    clients: int = 100
    participants: int = 10
    seeds: int = 5
    budget: int = 7  # budget, extensions, tuning_seeds: settings of a search, more at edges, and its seeds
    extensions: int = 2
    tuning_seeds: int = 2
    tuning_rounds: int | None = None  # of the runs of a search (default: `rounds`)
    size: tuple[int, ...] | None = None  # training images, test images and side of a generated data set
    record_every: int = 5
    augmentation: tuple[str, ...] = ()
    weight_decay: float = 0.0  # with it accuracies reach a plateau within fewer rounds
    timed: tuple[str, ...] = ("mlp", "cnn4-bn")  # timed, repeats: networks of the time measurements, and their number
    repeats: int = 10
    iterations: int = 4000  # iterations, horizons, points: of the exact moments
    horizons: tuple[int, ...] = (16, 64, 256, 1024, 4096)
    points: int = 61
    labels: tuple[str, ...] = field(default=METHODS)  # the methods
    # start, paper: the start of searches and the paper's numbers, for captions
    start: str = "the middle of the paper's learning rates"
    paper: str = (
        "FMNIST, SVHN, CIFAR-10 and CIFAR-100, CNNs with batch normalization, the same N and K, 10 local epochs (80 to "
        "120 steps) on batches of 64, 100 or 200 rounds and 5 runs"
    )

    @property
    def data(self) -> str | dict[str, Any]:
        """The data set as specifications have it."""
        return images_of(self.dataset, self.size)

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        decay = describe_decay(self.weight_decay)
        return (
            f"{describe_images(self.dataset, self.size)}, network {self.network}, "
            f"K = {self.participants} of N = {self.clients} clients, "
            f"{self.local_steps} local steps on batches of {self.batch}, {decay}{self.rounds} rounds, "
            f"{self.seeds} seeds, "
            f"each with its own data split; the paper has {self.paper}"
        )


SCALES = {
    "glyphs": Scale(
        "glyphs", "mlp", 500, 80, 25, 60, 50, 5, 8, tuning_rounds=150, size=(5_000, 2_000, 14), weight_decay=0.003
    ),
    "digits": Scale("digits", "mlp", 60, 12, 16, 15, clients=50),
    "fashion-mnist": Scale("fashion-mnist", "cnn-small", 60, 20, 64, 15),
    "svhn": Scale("svhn", "fedau-svhn", 60, 20, 64, 15),
    "cifar-10": Scale("cifar-10", "fedau-cifar-10", 60, 20, 64, 15, augmentation=("crop", "flip")),
    "cifar-100": Scale("cifar-100", "fedau-cifar-100", 60, 20, 64, 15, augmentation=("crop", "flip")),
}
CONVOLUTIONS = Scale(
    "glyphs",
    "cnn-small",
    150,
    80,
    10,
    15,
    50,
    5,
    tuning_seeds=1,
    tuning_rounds=42,
    size=(4_000, 1_000, 14),
    record_every=3,
    weight_decay=0.02,
)
FULL = {  # rounds, and the local steps of 10 epochs
    "glyphs": (100, 100),
    "digits": (100, 10),
    "fashion-mnist": (100, 100),
    "svhn": (100, 120),
    "cifar-10": (200, 80),
    "cifar-100": (200, 80),
}
# For networks whose rounds take long
FEWER_ROUNDS = {"rounds": 80, "last": 10, "record_every": 2, "tuning_rounds": 30, "seeds": 5}
SMOKE = Scale("digits", "linear", 4, 2, 8, 2, clients=12, participants=4, seeds=2, budget=2, extensions=0,
              tuning_seeds=1, record_every=1, timed=("linear",), repeats=2, iterations=400,
              horizons=(16, 64, 256), points=41)  # fmt: skip


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale of a data set, with another network if given; `full`: the paper's clients, rounds and samples."""
    scale = scale_named(SCALES, dataset, network)
    if not full:
        return scale
    rounds, steps = FULL[dataset]
    more: dict[str, Any] = {"size": (60_000, 10_000)} if dataset == "glyphs" else {}
    more |= {"participants": 10, "tuning_rounds": None, "record_every": 5, "seeds": 5, "weight_decay": 0.0}
    return replace(scale, rounds=rounds, local_steps=steps, batch=64, clients=100, last=20, **more)


def on_digits(scale: Scale) -> Scale:
    """The scale on digits, for Figure 5, which has hundreds of runs: 10 local epochs, as in the paper."""
    if scale == SCALES["glyphs"]:
        scale = replace(scale, rounds=1000, last=100, weight_decay=0.005)  # rounds are cheap on digits
    labels, most = (FEDAVG, MRN, MRNS), {"batch": 16, "clients": 50, "local_steps": 20}
    return _at_most(replace(scale, dataset="digits", network="mlp", size=None, augmentation=(), labels=labels), most)


def convolutional(scale: Scale) -> Scale:
    """The scale of Table 1 with convolutions: on glyphs one of its own, else with a small network unless it has one."""
    if scale == SCALES["glyphs"]:
        return CONVOLUTIONS
    network = CONVOLUTIONS.network if scale.network in ("mlp", "linear") else scale.network
    return _at_most(replace(scale, network=network), FEWER_ROUNDS)


def sequential(scale: Scale) -> Scale:
    """The scale on text, one speaker per client: more local steps, fewer rounds."""
    spoken = replace(
        scale,
        dataset="characters",
        network="lstm-small",
        size=(100 * scale.clients, 20 * scale.clients),
        local_steps=min(2 * scale.local_steps, 80),
        augmentation=(),
        labels=ON_TEXT,
        start="the learning rate of the authors' code (SignSGD: 0.1, by trials; with the code's it learns nothing)",
        paper="Shakespeare's plays and an LSTM; by the authors' code 100 rounds of one epoch on batches of 128 with a "
        "tenth of the clients, random masks without progressive ones, and an embedding that is sent in full precision",
    )
    return _at_most(spoken, FEWER_ROUNDS | {"rounds": 120, "last": 12, "weight_decay": 3e-4})


def _at_most(scale: Scale, most: Mapping[str, float]) -> Scale:
    """The scale with none of these numbers larger."""
    own = {name: getattr(scale, name) for name in most}  # none for the rounds of a search are those of the runs
    smaller = {k: value for k, value in most.items() if (scale.rounds if own[k] is None else own[k]) > value}
    return replace(scale, **cast("dict[str, Any]", smaller))


def start(label: str, split: str = LABELS) -> TunedSetting:
    """The first setting of a method's search."""
    if split == SPEAKERS:
        return OTHER_TEXT_START.get(label, TEXT_START)
    return MASKED_START.get(label, {"local_step_size": START_OF_SCORES if label == FEDPM else START})


def method(scale: Scale, label: str, setting: TunedSetting) -> dict[str, Any]:
    """A method with its tuned setting."""
    found = {**KINDS[label], "local_step_size": setting["local_step_size"], "local_steps": scale.local_steps}
    if "amplitude" not in setting:
        return found
    if "compressor" not in found:
        return {**found, "amplitude": setting["amplitude"]}
    return {**found, "compressor": {**found["compressor"], "amplitude": setting["amplitude"]}}


@cache
def partition(dataset: str, name: str) -> dict[str, Any]:
    """The partition of a data set by name."""
    rules: dict[str, dict[str, Any]] = {
        IID: {"partition": "even"},
        DIRICHLET: {"partition": "dirichlet", "alpha": 0.3},
        LABELS: {"partition": "labels", "labels_per_client": 3},
        SPEAKERS: {"partition": "owners"},
    }
    return rules[name] | MANY_CLASSES.get(dataset, {}).get(name, {})


def _data_of_seed(scale: Scale, split: str, seed: int) -> str | dict[str, Any]:
    """The data of a seed; each seed of the text has its own language."""
    if split != SPEAKERS:
        return scale.data
    size = scale.size or (0, 0)
    more = {"steps": TEXT_STEPS, "speakers": scale.clients, "seed": seed}
    return {"kind": scale.dataset, "train": size[0], "test": size[1], **more}


PARTITIONS = (IID, DIRICHLET, LABELS)


def training_sweep(
    scale: Scale,
    methods: Mapping[str, Mapping[str, Any]],
    split: str,
    data: str | None = None,
    tuning: bool = False,
    seeds: int | None = None,
) -> Sweep:
    """The methods on a partition with every seed (or the first `seeds`), which also fixes the data split.

    With `tuning` the seeds are those for tuning.
    """
    name, documents = f"fedmrn-{scale.dataset}-{scale.network}", []
    for seed in tuning_seeds(scale.tuning_seeds) if tuning else range(seeds or scale.seeds):
        problem = {"kind": "images", "dataset": _data_of_seed(scale, split, seed), "network": scale.network,
                   "clients": scale.clients, "batch": scale.batch, "partition_seed": seed,
                   "augmentation": list(scale.augmentation), "weight_decay": scale.weight_decay,
                   **partition(scale.dataset, split)}  # fmt: skip
        documents.append({
            "name": name,
            "rounds": (tuning and scale.tuning_rounds) or scale.rounds,
            "seeds": [seed],
            "record_every": scale.record_every,
            "problem": with_data(problem, data),
            "participation": {"kind": "without-replacement", "clients": scale.clients,
                              "participants": scale.participants},
            "algorithms": {label: dict(one) for label, one in methods.items()},
        })  # fmt: skip
    return sweep_of(name, documents)
