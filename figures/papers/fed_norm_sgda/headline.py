r"""The headline of the paper, $\epsilon^{-4}$ rounds for nonconvex-concave problems, against its own step cap.

The bound of Theorem 4, with local steps that vanish, is
$$\frac A{\Gamma_x}+B\Gamma_x+C\Gamma_x(S-1)+\frac E{\Gamma_yS}+F\Gamma_y,$$
so at each $S$ both steps have a closed form: $\Gamma_x=\sqrt{A/(B+C(S-1))}$ and $\Gamma_y=\sqrt{E/(SF)}$ or the cap.
With $n\tau=T$ the noise $F$ falls like $1/T$ and $\Gamma_y$ wants to grow like $\sqrt T$: without the cap the least
bound falls like $T^{-1/2}$, which is $\epsilon^{-4}$ rounds for a gradient norm of $\epsilon$; with it like $T^{-1/3}$,
which is $\epsilon^{-6}$.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.papers.fed_norm_sgda.concave import THEOREM_4

GRID = 4096  # whole numbers S, in geometric progression up to T


class Least(NamedTuple):
    """The least bound over both effective steps and the snapshot period, and where it is."""

    value: float
    Gammax: float
    Gammay: float
    S: int


def least_bound(constants: Mapping[str, Value], *, capped: bool = True, form: str | None = None) -> Least:
    r"""Theorem 4 minimized over $\Gamma_x$, $\Gamma_y$ and $S$.

    Args:
        constants: letter to value, for everything but the steps and the snapshot period; T a single number.
        capped: whether $\Gamma_y$ must obey the theorem's conditions.
        form: the form of Theorem 4; the certified one by default.

    Returns:
        The minimum over whole S up to T on a geometric grid; the local steps are taken as 0, where the bound is least.

    Raises:
        FedboundsError: as `evaluate`; or no initial gap, no noise without a cap: then the infimum is not attained.

    Example:
        >>> one = dict(Lf=1, Gx=1, R=1, Deltabar=1, sigmaL=1, sigmaG=0, betaL=0, betaG=1, P=2, T=10**6)
        >>> work = dict(tau=[500_000, 500_000], w=[0.5, 0.5])
        >>> round(least_bound(one | work).Gammay, 6)  # 1/(32 Lf): 1/16 at the price nu = 2
        0.03125
        >>> least_bound(one | work, capped=False).Gammay > 100
        True
    """
    here = evaluate(
        THEOREM_4, {**constants, "Gammax": 1.0, "Gammay": 1.0, "S": 2, "etax": 0, "etay": 0}, form=form, strict=False
    )
    part = {name: float(value) for name, value in here.terms.items()}
    gap, descent, stale = part["initial gap"], part["descent noise"], part["stale snapshot"]
    restart, noise = 2 * part["ascent from the snapshot"], part["full synchronization"] + part["partial participation"]
    caps = [float(c.admissible) for c in here.conditions if c.limits == "Gammay" and c.admissible is not None]
    cap = min(caps) if capped else math.inf
    if gap == 0 or (noise == 0 and cap == math.inf):
        raise FedboundsError(
            "the least bound of Theorem 4 is not attained: "
            + ("Deltabar = 0 lets Gammax vanish" if gap == 0 else "without noise and cap Gammay grows for ever")
        )
    periods = np.unique(np.round(np.geomspace(1, float(here.constants["T"].value), GRID)))
    slope = descent + stale * (periods - 1)
    with np.errstate(divide="ignore"):
        ascent = np.minimum(cap, np.sqrt(restart / (periods * noise)))
    total = 2 * np.sqrt(gap * slope) + restart / (ascent * periods) + noise * ascent
    best = int(np.argmin(total))
    return Least(float(total[best]), math.sqrt(gap / slope[best]), float(ascent[best]), int(periods[best]))


def least_bounds(
    rounds: Sequence[int], *, capped: bool, clients: int = 10, local_steps: int | None = None
) -> np.ndarray:
    r"""The least bound at each number of rounds, all clients alike, taking part and noisy, all other constants 1.

    Args:
        rounds: numbers of rounds T, shape (k,).
        capped: whether the step in y obeys the theorem's conditions.
        clients: n.
        local_steps: tau; by default T/n rounded up, which is how the paper spends its rounds.

    Returns:
        The least values, shape (k,).

    Example:
        >>> for capped in (True, False):
        ...     early, late = least_bounds([10**9, 10**12], capped=capped)
        ...     print(round(float(np.log10(late / early)) / 3, 3))
        -0.333
        -0.5
    """
    one = dict(Lf=1, Gx=1, R=1, Deltabar=1, sigmaL=1, sigmaG=0, betaL=0, betaG=1, P=clients)
    values = []
    for T in rounds:
        tau = -(-int(T) // clients) if local_steps is None else local_steps
        here = dict(T=T, tau=np.full(clients, tau), w=np.full(clients, 1 / clients))
        values.append(least_bound(one | here, capped=capped).value)
    return np.array(values)
