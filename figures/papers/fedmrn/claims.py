"""The paper's claims, compared with exact moments, with our runs, and with its printed tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fedbounds.empirical.comparison.convergence_slopes import least_squares
from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.figures.charts.claims import (
    FigureClaim,
    Found,
    Limits,
    describe_level,
    describe_means,
    levels_by_name,
    limits_of,
)
from fedbounds.figures.charts.paper_gallery import Traces, series
from fedbounds.figures.charts.printed import (
    PrintedTables,
    is_above_all,
    is_alike,
    is_decreasing,
    means_finding,
    printed_claim,
)
from fedbounds.figures.charts.significance import ALIKE, Level, PartialFinding, all_agree, any_agrees
from fedbounds.figures.papers.fedmrn import experiments as ex
from fedbounds.figures.papers.fedmrn import simulated, timing
from fedbounds.figures.papers.fedmrn.bounds import (
    CURRENT,
    FROZEN,
    LOCAL_STEPS,
    RELATIVE,
    SHIFT,
    average_run,
    bound,
    strongly_convex,
)
from fedbounds.figures.papers.fedmrn.drawing import Gallery

NEAR = 0.05  # of an exponent
# points, WITHIN_TASKS in Table 3: the largest difference between FedMRN and FedAvg in the paper's table
WITHIN, WITHIN_TASKS = 0.7, 0.4
NEGLIGIBLE = 0.1  # of a training
ORDERS = ((ex.FEDSPARSIFY, ex.FEDPM), (ex.TERNGRAD, ex.SIGN), (ex.DRIVE, ex.TERNGRAD), (ex.EDEN, ex.DRIVE))
FAIRER = ((ex.TERNGRAD, ex.FIXED_SIGN),)  # the paper's claim about SignSGD, for our variant with a tuned scale
OURS = "ours: the paper does not say so"
SAID = {
    "best": "Section 5, on Table 1: FedMRN is better than the methods that it is compared with, but for FedAvg",
    "near": f"Section 5, on Table 1: FedMRN is about as good as FedAvg; {WITHIN} points is our border, the largest "
    "difference in Table 1",
    "order": "Table 1: it is, in most columns",
    "alike": "Section 5, on Table 1: SignSGD and Top-k are comparable",
    "tasks": "Table 3: FedMRN is above EDEN, EDEN above SignSGD, and FedMRN is within 0.4 points of FedAvg",
}
DATA = ("FMNIST", "SVHN", "CIFAR-10", "CIFAR-100")
PRINTED = PrintedTables("fedmrn", 5)


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of the logarithms over the last decade of x."""
    late = x >= x[-1] / 10
    return least_squares(x[late], y[late])


def all_claims(gallery: Gallery) -> list[FigureClaim]:
    """Every claim of the paper."""
    return [*exact_claims(gallery), *simulated_claims(gallery), *trained_claims(gallery), *printed_claims()]


def exact_claims(gallery: Gallery) -> list[FigureClaim]:
    """The claims that exact moments decide."""
    T = np.arange(1, gallery.scale.iterations // LOCAL_STEPS + 1) * LOCAL_STEPS
    rounds = T + SHIFT  # the bound falls like 1/(gamma + T)
    found = {
        "with the amplitude that Theorem 1 prescribes": FROZEN,
        "with the amplitude of the current step size": CURRENT,
        "for an operator with a relative error": RELATIVE,
    }
    claims = []
    for how, masking in found.items():
        gap = strongly_convex(masking, gallery.scale.iterations).objective_gap[T]
        power = slope(rounds.astype(float), gap)
        claims.append(FigureClaim("Theorem 1, Remark 2", f"the gap falls like 1/T, {how}",
                            f"like (gamma + T)^{power:.2f}, exact", power <= NEAR - 1))  # fmt: skip
    masked = strongly_convex(CURRENT, gallery.scale.iterations)
    under = masked.objective_gap[T] / bound("", "fedmrn/theorem-1", "repaired:R1", T + 1).y
    numbers = f"measured over bound at most {under.max():.2g}, where no sure G is left, too"
    claims.append(FigureClaim("Theorem 1", "stays under the repaired bound R1", numbers, bool((under <= 1).all())))
    horizons = np.array(gallery.scale.horizons, float)
    averages = [average_run(RELATIVE, int(t)).gradient_norm_squared[:-1].mean() for t in horizons]
    power = slope(horizons, np.array(averages))
    claims.append(FigureClaim("Theorem 2, Remark 2", "the mean squared gradient falls like T^(-1/2), "
                        "for an operator with a "
                        "relative error", f"like T^{power:.2f}, exact", power <= NEAR - 0.5))  # fmt: skip
    codec = MaskedNoise("bernoulli", 1.0)
    small = [codec.squared_error(np.array([size])) ** 0.5 / size for size in (0.1, 0.01, 0.001)]
    numbers = ", ".join(f"{value:.3g}" for value in small)
    claims.append(FigureClaim("Section 4", "masks satisfy Assumption 4 with some q", "relative error "
                        f"{numbers} at |u| = 0.1, 0.01, 0.001 alpha", small[-1] < 2 * small[0]))  # fmt: skip
    return claims


def simulated_claims(gallery: Gallery) -> list[FigureClaim]:
    """The claims that runs of the analyzed algorithm decide: bounded clients, and a network."""
    runs = {form: simulated.family(form, gallery.scale.horizons, 8) for form in simulated.PLAIN}
    numbers = ", ".join(f"{run.ratio.max():.2g} of {form}" for form, run in runs.items())
    under = all(run.guarantee and not run.crossings.size for run in runs.values())
    errors = simulated.errors_of_uses(gallery.scale.iterations // 10)
    later = float(errors[np.isfinite(errors)].min())
    return [
        FigureClaim("Theorem 2", "real masks stay under the repaired bounds R2 where gradients are bounded surely",
              f"measured over bound at most {numbers}; every constant exact", under),
        FigureClaim("Section 4", "masks satisfy Assumption 4 with some q along a network's run",
              f"relative error infinite at the first use of each of {len(errors)} rounds, {later:.3g} at least later",
              bool(np.isfinite(errors).all())),
    ]  # fmt: skip


def trained_claims(gallery: Gallery) -> list[FigureClaim]:
    """The claims about tables and figures."""
    claims = [*table_1_claims(gallery), *table_1_claims(gallery.convolutional, "Table 1, convolutions")]
    text = gallery.sequential
    spoken = text.runs_of(ex.ON_TEXT, ex.SPEAKERS)
    claims += limits(text, spoken).apply(text_claims(accuracy_levels(text, spoken)))
    claims += Limits.of_network(gallery.scale.network, ex.PAPER_NETWORKS).apply([equal_bits_claim(gallery)])
    claims += limits(gallery, gallery.ablation).apply(figure_4(accuracy_levels(gallery, gallery.ablation)))
    here = gallery.on_digits
    fedavg = here.runs_of([ex.FEDAVG], ex.LABELS)[ex.FEDAVG]
    level = Level.from_values(here.accuracy(fedavg), ex.FEDAVG)
    for label, laws in here.by_amplitude.items():
        of = {law: {f"{law} {a:.3g}": runs for a, runs in by.items()} for law, by in laws.items()}
        every_run = {name: runs for by in of.values() for name, runs in by.items()}
        by_law = {law: list(accuracy_levels(here, by).values()) for law, by in of.items()}
        claims += limits(here, {**every_run, ex.FEDAVG: fedavg}).apply(figure_5(label, by_law, level))
    for network, times in gallery.times.items():
        claims += Limits.of_network(network, ex.PAPER_NETWORKS).apply(figure_6(network, times))
    return claims


def table_1_claims(gallery: Gallery, source: str = "Table 1") -> list[FigureClaim]:
    """The claims about Table 1 or our table with convolutions."""
    claims, found = list[FigureClaim](), {}
    for split, runs in gallery.by_partition.items():
        found[split] = accuracy_levels(gallery, runs)
        claims += limits(gallery, runs).apply(table_1(split, found[split], source))
    for label in gallery.scale.labels:
        runs = {split: of[label] for split, of in gallery.by_partition.items()}
        claim = partition_claim(label, [column[label] for column in found.values()], source)
        claims += limits(gallery, runs).apply([claim])
    return claims


def accuracy_levels(gallery: Gallery, runs: Traces) -> dict[str, Level]:
    """Accuracies over the last rounds."""
    return levels_by_name({label: gallery.accuracy(traces) for label, traces in runs.items()})


def limits(gallery: Gallery, runs: Traces) -> Limits:
    """Why a scale does not test the paper's claims about accuracies."""
    return limits_of(gallery.scale.network, ex.PAPER_NETWORKS, runs, gallery.scale.last, "test_accuracy")


def table_1(where: str, found: Found, source: str = "Table 1") -> list[FigureClaim]:
    """Section 5 on Table 1, one partition."""
    measured, fedavg = describe_means(found), found[ex.FEDAVG]
    others = [label for label in found if label not in (ex.FEDAVG, ex.MRN, ex.MRNS)]
    return [
        *(
            FigureClaim(source, f"{label} is better than every method but FedAvg ({where})", measured,
                  all_agree(found[label].above(found[other]) for other in others), SAID["best"])
            for label in (ex.MRN, ex.MRNS)
        ),
        *(
            FigureClaim(source, f"{label} is within {WITHIN} points of FedAvg ({where})", _gap(found[label], fedavg),
                  found[label].near(fedavg, WITHIN), SAID["near"])
            for label in (ex.MRN, ex.MRNS)
        ),
        *(
            FigureClaim(source, f"{better} is better than {worse} ({where})", _gap(found[better], found[worse]),
                  found[better].above(found[worse]), SAID["order"])
            for better, worse in ORDERS + FAIRER if better in found and worse in found
        ),
        *(
            FigureClaim(source, f"{sign} and Top-k are about equal ({where}; our border: {ALIKE:.0%})",
                  _gap(found[sign], found[ex.TOP_K]), found[sign].alike(found[ex.TOP_K]), SAID["alike"])
            for sign in (ex.SIGN, ex.FIXED_SIGN) if ex.TOP_K in found
        ),
    ]  # fmt: skip


def text_claims(found: Found) -> list[FigureClaim]:
    """Table 3 on text: FedMRN, and the variant of the authors' code."""
    measured, claims = describe_means(found), list[FigureClaim]()
    for label in (ex.MRN, ex.NO_PM):
        claims += [
            FigureClaim("Table 3", f"{label} is better than EDEN (text made here)", measured,
                  found[label].above(found[ex.EDEN]), SAID["tasks"]),
            FigureClaim("Table 3", f"{label} is within {WITHIN_TASKS} points of FedAvg (text made here)",
                  _gap(found[label], found[ex.FEDAVG]), found[label].near(found[ex.FEDAVG], WITHIN_TASKS),
                  SAID["tasks"]),
        ]  # fmt: skip
    return claims + [
        FigureClaim("Table 3", f"EDEN is better than {sign} (text made here)", measured,
                    found[ex.EDEN].above(found[sign]), SAID["tasks"])
        for sign in (ex.SIGN, ex.FIXED_SIGN)
    ]  # fmt: skip


def _gap(one: Level, other: Level) -> str:
    return f"{describe_level(one.minus(other), '+.2f')} points"


def partition_claim(label: str, columns: Sequence[Level], source: str = "Table 1") -> FigureClaim:
    """IID, Non-IID-1 and Non-IID-2, in this order."""
    placed = [replace(one, name=split) for one, split in zip(columns, ex.PARTITIONS, strict=True)]
    measured = ", ".join(f"{one.mean:.2f}" for one in columns)
    return FigureClaim(source, f"{label} falls from IID to Non-IID-1 to Non-IID-2", measured,
                 all_agree(a.above(b) for a, b in pairwise(placed)), OURS)  # fmt: skip


def equal_bits_claim(gallery: Gallery) -> FigureClaim:
    """FedAvg's accuracy after as many bits as FedMRN sends in the whole run, interpolated between records."""
    runs, found = gallery.by_partition[ex.LABELS], {}
    rounds, _ = series(runs[ex.FEDAVG], "test_accuracy")
    sent = gallery.megabytes(ex.MRN, rounds)[-1]
    for label in (ex.MRN, ex.FEDAVG):
        x = gallery.megabytes(label, rounds)
        found[label] = np.array([np.interp(sent, x, row) for row in 100 * series(runs[label], "test_accuracy")[1]])
    levels = levels_by_name(found)
    return FigureClaim("Figure 3, bits", f"FedMRN is better than FedAvg at equal bits ({ex.LABELS})",
                 f"after {sent:.2f} MB: {describe_means(levels)}", levels[ex.MRN].above(levels[ex.FEDAVG]),
                 OURS)  # fmt: skip


def figure_4(found: Found) -> list[FigureClaim]:
    """The claims about the ablation."""
    measured, said = describe_means(found), "Section 5, on Figure 4: "
    parts = (ex.NO_SM, ex.NO_PM, ex.NO_PSM)
    return [
        FigureClaim("Figure 4", "each part of the masking helps", measured,
              all_agree(found[ex.MRN].above(found[part]) for part in parts),
              f"{said}without random or without progressive masks FedMRN loses accuracy"),
        FigureClaim("Figure 4", "without random masks FedMRN loses more than without progressive ones", measured,
              found[ex.NO_PM].above(found[ex.NO_SM]), f"{said}removing SM hurts slightly more than removing PM"),
        FigureClaim("Figure 4", "masks found in training, without PM, are better than masks after it", measured,
              found[ex.NO_PM].above(found[ex.POST]), f"{said}FedMRN without PM is better than FedAvg with SM"),
        *(
            FigureClaim("Figure 4", f"FedMRN without random and progressive masks is still better than {sign}",
                        measured,
                  found[ex.NO_PSM].above(found[sign]), f"{said}FedMRN without PSM is better than SignSGD")
            for sign in (ex.SIGN, ex.FIXED_SIGN)
        ),
    ]  # fmt: skip


def figure_5(label: str, by_law: Mapping[str, Sequence[Level]], fedavg: Level) -> list[FigureClaim]:
    """Section 5 on the noise: its size matters, its law hardly; three sizes are as good as FedAvg."""
    best = {law: max(of, key=lambda one: one.mean) for law, of in by_law.items()}
    worst = {law: min(of, key=lambda one: one.mean) for law, of in by_law.items()}
    spread = {law: best[law].minus(worst[law]) for law in by_law}
    ranked = sorted(best.values(), key=lambda one: one.mean)
    of_laws = ranked[-1].minus(ranked[0])
    numbers = "; ".join(f"{law}: best {v.mean:.2f}, {spread[law].mean:.2f} above the worst" for law, v in best.items())
    uniform, said = by_law["uniform"], "Section 5, on Figure 5: "
    matches = [one.near(fedavg, WITHIN) for one in uniform]
    gaps = ", ".join(f"{one.name.removeprefix('uniform ')}: {one.mean - fedavg.mean:+.2f}" for one in uniform)
    return [
        FigureClaim("Figure 5", f"the size of the noise matters more than its law ({label})", numbers,
              all_agree(one.above(of_laws) for one in spread.values()),
              f"{said}the magnitude of the noise matters, its distribution hardly"),
        FigureClaim("Figure 5", f"the best sizes of all laws are within {WITHIN} points ({label})", numbers,
              all_agree(v.near(best["uniform"], WITHIN) for law, v in best.items() if law != "uniform"),
              f"{said}the magnitude of the noise matters, its distribution hardly"),
        FigureClaim("Figure 5",
                    f"three sizes in a row, each twice the last, are within {WITHIN} points of FedAvg ({label})",
              f"uniform noise, {gaps} points",
              any_agrees(all_agree(matches[i : i + 3]) for i in range(len(matches) - 2)),
              f"{said}FedMRN and FedMRNS match FedAvg's accuracy for three sizes in a row, each twice the last"),
    ]  # fmt: skip


def figure_6(network: str, times: Mapping[str, Mapping[str, np.ndarray]]) -> list[FigureClaim]:
    """Section 5 on times, by measurement; values near a border depend on the machine."""
    slowest = levels_by_name({label: times[label][timing.COMPRESSION] for label in (ex.DRIVE, ex.EDEN)})
    plain, border = times[ex.FEDAVG][timing.TRAINING], Level(NEGLIGIBLE, 0.0, name="a tenth", degrees=np.inf)
    extra = levels_by_name({label: sum(times[label].values(), -plain) for label in (ex.MRN, ex.MRNS)})
    of, said = "of FedAvg's local training", "Section 5, on Figure 6: "
    return [
        FigureClaim("Figure 6",
                    f"DRIVE or EDEN compresses for a tenth of the local training or more ({network}; our border)",
              f"{describe_means(slowest)} {of}", any_agrees(one.above(border) for one in slowest.values()),
              f"{said}the compression of DRIVE and EDEN takes up to a third of the local training time"),
        FigureClaim("Figure 6", f"FedMRN adds at most a tenth to training and message ({network}; our border)",
              f"{describe_means(extra)} {of}", all_agree(one.below(border) for one in extra.values()),
              f"{said}FedMRN adds negligible time"),
    ]  # fmt: skip


def printed_claims() -> list[FigureClaim]:
    """The paper's claims about its own tables: agree by printed means, disagree only if significantly opposite."""
    main = PRINTED.levels("Table 1")
    rest = [label for label in next(iter(main.values())) if label not in (ex.FEDAVG, ex.MRN, ex.MRNS)]
    claims = [
        printed_claim("Table 1", f"{label} is better than every method but FedAvg", main,
               lambda c, label=label: is_above_all(c, label, rest), paper=SAID["best"])
        for label in (ex.MRN, ex.MRNS)
    ]  # fmt: skip
    claims += [
        printed_claim("Table 1", f"{better} is better than {worse}", main,
               lambda c, better=better, worse=worse: is_above_all(c, better, [worse]), paper=SAID["order"])
        for better, worse in ORDERS
    ]  # fmt: skip
    claims.append(printed_claim("Table 1", f"SignSGD and Top-k are about equal (our border: {ALIKE:.0%})", main,
                         lambda c: is_alike(c, ex.SIGN, ex.TOP_K), paper=SAID["alike"]))  # fmt: skip
    for label in next(iter(main.values())):
        by_data = {data: {split: main[f"{data} {split}"][label] for split in ex.PARTITIONS} for data in DATA}
        claims.append(printed_claim("Table 1", f"{label} falls from IID to Non-IID-1 to Non-IID-2", by_data,
                             lambda c: is_decreasing([c[split] for split in ex.PARTITIONS]), paper=OURS))  # fmt: skip
    return [*claims, table_2(), table_3()]


def table_2() -> FigureClaim:
    """Table 2 as the sum of Table 1's differences; rounding makes 0.3 at most."""
    main, sums = PRINTED.columns("Table 1"), PRINTED.columns("Table 2")
    off = {
        f"{label}, {data}": round(
            printed
            - sum(main[f"{data} {split}"][label] - main[f"{data} {split}"][ex.FEDAVG] for split in ex.PARTITIONS),
            6,
        )
        for data, column in sums.items()
        for label, printed in column.items()
    }
    wrong = {cell: gap for cell, gap in off.items() if gap}
    numbers = f"{len(off) - len(wrong)} of {len(off)} cells; " + ", ".join(
        f"{k} by {gap:+.1f}" for k, gap in wrong.items()
    )
    return FigureClaim("Table 2 as printed", "is the sum of Table 1's differences, up to rounding (0.3)", numbers,
                 all(abs(gap) <= 0.3 for gap in off.values()))  # fmt: skip


def table_3() -> FigureClaim:
    """The tasks of the appendix, as printed."""
    rows = {
        row[0]: {method: Level(mean, deviation / PRINTED.seeds**0.5, PRINTED.seeds, name=f"{method} ({row[0]})")
                 for method, (mean, deviation) in zip(PRINTED.tables["Table 3"]["columns"][1:], row[1:], strict=True)}
        for row in PRINTED.tables["Table 3"]["rows"]
    }  # fmt: skip

    def ordered(c: Mapping[str, Level]) -> PartialFinding:
        pairs = [is_above_all(c, ex.MRN, [ex.EDEN]), is_above_all(c, ex.EDEN, [ex.SIGN])]
        return means_finding(all(one.by_means for one in pairs), (part for one in pairs for part in one.parts))

    text = "FedMRN is better than EDEN, and EDEN than SignSGD"
    return printed_claim("Table 3", text, rows, ordered, paper=SAID["tasks"])
