"""The figures without training: participation patterns, rates, and weights over time."""

from math import inf

import numpy as np

from fedbounds.bounds.papers.fedau.weight_error import mean_weight
from fedbounds.empirical.papers.fedau.participation_weights import weight_paths
from fedbounds.empirical.participation import process_from_spec
from fedbounds.empirical.participation.rates import dirichlet_frequencies
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.picture import COLORS, Curve, Picture, new_figure
from fedbounds.figures.papers.fedau import experiments as ex

BUSY = 0.527  # the rate of the client that the paper follows
SEED = 0
SMALLEST = 1e-6  # rates below are drawn here


def pattern_of_rate(pattern: str, probability: list[float], rounds: int) -> np.ndarray:
    """The participants in one run of a pattern, booleans (rounds, clients)."""
    spec = {"kind": ex.PATTERNS[pattern], "clients": len(probability), "probability": probability}
    process = process_from_spec(spec | ({"normalize": False} if pattern == "Bernoulli" else {}))
    return process.matrix(rounds, np.random.default_rng(SEED)) > 0


def figure_c_6_1() -> Picture:
    """One client with rate 52.7 % under the three patterns."""
    rounds, rows = 400, {name: pattern_of_rate(name, [BUSY], 400)[:, 0] for name in ex.PATTERNS}
    title = "Figure C.6.1: one client under three patterns"
    with new_figure(6.8, 3.0, title) as figure:
        axes = figure.subplots(len(rows), 1, sharex=True)
        for panel, (name, present) in zip(axes, rows.items(), strict=True):
            panel.grid(visible=False)
            panel.fill_between(np.arange(rounds), present.astype(float), step="mid", color=COLORS[0], linewidth=0)
            panel.set_yticks([0, 1], ["absent", "present"])
            panel.set_title(f"{name}: {present.mean():.1%} of these rounds", fontsize=9)
        axes[-1].set_xlabel("round $t$")
    return Picture(
        figure,
        f"{title}: {rounds} rounds of a client with mean rate {BUSY}. Markovian: it comes with probability 0.05 a "
        "round. Cyclic: 53 rounds of every 100, from a uniform phase on, which is stationary; in the paper's code "
        "every client begins absent.",
        "Three strips of presence and absence; Bernoulli changes every other round, the others stay for long.",
        [Curve(name, np.arange(rounds, dtype=float), present.astype(float)) for name, present in rows.items()],
        {"probability": BUSY, "seed": SEED},
    )


def figure_c_6_2() -> Picture:
    """The rates of twenty clients from their class shares and the availability of classes."""
    clients, classes = 20, 10
    printed = np.array([0.02, 0.05, 0.12, 0, 0, 0.78, 0, 0, 0.02, 0])
    printed = printed / printed.sum()
    kappa = dirichlet_frequencies(clients, classes, ex.ALPHA, SEED)
    parts = classes * ex.MEAN * kappa * printed
    p = parts.sum(axis=1)
    title = "Figure C.6.2: class shares, availability and rates"
    with new_figure(7.4, 3.4, title) as figure:
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.5, 1, 1.5])
        for panel in (left, middle, right):
            panel.grid(visible=False)
        image = left.imshow(kappa, aspect="auto", cmap="Greys", vmin=0, vmax=1)
        figure.colorbar(image, ax=left, shrink=0.8)
        left.set(title="class shares $\\kappa_n$", xlabel="class", ylabel="client $n$")
        middle.bar(np.arange(classes), printed, color=COLORS[1])
        middle.set(title="availability $q$", xlabel="class")
        right.barh(np.arange(clients), p, color=COLORS[0])
        rare = np.flatnonzero(p < ex.FLOOR)
        right.barh(rare, ex.FLOOR - p[rare], left=p[rare], color="none", edgecolor="#777777", linewidth=0.8)
        right.axvline(ex.FLOOR, color="black", linewidth=0.8, linestyle=":")
        right.set(title="rates $p_n$", xlabel="$p_n = C\\mu\\langle\\kappa_n, q\\rangle$")
        right.set_ylim(clients - 0.5, -0.5)
        for axis in (left.xaxis, left.yaxis, middle.xaxis, right.yaxis):
            axis.get_major_locator().set_params(integer=True)
    return Picture(
        figure,
        f"{title}. The paper's example q = (.02, .05, .12, 0, 0, .78, 0, 0, .02, 0), which is rounded and here scaled "
        f"to sum to one; class shares drawn afresh from Dir(0.1), mu = {ex.MEAN}. Dotted: the lower bound "
        f"{ex.FLOOR}, to which smaller rates are raised (outlined).",
        f"A gray map of class shares, bars of availability, and bars of rates between {p.min():.3f} and {p.max():.3f}.",
        [
            Curve("availability q of class", np.arange(classes, dtype=float), printed),
            Curve("rate p of client", np.arange(clients, dtype=float), p),
        ],
        {"q": printed, "alpha_d": ex.ALPHA, "mean": ex.MEAN, "floor": ex.FLOOR, "seed": SEED},
    )


def weights_over_time(pattern: str, number: str, rounds: int = 10_000) -> Picture:
    """FedAU's weights along a run: the mean over clients, a frequent client, and three rare ones."""
    p = ex.paper_rates(SEED)
    p = np.concatenate([[BUSY, ex.FLOOR, ex.FLOOR, ex.FLOOR], p[4:]])
    present = pattern_of_rate(pattern, p.tolist(), rounds)
    rate = present.mean(axis=0) if pattern == "cyclic" else p
    paths = {K: weight_paths(present, K) for K in (inf, 50.0)}
    t = np.arange(rounds, dtype=float)
    columns: dict[str, list[Curve]] = {}
    named = {"mean of 250 clients": None, f"client with p = {BUSY}": 0}
    named |= {f"client with p = {ex.FLOOR}, no. {k}": k for k in (1, 2, 3)}
    for name, n in named.items():
        curves = [Curve("K = inf" if np.isinf(K) else f"K = {K:g}", t, w.mean(axis=1) if n is None else w[:, n])
                  for K, w in paths.items()]  # fmt: skip
        exact = 1 / p if n is None else np.array([1 / p[n]])
        curves.append(Curve("1/p", t[[0, -1]], np.full(2, exact.mean())))
        if pattern == "Bernoulli":
            values, counts = np.unique(p if n is None else p[[n]], return_counts=True)
            means = [mean_weight(value, 50, rounds) for value in values.tolist()]
            curves.append(Curve("expected, K = 50", t, np.average(means, axis=0, weights=counts)))
        columns[name] = curves
    title = f"Figure {number}: aggregation weights, {pattern} participation"
    exactly = "Dash-dotted: 1/p." + (" Dotted: the exact expectation for K = 50." if pattern == "Bernoulli" else "")
    with new_figure(12.0, 3.3, title) as figure:
        for panel, (name, curves) in zip(figure.subplots(1, len(columns)), columns.items(), strict=True):
            for i, curve in enumerate(curves):
                width = 1.0 if i < 2 else 1.2
                panel.plot(curve.x, curve.y, label=curve.label, color=(*COLORS[:2], "#000000", COLORS[2])[i],
                           linestyle=("-", "--", "-.", ":")[i], linewidth=width)  # fmt: skip
            panel.set_title(name, fontsize=9)
            panel.set_xlabel("round $t$")
            panel.set_xticks([0, rounds / 2, rounds])
            panel.set_yscale("log")
            panel.set_ylim(bottom=0.9)
        axes = figure.get_axes()
        axes[0].set_ylabel(r"weight $\omega_t^n$")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    ends = "; ".join(f"client {n}: took part in {rate[n]:.2%} of the rounds" for n in range(4))
    return Picture(
        figure,
        f"{title}: {rounds} rounds, N = 250, rates of (C.6.1) with mean 0.1 and lower bound {ex.FLOOR} but for the "
        f"four clients shown. {exactly} {ends}. With K = 50 the weights of rare clients settle below 1/p = 50: that "
        "is the bias which the cut-off pays for its smaller variance.",
        "Five panels of weights against rounds; with K = 50 rare clients' weights settle lower and vary less.",
        [Curve(f"{name}: {c.label}", c.x, c.y) for name, curves in columns.items() for c in curves],
        {"pattern": pattern, "seed": SEED, "rounds": rounds, "clients": 250},
    )


def distributions(number: str, what: str, groups: dict[str, np.ndarray]) -> Picture:
    """Cumulative distributions of the rates, over several seeds."""
    share = {label: np.arange(1, len(p) + 1) / len(p) for label, p in groups.items()}
    curves = [Curve(label, np.maximum(np.sort(p), SMALLEST), share[label]) for label, p in groups.items()]
    title = f"Figure {number}: participation rates for {what}"
    means = "; ".join(f"{label}: mean {p.mean():.4g}, smallest {p.min():.3g}" for label, p in groups.items())
    return panels(
        {"": curves},
        x_label="$p_n$",
        y_labels=["share of clients"],
        title=title,
        caption=f"{title}: cumulative distributions over 250 clients and 20 seeds, ten classes, alpha_d = alpha_p = "
        f"0.1. {means}. Rates below {SMALLEST:g} are drawn there.",
        alternative=f"Cumulative distributions of the rates for {', '.join(groups)}.",
        provenance={"clients": 250, "seeds": 20},
        x_scale="log",
    )


def _pool_rates(mean: float, floor: float) -> np.ndarray:
    return np.concatenate([ex.paper_rates(seed, mean=mean, floor=floor) for seed in range(20)])


def figure_d_5_1() -> Picture:
    """The rates' distribution for several lower bounds."""
    groups = {f"lower bound {floor:g}": _pool_rates(ex.MEAN, floor) for floor in (0.0, 0.002, 0.02, 0.05)}
    return distributions("D.5.1", "several lower bounds", groups)


def figure_d_6_1() -> Picture:
    """The rates' distribution for several means, without a lower bound."""
    groups = {f"mean {mean:g}": _pool_rates(mean, 0.0) for mean in ex.MEANS}
    return distributions("D.6.1", "several means", groups)
