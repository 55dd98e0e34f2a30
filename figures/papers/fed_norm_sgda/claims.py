"""The claims of the paper's figures and two about rates, compared with our runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Full
from fedbounds.empirical.simulation.moments import fixed_point, moments
from fedbounds.figures.charts.claims import FigureClaim, Found, Limits, describe_level, levels_by_name, limits_of
from fedbounds.figures.charts.significance import Level, PartialFinding, SignTest, all_agree
from fedbounds.figures.papers.fed_norm_sgda import bounds as theorems
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda import plateau, rates, surrogate
from fedbounds.figures.papers.fed_norm_sgda.drawing import EPOCHS, STEPS, Gallery, describe_rounds
from fedbounds.figures.papers.fed_norm_sgda.network import NETWORKS

ALMOST = 0.75  # of k: "almost k-fold fewer rounds"


def all_claims(gallery: Gallery) -> list[FigureClaim]:
    """Every claim; those of Figures 1 and 2 and of the rates are exact."""
    robust, fair = ex.ACCURACY[ex.ROBUST], ex.ACCURACY[ex.FAIR]
    claims = [figure_1(), figure_2()]
    for source, compared in (("Figure 3", gallery.robust_methods), ("Figure 5", gallery.fair_methods)):
        claims += [claim for one in compared for claim in one.claims(source, ex.PAPER_NETWORKS)]
    claims += plateau.claims(gallery.plateaus)

    by_P = {alpha: accuracies(gallery, some, robust, "P") for alpha, some in gallery.by_participants.items()}
    for alpha, (limits, found) in by_P.items():
        text = f"robust accuracy increases with P (alpha = {alpha:g})"
        claims += limits.apply([increases("Figure 4", text, found, "Text on Figure 4: accuracy increases with P")])
    settings = {_curve(P, alpha): one for alpha, by in gallery.by_participants.items() for P, one in by.items()}
    limits, _ = accuracies(gallery, settings, robust)
    claims += limits.apply(heterogeneity_claims({alpha: levels for alpha, (_, levels) in by_P.items()}))
    limits, found = accuracies(gallery, gallery.by_alpha, robust, "alpha")
    claims += limits.apply([increases("Figure 6", "the larger alpha, the better", found,
                                      "Text on Figure 6: the smaller alpha, the worse")])  # fmt: skip
    claims += figure_7(gallery)
    limits, found = accuracies(gallery, gallery.by_fair_participants, fair, "P")
    text = "worst-class accuracy improves with P"
    claims += limits.apply([increases("Figure 8", text, found, "Text on Figure 8: it improves with P")])
    return [*claims, fewer_rounds(), noise_limit(), *rates.claims(), *NETWORKS.claims(gallery)]


def accuracies(
    gallery: Gallery, settings: Mapping[Any, ex.ExperimentSetting], metric: str, symbol: str = ""
) -> tuple[Limits, dict[Any, Level]]:
    """Accuracies over the last rounds by a setting's value, and the limits of claims about them."""
    of = gallery.final_runs(settings.values())
    runs = {value: of[one] for value, one in settings.items()}
    found = levels_by_name({value: gallery.accuracy(traces, metric) for value, traces in runs.items()}, symbol)
    by_name = {found[value].name: traces for value, traces in runs.items()}
    return limits_of(gallery.scale.network, ex.PAPER_NETWORKS, by_name, gallery.scale.last, metric), found


def increases(source: str, text: str, found: Found, paper: str) -> FigureClaim:
    """Each setting is better than the one before, none significantly worse, the last significantly above the first."""
    ordered = [found[value] for value in sorted(found)]
    steps = [
        PartialFinding((more.above(less),), by_means=more.mean > less.mean or None) for less, more in pairwise(ordered)
    ]
    measured = "; ".join(f"{one.name}: {describe_level(one)}" for one in ordered)
    return FigureClaim(source, text, measured, all_agree([*steps, ordered[-1].above(ordered[0])]), paper)


def _curve(participants: int, alpha: float) -> str:
    """The name of a curve of Figure 4."""
    return f"P = {participants} (alpha = {alpha:g})"


def heterogeneity_claims(by_P: Mapping[float, Found]) -> list[FigureClaim]:
    """Figure 4: the dashed lines are above the solid ones."""
    less, more = sorted(by_P)
    return [
        FigureClaim("Figure 4", f"alpha = {more:g} is better than alpha = {less:g} (P = {P})",
              f"{by_P[more][P].mean:.2f} against {by_P[less][P].mean:.2f}",
              replace(by_P[more][P], name=_curve(P, more)).above(replace(by_P[less][P], name=_curve(P, less))),
              f"Text on Figure 4: alpha = {more:g} is better than {less:g}")
        for P in by_P[less]
    ]  # fmt: skip


def figure_7(gallery: Gallery) -> list[FigureClaim]:
    """Figure 7's claims; only runs of which some seed does not reach the target need a plateau."""
    claims = []
    for kind, where in ((EPOCHS, "epochs of the same images dealt to n"), (STEPS, "the same local steps for every n")):
        by_n = gallery.reaching(gallery.by_number[kind])
        rounds = {n: gallery.rounds_to_target(traces) for n, traces in by_n.items()}
        missed = {f"n = {n}": by_n[n] for n, found in rounds.items() if not np.isfinite(found).all()}
        limits = limits_of(gallery.scale.network, ex.PAPER_NETWORKS, missed, gallery.scale.reach / 10, "test_accuracy")
        claims += limits.apply([speed_up(where, rounds)])
    return claims


def speed_up(where: str, rounds: Mapping[int, np.ndarray]) -> FigureClaim:
    """Figure 7: k-fold more clients need almost k-fold fewer rounds; by seeds if some never arrive."""
    fewest, most = min(rounds), max(rounds)
    k = most / fewest
    words = "; ".join(f"n = {n}: {describe_rounds(found)}" for n, found in rounds.items())
    text = f"k-fold more clients need fewer rounds, at least {ALMOST:g} k-fold ({where})"
    said = f"Text on Figure 7: k-fold more clients need almost k-fold fewer rounds; {ALMOST:g} k is our border"
    before, after = rounds[fewest], ALMOST * k * rounds[most]
    if np.isfinite([*before, *after]).all():
        gained = float(before.mean() / rounds[most].mean())
        measured = f"{words}; {k:g}-fold more clients, {gained:.2f}-fold fewer rounds"
        levels = (
            Level.from_values(before, f"rounds of n = {fewest}"),
            Level.from_values(after, f"{ALMOST * k:g} rounds of n = {most}"),
        )
        return FigureClaim("Figure 7", text, measured, levels[0].above(levels[1]), said)
    so = before > after
    differ = before != after  # seeds that reach the target with at least one
    measured = f"{words}; so in {np.count_nonzero(so)} of {len(before)} seeds"
    found = SignTest(int(so.sum()), int(differ.sum()), f"{ALMOST:g} k-fold fewer rounds")
    return FigureClaim("Figure 7", text, measured, found, said)


def figure_1(steps: tuple[int, int] = (2, 5)) -> FigureClaim:
    """Figure 1, exactly: two clients of a quadratic."""
    clients = [surrogate.client_saddle(surrogate.TWO, i) for i in range(2)]
    naive, own = (
        fixed_point(surrogate.method(name, steps), surrogate.TWO) for name in (surrogate.NAIVE, surrogate.NORMALIZED)
    )
    share = [float((point - clients[0]) @ (clients[1] - clients[0])) for point in (naive, own)]
    share = [value / float(np.sum((clients[1] - clients[0]) ** 2)) for value in share]
    return FigureClaim(
        "Figure 1", "naive averaging is pulled to the client with more steps (tau = 2 and 5)",
        f"settles {share[0]:.2f} of the way from client 1 to client 2, normalized averaging {share[1]:.2f}; right is "
        "0.50", share[0] > max(0.5, share[1]),
    )  # fmt: skip


def figure_2(steps: int = 3) -> FigureClaim:
    """The caption's (g_x, g_y) = (1/tau)(Delta_x, Delta_y), Delta_x = (x_tau - x)/eta_x being negative of a sum."""
    size = 0.1
    rule = FedNormSGDA(size, size, 1.0, 1.0, local_steps=steps, effective_local_steps=1.0, weights=(1.0, 0.0))
    moved = FedNormSGDA(size, size, size, size, local_steps=steps, weights=(1.0, 0.0), normalized=False)
    start = surrogate.TWO.z0.numpy()
    step, delta = (moments(one, surrogate.TWO, Full(2), 1).mean[1] - start for one in (rule, moved))
    g_x, g_y = -step[0], step[1]  # as the server descends in x and ascends in y, with steps of 1
    along = [float(delta[i] / size / steps / g) for i, g in enumerate((g_x, g_y))]
    return FigureClaim(
        "Figure 2, caption", "(g_x, g_y) = (1/tau)(Delta_x, Delta_y)",
        f"Delta_x/tau is {along[0]:.3f} times g_x, Delta_y/tau {along[1]:.3f} times g_y",
        all(abs(value - 1) < 1e-9 for value in along),
    )  # fmt: skip


def fewer_rounds(rounds: Sequence[int] = (10**9, 10**10, 10**11, 10**12)) -> FigureClaim:
    """Corollary 2.2: O(epsilon^-4) rounds, which is a bound that falls like T^(-1/2)."""
    found = theorems.headlines(rounds)
    slopes = {capped: line.slope for capped, line in found.items()}
    return FigureClaim(
        "Corollary 2.2", "epsilon^-4 rounds for nonconvex-concave problems follow from Theorem 4",
        f"its least bound falls like T^{slopes[True]:.3f}, so epsilon^{2 / slopes[True]:.1f} rounds; without its cap "
        f"on the step in y like T^{slopes[False]:.3f}", abs(slopes[True] + 0.5) < 0.01,
    )  # fmt: skip


def noise_limit(fewest: int = 2, most: int = 32, rounds: int = 5000) -> FigureClaim:
    """Corollary 1.2: n clients average the noise like one client with n times the batch."""
    floors = []
    for n in (fewest, most):
        one = theorems.QuadraticRun(clients=n, participants=0, rounds=rounds)
        run = moments(one.algorithm, one.problem(at_saddle=True), one.process, rounds)
        floors.append(float(run.envelope_gradient_norm_squared()[:-1].mean()))
    gained = floors[0] / floors[1]
    return FigureClaim(
        "Corollary 1.2", "linear speed-up in n: the noise falls like 1/n",
        f"{most // fewest}-fold more clients, {gained:.2f}-fold less E|grad Phi|^2 at the saddle (exact moments)",
        abs(gained * fewest / most - 1) < 0.05,
    )  # fmt: skip
