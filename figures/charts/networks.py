"""The gradient norm of a network compared with a theorem: along one run, or over T.

Over T every run has the step sizes that a result sets, with constants from a pilot run of other seeds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.symbols import Constant
from fedbounds.empirical.algorithms import Algorithm
from fedbounds.empirical.comparison.compare_run import RunComparison, confront_family
from fedbounds.empirical.comparison.compare_sweep import confront_sweep, join_traces
from fedbounds.empirical.comparison.convergence_slopes import Rate
from fedbounds.empirical.participation import process_from_spec
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.runtime.device import resolve_device
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.empirical.sweep import Store, execute, plan, resolve
from fedbounds.figures.charts.claims import FigureClaim
from fedbounds.figures.charts.overlay import overlay
from fedbounds.figures.charts.paper_gallery import AnyScale, PaperGallery
from fedbounds.figures.charts.picture import Picture
from fedbounds.figures.charts.rate import rate, rate_claims
from fedbounds.figures.charts.significance import LEVEL

SEEDS, PILOT_SEEDS = (0, 1, 2, 3), (100, 101)
POINTS = 64
ONE_START = {"initialization": 0}  # of all runs, so that the initial gap is one number


def read_setting(paper: str) -> dict[str, Any]:
    """The sweep `network.toml` in a paper's package, equal to an example."""
    return tomllib.loads(files(f"fedbounds.figures.papers.{paper}").joinpath("network.toml").read_text("utf-8"))


def compare_with_run(gallery: PaperGallery[AnyScale], setting: Mapping[str, Any], result: str) -> RunComparison:
    """Compare the runs of one setting (a sweep) with a result, with constants measured along the runs."""
    (found,) = confront_sweep(
        resolve(setting, source=str(setting["name"])),
        result,
        results=gallery.results,
        workers=gallery.workers,
        device=gallery.device,
        progress=gallery.of_runs,
    ).values()
    return found


def network_picture(comparison: RunComparison, title: str, setting: Mapping[str, Any], words: str) -> Picture:
    """The overlay of a comparison from `compare_with_run`; `words` describes the runs and their scale."""
    drawn = overlay(comparison, title)
    caption = f"{title}. {words} No guarantee: constants that are measured along a run say nothing beyond it. "
    shown = f"{drawn.caption[0].upper()}{drawn.caption[1:]}"
    return replace(drawn, caption=caption + shown, provenance={**drawn.provenance, "setting": dict(setting)})


def bound_claim(comparison: RunComparison) -> FigureClaim:
    """The claim that the measure stays below the bound, for the constants of the runs.

    It disagrees if a one-sided t-test over seeds, corrected for all horizons, finds the measure above the bound where
    the conditions hold; it is inconclusive if no condition holds or between the two.
    """
    c = comparison
    last = f"{c.symbol} = {int(c.rounds[-1])}"
    ratio = f"measured {c.measured[-1]:.3g}, bound {c.bound[-1]:.3g}, ratio {c.ratio[-1]:.2g} at {last}"
    where = f"conditions hold at {np.count_nonzero(c.valid)} of {len(c.rounds)} {c.symbol}"
    crossed = f"crossed at {len(c.covered_crossings)} of them" if c.covered_crossings.size else "never crossed there"
    above = (c.measured > c.bound) & c.valid
    if c.standard_error is not None:
        level = LEVEL / max(1, np.count_nonzero(c.valid))
        above &= c.measured - stdtrit(max(c.seeds - 1, 1), 1 - level) * c.standard_error > c.bound
    clear = bool(above.any())
    agrees = False if clear else True if c.valid[-1] and not c.covered_crossings.size else None
    return FigureClaim(
        c.result.source.number,
        f"the {c.measure.aggregate} {c.measure.of} of a CNN stays below the bound (constants of the run)",
        f"{ratio}, mean of {c.seeds} seeds; {where}, {crossed}",
        agrees,
    )


@dataclass(frozen=True)
class NetworkFamily:
    """Runs of a network over T at the step sizes of a result, with constants measured on a pilot run.

    Attributes:
        name: of the directory of the runs.
        result, form: set the step sizes.
        theorem: compared with the pilot run; measures the constants `symbols`.
        problem, participation: of all runs, as in a sweep.
        pilot: the pilot's algorithm, as in a sweep, and its number of rounds.
        rounds, since: T, and the least T of the fits.
        local_steps, interval: I and P.
        points: records of a run; a minimum over rounds is over these, an average over straight lines between them.
    """

    name: str
    result: str
    form: str
    theorem: str
    symbols: tuple[str, ...]
    problem: Mapping[str, Any]
    participation: Mapping[str, Any]
    pilot: tuple[Mapping[str, Any], int]
    rounds: tuple[int, ...]
    since: int
    local_steps: int
    interval: int = 1
    seeds: tuple[int, ...] = SEEDS
    points: int = POINTS

    def sweep(
        self, algorithm: Mapping[str, Any], rounds: int, seeds: tuple[int, ...] = (), points: int = POINTS
    ) -> dict[str, Any]:
        """The sweep of one algorithm."""
        return {
            "name": self.name, "problem": {**self.problem, "gradient_norm": True}, "participation": self.participation,
            "algorithm": algorithm, "rounds": rounds, "seeds": [*seeds], "streams": ONE_START,
            "record_every": max(1, rounds // points),
        }  # fmt: skip


def pilot_comparison(gallery: PaperGallery[AnyScale], family: NetworkFamily) -> RunComparison:
    """The pilot run compared with the theorem, which measures the constants."""
    return compare_with_run(gallery, family.sweep(*family.pilot, PILOT_SEEDS), family.theorem)


def network_rate(gallery: PaperGallery[AnyScale], family: NetworkFamily) -> Rate:
    """The runs over T, each at the step sizes that the result sets for the constants of the pilot."""
    pilot = pilot_comparison(gallery, family)
    note = f"of a pilot run: {family.pilot[1]} rounds, {len(PILOT_SEEDS)} other seeds"
    given = {
        name: Constant(float(np.asarray(pilot.constants[name].value)), "estimated", note) for name in family.symbols
    }

    def run(algorithm: Algorithm, T: int) -> Trace:
        runs = plan(
            resolve(family.sweep(_without_none(algorithm.spec()), T, family.seeds, family.points)),
            device=gallery.device,
        )
        store = Store(gallery.results / family.name)
        for outcome in execute(runs, store, workers=gallery.workers, progress=gallery.of_runs):
            if outcome.failed:
                raise FedboundsError(f"{family.name}, T = {T}: {outcome.status}")
        return join_traces([store.load(one.key) for one in runs])

    problem = problem_from_spec(family.sweep({}, 1)["problem"], device=resolve_device(gallery.device or "auto", True))
    found = confront_family(
        family.result, problem, process_from_spec(family.participation), family.rounds, form=family.form,
        local_steps=family.local_steps, interval=family.interval, given=given, run=run,
    )  # fmt: skip
    return Rate(found, family.since, start=float(pilot.measured[0]))


@dataclass(frozen=True)
class Networks:
    """The network runs of a paper: one setting (a sweep) under a result, and families over T by panel."""

    result: str
    setting: Mapping[str, Any]
    title: str
    words: str
    families: Mapping[str, NetworkFamily] = field(default_factory=dict)
    rates_title: str = ""
    rates_caption: str = ""

    def compare(self, gallery: PaperGallery[Any]) -> RunComparison:
        """The runs of the setting, and the bound."""
        return compare_with_run(gallery, self.setting, self.result)

    def picture(self, gallery: PaperGallery[Any]) -> Picture:
        """The gradient norm under the bound."""
        return network_picture(self.compare(gallery), self.title, self.setting, self.words)

    def rates(self, gallery: PaperGallery[Any]) -> Picture:
        """The gradient norms over T, a panel for each family."""
        records = " or ".join(str(points) for points in dict.fromkeys(one.points for one in self.families.values()))
        caption = (
            f"{self.rates_caption} No guarantee: constants are measured once, along a pilot run of {len(PILOT_SEEDS)} "
            f"other seeds from the same start, and say nothing beyond it. Runs have {records} records at most: a "
            "minimum is over those, an average over straight lines between them."
        )
        return rate(self._family_rates(gallery), title=self.rates_title, caption=caption)

    def claims(self, gallery: PaperGallery[Any]) -> list[FigureClaim]:
        """The claims about the setting, and about the rates over T."""
        return [bound_claim(self.compare(gallery)), *rate_claims(self._family_rates(gallery), "network-rate")]

    def _family_rates(self, gallery: PaperGallery[Any]) -> dict[str, Rate]:
        return {name: network_rate(gallery, family) for name, family in self.families.items()}


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table without the keys whose value is None, as a sweep has it."""
    tables = {name: _without_none(value) if isinstance(value, Mapping) else value for name, value in table.items()}
    return {name: value for name, value in tables.items() if value is not None}
