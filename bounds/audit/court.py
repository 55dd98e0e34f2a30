"""Courts: who hears which claims. Ours stand in a static table, others join through fedbounds.courts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.verdict import Verdict
from fedbounds.bounds.errors import FedboundsError

if TYPE_CHECKING:
    from fedbounds.bounds.audit.docket import Docket

COURTS = {
    "units": ("fedbounds.bounds.audit.units", "audit"),
    "limits": ("fedbounds.bounds.audit.limits", "audit"),
    "steps": ("fedbounds.bounds.audit.steps", "audit"),
    "refutations": ("fedbounds.bounds.audit.refutations", "audit"),
}


@dataclass(frozen=True)
class Court:
    """A judge of claims.

    Args:
        name: how it is called.
        hears: whether a claim is its business, as the docket stands.
        tries: the verdict; it may ask the docket for other claims.
    """

    name: str
    hears: Callable[[Claim, Docket], bool]
    tries: Callable[[Claim, Docket], Verdict]


@lru_cache(maxsize=1)
def courts() -> tuple[Court, ...]:
    """Every court, ours first.

    Raises:
        FedboundsError: an optional dependency of a court is missing; says what to install.
    """
    found = [_loaded(place, extra) for place, extra in COURTS.values()]
    for point in metadata.entry_points(group="fedbounds.courts"):
        found.append(_loaded(point.module, "empirical" if point.module.startswith("fedbounds.empirical") else "all"))
    return tuple(found)


def _loaded(place: str, extra: str) -> Court:
    try:
        return import_module(place).COURT
    except ImportError as error:
        raise FedboundsError(
            f"the court {place} needs {error.name}, which is not installed: pip install 'fedbounds[{extra}]'"
        ) from error
