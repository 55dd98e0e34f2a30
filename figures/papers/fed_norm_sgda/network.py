"""Networks compared with the paper's theorems: along one run, and over T at the steps that a result sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedbounds.figures.charts.networks import POINTS, NetworkFamily, Networks, read_setting

RESULT, TITLE = "fed-norm-sgda/theorem-1", "A CNN on digits against an adversary, under Theorem 1"
SETTING = read_setting("fed_norm_sgda")
CAPTION = (
    "Fed-Norm-SGDA for fair classification: 10 clients, all taking part with 1 to 3 local steps on "
    "batches of 32; two convolutions with GELU. The adversary weighs the classes, and her best response "
    "is known: envelope and dual gap are exact, so no attack estimates the gap from below."
)


def _family(
    network: str,
    regularization: float,
    pilot: tuple[Mapping[str, Any], int],
    rounds: tuple[int, ...],
    since: int,
    points: int = POINTS,
) -> NetworkFamily:
    """Theorem 1 at its steps for one network on fair digits."""
    return NetworkFamily(
        name=f"network-rate-fair-{network}",
        result="fed-norm-sgda/theorem-1-at-its-steps",
        form="sharp",
        theorem=RESULT,
        symbols=("Lf", "sigmaL", "betaL", "sigmaG", "betaG", "Delta", "delta0"),
        problem={"kind": "fair-images", "dataset": "digits", "network": network, "clients": 100,
                 "partition": "dirichlet", "alpha": 100.0, "batch": 4, "regularization": regularization},
        participation={"kind": "full", "clients": 100},
        pilot=pilot,
        rounds=rounds,
        since=since,
        local_steps=2,
        points=points,
    )  # fmt: skip


def _pilot(step: float) -> dict[str, Any]:
    return {"kind": "fed-norm-sgda", "local_step_size": 1e-3, "local_ascent_step_size": 1e-3,
            "server_step_size": step, "server_ascent_step_size": 3e-3, "local_steps": 2}  # fmt: skip


FAMILIES = {
    "CNN, Theorem 1": _family("cnn-small-smooth", 4.0, (_pilot(1e-3), 512), (64, 128, 256, 512, 2048, 16384), 64),
    "MLP (ReLU), Theorem 1": _family("mlp", 12.0, (_pilot(1e-3), 512), tuple(4**k for k in range(4, 7)), 256, 256),
}


NETWORKS = Networks(
    RESULT,
    SETTING,
    TITLE,
    CAPTION,
    FAMILIES,
    "Rates of networks at the steps of Theorem 1",
    "Fair classification of digits: 100 clients with nearly equal mixes of classes, all taking part with 2 local "
    "steps on batches of 4. CNN: two convolutions with GELU. MLP: 32 hidden units with ReLU, whose gradient "
    "jumps: its smoothness is the largest secant that was met. The adversary's regularization is 4 for the CNN (of 1, "
    "4 and 28 the one with the largest steps for x in pilot runs) and 12 for the MLP.",
)
