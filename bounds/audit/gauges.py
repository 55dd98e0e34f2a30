"""Scaling gauges: the same problem in other units, by substitution.

Under f -> a f and x -> b x each concept grows by a power that follows from its definition (smoothness by a/b^2, a step
size by b^2/a). What has the unit f^p x^q must then grow by exactly a^p (or b^q), evaluated to thirty digits.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from fedbounds.bounds.theory.client_reductions import (
    MaxOverClients,
    MeanOverClients,
    MedianOverClients,
    OverClients,
    SumOverClients,
)
from fedbounds.bounds.theory.expressions import parts, remade, rename_symbols
from fedbounds.bounds.theory.symbols import NONE, Dimension, Notation

# concept: its powers of a and b; a concept without a unit keeps its value
GAUGES: Mapping[str, tuple[int, int]] = {
    "smoothness": (1, -2),
    "block_smoothness": (1, -2),
    "strong_convexity": (1, -2),
    "strong_concavity": (1, -2),
    "initial_gap": (1, 0),
    "weighted_initial_gap": (1, 0),
    "initial_dual_gap": (1, 0),
    "function_heterogeneity": (1, 0),
    "window_decrease": (1, 0),
    "initial_squared_distance": (0, 2),
    "local_step_size": (-1, 2),
    "local_ascent_step_size": (-1, 2),
    "server_step_size": (-1, 2),
    "server_ascent_step_size": (-1, 2),
    "gradient_noise": (1, -1),
    "block_gradient_noise": (2, -2),  # a variance, not its root
    "averaged_block_gradient_noise": (2, -2),
    "noise_of_each_block": (1, -1),
    "noise_of_one_block": (1, -1),
    "squared_partial_gradient": (2, -2),
    "squared_first_gradients": (2, -2),
    "decrease_of_the_objective": (1, 0),
    "scaled_step": (-1, 2),
    "squared_gradient_norm": (2, -2),
    "gradient_bound": (1, -1),
    "stochastic_gradient_bound": (1, -1),
    "gradient_divergence_sup": (1, -1),
    "weighted_heterogeneity": (1, -1),
    "cohort_divergence": (1, -1),
    "participation_divergence": (1, -1),
    "window_divergence": (1, -1),
    "step_scale": (-1, 1),
    "local_step_scale": (-1, 2),
    "global_step_scale": (-1, 2),
    "weighted_divergence": (1, -1),
    "effective_step": (-1, 2),
    "effective_ascent_step": (-1, 2),
    "descent_gradient_bound": (1, -1),
    "squared_radius": (0, 2),
    "initial_moreau_gap": (1, 0),
    "surrogate_stationarity": (2, -2),
    "surrogate_moreau_stationarity": (2, -2),
    "target": (1, -1),
    "maximizer_mismatch": (0, 2),
    "proximal_mismatch": (0, 2),
    "dual_gap": (1, 0),
    "function_values": (1, 0),
    "stale_dual_gap": (1, 0),
    "local_drift": (2, -2),
    "squared_direction": (2, -2),
    "squared_descent_gradient_norm": (2, -2),
    "squared_noisy_gradient": (2, -2),
    "sampled_local_drift": (2, -2),
    "noisy_local_drift": (2, -2),
    "first_square": (2, -2),
    "second_square": (2, -2),
    "squares": (2, -2),
    "excess": (1, 0),
    "squared_distance": (0, 2),
    "slope_along": (1, 0),
    "mask_amplitude": (0, 1),
    "step_size_at_t": (-1, 2),
    "averaged_gradient_noise": (2, -2),
    "masked_drift": (0, 2),
    "synchronization_error": (0, 2),
    "squared_mean_gradient": (2, -2),
    "bregman_distance": (1, 0),
}
GAUGE_NAMES = ("f -> a f", "x -> b x")
DIGITS, POINTS, ATTEMPTS, TOLERANCE = 30, 2, 20, sp.Rational(1, 10**20)
Powers = tuple[Fraction, Fraction]  # of a and of b
FOR_TWO_CLIENTS = {
    SumOverClients: lambda first, second: first + second,
    MeanOverClients: lambda first, second: (first + second) / 2,
    MedianOverClients: lambda first, second: (first + second) / 2,
    MaxOverClients: lambda first, second: sp.Max(first, second, evaluate=False),
}


def broken_gauge(expression: sp.Expr, unit: Dimension, notation: Notation) -> str:
    """What the gauges find wrong with an expression that should have this unit; empty if nothing."""
    # a float has 16 digits: as the fraction that it is, it has them all
    fractions = {number: sp.Rational(number) for number in expression.atoms(sp.Float)}
    expression = _two_clients(expression.xreplace(fractions), notation)
    symbols = sorted(expression.free_symbols, key=str)
    return _broken(expression, _powers(unit), tuple((s, _gauge_of(s, notation)) for s in symbols))


@lru_cache(maxsize=1024)
def _broken(expression: sp.Expr, powers: Powers, symbols: tuple[tuple[sp.Basic, Powers], ...]) -> str:
    """Remembered: forms of one result share terms and conditions."""
    source = random.Random(0)
    for index, gauge in enumerate(GAUGE_NAMES):
        power = sp.Rational(powers[index])
        for _ in range(POINTS):
            scale = sp.Rational(source.randint(11, 30), source.randint(2, 9))
            grown = _growth(expression, scale, {s: sp.Rational(own[index]) for s, own in symbols}, source)
            if grown is not None and abs(grown / scale**power - 1) > TOLERANCE:
                by, not_by = float(grown), float(scale**power)
                return f"{gauge} with {gauge[-3]} = {scale} multiplies it by {by:.6g}, not {not_by:.6g}"
    return ""


def _growth(
    expression: sp.Expr, scale: sp.Expr, powers: Mapping[sp.Basic, sp.Expr], source: random.Random
) -> sp.Expr | None:
    """By what the gauge multiplies the expression at a random point; None where it vanishes everywhere."""
    for _ in range(ATTEMPTS):
        at = {s: sp.Rational(source.randint(1, 60), source.randint(1, 12)) for s in powers}
        elsewhere = {s: value * scale ** powers[s] for s, value in at.items()}
        try:
            before, after = (sp.N(expression.xreplace(point), DIGITS) for point in (at, elsewhere))
        except ValueError:  # a maximum of 1/0: no window is complete at these numbers
            continue
        if before.is_Float and after.is_Float:
            return after / before
    return None


def _gauge_of(symbol: sp.Basic, notation: Notation) -> Powers:
    quantity = notation[str(symbol).partition("@")[0]]
    if quantity.concept not in GAUGES and quantity.dimension != NONE:  # a concept of another package: its declared unit
        return _powers(quantity.dimension)
    first, second = GAUGES.get(quantity.concept, (0, 0))
    return Fraction(first), Fraction(second)


def _powers(unit: Dimension) -> Powers:
    powers = dict(unit.exponents)
    return Fraction(powers.get("f", 0)), Fraction(powers.get("x", 0))


def _two_clients(expression: sp.Expr, notation: Notation) -> sp.Expr:
    """The expression with its reductions over clients written out for two clients."""
    vectors = [quantity.symbol for quantity in notation.values() if quantity.shape]
    one, two = ({v: sp.Symbol(f"{v}@{k}", positive=True) for v in vectors} for k in (1, 2))

    def written_out(node: sp.Expr) -> sp.Expr:
        if not node.has(OverClients):
            return node
        inside = [written_out(part) for part in parts(node)]
        if not isinstance(node, OverClients):
            return remade(node, inside)
        return FOR_TWO_CLIENTS[type(node)](rename_symbols(inside[0], one), rename_symbols(inside[0], two))

    return written_out(expression)
