r"""Runs made elsewhere: a training loop becomes a trace for `confront` and `overlay`; `read_log` reads a log of one.

The loop gives the weights of every round and, in recorded rounds, measurements at the global model $x_t$ at its start.
Whether the loop runs the stated algorithm is not checked, so no bound is a guarantee for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_memory, quote
from fedbounds.bounds.participation.constants import check_client_weights
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.logged_trace import (
    LOSS,
    MODEL,
    NORM,
    build_trace,
    check_algorithm,
    products_and_norm,
)
from fedbounds.empirical.simulation.trace import Trace

Vector = Any  # a module, a tensor, an array, or a mapping or sequence of them


class Recorder:
    r"""Records a training loop: one call of `round` in each round, before the model changes.

    $f=\sum_np_nF_n$ with $F_n$ the loss of client n on all its data, and $p_n=\frac1N$ unless given. From the clients'
    gradients $g_n=\nabla F_n(x_t)$ the trace keeps `gradient_norm_squared`, $\lVert\sum_np_ng_n\rVert^2$, and
    `gradient_products`, $g_n^\top g_m$ (seed, round, client, client), which determine every divergence between clients
    at $x_t$.

    Args:
        algorithm: the algorithm of the loop, or its dictionary.
        clients: N.
        data: each client's data, for the recorder to compute the gradients; anything that `loss` takes.
        loss: `loss(model, data[n])`, the mean loss of the module on all the data of client n.
        keep_models: whether the trace keeps the models.
        client_weights: $p_n$, a positive number for each client, such as its number of samples; their ratios matter.

    Raises:
        FedboundsError: data without a loss or a loss without data, not one part for each client, a client without
            data, an unknown algorithm.

    Example:
        >>> from fedbounds.empirical.papers.arbitrary_participation.algorithms import FedAvg
        >>> centers, x = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([2.0, 2.0])
        >>> recorder = Recorder(FedAvg(0.25, 1), clients=2)
        >>> for t in range(20):
        ...     recorder.round({0: 0.5, 1: 0.5}, x, gradients=x - centers)
        ...     x = x - 0.25 * (x - centers).mean(axis=0)
        >>> trace = recorder.trace(x, gradients=x - centers)
        >>> trace.gradient_norm_squared.round(4)[0, :3].tolist()
        [8.0, 4.5, 2.5312]
        >>> from fedbounds.empirical.comparison.compare_run import confront
        >>> known = {"L": 1, "F": 4, "sigma": 0, "beta": 0, "nu": 1, "delta": 0}
        >>> comparison = confront(trace, "arbitrary-participation/theorem-3.1", "explicit", given=known)
        >>> comparison.crossings.size, comparison.guarantee
        (0, False)
    """

    def __init__(
        self,
        algorithm: Algorithm | Mapping[str, Any],
        clients: int,
        *,
        data: Sequence[Any] | None = None,
        loss: Callable[[Any, Any], torch.Tensor] | None = None,
        keep_models: bool = False,
        client_weights: Any = None,
    ) -> None:
        self.algorithm = check_algorithm(algorithm)
        self.clients = check_count("clients", clients)
        self.client_weights = check_client_weights(client_weights, self.clients)
        if (data is None) != (loss is None):
            raise FedboundsError("data= and loss= go together: each client's data, and its mean loss on them")
        if data is not None:
            if len(data) != self.clients:
                raise FedboundsError(f"data= has {len(data)} parts, one for each of {self.clients} clients is needed")
            for n, own in enumerate(data):
                _check_data(n, own)
        self._data, self._loss, self._keep = data, loss, keep_models
        self._weights: list[np.ndarray] = []
        self._records: dict[int, dict[str, np.ndarray]] = {}
        self._bytes = 0

    def round(
        self,
        weights: Mapping[int, float] | Sequence[float] | np.ndarray,
        model: Vector = None,
        *,
        gradients: Any = None,
        gradient_norm_squared: float | None = None,
        **metrics: float,
    ) -> None:
        r"""Record a round before the model changes; with weights alone, only its participation.

        Args:
            weights: $q_t^n$ of the participants: `{client: weight}`, or one weight for each client.
            model: $x_t$, before the round: a module, a tensor or array, or a mapping or sequence of them.
            gradients: $\nabla F_n(x_t)$ of every client, in the order of the clients.
            gradient_norm_squared: $\lVert\nabla f(x_t)\rVert^2$, where the gradients are not given.
            metrics: other measurements, by name: `train_loss`, `test_accuracy`.

        Raises:
            FedboundsError: invalid weights, a model or number that is not finite, other metrics than those of the first
                recorded round; with the round.
        """
        t = len(self._weights)
        record = self._record(t, model, gradients, gradient_norm_squared, metrics)
        row = _weights(weights, self.clients, t)
        if record:
            self._check_names(t, record)
            size = sum(value.nbytes for value in record.values())
            check_memory(f"the record of {len(self._records) + 1} rounds", self._bytes + size)
            self._records[t], self._bytes = record, self._bytes + size
        self._weights.append(row)

    def trace(
        self,
        model: Vector = None,
        *,
        gradients: Any = None,
        gradient_norm_squared: float | None = None,
        **metrics: float,
    ) -> Trace:
        """The trace of all rounds; measurements at the last model $x_T$ may be given as for `round`.

        Raises:
            FedboundsError: no round, or nothing but weights, was recorded; or as for `round`.
        """
        T = len(self._weights)
        if not T:
            raise FedboundsError("nothing was recorded: call round(...) once in each round")
        records = dict(self._records)
        last = self._record(T, model, gradients, gradient_norm_squared, metrics)
        if last:
            self._check_names(T, last)
            records[T] = last
        if 0 not in records:
            raise FedboundsError("round 0 recorded no model and no metric: a trace begins at the model x_0")
        at = sorted(records)
        arrays = {name: np.stack([records[t][name] for t in at])[None] for name in records[0]}
        return build_trace(
            self.algorithm,
            np.array(self._weights),
            np.array(at),
            arrays,
            np.zeros(1, dtype=np.int64),
            client_weights=self.client_weights,
        )

    def _record(
        self, t: int, model: Vector, gradients: Any, norm: float | None, metrics: Mapping[str, float]
    ) -> dict[str, np.ndarray]:
        record = {name: _number(name, value, t) for name, value in metrics.items()}
        flat = None if model is None else _flat(model, f"the model of round {t}")
        if flat is not None and self._keep:
            record[MODEL] = flat
        if gradients is not None and norm is not None:
            raise FedboundsError(f"round {t}: give gradients= or gradient_norm_squared=, not both")
        if gradients is None and norm is None and model is not None and self._loss is not None:
            gradients, record[LOSS] = self._client_gradients(model, t)
        if gradients is not None:
            rows = [_flat(g, f"the gradient of client {n} in round {t}") for n, g in enumerate(gradients)]
            if len(rows) != self.clients:
                raise FedboundsError(f"round {t}: {len(rows)} gradients, there are {self.clients} clients: give all")
            sizes = {len(row) for row in rows} | ({len(flat)} if flat is not None else set())
            if len(sizes) > 1:
                raise FedboundsError(f"round {t}: gradients and model have {sorted(sizes)} coordinates; give as many")
            record |= products_and_norm(np.stack(rows), self.client_weights)
        elif norm is not None:
            record[NORM] = _number(NORM, norm, t, low=0)
        return record

    def _client_gradients(self, model: Any, t: int) -> tuple[list[torch.Tensor], np.ndarray]:
        """Every client's gradient at a module, and the mean of their losses; the module is as before afterwards."""
        assert self._data is not None and self._loss is not None
        if not isinstance(model, torch.nn.Module):
            raise FedboundsError(f"round {t}: model= must be a torch.nn.Module for loss= to be differentiated")
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradients, losses, training = [], [], model.training
        model.eval()  # neither dropout nor running statistics: F_n is a function of the model
        try:
            for n, own in enumerate(self._data):
                loss = self._loss(model, own)
                losses.append(_number(f"the loss of client {n}", float(loss.detach()), t))
                parts = torch.autograd.grad(loss, parameters, allow_unused=True)
                gradients.append(
                    [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, parts, strict=True)]
                )
        finally:
            model.train(training)
        return gradients, np.asarray(np.average(losses, weights=self.client_weights))

    def _check_names(self, t: int, record: Mapping[str, np.ndarray]) -> None:
        first = self._records.get(0, record)
        for here, there, a, b in ((record, first, t, 0), (first, record, 0, t)):
            for name, value in here.items():
                if name not in there:
                    raise FedboundsError(f"round {a} has {name}, round {b} has not: give it in every recorded round")
                if np.shape(value) != np.shape(there[name]):
                    raise FedboundsError(
                        f"{name} has shape {np.shape(value)} in round {a}, {np.shape(there[name])} in round {b}"
                    )


def _check_data(client: int, own: Any) -> None:
    """Refuse a client that holds nothing."""
    parts = own if isinstance(own, tuple | list) else [own]
    if not len(parts) or any(hasattr(part, "__len__") and len(part) == 0 for part in parts):
        raise FedboundsError(f"client {client} has no data, and its loss is a mean over them: leave it out")


def _weights(weights: Any, clients: int, t: int) -> np.ndarray:
    """One round's weights (N,)."""
    row = np.zeros(clients)
    if isinstance(weights, Mapping):
        for client, weight in weights.items():
            place = check_count(f"round {t}: client", client, 0, clients - 1, why=f"there are {clients} clients")
            row[place] = _number(f"the weight of client {client}", weight, t, low=0)
        return row
    given = list(weights)
    if len(given) != clients:
        raise FedboundsError(
            f"round {t}: {len(given)} weights, not {clients}, one for each client; or give {{client: weight}}"
        )
    row[:] = [_number(f"the weight of client {n}", weight, t, low=0) for n, weight in enumerate(given)]
    return row


def _number(name: str, value: Any, t: int, low: float = -np.inf) -> np.ndarray:
    """A finite number of a round, float64; tensors and arrays of one number are numbers."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise FedboundsError(f"round {t}: {name} = {quote(value)} must be a number") from None
    if not low <= number < np.inf or number == -np.inf:
        raise FedboundsError(f"round {t}: {name} = {number:g} is not a finite number{' >= 0' if low == 0 else ''}")
    return np.asarray(number)


def _flat(vector: Vector, what: str) -> np.ndarray:
    """All its numbers one after another, finite, float64 (d,)."""
    if isinstance(vector, torch.nn.Module):
        parts = list(vector.parameters())
    elif isinstance(vector, Mapping):
        parts = list(vector.values())
    elif isinstance(vector, torch.Tensor | np.ndarray):
        parts = [vector]
    else:
        parts = list(vector)
    rows = [torch.as_tensor(part).detach().cpu().double().numpy().ravel() for part in parts]
    flat = np.concatenate(rows) if rows else np.zeros(0)
    if not flat.size:
        raise FedboundsError(f"{what} has no numbers")
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        raise FedboundsError(f"{what} is not finite: {flat[bad[0]]} at coordinate {bad[0]} of {len(flat)}")
    return flat
