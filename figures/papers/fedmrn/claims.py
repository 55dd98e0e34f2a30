"""What the paper says, against exact moments, against what was trained, and against its own tables as printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from fedbounds.empirical.papers.fedmrn.masked_noise import MaskedNoise
from fedbounds.empirical.rates import least_squares
from fedbounds.figures.claims import Claim, Finding, Found, Level, above, every, mean_in_words, means_in_words
from fedbounds.figures.paper_gallery import series
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
from fedbounds.figures.printed import PrintedTables, above_all, falls, judged

NEAR = 0.05  # of an exponent
WITHIN = 0.7  # points: the largest difference between FedMRN and FedAvg in the paper's Table 1
NEGLIGIBLE = 0.1  # of a training
ORDERS = ((ex.FEDSPARSIFY, ex.FEDPM), (ex.TERNGRAD, ex.SIGN), (ex.DRIVE, ex.TERNGRAD), (ex.EDEN, ex.DRIVE))
FAIRER = ((ex.TERNGRAD, ex.FIXED_SIGN),)  # what the paper says of SignSGD, of ours with a tuned scale
DATA = ("FMNIST", "SVHN", "CIFAR-10", "CIFAR-100")
PRINTED = PrintedTables("fedmrn", 5)


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Of the logarithms, over the last decade of x."""
    late = x >= x[-1] / 10
    return least_squares(x[late], y[late])


def all_claims(gallery: Gallery) -> list[Claim]:
    """Every claim of the paper that is decided here."""
    return [*exact_claims(gallery), *simulated_claims(gallery), *trained_claims(gallery), *printed_claims()]


def exact_claims(gallery: Gallery) -> list[Claim]:
    """What exact moments decide."""
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
        claims.append(Claim("Theorem 1, Remark 2", f"the gap falls like 1/T, {how}",
                            f"like (gamma + T)^{power:.2f}, exact", power <= NEAR - 1))  # fmt: skip
    masked = strongly_convex(CURRENT, gallery.scale.iterations)
    under = masked.objective_gap[T] / bound("", "fedmrn/theorem-1", "repaired:R1", T + 1).y
    told = f"measured over bound at most {under.max():.2g}, where no sure G is left, too"
    claims.append(Claim("Theorem 1", "stays under the repaired bound R1", told, bool((under <= 1).all())))
    horizons = np.array(gallery.scale.horizons, float)
    averages = [average_run(RELATIVE, int(t)).gradient_norm_squared[:-1].mean() for t in horizons]
    power = slope(horizons, np.array(averages))
    claims.append(Claim("Theorem 2, Remark 2", "the mean squared gradient falls like T^(-1/2), for an operator with a "
                        "relative error", f"like T^{power:.2f}, exact", power <= NEAR - 0.5))  # fmt: skip
    codec = MaskedNoise("bernoulli", 1.0)
    small = [codec.squared_error(np.array([size])) ** 0.5 / size for size in (0.1, 0.01, 0.001)]
    told = ", ".join(f"{value:.3g}" for value in small)
    claims.append(Claim("Section 4", "masks satisfy Assumption 4 with some q", "relative error "
                        f"{told} at |u| = 0.1, 0.01, 0.001 alpha", small[-1] < 2 * small[0]))  # fmt: skip
    return claims


def simulated_claims(gallery: Gallery) -> list[Claim]:
    """What runs of the analyzed algorithm decide: bounded clients, and a network."""
    runs = {form: simulated.family(form, gallery.scale.horizons, 8) for form in simulated.PLAIN}
    told = ", ".join(f"{run.ratio.max():.2g} of {form}" for form, run in runs.items())
    under = all(run.guarantee and not run.crossings.size for run in runs.values())
    errors = simulated.errors_of_uses(gallery.scale.iterations // 10)
    later = float(errors[np.isfinite(errors)].min())
    return [
        Claim("Theorem 2", "real masks stay under the repaired bounds R2 where gradients are bounded surely",
              f"measured over bound at most {told}; every constant exact", under),
        Claim("Section 4", "masks satisfy Assumption 4 with some q along a network's run",
              f"relative error infinite at the first use of each of {len(errors)} rounds, {later:.3g} at least later",
              bool(np.isfinite(errors).all())),
    ]  # fmt: skip


def trained_claims(gallery: Gallery) -> list[Claim]:
    """What the tables and figures decide."""
    found = {
        split: {label: gallery.accuracy(traces) for label, traces in runs.items()}
        for split, runs in gallery.by_partition.items()
    }
    here = gallery.convolutional
    convolved = {label: here.accuracy(runs) for label, runs in here.runs_of(here.scale.labels, ex.LABELS).items()}
    found_on = found | {f"{ex.LABELS}, convolutions": convolved}
    claims = [claim for split, column in found_on.items() for claim in table_1(split, column)]
    claims += [harder(label, [column[label] for column in found.values()]) for label in gallery.scale.labels]
    claims += on_text(gallery.on_text)
    claims += [at_equal_bits(gallery), *figure_4({k: gallery.accuracy(v) for k, v in gallery.ablation.items()})]
    here = gallery.on_digits
    level = here.accuracy(here.runs_of([ex.FEDAVG], ex.LABELS)[ex.FEDAVG])[: here.scale.noise_seeds]
    for label, laws in here.by_amplitude.items():
        by_law = {law: {a: here.accuracy(runs) for a, runs in of.items()} for law, of in laws.items()}
        claims += figure_5(label, by_law, level)
    return [*claims, *(claim for network, times in gallery.times.items() for claim in figure_6(network, times))]


def near(one: np.ndarray, other: np.ndarray, points: float) -> Finding:
    """Within so many points, seed by seed; False if clearly not."""
    gap = one - other
    return Finding.of(points - abs(float(gap.mean())), Level.of(gap).error, len(gap))


def table_1(where: str, found: Found) -> list[Claim]:
    """Section 5's reading of Table 1, on one partition."""
    measured = means_in_words(found)
    others = [label for label in found if label not in (ex.FEDAVG, ex.MRN, ex.MRNS)]
    return [
        *(
            Claim("Table 1", f"{label} is better than every method but FedAvg ({where})", measured,
                  every(above(found[label], found[other]) for other in others))
            for label in (ex.MRN, ex.MRNS)
        ),
        *(
            Claim("Table 1", f"{label} is within {WITHIN} points of FedAvg ({where})",
                  _gap(found[label], found[ex.FEDAVG]), near(found[label], found[ex.FEDAVG], WITHIN))
            for label in (ex.MRN, ex.MRNS)
        ),
        *(
            Claim("Table 1", f"{better} is better than {worse} ({where})", _gap(found[better], found[worse]),
                  above(found[better], found[worse]))
            for better, worse in ORDERS + FAIRER if better in found and worse in found
        ),
        *(
            Claim("Table 1", f"{sign} and Top-k are about equal ({where})", _gap(found[sign], found[ex.TOP_K]),
                  Level.of(found[sign]).alike(Level.of(found[ex.TOP_K])))
            for sign in (ex.SIGN, ex.FIXED_SIGN) if ex.TOP_K in found
        ),
    ]  # fmt: skip


def on_text(found: Found) -> list[Claim]:
    """What Table 3 says of text, of FedMRN as it is and as the authors' code has it there."""
    measured, claims = means_in_words(found), list[Claim]()
    for label in (ex.MRN, ex.NO_PM):
        claims += [
            Claim("Table 3", f"{label} is better than EDEN (text made here)", measured,
                  above(found[label], found[ex.EDEN])),
            Claim("Table 3", f"{label} is within {WITHIN} points of FedAvg (text made here)",
                  _gap(found[label], found[ex.FEDAVG]), near(found[label], found[ex.FEDAVG], WITHIN)),
        ]  # fmt: skip
    return claims + [
        Claim("Table 3", f"EDEN is better than {sign} (text made here)", measured, above(found[ex.EDEN], found[sign]))
        for sign in (ex.SIGN, ex.FIXED_SIGN)
    ]


def _gap(one: np.ndarray, other: np.ndarray) -> str:
    return f"{mean_in_words(one - other, '+.2f')} points"


def harder(label: str, columns: Sequence[np.ndarray]) -> Claim:
    """IID, Non-IID-1 and Non-IID-2 in this order, on other splits of the same data."""
    measured = ", ".join(f"{values.mean():.2f}" for values in columns)
    return Claim("Table 1", f"{label} falls from IID to Non-IID-1 to Non-IID-2", measured,
                 every(above(a, b) for a, b in pairwise(columns)))  # fmt: skip


def at_equal_bits(gallery: Gallery) -> Claim:
    """FedAvg's accuracy when it has sent what FedMRN sends in the whole run, between records by a line."""
    runs, found = gallery.by_partition[ex.LABELS], {}
    rounds, _ = series(runs[ex.FEDAVG], "test_accuracy")
    sent = gallery.megabytes(ex.MRN, rounds)[-1]
    for label in (ex.MRN, ex.FEDAVG):
        x = gallery.megabytes(label, rounds)
        found[label] = np.array([np.interp(sent, x, row) for row in 100 * series(runs[label], "test_accuracy")[1]])
    return Claim("Figure 3, ours", f"FedMRN is better than FedAvg at equal bits ({ex.LABELS})",
                 f"after {sent:.2f} MB: {means_in_words(found)}", above(found[ex.MRN], found[ex.FEDAVG]))  # fmt: skip


def figure_4(found: Found) -> list[Claim]:
    """The ablation's reading."""
    measured = means_in_words(found)
    parts = (ex.NO_SM, ex.NO_PM, ex.NO_PSM)
    return [
        Claim("Figure 4", "each part of the masking helps", measured,
              every(above(found[ex.MRN], found[part]) for part in parts)),
        Claim("Figure 4", "without random masks FedMRN loses more than without progressive ones", measured,
              above(found[ex.NO_PM], found[ex.NO_SM])),
        Claim("Figure 4", "masks found in training, without PM, are better than masks after it", measured,
              above(found[ex.NO_PM], found[ex.POST])),
        *(
            Claim("Figure 4", f"FedMRN without random and progressive masks is still better than {sign}", measured,
                  above(found[ex.NO_PSM], found[sign]))
            for sign in (ex.SIGN, ex.FIXED_SIGN)
        ),
    ]  # fmt: skip


def figure_5(label: str, by_law: Mapping[str, Mapping[float, np.ndarray]], fedavg: np.ndarray) -> list[Claim]:
    """Section 5's reading of the noise: its size matters, its law hardly, and three sizes are as good as FedAvg."""
    means = {law: [v.mean() for v in of.values()] for law, of in by_law.items()}
    spread = {law: max(values) - min(values) for law, values in means.items()}
    best = {law: max(of.values(), key=np.mean) for law, of in by_law.items()}
    told = "; ".join(f"{law}: best {v.mean():.2f}, {spread[law]:.2f} above the worst" for law, v in best.items())
    uniform = by_law["uniform"]
    matches = [near(v, fedavg, WITHIN) for v in uniform.values()]
    runs_of_three = [every(matches[i : i + 3]) for i in range(len(matches) - 2)]
    agrees = any(one.agrees for one in runs_of_three) or (
        None if any(one.agrees is None for one in runs_of_three) else False
    )
    gaps = ", ".join(f"{a:.3g}: {v.mean() - fedavg.mean():+.2f}" for a, v in uniform.items())
    return [
        Claim("Figure 5", f"the size of the noise matters more than its law ({label})", told,
              max(v.mean() for v in best.values()) - min(v.mean() for v in best.values()) < min(spread.values())),
        Claim("Figure 5", f"the best sizes of all laws are within {WITHIN} points ({label})", told,
              every(near(v, best["uniform"], WITHIN) for law, v in best.items() if law != "uniform")),
        Claim("Figure 5", f"three sizes in a row, each twice the last, are within {WITHIN} points of FedAvg ({label})",
              f"uniform noise, {gaps} points", agrees),
    ]  # fmt: skip


def figure_6(network: str, times: Mapping[str, Mapping[str, np.ndarray]]) -> list[Claim]:
    """Section 5's reading of the times, measurement by measurement; what is near a border depends on the machine."""
    slowest = {label: times[label][timing.COMPRESSION] for label in (ex.DRIVE, ex.EDEN)}
    plain, border = times[ex.FEDAVG][timing.TRAINING], np.full(1, NEGLIGIBLE)
    extra = {label: sum(times[label].values(), -plain) for label in (ex.MRN, ex.MRNS)}
    of = "of FedAvg's local training"
    return [
        Claim("Figure 6", f"DRIVE and EDEN compress up to a third of the local training ({network}, a tenth or more)",
              f"{means_in_words(slowest)} {of}", above(max(slowest.values(), key=np.mean), border).agrees),
        Claim("Figure 6", f"FedMRN adds negligible time to training and message ({network}, at most a tenth)",
              f"{means_in_words(extra)} {of}", every(above(border, values) for values in extra.values()).agrees),
    ]  # fmt: skip


def printed_claims() -> list[Claim]:
    """What the paper says of its own tables, in our words: agrees if the printed means say so, disagrees only if what
    does not is more than two standard errors away."""
    main = PRINTED.levels("Table 1")
    rest = [label for label in next(iter(main.values())) if label not in (ex.FEDAVG, ex.MRN, ex.MRNS)]
    claims = [
        judged("Table 1", f"{label} is better than every method but FedAvg", main,
               lambda c, label=label: above_all(c, label, rest))
        for label in (ex.MRN, ex.MRNS)
    ]  # fmt: skip
    claims += [
        judged("Table 1", f"{label} is within {WITHIN} points of FedAvg", main,
               lambda c, label=label: round(abs(c[label].mean - c[ex.FEDAVG].mean), 6) <= WITHIN)
        for label in (ex.MRN, ex.MRNS)
    ]  # fmt: skip
    claims += [
        judged("Table 1", f"{better} is better than {worse}", main,
               lambda c, better=better, worse=worse: above_all(c, better, [worse]))
        for better, worse in ORDERS
    ]  # fmt: skip
    claims.append(judged("Table 1", "SignSGD and Top-k are about equal", main,
                         lambda c: c[ex.SIGN].alike(c[ex.TOP_K])))  # fmt: skip
    for label in next(iter(main.values())):
        by_data = {data: {split: main[f"{data} {split}"][label] for split in ex.PARTITIONS} for data in DATA}
        claims.append(judged("Table 1", f"{label} falls from IID to Non-IID-1 to Non-IID-2", by_data,
                             lambda c: falls([c[split] for split in ex.PARTITIONS])))  # fmt: skip
    return [*claims, table_2(), *table_3()]


def table_2() -> Claim:
    """Table 2 as the sum of Table 1's differences; six roundings to a tenth make 0.3 at most."""
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
    told = f"{len(off) - len(wrong)} of {len(off)} cells; " + ", ".join(
        f"{k} by {gap:+.1f}" for k, gap in wrong.items()
    )
    return Claim("Table 2 as printed", "is the sum of Table 1's differences, up to rounding (0.3)", told,
                 all(abs(gap) <= 0.3 for gap in off.values()))  # fmt: skip


def table_3() -> list[Claim]:
    """The tasks of the appendix, as printed."""
    rows = {
        row[0]: {method: Level(mean, deviation / PRINTED.seeds**0.5) for method, (mean, deviation) in
                 zip(PRINTED.tables["Table 3"]["columns"][1:], row[1:], strict=True)}
        for row in PRINTED.tables["Table 3"]["rows"]
    }  # fmt: skip
    return [
        judged("Table 3", "FedMRN is better than EDEN, and EDEN than SignSGD", rows,
               lambda c: every([above_all(c, ex.MRN, [ex.EDEN]), above_all(c, ex.EDEN, [ex.SIGN])])),
        judged("Table 3", f"FedMRN is within {WITHIN} points of FedAvg", rows,
               lambda c: round(abs(c[ex.MRN].mean - c[ex.FEDAVG].mean), 6) <= WITHIN),
    ]  # fmt: skip
