"""What the symbols of averages stand for in the proofs of Li et al. (2024), apart from their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.fedmrn.notation import NOTATION as n
from fedbounds.bounds.papers.fedmrn.proof import descent, nonconvex
from fedbounds.bounds.papers.fedmrn.proof import symbols as letters
from fedbounds.bounds.papers.fedmrn.proof.operator_rules import EveryRound
from fedbounds.empirical.falsification.instances.averages import Builder, LetteredRun, Letters, value

MEANS: Mapping[sp.Symbol, sp.Expr] = {
    nonconvex.AVERAGED: product_symbol("f0", "f0"),
    nonconvex.MEAN_ERROR: n.M,
    nonconvex.MEAN_CHANCE: letters.CHANCE,
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {descent.DECREASE: n.F}


def synchronized(rule: EveryRound, premises: Sequence[Relation], run: LetteredRun) -> Letters:
    """T iterations, one after the other: the bound where S of them are over, else nothing."""
    steps, bound = run.letters[n.S.name], value(premises[0].right, run.letters)
    ends = np.arange(1, run.rounds + 1)[None] % steps == 0
    return {nonconvex.MEAN_ERROR.name: np.where(ends, bound, 0.0).mean(axis=1, keepdims=True)}


BUILDERS: Mapping[type, Builder] = {EveryRound: synchronized}
