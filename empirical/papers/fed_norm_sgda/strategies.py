"""Strategies of hypothesis for minimax algorithms: quadratic games and runs on them. Needs the extra `testing`."""

from __future__ import annotations

import numpy as np

from fedbounds.empirical.papers.fed_norm_sgda.games import Game, GameCase
from fedbounds.empirical.strategies import halves, st

PLAYERS = (1, 2, 3, 4, 4)


@st.composite
def games(draw: st.DrawFn, clients: int | None = None) -> Game:
    """Quadratic games of up to 4 clients and 2 dimensions each, of any curvature: a few rounds only.

    Example:
        >>> from hypothesis import find
        >>> find(games(), lambda game: game.clients == 2).start.tolist()
        [0.0, 0.0]
    """
    n = draw(st.sampled_from(PLAYERS)) if clients is None else clients
    dx, dy = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    above = np.triu_indices(dx + dy)
    half = np.zeros((n, dx + dy, dx + dy))
    half[:, *above] = halves(draw, n, len(above[0]), most=1)
    slopes, start = halves(draw, n, dx + dy), halves(draw, dx + dy)
    return Game(half + half.transpose(0, 2, 1), slopes, start, dx)


@st.composite
def game_cases(
    draw: st.DrawFn,
    *,
    momenta: tuple[float, ...] = (0.0, 0.5),
    periods: tuple[int, ...] = (0, 1, 2, 3),
    local_steps: tuple[int, ...] = (1, 2, 3),
    parts: tuple[int, ...] = (1, 2, 3),
    everyone: bool = False,
) -> GameCase:
    r"""Runs for `check_minimax`: up to 4 rounds in whole blocks, any local steps and
    cohorts.

    What the cases do not have, no invariant asks of a run: leave out here what yours does without.

    Args:
        momenta: the $\rho$ to try; (0.0,) for a run without.
        periods: the S to try; 0 is none.
        local_steps: the $\tau_i$ to try.
        parts: the weights are proportional to these; (1,) for equal weights.
        everyone: whether all clients take part in every round.

    Example:
        >>> from hypothesis import find
        >>> case = find(game_cases(), lambda case: case.period == 2)
        >>> case.cohorts.tolist(), case.local_steps.tolist(), case.step_sizes
        ([[0], [0]], [1], (0.5, 0.5))
    """
    game = draw(games())
    n = game.clients
    P, period = n if everyone else draw(st.sampled_from((*range(1, n + 1), n))), draw(st.sampled_from(periods))
    T = max(1, period) * draw(st.integers(1, 4 // max(1, period)))
    clients = st.just(range(n)) if n == P else st.permutations(range(n))
    cohorts = [sorted(draw(clients)[:P]) for _ in range(T)]
    shares = np.array(draw(st.lists(st.sampled_from(parts), min_size=n, max_size=n)))
    steps = draw(st.lists(st.sampled_from(local_steps), min_size=n, max_size=n))
    sizes = st.sampled_from([0.5, 0.25, 0.125])
    return GameCase(
        game,
        np.array(cohorts),
        shares / shares.sum(),
        np.array(steps),
        (draw(sizes), draw(sizes)),
        (draw(sizes), draw(sizes)),
        draw(st.sampled_from(momenta)),
        period,
    )
