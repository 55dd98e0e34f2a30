"""The graph of results: which of them rest on or improve others.

An edge is from a proof here (`[uses]` in `improvements.toml` of the paper), a theorem file (`uses`, `improves`), or
what a paper says of another result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fedbounds.bounds.comparison.improvements import improvements
from fedbounds.bounds.inputs.data_files import read_data_file
from fedbounds.bounds.theory.registry import PAPERS, paper_module, results
from fedbounds.bounds.theory.theorem_file import read_theorem_file

USES, IMPROVES = "uses", "improves"
RESULTS = ("theorem", "corollary", "proposition")  # kinds that a graph of all papers shows


class Edge(NamedTuple):
    """A result that rests on another one, or improves on it.

    Args:
        result, used: their keys.
        relation: "uses" if its proof rests on the other; "improves" if it improves on, extends or matches it; or what
            its paper says of the two: "same rate", "faster", "without".
    """

    result: str
    used: str
    relation: str


@lru_cache(maxsize=1)
def all_edges() -> tuple[Edge, ...]:
    """Every edge, once for a pair."""
    found: dict[tuple[str, str], str] = {}
    for name in PAPERS:
        place = Path(str(paper_module(name).__file__)).with_name("improvements.toml")
        for key, used in read_data_file(str(place))["uses"].items():
            found |= {(key, one): USES for one in used}
    for file in (read_theorem_file(result.file) for result in results() if result.file):
        for relation, keys in ((USES, file.uses), (IMPROVES, file.improves)):
            found |= {(file.result.key, one): relation for one in keys}
    for one in improvements():
        if one.against:
            found.setdefault((one.result, one.against), one.relation)
    return tuple(Edge(*pair, relation) for pair, relation in found.items())


def edges_around(key: str) -> tuple[Edge, ...]:
    """The edges from a result to all that it rests on or improves on, and from all that rest or improve on it."""
    return tuple(edge for side in (0, 1) for edge in _reached(key, side))


def _reached(key: str, side: int) -> list[Edge]:
    found: dict[Edge, None] = {}
    left, seen = [key], {key}
    while left:
        at = left.pop()
        for edge in all_edges():
            if edge[side] == at:
                found[edge] = None
                if (other := edge[1 - side]) not in seen:
                    seen.add(other)
                    left.append(other)
    return list(found)


def results_shown() -> set[str]:
    """What a graph of all papers is about: theorems, corollaries, propositions, theorem files, what papers compare."""
    shown = {result.key for result in results() if result.kind in RESULTS or result.file}
    return shown | {key for edge in all_edges() if edge.relation != USES for key in (edge.result, edge.used)}


def edges_of_registry() -> tuple[Edge, ...]:
    """The edges between these results; through lemmas where these are between them."""
    shown = results_shown()
    found: dict[tuple[str, str], str] = {}
    for key in sorted(shown):
        for edge in _through(key, shown):
            found.setdefault((key, edge.used), edge.relation)
    return tuple(Edge(*pair, relation) for pair, relation in found.items() if pair[0] != pair[1])


def _through(key: str, shown: Collection[str]) -> Iterator[Edge]:
    """The edges to the first shown results on each path."""
    left, seen = [key], {key}
    while left:
        at = left.pop()
        for edge in all_edges():
            if edge.result == at and edge.used not in seen:
                seen.add(edge.used)
                if edge.used in shown:
                    yield edge
                else:
                    left.append(edge.used)


def layers_of(edges: Sequence[Edge]) -> dict[str, int]:
    """The layer of each result: one more than the largest of those that it uses; edges that close a circle count not.

    A result that uses nothing is next to the first one that uses it.

    Example:
        >>> layers_of([Edge("c", "b", USES), Edge("b", "a", USES), Edge("c", "d", USES)])
        {'a': 0, 'b': 1, 'd': 1, 'c': 2}
    """
    used: dict[str, list[str]] = {}
    for edge in edges:
        used.setdefault(edge.result, []).append(edge.used)
        used.setdefault(edge.used, [])
    found: dict[str, int] = {}

    def layer(key: str, above: tuple[str, ...]) -> int:
        if key not in found:
            within = [layer(one, (*above, key)) for one in used[key] if one not in (*above, key)]
            found[key] = 1 + max(within, default=-1)
        return found[key]

    for key in used:
        layer(key, ())
    users = {key: [found[e.result] for e in edges if e.used == key and found[e.result] > found[key]] for key in used}
    return {key: min(users[key]) - 1 if not used[key] and users[key] else at for key, at in found.items()}
