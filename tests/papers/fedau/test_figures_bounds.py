"""FedAU's measured figures: bounds where there are bounds, reasons where there are none, predictions that are met."""

from __future__ import annotations

import numpy as np
import pytest

from fedbounds.figures.charts.overlay import overlays
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.papers.fedau.bounds import (
    ExperimentSize,
    runs_of_theorem_2,
    theorem_2,
    without_bound,
    wrong_objectives,
)

SMALL = ExperimentSize(clients=4, dimension=2, local_steps=2, rounds=20, seeds=3)


def curves(picture: Picture) -> dict[str, Curve]:
    return {curve.label: curve for curve in picture.curves}


def test_every_panel_shows_a_run_under_both_forms_and_none_is_crossed() -> None:
    picture = theorem_2(SMALL)
    drawn = curves(picture)
    panels = [f"{shape}, {name}" for shape in ("log-cosh", "cosine")
              for name in ("known rates", "FedAU, K = 1", "FedAU, K = 4", "FedAU, K = inf")]  # fmt: skip
    assert [axes.get_title(loc="left") for axes in picture.figure.axes] == panels
    for panel in panels:
        measured, explicit, sharp = (
            drawn[f"{panel}: {what}"] for what in ("measured (mean of 3 seeds)", "bound [explicit]", "bound [sharp]")
        )
        assert (measured.y < sharp.y).all() and (sharp.y < explicit.y).all() and measured.low is not None
        for form, bound in (("explicit", explicit), ("sharp", sharp)):
            about = picture.provenance[panel][form]
            assert about["guarantee"] and about["ratio"] == pytest.approx(measured.y[-1] / bound.y[-1])
    assert picture.caption.count("A guarantee.") == 16 and "Crossed" not in picture.caption
    assert "0 crossings" in picture.alternative
    assert all("measured / bound at most" in axes.texts[0].get_text() for axes in picture.figure.axes)


def test_a_ratio_is_shown_only_where_a_condition_holds() -> None:
    comparisons = runs_of_theorem_2(ExperimentSize(clients=4, dimension=2, local_steps=2, rounds=3, seeds=2))["cosine"]
    known = comparisons["known rates"][0]
    picture = overlays({"": {"known rates": [known]}}, title="")
    assert f"{float(known.ratio.max()):.2g} [explicit]" in picture.figure.axes[0].texts[0].get_text()


def test_what_no_theorem_covers_is_drawn_without_a_bound_and_the_picture_says_why() -> None:
    picture = without_bound(SMALL)
    bernoulli, markovian, cyclic = (axes.get_title(loc="left") for axes in picture.figure.axes)
    assert bernoulli == "Bernoulli" and "no bound" in markovian and "no bound" in cyclic
    labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert {"average participating (no bound)", "FedVarp (no bound)", "MIFA (no bound)", "FedAU, K = 4"} < set(labels)
    bounds = [label for label in curves(picture) if "bound of" in label]
    assert bounds == ["Bernoulli: bound of FedAU, K = 4"]
    for reason in ("same round", "stored updates of absent clients", "Assumption 4"):
        assert reason in picture.caption


def test_predicted_and_measured_objectives_are_drawn_together() -> None:
    drawn = curves(wrong_objectives(cutoffs=(1, 8), rounds=800, seeds=8))
    assert drawn["average all: predicted"].y[-1] == pytest.approx(6.787879, abs=1e-6)
    assert drawn["known rates: E x_t"].y[-1] == pytest.approx(3.75, abs=0.05)
    measured, predicted = drawn["FedAU: measured distance"], drawn["FedAU: predicted distance"]
    assert measured.low is not None
    assert measured.y == pytest.approx([predicted.y[0], predicted.y[-1]], abs=0.15)


def test_the_global_step_is_the_largest_that_theorem_2_allows() -> None:
    for forms in runs_of_theorem_2(SMALL)["cosine"].values():
        caps = {c.text: c for c in forms[0].evaluation.conditions if "eta" in c.text}
        slack = [float(np.ravel(c.left)[0] / np.ravel(c.right)[0]) for c in caps.values()]
        assert max(slack) == pytest.approx(1, abs=1e-8)
