"""Every special case and inequality of Wang & Ji (2024) that court 3 tries."""

from __future__ import annotations

from fedbounds.bounds.audit.limit_checker import Limit
from fedbounds.bounds.papers.fedau.orders import ORDERS
from fedbounds.bounds.papers.fedau.special_cases import EQUALITIES

LIMITS: tuple[Limit, ...] = (*EQUALITIES, *ORDERS)
