"""The extremal runs of gradient descent as runs of TDCD: one silo with one client, whose batch is all of its data."""

from __future__ import annotations

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.papers.tdcd.results import ALL_ITERATES, SYNCHRONIZED
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns, Family, MeasuredRuns

MET = (
    *("smooth", "block-smooth", "smooth-in-one-block", "unbiased-silos", "unbiased-clients", "bounded-below"),
    "uncorrelated-clients",
)


def measure(claim: Claim, z: ExtremalRuns) -> MeasuredRuns:
    """The mean gradient at the iterates that the form is about; links take a third of the time of a step."""
    assert isinstance(claim.subject, ResultForm)
    Q, R, one = z.local_steps, z.rounds, np.ones(len(z))
    found = dict.fromkeys(("S", "SK"), 0 * one) | {
        **{"L": z.smoothness, "Lmax": z.smoothness, "Delta": z.decrease(), "Deltainf": z.gap, "Q": Q, "R": R},
        **{"eta": z.gamma, "c": z.gamma * Q * np.sqrt(R), "tcomm": one / 3, "tcomp": one, "W": R * (Q + 1)},
    }
    of = (claim.subject.form.measure or claim.subject.result.measure).of
    left = z.mean_gradient() if of == SYNCHRONIZED.of else z.mean_gradient_inside(Q * R if of == ALL_ITERATES.of else R)
    values = {name: value[:, None] for name, value in found.items()}
    return MeasuredRuns(left[:, None], values, dict.fromkeys(MET, True))


FAMILY = Family(
    measure,
    {"gamma": "eta"},
    values={"interval": (1,), "local_steps": (1, 2, 8, 64)},
    given=frozenset({"c"}),
    whole=True,
)
