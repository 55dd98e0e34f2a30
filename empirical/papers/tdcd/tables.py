r"""The arguments and the result of a run, for tests of the invariants of TDCD: a table split over silos and clients.

A *run* is any function that computes the models of TDCD:

    run(table, draw, rounds=, step_size=, local_steps=) -> models (R + 1, d)

`table` and `draw` are positional, the others keywords; `**_` takes those that are not used:

- `table.starts`: $\tilde\theta_j^0$, one array for each silo; `table.clients[j]`: of each client of silo j the IDs of
  its samples, in any order, which may be split otherwise in every silo.
- `table.embed(j, theta_j, ids)` is $\Phi_j^{(p)}=h_j(\theta_j;X_j^{(p)})$ of these samples, (m,), and
  `table.gradient(j, theta_j, ids, others)` eq. (4), with the others' embeddings of them. To compute
  both yourself, use `features`, `offsets`, `labels` and `loss`.
- `draw(t)`: the IDs of the batch of iteration t, in any order, the same for every caller, as hubs share
  a seed. Algorithm 1 draws at t = 0, Q, 2Q, ... Every client has a sample of each batch.
- `rounds` R, `local_steps` Q, `step_size` $\eta$.

The models are all blocks $\tilde\theta^{rQ}$, one after another, at the start and after every round.

Source: Das et al. 2022, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.empirical.invariants.cases import as_numbers, digits
from fedbounds.empirical.invariants.scope import Feature, Need

TableRun = Callable[..., ArrayLike]
TableLoss = Literal["least squares", "logistic"]


@dataclass(frozen=True, eq=False)
class SplitTable:
    r"""A linear model in every silo, as plain callables on NumPy arrays.

    $$h_j(\theta_j;X_j^{(p)})=\theta_j^\top X_j^{(p)}+o_j^{(p)},\qquad
      \ell(z;y)=\tfrac12(z-y)^2\ \text{ or }\ \log(1+e^z)-yz$$

    Source: Das et al. 2022, eqs. (2) to (4); the family is ours.
    """

    features: tuple[np.ndarray, ...]  # $X_j$, (M, d_j) for each silo
    offsets: np.ndarray  # $o_j$, (N, M): what a silo adds to its embedding of a sample, whatever its parameters are
    labels: np.ndarray  # y, (M,)
    clients: tuple[tuple[np.ndarray, ...], ...]  # of each silo and client the IDs that it holds, 0 to M - 1
    starts: tuple[np.ndarray, ...]  # $\theta_j^0$, (d_j,) for each silo
    loss: TableLoss = "least squares"  # "least squares" or "logistic"

    @property
    def silos(self) -> int:
        """N."""
        return len(self.features)

    @property
    def samples(self) -> int:
        """M."""
        return len(self.labels)

    @property
    def blocks(self) -> tuple[slice, ...]:
        """Where each silo's parameters stand in a model."""
        ends = np.cumsum([len(start) for start in self.starts])
        return tuple(slice(int(end) - len(start), int(end)) for end, start in zip(ends, self.starts, strict=True))

    @property
    def copied(self) -> SplitTable:
        """The same table with arrays of its own."""
        return SplitTable(
            tuple(columns.copy() for columns in self.features), self.offsets.copy(), self.labels.copy(),
            tuple(tuple(ids.copy() for ids in silo) for silo in self.clients),
            tuple(start.copy() for start in self.starts), self.loss,
        )  # fmt: skip

    @property
    def arrays(self) -> np.ndarray:
        """All numbers of the table, one after another."""
        ids = [ids for silo in self.clients for ids in silo]
        given = (*self.features, self.offsets, self.labels, *ids, *self.starts)
        return np.concatenate([np.ravel(values).astype(float) for values in given])

    def embed(self, j: int, theta: ArrayLike, ids: ArrayLike) -> np.ndarray:
        r"""$\Phi_j$ of these samples, (m,)."""
        rows = np.asarray(ids, int)
        return self.features[j][rows] @ np.asarray(theta, float) + self.offsets[j][rows]

    def slopes(self, total: np.ndarray, ids: ArrayLike) -> np.ndarray:
        r"""$\ell'$ at sums of embeddings of these samples, (m,)."""
        y = self.labels[np.asarray(ids, int)]
        return (total if self.loss == "least squares" else 1 / (1 + np.exp(-total))) - y

    def pulled(self, j: int, ids: ArrayLike, slopes: np.ndarray) -> np.ndarray:
        r"""The mean over these samples of slopes times $\partial h_j$, (d_j,)."""
        rows = np.asarray(ids, int)
        if not len(rows):
            raise FedboundsError(f"silo {j}: the gradient of no samples; give at least one ID")
        return slopes @ self.features[j][rows] / len(rows)

    def gradient(self, j: int, theta: ArrayLike, ids: ArrayLike, others: ArrayLike) -> np.ndarray:
        r"""$\frac1m\sum_p\nabla_{\theta_j}\ell(\Phi_{-j}^{(p)}+h_j(\theta_j;X_j^{(p)});y^{(p)})$, (d_j,)."""
        total = np.asarray(others, float) + self.embed(j, theta, ids)
        if total.shape != np.shape(ids):
            raise FedboundsError(
                f"others have shape {np.shape(others)}; expected one number for each of {np.size(ids)} ids"
            )
        return self.pulled(j, ids, self.slopes(total, ids))

    def renamed(self, order: np.ndarray) -> SplitTable:
        """The table in which sample p is called order[p]; clients name theirs in another order."""
        back = np.argsort(order)
        clients = tuple(tuple(order[ids][::-1].copy() for ids in silo) for silo in self.clients)
        features = tuple(columns[back] for columns in self.features)
        return replace(
            self, features=features, offsets=self.offsets[:, back], labels=self.labels[back], clients=clients
        )

    def in_coordinates(self, turns: Sequence[np.ndarray]) -> SplitTable:
        """The same embeddings with parameters turns[j] @ theta_j."""
        features = tuple(X @ np.linalg.inv(turn) for X, turn in zip(self.features, turns, strict=True))
        starts = tuple(turn @ start for turn, start in zip(turns, self.starts, strict=True))
        return replace(self, features=features, starts=starts)

    def __str__(self) -> str:
        silos = [
            f"silo {j}: X = {digits(X)}, o = {digits(o)}, start = {digits(start)}, clients {[i.tolist() for i in ids]}"
            for j, (X, o, start, ids) in enumerate(
                zip(self.features, self.offsets, self.starts, self.clients, strict=True)
            )
        ]
        return "\n".join([f"table: {self.loss}, y = {digits(self.labels)}", *silos])


@dataclass(frozen=True, eq=False)
class TableCase:
    """One run of TDCD, before it is run."""

    table: SplitTable  # the silos and their clients
    batches: np.ndarray  # of iteration t the IDs batches[t % len(batches)], (T, B)
    rounds: int  # R
    local_steps: int  # Q
    step_size: float  # $\eta$
    exposed: bool = False  # whether a run gets the table's own arrays, not copies of them

    def draw(self, t: int) -> np.ndarray:
        """The batch of iteration t."""
        if not isinstance(t, int | np.integer) or t < 0:
            raise FedboundsError(f"draw({quote(t)}): iterations are 0, 1, 2, ...")
        return self.batches[int(t) % len(self.batches)].copy()

    def models(self, run: TableRun) -> np.ndarray:
        r"""What a run makes of this case: $\tilde\theta^0,\tilde\theta^Q,\dots$, (R + 1, d)."""
        returned = run(
            self.table if self.exposed else self.table.copied, self.draw,
            rounds=self.rounds, local_steps=self.local_steps, step_size=self.step_size,
        )  # fmt: skip
        wanted = (self.rounds + 1, self.table.blocks[-1].stop)
        return as_numbers(
            returned,
            wanted,
            f"the run returned {{}}; expected models of shape {wanted}",
            f"the run returned shape {{}}; expected the models after every round, {wanted}",
            "the run returned the model {row} after {t} rounds, which is not finite",
        )

    def of(self, table: SplitTable, **changes: object) -> TableCase:
        """The same with another table."""
        return replace(self, table=table, **changes)

    @property
    def once(self) -> TableCase:
        """Its first round."""
        return replace(self, rounds=1)

    def from_round(self, r: int, model: np.ndarray) -> TableCase:
        """What remains after r rounds, from a model."""
        starts = tuple(model[block] for block in self.table.blocks)
        batches = np.roll(self.batches, -r * self.local_steps, axis=0)
        return replace(self, table=replace(self.table, starts=starts), batches=batches, rounds=self.rounds - r)

    @property
    def whole(self) -> TableCase:
        """The same with all samples in every batch."""
        return replace(self, batches=np.arange(self.table.samples)[None])

    @property
    def merged(self) -> TableCase:
        """The same with one client in every silo, who has all samples."""
        clients = tuple((np.concatenate(silo),) for silo in self.table.clients)
        return self.of(replace(self.table, clients=clients))

    @property
    def evened(self) -> TableCase:
        """The same where the clients of a silo, if they do not hold equally many samples, are merged into one."""
        clients = tuple(
            silo if len({len(ids) for ids in silo}) == 1 else (np.concatenate(silo),) for silo in self.table.clients
        )
        return self.of(replace(self.table, clients=clients))

    def __str__(self) -> str:
        numbers = f"R = {self.rounds}, Q = {self.local_steps}, step size {digits(self.step_size)}"
        return "\n".join([*str(self.table).splitlines(), f"batches: {self.batches.tolist()}", f"run: {numbers}"])


FEATURES = (Feature("local_steps", "one local step (Q = 1)", lambda case: replace(case, local_steps=1)),)
SEVERAL_SILOS = Need("more than one silo", lambda case: case.table.silos > 1)
THREE_SILOS = Need("three silos", lambda case: case.table.silos > 2)
MANY_STEPS = Need("more than one local step", lambda case: case.local_steps > 1)
EQUAL = Need(
    "several clients in a silo, who hold equally many samples",
    lambda case: any(len(silo) > 1 for silo in case.evened.table.clients),
)
PART = Need("a batch that is not all samples", lambda case: case.batches.shape[1] < case.table.samples)
WIDE = Need("a silo with two parameters", lambda case: any(len(start) > 1 for start in case.table.starts))
SQUARES = Need("least squares", lambda case: case.table.loss == "least squares")
