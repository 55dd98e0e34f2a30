"""The graph of results as a picture: from left to right, each beside what it rests on or improves on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.path import Path
from scipy.optimize import isotonic_regression

from fedbounds.bounds.audit.ledger import status
from fedbounds.bounds.comparison.result_graph import USES, Edge, edges_of_registry, layers_of, results_shown
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.registry import load
from fedbounds.figures.charts.figure_style import current_style
from fedbounds.figures.charts.picture import COLORS, DASHES, Curve, Picture, new_figure

COLUMN, LINE, FONT = 1.75, 0.105, 6.0  # inches from layer to layer, inches of a line of text, its size in points
LETTERS = 22  # of a line in a box
BOX = 0.74  # the width of a box, as a share of the distance of layers
LANE = 0.35  # the height of the room for an edge that passes a layer, as a share of that for a box
SWEEPS, SETTLING = 60, 40  # over all layers; the last ones keep the order
FILLS = {
    "proved": "#cdeadf", "survived": "#d6ecf8", "order only": "#fbecc8", "refuted": "#f6d3bd", "unread": "#e3e3e3",
}  # fmt: skip
Node = str | tuple[str, str, int]  # a result, or where an edge passes a layer


def registry_graph() -> Picture:
    """The results of all papers and the reference theorems."""
    edges = edges_of_registry()
    alone = sorted(results_shown() - {key for edge in edges for key in (edge.result, edge.used)})
    note = f" Proofs pass through lemmas, which are not shown. Without an arrow: {', '.join(alone)}."
    return graph_picture(edges, "Results that rest or improve on others", note=note)


def graph_picture(edges: Sequence[Edge], title: str, key: str = "", *, note: str = "") -> Picture:
    """The graph of these edges; the box of `key` has a thick border.

    Raises:
        FedboundsError: there is no edge.
    """
    if not edges:
        raise FedboundsError(f"{key} has no relation to another result of the registry; there is no graph to draw")
    layers = layers_of(edges)
    places, lanes = _place(edges, layers)
    lines = {one: _label(one) for one in layers}
    height = max(map(len, lines.values())) + 1.2  # of a row, in lines
    low, high = min(y for _, y in lanes.values()) - 0.5, max(y for _, y in lanes.values()) + 0.5
    columns = max(layers.values()) + 1
    width = columns * COLUMN
    relations = sorted({edge.relation != USES for edge in edges})
    with new_figure(width, (high - low) * height * LINE + 0.7, title) as figure:
        shrunk = min(1.0, (current_style().inches or width) / width)
        axes = figure.subplots()
        axes.set(xlim=(-0.5, columns - 0.5), ylim=(high, low))
        axes.axis("off")
        for edge in edges:
            _arrow(axes, _route(edge, places, lanes), improves=edge.relation != USES)
        for one, (x, y) in places.items():
            tall = (len(lines[one]) + 0.5) / height
            axes.add_patch(
                Rectangle(
                    (x - BOX / 2, y - tall / 2), BOX, tall, zorder=2, facecolor=FILLS.get(lines[one][-1], "white"),
                    edgecolor="black", linewidth=1.8 if one == key else 0.5,
                )
            )  # fmt: skip
            axes.text(x, y, "\n".join(lines[one]), fontsize=FONT * shrunk, ha="center", va="center", zorder=3)
        names = {False: "rests on", True: "improves on, extends or matches"}
        handles = [Line2D([], [], color=COLORS[one], linestyle=DASHES[one], label=names[one]) for one in relations]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    count = {word: sum(text[-1] == word for text in lines.values()) for word in sorted({t[-1] for t in lines.values()})}
    said = ", ".join(f"{number} {word}" for word, number in count.items())
    about = f" of {key}: all that it rests or improves on, and all that rest or improve on it" if key else ""
    return Picture(
        figure,
        f"Graph{about}. An arrow goes from a result to one whose proof rests on it (solid), or that improves on, "
        f"extends or matches it (dashed). The last line of a box is the verdict of the default form: {said}. A theorem "
        f"that hides constants is order only, one that was written from memory is unread.{note}",
        f"{len(layers)} results in {columns} layers, with {len(edges)} arrows.",
        [
            *(Curve(f"{one}: {lines[one][-1]}", np.array([x]), np.array([y])) for one, (x, y) in places.items()),
            *(_as_curve(edge, places) for edge in edges),
        ],
        {"edges": [edge._asdict() for edge in edges]},
    )


def _as_curve(edge: Edge, places: dict[str, tuple[float, float]]) -> Curve:
    ends = np.array([places[edge.used], places[edge.result]])
    return Curve(f"{edge.used} to {edge.result}: {edge.relation}", ends[:, 0], ends[:, 1])


def _label(key: str) -> list[str]:
    paper, _, name = key.partition("/")
    result = load(key)
    return [*wrap(paper, LETTERS), *wrap(name, LETTERS), status(result, result.form())]


def _place(
    edges: Sequence[Edge], layers: dict[str, int]
) -> tuple[dict[str, tuple[float, float]], dict[Node, tuple[float, float]]]:
    """Where boxes are, and where edges pass layers: connected parts below each other, the largest first."""
    parts: list[set[str]] = []
    for edge in edges:
        joined = [part for part in parts if part & {edge.result, edge.used}]
        parts = [part for part in parts if part not in joined] + [{edge.result, edge.used}.union(*joined)]
    found: dict[Node, tuple[float, float]] = {}
    top = 0.0
    for part in sorted(parts, key=lambda one: (-len(one), min(one))):
        heights, placed = _place_part([edge for edge in edges if edge.result in part], layers)
        low = min(y - heights[node] / 2 for node, (_, y) in placed.items())
        found |= {node: (x, y - low + top) for node, (x, y) in placed.items()}
        top = max(y + heights[node] / 2 for node, (_, y) in found.items() if node in placed)
    return {node: at for node, at in found.items() if isinstance(node, str)}, found


def _place_part(
    edges: Sequence[Edge], layers: dict[str, int]
) -> tuple[dict[Node, float], dict[Node, tuple[float, float]]]:
    """One connected part: the order within each layer by the mean of the neighbors, then heights near theirs."""
    beside: dict[Node, list[list[Node]]] = {}  # its neighbors on the left, and on the right
    columns: dict[int, list[Node]] = {}

    def add(node: Node, column: int) -> None:
        if node not in beside:
            beside[node] = [[], []]
            columns.setdefault(column, []).append(node)

    for edge in edges:
        chain = _chain(edge, layers)
        for node, column in chain:
            add(node, column)
        for (one, _), (other, _) in pairwise(chain):
            beside[one][1].append(other)
            beside[other][0].append(one)
    heights: dict[Node, float] = {node: 1.0 if isinstance(node, str) else LANE for node in beside}
    y: dict[Node, float] = {}
    for column in columns.values():
        _stack(column, {node: float(k) for k, node in enumerate(column)}, heights, y)
    for sweep in range(SWEEPS):
        settling = sweep >= SWEEPS - SETTLING
        for _, column in sorted(columns.items(), reverse=bool(sweep % 2)):
            wanted = {}
            for node in column:
                near = [*beside[node][0], *beside[node][1]] if settling else beside[node][sweep % 2]
                wanted[node] = float(np.mean([y[one] for one in near])) if near else y[node]
            if not settling:
                column.sort(key=lambda node, wanted=wanted: wanted[node])
            _stack(column, wanted, heights, y)
    return heights, {node: (float(at), y[node]) for at, column in columns.items() for node in column}


def _stack(column: Sequence[Node], wanted: dict[Node, float], heights: dict[Node, float], y: dict[Node, float]) -> None:
    """Place nodes in this order, as near as possible to where they are wanted, without overlap."""
    sizes = np.array([heights[node] for node in column])
    starts = np.cumsum(sizes) - sizes / 2
    free = isotonic_regression(np.array([wanted[node] for node in column]) - starts).x
    y |= {node: float(at) for node, at in zip(column, free + starts, strict=True)}


def _chain(edge: Edge, layers: dict[str, int]) -> list[tuple[Node, int]]:
    """The nodes of an edge from left to right, each with its layer."""
    left, right = sorted((edge.used, edge.result), key=lambda key: layers[key])
    between = range(layers[left] + 1, layers[right])
    return [(left, layers[left]), *(((left, right, k), k) for k in between), (right, layers[right])]


def _route(
    edge: Edge, places: dict[str, tuple[float, float]], lanes: dict[Node, tuple[float, float]]
) -> list[tuple[float, float]]:
    """The points of an edge, from the border of a box to that of the other."""
    chain = _chain(edge, {key: round(x) for key, (x, _) in places.items()})
    points = [(lanes[node][0] + side * BOX / 2, lanes[node][1]) for node, _ in chain for side in (-1, 1)][1:-1]
    return points if chain[0][0] == edge.used else points[::-1]


def _arrow(axes: Axes, points: Sequence[tuple[float, float]], *, improves: bool) -> None:
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x, y), (end, height) in pairwise(points):
        middle = (x + end) / 2
        vertices += [(middle, y), (middle, height), (end, height)]
        codes += [Path.CURVE4] * 3
    axes.add_patch(
        FancyArrowPatch(
            path=Path(vertices, codes), arrowstyle="-|>", mutation_scale=5, linewidth=0.8, zorder=1,
            color=COLORS[improves], linestyle=DASHES[improves], shrinkA=0, shrinkB=0,
        )
    )  # fmt: skip
