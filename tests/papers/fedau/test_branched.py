"""Kinks under FedAU: all coins and all signs of the noise, against the pseudo-code and against quadratics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from fedbounds.empirical.falsification.instances.piecewise_quadratics import draw_clients
from fedbounds.empirical.papers.fedau.instances.claims import Branched, KinkedRecords, KinkedWeighted, kinked_records
from fedbounds.empirical.papers.fedau.instances.weighted import WeightedInstances
from fedbounds.empirical.papers.fedau.pseudocode import fedau, fixed_weights
from fedbounds.empirical.runtime.streams import Streams
from tests.empirical.falsification.stand_in_kinks import Signed

B, N, I, T = 4, 2, 1, 4


def parts(seed: int, rounds: int = T) -> dict[str, np.ndarray | int]:
    rng = np.random.default_rng(seed)
    drawn = draw_clients(rng, B, (N, 1, 2), noisy=True)
    drawn["noise"] *= np.array([0.5, 1.0])[:, None]
    p = rng.uniform(0.2, 1, (B, N))
    return {**drawn, "samples": 0, "p": p, "gamma": np.ones(B), "eta": np.ones(B), "local_steps": I, "rounds": rounds}


def every_run(z: Branched, b: int, twin: Callable[..., list[torch.Tensor]]) -> Iterator[tuple[float, np.ndarray]]:
    """The chance of every record and sign, and the models that the pseudo-code then gives; the last round has none."""
    for coins in product((0, 1), repeat=N * (T - 1)):
        q = np.array([*coins, *[0] * N]).reshape(T, N)
        chance = np.where(q[:-1] == 1, z.p[b], 1 - z.p[b]).prod()
        for signs in product((-1.0, 1.0), repeat=int(q.sum()) * I):
            steps = {"local_step_size": float(z.gamma[b]), "local_steps": I, "server_multiplier": float(z.eta[b])}
            models = twin(Signed(z, b, signs), q, torch.tensor(z.start[b]), Streams(0), **steps)
            yield chance / 2 ** len(signs), np.array([float(m[0]) for m in models[:-1]])


@pytest.mark.parametrize("cutoff", [2.0, np.inf])
def test_fedaus_weights_on_all_paths_are_those_of_its_pseudocode(cutoff: float) -> None:
    z = KinkedRecords(**parts(1), cutoff=np.full(B, cutoff)).with_step_shares(np.ones(B), np.ones(B))  # type: ignore[arg-type]
    for b in range(2):
        total = sum(
            chance * (z.objective.slope(np.tile(x, (B, 1, 1)))[b] ** 2).mean()
            for chance, x in every_run(z, b, lambda *args, **kwargs: fedau(*args, cutoff=cutoff, rate=None, **kwargs))
        )
        assert z.average_gradient()[b, 0] == pytest.approx(total, rel=1e-11)


def weighted(seed: int, rounds: int = T) -> KinkedWeighted:
    given = parts(seed, rounds)
    omega = np.random.default_rng(seed).uniform(0.5, 2, (B, N)) / given["p"]
    return KinkedWeighted(**given, omega=omega).with_step_shares(np.ones(B), np.ones(B))  # type: ignore[arg-type]


def test_constant_weights_on_all_paths_are_those_of_the_pseudocode() -> None:
    z = weighted(2)
    weights = z.objective_weights()
    h = z.weighted(weights)
    for b in range(2):

        def twin(*args: object, b: int = b, **kwargs: object) -> list[torch.Tensor]:
            return fixed_weights(*args, weights=tuple(z.omega[b]), **kwargs)  # type: ignore[arg-type]

        total = sum(c * (h.slope(np.tile(x, (B, 1, 1)))[b] ** 2).mean() for c, x in every_run(z, b, twin))
        assert z.average_gradient(weights)[b, 0] == pytest.approx(total, rel=1e-11)


def test_without_kinks_they_are_the_quadratics() -> None:
    z = weighted(3, rounds=5)
    a = np.linspace(0.3, 1, B)[:, None]
    z = replace(z, curvatures=np.ones_like(z.curvatures) * a[:, None, :, None], noise=np.ones_like(z.noise))
    z = z.with_step_shares(np.ones(B), np.ones(B))
    at_origin = z.first - a[:, None] * z.knots[:, None, :, 0]
    center = at_origin.mean(axis=1)
    same = WeightedInstances(
        p=z.p, omega=z.omega, gamma=z.gamma, eta=z.eta, local_steps=I, rounds=5, curvature=a,
        slopes=at_origin - center[:, None], start=z.start + center / a, noise=z.noise[:, 0], phi=np.full((B, N), 1 / N),
    )  # fmt: skip
    for weights in (z.objective_weights(), np.full((B, N), 1 / N)):
        assert z.average_gradient(weights) == pytest.approx(same.average_gradient(weights), rel=1e-12)
    ours, theirs = z.constants(), same.constants()
    for name, value in ours.items():
        assert value == pytest.approx(theirs[name], rel=1e-12), name


def test_what_the_symbols_of_fedau_say_holds_along_every_path() -> None:
    for z in kinked_records(30):
        symbols, x = z.constants(), z.start[:, :, None] + np.linspace(-30, 30, 4001)
        steepest = np.sqrt((z.objective.slope(x) ** 2).max(axis=2).sum(axis=1))
        assert (steepest <= symbols["G"][:, 0] * (1 + 1e-12))[z.covered].all() and z.covered.any()
        gap = symbols["F"][:, 0] - (z.objective.value(z.start[:, :, None]) - z.objective.value(x)).max(axis=2).sum(
            axis=1
        )
        assert (gap[z.covered] >= -1e-9).all()
