"""What the audit says of one form, as evaluation reports it; nothing of sympy."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

UNREAD = "unread"  # the verdict on a statement that was written from memory
NOT_COMPARED = "it was written from memory (*); compare it with the source first"
Mark = Literal["", "refuted", "unread", "order only", "argued", "survived", "unknown"]


class AuditStatus(NamedTuple):
    """What the audit says of a form."""

    verdict: str  # proved, survived, argued, refuted, unknown or unread
    untried: str  # what the proof trusts its author to have said rightly ("" if nothing)
    accused: str  # the erratum that refutes it, or a step it rests on, and how false that is ("" if none)
    unheard: str  # why nothing of its paper has a verdict ("" if something has)

    @property
    def shadow(self) -> str:
        """What keeps a form from being relied on; "" if nothing: see `fedbounds.bounds.audit.ledger.caveat`."""
        if self.accused:
            return f"{'' if self.verdict == 'refuted' else 'rests on what '}is refuted by erratum {self.accused}"
        if self.verdict == UNREAD:
            return f"is unread: {NOT_COMPARED}"
        return "" if self.verdict == "proved" else f"is not proved: its verdict is {self.verdict}"

    def mark(self, order_only: bool) -> Mark:
        """Why a form is not to be relied on, in a word: see `fedbounds.bounds.audit.ledger.mark`."""
        if self.accused:
            return "refuted"
        if order_only and self.verdict != UNREAD:
            return "order only"
        return "" if self.verdict == "proved" else cast(Mark, self.verdict)
