"""The test of compressors: its error rate, its other sizes, and what it makes of what a compressor states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.algorithms.messages import FullPrecision, StochasticSign, TopK
from fedbounds.empirical.invariants.compressor import PROPERTIES, SINGLE, check_compressor
from fedbounds.empirical.invariants.report import BrokenInvariant
from tests.zoo.compressors import CORRECT, MUTANTS


@pytest.mark.parametrize("messages", [100, 400, 2000])
def test_a_single_entry_is_called_biased_as_seldom_as_stated(messages):
    """Exactly, for an entry with two values that are each expected in 50 messages at least."""
    k = np.arange(messages + 1)
    share = k / messages
    for p in np.linspace(50 / messages, 0.5, 40):
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.abs(share - p) / np.sqrt(share * (1 - share) / (messages - 1))
        assert binom.pmf(k, messages, p)[errors > SINGLE].sum() < 1e-11


def test_the_same_seed_gives_the_same_report_and_another_one_no_false_alarm():
    assert str(check_compressor(CORRECT["levels"], 32, 100)) == str(check_compressor(CORRECT["levels"], 32, 100))
    for seed in range(3):
        for name in ("sign", "ternary", "kept", "levels"):
            assert check_compressor(CORRECT[name], 16, 100, seed=seed).passed


def test_what_fails_in_another_size_is_a_verdict_with_that_update():
    class Lost(FullPrecision):
        """Zero comes out as nan."""

        def decode(self, message):
            found = super().decode(message)
            return found if found.any() else np.full(len(found), np.nan)

    report = check_compressor(Lost(), 16, 20)
    (broken,) = report.broken
    assert broken.name == "every size" and "'zero', d = 1" in str(broken) and "decode returned nan at 0" in str(report)
    with pytest.raises(BrokenInvariant, match="decode returned nan"):
        report.raise_if_broken()
    alone = check_compressor(Lost(), 16, 20, sizes=())
    assert alone.passed and "skipped every size: no other sizes are given" in str(alone)


def test_a_bias_must_be_stated():
    class Quiet:
        """`TopK` without what it says of itself."""

        encode, decode = TopK(0.25).encode, TopK(0.25).decode

    report = check_compressor(Quiet(), 16, 20)
    assert [verdict.name for verdict in report.broken] == ["unbiased"] and report.biased
    assert "if one is meant, set unbiased = False" in str(report)
    stated = check_compressor(TopK(0.25), 16, 20)
    assert stated.passed and stated.biased and "skipped unbiased: it says unbiased = False" in str(stated)
    assert [verdict.name for verdict in stated.verdicts] == list(PROPERTIES)


def test_wrong_statements_are_found():
    class Long(FullPrecision):
        def message_bytes(self, size):
            return 4 * size

    class Close(StochasticSign):
        def relative_error(self, size):
            return 0.5

    class Exact(StochasticSign):
        def squared_error(self, x):
            return 0.9 * super().squared_error(x)

    found = {of.__name__: [each.name for each in check_compressor(of(), 16, 50).broken] for of in (Long, Close, Exact)}
    assert found == {"Long": ["stated length"], "Close": ["stated error"], "Exact": ["stated error"]}


def test_sizes_are_checked():
    with pytest.raises(FedboundsError, match="sizes"):
        check_compressor(FullPrecision(), 16, 20, sizes=(0,))


def test_a_bias_that_is_stated_hides_no_wrong_place():
    report = check_compressor(MUTANTS["positions in two bytes"], 16, 20)
    (broken,) = report.broken
    assert broken.name == "in place" and "d = 70000" in str(broken)
    assert "the largest entry, 0.3 at 69999, is in none of the messages" in str(broken)
    assert check_compressor(MUTANTS["positions in two bytes"], 16, 20, sizes=(5, 300)).passed


def test_damaged_messages_are_a_verdict_only_where_they_are_said_to_be_refused():
    silent, says = CORRECT["ternary"], MUTANTS["says that it refuses damaged messages"]
    accepted = "accepted, with another meaning: cut short, one byte too long, one bit flipped"
    report = check_compressor(silent, 16, 20)
    assert report.passed and report.refused == accepted
    assert f"it does not say refuses_damaged = True; they are {accepted}" in str(report)
    assert [each.name for each in check_compressor(says, 16, 20).broken] == ["damaged messages"]


@pytest.mark.parametrize("seed", range(4))
def test_few_seeds_are_reported_from_chance(seed):
    assert not check_compressor(MUTANTS["one of 256 seeds"], seed=seed).passed
    assert check_compressor(CORRECT["sign"], seed=seed).passed


def test_no_other_magnitudes_are_tried_where_the_scale_is_given():
    class Capped(FullPrecision):
        """Entries above 1e4 are 1e4."""

        def encode(self, update, rng):
            return super().encode(np.clip(update, -1e4, 1e4), rng)

    assert not check_compressor(Capped(), 16, 20).passed and check_compressor(Capped(), 16, 20, scale=1.0).passed
