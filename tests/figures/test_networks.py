"""Networks under the papers' theorems: the settings are the examples', the claims are what was measured."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedbounds.bounds.reading import read_toml
from fedbounds.figures.networks import along_the_run, network_picture, stays_below

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROOMS = {
    "arbitrary_participation": "arbitrary-participation",
    "fedau": "fedau",
    "fed_norm_sgda": "fed-norm-sgda",
}


def room(name):
    return import_module(f"fedbounds.figures.papers.{name}.network")


@pytest.mark.parametrize("name", ROOMS)
def test_the_picture_of_a_network_is_that_of_its_example(name):
    assert read_toml(EXAMPLES / f"{ROOMS[name]}.toml") == room(name).SETTING


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    gallery = SimpleNamespace(results=tmp_path_factory.mktemp("runs"), workers=1, device=None, progress=None)
    setting = room("fedau").SETTING
    small = {"rounds": 6, "seeds": 2, "record_every": 6}
    return along_the_run(gallery, setting | small, "fedau/theorem-2")  # pyright: ignore[reportArgumentType]


def test_the_picture_says_what_kind_of_constants_it_has_and_that_it_is_no_guarantee(comparison):
    picture = network_picture(comparison, "A network", {"rounds": 6}, "In words.")
    assert picture.caption.startswith("A network. In words. No guarantee: ") and "(estimated)" in picture.caption
    (axes,) = picture.figure.axes
    (words,) = [text.get_text() for text in axes.texts]
    assert words.startswith("measured / bound = ") and "no guarantee: " in words
    assert picture.curves[0].low is not None and picture.provenance["setting"] == {"rounds": 6}


def test_a_claim_agrees_below_the_bound_and_disagrees_only_if_it_is_clearly_crossed(comparison):
    holds = replace(comparison, valid=np.ones_like(comparison.valid))
    assert stays_below(holds).agrees is True and "never crossed" in stays_below(holds).measured
    nothing = replace(comparison, valid=np.zeros_like(comparison.valid))
    assert stays_below(nothing).agrees is None
    error = np.full(len(holds.rounds), 0.1)
    above = replace(holds, measured=holds.bound + 0.3, standard_error=error)
    assert stays_below(above).agrees is False and "crossed at" in stays_below(above).measured
    doubtful = replace(holds, measured=holds.bound + 0.1, standard_error=error)
    assert stays_below(doubtful).agrees is None
