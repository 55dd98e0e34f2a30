r"""The vectors of one iteration, and what their inner products average over.

Everything is a mean over all that is random and over the N clients, in one iteration t of a round that started at
$t_0$: gradients are taken at masked models, then noise is drawn, then a cohort, then the masks of what it uploads. An
iteration in which nobody uploads is the same without its last two.
"""

from dataclasses import dataclass

import sympy as sp
from sympy import Symbol

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Atom, Vec, product_symbol
from fedbounds.bounds.papers.fedmrn import assumptions as said
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.theory.assumptions import INDEPENDENT_CLIENTS, MARTINGALE, Assumption
from fedbounds.bounds.theory.result import Condition

PAPER = "fedmrn"
EACH = "in every iteration t"
SYNC = "in every iteration t that ends with a synchronization"

SETTING = ProofSetting.of(
    "mean over gradient noise, masks, client sampling and the N clients, in iteration t",
    Atom("ws", "point", 0, "w*, the minimizer of F", per_client=False, still=True),
    Atom("s", "point", 0, "w_bar_{t0}, where the round started", per_client=False, still=True),
    Atom("b", "point", 0, "w_bar_t, the mean of all clients' models", per_client=False),
    Atom("w", "point", 0, "w_k^t, the model of client k", mean="b"),
    Atom("h", "gradient", 0, "a stochastic gradient of client k in any iteration of the round up to t", of="any"),
    Atom("g0", "gradient", 0, "grad F_k at w_bar_t", at="b", mean="f0"),
    Atom("f0", "gradient", 0, "grad F at w_bar_t", at="b", of="f", per_client=False),
    Atom("x", "point", 1, "x_k^t, the model of client k with its change since the round's start masked"),
    Atom("g", "gradient", 1, "grad F_k at x_k^t", at="x", mean="gb"),
    Atom("gb", "gradient", 1, "g_bar_t, the mean of the g over the clients", of="mean", per_client=False),
    Atom("xi", "noise", 1, "the noise of client k's gradient", mean="nb"),
    Atom("nb", "noise", 1, "g_t - g_bar_t, the mean of the xi over the clients", per_client=False),
    Atom("v", "point", 2, "v_k^{t+1}, the model of client k after its step", mean="vb"),
    Atom("vb", "point", 2, "v_bar_{t+1}, the mean of the v over the clients", per_client=False),
    Atom("y", "point", 3, "v_k^{t+1} with its change since the round's start masked for the upload"),
    Atom("va", "point", 3, "the mean of the v over the K clients that are drawn", per_client=False),
    Atom("wn", "point", 4, "w_bar_{t+1}, the mean of the masked v over the clients that are drawn", per_client=False),
)
ws, s, b, w, h, g0, f0 = (Vec.atom(name) for name in ("ws", "s", "b", "w", "h", "g0", "f0"))
x, g, gb, xi, nb, v, vb, y, va, wn = (
    Vec.atom(name) for name in ("x", "g", "gb", "xi", "nb", "v", "vb", "y", "va", "wn")
)
SQUARED_GRADIENT = product_symbol("f0", "f0")
TO_SYMBOLS = {SQUARED_GRADIENT: n.gradsq, product_symbol("gb", "gb"): n.meansq, product_symbol("nb", "nb"): n.V}
EARLY = Symbol("eta_t0", positive=True)  # the step size of the round's first iteration
CHANCE = Symbol("p_t", nonnegative=True)  # of a coordinate to be masked in iteration t, progressively
AMPLITUDE = Symbol("[amplitude]", nonnegative=True)


@dataclass(frozen=True)
class Masking:
    """What a chain assumes of the masks."""

    suffix: str  # of the ids of its proofs
    assumptions: tuple[Assumption, ...]  # by which masks are unbiased; the first says how large their error is
    gradients: Assumption  # by which the stochastic gradients are bounded
    amplitude: sp.Expr | None = None  # of the noise under real masks; None for an operator with a relative error
    conditions: tuple[Condition, ...] = ()  # under which no update leaves its bounds
    # what the masks take from them: an inequality of the constants, which the conditions imply
    within: Relation | None = None
    progressive: bool = False  # whether a local step masks a coordinate only with the chance p_t

    @property
    def local(self) -> tuple[Assumption, ...]:
        """The assumptions about the masks of local steps."""
        return (*self.assumptions, said.PROGRESSIVE) if self.progressive else self.assumptions

    @property
    def chance(self) -> sp.Expr:
        """Of a coordinate to be masked in a local step."""
        return CHANCE if self.progressive else sp.S.One


RELATIVE = Masking("", (said.RELATIVE_ERROR, said.INDEPENDENT_MASKS), said.GRADIENT_BOUND)
NOISE, SAMPLING, INDEPENDENT = said.NOISE, said.SAMPLING, INDEPENDENT_CLIENTS
__all__ = ["INDEPENDENT", "MARTINGALE", "NOISE", "SAMPLING"]
