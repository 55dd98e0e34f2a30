"""Chains: what an entry concludes by itself, which multipliers are found, and what is refused."""

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbounds.bounds.audit.axioms import Assumed, ByMeaning, Smooth
from fedbounds.bounds.audit.chain import Chain, by, eliminate, eq, le
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.derivations import InExpectation, Markov, Specialize
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.rules import Combine, Everywhere, Gram, Stated
from fedbounds.bounds.audit.vectors import Atom, Vec, square
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.papers.fedau.proof.drift import DRIFT_PROOF
from fedbounds.bounds.theory.assumptions import Assumption
from fedbounds.bounds.theory.result import Condition

SMOOTH = Assumption("smooth", "|grad F_n(x) - grad F_n(y)| <= L |x - y|", "Assumption 1")
ATOMS = (
    Atom("x", "point", 0, "a point"),
    Atom("y", "point", 0, "another"),
    Atom("gx", "gradient", 0, "grad F_n at x", at="x"),
    Atom("gy", "gradient", 0, "grad F_n at y", at="y"),
)
SETTING = ProofSetting("one client", {atom.name: atom for atom in ATOMS})
x, y, gx, gy = (Vec.atom(name) for name in ("x", "y", "gx", "gy"))
L, s = sp.Symbol("L", positive=True), sp.Symbol("s", nonnegative=True)


def chain() -> Chain:
    c = Chain(SETTING, "for every client n")
    c["1", "smoothness"] = Smooth("gx", "gy", L), SMOOTH
    c["2", "Young"] = le(square(gx), 2 * square(gx - gy) + 2 * square(gy)), Gram()
    return c


def test_an_axiom_says_by_itself_what_follows():
    one, two = chain().steps
    assert one.conclusion == Relation(square(gx - gy), L**2 * square(x - y))
    assert (one.premises, one.quantifiers) == ((SMOOTH,), "for every client n")
    assert isinstance(two.rule, Gram) and two.premises == ()


def test_a_rule_about_averages_says_by_itself_what_follows():
    random, average, likely, c = (sp.Symbol(name, nonnegative=True) for name in ("X", "E X", "likely X", "c"))
    chain = Chain(ProofSetting("no vectors", {}), "always")
    chain["1", "assumed"] = Assumed(random, s, ("bounded",)), Assumption("bounded", "X <= s", "")
    chain["2", "in expectation"] = InExpectation(((random, average),), "X"), "1"
    chain["3", "Markov's inequality"] = Markov(c, likely), "2"
    chain["4", "at s = 2"] = Specialize(((s, sp.Integer(2)),)), "3"
    chain["5", "the average"] = Everywhere(of=likely, is_=random), "4"
    _, *said = (str(step.conclusion) for step in chain.steps)
    assert said == ["E X <= s", "likely X <= s/c", "likely X <= 2/c", "X <= 2/c"]


def test_a_meaning_of_one_proof_is_an_axiom_without_a_class_of_its_own():
    c = chain()
    c["3", "the server's step"] = ByMeaning("ServerStep", square(x), square(y), "the algorithm", ("known",), "==")
    step = c.steps[-1]
    assert step.conclusion == eq(square(x), square(y))
    assert str(step.rule) == "ServerStep(axiom='the algorithm', needs=('known',))"
    assert step.rule.check(step.conclusion, (), (), SETTING).holds
    assert not step.rule.check(le(square(x), square(y)), (), (), SETTING).holds
    assert not step.rule.check(eq(square(x), 2 * square(y)), (), (), SETTING).holds


def test_a_condition_alone_is_stated_as_it_stands():
    c, cap = chain(), Condition(L, "<=", s, "small enough", L)
    c["3", "the cap"] = cap
    assert (c.steps[-1].conclusion, c.steps[-1].rule, c.steps[-1].premises) == (Relation(L, s), Stated(), (cap,))
    with pytest.raises(FedboundsError, match="concludes nothing"):
        c["4", "two of them"] = cap, cap


def test_a_combination_finds_its_multipliers_or_is_reported_them():
    c = chain()
    c["3", "both"] = le(square(gx), 2 * L**2 * square(x - y) + 2 * square(gy)), "1 2"
    c["4", "in another order", ""] = (
        le(square(gx), 2 * L**2 * square(x - y) + 2 * square(gy)),
        {"2": 1, "1": 2},
    )
    *_, three, four = c.steps
    assert three.rule == Combine((2, 1)) and three.premises == ("1", "2")
    assert four.rule == Combine((1, 2)) and four.premises == ("2", "1") and four.quantifiers == ""


def test_what_no_premise_speaks_of_is_left_to_the_rest():
    c = chain()
    c["3", "a square more, which has an inner product"] = by(
        le(square(gx), 2 * square(gx - gy) + 2 * square(gy) + square(x - y)), "2"
    )
    assert c.steps[-1].rule == Combine((1,))
    one = Relation(square(gx) ** 2, square(gy))
    assert eliminate(one, [one]) is None  # an inner product that does not enter linearly


def test_what_is_not_determined_is_refused():
    c = chain()
    for key, entry, words in (
        (("1", "again"), le(s, s), "the step 1 is there already"),
        (("3", "of nothing"), (le(s, s), "1 11"), "3: the premise '11' is neither an earlier step nor cited"),
        (("3", "no axiom"), Gram(), "3 concludes nothing"),
        (("3", "too many"), (le(square(gx), 2 * square(gy)), "2 2"), "3: no multipliers were found; give them"),
    ):
        with pytest.raises(FedboundsError, match=words):
            c[key] = entry
    assert [step.id for step in c.steps] == ["1", "2"]


def test_steps_of_another_proof_are_cited_by_their_whole_ids():
    name = f"{DRIFT_PROOF.id}/S0b"
    c = Chain(DRIFT_PROOF.setting, cites=(DRIFT_PROOF,))
    (xi,) = (Vec.atom("xi"),)
    sigma = next(step for step in DRIFT_PROOF.steps if step.id == "S0b").conclusion.right
    c["1", "half the noise"] = le(square(xi) / 2, sigma / 2), name
    assert c.steps[0].rule == Combine((sp.Rational(1, 2),)) and c.steps[0].premises == (name,)


SMALL = st.integers(1, 5)


@settings(max_examples=40)
@given(st.lists(SMALL, min_size=2, max_size=4), st.data())
def test_the_multipliers_of_a_random_combination_are_recovered(factors, data):
    """Each premise bounds a square of its own by the next ones; the conclusion is their combination, plus a square."""
    squares = [sp.Symbol(f"<{k},{k}>", nonnegative=True) for k in "abcdef"]
    premises = []
    for k in range(len(factors)):
        later = [data.draw(st.integers(0, 3)) for _ in squares[k + 1 :]]
        premises.append(le(squares[k], L * sum((c * q for c, q in zip(later, squares[k + 1 :], strict=True)), s)))
    slack = sum((m * L * p.slack for m, p in zip(factors, premises, strict=True)), sp.S.Zero)
    found = eliminate(Relation(sp.S.Zero, sp.expand(slack)), premises)
    assert found is not None and [sp.simplify(m / L) for m in found] == factors
    kept = eliminate(Relation(sp.S.Zero, sp.expand(slack + 7 * sp.Symbol("<z,z>", nonnegative=True))), premises)
    assert kept == found


def test_equal_sides_are_said_in_one_word():
    c = Chain(SETTING)
    c["1", "an identity"] = by(eq(square(x - y), square(y - x)), Gram())
    assert c.steps[0].conclusion.op == "=="
