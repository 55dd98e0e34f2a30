"""The paper's experimental claims against what we measured, and against the paper's own tables as printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from fedbounds.figures.claims import Claim, Finding, Found, Level, above, every, mean_in_words, means_in_words
from fedbounds.figures.papers.fedau import experiments as ex
from fedbounds.figures.papers.fedau import rates
from fedbounds.figures.papers.fedau.drawing import ACCURACIES, CLIENT_METRICS, Gallery
from fedbounds.figures.papers.fedau.network import NETWORKS
from fedbounds.figures.printed import Holds, PrintedTables, above_all, falls, judged

STORED = (ex.FEDVARP, ex.MIFA, ex.KNOWN)  # the lower part of the paper's tables

PRINTED = PrintedTables("fedau", 5)


def all_claims(gallery: Gallery) -> list[Claim]:
    """Every experimental claim of the paper, on the runs of this room and on the printed tables."""
    columns = {
        f"{pattern}, {name} accuracy": {label: gallery.accuracy(traces, metric) for label, traces in runs.items()}
        for pattern, runs in gallery.by_pattern.items()
        for name, metric in ACCURACIES.items()
    }
    claims = [claim for where, found in columns.items() for claim in table_1(where, found)]
    claims.append(generally(columns))
    for name, metric in ACCURACIES.items():
        by_alpha = gallery.by_alpha.items()
        found = {a: {k: gallery.accuracy(v, metric) for k, v in runs.items()} for a, runs in by_alpha}
        claims += table_d_1_1(f"{name} accuracy", found)
    for name, metric in CLIENT_METRICS.items():
        claims += table_d_3_1(
            name, {label: metrics[metric].std(axis=1) for label, metrics in gallery.by_client.items()}
        )
    for mean, runs in gallery.by_mean.items():
        for name, metric in ACCURACIES.items():
            found = {label: gallery.accuracy(traces, metric) for label, traces in runs.items()}
            claims += table_d_6_1(f"mean rate {mean:g}, {name} accuracy", found)
    for floor, runs in gallery.by_cutoff.items():
        claims += figure_1(floor, {K: gallery.accuracy(traces, "test_accuracy") for K, traces in runs.items()})
    return [*claims, *printed_claims(), *rates.claims(), *NETWORKS.claims(gallery)]


def table_1(where: str, found: Found) -> list[Claim]:
    """Section 5's reading of Table 1, on one column."""
    measured, best = means_in_words(found), max(found[ex.FEDAU], found[ex.FEDAU_INF], key=np.mean)
    return [
        Claim("Table 1", f"FedAU is the best of the four without more memory or known rates ({where})", measured,
              every(above(best, found[other]) for other in (ex.PARTICIPATING, ex.ALL))),
        Claim("Table 1", f"FedAU is better than FedVarp and MIFA ({where})", measured,
              every(above(best, found[other]) for other in (ex.FEDVARP, ex.MIFA))),
        Claim("Table 1", f"FedAU is better than known participation statistics ({where})", measured,
              above(best, found[ex.KNOWN])),
    ]  # fmt: skip


def generally(found: Mapping[str, Found], share: float = 0.75) -> Claim:
    """Section 5: the cut-off "generally" helps, which is three quarters of the columns here."""
    gains = {where: above(column[ex.FEDAU], column[ex.FEDAU_INF]) for where, column in found.items()}
    clear = [sum(gain.agrees is agrees for gain in gains.values()) for agrees in (True, False)]
    open_ = [gain for gain in gains.values() if gain.agrees is None]
    lead = {where: column[ex.FEDAU] - column[ex.FEDAU_INF] for where, column in found.items()}
    return Claim(
        "Table 1",
        'K = 50 is "generally" better than K = inf (three quarters of the columns)',
        "; ".join(f"{where} {mean_in_words(v, '+.2f')}" for where, v in lead.items()),
        Finding(True) if clear[0] >= share * len(gains)
        else Finding(False) if clear[1] > (1 - share) * len(gains)
        else Finding(None, min(gain.seeds_needed for gain in open_)),
    )  # fmt: skip


def table_d_1_1(where: str, found: Mapping[float, Found]) -> list[Claim]:
    """Appendix D.1: FedAU gains the more the more heterogeneous participation is."""
    claims = []
    for other in (ex.PARTICIPATING, ex.ALL):
        gains = {alpha: v[ex.FEDAU] - v[other] for alpha, v in found.items()}
        measured = "; ".join(f"alpha_p = {alpha:g}: {gain.mean():.2f}" for alpha, gain in gains.items())
        grows = every(above(a, b) for a, b in pairwise(gains.values()))
        claims.append(
            Claim("Table D.1.1", f"FedAU's lead over {other} grows with heterogeneity ({where})", measured, grows)
        )
    return claims


def table_d_3_1(where: str, found: Found) -> list[Claim]:
    """Appendix D.3: FedAU makes clients more alike."""
    measured = "; ".join(f"{label} {values.mean():.4g}" for label, values in found.items())
    return [
        Claim("Table D.3.1", f"{label} has the smaller deviation over clients ({where})", measured,
              every(above(found[other], found[label]) for other in (ex.PARTICIPATING, ex.ALL)))
        for label in (ex.FEDAU, ex.FEDAU_INF)
    ]  # fmt: skip


def table_d_6_1(where: str, found: Found) -> list[Claim]:
    """Appendix D.6: rare participation."""
    measured = means_in_words(found)
    others = [values for label, values in found.items() if label not in (ex.FEDAU, ex.FEDAU_INF)]
    plain, stored = (ex.PARTICIPATING, ex.ALL), STORED
    return [
        Claim("Table D.6.1", f"FedAU with K = 50 is the best ({where})", measured,
              every(above(found[ex.FEDAU], other) for other in others)),
        Claim("Table D.6.1", f"the plain averages beat FedVarp, MIFA and known statistics ({where})", measured,
              every(above(found[a], found[b]) for a in plain for b in stored)),
    ]  # fmt: skip


def figure_1(floor: float, found: Mapping[float, np.ndarray]) -> list[Claim]:
    """Section 5: K = 50 is the best length, whatever the lower bound."""
    where = f"lower bound {floor:g}" if floor else "no lower bound"
    measured = "; ".join(f"K = {K:g}: {mean_in_words(v)}" for K, v in found.items())
    middle, ends = [v for K, v in found.items() if 1 < K < 100], (min(found), max(found))
    best = max(middle, key=np.mean)
    return [
        Claim("Figure 1", f"an intermediate K is better than K = 1 and than no cut-off ({where})", measured,
              every(above(best, found[K]) for K in ends)),
        Claim("Figure 1", f"K = 50 is the best ({where})", measured,
              every(above(found[50], values) for K, values in found.items() if K != 50)),
    ]  # fmt: skip


def printed_claims() -> list[Claim]:
    """What the paper says of its own tables, in our words: agrees if the printed means say so, disagrees only if what
    does not is more than two standard errors away."""
    K_inf, K_50 = "FedAU (ours, K->inf)", "FedAU (ours, K=50)"
    plain = ("Average participating", "Average all")
    stored = ("FedVarp (250x memory)", "MIFA (250x memory)", "Known participation statistics")
    main, by_alpha, rare = PRINTED.levels("Table 1", 2), PRINTED.levels("Table D.1.1"), PRINTED.levels("Table D.6.1")
    spread = PRINTED.levels("Table D.3.1")

    def fedau_above(others: Sequence[str]) -> Holds:
        return lambda c: above_all(c, max((K_inf, K_50), key=lambda label: c[label].mean), others)

    cifar_10_test = {name: c for name, c in main.items() if "CIFAR-10 Test" in name}
    rest = {name: c for name, c in main.items() if name not in cifar_10_test}
    claims = [
        judged("Table 1", "FedAU is the best of the upper part", main, fedau_above(plain)),
        judged("Table 1", "FedAU is the best of all but on the test data of CIFAR-10", rest,
               fedau_above((*plain, *stored))),
        judged("Table 1", "FedVarp is the best on the test data of CIFAR-10 (in at least one pattern)", cifar_10_test,
               lambda c: above_all(c, stored[0], [m for m in c if m != stored[0]]), 1 / len(cifar_10_test)),
        judged("Table 1", "K = 50 is generally better than K = inf (three quarters of the columns)", main,
               lambda c: above_all(c, K_50, [K_inf]), 0.75),
        judged("Table 1", "K = 50 is better than known statistics", main, lambda c: above_all(c, K_50, stored[2:])),
        judged("Table 1", "K = inf is better than known statistics", main, lambda c: above_all(c, K_inf, stored[2:])),
    ]  # fmt: skip
    for other in (*plain, *stored):
        for part in ("Train", "Test"):
            pairs = [(c[K_50], c[other]) for name, c in by_alpha.items() if name.endswith(part)]
            gains = [Level(round(a.mean - b.mean, 6), float(np.hypot(a.error, b.error))) for a, b in pairs]
            claims.append(Claim("Table D.1.1 as printed", f"the lead over {other} grows with heterogeneity ({part})",
                                ", ".join(f"{gain.mean:.1f}" for gain in gains), falls(gains)))  # fmt: skip
    for label in (K_50, K_inf):
        claims.append(judged("Table D.3.1", f"{label} has the smallest deviations over clients", spread,
                             lambda c, label=label: every(above_all(c, m, [label]) for m in plain)))  # fmt: skip
    claims += [
        judged("Table D.6.1", "FedAU with K = 50 is the best", rare,
               lambda c: above_all(c, K_50, [m for m in c if m != K_50])),
        judged("Table D.6.1", "the plain averages beat FedVarp, MIFA and known statistics", rare,
               lambda c: every(above_all(c, m, stored) for m in plain)),
    ]  # fmt: skip
    return [*claims, interval_claim()]


def interval_claim(rounds: int = 10_000, p: float = 0.02) -> Claim:
    """Section 5's numbers about a rare client in a long run."""
    mean, deviation = rounds * p, (rounds * p * (1 - p)) ** 0.5
    low, high = (rounds / (round(mean) + 2 * s * round(deviation)) for s in (1, -1))
    return Claim("Section 5", "T = 10,000, p = 0.02: 200 participations +- 2 * 14, mean intervals from 43.9 to 58.1",
                 f"{mean:.0f} +- 2 * {deviation:.1f}: from {low:.1f} to {high:.1f}",
                 (round(mean), round(deviation), round(low, 1), round(high, 1)) == (200, 14, 43.9, 58.1))  # fmt: skip
