"""What a round of Fed-Norm-SGDA is made of: tau_i descent and ascent steps at each of P clients."""

from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import Known, RoundCost


def workload(result: Result, form: Form) -> RoundCost:
    """Of any result: all steps of clients and server, tau, and S; a stochastic gradient is one in x and y."""
    return RoundCost(
        "tau",
        ("etax", "etay", "gammax", "gammay"),
        participants=lambda c: c["P"],
        gradients=lambda c: c["tau"].mean(),
        in_a_row=lambda c: c["tau"].max(),
        whole={"S": (1, 10000)},
        usual={"etax": _small, "etay": _small},  # at fixed server steps, the bound falls as clients stand still
    )


def _small(c: Known) -> tuple[float, float]:
    return 1e-3 / (c["Lf"] * c["tau"].max()), 1 / c["Lf"]
