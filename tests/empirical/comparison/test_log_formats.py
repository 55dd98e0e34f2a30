"""Logs of other tools: each format in its own layout, the dialects of CSV files, and files that are no logs."""

from __future__ import annotations

import json
import re
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedbounds as fb
from fedbounds.bounds.errors import FedboundsError, MissingExtra
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.log_formats.log import guess_metrics, guess_round
from fedbounds.empirical.comparison.log_formats.registry import FORMATS
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.simulation.trace import Trace

FEDAVG = {"kind": "fedavg", "local_step_size": 0.05, "local_steps": 3}
# local SGD whose steps fall, of which a theorem bounds f(x_T) - f*
FALLING = {"kind": "fedmrn-analysis", "local_step_size": 0.125, "local_steps": 2, "operator": "sparsifier", "keep": 1.0,
           "step_shift": 15.0}  # fmt: skip
GIVEN = {"L": 2.0, "sigma": 0.0, "G": 12.0, "Gamma": 11.0, "Delta1": 13.0}
GAP = "fedmrn/theorem-1"
N = 3
LOSSES = [2.5, 1.75, 1.25, 1.0, 0.875]
ACCURACIES = [0.1, 0.3, 0.4, 0.45, 0.5]


def wandb(runs: dict[str, list[float]], metric: str = "Train/Loss") -> str:
    """A panel's export; None is a gap."""
    names = [f"{run} - {metric}{end}" for run in runs for end in ("", "__MIN", "__MAX")]
    lines = [",".join(f'"{name}"' for name in ("Step", *names))]
    for t, values in enumerate(zip(*runs.values(), strict=True)):
        cells = [str(t), *("" if v is None else str(v) for v in values for _ in range(3))]
        lines.append(",".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines) + "\n"


def history(first: int = 0) -> dict[str, Any]:
    rounds = range(len(LOSSES))
    return {
        "losses_distributed": [[t, LOSSES[t] + 0.1] for t in rounds if t],
        "losses_centralized": [[t, LOSSES[t]] for t in rounds if t >= first],
        "metrics_distributed_fit": {"train_loss": [[t, LOSSES[t - 1] - 0.2] for t in rounds if t]},
        "metrics_distributed": {},
        "metrics_centralized": {"accuracy": [[t, ACCURACIES[t]] for t in rounds]},
    }


def printed_history(prefix: str = "") -> str:
    lines = ["History (loss, distributed):", *(f"\tround {t}: {LOSSES[t] + 0.1}" for t in range(1, 5))]
    lines += ["History (loss, centralized):", *(f"\tround {t}: {LOSSES[t]}" for t in range(5))]
    lines += ["History (metrics, centralized):", f"{{'accuracy': [(0, {ACCURACIES[0]}),"]
    lines += [f"              ({t}, {ACCURACIES[t]}){']}' if t == 4 else ','}" for t in range(1, 5)]
    return "".join(f"{prefix}{line}\n" for line in lines)


def result() -> dict[str, Any]:
    """What a new Flower server returns."""
    server = {str(t): {"loss": LOSSES[t], "accuracy": ACCURACIES[t], "note": "text"} for t in range(5)}
    return {
        "train_metrics_clientapp": {str(t): {"train_loss": 9.0} for t in range(1, 5)},
        "evaluate_metrics_serverapp": server,
    }


def printed_result() -> str:
    server = ",\n  ".join(f"{t}: {{'accuracy': '{ACCURACIES[t]:e}', 'loss': '{LOSSES[t]:e}'}}" for t in range(5))
    return (
        "INFO :      Aggregated ClientApp-side Train Metrics:\nINFO :      { 1: {'train_loss': '9.0e+00'}}\n"
        f"INFO :      \nINFO :      ServerApp-side Evaluate Metrics:\nINFO :      {{ {server}}}\nINFO :      \n"
    )


def lines(*rows: Any, sep: str = ",") -> str:
    return "".join(f"{sep.join(map(str, row))}\n" for row in rows)


def leaf() -> str:
    """Three clients with 1, 2 and 3 samples, whose losses differ by their numbers of samples."""
    rows: list[tuple[Any, ...]] = [("client_id", "round_number", "hierarchy", "num_samples", "set", "accuracy", "loss")]
    for t, loss in enumerate(LOSSES):
        for n, client in enumerate(("f_a", "f_b", "f_c")):
            rows += [(client, t, "", n + 1, part, ACCURACIES[t], loss + n - 1) for part in ("train", "test")]
    return lines(*rows)


LIGHTNING = lines(
    ("epoch", "step", "train_loss_epoch", "train_loss_step", "val_loss"),
    *(row for t in range(5) for row in [(t, 9, "", 7.0, ""), (t, 9, "", "", 3.0), (t, 9, LOSSES[t], "", "")]),
)
STEPS = list(enumerate(LOSSES))

# name of the file, its content, what is given beside the number of clients
READ: list[tuple[str, str, dict[str, Any]]] = [
    ("history.json", json.dumps(history()), {}),
    ("history.txt", printed_history(), {}),
    ("server.log", "INFO :      run finished\n" + printed_history("INFO :      "), {}),
    ("result.json", json.dumps(result()), {}),
    ("result.log", printed_result(), {}),
    ("run-r1-tag-Train_Loss.csv", lines(("Wall time", "Step", "Value"), *((1.5, t, v) for t, v in STEPS)), {}),
    ("board.csv", lines(("Wall time", "Step", "Value"), *((1.5, t, v) for t, v in STEPS)),
     {"columns": {"train_loss": "Value"}}),
    ("wandb.csv", wandb({"only": LOSSES}), {}),
    ("fedml.csv", wandb({"fedml-run": LOSSES}).replace("Step", "Round"), {}),
    ("leaf/metrics_stat.csv", leaf(), {}),
    ("pfl.csv", lines(("central_iteration", "Central val | loss", "Train population | loss before local training",
                       "Train population | loss after local training"),
                      *((t, "" if t % 2 else 5.0, v, v - 0.1) for t, v in STEPS)), {}),
    ("fl-bench.csv", lines(("epoch", "accuracy_test_before", "accuracy_test_after", "loss_train_before"),
                           *((t, ACCURACIES[t], ACCURACIES[t] + 1, v) for t, v in STEPS)), {}),
    ("train_loss", lines(*((1700000000000 + t, v, t) for t, v in STEPS), sep=" "), {}),  # MLflow
    ("plain.csv", lines(("round", "train_loss"), *STEPS), {}),
    ("pandas.csv", lines(("", "round", "train_loss"), *((9 - t, t, v) for t, v in STEPS)), {}),
    ("excel.csv", "\ufeffsep=;\r\n" + lines(("Runde", "Verlust", "Notiz"), *((t, str(v).replace(".", ","), "a, b")
     for t, v in STEPS), sep=";"), {"columns": {"round": "Runde", "train_loss": "Verlust"}}),
    ("keras.csv", lines(("epoch", "accuracy", "loss", "val_loss"), *((t, 0.5, v, "NA") for t, v in STEPS)),
     {"columns": {"round": "epoch", "train_loss": "loss"}}),
    ("lightning.csv", LIGHTNING, {"columns": {"round": "epoch", "train_loss": "train_loss_epoch"}}),
    ("aim.csv", lines(("Run", "Metric", "Context", "Value", "Step"), *(("r", "loss", "train", v, t) for t, v in STEPS)),
     {"columns": {"round": "Step", "seed": "Run", "train_loss": "loss"}}),
    ("long.tsv", lines(("round", "variable", "value"), *((t, m, v + a) for t, v in STEPS
     for m, a in (("train_loss", 0), ("test_loss", 1))), sep="\t"), {}),
    ("nvflare.csv", lines(("site", "current_round", "global_loss"), *(("server", t + 1, v) for t, v in STEPS)),
     {"columns": {"round": "current_round", "train_loss": "global_loss"}, "first_round": 1}),
    ("fedscale.csv", lines(("round", "virtual_clock", "top_1", "loss"), *((t, 3.5 * t, 10, v) for t, v in STEPS)),
     {"columns": {"train_loss": "loss"}}),
]  # fmt: skip


def read(path: Path, **more: Any) -> Trace:
    return read_log(path, FALLING, "full", clients=N, **more)


def write(place: Path, name: str, content: str) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


@pytest.fixture(scope="module")
def compared():
    """The comparison of the same run, whose log is given as arrays."""
    log = {"round": np.arange(5), "train_loss": LOSSES}
    return confront(read_log(log, FALLING, "full", clients=N, f_min=0.5), GAP, given=GIVEN)


@pytest.mark.parametrize(("name", "content", "more"), READ, ids=[name for name, *_ in READ])
def test_the_log_of_each_tool_is_compared_with_a_theorem(name, content, more, tmp_path, compared):
    trace = read(write(tmp_path, name, content), f_min=0.5, **more)
    np.testing.assert_allclose(trace.train_loss, [LOSSES], rtol=1e-6)
    assert trace.round.tolist() == [0, 1, 2, 3, 4] and trace.spec["rounds"] == 4
    found = confront(trace, GAP, given=GIVEN)
    np.testing.assert_allclose(found.measured, compared.measured, rtol=1e-6)
    np.testing.assert_array_equal(found.bound, compared.bound)
    assert not found.guarantee and "made elsewhere" in found.why_not[0]


@pytest.mark.parametrize(("name", "content", "more"), READ, ids=[name for name, *_ in READ])
def test_a_log_of_which_the_half_is_missing_is_shorter_or_one_line(name, content, more, tmp_path):
    path = write(tmp_path, name, content[: len(content) // 2])
    try:
        trace = read(path, **more)
    except FedboundsError as error:
        assert "\n" not in str(error)
    else:
        assert len(trace.round) < 5


def test_metrics_that_were_asked_for_are_read(tmp_path):
    path = write(tmp_path, "history.json", json.dumps(history()))
    both = read(path, columns={"test_accuracy": "metrics_centralized.accuracy", "train_loss": "losses_centralized"})
    assert both.test_accuracy.tolist() == [ACCURACIES] and both.train_loss.tolist() == [LOSSES]
    with pytest.raises(
        FedboundsError, match=r"it is \[1.0, 2.0, 3.0, 4.0\]; give first_round=1 to begin with the model of"
    ):
        read(path, columns={"train_loss": "losses_distributed"})
    later = read(path, columns={"train_loss": "losses_distributed"}, first_round=1)
    assert later.round.tolist() == [0, 1, 2, 3] and later.train_loss[0, 0] == LOSSES[1] + 0.1
    alone = read(
        write(tmp_path, "h.json", json.dumps({"losses_distributed": history()["losses_distributed"]})), first_round=1
    )
    assert alone.train_loss.tolist() == later.train_loss.tolist()
    assert "train_loss is losses_distributed; a loss on test data is not the f" in alone.spec["log"]["notes"][0]
    with pytest.raises(FedboundsError, match="unknown column 'losses_central'; did you mean losses_centralized"):
        read(path, columns={"train_loss": "losses_central"})


def test_runs_of_a_panel_are_seeds_with_their_common_rounds(tmp_path):
    sparse = [LOSSES[0] + 1, None, LOSSES[2] + 1, None, LOSSES[4] + 1]
    trace = read(write(tmp_path, "wandb.csv", wandb({"a - 1": LOSSES, "b": sparse})))
    assert trace.train_loss.tolist() == [LOSSES[::2], [v + 1 for v in LOSSES[::2]]]
    assert trace.round.tolist() == [0, 2, 4] and trace.seed.tolist() == [0, 1]
    notes = trace.spec["log"]["notes"]
    assert "read the 3 rounds that have train_loss of all 2 runs, of 5 in the log" in notes
    assert "the runs are seeds: 0 = a - 1, 1 = b" in notes
    for end in ("__MIN", "__MAX"):
        with pytest.raises(FedboundsError, match=f"unknown column 'Train/Loss{end}'"):
            read(tmp_path / "wandb.csv", columns={"train_loss": f"Train/Loss{end}"})
    compared = confront(read(tmp_path / "wandb.csv", f_min=0), GAP, given=GIVEN)
    assert set(notes) <= set(compared.notes)


def test_columns_may_be_one_for_each_run(tmp_path):
    path = write(tmp_path, "wide.csv", lines(("Step", "loss-1", "loss-2"), *((t, v, v + 1) for t, v in STEPS)))
    trace = read(path, columns={"round": "Step", "train_loss": ["loss-1", "loss-2"]})
    assert trace.train_loss.tolist() == [LOSSES, [v + 1 for v in LOSSES]]
    with pytest.raises(FedboundsError, match="run 'loss-2' lacks test_loss or train_loss; give columns="):
        read(path, columns={"round": "Step", "train_loss": ["loss-1", "loss-2"], "test_loss": ["loss-1"]})


def test_a_metric_that_lacks_rounds_is_left_out_unless_it_is_chosen(tmp_path):
    path = write(
        tmp_path,
        "log.csv",
        lines(("round", "train_loss", "test_loss"), *((t, v, "NA" if t % 2 else v) for t, v in STEPS)),
    )
    trace = read(path)
    assert trace.train_loss.tolist() == [LOSSES] and "test_loss" not in trace.metrics
    assert trace.spec["log"]["notes"] == [
        "test_loss lacks rounds of train_loss and is not read; columns= can choose it"
    ]
    both = read(path, columns={"train_loss": "train_loss", "test_loss": "test_loss"})
    assert both.round.tolist() == [0, 2, 4] and both.test_loss.tolist() == [LOSSES[::2]]


# --- LEAF -------------------------------------------------------------------------------------------------------------

SYSTEM = lines(
    ("client_id", "round_number", "hierarchy", "num_samples", "bytes_written", "bytes_read", "local_computations"),
    *((client, t, "", n, 1, 1, 1) for t, client, n in [
        (1, "f_b", 2), (1, "f_c", 3), (2, "f_a", 1), (4, "f_c", 3), (4, "f_a", 1)]),
)  # fmt: skip
TAKEN = [[0, 0.4, 0.6], [1, 0, 0], [0, 0, 0], [0.25, 0, 0.75]]


def test_leaf_weights_clients_by_1_over_n_and_participants_by_samples(tmp_path):
    stat, system = write(tmp_path, "metrics_stat.csv", leaf()), write(tmp_path, "metrics_sys.csv", SYSTEM)
    trace = read_log(stat, FEDAVG, system)
    np.testing.assert_allclose(trace.participation(0), TAKEN)
    assert trace.train_loss.tolist() == [LOSSES] and trace.empty_rounds.tolist() == [1]
    assert "train_loss is the mean over clients with weight 1/N" in trace.spec["log"]["notes"][0]
    assert trace.spec["log"]["files"] == [stat.name, system.name]
    other = read_log(
        stat, FEDAVG, system, columns={"train_loss": "train_loss_by_samples", "test_accuracy": "test_accuracy"}
    )
    np.testing.assert_allclose(other.train_loss, [np.array(LOSSES) + 1 / 3])  # (-1 + 2*0 + 3*1)/6
    np.testing.assert_allclose(other.test_accuracy, [ACCURACIES])
    later = read_log(stat, FEDAVG, system, first_round=1)
    np.testing.assert_allclose(later.participation(0), TAKEN[1:])
    full = read_log(stat, FEDAVG, "full")  # the log has the number of clients
    assert full.spec["clients"] == 3


def test_the_record_of_leaf_belongs_to_any_log_and_needs_the_clients_then(tmp_path):
    system, log = write(tmp_path, "metrics_sys.csv", SYSTEM), {"round": range(5), "train_loss": LOSSES}
    with pytest.raises(FedboundsError, match="lists participants only: give clients=N, the number of all clients"):
        read_log(log, FEDAVG, system)
    np.testing.assert_allclose(read_log(log, FEDAVG, system, clients=4).participation(0)[0], [0, 0.4, 0.6, 0])
    with pytest.raises(FedboundsError, match="ends with round 4, before the first round, 10"):
        read_log({"round": [9], "train_loss": [1.0]}, FEDAVG, system, clients=4, first_round=9)
    with pytest.raises(FedboundsError, match="has 3 clients, and clients = 2; give clients=3 or more"):
        read_log(log, FEDAVG, system, clients=2)
    stat = write(tmp_path, "metrics_stat.csv", leaf().replace("f_b", "other"))
    with pytest.raises(FedboundsError, match=r"client .f_b. is not one of the 3 clients"):
        read_log(stat, FEDAVG, system)


def test_a_mean_over_clients_needs_every_client(tmp_path):
    content = "".join(line for line in leaf().splitlines(True) if not line.startswith("f_b,2,,2,train"))
    with pytest.raises(
        FedboundsError, match="set train of round 2 has 2 lines; a mean needs one of each of the 3 clients"
    ):
        read_log(write(tmp_path, "metrics_stat.csv", content), FEDAVG, "full")
    fewer = "".join(line for line in leaf().splitlines(True) if ",test," not in line or not line.startswith("f_b"))
    assert read_log(write(tmp_path, "metrics_stat.csv", fewer), FEDAVG, "full").train_loss.tolist() == [LOSSES]
    with pytest.raises(FedboundsError, match=r"line 2: num_samples = '-1' must be a whole number of at least 0"):
        read_log(write(tmp_path, "metrics_stat.csv", leaf().replace("f_a,0,,1", "f_a,0,,-1")), FEDAVG, "full")


# --- binary formats, by stand-ins for the packages that read them, and by these where they are installed -------------


def event_file(events: list[Any]) -> bytes:
    """Records with their lengths; the stand-in for the package does not look inside."""
    records = [json.dumps(event).encode() for event in events]
    return b"".join(struct.pack("<Q", len(record)) + bytes(4) + record + bytes(4) for record in records)


@pytest.fixture
def tensorboard(monkeypatch):
    """A stand-in for the two modules of tensorboard that are used."""

    class Value(SimpleNamespace):
        def HasField(self, name: str) -> bool:
            return name in vars(self)

    class Loader:
        def __init__(self, path: str) -> None:
            self.content = Path(path).read_bytes()

        def Load(self):
            at = 0
            while at < len(self.content):
                size = int.from_bytes(self.content[at : at + 8], "little")
                record = self.content[at + 12 : at + 12 + size]
                at += 16 + size
                if record == b"damaged":
                    return
                step, values = json.loads(record)
                yield SimpleNamespace(step=step, summary=SimpleNamespace(value=[Value(**value) for value in values]))

    names = ["tensorboard", "tensorboard.backend", "tensorboard.backend.event_processing",
             "tensorboard.backend.event_processing.event_file_loader", "tensorboard.util",
             "tensorboard.util.tensor_util"]  # fmt: skip
    modules = {name: ModuleType(name) for name in names}
    modules[names[3]].EventFileLoader = Loader  # pyright: ignore[reportAttributeAccessIssue]
    modules[names[5]].make_ndarray = np.asarray  # pyright: ignore[reportAttributeAccessIssue]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def scalars(values: list[float]) -> list[Any]:
    """A version, then a tensor and a simple value in each step."""
    steps = [
        [t, [{"tag": "loss", "tensor": [v]}, {"tag": "accuracy", "simple_value": 0.5}]] for t, v in enumerate(values)
    ]
    return [[0, []], [0, [{"tag": "histogram", "tensor": [1.0, 2.0]}]], *steps]


def test_scalars_of_an_event_file_are_read(tensorboard, tmp_path, compared):
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(event_file(scalars(LOSSES)))
    trace = read(path, f_min=0.5)
    assert trace.train_loss.tolist() == [LOSSES] and trace.test_accuracy.tolist() == [[0.5] * 5]
    np.testing.assert_array_equal(confront(trace, GAP, given=GIVEN).bound, compared.bound)


@pytest.mark.parametrize(("content", "message"), [
    (event_file(scalars(LOSSES))[:-5], "its end is missing; copy it when the run has ended"),
    (b"no event file at all, but text", "is no event file"),
    (event_file([[0, []]]), "holds no scalars"),
    (b"", "holds no scalars"),
    (event_file(scalars(LOSSES)) + struct.pack("<Q", 7) + bytes(4) + b"damaged" + bytes(4), "7 of its 8 records can"),
    (event_file([[0, 3]]), "is damaged or no event file"),
])  # fmt: skip
def test_event_files_that_are_damaged_are_one_line(tensorboard, tmp_path, content, message):
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(content)
    with pytest.raises(FedboundsError, match=message) as refused:
        read(path)
    assert "\n" not in str(refused.value)


def real_event_file(place: Path) -> bytes:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(place / "board")) as writer:
        for t, loss in STEPS:
            writer.add_scalar("loss/train", loss, t)
    (path,) = (place / "board").iterdir()
    return path.read_bytes()


def test_real_event_files_are_read(tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "events.out.tfevents.1.host").write_bytes(real_event_file(tmp_path))
    assert read(tmp_path / "events.out.tfevents.1.host").train_loss.tolist() == [LOSSES]


def test_results_of_pfllib_are_read(monkeypatch, tmp_path):
    path, arrays = write(tmp_path, "MNIST_FedAvg.h5", "\x89HDF"), {"rs_train_loss": LOSSES, "rs_test_acc": ACCURACIES}
    h5py = ModuleType("h5py")
    held = {**arrays, "rs_all": [[1.0]], "other": LOSSES}

    class File(dict[str, Any]):
        def __init__(self, file: Any, mode: str) -> None:
            if file.read(1) != b"\xc2":
                raise OSError("Unable to open file\n(truncated)")
            super().__init__(held)

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            pass

    h5py.File = File  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "h5py", h5py)
    trace = read(path)
    assert trace.train_loss.tolist() == [LOSSES] and trace.test_accuracy.tolist() == [ACCURACIES]
    assert trace.spec["log"]["notes"][0].startswith("one value for each round is taken, as with eval_gap = 1; losses")
    with pytest.raises(FedboundsError, match=r"damaged or no HDF5 file: Unable to open file \(truncated\)"):
        read(write(tmp_path, "short.h5", ""))


def test_real_results_of_pfllib_are_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "MNIST_FedAvg.h5", "w") as file:
        file["rs_train_loss"] = LOSSES
    assert read(tmp_path / "MNIST_FedAvg.h5").train_loss.tolist() == [LOSSES]
    (tmp_path / "half.h5").write_bytes((tmp_path / "MNIST_FedAvg.h5").read_bytes()[:300])
    with pytest.raises(FedboundsError, match="damaged or no HDF5 file"):
        read(tmp_path / "half.h5")


@pytest.mark.parametrize(("name", "module"), [("a.tfevents.1", "tensorboard"), ("a.h5", "h5py")])
def test_a_package_that_is_missing_is_named_with_what_installs_it(name, module, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.setitem(sys.modules, loaded, None)
    with pytest.raises(MissingExtra, match=rf"{module} is not installed; run: pip install 'fedbounds\[logs\]'"):
        read(write(tmp_path, name, ""))


# --- the page of the documentation -----------------------------------------------------------------------------------

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "your-run.md").read_text(encoding="utf-8")
CALLS = re.findall(r"^\|.*`(fb\.read_log\(.*\))` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_of_the_page_reads_the_log_of_its_tool(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content, _ in READ:
        write(tmp_path, name, content)
    write(tmp_path, "log.csv", lines(("round", "train_loss"), *STEPS))
    write(tmp_path, "leaf/metrics_sys.csv", SYSTEM)
    if ".h5" in call:
        with pytest.importorskip("h5py").File("MNIST_FedAvg.h5", "w") as file:
            file["rs_train_loss"] = LOSSES
    if "tfevents" in call:
        pytest.importorskip("tensorboard")
        Path("events.out.tfevents.1.host").write_bytes(real_event_file(tmp_path))
    trace = eval(call, {"fb": fb, "algorithm": FEDAVG})
    np.testing.assert_allclose(trace.train_loss, [LOSSES], rtol=1e-6)


def test_the_page_has_a_call_for_every_format():
    named = (
        "tfevents",
        ".h5",
        "history.json",
        "train_loss",
        "leaf/",
        "wandb",
        "tag-",
        "pfl.csv",
        "fl-bench",
        "log.csv",
    )
    assert len(named) == len(FORMATS) and len(CALLS) == len(set(CALLS)) == 15
    assert all(any(name in call.split(",")[0] for call in CALLS) for name in named)


def test_the_conversion_of_the_page_reads_the_history_of_fedscale(tmp_path, monkeypatch):
    import pickle

    monkeypatch.chdir(tmp_path)
    perf = {t: {"round": t, "clock": 3.5, "top_1": 10.0 * t, "top_5": 1.0, "loss": v, "test_len": 9} for t, v in STEPS}
    (tmp_path / "testing_perf").write_bytes(pickle.dumps({"data_set": "femnist", "perf": perf}))
    (code,) = re.findall(r"```py\n(import csv\n.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/your-run.md", "exec"), {})
    assert read(tmp_path / "fedscale.csv").test_loss.tolist() == [LOSSES]


# --- dialects of CSV files -------------------------------------------------------------------------------------------

numbers = st.floats(-1e6, 1e6, allow_nan=False)


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.lists(st.none() | numbers, min_size=3, max_size=3), min_size=1, max_size=6),
    separator=st.sampled_from(",;\t"),
    comma=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    quoted=st.booleans(),
    blank=st.booleans(),
    order=st.permutations(range(3)),
)
def test_every_dialect_reads_the_same_numbers(
    tmp_path_factory, values, separator, comma, mark, ending, quoted, blank, order
):
    """Three runs by lines or columns, in any order, with gaps."""

    def cell(value: Any) -> str:
        text = "" if value is None else repr(value) if isinstance(value, float) else str(value)
        text = text.replace(".", ",") if comma and separator != "," else text
        return f'"{text}"' if quoted else text

    place = tmp_path_factory.mktemp("dialects")
    long = [["step", "run", "loss"], *([t, 7 + run, row[run]] for t, row in enumerate(values) for run in order)]
    wide = [
        ["step", *(f"loss {7 + run}" for run in order)],
        *([t, *(row[run] for run in order)] for t, row in enumerate(values)),
    ]
    for table, columns in (
        (long, {"round": "step", "seed": "run", "train_loss": "loss"}),
        (wide, {"round": "step", "train_loss": [f"loss {7 + run}" for run in order]}),
    ):
        text = (ending * 2 if blank else ending).join(separator.join(map(cell, row)) for row in table)
        path = write(place, "log.csv", mark + text + ending)
        runs = [run for run in order if any(row[run] is not None for row in values)]
        kept = [t for t, row in enumerate(values) if None not in [row[run] for run in runs]]
        if not runs or not kept or kept[0] or (len(runs) < 3 and "seed" not in columns):
            with pytest.raises(FedboundsError) as refused:
                read(path, columns=columns)
            assert "\n" not in str(refused.value)
            continue
        trace = read(path, columns=columns)
        assert trace.round.tolist() == kept
        found = dict(zip(trace.seed.tolist(), trace.train_loss.tolist(), strict=True))
        names = [7 + run for run in runs] if "seed" in columns else range(3)
        assert found == {name: [values[t][run] for t in kept] for name, run in zip(names, runs, strict=True)}
        notes = " ".join(trace.spec["log"]["notes"])
        assert ("runs without train_loss are not read" in notes) == (len(runs) < 3)


def test_a_record_of_weights_may_have_decimal_commas(tmp_path):
    weights = write(tmp_path, "weights.csv", "0,5;0,5;0\n0,25;0;0,75\n")
    trace = read_log({"round": [0, 1, 2], "train_loss": [3, 2, 1]}, FEDAVG, weights)
    assert trace.participation(0).tolist() == [[0.5, 0.5, 0], [0.25, 0, 0.75]]


WRONG: list[tuple[str, str, str, dict[str, Any]]] = [
    ("log.csv", "", "holds no rounds; expected a line of names", {}),
    ("log.csv", "round,train_loss\n", "holds no rounds", {}),
    ("log.csv", "round,train_loss\n0,2\n1", "line 3: 1 cells, the first line has 2", {}),
    ("log.csv", "round,train_loss\n0,2\n0,1\n", "line 3: train_loss has two values in round 0; choose", {}),
    ("log.csv", "round,train_loss\n0,2\n2,1\n1,1\n", "line 4: round 1 comes after round 2; rounds must rise: sort", {}),
    ("log.csv", "round,train_loss\n0,2\n,1\n", "line 3: train_loss has a value, and its round is empty", {}),
    ("log.csv", "round,train_loss\n0,2\n1,inf\n", "line 3: train_loss = inf is not finite", {}),
    ("log.csv", "round,train_loss\n0,2\nnan,2\n", "line 3: round = nan is not finite", {}),
    ("log.csv", "round,train_loss\n0,2\n0.5,2\n", "round must begin with 0 and rise, in whole numbers", {}),
    ("log.csv", "round,train_loss\n0,2\n1e9,2\n1e300,1\n", "needs about .* GiB of memory", {}),
    ("log.csv", "round,name\n0,a\n", "line 2: name = 'a' is not a number; columns= leaves it out", {}),
    ("log.csv", "round;train_loss\n0;2,5\n1;1.5\n", "line 3 has decimal points, and line 2 decimal commas", {}),
    ("log.csv", "round,train_loss\n0,\n", "which of its metrics is which", {}),
    ("log.csv", "a,b\n0,1\n", "unknown column 'c'; known: a, b", {"columns": {"round": "a", "x": "c"}}),
    ("log.csv", "a,b\n0,\n", "column b is empty; choose another one", {"columns": {"round": "a", "x": "b"}}),
    ("log.csv", "step,x,y\n0,1,2\n", r"no column is named round; it has 'step', 'x', 'y'; give columns="
     r"{'round': 'step', 'train_loss': 'x'}", {}),
    ("log.csv", "Epoch,Train/Loss,Val acc\n0,1,2\n", r"give columns={'round': 'Epoch', 'train_loss': 'Train/Loss', "
     "'test_accuracy': 'Val acc'}", {}),
    ("log.csv", "key,value,step\nloss,1,0\n", r"give columns={'round': 'step', 'train_loss': 'loss'}", {}),
    ("log.csv", "round,train_loss\n0,1\n", "unknown format 'flowr'; did you mean flower", {"format": "flowr"}),
    ("log.csv", "round,train_loss\n0,1\n", "is not the history of a Flower server: it has no heading such as History",
     {"format": "flower"}),
    ("log.csv", "round,train_loss\n0,1\n", r"expected columns Step and '<run> - <metric>'; it has 'round'",
     {"format": "wandb"}),
    ("log.csv", "round,train_loss\n0,1\n", "line 1: expected `timestamp value step`, not 'round", {"format": "mlflow"}),
    ("log.csv", "Step,a - x\n0,1\n", r"which of its metrics is which\? It has 'x'; give columns={'train_loss': 'x'}",
     {"format": "wandb"}),
    ("log.json", '{"a": 1}', r"unknown format of a log, '{\"a\": 1}'; give format=, one of tensorboard, pfllib", {}),
    ("log.json", '{"history": {"losses_distributed": []}}', "it has no attribute such as losses_centralized", {}),
    ("log.json", '{"losses_distributed": [[1, 2], [2', "is not the history of a Flower server: Expecting", {}),
    ("log.json", '{"losses_distributed": [[1, 2], 3]}', "is not the history of a Flower server: ", {}),
    ("log.json", '{"losses_distributed": [[1, NaN]]}', "losses_distributed = nan is not finite", {}),
    ("log.json", '{"losses_distributed": ' + "[" * 100_000, "is not the history of a Flower server: ", {}),
    ("log.txt", "History (metrics, centralized):\n{'a': " + "[" * 5000 + "}", "is not the history of a Flower", {}),
    ("log.txt", "History (metrics, centralized):\n{'a': __import__('os')}", "is not the history of a Flower", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message", "more"), WRONG)
def test_files_that_are_no_logs_are_one_line(name, content, message, more, tmp_path):
    with pytest.raises(FedboundsError, match=message) as refused:
        read(write(tmp_path, name, content), **more)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_binary_and_large_files_and_folders_are_one_line(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_bytes(bytes(range(256)))
    with pytest.raises(FedboundsError, match="not a text file in UTF-8"):
        read(tmp_path / "log.csv")
    with pytest.raises(FedboundsError, match=r"the folder .* has no event files of TensorBoard"):
        read(tmp_path)
    with pytest.raises(FedboundsError, match=r"cannot read the log .*: No such file"):
        read(tmp_path / "nothing.csv")
    monkeypatch.setattr("fedbounds.empirical.comparison.log_formats.registry.LARGEST", 10)
    with pytest.raises(FedboundsError, match="256 bytes, at most 10 are read"):
        read(tmp_path / "log.csv")


def test_guesses_prefer_what_a_theorem_is_about():
    assert guess_round(["time", "_step", "server_round"]) == "server_round" and guess_round(["x"]) is None
    assert guess_metrics(["val_loss", "loss", "grad_norm", "grad_norm_sq"])["gradient_norm_squared"] == "grad_norm_sq"
    assert guess_metrics(["loss/val", "loss/train"]) == {"train_loss": "loss/train", "test_loss": "loss/val"}
    assert guess_metrics(["a"]) == {}
