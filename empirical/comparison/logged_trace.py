"""The trace of runs made elsewhere, from their participation and the arrays that were recorded of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_memory
from fedbounds.bounds.participation.constants import SUM_TOLERANCE
from fedbounds.empirical.algorithms import Algorithm, algorithm_from_spec
from fedbounds.empirical.participation import Process, Recorded
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
    participation: np.ndarray | Process,
    at: np.ndarray,
    arrays: dict[str, np.ndarray],
    seeds: np.ndarray,
    log: Mapping[str, Sequence[str]] | None = None,
    client_weights: np.ndarray | None = None,
) -> Trace:
    """The trace of runs that share their participation, recorded in the rounds `at`; arrays (seeds, rounds, ...).

    Rounds without participants are left out where that leaves the same run (`Algorithm.skips_empty_rounds`).

    Args:
        algorithm: of the runs.
        participation: the weights (T, N), or the process where nobody recorded who took part.
        at: the recorded rounds, (R,).
        arrays: what was recorded.
        seeds: of the runs.
        log: the files that were read, and notes on how, for the specification.
        client_weights: $p_n$ of f, (N,); 1/N each if not given.
    """
    S = len(seeds)
    if MODEL in arrays and NORM in arrays and np.ndim(arrays[MODEL]) == 3:
        _check_repeats(arrays[MODEL], arrays.get(PRODUCTS, arrays[NORM][..., None, None]), at)
    if isinstance(participation, np.ndarray) and algorithm.skips_empty_rounds:
        participation, at, arrays, note = _without_empty_rounds(participation, at, arrays)
        if note:
            held = log or {}
            log = {"files": held.get("files", ()), "notes": (*held.get("notes", ()), note)}
    every = {"seed": seeds, "round": at}
    counts, per_round, taken_part = {"diverged_at": np.full(S, -1)}, {}, {}
    if isinstance(participation, Process):
        N, T, said = participation.clients, max(int(at[-1]), 1), participation.spec()
    else:
        q, (T, N), said = participation, participation.shape, describe_process(Recorded(participation))
        when, who = np.nonzero(q)
        sums, computed = q.sum(axis=1), np.concatenate([[0], (q > 0).sum(axis=1).cumsum()])
        counts["empty_rounds"] = np.full(S, (sums == 0).sum())
        counts["unnormalized_rounds"] = np.full(S, ((sums > 0) & (np.abs(sums - 1) > SUM_TOLERANCE)).sum())
        per_round["participants"] = np.tile(np.diff(computed[at], prepend=0), (S, 1))
        taken_part = {
            "participation_seed": np.repeat(seeds, len(when)),
            "participation_round": np.tile(when, S),
            "participation_client": np.tile(who, S),
            "participation_weight": np.tile(q[when, who], S),
        }
    dims = {
        **{name: (name,) for name in every},
        **{name: ("seed",) for name in counts},
        **{name: ("participation",) for name in taken_part},
        **{name: ("seed", "round") for name in per_round},
        **{name: DIMS.get(name, ("seed", "round")) for name in arrays},
    }
    for name, value in arrays.items():
        if value.ndim != len(dims[name]):
            raise FedboundsError(f"{name} has shape {value.shape[1:]}; expected ({', '.join(dims[name][1:])})")
    spec = {
        "problem": LOG,
        "clients": N,
        "dimension": arrays[MODEL].shape[-1] if MODEL in arrays else 0,
        "dtype": "float64",
        "participation": said,
        "rounds": T,
        "record_every": int(np.diff(at).max(initial=1)),
        "streams": {},
        "algorithm": algorithm.spec(),
        **({} if client_weights is None else {"client_weights": client_weights.tolist()}),
        **({} if log is None else {"log": {name: list(texts) for name, texts in log.items()}}),
    }
    return Trace(every | counts | taken_part | per_round | arrays, dims, spec, "logged", ("done",) * S)


def _without_empty_rounds(
    q: np.ndarray, at: np.ndarray, arrays: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], str]:
    """The run without its rounds without participants, and a note; of records of one model the first is kept.

    Where a logged loss or norm changes in such a round, somebody did participate: all rounds stay.
    """
    kept = q.any(axis=1)
    empty = int((~kept).sum())
    if not empty or not kept.any():
        return q, at, arrays, ""
    shorter, first, model = np.unique(np.concatenate([[0], kept.cumsum()])[at], return_index=True, return_inverse=True)
    rounds = f"{empty} of {len(q)} rounds have no participants"
    for name in (NORM, LOSS):
        value = arrays.get(name, np.zeros((1, len(at))))
        if not np.allclose(value, value[:, first][:, model], rtol=SINGLE, atol=0):
            return q, at, arrays, f"{rounds}, and {name} changes in them: they are kept; check the participation"
    note = f"{rounds}: they change nothing and are left out"
    return q[kept], shorter, {name: value[:, first] for name, value in arrays.items()}, note


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


def products_and_norm(gradients: np.ndarray, client_weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """What is kept of the clients' gradients (..., N, d), whose weights in f are these."""
    clients = gradients.shape[-2]
    records = int(np.prod(gradients.shape[:-2]))
    check_memory(f"the products of clients = {clients} gradients in {records} records", 24 * records * clients**2)
    with np.errstate(over="ignore", invalid="ignore"):
        products = gradients @ np.swapaxes(gradients, -1, -2)
    if not np.isfinite(products).all():
        raise FedboundsError(f"the gradients are too large to be multiplied: up to {np.abs(gradients).max():g}")
    return {PRODUCTS: products, NORM: norm_from_products(products, client_weights)}


def norm_from_products(products: np.ndarray, client_weights: np.ndarray | None) -> np.ndarray:
    r"""$\|\sum_np_n\nabla F_n\|^2$ from the products (..., N, N)."""
    if client_weights is None:
        return products.mean(axis=(-1, -2))
    return np.maximum((products @ client_weights) @ client_weights, 0.0)
