"""Every special case and inequality of Wang & Ji (2022) that court 3 tries."""

from __future__ import annotations

from bounds.audit.limits import Limit
from bounds.audit.spreads import Spread
from bounds.papers.arbitrary_participation.divergences import SPREADS
from bounds.papers.arbitrary_participation.orders import ORDERS
from bounds.papers.arbitrary_participation.special_cases import EQUALITIES

LIMITS: tuple[Limit | Spread, ...] = (*EQUALITIES, *ORDERS, *SPREADS)
