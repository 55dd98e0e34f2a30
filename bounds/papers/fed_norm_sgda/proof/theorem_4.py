# pyright: reportArgumentType=false, reportReturnType=false, reportOperatorIssue=false
# sympy types its operators as unions
r"""Lemma C.4 and Theorems 4 and 3: the Moreau envelope's descent, the gap at the snapshots, and how old these are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Symbol, floor, sqrt

from bounds.audit.axioms import Assumed, Schema, Unfit
from bounds.audit.claim import Relation
from bounds.audit.derivations import InExpectation
from bounds.audit.nonnegative import same
from bounds.audit.participation_rules import AverageOverRounds
from bounds.audit.rules import Combine, Stated
from bounds.audit.steps import Proof, Setting, Step, measure_symbol
from bounds.audit.vectors import square
from bounds.papers.fed_norm_sgda.assumptions import BOUNDED_BELOW, LIPSCHITZ
from bounds.papers.fed_norm_sgda.composites import WHOLE_BLOCKS
from bounds.papers.fed_norm_sgda.concave import MOREAU, THEOREM_3, THEOREM_4, TIGHT_DRIFT
from bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_4
from bounds.papers.fed_norm_sgda.notation import NOTATION as n
from bounds.papers.fed_norm_sgda.proof.directions import EACH, IN_X
from bounds.papers.fed_norm_sgda.proof.letters import DELTA, Gammax, Gammay, Gx, L, N, nu
from bounds.papers.fed_norm_sgda.proof.moreau import ENVELOPE_DECREASE, GRADIENT, MOREAU_PROOF
from bounds.papers.fed_norm_sgda.proof.moreau import HERE as MOREAU_SETTING
from bounds.papers.fed_norm_sgda.proof.restart import APPROACH, FIRST, KEPT, ONE_POINT_PROOF, RESTART_PROOF
from bounds.papers.fed_norm_sgda.proof.snapshot import I_1_SQUARED, SNAPSHOT_PROOF, STALE, TO_OWN, V_C

SNAPSHOT, RESTART = SNAPSHOT_PROOF.id, RESTART_PROOF.id
ONE = Integer(1)
I_1 = sqrt(I_1_SQUARED)
LAG = Symbol("[E|x_t - x^|]", nonnegative=True)
LAG_MEAN = Symbol("[average over rounds of E|x_t - x^|]", nonnegative=True)
LENGTH = Symbol("[E|g_x|]", nonnegative=True)
STALE_MEAN = Symbol("[average over rounds of delta^_t]", nonnegative=True)
GAP_MEAN = measure_symbol(LEMMA_C_4.measure)
ENVELOPE_MEAN = measure_symbol(MOREAU)
SETTING = Setting(MOREAU_SETTING.bracket, MOREAU_SETTING.atoms, letters=MOREAU_SETTING.letters)


@dataclass(frozen=True)
class MeanLength(Schema):
    r"""$\mathbb E\|g\|\le\sqrt b$ where the premise shows $\mathbb E\|g\|^2\le b$."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The bound comes from the premise."""
        if len(premises) != 1 or not same(premises[0].left, square(IN_X.s + IN_X.n)):
            raise Unfit("the premise does not bound |g_x|^2")
        return Relation(LENGTH, sqrt(premises[0].right))


@dataclass(frozen=True)
class SnapshotLag(Schema):
    r"""$x_t-\hat x=-\Gamma_x\sum_jg_x^{(j)}$ over the $t-sS$ rounds since the snapshot, of which there are
    $\frac{S-1}2$ on average at most: the average of $\mathbb E\|x_t-\hat x\|$ is at most $\Gamma_x\frac{S-1}2b$ where
    the premise shows $\mathbb E\|g_x\|\le b$ in every round.
    """

    axiom: str = "the algorithm: a snapshot is taken every S rounds, from the first on"
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The bound must be the same in all rounds."""
        if len(premises) != 1 or premises[0].left != LENGTH:
            raise Unfit("the premise does not bound E|g_x|")
        bound = premises[0].right
        if any(str(s).startswith(("[", "<")) for s in bound.free_symbols):
            raise Unfit(f"{bound} differs between the rounds")
        return Relation(LAG_MEAN, Gammax * (n.S - 1) / 2 * bound)


@dataclass(frozen=True)
class OverBlocks(Schema):
    """A bound of every block's average is one of the average over all rounds, if these are a whole number of blocks."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """One premise bounds a block's average, the other says that T/S is whole."""
        block, whole, *others = premises
        said = Relation(n.T / n.S, floor(n.T / n.S), "==")
        if others or (whole.left, whole.right, whole.op) != (said.left, said.right, said.op):
            raise Unfit("no premise says that T is a whole number of blocks")
        if "snapshot, over one block" not in str(block.left):
            raise Unfit(f"{block.left} is not the average over one block")
        return Relation(STALE_MEAN, block.right)


@dataclass(frozen=True)
class OverUnequalBlocks(Schema):
    r"""Blocks of S rounds, the last of which may be shorter: at most $\frac TS+1$ of them, each telescoping by itself.

    If $\hat\delta_t\le c\,(D_t-D_{t+1})+b$ in each round and $D\le4R$ at the start of each block, the average over T
    rounds is at most $4Rc\,(\frac1S+\frac1T)+b$.
    """

    axiom: str = "a squared distance is never negative; a block starts every S rounds, from the first on"
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: list[Relation]) -> Relation:
        """The premises are the inequality of one round, and the start of a block."""
        each, start, *others = premises
        factor = sp.diff(each.right, APPROACH)
        if others or each.left != STALE or start.left != FIRST or factor.has(APPROACH) or not factor.is_positive:
            raise Unfit("the premises are not the inequality of one round and the start of a block")
        rest = sp.expand(each.right - factor * APPROACH)
        if any(str(s).startswith(("[", "<")) for s in rest.free_symbols | start.right.free_symbols):
            raise Unfit(f"{rest} differs between the rounds")
        return Relation(STALE_MEAN, factor * start.right * (1 / n.S + 1 / n.T) + rest)


def lag_steps() -> Iterator[Step]:
    """Lemma C.4."""
    yield Step(
        "73a",
        "(73): envelope and objective are Gx-Lipschitz in x",
        Relation(DELTA, STALE + 2 * Gx * LAG),
        Assumed(DELTA, STALE + 2 * Gx * LAG, (LIPSCHITZ.name,), "between x_t and the snapshot"),
        (LIPSCHITZ,),
        EACH,
    )
    yield Step(
        "73b",
        "the mean length by the mean square",
        Relation(LENGTH, sqrt(nu) * I_1),
        MeanLength(),
        (f"{SNAPSHOT}/63",),
        EACH,
    )
    lag = Gammax * (n.S - 1) / 2 * sqrt(nu) * I_1
    yield Step("73c", "the snapshot's mean age", Relation(LAG_MEAN, lag), SnapshotLag(), ("73b",))
    means = ((DELTA, GAP_MEAN), (STALE, STALE_MEAN), (LAG, LAG_MEAN))
    yield Step(
        "73d",
        "the average over the rounds",
        Relation(GAP_MEAN, STALE_MEAN + 2 * Gx * LAG_MEAN),
        InExpectation(means, "the rounds"),
        ("73a",),
    )
    yield Step(
        "73",
        "Lemma C.4, (73)",
        Relation(GAP_MEAN, STALE_MEAN + Gammax * Gx * (n.S - 1) * sqrt(nu) * I_1),
        Combine((1, 2 * Gx)),
        ("73d", "73c"),
    )
    yield Step(
        "73-printed",
        "as printed: the root of nu is less than 2",
        Relation(GAP_MEAN, STALE_MEAN + 2 * Gammax * Gx * (n.S - 1) * I_1),
        Combine((1,)),
        ("73",),
    )


LAG_PROOF = Proof(
    LEMMA_C_4.key,
    SETTING,
    tuple(lag_steps()),
    LEMMA_C_4,
    {"explicit": "73-printed", "repaired": "73"},
    substitute={**TO_OWN, STALE_MEAN: n.staledual},
)


def envelope_steps(suffix: str, price: sp.Expr) -> Iterator[Step]:
    """(49), before the gap at the snapshots is bounded."""
    x = suffix
    in_gap = 2 * L * STALE
    one = 8 / Gammax * ENVELOPE_DECREASE + 8 * price * Gammax * L * I_1_SQUARED + 16 * L * DELTA
    yield Step(
        f"49-round{x}",
        "one round, solved for the gradient, with Lemma C.2 for the drift",
        Relation(GRADIENT, sp.expand(one + 32 * price * V_C + in_gap)),
        Combine((8 / Gammax, 16, 16 * L * STALE)),
        (f"{MOREAU_PROOF.id}/C.1{x}", f"{RESTART}/V_C{x}", f"{RESTART}/72-local{x}"),
        EACH,
    )
    means = {ENVELOPE_DECREASE: n.Deltabar / n.T, STALE: STALE_MEAN, DELTA: GAP_MEAN}
    yield Step(
        f"49-average{x}",
        "(49): the average over the rounds, telescoped",
        Relation(ENVELOPE_MEAN, sp.expand(one + 32 * price * V_C + in_gap).xreplace(means)),
        AverageOverRounds(
            ENVELOPE_DECREASE,
            n.Deltabar,
            n.T,
            ENVELOPE_MEAN,
            GRADIENT,
            ((STALE, STALE_MEAN), (DELTA, GAP_MEAN)),
            BOUNDED_BELOW.name,
        ),
        (f"49-round{x}", BOUNDED_BELOW),
    )


def bound(price: sp.Expr, stale: sp.Expr, kept: sp.Expr, local: sp.Expr) -> sp.Expr:
    """(48) with these constants."""
    initial = 8 * n.Deltabar / (Gammax * n.T) + 8 * price * Gammax * L * I_1_SQUARED
    lag = stale * Gammax * L * Gx * (n.S - 1) * I_1
    return initial + lag + (72 * L * n.R / (Gammay * n.S) + 18 * price * L * Gammay * N) / kept + local * price * V_C


def end_steps(source: str, home: str) -> Iterator[Step]:
    """(48), with the gap at the snapshots from Lemma C.3 or C.5."""
    yield Step("S|T", "whole blocks", Relation(WHOLE_BLOCKS.left, WHOLE_BLOCKS.right, "=="), Stated(), (WHOLE_BLOCKS,))
    yield from unequal_steps(source, home)
    rows = (
        ("", f"{home}73", bound(nu, 16 * sqrt(nu), ONE, Integer(82))),
        ("-sharp", f"{home}73", bound(nu, 16 * sqrt(nu), KEPT, TIGHT_DRIFT)),
        ("-printed", f"{home}73-lag", bound(ONE, Integer(32), ONE, Integer(104))),
    )
    for suffix, lag, end in rows:
        plain = suffix.replace("-sharp", "")
        block = _conclusion(source, f"C.3{suffix}")
        yield Step(
            f"blocks{suffix}",
            "the bound of every block for the average over all rounds",
            Relation(STALE_MEAN, block.right),
            OverBlocks(),
            (f"{source}/C.3{suffix}", "S|T"),
        )
        yield Step(
            f"48{suffix}",
            "(48)" + (" with the constants of the paper's own proof" if suffix == "-printed" else ""),
            Relation(ENVELOPE_MEAN, sp.expand(end)),
            Combine((1, 16 * L, 18 * L)),
            (f"{home}49-average{plain}", lag, f"blocks{suffix}"),
        )


def unequal_steps(source: str, home: str) -> Iterator[Step]:
    """(48) where S need not divide T."""
    each = _conclusion(source, "C.3-round-sharp").right
    rest = sp.expand(each - sp.diff(each, APPROACH) * APPROACH)
    restart = 4 * n.R / (KEPT * Gammay) * (1 / n.S + 1 / n.T)
    yield Step(
        "blocks-unequal",
        "the average over all rounds, the last block being shorter",
        Relation(STALE_MEAN, sp.expand(restart + rest)),
        OverUnequalBlocks(),
        (f"{source}/C.3-round-sharp", f"{RESTART}/4R"),
    )
    end = bound(nu, 16 * sqrt(nu), KEPT, TIGHT_DRIFT) + 72 * L * n.R / (KEPT * Gammay * n.T)
    yield Step(
        "48-unequal",
        "(48) for any number of rounds",
        Relation(ENVELOPE_MEAN, sp.expand(end)),
        Combine((1, 16 * L, 18 * L)),
        (f"{home}49-average", f"{home}73", "blocks-unequal"),
    )


def _conclusion(proof: str, name: str) -> Relation:
    found = {p.id: p for p in (RESTART_PROOF, ONE_POINT_PROOF)}[proof].step(name)
    assert found is not None
    return found.conclusion


def theorem_4_steps() -> Iterator[Step]:
    """What both theorems share, and the end of Theorem 4."""
    for suffix, price in (("", nu), ("-printed", ONE)):
        yield from envelope_steps(suffix, price)
    yield from lag_links()
    yield from end_steps(RESTART, "")


def lag_links() -> Iterator[Step]:
    """Lemma C.4, repaired and as the paper's chain has it."""
    lag = Gammax * Gx * (n.S - 1) * sqrt(nu) * I_1
    yield Step("73", "Lemma C.4", Relation(GAP_MEAN, STALE_MEAN + lag), Combine((1,)), (f"{LAG_PROOF.id}/73",))
    printed = 2 * Gammax * Gx * (n.S - 1) * I_1
    yield Step(
        "73-lag",
        "Lemma C.4 as printed",
        Relation(GAP_MEAN, STALE_MEAN + printed),
        Combine((1,)),
        (f"{LAG_PROOF.id}/73-printed",),
    )


ENDS = {"explicit": "48-printed", "repaired": "48", "sharp": "48-sharp", "sharp:any-T": "48-unequal"}
THEOREM_4_PROOF = Proof(THEOREM_4.key, SETTING, tuple(theorem_4_steps()), THEOREM_4, ENDS, substitute=TO_OWN)
THEOREM_3_PROOF = Proof(
    THEOREM_3.key,
    SETTING,
    tuple(end_steps(ONE_POINT_PROOF.id, f"{THEOREM_4.key}/")),
    THEOREM_3,
    ENDS,
    substitute=TO_OWN,
)
