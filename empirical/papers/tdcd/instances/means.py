"""What the symbols of averages stand for in the proofs of Das et al. (2022), apart from their steps."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from fedbounds.bounds.audit.vectors import product_symbol
from fedbounds.bounds.papers.tdcd.notation import NOTATION as n
from fedbounds.bounds.papers.tdcd.proof import symbols as letters
from fedbounds.bounds.papers.tdcd.proof import theorem
from fedbounds.bounds.papers.tdcd.proof.rules import Realized
from fedbounds.empirical.falsification.instances.averages import Builder, telescope

MEANS: Mapping[sp.Symbol, sp.Expr] = {
    theorem.AVERAGED: letters.SQUARED_GRADIENT,
    theorem.EVERYWHERE: product_symbol("fs", "fs"),
}
GAPS: Mapping[sp.Symbol, sp.Symbol] = {letters.DECREASE: n.Delta}
BUILDERS: Mapping[type, Builder] = {Realized: telescope}
