"""How the results of Sharma et al. (2023) become two sides on instances, and on which instances they are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bounds.audit.claim import Claim, ResultForm
from bounds.compilation import compile_form
from bounds.papers.fed_norm_sgda.notation import NOTATION
from bounds.papers.fed_norm_sgda.results import STEPS, THEOREM_1_AT_ITS_STEPS
from bounds.result import Form
from empirical.instances.fed_norm_sgda.runs import QuadraticRuns, draw_at_rest, draw_quadratics
from empirical.instances.sides import Sides, Trial

PAPER = "fed-norm-sgda"
VECTORS = frozenset({"w", "p", "tau", "a1", "a2", "alast", "amax", "squares"})
CANCELLED = 1e-12  # error of a left side relative to the sizes of its summands
LONGEST = 1e12  # rounds
Values = dict[str, np.ndarray]

# What holds by construction: noise is drawn anew in every local step, clients in every round.
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


class Measured(NamedTuple):
    """A left-hand side with its error, the letters of the right-hand side, and which assumptions an instance meets."""

    left: np.ndarray
    values: Values
    met: Mapping[str, np.ndarray | bool]
    rounding: np.ndarray | float = 0.0


class Asked(NamedTuple):
    """What a form asks of an instance besides its left side: its name, and whether sigma_L is of the whole gradient."""

    form: str
    whole: bool


# --- quadratics ----------------------------------------------------------------------------------------------------


def of_quadratics(z: QuadraticRuns) -> dict[str, np.ndarray | bool]:
    """The assumptions that quadratics meet."""
    return dict.fromkeys(ALWAYS, True) | {"strongly-concave": True, "bounded-below": z.bounded_below}


def expected(name: str, when: int) -> Callable[[QuadraticRuns, Asked], Measured]:
    """The expectation of a square at the start of a round (0), or on average over the rounds (2)."""

    def measured(z: QuadraticRuns, asked: Asked) -> Measured:
        about = ("gradsq", "gap", "gradxsq", "drift", "sampledrift", "noisydrift", "noisysq", "direction")
        values = z.letters(asked.whole) | {letter: z.expected(letter, when) for letter in about}
        values["epsopt"] = values["gradsq"]
        return Measured(z.expected(name, when), values, of_quadratics(z), CANCELLED * z.error(name, when))

    return measured


def descent(z: QuadraticRuns, asked: Asked) -> Measured:
    """Lemma B.3: the increase of the envelope over one round."""
    found = expected("envelope", 0)(z, asked)
    error = CANCELLED * (z.error("envelope", 0) + z.error("envelope", 1))
    return found._replace(left=z.expected("envelope", 1) - found.left, rounding=error)


def rounds_needed(z: QuadraticRuns, asked: Asked) -> Measured:
    r"""Corollary 1.2: the rounds until the average at the steps of (4) is at most that after T rounds, $\epsilon^2$."""

    def average(rounds: np.ndarray) -> np.ndarray:
        found = at_steps(replace(z, rounds=rounds), STEPS, asked)[0].expected("gradsq", 2)[:, 0]
        return np.where(np.isfinite(found), found, np.inf)

    target, below, above = average(z.rounds), np.zeros(len(z)), z.rounds
    while (above - below > 1).any():
        middle = np.maximum(np.floor((below + above) / 2), 1)
        good = average(middle) <= target
        below, above = np.where(good, below, middle), np.where(good, middle, above)
    values = z.letters(asked.whole) | {"eps": np.sqrt(target)[:, None]}
    return Measured(above[:, None], values, of_quadratics(z))


def steps_of(steps: Mapping[str, Any]) -> Form:
    """A form that only prescribes steps."""
    return Form("explicit", (), (), prescribes=steps)


@lru_cache(maxsize=64)
def prescribing(names: tuple[str, ...], expressions: tuple[Any, ...]) -> Form:
    """The same, remembered."""
    return steps_of(dict(zip(names, expressions, strict=True)))


def at_steps(z: Any, steps: Mapping[str, Any], asked: Asked) -> tuple[Any, np.ndarray | bool]:
    """The instances at the steps that a form sets, and where a period among them is a whole number."""
    form = prescribing(tuple(steps), tuple(steps.values()))
    values = compile_form(form, VECTORS).parts(z.letters(asked.whole)).prescribed
    found: Values = {}
    whole: np.ndarray | bool = True
    for name, value in zip(steps, values, strict=True):
        here = np.broadcast_to(value, (len(z), 1))[:, 0]
        field = {"gammax": "Gammax", "gammay": "Gammay", "S": "period"}.get(name, name)
        here = here * z.taueff if name.startswith("gamma") else here
        positive = np.isfinite(here) & (here > 0)
        whole = whole & positive
        here = np.where(positive, here, 1e-9)
        if name == "S":
            nearest = np.maximum(np.rint(here), 1)
            whole, here = whole & (np.abs(here - nearest) <= 1e-9 * nearest), nearest
        found[field] = here
    return replace(z, **found), whole


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
def lengthened(z: QuadraticRuns) -> QuadraticRuns:
    """The same with at least the rounds that Theorem 1 needs at its steps."""
    form = THEOREM_1_AT_ITS_STEPS.form("sharp")
    sides = compile_form(form, VECTORS).sides(z.letters(False))
    floors = [right for (_, right, _), c in zip(sides, form.conditions, strict=True) if c.left == NOTATION.T]
    least = np.ceil(np.max([np.broadcast_to(f, (len(z), 1)) for f in floors], axis=0)[:, 0])
    return replace(z, rounds=np.minimum(np.where(z.rounds < 100, least, np.maximum(z.rounds, least)), LONGEST))


def long_runs(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """Runs with at least the rounds that Theorem 1 needs at its steps."""
    return [lengthened(z) for z in runs(claim, cells)]


def long_even_runs(claim: Claim, cells: int) -> Iterable[QuadraticRuns]:
    """The same where all clients are alike."""
    return [lengthened(z) for z in even_runs(claim, cells)]


# --- the court -----------------------------------------------------------------------------------------------------


class Heard(NamedTuple):
    """How one result is tried.

    Attributes:
        draw: its instances.
        measure: its left side and its letters.
        steps: set for it where its forms set none.
    """

    draw: Callable[[Claim, int], Iterable[Any]]
    measure: Callable[[Any, Asked], Measured]
    steps: Mapping[str, Any] = {}


average = expected("gradsq", 2)
RESULTS: Mapping[str, Heard] = {
    "theorem-1": Heard(runs, average),
    "theorem-1-at-its-steps": Heard(long_runs, average),
    "remark-1": Heard(long_even_runs, average, STEPS),
    "remark-3": Heard(runs, average),
    "corollary-1.2": Heard(even_runs, rounds_needed),
    "lemma-b.2": Heard(rounds, expected("update", 0)),
    "lemma-b.3": Heard(rounds, descent),
    "lemma-b.4": Heard(rounds, expected("drift", 0)),
    "lemma-b.5": Heard(runs, expected("gap", 2)),
    "lemma-b.6": Heard(rounds, expected("gradxsq", 0)),
    "lemma-b.7": Heard(rounds, expected("noisysq", 0)),
    "lemma-b.8": Heard(rounds, expected("noisysq_y", 0)),
    "lemma-b.9": Heard(rounds, expected("drift", 0)),
}


def form_sides(claim: Claim, instances: Any) -> Sides:
    """A result's form: the left side exactly, the right side from the form's terms; negative ones change sides."""
    subject = claim.subject
    assert isinstance(subject, ResultForm)
    form, heard = subject.form, RESULTS[subject.result.key.partition("/")[2]]
    asked = Asked(form.name, any(a.name == "unbiased-noise" for a in claim.assumptions))
    z, whole = instances, np.ones((len(instances), 1), dtype=bool)
    if steps := form.prescribes or heard.steps:
        z, found = at_steps(z, steps, asked)
        whole = whole & np.reshape(found, (-1, 1))
    left, values, met, rounding = heard.measure(z, asked)
    held, unknown = whole, sorted({a.name for a in claim.assumptions} - set(met))
    for assumption in claim.assumptions:
        held = held & np.reshape(met.get(assumption.name, False), (-1, 1))
    parts = compile_form(form, VECTORS).parts(values)
    for holds in parts.holds:
        held = held & holds
    terms = {t.name: np.broadcast_to(v, left.shape) for t, v in zip(form.terms, parts.terms, strict=True)}
    finite = np.isfinite(left) & np.all([np.isfinite(v) for v in terms.values()], axis=0)
    left, *found = (np.where(finite, v, 0.0) for v in (left, *terms.values()))
    moved = sum((np.minimum(v, 0) for v in found), start=np.zeros(left.shape))
    error = np.where(finite, rounding, 0.0) + CANCELLED * (np.abs(left) + np.abs(moved))
    positive = {name: np.maximum(v, 0) for name, v in zip(terms, found, strict=True)}
    unmet = f"not checkable here: {', '.join(unknown)}" if unknown else ""
    return Sides(left - moved, positive, held & finite, error, unmet, z.describe)


def trial(claim: Claim) -> Trial | None:
    """How this court tries a result of the paper; None if it does not hear it."""
    subject = claim.subject
    if claim.paper != PAPER or not isinstance(subject, ResultForm):
        return None
    heard = RESULTS.get(subject.result.key.partition("/")[2])
    return Trial(heard.draw, form_sides) if heard else None
