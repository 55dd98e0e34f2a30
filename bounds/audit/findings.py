"""Findings: the number of distinct remarks on a paper, by severity.

Claims are counted elsewhere: one remark may refute several forms, their units and an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from fedbounds.bounds.audit.counterexample import Degree
from fedbounds.bounds.audit.errata import paper_errata, paper_wording
from fedbounds.bounds.theory import registry

WORDING = "wording"
DEGREES = (
    "Each place below says how false it is: as stated; as an inference, where the conclusion does not follow and may "
    "still be true; only if read to the letter; unstated without harm; or in its units alone. The paper's words stand "
    "between quotation marks; all else is ours, and in each place we try to say what holds instead."
)


def findings(paper: str) -> Mapping[str, tuple[str, ...]]:
    """The remarks on a paper by degree, each once: an erratum that repeats another one is not counted."""
    errata = [erratum for erratum in paper_errata(paper) if not erratum.repeats]
    by_degree = {degree: tuple(e.id for e in errata if e.degree == degree) for degree in get_args(Degree)}
    return by_degree | {WORDING: tuple(slip.id for slip in paper_wording(paper))}


def describe_findings(paper: str) -> str:
    """Their numbers in one phrase, and the version of the paper that they are about."""
    found = {degree: len(ids) for degree, ids in findings(paper).items() if ids}
    total = sum(found.values())
    parts = ", ".join(f"{number} {degree}" for degree, number in found.items())
    version = registry.paper(paper).version if paper in registry.paper_names() else ""
    about = f" ({version})" if version else ""
    return f"{total} finding{'' if total == 1 else 's'}{about}{': ' if parts else ''}{parts}"
