"""Forms of reference theorems that follow from the lemmas of their papers, and those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fedbounds.bounds.papers import reference_derivations as derivations
from fedbounds.bounds.papers.reference_derivations import DERIVATIONS
from fedbounds.bounds.theory.registry import load


@pytest.mark.parametrize("claim", DERIVATIONS)
def test_what_follows_from_the_lemmas(claim):
    found = DERIVATIONS[claim]()
    assert found.claim == claim
    assert found.holds != claim.endswith(":poster"), str(found)
    if not found.holds:
        assert "the induction starts: false at" in str(found)


def _exchange(monkeypatch, changed):
    """Put a changed result in the place of its original."""
    monkeypatch.setattr(derivations, "load", lambda key: changed if key == changed.key else load(key))


@pytest.mark.parametrize("claim", [claim for claim in DERIVATIONS if not claim.endswith(":poster")])
def test_smaller_constants_do_not_follow(claim, monkeypatch):
    """Each term of a form is needed, and the smallest constants of the explicit form are its own."""
    key, _, name = claim.partition(":")
    result, form = load(key), load(key).form(name)
    for place, term in enumerate(form.terms):
        if name == "explicit:supplement" and place == 0:
            continue  # a larger constant than the lemmas give
        smaller = replace(
            term, expression=term.expression * sp.Rational(9, 10 if name != "explicit:supplement" else 20)
        )
        terms = tuple(smaller if one is term else one for one in form.terms)
        forms = tuple(replace(form, terms=terms) if one.name == name else one for one in result.forms)
        changed = replace(result, forms=forms)
        monkeypatch.setattr(
            derivations, "load", lambda asked, changed=changed: changed if asked == key else load(asked)
        )
        assert not DERIVATIONS[claim]().holds, term.name


def test_a_weaker_condition_does_not_suffice(monkeypatch):
    key = "jhunjhunwala-2022/fedavg"
    result = load(key)
    for place in (0, 1):
        weaker = [replace(c, right=2 * c.right) if k == place else c for k, c in enumerate(result.form().conditions)]
        forms = tuple(replace(form, conditions=tuple(weaker)) for form in result.forms)
        changed = replace(result, forms=forms)
        monkeypatch.setattr(
            derivations, "load", lambda asked, changed=changed: changed if asked == key else load(asked)
        )
        assert not DERIVATIONS[f"{key}:explicit"]().holds
