"""Loaders: small files in the official formats, written here and read back; damaged ones told in one line."""

from __future__ import annotations

import gzip
import io
import struct

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_digits

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import Dataset, checksum, load_dataset
from fedbounds.empirical.data.image_files import read_cifar, read_idx, read_png_folder, read_svhn

RNG = np.random.default_rng(0)


def _idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def _fashion(folder, *, packed=(), samples=(6, 4)):
    folder.mkdir(parents=True)
    written = {}
    for split, n in zip(("train", "t10k"), samples, strict=True):
        written[f"{split}-images-idx3-ubyte"] = RNG.integers(0, 256, (n, 28, 28))
        written[f"{split}-labels-idx1-ubyte"] = RNG.integers(0, 10, n)
    for name, array in written.items():
        if name in packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(_idx(array)))
        else:
            (folder / name).write_bytes(_idx(array))
    return written


def _cifar(folder, samples=3):
    folder.mkdir(parents=True)
    written = {}
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        labels = RNG.integers(0, 10, (samples, 1))
        images = RNG.integers(0, 256, (samples, 3072))
        (folder / name).write_bytes(np.hstack([labels, images]).astype(np.uint8).tobytes())
        written[name] = labels[:, 0], images.reshape(samples, 3, 32, 32)
    return written


def _svhn(folder, samples=(5, 4), packed=False, **changed):
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for split, n in zip(("train", "test"), samples, strict=True):
        images = RNG.integers(0, 256, (32, 32, 3, n)).astype(np.uint8)
        labels = np.r_[10, 1, 9, RNG.integers(1, 11, n - 3)].astype(np.uint8)[:, None]
        variables = {"X": images, "y": labels} | changed
        scipy.io.savemat(folder / f"{split}_32x32.mat", {k: v for k, v in variables.items() if v is not None},
                         do_compression=packed)  # fmt: skip
        written[split] = images, labels
    return written


CINIC = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def _cinic(folder, samples=2):
    written = {}
    for split in ("train", "valid", "test"):
        for name in CINIC:
            (folder / split / name).mkdir(parents=True)
            for k in range(samples):
                pixels = RNG.integers(0, 256, (32, 32, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"cifar10-{split}-{k}.png")
                written[split, name, k] = pixels
    return written


@pytest.mark.parametrize("folder", ["fashion-mnist", "FashionMNIST/raw"])
@pytest.mark.parametrize("packed", [(), ("train-images-idx3-ubyte", "t10k-labels-idx1-ubyte")])
def test_fashion_mnist_is_read_back_as_it_was_written(tmp_path, folder, packed):
    written = _fashion(tmp_path / folder, packed=packed)
    loaded = load_dataset("fashion-mnist", tmp_path)
    assert loaded.image == (1, 28, 28)
    np.testing.assert_array_equal(loaded.train_images[:, 0], written["train-images-idx3-ubyte"])
    np.testing.assert_array_equal(loaded.test_images[:, 0], written["t10k-images-idx3-ubyte"])
    np.testing.assert_array_equal(loaded.train_labels, written["train-labels-idx1-ubyte"])
    np.testing.assert_array_equal(loaded.test_labels, written["t10k-labels-idx1-ubyte"])


def test_cifar_10_is_read_back_as_it_was_written(tmp_path):
    written = _cifar(tmp_path / "cifar-10-batches-bin")
    loaded = load_dataset("cifar-10", tmp_path)
    assert loaded.image == (3, 32, 32)
    batches = [written[f"data_batch_{i}.bin"] for i in range(1, 6)]
    np.testing.assert_array_equal(loaded.train_labels, np.concatenate([labels for labels, _ in batches]))
    np.testing.assert_array_equal(loaded.train_images, np.concatenate([images for _, images in batches]))
    np.testing.assert_array_equal(loaded.test_images, written["test_batch.bin"][1])


def test_cifar_100_is_read_back_as_it_was_written_with_the_fine_labels(tmp_path):
    folder, written = tmp_path / "cifar-100-binary", {}
    folder.mkdir()
    for name in ("train.bin", "test.bin"):
        coarse, fine = RNG.integers(0, 20, (4, 1)), np.array([[99], [0], [20], [5]])
        images = RNG.integers(0, 256, (4, 3072))
        (folder / name).write_bytes(np.hstack([coarse, fine, images]).astype(np.uint8).tobytes())
        written[name] = images.reshape(4, 3, 32, 32)
    loaded = load_dataset("cifar-100", tmp_path)
    assert loaded.classes == 100 and loaded.image == (3, 32, 32)
    np.testing.assert_array_equal(loaded.train_images, written["train.bin"])
    np.testing.assert_array_equal(loaded.test_images, written["test.bin"])
    assert loaded.train_labels.tolist() == loaded.test_labels.tolist() == [99, 0, 20, 5]
    (folder / "test.bin").write_bytes(b"\0\x64" + bytes(3072))
    with pytest.raises(FedboundsError, match=r"label 100 of sample 0 is outside 0\.\.99"):
        load_dataset("cifar-100", tmp_path)


@pytest.mark.parametrize("folder", ["svhn", "SVHN"])
@pytest.mark.parametrize("packed", [False, True])
def test_svhn_is_read_back_as_it_was_written_and_label_10_is_the_digit_0(tmp_path, folder, packed):
    written = _svhn(tmp_path / folder, packed=packed)
    loaded = load_dataset("svhn", tmp_path)
    assert loaded.image == (3, 32, 32) and loaded.train_labels.dtype == np.int64
    for split, images, labels in (
        ("train", loaded.train_images, loaded.train_labels),
        ("test", loaded.test_images, loaded.test_labels),
    ):
        pixels, truth = written[split]
        assert labels.tolist() == [int(label) if label < 10 else 0 for label in truth[:, 0]]
        for sample in range(len(labels)):
            np.testing.assert_array_equal(images[sample], np.moveaxis(pixels[..., sample], 2, 0))


def test_cinic_10_is_read_back_as_it_was_written_without_its_validation_images(tmp_path):
    written = _cinic(tmp_path / "cinic-10")
    gray = RNG.integers(0, 256, (32, 32)).astype(np.uint8)
    Image.fromarray(gray).save(tmp_path / "cinic-10" / "train" / "bird" / "cifar10-train-0.png")
    (tmp_path / "cinic-10" / "train" / "bird" / "README.txt").write_text("not an image")
    loaded = load_dataset("cinic-10", tmp_path)
    assert loaded.train_labels.tolist() == loaded.test_labels.tolist() == [n for n in range(10) for _ in range(2)]
    for label, name in enumerate(CINIC):
        for k in range(2):
            expected = np.repeat(gray[:, :, None], 3, axis=2) if (name, k) == ("bird", 0) else written["train", name, k]
            np.testing.assert_array_equal(loaded.train_images[2 * label + k], np.moveaxis(expected, 2, 0))
            tested = loaded.test_images[2 * label + k]
            np.testing.assert_array_equal(tested, np.moveaxis(written["test", name, k], 2, 0))


def test_digits_are_scikit_learns_split_four_to_one_within_every_class():
    digits = load_dataset("digits")
    pixels, labels = load_digits(return_X_y=True)
    everything = np.concatenate([digits.train_images, digits.test_images]).reshape(-1, 64)
    assert sorted(map(bytes, everything)) == sorted(map(bytes, pixels.astype(np.uint8)))
    for label in range(10):
        tested = (digits.test_labels == label).sum()
        assert tested == (labels == label).sum() // 5
    pairs = {(bytes(image), label) for image, label in zip(pixels.astype(np.uint8), labels, strict=True)}
    assert all((bytes(im.ravel()), lb) in pairs for im, lb in zip(digits.test_images, digits.test_labels, strict=True))


def test_standardised_images_have_mean_zero_and_deviation_one_in_each_channel_of_the_training_set(tmp_path):
    _cifar(tmp_path / "cifar-10-batches-bin")
    loaded = load_dataset("cifar-10", tmp_path)
    train, test = loaded.standardised()
    assert train.dtype == test.dtype == np.float32
    np.testing.assert_allclose(train.mean((0, 2, 3), dtype=np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(train.std((0, 2, 3), dtype=np.float64), 1, atol=1e-5)
    raw = loaded.train_images[:, 1]
    np.testing.assert_allclose(test[:, 1], (loaded.test_images[:, 1] - raw.mean()) / raw.std(), rtol=1e-4, atol=1e-5)


def test_a_constant_channel_stays_finite():
    blank = np.zeros((2, 1, 4, 4), dtype=np.uint8)
    train, _ = Dataset("blank", blank, np.zeros(2), blank, np.zeros(2), 1).standardised()
    assert (train == 0).all()


def test_checksum_sees_every_pixel_and_label_and_nothing_else(tmp_path):
    _fashion(tmp_path / "fashion-mnist")
    first, again = (load_dataset("fashion-mnist", tmp_path) for _ in range(2))
    assert checksum(first) == checksum(again)
    path = tmp_path / "fashion-mnist" / "t10k-labels-idx1-ubyte"
    content = bytearray(path.read_bytes())
    content[-1] = (content[-1] + 1) % 10
    path.write_bytes(content)
    assert checksum(load_dataset("fashion-mnist", tmp_path)) != checksum(first)


def test_the_folder_comes_from_the_argument_then_the_environment_then_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDBOUNDS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FedboundsError, match=str(tmp_path / "data" / "fashion-mnist")):
        load_dataset("fashion-mnist")
    monkeypatch.setenv("FEDBOUNDS_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FedboundsError, match=str(tmp_path / "elsewhere" / "fashion-mnist")):
        load_dataset("fashion-mnist")
    with pytest.raises(FedboundsError, match=str(tmp_path / "here" / "fashion-mnist")):
        load_dataset("fashion-mnist", tmp_path / "here")


def test_a_missing_file_is_named_with_its_source_and_its_place(tmp_path):
    with pytest.raises(FedboundsError) as missing:
        load_dataset("cifar-10", tmp_path)
    line = str(missing.value)
    assert "data_batch_1.bin" in line
    assert "https://www.cs.toronto.edu/~kriz/cifar.html" in line
    assert str(tmp_path / "cifar-10-batches-bin") in line
    assert "\n" not in line
    _fashion(tmp_path / "fashion-mnist")
    (tmp_path / "fashion-mnist" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FedboundsError, match=r"t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte\.gz.*zalandoresearch"):
        load_dataset("fashion-mnist", tmp_path)


@pytest.mark.parametrize(("name", "wanted", "source", "folder"), [
    ("cifar-100", "file train.bin", "https://www.cs.toronto.edu/~kriz/cifar.html", "cifar-100-binary"),
    ("svhn", "file train_32x32.mat", "http://ufldl.stanford.edu/housenumbers", "svhn"),
    ("cinic-10", "folder train/airplane", "https://github.com/BayesWatch/cinic-10", "cinic-10"),
])  # fmt: skip
def test_the_second_papers_data_say_where_they_come_from_and_where_they_belong(tmp_path, name, wanted, source, folder):
    with pytest.raises(FedboundsError) as missing:
        load_dataset(name, tmp_path)
    line = str(missing.value)
    assert f"missing {wanted}" in line and source in line and str(tmp_path / folder) in line and "\n" not in line


def test_a_class_without_a_folder_or_without_images_is_named(tmp_path):
    _cinic(tmp_path / "CINIC-10", samples=1)
    (tmp_path / "CINIC-10" / "test" / "frog" / "cifar10-test-0.png").unlink()
    with pytest.raises(FedboundsError, match="test/frog: no PNG files"):
        load_dataset("cinic-10", tmp_path)
    (tmp_path / "CINIC-10" / "test" / "frog").rmdir()
    with pytest.raises(FedboundsError, match="missing folder test/frog"):
        load_dataset("cinic-10", tmp_path)


def test_an_unknown_data_set_is_reported_with_the_nearest_names():
    with pytest.raises(FedboundsError, match="unknown data set 'fashion_mnist'; did you mean fashion-mnist"):
        load_dataset("fashion_mnist")


_GOOD = _idx(np.arange(12).reshape(3, 2, 2))


@pytest.mark.parametrize(("content", "message"), [
    (b"", "cut short, 0 of 16 bytes"),
    (_GOOD[:9], "cut short, 9 of 16 bytes"),
    (_GOOD[:-1], "cut short, 11 of 12 bytes"),
    (_GOOD + b"\0", "longer than the 12 bytes it declares"),
    (b"\0\0\x0d" + _GOOD[3:], r"not an IDX file .*starts with 00000d03, must be 00000803"),
    (b"\x80\x04" + _GOOD[2:], "not an IDX file"),
    (_idx(np.arange(4)) + b"0123456789abcdef", "not an IDX file of unsigned bytes in 3 dimensions"),
    (struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), r"must be between 1 and 268435456"),
    (struct.pack(">HBB3I", 0, 8, 3, 0, 28, 28), "declares .* 0 bytes"),
])  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_malformed_idx_files_are_one_line(tmp_path, content, message, packed):
    path = tmp_path / ("images.gz" if packed else "images")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(FedboundsError, match=message) as refused:
        read_idx(path, 3)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [_GOOD, gzip.compress(_GOOD, mtime=0)[:-12], gzip.compress(_GOOD, mtime=0)[:30], b"\x1f\x8b\x08junk"],
    ids=["not packed", "end missing", "half missing", "junk"],
)
def test_damaged_gzip_files_are_one_line(tmp_path, content):
    path = tmp_path / "images.gz"
    path.write_bytes(content)
    with pytest.raises(FedboundsError, match=r"images\.gz: (cannot be read, damaged or )?cut short") as refused:
        read_idx(path, 3)
    assert "\n" not in str(refused.value)


def test_an_unpacked_bomb_is_never_read_beyond_what_its_header_declares(tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(_GOOD + bytes(50 * 2**20)))
    with pytest.raises(FedboundsError, match="longer than the 12 bytes"):
        read_idx(path, 3)


def test_a_folder_in_place_of_a_file_is_one_line(tmp_path):
    with pytest.raises(FedboundsError, match=r"cannot read .*: Is a directory"):
        read_idx(tmp_path, 3)
    with pytest.raises(FedboundsError, match=r"cannot read .*: Is a directory"):
        read_cifar(tmp_path, 10)


@given(st.binary(max_size=60), st.booleans())
def test_arbitrary_bytes_are_an_array_or_one_line(tmp_path_factory, content, packed):
    path = tmp_path_factory.mktemp("idx") / ("images.gz" if packed else "images")
    path.write_bytes(gzip.compress(content) if packed else content)
    try:
        read = read_idx(path, 1)
    except FedboundsError as refused:
        assert "\n" not in str(refused)
    else:
        assert content == _idx(read)


@pytest.mark.parametrize(("content", "message"), [
    (b"", "0 bytes; must be a positive multiple of 3073"),
    (bytes(3072), "3072 bytes; must be a positive multiple of 3073"),
    (bytes(3073) + b"\x0a" + bytes(3072), "label 10 of sample 1 is outside 0..9"),
])  # fmt: skip
def test_malformed_cifar_files_are_one_line(tmp_path, content, message):
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(content)
    with pytest.raises(FedboundsError, match=message):
        read_cifar(path, 10)


def test_labels_that_do_not_match_their_images_are_refused(tmp_path):
    folder = tmp_path / "fashion-mnist"
    _fashion(folder)
    (folder / "train-labels-idx1-ubyte").write_bytes(_idx(np.arange(5)))
    with pytest.raises(FedboundsError, match="5 labels for 6 images"):
        load_dataset("fashion-mnist", tmp_path)
    (folder / "train-labels-idx1-ubyte").write_bytes(_idx(np.array([1, 2, 3, 4, 5, 77])))
    with pytest.raises(FedboundsError, match="label 77 of sample 5"):
        load_dataset("fashion-mnist", tmp_path)
    (folder / "train-labels-idx1-ubyte").write_bytes(_idx(np.arange(6)))
    (folder / "t10k-images-idx3-ubyte").write_bytes(_idx(np.zeros((4, 9, 9))))
    with pytest.raises(FedboundsError, match=r"differ in size \(28x28 and 9x9\)"):
        load_dataset("fashion-mnist", tmp_path)


@pytest.mark.parametrize(("changed", "message"), [
    ({"X": None}, r"X is absent \(\)"),
    ({"y": None}, "y is absent"),
    ({"X": np.zeros((32, 32, 3, 5))}, r"X is double \(32, 32, 3, 5\)"),
    ({"X": np.zeros((28, 28, 1, 5), np.uint8)}, r"X is uint8 \(28, 28, 1, 5\)"),
    ({"y": np.ones((4, 1))}, r"y is \(4, 1\); must be \(5, 1\)"),
    ({"y": np.array([[1], [2], [0], [3], [11]])}, r"label 0 of sample 2 is outside 1\.\.10"),
])  # fmt: skip
def test_svhn_files_with_other_contents_are_one_line(tmp_path, changed, message):
    _svhn(tmp_path, samples=(5, 5), **changed)
    with pytest.raises(FedboundsError, match=message) as refused:
        read_svhn(tmp_path / "train_32x32.mat")
    assert "train_32x32.mat" in str(refused.value) and "\n" not in str(refused.value)


def _matlab(packed):
    file = io.BytesIO()
    images = np.arange(3072, dtype=np.uint8).reshape(32, 32, 3, 1)
    scipy.io.savemat(file, {"X": images, "y": np.array([[3]])}, do_compression=packed)
    return file.getvalue()


MATLAB = {packed: _matlab(packed) for packed in (False, True)}


@given(st.booleans(), st.integers(0, 3500), st.integers(0, 3500), st.binary(max_size=12))
def test_a_damaged_matlab_file_is_images_or_one_line(tmp_path_factory, packed, keep, where, junk):
    content = bytearray(MATLAB[packed])
    content[where : where + len(junk)] = junk
    path = tmp_path_factory.mktemp("mat") / "train_32x32.mat"
    path.write_bytes(content if keep > 3000 else content[:keep])
    try:
        images, labels = read_svhn(path)
    except FedboundsError as refused:
        assert str(path) in str(refused) and "\n" not in str(refused)
    else:
        assert images.shape == (1, 3, 32, 32) and 0 <= labels[0] <= 9


def test_a_matlab_file_never_unpacks_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("fedbounds.empirical.data.image_files._LARGEST", 2**20)
    monkeypatch.setattr("scipy.io.loadmat", lambda *args, **names: pytest.fail("unpacked"))
    path = tmp_path / "train_32x32.mat"
    scipy.io.savemat(path, {"junk": np.zeros(2**22, np.uint8)}, do_compression=True)
    assert path.stat().st_size < 2**14
    with pytest.raises(FedboundsError, match="unpacks to more than the 1048576 bytes"):
        read_svhn(path)
    scipy.io.savemat(path, {"junk": np.zeros(2**22, np.uint8)}, do_compression=False)
    with pytest.raises(FedboundsError, match="at most 1048576 are read"):
        read_svhn(path)


def test_damaged_and_foreign_pictures_are_one_line(tmp_path):
    path = tmp_path / "image.png"
    for size in ((32, 31), (20_000, 20_000)):
        Image.new("1", size).save(path)
        with pytest.raises(FedboundsError, match=rf"image\.png: .*{size[0]}x{size[1]} pixels|decompression bomb"):
            read_png_folder([tmp_path], 32)
    Image.new("RGB", (32, 32)).save(path, format="JPEG")
    with pytest.raises(FedboundsError, match="cannot"):
        read_png_folder([tmp_path], 32)
    path.write_bytes(bytes(2**20 + 1))
    with pytest.raises(FedboundsError, match="1048577 bytes; at most 1048576"):
        read_png_folder([tmp_path], 32)
    file = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (32, 32, 3)).astype(np.uint8)).save(file, format="PNG")
    for length in (0, 10, 40, 500, len(file.getvalue()) - 30):
        path.write_bytes(file.getvalue()[:length])
        with pytest.raises(FedboundsError, match=r"image\.png: cannot be read") as refused:
            read_png_folder([tmp_path], 32)
        assert "\n" not in str(refused.value)
