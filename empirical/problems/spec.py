"""Problems from plain dictionaries, as they stand in a specification file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bounds.checks import check_count, quote
from bounds.errors import FedboundsError, unknown_name
from empirical.datasets import load_dataset
from empirical.partition import Partition, class_mix_partition, dirichlet_partition, majority_class_partition
from empirical.problems.border import real
from empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from empirical.problems.images import ImageClassification
from empirical.problems.nonconvex import CosineQuadratic, random_cosine_quadratic
from empirical.problems.problem import Problem
from empirical.problems.quadratics import Quadratic, random_quadratic, toy_example


def problem_from_spec(spec: Mapping[str, Any]) -> Problem:
    """The problem that a dictionary describes; `kind` says which, the other keys are its arguments.

    - `quadratic`: `hessians centres noise x0`, or a random instance from `clients dimension heterogeneity condition
      shared diagonal noise initial_gap seed`; see `Quadratic` and `random_quadratic`.
    - `cosine-quadratic`: `slopes curvature ripple noise x0`, or a random instance from `clients dimension
      heterogeneity curvature ripple noise spread seed`; see `CosineQuadratic` and `random_cosine_quadratic`.
    - `bounded-gradient`: `slopes scales shape noise x0`, or a random instance from `clients dimension shape
      heterogeneity condition noise spread seed`; see `BoundedGradient` and `random_bounded_gradient`.
    - `toy`: `noise`; see `toy_example`.
    - `images`: `dataset` (digits), `data` (folder), `clients` (50), `network` (cnn), `partition` (majority-class, with
      `similarity`; or dirichlet or class-mix, with `alpha`), `partition_seed` (0), `batch` (16), `augmentation` (none),
      `gradient_norm` (false); see `ImageClassification`.

    Raises:
        FedboundsError: an unknown kind or key (with the nearest names), a missing one, a value outside its range.

    Example:
        >>> problem_from_spec({"kind": "toy"}).clients
        3
        >>> problem_from_spec({"kind": "images", "clent": 9})
        Traceback (most recent call last):
            ...
        bounds.errors.FedboundsError: unknown key of problem 'images': 'clent'; did you mean clients?
    """
    make, _ = _checked(spec)
    return make(**{key: value for key, value in spec.items() if key != "kind"})


def with_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The dictionary of a problem with the default of every key that it leaves out (but for keys without a value).

    Raises:
        FedboundsError: an unknown kind or key, or a missing one.

    Example:
        >>> with_defaults({"kind": "toy"})
        {'kind': 'toy', 'noise': 0.0}
    """
    make, keys = _checked(spec)
    parameters = inspect.signature(make).parameters
    defaults = {key: parameters[key].default for key, needed in keys.items() if not needed}
    return {"kind": spec["kind"]} | {key: value for key, value in defaults.items() if value is not None} | dict(spec)


def _checked(spec: Mapping[str, Any]) -> _Maker:
    """The maker of a dictionary whose keys are known and complete."""
    make, keys = _maker(spec)
    for key in spec:
        if key != "kind" and key not in keys:
            raise unknown_name(f"key of problem {spec['kind']!r}:", str(key), keys)
    required = [key for key, needed in keys.items() if needed and key not in spec]
    if required:
        raise FedboundsError(f"problem {spec['kind']!r} lacks {', '.join(required)}")
    return make, keys


def _images(
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


def _keys(required: str, optional: str) -> dict[str, bool]:
    return {key: True for key in required.split()} | {key: False for key in optional.split()}


_Maker = tuple[Callable[..., Problem], dict[str, bool]]
# kind -> the makers, the first of which is taken if the specification has one of its required keys
_MAKERS: Mapping[str, tuple[_Maker, ...]] = {
    "quadratic": (
        (Quadratic, _keys("hessians centres", "noise x0")),
        (
            random_quadratic,
            _keys("clients dimension", "heterogeneity condition shared diagonal noise initial_gap seed"),
        ),
    ),
    "cosine-quadratic": (
        (CosineQuadratic, _keys("slopes curvature ripple", "noise x0")),
        (
            random_cosine_quadratic,
            _keys("clients dimension", "heterogeneity curvature ripple noise spread seed"),
        ),
    ),
    "bounded-gradient": (
        (BoundedGradient, _keys("slopes scales", "shape noise x0")),
        (random_bounded_gradient, _keys("clients dimension", "shape heterogeneity condition noise spread seed")),
    ),
    "toy": ((toy_example, _keys("", "noise")),),
    "images": (
        (
            _images,
            _keys(
                "",
                "dataset data clients network partition similarity alpha partition_seed batch augmentation "
                "gradient_norm",
            ),
        ),
    ),
}


def _maker(spec: Mapping[str, Any]) -> _Maker:
    if not isinstance(spec, Mapping) or "kind" not in spec:
        raise FedboundsError(f"a problem needs a kind: one of {', '.join(sorted(_MAKERS))}")
    if not isinstance(spec["kind"], str) or spec["kind"] not in _MAKERS:
        raise unknown_name("problem kind", str(spec["kind"]), _MAKERS)
    explicit, *random = _MAKERS[spec["kind"]]
    other = {key for key in explicit[1] if not any(key in keys for _, keys in random)}
    return random[0] if random and not other & set(spec) else explicit
