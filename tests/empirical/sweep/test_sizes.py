"""Files and settings that are too large are refused by their numbers, before memory or time is spent on them."""

import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.comparison.read_log import read_log
from fedbounds.empirical.participation import Bernoulli, Recorded, WithoutReplacement
from fedbounds.empirical.problems import ModelOnData
from fedbounds.empirical.problems.spec import problem_from_spec
from fedbounds.empirical.runtime import array_files

MANY = 10**6  # clients
FEDAVG = {"kind": "fedavg", "local_step_size": 0.1, "local_steps": 5}
LOG = {"round": [0, 1, 2], "gradient_norm_squared": [4.0, 1.0, 0.5]}


def halves(clients: int) -> np.ndarray:
    weights = np.zeros((2, clients))
    for t in range(2):
        weights[t, t::2] = 2 / clients
    return weights


def test_a_log_of_a_million_clients_is_held_against_a_theorem() -> None:
    run = read_log(LOG, FEDAVG, participation=halves(MANY))
    known = {"L": 1, "F": 4, "sigma": 0, "beta": 0, "nu": 1, "delta": 0}
    found = confront(run, "arbitrary-participation/theorem-3.1", given=known)
    assert found.rounds.tolist() == [1, 2] and found.measured.tolist() == [4.0, 1.0]
    record = Recorded(halves(MANY))
    assert record.variance(0).shape == (MANY,) and not record.variance(0).any()


@pytest.mark.parametrize("moment", ["covariance", "window_covariance"])
@pytest.mark.parametrize(
    "process", [Recorded(halves(MANY)), Bernoulli(MANY, 0.5), WithoutReplacement(MANY, 10)], ids=lambda p: p.kind
)
def test_moments_over_all_pairs_of_a_million_clients_are_refused(process, moment: str) -> None:
    with pytest.raises(FedboundsError, match=r"all pairs of clients = 1000000 needs about .* GiB of memory; this"):
        getattr(process, moment)(0, 1)


def test_gradients_of_a_million_clients_are_refused() -> None:
    gradients = np.zeros((3, MANY, 1))
    with pytest.raises(FedboundsError, match=r"products of clients = 1000000 gradients in 3 records needs about"):
        read_log({**LOG, "gradients": gradients}, FEDAVG, participation=halves(MANY))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((3, 50, 10_000), r"gradients has shape \(3, 50, 10000\); expected \(3, 10, d\)"),
        ((4, 10, 10_000), "gradients has 4 lines, round has 3"),
        ((3, 10), r"gradients has shape \(3, 10\)"),
    ],
)
def test_a_log_of_a_wrong_shape_is_refused_before_it_is_unpacked(
    shape: tuple[int, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "log.npz", **LOG, gradients=np.zeros(shape))
    monkeypatch.setattr(np, "load", None)  # nothing is unpacked
    tracemalloc.start()
    with pytest.raises(FedboundsError, match=said):
        read_log(tmp_path / "log.npz", FEDAVG, participation=halves(10))
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_an_archive_whose_headers_lie_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez_compressed(path, **LOG)
    with zipfile.ZipFile(path, "a") as archive, archive.open("gradients.npy", "w") as file:
        np.lib.format.write_array_header_1_0(
            file,
            {"descr": "<f8", "fortran_order": False, "shape": (3, 2, 10**9)},  # and not one number
        )
    with pytest.raises(FedboundsError, match=r"gradients\.npy does not hold what its header says"):
        read_log(path, FEDAVG, participation=halves(2))


def test_a_log_beyond_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.npz"
    np.savez_compressed(path, **LOG, gradients=np.zeros((3, 2, 10_000)))

    def refuse(what: str, size: int) -> None:
        raise FedboundsError(f"{what} {size}")

    monkeypatch.setattr(array_files, "check_memory", refuse)
    with pytest.raises(FedboundsError, match=r"which unpacks to \d{6} bytes, \d{6}"):
        read_log(path, FEDAVG, participation=halves(2))


def test_a_batch_is_no_wider_than_the_largest_client() -> None:
    table = {"kind": "images", "dataset": "digits", "network": "linear", "clients": 10, "batch": MANY}
    problem = problem_from_spec(table)
    largest = int(problem.partition.sizes.max())
    assert problem.draw(np.random.default_rng(0), 0).shape == (largest,)
    whole = problem_from_spec({**table, "batch": largest})
    x, clients = torch.zeros(1, 10, problem.dimension, dtype=problem.dtype), torch.arange(10)[None]
    drawn = torch.from_numpy(np.stack([problem.draw(np.random.default_rng(n), n) for n in range(10)]))[None]
    found = problem.stochastic_gradient(x, clients, drawn)
    assert torch.equal(found, whole.stochastic_gradient(x, clients, drawn))
    torch.testing.assert_close(found, problem.gradient(x, clients))
    assert (problem.steps_per_epoch == 1).all()


def test_a_batch_of_a_model_is_no_wider_than_the_largest_client() -> None:
    data = [(torch.ones(3, 2), torch.ones(3)), (torch.ones(5, 2), torch.ones(5))]
    model = ModelOnData(lambda x, a, b: (a @ x - b) ** 2, data, torch.zeros(2), batch=MANY)
    assert model.draw(np.random.default_rng(0), 0).shape == (5,)
