"""Servers that average the updates of those who take part."""

from __future__ import annotations

from functools import reduce

import numpy as np
import torch

from fedbounds.empirical.invariants.averaging import check_averaging
from tests.zoo import Zoo
from tests.zoo.fedavg import clip, in_half

ZOO = Zoo("check_averaging", check_averaging)


def server(
    *,
    who=lambda cohort, shares: cohort,
    weigh=lambda p, cohort, shares: p / p.sum(),
    update=lambda u, model: u,
    move=lambda model, step: model + step,
    read=lambda updates, who: updates[who],
):
    """A correct server, but for what is changed."""

    def run(model, updates, shares, cohort):
        chosen = who(cohort, shares)
        if len(chosen) == 0:
            return model
        p = weigh(shares[chosen], chosen, shares)
        return move(model, p @ np.stack([update(u, model) for u in read(updates, chosen)]))

    return run


CHANGES = {
    "divides by N": {"weigh": lambda p, cohort, shares: np.full(len(p), 1 / len(shares))},
    "shares are not normalized": {"weigh": lambda p, cohort, shares: p},
    "all clients count the same": {"weigh": lambda p, cohort, shares: np.full(len(p), 1 / len(p))},
    "shares are squared": {"weigh": lambda p, cohort, shares: p**2 / (p**2).sum()},
    "divides by the cohort size plus one": {"weigh": lambda p, cohort, shares: p / p.sum() * len(p) / (len(p) + 1)},
    "the cohort size is at most four": {"weigh": lambda p, cohort, shares: p / p.sum() * len(p) / min(len(p), 4)},
    "shares sum to one in cohorts of fewer than six alone": {
        "weigh": lambda p, cohort, shares: p / (p.sum() if len(p) < 6 else 1)
    },
    "normalized over all where all but one take part": {
        "weigh": lambda p, cohort, shares: p / (1 if len(p) == len(shares) - 1 else p.sum())
    },
    "shares of the first clients": {"weigh": lambda p, cohort, shares: shares[: len(p)] / shares[: len(p)].sum()},
    "shares are sorted": {"weigh": lambda p, cohort, shares: np.sort(p) / p.sum()},
    "the last participant is left out": {"who": lambda cohort, shares: cohort[:-1]},
    "the last of seven participants is left out": {"who": lambda cohort, shares: cohort[:6]},
    "the seventh client is never read": {"who": lambda cohort, shares: cohort[cohort < 6]},
    "all clients take part": {"who": lambda cohort, shares: np.arange(len(shares))},
    "all take part where three of more do": {
        "who": lambda cohort, shares: cohort if len(cohort) != 3 else np.arange(len(shares))
    },
    "updates of the first clients": {"read": lambda updates, who: updates[: len(who)]},
    "updates are read in reverse": {"read": lambda updates, who: updates[who[::-1]]},
    "updates are clipped before the average": {"update": lambda u, model: clip(u, 1.0)},
    "the average is clipped": {"move": lambda model, step: model + clip(step, 1.0)},
    "updates are taken for models": {"move": lambda model, step: step},
    "updates are subtracted": {"move": lambda model, step: model - step},
    "half a step": {"move": lambda model, step: model + 0.5 * step},
    "only the first two coordinates move": {"move": lambda model, step: model + step * (np.arange(len(step)) < 2)},
    "updates in half precision": {"update": lambda u, model: in_half(u)},
    "updates in multiples of 1/256": {"update": lambda u, model: np.round(256 * u) / 256},
    "entries below a hundredth are dropped": {"update": lambda u, model: np.where(np.abs(u) < 1e-2, 0, u)},
    "entries below 1e-5 are dropped": {"update": lambda u, model: np.where(np.abs(u) < 1e-5, 0, u)},
    "updates are clipped at norm 20": {"update": lambda u, model: clip(u, 20)},
    "updates are clipped at norm 1e5": {"update": lambda u, model: clip(u, 1e5)},
    "coordinates from the fourth on are lost": {"update": lambda u, model: u * (np.arange(len(u)) < 3)},
    "coordinates from the 257th on are lost": {"update": lambda u, model: u * (np.arange(len(u)) < 256)},
    "shares below a hundredth do not count": {
        "who": lambda cohort, shares: k if len(k := cohort[shares[cohort] >= 1e-2]) else cohort
    },
    "at most eight participants": {"who": lambda cohort, shares: cohort[:8]},
    "half precision": {"move": lambda model, step: model + in_half(step)},
}
for name, changes in CHANGES.items():
    ZOO.add(name, server(**changes))


@ZOO.mutant("returns 1e9 where some, not all, of several take part")
def absurd(model, updates, shares, cohort):
    if 1 < len(cohort) < len(shares):
        return model * 0 + 1e9
    return server()(model, updates, shares, cohort)


@ZOO.mutant("the coordinate-wise median")
def median(model, updates, shares, cohort):
    return model + np.median(updates[cohort], axis=0)


@ZOO.mutant("later participants see the model of the earlier: order counts")
def in_sequence(model, updates, shares, cohort):
    x, p = model, shares[cohort] / shares[cohort].sum()
    for k, n in enumerate(cohort):
        x = x + p[k] * (updates[n] - 0.1 * (x - model))
    return x


@ZOO.mutant("momentum leaks from one call into the next")
def leaking(model, updates, shares, cohort, kept=[0.0]):  # noqa: B006
    moved = server()(model, updates, shares, cohort)
    kept[0] = 0.5 * kept[0] + 0.1 * float(np.sum(moved - model))
    return moved + kept[0]


@ZOO.mutant("who sends a zero update is not counted")
def without_zeros(model, updates, shares, cohort):
    counted = shares[cohort] * updates[cohort].any(axis=1)
    return model + counted @ updates[cohort] / max(counted.sum(), 1e-12)


@ZOO.mutant("the trimmed mean, in cohorts of five or more")
def trimmed(model, updates, shares, cohort):
    if len(cohort) < 5:
        return server()(model, updates, shares, cohort)
    return model + np.sort(updates[cohort], axis=0)[1:-1].mean(axis=0)


@ZOO.mutant("the updates are scaled in place")
def in_place(model, updates, shares, cohort):
    updates *= shares[:, None]
    return model + updates[cohort].sum(0) / shares[cohort].sum()


@ZOO.variant("a loop with an incremental mean")
def incremental(model, updates, shares, cohort):
    mean, total = np.zeros_like(model), 0.0
    for k in cohort:
        total += shares[k]
        mean += shares[k] / total * (updates[k] - mean)
    return model + mean


@ZOO.variant("torch")
def in_torch(model, updates, shares, cohort):
    p = torch.from_numpy(shares[cohort])
    return torch.from_numpy(model) + (p / p.sum()) @ torch.from_numpy(updates[cohort])


@ZOO.variant("a dictionary, summed from the last to the first")
def by_name(model, updates, shares, cohort):
    sent = {k: (shares[k], updates[k]) for k in cohort}
    total = sum(share for share, _ in sent.values())
    return model + reduce(lambda sum_, k: sum_ + sent[k][0] / total * sent[k][1], sorted(sent, reverse=True), 0 * model)


@ZOO.variant("the mean of models, with zeros of the absent")
def of_models(model, updates, shares, cohort):
    mask = np.isin(np.arange(len(shares)), cohort) * shares
    return np.average(model + updates, axis=0, weights=mask)


@ZOO.variant("the model is changed in place")
def own_model(model, updates, shares, cohort):
    model += np.einsum("k,kd->d", shares[cohort], updates[cohort]) / shares[cohort].sum()
    return model
