"""Assumptions: the hypotheses that several papers share, each with the statement it stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Assumption:
    r"""A hypothesis of a result.

    Args:
        name: how it is called on the command line (`--assume smooth`).
        statement: what must hold, in one line of LaTeX-free words and formulas.
        label: the paper's own label, e.g. "Assumption 1", or "unstated" when the proof needs it unsaid.
        participation: whether it is about who takes part, and when.

    Example:
        >>> SMOOTH.name, SMOOTH.label
        ('smooth', 'Lipschitz gradient')
    """

    name: str
    statement: str
    label: str
    participation: bool = False

    @property
    def unstated(self) -> bool:
        """Whether the proof needs it although the paper does not say so."""
        return self.label == "unstated"

    def labeled(self, label: str) -> Assumption:
        """The same hypothesis under a paper's own label."""
        return replace(self, label=label)


SMOOTH = Assumption(
    "smooth", "|grad F_n(x) - grad F_n(y)| <= L |x - y| for all x, y and every client n", "Lipschitz gradient"
)
UNBIASED = Assumption(
    "unbiased-noise",
    "E[g_n(x) | x] = grad F_n(x) and E|g_n(x) - grad F_n(x)|^2 <= sigma^2 for all x, n",
    "unbiased gradients with bounded variance",
)
DIVERGENCE = Assumption(
    "bounded-divergence", "|grad F_n(x) - grad f(x)| <= d for all x, n", "bounded gradient divergence"
)
BOUNDED_BELOW = Assumption("bounded-below", "f has a finite infimum f*", "unstated")
INDEPENDENT_CLIENTS = Assumption("independent-clients", "gradient noise is independent across clients", "unstated")
MARTINGALE = Assumption(
    "martingale-noise",
    "gradient noise has mean zero given the whole past, not only the current point",
    "unstated",
)
FULL_PARTICIPATION = Assumption(
    "full-participation",
    "every client takes part in every round, with weight 1/N",
    "full participation",
    participation=True,
)
EXOGENOUS = Assumption(
    "exogenous-participation", "participation is independent of the gradient noise", "unstated", participation=True
)
