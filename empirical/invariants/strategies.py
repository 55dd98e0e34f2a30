r"""Hypothesis strategies for property tests: problems, weights of participants, and whole cases.

Small cases have small round numbers, so that counterexamples are readable. Needs the extra `testing`.

Example:
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=10)
    ... @given(quadratics(clients=3))
    ... def test_every_client_has_a_center(problem):
    ...     assert problem.centers.shape == (3, problem.dimension)
    >>> test_every_client_has_a_center()
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.errors import MissingExtra, unknown_name
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.invariants.averaging import AveragingCase
from fedbounds.empirical.invariants.cases import Case, PlainProblem
from fedbounds.empirical.invariants.coverage import (
    MAGNITUDES,
    UNITS,
    SizeClass,
    general,
    map_size_classes,
    with_size_classes,
)
from fedbounds.empirical.problems import CosineQuadratic, Quadratic

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError:
    raise MissingExtra("testing", "hypothesis") from None

FORMS = ("shared diagonal", "different diagonal", "shared", "different")
PARTICIPATION = ("one-hot", "subsets", "proportions", "Dirichlet")
_EIGENVALUES = (1.0, 0.5, 0.25)
# the sizes of small cases, the smallest first; sizes that reveal more bugs are listed twice
CLIENTS = (1, 2, 3, 4, 5, 4)
ROUNDS = (1, 2, 3, 4, 5, 6, 3, 4)
LOCAL_STEPS = (1, 2, 3)
INTERVALS = (1, 2, 3)


class CaseSize(NamedTuple):
    """N clients, T rounds, I local steps, amplification every P rounds."""

    clients: int
    rounds: int
    local_steps: int
    interval: int


# together they cover N from 1 to 7 and 12, every I from 1 to 10, every P from 1 to 8, T up to 130, and up to 260 local
# steps of a client
SIZES = (
    CaseSize(2, 130, 2, 7),
    CaseSize(7, 14, 2, 4),
    CaseSize(2, 4, 10, 2),
    CaseSize(5, 13, 1, 5),
    CaseSize(4, 8, 5, 1),
    CaseSize(6, 12, 3, 6),
    CaseSize(2, 24, 1, 1),
    CaseSize(7, 9, 1, 1),
    CaseSize(1, 9, 25, 7),
    CaseSize(3, 6, 7, 3),
    CaseSize(2, 17, 1, 8),
    CaseSize(4, 18, 1, 5),
    CaseSize(2, 5, 8, 2),
    CaseSize(3, 4, 9, 3),
    CaseSize(5, 12, 2, 3),
    CaseSize(3, 10, 6, 1),
    CaseSize(12, 3, 1, 2),
    CaseSize(3, 4, 4, 2),
)


def _size_or_up_to(given: int | None, most: int) -> SearchStrategy[int]:
    return st.integers(1, most) if given is None else st.just(given)


def halves(draw: st.DrawFn, *shape: int, most: int = 4) -> np.ndarray:
    """An array of multiples of one half, between -most/2 and most/2."""
    size = int(np.prod(shape))
    numbers = draw(st.lists(st.integers(-most, most), min_size=size, max_size=size))
    return np.array(numbers, dtype=float).reshape(shape) / 2


@st.composite
def quadratics(
    draw: st.DrawFn,
    clients: int | None = None,
    dimension: int | None = None,
    forms: tuple[str, ...] = FORMS,
    noise: float = 0.0,
) -> Quadratic:
    r"""Quadratics $\frac12(x-c_n)^\top A_n(x-c_n)$ with eigenvalues 1, 1/2 and 1/4, so that $L \le 1$.

    Args:
        clients: N; 1 to 4 if not given.
        dimension: d; 1 to 3 if not given.
        forms: which of `FORMS` the Hessians may have, the simplest first.
        noise: s, of the gradients, per coordinate.
    """
    N, d = draw(_size_or_up_to(clients, 4)), draw(_size_or_up_to(dimension, 3))
    form = draw(st.sampled_from(forms))
    many = N if form.startswith("different") else 1
    spectra = draw(st.lists(st.sampled_from(_EIGENVALUES), min_size=many * d, max_size=many * d))
    hessians = np.reshape(spectra, (many, d))[:, :, None] * np.eye(d)
    if not form.endswith("diagonal"):
        hessians = np.stack([turn @ A @ turn for turn, A in zip(_reflections(draw, many, d), hessians, strict=True)])
        hessians = (hessians + hessians.transpose(0, 2, 1)) / 2
    return Quadratic(hessians if many == N else hessians[0], halves(draw, N, d), noise, halves(draw, d))


def _reflections(draw: st.DrawFn, many: int, d: int) -> np.ndarray:
    r"""Symmetric orthogonal matrices $I - 2vv^\top/\|v\|^2$; the identity for v = 0. (many, d, d)."""
    v = halves(draw, many, d, most=2)
    length = np.maximum((v**2).sum(1), 0.25)[:, None, None]  # entries are halves: no other vector is as short
    return np.eye(d) - 2 * v[:, :, None] * v[:, None, :] / length


@st.composite
def cosine_quadratics(
    draw: st.DrawFn, clients: int | None = None, dimension: int | None = None, noise: float = 0.0
) -> CosineQuadratic:
    """Rippled bowls with a slope for each client, convex or not, with $L \\le 2$.

    Args:
        clients: N; 1 to 4 if not given.
        dimension: d; 1 to 3 if not given.
        noise: s, of the gradients, per coordinate.
    """
    N, d = draw(_size_or_up_to(clients, 4)), draw(_size_or_up_to(dimension, 3))
    curvature, ripple = draw(st.sampled_from([0.5, 1.0, 0.25, 0.0])), draw(st.sampled_from([0.5, 1.0, 0.25]))
    slopes = halves(draw, N, d)
    return CosineQuadratic(slopes - slopes.mean(0), curvature, ripple, noise, 2 * halves(draw, d))


@st.composite
def participation_matrices(
    draw: st.DrawFn,
    rounds: int | None = None,
    clients: int | None = None,
    *,
    unit_sum: bool = True,
    kinds: tuple[str, ...] = PARTICIPATION,
) -> np.ndarray:
    """Weights $q_t^n$, (rounds, clients), each row on the simplex: one-hot, equal weights of a subset, small
    proportions, or Dirichlet; all but the last with zeros. Or everyone, with the same weights in every round.

    Args:
        rounds: T; 1 to 8 if not given.
        clients: N; 1 to 5 if not given.
        unit_sum: false multiplies each row by 0, 1/2, 1 or 3/2: rows outside the theory, and empty ones.
        kinds: which of "one-hot", "subsets", "proportions", "Dirichlet" and "everyone"; all but the last by default.
    """
    for kind in kinds:
        if kind not in (*PARTICIPATION, "everyone"):
            raise unknown_name("kind of participation", str(kind), (*PARTICIPATION, "everyone"))
    T, N = draw(_size_or_up_to(rounds, 8)), draw(_size_or_up_to(clients, 5))
    kind = draw(st.sampled_from(kinds))
    if kind == "one-hot":
        q = np.eye(N)[draw(st.lists(st.integers(0, N - 1), min_size=T, max_size=T))]
    elif kind == "Dirichlet":
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        q = rng.dirichlet(np.full(N, draw(st.sampled_from([1.0, 0.1, 10.0]))), size=T)
    elif kind == "everyone":
        q = np.tile(draw(st.lists(st.integers(1, 4), min_size=N, max_size=N)), (T, 1)).astype(float)
    else:
        most = 1 if kind == "subsets" else 4
        counts = draw(st.lists(st.integers(0, most), min_size=T * N, max_size=T * N))
        q = np.reshape(counts, (T, N)).astype(float)
        q[q.sum(1) == 0] = 1.0
    q /= q.sum(1, keepdims=True)
    if not unit_sum:
        q *= np.array(draw(st.lists(st.sampled_from([1.0, 0.5, 0.0, 1.5]), min_size=T, max_size=T)))[:, None]
    return q


def plain_problems(clients: int | None = None) -> SearchStrategy[Quadratic | CosineQuadratic]:
    """Quadratics of every form, and rippled bowls."""
    return st.one_of(quadratics(clients), cosine_quadratics(clients))


def cases(
    *,
    problems: SearchStrategy[Any] | None = None,
    multipliers: tuple[float, ...] = (2.0, 0.5, 1.0, 4.0, 1.7, 0.3),
    intervals: tuple[int, ...] | None = None,
    local_steps: tuple[int, ...] | None = None,
    participation: tuple[str, ...] = PARTICIPATION,
    unit_sum: bool = True,
    empty_rounds: bool = False,
    noise: bool | None = False,
) -> SearchStrategy[Case]:
    r"""Runs for `fedbounds.empirical.invariants`: a problem, weights that sum to one, and the numbers of Algorithm 1.

    Exclude here what your implementation does not support: invariants only use features that some case has.

    Local steps are stable, $\gamma L \le \frac12$, but larger than in Theorem 3.1, as large steps reveal more errors.
    T may be less than P, and need not be a multiple. Drawn cases are small. A check also tests one of each of `SIZES`:
    up to 12 clients with cohorts of every size, 130 rounds, 25 local steps and intervals of 8 rounds, with numbers in
    general position and of magnitudes from 1e-6 to 1e6, in up to 12 dimensions.

    Args:
        problems: a strategy of `Quadratic` or `CosineQuadratic`; both kinds if not given.
        multipliers: the $\eta$ to try.
        intervals: the P to try; 1 to 8 if not given.
        local_steps: the I to try; 1 to 10 if not given.
        participation: the kinds of `participation_matrices`; "one-hot" and "subsets" give equal weights to
            participants, "everyone" is full participation.
        unit_sum: whether the weights of each round sum to one, as in the theory.
        empty_rounds: whether there are rounds without participants.
        noise: whether gradients are noisy: `problem.noise` then returns normals, with s = 1 or as large as the centers.
            If None, only the cases of `SIZES` are noisy.

    Example:
        >>> from hypothesis import given, settings
        >>> from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
        >>> @settings(max_examples=10)
        ... @given(cases(noise=True))
        ... def test_every_round_has_a_model(case):
        ...     assert len(case.models(generalized_fedavg)) == case.rounds + 1
        >>> test_every_round_has_a_model()
    """
    P, I = (None if numbers is None else tuple(numbers) for numbers in (intervals, local_steps))
    kinds = tuple(participation)
    return _cases_of_all_sizes(_CaseOptions(problems, tuple(multipliers), P, I, kinds, unit_sum, empty_rounds, noise))


@cache  # cases of the same strategy are drawn once
def _cases_of_all_sizes(options: _CaseOptions) -> SearchStrategy[Case]:
    """Small cases with these options, and cases of each of `SIZES`."""
    exact = [_sized_case(options, size, place) for place, size in enumerate(SIZES)]
    up_to = [_small_case(options, size) for size in SIZES]
    return with_size_classes(_small_case(options, None), [SizeClass(*pair) for pair in zip(exact, up_to, strict=True)])


CUTOFFS = (float("inf"), 8.0, 2.0, 5.0, 20.0, 3.0, 1.0)
# of each of `SIZES`; where there are many rounds, a client is absent for longer
_CUTOFFS = (50.0, 7.0, 2.0, 5.0, 1.0, 3.0, 10.0, 3.0, 1.0, 2.0, 6.0, 8.0, 3.0, 1.0, 4.0, float("inf"), 2.0, 1.0)


SERVER_NUMBERS = {
    "server_momentum": (0.5, 0.0, 0.875),
    "server_step_size": (0.25, 1.5),
    "beta1": (0.5, 0.0, 0.875),
    "beta2": (0.75, 0.0, 0.96875),
    "tau": (0.125, 1.0),
    "share": (0.5, 1.0, 0.3),
}
_PULLS = (0.5, 0.0, 0.125)  # the proximal weight times the step size


@cache
def with_own_numbers(cases: SearchStrategy[Case], *names: str) -> SearchStrategy[Case]:
    """Cases with numbers of the algorithm alone, for runs that take them.

    Args:
        cases: a strategy.
        names: "cutoff", a number of rounds or infinity; "client_weights", "probability" and "client_steps" (at most
            I), one for each client; "proximal_mu"; "share"; numbers of server optimizers.
    """

    def drawn(of: SearchStrategy[Case]) -> SearchStrategy[Case]:
        def with_values(case: Case) -> SearchStrategy[Case]:
            return st.fixed_dictionaries(values(case)).map(lambda own: replace(case, own=own))

        return of.flatmap(with_values)

    def values(case: Case) -> dict[str, SearchStrategy[Any]]:
        each: dict[str, SearchStrategy[Any]] = {"cutoff": st.sampled_from(CUTOFFS)}
        for name, most in (("client_weights", 16), ("probability", 8)):
            numbers = st.lists(st.integers(1, most), min_size=case.problem.clients, max_size=case.problem.clients)
            each[name] = numbers.map(lambda eighths: np.array(eighths) / 8)
        steps = st.lists(st.integers(1, case.local_steps), min_size=case.problem.clients, max_size=case.problem.clients)
        each |= {name: st.sampled_from(values) for name, values in SERVER_NUMBERS.items()}
        each |= {
            "client_steps": steps.map(np.array),
            "proximal_mu": st.sampled_from(_PULLS).map(lambda pull: pull / case.step_size),
        }
        return {name: each[name] for name in names}

    def exact(of: SearchStrategy[Case], place: int) -> SearchStrategy[Case]:
        def with_values(case: Case) -> Case:
            N = case.problem.clients
            order = np.random.default_rng(place).permutation(N) + 1
            own = {
                "cutoff": _CUTOFFS[place % len(_CUTOFFS)],
                "client_weights": order / 3,
                "probability": order / (N + 0.7),
                "client_steps": 1 + 3 * order % case.local_steps,
                "proximal_mu": _PULLS[place % len(_PULLS)] / case.step_size,
            } | {name: values[place % len(values)] for name, values in SERVER_NUMBERS.items()}
            return replace(case, own={name: own[name] for name in names})

        return of.map(with_values)

    return map_size_classes(cases, drawn, exact)


class _CaseOptions(NamedTuple):
    """The arguments of `cases`."""

    problems: SearchStrategy[Any] | None
    multipliers: tuple[float, ...]
    intervals: tuple[int, ...] | None
    local_steps: tuple[int, ...] | None
    participation: tuple[str, ...]
    unit_sum: bool
    empty_rounds: bool
    noise: bool | None


def _case(
    options: _CaseOptions,
    size: CaseSize,
    problem: Any,
    q: np.ndarray,
    share: float,
    multiplier: float,
    noise_seed: int | None,
) -> Case:
    """A case of these parts, with step size share/L."""
    smoothness = problem.constants()["smoothness"]
    assert isinstance(smoothness, Constant)
    noises = None
    if noise_seed is not None:
        shape = (len(q), problem.clients, size.local_steps, problem.dimension)
        noises = np.random.default_rng(noise_seed).standard_normal(shape).round(2)
    numbers = {"local_steps": size.local_steps, "multiplier": multiplier, "interval": size.interval}
    return Case(PlainProblem.from_problem(problem, noises), q, step_size=share / float(smoothness.value), **numbers)


@st.composite
def _small_case(draw: st.DrawFn, options: _CaseOptions, most: CaseSize | None) -> Case:
    """A small case, or one of up to this size, the simplest first."""
    noisy = most is not None and draw(st.booleans()) if options.noise is None else options.noise
    clients = st.sampled_from(CLIENTS) if most is None else st.integers(1, most.clients)
    problem = draw(plain_problems(draw(clients)) if options.problems is None else options.problems)
    usual = (LOCAL_STEPS, INTERVALS) if most is None else (_up_to(most.local_steps), _up_to(most.interval))
    I, P = (
        draw(st.sampled_from(own or up_to))
        for own, up_to in zip((options.local_steps, options.intervals), usual, strict=True)
    )
    T = draw(st.sampled_from(ROUNDS) if most is None else st.integers(1, most.rounds))
    q = draw(participation_matrices(T, problem.clients, unit_sum=options.unit_sum, kinds=options.participation))
    if options.empty_rounds:
        q = q * ~np.array(draw(st.lists(st.sampled_from([False, False, False, True]), min_size=T, max_size=T)))[:, None]
    seed = draw(st.integers(0, 2**16)) if noisy else None
    share, multiplier = draw(st.sampled_from([0.5, 0.25, 0.125, 0.3])), draw(st.sampled_from(options.multipliers))
    case = _case(options, CaseSize(problem.clients, T, I, P), problem, q, share, multiplier, seed)
    return _magnify(case, draw(st.sampled_from(UNITS)))


def _magnify(case: Case, unit: float) -> Case:
    """The case with models and noise multiplied by a unit; rippled problems stay as they are."""
    old = case.problem
    if not old.quadratic:
        return case
    noises = None if old.noises is None else unit * old.noises
    return replace(case, problem=replace(old, centers=unit * old.centers, start=unit * old.start, noises=noises))


def _up_to(most: int) -> tuple[int, ...]:
    return tuple(range(1, most + 1))


@st.composite
def _sized_case(draw: st.DrawFn, options: _CaseOptions, size: CaseSize, place: int) -> Case:
    """A case of one size with values in general position; long ones have steps that do not amplify round-off."""
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng((seed, place))
    problem = _general_problem(rng, size.clients, place) if options.problems is None else draw(options.problems)
    I, P = (
        number if own is None else min(own, key=lambda allowed, number=number: abs(allowed - number))
        for own, number in ((options.local_steps, size.local_steps), (options.intervals, size.interval))
    )
    T = max(size.rounds, P) if place == 0 else size.rounds  # the longest of given intervals is complete
    empty = [t for t in range(T) if t % 11 in (2, 3)] if options.empty_rounds else []
    q = _cohorts_of_every_size(rng, T, problem.clients, options.participation, place, empty)
    if not options.unit_sum:
        q = q * np.resize([1.0, 0.5, 1.5, 0.0], T)[:, None]
    q[empty] = 0
    noise_seed = None if options.noise is False else seed
    calm = [eta for eta in options.multipliers if eta != 1 and 0 < eta <= 2]  # which cannot diverge
    calm = calm or sorted(options.multipliers, key=lambda eta: (eta == 1, abs(eta - 2)))[:1]
    multiplier = calm[place % len(calm)]
    share = float(rng.uniform(0.2, 0.25 if T > 8 or size.local_steps > 4 else 0.5))
    case = _case(options, CaseSize(problem.clients, T, I, P), problem, q, share, multiplier, noise_seed)
    return case if options.problems is not None else _magnify(case, MAGNITUDES[place % len(MAGNITUDES)])


def _general_problem(rng: np.random.Generator, N: int, place: int) -> Quadratic | CosineQuadratic:
    """Different clients without zeros; quadratics of one of several curvatures."""
    d = (1, 2, 3, 1, 5, 2, 3, 1, 12)[place % 9]
    values, start = general(rng, N, d), general(rng, d)
    if place % 4 == 2:
        return CosineQuadratic(values - values.mean(0), rng.uniform(0.4, 0.6), rng.uniform(0.2, 0.3), 0.0, 2 * start)
    hessians = (1.0, 30.0, 0.03)[place % 3] * rng.uniform(0.25, 1, (N, d))[:, :, None] * np.eye(d)
    v = rng.choice([-1.0, 1.0], size=(N, d))
    turn = np.eye(d) - 2 / d * v[:, :, None] * v[:, None, :]
    hessians = turn @ hessians @ turn
    return Quadratic((hessians + hessians.transpose(0, 2, 1)) / 2, values, 0.0, start)


def _cohorts_of_every_size(
    rng: np.random.Generator, T: int, N: int, kinds: tuple[str, ...], place: int, empty: list[int]
) -> np.ndarray:
    """Weights (T, N) of one of these kinds; cohorts of 1 to N clients alternate over the rounds that are not `empty`.

    If there are many rounds, client 0 is absent in most of them: in more than a finite cut-off.
    """
    several = [kind for kind in kinds if kind != "one-hot"] or list(kinds)
    kind = several[place % len(several)]
    if kind == "everyone":
        q = np.tile(rng.permutation(np.arange(1.0, N + 1)), (T, 1))
    else:
        sizes, others = np.ones(T, int), np.setdiff1d(np.arange(T), empty)
        if kind != "one-hot":
            sizes[others] = np.resize(rng.permutation(N) + 1, len(others))
        q = (rng.random((T, N)).argsort(axis=1) < sizes[:, None]).astype(float)
        if T > 12:
            q[2 : T - 2, 0] = 0
            q[q.sum(1) == 0, -1] = 1
        if kind == "proportions":
            q *= rng.integers(1, 5, size=(T, N))
        elif kind == "Dirichlet":  # of very different shares
            q *= 10.0 ** rng.uniform(-4, 0, size=(T, N))
    return q / q.sum(1, keepdims=True)


@cache
def averaging_cases() -> SearchStrategy[AveragingCase]:
    """Steps of a server for `check_averaging`: up to 4 clients in up to 2 dimensions, and cohorts of every size of up
    to 7 clients and of 11 of 12, in up to 300 dimensions and of several magnitudes.
    """
    sizes = sorted(((N, K) for N in range(1, 8) for K in range(1, N + 1)), key=lambda size: size[0] * size[1] % 5)
    classes = [
        SizeClass(_sized_step(N, K, place), _small_step(min(N, 9), 3))  # of more there are too many cohorts
        for place, (N, K) in enumerate([*sizes, (12, 11)])
    ]
    return with_size_classes(_small_step(), classes)


@st.composite
def _small_step(draw: st.DrawFn, most: int = 4, dimension: int = 2) -> AveragingCase:
    N, d = draw(st.integers(1, most)), draw(st.integers(1, dimension))
    grid = st.integers(-8, 8).map(lambda k: k / 4)
    numbers = draw(st.lists(grid, min_size=(N + 1) * d, max_size=(N + 1) * d))
    sizes = np.array(draw(st.lists(st.integers(1, 4), min_size=N, max_size=N)), dtype=float)
    cohort = draw(st.sets(st.integers(0, N - 1), min_size=1))
    rows = np.array(numbers).reshape(N + 1, d) * draw(st.sampled_from(UNITS))
    return AveragingCase(rows[0], rows[1:], sizes / sizes.sum(), np.array(sorted(cohort)))


@st.composite
def _sized_step(draw: st.DrawFn, N: int, K: int, place: int) -> AveragingCase:
    """Different clients, K of which participate; sometimes one of them sends a zero update.

    Every second step has shares between 1e-4 and 1, up to a factor.
    """
    rng = np.random.default_rng((draw(st.integers(0, 2**16)), N, K))
    d = (1, 2, 3, 9, 1, 2, 300)[place % 7]
    rows = MAGNITUDES[place % len(MAGNITUDES)] * general(rng, N + 1, d)
    sizes = 10.0 ** rng.uniform(-4, 0, N) if place % 2 else rng.permutation(np.arange(1.0, N + 1))
    cohort = np.sort(rng.permutation(N)[:K])
    if K > 2 and N % 2:
        rows[1 + cohort[1]] = 0
    return AveragingCase(rows[0], rows[1:], sizes / sizes.sum(), cohort)
