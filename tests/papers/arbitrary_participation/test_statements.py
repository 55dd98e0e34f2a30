"""What the first paper says besides its results: every displayed equation is found, and on trial where it is proved."""

from fedbounds.bounds.audit.claim_set import paper_claims
from fedbounds.bounds.theory.registry import load


def test_the_equations_stand_where_the_paper_has_them():
    said = {c.id.partition("/")[2]: c.text for c in paper_claims("arbitrary-participation") if c.kind == "step"}
    assert "(C.6)" in said["lemma-c.1/L1.4"]
    theorem = load("arbitrary-participation/theorem-3.1")
    assert "(C.15)" in next(c.why for c in theorem.form("explicit").conditions if str(c.left) == "eta*gamma")
    assert not load("arbitrary-participation/proposition-4.6").source.equations  # (16) and (17) are the inequalities
    assert not load("arbitrary-participation/proposition-4.7").source.equations  # before them
    assert "for all x and all t_0" in next(a.statement for a in theorem.form("explicit").assumptions
                                           if a.name == "window-divergence")  # fmt: skip
