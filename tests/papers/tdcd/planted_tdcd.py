"""TDCD written out by hand, and the same with one bug."""

import inspect

import numpy as np


def tdcd_by_hand(table, draw, *, rounds, local_steps, step_size):
    """Algorithm 1, one client after another."""
    silos = range(table.silos)
    theta = before = list(table.starts)
    models = [np.concatenate(theta)]
    for r in range(rounds):
        batch = draw(r * local_steps)
        phi = [table.embed(j, theta[j], batch) for j in silos]
        after = []
        for j in silos:
            others = sum(phi) - phi[j]
            copies = []
            for ids in table.clients[j]:
                mine = [i for i, p in enumerate(batch) if p in ids]
                own = theta[j]
                for q in range(local_steps):  # noqa: B007  a bug may use it
                    own = own - step_size * table.gradient(j, own, batch[mine], others[mine])
                copies.append(own)
            after.append(sum(copies) / len(copies))
        before, theta = theta, after
        models.append(np.concatenate(theta))
    assert len(before) == table.silos
    return models


def in_step_by_hand(table, draw, *, rounds, local_steps, step_size):
    """Algorithm 1, all clients of all silos one local step after another."""
    silos = range(table.silos)
    theta = list(table.starts)
    models = [np.concatenate(theta)]
    for r in range(rounds):
        batch = draw(r * local_steps)
        at = [[np.isin(batch, ids) for ids in table.clients[j]] for j in silos]
        copies = [[theta[j]] * len(table.clients[j]) for j in silos]
        phi = np.array([table.embed(j, theta[j], batch) for j in silos])
        for _ in range(local_steps):
            stepped = [
                [
                    own - step_size * table.gradient(j, own, batch[at[j][k]], (phi.sum(0) - phi[j])[at[j][k]])
                    for k, own in enumerate(copies[j])
                ]
                for j in silos
            ]
            copies = stepped
        theta = [np.mean(copies[j], axis=0) for j in silos]
        models.append(np.concatenate(theta))
    return models


def planted(*changes, of=tdcd_by_hand):
    """The run with one bug, which may take more than one change."""
    source = inspect.getsource(of)
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    space = {"np": np}
    exec(source, space)
    return space[of.__name__]


STEP = "own = own - step_size * table.gradient(j, own, batch[mine], others[mine])"
MEAN = "sum(copies) / len(copies)"
OTHERS = "others = sum(phi) - phi[j]"
MINE = "mine = [i for i, p in enumerate(batch) if p in ids]"
REFRESH = """for j in silos:
                for k, own in enumerate(copies[j]):
                    phi[j][at[j][k]] = table.embed(j, own, batch[at[j][k]])
            stepped = ["""
REDRAW = f"""batch = draw(r * local_steps + q)
                    others = sum(table.embed(l, theta[l], batch) for l in silos) - table.embed(j, theta[j], batch)
                    {MINE}
                    {STEP}"""
MOVES_ALL = """total = sum(table.embed(l, view[l], batch[mine]) for l in silos)
                    slopes = table.slopes(total, batch[mine])
                    view = [view[l] - step_size * table.pulled(l, batch[mine], slopes) for l in silos]"""

# name: the changes, the loop they are made in, the invariant that speaks of it, how its cause begins
BUGS = {
    "printed": ([("range(local_steps)", "range(local_steps - 1)")], "virtual recursion", "line 32 as printed"),
    "one step": ([("range(local_steps)", "range(1)")], "closed form", "it does one local step"),
    "redrawn": ([(STEP, REDRAW)], "virtual recursion", "the batch is redrawn in every local step"),
    "by round": ([("draw(r * local_steps)", "draw(r)")], "restarted rounds", "it draws by the number of the round"),
    "stale others": (
        [("table.embed(j, theta[j], batch)", "table.embed(j, before[j], batch)")], "one local step",
        "the embeddings are those of the round before",
    ),
    "stale own": ([("table.gradient(j, own,", "table.gradient(j, theta[j],")], "closed form", "stale own embedding"),
    "no others": ([(OTHERS, "others = 0 * phi[j]")], "only the sum counts", "the others' embeddings are left out"),
    "own twice": ([(OTHERS, "others = sum(phi)")], "one local step", "the own embedding counts twice"),
    "averaged embeddings": (
        [(OTHERS, "others = (sum(phi) - phi[j]) / max(1, len(phi) - 1)")], "split silos",
        "the others' embeddings are averaged",
    ),
    "sum of copies": ([(MEAN, "sum(copies)")], "merged clients", "the hub sums the clients' copies"),
    "sum of updates": (
        [(MEAN, "theta[j] + sum(own - theta[j] for own in copies)")], "merged clients", "sum, not mean, over clients",
    ),
    "first client": ([(MEAN, "copies[0]")], "relabeled", "the hub keeps the first client's copy"),
    "by shards": (
        [(MEAN, "np.average(copies, axis=0, weights=[len(ids) for ids in table.clients[j]])")], "unbiased",
        "clients weigh by how many samples they hold",
    ),
    "by batches": (
        [(MEAN, "np.average(copies, axis=0, weights=[np.isin(batch, ids).sum() for ids in table.clients[j]])")],
        "virtual recursion", "clients weigh by how many samples of the batch",
    ),
    "sum of samples": ([(STEP, STEP + " * len(mine)")], "merged clients", "a client's gradient is the sum"),
    "over the batch": (
        [(STEP, STEP + " * len(mine) / len(batch)")], "merged clients", "a client divides by the length of the batch",
    ),
    "rows by position": (
        [("copies = []", "copies, done = [], 0"),
         (MINE, "mine = list(range(done, done + np.isin(batch, ids).sum())); done += len(mine)")],
        "rows by id", "the batch is dealt to the clients by position",
    ),
    "others by position": (
        [("others[mine]", "others[: len(mine)]")], "rows by id", "the others' sum is read by position",
    ),
    "one partition": ([("table.clients[j]", "table.clients[0]")], "relabeled", "the rows of silo 0's clients"),
    "silos in turn": (
        [(OTHERS, "others = 0 * phi[j] + sum(table.embed(l, (after + theta[j:])[l], batch) for l in silos if l != j)")],
        "relabeled", "silos go one after another",
    ),
    "other blocks": (
        [("own = theta[j]", "view = list(theta)"), (STEP, MOVES_ALL), ("copies.append(own)", "copies.append(view[j])")],
        "others as they were", "clients move the blocks of other silos",
    ),
    "clients in turn": ([("own = theta[j]", "own = copies[-1] if copies else theta[j]")], "merged clients", None),
    "weight decay": ([(STEP, STEP.replace("own - ", "0.9 * own - "))], "translation", None),
    "clipped": (
        [(STEP, "own = own - step_size * table.gradient(j, own, batch[mine], others[mine]).clip(-0.2, 0.2)")],
        "rotation", None,
    ),
    "signs": (
        [(STEP, "own = own - step_size * np.sign(table.gradient(j, own, batch[mine], others[mine]))")], "scaling", None,
    ),
    "extrapolated": ([("own = theta[j]", "own = theta[j] + (theta[j] - before[j]) / 2")], "restarted rounds", None),
    "shorter steps": ([(STEP, STEP.replace("step_size", "step_size / local_steps"))], "stability", None),
    "steps of silos": ([(STEP, STEP.replace("step_size", "step_size * (1 + j)"))], "relabeled", None),
    "random": ([(STEP, STEP + " * np.random.random()")], "repeated", None),
}  # fmt: skip
IN_STEP = {
    "refreshed": ([("stepped = [", REFRESH)], "others as they were", "the others' embeddings are refreshed"),
    "averaged": (
        [("copies = stepped", "copies = [[np.mean(silo, axis=0)] * len(silo) for silo in stepped]")],
        "virtual recursion", "the copies are averaged in every local step",
    ),
    "exchanged": (
        [("stepped = [", REFRESH), ("copies = stepped", "copies = [[np.mean(s, axis=0)] * len(s) for s in stepped]")],
        "others as they were", "everything is exchanged in every local step",
    ),
}  # fmt: skip
ALL = {name: (tdcd_by_hand, *bug) for name, bug in BUGS.items()}
ALL |= {name: (in_step_by_hand, *bug) for name, bug in IN_STEP.items()}
