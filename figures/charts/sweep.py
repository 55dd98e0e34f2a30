"""One metric of every run of a sweep against rounds."""

from __future__ import annotations

import re
from pathlib import Path

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.empirical.sweep import Store, execute, plan, read_sweep
from fedbounds.empirical.sweep.executor import runs_bar
from fedbounds.empirical.sweep.keys import canonical_json
from fedbounds.empirical.sweep.runs import recorded_metrics
from fedbounds.figures.charts.curves import panels, seed_curve
from fedbounds.figures.charts.picture import Picture, as_text

USUAL = ("train_loss", "envelope_gradient_norm_squared", "gradient_norm_squared")  # the default metrics


def sweep_picture(spec: str, metric: str | None, results: Path, workers: int, device: str | None = None) -> Picture:
    """Mean and band over seeds of a metric (default: the first of `USUAL`) for every run of a sweep."""
    sweep = read_sweep(spec)
    store = Store(results / sweep.name)
    runs = plan(sweep, device=device)
    if metric is not None:
        for problem in {canonical_json(run.task["problem"]): run for run in runs}.values():
            known = recorded_metrics(problem)
            if metric not in known:
                raise unknown_name(f"metric of {spec}", metric, known)
    with runs_bar(sweep.name) as progress:
        outcomes = execute(runs, store, workers=workers, progress=progress)
    failed = [o for o in outcomes if o.failed]
    if failed:
        raise FedboundsError(f"{len(failed)} runs of {spec} failed, first {failed[0].run.title}: {failed[0].status}")
    curves = []
    for outcome in outcomes:
        trace = store.load(outcome.run.key)
        known = [n for n in trace.arrays if trace.dims[n] == ("seed", "round")]
        metric = metric or next((name for name in (*USUAL, *known) if name in known), "")
        if metric not in known:
            raise unknown_name(f"metric of {spec}", metric, known)
        title = outcome.run.title.rpartition(" seeds=")[0] or sweep.name
        label = ", ".join(re.sub("^(algorithm|participation|problem)=", "", part) for part in title.split())
        curves.append(seed_curve(as_text(label), trace.arrays["round"], trace.arrays[metric]))
    assert metric is not None
    words = metric.replace("_", " ")
    positive = all((c.y > 0).all() for c in curves)
    return panels(
        {"": curves},
        x_label="round $t$",
        y_labels=[as_text(words)],
        title=as_text(sweep.name),
        caption=f"{as_text(words)} of the runs of {as_text(spec)}: mean and standard deviation over seeds.",
        alternative=f"{as_text(words)} against rounds for {len(curves)} runs.",
        provenance={"spec": spec, "keys": [r.key for r in runs], "seeds": runs[0].task["seeds"]},
        y_scales=["log" if positive else "linear"],
    )
