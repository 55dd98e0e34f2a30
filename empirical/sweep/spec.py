"""From a TOML file to a list of resolved tasks: pure, complete, and strict about names.

A sweep file says what to run:

```toml
name = "periodic"          # where results go: ./results/periodic/ (default: the file's name)
rounds = 200
seeds = 4                  # a number (0, 1, 2, 3) or a list of seeds (default 1)
seeds_per_run = 4          # how many seeds share one run, hence one file (default: all of them)
record_every = 10          # rounds between records (default 1)
device = "auto"            # or "cpu", "cuda", "cuda:1" (default "auto": a CUDA device, if there is one, for networks)
engine = "auto"            # or "sequential", "batched", "compiled", "closed form", "masked batch", "tiers" ("auto")
streams = { participation = 7 }   # random streams that all seeds share (default: none)
record_models = false      # keep the models too (default false)
record_participation = false      # keep who took part, with which weight (default false)

[problem]                  # or several: [problems.<label>]
kind = "quadratic"
clients = 8
dimension = 3

[participation]            # or several: [participations.<label>]
kind = "cyclic"
clients = 8

[algorithms.fedavg]        # or just one: [algorithm]
kind = "fedavg"
local_step_size = 0.1
local_steps = 5

[[algorithms.late.phases]] # a schedule: one algorithm after the other
rounds = 50
algorithm = { kind = "fedavg", local_step_size = 0.1, local_steps = 5 }

[[algorithms.late.phases]] # the last phase may leave `rounds` out: it takes what is left
algorithm = { kind = "generalized-fedavg", local_step_size = 0.01, local_steps = 5, interval = 8 }

[vary]                     # every combination of these
"problem.noise" = [0.0, 0.1]
"algorithms.late.phases.1.algorithm.server_multiplier" = [1.0, 2.0]    # multiplies only the runs of `late`

[[vary.together]]          # columns that advance together, as step sizes that depend on the number of rounds
"rounds" = [100, 400]
"algorithms.fedavg.local_step_size" = [0.1, 0.05]
```

A resolved *task* is the JSON dictionary of one run: `problem`, `participation`, `algorithm` or `phases`,
`rounds`, `seeds` and the other scalars, with every default of the list above written in, and `labels`, which
say where in the sweep the run stands: the labels of its tables, and the value of each axis under its place in the
task (`algorithm.local_step_size`, whether it was varied for one algorithm or for all).
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.bounds.inputs.user_files import DEEPEST, TOO_DEEP, nests_deeper, read_toml

Task = dict[str, Any]
Assignment = tuple[tuple[str, Any], ...]

MAX_RUNS, MAX_SEEDS = 100_000, 1_000_000
COMPONENTS = {"problem": "problems", "participation": "participations", "algorithm": "algorithms"}
DEFAULTS = {
    "record_every": 1,
    "engine": "auto",
    "device": "auto",
    "record_models": False,
    "record_participation": False,
}
SCALARS = ("rounds", *DEFAULTS)
KEYS = ("name", "seeds", "seeds_per_run", "streams", "vary", *SCALARS, *COMPONENTS, *COMPONENTS.values())
PHASE_KEYS = ("rounds", "algorithm")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Sweep:
    """A named list of resolved tasks, one per run.

    Args:
        name: names the directory of results.
        tasks: JSON dictionaries, in the order of the file (algorithms innermost of the components, then the
            axes).
        source: where the sweep was read from; errors begin with it.
    """

    name: str
    tasks: tuple[Task, ...]
    source: str


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep file and resolve it.

    Raises:
        FedboundsError: the file is absent, larger than a mebibyte, not TOML, or `resolve` refuses it.
    """
    path = Path(path)
    return resolve(read_toml(path), source=str(path), default_name=path.stem)


def resolve(document: Mapping[str, Any], source: str = "sweep", default_name: str = "sweep") -> Sweep:
    """Turn a parsed sweep file into resolved tasks; a pure function, documented at the top of this module.

    Args:
        document: the file as nested dictionaries.
        source: begins every error message.
        default_name: the sweep's name where the document gives none.

    Example:
        >>> sweep = resolve({
        ...     "rounds": 10, "seeds": 2, "problem": {"kind": "toy"}, "participation": {"kind": "full"},
        ...     "algorithm": {"kind": "fedavg"}, "vary": {"algorithm.local_step_size": [0.1, 0.2]}})
        >>> [task["algorithm"]["local_step_size"] for task in sweep.tasks]
        [0.1, 0.2]
        >>> sweep.tasks[0]["seeds"], sweep.tasks[0]["record_every"], sweep.tasks[0]["labels"]
        ([0, 1], 1, {'algorithm.local_step_size': 0.1})

    Raises:
        FedboundsError: an unknown name (with the nearest legal one), a missing table, a value outside its
            range.
    """
    try:
        if nests_deeper(document, DEEPEST):
            raise FedboundsError(TOO_DEEP)
        _known("key", document, KEYS, "at the top of the file")
        _json_like(document, "")
        name = document.get("name", default_name)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise FedboundsError(f"name = {quote(name)} must be letters, digits, '.', '_' or '-', at most 100 of them")
        if "rounds" not in document:
            raise FedboundsError("rounds is missing: how many communication rounds each run has")
        blocks = _seed_blocks(document)
        variants = [_variants(document, single, plural) for single, plural in COMPONENTS.items()]
        groups = _axes(document)
        tasks = []
        for combination in itertools.product(*variants):
            for task in _expand(document, combination, groups):
                if len(tasks) + len(blocks) > MAX_RUNS:
                    raise FedboundsError(f"the sweep has more than {MAX_RUNS} runs")
                if (len(tasks) // len(blocks) + 1) * sum(map(len, blocks)) > MAX_SEEDS:
                    raise FedboundsError(f"the sweep has more than {MAX_SEEDS} seeds in all its runs together")
                tasks += [{**copy.deepcopy(task), "seeds": list(block)} for block in blocks]
    except FedboundsError as error:
        raise FedboundsError(f"{source}: {error}") from error
    return Sweep(name, tuple(tasks), source)


def _known(kind: str, table: Mapping[str, Any], legal: Sequence[str], where: str) -> None:
    for key in table:
        if key not in legal:
            raise FedboundsError(f"{where}: {unknown_name(kind, key, legal)}")


def _json_like(value: Any, where: str) -> None:
    """Dates and times are TOML but no parameter of ours, nor is NaN; refuse them where they stand."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _json_like(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _json_like(inner, f"{where}[{index}]")
    elif not isinstance(value, str | int | float) or value != value:
        raise FedboundsError(f"{where} = {value} is not a number, a text, a truth value, a list or a table")


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FedboundsError(f"{where} = {quote(value)} must be a table")
    return value


def _seed_blocks(document: Mapping[str, Any]) -> list[list[int]]:
    seeds = document.get("seeds", 1)
    if not isinstance(seeds, list):
        seeds = range(check_count("seeds", seeds, high=MAX_SEEDS, why="random streams are made for each"))
    seeds = [check_count(f"seeds[{place}]", seed, 0) for place, seed in enumerate(seeds)]
    if not 1 <= len(set(seeds)) == len(seeds) <= MAX_SEEDS:
        raise FedboundsError(f"seeds = {quote(seeds)} must be a number of seeds or a list of different integers >= 0")
    size = check_count("seeds_per_run", document.get("seeds_per_run", len(seeds)))
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def _variants(document: Mapping[str, Any], single: str, plural: str) -> list[tuple[str, str | None, Mapping[str, Any]]]:
    """The (component, label, table) alternatives of one component: `[problem]`, or each `[problems.<label>]`."""
    if single in document and plural in document:
        raise FedboundsError(f"give either [{single}] or [{plural}.<label>], not both")
    if single in document:
        return [(single, None, _table(document[single], single))]
    tables = _table(document.get(plural, {}), plural)
    if not tables:
        raise FedboundsError(f"[{single}] is missing (or [{plural}.<label>] for several)")
    return [(single, label, _table(table, f"{plural}.{label}")) for label, table in tables.items()]


def _axes(document: Mapping[str, Any]) -> list[list[Assignment]]:
    """Each axis as the list of its points; a point assigns one value per column."""
    vary = dict(_table(document.get("vary", {}), "vary"))
    together = vary.pop("together", [])
    if not isinstance(together, list) or not all(isinstance(group, Mapping) for group in together):
        raise FedboundsError("[[vary.together]] must be an array of tables")
    groups = [{path: values} for path, values in _flatten(vary)] + [dict(_flatten(group)) for group in together]
    paths = [path for group in groups for path in group]
    for path in paths:
        if paths.count(path) > 1:
            raise FedboundsError(f"[vary]: {quote(path)} is varied twice")
    for group in groups:
        for path, values in group.items():
            _check_path(document, path)
            if not isinstance(values, list) or not values or any(isinstance(v, Mapping) for v in values):
                raise FedboundsError(
                    f"[vary]: {quote(path)} = {quote(values)} must be a non-empty list of values; "
                    "whole tables vary as [problems.<label>], [participations.<label>], [algorithms.<label>]"
                )
        if len({len(values) for values in group.values()}) > 1:
            lengths = ", ".join(f"{quote(path)} has {len(values)}" for path, values in group.items())
            raise FedboundsError(f"[[vary.together]]: columns must be equally long, but {lengths}")
    axes = [list(zip(*([(p, v) for v in values] for p, values in group.items()), strict=True)) for group in groups]
    for points in axes:
        seen: set[Any] = set()
        for point in points:
            if (values := _comparable([v for _, v in point])) in seen:
                raise FedboundsError(f"[vary]: {', '.join(f'{quote(p)} = {quote(v)}' for p, v in point)} stands twice")
            seen.add(values)
    return axes


def _comparable(value: Any) -> Any:
    """What equals another where they are one value: 1 and 1.0 are, 1 and true are not."""
    return tuple(map(_comparable, value)) if isinstance(value, list) else (isinstance(value, bool), value)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`algorithm.local_steps = [1]` (nested) and `"algorithm.local_steps" = [1]` (quoted) mean the same axis."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _check_path(document: Mapping[str, Any], path: str) -> None:
    head, *rest = path.split(".")
    if head in SCALARS and not rest:
        return
    heads = [*SCALARS, *(n for pair in COMPONENTS.items() for n in pair if n in document or n in COMPONENTS)]
    if head not in heads:
        raise FedboundsError(f"[vary]: {unknown_name('axis', head, heads)} (in {quote(path)})")
    if head in COMPONENTS.values():
        if rest and rest[0] not in document[head]:
            raise FedboundsError(f"[vary]: {unknown_name('label', rest[0], document[head])} (in {quote(path)})")
        rest = rest[1:]
    if head in SCALARS or not rest or "" in rest:
        raise FedboundsError(f"[vary]: {quote(path)} must name one value, as in 'algorithm.local_step_size'")


def _expand(
    document: Mapping[str, Any],
    combination: Sequence[tuple[str, str | None, Mapping[str, Any]]],
    groups: Sequence[Sequence[Assignment]],
) -> Iterator[Task]:
    """The tasks of one combination of components: the product of the axes that concern it."""
    plural_of = {COMPONENTS[single]: (single, label) for single, label, _ in combination}

    def concerns(path: str) -> bool:
        head, label = path.split(".")[0], path.split(".")[1] if "." in path else None
        return head not in plural_of or plural_of[head][1] == label

    kept = [[tuple(c for c in point if concerns(c[0])) for point in group] for group in groups]
    axes = [group for group in kept if group[0]]
    if math.prod(len(group) for group in axes) > MAX_RUNS:
        raise FedboundsError(f"[vary] makes more than {MAX_RUNS} runs")
    for points in itertools.product(*axes):
        task: Task = {**DEFAULTS, **{key: document[key] for key in SCALARS if key in document}}
        task["streams"] = dict(_table(document.get("streams", {}), "streams"))
        task |= {single: copy.deepcopy(dict(table)) for single, _, table in combination}
        labels: dict[str, Any] = {single: label for single, label, _ in combination if label is not None}
        targets: dict[tuple[str, ...], str] = {}
        for path, value in itertools.chain.from_iterable(points):
            head, *rest = path.split(".")
            steps = (plural_of[head][0], *rest[1:]) if head in plural_of else (head, *rest)
            if steps in targets:
                raise FedboundsError(f"[vary]: {quote(path)} and {quote(targets[steps])} set the same value")
            targets[steps] = path
            _assign(task, steps, value, path)
            labels[".".join(steps)] = value
        _finish(task, combination[-1][1])
        yield {**task, "labels": labels}


def _assign(task: Task, steps: Sequence[str], value: Any, path: str) -> None:
    node: Any = task
    for step in steps[:-1]:
        if isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        else:
            legal = [str(i) for i in range(len(node))] if isinstance(node, list) else list(node)
            raise FedboundsError(f"[vary]: {unknown_name('table', step, legal)} (in {quote(path)})")
        if not isinstance(node, list | dict):
            raise FedboundsError(f"[vary]: {quote(path)} does not lead into a table")
    if not isinstance(node, dict):
        raise FedboundsError(f"[vary]: {quote(path)} does not lead into a table")
    node[steps[-1]] = copy.deepcopy(value)


def _finish(task: Task, label: str | None) -> None:
    """Check the numbers and write the phases out, each with its number of rounds."""
    rounds = task["rounds"] = check_count("rounds", task["rounds"])
    task["record_every"] = check_count("record_every", task["record_every"])
    for name in ("record_models", "record_participation"):
        if not isinstance(task[name], bool):
            raise FedboundsError(f"{name} = {quote(task[name])} must be true or false")
    for name in ("engine", "device"):
        if not isinstance(task[name], str):
            raise FedboundsError(f"{name} = {quote(task[name])} must be a name, such as 'auto'")
    _check_kind(task["problem"], "[problem]")
    _check_kind(task["participation"], "[participation]")
    where = "[algorithm]" if label is None else f"[algorithms.{label}]"
    if "phases" not in task["algorithm"]:
        _check_kind(task["algorithm"], where)
        return
    table = task.pop("algorithm")
    _known("key", table, ("phases",), f"{where} with phases")
    phases = table["phases"]
    if not isinstance(phases, list) or not phases or not all(isinstance(phase, dict) for phase in phases):
        raise FedboundsError(f"{where}: phases must be a non-empty array of tables")
    left = rounds
    for index, phase in enumerate(phases):
        here = f"{where}, phase {index}"
        _known("key", phase, PHASE_KEYS, here)
        _check_kind(_table(phase.get("algorithm"), f"{here}: algorithm"), f"{here}: algorithm")
        if "rounds" not in phase and index < len(phases) - 1:
            raise FedboundsError(f"{here}: rounds is missing; only the last phase may leave it out")
        phase["rounds"] = check_count(f"{here}: rounds", phase.get("rounds", left))
        left -= phase["rounds"]
    if left:
        raise FedboundsError(f"{where}: the phases have {rounds - left} rounds in all, but rounds = {rounds}")
    task["phases"] = phases


def _check_kind(table: Mapping[str, Any], where: str) -> None:
    if not isinstance(table.get("kind"), str):
        raise FedboundsError(f"{where}: kind = {quote(table.get('kind'))} must be a text, the name of what it is")
