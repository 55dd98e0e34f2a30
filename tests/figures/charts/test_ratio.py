"""Ratio pictures: exponents against planted ones, and a dependence that a bound has wrong is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from fedbounds.empirical.comparison.compare_run import confront_family
from fedbounds.empirical.participation import Full
from fedbounds.empirical.problems import random_quadratic
from fedbounds.figures.charts.rate import exponents, ratio_claims, ratios


def planted(measured, bound, samples=None):
    """Runs whose measure and bound are powers of what varies."""
    quadratic = random_quadratic(3, 2, noise=0.5, initial_gap=1.0)
    c = confront_family("arbitrary-participation/corollary-3.2", quadratic, Full(3), [20], local_steps=1, form="sharp")
    return {
        x: [
            replace(
                c,
                measured=np.array([x**measured]),
                bound=np.array([7 * x**bound]),
                samples=None if samples is None else x**measured * samples[k][:, None],
                seeds=0 if samples is None else len(samples[k]),
            )
        ]
        for k, x in enumerate((1.0, 2.0, 4.0, 8.0))
    }


def test_the_exponents_are_those_that_were_planted(tmp_path):
    panels = {"N": planted(-1.0, -1.0), "I": planted(-0.5, 0.5)}
    for name, (measured, bound) in {"N": (-1.0, -1.0), "I": (-0.5, 0.5)}.items():
        slope, promised = exponents(panels[name])
        assert (slope.value, promised) == (pytest.approx(measured), pytest.approx(bound))
    assert [claim.verdict for claim in ratio_claims(panels)] == ["reproduced", "not reproduced"]
    picture = ratios(panels, title="Planted")
    assert "I: measured goes like the power -0.500, the bound like 0.50, which is higher" in picture.caption
    assert all(path.stat().st_size for path in picture.save(tmp_path / "ratio.png"))


def test_what_a_sample_cannot_tell_is_inconclusive():
    rng = np.random.default_rng(0)
    wide = [np.exp(0.8 * rng.standard_normal(4)) for _ in range(4)]
    (claim,) = ratio_claims({"N": planted(-1.0, -0.6, wide)})
    assert claim.verdict == "inconclusive"
