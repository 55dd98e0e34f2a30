"""Networks compared with the paper's theorems: along one run, and over T at the steps that a result sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedbounds.figures.charts.networks import POINTS, NetworkFamily, Networks, read_setting

RESULT, TITLE = "fedau/theorem-2", "A CNN on digits under Theorem 2"
SETTING = read_setting("fedau")
CAPTION = (
    "FedAU with the cut-off K = 3: 20 clients with participation probabilities of 0.6 to 0.95, 2 local steps on "
    "batches of 8; two convolutions with GELU."
)


def _family(
    network: str, pilot: tuple[Mapping[str, Any], int], rounds: tuple[int, ...], since: int, points: int = POINTS
) -> NetworkFamily:
    """Corollary 4 for one network on digits."""
    return NetworkFamily(
        name=f"network-rate-fedau-{network}",
        result="fedau/corollary-4",
        form="sharp",
        theorem=RESULT,
        symbols=("L", "F", "sigma", "delta"),
        problem={"kind": "images", "dataset": "digits", "network": network, "clients": 20, "partition": "class-mix",
                 "alpha": 100.0, "batch": 16},
        participation={"kind": "bernoulli", "clients": 20, "probability": [0.9, 0.92, 0.94, 0.96, 0.98] * 4,
                       "normalize": False},
        pilot=pilot,
        rounds=rounds,
        since=since,
        local_steps=2,
        points=points,
    )  # fmt: skip


def _pilot(step: float) -> dict[str, Any]:
    return {"kind": "fedau", "local_step_size": step, "local_steps": 2, "cutoff": 2}


FAMILIES = {
    "CNN, FedAU": _family("cnn-small-smooth", (_pilot(0.005), 2048), (*(2**k for k in range(7, 12)), 4096, 16384), 512),
    "MLP (ReLU), FedAU": _family("mlp", (_pilot(0.02), 1024), tuple(2**k for k in range(7, 13)), 1024, 1024),
}


NETWORKS = Networks(
    RESULT,
    SETTING,
    TITLE,
    CAPTION,
    FAMILIES,
    "Rates of networks at the steps of Corollary 4",
    "Digits, 20 clients with nearly equal mixes of classes and participation probabilities of 0.9 to 0.98, so that the "
    "cut-off is K = 2 for all T; 2 local steps on batches of 16. CNN: two convolutions with GELU. MLP: 32 hidden "
    "units with ReLU, whose gradient jumps: its smoothness is the largest secant that was met.",
)
