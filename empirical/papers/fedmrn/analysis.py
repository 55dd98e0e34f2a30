r"""The algorithm that the theorems of Li et al. (2024) are about, iteration by iteration: eqs. (13) to (15).

All N clients run all the time, and the average over all of them is what the theorems bound, between synchronizations
too. So one *round* of a simulation is one iteration here; who takes part counts after every S of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_flag, check_memory, check_number
from fedbounds.empirical.algorithms.algorithm import Checked, Fits, RoundReport
from fedbounds.empirical.algorithms.cohort import Cohort
from fedbounds.empirical.algorithms.local import LocalGradient, check_positive
from fedbounds.empirical.algorithms.messages.noise import Noise
from fedbounds.empirical.papers.fedmrn.masked_noise import chosen, clipped
from fedbounds.empirical.participation import Full, Process, WithoutReplacement
from fedbounds.empirical.problems import Problem, Quadratic
from fedbounds.empirical.runtime.counter_rng import UPLOAD, chances, words_from_uniforms
from fedbounds.empirical.runtime.streams import Streams
from fedbounds.empirical.simulation.engines import choose_engine
from fedbounds.empirical.simulation.moments.operators import (
    MaskedMoments,
    Masking,
    masked_moments,
    norm_scaled_sign,
    signed_masks,
    sparsifier,
)

Operator = Literal["signed-masks", "sparsifier", "norm-scaled-sign"]
SIGNS = Noise("bernoulli", 1.0)


class Masked(NamedTuple):
    """Where a run is."""

    model: torch.Tensor  # $\bar w_t$, (seeds, d)
    own: torch.Tensor  # $w_k^t$, (seeds, N, d)
    anchor: torch.Tensor  # $\bar w_{t_0}$, (seeds, d)
    words: torch.Tensor  # out of which a client's numbers of this round are hashed, (seeds, N)
    iteration: torch.Tensor  # t, (seeds,)
    largest_gradient: torch.Tensor  # the largest $\|\nabla F_k(x_k^t,\xi)\|$ so far, (seeds,)
    # how many updates had a coordinate beyond the amplitude when they were masked, (seeds,)
    clipped_updates: torch.Tensor


def _unless_none(check: Callable[[str, object], float], name: str, value: object) -> float | None:
    return None if value is None else check(name, value)


@dataclass(frozen=True)
class AnalyzedFedMRN(Checked):
    r"""FedMRN as it is analyzed: every client runs, and gradients are taken at masked models.

    $$v_k^{t+1}=w_k^t-\eta_t\nabla F_k(x_k^t,\xi_k^t),\qquad x_k^t=\bar w_{t_0}+\mathcal S(w_k^t-\bar w_{t_0}),$$
    $$w_k^{t+1}=\begin{cases}\sum_{j\in\mathcal C}q_j\big[\bar w_{t_0}+\mathcal S(v_j^{t+1}-\bar w_{t_0})\big]&
      \text{after every $S$ iterations, which begins a round, } t_0=t+1,\\v_k^{t+1}&\text{else,}\end{cases}$$

    with $q_j=1/K$ for K clients drawn without replacement; the model is $\bar w_t=\frac1N\sum_kw_k^t$. A round of a
    simulation is one iteration, in which somebody is drawn too, but counts at a synchronization only. The run knows its
    `largest_gradient` and how many `clipped_updates` there were, whose masks are biased.

    | operator | $\mathcal S(u)_i$ | unbiased | $q^2$ |
    |---|---|---|---|
    | `signed-masks` | $a$ with probability $\frac12+\frac{u_i}{2a}$, else $-a$ | if $\lvert u_i\rvert\le a$ | none |
    | `sparsifier` | $u_i/\pi$ with probability $\pi$, else 0 | yes | $1/\pi-1$ |
    | `norm-scaled-sign` | $\|u\|$ with probability $\frac12+\frac{u_i}{2\|u\|}$, else $-\|u\|$ | yes | $d-1$ |

    Args:
        local_step_size: $\eta$, of the first iteration where they fall, units x^2/f.
        local_steps: S, iterations between synchronizations.
        operator: one of these.
        amplitude: a of signed masks, in the first round, units x.
        amplitude_falls: whether a is in proportion to the step size with which a round begins; otherwise it stays.
        keep: $\pi$ in (0, 1] of the sparsifier; with 1 nothing is masked.
        step_shift: $\gamma\ge0$ of step sizes that fall, $\eta_t=\eta\frac{\gamma+1}{\gamma+t}$ for t = 1, 2, ...;
            otherwise they stay.
        progressive: whether only a coordinate in $\tau/S$ is masked in the $\tau$-th iteration of a round.

    Raises:
        FedboundsError: a number outside its domain, an unknown operator, a number that the operator lacks or has no
            use for.

    Example:
        >>> from fedbounds.empirical.participation import WithoutReplacement
        >>> from fedbounds.empirical.problems import random_quadratic
        >>> from fedbounds.empirical.simulation.simulate import simulate
        >>> masks = AnalyzedFedMRN(0.01, 4, amplitude=0.2)
        >>> run = simulate(masks, random_quadratic(8, 3), WithoutReplacement(8, 3), 40, seeds=range(2))
        >>> run.objective_gap.shape, run.clipped_updates.tolist(), bool((run.largest_gradient > 0).all())
        ((2, 41), [0, 0], True)

    Source: Li et al. 2024, Appendix B, eqs. (13) to (15); progressive masks are eq. (10).
    """

    kind = "fedmrn-analysis"
    needs_updates = True
    checks: ClassVar = {
        **Checked.checks,
        "operator": partial(check_choice, known=get_args(Operator)),
        "amplitude": partial(_unless_none, check_positive),
        "amplitude_falls": check_flag,
        "keep": partial(_unless_none, lambda name, value: check_number(name, check_positive(name, value), high=1)),
        "step_shift": partial(_unless_none, lambda name, value: check_number(name, value, low=0)),
        "progressive": check_flag,
    }
    local_step_size: float
    local_steps: int
    operator: Operator = "signed-masks"
    amplitude: float | None = None
    amplitude_falls: bool = False
    keep: float | None = None
    step_shift: float | None = None
    progressive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, owner in (("amplitude", self.amplitude, "signed-masks"), ("keep", self.keep, "sparsifier")):
            if value is None and self.operator == owner:
                raise FedboundsError(f"{self.kind} with operator {owner!r} lacks {name}")
            if value is not None and self.operator != owner:
                raise FedboundsError(f"{name} = {value:g} is of the operator {owner!r}, and this is {self.operator!r}")

    @property
    def local(self) -> LocalGradient:
        return LocalGradient(1.0, 1)

    @property
    def draws(self) -> bool:
        return True

    def step(self, t: int) -> float:
        """The step size of iteration t, counted from 0."""
        if self.step_shift is None:
            return self.local_step_size
        return self.local_step_size * (self.step_shift + 1) / (self.step_shift + 1 + t)

    def amplitude_in(self, t: int) -> float:
        """The amplitude in the round of iteration t; 0 of operators that have none."""
        if self.amplitude is None:
            return 0.0
        return self.amplitude * (self.step(t - t % self.local_steps) / self.step(0) if self.amplitude_falls else 1.0)

    @property
    def masking(self) -> Masking:
        """Its operator to the exact moments."""
        a, first, falls = self.amplitude, self.local_step_size, self.amplitude_falls
        if self.operator == "sparsifier":
            assert self.keep is not None
            return sparsifier(self.keep)
        if a is None:
            return norm_scaled_sign()
        return signed_masks(lambda step: a * step / first if falls else a)

    def message_bytes(self, problem: Fits) -> None:
        """Nothing is counted: all clients compute in every iteration, and few of them send something now and then."""

    def init(self, x0: torch.Tensor, clients: int) -> Masked:
        seeds, d = x0.shape
        size = 4 * seeds * clients * d * x0.element_size()
        check_memory(f"{self.kind} keeps the models of clients = {clients} in dimension {d}, which", size)
        nothing = torch.zeros(seeds, dtype=torch.int64)
        words = torch.zeros(seeds, clients, dtype=torch.int64, device=x0.device)
        own = x0[:, None].expand(-1, clients, -1).contiguous()
        return Masked(x0, own, x0, words, nothing, x0.new_zeros(seeds), nothing.to(x0.device))

    def begin_round(self, state: Masked, t: int, overall: int, streams: Sequence[Streams]) -> Masked:
        words, clients = state.words, state.words.shape[1]
        if t % self.local_steps == 0:
            drawn = words_from_uniforms(np.array([own.generator("masks", overall).random(clients) for own in streams]))
            words = torch.from_numpy(drawn).to(words.device)
        return state._replace(words=words, iteration=torch.full_like(state.iteration, t))

    def broadcast(self, state: Masked) -> torch.Tensor:
        t = int(state.iteration[0])
        tau = t % self.local_steps + 1
        u = state.own - state.anchor[:, None]
        chance, coin = chances(state.words, UPLOAD + tau, u.shape[-1], u.dtype)
        found = self.masked(u, state.words, chance, self.amplitude_in(t))
        if self.progressive and tau < self.local_steps:
            a = self.amplitude_in(t)
            bounded = u if self.amplitude is None else clipped(u, torch.full_like(u, a), "signed")
            found = torch.where(coin < tau / self.local_steps, found, bounded)
        return state.anchor[:, None] + found

    def masked(self, u: torch.Tensor, words: torch.Tensor, chance: torch.Tensor, a: float) -> torch.Tensor:
        r"""$\mathcal S(u)$, (seeds, N, d)."""
        if self.operator == "sparsifier":
            assert self.keep is not None
            return torch.where(chance < self.keep, u / self.keep, 0.0)
        if self.operator == "norm-scaled-sign":
            length = torch.linalg.vector_norm(u, dim=-1, keepdim=True)
            return torch.where(chance * 2 * length < length + u, length, -length)
        n = a * SIGNS.of(words, u.shape[-1]).to(u.dtype)
        return torch.where(chosen(u, n, chance, "signed"), n, -n)

    def cohort(self, state: Masked, t: int, drawn: Cohort, clients: int) -> Cohort:
        weights = np.zeros((len(drawn.counts), clients))
        weights[drawn.seeds, drawn.clients] = drawn.weights
        seeds = len(weights)
        return Cohort(np.full(seeds, clients), np.tile(np.arange(clients), seeds), weights.ravel())

    def server_update(self, state: Masked, t: int, report: RoundReport) -> Masked:
        assert report.pairs is not None
        downhill = report.pairs.updates.view_as(state.own)
        steepest = torch.linalg.vector_norm(downhill, dim=-1).amax(dim=1)
        v = torch.add(state.own, downhill, alpha=self.step(t))
        u, a, strayed = v - state.anchor[:, None], self.amplitude_in(t), state.clipped_updates
        if self.amplitude is not None:
            strayed = strayed + (u.abs() > a).any(dim=-1).sum(dim=1)
        state = state._replace(
            largest_gradient=torch.fmax(state.largest_gradient, steepest), clipped_updates=strayed, own=v
        )
        if (t + 1) % self.local_steps:
            return state._replace(model=v.mean(dim=1))
        chance, _ = chances(state.words, UPLOAD, u.shape[-1], u.dtype)
        weights = report.pairs.weights.view(u.shape[:2])[:, None]
        model = state.anchor + (weights @ self.masked(u, state.words, chance, a))[:, 0]
        return state._replace(model=model, anchor=model, own=model[:, None].expand_as(v).contiguous())

    def diagnostics(self, state: Masked) -> dict[str, Any]:
        return {"largest_gradient": state.largest_gradient, "clipped_updates": state.clipped_updates}


@dataclass(frozen=True, eq=False)
class AnalyzedMoments:
    """Exact moments of a run of this algorithm, with what `confront` must know of it."""

    algorithm: AnalyzedFedMRN
    problem: Quadratic
    participation: Process
    moments: MaskedMoments

    @property
    def rounds(self) -> int:
        """Iterations."""
        return len(self.moments.masked_drift)

    @property
    def label(self) -> str:
        """What the curve is."""
        return f"{self.moments.label} moments"

    @property
    def gradient_norm_squared(self) -> np.ndarray:
        """At the averages, (T + 1,)."""
        return self.moments.gradient_norm_squared


def analyzed_moments(
    algorithm: AnalyzedFedMRN, problem: Quadratic, participation: Process, iterations: int
) -> AnalyzedMoments:
    """`masked_moments` of the algorithm, which may be held against results."""
    found = masked_moments(
        problem, algorithm.masking, algorithm.step, iterations=iterations, local_steps=algorithm.local_steps,
        cohort=cohort_size(participation), progressive=algorithm.progressive,
    )  # fmt: skip
    return AnalyzedMoments(algorithm, problem, participation, found)


def cohort_size(process: Process) -> int:
    """K of N clients, drawn uniformly without replacement."""
    if isinstance(process, Full):
        return process.clients
    if not isinstance(process, WithoutReplacement):
        raise FedboundsError(
            f"Li et al. 2024 have no result for {process.kind} participation: their K clients are drawn uniformly "
            "without replacement"
        )
    return process.participants


def masking_errors(
    algorithm: AnalyzedFedMRN, problem: Problem, process: Process, iterations: int, seed: int = 0
) -> np.ndarray:
    r"""$\|\mathcal S(u)-u\|/\|u\|$ whenever the operator is used along a run, (iterations, N, 2); infinite at u = 0.

    First of the masked model at which a gradient is taken, then of the upload after the last iteration of a round, of
    every client, drawn or not; nan in other iterations.
    """
    streams = [Streams(seed)]
    state = algorithm.init(problem.initial_point(streams[0].generator("initialization"))[None], problem.clients)
    walk = choose_engine("auto", problem, algorithm)
    found = np.full((iterations, problem.clients, 2), np.nan)
    for t, present in zip(range(iterations), process.draw(streams[0].generator("participation")), strict=False):
        state = algorithm.begin_round(state, t, t, streams)
        points = algorithm.broadcast(state)
        found[t, :, 0] = _relative(points - state.anchor[:, None], state.own - state.anchor[:, None])
        report = walk.round(
            points, algorithm.cohort(state, t, Cohort.from_rounds([present]), problem.clients), t, streams
        )
        before, state = state, algorithm.server_update(state, t, report)
        if (t + 1) % algorithm.local_steps == 0:
            assert report.pairs is not None
            u = before.own + algorithm.step(t) * report.pairs.updates.view_as(before.own) - before.anchor[:, None]
            chance, _ = chances(before.words, UPLOAD, u.shape[-1], u.dtype)
            found[t, :, 1] = _relative(algorithm.masked(u, before.words, chance, algorithm.amplitude_in(t)), u)
    return found


def _relative(masked: torch.Tensor, u: torch.Tensor) -> np.ndarray:
    """Of one seed, (N,)."""
    error, length = (torch.linalg.vector_norm(each[0].double(), dim=-1).cpu().numpy() for each in (masked - u, u))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(length > 0, error / length, np.where(error > 0, np.inf, 0.0))
