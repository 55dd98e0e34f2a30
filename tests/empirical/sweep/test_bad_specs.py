"""Bad input, told in one line: every key of every specification, every argument of a simulation, every weight."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.participation import constants
from fedbounds.empirical.algorithms import Algorithm, algorithm_from_spec, algorithms
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.participation import Bernoulli, Full, Process, Recorded, process_from_spec
from fedbounds.empirical.participation.spec import PARTICIPATION
from fedbounds.empirical.problems import CosineQuadratic, Problem, Quadratic, problem_from_spec, toy_example
from fedbounds.empirical.problems.spec import PROBLEMS
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace
from tests.bounds.participation import reference_constants

# --- specifications ---------------------------------------------------------------------------------------------------

MAKERS = {"problem": problem_from_spec, "participation": process_from_spec, "algorithm": algorithm_from_spec}
MADE = {"problem": Problem, "participation": Process, "algorithm": Algorithm}
AMPLIFIED = {"local_step_size": 0.1, "local_steps": 2, "server_multiplier": 3.0, "interval": 2}
TWO_SIDED = {"local_step_size": 0.1, "local_steps": 2, "server_multiplier": 3.0}
FOUR_RATES = {
    "local_step_size": 0.1, "local_ascent_step_size": 0.1, "server_step_size": 0.1, "server_ascent_step_size": 0.1,
}  # fmt: skip
MAY_BE_INFINITE = {"cutoff"}  # FedAU without cut-off
# a valid specification of every kind, with every key that it may have
VALID = {
    "problem": [
        {
            "kind": "quadratic", "hessians": [1, 2], "centers": [[0, 1], [2, 3]], "noise": 0.5, "x0": [1, 1],
            "client_weights": [1, 3],
        },
        {
            "kind": "bounded-gradient", "clients": 3, "dimension": 2, "shape": "log-cosh", "heterogeneity": 1.0,
            "condition": 4.0, "noise": 0.1, "spread": 2.0, "seed": 1,
        },
        {"kind": "model-on-data", "dataset": "digits", "clients": 3, "network": "linear", "client_weights": "samples"},
        {"kind": "scaled", "problem": {"kind": "quadratic", "clients": 2, "dimension": 1, "client_weights": [1, 2]}},
        {
            "kind": "quadratic", "clients": 3, "dimension": 2, "heterogeneity": 1.0, "condition": 4.0, "shared": False,
            "diagonal": True, "noise": 0.1, "initial_gap": 2.0, "seed": 1,
        },
        {"kind": "cosine-quadratic", "slopes": [[1], [-1]], "curvature": 1, "ripple": 2, "noise": 0.0, "x0": [3]},
        {
            "kind": "cosine-quadratic", "clients": 3, "dimension": 2, "heterogeneity": 1.0, "curvature": 0.5,
            "ripple": 1.0, "noise": 0.1, "spread": 2.0, "seed": 1,
        },
        {
            "kind": "displaced", "centers": [[1], [-1]], "shape": "cosine", "scale": 2.0, "noise": 0.1,
            "noise_law": "signs", "x0": [3],
        },
        {
            "kind": "displaced", "clients": 3, "dimension": 2, "shape": "pseudo-huber", "scale": 2.0,
            "heterogeneity": 1.0, "noise": 0.1, "noise_law": "gaussian", "spread": 1.0, "seed": 1,
        },
        {
            "kind": "block-quadratic", "hessian": [[2, 1], [1, 2]], "blocks": [1, 1], "silo_clients": [2, 3],
            "center": [1, 2], "noise": [0.1, 0.2], "shared_noise": True, "x0": [3, 1],
        },
        {
            "kind": "block-quadratic", "hessian": [[[2, 1], [1, 2]], [[1, 0], [0, 1]]], "blocks": [1, 1],
            "silo_clients": [2, 1], "center": [[1, 2], [0, 0]], "shift": 0.1, "noise_law": "signs",
            "holders": [[1, 0], [0, 0]], "x0": [3, 1],
        },
        {
            "kind": "block-quadratic", "silos": 2, "clients": 2, "dimension": 2, "heterogeneity": 1.0, "condition": 4.0,
            "shared": False, "permuted": True, "noise": 0.1, "shift": 0.2, "shared_noise": False,
            "noise_law": "signs", "initial_gap": 2.0, "seed": 1,
        },
        {"kind": "toy", "noise": 0.1},
        {
            "kind": "vertical-least-squares", "features": [[1, 2], [0, 1], [1, 1]], "labels": [[1, 2, 3], [0, 0, 1]],
            "blocks": [1, 1], "silo_clients": [2, 1], "batch": 2, "holders": [[1, 0, 1], [0, 0, 0]], "x0": [3, 1],
        },
        {
            "kind": "vertical-least-squares", "silos": 2, "clients": 2, "samples": 3, "dimension": 1, "batch": 2,
            "copies": True, "label_vectors": 2, "label_noise": 0.5, "permuted": True, "seed": 1,
        },
        {
            "kind": "rippled-blocks", "hessian": [[2, 1], [1, 2]], "blocks": [1, 1], "silo_clients": [2, 3],
            "ripple": 0.5, "ripple_frequency": [1, 2], "noise": [0.1, 0.2], "noise_frequency": 3.0,
            "noise_law": "phases", "shared_noise": True, "x0": [3, 1],
        },
        {
            "kind": "rippled-blocks", "silos": 2, "clients": 2, "dimension": 2, "condition": 4.0, "ripple": 0.5,
            "ripple_frequency": 1.0, "noise": 0.1, "noise_frequency": 3.0, "noise_law": "signs", "shared_noise": True,
            "spread": 2.0, "seed": 1,
        },
        {
            "kind": "model-on-data", "dataset": "wine", "data": "data", "clients": 3, "network": "linear",
            "loss": "squared", "partition": "labels", "similarity": 0.1, "alpha": 0.5, "labels_per_client": 2,
            "partition_seed": 1, "start_seed": 2, "batch": 4,
        },
        {
            "kind": "vertical", "dataset": "breast-cancer", "data": "data", "silos": 2, "split": "columns",
            "widths": [10, 20],
            "silo_clients": [2, 3], "same_rows": False, "remainder": "drop", "partition_seed": 1,
            "network": ["linear", "mlp"], "loss": "least-squares", "batch": 12, "gradient_norm": True,
        },
        {
            "kind": "vertical", "dataset": "breast-cancer", "silos": 2, "shards": [[56, 400], [456]], "top_k": 2,
            "loss": "cross-entropy",
        },
        {
            "kind": "images", "dataset": "digits", "data": "data", "clients": 20, "network": "linear",
            "partition": "dirichlet", "similarity": 0.1, "alpha": 0.5, "partition_seed": 1, "batch": 8,
            "gradient_norm": False, "weight_decay": 0.1,
        },
        {"kind": "images", "clients": 20, "network": "linear", "partition": "labels", "labels_per_client": 2},
        {"kind": "images", "clients": 20, "network": "linear", "partition": "even"},
        {
            "kind": "robust-images", "clients": 20, "network": "linear", "partition": "dirichlet", "alpha": 0.5,
            "batch": 8, "radius": 0.5, "attack_steps": 2, "weight_decay": 0.1,
        },
        {
            "kind": "fair-images", "clients": 20, "network": "linear", "partition": "class-mix", "alpha": 0.5,
            "batch": 8, "regularization": 0.5, "gradient_norm": False,
            "weight_decay": 0.1,
        },
        {
            "kind": "minimax-quadratic", "descent_hessian": [[0.5]], "coupling": [[1]], "concavity": 1,
            "slopes": [[1], [-1]], "ascent_slopes": [[0], [1]], "ripple": 0.1, "weights": [0.5, 0.5], "noise": 0.1,
            "growth": 0.1, "x0": [1], "y0": [2],
        },
        {
            "kind": "minimax-quadratic", "clients": 3, "descent_dimension": 2, "ascent_dimension": 1,
            "heterogeneity": 1.0, "condition": 4.0, "ripple": 0.1, "noise": 0.1, "growth": 0.1, "spread": 1.0,
            "seed": 1,
        },
        {
            "kind": "minimax-scaled", "scales": [1, 2], "descent_hessian": [[0.5]], "coupling": [[1]], "concavity": 1,
            "slope": [1], "ascent_slope": [0], "ripple": 0.1, "weights": [0.5, 0.5], "noise": 0.1, "growth": 0.1,
            "x0": [1], "y0": [2],
        },
        {
            "kind": "minimax-bounded", "slopes": [[1], [-1]], "ascent_slopes": [[0.1], [0]], "ripple": 0.1,
            "depth": 1.0, "bend": 0.5, "weights": [0.5, 0.5], "noise": 0.1, "growth": 0.1, "x0": [1], "y0": [2],
        },
        {
            "kind": "minimax-one-point", "slopes": [[1], [-1]], "ripple": 0.1, "depth": 1.0, "bend": 0.5,
            "weights": [0.5, 0.5], "noise": 0.1, "growth": 0.1, "x0": [1], "y0": [2],
        },
    ],
    "participation": [
        {"kind": "sample-weighted", "process": {"kind": "full", "clients": 3}, "client_weights": [1, 2, 3]},
        {"kind": "full", "clients": 4},
        {"kind": "with-replacement", "clients": 4, "participants": 2},
        {"kind": "without-replacement", "clients": 4, "participants": 2},
        {"kind": "permutation", "clients": 4, "participants": 2, "reshuffle": False},
        {
            "kind": "periodic-groups", "clients": 4, "participants": 2, "slot": 3, "groups": 2, "offset": 1,
            "sampling": "independent",
        },
        {"kind": "group-markov", "clients": 4, "groups": [0, 0, 1, 1], "leave": 0.5},
        {"kind": "cyclic", "clients": 4, "groups": 2, "random_phase": True},
        {"kind": "bernoulli", "clients": 2, "probability": [0.5, 1.0], "normalize": False},
        {"kind": "markovian", "clients": 2, "probability": [0.5, 1.0], "come": 0.1},
        {"kind": "cyclic-clients", "clients": 2, "probability": [0.5, 1.0], "cycle": 10},
        {"kind": "cyclic-from-inactive", "clients": 2, "probability": 0.5, "cycle": 10},
        {"kind": "recorded", "weights": [[1, 0], [0, 1]], "normalize": True},
    ],
    "algorithm": [
        {"kind": "generalized-fedavg"} | AMPLIFIED,
        {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 2},
        {"kind": "fedavg", "local_step_size": 0.1, "local_epochs": [1, 2], "momentum": 0.5,
         "step_size_schedule": {"kind": "step", "every": 2, "factor": 0.5}},
        {"kind": "fedavgm", "local_step_size": 0.1, "local_steps": 2, "server_momentum": 0.5, "server_multiplier": 2.0},
        {"kind": "fedadam", "local_step_size": 0.1, "local_steps": 2, "server_step_size": 0.1, "beta1": 0.5,
         "beta2": 0.5, "tau": 0.1},
        {"kind": "fedprox", "local_step_size": 0.1, "local_steps": 2, "proximal_mu": 0.5},
        {"kind": "fednova", "local_step_size": 0.1, "local_steps": [1, 2], "effective_local_steps": 1.5},
        {"kind": "scaffold"} | TWO_SIDED,
        {"kind": "ef21", "step_size": 0.1, "share": 0.5},
        {"kind": "wait-minibatch", "local_step_size": 0.1, "local_steps": 2, "interval": 2},
        {"kind": "wait-full", "local_step_size": 0.1, "local_steps": 2, "interval": 2},
        {"kind": "wait-for-all", "step_size": 0.1, "local_steps": 2, "interval": 2},
        {"kind": "frozen-gradient", "step_size": 0.1, "local_steps": 2, "interval": 2},
        {"kind": "fedau", "cutoff": 5, "rate": 0.5} | TWO_SIDED,
        {"kind": "average-participating"} | TWO_SIDED,
        {"kind": "average-all"} | TWO_SIDED,
        {"kind": "fixed-weights", "weights": [1.0, 2.0]} | TWO_SIDED,
        {"kind": "known-participation", "probability": [0.5, 1.0]} | TWO_SIDED,
        {"kind": "fedvarp"} | TWO_SIDED,
        {"kind": "mifa"} | TWO_SIDED,
        {
            "kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2, "amplitude": 0.1, "law": "gaussian",
            "masks": "binary", "stochastic": False, "progressive": False,
        },
        {"kind": "compressed", "local_step_size": 0.1, "local_steps": 2, "compressor": {"kind": "eden", "bits": 2}},
        {"kind": "fedsparsify", "local_step_size": 0.1, "local_steps": 2, "share": 0.1},
        {
            "kind": "fedpm", "local_step_size": 0.1, "local_steps": 2, "weight_scale": 2.0, "other_step_size": 0.1,
            "sampled": True,
        },
        {
            "kind": "fedmrn-analysis", "local_step_size": 0.1, "local_steps": 2, "operator": "signed-masks",
            "amplitude": 0.1, "amplitude_falls": True, "keep": None, "step_shift": 7.0, "progressive": False,
        },
        {
            "kind": "fed-norm-sgda", "local_steps": [2, 5], "weights": [0.5, 0.5], "optimizer": {"momentum": 0.5},
            "effective_local_steps": 3.0, "snapshot_period": 2, "normalized": True,
        } | FOUR_RATES,
        {"kind": "fed-norm-sgda", "local_epochs": {"low": 2, "high": 5, "redraw": False}} | FOUR_RATES,
        {
            "kind": "local-sgda", "step_size": 0.1, "ascent_step_size": 0.2, "local_steps": 2, "weights": [0.5, 0.5],
            "momentum": 0.9, "snapshot_period": 2,
        },
        {"kind": "local-sgda", "step_size": 0.1, "ascent_step_size": 0.2, "local_epochs": [[1, 2], [2, 1]]},
        {"kind": "tdcd", "local_step_size": 0.1, "local_steps": 3, "average": "batches", "empty": "drop"},
        {"kind": "tdcd-printed", "local_step_size": 0.1, "local_steps": 3},
        {
            "kind": "tdcd-label-private", "local_step_size": 0.1, "local_steps": 3, "derivatives": "once a round",
            "average": "shards", "empty": "zero",
        },
        {"kind": "synchronous-sgda", "step_size": 0.1, "ascent_step_size": 0.2, "weights": [0.5, 0.5]},
        {"kind": "fsgda", "local_steps": 2} | FOUR_RATES,
    ],
}  # fmt: skip
SPECS = [(what, spec) for what, specs in VALID.items() for spec in specs]
NAMES = [f"{what}-{spec['kind']}-{len(spec)}" for what, spec in SPECS]
POISON = [
    None, True, -1, 0, 2.5, 10**400, -(10**400), float("nan"), float("inf"), -float("inf"), 1e308, -1e-308, 1j,
    "", "0.1", "__import__('os').getcwd()", "two\nlines", "\0", b"\x93NUMPY", "x" * 10_000,
    [], {}, [[]], [None], ["1"], [1, [2]], [[1], [1, 2]], [float("nan")], [[0.5, float("inf")]], [[-1.0, 2.0]],
    [[10**400, 1]], {"kind": "toy"}, np.zeros((0, 3)), np.array([object()]), np.ones((2, 2, 2, 2)), object(), print,
]  # fmt: skip


def error_status(make, *arguments, **named):
    """What is made, or the line that refuses it."""
    try:
        return make(*arguments, **named)
    except FedboundsError as refused:
        told = str(refused)
        assert told.strip() and len(told.splitlines()) == 1, told
        assert len(told) < 500
        return told


@pytest.mark.parametrize(("what", "spec"), SPECS, ids=NAMES)
def test_the_table_holds_valid_specifications(what, spec):
    assert isinstance(MAKERS[what](spec), MADE[what])


def test_the_table_has_every_kind():
    kinds = {what: {spec["kind"] for spec in specs} for what, specs in VALID.items()}
    assert kinds["algorithm"] == algorithms().keys()
    assert kinds["participation"] == PARTICIPATION.builders().keys()
    assert kinds["problem"] == PROBLEMS.builders().keys()


@pytest.mark.parametrize(("what", "spec"), SPECS, ids=NAMES)
def test_every_key_takes_a_value_or_refuses_it_in_one_line(what, spec):
    for key in spec:
        for value in POISON:
            made = error_status(MAKERS[what], spec | {key: value})
            assert isinstance(made, MADE[what] | str)
            if isinstance(value, float) and not np.isfinite(value):
                taken = value > 0 and key in MAY_BE_INFINITE
                assert isinstance(made, str) != taken, f"{key} = {value} was {'refused' if taken else 'taken'}"


@pytest.mark.parametrize(("what", "spec"), SPECS, ids=NAMES)
def test_a_missing_key_is_named_and_an_unknown_one_is_refused(what, spec):
    for key in spec:
        made = error_status(MAKERS[what], {k: v for k, v in spec.items() if k != key})
        assert isinstance(made, MADE[what]) or key in made
        told = error_status(MAKERS[what], spec | {key + "s_": 1})
        assert key + "s_" in told
        assert f"did you mean {key}" in told or "known:" in told or key in told
    for stranger in (3, None, ("a", "b"), ""):
        assert isinstance(error_status(MAKERS[what], spec | {stranger: 1}), str)


KEYS = sorted({key for _, spec in SPECS for key in spec} - {"kind", "data", "dataset"})
IMAGES = {"images", "robust-images", "fair-images"}  # they are slower to make
KINDS = sorted({spec["kind"] for _, spec in SPECS} - IMAGES)
NUMBERS = st.one_of(
    st.integers(-3, 12), st.floats(), st.sampled_from([10**400, -0.0, 5e-324, 1e154, 2**63, float("nan")])
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5), st.binary(max_size=3)),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=2),
    max_leaves=9,
)
MATRICES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=3)
)


@pytest.mark.parametrize("what", MAKERS)
@given(data=st.data())
@settings(max_examples=150)
def test_whatever_the_dictionary_the_answer_is_an_object_or_one_line(what, data):
    spec = data.draw(st.sampled_from([spec for spec in VALID[what] if spec["kind"] not in IMAGES]))
    keys = st.sampled_from([*(set(spec) - {"kind"}), *KEYS[::5]])
    changed = data.draw(st.dictionaries(keys, st.one_of(VALUES, MATRICES), max_size=3))
    kept = {key: value for key, value in spec.items() if data.draw(st.booleans()) or key == "kind"}
    kind = data.draw(st.sampled_from([kept["kind"]] * 4 + KINDS))
    made = error_status(MAKERS[what], kept | changed | {"kind": kind})
    assert isinstance(made, MADE[what] | str)
    if isinstance(made, Quadratic | CosineQuadratic):
        assert isinstance(made.constants(), dict)
        assert torch.isfinite(made.initial_point(np.random.default_rng(0))).all()
    if isinstance(made, Process):
        assert (made.matrix(1, np.random.default_rng(0)) >= 0).all()


@given(st.one_of(VALUES, st.dictionaries(st.one_of(st.text(max_size=4), st.integers(), st.none()), VALUES, max_size=3)))
@settings(max_examples=60)
def test_what_is_no_specification_at_all_is_refused(anything):
    for make in MAKERS.values():
        assert isinstance(error_status(make, anything), str)


# --- weights ----------------------------------------------------------------------------------------------------------

SHARE = [[0.5, 0.5], [1.0, 0.0]]
# what is wrong, the weights, what is said of them
WEIGHTS = [
    ("negative", [[0.5, 0.5], [1.5, -0.5]], r"\[1, 1\] = -0.5 is negative"),
    ("not a number", [[float("nan"), 1.0]], r"\[0, 0\] = nan is not finite"),
    ("infinite", [[0.5, 0.5], [float("inf"), 0.0]], r"\[1, 0\] = inf is not finite"),
    ("too large for a float", [[10**400, 0]], "must be numbers"),
    ("a vector", [0.5, 0.5], r"shape \(2,\); expected \(rounds, clients\)"),
    ("a number", 1.0, r"shape \(\); expected \(rounds, clients\)"),
    ("three axes", [SHARE], r"shape \(1, 2, 2\); expected \(rounds, clients\)"),
    ("no rounds", np.zeros((0, 2)), r"shape \(0, 2\); expected \(rounds, clients\)"),
    ("ragged", [[1.0], [0.5, 0.5]], "must be numbers in an array"),
    ("text", [["0.5", "0.5"]], "must be numbers in an array"),
    ("complex", [[0.5 + 0j, 0.5]], "must be numbers in an array"),
    ("nothing", None, "must be numbers in an array"),
]
SUMS = [
    ("too small", [[0.5, 0.4]], r"\[0\] sum to 0.9; the theorem needs 1 in every round"),
    ("nobody", [[0.5, 0.5], [0.0, 0.0]], r"\[1\] sum to 0; the theorem needs 1"),
    ("just too much", [[0.5, 0.5 + 1e-8]], r"\[0\] sum to 1.00000001; the theorem needs 1"),
]
OFFSETS = [[-1.0], [1.0]]
CONSTANTS = {
    "participation_norm": lambda q: reference_constants.participation_norm(q),
    "participation_divergence": lambda q: reference_constants.participation_divergence(q, OFFSETS),
    "cohort_divergence": lambda q: reference_constants.cohort_divergence(q, OFFSETS),
    "window_divergence": lambda q: reference_constants.window_divergence(q, OFFSETS, 1),
    "bound_15": lambda q: reference_constants.bound_15(q, 1, 1.0),
    "median_bound": lambda q: reference_constants.median_bound(q, 1, 1.0),
}


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize(("wrong", "q", "told"), WEIGHTS + SUMS, ids=[wrong for wrong, *_ in WEIGHTS + SUMS])
def test_the_constants_of_the_theorem_refuse_bad_weights(name, wrong, q, told):
    assert CONSTANTS[name](SHARE) >= 0
    with pytest.raises(FedboundsError, match=told) as refused:
        CONSTANTS[name](q)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("wrong", "q", "told"), WEIGHTS, ids=[wrong for wrong, *_ in WEIGHTS])
def test_a_simulation_refuses_bad_weights(wrong, q, told):
    problem = Quadratic([1.0], OFFSETS)
    with pytest.raises(FedboundsError, match=told) as refused:
        simulate(FedAvg(0.1, 1), problem, q, 1)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("wrong", "q", "told"), SUMS, ids=[wrong for wrong, *_ in SUMS])
def test_a_simulation_takes_sums_that_only_the_theorem_refuses_and_counts_them(wrong, q, told):
    trace = simulate(FedAvg(0.1, 1), Quadratic([1.0], OFFSETS), q, len(q))
    assert trace.empty_rounds[0] + trace.unnormalized_rounds[0] == 1
    with pytest.raises(FedboundsError, match="needs weights that sum to one in every round; recorded"):
        Recorded(q).require_unit_sum("Theorem 3.1")
    with pytest.raises(FedboundsError, match="needs weights that sum to one in every round; bernoulli"):
        Bernoulli(2, 0.5).mean_window_divergence(OFFSETS, 1, 4)


@given(st.one_of(MATRICES, VALUES, st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=4)))
def test_whatever_the_weights_a_constant_is_a_number_or_one_line(q):
    for constant in CONSTANTS.values():
        value = error_status(constant, q)
        assert isinstance(value, str) or value >= 0


# --- arguments of a simulation ----------------------------------------------------------------------------------------


def run(**change):
    arguments = {"algorithm": FedAvg(0.1, 1), "problem": toy_example(), "participation": Full(3), "rounds": 2}
    return simulate(**arguments | change)


ARGUMENTS = [
    ({"algorithm": "fedavg"}, "algorithm = 'fedavg'"),
    ({"algorithm": {"kind": "fedavg"}}, "algorithm = "),
    ({"problem": {"kind": "toy"}}, "problem = "),
    ({"problem": None}, "problem = None"),
    ({"participation": {"kind": "full", "client": 3}}, "unknown key of participation 'full': 'client'"),
    ({"participation": Full(4)}, "participation is of 4 clients, the problem has 3"),
    ({"rounds": 10**400}, "rounds = "),
    ({"rounds": float("inf")}, "rounds = inf"),
    ({"rounds": "2"}, "rounds = '2'"),
    ({"rounds": True}, "rounds = True"),
    ({"record_every": 0.5}, "record_every = 0.5"),
    ({"seeds": [0.5]}, "seed = 0.5"),
    ({"seeds": [None]}, "seed = None"),
    ({"seeds": [float("nan")]}, "seed = nan"),
    ({"seeds": None}, "seeds = None must be a list"),
    ({"streams": {"noise": -1}}, "streams.noise = -1"),
    ({"streams": {"noise": "7"}}, "streams.noise = '7'"),
    ({"engine": None}, "unknown engine 'None'"),
    ({"engine": ["auto"]}, "unknown engine"),
    ({"engine": "closed  form"}, "unknown engine 'closed  form'; did you mean closed form"),
    ({"algorithm": None, "rounds": None, "phases": 3}, "phases = 3"),
    ({"algorithm": None, "rounds": None, "phases": [(FedAvg(0.1, 1),)]}, "must be a list of pairs"),
    ({"algorithm": None, "rounds": None, "phases": [("fedavg", 2)]}, r"phases\[0\].algorithm = 'fedavg'"),
]


@pytest.mark.parametrize(("change", "told"), ARGUMENTS, ids=[str(change)[:60] for change, _ in ARGUMENTS])
def test_arguments_that_make_no_run_are_refused_in_one_line(change, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        run(**change)
    assert "\n" not in str(refused.value)


def test_a_run_that_overflows_is_no_error_but_says_that_it_diverged():
    trace = simulate(GeneralizedFedAvg(1e154, 3, 1e154), toy_example(), Full(3), 5)
    assert trace.statuses == ("diverged",)


# --- files that were half written ---------------------------------------------------------------------------------


def test_a_trace_cut_short_anywhere_is_refused_in_one_line(tmp_path):
    whole = run(record_participation=True).save(tmp_path / "run.npz")
    content = whole.read_bytes()
    for length in [*range(0, len(content), len(content) // 40), len(content) - 1]:
        (tmp_path / "cut.npz").write_bytes(content[:length])
        assert "damaged or no trace" in error_status(Trace.load, tmp_path / "cut.npz")
    assert error_status(Trace.load, whole).statuses == ("done",)


def test_a_record_cut_short_within_a_line_is_refused_with_the_line(tmp_path):
    text = "ann,bob,eve\n0.25,0.25,0.5\n1,0,0\n0.125,0.375,0.5\n"
    path = tmp_path / "weights.csv"
    path.write_text(text)
    assert error_status(process_from_spec, {"kind": "recorded", "file": str(path)}).rounds == 3
    path.write_text(text[:-8])  # "0.125,0.3"
    assert "line 4: 2 cells, the first line has 3" in error_status(
        process_from_spec, {"kind": "recorded", "file": str(path)}
    )
    for content in (b"", b"\xff\xfe\x00", b"ann,bob\n", text.encode("utf-16"), b"\0" * 64):
        path.write_bytes(content)
        assert str(path) in error_status(process_from_spec, {"kind": "recorded", "file": str(path)})


def test_a_specification_read_back_from_json_is_the_same_specification():
    for what, spec in SPECS:
        assert isinstance(MAKERS[what](json.loads(json.dumps(spec))), MADE[what])


def test_a_record_of_who_was_there_says_what_to_type(tmp_path):
    (tmp_path / "log.csv").write_text("1,1,0\n0,1,1\n")
    table = {"kind": "recorded", "file": str(tmp_path / "log.csv")}
    with pytest.raises(FedboundsError, match="normalize = true divides each row by its sum"):
        process_from_spec(table).require_unit_sum("the theorem")
    process_from_spec(table | {"normalize": True}).require_unit_sum("the theorem")
    with pytest.raises(FedboundsError, match=r"this is a record of who was there: .*Recorded\(q, normalize=True\)"):
        constants.check_weights([[1, 1, 0], [0, 1, 1]])
    with pytest.raises(FedboundsError, match="in every round: a round without participants is not covered"):
        constants.check_weights([[1, 0], [0, 0]])
    with pytest.raises(FedboundsError, match="round 1 sum to 0: nobody takes part in it, which is not covered"):
        Recorded([[1, 0], [0, 0]]).require_unit_sum("the theorem")
    with pytest.raises(FedboundsError, match=r'needs weights \(rounds, clients\), or file = "weights.csv"'):
        process_from_spec({"kind": "recorded"})
    with pytest.raises(FedboundsError, match="give a record of the run in which somebody takes part in every round"):
        Bernoulli(2, 0.5).require_unit_sum("the theorem")
