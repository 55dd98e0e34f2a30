"""Problems from plain dictionaries, as they stand in a specification file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.empirical.problems.block_quadratics import (
    BlockQuadratic,
    check_block_quadratic_memory,
    random_block_quadratic,
)
from fedbounds.empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from fedbounds.empirical.problems.displaced import Displaced, random_displaced
from fedbounds.empirical.problems.image_specs import fair_images, image_classification, robust_images
from fedbounds.empirical.problems.minimax_bounded import BoundedMinimax, OnePointMinimax
from fedbounds.empirical.problems.minimax_quadratic import (
    QuadraticMinimax,
    ScaledMinimax,
    check_minimax_memory,
    random_quadratic_minimax,
)
from fedbounds.empirical.problems.nonconvex import CosineQuadratic, random_cosine_quadratic
from fedbounds.empirical.problems.problem import Problem
from fedbounds.empirical.problems.quadratics import Quadratic, check_quadratic_memory, random_quadratic, toy_example
from fedbounds.empirical.problems.rippled_blocks import RippledBlocks, random_rippled_blocks
from fedbounds.empirical.problems.sloped import check_slopes_memory
from fedbounds.empirical.problems.vertical_least_squares import VerticalLeastSquares, random_vertical_least_squares
from fedbounds.empirical.problems.vertical_specs import vertical_networks


def problem_from_spec(spec: Mapping[str, Any], *, device: str = "cpu") -> Problem:
    """The problem that a dictionary describes, on a device; `kind` says which, the other keys are its arguments.

    - `quadratic`: `hessians centers noise x0`, or a random instance from `clients dimension heterogeneity condition
      shared diagonal noise initial_gap seed`; see `Quadratic` and `random_quadratic`.
    - `cosine-quadratic`: `slopes curvature ripple noise x0`, or a random instance from `clients dimension
      heterogeneity curvature ripple noise spread seed`; see `CosineQuadratic` and `random_cosine_quadratic`.
    - `bounded-gradient`: `slopes scales shape noise x0`, or a random instance from `clients dimension shape
      heterogeneity condition noise spread seed`; see `BoundedGradient` and `random_bounded_gradient`.
    - `displaced`: `centers shape scale noise noise_law x0`, or a random instance from `clients dimension shape scale
      heterogeneity noise noise_law spread seed`; see `Displaced` and `random_displaced`.
    - `block-quadratic`: `hessian blocks silo_clients center noise shift shared_noise noise_law holders x0`, or a random
      instance from `silos clients dimension heterogeneity condition shared permuted noise shift shared_noise noise_law
      initial_gap seed`; see `BlockQuadratic` and `random_block_quadratic`.
    - `toy`: `noise`; see `toy_example`.
    - `images`: `dataset` (digits; a name, or a table as `{"kind": "glyphs", "classes": 47}`), `data` (folder),
      `clients` (50), `network` (cnn), `partition` (majority-class, with `similarity`; or dirichlet or class-mix, with
      `alpha`; or labels or labels-in-turn, with `labels_per_client` (3); or even, or owners), `partition_seed` (0),
      `batch` (16), `augmentation` (none), `gradient_norm` (false); see `ImageClassification`.
    - `robust-images` and `fair-images`: `dataset data clients partition similarity alpha labels_per_client
      partition_seed network batch` as for `images`, but with 15 clients, the network cnn-small, batches of 32 and a
      Dirichlet split with alpha = 0.1 if nothing is said, and `weight_decay` (0); the first with `radius` (1) and
      `attack_steps` (10), see `RobustImages`, the second with `regularization` (0.1) and `gradient_norm` (false), see
      `FairImages`.
    - `vertical-least-squares`: `features labels blocks silo_clients batch holders x0`, or a random instance from `silos
      clients samples dimension batch copies label_vectors label_noise permuted seed`; see `VerticalLeastSquares` and
      `random_vertical_least_squares`.
    - `rippled-blocks`: `hessian blocks silo_clients ripple ripple_frequency noise noise_frequency noise_law
      shared_noise x0`, or a random instance from `silos clients dimension condition ripple ripple_frequency noise
      noise_frequency noise_law shared_noise spread seed`; see `RippledBlocks` and `random_rippled_blocks`.
    - `vertical`: `dataset` (breast-cancer), `data`, `silos` (2), `split` (columns, or channels), `widths`,
      `silo_clients` (4), `same_rows` (true), `remainder` (refuse, or spread, or drop), `shards`, `partition_seed` (0),
      `network` (linear), `loss` (cross-entropy, or logistic, or least-squares), `batch` (all samples), `top_k` (5),
      `gradient_norm` (false); see `vertical_networks` and `VerticalNetworks`.
    - `minimax-quadratic`: `descent_hessian coupling concavity slopes ascent_slopes ripple weights noise growth x0 y0`,
      or a random instance from `clients descent_dimension ascent_dimension heterogeneity condition ripple noise growth
      spread seed`; see `QuadraticMinimax` and `random_quadratic_minimax`.
    - `minimax-scaled`: `scales descent_hessian coupling concavity slope ascent_slope ripple weights noise growth x0
      y0`; see `ScaledMinimax`.
    - `minimax-bounded`: `slopes ascent_slopes ripple depth bend weights noise growth x0 y0`; see `BoundedMinimax`.
    - `minimax-one-point`: `slopes ripple depth bend weights noise growth x0 y0`; see `OnePointMinimax`.

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
    make, _ = _checked(spec)
    return make(**{key: value for key, value in spec.items() if key != "kind"}, device=device)


def sketch(spec: Mapping[str, Any]) -> tuple[Problem, int, int]:
    """A problem that stands for the one that a dictionary describes, its number of clients and its dimension.

    A large random instance is not made: its size is held against the machine's memory, and a small one, with the same
    arguments otherwise, shows that the dictionary describes a problem at all.

    Raises:
        FedboundsError: as `problem_from_spec`.

    Example:
        >>> large = {"kind": "quadratic", "clients": 100, "dimension": 10_000}
        >>> problem, clients, dimension = sketch(large)
        >>> problem.dimension, clients, dimension
        (3, 100, 10000)
    """
    make, _ = _checked(spec)
    known = with_defaults(spec)
    sizes = {name: check_count(name, known[name]) for name in _SIZES if name in known}
    if make not in _MEMORY or max(sizes.values()) <= _WHOLE:
        problem = problem_from_spec(spec)
        return problem, problem.clients, problem.dimension
    small = problem_from_spec({**spec, **{name: min(size, 3) for name, size in sizes.items()}})
    _MEMORY[make](known | sizes)
    silos = sizes.pop("silos", 1)
    return small, silos * sizes.pop("clients"), silos * sum(sizes.values())


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


def keys_of_maker(make: Callable[..., Problem]) -> dict[str, bool]:
    """The keys of a maker, and whether it cannot do without."""
    parameters = inspect.signature(make).parameters
    return {name: p.default is p.empty for name, p in parameters.items() if name != "device"}


_Maker = tuple[Callable[..., Problem], dict[str, bool]]
# kind -> its maker, and the maker of a random instance, taken unless a key belongs to the first alone
MAKERS: Mapping[str, tuple[Callable[..., Problem], ...]] = {
    "quadratic": (Quadratic, random_quadratic),
    "cosine-quadratic": (CosineQuadratic, random_cosine_quadratic),
    "bounded-gradient": (BoundedGradient, random_bounded_gradient),
    "displaced": (Displaced, random_displaced),
    "block-quadratic": (BlockQuadratic, random_block_quadratic),
    "toy": (toy_example,),
    "images": (image_classification,),
    "robust-images": (robust_images,),
    "fair-images": (fair_images,),
    "vertical-least-squares": (VerticalLeastSquares, random_vertical_least_squares),
    "rippled-blocks": (RippledBlocks, random_rippled_blocks),
    "vertical": (vertical_networks,),
    "minimax-quadratic": (QuadraticMinimax, random_quadratic_minimax),
    "minimax-scaled": (ScaledMinimax,),
    "minimax-bounded": (BoundedMinimax,),
    "minimax-one-point": (OnePointMinimax,),
}


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


def _maker(spec: Mapping[str, Any]) -> _Maker:
    if not isinstance(spec, Mapping) or "kind" not in spec:
        raise FedboundsError(f"a problem needs a kind: one of {', '.join(sorted(MAKERS))}")
    if not isinstance(spec["kind"], str) or spec["kind"] not in MAKERS:
        raise unknown_name("problem kind", str(spec["kind"]), MAKERS)
    explicit, *random = MAKERS[spec["kind"]]
    own = {key for key in keys_of_maker(explicit) if not any(key in keys_of_maker(make) for make in random)}
    make = random[0] if random and not own & set(spec) else explicit
    return make, keys_of_maker(make)
