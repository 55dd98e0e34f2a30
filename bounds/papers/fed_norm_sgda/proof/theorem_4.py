r"""Lemma C.4 and Theorems 4 and 3: the Moreau envelope's descent, the gap at the snapshots, and how old these are."""

from dataclasses import dataclass

import sympy as sp
from sympy import Integer, Rational, Symbol, floor, sqrt

from fedbounds.bounds.audit.axioms import ByMeaning, Schema, Unfit
from fedbounds.bounds.audit.chain import Chain, by, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import InExpectation
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, measure_symbol
from fedbounds.bounds.audit.rules import Telescope
from fedbounds.bounds.audit.vectors import opaque, square
from fedbounds.bounds.papers.fed_norm_sgda.assumptions import BOUNDED_BELOW, LIPSCHITZ
from fedbounds.bounds.papers.fed_norm_sgda.composites import WHOLE_BLOCKS
from fedbounds.bounds.papers.fed_norm_sgda.concave import MOREAU, THEOREM_3, THEOREM_4, TIGHT_DRIFT
from fedbounds.bounds.papers.fed_norm_sgda.lemmas_concave import LEMMA_C_4
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof.directions import EACH, IN_X
from fedbounds.bounds.papers.fed_norm_sgda.proof.moreau import ENVELOPE_DECREASE, GRADIENT, MOREAU_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.moreau import HERE as SETTING
from fedbounds.bounds.papers.fed_norm_sgda.proof.restart import APPROACH, FIRST, KEPT, ONE_POINT_PROOF, RESTART_PROOF
from fedbounds.bounds.papers.fed_norm_sgda.proof.snapshot import I_1_SQUARED, SNAPSHOT_PROOF, STALE, TO_OWN, V_C
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import DELTA, Gammax, Gammay, Gx, L, N, nu

RESTART = RESTART_PROOF.id
ONE = Integer(1)
I_1 = sqrt(I_1_SQUARED)
LAG = Symbol("[E|x_t - x^|]", nonnegative=True)
LAG_MEAN = Symbol("[average over rounds of E|x_t - x^|]", nonnegative=True)
LENGTH = Symbol("[E|g_x|]", nonnegative=True)
SQUARED_LENGTH = le(square(IN_X.s + IN_X.n), nu * I_1_SQUARED)
STALE_MEAN = Symbol("[average over rounds of delta^_t]", nonnegative=True)
GAP_MEAN = measure_symbol(LEMMA_C_4.measure)
ENVELOPE_MEAN = measure_symbol(MOREAU)


@dataclass(frozen=True)
class SnapshotLag(Schema):
    r"""$x_t-\hat x=-\Gamma_x\sum_jg_x^{(j)}$ over the $t-sS$ rounds since the snapshot, of which there are
    $\frac{S-1}2$ on average at most: the average of $\mathbb E\|x_t-\hat x\|$ is at most $\Gamma_x\frac{S-1}2b$ where
    the premise shows $\mathbb E\|g_x\|\le b$ in every round.
    """

    axiom: str = "the algorithm: a snapshot is taken every S rounds, from the first on"
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: list[Relation]) -> Relation:
        """The bound must be the same in all rounds."""
        if len(premises) != 1 or premises[0].left != LENGTH:
            raise Unfit("the premise does not bound E|g_x|")
        bound = premises[0].right
        if any(map(opaque, bound.free_symbols)):
            raise Unfit(f"{bound} differs between the rounds")
        return Relation(LAG_MEAN, Gammax * (n.S - 1) / 2 * bound)


@dataclass(frozen=True)
class OverBlocks(Schema):
    """A bound of every block's average is one of the average over all rounds, if these are a whole number of blocks."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: list[Relation]) -> Relation:
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

    def relation(self, setting: ProofSetting, premises: list[Relation]) -> Relation:
        """The premises are the inequality of one round, and the start of a block."""
        each, start, *others = premises
        factor = sp.diff(each.right, APPROACH)
        if others or each.left != STALE or start.left != FIRST or factor.has(APPROACH) or not factor.is_positive:
            raise Unfit("the premises are not the inequality of one round and the start of a block")
        rest = sp.expand(each.right - factor * APPROACH)
        if any(map(opaque, rest.free_symbols | start.right.free_symbols)):
            raise Unfit(f"{rest} differs between the rounds")
        return Relation(STALE_MEAN, factor * start.right * (1 / n.S + 1 / n.T) + rest)


def lag_proof() -> Proof:
    """Lemma C.4."""
    s = Chain(SETTING, EACH, (SNAPSHOT_PROOF,))
    s["73a", "(73): envelope and objective are Gx-Lipschitz in x, between x_t and the snapshot"] = by(
        le(DELTA, STALE + 2 * Gx * LAG), LIPSCHITZ
    )
    s["73b", "the mean length is at most the root of the mean square"] = by(
        ByMeaning("MeanLength", LENGTH, sqrt(nu * I_1_SQUARED), given=(SQUARED_LENGTH,)), f"{SNAPSHOT_PROOF.id}/63"
    )
    s["73c", "the snapshot's mean age", ""] = SnapshotLag(), "73b"
    s["73d", "the average over the rounds", ""] = by(
        InExpectation(((DELTA, GAP_MEAN), (STALE, STALE_MEAN), (LAG, LAG_MEAN)), "the rounds"), "73a"
    )
    s["73", "Lemma C.4, (73)", ""] = le(GAP_MEAN, STALE_MEAN + AGE), "73d 73c"
    s["73-printed", "as printed: the root of nu is less than 2", ""] = le(GAP_MEAN, STALE_MEAN + OLDER), "73"
    ends, symbols = {"explicit": "73-printed", "repaired": "73"}, {**TO_OWN, STALE_MEAN: n.staledual}
    return s.proof(LEMMA_C_4.key, LEMMA_C_4, ends, substitute=symbols)


AGE, OLDER = Gammax * Gx * (n.S - 1) * sqrt(nu) * I_1, 2 * Gammax * Gx * (n.S - 1) * I_1
LAG_PROOF = lag_proof()


def envelope_steps(s: Chain, suffix: str, price: sp.Expr) -> None:
    """(49), before the gap at the snapshots is bounded."""
    one = 8 / Gammax * ENVELOPE_DECREASE + 8 * price * Gammax * L * I_1_SQUARED + 16 * L * DELTA
    one = sp.expand(one + 32 * price * V_C + 2 * L * STALE)
    s[f"49-round{suffix}", "one round, solved for the gradient, with Lemma C.2 for the drift", EACH] = by(
        le(GRADIENT, one),
        {
            f"{MOREAU_PROOF.id}/C.1{suffix}": 8 / Gammax,
            f"{RESTART}/V_C{suffix}": 16,
            f"{RESTART}/72-local{suffix}": 16 * L * STALE,
        },
    )
    means, total = ((STALE, STALE_MEAN), (DELTA, GAP_MEAN)), n.Deltabar
    s[f"49-average{suffix}", "(49): the average over the rounds, telescoped"] = by(
        Telescope(ENVELOPE_DECREASE, total, n.T, ENVELOPE_MEAN, GRADIENT, means, BOUNDED_BELOW.name),
        f"49-round{suffix}",
        BOUNDED_BELOW,
    )


def bound(price: sp.Expr, stale: sp.Expr, kept: sp.Expr, local: sp.Expr) -> sp.Expr:
    """(48) with these constants."""
    initial = 8 * n.Deltabar / (Gammax * n.T) + 8 * price * Gammax * L * I_1_SQUARED
    lag = stale * Gammax * L * Gx * (n.S - 1) * I_1
    return initial + lag + (72 * L * n.R / (Gammay * n.S) + 18 * price * L * Gammay * N) / kept + local * price * V_C


def end_steps(s: Chain, source: str, home: str = "") -> None:
    """(48), with the gap at the snapshots from Lemma C.3 or C.5."""
    s["S|T", "whole blocks"] = WHOLE_BLOCKS
    restart = 4 * n.R / Gammay * (1 / n.S + 1 / n.T)
    s["blocks-unequal", "the average over all rounds, the last block being shorter"] = by(
        le(STALE_MEAN, sp.expand((restart + nu * Gammay * N + Rational(11, 4) * nu * V_C / L) / KEPT)),
        OverUnequalBlocks(),
        f"{source}/C.3-round-sharp {RESTART}/4R",
    )
    sharp = bound(nu, 16 * sqrt(nu), KEPT, TIGHT_DRIFT)
    s["48-unequal", "(48) for any number of rounds"] = by(
        le(ENVELOPE_MEAN, sp.expand(sharp + 72 * L * n.R / (KEPT * Gammay * n.T))),
        f"{home}49-average {home}73 blocks-unequal",
    )
    for suffix, plain, lag, end in (
        ("", "", "73", bound(nu, 16 * sqrt(nu), ONE, Integer(82))),
        ("-sharp", "", "73", sharp),
        ("-printed", "-printed", "73-lag", bound(ONE, Integer(32), ONE, Integer(104))),
    ):
        s[f"blocks{suffix}", "the bound of every block for the average over all rounds"] = by(
            OverBlocks(), f"{source}/C.3{suffix}", "S|T"
        )
        s[f"48{suffix}", "(48)" + (" with the constants of the paper's own proof" if plain else "")] = by(
            le(ENVELOPE_MEAN, sp.expand(end)), f"{home}49-average{plain} {home}{lag} blocks{suffix}"
        )


ENDS = {"explicit": "48-printed", "repaired": "48", "sharp": "48-sharp", "sharp:any-T": "48-unequal"}

s = Chain(SETTING, cites=(MOREAU_PROOF, LAG_PROOF, RESTART_PROOF))
envelope_steps(s, "", nu)
envelope_steps(s, "-printed", ONE)
s["73", "Lemma C.4"] = le(GAP_MEAN, STALE_MEAN + AGE), f"{LAG_PROOF.id}/73"
s["73-lag", "Lemma C.4 as printed"] = le(GAP_MEAN, STALE_MEAN + OLDER), f"{LAG_PROOF.id}/73-printed"
end_steps(s, RESTART)
THEOREM_4_PROOF = s.proof(THEOREM_4.key, THEOREM_4, ENDS, substitute=TO_OWN)

s = Chain(SETTING, cites=(RESTART_PROOF, ONE_POINT_PROOF, THEOREM_4_PROOF))
end_steps(s, ONE_POINT_PROOF.id, f"{THEOREM_4.key}/")
THEOREM_3_PROOF = s.proof(THEOREM_3.key, THEOREM_3, ENDS, substitute=TO_OWN)
