r"""Theorem 3.1 and Corollaries 3.2, 3.3 and 4.3 in expectation over random participation as well.

Every step of the proof of Theorem 3.1 is linear in $\sum_n(q_t^n)^2$ and in the left-hand sides of (5), (6) and (7), so
that bounds on their expectations suffice.
"""

from dataclasses import replace

from fedbounds.bounds.papers.arbitrary_participation.assumptions import IN_EXPECTATION
from fedbounds.bounds.papers.arbitrary_participation.participation import COROLLARY_4_3, OVER_PARTICIPATION
from fedbounds.bounds.papers.arbitrary_participation.results import COROLLARY_3_2, COROLLARY_3_3, THEOREM_3_1
from fedbounds.bounds.theory.measures import EXPECTED
from fedbounds.bounds.theory.result import Form, Result

READ = "rho^2, nu^2, beta^2 and delta^2 bound the expectations over participation of sum_n (q_t^n)^2, (6), (5) and (7)"


def expected_form(form: Form) -> Form:
    """The same bound, where what participation does is bounded in expectation."""
    return replace(form, assumptions=tuple(IN_EXPECTATION.get(a, a) for a in form.assumptions))


def expected_result(result: Result, *forms: str) -> Result:
    """A result given the participation as one in expectation over it, in those of its forms that are proved so."""
    return replace(
        result,
        key=result.key + EXPECTED,
        kind="remark",
        title=f"{result.title}, in expectation over participation",
        source=replace(result.source, number=f"{result.source.number}, in expectation over participation (ours)"),
        measure=OVER_PARTICIPATION,
        statement=f"{result.title}, where participation is random: {READ}.",
        forms=tuple(expected_form(result.form(name)) for name in forms),
    )


THEOREM_3_1_EXPECTED = expected_result(THEOREM_3_1, "explicit", "explicit:any-P", "sharp", "sharp:tuned")
COROLLARY_3_2_EXPECTED = expected_result(COROLLARY_3_2, "explicit", "sharp")
COROLLARY_3_3_EXPECTED = expected_result(COROLLARY_3_3, "explicit", "repaired:s", "sharp")
COROLLARY_4_3_EXPECTED = expected_result(COROLLARY_4_3, "repaired", "sharp")
RESULTS = (THEOREM_3_1_EXPECTED, COROLLARY_3_2_EXPECTED, COROLLARY_3_3_EXPECTED, COROLLARY_4_3_EXPECTED)
