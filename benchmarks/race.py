"""One fixed job at equal mathematics, as ratios measured in one run: `python benchmarks/race.py [--jax PYTHON]`.

FedAvg, 100 clients, 10 a round without replacement, 10 local steps of batch 16, float32, nothing evaluated in the
rounds that count: `mlp8` (64-32-10 on 8 x 8 pixels) and `cnn28` (two convolutions 5 x 5 x 32, 128 units). Before
anything is timed every racer makes our engine's first round, with its clients and samples, and must end at its model.
The racers take turns, the clock is the processor's (one thread), and a table shows medians. With the Python of an
environment that holds jax, `--jax`, a round as one compiled XLA program takes part, bound to one core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedbounds.empirical.datasets import Dataset
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.partition import Partition
from fedbounds.empirical.problems import ImageClassification
from fedbounds.empirical.simulate import Setting, simulate, simulate_together
from fedbounds.empirical.streams import Streams

CLIENTS, COHORT, STEPS, BATCH, EACH, STEP_SIZE = 100, 10, 10, 16, 120, 0.05
PROCESS, MANY = WithoutReplacement(CLIENTS, COHORT), 16
NEAR = 1e-5  # relative, after one round in float32
Round = Callable[[Tensor, Tensor, Tensor], Tensor]  # model, clients (cohort,), samples (cohort, steps, batch) -> model
Turn = Callable[[], list[float]]  # seconds of each round, of one run

XLA = """
import json, sys, time
import numpy as np, jax, jax.numpy as jnp
given = np.load(sys.argv[1]); rounds, size = int(sys.argv[2]), float(sys.argv[3])
X, Y = jnp.asarray(given["images"]), jnp.asarray(given["labels"])
def split(x):
    return x[:2048].reshape(32, 64), x[2048:2080], x[2080:2400].reshape(10, 32), x[2400:]
def loss(p, x, y):
    a, b, c, d = p
    z = jax.nn.log_softmax(jax.nn.relu(x @ a.T + b) @ c.T + d)
    return -jnp.mean(jnp.take_along_axis(z, y[:, None], 1))
@jax.jit
def round_(p, samples):
    def client(own):
        def step(v, j):
            return jax.tree_util.tree_map(lambda q, g: q - size * g, v, jax.grad(loss)(v, X[j], Y[j])), None
        return jax.lax.scan(step, p, own)[0]
    return jax.tree_util.tree_map(lambda v: v.mean(0), jax.vmap(client)(samples))
p = split(jnp.asarray(given["model"]))
first = np.concatenate([np.ravel(v) for v in round_(p, given["samples"])])
rng, seconds, each = np.random.default_rng(1), [], len(Y) // 100
for r in range(rounds + 5):
    start = time.process_time()
    c = rng.choice(100, 10, replace=False)
    p = jax.block_until_ready(round_(p, c[:, None, None] + 100 * rng.integers(0, each, given["samples"].shape)))
    seconds.append(time.process_time() - start)
print(json.dumps({"first": first.tolist(), "seconds": seconds[5:]}))
"""


def made_images(network: str, side: int) -> ImageClassification:
    """Random images, 120 a client: what they show does not matter to the clock."""
    rng, samples = np.random.default_rng(0), EACH * CLIENTS
    images = rng.integers(0, 256, (samples, 1, side, side), dtype=np.uint8)
    labels = rng.integers(0, 10, samples)
    dataset = Dataset("random", images, labels, images[:10], labels[:10], 10)
    return ImageClassification(dataset, Partition(np.arange(samples) % CLIENTS, np.zeros(CLIENTS, np.int64)), network)


def first_round(problem: ImageClassification) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The model, the clients and the samples of seed 0's first round, and the model that our engine makes of them."""
    streams = Streams(0)
    clients, _ = next(PROCESS.draw(streams.generator("participation")))
    samples = [problem.draws(streams.generator("noise", 0, int(n)), int(n), STEPS) for n in clients]
    run = simulate(FedAvg(STEP_SIZE, STEPS), problem, PROCESS, 1, record_models=True)
    before, after = torch.from_numpy(run.model[0]).unbind()
    return before, torch.from_numpy(clients), torch.from_numpy(np.stack(samples)), after


def plain_loop(problem: ImageClassification) -> Round:
    """FedAvg as one writes it with torch modules: one client after the other."""
    images, labels = torch.from_numpy(problem.dataset.standardised()[0]), torch.from_numpy(problem.dataset.train_labels)
    if problem.network.convolutional:
        first = [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        net = nn.Sequential(*first, *second, nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
    else:
        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=STEP_SIZE)

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        total = torch.zeros_like(model)
        for own in samples:
            nn.utils.vector_to_parameters(model.clone(), net.parameters())  # they become views of it
            for batch in own:
                optimizer.zero_grad()
                F.cross_entropy(net(images[batch]), labels[batch]).backward()
                optimizer.step()
            total += nn.utils.parameters_to_vector(net.parameters()).detach()
        return total / len(samples)

    return play


def hand_batched(problem: ImageClassification) -> Round:
    """The cohort's dense networks in one batch, written by hand, with autograd."""
    images, labels = torch.from_numpy(problem.dataset.standardised()[0]), torch.from_numpy(problem.dataset.train_labels)
    shapes = list(problem.network.shapes.values())

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        parts = model.split([int(np.prod(shape)) for shape in shapes])
        copies = [
            part.view(shape).expand(len(samples), *shape).clone() for part, shape in zip(parts, shapes, strict=True)
        ]
        for batch in samples.unbind(1):
            own = [copy.requires_grad_() for copy in copies]
            hidden = torch.baddbmm(own[1][:, None], images[batch].flatten(2), own[0].mT).relu()
            answers = torch.baddbmm(own[3][:, None], hidden, own[2].mT)
            loss = F.cross_entropy(answers.flatten(0, 1), labels[batch].flatten(), reduction="sum") / BATCH
            slopes = torch.autograd.grad(loss, own)
            with torch.no_grad():
                copies = [copy - STEP_SIZE * slope for copy, slope in zip(own, slopes, strict=True)]
        return torch.cat([copy.mean(0).flatten() for copy in copies])

    return play


def by_hand(play: Round, model: Tensor, rounds: int) -> Turn:
    """Turns of a racer that draws clients and samples as one does by hand, with replacement."""

    def turn() -> list[float]:
        rng, x, clock = np.random.default_rng(1), model, [time.process_time()]
        for _ in range(rounds):
            clients = rng.choice(CLIENTS, COHORT, replace=False)
            samples = clients[:, None, None] + CLIENTS * rng.integers(0, EACH, (COHORT, STEPS, BATCH))
            x = play(x, torch.from_numpy(clients), torch.from_numpy(samples))
            clock.append(time.process_time())
        return [after - before for before, after in itertools.pairwise(clock)]

    return turn


def ours(problem: ImageClassification, engine: str, rounds: int, sizes: Sequence[float], seeds: int = 1) -> Turn:
    """Turns of our engine, of settings and seeds together; what is prepared before the first rounds is left out."""

    def turn() -> list[float]:
        clock: list[float] = []
        settings = [Setting(FedAvg(size, STEPS), range(seeds), rounds + 6) for size in sizes]
        list(simulate_together(settings, problem, PROCESS, engine=engine, record_every=rounds + 6,
                               progress=lambda done, total: clock.append(time.process_time())))  # fmt: skip
        each = [after - before for before, after in itertools.pairwise(clock)][4:-1]
        return [seconds / (len(sizes) * seeds) for seconds in each]

    return turn


def compiled_program(python: str, problem: ImageClassification, rounds: int) -> tuple[Turn, Tensor]:
    """Turns of the XLA program in an environment of its own, and the model after the first round."""
    model, _, samples, _ = first_round(problem)
    place = Path(tempfile.mkdtemp()) / "given.npz"
    pixels = problem.dataset.standardised()[0].reshape(-1, 64).astype(np.float32)
    np.savez(place, images=pixels, labels=problem.dataset.train_labels, model=model.numpy(), samples=samples.numpy())
    one = {**os.environ, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}
    command = ["taskset", "-c", "0", python, "-c", XLA, str(place), str(rounds), str(STEP_SIZE)]

    def played() -> dict[str, list[float]]:
        done = subprocess.run(command, env=one, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return lambda: played()["seconds"], torch.tensor(played()["first"])


def table(title: str, racers: dict[str, Turn], turns: int) -> None:
    """Prints the median milliseconds of a round of one run, and how many times as fast as the first racer it is."""
    seconds: dict[str, list[float]] = {name: [] for name in racers}
    for _ in range(turns):
        for name, turn in racers.items():
            seconds[name] += turn()
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    print(f"\n{title}\n{'racer':36}{'ms a round':>12}{'rounds/s':>11}{'times as fast':>15}")
    for name, median in medians.items():
        print(
            f"{name:36}{1e3 * median:12.3f}{1 / median:11.1f}{next(iter(medians.values())) / median:15.2f}", flush=True
        )


def main() -> None:
    """Compares, then races."""
    parser = argparse.ArgumentParser(description="The race.")
    parser.add_argument("--jax", help="the Python of an environment that holds jax")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=60, help="of a turn of mlp8; of cnn28 a twentieth")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"one thread of {os.cpu_count()}; torch {torch.__version__}, numpy {np.__version__}; {given.turns} turns each"
    )
    for work, network, side in (("mlp8", "mlp", 8), ("cnn28", "cnn", 28)):
        problem, small = made_images(network, side), network == "mlp"
        rounds = given.rounds if small else max(2, given.rounds // 20)
        model, clients, samples, expected = first_round(problem)
        hand = {"plain torch loop": plain_loop(problem)} | (
            {"hand-batched torch": hand_batched(problem)} if small else {}
        )
        found = {name: play(model, clients, samples) for name, play in hand.items()}
        racers = {name: by_hand(play, model, rounds) for name, play in hand.items()}
        if given.jax and small:
            racers["one XLA program"], found["one XLA program"] = compiled_program(given.jax, problem, rounds)
        for name, after in found.items():
            away = float((after - expected).norm() / (expected - model).norm())
            print(f"{work}: {name} ends its first round {away:.1e} from our engine, relative to the way gone")
            if away > NEAR * STEPS:
                sys.exit(f"{name} computes something else")
        sizes = [STEP_SIZE * (k + 1) / MANY for k in range(MANY)]
        racers["ours, chosen"] = ours(problem, "auto", rounds, [STEP_SIZE])
        if small:
            racers["ours, compiled"] = ours(problem, "compiled", rounds, [STEP_SIZE])
            racers[f"ours, {MANY} step sizes together"] = ours(problem, "auto", rounds, sizes)
            racers[f"ours, compiled, {MANY} seeds"] = ours(problem, "compiled", rounds, [STEP_SIZE], MANY)
        table(f"{work}: 10 of 100 clients a round, 10 local steps, batch 16", racers, given.turns)


if __name__ == "__main__":
    main()
