"""TDCD on a split CNN of the widths of the public code's: `python benchmarks/split_cnn.py`.

Two silos, each with a half of 3 x 32 x 32 images and VGG-11 (64 to 512 filters, as ResNet-18 has), four clients in
each. Our engine against a plain loop over torch modules, which are first seen to end at the same model. The racers take
turns; one thread and the processor's time, so that other work on the machine hardly counts. Numbers are medians.
"""

from __future__ import annotations

import copy
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import VerticalNetworks, problem_from_spec
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, STEPS, ETA, ROUNDS, TURNS = 4, (1, 5), 0.01, 2, 5
PROBLEM = {
    "kind": "vertical",
    "dataset": {"kind": "glyphs", "train": 256, "test": 32, "color": True},
    "silos": 2,
    "silo_clients": CLIENTS,
    "network": "vgg-11",
    "batch": 64,
}


class Half(nn.Sequential):
    """VGG-11 on 32 x 16 pixels: five poolings would leave nothing, so that the last is left out."""

    def __init__(self) -> None:
        layers: list[nn.Module] = []
        channels = 3
        for i, filters in enumerate((64, 128, 256, 256, 512, 512, 512, 512), start=1):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if i in (1, 2, 4, 6) else []
            channels = filters
        super().__init__(*layers, nn.Flatten(), nn.Linear(512 * 2 * 1, 10))


def filled(module: nn.Module, flat: Tensor) -> nn.Module:
    """The module with the parameters of a flat vector."""
    nn.utils.vector_to_parameters(flat, module.parameters())
    return module


def plain(problem: VerticalNetworks, local_steps: int, rounds: int) -> Tensor:
    """TDCD as one would write it, a module for every client."""
    streams = Streams(0)
    start = problem.initial_point(streams.generator("initialization"))
    hubs = [filled(Half(), start[block].clone()) for block in problem.blocks]
    data = [problem.silo_data(j) for j in range(2)]
    for r in range(rounds):
        batch = torch.from_numpy(problem.draw_round(streams.generator("noise", r)))
        with torch.no_grad():
            told = [hub(own.features[batch]) for hub, own in zip(hubs, data, strict=True)]
        for j, (hub, own) in enumerate(zip(hubs, data, strict=True)):
            copies = []
            for shard in own.shards:
                held = torch.isin(batch, torch.as_tensor(shard))
                client = copy.deepcopy(hub)
                optimizer = torch.optim.SGD(client.parameters(), ETA)
                for _ in range(local_steps):
                    optimizer.zero_grad()
                    out = client(own.features[batch[held]]) + told[1 - j][held]
                    F.cross_entropy(out, own.labels[batch[held]]).backward()
                    optimizer.step()
                copies.append(nn.utils.parameters_to_vector(client.parameters()).detach())
            hubs[j] = filled(hub, torch.stack(copies).mean(0))
    return torch.cat([nn.utils.parameters_to_vector(hub.parameters()).detach() for hub in hubs])


def engine(problem: VerticalNetworks, local_steps: int, rounds: int) -> Tensor:
    """The last round's model; what is recorded at both ends is not counted by the caller."""
    run = simulate(TDCD(ETA, local_steps), problem, Full(2 * CLIENTS), rounds, seeds=[0], record_every=rounds,
                   record_models=True)  # fmt: skip
    return torch.from_numpy(run.model[0, -1])


def seconds(race: Callable[[int], object]) -> float:
    """Of one round: those of some rounds less those of one, so that beginning and end do not count."""
    taken = []
    for rounds in (1, 1 + ROUNDS):
        start = time.process_time()
        race(rounds)
        taken.append(time.process_time() - start)
    return (taken[1] - taken[0]) / ROUNDS


def main() -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    problem = problem_from_spec(PROBLEM)
    assert isinstance(problem, VerticalNetworks)
    apart = float((plain(problem, 2, 1) - engine(problem, 2, 1)).abs().max())
    print(
        f"{os.cpu_count()} processors, torch {torch.__version__}, {problem.dimension:,} parameters; apart {apart:.1e}"
    )
    print(f"{'Q':>3} {'plain loop, rounds/s':>22} {'engine':>8} {'times as fast':>14}")
    for Q in STEPS:
        turns = [[seconds(partial(race, problem, Q)) for race in (plain, engine)] for _ in range(TURNS)]
        loop, ours = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"{Q:3} {1 / loop:22.3f} {1 / ours:8.3f} {loop / ours:14.2f}")


if __name__ == "__main__":
    main()
