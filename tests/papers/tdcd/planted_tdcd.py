"""TDCD as it is written out in this package, with one bug."""

import inspect
import sys

from fedbounds.empirical.papers.tdcd.misreadings import Reading
from fedbounds.empirical.papers.tdcd.numpy_reference import tdcd


def planted(*changes, of=tdcd):
    """The run with one bug, which may take more than one change."""
    source = inspect.getsource(of)
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    space = dict(vars(sys.modules[of.__module__]))
    exec(source, space)
    made = space[of.__name__]
    return made() if isinstance(made, type) else made


LOOP, DRAWN = "for _ in range(local_steps)", "draw(r * local_steps)"
STEP = "own = own - step_size * table.gradient(j, own, batch[mine], others[mine])"
MEAN = "np.mean(copies, axis=0)"
OTHERS = "told.sum(0) - told[j]"
MINE, BEGIN = "np.flatnonzero(np.isin(batch, ids))", "ids)), block"
REMEMBER = (
    ("blocks, models = list(table.starts)", "blocks, before, models = list(table.starts), list(table.starts)"),
    ("blocks = after", "before, blocks = blocks, after"),
)
REDRAW = f"""batch = draw(r * local_steps + q)
                    others = np.sum([table.embed(l, blocks[l], batch) for l in range(len(blocks))], axis=0)
                    others, mine = others - table.embed(j, block, batch), {MINE}
                    {STEP}"""
MOVES_ALL = """total = sum(table.embed(l, view[l], batch[mine]) for l in range(len(view)))
                    slopes = table.slopes(total, batch[mine])
                    view = [view[l] - step_size * table.pulled(l, batch[mine], slopes) for l in range(len(view))]"""
TOLD = "embedded = self.embeddings(batch, copies)"
STEPPED = "copies = self.step_copies(copies, self.slopes(copies, batch))"
REFRESH = f"""{TOLD}
        for j, silo in enumerate(copies):
            for k, own in enumerate(silo):
                embedded[j, self.part(j, k, batch)] = self.table.embed(j, own, batch[self.part(j, k, batch)])"""
AVERAGE = (
    "copies = [[np.mean(silo, axis=0)] * len(silo) for silo in self.step_copies(copies, self.slopes(copies, batch))]"
)

# name: the changes, the loop they are made in, the invariant that speaks of it, how its cause begins
BUGS = {
    "printed": ([(LOOP, "for _ in range(local_steps - 1)")], "virtual recursion", "line 32 as printed"),
    "one step": ([(LOOP, "for _ in range(1)")], "closed form", "it does one local step"),
    "redrawn": (
        [(LOOP, "for q in range(local_steps)"), (STEP, REDRAW)], "virtual recursion",
        "the batch is redrawn in every local step",
    ),
    "by round": ([(DRAWN, "draw(r)")], "restarted rounds", "it draws by the number of the round"),
    "stale others": (
        [*REMEMBER, ("batch) for j, block in enumerate(blocks)", "batch) for j, block in enumerate(before)")],
        "one local step", "the embeddings are those of the round before",
    ),
    "stale own": ([("table.gradient(j, own,", "table.gradient(j, block,")], "closed form", "stale own embedding"),
    "no others": ([(OTHERS, "0 * told[j]")], "only the sum counts", "the others' embeddings are left out"),
    "own twice": ([(OTHERS, "told.sum(0)")], "one local step", "the own embedding counts twice"),
    "averaged embeddings": (
        [(OTHERS, f"({OTHERS}) / max(1, len(told) - 1)")], "split silos",
        "the others' embeddings are averaged",
    ),
    "sum of copies": ([(MEAN, "np.sum(copies, axis=0)")], "merged clients", "the hub sums the clients' copies"),
    "sum of updates": (
        [(MEAN, "block + np.sum([own - block for own in copies], axis=0)")], "merged clients",
        "sum, not mean, over clients",
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
        [(MINE, "np.arange(np.isin(batch, ids).sum()) + sum(np.isin(batch, table.clients[j][k]).sum() "
                "for k in range(len(copies)))")],
        "rows by id", "the batch is dealt to the clients by position",
    ),
    "others by position": (
        [("others[mine]", "others[: len(mine)]")], "rows by id", "the others' sum is read by position",
    ),
    "one partition": ([("in table.clients[j]", "in table.clients[0]")], "relabeled", "the rows of silo 0's clients"),
    "silos in turn": (
        [(OTHERS, "0 * told[j] + sum(table.embed(l, (after + blocks[j:])[l], batch) "
                  "for l in range(len(told)) if l != j)")],
        "relabeled", "silos update one after another",
    ),
    "other blocks": (
        [(f"mine, own = {MINE}, block", f"mine, view = {MINE}, list(blocks)"), (STEP, MOVES_ALL),
         ("copies.append(own)", "copies.append(view[j])")],
        "others as they were", "clients move the blocks of other silos",
    ),
    "clients in turn": ([(BEGIN, "ids)), copies[-1] if copies else block")], "merged clients", None),
    "weight decay": ([(STEP, STEP.replace("own - ", "0.9 * own - "))], "translation", None),
    "clipped": (
        [(STEP, "own = own - step_size * table.gradient(j, own, batch[mine], others[mine]).clip(-0.2, 0.2)")],
        "rotation", None,
    ),
    "signs": (
        [(STEP, "own = own - step_size * np.sign(table.gradient(j, own, batch[mine], others[mine]))")], "scaling", None,
    ),
    "extrapolated": ([*REMEMBER, (BEGIN, "ids)), block + (block - before[j]) / 2")], "restarted rounds", None),
    "shorter steps": ([(STEP, STEP.replace("step_size", "step_size / local_steps"))], "stability", None),
    "steps of silos": ([(STEP, STEP.replace("step_size", "step_size * (1 + j)"))], "relabeled", None),
    "random": ([(STEP, STEP + " * np.random.random()")], "repeated", None),
}  # fmt: skip
IN_STEP = {
    "refreshed": ([(TOLD, REFRESH)], "others as they were", "the others' embeddings are refreshed"),
    "averaged": (
        [(STEPPED, AVERAGE)], "virtual recursion", "the copies are averaged in every local step",
    ),
    "exchanged": (
        [(TOLD, REFRESH), (STEPPED, AVERAGE)], "others as they were", "everything is exchanged in every local step",
    ),
}  # fmt: skip
ALL = {name: (tdcd, *bug) for name, bug in BUGS.items()}
ALL |= {name: (Reading, *bug) for name, bug in IN_STEP.items()}
