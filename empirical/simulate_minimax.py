r"""Runs Fed-Norm-SGDA for many seeds at once, clients with different numbers of local steps in one masked batch.

The pairs (seed, client) of a round stand in a batch in decreasing order of their $\tau_i$, so that those who still
compute in local step k are its first rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bounds.checks import check_count, check_flag, quote
from bounds.constants import SUM_TOLERANCE
from bounds.errors import FedboundsError
from empirical.algorithms.fed_norm_sgda import FedNormSGDA
from empirical.participation import Round, WithoutReplacement
from empirical.problems.minimax import Minimax
from empirical.streams import GeneratorPool, Streams
from empirical.trace import Trace

AT_ONCE = 2**22  # numbers held by one batch of pairs: pairs x d


def simulate_minimax(
    algorithm: FedNormSGDA,
    problem: Minimax,
    rounds: int,
    *,
    seeds: Sequence[int] = (0,),
    record_every: int = 1,
    streams: Mapping[str, int] | None = None,
    record_models: bool = False,
) -> Trace:
    r"""Runs T rounds and records the problem's metrics at rounds 0, `record_every`, ..., T.

    Every seed has its own initialisation, participation and noise, which depend on nothing but the seed; so algorithms
    compared under the same seeds meet the same clients. A seed whose model or metrics stop being finite is marked
    "diverged" at the next recorded round and not run on.

    Args:
        algorithm: what to run.
        problem: the clients' gradients and the envelope.
        rounds: T.
        seeds: the run-seeds, computed together.
        record_every: rounds between records.
        streams: streams held fixed for all seeds, as `{"participation": 7}`.
        record_models: record the models $(x,y)$ too, as `model` (seed, round, coordinate).

    Returns:
        A trace as `empirical.simulate.simulate` makes it; its `unnormalised_rounds` are those with
        $\sum_{i\in\mathcal C}\frac{nw_i}P\ne1$, which partial participation with unequal weights has.

    Raises:
        FedboundsError: a number outside its domain, an algorithm that does not fit the problem or the rounds.

    Example:
        >>> from empirical.problems.minimax_quadratic import QuadraticMinimax
        >>> problem = QuadraticMinimax([[0.5]], [[1.0]], 1.0, [[1.0], [-0.5]], [[0.25], [-0.75]], x0=[1.0])
        >>> algorithm = FedNormSGDA(0.05, 0.1, 0.002, 0.1, local_steps=(2, 5))
        >>> simulate_minimax(algorithm, problem, 100).envelope_gradient_norm_squared.shape
        (1, 101)

    Source: Sharma et al. 2023, Algorithm 1 with eq. (12).
    """
    if not isinstance(algorithm, FedNormSGDA):
        raise FedboundsError(f"algorithm = {quote(algorithm)} must be a FedNormSGDA, such as local_sgda makes")
    if not isinstance(problem, Minimax):
        raise FedboundsError(f"problem = {quote(problem)} must be a minimax problem, such as QuadraticMinimax")
    rounds, every = check_count("rounds", rounds), check_count("record_every", record_every)
    algorithm.check(problem.clients, rounds)
    own = _streams(seeds, streams)
    record = _Record(problem, own, np.unique(np.append(np.arange(0, rounds, every), rounds)))
    record_models = check_flag("record_models", record_models)

    walk = _Walk(algorithm, problem)
    process = WithoutReplacement(problem.clients, walk.participants)
    shared = "participation" in own[0].fixed
    draws = [process.draw(one.generator("participation")) for one in (own[:1] if shared else own)]
    z = torch.stack([problem.initial_point(one.generator("initialisation")) for one in own])
    snapshot = problem.split(z)[0]
    active = record.add(0, z, record_models)
    unnormalised = np.zeros(len(own), dtype=np.int64)
    for t in range(rounds):
        cohorts = _cohorts(draws, len(own))
        if len(active) and algorithm.snapshot_period and t % algorithm.snapshot_period == 0:
            snapshot = problem.split(z)[0]
        if len(active):
            clients = cohorts[active]
            unnormalised[active] += walk.unnormalised(t, clients)
            step = walk.step(t, z[active], snapshot[active], clients, [own[seed] for seed in active.tolist()])
            z = z.index_add(0, torch.from_numpy(active).to(z.device), step)
        if (t + 1) % every == 0 or t + 1 == rounds:
            active = record.add(t + 1, z, record_models)
    spec = {
        "problem": type(problem).__name__,
        "clients": problem.clients,
        "dimension": problem.dimension,
        "dtype": str(problem.dtype).removeprefix("torch."),
        "participation": process.spec(),
        "rounds": rounds,
        "record_every": every,
        "streams": dict(streams or {}),
        "algorithm": algorithm.spec(),
    }
    return record.trace(spec, unnormalised, walk.participants)


class _Walk:
    """One round of an algorithm on a problem, for any number of seeds."""

    def __init__(self, algorithm: FedNormSGDA, problem: Minimax) -> None:
        self.algorithm, self.problem, self.pool = algorithm, problem, GeneratorPool()
        self.clients, self.p = problem.clients, problem.weights.cpu().numpy()
        self.participants = algorithm.participants or problem.clients
        self.most = max(1, AT_ONCE // problem.dimension) if problem.prefers_batched else 1
        self.client_step, self.server_step = (
            self._blocks(-descent, ascent)
            for descent, ascent in (
                (algorithm.local_step_size, algorithm.local_ascent_step_size),
                (algorithm.server_step_size, algorithm.server_ascent_step_size),
            )
        )
        optimisers = [algorithm.optimiser_of(i) for i in range(self.clients)]
        self.momentum = self._column([one.momentum for one in optimisers], neutral=0.0)
        self.contraction = self._column([one.contraction for one in optimisers], neutral=1.0)
        self.rates = [one.rates for one in optimisers] if any(one.rates for one in optimisers) else None
        self.kept: tuple[np.ndarray, np.ndarray] | None = None

    def _blocks(self, descent: float, ascent: float) -> Tensor:
        """One number for each coordinate of x, another for each of y, (d,)."""
        sizes = self.problem.descent_dimension, self.problem.ascent_dimension
        blocks = [
            torch.full((size,), value, dtype=torch.float64)
            for size, value in zip(sizes, (descent, ascent), strict=True)
        ]
        return torch.cat(blocks).to(self.problem.device, self.problem.dtype)

    def _column(self, values: Sequence[float], neutral: float) -> Tensor | None:
        """One number for each client, (n, 1); None if they change nothing."""
        if all(value == neutral for value in values):
            return None
        return torch.tensor(values, dtype=self.problem.dtype, device=self.problem.device)[:, None]

    def work(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        r"""Of each client in round t: $\tau_i$, and $\tau_{\rm eff}w_i/\|a_i\|_1$."""
        if self.kept is None or np.ndim(self.algorithm.local_steps) == 2:
            self.kept = self.algorithm.steps(t, self.clients), self.algorithm.scales(t, self.p)
        return self.kept

    def unnormalised(self, t: int, clients: np.ndarray) -> np.ndarray:
        """Whether the weights of those who were drawn sum to one, of each seed."""
        if self.participants == self.clients:
            return np.zeros(len(clients), dtype=bool)
        weights = self.algorithm.effective_weights(t, self.p)
        return abs(weights[clients].sum(axis=1) * self.clients / self.participants - 1) > SUM_TOLERANCE

    def step(self, t: int, z: Tensor, snapshot: Tensor, clients: np.ndarray, streams: list[Streams]) -> Tensor:
        """What a round adds to the models: z (seeds, d), snapshot (seeds, d_x), clients (seeds, P) -> (seeds, d)."""
        steps, scales = self.work(t)
        seeds, names = np.arange(len(clients)).repeat(clients.shape[1]), clients.ravel()
        order = np.argsort(-steps[names], kind="stable")
        seeds, names = seeds[order], names[order]
        total = torch.zeros_like(z)
        for start in range(0, len(order), self.most):
            rows, who = seeds[start : start + self.most], names[start : start + self.most]
            row = torch.from_numpy(rows).to(z.device)
            sums = self.local_map(t, z[row], snapshot[row], who, steps[who], [streams[seed] for seed in rows])
            factor = torch.from_numpy(scales[who] * (self.clients / self.participants)).to(z)
            total.index_add_(0, row, sums.mul_(factor[:, None]))
        return total.mul_(self.server_step)

    def local_map(
        self, t: int, z: Tensor, snapshot: Tensor, clients: np.ndarray, steps: np.ndarray, streams: list[Streams]
    ) -> Tensor:
        r"""$\sum_ka_i^{(k)}G_k$ of pairs in decreasing order of their steps: z (pairs, d) -> (pairs, d)."""
        problem, who = self.problem, torch.from_numpy(clients).to(z.device)
        momentum, contraction = (None if c is None else c[who] for c in (self.momentum, self.contraction))
        u = torch.zeros_like(z)
        buffer = u if momentum is None else torch.zeros_like(z)
        noise = self._noise(t, clients, steps, streams)
        still = (steps > np.arange(steps[0])[:, None]).sum(axis=1)
        for k, m in enumerate(still.tolist()):  # the first m pairs have more than k steps
            now = torch.addcmul(z[:m], u[:m], self.client_step)
            randomness = None if noise is None else noise[k : k + 1, :m]
            if self.algorithm.snapshot_period:  # one call at both places, with the same samples
                there = problem.join(snapshot[:m], problem.split(now)[1])
                both = None if randomness is None else randomness.expand(2, *randomness.shape[1:])
                here, other = problem.stochastic_gradient(torch.stack([now, there]), who[:m].expand(2, m), both)
                gradient = problem.join(problem.split(here)[0], problem.split(other)[1])
            else:
                gradient = problem.stochastic_gradient(now[None], who[None, :m], randomness)[0]
            if self.rates is not None:
                rates = [1.0 if (v := self.rates[i]) is None else v[k] for i in clients[:m].tolist()]
                gradient = gradient * torch.tensor(rates, dtype=z.dtype, device=z.device)[:, None]
            if momentum is not None:
                gradient = buffer[:m].mul_(momentum[:m]).add_(gradient)
            if contraction is not None:
                u[:m].mul_(contraction[:m])
            u[:m].add_(gradient)
        return u

    def _noise(self, t: int, clients: np.ndarray, steps: np.ndarray, streams: list[Streams]) -> Tensor | None:
        """What the pairs draw, each from the place (round, client) of its noise: (steps, pairs, ...), or None."""
        table: np.ndarray | None = None
        for k, (name, tau, own) in enumerate(zip(clients.tolist(), steps.tolist(), streams, strict=True)):
            drawn = self.problem.draws(self.pool.aim(k, own, "noise", t, name), name, tau)
            if drawn is None:
                return None
            if table is None:
                table = np.zeros((steps[0], len(clients), *drawn.shape[1:]), drawn.dtype)
            table[:tau, k] = drawn
        assert table is not None
        kind = self.problem.dtype if table.dtype.kind == "f" else torch.int64
        return torch.from_numpy(table).to(self.problem.device, kind)


class _Record:
    """The arrays of the trace, filled round by round, and which seeds are still finite."""

    def __init__(self, problem: Minimax, streams: list[Streams], rounds: np.ndarray) -> None:
        self.problem, self.streams, self.rounds = problem, streams, rounds
        self.active = np.arange(len(streams))
        self.diverged_at = np.full(len(streams), -1)
        self.arrays: dict[str, np.ndarray] = {}
        self.dims: dict[str, tuple[str, ...]] = {}

    def add(self, t: int, z: Tensor, models: bool) -> np.ndarray:
        """Records round t of the active seeds; returns those that are finite."""
        column = int(np.searchsorted(self.rounds, t))
        self._lose(torch.isfinite(z).all(1).cpu().numpy()[self.active], t)
        if not len(self.active):
            return self.active
        finite = np.ones(len(self.active), dtype=bool)
        mine = z[torch.from_numpy(self.active).to(z.device)]
        for name, value in self.problem.metrics(mine).items():
            values = value.detach().cpu().numpy()
            self._array(name, ())[self.active, column] = values
            finite &= np.isfinite(values)
        if models:
            self._array("model", ("coordinate",))[self.active, column] = mine.cpu().numpy()
        self._lose(finite, t)
        return self.active

    def _lose(self, finite: np.ndarray, t: int) -> None:
        self.diverged_at[self.active[~finite]] = t
        self.active = self.active[finite]

    def _array(self, name: str, more: tuple[str, ...]) -> np.ndarray:
        if name not in self.arrays:
            shape = (len(self.streams), len(self.rounds), *(self.problem.dimension for _ in more))
            self.arrays[name], self.dims[name] = np.full(shape, np.nan), ("seed", "round", *more)
        return self.arrays[name]

    def trace(self, spec: dict[str, Any], unnormalised: np.ndarray, participants: int) -> Trace:
        """The finished trace."""
        last = np.where(self.diverged_at < 0, self.rounds[-1], self.diverged_at)
        took_part = np.where(self.rounds <= last[:, None], participants * np.diff(self.rounds, prepend=0), 0)
        for name, value, dims in (
            ("seed", np.array([own.seed for own in self.streams]), ("seed",)),
            ("round", self.rounds, ("round",)),
            ("participants", took_part, ("seed", "round")),
            ("empty_rounds", np.zeros(len(self.streams), dtype=np.int64), ("seed",)),
            ("unnormalised_rounds", unnormalised, ("seed",)),
            ("diverged_at", self.diverged_at, ("seed",)),
        ):
            self.arrays[name], self.dims[name] = value, dims
        statuses = tuple("done" if at < 0 else "diverged" for at in self.diverged_at)
        return Trace(self.arrays, self.dims, spec, "masked batch", statuses)


def _cohorts(draws: list[Iterator[Round]], seeds: int) -> np.ndarray:
    """Who is drawn in a round, (seeds, P)."""
    drawn = [next(draw).clients for draw in draws]
    return np.stack(drawn if len(drawn) == seeds else drawn * seeds)


def _streams(seeds: Sequence[int], fixed: Mapping[str, int] | None) -> list[Streams]:
    if isinstance(seeds, str) or not isinstance(seeds, Sequence | range | np.ndarray):
        raise FedboundsError(f"seeds = {quote(seeds)} must be a list of integers >= 0")
    made = [Streams(seed, fixed or {}) for seed in seeds]
    if not made or len({own.seed for own in made}) < len(made):
        raise FedboundsError(f"seeds = {quote(list(seeds))} must be different, and at least one")
    return made
