"""Image problems from the plain names and numbers of a specification file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count, quote
from fedbounds.empirical.data.datasets import Dataset, load_dataset
from fedbounds.empirical.data.partition import (
    Partition,
    class_mix_partition,
    dirichlet_partition,
    even_partition,
    label_partition,
    majority_class_partition,
    owner_partition,
)
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
    split = _split(dataset, data, clients, network, partition, similarity, alpha, labels_per_client, partition_seed)
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
    split = _split(dataset, data, clients, network, partition, similarity, alpha, labels_per_client, partition_seed)
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
    split = _split(dataset, data, clients, network, partition, similarity, alpha, labels_per_client, partition_seed)
    more = {"regularization": regularization, "gradient_norm": gradient_norm, "weight_decay": weight_decay}
    return FairImages(*split, network, batch, **more, device=device)


def _split(
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
    """A data set and its split; the network's name is only checked to be one."""
    if not isinstance(dataset, str | Mapping):
        raise FedboundsError(f"dataset = {quote(dataset)} must be a string, or a table such as {{kind = 'glyphs'}}")
    names = {"network": network, "partition": partition, "data": "" if data is None else data}
    for name, value in names.items():
        if not isinstance(value, str):
            raise FedboundsError(f"{name} = {quote(value)} must be a string")
    similarity, alpha = real("similarity", similarity), real("alpha", alpha)
    loaded = load_dataset(dataset, data)
    rng = np.random.default_rng(check_count("partition_seed", partition_seed, low=0))
    number = check_count("clients", clients)
    rules: dict[str, Callable[[np.ndarray], Partition]] = {
        "majority-class": lambda labels: majority_class_partition(labels, number, rng, similarity),
        "dirichlet": lambda labels: dirichlet_partition(labels, number, rng, alpha),
        "class-mix": lambda labels: class_mix_partition(labels, number, rng, alpha),
        "even": lambda labels: even_partition(labels, number, rng),
        "owners": lambda labels: owner_partition(labels, number, loaded.owners),
        "labels": lambda labels: label_partition(labels, number, rng, labels_per_client),
        "labels-in-turn": lambda labels: label_partition(labels, number, rng, labels_per_client, in_turn=True),
    }
    if partition not in rules:
        raise unknown_name("partition", partition, rules)
    return loaded, rules[partition](loaded.train_labels)
