"""Runs of figures: kept after an interruption, and with their measured seconds."""

import numpy as np
import pytest

from fedbounds.empirical.sweep import resolve
from fedbounds.figures.charts.paper_gallery import SECONDS, traces_of

DOCUMENT = {
    "name": "kept",
    "rounds": 20,
    "seeds": [0, 1, 2],
    "seeds_per_run": 1,
    "problem": {"kind": "toy"},
    "participation": {"kind": "cyclic", "clients": 3},
    "algorithms": {label: {"kind": "fedavg", "local_step_size": size, "local_steps": 1}
                   for label, size in (("small", 0.05), ("large", 0.1))},
}  # fmt: skip


def test_an_interrupted_figure_keeps_its_finished_runs(tmp_path):
    sweep, outcomes = resolve(DOCUMENT, "kept"), []

    def stop_after_two(outcome, done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        traces_of(sweep, tmp_path, progress=stop_after_two)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(kept) == 2
    traces_of(sweep, tmp_path, progress=lambda outcome, done, total: outcomes.append(outcome.made))
    assert sorted(outcomes) == [False] * 2 + [True] * 4
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())


def test_traces_have_the_measured_seconds_of_each_seed(tmp_path):
    traces = traces_of(resolve({**DOCUMENT, "seeds_per_run": 3}, "kept"), tmp_path)
    for (trace,) in traces.values():
        assert trace.arrays[SECONDS].shape == (3,) and trace.dims[SECONDS] == ("seed",)
        assert np.ptp(trace.arrays[SECONDS]) == 0 and 0 <= trace.arrays[SECONDS].sum() < 60
