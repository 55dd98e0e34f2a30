"""The paper's experimental claims, compared with our runs and with its printed tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from fedbounds.figures.charts.claims import (
    FigureClaim,
    Found,
    Limits,
    describe_level,
    describe_means,
    levels_by_name,
    limits_of,
)
from fedbounds.figures.charts.paper_gallery import Traces
from fedbounds.figures.charts.printed import (
    Holds,
    PrintedTables,
    are_above_all,
    is_above_all,
    is_decreasing,
    printed_claim,
)
from fedbounds.figures.charts.significance import Level, PartialFinding, all_agree, any_agrees, is_above_zero
from fedbounds.figures.papers.fedau import experiments as ex
from fedbounds.figures.papers.fedau import rates
from fedbounds.figures.papers.fedau.drawing import ACCURACIES, CLIENT_METRICS, Gallery
from fedbounds.figures.papers.fedau.network import NETWORKS

STORED = (ex.FEDVARP, ex.MIFA, ex.KNOWN)  # the lower part of the paper's tables

PRINTED = PrintedTables("fedau", 5)
MOST = 0.75  # the share of columns that counts as "generally"
SAID = {
    "top": "Section 5, on Table 1: FedAU is better than average participating and average all",
    "all": "Section 5, on Table 1: FedAU is the best of all methods, but FedVarp on the test data of CIFAR-10",
    "generally": "Section 5, on Table 1: K = 50 is generally better than K = inf; three quarters of the columns is our "
    "border",
    "known": "Section 5, on Table 1: FedAU is better than known participation statistics",
    "heterogeneity": "Appendix D.1, on Table D.1.1: the gain of FedAU grows with the heterogeneity of participation",
    "spread": "Appendix D.3, on Table D.3.1: FedAU reduces the deviations over clients",
    "rare": "Appendix D.6, on Table D.6.1: FedAU with K = 50 is the best",
    "plain": "Appendix D.6, on Table D.6.1: average participating and average all are better than FedVarp, MIFA and "
    "known statistics",
    "cutoff": "Section 5, on Figure 1: K = 50 is the best for every lower bound, and K of 500 or more is much worse "
    "where the lower bound is small",
}


def all_claims(gallery: Gallery) -> list[FigureClaim]:
    """Every experimental claim of the paper."""
    claims = [*table_1_claims(gallery), *table_1_claims(gallery.convolutional, "Table 1, convolutions")]
    by_alpha = {f"{k} (alpha_p = {a:g})": v for a, runs in gallery.by_alpha.items() for k, v in runs.items()}
    for name, metric in ACCURACIES.items():
        found = {a: accuracy_levels(gallery, runs, metric) for a, runs in gallery.by_alpha.items()}
        compared = {k: v for k, v in by_alpha.items() if k.startswith((ex.FEDAU, ex.PARTICIPATING, ex.ALL))}
        claims += limits(gallery, compared, metric).apply(table_d_1_1(f"{name} accuracy", found))
    for name, metric in CLIENT_METRICS.items():
        spread = {label: metrics[metric].std(axis=1) for label, metrics in gallery.by_client.items()}
        claims += limits(gallery, gallery.top, metric).apply(table_d_3_1(name, levels_by_name(spread)))
    for mean, runs in gallery.by_mean.items():
        for name, metric in ACCURACIES.items():
            found = accuracy_levels(gallery, runs, metric)
            claims += limits(gallery, runs, metric).apply(table_d_6_1(f"mean rate {mean:g}, {name} accuracy", found))
    for floor, by_K in gallery.by_cutoff.items():
        runs = {f"K = {K:g}": traces for K, traces in by_K.items()}
        levels = accuracy_levels(gallery, runs, "test_accuracy").values()
        found = dict(zip(by_K, levels, strict=True))
        claims += limits(gallery, runs, "test_accuracy").apply(figure_1(floor, found))
    return [*claims, *printed_claims(), *rates.claims(), *NETWORKS.claims(gallery)]


def table_1_claims(gallery: Gallery, source: str = "Table 1") -> list[FigureClaim]:
    """The claims about Table 1 or our table with convolutions."""
    claims, columns = list[FigureClaim](), {}
    for pattern, runs in gallery.by_pattern.items():
        for name, metric in ACCURACIES.items():
            where = f"{pattern}, {name} accuracy"
            columns[where] = accuracy_levels(gallery, runs, metric)
            claims += limits(gallery, runs, metric).apply(table_1(where, columns[where], source))
    found = Limits()
    for name, metric in ACCURACIES.items():
        cutoffs = {
            f"{label} ({pattern}, {name} accuracy)": runs[label]
            for pattern, runs in gallery.by_pattern.items() for label in (ex.FEDAU, ex.FEDAU_INF)
        }  # fmt: skip
        one = limits(gallery, cutoffs, metric)
        found |= replace(one, seconds={k: v / len(ACCURACIES) for k, v in one.seconds.items()})  # of the same runs
    return [*claims, *found.apply([cutoff_claim(columns, source)])]


def accuracy_levels(gallery: Gallery, runs: Traces, metric: str) -> dict[str, Level]:
    """Accuracies over the last rounds."""
    return levels_by_name({label: gallery.accuracy(traces, metric) for label, traces in runs.items()})


def limits(gallery: Gallery, runs: Traces, metric: str) -> Limits:
    """Why a scale does not test the paper's claims about accuracies."""
    return limits_of(gallery.scale.network, ex.PAPER_NETWORKS, runs, gallery.scale.last, metric)


def table_1(where: str, found: Found, source: str = "Table 1") -> list[FigureClaim]:
    """Section 5 on Table 1, one column; FedAU is better if one of its two cut-offs is."""
    measured = describe_means(found)

    def better(*others: str) -> PartialFinding:
        return any_agrees(
            all_agree(found[own].above(found[other]) for other in others) for own in (ex.FEDAU, ex.FEDAU_INF)
        )

    return [
        FigureClaim(source, f"FedAU is the best of the four without more memory or known rates ({where})", measured,
              better(ex.PARTICIPATING, ex.ALL), SAID["top"]),
        FigureClaim(source, f"FedAU is better than FedVarp and MIFA ({where})", measured,
              better(ex.FEDVARP, ex.MIFA), SAID["all"]),
        FigureClaim(source, f"FedAU is better than known participation statistics ({where})", measured,
              better(ex.KNOWN), SAID["known"]),
    ]  # fmt: skip


def cutoff_claim(found: Mapping[str, Found], source: str = "Table 1") -> FigureClaim:
    """Section 5: the cut-off "generally" helps, here in three quarters of the columns."""
    pairs = {
        where: [replace(column[label], name=f"{label} ({where})") for label in (ex.FEDAU, ex.FEDAU_INF)]
        for where, column in found.items()
    }
    leads = {where: short.minus(none) for where, (short, none) in pairs.items()}
    return FigureClaim(
        source,
        "K = 50 is better than K = inf in three quarters of the columns",
        "; ".join(f"{where} {describe_level(lead, '+.2f')}" for where, lead in leads.items()),
        PartialFinding(tuple(short.above(none) for short, none in pairs.values()), MOST),
        SAID["generally"],
    )


def table_d_1_1(where: str, found: Mapping[float, Found]) -> list[FigureClaim]:
    """Appendix D.1: the gain of FedAU grows with the heterogeneity of participation."""
    claims = []
    for other in (ex.PARTICIPATING, ex.ALL):
        gains = {
            alpha: replace(v[ex.FEDAU].minus(v[other]), name=f"lead at alpha_p = {alpha:g}")
            for alpha, v in found.items()
        }
        measured = "; ".join(f"alpha_p = {alpha:g}: {gain.mean:.2f}" for alpha, gain in gains.items())
        grows = all_agree([is_above_zero(gains[min(gains)]), *(a.above(b) for a, b in pairwise(gains.values()))])
        text = f"FedAU's lead over {other} grows with heterogeneity ({where})"
        claims.append(FigureClaim("Table D.1.1", text, measured, grows, SAID["heterogeneity"]))
    return claims


def table_d_3_1(where: str, found: Found) -> list[FigureClaim]:
    """Appendix D.3: FedAU makes the clients' results more equal."""
    measured = "; ".join(f"{label} {describe_level(one, '.4g')}" for label, one in found.items())
    return [
        FigureClaim("Table D.3.1", f"{label} has the smaller deviation over clients ({where})", measured,
              all_agree(found[label].below(found[other]) for other in (ex.PARTICIPATING, ex.ALL)), SAID["spread"])
        for label in (ex.FEDAU, ex.FEDAU_INF)
    ]  # fmt: skip


def table_d_6_1(where: str, found: Found) -> list[FigureClaim]:
    """Appendix D.6: rare participation."""
    measured = describe_means(found)
    others = [values for label, values in found.items() if label not in (ex.FEDAU, ex.FEDAU_INF)]
    plain, stored = (ex.PARTICIPATING, ex.ALL), STORED
    return [
        FigureClaim("Table D.6.1", f"FedAU with K = 50 is the best ({where})", measured,
              all_agree(found[ex.FEDAU].above(other) for other in others), SAID["rare"]),
        FigureClaim("Table D.6.1", f"the plain averages are better than FedVarp, MIFA and known statistics ({where})",
              measured, all_agree(found[a].above(found[b]) for a in plain for b in stored), SAID["plain"]),
    ]  # fmt: skip


def figure_1(floor: float, found: Mapping[float, Level]) -> list[FigureClaim]:
    """Section 5: K = 50 is the best cut-off for every lower bound."""
    where = f"lower bound {floor:g}" if floor else "no lower bound"
    measured = "; ".join(f"K = {K:g}: {describe_level(v)}" for K, v in found.items())
    middle, ends = [v for K, v in found.items() if 1 < K < 100], (min(found), max(found))
    return [
        FigureClaim("Figure 1", f"an intermediate K is better than K = 1 and than no cut-off ({where})", measured,
              any_agrees(all_agree(one.above(found[K]) for K in ends) for one in middle), SAID["cutoff"]),
        FigureClaim("Figure 1", f"K = 50 is the best ({where})", measured,
              all_agree(found[50].above(values) for K, values in found.items() if K != 50), SAID["cutoff"]),
    ]  # fmt: skip


def printed_claims() -> list[FigureClaim]:
    """The paper's claims about its own tables: agree by printed means, disagree only if significantly opposite."""
    K_inf, K_50 = "FedAU (ours, K->inf)", "FedAU (ours, K=50)"
    plain = ("Average participating", "Average all")
    stored = ("FedVarp (250x memory)", "MIFA (250x memory)", "Known participation statistics")
    main, by_alpha, rare = PRINTED.levels("Table 1", 2), PRINTED.levels("Table D.1.1"), PRINTED.levels("Table D.6.1")
    spread = PRINTED.levels("Table D.3.1")

    def fedau_above(others: Sequence[str]) -> Holds:
        return lambda c: is_above_all(c, max((K_inf, K_50), key=lambda label: c[label].mean), others)

    cifar_10_test = {name: c for name, c in main.items() if "CIFAR-10 Test" in name}
    rest = {name: c for name, c in main.items() if name not in cifar_10_test}
    claims = [
        printed_claim("Table 1", "FedAU is the best of the upper part", main, fedau_above(plain), paper=SAID["top"]),
        printed_claim("Table 1", "FedAU is the best of all but on the test data of CIFAR-10", rest,
               fedau_above((*plain, *stored)), paper=SAID["all"]),
        printed_claim("Table 1", "FedVarp is the best on the test data of CIFAR-10 (in at least one pattern)",
               cifar_10_test, lambda c: is_above_all(c, stored[0], [m for m in c if m != stored[0]]),
               1 / len(cifar_10_test), SAID["all"]),
        printed_claim("Table 1", "K = 50 is better than K = inf in three quarters of the columns", main,
               lambda c: is_above_all(c, K_50, [K_inf]), MOST, SAID["generally"]),
        printed_claim("Table 1", "K = 50 is better than known statistics", main,
               lambda c: is_above_all(c, K_50, stored[2:]), paper=SAID["known"]),
        printed_claim("Table 1", "K = inf is better than known statistics", main,
               lambda c: is_above_all(c, K_inf, stored[2:]), paper=SAID["known"]),
    ]  # fmt: skip
    for other in (*plain, *stored):
        for part in ("Train", "Test"):
            gains = [
                replace(gap, mean=round(gap.mean, 6), name=f"lead, {name}")
                for name, gap in (
                    (name, c[K_50].minus(c[other])) for name, c in by_alpha.items() if name.endswith(part)
                )
            ]
            claims.append(FigureClaim("Table D.1.1 as printed",
                                      f"the lead over {other} grows with heterogeneity ({part})",
                                ", ".join(f"{gain.mean:.1f}" for gain in gains), is_decreasing(gains),
                                SAID["heterogeneity"]))  # fmt: skip
    for label in (K_50, K_inf):
        text = f"{label} has smaller deviations over clients than the plain averages"
        claims.append(printed_claim("Table D.3.1", text, spread,
                      lambda c, label=label: are_above_all(c, plain, [label]), paper=SAID["spread"]))  # fmt: skip
    claims += [
        printed_claim("Table D.6.1", "FedAU with K = 50 is the best", rare,
               lambda c: is_above_all(c, K_50, [m for m in c if m != K_50]), paper=SAID["rare"]),
        printed_claim("Table D.6.1", "the plain averages are better than FedVarp, MIFA and known statistics", rare,
               lambda c: are_above_all(c, plain, stored), paper=SAID["plain"]),
    ]  # fmt: skip
    return [*claims, interval_claim()]


def interval_claim(rounds: int = 10_000, p: float = 0.02) -> FigureClaim:
    """Section 5's numbers about a rare client in a long run."""
    mean, deviation = rounds * p, (rounds * p * (1 - p)) ** 0.5
    low, high = (rounds / (round(mean) + 2 * s * round(deviation)) for s in (1, -1))
    return FigureClaim("Section 5",
                       "T = 10,000, p = 0.02: 200 participations +- 2 * 14, mean intervals from 43.9 to 58.1",
                 f"{mean:.0f} +- 2 * {deviation:.1f}: from {low:.1f} to {high:.1f}",
                 (round(mean), round(deviation), round(low, 1), round(high, 1)) == (200, 14, 43.9, 58.1))  # fmt: skip
