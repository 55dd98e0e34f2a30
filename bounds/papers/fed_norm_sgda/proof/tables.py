r"""Table 1 from the theorems: the best powers of T by exact linear programming."""

from dataclasses import dataclass

import sympy as sp

from fedbounds.bounds.audit.canonical_text import canonical_text
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding
from fedbounds.bounds.audit.proof_step_checker import Proof, ProofSetting, Step, measure_symbol
from fedbounds.bounds.papers.fed_norm_sgda import tables
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.theory.result import Result

CASES = {
    "table-1-nc-sc": tables.NONCONVEX_STRONGLY_CONCAVE,
    "table-1-nc-c": tables.NONCONVEX_CONCAVE,
    "table-1-nc-1pc": tables.ONE_POINT_CONCAVE,
}
NO_VECTORS = ProofSetting("orders for small eps, every other constant fixed", {})


@dataclass(frozen=True)
class ByExponents:
    r"""The order in eps of the rounds, or of all gradients, that a theorem needs with the best powers of T."""

    row: str  # of Table 1, which names the theorem where all clients are alike; its constants are no part of an order
    count: str  # what is counted; "rounds" or "gradients", those of all clients together

    @property
    def case(self) -> tables.TableCase:
        """The theorem where all clients are alike."""
        return CASES[self.row]

    def __str__(self) -> str:
        """All that the answer depends on, the same in every process."""
        form = self.case.result.form()
        parts = [
            *(canonical_text(t.expression) for t in form.terms),
            *(f"{c.left} {c.op} {c.right}" for c in form.conditions),
        ]
        parts += [*map(str, self.case.steps), str(self.case.capped), self.count]
        return f"ByExponents({self.case.result.key}[{form.name}]: {'; '.join(parts)})"

    @property
    def axiom(self) -> str:
        """The theorem that is used whole."""
        return f"{self.case.result.key} [{self.case.result.default}], its steps powers of T that meet its conditions"

    @property
    def needs(self) -> tuple[str, ...]:
        """What the theorem assumes."""
        return tuple(a.name for a in self.case.result.form().assumptions)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The exponents, by linear programming."""
        found = self.case.complexity()
        power = found.rounds if self.count == "rounds" else found.total_work
        clients = 0 if self.count == "rounds" else -1
        expected = n.eps ** -sp.Rational(power.numerator, power.denominator) * n.n**clients
        exponents = ", ".join(f"{name} = T^{value}" for name, value in found.exponents.items())
        equal = conclusion.right == expected and conclusion.op == "<="
        return ProofFinding(
            equal, "linear programming", exponents if equal else f"the order is {expected}: {exponents}"
        )


def proof_of_table(result: Result, row: str, count: str) -> Proof:
    """The repaired row of one part of Table 1."""
    left, case = measure_symbol(result.measure), CASES[row]
    step = Step(
        "order",
        f"the best powers of T in {case.result.key}",
        Relation(left, result.form("repaired").bound),
        ByExponents(row, count),
        case.result.form().assumptions,
    )
    return Proof(result.key, NO_VECTORS, (step,), result, {"repaired": "order"})


NAMED = {result.key.partition("/")[2]: result for result in tables.TABLES}
TABLE_PROOFS = tuple(
    proof_of_table(NAMED[row + suffix], row, count)
    for row in CASES
    for suffix, count in (("", "rounds"), ("-gradients", "gradients"))
)
