"""Sweeps: the runs of a TOML file, one file for each run, and their table."""

from fedbounds.empirical.sweep import (
    Run,
    Store,
    Sweep,
    execute,
    plan,
    read_sweep,
    resolve,
    summarize,
    tabulate,
    write_csv,
)

__all__ = [
    "Run",
    "Store",
    "Sweep",
    "execute",
    "plan",
    "read_sweep",
    "resolve",
    "summarize",
    "tabulate",
    "write_csv",
]
