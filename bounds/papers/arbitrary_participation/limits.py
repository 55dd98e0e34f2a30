"""Every special case and inequality of Wang & Ji (2022) that court 3 tries."""

from __future__ import annotations

from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.audit.spreads import Spread
from fedbounds.bounds.papers.arbitrary_participation.divergences import SPREADS
from fedbounds.bounds.papers.arbitrary_participation.orders import ORDERS
from fedbounds.bounds.papers.arbitrary_participation.special_cases import EQUALITIES

LIMITS: tuple[Limit | Spread, ...] = (*EQUALITIES, *ORDERS, *SPREADS)
