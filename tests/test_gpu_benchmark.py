"""`benchmarks/gpu.py`: all of it on the processor, without click and rich; what it says of an unequal device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import gpu

WITHOUT = (
    "import sys, runpy; sys.modules.update(click=None, rich=None); runpy.run_path(sys.argv.pop(1), run_name='__main__')"
)
PICTURES = {"overlay.png", "race.png", "fedau.png", "fed-norm-sgda.png"}


def test_it_runs_on_the_processor_without_click_or_rich(tmp_path):
    command = [sys.executable, "-c", WITHOUT, gpu.__file__, "--device", "cpu", "--tiny", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "gpu.json").read_text())
    for part in gpu.PARTS:
        assert found[part].keys().isdisjoint({"error", "stopped"}), found[part]
    assert found["together"]["equal"] and found["compiled"]["equal"]
    assert [row["engine"] for row in found["compiled"]["cases"]] == ["compiled"]
    assert found["equality"]["equal"] and {row["dtype"] for row in found["equality"]["cases"]} == set(gpu.LIMITS)
    assert found["race"]["by_seeds"][1]["share_of_peak"] > 0 and found["profile"]["operators"] > 0
    assert 0 < float(found["overlay"]["measured"]) < float(found["overlay"]["bound"])
    for paper in ("fedau", "fed-norm-sgda"):
        assert 0 < found["networks"][paper]["measured"] < found["networks"][paper]["bound"]
    assert {path.name for path in tmp_path.glob("*.png")} == PICTURES


def test_a_device_that_computes_something_else_fails_and_a_part_that_breaks_is_written_down(tmp_path, monkeypatch):
    real, count = gpu.simulate, []

    def elsewhere(*given, **named):
        run = real(*given, **named)
        count.append(run)
        if "model" in run.arrays:
            run.arrays["model"][:, 1:] *= 1 + 4e-5 * (len(count) % 2)  # more than three rounds may differ in float32
        return run

    def broken(*given):
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(gpu, "simulate", elsewhere)
    monkeypatch.setattr(gpu, "PARTS", {"equality": gpu.equality, "race": broken, "profile": gpu.profiled})
    assert gpu.main(["--device", "cpu", "--tiny", "--out", str(tmp_path)]) == 1
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert not any(row["equal"] for row in found["equality"]["cases"])
    assert found["race"]["error"] == "RuntimeError: no kernel image" and "operators" in found["profile"]


def test_a_part_without_time_is_cut_off_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "PARTS", {"equality": gpu.equality, "estimate": gpu.estimate})
    assert gpu.main(["--device", "cpu", "--tiny", "--minutes", "0", "--out", str(tmp_path)]) == 1
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["equality"]["stopped"] == found["estimate"]["stopped"] == "its time was over"


def test_a_device_that_is_not_here_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert gpu.main(["--device", "cuda", "--out", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not Path(tmp_path / "none").exists()
