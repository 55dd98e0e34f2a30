"""Block updates on clients with kinks: against exact moments of quadratics, and one sequence of signs at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fedbounds.empirical.falsification.instances.piecewise_quadratics import PiecewiseQuadratic
from fedbounds.empirical.papers.tdcd.instances.runs import TieredRuns
from fedbounds.empirical.papers.tdcd.instances.tiers import TieredClients, draw_tiered

B = 5


def tiered(seed: int, N: int, K: int, *, together: bool, kinks: bool) -> TieredClients:
    z = TieredClients(
        **draw_tiered(np.random.default_rng(seed), B, (N, K, 2), noisy=True), samples=0, eta=np.linspace(0.05, 0.3, B),
        together=together, steps=3, rounds=3,
    )  # fmt: skip
    z = replace(z, noise=z.noise + np.random.default_rng(seed).uniform(0.2, 1, z.noise.shape[2]))
    if kinks:
        return z
    bends = np.random.default_rng(seed).uniform(0.2, 1, (B, K, N, 1))
    return replace(z, curvatures=np.repeat(bends, 3, axis=3))


@pytest.mark.parametrize(("N", "K", "together"), [(1, 2, False), (2, 1, True), (3, 2, True)])
def test_without_kinks_the_moments_are_those_of_quadratics(N: int, K: int, together: bool) -> None:
    z = tiered(1, N, K, together=together, kinks=False)
    c, a = z.curvatures[..., 0], z.directions
    pulls = -np.einsum("bmd,bkm->bkd", a, z.first - c * z.knots[:, None, :, 0])
    noise = np.zeros((B, N, N))
    noise[:, :, 0] = z.noise[:, 0]
    same = TieredRuns(
        hessians=np.einsum("bmi,bkm,bmj->bkij", a, c, a), pulls=pulls, noise=noise, together=np.full(B, together),
        start=z.start, eta=z.eta, latency=np.ones(B), spare=np.ones(B), silos=N, steps=3, rounds=3,
    )  # fmt: skip
    norms, variances, ends = same.moments
    assert z.course.gradient == pytest.approx(norms, rel=1e-11)
    assert z.course.variance == pytest.approx(variances, rel=1e-11)
    assert z.course.ends - z.lowest[:, None] == pytest.approx(ends - same.lowest[:, None], rel=1e-9)
    for ours, theirs in zip(z.constants, same.smoothness, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-11)


def test_with_kinks_they_are_those_of_algorithm_1_client_by_client() -> None:
    z = tiered(2, 2, 2, together=False, kinks=True)
    for b in range(2):
        a, v, eta = z.directions[b], z.noise[b], float(z.eta[b])

        def gradient(k: int, theta: np.ndarray, b: int = b, a: np.ndarray = a) -> np.ndarray:
            parts = (PiecewiseQuadratic(z.knots[b, m], z.curvatures[b, k, m], z.first[b, k, m]) for m in range(2))
            return sum(phi.slope(a[m] @ theta[:, None])[0] * a[m] for m, phi in enumerate(parts))  # type: ignore[return-value]

        found = np.zeros((3, 3))
        for signs in product((-1.0, 1.0), repeat=6):
            theta = z.start[b]
            for r in range(3):
                models = [theta.copy(), theta.copy()]
                for q in range(3):
                    average = np.mean(models, axis=0)
                    found[r, q] += (np.mean([gradient(k, average) for k in range(2)], axis=0) ** 2).sum() / 2**6
                    for k in range(2):
                        own = models[k].copy()
                        for j in range(2):  # silo j sees its own block as it is, the other as the round began
                            stale = np.where(np.arange(2) == j, models[k], theta)
                            own[j] -= eta * (gradient(k, stale)[j] + signs[2 * r + k] * v[k, j])
                        models[k] = own
                theta = np.mean(models, axis=0)
        assert z.course.gradient[b] == pytest.approx(found, rel=1e-11)


def test_the_constants_are_attained_and_not_exceeded() -> None:
    z = tiered(3, 2, 1, together=True, kinks=True)
    rng = np.random.default_rng(4)
    points = rng.normal(size=(B, 2, 4000)) * 3
    steps = 1e-5 * rng.normal(size=points.shape)
    rise = z.slopes_along(points + steps).mean(axis=1) - z.slopes_along(points).mean(axis=1)
    seen = (np.linalg.norm(rise, axis=1) / np.linalg.norm(steps, axis=1)).max(axis=1)
    L, own = z.constants
    assert (seen <= L * (1 + 1e-6)).all() and (seen > 0.5 * L).mean() > 0.5 and (own <= L * (1 + 1e-12)).all()
    below = z.objective.value(np.einsum("bmd,bdp->bmp", z.directions, points)).sum(axis=1).min(axis=1)
    assert (below >= z.lowest).all()
