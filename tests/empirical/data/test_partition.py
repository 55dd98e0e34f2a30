"""Partitions: counts against their definition, nobody empty, everything a function of the generator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import (
    Partition,
    class_counts,
    class_mix_partition,
    dirichlet_partition,
    even_partition,
    label_partition,
    majority_class_partition,
)

LABELS = np.random.default_rng(0).integers(0, 10, 6000)


def _counts(partition, labels=LABELS):
    return np.array([np.bincount(labels[own], minlength=10) for own in partition.samples])


def test_every_sample_belongs_to_exactly_one_client():
    for partition in (
        majority_class_partition(LABELS, 25, np.random.default_rng(1)),
        dirichlet_partition(LABELS, 25, np.random.default_rng(1)),
    ):
        assert sorted(np.concatenate(partition.samples)) == list(range(len(LABELS)))
        for client, own in enumerate(partition.samples):
            assert (partition.assignment[own] == client).all()


def test_without_similarity_a_client_holds_one_class_and_classes_are_shared_evenly():
    partition = majority_class_partition(LABELS, 30, np.random.default_rng(1), similarity=0.0)
    counts = _counts(partition)
    assert ((counts > 0).sum(1) == 1).all()
    assert (counts.argmax(1) == partition.majority).all()
    assert (np.bincount(partition.majority) == 3).all()
    for label in range(10):
        of_class = counts[partition.majority == label, label]
        assert of_class.max() - of_class.min() <= 1


def test_similarity_is_the_share_of_samples_dealt_uniformly():
    partition = majority_class_partition(LABELS, 50, np.random.default_rng(1), similarity=0.3)
    counts = _counts(partition)
    foreign = 1 - counts[np.arange(50), partition.majority].sum() / len(LABELS)
    expected = 0.3 * 0.9  # a tenth of the uniform ones meets its own class
    assert abs(foreign - expected) < 5 * (expected * (1 - expected) / len(LABELS)) ** 0.5
    assert (counts.argmax(1) == partition.majority).all()


def test_majority_class_partition_agrees_with_a_slow_twin():
    rng = np.random.default_rng(9)
    similarity, clients = 0.2, 20
    twin_rng = np.random.default_rng(9)
    uniform, target = twin_rng.random(len(LABELS)) < similarity, twin_rng.integers(0, clients, len(LABELS))
    holdings: list[list[int]] = [[] for _ in range(clients)]
    for sample, label in enumerate(LABELS.tolist()):
        of_class = [n for n in range(clients) if n // 2 == label]
        chosen = target[sample] if uniform[sample] else min(of_class, key=lambda n: (len(holdings[n]), n))
        holdings[chosen].append(sample)
    partition = majority_class_partition(LABELS, clients, rng, similarity)
    assert [list(own) for own in partition.samples] == holdings


def test_dirichlet_proportions_have_the_variance_of_the_law():
    alpha, clients, labels = 0.7, 8, np.zeros(4000, dtype=np.int64)
    rng = np.random.default_rng(2)
    shares = np.array([dirichlet_partition(labels, clients, rng, alpha).sizes / 4000 for _ in range(1500)])
    variance = (1 / clients) * (1 - 1 / clients) / (clients * alpha + 1)
    np.testing.assert_allclose(shares.mean(0), 1 / clients, atol=5 * (variance / 1500) ** 0.5)
    assert shares.var() == pytest.approx(variance, rel=0.05)


def test_dirichlet_leaves_nobody_empty_even_when_it_is_very_uneven():
    partition = dirichlet_partition(LABELS[:60], 40, np.random.default_rng(0), alpha=0.05)
    assert partition.sizes.min() == 1
    counts = _counts(partition, LABELS[:60])
    assert (counts[np.arange(40), partition.majority] == counts.max(1)).all()


def test_class_mixes_give_everyone_equally_many_samples_each_dealt_once():
    partition = class_mix_partition(LABELS, 70, np.random.default_rng(0), alpha=0.1)
    assert set(partition.sizes) == {len(LABELS) // 70, len(LABELS) // 70 + 1}
    counts = class_counts(partition.assignment, LABELS, 70)
    np.testing.assert_array_equal(counts.sum(0), np.bincount(LABELS))
    for n in (0, 69):
        np.testing.assert_array_equal(counts[n], np.bincount(LABELS[partition.samples[n]], minlength=10))
    assert (counts[np.arange(70), partition.majority] == counts.max(1)).all()


def test_class_mixes_have_the_variance_of_the_dirichlet_law_while_no_class_runs_out():
    labels = np.arange(20_000) % 4  # 200 clients with 100 each: classes hardly run out
    rng, alpha = np.random.default_rng(2), 2.0
    shares = []
    for _ in range(12):
        held = class_mix_partition(labels, 200, rng, alpha)
        shares.append(class_counts(held.assignment, labels, 200)[:, 0] / 100)
    mean, dirichlet = 1 / 4, 1 / 4 * 3 / 4 / (4 * alpha + 1)
    multinomial = (mean - mean**2 - dirichlet) / 100
    assert np.mean(shares) == pytest.approx(mean, rel=1e-12)
    assert np.var(shares) == pytest.approx(dirichlet + multinomial, rel=0.12)


def test_class_mixes_cut_in_proportion_are_those_of_the_public_code():
    """Its rule: client n holds the samples of a class from round(c K_(n-1)) to round(c K_n), K the summed mixes."""
    rng = np.random.default_rng(3)
    partition = class_mix_partition(LABELS, 12, rng, alpha=0.5, proportional=True)
    mixes = np.random.default_rng(3).dirichlet(np.full(LABELS.max() + 1, 0.5), 12)
    for label in range(LABELS.max() + 1):
        samples, start = np.flatnonzero(label == LABELS), 0
        for client in range(12):
            end = int(np.round(len(samples) * mixes[: client + 1, label].sum() / mixes[:, label].sum()))
            assert (partition.assignment[samples[start:end]] == client).all()
            start = end
    assert np.ptp(partition.sizes) > 100  # and with equal sizes it is 0 or 1
    assert np.ptp(class_mix_partition(LABELS, 12, rng, alpha=0.5).sizes) <= 1


@pytest.mark.parametrize("split", [majority_class_partition, dirichlet_partition, class_mix_partition,
                                   even_partition, label_partition])  # fmt: skip
def test_partitions_are_a_function_of_the_generator(split):
    first, again, other = (split(LABELS, 20, np.random.default_rng(seed)).assignment for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_groups_of_two_classes_make_five_equal_groups_of_the_papers_clients():
    partition = majority_class_partition(LABELS, 250, np.random.default_rng(0))
    assert np.bincount(partition.groups(2)).tolist() == [50] * 5
    assert (partition.groups(2) == partition.majority // 2).all()


def test_digits_suffice_for_the_papers_two_hundred_and_fifty_clients():
    partition = majority_class_partition(load_dataset("digits").train_labels, 250, np.random.default_rng(0))
    assert partition.sizes.min() >= 4


def test_an_even_split_knows_no_classes():
    partition = even_partition(LABELS, 70, np.random.default_rng(0))
    assert partition.sizes.max() - partition.sizes.min() <= 1
    counts = class_counts(partition.assignment, LABELS, 70)
    expected = partition.sizes[:, None] * np.bincount(LABELS) / len(LABELS)
    excess = ((counts - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(excess, 69 * 9) > 1e-6 and stats.chi2.cdf(excess, 69 * 9) > 1e-6


def test_clients_hold_the_labels_that_they_drew_and_share_them_evenly():
    partition = label_partition(LABELS, 100, np.random.default_rng(0), 3)
    counts = class_counts(partition.assignment, LABELS, 100)
    assert ((counts > 0).sum(1) == 3).all()
    for own in counts.T:  # the holders of a class hold equally many of it
        assert own[own > 0].max() - own[own > 0].min() <= 1
    holders = (counts > 0).sum(0)
    spread = (100 * 0.3 * 0.7) ** 0.5
    assert (np.abs(holders - 30) < 5 * spread).all() and holders.std() > 1
    assert len({tuple(row) for row in counts > 0}) > 40


def test_labels_dealt_cyclically_are_held_equally_often_in_ten_sets():
    partition = label_partition(LABELS, 100, np.random.default_rng(0), 3, cyclic=True)
    held = class_counts(partition.assignment, LABELS, 100) > 0
    assert (held.sum(0) == 30).all() and (held.sum(1) == 3).all()
    assert len({tuple(row) for row in held}) == 10
    hundred = np.arange(20_000) % 100
    held = class_counts(label_partition(hundred, 100, np.random.default_rng(0), 20, True).assignment, hundred, 100) > 0
    assert (held.sum(0) == 20).all()


def test_a_class_that_nobody_drew_goes_to_the_smallest_client():
    counts = class_counts(label_partition(LABELS, 2, np.random.default_rng(0), 3).assignment, LABELS, 2)
    assert counts.sum() == len(LABELS) and (counts.sum(0) == np.bincount(LABELS)).all()
    assert counts.sum(1).max() <= counts.sum(1).min() + 600


@pytest.mark.parametrize(("split", "clients", "arguments", "message"), [
    (even_partition, 7000, {}, "clients = 7000 must be between 1 and the number of samples, 6000"),
    (label_partition, 0, {}, "clients = 0 must be between 1"),
    (label_partition, 20, {"labels_per_client": 0},
     r"labels_per_client = 0 must be an integer in \[1, 10\]: there are 10 classes"),
    (label_partition, 20, {"labels_per_client": 11}, "labels_per_client = 11"),
    (label_partition, 6000, {"labels_per_client": 1, "cyclic": True}, "holds no sample .* use fewer clients"),
    (majority_class_partition, 9, {}, "clients = 9 must be at least the number of classes, 10"),
    (majority_class_partition, 20, {"similarity": 1.5}, "similarity = 1.5 must be between 0 and 1"),
    (majority_class_partition, 20, {"similarity": float("nan")}, "similarity = nan"),
    (majority_class_partition, 6000, {"similarity": 1.0}, "holds no sample .* use fewer clients"),
    (majority_class_partition, 7000, {}, "clients = 7000 must be at most the number of samples, 6000"),
    (dirichlet_partition, 7000, {}, "clients = 7000 must be between 1 and the number of samples, 6000"),
    (dirichlet_partition, 0, {}, "clients = 0 must be between 1"),
    (class_mix_partition, 7000, {}, "clients = 7000 must be between 1 and the number of samples, 6000"),
    (class_mix_partition, 20, {"alpha": float("inf")}, "alpha = inf must be at least 0.001"),
    (dirichlet_partition, 20, {"alpha": 0.0}, "alpha = 0.0 must be at least 0.001"),
])  # fmt: skip
def test_impossible_partitions_are_refused(split, clients, arguments, message):
    with pytest.raises(FedboundsError, match=message):
        split(LABELS, clients, np.random.default_rng(0), **arguments)


def test_a_recorded_partition_is_checked():
    with pytest.raises(FedboundsError, match="client 1 holds no sample"):
        Partition(np.array([0, 2]), np.array([0, 1, 2]))
    with pytest.raises(FedboundsError, match=r"outside 0\.\.1"):
        Partition(np.array([0, 2]), np.array([0, 1]))
