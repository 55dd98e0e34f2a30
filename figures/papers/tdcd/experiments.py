"""The experiments of Figures 3 to 9 as sweep documents: Q local steps a round, features split over silos."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.sweep import Sweep
from fedbounds.figures.charts.tuning import describe_decay, sweep_of, tuning_seeds, with_data

PAPER_NETWORKS = ("vgg-11", "lstm")  # of the size of the paper's, which are ResNet-18 and an LSTM of unknown width
DIVERGED = 10  # times the untrained model's training loss, from which on a learning rate counts as diverged
FITTED = 0.01  # of the untrained model's training loss; learning rates that end below it count as equal
IMAGES, SEQUENCES, VIEWS = "image halves", "sequences", "views"


@dataclass(frozen=True)
class Task:
    """A learning task and its split."""

    problem: Mapping[str, Any]  # its specification without clients, silos and seeds
    silos: int  # N
    clients: tuple[int, int]  # the two numbers of clients per silo that are compared
    iterations: int  # T of every run
    metric: str  # metric, metric_name: drawn beside the training loss
    metric_name: str
    step_sizes: tuple[float, ...]  # the grid of learning rates
    paper: str  # the paper's task
    per_round: bool = False  # whether the grid is of Q times the learning rate

    def grid(self, local_steps: int) -> tuple[float, ...]:
        """The grid of learning rates for Q local steps."""
        return tuple(float(f"{size / (local_steps if self.per_round else 1):.6g}") for size in self.step_sizes)

    @property
    def words(self) -> str:
        """The task and the paper's task, for captions."""
        return self.caption_with(f"{self.silos} silos")

    def caption_with(self, silos: str) -> str:
        """The same with another number of silos."""
        data = self.problem["dataset"]
        size = "" if isinstance(data, str) else f"{data['train']:,} samples of "
        decay = describe_decay(self.problem.get("weight_decay", 0.0))
        return (
            f"{size}{data if isinstance(data, str) else data['kind']}, network {self.problem['network']} in each of "
            f"{silos}, batches of {self.problem['batch']}, {decay}{self.iterations:,} iterations; in the paper "
            f"{self.paper}."
        )


@dataclass(frozen=True)
class Scale:
    """The size of the experiments."""

    tasks: Mapping[str, Task]  # by name
    local_steps: tuple[int, ...] = (1, 5, 10, 25)  # the values of Q, each divides T
    numbers_of_silos: tuple[int, ...] = (1, 2, 4, 8)  # N of Figure 9
    seeds: int = 5  # seeds, tuning_seeds: of the runs, and of those that choose a learning rate
    tuning_seeds: int = 2
    records: int = 30  # of a run
    extensions: int = 2  # learning rates that may be added on either side of a grid
    points: int = 60  # values of Q in the figure of bounds

    @property
    def shown_steps(self) -> int:
        """Q of Figure 9, which is 10 in the paper."""
        return 10 if 10 in self.local_steps else self.local_steps[-1]

    @property
    def words(self) -> str:
        """The scaling-down, for captions."""
        products = all(task.per_round for task in self.tasks.values())
        return (
            f"{self.seeds} seeds on one split of the samples; every learning rate is chosen for its Q, K and N by the "
            f"least training loss at the end, as in the paper, on {self.tuning_seeds} other seeds and another split, "
            f"from one grid for all{' of its product with Q' if products else ''} that is extended beyond its edges; "
            "rates with which the loss still moves come after all others. "
            f"Of rates that end below {FITTED:.0%} of the untrained model's loss the smallest is taken; one whose loss "
            f"rises to {DIVERGED} times it counts as diverged. The paper does not say which Q it compares but for 1, "
            "and how many seeds"
        )

    def task(self, name: str) -> Task:
        """A task by name."""
        if name not in self.tasks:
            raise unknown_name("task", name, self.tasks)
        return self.tasks[name]


def sweep(
    scale: Scale,
    name: str,
    clients: int,
    local_steps: int,
    step_sizes: Sequence[float],
    silos: int | None = None,
    tuning: bool = False,
    data: str | None = None,
    first: int | None = None,
) -> Sweep:
    """TDCD with Q local steps at some learning rates (the labels), each with every seed, which also fixes the split.

    With `first` only so many rounds, with a record of each.
    """
    task = scale.task(name)
    if task.iterations % local_steps:
        raise FedboundsError(f"Q = {local_steps} does not divide the {task.iterations} iterations of {name}")
    number, rounds = silos or task.silos, task.iterations // local_steps
    seeds = tuning_seeds(scale.tuning_seeds) if tuning else list(range(scale.seeds))
    problem = {"kind": "vertical", "silos": number, "silo_clients": clients, "remainder": "spread",
               "partition_seed": seeds[0], **task.problem}  # fmt: skip
    document = {
        "name": f"tdcd-{name.replace(' ', '-')}",
        "rounds": first or rounds,
        "seeds": seeds,
        "record_every": 1 if first else max(1, rounds // scale.records),
        "problem": with_data(problem, data),
        "participation": {"kind": "full", "clients": number * clients},
        "algorithms": {f"{eta:g}": {"kind": "tdcd", "local_step_size": eta, "local_steps": local_steps}
                       for eta in step_sizes},
    }  # fmt: skip
    return sweep_of(str(document["name"]), [document])


# With weight decay training losses reach a plateau above 0
HALVES = Task(
    {"dataset": {"kind": "glyphs", "train": 1000, "test": 2000}, "network": "mlp", "batch": 200,
     "weight_decay": 0.08},
    2, (4, 8), 15_000, "test_accuracy", "test accuracy", (0.3, 1.0, 3.0),
    "CIFAR-10 in halves, ResNet-18, K = 50 and 100, batches of 2,000, 5,000 iterations", True,
)  # fmt: skip
SERIES = Task(
    {"dataset": {"kind": "sequences", "train": 800, "test": 2000, "steps": 12, "features": 16, "positives": 0.3},
     "network": "mlp", "batch": 200, "weight_decay": 0.12},
    4, (4, 8), 20_000, "test_f1", "F1", (0.1, 0.3, 1.0),
    "MIMIC-III, LSTM, K = 20 and 50, batches of 2,000, 10,000 iterations", True,
)  # fmt: skip
OBJECTS = Task(
    {"dataset": {"kind": "views", "train": 400, "test": 1000, "side": 8, "classes": 40}, "network": "mlp",
     "batch": 160, "split": "channels", "weight_decay": 0.1},
    4, (4, 8), 10_000, "test_top_5_accuracy", "top-5 accuracy", (0.1, 0.3, 1.0),
    "ModelNet40, ResNet-18 on each of 12 views, K = 10 and 20, batches of 320, 4,000 iterations", True,
)  # fmt: skip
# The paper's own data from local files, with networks that are no ResNets, and its numbers of clients and samples.
# Of its grids of learning rates it gives the ranges: here both ends and a step between.
ORIGINAL = {
    IMAGES: replace(HALVES, problem={"dataset": "cifar-10", "network": "vgg-11", "batch": 2000}, clients=(50, 100),
                    iterations=5000, step_sizes=(1e-5, 3e-5, 1e-4), per_round=False),
    SEQUENCES: replace(SERIES, problem={"dataset": "mimic-iii", "network": "lstm", "batch": 2000}, clients=(20, 50),
                       iterations=10_000, step_sizes=(1e-3, 1e-2, 1e-1), per_round=False),
    VIEWS: replace(OBJECTS, silos=12, iterations=4000, clients=(10, 20),
                   problem={"dataset": "modelnet40", "network": "vgg-11", "batch": 320, "split": "channels"},
                   step_sizes=(5e-5, 2e-4, 1e-3), per_round=False),
}  # fmt: skip
SCALES = {
    "made": Scale(
        {IMAGES: HALVES, SEQUENCES: SERIES, VIEWS: OBJECTS},
        local_steps=(1, 5, 10),
        seeds=10,
        tuning_seeds=4,
        records=100,
    ),
    "original": Scale(ORIGINAL, numbers_of_silos=(2, 4, 8)),
}
SMOKE = Scale(
    {
        name: Task({"dataset": dataset, "network": "linear", "batch": 60, "split": split}, 2, (2, 3), 16, metric, words,
                   (0.05, 0.1), "larger")
        for name, dataset, split, metric, words in (
            (IMAGES, "digits", "columns", "test_accuracy", "test accuracy"),
            (SEQUENCES, "breast-cancer", "columns", "test_f1", "F1"),
            (VIEWS, "digits", "columns", "test_top_5_accuracy", "top-5 accuracy"),
        )
    },
    local_steps=(1, 2, 4), numbers_of_silos=(1, 2), seeds=2, tuning_seeds=1, records=6, extensions=0,
)  # fmt: skip


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The scale of generated data or of the paper's; with another network in every silo if given."""
    if dataset not in SCALES:
        raise unknown_name("data set of these figures", dataset, SCALES)
    if full and dataset != "original":
        raise FedboundsError("the paper's own numbers are those of its own data: --dataset original --data DIR")
    scale = SCALES[dataset]
    if network is None:
        return scale
    tasks = {k: replace(task, problem={**task.problem, "network": network}) for k, task in scale.tasks.items()}
    return replace(scale, tasks=tasks)
