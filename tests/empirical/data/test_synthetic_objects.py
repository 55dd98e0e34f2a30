"""Objects seen from twelve sides: made ones, and those that lie in folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import checksum, load_dataset
from fedbounds.empirical.data.synthetic_objects import draw_views
from fedbounds.empirical.papers.tdcd.algorithms import TDCD
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import VerticalNetworks, problem_from_spec
from fedbounds.empirical.simulation.simulate import simulate

CHECKSUM = "7db6b60bc7668114f61797ebf452975fd50ae21bebf598e938c46157fc8bd144"


def test_views_are_the_same_on_every_machine_and_few_are_the_first_of_many() -> None:
    small = load_dataset({"kind": "views", "train": 130, "test": 20, "classes": 4, "side": 8})
    large = load_dataset({"kind": "views", "train": 300, "test": 20, "classes": 4, "side": 8})
    assert small.image == (12, 8, 8)
    np.testing.assert_array_equal(small.train_images, large.train_images[:130])
    assert small.train_labels[:5].tolist() == [0, 1, 2, 3, 0]
    assert (small.train_images[:20] != small.test_images).any()
    assert checksum(small) == CHECKSUM


def test_a_view_from_the_other_side_mirrors_the_outline() -> None:
    """From behind everything is where it was, left for right, so that whole columns of ink agree with the mirror's."""
    images, _ = draw_views(0, 0, 400, 5, 16)
    ink = images.astype(float).mean(0)  # of objects whose noise has averaged out: the mean arrangement
    for view in range(6):
        front, back = ink[view].mean(0), ink[view + 6].mean(0)[::-1]
        assert np.corrcoef(front, back)[0, 1] > 0.9
        assert np.corrcoef(front, back)[0, 1] > np.corrcoef(front, back[::-1])[0, 1]


def test_every_silo_sees_one_view() -> None:
    data = {"kind": "views", "train": 120, "test": 20, "classes": 4, "side": 8}
    own = problem_from_spec(
        {"kind": "vertical", "dataset": data, "silos": 12, "split": "channels", "silo_clients": 2, "network": "mlp"}
    )
    assert isinstance(own, VerticalNetworks)
    assert [network.image for network in own.networks] == [(1, 8, 8)] * 12
    trained = simulate(TDCD(0.1, 2), own, Full(24), 30).train_loss[0]
    assert trained[-1] < trained[0] / 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"side": 4}, "side = 4"),
        ({"classes": 1}, "classes = 1"),
        ({"train": 3}, "at least one object of each class"),
        ({"color": True}, "unknown key of data set 'views'"),
        ({"data": "here"}, "unknown key of data set 'views'"),
    ],
)
def test_what_is_no_set_of_views_is_reported(change: dict, told: str) -> None:
    with pytest.raises(FedboundsError, match=told):
        load_dataset({"kind": "views", **change})


# --- files ------------------------------------------------------------------------------------------------------------


def written(home: Path, folders: bool, side: int = 16) -> dict[tuple[str, str, int], np.ndarray]:
    """Objects of three classes; the k-th view of one has a tone of its own in each quarter."""
    rng, tones = np.random.default_rng(0), {}
    for name, split, count in (("bed", "train", 2), ("bed", "test", 1), ("chair", "train", 1), ("chair", "test", 2)):
        for k in range(count):
            tones[name, split, k] = rng.integers(0, 256, (12, 2, 2)).astype(np.uint8)
            for view, tone in enumerate(tones[name, split, k]):
                picture = Image.fromarray(tone.repeat(side // 2, 0).repeat(side // 2, 1)).convert("RGB")
                place = home / "modelnet40" / name / split
                own = place / f"{name}_{k:04}" if folders else place
                own.mkdir(parents=True, exist_ok=True)
                # numbers without leading zeros: by name the tenth would come before the second
                picture.save(own / (f"{view + 1}.png" if folders else f"{name}_{k:04}.{view + 1}.png"))
    return tones


@pytest.mark.parametrize("folders", [True, False], ids=["a folder for each object", "side by side"])
def test_objects_are_read_back_with_their_views_in_order(tmp_path: Path, folders: bool) -> None:
    tones = written(tmp_path, folders)
    (tmp_path / "modelnet40" / "README.txt").write_text("no class")
    loaded = load_dataset({"kind": "modelnet40", "side": 8}, tmp_path)
    assert loaded.classes == 2
    assert loaded.image == (12, 8, 8)
    assert loaded.train_labels.tolist() == [0, 0, 1]
    assert loaded.test_labels.tolist() == [0, 1, 1]
    order = [("bed", "train", 0), ("bed", "train", 1), ("chair", "train", 0)]
    for image, key in zip(loaded.train_images, order, strict=True):
        np.testing.assert_array_equal(image[:, 2::4, 2::4], tones[key])


def test_objects_that_are_damaged_or_incomplete_are_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(FedboundsError, match="missing folder modelnet40: get it from"):
        load_dataset("modelnet40", tmp_path)
    written(tmp_path, False)
    with pytest.raises(FedboundsError, match="16x16 pixels; must be from 32 to 4096"):
        load_dataset("modelnet40", tmp_path)
    with pytest.raises(FedboundsError, match="unknown key of data set 'modelnet40': 'sides'; did you mean side"):
        load_dataset({"kind": "modelnet40", "sides": 8}, tmp_path)
    place = tmp_path / "modelnet40" / "bed" / "train"
    view = place / "bed_0001.7.png"
    whole = view.read_bytes()
    for content, told in ((whole[: len(whole) // 2], "damaged"), (b"GIF89a", "cannot identify image file")):
        view.write_bytes(content)
        with pytest.raises(FedboundsError, match=told) as refused:
            load_dataset({"kind": "modelnet40", "side": 8}, tmp_path)
        assert "\n" not in str(refused.value)
    view.unlink()
    with pytest.raises(FedboundsError, match="its object has 11 views, must have 12"):
        load_dataset({"kind": "modelnet40", "side": 8}, tmp_path)
    for path in (tmp_path / "modelnet40" / "chair" / "test").iterdir():
        path.unlink()
    (tmp_path / "modelnet40" / "chair" / "test").rmdir()
    view.write_bytes(whole)
    with pytest.raises(FedboundsError, match="missing folder chair/test"):
        load_dataset({"kind": "modelnet40", "side": 8}, tmp_path)
