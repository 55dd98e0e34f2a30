"""Fed-Norm-SGDA's measured figures: bounds above what is measured, predictions that are met, slopes that are fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.papers.fed_norm_sgda.bounds import (
    AXES,
    STARTS,
    Concave,
    QuadraticRun,
    headline,
    headlines,
    runs_of_theorem_1,
    runs_of_theorem_4,
    theorem_1,
    theorem_4,
    vary_setting,
)
from fedbounds.figures.papers.fed_norm_sgda.surrogate import (
    NAIVE,
    NORMALIZED,
    TWO,
    corollary_1_1,
    departures,
    figure_1,
    mismatches,
    saddle,
    surrogate,
)

SHORT = QuadraticRun(rounds=60)


def curves(picture: Picture) -> dict[str, Curve]:
    return {curve.label: curve for curve in picture.curves}


def test_the_headline_has_the_slopes_that_the_cap_decides() -> None:
    rounds = [10**k for k in range(6, 13)]
    found = headlines(rounds)
    assert found[True].slope == pytest.approx(-1 / 3, abs=1e-3)
    assert found[False].slope == pytest.approx(-1 / 2, abs=1e-3)
    # 1/(16 Lf) with P = n, at the price 2
    assert found[True].ascent == pytest.approx(np.full(7, 1 / 32))
    assert found[False].ascent[-1] / found[False].ascent[0] == pytest.approx(1e3, rel=1e-2)  # sqrt(T)
    picture = headline(rounds)
    assert "-0.333 with the cap, -0.500 without" in picture.caption
    assert picture.provenance["slopes"] == {"with the theorem's cap": found[True].slope,
                                            "without it": found[False].slope}  # fmt: skip


def test_exact_runs_stay_under_theorem_1_in_every_panel() -> None:
    found = runs_of_theorem_1(SHORT)
    assert list(found) == list(STARTS) and all(list(by_panel) == list(AXES) for by_panel in found.values())
    for by_panel in found.values():
        for by_value in by_panel.values():
            for repaired, sharp in by_value.values():
                assert repaired.guarantee and sharp.guarantee, sharp.why_not
                assert (sharp.measured <= sharp.bound).all() and sharp.bound[-1] < repaired.bound[-1]
    picture = theorem_1(SHORT)
    drawn = curves(picture)
    panel = "whole run, participants $P$ of 12"
    assert drawn[f"{panel}: measured (exact)"].y[1] == found["whole run"]["participants $P$ of 12"][4][1].measured[-1]
    assert picture.provenance["conditions that fail"] == 0 and "All conditions hold" in picture.caption
    assert all("bound [sharp] / measured" in axes.texts[0].get_text() for axes in picture.figure.axes)
    low, high = picture.provenance["bound over measured [sharp]"][panel]
    ratios = drawn[f"{panel}: bound [sharp]"].y / drawn[f"{panel}: measured (exact)"].y
    assert (low, high) == pytest.approx((ratios.min(), ratios.max()))


def test_a_setting_varies_in_one_number_only() -> None:
    assert vary_setting(SHORT, "heterogeneity", 0.5) == replace(SHORT, heterogeneity=0.5)
    more = vary_setting(SHORT, "clients", 32)
    assert more.clients == more.process.participants == 32
    assert more.algorithm == SHORT.algorithm
    spread = [
        float(vary_setting(SHORT, "clients", n).problem().constants()["weighted_heterogeneity"].value) for n in (2, 32)
    ]  # type: ignore[union-attr]
    assert spread == pytest.approx([1.0, 1.0])
    assert saddle(SHORT.problem()) == pytest.approx(np.zeros(4), abs=1e-12)


def test_the_drawn_noise_floor_falls_with_participants_and_clients_and_rises_with_heterogeneity() -> None:
    floor = {
        panel: np.array([forms[0].measured[-1] for forms in by_value.values()])
        for panel, by_value in runs_of_theorem_1(SHORT)["noise floor, from the saddle"].items()
    }
    assert (np.diff(floor["participants $P$ of 12"]) < 0).all()
    n = floor["clients $n = P$"]
    assert n[0] / n[-1] == pytest.approx(16, rel=1e-3)  # of the noise alone, as all take part
    assert (np.diff(floor["heterogeneity $\\sigma_G$"]) > 0).all()


def test_runs_with_snapshots_stay_under_theorems_3_and_4() -> None:
    small = Concave(rounds=40, every=10, seeds=3, periods=(1, 20))
    found = runs_of_theorem_4(small)
    for row, by_period in found.items():
        for (comparison,) in by_period.values():
            assert comparison.result.key == f"fed-norm-sgda/theorem-{4 if row == 'concave' else 3}"
            assert comparison.valid.all() and not comparison.crossings.size
            assert comparison.why_not == ("R is known only along one run",)
    picture = theorem_4(small)
    assert [axes.get_title(loc="left") for axes in picture.figure.axes] == [
        f"{row}, S = {S}" for row in ("concave", "one-point concave") for S in (1, 20)
    ]
    measured = curves(picture)["concave, S = 20: measured (mean of 3 seeds)"]
    assert measured.low is not None and (measured.low < measured.y)[1:].all()


def test_naive_averaging_settles_where_it_is_predicted_and_normalized_averaging_near_the_saddle() -> None:
    drawn = curves(figure_1(rounds=300))
    for name in (NAIVE, NORMALIZED):
        assert drawn[f"{name}: distance"].y[-1] == pytest.approx(drawn[f"{name}: predicted"].y[0], rel=1e-4)
    assert drawn[f"{NAIVE}: predicted"].y[0] > 10 * drawn[f"{NORMALIZED}: predicted"].y[0]
    assert saddle(TWO) == pytest.approx([0, 0])
    # grad f_1 = (x/2 + y/2 - 1, x/2 - y - 1/2) = 0
    assert saddle(TWO.surrogate([1.0, 0.0])) == pytest.approx([5 / 3, 1 / 3])


def test_the_mismatch_grows_with_the_work_of_one_client_and_is_met() -> None:
    same, more = mismatches(NAIVE, (2, 8), rounds=300, seeds=8)
    assert same.surrogate == pytest.approx(0, abs=1e-12) and same.predicted == pytest.approx(0, abs=1e-12)
    assert abs(more.mean - more.predicted) < 5 * more.error + 1e-3
    # w = (0.2, 0.8): the surrogate's saddle is 0.6 of the way from F's to that of client 2
    assert more.surrogate == pytest.approx(0.6 * np.hypot(5 / 3, 1 / 3))
    picture = surrogate((2, 8), rounds=100, seeds=2)
    assert curves(picture)["saddle of the surrogate"].y[-1] == pytest.approx(more.surrogate)


def test_corollary_1_1_is_above_what_is_measured_and_both_grow_with_chi_squared() -> None:
    found = departures((0.1, 0.5, 1.0), 200, spread=0.3)
    assert list(found) == sorted(found)
    for chi2, forms in found.items():
        assert float(forms["printed"].constants["chi2"].value) == pytest.approx(chi2)
        assert not forms["printed"].crossings.size and not forms["sharp"].crossings.size
        assert forms["sharp"].bound[-1] <= forms["printed"].bound[-1]
    assert (np.diff([forms["sharp"].measured[-1] for forms in found.values()]) > 0).all()
    drawn = curves(corollary_1_1((0.1, 1.0), rounds=100))
    assert "equal maximizers, $d_i = 0$: printed: its maximizers' term" not in drawn
    assert (drawn["different maximizers: printed: its maximizers' term"].y > 0).all()
