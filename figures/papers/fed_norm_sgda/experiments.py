"""The experiments behind the figures as sweep documents: an adversary of all images, an adversary of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedbounds.empirical.sweep import Sweep, resolve
from fedbounds.figures.charts.scales import images_in_words, images_of, scale_named
from fedbounds.figures.charts.tuning import TunedSetting, tuning_seeds

NORMALIZED, NAIVE, MOMENTUM = "Fed-Norm-SGDA", "Local SGDA", "Local SGDA with momentum"
METHODS = (NORMALIZED, NAIVE, MOMENTUM)
ROBUST, FAIR = "robust-images", "fair-images"  # eqs. (8) and (9); the first with snapshots: the methods' plus variants
ACCURACY = {ROBUST: "robust_test_accuracy", FAIR: "worst_class_test_accuracy"}
PHI = {ROBUST: "envelope_lower_estimate", FAIR: "envelope"}
PAPER_NETWORKS = ("vgg-11",)  # the paper's
LEAST = 2  # local steps, of Unif[2, E]
MOST = (5, 7)  # E
ALPHA = 0.1
STEPS: tuple[str, ...] = ("server_step_size", "server_ascent_step_size", "local_step_size", "local_ascent_step_size")


@dataclass(frozen=True)
class Scale:
    """How large an experiment is; the paper has CIFAR-10, VGG11 and n = 15, and gives neither rounds, seeds, step
    sizes, S nor the values of alpha, n and P of its Figures 6 to 8.

    Args:
        dataset, network: what is learned.
        clients: n, but in Figure 7.
        participants: P of Figures 4 and 8; the last is n.
        rounds, seeds: T and how many runs; results are averaged over the last tenth of the rounds.
        period: S of the variants with snapshots; divides `rounds`.
        weight_decay: of the network.
        alphas: of Figure 6.
        numbers: n of Figure 7.
        target: accuracy whose first round Figure 7 counts, in runs of `reach` rounds.
        record_every: rounds between evaluations.
        robust_most: E of Figure 3; the paper has both of `MOST`.
        start: all four step sizes, where every search begins.
        budget: settings that each method may try.
        retuning: settings that are tried for another P or alpha, from the best of the comparison; and for Figure 7.
        extensions: settings more, where the best stands at the edge of what was tried.
        tuning: seeds on which they are tried, all on one split of the data.
        size: training and test images, of a data set that is made here.
    """

    dataset: str
    network: str
    clients: int = 15
    participants: tuple[int, ...] = (5, 10, 15)
    rounds: int = 200
    seeds: int = 20
    period: int = 5
    weight_decay: float = 0.2
    alphas: tuple[float, ...] = (0.05, 0.1, 0.3, 1.0)
    numbers: tuple[int, ...] = (5, 15, 45)
    target: float = 0.9
    reach: int = 40
    record_every: int = 5
    robust_most: tuple[int, ...] = MOST
    start: TunedSetting = field(default_factory=lambda: dict.fromkeys(STEPS, 0.003))
    budget: int = 40
    retuning: int = 16
    extensions: int = 10
    tuning: int = 4
    size: tuple[int, int] | None = None

    @property
    def images(self) -> str | dict[str, Any]:
        """The data set as specifications have it."""
        return images_of(self.dataset, self.size)

    @property
    def last(self) -> int:
        """The rounds over which results are averaged."""
        return self.rounds // 10

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        return (
            f"{images_in_words(self.dataset, self.size)}, network {self.network} with weight decay "
            f"{self.weight_decay:g}, clients with equally many images, batch 32, {self.rounds} rounds, {self.seeds} "
            f"seeds, each with its own split of the data and its own tau_i; S = {self.period} where there are "
            "snapshots; the paper has CIFAR-10 and VGG11, epochs for "
            "steps, and no weight decay"
        )


SCALES = {
    "digits": Scale("digits", "linear"),
    "glyphs": Scale(
        "glyphs", "mlp", seeds=5, weight_decay=1e-3, target=0.3, reach=100, record_every=10, tuning=2, size=(3000, 1000)
    ),
    "cifar-10": Scale("cifar-10", "cnn-cifar", seeds=2, weight_decay=0.0, target=0.7, reach=300, budget=12, tuning=2),
}
FULL_ROUNDS = {"digits": 1000, "glyphs": 1000, "cifar-10": 1000}
FULL_NETWORK = {"digits": "linear", "glyphs": "cnn", "cifar-10": "vgg-11"}
SMOKE = Scale(
    "digits", "linear", 9, (3, 6, 9), rounds=20, seeds=2, alphas=(0.1, 1.0), numbers=(3, 9), target=0.3, reach=5,
    record_every=1, robust_most=MOST[:1], budget=2, retuning=2, extensions=0, tuning=2,
)  # fmt: skip


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale used for a data set; with another network than the default one where that is asked for.

    With `full`, the paper's network where the data set is the paper's, and longer runs of more seeds; its own numbers
    of rounds and seeds are not known.

    Raises:
        FedboundsError: no such data set; names those there are.
    """
    scale = scale_named(SCALES, dataset)
    if full:
        scale = replace(scale, network=FULL_NETWORK[dataset], rounds=FULL_ROUNDS[dataset], seeds=20, budget=40)
    return scale if network is None else replace(scale, network=network)


@dataclass(frozen=True)
class ExperimentSetting:
    """What is run, but for its step sizes.

    Attributes:
        problem: `ROBUST` or `FAIR`.
        clients, participants: n and P.
        method: one of `METHODS`.
        most: E; every client draws its tau_i from Unif[2, E] once per seed, whatever it holds.
        epochs: tau_i counts epochs, which are shorter where a client holds less.
        alpha: of the clients' mixes of classes.
    """

    problem: str
    clients: int
    participants: int
    method: str = NORMALIZED
    most: int = MOST[0]
    epochs: bool = False
    alpha: float = ALPHA

    @property
    def written(self) -> str:
        """The method's name as the paper writes it: with a plus where there are snapshots.

        Example:
            >>> ExperimentSetting(ROBUST, 15, 15, MOMENTUM).written, ExperimentSetting(FAIR, 15, 15, MOMENTUM).written
            ('Local SGDA+ with momentum', 'Local SGDA with momentum')
        """
        return self.method.replace("SGDA", "SGDA+") if self.problem == ROBUST else self.method

    def algorithm(self, steps: TunedSetting, period: int = 5) -> dict[str, Any]:
        """With step sizes, and S where there are snapshots."""
        work = {"low": LEAST, "high": self.most, "redraw": False}
        made: dict[str, Any] = {"kind": "fed-norm-sgda", **steps}
        made |= {"local_epochs" if self.epochs else "local_steps": work, "normalized": self.method == NORMALIZED}
        if self.method == MOMENTUM:
            made["optimizer"] = {"momentum": 0.9}
        return made | ({"snapshot_period": period} if self.problem == ROBUST else {})


def runs(
    scale: Scale,
    setting: ExperimentSetting,
    steps: TunedSetting,
    data: str | None = None,
    *,
    tuning: bool = False,
    rounds: int | None = None,
    record_every: int | None = None,
    **problem: Any,
) -> Sweep:
    """A setting with step sizes, on the seeds that are judged or on those for tuning.

    A seed that is judged has its own split of the data; those for tuning share one, so that they are computed at once.
    A seed decides the clients' work, the start and the minibatches too, of all methods alike.

    Args:
        scale, setting, steps: what is run.
        data: the directory of local files.
        tuning: on other seeds than those that are judged.
        rounds, record_every: the scale's own if not given.
        problem: what the problem has of its own.
    """
    name = f"fed-norm-sgda-{scale.dataset}-{scale.network}"
    seeds: list[Sequence[int]] = [tuning_seeds(scale.tuning)] if tuning else [[seed] for seed in range(scale.seeds)]
    tasks = []
    for some in seeds:
        of: Mapping[str, Any] = {
            "kind": setting.problem, "dataset": scale.images, "network": scale.network, "clients": setting.clients,
            "partition": "class-mix", "alpha": setting.alpha, "partition_seed": some[0],
            "weight_decay": scale.weight_decay, **({} if data is None else {"data": data}), **problem,
        }  # fmt: skip
        drawn = {"kind": "without-replacement", "participants": setting.participants}
        document = {
            "name": name,
            "rounds": rounds or scale.rounds,
            "seeds": list(some),
            "record_every": record_every or scale.record_every,
            "problem": of,
            "participation": {**drawn, "clients": setting.clients},
            "algorithms": {"it": setting.algorithm(steps, scale.period)},
        }
        tasks += resolve(document, name).tasks
    return Sweep(name, tuple(tasks), name)
