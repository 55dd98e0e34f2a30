"""Local steps of any number of (seed, client) pairs at once, with the randomness that belongs to each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.streams import GeneratorPool, Streams

AT_ONCE = 2**22  # numbers held by one batch: pairs x d, and the randomness drawn ahead


def local_updates(
    problem: Problem,
    local: LocalSGD,
    x: torch.Tensor,
    clients: torch.Tensor,
    streams: Sequence[Streams],
    t: int,
    pool: GeneratorPool,
    correction: torch.Tensor | None = None,
    watch: Callable[[torch.Tensor], None] | None = None,
) -> torch.Tensor:
    """The updates of a rectangle of pairs.

    Args:
        x: the received models, shape (seeds, cohort, d).
        clients: who computes, shape (seeds, cohort).
        streams: of each pair, in row-major order.
        t: the round.
        correction: what each pair adds to its gradients, shape (seeds, cohort, d).
        watch: is shown every point at which gradients are taken, shape (seeds, cohort, d).

    Returns:
        The updates, shape (seeds, cohort, d).
    """
    full = local.oracle == "full"
    randomness = iter(()) if full else _randomness(problem, clients, streams, t, local.steps, pool)

    def gradient(y: torch.Tensor) -> torch.Tensor:
        if watch is not None:
            watch(y)
        found = problem.gradient(y, clients) if full else problem.stochastic_gradient(y, clients, next(randomness))
        return found if correction is None else found + correction

    return local.update(x, gradient)


def _randomness(
    problem: Problem,
    clients: torch.Tensor,
    streams: Sequence[Streams],
    t: int,
    steps: int,
    pool: GeneratorPool,
) -> Iterator[torch.Tensor | None]:
    """Step by step what all pairs draw, (seeds, cohort, ...): a pair's generator is at (round, client) of its noise."""
    names = clients.flatten().tolist()
    generators = [pool.aim(k, streams[k], "noise", t, name) for k, name in enumerate(names)]
    ahead = max(1, AT_ONCE // (len(names) * problem.dimension))
    for done in range(0, steps, ahead):
        block = min(ahead, steps - done)
        drawn = [problem.draws(generator, name, block) for generator, name in zip(generators, names, strict=True)]
        if drawn[0] is None:
            yield from [None] * block
            continue
        numbers = torch.from_numpy(np.stack(drawn, axis=1))  # type: ignore[arg-type]
        kind = problem.dtype if numbers.is_floating_point() else torch.int64
        yield from numbers.to(problem.device, kind).view(block, *clients.shape, *numbers.shape[2:])
