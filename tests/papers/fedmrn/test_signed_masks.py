"""Signed masks on clients with kinks: without kinks they have the exact moments of quadratics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedbounds.empirical.papers.fedmrn.instances.kinked import SignedMasked, signed
from fedbounds.empirical.problems import Quadratic
from fedbounds.empirical.simulation.moments.operators import masked_moments, signed_masks


def smooth(which: int, *, progressive: bool) -> SignedMasked:
    """Four runs of a shape whose clients have one curvature each, under a bound that no gradient exceeds."""
    z = signed(False, 2.0, progressive)[which].take(np.arange(4))
    bends = np.linspace(0.4, 1, z.clients)[:, None, None]
    bends = np.broadcast_to(bends, z.curvatures.shape)
    return replace(z, curvatures=bends, bound=20 * z.bound, eta=np.full(4, 0.3), prescribed=False)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("which", [0, 2, 3, 4, 5])
def test_signed_masks_without_kinks_have_their_exact_moments(which: int, progressive: bool) -> None:
    z = smooth(which, progressive=progressive)
    for b in range(len(z)):
        a = z.curvatures[b, :, :, 0]
        problem = Quadratic(
            hessians=a, centers=z.knots[b, :, 0] - z.first[b] / a, noise=float(z.noise[b, 0, 0]), x0=z.start[b]
        )
        same = masked_moments(
            problem,
            signed_masks(lambda step, b=b: 2 * step * z.local_steps * float(z.bound[b])),
            lambda t: 0.3,
            iterations=z.iterations,
            local_steps=z.local_steps,
            cohort=z.cohort,
            progressive=progressive,
            largest_noise=float(z.noise[b, 0, 0]),
        )
        assert z.run.gradient[b] == pytest.approx(same.gradient_norm_squared[:-1].mean(), rel=1e-9)
        assert z.run.gap[b] == pytest.approx(same.objective_gap[-1], rel=1e-9)
        assert z.run.largest[b] == pytest.approx(same.gradient_bound**2, rel=1e-9)
        assert same.gradient_bound**2 * (1 - 1e-9) <= z.run.sure[b] <= same.sure_gradient_bound**2 * (1 + 1e-9)


def test_amplitudes_and_bounds_that_are_too_small_do_not_count() -> None:
    z = signed(True, 1.0, False)[0]
    assert np.all(z.met["signed-masks-per-round"]) and not np.any(z.met["signed-masks"])
    assert np.any(z.met["surely-bounded-gradients"])
    assert not np.any(replace(z, bound=0.01 * z.bound).met["surely-bounded-gradients"])
