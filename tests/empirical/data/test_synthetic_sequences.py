"""Made sequences: the same bytes from the same seed, each group a part of the signal, and the problem on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.algorithms.spec import algorithms
from fedbounds.empirical.data import synthetic_sequences as made
from fedbounds.empirical.data.datasets import checksum, load_dataset, sequences
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.problems.images import f1_score
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.figures.charts.samples import sheet

SMALL = {"kind": "sequences", "train": 60, "test": 30, "steps": 12, "features": 9}


@pytest.fixture(autouse=True)
def _fresh():
    made.draw_sequences.cache_clear()


def test_the_same_seed_gives_the_same_bytes_however_many_are_made_at_once(monkeypatch):
    first = checksum(load_dataset(SMALL))
    for at_once in (1, 7):
        made.draw_sequences.cache_clear()
        monkeypatch.setattr(made, "_AT_ONCE", at_once)
        assert checksum(load_dataset(SMALL)) == first
    assert checksum(load_dataset(SMALL | {"seed": 1})) != first


def test_the_bytes_are_those_of_every_other_machine():
    assert checksum(load_dataset(SMALL)) == "35c97e2a3d1aac3ebfc4d3f0d33784b4099e753b748752b54edcb5478a121751"


def test_a_smaller_set_is_the_beginning_of_a_larger_one_and_a_caller_may_write_into_it():
    small, large = sequences(50, 20), sequences(600, 40)
    np.testing.assert_array_equal(small.train_images, large.train_images[:50])
    np.testing.assert_array_equal(small.test_labels, large.test_labels[:20])
    assert not np.isin(small.test_images, small.train_images).all((1, 2, 3)).any()
    small.train_images[:] = 0
    np.testing.assert_array_equal(sequences(50, 20).train_images, large.train_images[:50])


def test_sequences_are_images_of_one_channel_that_networks_see_as_they_are():
    data = load_dataset(SMALL)
    assert data.image == (1, 12, 9) and data.classes == 2 and data.train_images.dtype == np.float32
    assert data.standardised()[0] is data.train_images
    assert sheet(data).caption.startswith("sequences: 60 of the training images")


@pytest.mark.parametrize(("groups", "positives"), [(1, 0.16), (2, 0.3), (4, 0.16), (9, 0.05)])
def test_the_share_of_positives_is_the_one_that_is_asked_for(groups, positives):
    labels = sequences(20_000, 1, steps=1, features=9, groups=groups, positives=positives).train_labels
    assert abs(labels.mean() - positives) < 4 * (positives * (1 - positives) / 20_000) ** 0.5


def test_measurements_of_a_group_go_together_and_those_of_two_groups_hardly():
    data = sequences(300, 1, features=10, groups=3).train_images[:, 0]
    together = np.abs(np.corrcoef(data.reshape(-1, 10).T))
    columns = np.array_split(np.arange(10), 3)
    for g, own in enumerate(columns):
        assert together[np.ix_(own, own)].min() > 0.3
        for other in columns[g + 1 :]:
            assert together[np.ix_(own, other)].max() < 0.15


def test_all_groups_together_say_far_more_than_one_and_all_steps_more_than_the_last():
    data = sequences(3000, 1500)

    def score(part):
        train, test = (part(images).reshape(len(images), -1) for images in (data.train_images, data.test_images))
        model = LogisticRegression(C=0.01, max_iter=200).fit(train, data.train_labels)
        return f1_score((model.predict(test) == data.test_labels).astype(float), data.test_labels)

    def averages(images, groups=4):
        return images[..., : 19 * groups].reshape(len(images), 6, 8, -1).mean(2)

    everything = score(averages)
    assert everything > 0.65
    assert score(lambda images: images[:, 0, -1]) < everything - 0.25
    assert score(lambda images: averages(images, 1)) < everything - 0.25
    assert score(lambda images: averages(images, 2)) < everything - 0.2


@pytest.mark.parametrize(("wrong", "message"), [
    ({"train": 0}, r"train = 0 must be an integer >= 1"),
    ({"steps": 0}, r"steps = 0 must be an integer >= 1"),
    ({"groups": 10}, r"groups = 10 must be an integer in \[1, 9\]: each has a feature at least"),
    ({"positives": 0.0}, "positives = 0 must be"),
    ({"positives": 0.6}, r"positives = 0\.6 must be"),
    ({"train": 10**12}, "GiB of memory"),
    ({"seed": 2**32}, "seed = 4294967296 must be"),
    ({"sead": 1}, "unknown key of data set 'sequences': 'sead'; did you mean seed"),
])  # fmt: skip
def test_what_cannot_be_made_is_one_line(wrong, message):
    with pytest.raises(FedboundsError, match=message):
        load_dataset(SMALL | wrong)


def test_what_needs_pixels_is_refused():
    spec = {"dataset": SMALL, "network": "lstm-small", "clients": 5}
    with pytest.raises(FedboundsError, match="augmentation is for images of bytes"):
        problem_from_spec({"kind": "images", "augmentation": ["flip"], **spec})
    with pytest.raises(FedboundsError, match="data set sequences has no pixels"):
        problem_from_spec({"kind": "robust-images", **spec})
    problem_from_spec({"kind": "fair-images", **spec})


MORE = {
    "fixed-weights": {"weights": 1.0},
    "known-participation": {"probability": 0.5},
    "compressed": {"compressor": {"kind": "drive"}},
    "fedsparsify": {"share": 0.1},
    "fedmrn": {"amplitude": 0.01},
    "fedmrn-analysis": {"amplitude": 0.01},
    "fedpm": {"local_step_size": 10.0},
    "fedprox": {"proximal_mu": 0.5},
    **{key: {"interval": 2} for key in ("wait-minibatch", "wait-full", "wait-for-all", "frozen-gradient")},
}


@pytest.mark.parametrize("kind", [kind for kind, one in algorithms().items() if not (one.ascends or one.tiered)])
def test_every_algorithm_trains_long_short_term_memory_in_both_engines_alike(kind):
    step = "step_size" if kind in ("wait-for-all", "frozen-gradient") else "local_step_size"
    steps = {"step_size": 0.1, "share": 0.1} if kind == "ef21" else {step: 0.1, "local_steps": 2}
    algorithm = algorithm_from_spec({"kind": kind, **steps} | MORE.get(kind, {}))
    problem = problem_from_spec({"kind": "images", "dataset": SMALL, "network": "lstm-small", "clients": 5, "batch": 4,
                                 "partition": "even"})  # fmt: skip
    runs = [simulate(algorithm, problem, WithoutReplacement(5, 4), 6, engine=engine, record_models=True)
            for engine in ("sequential", "batched")]  # fmt: skip
    one, other = (run.model[0] for run in runs)
    assert np.isfinite(runs[0].test_f1).all()
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)
    assert np.abs(one[-1] - one[0]).max() > 0


def test_with_two_classes_the_f1_score_is_reported():
    problem = problem_from_spec({"kind": "images", "dataset": SMALL, "network": "linear", "clients": 5,
                                 "partition": "even"})  # fmt: skip
    x = torch.stack([problem.initial_point(np.random.default_rng(seed)) for seed in range(3)])
    found = problem.metrics(x)
    data = load_dataset(SMALL)
    for seed in range(3):
        answers = problem.network.logits(x[seed : seed + 1], torch.from_numpy(data.test_images)[None])[0].argmax(1)
        taken, truth = answers.numpy() == 1, data.test_labels == 1
        precision, recall = (taken & truth).sum() / taken.sum(), (taken & truth).sum() / truth.sum()
        assert found["test_f1"][seed] == pytest.approx(2 * precision * recall / (precision + recall))
    assert "test_f1" not in problem_from_spec({"kind": "images", "network": "linear"}).metrics(torch.zeros(1, 650))
