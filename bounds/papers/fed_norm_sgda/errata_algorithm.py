"""Algorithm 1 read literally: momentum in lines 10 to 12."""

from collections.abc import Sequence
from fractions import Fraction

from fedbounds.bounds.audit.counterexample import Argument, Check, Line, Replay, Smaller

ONE, HALF = Fraction(1), Fraction(1, 2)
MOMENTUM = "heavy-ball momentum in [0, 1), buffer 0 at the start of a round"
COEFFICIENTS = "final coefficients a_i of Appendix A.1"

# --- Lines 10 to 12 and momentum ---------------------------------------------------------------------------------


def final_coefficients(tau: int, rho: Fraction) -> list[Fraction]:
    r"""$(1-\rho^{\tau-k})/(1-\rho)$ for $k<\tau$."""
    return [(1 - rho ** (tau - k)) / (1 - rho) for k in range(tau)]


def printed_aggregate(x: Fraction, eta: Fraction, coefficients: Sequence[Fraction]) -> Fraction:
    r"""$\sum_ka^{(k)}f'(x_k)$ for $f=x^2/2$ and lines 10 to 12: $x_{k+1}=x_k-\eta a^{(k)}f'(x_k)$."""
    total = Fraction(0)
    for a in coefficients:
        total += a * x
        x -= eta * a * x
    return total


def momentum_aggregate(x: Fraction, eta: Fraction, rho: Fraction, tau: int) -> Fraction:
    r"""$(x_0-x_\tau)/\eta$ for heavy-ball momentum on $f=x^2/2$."""
    start, buffer = x, Fraction(0)
    for _ in range(tau):
        buffer = rho * buffer + x
        x -= eta * buffer
    return (start - x) / eta


def general_aggregate(x: Fraction, eta: Fraction, rho: Fraction, tau: int) -> Fraction:
    r"""The same by (12): $x_k=x_0-\eta\sum_{j<k}a^{(j)}(k)f'(x_j)$, $a^{(j)}(k)=(1-\rho^{k-j})/(1-\rho)$."""
    start, gradients = x, list[Fraction]()
    for k in range(tau):
        at = start - eta * sum((a * g for a, g in zip(final_coefficients(k, rho), gradients, strict=True)), Fraction(0))
        gradients.append(at)
    return sum((a * g for a, g in zip(final_coefficients(tau, rho), gradients, strict=True)), Fraction(0))


def momentum_in_lines_10_to_12(rho: Fraction = HALF, eta: Fraction = Fraction(1, 10), tau: int = 2) -> Replay:
    """f = x^2/2 from 1, two steps with momentum 1/2: the second gradient is taken elsewhere."""
    final = final_coefficients(tau, rho)
    plain = final_coefficients(1, rho)
    return Replay(
        instance=f"f = x^2/2, x_0 = 1, eta_x = {eta}, momentum rho = {rho}, tau = {tau}; a = (1 + rho, 1) in lines 10 "
        "to 12.",
        hypotheses=(
            Check(MOMENTUM, "rho >= 0", rho, ">=", 0),
            Check(MOMENTUM, "rho < 1", rho, "<", 1),
            Check(COEFFICIENTS, "a^(0) = 1 + rho", final[0], "==", 1 + rho),
            Check(COEFFICIENTS, "a^(1) = 1", final[1], "==", 1),
        ),
        lines=(
            Line("x_1 by line 10, 1 - eta (1 + rho)", 1 - eta * (1 + rho)),
            Line("x_1 with momentum, 1 - eta", 1 - eta),
            Line("the aggregate by (12), with a^(0)(1) = 1 on the way", general_aggregate(ONE, eta, rho, tau)),
        ),
        claimed=printed_aggregate(ONE, eta, final),
        true=momentum_aggregate(ONE, eta, rho, tau),
        sides=("sum of a^(k) f'(x_k) by Algorithm 1 =", "by heavy-ball momentum ="),
        minimal="two steps: the coefficient of a gradient cannot change from one step to the next",
        smaller=(
            Smaller("tau = 1", printed_aggregate(ONE, eta, plain), momentum_aggregate(ONE, eta, rho, 1)),
            Smaller("rho = 0", printed_aggregate(ONE, eta, [ONE, ONE]),
                    momentum_aggregate(ONE, eta, Fraction(0), 2)),
        ),
    )  # fmt: skip


def coefficients_that_change() -> Argument:
    """(12) unrolls the recursion of momentum."""
    cases = [(rho, tau) for rho in (Fraction(0), HALF, Fraction(9, 10)) for tau in range(1, 7)]
    most = max(
        abs(general_aggregate(ONE, Fraction(1, 10), rho, tau) - momentum_aggregate(ONE, Fraction(1, 10), rho, tau))
        for rho, tau in cases
    )
    return Argument(
        text="The buffer after gradient k - 1 is the sum of rho^(k-1-j) G_j, and x_k is x_0 minus eta times the sum of "
        "the buffers, in which G_j has the coefficient 1 + rho + ... + rho^(k-1-j) = (1 - rho^(k-j))/(1 - rho).",
        checks=(Check("x^2/2", "largest difference for rho = 0, 1/2, 9/10 and tau <= 6", most, "==", 0),),
        axioms=("the argument in words",),
    )
