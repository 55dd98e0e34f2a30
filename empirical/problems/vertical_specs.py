"""Problems of silos on data, from the plain names and numbers of a specification file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag, is_number, quote
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import Partition, cut_partition
from fedbounds.empirical.problems.vertical import counts
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks

Remainder = Literal["refuse", "spread", "drop"]


def vertical_networks(
    *,
    dataset: str | Mapping[str, Any] = "breast-cancer",
    data: str | None = None,
    silos: int = 2,
    split: str = "columns",
    widths: Sequence[int] | None = None,
    silo_clients: int | Sequence[int] = 4,
    same_rows: bool = True,
    remainder: str = "refuse",
    shards: Sequence[Sequence[int]] | None = None,
    partition_seed: int = 0,
    network: str | Sequence[str] = "linear",
    loss: str = "cross-entropy",
    batch: int | None = None,
    top_k: int = 5,
    gradient_norm: bool = False,
    device: str = "cpu",
) -> VerticalNetworks:
    """`VerticalNetworks` of a data set by name, its samples split over the clients of each silo by a permutation.

    Args:
        dataset: the name of a data set, or a table with its kind and keys.
        data: the folder of its files, for data sets that are read from files.
        silos: N.
        silo_clients: $K_j$, one number for all silos, or one for each.
        same_rows: whether all silos use the same permutation of the samples, or each its own.
        remainder: if the samples cannot be split evenly: `"refuse"`, `"spread"` one each to the first clients, or
            `"drop"` as few random samples as needed.
        shards: for each silo the number of samples of each client; instead of `silo_clients` and `remainder`.
        partition_seed: of the permutations.
    """
    if not isinstance(dataset, str | Mapping):
        raise FedboundsError(f"dataset = {quote(dataset)} must be a string, or a table such as {{kind = 'glyphs'}}")
    if not isinstance(data, str | None):
        raise FedboundsError(f"data = {quote(data)} must be a string")
    loaded, number = load_dataset(dataset, data), check_count("silos", silos, high=_MOST, why="N")
    rng = np.random.default_rng(check_count("partition_seed", partition_seed, low=0))
    if shards is None:
        each = [silo_clients] * number if is_number(silo_clients) else silo_clients
        clients = counts("silo_clients", each)
        _check_silos("silo_clients", clients, number)
        check_choice("remainder", remainder, get_args(Remainder))
        if remainder == "drop":
            loaded = _drop_samples(loaded, len(loaded.train_labels) % math.lcm(*clients), rng)
        sizes = [_even_shards(silo, len(loaded.train_labels), K, remainder) for silo, K in enumerate(clients)]
    else:
        if isinstance(shards, str) or not isinstance(shards, Sequence):
            raise FedboundsError(f"shards = {quote(shards)} must be a list of lists, one for each silo")
        sizes = [list(counts(f"shards[{silo}]", own)) for silo, own in enumerate(shards)]
        _check_silos("shards", sizes, number)
    return VerticalNetworks(
        loaded,
        _partitions(loaded, sizes, check_flag("same_rows", same_rows), rng),
        network,
        batch,
        split=split,  # type: ignore[arg-type]
        widths=widths,
        loss=loss,
        top_k=top_k,
        gradient_norm=gradient_norm,
        device=device,
    )


_MOST = 10_000  # silos


def _partitions(
    dataset: Dataset, sizes: Sequence[Sequence[int]], same_rows: bool, rng: np.random.Generator
) -> list[Partition]:
    """Of every silo, by one permutation or one each."""
    labels = dataset.train_labels
    order = rng.permutation(len(labels))
    return [cut_partition(labels, own, order if same_rows else rng.permutation(len(labels))) for own in sizes]


def _even_shards(silo: int, samples: int, clients: int, remainder: str) -> list[int]:
    """As equal shards as can be."""
    if clients > samples:
        raise FedboundsError(f"silo_clients[{silo}] = {clients}: there are {samples} training samples")
    smaller, larger = divmod(samples, clients)
    if larger and remainder == "refuse":
        raise FedboundsError(
            f"{samples} training samples cannot be dealt evenly to silo_clients[{silo}] = {clients}: take remainder = "
            f'"spread" ({larger} clients hold {smaller + 1}, the others {smaller}) or "drop" (samples are left out)'
        )
    return [smaller + 1] * larger + [smaller] * (clients - larger)


def _drop_samples(dataset: Dataset, dropped: int, rng: np.random.Generator) -> Dataset:
    """Without so many training samples, drawn at random."""
    if dropped == len(dataset.train_labels):
        raise FedboundsError(f'remainder = "drop" would drop all {dropped} training samples: take fewer clients')
    kept = np.sort(rng.permutation(len(dataset.train_labels))[dropped:])
    images, owners = dataset.train_images[kept], None if dataset.owners is None else dataset.owners[kept]
    return replace(dataset, train_images=images, train_labels=dataset.train_labels[kept], owners=owners)


def _check_silos(name: str, values: Sequence[Any], silos: int) -> None:
    if len(values) != silos:
        raise FedboundsError(f"{name} are of {len(values)} silos, silos = {silos}")
