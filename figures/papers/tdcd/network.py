"""A split network under Theorem 1, with the constants of its run."""

from __future__ import annotations

from typing import Any

from fedbounds.empirical.confront import Confrontation
from fedbounds.figures.claims import Claim
from fedbounds.figures.networks import along_the_run, network_picture, stays_below
from fedbounds.figures.paper_gallery import PaperGallery
from fedbounds.figures.picture import Picture

RESULT, TITLE = "tdcd/theorem-1", "A CNN in each of two silos under Theorem 1"
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
WORDS = (
    "Left and right halves of digits in 2 silos of 2 clients each, two convolutions with GELU in either silo, batches "
    "of 240, Q = 5; small, and 100 rounds only."
)


def along(gallery: PaperGallery[Any]) -> Confrontation:
    """The runs of the setting, and the bound."""
    return along_the_run(gallery, SETTING, RESULT)


def network(gallery: PaperGallery[Any]) -> Picture:
    """The gradient norm under the bound."""
    return network_picture(along(gallery), TITLE, SETTING, WORDS)


def claims(gallery: PaperGallery[Any]) -> list[Claim]:
    """What Theorem 1 says of the run."""
    return [stays_below(along(gallery))]
