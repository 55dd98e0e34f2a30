"""Sweeps: a TOML file of what to run becomes tasks, keys, one file per run, and a table.

```python
from empirical.sweep import Store, execute, load_runs, plan, read_sweep

sweep = read_sweep("examples/sweep.toml")
runs = plan(sweep)
outcomes = execute(runs, Store(Path("results") / sweep.name), workers=2)
```
"""

from empirical.sweep.executor import Outcome, execute
from empirical.sweep.runs import Run, plan
from empirical.sweep.spec import Sweep, read_sweep, resolve
from empirical.sweep.store import Standing, Store
from empirical.sweep.table import Row, Summary, summarise, tabulate, write_csv

__all__ = [
    "Outcome",
    "Row",
    "Run",
    "Standing",
    "Store",
    "Summary",
    "Sweep",
    "execute",
    "plan",
    "read_sweep",
    "resolve",
    "summarise",
    "tabulate",
    "write_csv",
]
