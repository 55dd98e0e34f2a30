"""Server strategies for Flower's message API: FedAU, generalized FedAvg, and a participation account.

Needs the extra `flower`. `import fedbounds` does not import Flower.
"""

from __future__ import annotations

from fedbounds.bounds.errors import MissingExtra

try:
    from fedbounds.empirical.monitoring.flower import Accounting
    from fedbounds.empirical.papers.arbitrary_participation.flower import GeneralizedFedAvg
    from fedbounds.empirical.papers.fedau.flower import FedAU
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "flwr":
        raise
    raise MissingExtra("flower", "flwr") from None

__all__ = ["Accounting", "FedAU", "GeneralizedFedAvg"]
