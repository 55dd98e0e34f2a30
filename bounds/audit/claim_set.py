"""Claim sets: every claim of a paper, verified once, on demand, by every checker that covers it; and the checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module, metadata
from types import ModuleType

from fedbounds.bounds.audit.claim import CHECKERS, Claim, ResultForm
from fedbounds.bounds.audit.counterexample import Erratum
from fedbounds.bounds.audit.errata import paper_errata, refuted_claims, remarks
from fedbounds.bounds.audit.unit_claims import units_claim
from fedbounds.bounds.audit.verdict import ClaimVerdict, Verdict, combine_verdicts
from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.theory.registry import paper_module, submodule
from fedbounds.bounds.theory.result import Result

SOLVERS = ("flint", "z3")  # the extra `audit`
OWN_CHECKERS = (  # ours, which need the extra `audit`
    "fedbounds.bounds.audit.dimension_checker",
    "fedbounds.bounds.audit.limit_checker",
    "fedbounds.bounds.audit.proof_step_checker",
    "fedbounds.bounds.audit.counterexample_checker",
)


@dataclass(frozen=True)
class Checker:
    """A judge of claims."""

    name: str  # how it is called
    applies_to: Callable[[Claim, ClaimSet], bool]  # whether a claim is its business, as the claim set stands
    verify: Callable[[Claim, ClaimSet], Verdict]  # the verdict; it may ask the claim set for other claims
    # in words, what breaks a claim about a form at the edge of its conditions, quickly; "" if nothing is found
    violated: Callable[[Claim], str] | None = None


@lru_cache(maxsize=1)
def checkers() -> tuple[Checker, ...]:
    """Every checker, in the order in which they hear a claim."""
    registered = sorted(metadata.entry_points(group=CHECKERS))
    others = (_load_checker(point.module, next(iter(point.extras), point.name)) for point in registered)
    return (*(_load_checker(place, "audit") for place in OWN_CHECKERS), *others)


def _load_checker(place: str, extra: str) -> Checker:
    try:
        return import_module(place).CHECKER
    except ImportError as error:
        raise FedboundsError(
            f"the checker {place} needs {error.name}, which is not installed: pip install 'fedbounds[{extra}]'"
        ) from error


@dataclass
class ClaimSet:
    """The claims of one paper and the verdicts reached so far.

    Args:
        paper: the paper's key.
        claims: by id, in the paper's order.
        checkers: those that verify them.
    """

    paper: str
    claims: dict[str, Claim]
    checkers: tuple[Checker, ...]
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    @staticmethod
    def of(name: str, only: Sequence[Checker] | None = None) -> ClaimSet:
        """The claim set of one paper by its key."""
        return ClaimSet.from_package(paper_module(name), only)

    @staticmethod
    def from_package(module: ModuleType, only: Sequence[Checker] | None = None) -> ClaimSet:
        """The claim set of a paper's module, installed or not: its results and errata, and what its `claims` adds."""
        claim_set = ClaimSet.from_claims(module_claims(module), only)
        check_targets(claim_set)
        return claim_set

    @staticmethod
    def from_claims(claims: Iterable[Claim], only: Sequence[Checker] | None = None) -> ClaimSet:
        """The claim set of these claims, in this order."""
        given = list(claims)
        if not given:
            raise FedboundsError("a claim set needs at least one claim")
        if len({c.id for c in given}) != len(given):
            twice = sorted({c.id for c in given if sum(d.id == c.id for d in given) > 1})
            raise FedboundsError(f"two claims of {given[0].paper} share an id: {', '.join(twice)}")
        return ClaimSet(given[0].paper, {c.id: c for c in given}, tuple(checkers() if only is None else only))

    def verdict(self, claim_id: str) -> Verdict:
        """The combined verdict on a claim, tried now if it was not before."""
        if claim_id not in self.claims:
            raise unknown_name("claim", claim_id, list(self.claims))
        if claim_id not in self._verdicts:
            if claim_id in self._open:
                raise FedboundsError(f"{claim_id} rests on itself: {' -> '.join([*self._open, claim_id])}")
            self._open.append(claim_id)
            claim = self.claims[claim_id]
            found = [checker.verify(claim, self) for checker in self.checkers if checker.applies_to(claim, self)]
            self._verdicts[claim_id] = combine_verdicts(claim_id, found)
            self._open.pop()
        return self._verdicts[claim_id]

    @cached_property
    def errata(self) -> Mapping[str, Erratum]:
        """The errata among the claims, by id."""
        return {c.subject.id: c.subject for c in self.claims.values() if isinstance(c.subject, Erratum)}

    def verdicts(self) -> Iterator[ClaimVerdict]:
        """Every claim with its verdict, in the paper's order."""
        for claim in self.claims.values():
            yield ClaimVerdict(claim, None if claim.kind == "wording" else self.verdict(claim.id))


def errata_by_id(paper: str, claim_set: ClaimSet) -> Mapping[str, Erratum]:
    """The errata of a paper package, registered or not, and of the claim set, by id."""
    return {e.id: e for e in paper_errata(paper)} | dict(claim_set.errata)


def check_targets(claim_set: ClaimSet) -> None:
    """An erratum's `refutes` and a form's `refuted_by` say the same: what is refuted is there, and a form names an
    erratum that refutes it, or one that refutes what it rests on.
    """
    known = errata_by_id(claim_set.paper, claim_set)
    direct: dict[str, list[str]] = {}
    for erratum in known.values():
        for name in refuted_claims(erratum, claim_set.paper):
            if name not in claim_set.claims:
                raise unknown_name(f"claim that the erratum {erratum.id} refutes", name, list(claim_set.claims))
            direct.setdefault(name, []).append(erratum.id)
    for name, claim in claim_set.claims.items():
        if not isinstance(claim.subject, ResultForm):
            continue
        said, by = claim.subject.form.refuted_by, direct.get(name, [])
        if said and known and said not in known:  # a paper package may bring no errata yet
            raise unknown_name(f"erratum that refutes {name}", said, list(known))
        if by and said not in by:
            raise FedboundsError(f"{name} is refuted by {' and '.join(by)}, but its form names {said or 'no erratum'}")


def paper_claims(name: str) -> Iterator[Claim]:
    """Every claim of one paper by its key."""
    return module_claims(paper_module(name))


def module_claims(module: ModuleType) -> Iterator[Claim]:
    """Every form of every result, its units, the claims that the paper's module brings (`<module>.claims:claims`), and
    its errata (`<module>.errata`), where these are not among them.
    """
    for result in module.RESULTS:
        yield from result_claims(result)
    brought = list(_brought(module))
    yield from brought
    known = {claim.id for claim in brought}
    if module.RESULTS:
        yield from (claim for claim in remarks(module, module.RESULTS[0].paper) if claim.id not in known)


def _brought(module: ModuleType) -> Iterable[Claim]:
    try:
        trial = submodule(module, "claims")
    except ModuleNotFoundError as error:
        if error.name in SOLVERS:
            raise FedboundsError(
                f"the proofs of {module.__name__} need {error.name}, which is not installed: "
                "pip install 'fedbounds[audit]'"
            ) from error
        raise
    return trial.claims() if trial else ()


def result_claims(result: Result) -> Iterator[Claim]:
    """Every form of one result and its units."""
    for form in result.forms:
        subject = ResultForm(result, form)
        yield subject.claim()
        yield units_claim(subject)
