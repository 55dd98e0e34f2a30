r"""Fed-Norm-SGDA under its theorems: Theorem 1 by exact moments, Theorems 3 and 4 by simulation, and the headline.

All constants are exact. If R, the radius of Theorems 3 and 4, is that of the run, the bound is not a guarantee.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.evaluation.evaluate import Value, evaluate
from fedbounds.bounds.papers.fed_norm_sgda.concave import THEOREM_4
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.symbols import GRADIENT
from fedbounds.empirical.comparison.compare_run import RunComparison, confront
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import WithoutReplacement
from fedbounds.empirical.problems import (
    BoundedMinimax,
    OnePointMinimax,
    QuadraticMinimax,
    SyntheticMinimax,
    random_quadratic_minimax,
)
from fedbounds.empirical.simulation.moments import moments
from fedbounds.empirical.simulation.simulate import simulate
from fedbounds.figures.charts.overlay import overlays
from fedbounds.figures.charts.picture import BOUND, COLORS, DASHES, MARKERS, Curve, Picture, new_figure

ALMOST = 1 - 1e-9  # of the largest step, so that rounding breaks no condition
FORMS = ("repaired", "sharp")
NEAR = 0.1  # each coordinate of the starting point of a whole run; the saddle is at 0
GRID = 4096  # whole numbers S, in geometric progression up to T
CLAIMED = {True: -1 / 3, False: -1 / 2}  # slopes of the least bound in T, with and without the cap


# --- the headline -------------------------------------------------------------------------------------------------


class Least(NamedTuple):
    """The least bound over both effective steps and the snapshot period, and its minimizer."""

    value: float
    Gammax: float
    Gammay: float
    S: int


def least_bound(constants: Mapping[str, Value], *, capped: bool = True, form: str | None = None) -> Least:
    r"""Theorem 4 minimized over $\Gamma_x$, $\Gamma_y$ and whole $S\le T$ (geometric grid), with local steps 0.

    The bound is $A/\Gamma_x+B\Gamma_x+C\Gamma_x(S-1)+E/(\Gamma_yS)+F\Gamma_y$, minimized at each $S$ by
    $\Gamma_x=\sqrt{A/(B+C(S-1))}$ and $\Gamma_y=\sqrt{E/(SF)}$ or, if `capped`, the cap of the theorem's conditions.
    With $n\tau=T$ the noise $F$ falls like $1/T$: without the cap the least bound falls like $T^{-1/2}$
    ($\epsilon^{-4}$ rounds), with it like $T^{-1/3}$ ($\epsilon^{-6}$). No initial gap, or no noise without a cap, is
    an error: the infimum is not attained.
    """
    here = evaluate(
        THEOREM_4, {**constants, "Gammax": 1.0, "Gammay": 1.0, "S": 2, "etax": 0, "etay": 0}, form=form, strict=False
    )
    part = {name: float(value) for name, value in here.terms.items()}
    gap, descent, stale = part["initial gap"], part["descent noise"], part["stale snapshot"]
    restart, noise = 2 * part["ascent from the snapshot"], part["full synchronization"] + part["partial participation"]
    caps = [float(c.admissible) for c in here.conditions if c.limits == "Gammay" and c.admissible is not None]
    cap = min(caps) if capped else math.inf
    if gap == 0 or (noise == 0 and cap == math.inf):
        raise FedboundsError(
            "the least bound of Theorem 4 is not attained: "
            + ("Deltabar = 0 lets Gammax vanish" if gap == 0 else "without noise and cap Gammay grows for ever")
        )
    periods = np.unique(np.round(np.geomspace(1, float(here.constants["T"].value), GRID)))
    slope = descent + stale * (periods - 1)
    with np.errstate(divide="ignore"):
        ascent = np.minimum(cap, np.sqrt(restart / (periods * noise)))
    total = 2 * np.sqrt(gap * slope) + restart / (ascent * periods) + noise * ascent
    best = int(np.argmin(total))
    return Least(float(total[best]), math.sqrt(gap / slope[best]), float(ascent[best]), int(periods[best]))


def least_bounds(
    rounds: Iterable[int], *, capped: bool, clients: int = 10, local_steps: int | None = None
) -> list[Least]:
    r"""The least bound at each T: identical, noisy clients, full participation, all other constants 1.

    `local_steps` is tau, by default T/n rounded up, as in the paper.
    """
    one = dict(Lf=1, Gx=1, R=1, Deltabar=1, sigmaL=1, sigmaG=0, betaL=0, betaG=1, P=clients)
    found = []
    for T in map(int, rounds):
        work = dict(tau=np.full(clients, local_steps or -(-T // clients)), w=np.full(clients, 1 / clients))
        found.append(least_bound({**one, **work, "T": T}, capped=capped))
    return found


@dataclass(frozen=True)
class Headline:
    """The least bound of Theorem 4 over T, with n tau = T, and its effective step in y; all (k,)."""

    rounds: np.ndarray
    value: np.ndarray
    ascent: np.ndarray

    @property
    def slope(self) -> float:
        """The slope of log value in log T, fitted to the upper half of the T."""
        late = slice(len(self.rounds) // 2, None)
        return float(np.polyfit(np.log(self.rounds[late]), np.log(self.value[late]), 1)[0])


def headlines(rounds: Sequence[int], clients: int = 10) -> dict[bool, Headline]:
    """The least bounds with the cap on the step in y and without."""
    found = {}
    for capped in (True, False):
        least = least_bounds(rounds, capped=capped, clients=clients)
        found[capped] = Headline(
            np.array(rounds, float), np.array([b.value for b in least]), np.array([b.Gammay for b in least])
        )
    return found


def headline(rounds: Sequence[int] | None = None, clients: int = 10) -> Picture:
    r"""The least bound of Theorem 4 with and without its own cap: slopes -1/3 and -1/2, so $\epsilon^{-6}$ rounds."""
    T = [2 * int(t) for t in np.geomspace(500, 5e11, 28).round()] if rounds is None else list(rounds)
    found = headlines(T, clients)
    names = {True: "with the theorem's cap", False: "without it"}
    data = []
    with new_figure(7.4, 3.4, "Rounds for nonconvex-concave problems") as figure:
        left, right = figure.subplots(1, 2)
        for k, (capped, line) in enumerate(found.items()):
            name = names[capped]
            style: dict[str, Any] = {"color": COLORS[k], "marker": MARKERS[k], "linestyle": "", "markersize": 4}
            left.plot(line.rounds, line.value, label=f"{name}: fitted slope {line.slope:.3f}", **style)
            claimed = line.value[-1] * (line.rounds / line.rounds[-1]) ** CLAIMED[capped]
            slope = "-1/3" if capped else "-1/2"
            left.plot(line.rounds, claimed, color=COLORS[k], linestyle=DASHES[k], linewidth=1, label=f"slope {slope}")
            right.plot(line.rounds, line.ascent, **{**style, "linestyle": DASHES[k], "linewidth": 1}, label=name)
            data += [
                Curve(f"least bound {name}", line.rounds, line.value),
                Curve(f"slope {slope}", line.rounds, claimed),
                Curve(f"step in y {name}", line.rounds, line.ascent),
            ]
        for axes in (left, right):
            axes.set(xscale="log", yscale="log", xlabel="number of rounds $T$, with $n\\tau = T$")
            axes.legend(fontsize=7.5)
        left.set_ylim(bottom=left.get_ylim()[0] / 300)  # room for the legend
        left.set_ylabel(f"least bound on the squared gradient ({(GRADIENT**2).words})")
        left.set_title("Theorem 4, least over both steps and $S$", fontsize=9)
        right.set_ylabel("best effective step $\\Gamma_y$ (units $1/L_f$)")
        right.set_title("The step in y that this takes", fontsize=9)
    slopes = {names[capped]: line.slope for capped, line in found.items()}
    return Picture(
        figure,
        f"The certified bound of Theorem 4 minimized over Gamma_x, Gamma_y and S, n = {clients} clients alike, all "
        f"taking part, n tau = T, all constants 1. Fitted slopes: {slopes[names[True]]:.3f} with the cap, "
        f"{slopes[names[False]]:.3f} without. A gradient norm of epsilon takes epsilon^-4 rounds only at the slope "
        "-1/2, that is with a step in y that grows with T, which the theorem forbids: with its cap, 1/(16 L_f) at the "
        "price 2 of repairing the proof, it takes epsilon^-6.",
        "Two panels: the least bound falls like T to the -1/3 with the cap and to the -1/2 without; without the cap "
        "the step in y grows with T, with it it is constant.",
        data,
        {"clients": clients, "slopes": slopes, "claimed": {names[k]: v for k, v in CLAIMED.items()}},
    )


# --- Theorem 1, exactly -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuadraticRun:
    """A run of Fed-Norm-SGDA on a quadratic with exact moments."""

    clients: int = 12  # clients, participants, local_steps, rounds: n, P (0: all), tau and T
    participants: int = 6
    local_steps: int = 4
    heterogeneity: float = 1.0  # heterogeneity, noise, condition: sigma_G, standard deviation per coordinate, and kappa
    noise: float = 0.3
    condition: float = 2.0
    rounds: int = 5000
    ascent: float = 0.008  # the effective step in y; that in x is the largest that condition (c) allows
    local: float = 1e-3  # the local step in y; that in x is an eighth

    @property
    def process(self) -> WithoutReplacement:
        """The participation."""
        return WithoutReplacement(self.clients, self.participants or self.clients)

    @property
    def algorithm(self) -> FedNormSGDA:
        """With steps inside the theorem's conditions."""
        tau = self.local_steps
        descent = ALMOST * self.ascent / (156 * self.condition**2)
        return FedNormSGDA(self.local / 8, self.local, descent / tau, self.ascent / tau, local_steps=tau)

    def problem(self, at_saddle: bool = False) -> QuadraticMinimax:
        """The same function with slopes of the same spread for every n; starts near the saddle or at it."""
        shape = (2, 2)
        drawn = random_quadratic_minimax(
            self.clients, *shape, heterogeneity=self.heterogeneity, condition=self.condition, seed=1
        )
        hessian, coupling = drawn.descent_hessian.numpy(), drawn.coupling.numpy()
        c, d = (part.numpy() for part in drawn.split(drawn.slopes))
        # the slopes of `drawn` cancel in the mean, so the saddle is the origin
        start = np.zeros(2) if at_saddle else np.full(2, NEAR)
        return QuadraticMinimax(hessian, coupling, drawn.concavity, c, d, noise=self.noise, x0=start, y0=start)


AXES: Mapping[str, tuple[str, Sequence[float]]] = {
    "local steps $\\tau$": ("local_steps", (1, 2, 4, 8, 16)),
    "participants $P$ of 12": ("participants", (2, 4, 6, 9, 12)),
    "clients $n = P$": ("clients", (2, 4, 8, 16, 32)),
    "heterogeneity $\\sigma_G$": ("heterogeneity", (0.25, 0.5, 1.0, 2.0, 4.0)),
}
STARTS = {"whole run": False, "noise floor, from the saddle": True}


def vary_setting(setting: QuadraticRun, name: str, value: float) -> QuadraticRun:
    """The setting with one number changed; for n with full participation."""
    changed = {name: value if name == "heterogeneity" else int(value)}
    return replace(setting, **changed, **({"participants": 0} if name == "clients" else {}))


def runs_of_theorem_1(setting: QuadraticRun) -> dict[str, dict[str, dict[float, list[RunComparison]]]]:
    """Start to panel to value to the exact run under the certified forms."""
    theorem = load("fed-norm-sgda/theorem-1")
    found: dict[str, dict[str, dict[float, list[RunComparison]]]] = {}
    for row, at_saddle in STARTS.items():
        for panel, (name, values) in AXES.items():
            for value in values:
                one = vary_setting(setting, name, value)
                run = moments(one.algorithm, one.problem(at_saddle), one.process, one.rounds)
                forms = [confront(run, theorem, form) for form in FORMS]
                found.setdefault(row, {}).setdefault(panel, {})[value] = forms
    return found


def theorem_1(setting: QuadraticRun | None = None) -> Picture:
    """Exact stationarity under the certified Theorem 1 over tau, P, n and heterogeneity."""
    own = setting or QuadraticRun()
    found = runs_of_theorem_1(own)
    data, said, failed = [], {}, 0
    with new_figure(9.4, 4.8, "Theorem 1 against exact moments") as figure:
        grid = figure.subplots(len(found), len(AXES), sharex="col", sharey="row", squeeze=False)
        for row, (start, by_panel) in enumerate(found.items()):
            for axes, (panel, by_value) in zip(grid[row], by_panel.items(), strict=True):
                x = np.array(list(by_value), float)
                measured = np.array([forms[0].measured[-1] for forms in by_value.values()])
                axes.set_xscale("log", base=2)
                axes.set_yscale("log")
                for k, form in enumerate(FORMS):
                    bound = np.array([forms[k].bound[-1] for forms in by_value.values()])
                    color = COLORS[1] if k else BOUND
                    axes.plot(x, bound, color=color, linestyle=DASHES[k], marker=MARKERS[k], label=f"bound [{form}]")
                    data.append(Curve(f"{start}, {panel}: bound [{form}]", x, bound))
                    failed += sum(not forms[k].valid[-1] for forms in by_value.values())
                axes.plot(x, measured, color=COLORS[0], linestyle="-.", marker="D", label="measured (exact)")
                data.append(Curve(f"{start}, {panel}: measured (exact)", x, measured))
                loose = np.array([1 / forms[1].ratio[-1] for forms in by_value.values()])
                said[f"{start}, {panel}"] = [float(loose.min()), float(loose.max())]
                words = f"bound [sharp] / measured\n{_power(loose.min())} to {_power(loose.max())}"
                height = 0.5 if row else 0.3
                axes.text(0.5, height, words, transform=axes.transAxes, fontsize=7.5, ha="center", va="center")
                axes.set_xticks(x, [f"{value:g}" for value in x])
                axes.minorticks_off()
                axes.margins(y=0.12)
                if row == 0:
                    axes.set_title(panel, fontsize=9)
                else:
                    axes.set_xlabel(panel)
            grid[row][0].set_ylabel(f"{start}\nmean of $|\\nabla\\Phi|^2$ ({(GRADIENT**2).words})", fontsize=8)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    runs, floors = ([v for k, v in said.items() if k.startswith(start)] for start in STARTS)
    factors = [f"{_times(min(v[0] for v in part))} to {_times(max(v[1] for v in part))}" for part in (runs, floors)]
    conditions = "All conditions hold in every run." if not failed else f"A condition fails in {failed} comparisons."
    return Picture(
        figure,
        "Average over the rounds of E|grad Phi(x_t)|^2, by exact moments, under the certified Theorem 1; a quadratic "
        f"with kappa = {own.condition:g}, additive noise {own.noise:g} per coordinate, T = {own.rounds}, the same "
        f"effective steps everywhere, Gamma_y = {own.ascent:g} and Gamma_x = Gamma_y/(156 kappa^2); unless it varies, "
        f"n = {own.clients}, P = {own.participants}, tau = {own.local_steps}, sigma_G = {own.heterogeneity:g}; a whole "
        f"run starts {NEAR:g} off the saddle in each coordinate. {conditions} The sharp bound is {factors[0]} times "
        f"what the whole run has, and {factors[1]} times what noise and sampling leave at the saddle: there y averages "
        "its noise out before x, 500 and more times slower, moves, which the proof does not use.",
        "Eight panels of exact stationarity under two bounds, as local steps, participants, clients and heterogeneity "
        "vary; the bounds are far above, most of all at the saddle.",
        data,
        {"setting": vars(own), "bound over measured [sharp]": said, "conditions that fail": failed},
    )


def _times(value: float) -> str:
    """A factor in words: 23, 480 or 10^6.2."""
    return f"{value:.0f}" if value < 1000 else f"10^{np.log10(value):.1f}"


def _power(value: float) -> str:
    """The same in mathtext."""
    base, _, exponent = _times(value).partition("^")
    return f"${base}^{{{exponent}}}$" if exponent else base


# --- Theorems 3 and 4, by simulation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Concave:
    """Runs of Fed-Norm-SGDA+ with bounded gradients in x: P of four clients, T, record interval, seeds, S, noise."""

    participants: int = 2
    rounds: int = 4000
    every: int = 100
    seeds: int = 16
    periods: tuple[int, ...] = (1, 20, 400)
    noise: float = 0.1

    def problem(self, common: bool) -> SyntheticMinimax:
        """Concave in y (Theorem 4), or one-point concave at a maximizer common to all clients (Theorem 3)."""
        slopes = [[1.0, -0.5], [-1.0, 0.5], [0.2, 0.1], [-0.2, -0.1]]
        start: dict[str, Any] = {"ripple": 0.3, "depth": 0.5, "bend": 0.8, "x0": [1.0, -1.0], "noise": self.noise}
        if common:
            return OnePointMinimax(slopes, **start)
        return BoundedMinimax(slopes, [[0.3, 0.1], [0.1, 0.1], [-0.2, 0.0], [0.0, 0.1]], **start)

    def algorithm(self, period: int, smoothness: float) -> FedNormSGDA:
        """Unequal work, the largest step in y that the theorem allows, and a step in x that suits T."""
        work = (1, 2, 3, 4)
        ascent, descent = ALMOST / (32 * smoothness) / 2.5, 1.2 / self.rounds**0.5 / period**0.5 / 2.5
        return FedNormSGDA(1e-3, 1e-3, descent, ascent, local_steps=work, snapshot_period=period)


def runs_of_theorem_4(setting: Concave) -> dict[str, dict[str, list[RunComparison]]]:
    """Problem family to period to the run under its theorem."""
    process = WithoutReplacement(4, setting.participants)
    found: dict[str, dict[str, list[RunComparison]]] = {}
    for row, common in {"concave": False, "one-point concave": True}.items():
        problem = setting.problem(common)
        theorem = load(f"fed-norm-sgda/theorem-{3 if common else 4}")
        for period in setting.periods:
            algorithm = setting.algorithm(period, problem.smoothness())
            run = simulate(
                algorithm, problem, process, setting.rounds, seeds=range(setting.seeds), record_every=setting.every
            )
            comparison = confront(
                run, theorem, "sharp:any-T", problem=problem, participation=process, assume=["bounded-ascent"]
            )
            found.setdefault(row, {})[f"S = {period}"] = [comparison]
    return found


def theorem_4(setting: Concave | None = None) -> Picture:
    """Fed-Norm-SGDA+ under the certified Theorems 3 and 4."""
    own = setting or Concave()
    return overlays(
        runs_of_theorem_4(own),
        title="Theorems 4 (concave) and 3 (one-point concave): measured under the bound",
        caption=f"Four clients who take 1, 2, 3 and 4 local steps, P = {own.participants}, noise {own.noise:g} per "
        f"coordinate, {own.seeds} seeds, measured every {own.every} rounds; steps inside the theorem's conditions at "
        "every S. R is the largest |y_t|^2 of these runs, so the bound is about them and no guarantee beforehand. With "
        "S = 1 it levels off, as the ascent starts anew in every round. Bands: two standard errors.",
    )
