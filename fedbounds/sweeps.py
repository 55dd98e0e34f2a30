"""Sweeps: the runs of a TOML file, one file for each run, and their table."""

from fedbounds.empirical.sweep import Run as Run
from fedbounds.empirical.sweep import Store as Store
from fedbounds.empirical.sweep import Sweep as Sweep
from fedbounds.empirical.sweep import execute as execute
from fedbounds.empirical.sweep import plan as plan
from fedbounds.empirical.sweep import read_sweep as read_sweep
from fedbounds.empirical.sweep import resolve as resolve
from fedbounds.empirical.sweep import summarize as summarize
from fedbounds.empirical.sweep import tabulate as tabulate
from fedbounds.empirical.sweep import write_csv as write_csv
