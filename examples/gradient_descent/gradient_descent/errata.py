"""What the draft says and what is false."""

from fractions import Fraction

from fedbounds.authoring import Check, Erratum, Line, Replay, Smaller

from gradient_descent.notation import BELOW, SMOOTH
from gradient_descent.results import CAP


def large_steps() -> Replay:
    """f = x^2/2 from x_0 = 1 with eta = 3/2, one step: the least gradient is the first."""
    L, eta, T, x = Fraction(1), Fraction(3, 2), 1, Fraction(1)
    gap = x**2 / 2
    return Replay(
        instance="f(x) = x^2/2, x_0 = 1, eta = 3/2, T = 1.",
        hypotheses=(
            Check(SMOOTH, "f'' = 1 <= L", 1, "<=", L),
            Check(BELOW, "f* = f(0) <= f(x_0)", 0, "<=", gap),
            Check(CAP, CAP.text, eta, "<", 2 / L),
        ),
        lines=(Line("F = f(x_0) - f*", gap),),
        claimed=2 * gap / (eta * T),
        true=x**2,
        sides=("2F/(eta T) =", "|grad f(x_0)|^2 ="),
        minimal="one dimension and one step; no step size up to 1/L refutes the claim",
        smaller=(Smaller("eta = 1", 2 * gap / T, x**2),),
    )


ERRATA = (
    Erratum(
        "large-steps",
        where="Theorem 1, eq. (1)",
        claim="min_t |grad f(x_t)|^2 <= 2F/(eta T) for every eta < 2/L",
        fails="For eta > 1/L a step decreases f by less than eta/2 |grad f|^2.",
        instead="2F/(eta (2 - L eta) T), which is at most 2F/(eta T) for eta <= 1/L",
        under=(SMOOTH, BELOW, CAP),
        replay=large_steps,
        refutes=("theorem-1[printed]",),
        repair=("theorem-1[explicit]",),
    ),
)
