"""What a round of FedAU is made of: I local steps at the participants, and weights with the cut-off K."""

from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import Known, RoundCost


def workload(result: Result, form: Form) -> RoundCost:
    """Of any result: gamma and eta, I, and K."""
    return RoundCost(
        "I",
        ("gamma", "eta"),
        participants=_participants,
        gradients=lambda c: c["I"],
        in_a_row=lambda c: c["I"],
        whole={"K": (3, 100)},
        usual={"eta": lambda c: (1.0, 100.0)},  # at fixed gamma eta, the bound falls as gamma goes to 0
    )


def _participants(c: Known) -> float:
    return c["p"].sum() if "p" in c else c["S"]
