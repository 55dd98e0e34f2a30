"""The cost of a round of a paper's algorithm, and the symbols that may be chosen for it.

A paper gives a `RoundCost` for each form in `workload.py`: functions of a table of constants by symbol and, for a
network, `dimension`, `number_bits`, ...; a missing entry is an unknown cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedbounds.bounds.theory.registry import paper_submodule
from fedbounds.bounds.theory.result import Form, Result

Known = Mapping[str, Any]
Amount = Callable[[Known], float]
WIRE = {
    "dimension": "numbers in the model",
    "number_bits": "bits of a number on the wire (32 if nothing is said)",
    "message_bits": "bits of a compressed update",
    "batch": "samples whose embeddings are exchanged in a round",
    "embedding": "numbers in the embedding of a sample",
}


def whole_model(c: Known) -> float:
    """Bits over the link of a participant that gets the model and returns an update of the same size."""
    return 2 * c["dimension"] * c["number_bits"]


@dataclass(frozen=True)
class RoundCost:
    r"""What may be chosen for a round, and what it costs.

    Example:
        >>> local = RoundCost("I", ("gamma",), lambda c: c["S"], lambda c: c["I"], lambda c: c["I"])
        >>> local.traffic({"S": 10, "dimension": 1000, "number_bits": 32})
        640000
    """

    local_steps: str  # the symbol of the local steps
    steps: tuple[str, ...]  # the symbols of the step sizes
    participants: Amount  # in a round, on average
    gradients: Amount  # stochastic gradients of a participant in a round, on average
    in_a_row: Amount  # those of the slowest participant, one after the other
    messages: int = 2  # over a link, one after the other
    # symbols of the other whole numbers, with the range in which they are usually sought
    whole: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    # for symbols of step sizes for which the infimum of a bound is not attained, the range in which they are usually
    # sought, from the other constants
    usual: Mapping[str, Callable[[Known], tuple[float, float]]] = field(default_factory=dict)
    link: Amount = whole_model  # bits over the link of one participant in a round
    bits: Amount | None = None  # over all links together; of every participant `link` if None

    def traffic(self, c: Known) -> float:
        """Bits over all links in a round."""
        return self.participants(c) * self.link(c) if self.bits is None else self.bits(c)


def workload_of(result: Result, form: Form) -> RoundCost | None:
    """What the paper of a result says about a round; None if it says nothing."""
    if result.file:
        return _workload_of_file(result, form)
    said = paper_submodule(result.paper, "bounds", "workload")
    return None if said is None else said.workload(result, form)


def _workload_of_file(result: Result, form: Form) -> RoundCost | None:
    """Of a theorem file, by its concepts: local steps at the participants, the model down and an update up."""
    if (form.measure or result.measure).lower:
        return None

    def symbol(*concepts: str) -> str:
        return next((q.name for q in map(result.notation.resolve, concepts) if q is not None), "")

    local, participants = symbol("local_steps"), symbol("participating_clients", "clients")
    multiplier = symbol("server_multiplier")
    return RoundCost(
        local,
        tuple(filter(None, (symbol("local_step_size"), multiplier))),
        participants=lambda c: c[participants],
        gradients=lambda c: c[local] if local else 1,
        in_a_row=lambda c: c[local] if local else 1,
        usual={multiplier: lambda c: (1.0, 100.0)} if multiplier else {},
    )
