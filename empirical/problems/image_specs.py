"""Image problems from the plain names and numbers of a specification file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import PARTITIONS, Partition
from fedbounds.empirical.problems.border import real
from fedbounds.empirical.problems.fair_images import FairImages
from fedbounds.empirical.problems.images import ImageClassification
from fedbounds.empirical.problems.minimax_images import RobustImages


def image_classification(
    *,
    dataset: str | Mapping[str, Any] = "digits",
    data: str | None = None,
    clients: int = 50,
    network: str = "cnn",
    partition: str = "majority-class",
    similarity: float = 0.05,
    alpha: float = 0.5,
    labels_per_client: int = 3,
    partition_seed: int = 0,
    batch: int = 16,
    augmentation: Sequence[str] = (),
    gradient_norm: bool = False,
    device: str = "cpu",
) -> ImageClassification:
    """`ImageClassification` of a data set by name, split over clients by a rule by name."""
    split = load_split(dataset, data, clients, network, partition, similarity, alpha, labels_per_client, partition_seed)
    return ImageClassification(
        *split, network, batch, augmentation=augmentation, gradient_norm=gradient_norm, device=device
    )


def robust_images(
    *,
    dataset: str | Mapping[str, Any] = "digits",
    data: str | None = None,
    clients: int = 15,
    network: str = "cnn-small",
    partition: str = "dirichlet",
    similarity: float = 0.05,
    alpha: float = 0.1,
    labels_per_client: int = 3,
    partition_seed: int = 0,
    batch: int = 32,
    radius: float = 1.0,
    attack_steps: int = 10,
    weight_decay: float = 0.0,
    device: str = "cpu",
) -> RobustImages:
    """`RobustImages` of a data set by name, split over clients by a rule by name."""
    split = load_split(dataset, data, clients, network, partition, similarity, alpha, labels_per_client, partition_seed)
    more = {"attack_steps": attack_steps, "weight_decay": weight_decay}
    return RobustImages(*split, network, batch, radius=radius, **more, device=device)


def fair_images(
    *,
    dataset: str | Mapping[str, Any] = "digits",
    data: str | None = None,
    clients: int = 15,
    network: str = "cnn-small",
    partition: str = "dirichlet",
    similarity: float = 0.05,
    alpha: float = 0.1,
    labels_per_client: int = 3,
    partition_seed: int = 0,
    batch: int = 32,
    regularization: float = 0.1,
    gradient_norm: bool = False,
    weight_decay: float = 0.0,
    device: str = "cpu",
) -> FairImages:
    """`FairImages` of a data set by name, split over clients by a rule by name."""
    split = load_split(dataset, data, clients, network, partition, similarity, alpha, labels_per_client, partition_seed)
    more = {"regularization": regularization, "gradient_norm": gradient_norm, "weight_decay": weight_decay}
    return FairImages(*split, network, batch, **more, device=device)


def load_split(
    dataset: str | Mapping[str, Any],
    data: str | None,
    clients: int,
    network: str,
    partition: str,
    similarity: float,
    alpha: float,
    labels_per_client: int,
    partition_seed: int,
) -> tuple[Dataset, Partition]:
    """A data set and its split over clients, by their names.

    Args:
        dataset: the name of a data set, or a table with its kind and keys.
        data: the folder of its files, for data sets that are read from files.
        clients: N.
        network: the name of the network; checked to be a text.
        partition: the rule of the split.
        similarity: of the partition majority-class, in [0, 1].
        alpha: of the partitions dirichlet and class-mix, at least 0.001.
        labels_per_client: of the partitions labels and labels-in-turn.
        partition_seed: of the split.
    """
    if not isinstance(dataset, str | Mapping):
        raise FedboundsError(f"dataset = {quote(dataset)} must be a string, or a table such as {{kind = 'glyphs'}}")
    names = {"network": network, "partition": partition, "data": "" if data is None else data}
    for name, value in names.items():
        if not isinstance(value, str):
            raise FedboundsError(f"{name} = {quote(value)} must be a string")
    similarity, alpha = real("similarity", similarity), real("alpha", alpha)
    loaded = load_dataset(dataset, data)
    rule = PARTITIONS.builder({"kind": partition})
    possible = {
        "labels": loaded.train_labels,
        "clients": check_count("clients", clients),
        "rng": np.random.default_rng(check_count("partition_seed", partition_seed, low=0)),
        "owners": loaded.owners,
        "similarity": similarity,
        "alpha": alpha,
        "labels_per_client": labels_per_client,
    }
    return loaded, rule(**{key: possible[key] for key in inspect.signature(rule).parameters if key in possible})
