"""The measure of a result along a run, at every horizon, with what was recorded of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.theory.measures import Measure
from fedbounds.empirical.comparison.paper_runs import FUNCTION_GAP, GRADIENT_OF_F, PaperRuns
from fedbounds.empirical.comparison.run_setting import RunSetting, stationarity
from fedbounds.empirical.simulation.trace import Trace

NOISE = "gradient noise"
OVERALL = f"{NOISE} and participation"


@dataclass(frozen=True, eq=False)
class MeasuredCurve:
    """A measure at K horizons; the attributes are those of `RunComparison`."""

    measure: Measure
    rounds: np.ndarray
    measured: np.ndarray
    samples: np.ndarray | None
    whole: np.ndarray
    thinned: np.ndarray

    @property
    def standard_error(self) -> np.ndarray | None:
        """Of the mean over the samples, (K,); None where nothing was sampled."""
        with np.errstate(invalid="ignore"):
            return None if self.samples is None else self.samples.std(axis=0, ddof=1) / len(self.samples) ** 0.5


def measure_run(
    setting: RunSetting, measure: Measure, paper: PaperRuns, interval: int, single_horizon: bool
) -> MeasuredCurve:
    """The measure along a run, from the first complete interval on."""
    values, samples = paper.measure(setting, measure.of)
    at, last = setting.at, measure.aggregate == "last"
    # the last model must be recorded; otherwise the rounds before T are enough, and a log may end with them
    horizons = at if last else np.union1d(at, [setting.total])
    horizons = np.array([setting.total]) if single_horizon else horizons[horizons >= interval]
    if not horizons.size or horizons[-1] < interval:
        raise FedboundsError(f"the run has {setting.total} rounds, less than one window of interval = {interval}")
    if last and horizons[-1] > at[-1]:
        raise FedboundsError(f"the last model, x_{setting.total}, was not measured, the result bounds: {measure}")
    measured, samples = _values_at_horizons(measure, at, values, samples, horizons, interval)
    whole = _recorded_completely(measure, at, horizons, interval)
    thinned = np.zeros(len(horizons))
    if measure.aggregate == "average" and not whole.all():
        fewer, _ = _values_at_horizons(measure, at[::2], values[::2], None, horizons, interval)
        thinned = np.where(whole | (fewer == measured), 0.0, fewer / measured - 1)
    return MeasuredCurve(measure, horizons, measured, samples, whole, thinned)


def measure_of_run(measure: Measure, setting: RunSetting, paper: PaperRuns) -> Measure:
    """The left-hand side as this run measures it."""
    if measure.aggregate not in ("minimum", "average", "last"):
        raise FedboundsError(f"a run is measured over its rounds, the result bounds: {measure}")
    if measure.over not in paper.over:
        raise FedboundsError(f"the run is measured over {' or '.join(paper.over)}, the result bounds: {measure}")
    if setting.logged:
        _check_logged(setting, measure)
    if setting.q is None:
        return replace(measure, expectation=OVERALL, given="", latex=measure.latex.replace(r"\mid\mathcal Q", ""))
    if not measure.given and paper.given_record:
        return replace(measure, expectation=NOISE, given="participation")
    if not measure.given:
        raise FedboundsError(
            f"the result bounds an expectation over participation, the run is given its record: {measure}; "
            "run a process instead"
        )
    return measure


def _check_logged(setting: RunSetting, measure: Measure) -> None:
    """Refuse a log without the quantity that a result bounds, with the ways to record it."""
    assert isinstance(setting.run, Trace)
    gap = measure.of.startswith(FUNCTION_GAP)
    needed = "objective_gap" if gap else stationarity(setting.algorithm) if measure.of == GRADIENT_OF_F else ""
    if not needed or needed in setting.run.metrics:
        return
    has = [name for name in setting.run.metrics if name != "participants"]
    way = (
        "give read_log f_min, the least value of f, and a column train_loss"
        if gap
        else "record it in each round with Recorder, or give the log a column gradient_norm_squared or gradients"
    )
    bounded = replace(measure, expectation="", given="")
    raise FedboundsError(f"the log has {', '.join(has) or 'no metric'}, and the result bounds: {bounded}; {way}")


def _values_at_horizons(
    measure: Measure,
    at: np.ndarray,
    values: np.ndarray,
    samples: np.ndarray | None,
    horizons: np.ndarray,
    interval: int,
) -> tuple[np.ndarray, np.ndarray | None]:
    """The measure at each horizon, from what was recorded, and the samples (S, K) that it is a mean of."""
    if measure.aggregate == "last":
        where = np.searchsorted(at, horizons)
        return values[where], _samples_at(samples, where)
    if measure.over == "window starts":
        kept = at % interval == 0
        at, values, samples = at[kept] // interval, values[kept], None if samples is None else samples[:, kept]
        horizons = horizons // interval  # complete windows only
    if measure.aggregate == "average":
        averages = None if samples is None else averages_before(horizons, at, samples)
        return averages_before(horizons, at, values), _samples_at(averages, slice(None))
    last = np.searchsorted(at, horizons) - 1  # of the values recorded before T
    least = np.minimum.accumulate(values)
    first_least = np.maximum.accumulate(np.where(values <= least, np.arange(len(values)), 0))
    return least[last], _samples_at(samples, first_least[last])


def averages_before(horizons: np.ndarray, at: np.ndarray, values: np.ndarray) -> np.ndarray:
    r"""$\frac1T\sum_{t<T}v_t$ of values that were recorded at some t only, and lie on straight lines between them.

    After the last record the value is taken to be that one. Where every t was recorded this is the plain average. That
    of the records alone would count the first value, often the largest by far, for all rounds up to the next record.
    """
    gaps, ends = np.append(np.diff(at), np.inf), np.append(np.arange(1, len(at)), 0)

    def summed(n: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Over n values from the k-th record on."""
        share = n * (n - 1) / 2 / gaps[k]  # of the next record
        return (n - share) * values[..., k] + share * np.where(share > 0, values[..., ends[k]], 0.0)

    between = summed(gaps[:-1], np.arange(len(at) - 1)).cumsum(axis=-1)
    up_to = np.concatenate([np.zeros((*values.shape[:-1], 1)), between], axis=-1)
    last = np.searchsorted(at, horizons) - 1
    return (up_to[..., last] + summed(horizons - at[last], last)) / horizons


def _samples_at(samples: np.ndarray | None, where: np.ndarray | slice) -> np.ndarray | None:
    """The samples (S, R) at these places; None where nothing, or one thing, was sampled."""
    return None if samples is None or len(samples) < 2 else samples[:, where]


def _recorded_completely(measure: Measure, at: np.ndarray, horizons: np.ndarray, interval: int) -> np.ndarray:
    """Whether everything that the measure is over was recorded, at each horizon."""
    if measure.aggregate == "last":
        return np.isin(horizons, at)
    every = interval if measure.over == "window starts" else 1
    return np.searchsorted(at[at % every == 0], horizons - horizons % every) == horizons // every
