"""A convolutional network under a theorem, with constants measured along its runs."""

from __future__ import annotations

from typing import Any

from fedbounds.empirical.confront import Confrontation
from fedbounds.figures.networks import along_the_run, network_picture
from fedbounds.figures.paper_gallery import PaperGallery
from fedbounds.figures.picture import Picture

RESULT, TITLE = "arbitrary-participation/theorem-3.1", "A CNN on glyphs under Theorem 3.1"
SETTING: dict[str, Any] = {
    "name": "network-in-turn",
    "rounds": 1000,
    "seeds": 4,
    "seeds_per_run": 2,
    "record_every": 20,
    "record_models": True,
    "record_participation": True,
    "problem": {
        "kind": "images",
        "dataset": {"kind": "glyphs", "train": 1000, "test": 200},
        "network": "cnn-small-smooth",
        "clients": 10,
        "partition": "majority-class",
        "similarity": 0.3,
        "batch": 16,
        "gradient_norm": True,
    },
    "participation": {"kind": "cyclic", "clients": 10, "groups": 2},
    "algorithm": {
        "kind": "generalized-fedavg",
        "local_step_size": 8e-05,
        "local_steps": 2,
        "server_multiplier": 20,
        "interval": 2,
    },
}  # as in examples/arbitrary-participation.toml
WORDS = (
    "Generalized FedAvg: 10 clients with 1,000 glyphs in all, mostly of one class each; two groups of "
    "five in turn, 2 local steps on batches of 16, amplified every 2 rounds; two convolutions with GELU."
)


def network_run(gallery: PaperGallery[Any]) -> Confrontation:
    """The runs and the bound."""
    return along_the_run(gallery, SETTING, RESULT)


def network(gallery: PaperGallery[Any]) -> Picture:
    """The gradient norm under the bound."""
    return network_picture(network_run(gallery), TITLE, SETTING, WORDS)
