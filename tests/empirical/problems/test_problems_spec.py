"""Problems from dictionaries: every kind, and every mistake in one line that says what would be right."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import checksum, load_dataset
from fedbounds.empirical.problems import (
    BoundedGradient,
    CosineQuadratic,
    Displaced,
    ImageClassification,
    Problem,
    Quadratic,
    problem_from_spec,
)

EXPLICIT = {"kind": "quadratic", "hessians": [1, 2], "centers": [[0, 1], [2, 3]], "noise": 0.5, "x0": [1, 1]}
SPECS = {
    "explicit": (EXPLICIT, Quadratic, 2, 2),
    "random": ({"kind": "quadratic", "clients": 4, "dimension": 3, "shared": False, "seed": 1}, Quadratic, 4, 3),
    "cosine": ({"kind": "cosine-quadratic", "slopes": [[1], [-1]], "curvature": 1, "ripple": 2}, CosineQuadratic, 2, 1),
    "random cosine": ({"kind": "cosine-quadratic", "clients": 4, "dimension": 3}, CosineQuadratic, 4, 3),
    "bounded": (
        {"kind": "bounded-gradient", "slopes": [[1], [-1]], "scales": [2], "shape": "cosine"},
        BoundedGradient,
        2,
        1,
    ),
    "random bounded": ({"kind": "bounded-gradient", "clients": 4, "dimension": 3}, BoundedGradient, 4, 3),
    "displaced": ({"kind": "displaced", "centers": [[1], [-1]], "shape": "pseudo-huber"}, Displaced, 2, 1),
    "random displaced": ({"kind": "displaced", "clients": 4, "dimension": 3}, Displaced, 4, 3),
    "toy": ({"kind": "toy", "noise": 0.1}, Quadratic, 3, 2),
    "images": ({"kind": "images", "clients": 20, "network": "mlp", "batch": 8}, ImageClassification, 20, 2410),
    "dirichlet": (
        {"kind": "images", "partition": "dirichlet", "alpha": 0.3, "network": "linear"},
        ImageClassification,
        50,
        650,
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_every_kind_can_be_described_in_plain_numbers(name):
    spec, kind, clients, dimension = SPECS[name]
    problem = problem_from_spec(json.loads(json.dumps(spec)))
    assert isinstance(problem, kind)
    assert (problem.clients, problem.dimension) == (clients, dimension)
    assert problem.initial_point(np.random.default_rng(0)).shape == (dimension,)
    assert set(problem.constants()) >= {
        "clients", "smoothness", "strong_convexity", "initial_gap", "gradient_noise", "gradient_divergence_sup",
        "gradient_bound",
    }  # fmt: skip


def test_explicit_numbers_arrive_where_they_belong():
    problem = problem_from_spec(EXPLICIT)
    assert isinstance(problem, Quadratic)
    assert problem.hessians.tolist() == [1, 2]
    assert problem.centers.tolist() == [[0, 1], [2, 3]]
    assert problem.x0.tolist() == [1, 1]
    assert problem.noise == 0.5


@pytest.mark.parametrize("name", ["random", "images", "dirichlet"])
def test_the_same_specification_is_the_same_problem(name):
    first, again = (problem_from_spec(SPECS[name][0]) for _ in range(2))
    x = torch.ones(1, 1, first.dimension, dtype=first.dtype)
    assert torch.equal(first.gradient(x, torch.tensor([[1]])), again.gradient(x, torch.tensor([[1]])))


def test_the_partition_follows_its_own_seed():
    spec = SPECS["images"][0]
    first, other = (problem_from_spec(spec | {"partition_seed": seed}) for seed in (0, 1))
    assert isinstance(first, ImageClassification)
    assert isinstance(other, ImageClassification)
    assert (first.partition.assignment != other.partition.assignment).any()


def test_only_problems_that_read_data_have_a_checksum():
    assert problem_from_spec(EXPLICIT).data_checksum is None
    assert problem_from_spec(SPECS["images"][0]).data_checksum == checksum(load_dataset("digits"))


@pytest.mark.parametrize(("spec", "message"), [
    ({}, "problem needs a kind: one of quadratic, .*bounded-gradient, .*toy, .*minimax-quadratic"),
    ("toy", "problem = 'toy' must be a table with a kind: one of "),
    ({"kind": "quadratik"}, "unknown problem 'quadratik'; did you mean quadratic"),
    ({"kind": ["toy"]}, "unknown problem"),
    ({"kind": "quadratic"}, "problem 'quadratic' needs clients, dimension, or hessians, centers"),
    ({"kind": "quadratic", "centers": [[1]]}, "problem 'quadratic' needs hessians$"),
    ({"kind": "quadratic", "clients": 3, "dimensions": 2}, "unknown key .*'dimensions'; did you mean dimension"),
    ({"kind": "quadratic", "hessians": [1], "centers": [[1]], "condition": 3}, "unknown key .*'condition'"),
    ({"kind": "quadratic", "clients": "3", "dimension": 2}, "clients = '3' must be an integer"),
    ({"kind": "toy", "noise": float("nan")}, "noise = nan must be a number"),
    ({"kind": "images", "dataset": "digit"}, "unknown data set 'digit'; did you mean digits"),
    ({"kind": "images", "dataset": 3}, "dataset = 3 must be a string"),
    ({"kind": "images", "network": "nlp"}, "unknown network 'nlp'; did you mean mlp"),
    ({"kind": "images", "partition": "majority"}, "unknown partition 'majority'; did you mean majority-class"),
    ({"kind": "images", "clients": 5}, "clients = 5 must be at least the number of classes, 10"),
    ({"kind": "images", "similarity": 2}, "similarity = 2.0 must be between 0 and 1"),
    ({"kind": "images", "similarity": 0.1, "partition": "dirichlet", "alpha": 0}, "alpha = 0.0 must be at least"),
    ({"kind": "images", "dataset": "cifar-10", "data": "/nowhere"}, "missing file data_batch_1.bin.*kriz.*/nowhere"),
    ({"kind": "images", "gradient_norm": "yes"}, "gradient_norm = 'yes' must be true or false"),
])  # fmt: skip
def test_mistakes_are_reported_in_one_line(spec, message):
    with pytest.raises(FedboundsError, match=message) as refused:
        problem_from_spec(spec)
    assert "\n" not in str(refused.value)


_NUMBERS = st.floats(-1e60, 1e60) | st.sampled_from([0.0, 1.0, float("nan"), float("inf")])
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 5), _NUMBERS, st.text(max_size=4),
    st.lists(_NUMBERS, max_size=3), st.lists(st.lists(_NUMBERS, max_size=2), max_size=3),
)  # fmt: skip


@given(
    st.sampled_from(["quadratic", "cosine-quadratic", "bounded-gradient", "toy"]),
    st.dictionaries(
        st.sampled_from(
            [
                "hessians",
                "centers",
                "slopes",
                "curvature",
                "ripple",
                "scales",
                "shape",
                "noise",
                "x0",
                "clients",
                "dimension",
                "condition",
                "shared",
                "seed",
            ]
        ),
        _VALUES,
        max_size=5,
    ),
)
def test_any_dictionary_is_a_problem_or_one_line(kind, keys):
    try:
        problem = problem_from_spec({"kind": kind} | keys)
    except FedboundsError as refused:
        assert "\n" not in str(refused)
    else:
        assert isinstance(problem, Problem)
        assert torch.isfinite(problem.objective_gradient(problem.initial_point(np.random.default_rng(0)))).all()
