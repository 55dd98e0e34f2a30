"""The invariants of a client's round: ours keep them, and every planted error is found and named."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.fedmrn import algorithms, masked_noise
from fedbounds.empirical.papers.fedmrn.algorithms import LocalMasking
from fedbounds.empirical.papers.fedmrn.invariants import MASK_INVARIANTS, MISREADINGS, check_masking, masked_round
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.papers.fedmrn.strategies import mask_cases
from fedbounds.empirical.runtime.counter_rng import UPLOAD
from tests.empirical.invariants.drawn_cases import drawn_cases


def test_our_own_local_steps_keep_every_invariant(monkeypatch):
    """`LocalMasking` itself, with its random numbers replaced by those of the case."""

    def ours(gradient, model, noise, chances, coins, step_size, masks):
        def numbers(words, purpose, size, dtype):
            step = purpose - UPLOAD
            coin = coins[step - 1] if step else chances[-1]
            return torch.from_numpy(chances[step - 1]), torch.from_numpy(coin)

        monkeypatch.setattr(algorithms, "chances", numbers)
        monkeypatch.setattr(masked_noise.Noise, "of", lambda self, words, size: torch.from_numpy(noise)[None])
        local = LocalMasking(step_size, len(coins), masks=MaskedNoise("uniform", 1.0, masks))

        def as_tensor(x):
            return torch.from_numpy(gradient(x[0].numpy()))[None]

        return local.update(torch.from_numpy(model)[None], as_tensor, torch.zeros(1, dtype=torch.int64))[0].numpy()

    report = check_masking(ours, examples=40)
    assert len(report.verdicts) == len(MASK_INVARIANTS) == 10 and not report.broken, str(report)


WRONG = {
    "it keeps the update within the noise": {"bounded": True},
    "it masks every coordinate in every local step": {"whole": True},
    "its masks are those of the signs": {"random": False},
    "what is not masked is not cut off at the noise": {"clips": False},
    "gradients stop where the update is outside the noise": {"straight": False},
    "its masks come in a step late, with chance (tau - 1)/S": {"first": 0},
}


@pytest.mark.parametrize("words", WRONG)
def test_a_misreading_is_found_and_named(words):
    assert set(WRONG) == {misreading.description for misreading in MISREADINGS}
    wanted = ["reference twin", "scaled", "straight through", "last step masks everything"]
    report = check_masking(
        partial(masked_round, **WRONG[words]), invariants=wanted, examples=40, cases=drawn_cases(mask_cases)
    )
    assert report.broken and words in str(report)


def planted(change):
    """Algorithm 1 with what it uploads changed."""

    def run(gradient, model, noise, chances, coins, step_size, masks):
        return change(masked_round(gradient, model, noise, chances, coins, step_size, masks), noise, chances)

    return run


@pytest.mark.parametrize(("run", "broken"), [
    (planted(lambda upload, n, _: upload * 0.5), {"upload is masked noise", "mean of the upload", "reference twin"}),
    (planted(lambda upload, n, _: -upload), {"mean of the upload", "reference twin"}),
    (planted(lambda upload, n, _: np.abs(n)), {"upload is masked noise", "mean of the upload", "reference twin"}),
])  # fmt: skip
def test_planted_errors_break_what_they_should(run, broken):
    found = {each.name for each in check_masking(run, examples=20, cases=drawn_cases(mask_cases)).broken}
    assert broken <= found and not found & {
        "first step",
        "unmasked steps are plain",
        "straight through",
        "last step masks everything",
    }


def test_left_over_state_is_found():
    calls = []
    run = planted(lambda upload, n, _: (calls.append(1), upload * (-1) ** len(calls))[1])
    assert check_masking(run, invariants=["repeated"], examples=10).broken


def test_other_conventions_keep_all_but_the_twin():
    """A mask that is 1 where a number is above one minus its probability."""

    def above(gradient, model, noise, chances, coins, step_size, masks):
        return masked_round(gradient, model, noise, 1 - chances - 2**-20, coins, step_size, masks)

    assert {each.name for each in check_masking(above, examples=20).broken} == {"reference twin"}


def test_a_masker_that_does_something_else_is_reported_so():
    def greedy(gradient, model, *_):
        return gradient(gradient(gradient(model)))

    with pytest.raises(FedboundsError, match="took 3 gradients; expected one in each of 2 steps"):
        check_masking(greedy)
    with pytest.raises(FedboundsError, match="it is called as run"):
        check_masking(lambda gradient: 0)
    with pytest.raises(FedboundsError, match="unknown invariant"):
        check_masking(masked_round, invariants=["first steps"])
