"""Several logs, and folders of TensorBoard, as the seeds of one run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.read_log import read_log
from tests.command_line import run
from tests.empirical.comparison.test_log_formats import (
    LOSSES,
    event_file,
    read,
    scalars,
    tensorboard,  # noqa: F401  a fixture
)


def test_several_logs_are_seeds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {"a.csv": [4.0, 2.0, 1.0], "b.csv": [5.0, 3.0, 2.0]}
    for name, losses in values.items():
        lines = [f"{t},{loss},{loss / 2}" for t, loss in enumerate(losses)]
        Path(name).write_text("\n".join(["round,train_loss,gradient_norm_squared", *lines]))
    algorithm = {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5}
    trace = read_log([*values], algorithm, "full", clients=3)
    assert trace.train_loss.tolist() == [*values.values()] and trace.seed.tolist() == [0, 1]
    assert trace.spec["log"]["files"] == ["a.csv", "b.csv"]
    assert "the logs are seeds: 0 = a.csv, 1 = b.csv" in trace.spec["log"]["notes"]
    whole = {name: np.concatenate([np.array(losses) for losses in values.values()]) for name in ("train_loss",)}
    both = {
        "round": [0, 1, 2] * 2,
        "seed": [0] * 3 + [1] * 3,
        "gradient_norm_squared": whole["train_loss"] / 2,
        **whole,
    }
    joined = read_log(both, algorithm, "full", clients=3)
    np.testing.assert_array_equal(joined.gradient_norm_squared, trace.gradient_norm_squared)
    with pytest.raises(FedboundsError, match=r"cannot write 'b.csv': a log was read from this file"):
        trace.save("b.csv", force=True)
    Path("c.csv").write_text("round,train_loss\n0,1\n2,1\n")
    with pytest.raises(FedboundsError, match=r"c.csv has other rounds than a.csv; give logs with the same rounds"):
        read_log(["a.csv", "c.csv"], algorithm, "full", clients=3)
    Path("d.csv").write_text("round,seed,train_loss\n0,0,1\n0,1,1\n")
    with pytest.raises(FedboundsError, match=r"d.csv has several runs; of several logs each must have one"):
        read_log(["a.csv", "d.csv"], algorithm, "full", clients=3)
    with pytest.raises(FedboundsError, match="the list of logs is empty"):
        read_log([], algorithm, "full", clients=3)


def test_arrays_of_several_logs_share_their_participation(tmp_path):
    algorithm = {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5}
    weights, other = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    paths = [tmp_path / f"{n}.npz" for n in range(3)]
    for n, path in enumerate(paths):
        measured = np.array([3.0, 2.0, 1.0]) + n
        np.savez(path, round=np.arange(3), gradient_norm_squared=measured, weights=other if n == 2 else weights)
    trace = read_log(paths[:2], algorithm)
    np.testing.assert_array_equal(trace.participation(1), weights)
    assert trace.gradient_norm_squared.tolist() == [[3, 2, 1], [4, 3, 2]]
    with pytest.raises(FedboundsError, match=r"2.npz has other participation than .*0.npz"):
        read_log(paths, algorithm)


def test_a_folder_of_event_files_is_one_run_and_folders_of_them_are_seeds(tensorboard, tmp_path):  # noqa: F811
    for name, shift in (("a", 0.0), ("b", 1.0)):
        (tmp_path / name).mkdir()
        values = scalars([loss + shift for loss in LOSSES])
        (tmp_path / name / "events.out.tfevents.1.host").write_bytes(event_file(values[:4]))
        (tmp_path / name / "events.out.tfevents.2.host").write_bytes(
            event_file(values[:1] + values[3:])
        )  # from round 2
    one = read(tmp_path / "a", f_min=0.5)
    assert one.train_loss.tolist() == [LOSSES]
    assert "loss: events.out.tfevents.2.host replaces 1 rounds of earlier event files" in one.spec["log"]["notes"]
    both = read(tmp_path)
    np.testing.assert_allclose(both.train_loss, [LOSSES, np.array(LOSSES) + 1])
    assert both.spec["log"]["files"] == ["a", "b"]
    (tmp_path / "none").mkdir()
    with pytest.raises(FedboundsError, match="none has no event files of TensorBoard"):
        read(tmp_path / "none")


def test_the_command_takes_several_logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, first in (("a.csv", 4), ("b.csv", 6)):
        Path(name).write_text(f"round,gradient_norm_squared\n0,{first}\n1,2\n2,1\n")
    logs = ["--log", "a.csv", "--log", "b.csv", "--algorithm", "fedavg,local_step_size=0.01,local_steps=5"]
    constants = ["L=1", "F=4", "sigma=0.1", "nu=1", "beta=0", "delta=0"]
    words = ["arbitrary-participation/theorem-3.1", *constants, *logs, "--participation", "full", "--clients", "4"]
    status, printed, _ = run("confront", *words)
    assert status == 0 and "a.csv, b.csv: mean of 2 logged runs" in printed
    assert "the logs are seeds: 0 = a.csv, 1 = b.csv" in printed
