"""What Das et al. (2022) say besides their results: the equations are found, and what states them is on trial."""

from fedbounds.bounds.audit.claim_set import paper_claims
from fedbounds.bounds.papers.tdcd.statements import STATEMENTS

OURS = {"B1", "B2", "B3", "17p", "17t", "L", "14a", "14b", "14c", "17-apart", "20a-apart", "20-apart", "22", "16a",
        *("23a", "23a'", "23b", "23b'", "23c", "23c'", "24", "24a", "25", "25a", "26", "26a", "26b", "26c", "27"),
        *("28", "29", "30")}  # fmt: skip


def test_every_step_of_the_papers_own_proof_stands_at_a_line_of_it():
    named = {name for one in STATEMENTS for name in one.claims}
    steps = {c.id.partition("/")[2] for c in paper_claims("tdcd") if c.kind == "step"}
    proved = {s for s in steps if s.startswith(("lemma-2/", "theorem-1/")) and s.partition("/")[2] not in OURS}
    sharper = {"lemma-2/8", "lemma-2/9", "theorem-1/15a", "theorem-1/20a-19", "theorem-1/20b-19"}
    assert proved - named <= sharper
