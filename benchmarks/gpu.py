"""What only a GPU can show, in one command under ten minutes: `python benchmarks/gpu.py --device cuda --out gpu`.

Eight parts, each with a share of the time: *equality* of runs on the device and on the processor for the algorithms of
three papers; settings *together* in one batch, and local steps *compiled* (on CUDA: recorded as a graph), each equal to
what they are without and how much faster; the *race*, FedAvg of a CNN on 28 x 28 pixels, for one seed and for many,
beside the measured peak of float32 products; a *profile* of one round; an *overlay*, a CNN's gradient norm under
Theorem 3.1 of Wang & Ji (2022); the *networks* of the galleries of FedAU and Fed-Norm-SGDA under their theorems, of
more seeds; and an *estimate* of how long their Figure 1 takes at its own size. Numbers go to `gpu.json`, pictures
beside it. A part that fails or runs out of time is written down as such, and the others go on; the exit code is 1 if
runs are not equal.

Needs torch, numpy, scipy, sympy, matplotlib, scikit-learn, pandas and xarray; fedbounds need not be installed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.data.datasets import Dataset, glyphs
from fedbounds.empirical.data.partition import Partition, majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg, GeneralizedFedAvg
from fedbounds.empirical.participation import Bernoulli, PeriodicGroups, WithoutReplacement, process_from_spec
from fedbounds.empirical.problems import ImageClassification, problem_from_spec
from fedbounds.empirical.runtime.device import device_name, full_precision, resolve_device
from fedbounds.empirical.simulation.engines import CompiledEngine
from fedbounds.empirical.simulation.simulate import JointRun, simulate, simulate_together
from fedbounds.figures.charts.networks import network_picture
from fedbounds.figures.charts.overlay import overlay
from fedbounds.figures.charts.picture import styled
from fedbounds.figures.papers.fed_norm_sgda import network as fed_norm_sgda
from fedbounds.figures.papers.fedau import network as fedau

LIMITS = {"float32": 1e-5, "float64": 1e-10}  # relative difference of the models, for each round
SHARES = {"equality": 0.2, "together": 0.1, "compiled": 0.1, "race": 0.2}
SHARES |= {"profile": 0.05, "overlay": 0.125, "networks": 0.125, "estimate": 0.1}
CHECKS = ("equality", "together", "compiled")
STEPS = {"local_step_size": 0.05, "local_steps": 3}
PLAYS = {"local_step_size": 0.02, "local_ascent_step_size": 0.02, "server_step_size": 0.05}
PLAYS |= {"server_ascent_step_size": 0.05, "local_steps": {"low": 1, "high": 3}}
MINIMIZING = [
    {"kind": "fedavg", **STEPS},
    {"kind": "generalized-fedavg", **STEPS, "server_multiplier": 1.5, "interval": 2},
    {"kind": "wait-full", **STEPS, "interval": 2},
    {"kind": "wait-for-all", "step_size": 0.05, "local_steps": 2, "interval": 2},
    {"kind": "fedau", **STEPS, "cutoff": 2},
    {"kind": "fedvarp", **STEPS},
    {"kind": "mifa", **STEPS},
]
MINIMAX = [{"kind": "fed-norm-sgda", **PLAYS}, {"kind": "fed-norm-sgda", **PLAYS, "snapshot_period": 2}]
PAPER = {"clients": 250, "participants": 10, "local_steps": 5, "rounds": 300_000, "seeds": 5, "methods": 4}


class OutOfTime(Exception):
    """The time of a part is over."""


class Clock:
    """When rounds end, on a device that may still be at work, and when there is no more time."""

    def __init__(self, device: str, until: float) -> None:
        self.device, self.until, self.done = torch.device(device), until, {}

    def now(self) -> float:
        """Seconds, once the device has done all it was told."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def progress(self, marks: tuple[int, ...]) -> Callable[[int, int], None]:
        """Notes when the rounds `marks` end, and stops a run whose time is over."""
        self.done = {}

        def end(done: int, total: int) -> None:
            if done in marks:
                self.done[done] = self.now()
            if time.perf_counter() > self.until:
                raise OutOfTime

        return end


def made_images(clients: int, each: int, side: int, device: str, network: str = "cnn") -> ImageClassification:
    """A network, a CNN by default, on random images: what they show does not matter to the clock."""
    rng, samples = np.random.default_rng(0), clients * each
    images = rng.integers(0, 256, (samples, 1, side, side), dtype=np.uint8)
    labels = rng.integers(0, 10, samples)
    data = Dataset("random", images, labels, images[:10], labels[:10], 10)
    partition = Partition(np.arange(samples) % clients, np.zeros(clients, dtype=np.int64))
    return ImageClassification(data, partition, network, device=device)


def equality(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """The largest relative difference of the models to those on the processor, by round and divided by the round."""
    rounds, rows = 6, []
    small = {"clients": 10, "batch": 8}
    quadratic = {"clients": 8, "dimension": 20, "noise": 0.1}
    minimizing = [
        {"kind": "quadratic", **quadratic},
        {"kind": "quadratic", **quadratic, "shared": False},
        {"kind": "cosine-quadratic", **quadratic},
        {"kind": "images", **small, "network": "cnn-small"},
        {"kind": "images", **small, "network": "cnn", "augmentation": ["crop"]},
    ]
    game = {"kind": "minimax-quadratic", "clients": 8, "descent_dimension": 5, "ascent_dimension": 4, "noise": 0.1}
    games = [game, {"kind": "fair-images", **small, "network": "cnn-small"}]
    cases = [(one, rule) for one in minimizing for rule in MINIMIZING] + [
        (one, rule) for one in games for rule in MINIMAX
    ]
    if tiny:
        cases = [*[(minimizing[1], rule) for rule in MINIMIZING], (minimizing[3], MINIMIZING[1]), (game, MINIMAX[1])]
    for spec, rule in cases:
        models = []
        for where in ("cpu", device):
            problem, algorithm = problem_from_spec(spec, device=where), algorithm_from_spec(rule)
            run = simulate(algorithm, problem, Bernoulli(problem.clients, 0.5), rounds, seeds=(0, 1), record_every=3,
                           record_models=True, progress=Clock(where, until).progress(()))  # fmt: skip
            models.append(run.arrays["model"].astype(np.float64))
        away = np.linalg.norm(models[1] - models[0], axis=-1) / np.linalg.norm(models[0], axis=-1).clip(1e-300)
        each = float((away[:, 1:] / run.arrays["round"][1:]).max())
        kind = str(problem.dtype).removeprefix("torch.")
        what = {"problem": spec["kind"], "network": spec.get("network"), "algorithm": rule["kind"]}
        rows.append({**what, "dtype": kind, "difference": each, "equal": each <= LIMITS[kind]})
    return {"limits": LIMITS, "equal": all(row["equal"] for row in rows), "cases": rows}


def apart(found: list[np.ndarray], expected: list[np.ndarray], rounds: int) -> dict[str, Any]:
    """The largest relative difference of models in float32, by round, and whether it is small enough."""
    away = [
        np.linalg.norm(a[0, -1] - b[0, -1]) / np.linalg.norm(b[0, -1]) for a, b in zip(found, expected, strict=True)
    ]
    each = float(max(away)) / rounds
    return {"difference": each, "equal": each <= LIMITS["float32"]}


def together(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """Settings with step sizes of their own in one batch, against each alone: equal, and how many times as fast."""
    clock, rounds, steps = Clock(device, until), 6, 2 if tiny else 10
    problem, process = made_images(100, 20, 8 if tiny else 28, device), WithoutReplacement(100, 10)
    settings = [JointRun(FedAvg(0.01 * (k + 1), steps), (0,), rounds) for k in range(2 if tiny else 16)]
    marks, seconds, models = (2, rounds - 1), [], []
    for batch in (settings, *([one] for one in settings)):
        (traces,) = simulate_together(batch, problem, process, engine="batched", record_every=rounds,
                                      record_models=True, progress=clock.progress(marks))  # fmt: skip
        models += [trace.arrays["model"] for trace in traces]
        seconds.append(clock.done[marks[1]] - clock.done[marks[0]])
    found = apart(models[: len(settings)], models[len(settings) :], rounds)
    return found | {"settings": len(settings), "times_as_fast": sum(seconds[1:]) / seconds[0]}


def compiled(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """Rounds whose local steps are compiled, or recorded as a graph, against those step by step."""
    clock, rounds, steps = Clock(device, until), 4, 2 if tiny else 10
    rows, process, backend = [], WithoutReplacement(100, 10), CompiledEngine.backend
    CompiledEngine.backend = (
        "aot_eager" if tiny else backend
    )  # it traces and splits the graph, and makes no machine code
    try:
        for network, seeds in [("mlp", 1)] if clock.device.type == "cpu" else [("mlp", 1), ("cnn", 1), ("cnn", 16)]:
            problem = made_images(100, 20, 8 if tiny or network == "mlp" else 28, device, network)
            runs = [simulate(FedAvg(0.05, steps), problem, process, rounds, seeds=range(seeds), engine=engine,
                             record_every=rounds, record_models=True, progress=clock.progress(()))
                    for engine in ("compiled", "batched")]  # fmt: skip
            models = [[run.arrays["model"]] for run in runs]
            row = apart(models[0], models[1], rounds) | {"engine": runs[0].engine}
            speeds = [rounds_per_second(clock, problem, process, steps, seeds, rounds, engine)
                      for engine in ("compiled", "batched")]  # fmt: skip
            rows.append({"network": network, "seeds": seeds, **row, "rounds_per_second": speeds})
    finally:
        CompiledEngine.backend = backend
    return {"equal": all(row["equal"] for row in rows), "cases": rows}


def peak(clock: Clock, size: int) -> float:
    """Operations a second of a float32 product, the fastest of ten."""
    factor, best = torch.ones(size, size, device=clock.device), 0.0
    with full_precision(clock.device):
        for _ in range(11):
            start = clock.now()
            factor.matmul(factor)
            best = max(best, 2 * size**3 / (clock.now() - start))
    return best


def operations(problem: ImageClassification, pairs: int, steps: int) -> float:
    """Floating-point operations of the gradients of a round, as torch counts them in one on the processor."""
    one = made_images(1, problem.batch, problem.dataset.image[1], "cpu")
    x = one.initial_point(np.random.default_rng(0))[None, None]
    with FlopCounterMode(display=False) as counter:
        one.stochastic_gradient(x, torch.zeros(1, 1, dtype=torch.int64), torch.arange(one.batch)[None, None])
    return float(counter.get_total_flops()) * pairs * steps


def rounds_per_second(
    clock: Clock, problem: ImageClassification, process, local_steps: int, seeds: int, rounds: int, engine: str = "auto"
):
    """Rounds a second of all seeds together, after some to warm up, and without the last, which is recorded."""
    warm = 2
    marks = (warm, warm + rounds)
    simulate(FedAvg(0.05, local_steps), problem, process, warm + rounds + 1, seeds=range(seeds), engine=engine,
             record_every=warm + rounds + 1, progress=clock.progress(marks))  # fmt: skip
    return rounds / (clock.done[marks[1]] - clock.done[marks[0]])


def race(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """FedAvg, 10 of 100 clients, 10 local steps, batch 16, for more and more seeds, until time or memory is over."""
    clock, side, steps = Clock(device, until), 8 if tiny else 28, 2 if tiny else 10
    problem = made_images(100, 20 if tiny else 120, side, device)
    found = {"peak": peak(clock, 256 if tiny else 2048 if device == "cpu" else 8192), "operations_a_round": None}
    found |= {"pixels": side, "local_steps": steps, "by_seeds": []}
    work = found["operations_a_round"] = operations(problem, 10, steps)
    for seeds in (1, 2) if tiny else (1, 4, 16, 64, 128):
        try:
            speed = rounds_per_second(clock, problem, WithoutReplacement(100, 10), steps, seeds, 2 if tiny else 5)
        except (OutOfTime, torch.OutOfMemoryError) as why:
            found["stopped"] = f"{seeds} seeds: {type(why).__name__}"
            break
        share = speed * seeds * work / found["peak"]
        found["by_seeds"].append({"seeds": seeds, "rounds_per_second": speed, "share_of_peak": share})
    draw_race(found, out / "race.png")
    return found


def draw_race(found: dict[str, Any], path: Path) -> None:
    """Rounds a second of all seeds together over how many there are."""
    from matplotlib.figure import Figure

    rows = found["by_seeds"]
    with styled():
        figure = Figure(figsize=(5.6, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.loglog([row["seeds"] for row in rows], [row["seeds"] * row["rounds_per_second"] for row in rows], "o-")
        axes.axhline(found["peak"] / found["operations_a_round"], linestyle="--", color="0.4")
        axes.set(xlabel="seeds together", ylabel="rounds a second, of all seeds")
        axes.set_title(f"cnn on {found['pixels']} pixels a side; dashed: at the peak of float32 products", fontsize=9)
        figure.savefig(path, dpi=150)


def profiled(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """Kernels, their time, moves of memory and gaps in one round that is not the first of its block."""
    clock, rounds = Clock(device, until), 4
    problem = made_images(100, 20, 8 if tiny else 28, device)
    cuda = clock.device.type == "cuda"
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    watch, times = profile(activities=kinds), []

    def progress(done: int, total: int) -> None:
        if done == rounds:
            clock.now()
            watch.start()
        if done in (rounds, rounds + 1):
            times.append(clock.now())
        if done == rounds + 1:
            watch.stop()

    simulate(FedAvg(0.05, 2 if tiny else 10), problem, WithoutReplacement(100, 10), rounds + 2,
             record_every=rounds + 2, progress=progress)  # fmt: skip
    events = watch.events() or []
    there = [one for one in events if one.device_type.name == "CUDA"]
    moves = [one for one in there if "memcpy" in one.name.lower()]
    busy = sum(one.time_range.elapsed_us() for one in there) / 1e6
    found = {"seconds": times[1] - times[0], "operators": sum(one.name.startswith("aten::") for one in events)}
    if cuda:
        found |= {"kernels": len(there) - len(moves), "memory_moves": len(moves), "in_kernels": busy}
        found |= {"move_names": sorted({one.name for one in moves}), "in_gaps": found["seconds"] - busy}
    averages = watch.key_averages()
    (out / "profile.txt").write_text(
        averages.table(sort_by="self_cuda_time_total" if cuda else "self_cpu_time_total", row_limit=25)
    )
    return found


def overlaid(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """Generalized FedAvg of a smooth CNN on glyphs under Theorem 3.1, its constants measured along the run."""
    large = torch.device(device).type == "cuda" and not tiny
    clients, groups = (100, 10) if large else (10, 5)
    data = glyphs(20_000 if large else 300, 2_000 if large else 100)
    partition = majority_class_partition(data.train_labels, clients, np.random.default_rng(0))
    network = "cnn-smooth" if large else "cnn-small-smooth"
    problem = ImageClassification(data, partition, network, gradient_norm=True, device=device)
    process = PeriodicGroups(clients, 10 if large else 2, 1, groups=groups)
    # so small that the theorem's condition on the step size holds with the smoothness that is measured
    algorithm, rounds = GeneralizedFedAvg(2e-4, 5 if large else 2, 1.0, groups), groups * (50 if large else 2)
    run = simulate(algorithm, problem, process, rounds, seeds=range(5 if large else 1), record_models=True,
                   record_participation=True, record_every=groups,
                   progress=Clock(device, until).progress(()))  # fmt: skip
    comparison = confront(run, "arbitrary-participation/theorem-3.1", problem=problem, participation=process)
    overlay(comparison).figure.savefig(out / "overlay.png", dpi=150)
    last = {"measured": str(comparison.measured[-1]), "bound": str(comparison.bound[-1])}
    return {"network": network, "clients": clients, "rounds": rounds, **last}


def networks(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """The settings of two galleries, with 16 seeds at once, under their theorems."""
    found = {}
    for name, own in {"fedau": fedau.NETWORKS, "fed-norm-sgda": fed_norm_sgda.NETWORKS}.items():
        setting = {**own.setting} | ({"rounds": 2, "seeds": 1, "record_every": 2} if tiny else {"seeds": 16})
        problem = problem_from_spec(setting["problem"], device=device)
        process = process_from_spec(setting["participation"])
        run = simulate(algorithm_from_spec(setting["algorithm"]), problem, process, setting["rounds"],
                       seeds=range(setting["seeds"]), record_models=True, record_participation=True,
                       record_every=setting["record_every"], progress=Clock(device, until).progress(()))  # fmt: skip
        comparison = confront(run, own.result, problem=problem, participation=process)
        network_picture(comparison, own.title, setting, own.words).save(out / f"{name}.png", force=True)
        last = {"measured": float(comparison.measured[-1]), "bound": float(comparison.bound[-1])}
        found[name] = {"rounds": setting["rounds"], "seeds": setting["seeds"], **last}
    return found


def estimate(device: str, until: float, tiny: bool, out: Path) -> dict[str, Any]:
    """How long Figure 1 of Wang & Ji (2022) takes at its own size: 28 x 28 pixels, every method as FedAvg's rounds."""
    clients, seeds = (20, 1) if tiny else (PAPER["clients"], PAPER["seeds"])
    problem = made_images(clients, 20, 8 if tiny else 28, device)  # few images, as none is evaluated
    process = WithoutReplacement(clients, PAPER["participants"])
    clock, rounds = Clock(device, until), 2 if tiny else 4
    engines = ("batched", "compiled") if clock.device.type == "cuda" else ("auto",)
    speeds = {
        name: rounds_per_second(clock, problem, process, PAPER["local_steps"], seeds, rounds, name) for name in engines
    }
    speed = max(speeds.values())
    hours = PAPER["rounds"] * PAPER["methods"] / speed / 3600
    return {**PAPER, "rounds_per_second_of_all_seeds": speeds, "hours": None if tiny else hours}


PARTS = {
    "equality": equality,
    "together": together,
    "compiled": compiled,
    "race": race,
    "profile": profiled,
    "overlay": overlaid,
    "networks": networks,
    "estimate": estimate,
}


@contextmanager
def written_down(found: dict[str, Any], name: str) -> Iterator[None]:
    """A part that fails is a line of the record."""
    try:
        yield
    except OutOfTime:
        found[name] = {"stopped": "its time was over"}
    except Exception as why:
        found[name] = {"error": f"{type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}"}
        found[name]["where"] = traceback.format_exc().splitlines()[-3:]


def main(arguments: list[str] | None = None) -> int:
    """All parts, one after another; 1 if runs on the device are not those on the processor."""
    parser = argparse.ArgumentParser(description="What only a GPU can show.")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:i")
    parser.add_argument("--tiny", action="store_true", help="small problems, to try the command itself")
    parser.add_argument("--out", default="gpu", help="folder for gpu.json and the pictures")
    parser.add_argument("--minutes", type=float, default=9.0, help="for everything together")
    given = parser.parse_args(arguments)
    try:
        device = resolve_device(given.device, network=True)
    except ValueError as why:
        print(why, file=sys.stderr)
        return 2
    out, start = Path(given.out), time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        "device": device_name(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    found |= {"tiny": given.tiny}
    left = 1.0
    for name, part in PARTS.items():
        begun = time.perf_counter()
        until = begun + (given.minutes * 60 - (begun - start)) * SHARES[name] / left  # what one leaves, others have
        left -= SHARES[name]
        with written_down(found, name):
            found[name] = part(device, until, given.tiny, out)
        found[name]["seconds_taken"] = time.perf_counter() - begun
        outcome = found[name].get("error") or found[name].get("stopped") or "done"
        print(f"{name:10s} {found[name]['seconds_taken']:7.1f} s  {outcome}", file=sys.stderr, flush=True)
        (out / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(found[name].get("equal") for name in CHECKS if name in PARTS) else 1


if __name__ == "__main__":
    sys.exit(main())
