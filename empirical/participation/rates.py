r"""Participation rates that depend on the clients' data.

$$p_n = C\mu\,\langle\kappa_n,q\rangle, \qquad q\sim\mathrm{Dir}(\alpha_p,\dots,\alpha_p)$$

with $\kappa_n$ the shares of the C classes in the data of client n.

Source: Wang & Ji 2024, eq. (C.6.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_matrix, check_memory, check_number, quote
from fedbounds.empirical.data.partition import class_counts
from fedbounds.empirical.runtime.kinds import Registry
from fedbounds.empirical.runtime.streams import Streams


def class_frequencies(labels: np.ndarray, assignment: np.ndarray, clients: int) -> np.ndarray:
    r"""The realized shares $\kappa_n$ of the classes in the data of each client, (clients, classes)."""
    counts = class_counts(assignment, labels, clients)
    sizes = counts.sum(axis=1, keepdims=True)
    if not sizes.all():
        raise FedboundsError(f"client {int(sizes.argmin())} holds no sample, and has no class frequencies")
    return counts / sizes


def dirichlet_frequencies(clients: int, classes: int, alpha: float = 0.1, seed: int = 0) -> np.ndarray:
    r"""Shares of the classes drawn from $\kappa_n\sim\mathrm{Dir}(\alpha_d,\dots,\alpha_d)$, (clients, classes).

    Source: Wang & Ji 2024, Appendix C.6.
    """
    N, C = check_count("clients", clients), check_count("classes", classes)
    check_memory(f"the shares of classes = {C} of clients = {N}", 16 * N * C)
    generator = Streams(check_count("seed", seed, low=0)).generator("rates", 1)
    return generator.dirichlet(np.full(C, check_alpha("alpha", alpha)), size=N)


def participation_rates(
    frequencies: ArrayLike,
    *,
    alpha: float = 0.1,
    mean: float = 0.1,
    floor: float = 0.0,
    cap: float | None = None,
    seed: int = 0,
) -> np.ndarray:
    r"""Participation rates that depend on the clients' data, $p_n=\max\{p_{\min},\,C\mu\langle\kappa_n,q\rangle\}$.

    Rates beyond 1, which (C.6.1) does not exclude (it cannot happen for $C\mu\le1$), are an error unless there is a
    `cap`. LowerBound and cap change the mean.

    Args:
        frequencies: $\kappa_n$, (clients, classes), each row summing to one.
        alpha: $\alpha_p>0$; small values make the classes' availability differ.
        mean: $\mu$ in (0, 1].
        floor: $p_{\min}$, the paper's is 0.02.
        cap: the largest rate, in (0, 1]; none refuses rates beyond 1.
        seed: of q, in the stream "rates", which nothing else uses.

    Returns:
        $p_n$, (clients,).

    Raises:
        FedboundsError: frequencies that are no shares, a number outside its domain, a rate beyond 1 without a cap.

    Example:
        >>> p = participation_rates(dirichlet_frequencies(250, 10), floor=0.02)
        >>> bool(p.min() == 0.02), bool(p.max() <= 1)
        (True, True)
        >>> participation_rates([[1.0, 0.0], [0.5, 0.5]], mean=1.0, alpha=0.01)
        Traceback (most recent call last):
            ...
        fedbounds.bounds.errors.FedboundsError: rate[0] = 2 is more than 1 (C mu = 2): lower the mean, or give a cap

    Source: Wang & Ji 2024, eq. (C.6.1), with the minimum of its Appendix C.6.
    """
    kappa = check_matrix("frequencies", frequencies, "(clients, classes)")
    if (kappa < 0).any() or not np.allclose(kappa.sum(axis=1), 1, rtol=0, atol=1e-9):
        n = int(((kappa < 0).any(axis=1) | (abs(kappa.sum(axis=1) - 1) > 1e-9)).argmax())
        raise FedboundsError(f"frequencies[{n}] must be shares that sum to one; they sum to {kappa[n].sum():.12g}")
    C, mu = kappa.shape[1], check_number("mean", mean, 0, 1)
    if mu == 0:
        raise FedboundsError("mean = 0 must be in (0, 1]: no client would participate")
    lowest, highest = check_number("floor", floor, 0, 1), None if cap is None else check_number("cap", cap, 0, 1)
    if highest is not None and not 0 < highest >= lowest:
        raise FedboundsError(f"cap = {quote(cap)} must be in (0, 1] and at least floor = {lowest:g}")
    generator = Streams(check_count("seed", seed, low=0)).generator("rates", 0)
    p = C * mu * (kappa @ generator.dirichlet(np.full(C, check_alpha("alpha", alpha))))
    if highest is not None:
        p = np.minimum(p, highest)
    elif (p > 1 + 1e-12).any():
        n = int(p.argmax())
        raise FedboundsError(
            f"rate[{n}] = {p[n]:.6g} is more than 1 (C mu = {C * mu:g}): lower the mean, or give a cap"
        )
    return np.clip(p, lowest, 1.0)


def rates_from_spec(spec: Mapping[str, Any], clients: int) -> np.ndarray:
    """The rates that a table describes: `participation_rates` of `dirichlet_frequencies`."""
    return RATES.build(spec, clients=clients)


def _dirichlet_rates(
    classes: int,
    clients: int,
    mix: float = 0.1,
    alpha: float = 0.1,
    mean: float = 0.1,
    floor: float = 0.0,
    cap: float | None = None,
    seed: int = 0,
) -> np.ndarray:
    """`participation_rates` of `dirichlet_frequencies`.

    Args:
        classes: C.
        mix: the alpha of the shares of the classes in the data of each client.
        alpha: of the availability of the owners of each class.
        mean: of the rates, in (0, 1].
        floor: the smallest rate.
        cap: the largest rate, in (0, 1]; none refuses rates beyond 1.
        seed: of both draws.
    """
    kappa = dirichlet_frequencies(clients, classes, mix, seed)
    return participation_rates(kappa, alpha=alpha, mean=mean, floor=floor, cap=cap, seed=seed)


RATES = Registry("probability", {"dirichlet": _dirichlet_rates}, context=("clients",))


def check_alpha(name: str, value: object) -> float:
    """The parameter of a Dirichlet law as a float."""
    return check_number(name, value, 1e-4, 1e6, why="the parameter of a Dirichlet law")
