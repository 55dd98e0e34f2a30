"""A report on the runs of a sweep: settings, bounds, measurements and provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbounds.bounds._version import __version__
from fedbounds.bounds.display.json_values import attributes, json_value
from fedbounds.bounds.display.progress import progress_bar
from fedbounds.bounds.inputs.output_files import Output, check_outputs
from fedbounds.bounds.inputs.user_files import LARGEST_TOML, read_bytes, read_text, record_inputs
from fedbounds.bounds.theory.registry import paper, paper_names
from fedbounds.empirical.comparison.compare_run import RunComparison
from fedbounds.empirical.comparison.compare_sweep import (
    ComparedForm,
    SweepComparisons,
    SweepSetting,
    confront_results,
    forms_of_runs,
    named_forms,
)
from fedbounds.empirical.sweep import Store, Sweep, read_sweep
from fedbounds.empirical.sweep.executor import runs_bar
from fedbounds.empirical.sweep.provenance import provenance
from fedbounds.figures.charts.overlay import MOST_PANELS, overlay_sweep
from fedbounds.figures.charts.picture import figure_outputs
from fedbounds.figures.report.page import figure_of, report_outputs, slug, software, write_report
from fedbounds.figures.report.theory import result_document

PARTS = ("problem", "participation", "algorithm")
OTHER = ("rounds", "record_every", "engine", "device", "streams", "phases")
LARGEST = 2**27  # bytes of a figure
Drawn = Callable[[int, int], None]


@record_inputs()
def report_runs(
    spec: str | Path,
    out: str | Path,
    keys: tuple[str, ...] = (),
    *,
    results: str | Path = "results",
    workers: int = 1,
    device: str | None = None,
    given: dict[str, Any] | None = None,
    assume: tuple[str, ...] = (),
    force: bool = False,
) -> tuple[list[Path], bool]:
    """Write the report on the runs of a sweep file; those that are missing are made first.

    Args:
        spec: the file.
        out: the folder.
        keys, results, workers, device, given, assume: as for
            `fedbounds.empirical.comparison.sweep_comparison.confront_results`.
        force: overwrite files that fedbounds did not write.

    Returns:
        The files, the page first, and whether a bound is crossed where its conditions hold.
    """
    folder, sweep = Path(out), read_sweep(spec)
    store = Store(Path(results) / sweep.name)
    outputs = [*report_outputs(folder), *figures_of_runs(folder, keys, len(sweep.tasks))]
    check_outputs(outputs, force, runs=store.directory)
    with runs_bar(sweep.name) as progress:
        found = confront_results(
            sweep, keys, results=results, workers=workers, device=device, progress=progress, given=given, assume=assume
        )
    with progress_bar("drawing") as drawn:
        document, images = runs_document(sweep, found, store, folder, drawn, force)
    return [*write_report(folder, "runs.html", document, force), *images], found.crossed


def runs_document(
    sweep: Sweep, found: SweepComparisons, store: Store, out: Path, drawn: Drawn | None = None, force: bool = False
) -> tuple[dict[str, Any], list[Path]]:
    """The document of a report on runs, and the files of its figures, drawn into the folder `out`."""
    tables = [_flat_task(one.setting.task) for one in found.comparisons]
    every = list(dict.fromkeys(name for table in tables for name in table))
    shared = {name: value for name, value in tables[0].items() if all(t.get(name) == value for t in tables)}
    common: dict[str, dict[str, Any]] = {part: {} for part in (*PARTS, "run")}
    for name, value in shared.items():
        part, dot, own = name.partition(".")
        common[part if dot else "run"][own or part] = value
    made = [_runs(one.setting, store) for one in found.comparisons]
    builds = list({json.dumps(run["made_with"]): run["made_with"] for runs in made for run in runs}.values())
    for run in (run for runs in made for run in runs):
        run["made_with"] = builds.index(run["made_with"]) + 1
    groups = [(p, some) for p in found.forms for some in _pictures(found.comparisons_of(p))]
    results, written = [], []
    for compared in found.forms:
        figures = []
        own = [some for one, some in groups if one is compared]
        for number, some in enumerate(own, 1):
            name = _name(compared, number if len(own) > 1 else 0)
            picture = overlay_sweep(some, sweep.name)
            written += picture.save(out / f"{name}.png", force=force)
            figures.append(figure_of(out / f"{name}.png", picture.caption, picture.alternative))
            if drawn is not None:
                drawn(sum(path.suffix == ".png" for path in written), len(groups))
        results.append(
            {
                **result_document(compared.result, compared.form),
                "figures": figures,
                "comparisons": [_comparison(setting, c) for setting, c in found.comparisons_of(compared).items()],
            }
        )
    without: dict[tuple[str, str], list[str]] = {}
    for one in found.comparisons:
        for claim, why in one.without.items():
            without.setdefault((claim, why), []).append(one.setting.label)
    papers = dict.fromkeys(p.result.paper for p in found.forms if p.result.paper in paper_names())
    text = read_text(sweep.source, sweep.source, LARGEST_TOML)
    return json_value(
        {
            "about": "runs",
            "title": sweep.name,
            "common": common,
            "varying": [name for name in every if name not in shared],
            "settings": [
                {
                    "label": one.setting.label,
                    "seeds": one.setting.seeds,
                    "differs": {name: table.get(name) for name in every if name not in shared},
                    "runs": runs,
                }
                for one, table, runs in zip(found.comparisons, tables, made, strict=True)
            ],
            "results": results,
            "without": [{"claim": claim, "why": why, "settings": some} for (claim, why), some in without.items()],
            "provenance": {
                "spec": Path(sweep.source).name,
                "spec_text": text,
                "spec_sha256": hashlib.sha256(text.encode()).hexdigest(),
                "version": __version__,
                "report_made_with": _build(provenance()),
                "runs_made_with": builds,
                "files": {
                    file.name: hashlib.sha256(read_bytes(file, str(file), LARGEST, noted=False)).hexdigest()
                    for file in written
                },
            },
            "bibtex": [*(paper(name).bibtex.strip() for name in papers), software()],
        }
    ), written


def figures_of_runs(out: Path, keys: Sequence[str], settings: int) -> Iterator[Output]:
    """Every figure file that a report may write, for results (default: those that cover the runs) and many settings."""
    for compared in named_forms(keys) if keys else forms_of_runs():
        for number in range(-(-settings // MOST_PANELS) + 1):
            yield from figure_outputs(out / f"{_name(compared, number)}.png")


def _name(compared: ComparedForm, number: int) -> str:
    """The name of a figure; the first of several has number 1, a single one 0."""
    return slug(compared.claim) + (f"-{number}" if number else "")


def _pictures(found: Mapping[SweepSetting, RunComparison]) -> list[dict[SweepSetting, RunComparison]]:
    """The settings in groups of at most `MOST_PANELS`."""
    pairs = list(found.items())
    return [dict(pairs[start : start + MOST_PANELS]) for start in range(0, len(pairs), MOST_PANELS)]


def _flat_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task as a flat table: problem.clients, rounds."""
    said = {
        f"{part}.{name}": value for part in PARTS for name, value in task.get(part, {}).items() if value is not None
    }
    return said | {name: task[name] for name in OTHER if task.get(name)}


def _runs(setting: SweepSetting, store: Store) -> list[dict[str, Any]]:
    """The records of the runs of a setting."""
    found = []
    for run in setting.runs:
        run_status = store.read_status(run.key)
        record = run_status.record
        found.append(
            {
                "key": run.key,
                "seeds": list(run.task["seeds"]),
                "status": run_status.status,
                "seconds": record.get("seconds"),
                "sha256": record.get("checksum"),
                "made_with": _build(record.get("provenance") or {}),
            }
        )
    return found


def _build(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Versions and git state, without the name of the machine."""
    return {name: facts[name] for name in ("python", "platform", "packages", "git") if name in facts}


def _comparison(setting: SweepSetting, c: RunComparison) -> dict[str, Any]:
    """One setting under one result at its largest number of rounds, and all crossings."""
    notation = c.result.notation
    formulas = dict(zip((h.text for h in c.form.hypotheses), c.result.latex_parts(c.form).conditions, strict=True))
    return {
        "label": setting.label,
        "sampled": c.label,
        "rounds": int(c.rounds[-1]),
        "measured": c.measured[-1],
        "standard_error": None if c.standard_error is None else c.standard_error[-1],
        "bound": c.bound[-1],
        "ratio": c.ratio[-1],
        "terms": {name: term[-1] for name, term in c.terms.items()},
        "valid": bool(c.valid[-1]),
        "guarantee": c.guarantee,
        "promise": c.evaluation.guarantee_text,
        **attributes(c, "revoked why_not"),
        "crossings": len(c.crossings),
        "covered_crossings": len(c.covered_crossings),
        "compared": len(c.rounds),
        "constants": [
            {
                "name": name,
                "tex": notation[name].latex,
                "meaning": notation[name].meaning,
                **attributes(constant, "value source note"),
            }
            for name, constant in c.constants.items()
            if name not in c.evaluation.unused
        ],
        "conditions": [
            {"text": check.text, "tex": formulas.get(check.text, ""), "left": check.left, "right": check.right,
             "holds": bool(np.all(check.holds)), "why": check.why}
            for check in c.evaluation.conditions
        ],
        "assumptions": [
            {**attributes(a, "name statement label"), "status": c.evaluation.assumptions[a.name]}
            for a in c.form.assumptions
        ],
        "notes": list(c.notes),
    }  # fmt: skip
