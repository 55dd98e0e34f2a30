"""The worst case of Fed-Norm-SGDA: an upper bound between plain descent and Theorem 1, and above every game."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.falsification.worst_case import worst_case
from fedbounds.empirical.papers.fed_norm_sgda.worst_case import _Game

worst = partial(worst_case, "fed-norm-sgda")
THEOREM = "fed-norm-sgda/theorem-1"


def at_the_caps(condition, local_steps):
    """The largest steps that Theorem 1 allows one client."""
    price = min(2, local_steps)
    ascent = 1 / (2 * price)
    drift = max(1, local_steps - 1) * (price * condition) ** 0.5
    return dict(
        condition=condition,
        ascent_step=ascent,
        step=ascent / (156 * condition**2),
        local_steps=local_steps,
        local_ascent_step=1 / (16 * drift),
        local_step=1 / (64 * condition**0.5 * drift),
    )


@pytest.mark.parametrize(("condition", "local_steps"), [(2.0, 1), (4.0, 2)])
@pytest.mark.parametrize("dual_gap", [0.0, 1.0])
def test_theorem_1_is_within_a_factor_of_two_whatever_the_number_of_rounds(condition, local_steps, dual_gap):
    for blocks in (100, 10**6):
        found = worst(**at_the_caps(condition, local_steps), blocks=blocks, dual_gap=dual_gap)
        assert 0.5 < found.ratio(THEOREM, "sharp") < 0.55 and found.kind == "upper bound"
        assert found.constants["T"] == blocks


def test_a_dual_gap_that_weighs_much_leaves_gradient_descent():
    """f = g(x) - mu y^2/2 is a game: no bound can be below 2/(Gamma (2 - L Gamma)) per round."""
    step = at_the_caps(2.0, 1)["step"]
    for weight, near in ((0.02, 1.1), (1.0, 1.003)):
        found = worst(condition=2.0, step=step, ascent_step=0.5, dual_gap=0.0, dual_weight=weight)
        assert 1 <= found.value * step * (2 - step) / 2 < near


def test_a_few_rounds_at_the_caps_say_nothing():
    """A squared gradient is at most 2 (1 + kappa) L Delta, as the envelope is smooth, and no step helps."""
    found = worst(**at_the_caps(2.0, 1), gap_to="infimum")
    assert found.value == pytest.approx(6, rel=1e-6) and found.ratio(THEOREM, "sharp") < 0.01


def test_blocks_only_give_away():
    setting = dict(condition=2.0, step=0.05, ascent_step=0.5)
    together, apart = worst(**setting, rounds=2), worst(**setting, blocks=2)
    assert together.value <= apart.value * (1 + 1e-6) <= 1.1 * together.value


def test_alike_clients_with_one_step_are_one_client():
    setting = dict(at_the_caps(2.0, 1), blocks=50)
    several = worst(**setting, clients=2, heterogeneity=0.5)
    assert several.value == pytest.approx(worst(**setting).value, rel=1e-5)


def test_what_makes_things_worse_makes_them_worse():
    setting = dict(condition=2.0, step=0.01, ascent_step=0.2, local_step=0.1, local_ascent_step=0.1, local_steps=2)
    noisy = [worst(**setting, noise=noise).value for noise in (0.0, 0.5, 1.0)]
    assert noisy == sorted(noisy) and noisy[0] < 0.999 * noisy[-1]
    unlike = [worst(**setting, clients=2, heterogeneity=sigma).value for sigma in (0.2, 1.0, 3.0)]
    assert unlike == sorted(unlike) and unlike[0] < 0.999 * unlike[-1]
    sampled = worst(**setting, clients=2, heterogeneity=1.0, participants=1)
    assert sampled.value > 1.001 * unlike[1] and sampled.kind == "upper bound (second-moment relaxation)"


def test_units_change_nothing():
    """x and y in other units and f in others: L grows by height/length^2, a squared gradient by height^2/length^2."""
    length, height = 3.0, 0.4
    plain = worst(condition=3.0, step=0.01, ascent_step=0.2, local_step=0.1, local_ascent_step=0.1, local_steps=2)
    unit = length**2 / height
    there = worst(
        condition=3.0,
        step=0.01 * unit,
        ascent_step=0.2 * unit,
        local_step=0.1 * unit,
        local_ascent_step=0.1 * unit,
        local_steps=2,
        smoothness=1 / unit,
        gap=height,
        dual_gap=height,
    )
    assert there.value == pytest.approx(plain.value * height**2 / length**2, rel=1e-5)


def played(a, b, mu, x, y, rounds):
    """a x^2/2 + b x y - mu y^2/2, two local steps: mean squared gradient of the envelope, its fall, the dual gap's."""
    bent = a + b**2 / mu
    squares, envelope, dual = [], [], []
    for _ in range(rounds + 1):
        squares.append((bent * x) ** 2)
        envelope.append(bent * x**2 / 2)
        dual.append(mu * (y - b * x / mu) ** 2 / 2)
        down, up, u, v = 0.0, 0.0, x, y
        for _ in range(2):
            in_x, in_y = a * u + b * v, b * u - mu * v
            down, up, u, v = down + in_x / 2, up + in_y / 2, u - 0.1 * in_x, v + 0.1 * in_y
        x, y = x - 0.05 * down, y + 0.4 * up
    return np.mean(squares[:-1]), envelope[0] - envelope[-1], dual[0] - dual[-1]


@pytest.mark.parametrize("seed", range(6))
def test_no_quadratic_game_exceeds_it(seed):
    rng = np.random.default_rng(seed)
    mu, a, b = 0.5, rng.uniform(-1, 1), rng.uniform(-1, 1)
    norm = np.abs(np.linalg.eigvalsh([[a, b], [b, -mu]])).max()
    a, b, mu = a / norm, b / norm, mu / norm
    setting = dict(condition=1 / mu, step=0.05, ascent_step=0.4, local_step=0.1, local_ascent_step=0.1, local_steps=2)
    weight = 2.25 * 0.05 / 0.4 / mu**2
    for x, y in rng.normal(size=(4, 2)):
        seen, fall, closer = played(a, b, mu, x, y, rounds=2)
        total = fall + weight * closer
        if total > 0:
            found = worst(**setting, rounds=2, gap=total, dual_gap=0.0)
            assert seen <= found.value * (1 + 1e-6)


def test_a_game_that_is_not_concave_is_found_out(monkeypatch):
    """Planted: of strong concavity nothing is asked, as if no two points had the same x."""
    setting = dict(at_the_caps(2.0, 1), blocks=100)
    smooth = _Game._smooth
    monkeypatch.setattr(_Game, "_smooth", lambda self, one, other: smooth(self, one, replace(other, x=1.0 * other.x)))
    with pytest.raises(FedboundsError, match="unbounded"):
        worst(**setting)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"condition": 1.0}, "condition = 1"),
        ({"step": 0}, "step = 0"),
        ({"participants": 2}, "participants = 2"),
        ({"noise": -1}, "noise = -1"),
        ({"gap_to": "infimum", "blocks": 2}, "blocks = 2"),
        ({"blocks": 0}, "blocks = 0"),
    ],
)
def test_what_makes_no_sense_is_refused(setting, says):
    with pytest.raises(FedboundsError, match=says):
        worst(**{"condition": 2.0, "step": 0.01, "ascent_step": 0.5, **setting})
