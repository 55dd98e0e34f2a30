"""FedMRN and its baselines: engines against pseudo-code that sends bytes, special cases, the parts of the ablation."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.algorithms.messages import (
    Drive,
    Eden,
    FullPrecision,
    Sparsified,
    StochasticSign,
    TernGrad,
    TopK,
)
from fedbounds.empirical.algorithms.messages.envelope import seal
from fedbounds.empirical.data.datasets import load_dataset
from fedbounds.empirical.data.partition import Partition, majority_class_partition
from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
from fedbounds.empirical.papers.fedmrn.algorithms import (
    Compressed,
    FedMRN,
    FedPM,
    FedSparsify,
    LocalMasking,
    LocalScores,
)
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import ImageClassification, random_cosine_quadratic, random_quadratic
from fedbounds.empirical.runtime.counter_rng import chances
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.reference_algorithms import run_reference
from fedbounds.empirical.simulation.simulate import simulate

CLIENTS, DIMENSION, ROUNDS, SEEDS = 6, 5, 8, (0, 5)
SOME = WithoutReplacement(CLIENTS, 3)
MASKING = [
    FedMRN(0.05, 4, amplitude=0.1),
    FedMRN(0.05, 4, amplitude=0.1, masks="binary"),
    FedMRN(0.05, 4, amplitude=0.1, law="gaussian", progressive=False),
    FedMRN(0.05, 4, amplitude=0.1, law="bernoulli", masks="binary", stochastic=False),
    FedMRN(0.05, 4, amplitude=0.1, law="bernoulli", stochastic=False, progressive=False),
]
COMPRESSING = [
    Compressed(0.05, 3, each)
    for each in (FullPrecision(), StochasticSign(), TernGrad(), TopK(0.4), Sparsified(0.5), Drive(), Eden(2),
                 MaskedNoise("bernoulli", 0.2))
]  # fmt: skip
SCORING = [FedPM(2.0, 3, weight_scale=2.0), FedPM(0.5, 2, sampled=True)]
ALGORITHMS = [*MASKING, *COMPRESSING, *SCORING, FedSparsify(0.05, 3, share=0.4)]
EACH = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)


@cache
def problem(name="quadratic", noise=0.3):
    make = random_cosine_quadratic if name == "cosine" else random_quadratic
    return make(CLIENTS, DIMENSION, noise=noise, seed=1)


def models(algorithm, on, process=SOME, rounds=ROUNDS, seeds=SEEDS, **more):
    return simulate(algorithm, on, process, rounds, seeds=seeds, record_models=True, **more).model


def twin(algorithm, on, process, seed, rounds=ROUNDS):
    streams = Streams(seed)
    return run_reference(algorithm, on, process.matrix(rounds, streams.generator("participation")), streams).numpy()


def messages_of(monkeypatch):
    """The lengths of all messages that are sealed from now on."""
    sent = []

    def listened(*what):
        sent.append(len(seal(*what)))
        return seal(*what)

    for module in ("algorithms.messages.compressor", "algorithms.messages.compressors", "papers.fedmrn.masked_noise"):
        monkeypatch.setattr(f"fedbounds.empirical.{module}.seal", listened)
    return sent


@EACH
@pytest.mark.parametrize("name", ["quadratic", "cosine"])
@pytest.mark.parametrize("engine", ["sequential", "batched"])
def test_engines_agree_with_the_pseudo_code_that_sends_bytes(engine, name, algorithm):
    ours = models(algorithm, problem(name), engine=engine)
    for row, seed in enumerate(SEEDS):
        assert np.abs(ours[row] - twin(algorithm, problem(name), SOME, seed)).max() < 1e-10


@pytest.mark.parametrize("algorithm", [MASKING[0], MASKING[1], COMPRESSING[2], ALGORITHMS[-1]], ids=str)
def test_engines_agree_with_the_pseudo_code_on_a_network(algorithm):
    digits = load_dataset("digits")
    partition = majority_class_partition(digits.train_labels, 10, np.random.default_rng(0))
    images = ImageClassification(digits, partition, "linear", batch=4, dtype=torch.float64)
    some = WithoutReplacement(10, 2)
    ours = models(algorithm, images, some, rounds=3)
    assert np.abs(ours[1] - twin(algorithm, images, some, 5, rounds=3)).max() < 1e-10


@pytest.fixture(scope="module")
def normalized():
    """A small network with batch normalization, on 12 images of each of 5 clients; one holds less than a batch."""
    digits = load_dataset("digits")
    owners = np.repeat(np.arange(5), [13, 13, 13, 13, 3])
    few = replace(digits, train_images=digits.train_images[:55], train_labels=digits.train_labels[:55])
    return ImageClassification(few, Partition(owners, np.arange(5)), "cnn4-bn-small", batch=4, dtype=torch.float64)


SMALL = WithoutReplacement(5, 3)
ON_NETWORKS = [
    FedMRN(0.05, 2, amplitude=0.1), FedMRN(0.05, 2, amplitude=0.1, masks="binary", stochastic=False),
    *COMPRESSING[1:4], COMPRESSING[5], ALGORITHMS[-1], FedAvg(0.05, 3), *SCORING,
]  # fmt: skip


@pytest.mark.parametrize("algorithm", ON_NETWORKS, ids=str)
def test_engines_agree_with_the_pseudo_code_under_batch_normalization(algorithm, normalized):
    expected = twin(algorithm, normalized, SMALL, 5, rounds=2)
    for engine in ("sequential", "batched"):
        ours = models(algorithm, normalized, SMALL, rounds=2, engine=engine)
        assert np.abs(ours[1] - expected).max() < 1e-9


@pytest.mark.parametrize("algorithm", [ON_NETWORKS[0], COMPRESSING[3], SCORING[0], ALGORITHMS[-1]], ids=str)
def test_batch_normalization_is_sent_in_full_precision_and_counted(algorithm, normalized, monkeypatch):
    length = simulate(algorithm, normalized, SMALL, 1).spec["message_bytes"]
    sent = messages_of(monkeypatch)
    twin(algorithm, normalized, SMALL, 5, rounds=1)
    d, whole = normalized.dimension, 4 * (8 + 16 + 32 + 64)
    assert normalized.uncompressed == whole and length == algorithm.codec.message_bytes(d - whole) + 4 * whole
    assert [size for size in sent if size != algorithm.codec.message_bytes(d - whole)] == [length] * 3


def test_nobody_masks_or_prunes_what_belongs_to_batch_normalization(normalized):
    whole, run = normalized.uncompressed, models(MASKING[0], normalized, SMALL, rounds=1)[0]
    moved = np.abs(np.diff(run, axis=0)[0])
    assert moved[:-whole].max() <= 0.1 + 1e-9 and moved[-whole:].max() > 0.1
    pruned = models(FedSparsify(0.05, 1, share=0.01), normalized, WithoutReplacement(5, 1), rounds=1)[0, -1]
    assert np.count_nonzero(pruned[:-whole]) == FedSparsify(0.05, 1, share=0.01).codec.count(len(pruned) - whole)
    unpruned = models(FedSparsify(0.05, 1, share=1), normalized, WithoutReplacement(5, 1), rounds=1)[0, -1]
    assert np.array_equal(pruned[-whole:], unpruned[-whole:]) and np.count_nonzero(unpruned[-whole:]) > whole / 2


@EACH
def test_there_is_no_closed_form(algorithm):
    with pytest.raises(
        FedboundsError, match=f"'closed form' is not for {algorithm.kind}, whose local steps are not plain"
    ):
        models(algorithm, problem(), engine="closed form")
    assert simulate(algorithm, problem(), SOME, 2).engine == "batched"
    with pytest.raises(FedboundsError):
        moments(algorithm, problem(), SOME, 5)


@EACH
def test_algorithms_come_back_from_their_tables(algorithm):
    again = algorithm_from_spec(algorithm.spec())
    assert again.spec() == algorithm.spec()
    assert np.array_equal(models(again, problem()), models(algorithm, problem()))


@EACH
def test_a_trace_counts_the_bytes_of_real_messages(algorithm, monkeypatch):
    run = simulate(algorithm, problem(), SOME, ROUNDS, seeds=(5,), record_every=3)
    sent = messages_of(monkeypatch)
    twin(algorithm, problem(), SOME, 5)
    if run.spec["message_bytes"] is None:
        assert "uplink_bytes" not in run.arrays and algorithm.spec()["compressor"]["kind"] == "sparsified"
    else:
        assert set(sent) == {run.spec["message_bytes"]} and len(sent) == 3 * ROUNDS
        assert run.uplink_bytes.tolist() == [[0, sum(sent[:9]), sum(sent[:18]), sum(sent)]]


def test_phases_send_what_their_algorithms_do():
    phases = [(FedAvg(0.05, 2), 2), (MASKING[0], 3)]
    run = simulate(None, problem(), SOME, phases=phases)
    whole = len(FullPrecision().encode(np.zeros(DIMENSION), np.random.default_rng()))
    few = MASKING[0].codec.message_bytes(DIMENSION)
    assert [phase["message_bytes"] for phase in run.spec["phases"]] == [whole, few]
    assert run.uplink_bytes[0].tolist() == np.cumsum([0, *[3 * whole] * 2, *[3 * few] * 3]).tolist()


def test_full_precision_is_fedavg():
    plain = models(FedAvg(0.05, 3), problem(), engine="batched")
    np.testing.assert_allclose(models(Compressed(0.05, 3, FullPrecision()), problem()), plain, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(models(FedSparsify(0.05, 3, share=1.0), problem()), plain, rtol=1e-6, atol=1e-7)


def test_signed_bernoulli_masks_move_every_coordinate_by_multiples_of_the_amplitude():
    K, a = 3, 0.0625
    run = models(FedMRN(0.05, 4, amplitude=a, law="bernoulli"), problem(), WithoutReplacement(CLIENTS, K))
    moved = np.diff(run, axis=1) * K / a
    np.testing.assert_allclose(moved, np.round(moved), atol=1e-9)
    assert np.abs(moved).min() > 0.5 and np.abs(moved).max() < K + 0.5  # K is odd: no coordinate ever rests


@pytest.mark.parametrize("masks", ["binary", "signed"])
def test_no_coordinate_moves_more_than_the_noise(masks):
    run = models(FedMRN(0.5, 4, amplitude=0.05, masks=masks), problem())
    assert np.abs(np.diff(run, axis=1)).max() <= 0.05


def tried(masks: MaskedNoise, steps: int, u: float, size: int, **parts) -> list[np.ndarray]:
    """Where the gradients of a client are taken, relative to what it received, if u is the same in all steps."""
    local, seen = LocalMasking(1.0, steps, masks=masks, **parts), []

    def gradient(y: torch.Tensor) -> torch.Tensor:
        seen.append(y.numpy().copy()[0])
        return torch.zeros_like(y) if len(seen) > 1 or not u else torch.full_like(y, -u)

    local.update(torch.zeros(1, size, dtype=torch.float64), gradient, torch.tensor([17]))
    return seen


def test_the_first_step_of_binary_masks_is_at_the_model_and_of_signed_ones_is_not():
    noise = MaskedNoise("bernoulli", 0.25, "binary")
    assert not tried(noise, 3, 0.0, 200)[0].any()
    (whole,) = tried(MaskedNoise("bernoulli", 0.25), 1, 0.0, 200)
    assert set(np.abs(whole)) == {0.25} and 60 < (whole > 0).sum() < 140  # so one step is not SignSGD
    first = tried(MaskedNoise("bernoulli", 0.25), 4, 0.0, 4000)[0]
    assert set(np.abs(first)) == {0.0, 0.25}
    assert stats.binomtest(int(np.count_nonzero(first)), 4000, 0.25).pvalue > 1e-6


def test_masks_come_in_with_the_probability_of_their_step():
    S, u, a, size = 5, 0.1, 0.25, 20_000
    for masks in ("signed", "binary"):
        points = tried(MaskedNoise("bernoulli", a, masks), S, u, size)
        n = MaskedNoise("bernoulli", a, masks).noise(17, size)
        for step in range(2, S + 1):
            x = points[step - 1]
            if masks == "signed":
                masked, mean = np.abs(x) > 0.2, u
            else:  # noise of the other sign sends nothing, masked or not
                x, mean = x[n > 0], u
                masked = np.abs(x - u) > 1e-6
            assert stats.binomtest(int(masked.sum()), len(x), step / S).pvalue > 1e-6
            assert x.mean() == pytest.approx(mean, abs=5 * a / len(x) ** 0.5)
    without = tried(MaskedNoise("bernoulli", a), S, u, 100, progressive=False)
    assert all(set(np.abs(x)) == {np.float64(np.float32(a))} for x in without)


def test_progressive_masks_have_the_stated_error():
    S, u, a, size = 4, 0.1, 0.25, 200_000
    ratios = []
    for step, x in enumerate(tried(MaskedNoise("bernoulli", a), S, u, size)[1:], start=2):
        ratios.append(np.square(x - u).mean() / (a**2 - u**2))
        assert ratios[-1] == pytest.approx(step / S, abs=0.01)  # p, not p^2 as Proposition 1 has it


def test_without_random_masks_signs_decide():
    noise = MaskedNoise("uniform", 0.3)
    n = noise.noise(17, 500).astype(float)
    last = tried(noise, 3, 0.2, 500, stochastic=False, progressive=False)[-1]
    np.testing.assert_array_equal(last, np.abs(n))
    binary = tried(MaskedNoise("uniform", 0.3, "binary"), 3, 0.2, 500, stochastic=False, progressive=False)[-1]
    np.testing.assert_array_equal(binary, np.where(n > 0, n, 0))


def test_steps_move_what_is_masked_by_the_gradient_where_the_masked_noise_is():
    seen = []
    local = LocalMasking(0.5, 3, masks=MaskedNoise("bernoulli", 4.0))

    def gradient(y):
        seen.append(y.clone())
        return 2 * y

    x, words = torch.ones(1, 6, dtype=torch.float64), torch.tensor([5])
    meant = local.update(x, gradient, words)
    u = -sum(0.5 * 2 * y for y in seen)  # straight through: neither masks nor clipping change the step
    chance, _ = chances(words, 200, 6, torch.float64)
    n = torch.from_numpy(MaskedNoise("bernoulli", 4.0).noise(5, 6)).double()
    assert torch.equal(meant, torch.where(chance < (u / n + 1) / 2, n, -n))


def test_scores_follow_the_gradient_where_the_masked_weights_are():
    seen, w = [], torch.tensor([[2.0, -3.0, 0.5, 1.0]] * 500, dtype=torch.float64)

    def gradient(y):
        seen.append(y.clone())
        return y + 1

    s, words = torch.full_like(w, 0.4), torch.arange(500)
    bits = LocalScores(0.3, 2).update(torch.cat([s, w], -1), gradient, words)
    for point in seen:
        assert set((point / w).unique().tolist()) == {0, 1}
        theta = torch.sigmoid(s)  # straight through: neither step cares which bits were drawn but in the gradient
        s = s - 0.3 * (point + 1) * w * theta * (1 - theta)
        assert stats.binomtest(int((point != 0).sum()), 2000, float(theta.mean())).pvalue > 1e-6
    assert set(bits.unique().tolist()) == {0, 1}
    for column in range(4):
        chance = float(torch.sigmoid(s[:, column]).mean())
        assert stats.binomtest(int(bits[:, column].sum()), 500, chance).pvalue > 1e-6


def test_scores_stay_finite_where_all_masks_agree_and_unmoved_where_nobody_answers():
    q = np.zeros((4, CLIENTS))
    q[1, :3], q[3, 0] = 1 / 3, 1.0
    x0, run = problem().x0.numpy(), models(FedPM(1e6, 2), problem(), q, rounds=4, seeds=(0,))[0]
    kept = run / x0
    assert np.allclose(kept[1], 0.5) and np.array_equal(run[2], run[3])  # half of each weight, to begin with
    assert np.allclose(np.unique(kept[4].round(9)), [0.01, 0.99])
    halved = models(FedPM(1e6, 2), problem(), q / 2, rounds=4, seeds=(0,))[0]
    np.testing.assert_allclose(halved, run, rtol=1e-12)  # weights are divided by their sum


def test_a_run_that_diverges_is_marked_and_not_sent():
    run = simulate(Compressed(1e30, 3, TernGrad()), problem(), SOME, 5, seeds=(0,), engine="batched")
    assert run.statuses == ("diverged",)


@pytest.mark.parametrize("algorithm", MASKING, ids=str)
def test_masks_do_not_hide_a_client_that_diverged(algorithm):
    calls = []

    def gradient(y):
        calls.append(0)
        return torch.full_like(y, float("nan")) if len(calls) == 2 else y

    x = torch.ones(1, 3, dtype=torch.float64)
    assert torch.isnan(algorithm.local.update(x, gradient, torch.tensor([3]))).all()


def test_an_update_too_large_to_send_is_no_error_but_a_divergence():
    run = simulate(Compressed(1e12, 3, Drive()), problem(), SOME, 5, seeds=(0,), engine="batched")
    assert run.statuses == ("diverged",)


def test_without_random_masks_the_sign_of_the_smallest_update_counts():
    local = LocalMasking(1.0, 1, masks=MaskedNoise("bernoulli", 0.5), stochastic=False)
    u = torch.tensor([1e-12, -1e-12, 0.0], dtype=torch.float32)
    assert local.masked(u, torch.full((3,), 0.5), u).tolist() == [0.5, -0.5, -0.5]


@pytest.mark.parametrize(("spec", "told"), [
    ({"kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2}, "needs amplitude"),
    ({"kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2, "amplitude": 0}, "amplitude = 0"),
    ({"kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2, "amplitude": 1, "law": "normal"}, "unknown law"),
    ({"kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2, "amplitude": 1, "masks": "both"}, "unknown masks"),
    ({"kind": "fedmrn", "local_step_size": 0.1, "local_steps": 2, "amplitude": 1, "progressive": 1}, "true or false"),
    ({"kind": "compressed", "local_step_size": 0.1, "local_steps": 2, "compressor": "top-k"}, "must be a table"),
    ({"kind": "compressed", "local_step_size": 0.1, "local_steps": 2, "compressor": {"kind": "topk"}}, "did you mean"),
    ({"kind": "compressed", "local_step_size": 0.1, "local_steps": 2,
      "compressor": {"kind": "top-k", "part": 1}}, "unknown key of compressor 'top-k': 'part'"),
    ({"kind": "fedpm", "local_step_size": 0.1, "local_steps": 2, "weight_scale": 0}, "weight_scale = 0 must be"),
    ({"kind": "fedpm", "local_step_size": 0.1, "local_steps": 2, "sampled": 1}, "true or false"),
    ({"kind": "fedpm", "local_step_size": 0.1, "local_steps": 2, "whole": 1}, "unknown key of .* 'whole'"),
    ({"kind": "fedmrn", "local_step_size": math.nan, "local_steps": 2, "amplitude": 1}, "local_step_size = nan"),
    ({"kind": "fedsparsify", "local_step_size": 0.1, "local_steps": 2, "share": 1.5}, "share = 1.5 must be in"),
])  # fmt: skip
def test_bad_tables_are_refused_in_one_line(spec, told):
    with pytest.raises(FedboundsError, match=told) as refused:
        algorithm_from_spec(spec)
    assert "\n" not in str(refused.value)
