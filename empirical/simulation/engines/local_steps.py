"""Local steps of any number of (seed, client) pairs at once, with the randomness that belongs to each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

import numpy as np
import torch

from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.runtime.counter_rng import words_from_uniforms
from fedbounds.empirical.runtime.streams import GeneratorPool, Streams

Blocks = Iterator[tuple[int, torch.Tensor | None]]  # so many steps, and what is drawn for them, (steps, *shape, ...)
AT_ONCE = 2**22  # numbers held by one batch: pairs x d, and the randomness drawn ahead
AT_ONCE_ELSEWHERE = 2**28  # the same on a device that is fast where there is much to do


def largest_batch(device: torch.device, dimension: int) -> int:
    """Pairs that compute together."""
    return max(1, (AT_ONCE if device.type == "cpu" else AT_ONCE_ELSEWHERE) // dimension)


def local_updates(
    problem: Problem,
    local: LocalSGD,
    x: torch.Tensor,
    clients: torch.Tensor,
    drawn: Blocks,
    correction: torch.Tensor | None = None,
    watch: Callable[[torch.Tensor], None] | None = None,
    words: torch.Tensor | None = None,
    step_sizes: torch.Tensor | None = None,
) -> torch.Tensor:
    """The updates of a rectangle of pairs."""
    plain = local.plain and local.oracle == "stochastic" and not local.frozen and correction is None
    if problem.fuses_steps and plain and watch is None:
        return _fused_updates(problem, local, x, clients, drawn, step_sizes) - x
    steps = _step_by_step(drawn)

    def gradient(y: torch.Tensor) -> torch.Tensor:
        if watch is not None:
            watch(y)
        full = local.oracle == "full"
        found = problem.gradient(y, clients) if full else problem.stochastic_gradient(y, clients, next(steps))
        if problem.statistics:  # move by steps of length one
            found[..., -problem.statistics :] /= local.step_size if step_sizes is None else step_sizes
        return found if correction is None else found + correction

    if step_sizes is not None:
        return local.sized_update(x, gradient, step_sizes)
    return local.sparing(problem.uncompressed, problem.statistics).update(x, gradient, words)


def _fused_updates(
    problem: Problem,
    local: LocalSGD,
    x: torch.Tensor,
    clients: torch.Tensor,
    drawn: Blocks,
    step_sizes: torch.Tensor | None,
) -> torch.Tensor:
    sizes = x.new_full((*x.shape[:-1], 1), local.step_size) if step_sizes is None else step_sizes
    with torch.inference_mode(x.device.type == "cpu"):  # small layers are a sixth faster where none asks for gradients
        for _, own in drawn:
            assert own is not None, "problems that walk draw something"
            x = problem.fuse_steps(x, clients, own, sizes)
    return x


def draw_words(
    local: LocalSGD, clients: np.ndarray, streams: Sequence[Streams], t: int, pool: GeneratorPool
) -> np.ndarray | None:
    """The word of each pair in round t, from (round, client) of its masks: int64 (pairs,); None if nobody needs any."""
    if not local.worded:
        return None
    names = enumerate(clients.tolist())
    return words_from_uniforms(np.array([pool.aim(k, streams[k], "masks", t, name).random() for k, name in names]))


def draw_blocks(
    problem: Problem,
    local: LocalSGD,
    clients: np.ndarray,
    streams: Sequence[Streams],
    t: int,
    pool: GeneratorPool,
    most: int,
) -> Iterator[tuple[int, np.ndarray | None]]:
    """What pairs draw in a round, block by block: the steps, and (steps, pairs, ...) or None if nothing is drawn."""
    names, places, which = clients.tolist(), dict[tuple[int, int], int](), list[int]()
    firsts: list[int] = []  # settings under the same seeds draw the same
    for k, pair in enumerate(zip(map(id, streams), names, strict=True)):
        which.append(places.setdefault(pair, len(firsts)))
        if which[-1] == len(firsts):
            firsts.append(k)
    generators = [pool.aim(place, streams[k], "noise", t, names[k]) for place, k in enumerate(firsts)]
    for done in range(0, local.steps, most):
        block = min(most, local.steps - done)
        table = problem.draws_of_all(generators, [names[k] for k in firsts], block)
        yield block, table if table is None or len(firsts) == len(names) else table[:, which]


def draw_limited_blocks(
    problem: Problem,
    local: LocalSGD,
    clients: np.ndarray,
    streams: Sequence[Streams],
    t: int,
    pool: GeneratorPool,
    shape: Sequence[int],
) -> Blocks:
    """What the pairs of a rectangle draw, in blocks of bounded size."""
    if local.oracle == "full":
        return
    most = max(1, AT_ONCE // (len(clients) * problem.dimension))
    for steps, drawn in draw_blocks(problem, local, clients, streams, t, pool, most):
        yield steps, None if drawn is None else arrange_draws(problem, torch.from_numpy(drawn), shape)


def _step_by_step(blocks: Blocks) -> Iterator[torch.Tensor | None]:
    """What is drawn for each step, (*shape, ...)."""
    for steps, drawn in blocks:
        yield from repeat(None, steps) if drawn is None else drawn


def arrange_draws(problem: Problem, drawn: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """What pairs drew, (steps, pairs, ...), as a problem takes it: on its device, (steps, *shape, ...)."""
    kind = problem.dtype if drawn.is_floating_point() else torch.int64
    return drawn.to(problem.device, kind).unflatten(1, tuple(shape))
