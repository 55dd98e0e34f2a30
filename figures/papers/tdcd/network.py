"""A split network under Theorem 1, with constants measured along the run."""

from __future__ import annotations

from typing import Any

from fedbounds.figures.charts.networks import Networks

SETTING: dict[str, Any] = {
    "name": "network-tdcd",
    "rounds": 100,
    "seeds": 2,
    "seeds_per_run": 2,
    "record_every": 5,
    "problem": {
        "kind": "vertical",
        "dataset": "digits",
        "silos": 2,
        "silo_clients": 2,
        "network": "cnn-small-smooth",
        "batch": 240,
        "gradient_norm": True,
    },
    "participation": {"kind": "full", "clients": 4},
    "algorithm": {"kind": "tdcd", "local_step_size": 0.01, "local_steps": 5},
}
NETWORKS = Networks(
    "tdcd/theorem-1",
    SETTING,
    "A CNN in each of two silos under Theorem 1",
    "Left and right halves of digits in 2 silos of 2 clients each, two convolutions with GELU in either silo, batches "
    "of 240, Q = 5; small, and 100 rounds only.",
)
