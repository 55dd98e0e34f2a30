"""Assumptions: the hypotheses that several papers share, each with the statement it stands for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fedbounds.bounds.theory.problem_class import ASKED, NOWHERE, Cover, box, where


@dataclass(frozen=True)
class Assumption:
    r"""A hypothesis of a result.

    Args:
        name: how it is called on the command line (`--assume smooth`).
        statement: what must hold, in one line of LaTeX-free words and formulas.
        label: the paper's own label, e.g. "Assumption 1", or "unstated" when the proof needs it unsaid.
        participation: whether it is about participation.
        cover: for which settings it holds (None: nobody has said, and whoever relies on it answers for it).

    Example:
        >>> SMOOTH.name, SMOOTH.label
        ('smooth', 'Lipschitz gradient')
    """

    name: str
    statement: str
    label: str
    participation: bool = False
    cover: Cover | None = field(default=None, repr=False)

    @property
    def unstated(self) -> bool:
        """Whether the proof needs it although the paper does not say so."""
        return self.label == "unstated"

    def with_label(self, label: str) -> Assumption:
        """The same hypothesis under a paper's own label."""
        return replace(self, label=label)


SMOOTH_SETTING = where(box(smoothness="smooth"))
SAMPLED = where(box(participation="all uniform-sampling"))
NO_NOISE = box(noise="none")
WITHOUT_NOISE = where(NO_NOISE, perhaps=[box()], by="you")  # what noise must be like, if there is any
VARIANCE = where(box(noise="none bounded"))
BOUNDED_HETEROGENEITY = where(box(heterogeneity="none bounded"))

SMOOTH = Assumption(
    "smooth",
    "|grad F_n(x) - grad F_n(y)| <= L |x - y| for all x, y and every client n",
    "Lipschitz gradient",
    cover=SMOOTH_SETTING,
)
UNBIASED = Assumption(
    "unbiased-noise",
    "E[g_n(x) | x] = grad F_n(x) and E|g_n(x) - grad F_n(x)|^2 <= sigma^2 for all x, n",
    "unbiased gradients with bounded variance",
    cover=VARIANCE,
)
DIVERGENCE = Assumption(
    "bounded-divergence",
    "|grad F_n(x) - grad f(x)| <= d for all x, n",
    "bounded gradient divergence",
    cover=BOUNDED_HETEROGENEITY,
)
BOUNDED_BELOW = Assumption("bounded-below", "f has a finite infimum f*", "unstated", cover=ASKED)
INDEPENDENT_CLIENTS = Assumption(
    "independent-clients", "gradient noise is independent across clients", "unstated", cover=WITHOUT_NOISE
)
MARTINGALE = Assumption(
    "martingale-noise",
    "gradient noise has mean zero given the whole past, not only the current point",
    "unstated",
    cover=WITHOUT_NOISE,
)
FULL_PARTICIPATION = Assumption(
    "full-participation",
    "every client takes part in every round, with weight 1/N",
    "full participation",
    participation=True,
    cover=where(box(participation="all")),
)
EXOGENOUS = Assumption(
    "exogenous-participation",
    "participation is independent of the gradient noise",
    "unstated",
    participation=True,
    cover=where(
        box(
            participation="all uniform-sampling with-replacement independent-rounds coins-known-rates "
            "coins-unknown-rates cyclic reshuffled mixing ergodic arbitrary"
        )
    ),
)

# What a paper is about before it assumes anything: the scope of all its results.
MINIMIZATION = Assumption(
    "minimization",
    "f is minimized over all its parameters, and nobody maximizes",
    "its problem",
    cover=where(box(ascent="none")),
)
HORIZONTAL = Assumption(
    "horizontal-partition",
    "every client has samples of its own, with all their features, and a whole model",
    "its problem",
    cover=where(box(partition="horizontal")),
)
UNCOMPRESSED = Assumption(
    "uncompressed", "updates arrive as they were computed", "its algorithm", cover=where(box(compression="none"))
)
PLAIN_STEPS = Assumption(
    "plain-local-steps",
    "clients take steps of SGD, without momentum",
    "its algorithm",
    cover=where(box(local_optimizer="sgd")),
)
STATED_STEP_SIZES = Assumption(
    "stated-step-sizes",
    "step sizes are the same in all rounds, or those that the result sets",
    "its algorithm",
    cover=where(box(step_sizes="as-stated")),
)
AVERAGING_SERVER = Assumption(
    "averaging-server",
    "the server adds the weighted mean of the updates, or a constant multiple of it",
    "its algorithm",
    cover=where(box(server="averaging")),
)
LOCAL_SGD = (PLAIN_STEPS, STATED_STEP_SIZES, AVERAGING_SERVER)
USUAL_SCOPE = (MINIMIZATION, HORIZONTAL, UNCOMPRESSED, *LOCAL_SGD)
CITED = Assumption("cited", "the assumptions of the cited paper, which are not stated here", "cited", cover=NOWHERE)
