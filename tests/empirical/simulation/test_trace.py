"""Traces: one file that comes back as it was, or is refused."""

from __future__ import annotations

import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import random_quadratic
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.empirical.simulation.trace import Trace


@pytest.fixture(scope="module")
def trace():
    algorithm = GeneralizedFedAvg(0.05, 2, server_multiplier=3.0, interval=4)
    return simulate(
        algorithm,
        random_quadratic(4, 3, noise=0.1),
        WithoutReplacement(4, 2),
        12,
        seeds=(5, 7),
        record_every=5,
        record_models=True,
        record_participation=True,
    )


def same(one: Trace, other: Trace) -> bool:
    return (
        (one.dims, one.spec, one.engine, one.statuses) == (other.dims, other.spec, other.engine, other.statuses)
        and set(one.arrays) == set(other.arrays)
        and all(
            np.array_equal(array, other.arrays[name], equal_nan=True) and array.dtype == other.arrays[name].dtype
            for name, array in one.arrays.items()
        )
    )


def test_a_trace_comes_back_from_its_file_as_it_was(trace, tmp_path):
    path = trace.save(tmp_path / "run.npz")
    assert same(Trace.load(path), trace)
    assert os.listdir(tmp_path) == ["run.npz"]
    with np.load(path, allow_pickle=False) as file:
        assert json.loads(str(file["about.json"]))["engine"] == "closed form (agrees in law)"


def test_traces_travel_between_processes(trace):
    assert same(pickle.loads(pickle.dumps(trace)), trace)


def test_every_damaged_byte_is_noticed_or_harmless(trace, tmp_path):
    """Flipped bytes may fall on what a zip archive does not use; they never change what is read."""
    path = trace.save(tmp_path / "run.npz")
    whole, refused = path.read_bytes(), 0
    places = np.random.default_rng(0).integers(len(whole), size=200)
    for place in places.tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert same(Trace.load(path), trace)
        except FedboundsError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 100


def rewritten(path, change):
    """The file with one of its members changed, as a well-formed archive."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_a_changed_number_breaks_the_checksum(trace, tmp_path):
    path = trace.save(tmp_path / "run.npz")

    def change(members):
        name = "objective_gap.npy"
        members[name] = members[name][:-1] + bytes([members[name][-1] ^ 1])

    rewritten(path, change)
    with pytest.raises(FedboundsError, match="checksum does not match"):
        Trace.load(path)


def test_a_missing_or_added_array_is_noticed(trace, tmp_path):
    path = trace.save(tmp_path / "run.npz")
    rewritten(path, lambda members: members.pop("objective_gap.npy"))
    with pytest.raises(FedboundsError, match="damaged"):
        Trace.load(path)
    path = trace.save(tmp_path / "run.npz")
    rewritten(path, lambda members: members.update({"more.npy": members["seed.npy"]}))
    with pytest.raises(FedboundsError, match="damaged"):
        Trace.load(path)


class Intruder:
    """Leaves a folder behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickles_are_never_loaded(tmp_path):
    path, trodden = tmp_path / "run.npz", tmp_path / "trodden"
    members = {"about.json": np.array([Intruder(trodden)], dtype=object)}
    np.savez(path, allow_pickle=True, **members)
    with pytest.raises(FedboundsError, match="damaged or no trace"):
        Trace.load(path)
    assert not trodden.exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip archive" * 9])
def test_what_is_no_archive_is_no_trace(content, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(FedboundsError, match="damaged or no trace"):
        Trace.load(path)


def test_a_half_written_file_a_missing_one_and_a_folder_are_refused(trace, tmp_path):
    path = trace.save(tmp_path / "run.npz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FedboundsError, match="damaged"):
        Trace.load(path)
    with pytest.raises(FedboundsError, match="there is no trace"):
        Trace.load(tmp_path / "other.npz")
    with pytest.raises(FedboundsError, match="Is a directory"):
        Trace.load(tmp_path)


def test_an_archive_that_unpacks_beyond_the_limit_is_not_unpacked(trace, tmp_path, monkeypatch):
    path = trace.save(tmp_path / "run.npz")
    size = path.stat().st_size
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(100 * size))
    monkeypatch.setattr("fedbounds.empirical.simulation.trace.LARGEST", path.stat().st_size)
    with pytest.raises(FedboundsError, match=f"unpacks to .* bytes, more than {path.stat().st_size}"):
        Trace.load(path)
    monkeypatch.setattr("fedbounds.empirical.simulation.trace.LARGEST", size)
    with pytest.raises(FedboundsError, match=f"at most {size} are read"):
        Trace.load(path)


def test_another_schema_is_named(trace, tmp_path, monkeypatch):
    path = trace.save(tmp_path / "run.npz")
    monkeypatch.setattr("fedbounds.empirical.simulation.trace.SCHEMA", "fedbounds-trace-9")
    with pytest.raises(FedboundsError, match="'fedbounds-trace-1', this version reads 'fedbounds-trace-9'"):
        Trace.load(path)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(trace, tmp_path, monkeypatch):
    path = trace.save(tmp_path / "run.npz")
    old = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    for name in ("savez", "savez_compressed"):
        monkeypatch.setattr(np, name, full)
    with pytest.raises(FedboundsError, match=r"cannot write the trace .*run\.npz: No space left on device"):
        trace.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["run.npz"]
    with pytest.raises(FedboundsError, match="cannot write"):
        trace.save(tmp_path / "nowhere" / "run.npz")


def test_arrays_are_attributes_and_a_wrong_name_lists_the_right_ones(trace):
    assert trace.objective_gap is trace.arrays["objective_gap"]
    with pytest.raises(AttributeError, match=r"no array 'loss'; it has .*objective_gap"):
        _ = trace.loss


def test_a_data_set_has_named_dimensions_and_coordinates(trace):
    data = trace.to_xarray()
    assert dict(data.sizes) == {"seed": 2, "round": 4, "coordinate": 3, "participation": 48}
    assert float(data.objective_gap.sel(seed=7, round=12)) == trace.objective_gap[1, 3]
    assert data.attrs["engine"] == trace.engine
    assert json.loads(data.attrs["spec"]) == trace.spec


def test_a_data_frame_has_a_row_per_seed_and_round(trace):
    frame = trace.to_dataframe()
    assert len(frame) == 8
    metrics = {"participants", "uplink_bytes", "gradient_norm_squared", "objective_gap"}
    assert set(frame.columns) == {"seed", "round"} | metrics
    row = frame[(frame.seed == 7) & (frame["round"] == 10)]
    assert row.objective_gap.item() == trace.objective_gap[1, 2]


def test_the_participation_record_is_sparse_and_complete(trace):
    assert trace.participation_weight.shape == (2 * 12 * 2,)
    q = trace.participation(5)
    assert q.shape == (12, 4)
    assert np.allclose(q.sum(1), 1)
    with pytest.raises(FedboundsError, match=r"seed 6 is not in the trace; it has \[5, 7\]"):
        trace.participation(6)
    bare = Trace({}, {}, {}, "batched", ())
    with pytest.raises(FedboundsError, match="record_participation=True"):
        bare.participation(5)
