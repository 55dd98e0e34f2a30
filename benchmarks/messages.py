"""What messages and masks cost, as ratios in one run: `python benchmarks/messages.py [--dimension 10000000]`.

- *masks*: encoding and decoding a mask, over packing and unpacking its bits and making its noise (goal: 2).
- *codecs*: encoding and decoding an update, over packing and unpacking as many bits.
- *training*: a round of FedMRN with a CNN, over one of FedAvg (goal: 1.25; a public implementation needs 1.88).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fedbounds.empirical.algorithms.messages import Drive, Eden, StochasticSign, TernGrad, TopK
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fedmrn.algorithms import FedMRN
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.simulation.simulate import simulate


def seconds(call: Callable[[], Any], times: int = 5) -> float:
    """The median of some calls."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def masks(size: int) -> None:
    """Masked noise over its parts."""
    mask = np.random.default_rng(0).random(size) < 0.5
    packed = np.packbits(mask)
    bits = seconds(lambda: np.packbits(mask)) + seconds(lambda: np.unpackbits(packed))
    for law in ("uniform", "bernoulli", "gaussian"):
        codec = MaskedNoise(law, 0.01)
        message = codec.encode_mask(mask, 1)
        parts = bits + seconds(lambda codec=codec: codec.noise(1, size))
        both = seconds(lambda codec=codec: codec.encode_mask(mask, 1))
        both += seconds(lambda codec=codec, message=message: codec.decode(message))
        print(f"masks of {law:10s} {both:8.3f} s, {both / parts:6.2f} times bits and noise")


def codecs(size: int) -> None:
    """The other codecs, without noise that must be made."""
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    rng, packed = np.random.default_rng(1), np.packbits(x > 0)
    bits = seconds(lambda: np.packbits(x > 0)) + seconds(lambda: np.unpackbits(packed))
    for codec in (StochasticSign(), TernGrad(), TopK(), Drive(), Eden(2)):
        message = codec.encode(x, rng)
        both = seconds(lambda codec=codec: codec.encode(x, rng), 3)
        both += seconds(lambda codec=codec, message=message: codec.decode(message), 3)
        each = 8 * len(message) / size
        print(f"{codec.kind:19s} {both:8.3f} s, {both / bits:6.0f} times bits, {each:.3f} bits a number")


def training() -> None:
    """A round with a CNN, 2 clients of 10, 10 local steps, batch 64."""
    data = {"kind": "glyphs", "train": 2000, "test": 100}
    problem = problem_from_spec({"kind": "images", "dataset": data, "network": "cnn", "clients": 10, "batch": 64})
    rules = {
        "fedavg": FedAvg(0.05, 10),
        "fedmrn": FedMRN(0.05, 10, amplitude=0.005),
        "without progression": FedMRN(0.05, 10, amplitude=0.005, progressive=False),
    }
    some, taken = WithoutReplacement(10, 2), {name: [] for name in rules}
    for _ in range(5):  # in turn, so that what else the machine does falls on all alike
        for name, rule in rules.items():
            taken[name].append(seconds(lambda rule=rule: simulate(rule, problem, some, 2, record_every=2), 1))
    base = statistics.median(taken["fedavg"])
    for name, times in taken.items():
        print(f"{name:19s} {statistics.median(times) / base:6.3f} times fedavg, d = {problem.dimension}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What messages and masks cost.")
    parser.add_argument("--dimension", type=int, default=10**7)
    given = parser.parse_args()
    masks(given.dimension)
    codecs(given.dimension)
    training()
