"""Figures over the reference theorems: which method has the best bound where, and upper against lower bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedbounds.bounds.comparison.method_map import map_methods
from fedbounds.bounds.evaluation.evaluate import evaluate
from fedbounds.bounds.theory.registry import load
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.method_map import method_map_picture
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.charts.result_graph import registry_graph

CELLS = 30  # settings on each axis of a map
ROUNDS = np.unique(np.geomspace(10, 1e6, 60).round())
MISSED = 0.05  # the probability that some client is unavailable for longer
MINIBATCH, LOCAL = "patel-2024/minibatch-sgd-convex", "woodworth-2020/local-sgd-convex"
LOCAL_AT_MINIMIZER = "koloskova-2020/local-sgd-convex"
HIDDEN = "Order only: every constant that an O or an Omega hides is 1, so only the slope of a line has a meaning."
# The upper bounds of a class with its lower bound; each holds on the whole class of the lower one, or on a smaller one
# that has the lower bound's worst case.
CLASSES: Mapping[str, tuple[tuple[str, str, Mapping[str, str]], ...]] = {
    "convex": (
        ("all methods", "patel-2024/convex-lower-bound", {
            "Minibatch SGD": MINIBATCH, "Accelerated minibatch SGD": "patel-2024/accelerated-minibatch-sgd-convex",
        }),
        ("local SGD", "patel-2024/local-sgd-lower-bound", {"Local SGD": LOCAL_AT_MINIMIZER}),
    ),
    "nonconvex": (
        ("all methods", "arjevani-2023/lower-bound-bounded-variance", {
            "Minibatch SGD": "patel-2022/minibatch-sgd-nonconvex", "Local SGD": "koloskova-2020/local-sgd-nonconvex",
        }),
    ),
}  # fmt: skip


def _axis(low: float, high: float) -> np.ndarray:
    return np.geomspace(low, high, CELLS)


def regimes() -> Picture:
    """The smallest convex bound over gradient noise and heterogeneity."""
    keys = [MINIBATCH, "patel-2024/accelerated-minibatch-sgd-convex", LOCAL]
    known = {"L": 1, "D2": 1, "N": 10, "T": 20, "I": 100}
    return method_map_picture(
        map_methods(keys, ("sigma", _axis(1e-3, 1)), ("d", _axis(1e-4, 1)), known),
        title="Convex, 20 rounds: which method has the smallest bound",
        note="Local SGD needs little noise and similar clients; the accelerated method needs neither.",
        labels=["Minibatch SGD", "Accelerated minibatch SGD", "Local SGD"],
        x_label=r"gradient noise $\sigma$",
        y_label="heterogeneity $d$",
    )


def local_steps() -> Picture:
    """Minibatch SGD against local SGD over local steps and heterogeneity."""
    known = {"L": 1, "D2": 1, "N": 10, "T": 100, "sigma": 0.1, "zetastar": 0}
    return method_map_picture(
        map_methods([MINIBATCH, LOCAL, LOCAL_AT_MINIMIZER], ("I", _axis(1, 1000)), ("d", _axis(1e-4, 1)), known),
        title="Convex, 100 rounds: minibatch SGD or local SGD",
        note="Local SGD has the smaller bound with many local steps and similar clients. Its bound with heterogeneity "
        "at the minimizer only is drawn at 0, where it is least.",
        labels=["Minibatch SGD", "Local SGD", "Local SGD, heterogeneity at the minimizer"],
        x_label="local steps $I$ (minibatch SGD: gradients of a client) in a round",
        y_label="heterogeneity $d$",
    )


def participation() -> Picture:
    """SCAFFOLD against FedAvg over participation and heterogeneity."""
    keys = [("karimireddy-2020/fedavg-nonconvex", "repaired:units"), "karimireddy-2020/scaffold-nonconvex"]
    known = {"L": 1, "F": 1, "N": 100, "T": 1000, "I": 10, "Bd": 1, "sigma": 1}
    return method_map_picture(
        map_methods(keys, ("S", _axis(1, 100)), ("Gd", _axis(1e-2, 10)), known),
        title="Nonconvex, 1000 rounds: FedAvg or SCAFFOLD",
        note="The noise is 1, so the vertical axis is also heterogeneity by noise. FedAvg is written with the factors "
        "L and sqrt(L)*F that the units of its printed terms lack.",
        labels=["FedAvg", "SCAFFOLD"],
        x_label="participants $S$ of 100 clients in a round",
        y_label="heterogeneity $G$",
    )


def memory() -> Picture:
    """FedAU against MIFA: the bound and the memory of the server over the number of clients."""
    rate, rounds = 0.1, 1e5
    clients = np.unique(np.geomspace(10, 1000, 25).round())
    shared = {"I": 10, "T": rounds, "sigma": 1}
    found: dict[str, list[float]] = {"FedAU": [], "MIFA": [], "FedAU, gradient noise only": []}
    for count in clients.astype(int).tolist():
        away = math.ceil(
            math.log(count * rounds / MISSED) / -math.log1p(-rate)
        )  # a union bound over clients and rounds
        known = {**shared, "L": 1, "F": 1, "G": 1, "delta": 1, "p": [rate] * count}
        fedau = evaluate("fedau/corollary-4", known, form="printed")
        found["FedAU"].append(float(fedau.value))
        found["FedAU, gradient noise only"].append(float(fedau.terms["gradient noise"]))
        found["MIFA"].append(float(evaluate("gu-2021/mifa", {**shared, "N": count, "E": away}).value))
    models = {"FedAU": np.ones(len(clients)), "MIFA": clients + 1}
    return panels(
        {
            "Bound (order only)": [Curve(name, clients, np.array(values)) for name, values in found.items()],
            "Memory of the server": [Curve(name, clients, values) for name, values in models.items()],
        },
        x_label="number of clients $N$",
        y_labels=["squared gradient norm of $f$", "numbers stored / model size"],
        title="FedAU and MIFA: bound and memory",
        caption="Nonconvex bounds and the memory of the server over the number of clients. MIFA stores the last update "
        "of every client beside the model; FedAU stores the model (each client keeps its own weight). Every client "
        f"takes part with probability {rate:g}, {rounds:g} rounds of 10 local steps, L = F = G = delta = sigma = 1. "
        f"MIFA's longest absence E holds for all clients with probability {1 - MISSED:g}. {HIDDEN} MIFA's rate is "
        "quoted, with heterogeneity and terms of lower order hidden; FedAU's bound has them, so its gradient noise "
        "term is drawn too. The left-hand sides differ: minimum over rounds given participation (MIFA), average over "
        "rounds in expectation over participation (FedAU).",
        alternative="Two panels over the number of clients: MIFA's bound falls faster, its memory grows in proportion.",
        provenance={"constants": {**shared, "L": 1, "F": 1, "G": 1, "delta": 1, "p": rate},
                    "keys": ["fedau/corollary-4:printed", "gu-2021/mifa"]},
        y_scales=["log", "log"],
        x_scale="log",
    )  # fmt: skip


def gap() -> Picture:
    """Order-only upper bounds divided by the lower bound of their class, over the number of rounds."""
    given: dict[str, Any] = {"L": 1, "D2": 1, "F": 1, "N": 10, "I": 10, "sigma": 0.1, "zetastar": 0.1, "zeta": 0.1}
    groups, said = {}, []
    for name, classes in CLASSES.items():
        curves = groups[name] = []
        for methods, lower_key, uppers in classes:
            lower = bound_over_rounds(lower_key, given)
            ratios = {label: bound_over_rounds(key, given) / lower for label, key in uppers.items()}
            best = np.min([*ratios.values()], axis=0)
            first = next((label for label, ratio in ratios.items() if (ratio <= best).all()), "")  # the best everywhere
            named = f"best of {methods}{f': {first}' if first else ''}"
            others = {label: ratio for label, ratio in ratios.items() if label != first}
            curves += [Curve(label, ROUNDS, ratio) for label, ratio in {named: best, **others}.items()]
            said.append(
                f"{name}, {methods}: the best ratio is {best[0]:.3g} at the left end and {best[-1]:.3g} at the right"
            )
    return panels(
        groups,
        x_label="number of rounds $T$",
        y_labels=["upper bound / lower bound"] * len(groups),
        title="Upper bounds divided by lower bounds",
        caption="Upper bounds divided by the lower bound of their class. Convex: local SGD by the lower bound of local "
        "SGD, the others by that of all methods with intermittent communication. Nonconvex: by the lower bound of "
        "first-order methods. Every left-hand side is about the output of the method. "
        f"{HIDDEN} A flat line matches the lower bound in T. {'; '.join(said)}. The convex bound "
        "of local SGD with bounded heterogeneity is left out: it is about a smaller class, whose lower bound is less. "
        f"Constants: {', '.join(f'{symbol} = {value}' for symbol, value in given.items())}.",
        alternative="Two panels of ratios over rounds; the best upper bound of each class becomes flat.",
        provenance={"constants": given, "classes": CLASSES},
        y_scales=["log", "log"],
        x_scale="log",
        legends=True,
    )


def bound_over_rounds(key: str, given: Mapping[str, Any]) -> np.ndarray:
    """The bound of a result over `ROUNDS`, from the constants that it knows; nan where a condition fails."""
    notation = load(key).notation
    known = {name: value for name, value in given.items() if notation.resolve(name) is not None}
    found = evaluate(key, {**known, "T": ROUNDS}, strict=False)
    return np.where(found.valid, found.value, np.nan)


FIGURES: Mapping[str, Callable[[], Picture]] = {
    "regimes": regimes,
    "gap": gap,
    "local-steps": local_steps,
    "participation": participation,
    "memory": memory,
    "graph": registry_graph,
}
