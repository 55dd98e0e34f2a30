"""Worst cases with noise, sampling and masks: the second-moment relaxation against analyses that quadratics attain."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification.worst_case import Estimation, Locally, worst_case

FEDAVG, COINS, MASKS, TIERS = "generalized-fedavg", "known-participation", "fedmrn-analysis", "tdcd"
THEOREM, CONSTANT_WEIGHTS, MASKED = "arbitrary-participation/theorem-3.1", "fedau/theorem-b.4.1", "fedmrn/theorem-2"
TIERED = "tdcd/theorem-1"
descent = partial(worst_case, FEDAVG, gap_to="last", measure="average")
coins = partial(worst_case, COINS, gap_to="last")
masks = partial(worst_case, MASKS, gap_to="last")
tiers = partial(worst_case, TIERS, gap_to="last")


def one_step(step, rounds, added=0.0, growth=1.0):
    """Descent, E f(x+) <= E f(x) - step |grad f|^2 + step^2 (growth |grad f|^2 + added)/2, summed and averaged."""
    return (1 + rounds * step**2 * added / 2) / (rounds * step * (1 - step * growth / 2))


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
def test_noise_is_what_the_analysis_of_sgd_says_and_a_quadratic_attains_it(rounds, noise):
    step = 0.5
    found = descent(rounds=rounds, local_step=step, noise=noise)
    assert found.value == pytest.approx(one_step(step, rounds, noise**2), rel=1e-6)
    # f = x^2/2 with noise of this variance: E x^2 by recursion from the start whose gap to the last is 1
    square, gain = noise**2 * step**2, (1 - step) ** 2
    last = sum(gain**k for k in range(rounds)) * square
    start = (2 + last) / (1 - gain**rounds)
    seen = [gain**t * start + sum(gain**k for k in range(t)) * square for t in range(rounds)]
    assert np.mean(seen) == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize("blocks", [1, 50])
def test_a_long_run_is_cut_into_blocks(blocks):
    """The analysis adds up, so that nothing is lost; and the noise stays."""
    noisy = descent(rounds=2, blocks=blocks, local_step=0.5, noise=0.5)
    assert noisy.value == pytest.approx(one_step(0.5, 2 * blocks, 0.25), rel=1e-6)
    drawn = coins(rounds=2, blocks=blocks, local_step=0.2, rates=[0.5])
    assert drawn.value == pytest.approx(one_step(0.2, 2 * blocks, growth=2), rel=1e-6)
    masked = masks(iterations=2, blocks=blocks, step=0.5, relative_error=0.5)
    assert masked.value == pytest.approx(one_step(0.5, 2 * blocks, growth=1.25), rel=1e-6)
    assert noisy.constants["T"] == drawn.constants["T"] == masked.constants["T"] == 2 * blocks
    tiered = tiers(rounds=2, blocks=blocks, local_step=0.5, noise=0.5, silos=3)
    assert tiered.value == pytest.approx(one_step(0.5, 2 * blocks, 0.75), rel=1e-6)
    assert (tiered.constants["R"], tiered.constants["S"]) == (2 * blocks, 0.75)


def test_a_block_of_many_is_not_attained():
    assert descent(rounds=2, local_step=0.5).attained and not descent(rounds=1, blocks=2, local_step=0.5).attained


def test_what_is_random_is_an_upper_bound_and_says_so():
    assert descent(rounds=1, local_step=0.5).kind == "attained"
    for found in (
        descent(rounds=1, local_step=0.5, noise=0.1),
        coins(rounds=1, local_step=0.5, rates=[0.5]),
        masks(iterations=1, step=0.5, relative_error=0.5),
        tiers(rounds=1, local_step=0.5, silos=1, noise=0.1),
    ):
        assert not found.attained and found.kind == "upper bound (second-moment relaxation)"
    assert worst_case(FEDAVG, rounds=1, local_step=0.5, weights=[[0.5, 0.5]]).kind == "upper bound"


@pytest.mark.parametrize("clients", [2, 3])
def test_the_noise_of_all_clients_averages_out(clients):
    found = descent(rounds=2, local_step=0.5, noise=1.0, weights=[[1 / clients] * clients])
    assert found.value == pytest.approx(one_step(0.5, 2, 1 / clients), rel=1e-6)


@pytest.mark.parametrize("rate", [0.25, 0.6, 1.0])
@pytest.mark.parametrize(("clients", "rounds"), [(1, 2), (2, 1), (3, 2)])
def test_coins_are_what_their_variance_says(rate, clients, rounds):
    """E |sum_n q_n g_n|^2 = |g|^2 + v (|g|^2 + delta^2), as the mean square of g_n exceeds |g|^2 by delta^2 at most."""
    step, divergence = 0.2, 0.0 if clients == 1 else 0.7
    v = (1 - rate) / (rate * clients)
    found = coins(rounds=rounds, local_step=step, rates=[rate] * clients, divergence=divergence)
    assert found.value == pytest.approx(one_step(step, rounds, v * divergence**2, 1 + v), rel=1e-6)


@pytest.mark.parametrize("relative_error", [0.0, 0.5, 1.0])
def test_a_mask_is_noise_as_large_as_the_update(relative_error):
    found = masks(iterations=2, step=0.5, relative_error=relative_error)
    assert found.value == pytest.approx(one_step(0.5, 2, growth=1 + relative_error**2), rel=1e-6)


def test_sampled_clients_are_what_the_variance_of_sampling_says():
    """One of two clients: the variance is that of g_n, here at most G^2 - |g|^2."""
    step, bound = 0.25, 1.5
    found = masks(iterations=1, step=step, clients=2, participants=1, gradient_bound=bound)
    # 1 >= step g - step^2/2 G^2 for g = |grad F|^2
    assert found.value == pytest.approx(min(bound**2, (1 + step**2 * bound**2 / 2) / step), rel=1e-6)


def test_without_noise_everything_is_the_deterministic_value():
    setting = dict(rounds=2, local_steps=2, gap_to="infimum", measure="average")
    bounded = worst_case(FEDAVG, local_step=0.2, **setting)
    nearly = worst_case(FEDAVG, local_step=0.2, noise=1e-5, **setting)
    assert nearly.value == pytest.approx(bounded.value, rel=1e-6) and bounded.attained and not nearly.attained
    alone = worst_case(COINS, local_step=0.2, rates=[1.0], **setting)
    assert alone.value == pytest.approx(bounded.value, rel=1e-6) and alone.attained
    plain = worst_case(FEDAVG, rounds=2, local_step=0.2, measure="average").value
    present = worst_case(COINS, rounds=2, local_step=0.2, rates=[1.0, 1.0], divergence=1.0)
    assert present.value == pytest.approx(plain, rel=1e-6) and present.kind == "upper bound"
    assert worst_case(MASKS, iterations=2, step=0.2, clients=2).value == pytest.approx(plain, rel=1e-6)
    local = dict(rounds=2, local_step=0.1, local_steps=2, silos=2)
    exact, seen = tiers(**local), tiers(**local, block_smoothness=1.0)
    assert exact.value <= seen.value * (1 + 1e-6) <= exact.value * 1.001 and seen.kind == exact.kind == "upper bound"


@pytest.mark.parametrize(
    ("method", "name", "values", "setting"),
    [
        (FEDAVG, "noise", (0.0, 0.5, 1.0), dict(rounds=2, local_step=1 / 24, local_steps=2, server_multiplier=6.0)),
        (COINS, "noise", (0.2, 0.6, 1.2), dict(rounds=2, local_step=0.1, local_steps=2, rates=[0.5])),
        (COINS, "rates", ([1.0], [0.7], [0.3]), dict(rounds=2, local_step=0.2)),
        (COINS, "divergence", (0.1, 0.5, 2.0), dict(rounds=1, local_step=0.2, rates=[0.5, 0.5], local_steps=2)),
        (MASKS, "relative_error", (0.2, 0.6, 1.0), dict(iterations=2, step=0.25, local_steps=2)),
        (MASKS, "gradient_bound", (0.5, 0.8, 1.1), dict(iterations=2, step=0.25, clients=2, participants=1)),
        (TIERS, "noise", (0.0, 0.5, 2.0), dict(rounds=2, local_step=0.1, local_steps=2, silos=2)),
        (TIERS, "block_smoothness", (1.0, 2.0, 3.0), dict(rounds=1, local_step=0.1, local_steps=3, silos=2, noise=1.0)),
    ],
)
def test_what_makes_things_worse_makes_them_worse(method, name, values, setting):
    found = [worst_case(method, gap_to="last", **setting, **{name: value}).value for value in values]
    assert found == sorted(found) and found[0] < 0.9999 * found[-1]


@settings(max_examples=6)
@given(st.floats(0.2, 5), st.floats(0.2, 5))
def test_units_change_nothing_with_noise(length, height):
    """x in other units and f in others: L grows by height/length^2, a gradient by height/length."""
    plain = worst_case(COINS, rounds=2, local_step=0.2, rates=[0.5], noise=0.5, local_steps=2)
    there = worst_case(
        COINS,
        rounds=2,
        local_step=0.2 * length**2 / height,
        rates=[0.5],
        noise=0.5 * height / length,
        local_steps=2,
        smoothness=height / length**2,
        gap=height,
    )
    assert there.value == pytest.approx(plain.value * height**2 / length**2, rel=1e-5)


@pytest.mark.parametrize("curvature", [1.0, -1.0, 0.3])
@pytest.mark.parametrize("steps", [1, 2])
def test_no_quadratic_exceeds_the_relaxation(curvature, steps):
    """f = curvature x^2/2 and SGD with local steps: E x^2 by recursion, from any start, with the gap to the last."""
    step, noise, rounds, multiplier = 0.25, 0.8, 3, 1.5
    found = descent(rounds=rounds, local_step=step, local_steps=steps, server_multiplier=multiplier, noise=noise)
    gain = 1 + multiplier * ((1 - step * curvature) ** steps - 1)
    added = (multiplier * step * noise) ** 2 * sum((1 - step * curvature) ** (2 * k) for k in range(steps))
    for start in np.geomspace(0.05, 20, 6):
        squares = [start]
        for _ in range(rounds):
            squares.append(gain**2 * squares[-1] + added)
        gap = curvature * (squares[0] - squares[-1]) / 2
        if gap > 0:  # the noise, too, in units in which the gap is 1
            there = descent(
                rounds=rounds, local_step=step, local_steps=steps, server_multiplier=multiplier, noise=noise, gap=gap
            )
            assert curvature**2 * np.mean(squares[:-1]) <= there.value * (1 + 1e-6)
    assert found.value > 0


@pytest.mark.parametrize(("steps", "rounds", "least"), [(1, 3, 0.9), (2, 2, 0.9), (4, 2, 0.85)])
@pytest.mark.parametrize("noise", [0.5, 6.0])
def test_a_quadratic_with_one_error_a_round_comes_close_to_the_relaxation(steps, rounds, noise, least):
    """f = curvature x^2/2, whose error is added to all gradients of a round: E x^2 by recursion, gap 1 to the last."""
    step, worst = 1 / (8 * steps), 0.0
    for curvature in (-1.0, -0.5, 0.2, 0.5, 0.8, 0.9, 1.0):
        decay = [(1 - step * curvature) ** s for s in range(steps + 1)]
        gain, added = decay[-1] ** 2, (step * noise * sum(decay[:-1])) ** 2
        start = (2 / curvature + added * sum(gain**k for k in range(rounds))) / (1 - gain**rounds)
        seen = [gain**t * start + added * sum(gain**k for k in range(t)) for t in range(rounds)]
        if start > 0:
            worst = max(worst, curvature**2 * np.mean(seen))
    found = tiers(rounds=rounds, local_step=step, local_steps=steps, silos=1, noise=noise)
    assert least * found.value < worst < found.value * (1 + 1e-6)


def test_the_theorems_hold_for_the_relaxation():
    noisy = worst_case(FEDAVG, rounds=2, local_steps=2, local_step=1 / 24, server_multiplier=6.0, noise=1.0)
    assert 0.3 < noisy.ratio(THEOREM, "sharp") < 0.45
    drawn = worst_case(COINS, rounds=4, local_step=1 / 12, rates=[0.5, 0.5], divergence=0.5, noise=0.5)
    assert 0.1 < drawn.ratio(CONSTANT_WEIGHTS, "sharp:no-gap") < 0.5
    masked = worst_case(MASKS, iterations=4, step=0.5, local_steps=2, relative_error=0.5, gradient_bound=1.5, noise=0.5)
    assert 0.1 < masked.ratio(MASKED, "sharp") < 0.6
    assert masked.ratio(MASKED, "sharp") >= masked.ratio(MASKED, "explicit:any-step")
    tiered = tiers(rounds=2, local_step=1 / 16, local_steps=2, silos=2, noise=3.0)
    assert 0.3 < tiered.ratio(TIERED, "sharp:B3") < 0.4 and 0.15 < tiered.ratio(TIERED, "repaired") < 0.25


def test_noise_that_knows_what_follows_is_found_out(monkeypatch):
    """Planted: e is not orthogonal to the past."""
    monkeypatch.setattr(Estimation, "unrelated", lambda self, random, others: None)
    assert descent(rounds=1, local_step=0.5, noise=0.5).value > 1.2 * one_step(0.5, 1, 0.25)
    with pytest.raises(FedboundsError, match="unbounded"):  # the coin may undo every step
        coins(rounds=1, local_step=0.2, rates=[0.5])
    assert tiers(rounds=1, local_step=0.5, silos=2, noise=0.5).value > 1.2 * one_step(0.5, 1, 0.5)


def test_clients_who_share_their_noise_are_found_out(monkeypatch):
    """Planted: one noise for all clients, which then does not average out."""
    shared = {}

    def same(self, client, variance):
        return shared.setdefault(id(self), self.run.noise(variance))

    monkeypatch.setattr(Locally, "noise", same)
    found = descent(rounds=1, local_step=0.5, noise=1.0, weights=[[0.5, 0.5]])
    assert found.value == pytest.approx(one_step(0.5, 1, 1.0), rel=1e-6) != pytest.approx(one_step(0.5, 1, 0.5))


@pytest.mark.parametrize(
    ("method", "setting", "says"),
    [
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "noise": -1}, "noise = -1"),
        (COINS, {"rounds": 1, "local_step": 0.1, "rates": [0.5, 0]}, "above 0"),
        (FEDAVG, {"rounds": 1, "local_step": 0.1, "blocks": 2}, "last"),
        (MASKS, {"iterations": 3, "step": 0.1, "blocks": 2, "gap_to": "last", "local_steps": 2}, "multiple"),
        (COINS, {"rounds": 1, "local_step": 0.1, "rates": []}, "rates"),
        (COINS, {"rounds": 1, "local_step": 0.1, "rates": [1], "divergence": -2}, "divergence = -2"),
        (MASKS, {"iterations": 1, "step": 0.1, "participants": 2}, "participants = 2"),
        (MASKS, {"iterations": 1, "step": 0.1, "relative_error": float("nan")}, "relative_error"),
        (MASKS, {"iterations": 0, "step": 0.1}, "iterations = 0"),
        (TIERS, {"rounds": 1, "local_step": 0.1, "noise": -1}, "noise = -1"),
        (TIERS, {"rounds": 1, "local_step": 0.1, "block_smoothness": 0}, "block_smoothness = 0"),
    ],
)
def test_what_makes_no_sense_is_refused(method, setting, says):
    with pytest.raises(FedboundsError, match=says):
        worst_case(method, **setting)
