"""TDCD's theorem without runs: the bound within a time budget, and its forms."""

import numpy as np

from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.search.optimize import optimize
from fedbounds.bounds.search.optimize_answers import Minimum
from fedbounds.bounds.theory.registry import load
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import Curve, Picture

PROBLEM = {"L": 1.0, "Lmax": 1.0, "Deltainf": 1.0, "S": 1.0}
TIME = {"W": 1e6, "tcomp": 1.0}
LATENCIES = (10.0, 100.0)  # of a link, over that of a local step: the paper's two
STEP_SIZES = (1e-4, 1e-3, 1e-2)
FAMILY = {  # legend: form
    "(15) a priori": "repaired:B0inf",
    "(15), B0": "repaired",
    "B19": "sharp:B19",
    "B1": "sharp:B1",
    "B2": "sharp:B2",
    "B3": "sharp:B3",
    "Bind": "sharp:Bind",
}


def steps_up_to(most: int, points: int) -> np.ndarray:
    """Whole numbers from 1 on, evenly spaced in the logarithm."""
    return np.unique(np.geomspace(1, most, points).round())


def bound_in_time(latency: float, eta: float, Q: np.ndarray) -> Curve:
    """The bound within the time budget at a given step size."""
    found = evaluate(load("tdcd/wall-clock"), {**PROBLEM, **TIME, "tcomm": latency, "eta": eta, "Q": Q}, strict=False)
    return Curve(f"step size {eta:g}", Q, np.where(found.valid, found.value, np.nan))


def best_bound_in_time(latency: float, Q: np.ndarray) -> Curve:
    """The same at the best step size for each number of local steps."""
    known = {**PROBLEM, **TIME, "tcomm": latency}
    found = [optimize("tdcd/wall-clock", {**known, "Q": steps}, ["eta"]) for steps in Q]
    values = [answer.value if isinstance(answer, Minimum) else np.nan for answer in found]
    return Curve("best step size for each", Q, np.array(values))


def describe_minimum(curve: Curve) -> str:
    """The minimum of a curve in words."""
    place = int(np.nanargmin(curve.y))
    return f"{curve.y[place]:.3g} at Q = {curve.x[place]:g}"


def wall_clock(points: int = 60, most: int = 1000) -> Picture:
    """The bound within a time budget over Q."""
    Q = steps_up_to(most, points)
    groups = {
        f"link latency {latency:g}": [
            *(bound_in_time(latency, eta, Q) for eta in STEP_SIZES),
            best_bound_in_time(latency, Q),
        ]
        for latency in LATENCIES
    }
    numbers = "; ".join(
        f"{name}: " + ", ".join(f"{curve.label} {describe_minimum(curve)}" for curve in curves)
        for name, curves in groups.items()
    )
    costs = [np.interp(latency, Q, curves[-1].y) / curves[-1].y[0]
             for latency, curves in zip(LATENCIES, groups.values(), strict=True)]  # fmt: skip
    dearer = " and ".join(f"{cost - 1:.0%}" for cost in costs)
    title = "How many local steps in a given time"
    return panels(
        groups,
        x_label="local steps a round, $Q$",
        y_labels=[r"bound on the mean of $E\|\nabla f\|^2$", ""],
        title=title,
        caption=f"{title}. Theorem 1 (sharp:B3) with R = floor(W/(3 tcomm + Q tcomp)) rounds, W = 10^6, tcomp = 1, L = "
        f"Lmax = S = 1, f(x_0) - inf f = 1, all chosen. A curve ends where a condition fails, beyond which there "
        f"is no bound. Least: {numbers}. With a small step size that is given, many local steps are worth it, the more "
        "the slower the links; with the step size that is best for each Q one local step is best at either latency, "
        "as the bound sees eta Q alone and a round of one step is the shortest; as many as an exchange takes in time "
        f"cost {dearer} then. These are bounds, not runs.",
        alternative="Two panels of a bound against the number of local steps, both logarithmic. For each given step "
        "size the bound falls and then rises; for the best step size it only rises, slowly, from Q = 1.",
        provenance={"constants": {**PROBLEM, **TIME}, "latencies": LATENCIES},
        y_scales=["log", "log"],
        x_scale="log",
    )


def family(points: int = 80) -> Picture:
    """The forms of Theorem 1 over the largest step size that (14) allows."""
    share, R = np.geomspace(0.01, 2, points), 1000
    groups: dict[str, list[Curve]] = {}
    ratios = {}
    for Q in (1, 10):
        known = {**PROBLEM, "Delta": 0.8, "SK": 0.2, "Q": Q, "R": R, "eta": share / (8 * Q)}
        groups[f"Q = {Q}"] = curves = []
        for label, form in FAMILY.items():
            found = evaluate(load("tdcd/theorem-1"), known, form=form, strict=False)
            value = np.where(np.isfinite(found.value) & (found.value > 0), found.value, np.nan)
            curves.append(Curve(label, share, value, valid=np.broadcast_to(found.valid, share.shape)))
        at_cap = int(np.argmin(np.abs(share - 1)))
        ratios[Q] = float(curves[5].y[at_cap] / curves[1].y[at_cap])
    title = "The forms of Theorem 1"
    return panels(
        groups,
        x_label="step size over the largest that (14) allows",
        y_labels=[r"bound on the mean of $E\|\nabla f\|^2$", ""],
        title=title,
        caption=f"{title}. L = Lmax = S = 1, R = {R}, f falls by 0.8 of the 1 that it can fall by, five clients in "
        "each silo (Bind, for uncorrelated noise). Dotted where a condition fails: (15), B19 and Bind end at 1, B1 to "
        "B3 where nothing would be left of the gradient. B3 is half of (15) at small steps and "
        + " and ".join(f"{ratio:.2f} of it at the largest with Q = {Q}" for Q, ratio in ratios.items())
        + ". All numbers are chosen; these are bounds, not runs.",
        alternative="Two panels, one and ten local steps: seven bounds against the step size, both logarithmic, "
        "falling and then rising; those without rounding are lowest and go on beyond the largest step size.",
        provenance={"constants": PROBLEM, "rounds": R},
        y_scales=["log", "log"],
        x_scale="log",
    )
