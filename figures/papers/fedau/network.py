"""A convolutional network under a theorem, with constants measured along its runs."""

from __future__ import annotations

from typing import Any

from fedbounds.empirical.confront import Confrontation
from fedbounds.figures.networks import along_the_run, network_picture
from fedbounds.figures.paper_gallery import PaperGallery
from fedbounds.figures.picture import Picture

RESULT, TITLE = "fedau/theorem-2", "A CNN on digits under Theorem 2"
SETTING: dict[str, Any] = {
    "name": "network-fedau",
    "rounds": 4000,
    "seeds": 4,
    "seeds_per_run": 2,
    "record_every": 80,
    "record_models": True,
    "record_participation": True,
    "problem": {
        "kind": "images",
        "dataset": "digits",
        "network": "cnn-small-smooth",
        "clients": 20,
        "partition": "class-mix",
        "alpha": 1.0,
        "batch": 8,
        "gradient_norm": True,
    },
    "participation": {
        "kind": "bernoulli",
        "clients": 20,
        "probability": [0.6, 0.7, 0.8, 0.9, 0.95] * 4,
        "normalize": False,
    },
    "algorithm": {"kind": "fedau", "local_step_size": 0.0001, "local_steps": 2, "server_multiplier": 5, "cutoff": 3},
}  # as in examples/fedau.toml
WORDS = (
    "FedAU with the cut-off K = 3: 20 clients that take part by coins of 0.6 to 0.95, 2 local steps on "
    "batches of 8; two convolutions with GELU."
)


def network_run(gallery: PaperGallery[Any]) -> Confrontation:
    """The runs and the bound."""
    return along_the_run(gallery, SETTING, RESULT)


def network(gallery: PaperGallery[Any]) -> Picture:
    """The gradient norm under the bound."""
    return network_picture(network_run(gallery), TITLE, SETTING, WORDS)
