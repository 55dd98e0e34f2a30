"""What a round of FedMRN is made of: S local steps at K clients, the model down, and a mask or a message up."""

from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import Known, RoundCost

SEED = 64  # bits of the seed that the noise is drawn from


def workload(result: Result, form: Form) -> RoundCost:
    """Of any result: eta, the amplitude a, and S. A mask has one bit for each parameter; how long the message of an
    operator with error q is, the user must say."""
    return RoundCost(
        "S",
        ("eta", "a"),
        participants=lambda c: c["K"],
        gradients=lambda c: c["S"],
        in_a_row=lambda c: c["S"],
        link=_masks if result.notation.d in form.symbols else _messages,
    )


def _masks(c: Known) -> float:
    return c["dimension"] * (c["number_bits"] + 1) + SEED


def _messages(c: Known) -> float:
    return c["dimension"] * c["number_bits"] + c["message_bits"]
