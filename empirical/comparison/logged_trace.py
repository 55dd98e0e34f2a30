"""The trace of runs made elsewhere, from their participation and the arrays that were recorded of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.empirical.algorithms import Algorithm, algorithm_from_spec
from fedbounds.empirical.participation import Recorded
from fedbounds.empirical.problems.logged import LOG
from fedbounds.empirical.simulation.simulate import describe_process
from fedbounds.empirical.simulation.trace import Trace

SINGLE = 1e-4  # relative difference, to the clients' own squared norms, up to which logged norms are the same
NORM, PRODUCTS, MODEL, LOSS = "gradient_norm_squared", "gradient_products", "model", "train_loss"
DIMS = {  # of what is not one number a round
    MODEL: ("seed", "round", "coordinate"),
    PRODUCTS: ("seed", "round", "client", "other_client"),
}


def build_trace(
    algorithm: Algorithm,
    q: np.ndarray,
    at: np.ndarray,
    arrays: dict[str, np.ndarray],
    seeds: np.ndarray,
    log: Mapping[str, Sequence[str]] | None = None,
) -> Trace:
    """The trace of runs that share their weights (T, N), recorded in the rounds `at`; arrays (seeds, rounds, ...).

    Args:
        log: the files that were read, and notes on how, for the specification.
    """
    S, computed = len(seeds), np.concatenate([[0], (q > 0).sum(axis=1).cumsum()])
    when, who = np.nonzero(q)
    sums = q.sum(axis=1)
    every = {"seed": seeds, "round": at}
    counts = {
        "empty_rounds": np.full(S, (sums == 0).sum()),
        "unnormalized_rounds": np.full(S, ((sums > 0) & (np.abs(sums - 1) > SUM_TOLERANCE)).sum()),
        "diverged_at": np.full(S, -1),
    }
    taken_part = {
        "seed": np.repeat(seeds, len(when)), "round": np.tile(when, S), "client": np.tile(who, S),
        "weight": np.tile(q[when, who], S),
    }  # fmt: skip
    participants = np.tile(np.diff(computed[at], prepend=0), (S, 1))
    dims = {
        **{name: (name,) for name in every},
        **{name: ("seed",) for name in counts},
        **{f"participation_{name}": ("participation",) for name in taken_part},
        "participants": ("seed", "round"),
        **{name: DIMS.get(name, ("seed", "round")) for name in arrays},
    }
    for name, value in arrays.items():
        if value.ndim != len(dims[name]):
            raise FedboundsError(f"{name} has shape {value.shape[1:]}; expected ({', '.join(dims[name][1:])})")
    if MODEL in arrays and NORM in arrays:
        _check_repeats(arrays[MODEL], arrays.get(PRODUCTS, arrays[NORM][..., None, None]), at)
    spec = {
        "problem": LOG,
        "clients": q.shape[1],
        "dimension": arrays[MODEL].shape[-1] if MODEL in arrays else 0,
        "dtype": "float64",
        "participation": describe_process(Recorded(q)),
        "rounds": len(q),
        "record_every": int(np.diff(at).max(initial=1)),
        "streams": {},
        "algorithm": algorithm.spec(),
        **({} if log is None else {"log": {name: list(texts) for name, texts in log.items()}}),
    }
    whole = {f"participation_{name}": value for name, value in taken_part.items()}
    everything = every | counts | whole | {"participants": participants} | arrays
    return Trace(everything, dims, spec, "logged", ("done",) * S)


def check_algorithm(algorithm: Algorithm | Mapping[str, Any]) -> Algorithm:
    """The algorithm of a loop, from its dictionary or itself; none whose logs are not read."""
    made = algorithm if isinstance(algorithm, Algorithm) else algorithm_from_spec(algorithm)
    if made.ascends:
        raise FedboundsError(f"{made.kind} is for minimax problems, whose logs are not read")
    return made


def _check_repeats(models: np.ndarray, products: np.ndarray, at: np.ndarray) -> None:
    """Refuse gradients that differ at the same model: those of a batch, or models that were not updated in the log."""
    same = (models[:, 1:] == models[:, :-1]).all(axis=-1)
    size = np.abs(products).max(axis=(-1, -2))
    change = np.abs(np.diff(products, axis=1)).max(axis=(-1, -2))
    other = np.argwhere(same & (change > SINGLE * (size[:, 1:] + size[:, :-1])))
    if other.size:
        t = int(other[0][1])
        raise FedboundsError(
            f"the model of rounds {at[t]} and {at[t + 1]} is the same and its gradients differ; expected every "
            "client's full gradient at the recorded model: record the model before each round, and no gradients of a "
            "batch"
        )


def products_and_norm(gradients: np.ndarray) -> dict[str, np.ndarray]:
    """What is kept of the clients' gradients (..., N, d)."""
    clients = gradients.shape[-2]
    records = int(np.prod(gradients.shape[:-2]))
    check_memory(f"the products of clients = {clients} gradients in {records} records", 24 * records * clients**2)
    with np.errstate(over="ignore", invalid="ignore"):
        products = gradients @ np.swapaxes(gradients, -1, -2)
    if not np.isfinite(products).all():
        raise FedboundsError(f"the gradients are too large to be multiplied: up to {np.abs(gradients).max():g}")
    return {PRODUCTS: products, NORM: products.mean(axis=(-1, -2))}
