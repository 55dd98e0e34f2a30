"""A client's round of FedMRN with one bug each, and right in other styles."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.fedmrn.invariants import check_masking, masked_round
from tests.papers.tdcd.planted_tdcd import planted
from tests.zoo import Kept, Zoo


def round_by_hand(gradient, model, noise, chances, coins, step_size, masks):
    """Algorithm 1, the client, coordinate by coordinate where something is decided."""
    S, u = len(coins), 0 * model
    other = -noise if masks == "signed" else 0 * noise
    for tau in range(1, S + 1):
        p = (u - other) / (noise - other)
        masked = np.where(chances[tau - 1] < p, noise, other)
        clipped = np.clip(u, np.minimum(noise, other), np.maximum(noise, other))
        chosen = coins[tau - 1] < tau / S
        g = gradient(model + np.where(chosen, masked, clipped))
        u = u - step_size * g
    p = (u - other) / (noise - other)
    return np.where(chances[S] < p, noise, other)


MASKED, UPLOAD = "np.where(chances[tau - 1] < p, noise, other)", "return np.where(chances[S] < p, noise, other)"
CHOSEN, CLIP = "coins[tau - 1] < tau / S", "np.clip(u, np.minimum(noise, other), np.maximum(noise, other))"
ASKED, STEP, FOR = (
    "g = gradient(model + np.where(chosen, masked, clipped))",
    "u = u - step_size * g",
    "for tau in range(1, S + 1):",
)
LAST = "    p = (u - other) / (noise - other)\n    return"
INDEX = "np.arange(len(model))"

CHANGES = {
    # probabilities and signs
    "the upload has the other sign": [(UPLOAD, "return -np.where(chances[S] < p, noise, other)")],
    "masks of local steps are flipped": [(MASKED, "np.where(chances[tau - 1] < p, other, noise)")],
    "the upload's mask is flipped": [(UPLOAD, "return np.where(chances[S] < p, other, noise)")],
    "a signed mask has the probability of a binary one": [(LAST, "    p = u / noise\n    return")],
    "a signed mask has probability one half": [
        (LAST, "    p = np.where(masks == 'signed', 0.5, u / noise)\n    return")
    ],
    "the size of the noise in place of the noise": [(LAST, "    p = (u - other) / np.abs(noise - other)\n    return")],
    "masks of the sign": [(LAST, "    p = u * noise > 0\n    return")],
    "the upload's probability without the last gradient": [
        (STEP, "before, u = u, u - step_size * g"),
        (LAST, LAST.replace("(u -", "(before -")),
    ],
    "the probability is squared": [
        (LAST, LAST.replace("(u - other) / (noise - other)", "((u - other) / (noise - other)).clip(0, 1) ** 2"))
    ],
    "chances of at least a sixteenth": [
        (LAST, LAST.replace("(u - other) / (noise - other)", "((u - other) / (noise - other)).clip(1 / 8, 1)"))
    ],
    "the upload is the update, cut off": [(UPLOAD, f"return {CLIP}")],
    "the upload is scaled by 1.001": [(UPLOAD, UPLOAD + " * 1.001")],
    "the upload is a fifth where noise is above 0.9": [(UPLOAD, UPLOAD + " * np.where(noise > 0.9, 0.2, 1)")],
    # randomness
    "the upload is decided by the numbers of the last step": [(UPLOAD, UPLOAD.replace("chances[S]", "chances[S - 1]"))],
    "the numbers of the first step decide in all": [(MASKED, MASKED.replace("tau - 1", "0"))],
    "the numbers of the fourth step decide in the later ones": [(MASKED, MASKED.replace("tau - 1", "min(tau - 1, 3)"))],
    "the coins of the sixth step decide in the later ones": [(CHOSEN, CHOSEN.replace("tau - 1]", "min(tau - 1, 5)]"))],
    "one number for all coordinates": [(UPLOAD, UPLOAD.replace("chances[S]", "chances[S][0]"))],
    "one coin for all coordinates": [(CHOSEN, CHOSEN.replace("tau - 1]", "tau - 1][0]"))],
    "coordinates beyond the fourth have the numbers of the first": [
        (UPLOAD, UPLOAD.replace("chances[S]", f"chances[S][{INDEX} % 4]"))
    ],
    "coins decide masks too": [(MASKED, MASKED.replace("chances", "coins"))],
    "a number of its own decides": [
        (UPLOAD, UPLOAD.replace("chances[S]", "np.random.default_rng().random(len(model))"))
    ],
    "the noise of the neighbour beyond 4 coordinates": [
        (MASKED, MASKED.replace(" noise", " (np.roll(noise, 1) if len(noise) > 4 else noise)"))
    ],
    # progressive masking
    "masks come in with chance (tau - 1)/S": [(CHOSEN, "coins[tau - 1] < (tau - 1) / S")],
    "masks come in with chance tau/(S + 1)": [(CHOSEN, "coins[tau - 1] < tau / (S + 1)")],
    "all is masked from the seventh step on": [(CHOSEN, CHOSEN + " + (tau >= 7)")],
    "all is masked in every step": [(CHOSEN, "coins[tau - 1] < 2")],
    "nothing is masked but the upload": [(CHOSEN, "coins[tau - 1] < 0")],
    "the last step masks by coin": [(CHOSEN, "coins[tau - 1] < min(tau, max(1, S - 1)) / S")],
    "a coordinate stays masked": [(CHOSEN, "(coins[:tau] < tau / S).any(0)")],
    "what is not masked is not cut off": [(CLIP, "u")],
    "cut off from below alone": [(CLIP, "np.maximum(u, np.minimum(noise, other))")],
    "binary noise below zero is cut off at zero": [(CLIP, "np.clip(u, np.minimum(noise, other), np.abs(noise))")],
    # the update
    "the update is cut off in every step": [
        (STEP, "u = np.clip(u - step_size * g, np.minimum(noise, other), np.maximum(noise, other))")
    ],
    "gradients stop outside the noise": [(STEP, "u = u - step_size * np.where(u == clipped, g, 0)")],
    "gradients pass the mask": [(STEP, "u = u - step_size * g * (masked != other)")],
    "the update begins again after the fifth step": [(STEP, "u = u * (tau != 6) - step_size * g")],
    "the fifth step and later are half as long": [(STEP, "u = u - step_size * g / (1 + (tau >= 5))")],
    "the last of 8 and more steps is lost": [(STEP, "u = u - step_size * g * (not tau == S >= 8)")],
    "gradients are cut off at 4": [(STEP, "u = u - step_size * g.clip(-4, 4)")],
    "momentum": [(FOR, "v = 0 * u\n    " + FOR), (STEP, "v = 0.1 * v + g\n        u = u - step_size * v")],
    "the model moves along": [(STEP, STEP + "\n        model = model + 0 if tau < 3 else model - 1e-3 * g")],
    "step sizes above one half are halved": [(STEP, "u = u - min(step_size, 0.5) * g")],
    # sizes
    "the last coordinate is dropped": [(UPLOAD, UPLOAD + f" * ({INDEX} < max(1, len(model) - 1))")],
    "the last coordinate is dropped in odd dimensions": [
        (UPLOAD, UPLOAD + f" * ({INDEX} < max(2, len(model) - len(model) % 2))")
    ],
    "the fifth coordinate never moves": [(STEP, STEP + f" * ({INDEX} != 4)")],
    "numbers are one place off in 4 and more dimensions": [
        (MASKED, "np.where(np.roll(chances[tau - 1], len(model) // 4) < p, noise, other)")
    ],
    # input and state
    "changes the model": [(STEP, STEP + "\n        model += 0\n        model[0] += 1e-3 * (tau == S)")],
    "changes the noise": [
        (UPLOAD, "upload = np.where(chances[S] < p, noise, other)\n    noise *= -1\n    return upload")
    ],
    "changes the numbers that decide": [
        (UPLOAD, "upload = np.where(chances[S] < p, noise, other)\n    chances[:] = 0\n    return upload")
    ],
}
CHANGES |= {
    "the upload's probability is a step older from 9 steps on": [
        ("        g = gradient", "        old = u\n        g = gradient"),
        (LAST, LAST.replace("(u - other)", "((old if S > 8 else u) - other)")),
    ],
    "the eighth coordinate shares the coin of the seventh": [
        (CHOSEN, f"coins[tau - 1][np.minimum({INDEX}, 6)] < tau / S")
    ],
}
MUTANTS = {name: planted(*changes, of=round_by_hand) for name, changes in CHANGES.items()}


def _left_over():
    """What is left of the update goes into the next round of the same model."""
    kept = {}

    def run(gradient, model, noise, *numbers):
        u = kept.pop(len(model), 0 * model)
        upload = round_by_hand(gradient, model + 1e-3 * u, noise, *numbers)
        kept[len(model)] = upload
        return upload

    return run


MUTANTS["what is left over goes into the next round"] = _left_over()


# --- correct, in other styles -----------------------------------------------------------------------------------------


def by_coordinates(gradient, model, noise, chances, coins, step_size, masks):
    """Python floats, a list returned."""
    d, S, u = len(model), len(coins), [0.0] * len(model)
    low = [-abs(n) if masks == "signed" else min(0.0, n) for n in noise]
    high = [abs(n) if masks == "signed" else max(0.0, n) for n in noise]

    def drawn(k, number):
        chance = u[k] / noise[k] if masks == "binary" else (u[k] / noise[k] + 1) / 2
        return float(noise[k]) if number < chance else -float(noise[k]) if masks == "signed" else 0.0

    for s in range(S):
        point = [
            model[k] + (drawn(k, chances[s][k]) if S * coins[s][k] < s + 1 else min(max(u[k], low[k]), high[k]))
            for k in range(d)
        ]
        u = [a - step_size * b for a, b in zip(u, gradient(np.array(point)), strict=True)]
    return [drawn(k, chances[S][k]) for k in range(d)]


def tensors(gradient, model, noise, chances, coins, step_size, masks):
    """torch, masks of zeros and ones."""
    w, n, c, b = (torch.from_numpy(values) for values in (model, noise, chances, coins))
    signed, S, u = masks == "signed", len(coins), torch.zeros_like(w)

    def masked(numbers):
        mask = (numbers < ((u + n) / (2 * n) if signed else u / n)).double()
        return n * (2 * mask - 1) if signed else n * mask

    for s in range(S):
        inside = torch.clamp(u, torch.minimum(n, -n if signed else 0 * n), torch.maximum(n, -n if signed else 0 * n))
        at = w + torch.where(b[s] < (s + 1) / S, masked(c[s]), inside)
        u = u - step_size * torch.from_numpy(gradient(at.numpy()))
    return masked(c[S])


class Client:
    """A class that keeps the gradients, and adds them up anew in every step."""

    def __call__(self, gradient, model, noise, chances, coins, step_size, masks):
        self.gradients, self.n, self.signed = [np.zeros_like(model)], noise, masks == "signed"
        self.step_size = step_size
        for tau, (numbers, coin) in enumerate(zip(chances, coins, strict=False), start=1):
            keep = coin * len(coins) >= tau
            self.gradients.append(gradient(model + keep * self.cut() + (1 - keep) * self.mask(numbers)))
        return self.mask(chances[-1])

    @property
    def u(self):
        return -self.step_size * np.add.reduce(self.gradients)

    def cut(self):
        share = (self.u / self.n).clip(-1 if self.signed else 0, 1)
        return share * self.n

    def mask(self, numbers):
        one = numbers < (self.u / self.n + self.signed) / (1 + self.signed)
        return self.n * (np.where(one, 1, -1) if self.signed else one)


CORRECT = {
    "by hand": round_by_hand,
    "the reference": masked_round,
    "by coordinates": by_coordinates,
    "tensors": tensors,
    "a class": Client(),
    "single precision": lambda *numbers: round_by_hand(*numbers).astype(np.float32),
}
ZOO = Zoo(
    "check_masking",
    check_masking,
    {name: Kept(run, {}) for name, run in MUTANTS.items()},
    {name: Kept(run, {}) for name, run in CORRECT.items()},
)
