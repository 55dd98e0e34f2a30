"""Misreadings of Algorithm 1: every choice in it is a method of `Reading`, and a misreading replaces some of them."""

from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np

from fedbounds.empirical.invariants.causes import Misreading
from fedbounds.empirical.papers.tdcd.tables import SplitTable, TableCase

Draw = Callable[[int], np.ndarray]
Copies: TypeAlias = list[list[np.ndarray]]


class Reading:
    """Algorithm 1, corrected, all clients in step with each other."""

    table: SplitTable  # table, draw, local_steps, step_size: see `fedbounds.empirical.papers.tdcd.tables`
    draw: Draw
    local_steps: int
    step_size: float
    blocks: list[np.ndarray]  # at the start of the round
    before: list[np.ndarray]  # at the start of the round before

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
    def start(cls, case: TableCase, model: np.ndarray) -> Self:
        """The start of a round of a case, at a model."""
        made = cls()
        made.table, made.step_size = case.table, case.step_size
        made.blocks = made.before = [model[block] for block in case.table.blocks]
        return made

    def round(self, r: int) -> list[np.ndarray]:
        """The blocks after a round."""
        batch, copies = np.empty(0, int), self.copies()
        for q in range(self.steps()):
            batch = self.draw(self.iteration(r, q))
            copies = self.step_copies(copies, self.slopes(copies, batch))
        return [self.mean(j, silo, batch) for j, silo in enumerate(copies)]

    def copies(self) -> Copies:
        """The copies at the start of a round."""
        return [[block] * len(self.rows(j)) for j, block in enumerate(self.blocks)]

    def slopes(self, copies: Copies, batch: np.ndarray) -> Copies:
        """Eq. (4), of all clients."""
        embedded = self.embeddings(batch, copies)
        return [[self.slope(j, k, own, batch, embedded) for k, own in enumerate(silo)] for j, silo in enumerate(copies)]

    def steps(self) -> int:
        """The number of local steps that count."""
        return self.local_steps

    def iteration(self, r: int, q: int) -> int:
        """The iteration whose batch local step q of round r uses."""
        return r * self.local_steps

    def rows(self, j: int) -> tuple[np.ndarray, ...]:
        """The sample IDs of the clients of a silo."""
        return self.table.clients[j]

    def embeddings(self, batch: np.ndarray, copies: Copies) -> np.ndarray:
        """The embeddings of the batch of all silos, (N, B)."""
        return np.array([self.table.embed(j, block, batch) for j, block in enumerate(self.blocks)])

    def part(self, j: int, k: int, batch: np.ndarray) -> np.ndarray:
        """The positions of a client's samples in the batch."""
        return np.flatnonzero(np.isin(batch, self.rows(j)[k]))

    def others(self, j: int, embedded: np.ndarray) -> np.ndarray:
        r"""$\Phi_{-j}$, (B,)."""
        return embedded.sum(0) - embedded[j]

    def slope(self, j: int, k: int, own: np.ndarray, batch: np.ndarray, embedded: np.ndarray) -> np.ndarray:
        """Eq. (4)."""
        mine = self.part(j, k, batch)
        return self.table.gradient(j, own, batch[mine], self.others(j, embedded)[mine])

    def step_copies(self, copies: Copies, steps: Copies) -> Copies:
        """Eq. (5), of all clients."""
        return [
            [own - self.step_size * slope for own, slope in zip(*both, strict=True)]
            for both in zip(copies, steps, strict=True)
        ]

    def mean(self, j: int, copies: list[np.ndarray], batch: np.ndarray) -> np.ndarray:
        """Line 32."""
        return np.mean(copies, axis=0)


def _refreshed(self: Reading, batch: np.ndarray, copies: Copies) -> np.ndarray:
    """Every client's current copy embeds its samples for all others."""
    found = Reading.embeddings(self, batch, copies)
    for j, silo in enumerate(copies):
        for k, own in enumerate(silo):
            mine = self.part(j, k, batch)
            found[j, mine] = self.table.embed(j, own, batch[mine])
    return found


def _averaged(self: Reading, copies: Copies, steps: Copies) -> Copies:
    return [[np.mean(silo, axis=0)] * len(silo) for silo in Reading.step_copies(self, copies, steps)]


def _stale_own(
    self: Reading, j: int, k: int, own: np.ndarray, batch: np.ndarray, embedded: np.ndarray
) -> np.ndarray:  # fmt: skip
    mine = self.part(j, k, batch)
    return self.table.pulled(j, batch[mine], self.table.slopes(embedded.sum(0)[mine], batch[mine]))


def _part_by_position(self: Reading, j: int, k: int, batch: np.ndarray) -> np.ndarray:
    """Pieces of the batch, each as long as a client's part of it."""
    lengths = [np.isin(batch, ids).sum() for ids in self.rows(j)]
    return np.split(np.arange(len(batch)), np.cumsum(lengths)[:-1])[k]


def _others_by_position(
    self: Reading, j: int, k: int, own: np.ndarray, batch: np.ndarray, embedded: np.ndarray
) -> np.ndarray:  # fmt: skip
    mine = self.part(j, k, batch)
    return self.table.gradient(j, own, batch[mine], self.others(j, embedded)[: len(mine)])


def _sequential_round(self: Reading, r: int) -> list[np.ndarray]:
    start, now = self.blocks, list(self.blocks)
    for j in range(self.table.silos):
        self.blocks = now
        now = [*now[:j], Reading.round(self, r)[j], *now[j + 1 :]]
    self.blocks = start
    return now


def _round_of_whole_views(self: Reading, r: int) -> list[np.ndarray]:
    """A client takes gradients in the whole model, and moves all of its view."""
    batch, silos, after = self.draw(self.iteration(r, 0)), range(self.table.silos), []
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


def _misreading(words: str, remedy: str = "", **methods: Callable[..., Any]) -> Misreading:
    """`Reading` with other methods."""
    reading = type("Misread", (Reading,), methods)
    return Misreading(words, lambda _, case: case.models(reading()), remedy)


MISREADINGS = (
    _misreading("line 32 as printed: the last local step is lost", steps=lambda self: self.local_steps - 1),
    _misreading(
        "it does one local step, however many there are",
        "if it has no local steps: table_cases(local_steps=(1,))",
        steps=lambda self: 1,
    ),
    _misreading(
        "the batch is redrawn in every local step: a round has one",
        iteration=lambda self, r, q: r * self.local_steps + q,
    ),
    _misreading(
        "it draws by the number of the round: batches are those of iterations 0, Q, 2Q and so on",
        iteration=lambda self, r, q: r,
    ),
    _misreading("the others' embeddings are refreshed in every local step", embeddings=_refreshed),
    _misreading("the copies are averaged in every local step, not once a round", step_copies=_averaged),
    _misreading(
        "everything is exchanged in every local step: that is Q = 1 with a batch kept",
        embeddings=_refreshed,
        step_copies=_averaged,
    ),
    _misreading(
        "the embeddings are those of the round before: the first local step is not fresh",
        embeddings=lambda self, batch, copies: np.array(
            [self.table.embed(j, block, batch) for j, block in enumerate(self.before)]
        ),
    ),
    _misreading(
        "stale own embedding: the derivatives of the loss are those of the exchange in all local steps",
        "Remark 2 with derivatives once a round, which is another algorithm",
        slope=_stale_own,
    ),
    _misreading(
        "the others' embeddings are left out: each silo fits the labels alone",
        others=lambda self, j, embedded: 0 * embedded[j],
    ),
    _misreading(
        "the own embedding counts twice: the sum over all silos is taken for that of the others",
        others=lambda self, j, embedded: embedded.sum(0),
    ),
    _misreading(
        "the others' embeddings are averaged, not summed",
        others=lambda self, j, embedded: (embedded.sum(0) - embedded[j]) / max(1, len(embedded) - 1),
    ),
    _misreading(
        "the hub sums the clients' copies: line 32 is a mean",
        mean=lambda self, j, copies, batch: np.sum(copies, axis=0),
    ),
    _misreading(
        "sum, not mean, over clients of what they have moved",
        mean=lambda self, j, copies, batch: self.blocks[j] + np.sum([own - self.blocks[j] for own in copies], axis=0),
    ),
    _misreading("the hub keeps the first client's copy", mean=lambda self, j, copies, batch: copies[0]),
    _misreading(
        "clients weigh by how many samples they hold, and not the same",
        "if that is meant, as it may well be: table_cases(equal_shards=True)",
        mean=lambda self, j, copies, batch: np.average(copies, axis=0, weights=[len(ids) for ids in self.rows(j)]),
    ),
    _misreading(
        "clients weigh by how many samples of the batch they hold, and not the same",
        'if that is meant: leave out "reference twin", "unbiased", "virtual recursion", "one local step"',
        mean=lambda self, j, copies, batch: np.average(
            copies, axis=0, weights=[len(self.part(j, k, batch)) for k in range(len(copies))]
        ),
    ),
    _misreading(
        "a client's gradient is the sum over its samples, not the mean",
        slope=lambda self, j, k, own, batch, embedded: (
            Reading.slope(self, j, k, own, batch, embedded) * len(self.part(j, k, batch))
        ),
    ),
    _misreading(
        "a client divides by the length of the batch, not of its own part",
        slope=lambda self, j, k, own, batch, embedded: (
            Reading.slope(self, j, k, own, batch, embedded) * len(self.part(j, k, batch)) / len(batch)
        ),
    ),
    _misreading("the batch is dealt to the clients by position, not by sample ID", part=_part_by_position),
    _misreading("the rows of silo 0's clients are taken in all silos", rows=lambda self, j: self.table.clients[0]),
    _misreading("the others' sum is read by position, not by sample ID", slope=_others_by_position),
    _misreading("silos update one after another, with fresh embeddings", round=_sequential_round),
    _misreading("clients move the blocks of other silos along with their own", round=_round_of_whole_views),
)
