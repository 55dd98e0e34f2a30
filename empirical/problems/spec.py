"""Problems from the plain dictionaries of a specification file."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag, is_number, quote
from fedbounds.bounds.inputs.user_files import read_bytes
from fedbounds.empirical.data.datasets import Dataset, checksum, load_dataset, samples_file
from fedbounds.empirical.data.own_files import LARGEST, is_partition_file
from fedbounds.empirical.data.partition import PARTITIONS, Partition, cut_partition, file_partition
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.block_quadratics import (
    BlockQuadratic,
    check_block_quadratic_memory,
    random_block_quadratic,
)
from fedbounds.empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from fedbounds.empirical.problems.displaced import Displaced, random_displaced
from fedbounds.empirical.problems.fair_images import FairImages
from fedbounds.empirical.problems.images import ImageClassification
from fedbounds.empirical.problems.minimax_bounded import BoundedMinimax, OnePointMinimax
from fedbounds.empirical.problems.minimax_images import RobustImages
from fedbounds.empirical.problems.minimax_quadratic import (
    QuadraticMinimax,
    ScaledMinimax,
    check_minimax_memory,
    random_quadratic_minimax,
)
from fedbounds.empirical.problems.model_on_data import ModelOnData
from fedbounds.empirical.problems.networks import Network
from fedbounds.empirical.problems.nonconvex import CosineQuadratic, random_cosine_quadratic
from fedbounds.empirical.problems.own_network import (
    RegisteredNetwork,
    check_outputs,
    is_factory,
    make_module,
    source_checksum,
)
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.problems.quadratics import Quadratic, check_quadratic_memory, random_quadratic, toy_example
from fedbounds.empirical.problems.rippled_blocks import RippledBlocks, random_rippled_blocks
from fedbounds.empirical.problems.scaled import ScaledObjectives
from fedbounds.empirical.problems.sloped import check_slopes_memory
from fedbounds.empirical.problems.vertical import check_counts
from fedbounds.empirical.problems.vertical_least_squares import VerticalLeastSquares, random_vertical_least_squares
from fedbounds.empirical.problems.vertical_networks import VerticalNetworks
from fedbounds.empirical.runtime.kinds import Registry

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
    weight_decay: float = 0.0,
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
    loaded, number = _load(dataset, data), check_count("silos", silos, high=_MOST, why="N")
    rng = np.random.default_rng(check_count("partition_seed", partition_seed, low=0))
    if shards is None:
        each = [silo_clients] * number if is_number(silo_clients) else silo_clients
        clients = check_counts("silo_clients", each)
        _check_silos("silo_clients", clients, number)
        check_choice("remainder", remainder, get_args(Remainder))
        if remainder == "drop":
            loaded = _drop_samples(loaded, len(loaded.train_labels) % math.lcm(*clients), rng)
        sizes = [_even_shards(silo, len(loaded.train_labels), K, remainder) for silo, K in enumerate(clients)]
    else:
        if isinstance(shards, str) or not isinstance(shards, Sequence):
            raise FedboundsError(f"shards = {quote(shards)} must be a list of lists, one for each silo")
        sizes = [list(check_counts(f"shards[{silo}]", own)) for silo, own in enumerate(shards)]
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
        weight_decay=weight_decay,
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


def image_classification(
    *,
    dataset: str | Mapping[str, Any] = "digits",
    data: str | None = None,
    clients: int | None = None,
    network: str = "cnn",
    partition: str = "majority-class",
    similarity: float = 0.05,
    alpha: float = 0.5,
    labels_per_client: int = 3,
    partition_seed: int = 0,
    batch: int = 16,
    augmentation: Sequence[str] = (),
    gradient_norm: bool = False,
    client_weights: str | Sequence[float] | None = None,
    weight_decay: float = 0.0,
    device: str = "cpu",
) -> ImageClassification:
    """`ImageClassification` of a data set by name, split over clients by a rule by name."""
    rule = partition, similarity, alpha, labels_per_client, partition_seed
    split = load_split(dataset, data, clients, network, *rule, 50)
    return ImageClassification(
        *split,
        network,
        batch,
        augmentation=augmentation,
        gradient_norm=gradient_norm,
        client_weights=client_weights,
        weight_decay=weight_decay,
        device=device,
    )


def robust_images(
    *,
    dataset: str | Mapping[str, Any] = "digits",
    data: str | None = None,
    clients: int | None = None,
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
    split = load_split(
        dataset,
        data,
        clients,
        network,
        partition,
        similarity,
        alpha,
        labels_per_client,
        partition_seed,
        15,
        tested=True,
    )
    more = {"attack_steps": attack_steps, "weight_decay": weight_decay}
    return RobustImages(*split, network, batch, radius=radius, **more, device=device)


def fair_images(
    *,
    dataset: str | Mapping[str, Any] = "digits",
    data: str | None = None,
    clients: int | None = None,
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
    split = load_split(
        dataset,
        data,
        clients,
        network,
        partition,
        similarity,
        alpha,
        labels_per_client,
        partition_seed,
        15,
        tested=True,
    )
    more = {"regularization": regularization, "gradient_norm": gradient_norm, "weight_decay": weight_decay}
    return FairImages(*split, network, batch, **more, device=device)


def scaled_objectives(*, problem: Mapping[str, Any], device: str = "cpu") -> ScaledObjectives:
    """The weighted objective of another problem as a mean over clients, $F_n'=Np_nF_n$: clients step by its gradients.

    Args:
        problem: the table of the problem, with its kind and `client_weights`.
    """
    return ScaledObjectives(problem_from_spec(problem, device=device))


def model_on_data(
    *,
    dataset: str | Mapping[str, Any],
    data: str | None = None,
    clients: int | None = None,
    network: str = "mlp",
    loss: Literal["cross-entropy", "squared"] = "cross-entropy",
    partition: str = "even",
    similarity: float = 0.05,
    alpha: float = 0.5,
    labels_per_client: int = 3,
    partition_seed: int = 0,
    start_seed: int = 0,
    batch: int = 16,
    client_weights: str | Sequence[float] | None = None,
    device: str = "cpu",
) -> ModelOnData:
    r"""`ModelOnData`: a network, also of your own code, on a data set; classification or regression.

    Args:
        network: a name, or `package.module:factory` or `./file.py:factory`; the factory takes no arguments and
            returns a torch module of rows (samples, columns) or images (samples, channels, height, width).
        loss: `"cross-entropy"` of classes, or `"squared"`, $\frac12\|h(a)-b\|^2$.
        start_seed: of the network's first parameters, which all seeds share.
    """
    check_choice("loss", loss, ("cross-entropy", "squared"))
    rule = partition, similarity, alpha, labels_per_client, partition_seed
    loaded, parts = load_split(dataset, data, clients, network, *rule, 50, regression=loss == "squared")
    squared, seed = loss == "squared", check_count("start_seed", start_seed, low=0, high=2**32 - 1)
    targets, tested = loaded.train_labels, loaded.test_labels
    if squared:
        targets, tested = ((part if part.ndim == 2 else part[:, None]).astype(np.float32) for part in (targets, tested))
    outputs = targets.shape[1] if squared else loaded.classes
    module = make_module(network, seed) if is_factory(network) else None
    module = RegisteredNetwork(Network(network, loaded.image, outputs), seed) if module is None else module
    features = [torch.from_numpy(part) for part in loaded.standardised()]
    if is_factory(network) and loaded.image[:2] == (1, 1):
        features = [part.flatten(1) for part in features]
    train, test = (
        (inputs.to(device), torch.from_numpy(truth).to(device))
        for inputs, truth in zip(features, (targets, tested), strict=True)
    )
    check_outputs(module.to(device), network, train[0][:2], outputs, exact=squared)
    problem = ModelOnData.from_module(
        module,
        (lambda out, truth: (out.reshape(truth.shape) - truth).square().sum(1) / 2)
        if squared
        else torch.nn.CrossEntropyLoss(reduction="none"),
        [tuple(part[torch.from_numpy(own)] for part in train) for own in parts.samples],  # type: ignore[misc]
        batch,
        lowest=0.0,
        client_weights=client_weights,
        test=test if len(tested) else None,
    )
    problem.data_checksum = checksum(loaded)
    return problem


def file_checksums(table: Mapping[str, Any]) -> dict[str, str]:
    """Checksums of the files that a problem's keys name, by the key: samples, partition, source of a factory."""
    inner = table.get("problem")  # of the kind `scaled`
    found = (
        {f"problem.{key}": value for key, value in file_checksums(inner).items()} if isinstance(inner, Mapping) else {}
    )
    if path := samples_file(table.get("dataset", "")):
        found["dataset"] = _file_checksum(path)
    if isinstance(partition := table.get("partition"), str) and is_partition_file(partition):
        found["partition"] = _file_checksum(partition)
    if isinstance(network := table.get("network"), str) and is_factory(network):
        found["network"] = source_checksum(network)
    return found


def _file_checksum(path: str) -> str:
    return hashlib.sha256(read_bytes(path, path, LARGEST)).hexdigest()


def _load(dataset: str | Mapping[str, Any], data: str | None, *, classes: bool = True, tested: bool = True) -> Dataset:
    """A data set, with classes and test samples where a problem needs them."""
    if not isinstance(dataset, str | Mapping):
        raise FedboundsError(f"dataset = {quote(dataset)} must be a string, or a table such as {{kind = 'glyphs'}}")
    if not isinstance(data, str | None):
        raise FedboundsError(f"data = {quote(data)} must be a string")
    loaded = load_dataset(dataset, data)
    if classes and not loaded.classes:
        raise FedboundsError(
            f"data set {loaded.name} has labels that are no classes (whole numbers from 0); for a regression use "
            "kind = 'model-on-data' with loss = 'squared'"
        )
    if tested and not len(loaded.test_labels):
        raise FedboundsError(f"data set {loaded.name} has no test samples; add test_features and test_labels to it")
    return loaded


def load_split(
    dataset: str | Mapping[str, Any],
    data: str | None,
    clients: int | None,
    network: str,
    partition: str,
    similarity: float,
    alpha: float,
    labels_per_client: int,
    partition_seed: int,
    usual: int,
    *,
    regression: bool = False,
    tested: bool = False,
) -> tuple[Dataset, Partition]:
    """A data set and its split over clients, by their names.

    Args:
        dataset: the name of a data set, the path of an npz file, or a table with its kind and keys.
        data: the folder of its files, for data sets that are read from files.
        clients: N; of a partition file the number of its clients, else 50, in minimax problems 15.
        network: the name of the network; checked to be a text.
        partition: the rule of the split, or a file (.csv, .npy, .json) with the client of each training sample, or
            in JSON with the samples of each client.
        similarity: of the partition majority-class, in [0, 1].
        alpha: of the partitions dirichlet and class-mix, at least 0.001.
        labels_per_client: of the partitions labels and cyclic-labels.
        partition_seed: of the split.
        usual: N if nothing says it.
        regression: whether labels may be numbers.
        tested: whether test samples are needed.
    """
    for name, value in {"network": network, "partition": partition}.items():
        if not isinstance(value, str):
            raise FedboundsError(f"{name} = {quote(value)} must be a string")
    similarity, alpha = real("similarity", similarity), real("alpha", alpha)
    loaded = _load(dataset, data, classes=not regression, tested=tested)
    labels = loaded.train_labels if loaded.classes else np.zeros(len(loaded.train_labels), dtype=np.int64)
    if is_partition_file(partition):
        split = file_partition(labels, partition)
        if clients not in (None, split.clients):
            raise FedboundsError(f"clients = {quote(clients)}, but {partition} has {split.clients}; leave clients out")
        return loaded, split
    if not loaded.classes and partition not in ("even", "owners"):
        raise FedboundsError(
            f"partition = {quote(partition)} splits classes; of a regression take even, owners or a file"
        )
    rule = PARTITIONS.builder({"kind": partition})
    possible = {
        "labels": labels,
        "clients": check_count("clients", usual if clients is None else clients),
        "rng": np.random.default_rng(check_count("partition_seed", partition_seed, low=0)),
        "owners": loaded.owners,
        "similarity": similarity,
        "alpha": alpha,
        "labels_per_client": labels_per_client,
    }
    return loaded, rule(**{key: possible[key] for key in inspect.signature(rule).parameters if key in possible})


def problem_from_spec(spec: Mapping[str, Any], *, device: str = "cpu") -> Problem:
    """The problem that a dictionary describes, on a device; `kind` says which, the other keys are its arguments.

    Kinds of quadratics: `quadratic`, `block-quadratic`, `toy`, `minimax-quadratic`, `minimax-scaled`. Other problems in
    closed form: `cosine-quadratic`, `bounded-gradient`, `displaced`, `rippled-blocks`, `vertical-least-squares`,
    `minimax-bounded`, `minimax-one-point`. Models on data: `images`, `robust-images`, `fair-images`, `vertical`,
    `model-on-data`.
    A problem in closed form is given by its numbers, or by the size and the `seed` of a random instance.

    Raises:
        FedboundsError: an unknown kind or key (with the nearest names), a missing one, a value outside its range.

    Example:
        >>> problem_from_spec({"kind": "toy"}).clients
        3
        >>> problem_from_spec({"kind": "images", "clent": 9})
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: unknown key of problem 'images': 'clent'; did you mean clients?
    """
    return PROBLEMS.build(spec, device=device)


def sketch(spec: Mapping[str, Any]) -> tuple[Problem, int, int]:
    """A problem like that of a table, and the number of clients and the dimension of the table's problem.

    A large random instance is not built: its memory is checked, and a small one with the same arguments is returned.
    """
    make, known = PROBLEMS.builder(spec), PROBLEMS.with_defaults(spec)
    sizes = {name: check_count(name, known[name]) for name in _SIZES if name in known}
    if make not in _MEMORY or max(sizes.values()) <= _WHOLE:
        problem = problem_from_spec(spec)
        return problem, problem.clients, problem.dimension
    small = problem_from_spec({**spec, **{name: min(size, 3) for name, size in sizes.items()}})
    _MEMORY[make](known | sizes)
    silos = sizes.pop("silos", 1)
    return small, silos * sizes.pop("clients"), silos * sum(sizes.values())


# kind -> its builder, and the builder of a random instance
PROBLEMS: Registry[Problem] = Registry("problem", context=("device",), shared=load_split, kinds={
    "quadratic": (Quadratic, random_quadratic),
    "cosine-quadratic": (CosineQuadratic, random_cosine_quadratic),
    "bounded-gradient": (BoundedGradient, random_bounded_gradient),
    "displaced": (Displaced, random_displaced),
    "block-quadratic": (BlockQuadratic, random_block_quadratic),
    "toy": toy_example,
    "images": image_classification,
    "robust-images": robust_images,
    "fair-images": fair_images,
    "vertical-least-squares": (VerticalLeastSquares, random_vertical_least_squares),
    "rippled-blocks": (RippledBlocks, random_rippled_blocks),
    "vertical": vertical_networks,
    "scaled": scaled_objectives,
    "model-on-data": model_on_data,
    "minimax-quadratic": (QuadraticMinimax, random_quadratic_minimax),
    "minimax-scaled": ScaledMinimax,
    "minimax-bounded": BoundedMinimax,
    "minimax-one-point": OnePointMinimax,
})  # fmt: skip

_SIZES = ("silos", "clients", "dimension", "descent_dimension", "ascent_dimension")
_WHOLE = 64  # up to this size a problem is made to be looked at
# the maker of a random instance -> refuses a size that this machine cannot hold
_MEMORY: Mapping[Callable[..., Problem], Callable[[Mapping[str, Any]], None]] = {
    random_quadratic: lambda k: check_quadratic_memory(k["clients"], k["dimension"], k["shared"], k["diagonal"]),
    random_cosine_quadratic: lambda k: check_slopes_memory(k["clients"], k["dimension"]),
    random_bounded_gradient: lambda k: check_slopes_memory(k["clients"], k["dimension"]),
    random_displaced: lambda k: check_slopes_memory(k["clients"], k["dimension"]),
    random_block_quadratic: lambda k: check_block_quadratic_memory(
        k["silos"], k["clients"], k["dimension"], k["shared"]
    ),
    random_rippled_blocks: lambda k: check_block_quadratic_memory(k["silos"], 1, k["dimension"], True),
    random_quadratic_minimax: lambda k: check_minimax_memory(
        k["clients"], k["descent_dimension"], k["ascent_dimension"]
    ),
}
