"""Image problems from the plain names and numbers of a specification file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bounds.checks import check_count, quote
from bounds.errors import FedboundsError, unknown_name
from empirical.datasets import load_dataset
from empirical.partition import Partition, class_mix_partition, dirichlet_partition, majority_class_partition
from empirical.problems.border import real
from empirical.problems.images import ImageClassification


def image_classification(
    *,
    dataset: str = "digits",
    data: str | None = None,
    clients: int = 50,
    network: str = "cnn",
    partition: str = "majority-class",
    similarity: float = 0.05,
    alpha: float = 0.5,
    partition_seed: int = 0,
    batch: int = 16,
    augmentation: Sequence[str] = (),
    gradient_norm: bool = False,
) -> ImageClassification:
    """`ImageClassification` of a data set by name, split over clients by a rule by name."""
    names = {"dataset": dataset, "network": network, "partition": partition, "data": "" if data is None else data}
    for name, value in names.items():
        if not isinstance(value, str):
            raise FedboundsError(f"{name} = {quote(value)} must be a string")
    similarity, alpha = real("similarity", similarity), real("alpha", alpha)
    loaded = load_dataset(dataset, data)
    rng = np.random.default_rng(check_count("partition_seed", partition_seed, low=0))
    number = check_count("clients", clients)
    split: Partition
    if partition == "majority-class":
        split = majority_class_partition(loaded.train_labels, number, rng, similarity)
    elif partition == "dirichlet":
        split = dirichlet_partition(loaded.train_labels, number, rng, alpha)
    elif partition == "class-mix":
        split = class_mix_partition(loaded.train_labels, number, rng, alpha)
    else:
        raise unknown_name("partition", partition, ["majority-class", "dirichlet", "class-mix"])
    return ImageClassification(loaded, split, network, batch, augmentation=augmentation, gradient_norm=gradient_norm)
