"""What a round of generalized FedAvg is made of: I local steps at S participants, amplified after every P rounds."""

from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import RoundCost

REGULAR = "regularized"  # which holds at some P alone: nobody may choose another


def workload(result: Result, form: Form) -> RoundCost:
    """Of any result: gamma and eta, I, and P where no assumption speaks of it."""
    free = all(a.name != REGULAR for a in form.assumptions)
    return RoundCost(
        "I",
        ("gamma", "eta"),
        participants=lambda c: c["S"],
        gradients=lambda c: c["I"],
        in_a_row=lambda c: c["I"],
        whole={"P": (1, 100)} if free else {},
        usual={"eta": lambda c: (1.0, 100.0)},  # at fixed gamma eta, the bound falls as gamma goes to 0
    )
