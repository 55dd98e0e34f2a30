"""How fast the engines are, as ratios measured in one run: `python benchmarks/simulation.py`.

Three jobs. *Different dense Hessians*: FedAvg, 100 clients, 10 a round without replacement, 10 local steps, d =
100, gradient noise 0.1 per coordinate, one seed. *A shared Hessian*: 100 clients, d = 50, 10 local steps, 200
rounds, 32 seeds. *Networks*: 100 clients, 10 a round, 5 local steps, batch 16, one seed, against a plain loop over
the clients with ordinary torch modules. The racers take turns, so that a neighbor's load falls on all of them; the
clock is the processor's (one thread); the table shows the median seconds of a round (without preparation, which is
the time to the first round's end) and ratios to the racer of the first line.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from fedbounds.empirical.data.datasets import Dataset
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, Problem, Quadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, COHORT, STEP_SIZE = 100, 10, 0.05
TURNS = 5
PROCESS = WithoutReplacement(CLIENTS, COHORT)
Racer = Callable[[], list[float]]  # one turn: the clock after the preparation and after each round


def dense_quadratic() -> Quadratic:
    """Different dense Hessians with eigenvalues in [0.1, 1], d = 100."""
    rng, d = np.random.default_rng(0), 100
    frames = np.linalg.qr(rng.normal(size=(CLIENTS, d, d)))[0]
    hessians = (frames * rng.uniform(0.1, 1.0, (CLIENTS, 1, d))) @ frames.transpose(0, 2, 1)
    return Quadratic((hessians + hessians.transpose(0, 2, 1)) / 2, rng.normal(size=(CLIENTS, d)), noise=0.1)


def by_hand(problem: Quadratic, rounds: int, steps: int, dtype: torch.dtype) -> Racer:
    """What one writes by hand: the cohort's Hessians gathered, one batched product per local step."""
    hessians, centers = problem.hessians.to(dtype), problem.centers.to(dtype)

    def race() -> list[float]:
        rng, x, clock = np.random.default_rng(1), problem.x0.to(dtype), []
        for _ in range(rounds):
            cohort = torch.from_numpy(rng.choice(CLIENTS, COHORT, replace=False))
            A, c, y = hessians[cohort], centers[cohort], x.expand(COHORT, -1).clone()
            noise = problem.noise * torch.randn(steps, COHORT, len(x), dtype=dtype)
            for i in range(steps):
                y -= STEP_SIZE * (torch.bmm(A, (y - c)[:, :, None])[:, :, 0] + noise[i])
            x = y.mean(0)
            clock.append(time.process_time())
        return clock

    return race


def made_images(network: str, side: int) -> ImageClassification:
    """Random images, 20 a client: what they show does not matter to the clock."""
    rng, samples = np.random.default_rng(0), 20 * CLIENTS
    images = rng.integers(0, 256, (samples, 1, side, side), dtype=np.uint8)
    labels = rng.integers(0, 10, samples)
    dataset = Dataset("random", images, labels, images[:10], labels[:10], 10)
    partition = Partition(np.arange(samples) % CLIENTS, np.zeros(CLIENTS, dtype=np.int64))
    return ImageClassification(dataset, partition, network)


def plain_loop(problem: ImageClassification, rounds: int, steps: int) -> Racer:
    """FedAvg as one writes it with torch modules: one client after the other."""
    nn, side = torch.nn, problem.dataset.image[1]
    images = torch.from_numpy(problem.dataset.standardised()[0])
    labels = torch.from_numpy(problem.dataset.train_labels)
    if problem.network.convolutional:
        first = [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        net = nn.Sequential(*first, *second, nn.Linear(32 * (side // 4) ** 2, 128), nn.ReLU(), nn.Linear(128, 10))
    else:
        net = nn.Sequential(nn.Flatten(), nn.Linear(side**2, 32), nn.ReLU(), nn.Linear(32, 10))
    parameters, loss = list(net.parameters()), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(parameters, lr=STEP_SIZE)

    def race() -> list[float]:
        rng, clock = np.random.default_rng(1), []
        for _ in range(rounds):
            start = [value.detach().clone() for value in parameters]
            total = [torch.zeros_like(value) for value in parameters]
            for client in rng.choice(CLIENTS, COHORT, replace=False):
                with torch.no_grad():
                    for value, received in zip(parameters, start, strict=True):
                        value.copy_(received)
                for _ in range(steps):
                    batch = torch.from_numpy(rng.choice(problem.partition.samples[client], 16, replace=False))
                    optimizer.zero_grad()
                    loss(net(images[batch]), labels[batch]).backward()
                    optimizer.step()
                with torch.no_grad():
                    for add, value, received in zip(total, parameters, start, strict=True):
                        add += value - received
            with torch.no_grad():
                for value, received, add in zip(parameters, start, total, strict=True):
                    value.copy_(received + add / COHORT)
            clock.append(time.process_time())
        return clock

    return race


def engine(name: str, problem: Problem, rounds: int, steps: int = 10, seeds: int = 1) -> Racer:
    """Our simulation with that engine."""

    def race() -> list[float]:
        clock: list[float] = []
        simulate(
            FedAvg(STEP_SIZE, steps),
            problem,
            PROCESS,
            rounds + 1,
            seeds=range(seeds),
            engine=name,
            record_every=rounds + 1,
            progress=lambda done, total: clock.append(time.process_time()),
        )
        return clock[:-1]  # the last round is evaluated too

    return race


def twin(problem: Quadratic, rounds: int) -> Racer:
    """The slow twin, one seed."""

    def race() -> list[float]:
        q = PROCESS.matrix(rounds, Streams(0).generator("participation"))
        start = time.process_time()
        run_reference(FedAvg(STEP_SIZE, 10), problem, q, Streams(0))
        each = (time.process_time() - start) / rounds
        return [start + each * done for done in range(rounds + 1)]

    return race


def table(title: str, racers: dict[str, tuple[Racer, int]]) -> None:
    """Prints the median milliseconds of a round, for one seed, and ratios to the first racer."""
    rounds: dict[str, list[float]] = {name: [] for name in racers}
    first: dict[str, list[float]] = {name: [] for name in racers}
    for _ in range(TURNS):
        for name, (race, seeds) in racers.items():
            start = time.process_time()
            clock = race()
            first[name].append(clock[0] - start)
            rounds[name] += [(after - before) / seeds for before, after in itertools.pairwise(clock)]
    reference = statistics.median(rounds[next(iter(racers))])
    print(f"\n{title}\n{'racer':28}{'ms a round and seed':>21}{'rounds/s':>12}{'times first':>13}{'first ms':>10}")
    for name, seconds in rounds.items():
        median = statistics.median(seconds)
        preparation = 1e3 * statistics.median(first[name])
        print(f"{name:28}{1e3 * median:21.4f}{1 / median:12.0f}{median / reference:13.2f}{preparation:10.1f}")


def main() -> None:
    """Runs all jobs."""
    torch.set_num_threads(1)
    print(f"one thread of {os.cpu_count()}; torch {torch.__version__}, numpy {np.__version__}; {TURNS} turns each")
    dense = dense_quadratic()
    table(
        "different dense Hessians, N = 100, 10 a round, d = 100, I = 10, one seed",
        {
            "closed form": (engine("closed form", dense, 400), 1),
            "closed form, I = 5": (engine("closed form", dense, 400, steps=5), 1),
            "closed form, I = 50": (engine("closed form", dense, 400, steps=50), 1),
            "by hand, float32": (by_hand(dense, 400, 10, torch.float32), 1),
            "by hand, float64": (by_hand(dense, 400, 10, torch.float64), 1),
            "batched": (engine("batched", dense, 200), 1),
            "sequential": (engine("sequential", dense, 50), 1),
            "slow twin": (twin(dense, 50), 1),
        },
    )
    for title, shape in (
        ("a shared Hessian", {"diagonal": False}),
        ("a diagonal Hessian", {"diagonal": True}),
    ):
        shared = random_quadratic(CLIENTS, 50, noise=0.1, **shape)
        table(
            f"{title}, N = 100, 10 a round, d = 50, I = 10, T = 200, 32 seeds",
            {
                "closed form": (engine("closed form", shared, 200, seeds=32), 32),
                "batched": (engine("batched", shared, 200, seeds=32), 32),
                "slow twin": (twin(shared, 50), 1),
            },
        )
    for title, network, side, rounds in (("mlp", "mlp", 8, 40), ("cnn", "cnn", 8, 10), ("cnn", "cnn", 28, 4)):
        images = made_images(network, side)
        table(
            f"{title}, {side} x {side} pixels, {images.dimension} parameters, 10 of 100 clients a round, I = 5",
            {
                "chosen (auto)": (engine("auto", images, rounds, steps=5), 1),
                "batched": (engine("batched", images, rounds, steps=5), 1),
                "sequential": (engine("sequential", images, rounds, steps=5), 1),
                "plain torch loop": (plain_loop(images, rounds, 5), 1),
            },
        )


if __name__ == "__main__":
    main()
