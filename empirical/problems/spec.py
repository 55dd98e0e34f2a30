"""Problems from plain dictionaries, as they stand in a specification file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedbounds.bounds.inputs.checks import check_count
from fedbounds.empirical.problems.block_quadratics import (
    BlockQuadratic,
    check_block_quadratic_memory,
    random_block_quadratic,
)
from fedbounds.empirical.problems.bounded_gradient import BoundedGradient, random_bounded_gradient
from fedbounds.empirical.problems.displaced import Displaced, random_displaced
from fedbounds.empirical.problems.image_specs import fair_images, image_classification, load_split, robust_images
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
from fedbounds.empirical.runtime.kinds import Registry


def problem_from_spec(spec: Mapping[str, Any], *, device: str = "cpu") -> Problem:
    """The problem that a dictionary describes, on a device; `kind` says which, the other keys are its arguments.

    Kinds of quadratics: `quadratic`, `block-quadratic`, `toy`, `minimax-quadratic`, `minimax-scaled`. Other problems in
    closed form: `cosine-quadratic`, `bounded-gradient`, `displaced`, `rippled-blocks`, `vertical-least-squares`,
    `minimax-bounded`, `minimax-one-point`. Models on data: `images`, `robust-images`, `fair-images`, `vertical`.
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
    """A problem that stands for the one of a table, its number of clients and its dimension.

    A large random instance is not built: its memory is checked, and a small one with the same arguments stands for it.

    Example:
        >>> large = {"kind": "quadratic", "clients": 100, "dimension": 10_000}
        >>> problem, clients, dimension = sketch(large)
        >>> problem.dimension, clients, dimension
        (3, 100, 10000)
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
