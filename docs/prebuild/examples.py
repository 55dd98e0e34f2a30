"""An example for each result: its terms over the rounds and code that evaluates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import numpy as np

from fedbounds.bounds.display.tables import format_cell
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Result
from fedbounds.figures.charts.picture import Picture
from fedbounds.figures.charts.theory import breakdown
from fedbounds.figures.explorer.document import Start, initial_constants, initial_value
from prebuild.statements import plain

HORIZONS = np.unique(np.geomspace(10, 1e7, 60).round())
CODE = """\
```python
import fedbounds

result = fedbounds.load("{key}")
constants = dict({constants})
print(fedbounds.evaluate(result, constants, form="{form}", assume=["all"]))
```"""


def example(result: Result) -> Iterator[str]:
    """The paragraphs of the example of a result, in its default form."""
    form, constants = result.form(), constants_of(result)
    yield "## An example"
    if picture := terms_over_rounds(result):
        yield f"![{plain(picture.alternative)}]({image(result)})"
        yield f"{plain(picture.caption)} At the constants below; all assumptions are assumed."
    yield "At one setting, in Python:"
    given = ", ".join(f"{name}={value!r}" for name, value in constants.items())
    yield CODE.format(key=result.key, constants=given, form=form.name)
    yield f"```text\n{evaluate(result, constants, form=form.name, assume=['all'])}\n```"
    yield "In the shell: evaluate, print as LaTeX, verify:"
    typed = " ".join(f"{name}={format_cell(value).replace(', ', ',')}" for name, value in constants.items())
    lines = [
        f'fedbounds eval {result.key} --form "{form.name}" {typed} --assume all',
        f'fedbounds show {result.key} --form "{form.name}" --latex',
        f"fedbounds audit {result.key}",
    ]
    yield "```sh\n" + "\n".join(lines) + "\n```"


def constants_of(result: Result) -> dict[str, Start]:
    """The constants with which the explorer starts."""
    return {name: initial_value(result.notation[name]) for name in initial_constants(result, result.form())}


def terms_over_rounds(result: Result) -> Picture | None:
    """The bound and its terms' shares over the number of rounds; None of one term, or where there is no such number."""
    form, constants = result.form(), constants_of(result)
    over = next((name for name in constants if result.notation[name].concept in ("rounds", "iterations")), None)
    if over is None or len(form.terms) < 2:
        return None
    return breakdown(evaluate(result, {**constants, over: HORIZONS}, form=form.name, assume=["all"]))


def image(result: Result) -> str:
    """The name of its picture, beside its page."""
    return f"{result.key.rpartition('/')[2]}.png"


def draw_examples(results: Iterable[Result], folder: Path) -> None:
    """The pictures of results, each with its data and its manifest, where their pages expect them."""
    with ProcessPoolExecutor() as pool:  # most of the time that the pages take
        list(pool.map(draw_example, [result.key for result in results], repeat(folder)))


def draw_example(key: str, folder: Path) -> None:
    """The picture of one result, if it has one."""
    result = load(key)
    if picture := terms_over_rounds(result):
        picture.save(folder / result.paper / image(result), force=True)
