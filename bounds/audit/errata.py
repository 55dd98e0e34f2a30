"""Errata, supplements and slips of wording that a paper's package lists, and their number by severity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, get_args

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.counterexample import (
    Argument,
    Degree,
    Erratum,
    Hypothesis,
    Quote,
    Replay,
    Supplement,
    Wording,
)
from fedbounds.bounds.inputs.data_files import read_data_file
from fedbounds.bounds.theory import registry
from fedbounds.bounds.theory.result import Result

WORDING = "wording"
DEGREES = (
    "Each place below says how false it is: as stated; as an inference, where the conclusion does not follow and may "
    "still be true; only if read literally; unstated without harm; or in its units alone. The paper's words stand "
    "between quotation marks; all else is ours, and in each place we try to say what holds instead."
)


def paper_errata(paper: str) -> Sequence[Erratum]:
    """The errata that a paper's package brings (`<paper>.errata:ERRATA`); none where it has no such module."""
    return _entries(paper, "ERRATA")


def paper_wording(paper: str) -> Sequence[Wording]:
    """The slips of wording that a paper's package lists (`<paper>.errata:WORDING`)."""
    return _entries(paper, "WORDING")


def paper_supplements(paper: str) -> Sequence[Supplement]:
    """Statements that the errata lead to (`<paper>.errata:SUPPLEMENTS`)."""
    return _entries(paper, "SUPPLEMENTS")


def _entries(paper: str, name: str) -> Sequence[Any]:
    return _module_entries(registry.paper_module(paper), name) if paper in registry.paper_names() else ()


def _module_entries(module: ModuleType, name: str) -> Sequence[Any]:
    return getattr(registry.submodule(module, "errata"), name, ())


class Evidence(NamedTuple):
    """What decides an erratum: its counterexample, the hypotheses that this must meet, and a proof of the repair."""

    replay: Callable[[], Replay]
    under: tuple[Hypothesis, ...]
    argument: Callable[[], Argument] | None = None


def read_errata(
    module: str, evidence: Mapping[str, Evidence], arguments: Mapping[str, Callable[[], Argument]]
) -> tuple[tuple[Erratum, ...], tuple[Supplement, ...], tuple[Wording, ...]]:
    """The errata, supplements and slips of wording in `errata.toml` beside a module, which is given by its `__file__`.

    Each erratum needs its evidence, each supplement that is not open its argument, both by id.
    """
    document = read_data_file(module)

    def entries(kind: str) -> Iterator[dict[str, Any]]:
        for entry in document[kind]:
            yield {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()} | {
                "quotes": tuple(Quote(**quote) for quote in entry.get("quotes", ()))
            }

    errata = tuple(Erratum(**entry, **evidence[entry["id"]]._asdict()) for entry in entries("erratum"))
    supplements = tuple(Supplement(**entry, argument=arguments.get(entry["id"])) for entry in document["supplement"])
    return errata, supplements, tuple(Wording(**entry) for entry in entries("wording"))


def errata_claims(paper: str) -> Iterator[Claim]:
    """Every erratum, repair, supplement and slip of wording of a paper, for its paper package's `claims.claims`."""
    return remarks(registry.paper_module(paper), paper) if paper in registry.paper_names() else iter(())


def remarks(module: ModuleType, paper: str) -> Iterator[Claim]:
    """The same, of a paper package that need not be registered, whether or not its `claims` lists them."""
    for kind in ("ERRATA", "SUPPLEMENTS", "WORDING"):
        for found in _module_entries(module, kind):
            yield from found.claims(paper)


def refuted_claims(erratum: Erratum, paper: str) -> tuple[str, ...]:
    """The ids of the forms and steps that an erratum's counterexample refutes as they stand."""
    return tuple(f"{paper}/{name}" for name in erratum.refutes)


def errata_about(result: Result) -> list[Erratum]:
    """The errata about a result: a form or a step of it, or what a form rests on.

    Example:
        >>> from fedbounds.bounds.theory.registry import load
        >>> [erratum.id for erratum in errata_about(load("fedmrn/theorem-1"))]
        ['first-moments-in-theorem-1']
    """
    return [erratum for erratum in paper_errata(result.paper) if _concerns(erratum, result)]


def _concerns(erratum: Erratum, result: Result) -> bool:
    return any(form.refuted_by == erratum.id for form in result.forms) or any(
        claim.startswith((f"{result.key}[", f"{result.key}/")) for claim in refuted_claims(erratum, result.paper)
    )


def erratum_reference(paper: str, named: str, errata: Iterable[Erratum] | None = None) -> str:
    """An erratum by its name and how false what it is about is, as everything that shows a verdict calls it.

    Example:
        >>> erratum_reference("arbitrary-participation", "vanishing-long-run-variance")
        'vanishing-long-run-variance (unstated but harmless)'
    """
    known = paper_errata(paper) if errata is None else errata
    return next((f"{named} ({erratum.degree})" for erratum in known if erratum.id == named), named)


def findings(paper: str) -> Mapping[str, tuple[str, ...]]:
    """The remarks on a paper by degree, each once: an erratum that repeats another one is not counted.

    Claims are counted elsewhere: one remark may refute several forms, their units and an assumption.
    """
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
