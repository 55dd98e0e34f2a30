"""The figures of the room: what they draw is what the bounds and the moments say."""

from __future__ import annotations

import numpy as np
import pytest

import fedbounds
from fedbounds.bounds.errors import FedboundsError
from fedbounds.figures.papers.fedmrn.bounds import crossing
from fedbounds.figures.papers.fedmrn.claims import all_claims
from fedbounds.figures.papers.fedmrn.drawing import FIGURES, Gallery, Scale, draw
from fedbounds.figures.picture import Curve


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    return Gallery(tmp_path_factory.mktemp("results"), scale=Scale(400, (16, 64, 256), 41))


def test_theorem_1_is_drawn_where_it_holds_and_where_it_does_not(gallery):
    curves = {curve.label: curve for curve in draw(gallery, "theorem-1").curves}
    prescribed, promised = (
        curves["masks as prescribed: measured, exact"],
        curves["masks as prescribed: (11) with q = 1"],
    )
    assert prescribed.y[-1] > 10 * prescribed.y[0] and promised.y[-1] < promised.y[0] / 5
    assert 100 < crossing(prescribed, promised) < 300  # of the golden run: between t = 23 and t = 203
    current = [curve for label, curve in curves.items() if label.startswith("masks of amplitude")]
    measured, repaired, sharp = current
    assert (measured.y < sharp.y).all() and (sharp.y < repaired.y).all() and repaired.valid is not None
    kept = [curve for label, curve in curves.items() if label.startswith("a sparsifier")]
    assert (kept[0].y < kept[2].y).all() and (kept[2].y <= kept[1].y).all()


def test_theorem_2_is_drawn_above_what_is_measured(gallery):
    picture = draw(gallery, "theorem-2")
    for measured, printed, sharp in zip(*[iter(picture.curves)] * 3, strict=True):
        assert measured.label.endswith("measured, exact")
        assert (measured.y < sharp.y).all() and (sharp.y < printed.y).all()
    assert max(picture.provenance["largest_ratios"].values()) > 0.2  # not so loose that it could not fail


def test_masks_have_no_relative_error_and_other_operators_have_one(gallery):
    curves = {curve.label: curve for curve in draw(gallery, "operators").curves}
    for label, power in {"signed, Bernoulli": -1, "signed, uniform": -1, "binary, Bernoulli": -0.5}.items():
        curve = curves[label]
        found = np.log(curve.y[5] / curve.y[0]) / np.log(curve.x[5] / curve.x[0])
        assert found == pytest.approx(power, abs=0.01)
    np.testing.assert_allclose(curves["stochastic sign, of the length"].y, 63**0.5, rtol=1e-6)
    np.testing.assert_allclose(curves["sparsifier, one half"].y, 1.0)


def test_claims_are_those_of_the_moments(gallery):
    verdicts = {claim.text: claim.verdict for claim in all_claims(gallery)}
    assert [text for text, verdict in verdicts.items() if verdict == "disagrees"] == [
        "the gap falls like 1/T, with the amplitude that Theorem 1 prescribes",
        "masks satisfy Assumption 4 with some q",
    ]


def test_nothing_is_crossed_where_nothing_is_above():
    low, high = Curve("", np.arange(3.0), np.zeros(3)), Curve("", np.arange(3.0), np.ones(3))
    assert crossing(low, high) == np.inf and crossing(high, low) == 0


def test_the_command_draws_and_refuses_a_data_set(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fedbounds.main(["figure", "fedmrn/operators", "--out", "operators.svg"]) == 0
    assert (tmp_path / "operators.csv").stat().st_size
    capsys.readouterr()
    assert fedbounds.main(["figure", "fedmrn/operators", "--dataset", "digits", "--out", "operators.svg"]) != 0
    assert "they have no data set and no network" in capsys.readouterr().err
    with pytest.raises(FedboundsError, match="unknown figure of fedmrn 'operator'; did you mean operators"):
        draw(Gallery(tmp_path), "operator")
    assert set(FIGURES) == {"theorem-1", "theorem-2", "operators"}
