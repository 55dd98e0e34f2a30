"""The results of Sharma et al. (2023) on instances: both sides, and the populations that verify them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fedbounds.bounds.audit.claim import Claim, ResultForm
from fedbounds.bounds.evaluation.numpy_code import compile_form
from fedbounds.bounds.papers.fed_norm_sgda.concave import ADMISSIBLE_STEPS
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION
from fedbounds.bounds.papers.fed_norm_sgda.results import STEPS, THEOREM_1_AT_ITS_STEPS
from fedbounds.bounds.theory.result import Form
from fedbounds.empirical.falsification.instances.extremal import ExtremalRuns
from fedbounds.empirical.falsification.instances.readable import sides_of_form
from fedbounds.empirical.falsification.instances.sides import InstanceTest, Sides
from fedbounds.empirical.papers.fed_norm_sgda.instances.extremal import FAMILIES
from fedbounds.empirical.papers.fed_norm_sgda.instances.points import (
    BoundedRuns,
    MeantRuns,
    TwoEnvelopes,
    affordable,
    draw_bounded,
    draw_crossed,
    draw_envelopes,
    draw_meant,
)
from fedbounds.empirical.papers.fed_norm_sgda.instances.runs import QuadraticRuns, draw_at_rest, draw_quadratics
from fedbounds.empirical.papers.fed_norm_sgda.instances.single_points import Facts, draw_facts

PAPER = "fed-norm-sgda"
VECTORS = frozenset({"w", "p", "tau", "a1", "a2", "alast", "amax", "squares", "fvalues"})
CANCELED = 1e-12  # error of a left side relative to the sizes of its summands
LONGEST = 1e12  # rounds
FIELDS = {"gammax": "Gammax", "gammay": "Gammay", "S": "period"}  # of the instances
Values = dict[str, np.ndarray]

# What holds by construction, as the rules of the classes are checked: Lf, sigma_L, beta_L, sigma_G and beta_G are those
# of the instance, whose weighted slopes cancel; noise is drawn anew in every local step and for every client, clients
# uniformly in every round; with momentum and rates at least 0, coefficients are too, and grow from step to step.
ALWAYS = (
    "smooth",
    "unbiased-noise",
    "unbiased-block-noise",
    "bounded-heterogeneity",
    "uniform-sampling",
    "local-coefficients",
    "growing-coefficients",
    "independent-clients",
    "martingale-noise",
)


class MeasuredForm(NamedTuple):
    """A left-hand side with its error, the symbols of the right-hand side, and which assumptions an instance meets."""

    left: np.ndarray
    values: Values
    met: Mapping[str, np.ndarray | bool]
    rounding: np.ndarray | float = 0.0


class FormNeeds(NamedTuple):
    """What a form requires of an instance."""

    form: str  # its name
    whole: bool = False  # whether sigma_L is of the gradient as a whole
    maximizer: bool = True  # whether R bounds the maximizers too
    radius: bool = False  # whether R is given before the run, because the steps depend on it


# --- steps that a form sets ----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def prescribing(names: tuple[str, ...], expressions: tuple[Any, ...]) -> Form:
    """A form that sets steps and nothing else."""
    return Form("explicit", (), (), prescribes=dict(zip(names, expressions, strict=True)))


def set_steps(z: Any, steps: Mapping[str, Any], needs: FormNeeds) -> tuple[Any, np.ndarray]:
    """The instances at these steps, and where they are positive and a period among them is a whole number."""
    form, found = prescribing(tuple(steps), tuple(steps.values())), {}
    legal = np.ones(len(z), dtype=bool)
    for name, value in zip(steps, compile_form(form, VECTORS).parts(z.symbols(needs.whole)).prescribed, strict=True):
        here = np.broadcast_to(value, (len(z), 1))[:, 0] * (z.taueff if name.startswith("gamma") else 1)
        possible = np.isfinite(here) & (here > 0)
        here = np.where(possible, here, 1e-9)
        if name == "S":
            nearest = np.maximum(np.rint(here), 1)
            possible, here = possible & (np.abs(here - nearest) <= 1e-9 * nearest), nearest
        legal, found[FIELDS.get(name, name)] = legal & possible, here
    return replace(z, **found), legal


# --- quadratics ----------------------------------------------------------------------------------------------------


def quadratic_assumptions(z: QuadraticRuns) -> dict[str, np.ndarray | bool]:
    """The assumptions that quadratics meet."""
    return dict.fromkeys(ALWAYS, True) | {"strongly-concave": True, "bounded-below": z.bounded_below}


def expected(name: str, when: int) -> Callable[[QuadraticRuns, FormNeeds], MeasuredForm]:
    """The expectation of a square at the start of a round (0), or on average over the rounds (2)."""

    def measured(z: QuadraticRuns, needs: FormNeeds) -> MeasuredForm:
        about = ("gradsq", "gap", "gradxsq", "drift", "sampledrift", "noisydrift", "noisysq", "direction")
        values = z.symbols(needs.whole) | {symbol: z.expected(symbol, when) for symbol in about}
        values["epsopt"] = values["gradsq"]
        return MeasuredForm(z.expected(name, when), values, quadratic_assumptions(z), CANCELED * z.error(name, when))

    return measured


def descent(z: QuadraticRuns, needs: FormNeeds) -> MeasuredForm:
    """Lemma B.3: the increase of the envelope over one round."""
    found = expected("envelope", 0)(z, needs)
    error = CANCELED * (z.error("envelope", 0) + z.error("envelope", 1))
    return found._replace(left=z.expected("envelope", 1) - found.left, rounding=error)


def rounds_needed(z: QuadraticRuns, needs: FormNeeds) -> MeasuredForm:
    r"""Corollary 1.2: the rounds until the average at the steps of (4) is at most that after T rounds, $\epsilon^2$."""

    def average(rounds: np.ndarray) -> np.ndarray:
        found = set_steps(replace(z, rounds=rounds), STEPS, needs)[0].expected("gradsq", 2)[:, 0]
        return np.where(np.isfinite(found), found, np.inf)

    target, below, above = average(z.rounds), np.zeros(len(z)), z.rounds
    while (above - below > 1).any():
        middle = np.maximum(np.floor((below + above) / 2), 1)
        good = average(middle) <= target
        below, above = np.where(good, below, middle), np.where(good, middle, above)
    values = z.symbols(needs.whole) | {"eps": np.sqrt(target)[:, None]}
    some = np.where(values["Delta"] > 0, above[:, None], np.nan)  # without a gap it asks for no round at all
    return MeasuredForm(some, values, quadratic_assumptions(z))


@lru_cache(maxsize=64)
def quadratics(cells: int, wide: bool, even: bool) -> tuple[QuadraticRuns, ...]:
    """Populations of quadratics: of one round with steps of any length, else of many rounds."""
    rng, found = np.random.default_rng(211 + 2 * wide + even), []
    for cell in range(cells):
        n, growing = int(rng.integers(1, 5)), cell % 3 == 2
        longest = 3 if growing else int(rng.choice([1, 4, 8]))
        tau = tuple(map(int, rng.integers(1, longest + 1, n)))
        if even:
            tau = (max(tau),) * n
        P = n if cell % 2 == 0 else int(rng.integers(1, n + 1))
        dx, dy = ((1, 1), (2, 1), (1, 1), (1, 2))[cell % 4]
        free = wide and cell % 4 < 2
        shape = dx, dy, tau, P
        found.append(draw_quadratics(rng, 40, shape, wide=wide, free=free, growing=growing, even=even))
    if wide:
        found += [draw_at_rest(rng, 40, (2 + cell % 7,) * (1 + cell % 2)) for cell in range(0, cells, 6)]
    return tuple(found)


def rounds(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """One round, with steps of any length."""
    return quadratics(cells, True, False)


def runs(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """Many rounds, at the steps of Theorem 1."""
    return quadratics(cells, False, False)


def even_runs(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """The same where all clients are alike."""
    return quadratics(cells, False, True)


@lru_cache(maxsize=64)
def lengthen(z: QuadraticRuns) -> QuadraticRuns:
    """The same with at least the rounds that Theorem 1 needs at its steps."""
    form = THEOREM_1_AT_ITS_STEPS.form("sharp")
    sides = compile_form(form, VECTORS).sides(z.symbols(False))
    floors = [right for (_, right, _), c in zip(sides, form.conditions, strict=True) if c.left == NOTATION.T]
    least = np.ceil(np.max([np.broadcast_to(f, (len(z), 1)) for f in floors], axis=0)[:, 0])
    return replace(z, rounds=np.minimum(np.where(z.rounds < 100, least, np.maximum(z.rounds, least)), LONGEST))


def long_runs(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """Runs with at least the rounds that Theorem 1 needs at its steps."""
    return [lengthen(z) for z in runs(claim, cells)]


def long_even_runs(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """The same where all clients are alike."""
    return [lengthen(z) for z in even_runs(claim, cells)]


# --- nonconvex-concave problems -------------------------------------------------------------------------------------


def bounded_symbols(z: BoundedRuns, needs: FormNeeds) -> tuple[Values, dict[str, np.ndarray | bool]]:
    """The symbols of a run with R, and the assumptions it meets."""
    seen, values = z.visited, z.symbols(needs.whole)
    least = np.maximum(seen.ascent, seen.maximizer) if needs.maximizer else seen.ascent
    if not needs.radius:
        values["R"] = np.maximum(least, 1e-12)[:, None]
    met: dict[str, np.ndarray | bool] = dict.fromkeys((*ALWAYS, "lipschitz-in-x", "bounded-below"), True)
    met["unbiased-block-noise"] = ~z.crossed
    within = values["R"][:, 0] * (1 + 1e-12)
    met |= {"bounded-ascent": seen.ascent <= within, "bounded-maximizer": seen.maximizer <= within}
    return values, met | {"concave": not z.one_point, "one-point-concave": z.one_point | z.common_maximizer}


def stationarity(z: BoundedRuns, needs: FormNeeds) -> MeasuredForm:
    """Theorems 2, 3 and 4."""
    return MeasuredForm(z.visited.gradsq.mean(axis=1, keepdims=True), *bounded_symbols(z, needs))


def moreau_descent(z: BoundedRuns, needs: FormNeeds) -> MeasuredForm:
    """Lemma C.1, in every round."""
    values, met = bounded_symbols(z, needs)
    seen = z.visited
    values |= {"gradsq": seen.gradsq, "gap": seen.gap, "drift": seen.drift}
    before, after = seen.envelope[:, :-1], seen.envelope[:, 1:]
    height = (z.ripple + np.abs(z.bend) * np.abs(z.lift).sum(axis=1))[:, None]
    error = before + after + height * (1 + seen.reach[:, None])  # far out the sine is rounded
    return MeasuredForm(after - before, values, met, CANCELED * error)


def snapshot_drift(z: BoundedRuns, needs: FormNeeds) -> MeasuredForm:
    """Lemma C.2, in every round."""
    values, met = bounded_symbols(z, needs)
    return MeasuredForm(z.visited.drift, values | {"staledual": z.visited.stale}, met)


def block_gap(z: BoundedRuns, needs: FormNeeds) -> MeasuredForm:
    """Lemmas C.3 and C.5: the first, second, ... whole block of S rounds."""
    values, met = bounded_symbols(z, needs)
    T, sums = z.rounds, np.cumsum(np.pad(z.visited.stale, ((0, 0), (1, 0))), axis=1)
    ends = (np.arange(1, T + 1) * z.period[:, None]).astype(int)
    there, before = (
        np.take_along_axis(sums, np.minimum(at, T), axis=1) for at in (ends, ends - z.period[:, None].astype(int))
    )
    left = np.where(ends <= T, there - before, np.nan) / z.period[:, None]
    size = np.abs(z.lift * z.start[:, 1]).sum(axis=1) + z.depth
    return MeasuredForm(left, values, met, np.broadcast_to(CANCELED * size[:, None], left.shape))


def live_gap(z: BoundedRuns, needs: FormNeeds) -> MeasuredForm:
    """Lemma C.4."""
    values, met = bounded_symbols(z, needs)
    gap, stale = (v.mean(axis=1, keepdims=True) for v in (z.visited.gap, z.visited.stale))
    return MeasuredForm(gap, values | {"staledual": stale}, met)


def rounds_needed_for_concave(z: BoundedRuns, needs: FormNeeds) -> MeasuredForm:
    r"""Corollary 2.2: one more than the largest power of two at whose steps the average is above that of T rounds."""
    counts = [2**k for k in range(z.rounds.bit_length())]
    averages = []
    for rounds in (*counts, z.rounds):
        there, legal = set_steps(replace(z, rounds=rounds), ADMISSIBLE_STEPS, needs)
        averages.append(np.where(legal, there.visited.gradsq.mean(axis=1), np.nan))
    *early, target = averages
    late = np.max([np.where(found > target, rounds, 0) for rounds, found in zip(counts, early, strict=True)], axis=0)
    values, met = bounded_symbols(z, needs)
    return MeasuredForm(
        np.where(np.isfinite(target), late + 1.0, np.nan)[:, None], values | {"eps": np.sqrt(target)[:, None]}, met
    )


@lru_cache(maxsize=64)
def bounded(cells: int, one_point: bool, even: bool) -> tuple[BoundedRuns, ...]:
    """Populations of problems with bounded gradients in x: over all samples or all signs of the noise, or without."""
    rng, found = np.random.default_rng(307 + 2 * one_point + even), []
    for cell in range(cells // 2):
        noisy = cell % 3 == 2
        n = int(rng.integers(1, 3 if noisy else 4))
        tau = tuple(map(int, rng.integers(1, 3 if noisy else 5, n)))
        if even:
            tau = (max(tau),) * n
        P = n if even or cell % 3 == 0 else int(rng.integers(1, n + 1))
        most = max(affordable(tau, P, noisy))
        T = int(rng.integers(1, most + 1) if most < 10 else np.floor(10 ** rng.uniform(0.3, np.log10(most))))
        found.append(draw_bounded(rng, 40, (1 + cell % 2, tau, P, T), noisy=noisy, one_point=one_point, even=even))
    if not one_point and not even:
        found += [draw_crossed(rng, 40, tau) for tau in (1, 2)]
    return tuple(found)


def concave_runs(claim: Claim, cells: int) -> Iterable[BoundedRuns]:
    """Concave problems, or one-point concave ones where the claim is about these."""
    return bounded(cells, any(a.name == "one-point-concave" for a in claim.assumptions), False)


def even_concave_runs(claim: Claim, cells: int) -> Iterable[BoundedRuns]:
    """Concave problems whose clients are alike and all take part."""
    return bounded(cells // 2, False, True)


@lru_cache(maxsize=64)
def with_whole_periods(z: BoundedRuns) -> BoundedRuns:
    r"""The same where the period $\sqrt{T/(\tau_{\rm eff}P)}$ of Theorem 2 is whole, its step in y within its cap."""
    least = np.ceil((16 * np.sqrt(z.rounds)) ** (2 / 3))
    period = np.minimum(least + np.floor(z.radius * 7) % 3, max(z.rounds, least))
    return replace(z, taueff=z.rounds / (z.participants * period**2), period=period)


def concave_runs_at_steps(claim: Claim, cells: int) -> Iterable[BoundedRuns]:
    """For Theorem 2 as printed those where its steps are possible."""
    found = concave_runs(claim, cells // 2)
    return [with_whole_periods(z) for z in found] if claim.id.endswith("[printed]") else found


# --- single points --------------------------------------------------------------------------------------------------


def squared_length(x: np.ndarray) -> np.ndarray:
    """Squared length, (B, 1) of (B, d)."""
    return (x**2).sum(axis=1, keepdims=True)


def fact(number: str) -> Callable[[Facts, FormNeeds], MeasuredForm]:
    """One of the standard facts of Appendix A, and Remark 6."""

    def measured(z: Facts, needs: FormNeeds) -> MeasuredForm:
        x, other, n = z.vectors[:, 0], z.vectors[:, 1], z.vectors.shape[1]
        at_x, at_other = z.slope(x), z.slope(other)
        least, most = z.curvature.min(axis=1)[:, None], z.curvature.max(axis=1)[:, None]
        mean, squares = z.vectors.mean(axis=1), (z.vectors**2).sum(axis=2)
        along = (at_other * (x - other)).sum(axis=1, keepdims=True)
        values = {
            "usq": squared_length(at_x if number == "a.5-gradient" else x),
            "vsq": squared_length(other),
            "young": z.levels[:, :1],
            "mu": least,
            "Lf": most,
            "n": np.full((len(z), 1), float(n)),
            "distsq": squared_length(x - other),
            "slope": -along,  # of the concave function, which is this one's negative
            "bregman": z.value(x) - z.value(other) - along,
            "excess": z.value(x),
            "squares": squares[:, None],
            "fvalues": np.stack([z.value(u)[:, 0] for u in np.moveaxis(z.vectors, 1, 0)], axis=1)[:, None],
            "w": (np.full_like(z.weights, 1 / n) if number.startswith("remark") else z.weights)[:, None],
            "sigmaL": z.levels[:, :1],
            "betaL": z.levels[:, 1:],
            "betaG": np.ones((len(z), 1)),
            "sigmaG": np.sqrt(((z.vectors - mean[:, None]) ** 2).sum(axis=2).mean(axis=1, keepdims=True)),
            "gradxsq": squared_length(x if needs.form.endswith("one-node") else mean),
            "E_w": np.ones((len(z), 1)),
        }
        noise = squares[:, 0] if needs.form.endswith("one-node") else squares.mean(axis=1)
        center = (z.weights[:, :, None] * z.vectors).sum(axis=1)
        left = {
            "a.1": (x * other).sum(axis=1, keepdims=True),
            "a.2": z.value(other) - z.value(x),
            "a.3": squared_length(center) if needs.form.endswith("squares") else z.value(center),
            "a.4": squared_length(z.vectors.sum(axis=1)),
            "a.5": squared_length(x),
            "a.5-gradient": z.value(x),
            "a.6": squared_length(at_x - at_other),
            "a.7": squared_length(at_x),
            "remark-6": (z.levels[:, :1] ** 2 + z.levels[:, 1:] ** 2 * noise[:, None]) / n,
        }[number]
        strong = z.kind == 0
        met: dict[str, np.ndarray | bool] = dict.fromkeys(("strongly-convex", "strongly-concave"), strong)
        met |= dict.fromkeys((*ALWAYS, "bounded-below"), True) | {"convex": z.kind < 2}
        size = z.value(x) + z.value(other) + np.abs(along) + squared_length(x) + squared_length(other)
        return MeasuredForm(
            left, values, met, 10 * CANCELED * size * np.maximum(most, 1) ** (2 if number == "a.6" else 1)
        )

    return measured


def curvature(z: QuadraticRuns, needs: FormNeeds) -> MeasuredForm:
    """Lemma B.1: that of the envelope."""
    left = np.abs(np.linalg.eigvalsh(z.envelope.astype(float))).max(axis=1)[:, None]  # well conditioned
    return MeasuredForm(left, z.symbols(needs.whole), quadratic_assumptions(z), 1e-9 * left)


def meant(z: MeantRuns, needs: FormNeeds) -> MeasuredForm:
    """Corollary 1.1, on a path."""
    surrogate, true, apart = z.meant
    values = z.symbols(needs.whole) | {"p": z.p[:, None]}
    values |= {"epsopt": surrogate.mean(axis=1, keepdims=True), "lag": apart.mean(axis=1, keepdims=True)}
    values["chi2"] = ((z.p - z.weights) ** 2 / z.weights).sum(axis=1)[:, None]
    return MeasuredForm(true.min(axis=1, keepdims=True), values, quadratic_assumptions(z))


def meant_moreau(z: TwoEnvelopes, needs: FormNeeds) -> MeasuredForm:
    """Corollary 2.1, on a path; far out the functions go on with the slope that they have there."""
    apart = ((z.proximal(0) - z.proximal(1)) ** 2).sum(axis=2)
    values = {
        "Lf": z.smoothness[:, None],
        "epsbar": z.gradsq(0).mean(axis=1, keepdims=True),
        "proxlag": apart.mean(axis=1, keepdims=True),
    }
    met: dict[str, np.ndarray | bool] = dict.fromkeys((*ALWAYS, "concave", "lipschitz-in-x", "bounded-ascent"), True)
    return MeasuredForm(z.gradsq(1).min(axis=1, keepdims=True), values, met)


@lru_cache(maxsize=8)
def facts(cells: int) -> tuple[Facts, ...]:
    """Vectors and functions."""
    rng = np.random.default_rng(401)
    return tuple(draw_facts(rng, 40, int(rng.integers(2, 5)), int(rng.integers(1, 4))) for _ in range(cells))


def points(claim: Claim, cells: int) -> Iterable[Facts]:
    """Single points, for the facts."""
    return facts(cells)


@lru_cache(maxsize=8)
def two_weights(cells: int) -> tuple[MeantRuns, ...]:
    """Quadratics with weights of two kinds."""
    rng = np.random.default_rng(409)
    return tuple(draw_meant(rng, z, 1 + k % 2) for k, z in enumerate(quadratics(cells, True, False)))


@lru_cache(maxsize=8)
def two_envelopes(cells: int) -> tuple[TwoEnvelopes, ...]:
    """Functions of x alone."""
    rng = np.random.default_rng(419)
    return tuple(draw_envelopes(rng, 40, 1 + k % 3, 1 + k % 2) for k in range(cells))


# --- claims --------------------------------------------------------------------------------------------------------


class Measurement(NamedTuple):
    """How one result is verified."""

    draw: Callable[[Claim, int], Iterable[Any]]  # its instances
    measure: Callable[[Any, FormNeeds], MeasuredForm]  # its left side and its symbols
    steps: Mapping[str, Any] = {}  # set for it where its forms set none


APPENDIX_A = ("a.1", "a.2", "a.3", "a.4", "a.5", "a.5-gradient", "a.6", "a.7")
average = expected("gradsq", 2)
RESULTS: Mapping[str, Measurement] = {
    "theorem-1": Measurement(runs, average),
    "theorem-1-at-its-steps": Measurement(long_runs, average),
    "remark-1": Measurement(long_even_runs, average, STEPS),
    "remark-3": Measurement(runs, average),
    "corollary-1.2": Measurement(lambda claim, cells: quadratics(cells // 5, False, True), rounds_needed),
    "lemma-b.2": Measurement(rounds, expected("update", 0)),
    "lemma-b.3": Measurement(rounds, descent),
    "lemma-b.4": Measurement(rounds, expected("drift", 0)),
    "lemma-b.5": Measurement(runs, expected("gap", 2)),
    "lemma-b.6": Measurement(rounds, expected("gradxsq", 0)),
    "lemma-b.7": Measurement(rounds, expected("noisysq", 0)),
    "lemma-b.8": Measurement(rounds, expected("noisysq_y", 0)),
    "lemma-b.9": Measurement(rounds, expected("drift", 0)),
    "theorem-2": Measurement(concave_runs_at_steps, stationarity),
    "theorem-3": Measurement(concave_runs, stationarity),
    "theorem-4": Measurement(concave_runs, stationarity),
    "corollary-2.2": Measurement(even_concave_runs, rounds_needed_for_concave),
    "lemma-c.1": Measurement(concave_runs, moreau_descent),
    "lemma-c.2": Measurement(concave_runs, snapshot_drift),
    "lemma-c.3": Measurement(concave_runs, block_gap),
    "lemma-c.4": Measurement(concave_runs, live_gap),
    "lemma-c.5": Measurement(concave_runs, block_gap),
    "lemma-b.1": Measurement(rounds, curvature),
    "corollary-1.1": Measurement(lambda claim, cells: two_weights(cells), meant),
    "corollary-2.1": Measurement(lambda claim, cells: two_envelopes(cells), meant_moreau),
    "remark-6": Measurement(points, fact("remark-6")),
} | {f"lemma-{number}": Measurement(points, fact(number)) for number in APPENDIX_A}


def form_sides(claim: Claim, instances: Any) -> Sides:
    """A result's form: the left side exactly, the right side from the form's terms; negative ones change sides."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    if isinstance(instances, ExtremalRuns):
        return FAMILIES[subject.result.key.partition("/")[2]].sides(claim, instances)
    form, how = subject.form, RESULTS[subject.result.key.partition("/")[2]]
    steps, assumed = form.prescribes or how.steps, {a.name for a in claim.assumptions}
    needs = FormNeeds(form.name, "unbiased-noise" in assumed, "bounded-maximizer" in assumed, "S" in steps)
    z, whole = instances, np.ones((len(instances), 1), dtype=bool)
    if steps:
        z, legal = set_steps(z, steps, needs)
        whole = legal[:, None]
    left, values, met, rounding = how.measure(z, needs)
    return sides_of_form(claim, left, values, met, whole, (rounding, CANCELED), VECTORS, z.describe)


def instance_test(claim: Claim) -> InstanceTest | None:
    """How instances verify a result of the paper; None for a claim without instances."""
    subject = claim.subject
    if claim.paper != PAPER or not isinstance(subject, ResultForm):
        return None
    name = subject.result.key.partition("/")[2]
    how = RESULTS.get(name)
    return InstanceTest(how.draw, form_sides, family=FAMILIES.get(name)) if how else None
