# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Fed-Norm-SGDA+: the two directions, eqs. (63) and (69), and Lemma C.2, where the ascent is at a snapshot.

The gradient in y is taken at $(\hat x^{(s)},y)$, that in x, bounded by $G_x$ everywhere, at the local model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Symbol

from bounds.audit.axioms import Schema, Unfit
from bounds.audit.chain import Chain
from bounds.audit.claim import Relation
from bounds.audit.participation_rules import Squared
from bounds.audit.rules import Abbreviated, Combine, Gram, Stated
from bounds.audit.steps import Setting, Step
from bounds.audit.vectors import Atom, Vec, square
from bounds.clients import SumOverClients
from bounds.papers.fed_norm_sgda.assumptions import JOINTLY_SMOOTH, LIPSCHITZ, LOCAL_MAP
from bounds.papers.fed_norm_sgda.composites import SAMPLED, SIMPLEX
from bounds.papers.fed_norm_sgda.concave import recursion_cap
from bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_2
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.axioms import ON_THE_SIMPLEX, BlockSmooth, SelfBounded, scaled
from bounds.papers.fed_norm_sgda.proof.directions import (
    EACH,
    IN_X,
    TO_LETTERS,
    Block,
    end_steps,
    gradient_steps,
    sample_steps,
    start_steps,
)
from bounds.papers.fed_norm_sgda.proof.drift import HALF, LARGEST_SUM, MOVED, LargestRecursion, block_steps
from bounds.papers.fed_norm_sgda.proof.letters import (
    PAPER,
    C_w,
    D,
    Gx,
    L,
    X,
    Z,
    a_m,
    betaG,
    betaL,
    c,
    closed,
    d,
    etax,
    etay,
    nu,
    r,
    round_setting,
    sigmaG,
    sigmaL,
)
from bounds.papers.fed_norm_sgda.proof.local_steps import LOCAL_PROOF

STALE = Symbol("[delta^_t]", nonnegative=True)
W_SQUARED, I_1_SQUARED = Symbol("sum w_i^2", nonnegative=True), Symbol("I_1^2", nonnegative=True)
V_C = Symbol("V_C", nonnegative=True)
OWN_LETTERS = {
    W_SQUARED: SumOverClients(n.w**2),
    I_1_SQUARED: r * Z * (sigmaL**2 + betaL**2 * Gx**2) + Gx**2 * (c + r * d * W_SQUARED),
    V_C: (etax**2 + etay**2) * L**2 * (sigmaL**2 * C_w + 2 * D * (Gx**2 + sigmaG**2)),
}
SNAPSHOT_ATOMS = (
    Atom(
        "xs", "point", 0, "the snapshot of x, taken at the start of the block of rounds", per_client=False, still=True
    ),
    Atom("yb", "point", 0, "a maximiser of F~ at the snapshot", per_client=False, still=True),
    Atom("xb", "point", 0, "the proximal point of Phi~ at x_t, with 1/(2 Lf)", per_client=False, still=True),
)
_BASE = round_setting("xs y0", *SNAPSHOT_ATOMS)
SETTING = Setting(_BASE.bracket, _BASE.atoms, letters={**_BASE.letters, **OWN_LETTERS})
IN_SNAPSHOT = Block("y", "S-self", 2 * L * STALE)
MOVED_Y = square(MOVED["y"])
TO_OWN = {
    **TO_LETTERS,
    **{letter: value.xreplace(closed({**_BASE.letters, **OWN_LETTERS})) for letter, value in OWN_LETTERS.items()},
    STALE: n.staledual,
}


@dataclass(frozen=True)
class BoundedGradient(Schema):
    r"""$\|\nabla_xf_i\|\le G_x$ everywhere, for the gradients in x, their means, and with their scaled weights summed.

    $\sum_iw_i\cdot w_i=\sum_iw_i^2$, $\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2=Z$, and the weights of the
    drift sum to D at most.

    Args:
        vector: a gradient in x, or a mean of such.
        prefix: how it is scaled; "" if it is not.
    """

    vector: str
    prefix: str = ""
    axiom: str = "Lipschitz in x: |grad_x f_i| <= Gx everywhere"
    needs: tuple[str, ...] = (LIPSCHITZ.name,)

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """Of gradients in x and their means only."""
        if self.vector not in ("Gx", "hx", "Hx", "gx", "Fx"):
            raise Unfit(f"{self.vector} is not a gradient in x or a mean of these")
        if self.vector == "Hx" and not any(p == ON_THE_SIMPLEX for p in premises):
            raise Unfit("no premise says that the weights sum to 1")
        sums = {"": Integer(1), "w": W_SQUARED, "a": Z, "r": D}
        plain = Vec.atom(self.vector)
        return Relation(square(scaled(self.prefix, plain) if self.prefix else plain), sums[self.prefix] * Gx**2)


def shared_steps() -> Iterator[Step]:
    """The blocks at their own places."""
    yield Step("S0", "the weights are a mean", ON_THE_SIMPLEX, Stated(), (SIMPLEX,))
    yield Step(
        "S-self",
        "Lemma A.7 at the snapshot",
        Relation(square(IN_SNAPSHOT.F), 2 * L * STALE),
        SelfBounded("Fy", STALE),
        ("S0", JOINTLY_SMOOTH),
        EACH,
    )
    both = square(MOVED["x"]) + MOVED_Y
    yield Step(
        "D1x-spelled",
        "smoothness between the local model and the round's start",
        Relation(square(IN_X.G - IN_X.g), sp.expand(L**2 * both)),
        BlockSmooth((("Gx", "gx"),)),
        (JOINTLY_SMOOTH,),
        EACH,
    )
    yield Step("D1x", "in x", Relation(square(IN_X.G - IN_X.g), X), Abbreviated(), ("D1x-spelled",), EACH)
    yield Step(
        "D1y-own",
        "smoothness in y alone, at the snapshot",
        Relation(square(IN_SNAPSHOT.G - IN_SNAPSHOT.g), sp.expand(L**2 * MOVED_Y)),
        BlockSmooth((("Gy", "gy"),)),
        (JOINTLY_SMOOTH,),
        EACH,
    )
    yield Step(
        "D1y-spelled",
        "which is part of the drift",
        Relation(square(IN_SNAPSHOT.G - IN_SNAPSHOT.g), sp.expand(L**2 * both)),
        Combine((1,)),
        ("D1y-own",),
        EACH,
    )
    yield Step("D1y", "in y", Relation(square(IN_SNAPSHOT.G - IN_SNAPSHOT.g), X), Abbreviated(), ("D1y-spelled",), EACH)


def descent_direction_steps() -> Iterator[Step]:
    """(63): the direction in x, whose gradients are bounded."""
    for name, vector, prefix, total in (
        ("63-H", "Hx", "", Integer(1)),
        ("63-w", "hx", "w", W_SQUARED),
        ("63-a", "Gx", "a", Z),
    ):
        plain = Vec.atom(vector)
        yield Step(
            name,
            "gradients in x are bounded, so are their means",
            Relation(square(scaled(prefix, plain) if prefix else plain), total * Gx**2),
            BoundedGradient(vector, prefix),
            ("S0", LIPSCHITZ),
            EACH,
        )
    bound = r * Z * (sigmaL**2 + betaL**2 * Gx**2) + Gx**2 * (c + r * d * W_SQUARED)
    for suffix, price in (("", nu), ("-printed", Integer(1))):
        yield Step(
            f"63{suffix}-spelled",
            "(63)" + (" as printed" if suffix else " at the price nu"),
            Relation(square(IN_X.s + IN_X.n), sp.expand(price * bound)),
            Combine((1, price * c, price * r * d, price * r * betaL**2)),
            (f"19x{suffix}", "63-H", "63-w", "63-a"),
            EACH,
        )
        yield Step(
            f"63{suffix}",
            "with I_1^2",
            Relation(square(IN_X.s + IN_X.n), price * I_1_SQUARED),
            Abbreviated(),
            (f"63{suffix}-spelled", SAMPLED),
            EACH,
        )


def direction_steps() -> Iterator[Step]:
    """(69), after the steps that both blocks share."""
    yield Step(
        "69a",
        "(69): two parts",
        Relation(square(IN_SNAPSHOT.H), 2 * square(IN_SNAPSHOT.H - IN_SNAPSHOT.F) + 2 * square(IN_SNAPSHOT.F)),
        Gram(),
        (),
        EACH,
    )
    yield Step(
        "69",
        "(69): the mean exact direction in y",
        Relation(square(IN_SNAPSHOT.H), 2 * X + 4 * L * STALE),
        Combine((1, 2, 2)),
        ("69a", "D4y", "S-self"),
        EACH,
    )


# --- Lemma C.2 ------------------------------------------------------------------------------------------------------

ASCENT_START = sigmaL**2 * C_w + 2 * D * square(IN_SNAPSHOT.g)
START = ASCENT_START.xreplace({square(IN_SNAPSHOT.g): betaG**2 * 2 * L * STALE + sigmaG**2})


def cap_steps(suffix: str, price: sp.Expr) -> Iterator[Step]:
    """The cap of Lemma C.2 in letters."""
    spelled = Relation(2 * price * L**2 * etay**2 * a_m, HALF)
    if not suffix:
        condition = recursion_cap(nu)
        yield Step("m-stated", "the cap", Relation(condition.left, condition.right), Stated(), (condition,))
        yield Step("m", "the cap in letters", spelled, Abbreviated(), ("m-stated",))
        return
    cap = LEMMA_C_2.form("printed").conditions[-1]
    growth = sp.Max(1, betaL**2)
    most = 1 / (8 * L**2 * LARGEST_SUM**2 * growth)
    yield Step("cap", "the cap of Lemma C.2, squared", Relation(cap.left**2, most), Squared(), (cap,))
    recursion = Relation(a_m, (1 + betaL**2) * LARGEST_SUM**2)
    yield Step("cap-a", "no coefficient is more than their sum", recursion, LargestRecursion(), (LOCAL_MAP,))
    yield Step(
        "m-printed",
        "(66): the recursion, 1 + betaL^2 being at most twice the larger",
        spelled,
        Combine((2 * growth * LARGEST_SUM**2 * 2 * L**2, 2 * L**2 * etay**2)),
        ("cap", "cap-a"),
    )


def drift_steps(suffix: str, price: sp.Expr) -> Iterator[Step]:
    """(65) to (67): the drift in y, that in x, and both."""
    own = sp.expand(price * etay**2 * (sigmaL**2 * C_w + 2 * a_m * L**2 * MOVED_Y + 2 * D * square(IN_SNAPSHOT.g)))
    yield Step(
        f"66{suffix}",
        "(66): the drift in y as a recursion",
        Relation(MOVED_Y, own),
        Combine((1, 2 * price * etay**2 * a_m)),
        (f"30y{suffix}", "D1y-own"),
        EACH,
    )
    yield Step(
        f"66-solved{suffix}",
        "solved",
        Relation(MOVED_Y, sp.expand(2 * price * etay**2 * ASCENT_START)),
        Combine((2, 2 * MOVED_Y)),
        (f"66{suffix}", f"m{suffix}"),
        EACH,
    )
    yield Step(
        f"67y{suffix}",
        "(67): heterogeneity and the gap at the snapshot",
        Relation(MOVED_Y, sp.expand(2 * price * etay**2 * START)),
        Combine((1, 4 * price * etay**2 * D, 4 * price * etay**2 * D * betaG**2)),
        (f"66-solved{suffix}", "A3y", "S-self"),
        EACH,
    )
    yield Step(
        f"67x{suffix}",
        "the drift in x, where the gradient is bounded",
        Relation(square(MOVED["x"]), price * etax**2 * (sigmaL**2 * C_w + D * Gx**2)),
        Combine((1, price * etax**2)),
        (f"25x{suffix}", "67-r"),
        EACH,
    )
    tight = (etax**2 + 2 * etay**2) * sigmaL**2 * C_w + D * (
        etax**2 * Gx**2 + 4 * etay**2 * (sigmaG**2 + 2 * betaG**2 * L * STALE)
    )
    yield Step(
        f"C.2-spelled{suffix}",
        "both blocks",
        Relation(sp.expand(L**2 * (square(MOVED["x"]) + MOVED_Y)), sp.expand(price * L**2 * tight)),
        Combine((L**2, L**2)),
        (f"67x{suffix}", f"67y{suffix}"),
        EACH,
    )
    yield Step(
        f"C.2-sharp{suffix}",
        "Lemma C.2 with every summand its own constant",
        Relation(X, sp.expand(price * L**2 * tight)),
        Abbreviated(),
        (f"C.2-spelled{suffix}",),
        EACH,
    )
    loose = 2 * (etax**2 + etay**2) * sigmaL**2 * C_w + 4 * D * (
        etax**2 * Gx**2 + etay**2 * (sigmaG**2 + 2 * betaG**2 * L * STALE)
    )
    yield Step(
        f"C.2{suffix}",
        "Lemma C.2" + (" as printed" if suffix else " at the price nu"),
        Relation(X, sp.expand(price * L**2 * loose)),
        Combine((1,)),
        (f"C.2-sharp{suffix}",),
        EACH,
    )


def lemma_c_2_steps() -> Iterator[Step]:
    """Lemma C.2."""
    yield Step(
        "67-r",
        "gradients in x are bounded, in the weights of the drift",
        Relation(square(scaled("r", IN_X.G)), D * Gx**2),
        BoundedGradient("Gx", "r"),
        (LIPSCHITZ,),
        EACH,
    )
    for suffix, price in (("", nu), ("-printed", Integer(1))):
        yield from cap_steps(suffix, price)
        yield from drift_steps(suffix, price)


def lemma_c_2_chain() -> Chain:
    """Both directions, and Lemma C.2."""
    s = Chain(SETTING, EACH, (LOCAL_PROOF,))
    s.extend(shared_steps())
    for b in (IN_X, IN_SNAPSHOT):
        start_steps(s, b)
    sample_steps(s, IN_X)
    s.extend(descent_direction_steps())
    for part in (sample_steps, gradient_steps, end_steps):
        part(s, IN_SNAPSHOT)
    s.extend(direction_steps())
    for b in (IN_X, IN_SNAPSHOT):
        block_steps(s, b)
    s.extend(lemma_c_2_steps())
    return s


SNAPSHOT_PROOF = lemma_c_2_chain().proof(
    f"{PAPER}/lemma-c.2",
    LEMMA_C_2,
    {"printed": "C.2-printed", "repaired": "C.2", "sharp": "C.2-sharp"},
    X,
    TO_OWN,
)
