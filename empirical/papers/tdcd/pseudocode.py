"""The slow twins of the tiered algorithms: one client and one local step at a time, as the pseudo-code reads."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from fedbounds.empirical.problems.vertical import Vertical
from fedbounds.empirical.runtime.streams import Streams


def tdcd(
    problem: Vertical,
    q: np.ndarray,
    x0: Tensor,
    streams: Streams,
    *,
    local_step_size: float,
    local_steps: int,
    average: str = "clients",
    empty: str = "refuse",
    printed: bool = False,
    stale: bool = False,
) -> list[Tensor]:
    """The models after every round, each (d,).

    Source: Das et al. 2022, Algorithm 1, with line 32 corrected unless `printed`.
    """
    models, first = [x0], np.cumsum((0, *problem.silo_clients))
    for r in range(len(q)):
        theta = models[-1]
        drawn = problem.draw_round(streams.generator("noise", r))
        batch = None if drawn is None else torch.from_numpy(drawn)
        if batch is not None and batch.is_floating_point():
            batch = batch.to(problem.dtype)
        told = problem.exchange(theta[None], None if batch is None else batch[None])
        after = theta.clone()
        for j, block in enumerate(problem.blocks):
            clients = int(first[j + 1] - first[j])
            held = problem.batch_counts(j, told)
            parts = [1.0] * clients if held is None else held[0].tolist()
            copies = []
            for k in range(clients):
                own = theta[block]
                for step in range(local_steps):
                    if printed and step == local_steps - 1:
                        break
                    everyone = torch.zeros(1, clients, len(own), dtype=own.dtype)
                    everyone[0, k] = own
                    gradients = problem.stale_gradients if stale else problem.partial_gradients
                    own = own - local_step_size * gradients(j, everyone, told)[0, k]
                copies.append(own)
            shares = {"clients": [1.0] * clients, "shards": problem.shares(j).tolist(), "batches": parts}[average]
            if empty == "drop":
                shares = [share * (part > 0) for share, part in zip(shares, parts, strict=True)]
            after[block] = sum(share / sum(shares) * copy for share, copy in zip(shares, copies, strict=True))
        models.append(after)
    return models


def printed_tdcd(problem: Vertical, q: np.ndarray, x0: Tensor, streams: Streams, **numbers: float) -> list[Tensor]:
    """Line 32 as printed."""
    return tdcd(problem, q, x0, streams, printed=True, **numbers)  # type: ignore[arg-type]


def label_private_tdcd(
    problem: Vertical, q: np.ndarray, x0: Tensor, streams: Streams, *, derivatives: str, **numbers: object
) -> list[Tensor]:
    """The loss's derivatives come back in every local step, or once a round."""
    return tdcd(problem, q, x0, streams, stale=derivatives == "once a round", **numbers)  # type: ignore[arg-type]


TWINS: Mapping[str, Callable[..., list[Tensor]]] = {
    "tdcd": tdcd,
    "tdcd-printed": printed_tdcd,
    "tdcd-label-private": label_private_tdcd,
}
