r"""How Algorithm 1 may be misread: every choice in it is a method, and every misreading another choice."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ClassVar, Self, TypeAlias

import numpy as np

from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.papers.tdcd.tables import SplitTable, TableCase

Draw = Callable[[int], np.ndarray]
Copies: TypeAlias = list[list[np.ndarray]]


class Reading:
    """Algorithm 1, all clients going on at the same time; as it is meant, it is `tdcd` of this room.

    Attributes:
        table, draw, local_steps, step_size: see `fedbounds.empirical.papers.tdcd.tables`.
        blocks: as the round began.
        before: as the round before began.
        remedy: what to do if a misreading is meant.
    """

    remedy: ClassVar[str] = ""

    table: SplitTable
    draw: Draw
    local_steps: int
    step_size: float
    blocks: list[np.ndarray]
    before: list[np.ndarray]

    def __call__(self, table: SplitTable, draw: Draw, *, rounds: int, local_steps: int, step_size: float) -> np.ndarray:
        self.table, self.draw, self.local_steps, self.step_size = table, draw, local_steps, step_size
        self.blocks = self.before = list(table.starts)
        models = [np.concatenate(self.blocks)]
        for r in range(rounds):
            after = self.round(r)
            self.before, self.blocks = self.blocks, after
            models.append(np.concatenate(after))
        return np.stack(models)

    @classmethod
    def at(cls, case: TableCase, model: np.ndarray) -> Self:
        """Where a round of a case begins with a model."""
        made = cls()
        made.table, made.step_size = case.table, case.step_size
        made.blocks = made.before = [model[block] for block in case.table.blocks]
        return made

    def round(self, r: int) -> list[np.ndarray]:
        """The blocks after a round."""
        batch, copies = np.empty(0, int), self.copies()
        for q in range(self.steps()):
            batch = self.draw(self.when(r, q))
            copies = self.stepped(copies, self.slopes(copies, batch))
        return [self.mean(j, silo, batch) for j, silo in enumerate(copies)]

    def copies(self) -> Copies:
        """What the clients begin with."""
        return [[block] * len(self.rows(j)) for j, block in enumerate(self.blocks)]

    def slopes(self, copies: Copies, batch: np.ndarray) -> Copies:
        """Eq. (4), of all clients."""
        told = self.told(batch, copies)
        return [[self.slope(j, k, own, batch, told) for k, own in enumerate(silo)] for j, silo in enumerate(copies)]

    def steps(self) -> int:
        """How many local steps count."""
        return self.local_steps

    def when(self, r: int, q: int) -> int:
        """Of which iteration the batch is that is used in local step q of round r."""
        return r * self.local_steps

    def rows(self, j: int) -> tuple[np.ndarray, ...]:
        """The samples of the clients of a silo."""
        return self.table.clients[j]

    def told(self, batch: np.ndarray, copies: Copies) -> np.ndarray:
        """Everybody's embeddings of the batch, (N, B)."""
        return np.array([self.table.embed(j, block, batch) for j, block in enumerate(self.blocks)])

    def part(self, j: int, k: int, batch: np.ndarray) -> np.ndarray:
        """Which places of the batch are a client's."""
        return np.flatnonzero(np.isin(batch, self.rows(j)[k]))

    def others(self, j: int, told: np.ndarray) -> np.ndarray:
        r"""$\Phi_{-j}$, (B,)."""
        return told.sum(0) - told[j]

    def slope(self, j: int, k: int, own: np.ndarray, batch: np.ndarray, told: np.ndarray) -> np.ndarray:
        """Eq. (4)."""
        mine = self.part(j, k, batch)
        return self.table.gradient(j, own, batch[mine], self.others(j, told)[mine])

    def stepped(self, copies: Copies, steps: Copies) -> Copies:
        """Eq. (5), of all clients."""
        return [
            [own - self.step_size * slope for own, slope in zip(*both, strict=True)]
            for both in zip(copies, steps, strict=True)
        ]

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        """Line 32."""
        return np.mean(copies, axis=0)


class LosesLastStep(Reading):
    """Line 32 as printed: the last local step is lost."""

    def steps(self) -> int:
        return self.local_steps - 1


class OneStep(Reading):
    """It does one local step, however many there are."""

    remedy = "if it has no local steps: table_cases(local_steps=(1,))"

    def steps(self) -> int:
        return 1


class RedrawsEveryStep(Reading):
    """The batch is redrawn in every local step: a round has one."""

    def when(self, r: int, q: int) -> int:
        return r * self.local_steps + q


class CountsRounds(Reading):
    """It draws by the number of the round: batches are those of iterations 0, Q, 2Q and so on."""

    def when(self, r: int, q: int) -> int:
        return r


class RefreshesOthers(Reading):
    """The others' embeddings are refreshed in every local step."""

    def told(self, batch: np.ndarray, copies: Copies) -> np.ndarray:
        found = super().told(batch, copies)
        for j, silo in enumerate(copies):
            for k, own in enumerate(silo):
                mine = self.part(j, k, batch)
                found[j, mine] = self.table.embed(j, own, batch[mine])
        return found


class AveragesEveryStep(Reading):
    """The copies are averaged in every local step, not once a round."""

    def stepped(self, copies: Copies, steps: Copies) -> Copies:
        return [[np.mean(silo, axis=0)] * len(silo) for silo in super().stepped(copies, steps)]


class ExchangesEveryStep(AveragesEveryStep, RefreshesOthers):
    """Everything is exchanged in every local step: that is Q = 1 with a batch kept."""


class StaleOthers(Reading):
    """The embeddings are those of the round before: the first local step is not fresh."""

    def told(self, batch: np.ndarray, copies: Copies) -> np.ndarray:
        return np.array([self.table.embed(j, block, batch) for j, block in enumerate(self.before)])


class StaleOwn(Reading):
    """Stale own embedding: the derivatives of the loss are those of the exchange in all local steps."""

    remedy = "Remark 2 with derivatives once a round, which is another algorithm"

    def slope(self, j: int, k: int, own: np.ndarray, batch: np.ndarray, told: np.ndarray) -> np.ndarray:
        mine = self.part(j, k, batch)
        return self.table.pulled(j, batch[mine], self.table.slopes(told.sum(0)[mine], batch[mine]))


class LeavesOutOthers(Reading):
    """The others' embeddings are left out: each silo fits the labels alone."""

    def others(self, j: int, told: np.ndarray) -> np.ndarray:
        return 0 * told[j]


class CountsOwnTwice(Reading):
    """The own embedding counts twice: the sum over all silos is taken for that of the others."""

    def others(self, j: int, told: np.ndarray) -> np.ndarray:
        return told.sum(0)


class AveragesEmbeddings(Reading):
    """The others' embeddings are averaged, not summed."""

    def others(self, j: int, told: np.ndarray) -> np.ndarray:
        return (told.sum(0) - told[j]) / max(1, len(told) - 1)


class SumsCopies(Reading):
    """The hub sums the clients' copies: line 32 is a mean."""

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        return np.sum(copies, axis=0)


class SumsUpdates(Reading):
    """Sum, not mean, over clients of what they have moved."""

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        return self.blocks[j] + np.sum([own - self.blocks[j] for own in copies], axis=0)


class FirstClientOnly(Reading):
    """The hub keeps the first client's copy."""

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        return copies[0]


class WeighsByShards(Reading):
    """Clients weigh by how many samples they hold, and not the same."""

    remedy = "if that is meant, as it may well be: table_cases(equal_shards=True)"

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        return np.average(copies, axis=0, weights=[len(ids) for ids in self.rows(j)])


class WeighsByBatches(Reading):
    """Clients weigh by how many samples of the batch they hold, and not the same."""

    remedy = 'if that is meant: leave out "reference twin", "unbiased", "virtual recursion", "one local step"'

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        return np.average(copies, axis=0, weights=[len(self.part(j, k, batch)) for k in range(len(copies))])


class SumsSamples(Reading):
    """A client's gradient is the sum over its samples, not the mean."""

    def slope(self, j: int, k: int, own: np.ndarray, batch: np.ndarray, told: np.ndarray) -> np.ndarray:
        return super().slope(j, k, own, batch, told) * len(self.part(j, k, batch))


class DividesByBatch(Reading):
    """A client divides by the length of the batch, not of its own part."""

    def slope(self, j: int, k: int, own: np.ndarray, batch: np.ndarray, told: np.ndarray) -> np.ndarray:
        return super().slope(j, k, own, batch, told) * len(self.part(j, k, batch)) / len(batch)


class ByPosition(Reading):
    """The batch is dealt to the clients by position, not by sample ID."""

    def part(self, j: int, k: int, batch: np.ndarray) -> np.ndarray:
        lengths = [np.isin(batch, ids).sum() for ids in self.rows(j)]
        return np.split(np.arange(len(batch)), np.cumsum(lengths)[:-1])[k]


class SamePartition(Reading):
    """The rows of silo 0's clients are taken in all silos."""

    def rows(self, j: int) -> tuple[np.ndarray, ...]:
        return self.table.clients[0]


class OwnRowsOthersByPosition(Reading):
    """The others' sum is read by position, not by sample ID."""

    def slope(self, j: int, k: int, own: np.ndarray, batch: np.ndarray, told: np.ndarray) -> np.ndarray:
        mine = self.part(j, k, batch)
        return self.table.gradient(j, own, batch[mine], self.others(j, told)[: len(mine)])


class SilosInTurn(Reading):
    """Silos go one after another, and hear what those before them have become."""

    def round(self, r: int) -> list[np.ndarray]:
        start, now = self.blocks, list(self.blocks)
        for j in range(self.table.silos):
            self.blocks = now
            now = [*now[:j], super().round(r)[j], *now[j + 1 :]]
        self.blocks = start
        return now


class MovesOtherBlocks(Reading):
    """Clients move the blocks of other silos along with their own."""

    def round(self, r: int) -> list[np.ndarray]:
        batch, silos, after = self.draw(self.when(r, 0)), range(self.table.silos), []
        for j in silos:
            copies = []
            for k in range(len(self.rows(j))):
                ids, view = batch[self.part(j, k, batch)], list(self.blocks)
                for _ in range(self.local_steps):
                    total = np.sum([self.table.embed(one, view[one], ids) for one in silos], axis=0)
                    slopes = self.table.slopes(total, ids)
                    view = [view[one] - self.step_size * self.table.pulled(one, ids, slopes) for one in silos]
                copies.append(view[j])
            after.append(self.mean(j, copies, batch))
        return after


def _named(reading: type[Reading]) -> Misreading:
    """By the first line of what it says of itself, with what it makes of a case."""
    words = (inspect.getdoc(reading) or "").split("\n")[0].removesuffix(".")
    return Misreading(words[0].lower() + words[1:], lambda _, case: case.models(reading()), reading.remedy)


READINGS: tuple[type[Reading], ...] = tuple(
    found
    for found in [*vars().values()]
    if isinstance(found, type) and issubclass(found, Reading) and found is not Reading
)
MISREADINGS = tuple(map(_named, READINGS))
