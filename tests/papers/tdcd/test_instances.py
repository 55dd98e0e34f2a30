"""Whole runs of TDCD with exact second moments as instances: against golden runs, and against every form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.papers.tdcd.results import ALL_ITERATES, SYNCHRONIZED
from fedbounds.bounds.theory.registry import load
from fedbounds.empirical.falsification.instances.instance_checker import judge_on_instances
from fedbounds.empirical.falsification.instances.sides import Sides, examine
from fedbounds.empirical.papers.tdcd.instances.runs import TieredRuns, draw_runs, instance_test, pool, sides
from tests.papers.tdcd.golden import GOLDEN, HESSIAN, START, VARIANCES, Golden, L

EACH = VARIANCES / [2, 2, 3, 3]  # of the mean over independent clients, of which the silos have 2 and 3


def one_run(Q: int, R: int, variances: np.ndarray, clients: int = 1) -> TieredRuns:
    one, start = np.ones(1), np.array([START])
    hessians, pulls = np.tile(HESSIAN, (1, clients, 1, 1)), np.zeros((1, clients, 4))
    noise = np.diag(np.sqrt(variances))[None]
    return TieredRuns(hessians=hessians, pulls=pulls, noise=noise, together=one > 0, start=start, eta=one / (8 * Q * L),
                      latency=one, spare=one / 2, silos=2, steps=Q, rounds=R)  # fmt: skip


@pytest.mark.parametrize("one", GOLDEN, ids=[f"Q={one.Q}-{one.noise}" for one in GOLDEN])
def test_golden_runs(one: Golden) -> None:
    z = one_run(one.Q, one.R, {"independent": EACH, "shared": VARIANCES, "none": 0 * VARIANCES}[one.noise])
    assert z.left(SYNCHRONIZED.of)[0, 0] == pytest.approx(one.norm, rel=1e-13)
    assert z.moments[2][0] == pytest.approx([8.625, one.last], rel=1e-13)


def test_clients_who_are_alike_and_share_their_noise_count_as_one() -> None:
    one, many = (one_run(5, 20, VARIANCES, clients).moments for clients in (1, 3))
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    independent = replace(one_run(5, 20, VARIANCES, 4), together=np.zeros(1, dtype=bool))
    np.testing.assert_allclose(independent.moments[0], one_run(5, 20, VARIANCES / 4).moments[0], rtol=1e-12)


def test_moments_are_the_means_over_every_path() -> None:
    """Clients with several functions, noise of two signs in each of three rounds, step by step."""
    rng = np.random.default_rng(7)
    drawn = (draw_runs(rng) for _ in range(500))
    z = replace(next(z for z in drawn if (z.clients, z.silos) == (3, 2) and 1 < z.steps < 7), rounds=3)
    b = int(np.flatnonzero(~z.alike & z.together & (z.noise != 0).any(axis=(1, 2)))[0])
    A, pulls, eta, d = z.hessians[b], z.pulls[b], z.eta[b], z.start.shape[1]
    width, paths = d // z.silos, np.array(np.meshgrid(*[[-1.0, 1.0]] * 3, *[range(d)] * 3)).reshape(6, -1).T
    norms = np.zeros((3, z.steps))
    for path in paths:  # a column of the root times sqrt(d), with either sign: the covariance is the root's
        x = z.start[b]
        for r in range(3):
            noise = path[r] * np.sqrt(d) * z.noise[b][:, int(path[3 + r])]
            copies = np.tile(x, (3, 1))
            for q in range(z.steps):
                norms[r, q] += ((A.mean(axis=0) @ copies.mean(axis=0) - pulls.mean(axis=0)) ** 2).sum() / len(paths)
                slopes = np.zeros_like(copies)
                for k in range(3):
                    for j in range(z.silos):
                        block = slice(j * width, (j + 1) * width)
                        view = np.where(np.arange(d) // width == j, copies[k], x)
                        slopes[k, block] = (A[k] @ view - pulls[k] + noise)[block]
                copies = copies - eta * slopes
            x = copies.mean(axis=0)
    np.testing.assert_allclose(z.moments[0][b], norms, rtol=1e-10)
    assert z.left(ALL_ITERATES.of)[b, 0] == pytest.approx(norms.mean(), rel=1e-10)


def of(result: str, form: str) -> Claim:
    found = load(f"tdcd/{result}")
    return ResultForm(found, found.form(form)).claim()


@pytest.mark.parametrize(
    ("form", "least", "most"),
    [  # 0.2826 is the limit of noiseless scalars at the largest step size; 19/16 of it for B19
        ("repaired", 0.27, 0.2826),
        ("repaired:B0inf", 0.27, 0.2826),
        ("repaired:all-iterations", 0.25, 0.2826),
        ("sharp:B19", 0.32, 0.3356),
        ("sharp:B1", 0.49, 0.56),
        ("sharp:B2", 0.49, 0.56),
        ("sharp:B3", 0.49, 0.56),
        ("sharp:Bind", 0.27, 0.2826),
    ],
)
def test_no_run_exceeds_a_form_and_the_worst_comes_as_near_as_is_known(form: str, least: float, most: float) -> None:
    found = judge_on_instances(of("theorem-1", form))
    assert found.covered > 200 and least < found.worst < most


def test_the_first_iterates_exceed_the_printed_bound() -> None:
    assert judge_on_instances(of("theorem-1", "printed")).worst > 2


def test_heterogeneity_left_out_of_the_noise_is_seen() -> None:
    claim = of("theorem-1", "repaired")

    def without(z: TieredRuns) -> Sides:
        silent = replace(z, noise=0 * z.noise, start=z.start)
        silent.values["S"][:] = 0.0
        return sides(claim, silent)

    assert examine([without(z) for z in pool(60)]).worst > 1


def test_a_leading_constant_of_a_quarter_is_seen() -> None:
    claim = of("theorem-1", "repaired")
    found = [sides(claim, z).scaled("initial gap", 0.25) for z in pool(30)]
    assert examine(found).worst > 1
    assert examine([sides(claim, z).scaled("initial gap", 0.3) for z in pool(30)]).worst < 1


def test_forms_that_hide_constants_are_not_heard() -> None:
    assert (
        instance_test(of("remark-5", "printed")) is None
        and instance_test(of("remark-5", "explicit:best-c")) is not None
    )
