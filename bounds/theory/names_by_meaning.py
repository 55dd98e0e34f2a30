"""Names of constants in all results, and what an unknown name may mean in one of them.

The symbols are read where there is an error, a concept of other results or a list of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.data_files import read_data_file

if TYPE_CHECKING:
    from fedbounds.bounds.theory.symbols import Quantity

PAPERS = Path(__file__).parent.parent / "papers"


@cache
def all_concepts() -> Mapping[str, Quantity]:
    """Every concept with a symbol for it: of theorem files, of the papers, and of the reference theorems.

    Example:
        >>> all_concepts()["smoothness"].name, str(all_concepts()["relative_dissimilarity"].domain)
        ('L', '[1, inf)')
    """
    from fedbounds.bounds.theory.standard_symbols import STANDARD
    from fedbounds.bounds.theory.symbols import read_quantity

    found = {quantity.concept: quantity for quantity in STANDARD.values()}
    tables = [read_data_file(str(file)) for file in sorted(PAPERS.glob("*/notation.toml"))]
    tables += [read_data_file(str(file)).get("symbols", {}) for file in sorted(PAPERS.glob("references/*/*.toml"))]
    for name, row in (pair for table in tables for pair in table.items()):
        if isinstance(row, Mapping) and (concept := row.get("concept", name)) not in found:
            found[concept] = read_quantity(name, **{"latex": name, **row, "concept": concept})
    return found


@cache
def _concepts() -> Mapping[str, frozenset[str]]:
    """The concepts that a symbol stands for in the papers and in theorem files."""
    from fedbounds.bounds.theory.standard_symbols import STANDARD

    found: dict[str, set[str]] = {quantity.name: {quantity.concept} for quantity in STANDARD.values()}
    for file in PAPERS.glob("*/notation.toml"):
        for name, row in read_data_file(str(file)).items():
            found.setdefault(name, set()).add(row["concept"])
    return {name: frozenset(concepts) for name, concepts in found.items()}


def _same(name: str, quantities: Iterable[tuple[str, Quantity]]) -> str:
    """The symbols, of these with their quantities, that stand for what other results call so; "" if none does."""
    meant = _concepts().get(name, frozenset[str]())
    return " or ".join(f"{own} ({q.meaning})" for own, q in quantities if q.concept in meant)


def unknown_constant(kind: str, name: str, known: Mapping[str, Quantity]) -> FedboundsError:
    """The error for a constant that does not exist: what other results call so, else the nearest names.

    Example:
        >>> from fedbounds.bounds.theory.standard_symbols import STANDARD
        >>> print(unknown_constant("constant", "smoothnes", STANDARD))
        unknown constant 'smoothnes'; did you mean smoothness?
        >>> print(unknown_constant("constant", "delta", STANDARD))
        unknown constant 'delta'; did you mean d (gradient divergence sup|grad F_n - grad f|)?
    """
    if same := _same(name, known.items()):
        return FedboundsError(f"unknown {kind} {name!r}; did you mean {same}?")
    from difflib import get_close_matches  # takes its time, and most runs have no such error

    concepts = {quantity.concept for quantity in known.values()}
    misspelt = get_close_matches(name.lower(), concepts, n=3, cutoff=0.8)  # symbols are too short to be
    return unknown_name(kind, name, misspelt or known)


def unknown_symbol(name: str, known: Mapping[str, object]) -> FedboundsError:
    """The error for a symbol of an expression, among whose known names are concepts.

    Example:
        >>> print(unknown_symbol("delta", {"gradient_divergence_sup": "a", "a": "a", "eta": "eta"}))
        unknown symbol 'delta'; did you mean a (gradient divergence sup|grad F_n - grad f|)?
    """
    from fedbounds.bounds.theory.standard_symbols import STANDARD

    standard = [(str(known[q.concept]), q) for q in STANDARD.values() if q.concept in known]
    if same := _same(name, standard):
        return FedboundsError(f"unknown symbol {name!r}; did you mean {same}?")
    return unknown_name("symbol", name, known, "fedbounds list --concepts")
