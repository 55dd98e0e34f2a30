"""Strategies of hypothesis for minimax algorithms: games and runs on them. Needs the extra `testing`."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from fedbounds.empirical.invariants.coverage import MAGNITUDES, UNITS, SizeClass, general, with_size_classes
from fedbounds.empirical.invariants.strategies import SearchStrategy, halves, st
from fedbounds.empirical.papers.fed_norm_sgda.games import Game, GameCase, Ripple

PLAYERS = (1, 2, 3, 4, 4)
LOCAL_STEPS = (1, 2, 3)
PERIODS = (0, 1, 2, 3)


class GameSize(NamedTuple):
    """n clients of which P take part, T rounds in blocks of `period`, up to `local_steps`, d_x and d_y."""

    clients: int
    participants: int
    rounds: int
    local_steps: int
    descent: int
    ascent: int
    period: int


# Together they have n and P from 1 to 7, all of n and some, every number of local steps from 1 to 10, T up to 130, 208
# local steps of a client in all, and up to 8 dimensions of either player; no case has all at once.
SIZES = (
    GameSize(2, 1, 130, 1, 1, 1, 0), GameSize(1, 1, 16, 13, 1, 1, 0),
    GameSize(7, 5, 6, 2, 3, 2, 0), GameSize(2, 1, 4, 10, 1, 2, 2), GameSize(7, 7, 4, 2, 2, 3, 0),
    GameSize(6, 4, 16, 1, 1, 1, 4), GameSize(5, 3, 5, 5, 2, 1, 0), GameSize(2, 2, 10, 2, 1, 1, 5), GameSize(4, 3, 4,
    7, 1, 1, 0),
    GameSize(7, 6, 5, 1, 4, 8, 0), GameSize(6, 6, 3, 3, 3, 3, 3), GameSize(3, 1, 36, 1, 1, 2, 18), GameSize(4, 2, 12,
    3, 2, 2, 0),
    GameSize(2, 1, 3, 8, 1, 3, 0), GameSize(5, 5, 6, 4, 1, 1, 2), GameSize(3, 3, 3, 6, 8, 1, 0), GameSize(7, 2, 18, 2,
    1, 1, 6),
    GameSize(4, 4, 8, 2, 1, 5, 1), GameSize(3, 2, 2, 9, 2, 1, 0), GameSize(6, 5, 14, 1, 2, 1, 7),
    GameSize(5, 4, 9, 2, 1, 1, 3), GameSize(6, 1, 16, 2, 1, 1, 8), GameSize(4, 1, 10, 3, 3, 1, 0), GameSize(7, 4, 4,
    4, 1, 2, 2),
)  # fmt: skip


@st.composite
def games(draw: st.DrawFn, clients: int | None = None, *, dimension: int = 2) -> Game:
    """Games of up to 4 clients and 2 dimensions each, of any curvature and some rippled: a few rounds only.

    Args:
        clients: n; up to 4 if not given.
        dimension: the largest $d_x$ and $d_y$.

    Example:
        >>> from hypothesis import find
        >>> find(games(), lambda game: game.clients == 2).start.tolist()
        [0.0, 0.0]
    """
    n = draw(st.sampled_from(PLAYERS)) if clients is None else clients
    dx, dy = draw(st.integers(1, dimension)), draw(st.integers(1, dimension))
    above = np.triu_indices(dx + dy)
    half = np.zeros((n, dx + dy, dx + dy))
    half[:, *above] = halves(draw, n, len(above[0]), most=1)
    slopes, start = halves(draw, n, dx + dy), halves(draw, dx + dy)
    rippled = draw(st.sampled_from((False, False, True)))
    ripple = Ripple(np.full(n, 0.5), np.eye(dx + dy), np.zeros(dx + dy)) if rippled else None
    return Game(half + half.transpose(0, 2, 1), slopes, start, dx, ripple)


class _Wanted(NamedTuple):
    """What `game_cases` is asked for."""

    momenta: tuple[float, ...]
    periods: tuple[int, ...] | None
    local_steps: tuple[int, ...] | None
    parts: tuple[int, ...]
    everyone: bool


def game_cases(
    *,
    momenta: tuple[float, ...] = (0.0, 0.5, 0.9, 0.3),
    periods: tuple[int, ...] | None = None,
    local_steps: tuple[int, ...] | None = None,
    parts: tuple[int, ...] = (1, 2, 3),
    everyone: bool = False,
) -> SearchStrategy[GameCase]:
    r"""Runs for `check_minimax`: small ones of up to 4 clients and rounds, and one of each of `SIZES`.

    What the cases do not have, no invariant asks of a run: leave out here what yours does without. Rounds come in whole
    blocks between snapshots. The larger cases have as many of what is left out as it allows.

    Args:
        momenta: the $\rho$ to try; (0.0,) for a run without.
        periods: the S to try; 0 is none. 0 to 18 if not given.
        local_steps: the $\tau_i$ to try; 1 to 10 if not given.
        parts: the weights are proportional to these; (1,) for equal weights.
        everyone: whether all clients take part in every round.

    Example:
        >>> from hypothesis import find
        >>> case = find(game_cases(), lambda case: case.period == 2)
        >>> case.cohorts.tolist(), case.local_steps.tolist(), case.step_sizes
        ([[0], [0]], [1], (0.5, 0.5))
    """
    blocks, amounts = (None if numbers is None else tuple(numbers) for numbers in (periods, local_steps))
    return _covering(_Wanted(tuple(momenta), blocks, amounts, tuple(parts), everyone))


@cache  # the same strategy again is drawn from once
def _covering(wanted: _Wanted) -> SearchStrategy[GameCase]:
    """Small cases of what is wanted, and those of each of `SIZES`."""
    classes = [SizeClass(_sized(wanted, size, place), _small(wanted, size)) for place, size in enumerate(SIZES)]
    return with_size_classes(_small(wanted, None), classes)


@st.composite
def _small(draw: st.DrawFn, wanted: _Wanted, most: GameSize | None) -> GameCase:
    """A run that is drawn number by number: small, or up to this size, the simplest first."""
    if most is None:
        game, periods, amounts, longest = draw(games()), PERIODS, LOCAL_STEPS, 4
    else:
        game = draw(games(draw(st.integers(1, most.clients)), dimension=max(most.descent, most.ascent)))
        periods, amounts, longest = (0, most.period), tuple(range(1, most.local_steps + 1)), most.rounds
    periods, amounts, n = wanted.periods or periods, wanted.local_steps or amounts, game.clients
    P, period = n if wanted.everyone else draw(st.sampled_from((*range(1, n + 1), n))), draw(st.sampled_from(periods))
    T = max(1, period) * draw(st.integers(1, max(1, longest // max(1, period))))
    clients = st.just(range(n)) if n == P else st.permutations(range(n))
    cohorts = [sorted(draw(clients)[:P]) for _ in range(T)]
    shares = np.array(draw(st.lists(st.sampled_from(wanted.parts), min_size=n, max_size=n)))
    steps = draw(st.lists(st.sampled_from(amounts), min_size=n, max_size=n))
    sizes = st.sampled_from([0.5, 0.25, 0.125, 0.3])
    unit = draw(st.sampled_from(UNITS))
    return GameCase(
        replace(game, slopes=unit * game.slopes, start=unit * game.start) if game.ripple is None else game,
        np.array(cohorts),
        shares / shares.sum(),
        np.array(steps),
        (draw(sizes), draw(sizes)),
        (draw(sizes), draw(sizes)),
        draw(st.sampled_from(wanted.momenta)),
        period,
    )


@st.composite
def _sized(draw: st.DrawFn, wanted: _Wanted, size: GameSize, place: int) -> GameCase:
    """A run of one size on a convex-concave game, with values in general position and steps that do not diverge.

    Every third game is rippled; the others are of one of the magnitudes, and of several curvatures.
    """
    rng = np.random.default_rng((draw(st.integers(0, 2**16)), place))
    n, P, T, most, dx, dy, period = size
    P, d = n if wanted.everyone else P, dx + dy
    period, most = (
        number if own is None else min(own, key=lambda allowed, number=number: abs(allowed - number))
        for own, number in ((wanted.periods, period), (wanted.local_steps, most))
    )
    T = max(1, period) * max(1, T // max(1, period))
    curved = rng.uniform(0.25, 0.75, (n, d)) * np.where(np.arange(d) < dx, 1, -1)
    coupled = general(rng, n, dx, dy) / (8 * max(dx, dy))
    hessians = curved[:, :, None] * np.eye(d)
    hessians[:, :dx, dx:], hessians[:, dx:, :dx] = coupled, coupled.transpose(0, 2, 1)
    ripple, steepness = None, (1.0, 30.0, 0.03)[place % 3]
    if place % 3 == 0:
        ripple = Ripple(rng.uniform(0.1, 0.2, n), np.eye(d), general(rng, d))
    unit = MAGNITUDES[place % len(MAGNITUDES)] if ripple is None else 1.0
    game = Game(hessians, unit * general(rng, n, d), unit * general(rng, d), dx, ripple)
    cohorts = np.sort(rng.random((T, n)).argsort(axis=1)[:, :P], axis=1)
    shares = rng.choice(np.array(wanted.parts, float), n)
    shares *= 1.0 if len(set(wanted.parts)) == 1 else rng.uniform(0.3, 1, n)
    shares[cohorts[0, 0]] = max(wanted.parts)
    amounts = [tau for tau in wanted.local_steps or range(1, most + 1) if tau <= most]
    steps = rng.choice(np.array(amounts), n)
    steps[cohorts[0, -1]] = most
    local, server = (tuple(sizes / steepness) for sizes in rng.uniform(0.1, 0.3, (2, 2)))
    return GameCase(
        game.scaled(steepness),
        cohorts,
        shares / shares.sum(),
        steps,
        local,
        server,
        wanted.momenta[(place + place // 4) % len(wanted.momenta)],
        period,
    )
