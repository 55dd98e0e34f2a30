"""Networks under the papers' theorems: the settings are the examples', the claims are what was measured."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedbounds.bounds.inputs.user_files import read_toml
from fedbounds.empirical.sweep import Store
from fedbounds.figures.charts.networks import (
    bound_claim,
    compare_with_run,
    network_picture,
    network_rate,
    pilot_comparison,
)
from fedbounds.figures.charts.rate import describe_rate, rate_claims

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
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
    gallery = SimpleNamespace(results=tmp_path_factory.mktemp("runs"), workers=1, device=None, of_runs=None)
    setting = room("fedau").SETTING
    small = {"rounds": 6, "seeds": 2, "record_every": 6}
    return compare_with_run(gallery, setting | small, "fedau/theorem-2")  # pyright: ignore[reportArgumentType]


def test_the_picture_says_what_kind_of_constants_it_has_and_that_it_is_no_guarantee(comparison):
    picture = network_picture(comparison, "A network", {"rounds": 6}, "In words.")
    assert picture.caption.startswith("A network. In words. No guarantee: ") and "(estimated)" in picture.caption
    (axes,) = picture.figure.axes
    words = " ".join(axes.get_title(loc="left").split())
    assert words.startswith("measured / bound = ") and "no guarantee: " in words
    assert picture.curves[0].low is not None and picture.provenance["setting"] == {"rounds": 6}


def test_a_claim_agrees_below_the_bound_and_disagrees_only_if_it_is_clearly_crossed(comparison):
    holds = replace(comparison, valid=np.ones_like(comparison.valid))
    assert bound_claim(holds).agrees is True and "never crossed" in bound_claim(holds).measured
    nothing = replace(comparison, valid=np.zeros_like(comparison.valid))
    assert bound_claim(nothing).agrees is None
    error = np.full(len(holds.rounds), 0.1)
    several = replace(holds, seeds=20, measured=holds.bound + 0.5, standard_error=error)
    assert bound_claim(several).agrees is False and "crossed at" in bound_claim(several).measured
    doubtful = replace(holds, seeds=20, measured=holds.bound + 0.1, standard_error=error)
    assert bound_claim(doubtful).agrees is None
    two = replace(holds, seeds=2, measured=holds.bound + 0.5, standard_error=error)
    assert bound_claim(two).agrees is None  # five standard errors of two seeds are not clear


@pytest.fixture(scope="module", params=ROOMS)
def rated(request, tmp_path_factory):
    """The last panel of a paper package, made small."""
    results = tmp_path_factory.mktemp("runs")
    gallery = SimpleNamespace(results=results, workers=1, device=None, of_runs=None)
    name, family = list(room(request.param).NETWORKS.families.items())[-1]
    some = family.problem | {"clients": 10, "batch": 8}
    who = family.participation | {"clients": 10}
    if "probability" in who:
        who["probability"] = who["probability"][:10]
    small = replace(family, problem=some, participation=who, pilot=(family.pilot[0], 8), rounds=(8, 16, 32), since=8,
                    seeds=(0, 1), points=4)  # fmt: skip
    return gallery, name, small, network_rate(gallery, small)  # pyright: ignore[reportArgumentType]


def test_a_rate_of_networks_has_the_pilots_constants_and_each_run_the_steps_for_them(rated):
    gallery, _, family, one = rated
    pilot, c = pilot_comparison(gallery, family), one.family
    for symbol in family.symbols:
        assert c.constants[symbol].value == pilot.constants[symbol].value
        assert c.constants[symbol].source == "estimated" and "other seeds" in c.constants[symbol].note
    assert c.rounds.tolist() == [8, 16, 32] and c.seeds == 2 and one.predicted == -0.5
    runs = [Store(gallery.results / family.name).load(key.stem) for key in gallery.results.rglob("*.json")]
    steps = {run.spec["rounds"]: run.spec["algorithm"]["local_step_size"] for run in runs if list(run.seed) == [0, 1]}
    local = next(name for name in ("gamma", "etax") if name in c.evaluation.prescribed)
    assert steps[32] == float(c.evaluation.prescribed[local]) <= steps[8]


def test_every_run_of_a_family_starts_where_the_pilot_does_and_it_is_said_when_a_bound_is_below_that(rated):
    _, name, _, one = rated
    assert one.telling is None or one.bound(np.array([one.telling]))[0] < one.start <= one.bound(
        np.array([one.telling - 1])
    )
    words = describe_rate(one)
    assert "Before the first round" in words and "Not a guarantee: only estimated" in words and "None" not in words
    assert len(rate_claims({name: one})) == 2


def test_a_claim_on_a_rate_that_is_not_decided_says_why(rated):
    *_, one = rated
    high = 2 * float(one.family.bound[0])

    def with_measured(*values, apart=0.0, start=high):
        samples = np.array([1 + apart * np.linspace(0, 1, 3), 1 - apart * np.linspace(0, 1, 3)]) * values
        found = replace(one.family, measured=np.array(values), samples=samples, standard_error=np.zeros(3))
        claim = rate_claims({"": replace(one, family=found, start=start)})[0]
        return claim.verdict, claim.measured.partition("; not decided, as ")[2]

    low = 0.5 * float(one.family.bound[-1])
    void = f"the bound is never below {low:.2g}, which is measured before the first round"
    assert with_measured(0.1, 0.1, 0.1, start=low) == ("inconclusive", void)
    assert with_measured(1.0, 0.1, 0.1) == ("inconclusive", "the slope between the last two T is 0.000")
    assert with_measured(0.2, 0.14, 0.1, apart=0.2) == ("inconclusive", "the interval includes -1/2")
    assert with_measured(0.1, 0.1, 0.1) == ("not reproduced", "") and with_measured(1.0, 0.1, 0.01)[1] == ""


def test_a_slower_fall_flags_nothing_while_the_bound_bounds_nothing(rated):
    *_, one = rated
    c = one.family
    flat = replace(c, measured=np.full(3, 0.1), samples=np.full((2, 3), 0.1), standard_error=np.zeros(3))
    assert replace(one, family=flat, start=0.5 * float(c.bound[-1])).as_fast is None
    assert replace(one, family=flat, start=2 * float(c.bound[-1])).as_fast is False
    assert replace(one, family=flat, start=None).as_fast is False
