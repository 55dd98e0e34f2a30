"""The experiments as sweep documents: an adversary of all images, an adversary of the classes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedbounds.empirical.sweep import Sweep
from fedbounds.figures.charts.tuning import (
    TunedSetting,
    describe_images,
    images_of,
    scale_named,
    sweep_of,
    tuning_seeds,
    with_data,
)

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
    """The size of an experiment.

    The paper has CIFAR-10, VGG11 and n = 15; it gives no rounds, seeds, step sizes, S, and no alpha, n and P of Figures
    6-8.
    """

    dataset: str
    network: str
    clients: int = 15  # clients, participants: n (but in Figure 7), and P of Figures 4 and 8, the last n
    participants: tuple[int, ...] = (5, 10, 15)
    rounds: int = 200  # rounds, seeds: T and the number of runs; results are averages over the last tenth of the rounds
    seeds: int = 20
    period: int = 5  # S of the variants with snapshots; divides `rounds`
    weight_decay: float = 0.2
    alphas: tuple[float, ...] = (0.05, 0.1, 0.3, 1.0)  # alphas, numbers: of Figure 6, and n of Figure 7
    numbers: tuple[int, ...] = (5, 15, 45)
    target: float = 0.9  # target, reach: the accuracy of Figure 7, in runs of `reach` rounds
    reach: int = 40
    record_every: int = 5
    robust_most: tuple[int, ...] = MOST  # E of Figure 3; the paper has both of `MOST`
    tuning_rounds: int = 200  # of the runs of a search
    # start, budget, extensions: the first step sizes, the settings of a search, and more at edges
    start: TunedSetting = field(default_factory=lambda: dict.fromkeys(STEPS, 0.003))
    budget: int = 40
    speed_budget: int = 16  # settings of a search for Figure 7
    extensions: int = 10
    tuning: int = 4  # seeds of a search, on one split of the data
    size: tuple[int, ...] | None = None  # training images, test images and side of a generated data set
    radius: float = 1.0  # largest norm of the perturbation, for pixels in [0, 1]

    @property
    def images(self) -> str | dict[str, Any]:
        """The data set as specifications have it."""
        return images_of(self.dataset, self.size)

    @property
    def last(self) -> int:
        """The rounds over which results are averaged."""
        return self.rounds // 10

    @property
    def search(self) -> str:
        """The search for step sizes, for captions."""
        return (
            f"of {self.budget} settings (up to {self.extensions} more where the best stands at an edge) of the same "
            f"search from the same start, in runs of {self.tuning_rounds} rounds on {self.tuning} other seeds"
        )

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        return (
            f"{describe_images(self.dataset, self.size)}, network {self.network} with weight decay "
            f"{self.weight_decay:g}, clients with equally many images, batch 32, {self.rounds} rounds, {self.seeds} "
            f"seeds, each with its own split of the data and its own tau_i; S = {self.period} where there are "
            "snapshots; the paper has CIFAR-10 and VGG11, tau_i in epochs, and no weight decay"
        )


SCALES = {
    "digits": Scale("digits", "linear"),
    "glyphs": Scale(
        "glyphs",
        "mlp",
        rounds=3000,
        seeds=10,
        weight_decay=0.02,
        target=0.3,
        reach=100,
        record_every=20,
        robust_most=MOST[:1],
        tuning_rounds=400,
        start=dict.fromkeys(STEPS, 0.03),
        budget=30,
        speed_budget=12,
        extensions=6,
        tuning=2,
        size=(2000, 1000, 14),
        radius=0.25,  # per pixel about the 1 of the paper's images, which have 16 times as many
    ),
    "cifar-10": Scale("cifar-10", "cnn-cifar", seeds=2, weight_decay=0.0, target=0.7, reach=300, budget=12, tuning=2),
}
FULL_ROUNDS = {"digits": 1000, "glyphs": 3000, "cifar-10": 1000}
FULL_NETWORK = {"digits": "linear", "glyphs": "cnn", "cifar-10": "vgg-11"}
SMOKE = Scale(
    "digits", "linear", 9, (3, 6, 9), rounds=20, seeds=2, alphas=(0.1, 1.0), numbers=(3, 9), target=0.3, reach=5,
    record_every=1, robust_most=MOST[:1], tuning_rounds=10, budget=2, speed_budget=2, extensions=0, tuning=2,
)  # fmt: skip


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale of a data set, with another network if given; `full` has the paper's network, more rounds and seeds."""
    scale = scale_named(SCALES, dataset)
    if full:
        rounds = FULL_ROUNDS[dataset]
        scale = replace(scale, network=FULL_NETWORK[dataset], rounds=rounds, tuning_rounds=rounds, seeds=20, budget=40)
    return scale if network is None else replace(scale, network=network)


@dataclass(frozen=True)
class ExperimentSetting:
    """A setting without its step sizes."""

    problem: str  # problem, method: `ROBUST` or `FAIR`; one of `METHODS`
    clients: int  # clients, participants, alpha: n, P, and the Dirichlet parameter of the clients' class mixes
    participants: int
    method: str = NORMALIZED
    most: int = MOST[0]  # E; every client draws tau_i from Unif[2, E] once per seed
    epochs: bool = False  # tau_i counts epochs, not local steps
    alpha: float = ALPHA

    @property
    def written(self) -> str:
        """The method's name in the paper, with a plus if it has snapshots.

        Example:
            >>> ExperimentSetting(ROBUST, 15, 15, MOMENTUM).written, ExperimentSetting(FAIR, 15, 15, MOMENTUM).written
            ('Local SGDA+ with momentum', 'Local SGDA with momentum')
        """
        return self.method.replace("SGDA", "SGDA+") if self.problem == ROBUST else self.method

    def algorithm(self, steps: TunedSetting, period: int = 5) -> dict[str, Any]:
        """The algorithm with step sizes, and S if it has snapshots."""
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
    """A setting with step sizes on its seeds, or on those for tuning.

    Every seed has its own split of the data; those for tuning share one, so that they run together. A seed fixes the
    work, the start and the minibatches of all methods.
    """
    name = f"fed-norm-sgda-{scale.dataset}-{scale.network}"
    seeds: list[Sequence[int]] = [tuning_seeds(scale.tuning)] if tuning else [[seed] for seed in range(scale.seeds)]
    documents = []
    for some in seeds:
        of = {
            "kind": setting.problem, "dataset": scale.images, "network": scale.network, "clients": setting.clients,
            "partition": "class-mix", "alpha": setting.alpha, "partition_seed": some[0],
            "weight_decay": scale.weight_decay, **({"radius": scale.radius} if setting.problem == ROBUST else {}),
            **problem,
        }  # fmt: skip
        drawn = {"kind": "without-replacement", "participants": setting.participants}
        documents.append(
            {
                "name": name,
                "rounds": rounds or scale.rounds,
                "seeds": list(some),
                "record_every": record_every or scale.record_every,
                "problem": with_data(of, data),
                "participation": {**drawn, "clients": setting.clients},
                "algorithms": {"it": setting.algorithm(steps, scale.period)},
            }
        )
    return sweep_of(name, documents)
