"""A convolutional network under a theorem, with constants measured along its runs."""

from __future__ import annotations

from typing import Any

from fedbounds.empirical.confront import Confrontation
from fedbounds.figures.networks import along_the_run, network_picture
from fedbounds.figures.paper_gallery import PaperGallery
from fedbounds.figures.picture import Picture

RESULT, TITLE = "fed-norm-sgda/theorem-1", "A CNN on digits against an adversary, under Theorem 1"
SETTING: dict[str, Any] = {
    "name": "network-fair",
    "rounds": 2000,
    "seeds": 4,
    "seeds_per_run": 2,
    "record_every": 40,
    "record_models": True,
    "record_participation": True,
    "problem": {
        "kind": "fair-images",
        "dataset": "digits",
        "network": "cnn-small-smooth",
        "clients": 10,
        "partition": "dirichlet",
        "alpha": 1.0,
        "batch": 32,
        "regularization": 28,
        "gradient_norm": True,
    },
    "participation": {"kind": "full", "clients": 10},
    "algorithm": {
        "kind": "fed-norm-sgda",
        "local_step_size": 2e-05,
        "local_ascent_step_size": 2e-05,
        "server_step_size": 4.3e-06,
        "server_ascent_step_size": 0.0012,
        "local_steps": [1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
    },
}  # as in examples/fed-norm-sgda.toml
WORDS = (
    "Fed-Norm-SGDA for fair classification: 10 clients, all taking part with 1 to 3 local steps on "
    "batches of 32; two convolutions with GELU. The adversary weighs the classes, and her best response "
    "is known: envelope and dual gap are exact, so no attack estimates the gap from below."
)


def network_run(gallery: PaperGallery[Any]) -> Confrontation:
    """The runs and the bound."""
    return along_the_run(gallery, SETTING, RESULT)


def network(gallery: PaperGallery[Any]) -> Picture:
    """The gradient norm under the bound."""
    return network_picture(network_run(gallery), TITLE, SETTING, WORDS)
