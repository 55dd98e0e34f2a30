"""What a round of TDCD is made of: embeddings through the hubs, Q local steps at every client, models to the hubs."""

from fedbounds.bounds.theory.result import Form, Result
from fedbounds.bounds.theory.round_cost import Known, RoundCost


def workload(result: Result, form: Form) -> RoundCost:
    """Of any result: eta, or its scale c, and Q. A round has three exchanges, one after the other (Section 5)."""
    return RoundCost(
        "Q",
        ("eta", "c"),
        participants=lambda c: c["K"].sum(),
        gradients=lambda c: c["Q"],
        in_a_row=lambda c: c["Q"],
        messages=3,
        link=_link,
        bits=_bits,
    )


def _link(c: Known) -> float:
    """Down and up: a block of the model, blocks being equal, and the embeddings of a client's share of the batch."""
    silos, fewest = len(c["K"]), c["K"].min()
    return c["number_bits"] * 2 * (c["dimension"] / silos + c["batch"] * c["embedding"] / fewest)


def _bits(c: Known) -> float:
    """Algorithm 1, lines 10 to 22 and 31: blocks to and from every client, embeddings to the hub, from hub to hub and
    to the clients."""
    silos, clients = len(c["K"]), c["K"].sum()
    blocks, embeddings = 2 * clients * c["dimension"] / silos, (2 * silos + silos * (silos - 1)) * c["batch"]
    return c["number_bits"] * (blocks + embeddings * c["embedding"])
