"""A comparison as it is printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedbounds.empirical.comparison.compare_run import confront
from fedbounds.empirical.papers.arbitrary_participation.algorithms import GeneralizedFedAvg
from fedbounds.empirical.problems import toy_example
from fedbounds.empirical.simulation.moments import moments


def test_a_printed_comparison_fits_a_screen_whatever_there_is_to_say():
    run = moments(GeneralizedFedAvg(1 / 36, 1, interval=3), toy_example(), np.tile(np.eye(3), (10, 1)))
    found = confront(run, "arbitrary-participation/theorem-3.1", "explicit")
    reasons = tuple(f"reason {k}: {'many words ' * 30}" for k in range(40))
    much = replace(
        found, evaluation=replace(found.evaluation, guarantee=False, why_not=reasons), notes=reasons, label="x " * 400
    )
    lines = str(much).splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 100
    assert any("more: .why_not" in line for line in lines) and any("more: .notes" in line for line in lines)
