"""TDCD with one bug each, and right in other styles."""

from __future__ import annotations

import numpy as np
import torch

from fedbounds.empirical.papers.tdcd.invariants import check_vertical
from fedbounds.empirical.papers.tdcd.misreadings import Reading
from fedbounds.empirical.papers.tdcd.numpy_reference import tdcd
from tests.papers.tdcd.planted_tdcd import ALL, DRAWN, LOOP, MEAN, MINE, OTHERS, REMEMBER, STEP, planted
from tests.zoo import Kept, Zoo

TOLD = "told = np.array([table.embed(j, block, batch) for j, block in enumerate(blocks)])"
LIST, FOR_J, FOR_IDS = (
    "blocks, models = list(table.starts)",
    "for j, block in enumerate(blocks):",
    "in table.clients[j]",
)

CHANGES = {
    # local steps
    "the last local step is lost": [(LOOP, "for _ in range(local_steps - 1)")],
    "the last of 5 and more local steps is lost": [(LOOP, "for _ in range(local_steps - (local_steps >= 5))")],
    "at most 8 local steps": [(LOOP, "for _ in range(min(local_steps, 8))")],
    "from the sixth on the gradient of the start": [
        (LOOP, "for q in range(local_steps)"),
        (STEP, STEP.replace("gradient(j, own,", "gradient(j, own if q < 5 else block,")),
    ],
    # embeddings
    "embeddings of the round before": [
        *REMEMBER,
        ("batch) for j, block in enumerate(blocks)", "batch) for j, block in enumerate(before)"),
    ],
    "embeddings of the round before, from round 6 on": [
        *REMEMBER,
        ("batch) for j, block in enumerate(blocks)", "batch) for j, block in enumerate(before if r >= 6 else blocks)"),
    ],
    "embeddings of a batch that comes again are not renewed": [
        (LIST, "cache = {}\n    " + LIST),
        (TOLD, f"{TOLD}\n        told = cache.setdefault(tuple(batch), told)"),
    ],
    "silos one after another": [
        (
            OTHERS,
            "0 * told[j] + sum(table.embed(l, (after + blocks[j:])[l], batch) for l in range(len(told)) if l != j)",
        )
    ],
    "the neighbour's embeddings alone": [(OTHERS, "(told[(j + 1) % len(told)] if len(told) > 1 else 0 * told[j])")],
    "the fifth silo and later are not heard": [(OTHERS, "told[:4].sum(0) - (told[j] if j < 4 else 0)")],
    "the sum loses what was taken from it": [
        (OTHERS, "total - told[j]"),
        (TOLD, f"{TOLD}\n        total = told.sum(0)"),
        ("after.append(", "total -= told[j] * (j >= 3)\n            after.append("),
    ],
    "the own embedding counts twice": [(OTHERS, "told.sum(0)")],
    "the gradient at the own embedding of the start": [("table.gradient(j, own,", "table.gradient(j, block,")],
    # hubs and clients
    "the hub divides by the clients of silo 0": [(MEAN, "np.sum(copies, axis=0) / len(table.clients[0])")],
    "the hub averages over 3 clients at most": [(MEAN, "np.mean(copies[:3], axis=0)")],
    "the hub keeps the first client's copy from round 8 on": [
        (MEAN, "np.mean(copies if r < 8 else copies[:1], axis=0)")
    ],
    "the hub sums the updates": [(MEAN, "block + np.sum([own - block for own in copies], axis=0)")],
    "clients weigh by their shards": [
        (MEAN, "np.average(copies, axis=0, weights=[len(ids) for ids in table.clients[j]])")
    ],
    "clients weigh by their part of the batch": [
        (MEAN, "np.average(copies, axis=0, weights=[np.isin(batch, ids).sum() for ids in table.clients[j]])")
    ],
    "the clients of silo 3 in the later ones": [(FOR_IDS, "in table.clients[min(j, 3)]")],
    "the fourth client and later one after another": [
        ("ids)), block", "ids)), copies[-1] if len(copies) > 2 else block")
    ],
    "the sixth silo never moves": [("after.append(", "after.append(block if j == 5 else ")],
    # batches
    "the batch of a period that is one too long": [(DRAWN, "draw(r * (local_steps + 1))")],
    "the batch of the round before, from round 10 on": [(DRAWN, "draw((r - (r >= 10)) * local_steps)")],
    "batches are drawn by the round": [(DRAWN, "draw(r)")],
    "batches repeat after 8 rounds": [(DRAWN, "draw(r % 8 * local_steps)")],
    "at most 8 samples of a batch": [
        (DRAWN, "draw(r * local_steps)[:8]"),
        (MINE, "np.flatnonzero(np.isin(batch, ids)) if np.isin(batch, ids).any() else np.arange(1)"),
    ],
    "samples by position": [("others[mine]", "others[: len(mine)]")],
    "divides by the batch": [(STEP, STEP + " * len(mine) / len(batch)")],
    "samples 8 and later belong to nobody": [
        (MINE, "(lambda m: m[batch[m] < 8] if (batch[m] < 8).any() else m)(np.flatnonzero(np.isin(batch, ids)))")
    ],
    # sizes and rounds
    "the last parameter never moves in odd dimensions": [
        (STEP, STEP + " * (np.arange(len(own)) < max(2, len(own) - len(own) % 2))")
    ],
    "half of the step from round 12 on": [(STEP, STEP.replace("step_size", "step_size / (1 + (r >= 12))"))],
    "the last of 10 and more rounds is lost": [
        ("models.append(np", "models.append(models[-1] if 9 <= r == rounds - 1 else np")
    ],
    "extrapolated": [*REMEMBER, ("ids)), block", "ids)), block + (block - before[j]) / 8")],
    "squares for logistic": [
        (
            STEP,
            STEP.replace(
                "table.gradient(j, own, batch[mine], others[mine])",
                "table.pulled(j, batch[mine], others[mine] + table.embed(j, own, batch[mine])"
                " - table.labels[batch[mine]])",
            ),
        )
    ],
    "a step from the start in place": [(STEP, "own -= step_size * table.gradient(j, own, batch[mine], others[mine])")],
    "changes the features": [(FOR_J, "table.features[0][:] *= 0.5\n        " + FOR_J)],
    "changes the ids of the fourth client": [
        (FOR_J, "[ids.__setitem__(0, ids[-1]) for silo in table.clients for ids in silo[3:]]\n        " + FOR_J)
    ],
    "noise that nobody asked for": [(STEP, STEP + " * (1 + 1e-6 * np.random.random())")],
}


def derivative(features="table.features[j]", labels="table.labels", residual="z - y"):
    """A local step from derivatives of its own, but for what is changed."""
    total = f"others[mine] + {features}[batch[mine]] @ own + table.offsets[j][batch[mine]]"
    slope = f"(lambda z, y: ({residual}) if table.loss == 'least squares' else 1 / (1 + np.exp(-z)) - y)"
    gradient = f"{slope}({total}, {labels}[batch[mine]]) @ {features}[batch[mine]] / len(mine)"
    return [(STEP, STEP.replace("table.gradient(j, own, batch[mine], others[mine])", gradient))]


CHANGES |= {
    "labels are 0 or 1": derivative(labels="(table.labels > 0.5)"),
    "labels are whole numbers": derivative(labels="table.labels.astype(int)"),
    "residuals are clipped at 8": derivative(residual="np.clip(z - y, -8, 8)"),
    "features in half precision": derivative(features="table.features[j].astype(np.float16).astype(float)"),
    "features are clipped at 3": derivative(features="np.clip(table.features[j], -3, 3)"),
    "the step size is a power of two": [(STEP, STEP.replace("step_size", "2 ** np.round(np.log2(step_size))"))],
    "half of the step from round 60 on": [(STEP, STEP.replace("step_size", "step_size / (1 + (r >= 60))"))],
    "half of the step after 50 iterations": [
        (LOOP, "for q in range(local_steps)"),
        (STEP, STEP.replace("step_size", "step_size / (1 + (r * local_steps + q >= 50))")),
    ],
    "at most 10 local steps": [(LOOP, "for _ in range(min(local_steps, 10))")],
    "the batch is sorted, and the others' sum is not": [(STEP, STEP.replace("batch[mine]", "np.sort(batch[mine])"))],
    "round 30 uses the batch of round 29": [(DRAWN, "draw((r if r != 30 else 29) * local_steps)")],
    "the median of more than 4 copies": [
        (MEAN, "(np.median(copies, axis=0) if len(copies) > 4 else np.mean(copies, axis=0))")
    ],
}
MUTANTS = {name: planted(*changes) for name, changes in CHANGES.items()}
IN_STEPS = {"refreshed": "embeddings in every local step", "averaged": "averages in every local step"}
MUTANTS |= {IN_STEPS[name]: planted(*ALL[name][1], of=ALL[name][0]) for name in IN_STEPS}


# --- correct, in other styles -----------------------------------------------------------------------------------------


def matrices(table, draw, *, rounds, local_steps, step_size):
    """Gradients from the features themselves, all silos in one matrix, float lists returned."""
    theta = np.concatenate(table.starts)
    models = [theta.tolist()]
    for r in range(rounds):
        batch = np.sort(draw(r * local_steps))
        scores = [
            X[batch] @ theta[b] + o[batch] for X, o, b in zip(table.features, table.offsets, table.blocks, strict=True)
        ]
        new = theta.copy()
        for j, b in enumerate(table.blocks):
            rest = sum((s for k, s in enumerate(scores) if k != j), np.zeros(len(batch)))
            mean = np.zeros(b.stop - b.start)
            for ids in table.clients[j]:
                keep = [p in set(ids.tolist()) for p in batch]
                X, y, z = (
                    table.features[j][batch[keep]],
                    table.labels[batch[keep]],
                    rest[keep] + table.offsets[j][batch[keep]],
                )
                own = theta[b].copy()
                for _ in range(local_steps):
                    total = z + X @ own
                    slope = (total if table.loss == "least squares" else 1 / (1 + np.exp(-total))) - y
                    own -= step_size * X.T @ slope / len(y)
                mean += own / len(table.clients[j])
            new[b] = mean
        theta = new
        models.append(theta.tolist())
    return models


def deltas(table, draw, *, rounds, local_steps, step_size):
    """Clients send updates, one client of all silos after another; the hub adds their mean."""
    theta, trace = [np.array(s) for s in table.starts], [np.concatenate(table.starts)]
    for r in range(rounds):
        batch = draw(r * local_steps)
        place = {int(p): k for k, p in enumerate(batch)}
        phi = np.stack([table.embed(j, theta[j], batch) for j in range(table.silos)])
        moves = [np.zeros_like(block) for block in theta]
        for j, silo in enumerate(table.clients):
            for ids in reversed(silo):
                rows = [place[int(p)] for p in ids if int(p) in place]
                own, others = theta[j].copy(), np.delete(phi, j, axis=0).sum(axis=0)[rows]
                for _ in range(local_steps):
                    own = own - step_size * table.gradient(j, own, batch[rows], others)
                moves[j] += (own - theta[j]) / len(silo)
        theta = [block + move for block, move in zip(theta, moves, strict=True)]
        trace.append(np.concatenate(theta))
    return trace


def autograd(table, draw, *, rounds, local_steps, step_size):
    """torch, with derivatives of the loss by torch."""
    X = [torch.from_numpy(x) for x in table.features]
    o, y = torch.from_numpy(table.offsets), torch.from_numpy(table.labels)
    theta = [torch.from_numpy(start) for start in table.starts]
    models = [torch.cat(theta)]
    for r in range(rounds):
        drawn = draw(r * local_steps)
        batch = torch.from_numpy(drawn)
        phi = torch.stack([X[j][batch] @ theta[j] + o[j][batch] for j in range(len(X))])
        after = []
        for j, silo in enumerate(table.clients):
            copies = []
            for ids in silo:
                at = torch.from_numpy(np.flatnonzero(np.isin(drawn, ids)))
                here = batch[at]
                rest, features, labels = (phi.sum(0) - phi[j])[at] + o[j][here], X[j][here], y[here]
                own = theta[j].clone().requires_grad_()
                for _ in range(local_steps):
                    z = rest + features @ own
                    loss = (
                        (z - labels) ** 2 / 2
                        if table.loss == "least squares"
                        else torch.nn.functional.softplus(z) - labels * z
                    )
                    (g,) = torch.autograd.grad(loss.mean(), own)
                    own = (own - step_size * g).detach().requires_grad_()
                copies.append(own.detach())
            after.append(torch.stack(copies).mean(0))
        theta = after
        models.append(torch.cat(theta))
    return models


CORRECT = {
    "plain": tdcd,
    "reading": Reading(),
    "matrices": matrices,
    "deltas": deltas,
    "autograd": autograd,
    "single precision": lambda *positional, **named: tdcd(*positional, **named).astype(np.float32),
}
ZOO = Zoo(
    "check_vertical",
    check_vertical,
    {name: Kept(run, {}) for name, run in MUTANTS.items()},
    {name: Kept(run, {}) for name, run in CORRECT.items()},
)
