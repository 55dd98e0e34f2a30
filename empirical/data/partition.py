"""Which client holds which sample: by class, by Dirichlet's law over clients or over classes, evenly, or by owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.empirical.data.own_files import read_assignment
from fedbounds.empirical.runtime.kinds import Registry


@dataclass(frozen=True, eq=False)
class Partition:
    """A split of the training samples among clients; every client holds at least one."""

    assignment: np.ndarray  # the client of each sample, `(samples,)`
    majority: np.ndarray  # the majority class of each client, `(clients,)`

    def __post_init__(self) -> None:
        if self.assignment.min(initial=0) < 0 or self.assignment.max(initial=0) >= self.clients:
            raise FedboundsError(f"a sample is assigned to a client outside 0..{self.clients - 1}")
        empty = np.flatnonzero(self.sizes == 0)
        if len(empty):
            raise FedboundsError(
                f"client {empty[0]} holds no sample ({len(empty)} of {self.clients} clients, "
                f"{len(self.assignment)} samples); use fewer clients"
            )

    @property
    def clients(self) -> int:
        """The number of clients."""
        return len(self.majority)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Samples per client, `(clients,)`."""
        return np.bincount(self.assignment, minlength=self.clients)

    @cached_property
    def samples(self) -> tuple[np.ndarray, ...]:
        """The samples of each client, ascending."""
        order = np.argsort(self.assignment, kind="stable")
        return tuple(np.split(order, np.cumsum(self.sizes)[:-1]))

    def groups(self, classes_per_group: int = 2) -> np.ndarray:
        """The group of each client, `(clients,)`: consecutive majority classes form a group.

        With two classes per group and ten classes these are the five groups of periodic availability in Wang & Ji
        2022, experiments.
        """
        return self.majority // classes_per_group


def majority_class_partition(
    labels: np.ndarray, clients: int, rng: np.random.Generator, similarity: float = 0.05
) -> Partition:
    """Each client holds mostly one class, plus a fraction `similarity` of samples from anywhere.

    Client n has the class floor(n classes / clients). Samples are assigned in their order: with probability
    `similarity` to a client drawn uniformly from all, otherwise to the client of the sample's class that holds the
    fewest samples so far (the first of these).

    Args:
        similarity: between 0 (one class per client) and 1 (no structure).

    Source: the experiments of Wang & Ji 2022 describe the result (one majority class and 5 % of other labels) but
    no rule; the rule is that of the authors' public code, the order of clients is ours.
    """
    _check_range("similarity", similarity, 0 <= similarity <= 1, "between 0 and 1")
    classes = int(labels.max()) + 1
    if clients < classes:
        raise FedboundsError(f"clients = {clients} must be at least the number of classes, {classes}")
    if clients > len(labels):
        raise FedboundsError(f"clients = {clients} must be at most the number of samples, {len(labels)}")
    majority = np.arange(clients) * classes // clients
    anywhere = rng.random(len(labels)) < similarity
    assignment = rng.integers(0, clients, len(labels))
    first = np.searchsorted(majority, np.arange(classes + 1))
    held = np.zeros(clients, dtype=np.int64)
    for sample in range(len(labels)):
        if not anywhere[sample]:
            low, high = first[labels[sample]], first[labels[sample] + 1]
            assignment[sample] = low + held[low:high].argmin()
        held[assignment[sample]] += 1
    return Partition(assignment, majority)


def dirichlet_partition(labels: np.ndarray, clients: int, rng: np.random.Generator, alpha: float = 0.5) -> Partition:
    r"""Each class is split over the clients in proportions drawn from $\mathrm{Dir}(\alpha, \dots, \alpha)$.

    A client left without samples is then given one of the largest client's, so that no client is empty. The majority
    class of a client is the class it holds most of (the first of these).

    Args:
        alpha: > 0; small values give each client few classes.

    Source: Sharma et al. 2023, Section 6, after Wang et al. 2019; the rule for empty clients is ours.
    """
    _check_range("alpha", alpha, 1e-3 <= alpha < float("inf"), "at least 0.001 and finite")
    _check_clients(clients, len(labels))
    assignment = np.empty(len(labels), dtype=np.int64)
    classes = int(labels.max()) + 1
    for label in range(classes):
        samples = rng.permutation(np.flatnonzero(labels == label))
        ends = np.cumsum(rng.dirichlet(np.full(clients, alpha)))
        assignment[samples] = np.searchsorted(ends[:-1], (np.arange(len(samples)) + 0.5) / max(len(samples), 1))
    held = np.bincount(assignment, minlength=clients)
    for empty in np.flatnonzero(held == 0):
        giver = int(held.argmax())
        assignment[rng.choice(np.flatnonzero(assignment == giver))] = empty
        held[giver] -= 1
        held[empty] += 1
    return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))


def class_mix_partition(
    labels: np.ndarray, clients: int, rng: np.random.Generator, alpha: float = 0.1, proportional: bool = False
) -> Partition:
    r"""Each client draws its own mix of classes $\kappa_n\sim\mathrm{Dir}(\alpha,\dots,\alpha)$; all hold equally many.

    Client after client, cyclically, draws a class from its mix, restricted to classes that have samples left, and gets
    one of its samples; sizes differ by at most one. With `proportional`, as in the authors' public code, class c is cut
    in the order of its samples in proportion to $\kappa_1(c),\dots,\kappa_N(c)$; sizes then differ.

    Args:
        alpha: > 0; small values give each client few classes.
        proportional: whether classes are cut as in the authors' public code.

    Source: Wang & Ji 2024, Appendix C.6 (the mixes; it does not specify how samples are assigned, the cyclic rule is
    ours).
    """
    _check_range("alpha", alpha, 1e-3 <= alpha < float("inf"), "at least 0.001 and finite")
    _check_clients(clients, len(labels))
    classes = int(labels.max()) + 1
    mixes = rng.dirichlet(np.full(classes, alpha), clients)
    if proportional:
        assignment = np.empty(len(labels), dtype=np.int64)
        for label, ends in enumerate((mixes.cumsum(axis=0) / mixes.sum(axis=0)).T):
            samples = np.flatnonzero(labels == label)
            assignment[samples] = np.searchsorted(np.round(len(samples) * ends), np.arange(len(samples)), side="right")
        return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))
    decks = [rng.permutation(np.flatnonzero(labels == label)).tolist() for label in range(classes)]
    open_mixes = mixes.cumsum(axis=1)
    assignment = np.empty(len(labels), dtype=np.int64)
    for turn, u in enumerate(rng.random(len(labels))):
        client = turn % clients
        ends = open_mixes[client]
        if ends[-1] <= 0:  # nothing left of all its classes: any class that is left, by how much is left of it
            ends = np.cumsum([len(deck) for deck in decks])
        label = int(np.searchsorted(ends, u * ends[-1], side="right"))
        assignment[decks[label].pop()] = client
        if not decks[label]:
            mixes[:, label] = 0
            open_mixes = mixes.cumsum(axis=1)
    return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))


def even_partition(labels: np.ndarray, clients: int, rng: np.random.Generator) -> Partition:
    """Each client holds equally many samples, drawn from all: sizes differ by at most one.

    Source: Li et al. 2024, Section 5.1, "IID".
    """
    _check_clients(clients, len(labels))
    assignment = np.empty(len(labels), dtype=np.int64)
    assignment[rng.permutation(len(labels))] = np.arange(len(labels)) % clients
    return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))


def cut_partition(labels: np.ndarray, sizes: Sequence[int], order: np.ndarray) -> Partition:
    """Client after client holds the next so many samples of an order.

    Args:
        sizes: how many samples each client holds, in all as many as there are.
        order: of the samples, a permutation.

    Example:
        >>> cut_partition(np.zeros(4, dtype=int), [1, 3], np.array([2, 0, 1, 3])).assignment.tolist()
        [1, 1, 0, 1]

    Source: Das et al. 2022, Section 5: a random permutation, client k gets a contiguous block.
    """
    if sum(sizes) != len(labels):
        raise FedboundsError(f"shards = {list(sizes)} have {sum(sizes)} samples in all, there are {len(labels)}")
    assignment = np.empty(len(labels), dtype=np.int64)
    assignment[order] = np.repeat(np.arange(len(sizes)), sizes)
    return Partition(assignment, class_counts(assignment, labels, len(sizes)).argmax(1))


def owner_partition(labels: np.ndarray, clients: int, owners: np.ndarray | None) -> Partition:
    """Each client holds the samples of its owners: client n those of n, n + clients, and so on.

    Args:
        owners: of each sample, `(samples,)`, from 0; None if the data do not say it.

    Example:
        >>> owner_partition(np.zeros(6, dtype=int), 2, np.array([0, 1, 2, 0, 1, 2])).assignment
        array([0, 1, 0, 0, 1, 0])
    """
    if owners is None:
        raise FedboundsError("partition 'owners': this data set does not say whose its samples are")
    check_count("clients", clients, high=int(owners.max()) + 1, why="each has an owner's samples at least")
    assignment = owners % clients
    return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))


def file_partition(labels: np.ndarray, file: str) -> Partition:
    """Each client holds the samples that a file gives it, see `own_files.read_assignment`."""
    assignment = read_assignment(file, len(labels))
    clients = int(assignment.max()) + 1
    return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))


def label_partition(
    labels: np.ndarray,
    clients: int,
    rng: np.random.Generator,
    labels_per_client: int = 3,
    cyclic: bool = False,
) -> Partition:
    """Each client holds samples of few classes: those of a class are split evenly over the clients that hold it.

    The classes of a client are drawn uniformly without replacement; a class that no client has drawn goes to the client
    with the fewest samples. With `cyclic`, as in the authors' public code, a client gets the classes that the clients
    before it hold least often, of equal ones the first.

    Args:
        labels_per_client: classes of a client, from 1 to all.
        cyclic: whether classes are assigned cyclically, not drawn.

    Source: Li et al. 2024, Section 5.1, "Non-IID-2": 3 labels of 10, 20 of 100, "randomly"; it does not
    specify how samples are split.
    """
    _check_clients(clients, len(labels))
    classes = int(labels.max()) + 1
    each = check_count("labels_per_client", labels_per_client, high=classes, why=f"there are {classes} classes")
    held, owners = np.zeros(classes, dtype=np.int64), [[] for _ in range(classes)]
    for client in range(clients):
        own = np.argsort(held, kind="stable")[:each] if cyclic else rng.choice(classes, each, replace=False)
        held[own] += 1
        for label in own.tolist():
            owners[label].append(client)
    assignment, sizes = np.empty(len(labels), dtype=np.int64), np.zeros(clients, dtype=np.int64)
    for label in np.argsort(held == 0, kind="stable").tolist():
        samples = rng.permutation(np.flatnonzero(labels == label))
        those = np.array(owners[label] or [int(sizes.argmin())])
        assignment[samples] = those[np.arange(len(samples)) % len(those)]
        sizes += np.bincount(assignment[samples], minlength=clients)
    return Partition(assignment, class_counts(assignment, labels, clients).argmax(1))


def cyclic_label_partition(
    labels: np.ndarray, clients: int, rng: np.random.Generator, labels_per_client: int = 3
) -> Partition:
    """`label_partition` with `cyclic`: the classes of a client are not drawn.

    Args:
        labels_per_client: classes of a client, from 1 to all.
    """
    return label_partition(labels, clients, rng, labels_per_client, cyclic=True)


PARTITIONS = Registry("partition", context=("labels", "clients", "rng", "owners", "proportional", "cyclic"), kinds={
    "majority-class": majority_class_partition,
    "dirichlet": dirichlet_partition,
    "class-mix": class_mix_partition,
    "even": even_partition,
    "owners": owner_partition,
    "labels": label_partition,
    "cyclic-labels": cyclic_label_partition,
})  # fmt: skip


def class_counts(assignment: np.ndarray, labels: np.ndarray, clients: int) -> np.ndarray:
    """How many samples of each class each client holds, `(clients, classes)`."""
    counts = np.zeros((clients, int(labels.max()) + 1), dtype=np.int64)
    np.add.at(counts, (assignment, labels), 1)
    return counts


def _check_clients(clients: int, samples: int) -> None:
    if not 1 <= clients <= samples:
        raise FedboundsError(f"clients = {clients} must be between 1 and the number of samples, {samples}")


def _check_range(name: str, value: float, legal: bool, text: str) -> None:
    if not legal:
        raise FedboundsError(f"{name} = {value!r} must be {text}")
