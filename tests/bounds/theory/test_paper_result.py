"""One constructor for the results of a paper: fields that its forms share, key, kind and default."""

from fedbounds.bounds.theory.measures import LEAST_GRADIENT
from fedbounds.bounds.theory.result import Condition, Form, Term, paper_result
from fedbounds.bounds.theory.symbols import Meaning, Notation


def test_a_result_takes_over_what_its_forms_leave_empty_and_no_more():
    notation = Notation({("x", "x", "one"): Meaning("a number"), ("y", "y", "two"): Meaning("another")})
    x, y = notation.x, notation.y
    own, shared = Condition(x, "<=", y, "its own"), Condition(y, "<=", x, "of all")
    forms = (Form("printed", (Term("bound", x),)), Form("sharp", (Term("bound", y),), (own,)))
    head = ("a-paper", "Author 2000", notation)
    found = paper_result(*head, "lemma-b.3", "A title", LEAST_GRADIENT, "", forms, conditions=(shared,))
    assert [form.conditions for form in found.forms] == [(shared,), (own,)]
    assert (found.key, found.kind, found.source.number) == ("a-paper/lemma-b.3", "lemma", "Lemma B.3")
    assert found.default == "sharp"
    other = paper_result(*head, "equation-15", "", LEAST_GRADIENT, "", forms, number="15")
    assert (other.kind, other.source.number, other.forms[0].conditions) == ("remark", "15", ())
