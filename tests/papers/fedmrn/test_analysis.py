"""The analyzed algorithm: against its slow twin, the exact moments, and what its masks cannot do."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.papers.fedmrn.analysis import AnalyzedFedMRN
from fedbounds.empirical.participation import Full, WithoutReplacement
from fedbounds.empirical.problems import Quadratic, random_cosine_quadratic, random_quadratic
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments.operators import masked_moments
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION, SEEDS = 4, 3, (0, 5)
SOME = WithoutReplacement(CLIENTS, 2)
RUNS = [
    AnalyzedFedMRN(0.05, 3, amplitude=0.6),
    AnalyzedFedMRN(0.05, 3, amplitude=0.1, progressive=True),  # too little for some updates
    AnalyzedFedMRN(0.2, 4, amplitude=0.9, amplitude_falls=True, step_shift=7),
    AnalyzedFedMRN(0.2, 4, amplitude=0.9, step_shift=7, progressive=True),
    AnalyzedFedMRN(0.05, 3, "sparsifier", keep=0.4, step_shift=2),
    AnalyzedFedMRN(0.05, 3, "norm-scaled-sign"),
    AnalyzedFedMRN(0.05, 1, "norm-scaled-sign", progressive=True),
]
EACH = pytest.mark.parametrize("algorithm", RUNS, ids=str)


def quadratic(noise=0.3):
    return random_quadratic(CLIENTS, DIMENSION, noise=noise, seed=1)


@EACH
@pytest.mark.parametrize("engine", ["sequential", "batched"])
@pytest.mark.parametrize("make", [random_quadratic, random_cosine_quadratic])
def test_engines_agree_with_the_pseudo_code(engine, make, algorithm):
    problem = make(CLIENTS, DIMENSION, noise=0.3, seed=1)
    ours = simulate(algorithm, problem, SOME, 11, seeds=SEEDS, engine=engine, record_models=True).model
    for row, seed in enumerate(SEEDS):
        streams = Streams(seed)
        q = SOME.matrix(11, streams.generator("participation"))
        assert np.abs(ours[row] - run_reference(algorithm, problem, q, streams).numpy()).max() < 1e-10


@EACH
def test_a_seed_stands_alone_and_tables_come_back(algorithm):
    together = simulate(algorithm, quadratic(), SOME, 8, seeds=(3, 1, 4), record_models=True)
    again = algorithm_from_spec(algorithm.spec())
    alone = simulate(again, quadratic(), SOME, 8, seeds=(1,), record_models=True)
    assert again == algorithm and np.array_equal(together.model[1], alone.model[0])
    assert together.largest_gradient[1] == alone.largest_gradient[0]


@pytest.mark.parametrize("algorithm", [
    AnalyzedFedMRN(0.05, 3, amplitude=1.5),
    AnalyzedFedMRN(0.1, 2, amplitude=2.0, amplitude_falls=True, step_shift=9.0, progressive=True),
    AnalyzedFedMRN(0.1, 3, "sparsifier", keep=0.5),
    AnalyzedFedMRN(0.1, 2, "norm-scaled-sign", step_shift=20.0),
], ids=str)  # fmt: skip
def test_the_mean_of_many_runs_is_that_of_the_exact_moments(algorithm):
    problem, T = quadratic(0.1), 9
    exact = masked_moments(
        problem, algorithm.masking, algorithm.step, iterations=T, local_steps=algorithm.local_steps, cohort=2,
        progressive=algorithm.progressive,
    )  # fmt: skip
    run = simulate(algorithm, problem, SOME, T, seeds=range(1500))
    assert not run.clipped_updates.any()  # so that the moments are exact
    for sampled, mean in (
        (run.objective_gap, exact.objective_gap),
        (run.gradient_norm_squared, exact.gradient_norm_squared),
    ):
        error = sampled.std(axis=0, ddof=1) / len(sampled) ** 0.5
        away = np.abs(sampled.mean(axis=0) - mean)[1:] / error[1:]
        assert away.max() < 3.5 and error[-1] < 0.05 * mean[-1]
    assert run.largest_gradient.max() > exact.gradient_bound  # the largest of all is above a root mean square


def test_without_masks_all_clients_is_local_sgd():
    """One client with an operator that keeps everything: gradient descent."""
    problem = Quadratic(hessians=[[2.0]], centers=[[1.0]], x0=[3.0])
    run = simulate(AnalyzedFedMRN(0.1, 3, "sparsifier", keep=1.0), problem, Full(1), 5, record_models=True)
    assert np.allclose(run.model[0, :, 0], 1 + 2 * 0.8 ** np.arange(6), rtol=1e-14)


def test_updates_beyond_the_amplitude_are_counted():
    run = simulate(AnalyzedFedMRN(0.5, 2, amplitude=0.01), quadratic(), Full(CLIENTS), 6, seeds=SEEDS)
    assert (run.clipped_updates > 0).all() and (run.clipped_updates <= 6 * CLIENTS).all()


@pytest.mark.parametrize(("spec", "told"), [
    ({}, "'signed-masks' lacks amplitude"),
    ({"operator": "sparsifier"}, "'sparsifier' lacks keep"),
    ({"operator": "sparsifier", "keep": 0}, "keep = 0 "),
    ({"operator": "sparsifier", "keep": 1.5}, "keep = 1.5"),
    ({"operator": "norm-scaled-sign", "amplitude": 1.0}, "amplitude = 1 is of the operator 'signed-masks'"),
    ({"operator": "signs"}, "unknown operator"),
    ({"amplitude": 1, "step_shift": -1}, "step_shift = -1"),
    ({"amplitude": 1, "amplitude_falls": 1}, "true or false"),
])  # fmt: skip
def test_bad_tables_are_refused_in_one_line(spec, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        algorithm_from_spec({"kind": "fedmrn-analysis", "local_step_size": 0.1, "local_steps": 2} | spec)
    assert "\n" not in str(refused.value)
