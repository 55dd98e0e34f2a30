"""What the paper says in its figures, and two of its claims about rates, against what we measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fedbounds.empirical.moments import fixed_point, moments
from fedbounds.empirical.papers.fed_norm_sgda.algorithms import FedNormSGDA
from fedbounds.empirical.participation import Full
from fedbounds.figures.claims import Claim, Finding, Found, above, every, mean_in_words
from fedbounds.figures.papers.fed_norm_sgda import bounds as theorems
from fedbounds.figures.papers.fed_norm_sgda import experiments as ex
from fedbounds.figures.papers.fed_norm_sgda import plateau, rates, surrogate
from fedbounds.figures.papers.fed_norm_sgda.drawing import EPOCHS, STEPS, Gallery, rounds_in_words
from fedbounds.figures.papers.fed_norm_sgda.network import NETWORKS

ALMOST = 0.75  # of k: "almost k-fold fewer rounds"


def all_claims(gallery: Gallery) -> list[Claim]:
    """Every claim, on the runs of this room; of Figures 1 and 2 and of the rates, exactly."""
    robust, fair = ex.ACCURACY[ex.ROBUST], ex.ACCURACY[ex.FAIR]
    claims = [figure_1(), figure_2()]
    for source, compared in (("Figure 3", gallery.robust_methods), ("Figure 5", gallery.fair_methods)):
        claims += [claim for one in compared for claim in one.claims(source)]
    claims += plateau.claims(gallery.plateaus)

    def accuracies(settings: Mapping[Any, ex.Setting], metric: str) -> dict[Any, np.ndarray]:
        return {value: gallery.accuracy(gallery.judged(one), metric) for value, one in settings.items()}

    by_P = {alpha: accuracies(settings, robust) for alpha, settings in gallery.by_participants.items()}
    for alpha, found in by_P.items():
        claims.append(increases("Figure 4", f"robust accuracy increases with P (alpha = {alpha:g})", "P", found))
    claims += alike_is_better(by_P)
    by_alpha = accuracies(gallery.by_alpha, robust)
    claims.append(increases("Figure 6", "the smaller alpha, the worse", "alpha", by_alpha))
    for kind, where in ((EPOCHS, "epochs of the same images dealt to n"), (STEPS, "the same local steps for every n")):
        rounds = {n: gallery.rounds_to_target(gallery.reaching(one)) for n, one in gallery.by_number[kind].items()}
        claims.append(speed_up(where, rounds))
    found = accuracies(gallery.by_fair_participants, fair)
    claims.append(increases("Figure 8", "worst-class accuracy improves with P", "P", found))
    return [*claims, fewer_rounds(), floor_of_noise(), *rates.claims(), *NETWORKS.claims(gallery)]


def increases(source: str, text: str, letter: str, found: Found) -> Claim:
    """Each setting better than the one before it, none clearly worse, and the last clearly better than the first."""
    ordered = dict(sorted(found.items()))
    first, *_, last = ordered.values()
    steps = ((True if more.mean() > less.mean() else above(more, less)) for less, more in pairwise(ordered.values()))
    measured = "; ".join(f"{letter} = {value:g}: {mean_in_words(v)}" for value, v in ordered.items())
    return Claim(source, text, measured, every([*steps, above(last, first)]))


def alike_is_better(by_P: Mapping[float, Found]) -> list[Claim]:
    """Figure 4: the dashed lines above the solid ones."""
    less, more = sorted(by_P)
    return [
        Claim("Figure 4", f"alpha = {more:g} is better than alpha = {less:g} (P = {P})",
              f"{by_P[more][P].mean():.2f} against {by_P[less][P].mean():.2f}", above(by_P[more][P], by_P[less][P]))
        for P in by_P[less]
    ]  # fmt: skip


def speed_up(where: str, rounds: Mapping[int, np.ndarray]) -> Claim:
    """Figure 7: k-fold more clients, almost k-fold fewer rounds; in most of the seeds, where some never arrive."""
    fewest, most = min(rounds), max(rounds)
    k = most / fewest
    words = "; ".join(f"n = {n}: {rounds_in_words(found)}" for n, found in rounds.items())
    text = f"k-fold more clients need almost k-fold fewer rounds, at least {ALMOST:g} k ({where})"
    before, after = rounds[fewest], ALMOST * k * rounds[most]
    if np.isfinite([*before, *after]).all():
        gained = float(before.mean() / rounds[most].mean())
        measured = f"{words}; {k:g}-fold more clients, {gained:.2f}-fold fewer rounds"
        return Claim("Figure 7", text, measured, above(before, after))
    seeds, never = len(before), np.isinf(before) & np.isinf(after)
    so = np.where(never, 0.5, before > after)
    measured = f"{words}; so in {np.count_nonzero(before > after)} of {seeds} seeds"
    return Claim("Figure 7", text, measured, Finding.of(float(so.mean() - 0.5), 0.5 / seeds**0.5, seeds))


def figure_1(steps: tuple[int, int] = (2, 5)) -> Claim:
    """The cartoon, exactly: two clients of a quadratic."""
    clients = [surrogate.alone(surrogate.TWO, i) for i in range(2)]
    naive, own = (
        fixed_point(surrogate.method(name, steps), surrogate.TWO) for name in (surrogate.NAIVE, surrogate.NORMALIZED)
    )
    share = [float((point - clients[0]) @ (clients[1] - clients[0])) for point in (naive, own)]
    share = [value / float(np.sum((clients[1] - clients[0]) ** 2)) for value in share]
    return Claim(
        "Figure 1", "naive averaging is pulled to the client with more steps (tau = 2 and 5)",
        f"settles {share[0]:.2f} of the way from client 1 to client 2, normalized averaging {share[1]:.2f}; right is "
        "0.50", share[0] > max(0.5, share[1]),
    )  # fmt: skip


def figure_2(steps: int = 3) -> Claim:
    """The caption's (g_x, g_y) = (1/tau)(Delta_x, Delta_y), Delta_x = (x_tau - x)/eta_x being negative of a sum."""
    size = 0.1
    rule = FedNormSGDA(size, size, 1.0, 1.0, local_steps=steps, effective_local_steps=1.0, weights=(1.0, 0.0))
    moved = FedNormSGDA(size, size, size, size, local_steps=steps, weights=(1.0, 0.0), normalized=False)
    start = surrogate.TWO.z0.numpy()
    step, delta = (moments(one, surrogate.TWO, Full(2), 1).mean[1] - start for one in (rule, moved))
    g_x, g_y = -step[0], step[1]  # as the server descends in x and ascends in y, with steps of 1
    along = [float(delta[i] / size / steps / g) for i, g in enumerate((g_x, g_y))]
    return Claim(
        "Figure 2, caption", "(g_x, g_y) = (1/tau)(Delta_x, Delta_y)",
        f"Delta_x/tau is {along[0]:.3f} times g_x, Delta_y/tau {along[1]:.3f} times g_y",
        all(abs(value - 1) < 1e-9 for value in along),
    )  # fmt: skip


def fewer_rounds(rounds: Sequence[int] = (10**9, 10**10, 10**11, 10**12)) -> Claim:
    """Corollary 2.2: O(epsilon^-4) rounds, which is a bound that falls like T^(-1/2)."""
    found = theorems.headlines(rounds)
    slopes = {capped: line.slope for capped, line in found.items()}
    return Claim(
        "Corollary 2.2", "epsilon^-4 rounds for nonconvex-concave problems follow from Theorem 4",
        f"its least bound falls like T^{slopes[True]:.3f}, so epsilon^{2 / slopes[True]:.1f} rounds; without its cap "
        f"on the step in y like T^{slopes[False]:.3f}", abs(slopes[True] + 0.5) < 0.01,
    )  # fmt: skip


def floor_of_noise(fewest: int = 2, most: int = 32, rounds: int = 5000) -> Claim:
    """Corollary 1.2: n clients average the noise like one with n times the batch."""
    floors = []
    for n in (fewest, most):
        one = theorems.QuadraticRun(clients=n, participants=0, rounds=rounds)
        run = moments(one.algorithm, one.problem(at_saddle=True), one.process, rounds)
        floors.append(float(run.envelope_gradient_norm_squared()[:-1].mean()))
    gained = floors[0] / floors[1]
    return Claim(
        "Corollary 1.2", "linear speed-up in n: the noise falls like 1/n",
        f"{most // fewest}-fold more clients, {gained:.2f}-fold less E|grad Phi|^2 at the saddle (exact moments)",
        abs(gained * fewest / most - 1) < 0.05,
    )  # fmt: skip
