"""What the proofs of Li et al. (2024) are tried on: a round with every path followed, against a walk in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from fedbounds.bounds.audit.ledger import read_ledger
from fedbounds.bounds.theory.registry import paper
from fedbounds.empirical.papers.fedmrn.instances.premises import MaskedIterations


def test_the_printed_forms_that_are_true_are_lemmas_1_and_4_and_the_rates():
    printed = {r.key.partition("/")[2]: r.form("printed") for r in paper("fedmrn").results if r.form("printed")}
    assert {key for key, form in printed.items() if not form.refuted_by} == {
        "lemma-1",
        "lemma-4",
        "remark-2-strongly-convex",
        "remark-2-non-convex",
    }


def test_nothing_that_the_proofs_say_may_hide_an_error():
    assert not [k for k, entry in read_ledger("fedmrn").items() if "may hide" in str(entry) or "vacuous" in str(entry)]


def one_client(relative, amplitude):
    """h = 2, c = 1, from s = 3, noise +-1, steps 1/4 and 1/8."""
    q = None if relative is None else np.array([float(relative)])
    return MaskedIterations(
        np.array([[[2.0]]]), np.array([[[1.0]]]), np.array([[3.0]]), np.array([[1.0]]), np.array([[0.25, 0.125]]), 1,
        q, np.array([float(amplitude)]),
    )  # fmt: skip


def walked(masks):
    """The same round followed path by path in fractions: the mean of (w, x, v, y) in each product."""
    s, c, h = Fraction(3), Fraction(1), 2
    paths = [(Fraction(1), Fraction(0), {})]
    for step in (Fraction(1, 4), Fraction(1, 8)):
        paths = [
            (p * chance / 2, u - step * (h * (s + hat - c) + noise), {"w": s + u, "x": s + hat})
            for p, u, _ in paths
            for (hat, chance), noise in product(masks(u), (-1, 1))
        ]
    ends = [(p * chance, {**at, "v": s + u, "y": s + hat}) for p, u, at in paths for hat, chance in masks(u)]
    names = ("w", "x", "v", "y")
    return {f"<{a},{b}>": sum(p * at[a] * at[b] for p, at in ends) for a in names for b in names if a <= b}


@pytest.mark.parametrize(
    ("relative", "amplitude", "masks"),
    [
        (Fraction(1, 2), 1, lambda u: [(u / 2, Fraction(1, 2)), (3 * u / 2, Fraction(1, 2))]),
        (None, 16, lambda u: [(Fraction(a), (1 + u / a) / 2) for a in (16, -16)]),
    ],
)
def test_the_enumerated_round_is_that_of_a_walk_over_all_paths(relative, amplitude, masks):
    products = one_client(relative, amplitude).products
    for name, value in walked(masks).items():
        assert float(products[name][0, 0]) == pytest.approx(float(value), rel=1e-13)
