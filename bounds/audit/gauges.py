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

# powers of a and b, and the concepts that have them; a concept without a unit keeps its value
_CONCEPTS: Mapping[tuple[int, int], str] = {
    (1, 0): (
        "initial_gap weighted_initial_gap initial_dual_gap initial_moreau_gap function_heterogeneity window_decrease "
        "decrease_of_the_objective dual_gap stale_dual_gap function_values excess slope_along bregman_distance"
    ),
    (1, -1): (
        "gradient_noise noise_of_each_block noise_of_one_block gradient_bound stochastic_gradient_bound "
        "descent_gradient_bound gradient_divergence_sup cohort_divergence participation_divergence window_divergence "
        "weighted_divergence weighted_heterogeneity target"
    ),
    (2, -2): (  # the two of blocks are variances, not their roots
        "block_gradient_noise averaged_block_gradient_noise averaged_gradient_noise squared_gradient_norm "
        "squared_partial_gradient squared_first_gradients squared_mean_gradient squared_descent_gradient_norm "
        "squared_noisy_gradient squared_direction surrogate_stationarity surrogate_moreau_stationarity local_drift "
        "sampled_local_drift noisy_local_drift first_square second_square squares"
    ),
    (1, -2): "smoothness block_smoothness strong_convexity strong_concavity",
    (-1, 2): (
        "local_step_size local_ascent_step_size server_step_size server_ascent_step_size effective_step "
        "effective_ascent_step step_size_at_t scaled_step local_step_scale global_step_scale"
    ),
    (-1, 1): "step_scale",
    (0, 1): "mask_amplitude",
    (0, 2): (
        "initial_squared_distance squared_distance squared_radius maximizer_mismatch proximal_mismatch masked_drift "
        "synchronization_error"
    ),
}
GAUGES = {concept: powers for powers, concepts in _CONCEPTS.items() for concept in concepts.split()}
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
