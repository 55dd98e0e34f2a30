"""A kept tree says of an expression what the expression says: the same enclosures, bit for bit, and the same words."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.form_cache import CacheFile, serialize_results
from fedbounds.bounds.evaluation.numpy_code import compile_result
from fedbounds.bounds.search.arb_enclosures import arb_enclosure, available
from fedbounds.bounds.search.interval_arithmetic import CannotEnclose, enclose
from fedbounds.bounds.search.partial_evaluation import leave_free
from fedbounds.bounds.search.rounds import rounds
from fedbounds.bounds.theory.registry import PAPERS, load, paper

ROOT = Path(__file__).resolve().parents[3]
KEY = "arbitrary-participation/theorem-3.1"
ASKED = f"rounds {KEY} --epsilon 1 --json L=1 F=5 I=2 P=2 gamma=1/48 eta=6 rho=0.7 nu=2 beta=0.1 delta=0"


@pytest.mark.parametrize("question", [f"{ASKED} sigma=1", f"{ASKED} T=1e5 --solve sigma"])
def test_rounds_of_a_known_form_are_counted_where_sympy_cannot_be_imported(tmp_path, question):
    code = "from fedbounds.__main__ import main; raise SystemExit(main())"
    answers = []
    for before in ("", "import sys; sys.modules['sympy'] = None; "):
        done = subprocess.run(
            [sys.executable, "-c", before + code, *question.split()],
            cwd=ROOT, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    assert json.loads(answers[0])["proved"] == available()


def enclosed(how, expression, ranges):
    """The ends, or that there are none."""
    try:
        return [np.asarray(end, dtype=float).tolist() for end in how(expression, ranges)]
    except CannotEnclose:
        return None


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 2])
@pytest.mark.parametrize("name", PAPERS)
def test_kept_trees_have_the_enclosures_of_their_expressions(name, every):
    rng = np.random.default_rng(7)
    kept = CacheFile(serialize_results(name, paper(name).results))
    for result in paper(name).results[::every]:
        for whole, form in zip(result.forms, kept.result(result.key).forms, strict=True):
            boxes, symbols = {}, result.notation
            for symbol in sorted(form.needs):
                low = rng.uniform(0.1, 0.9, (3,))
                boxes[symbol] = (low, low) if symbols[symbol].shape else (low, low + rng.choice([0.0, 0.5, np.inf], 3))
            expressions = [term.expression for term in whole.terms]
            expressions += [side for c in whole.conditions for side in (c.left, c.right)]
            structure = form.structure()
            trees = [*structure.terms, *(side for sides in structure.sides for side in sides)]
            assert form.length == whole.length
            assert form.variables == whole.variables
            for tree, expression in zip(trees, expressions, strict=True):
                assert tree.names == {str(symbol) for symbol in expression.free_symbols}
                ours, theirs = (enclosed(enclose, e, boxes) for e in (tree, expression))
                assert np.array_equal(ours, theirs, equal_nan=True) if ours and theirs else ours == theirs, form.title


@pytest.mark.skipif(not available(), reason="python-flint is not installed")
@pytest.mark.parametrize("key", ["arbitrary-participation/theorem-3.1", "fedau/theorem-2", "tdcd/theorem-1"])
def test_kept_trees_have_the_balls_of_their_expressions(key):
    result = load(key)
    form = CacheFile(serialize_results(result.paper, [result])).result(key).form()
    vectors = {symbol for symbol in form.needs if result.notation[symbol].shape}
    boxes = {symbol: np.array([0.25, 0.5]) if symbol in vectors else (2.0, 3.0) for symbol in sorted(form.needs)}
    for tree, term in zip(form.structure().terms, result.form().terms, strict=True):
        ours, theirs = enclosed(arb_enclosure, tree, boxes), enclosed(arb_enclosure, term.expression, boxes)
        assert ours == theirs
        assert ours is None or not any(map(math.isnan, ours))
        assert str(tree) == str(term.expression)


def test_what_follows_from_a_free_constant_is_written_out():
    """W of FedAU follows from T, where it is not given; then trees do not suffice."""
    theorem = load("fedau/theorem-2")
    form, known = (
        compile_result(theorem).form(),
        dict(L=1, F=1, I=2, gamma=0.01, eta=1, sigma=1, G=1, delta=1, N=2, K=5),
    )
    given = leave_free(form, {**known, "W": 0.1, "Q": 2.0, "Qmean": 1.0}, ["T"])
    followed = leave_free(form, {**known, "p": np.array([0.5, 0.5])}, ["T"])
    assert given.form is form and not given.opaque
    assert followed.form is theorem.form()
    there = leave_free(form, {**known, "p": np.array([0.5, 0.5])}, ["T"], symbolic=True)
    assert [str(term) for term in followed.terms.values()] == [str(term) for term in there.terms.values()]


def test_a_form_that_depends_on_nothing_has_no_rounds():
    with pytest.raises(FedboundsError, match="does not depend on a number of rounds, nor on any other constant"):
        rounds("arbitrary-participation/table-1-ergodic", 1, {}, form="printed")
