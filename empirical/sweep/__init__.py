"""Sweeps: a TOML file of what to run becomes tasks, keys, one file per run, and a table.

```python
from pathlib import Path
from fedbounds.empirical.sweep import Store, execute, plan, read_sweep

sweep = read_sweep("examples/sweep.toml")
runs, store = plan(sweep), Store(Path("results") / sweep.name)
execute(runs, store, workers=2)
gaps = {run.title: store.load(run.key).objective_gap for run in runs}    # (seeds, records) each
```
"""

from fedbounds.empirical.sweep.batches import shard
from fedbounds.empirical.sweep.executor import Outcome, execute
from fedbounds.empirical.sweep.runs import Run, plan
from fedbounds.empirical.sweep.spec import Sweep, read_sweep, resolve
from fedbounds.empirical.sweep.store import RunStatus, Store
from fedbounds.empirical.sweep.table import RunRow, Summary, summarize, tabulate, write_csv

__all__ = [
    "Outcome",
    "RunRow",
    "Run",
    "RunStatus",
    "Store",
    "Summary",
    "Sweep",
    "execute",
    "plan",
    "read_sweep",
    "resolve",
    "shard",
    "summarize",
    "tabulate",
    "write_csv",
]
