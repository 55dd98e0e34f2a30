"""Projections onto the ball and the simplex, against the conditions that only the nearest point fulfils."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.problems.minimax import project_onto_ball, project_onto_simplex

ROWS = st.integers(1, 6).flatmap(lambda d: st.lists(st.floats(-50, 50, width=32), min_size=d, max_size=d))


@given(ROWS)
def test_the_projection_onto_the_simplex_is_the_nearest_of_all_faces(row):
    y = np.array(row)
    best, nearest = np.inf, y
    for support in itertools.product([False, True], repeat=len(y)):
        on = np.array(support)
        if not on.any():
            continue
        face = np.where(on, y - (y[on].sum() - 1) / on.sum(), 0.0)  # nearest point of the plane of this face
        distance = ((face - y) ** 2).sum()
        if (face >= 0).all() and distance < best:
            best, nearest = distance, face
    found = project_onto_simplex(torch.from_numpy(y)).numpy()
    np.testing.assert_allclose(found, nearest, atol=1e-11)
    assert found.sum() == pytest.approx(1, abs=1e-12)


@given(ROWS)
def test_no_point_of_the_set_makes_an_acute_angle_with_what_the_projection_takes_away(row):
    y, rng = torch.tensor(row, dtype=torch.float64), np.random.default_rng(0)
    inside = torch.from_numpy(rng.dirichlet(np.ones(len(row)), 50))
    directions = torch.from_numpy(rng.standard_normal((50, len(row))))
    ball = 2.0 * directions / directions.norm(dim=1, keepdim=True)
    for found, points in ((project_onto_simplex(y), inside), (project_onto_ball(y, 2.0), ball)):
        assert float(((points - found) @ (y - found)).max()) <= 1e-10


def test_points_of_the_sets_stay_where_they_are_and_rows_are_projected_on_their_own():
    rows = torch.tensor([[0.2, 0.3, 0.5], [3.0, 4.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    assert torch.equal(project_onto_ball(rows, 1.0)[0], rows[0])
    assert torch.equal(project_onto_ball(rows)[2], rows[2])
    torch.testing.assert_close(project_onto_ball(rows, 2.5)[1], rows[1] / 2)
    torch.testing.assert_close(project_onto_simplex(rows)[0], rows[0])
    for project in (project_onto_ball, project_onto_simplex):
        assert torch.equal(project(rows.view(3, 1, 3))[:, 0], torch.stack([project(row) for row in rows]))


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), "one"])
def test_a_ball_without_a_positive_radius_is_refused(radius):
    with pytest.raises(FedboundsError, match=r"radius = .* must be a number in \(0, inf\)"):
        project_onto_ball(torch.ones(2), radius)
