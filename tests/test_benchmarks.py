"""Benchmarks run to their ends, at sizes that take a moment."""

from __future__ import annotations

import pytest

from benchmarks import evaluation, together


def test_the_benchmark_of_evaluation_runs_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setattr(evaluation, "SETTINGS", 100)
    monkeypatch.setattr(evaluation, "TURNS", 1)
    monkeypatch.setattr(evaluation, "child_seconds", lambda words: asked.append(words) or 1.0)
    evaluation.main()
    printed = capsys.readouterr().out
    assert "evaluate: validation" in printed and "rounds until 0.5, best gamma, eta" in printed
    cold = printed[printed.index("a process of its own") :].splitlines()[1:]
    assert len(cold) == len(asked) / 2 and {"fedbounds eval", "fedbounds rounds"} <= {row[:42].strip() for row in cold}


def test_the_benchmark_of_settings_together_runs_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(together, "TURNS", 1)
    monkeypatch.setattr(
        together, "JOBS", {name: (together.JOBS[name][0], 2) for name in ("MLP", "quadratics, one Hessian")}
    )
    monkeypatch.setattr(together, "RUNS", {"MLP": (2, 3)})
    together.main()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row[:32].strip() for row in rows] == ["MLP", *together.JOBS] and all(
        float(row.split()[-1]) > 0 for row in rows
    )
