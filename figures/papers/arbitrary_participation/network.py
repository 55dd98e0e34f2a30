"""Networks compared with the paper's theorems: along one run, and over T at the steps that a result sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedbounds.figures.charts.networks import POINTS, NetworkFamily, Networks, read_setting

RESULT, TITLE = "arbitrary-participation/theorem-3.1", "A CNN on glyphs under Theorem 3.1"
SETTING = read_setting("arbitrary_participation")
CAPTION = (
    "Generalized FedAvg: 10 clients with 1,000 glyphs in all, mostly of one class each; two cyclic "
    "groups of five, 2 local steps on batches of 16, amplified every 2 rounds; two convolutions with GELU."
)


def _family(
    network: str, pilot: tuple[Mapping[str, Any], int], rounds: tuple[int, ...], since: int, points: int = POINTS
) -> NetworkFamily:
    """Corollary 3.2 for one network on digits."""
    clients = {"kind": "cyclic", "clients": 10, "groups": 2}
    return NetworkFamily(
        name=f"network-rate-in-turn-{network}",
        result="arbitrary-participation/corollary-3.2",
        form="explicit",
        theorem=RESULT,
        symbols=("L", "F", "sigma", "nu", "beta", "delta"),
        problem={"kind": "images", "dataset": "digits", "network": network, "clients": 10,
                 "partition": "majority-class", "similarity": 0.3, "batch": 24},
        participation=clients,
        pilot=pilot,
        rounds=rounds,
        since=since,
        local_steps=2,
        interval=2,
        points=points,
    )  # fmt: skip


def _pilot(step: float) -> dict[str, Any]:
    return {"kind": "generalized-fedavg", "local_step_size": step, "local_steps": 2, "interval": 2}


FAMILIES = {
    "CNN, Corollary 3.2": _family(
        "cnn-small-smooth", (_pilot(0.005), 2048), (*(2**k for k in range(7, 11)), 4096, 16384), 256
    ),
    "MLP (ReLU), Corollary 3.2": _family("mlp", (_pilot(0.02), 1024), tuple(2**k for k in range(7, 15)), 4096),
}


NETWORKS = Networks(
    RESULT,
    SETTING,
    TITLE,
    CAPTION,
    FAMILIES,
    "Rates of networks at the steps of Corollary 3.2",
    "Digits, 10 clients, mostly of one class each; two cyclic groups of five, 2 local steps on batches of 24, "
    "P = 2. CNN: two convolutions with GELU. MLP: 32 hidden units with ReLU, whose gradient jumps: its smoothness "
    "is the largest secant that was met.",
)
