r"""Steps of the one-round proofs, read as they stand, at the exact inner products of every instance.

They are kept for differences, so that nothing cancels. In one local step of one client $D=y-x_t$, $k=\nabla F_n(y)-
\nabla F_n(x_t)$, $o=\nabla F_n(x_t)-\nabla\tilde f(x_t)$, $f_0$ and the noise. Over a round D, K and the noise are
averaged over the steps, $k_v$ and a are the means of k and of the noise of one client,
$k_s=\sum_n\varphi_nk_{v,n}$, and z, d are the mean update and the update, divided by $-\gamma\eta I$.
"""

from functools import lru_cache
from itertools import product

import numpy as np
from sympy import Symbol

from fedbounds.bounds.audit.axioms import Unfit
from fedbounds.bounds.audit.claim import Claim, Relation
from fedbounds.bounds.audit.participation_rules import CauchySchwarz, ClientMean, SecondMoment
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.papers.fedau.proof import PROOFS
from fedbounds.bounds.papers.fedau.proof.descent import DECREASE
from fedbounds.empirical.falsification.instances.readable import (
    Basis,
    Readable,
    arrange_sides,
    conditions_hold,
    evaluate_sides,
    hypotheses,
    not_measured,
    product_key,
    readable,
)
from fedbounds.empirical.falsification.instances.sides import Sides
from fedbounds.empirical.papers.fedau.instances.kinked import KinkedInstances
from fedbounds.empirical.papers.fedau.instances.measured import CANCELED, ONE_STEP, lemma_symbols
from fedbounds.empirical.papers.fedau.instances.weighted import WeightedInstances, sum_over_clients

STEP_BASIS: Basis = (
    ("x0", ()), ("g0", ("o", "f0")), ("f0", ("f0",)), ("y", ("D",)), ("gy", ("k", "o", "f0")), ("xi", ("xi",)),
)  # fmt: skip
ROUND_BASIS: Basis = (
    ("x0", ()), ("g0", ("o", "f0")), ("f0", ("f0",)), ("Y", ("D",)), ("GY", ("K", "o", "f0")), ("Xi", ("Xi",)),
    ("v", ("kv", "o", "f0")), ("a", ("a",)), ("s", ("ks", "f0")), ("z", ("z",)), ("d", ("d",)),
)  # fmt: skip
Products = dict[tuple[str, str], np.ndarray]


def zeros(pairs: str) -> Products:
    """Products that vanish: of noise with what was there before it."""
    return {product_key(*pair.split(",")): np.zeros((1, 1)) for pair in pairs.split()}


def step_products(z: WeightedInstances | KinkedInstances) -> Products:
    """Of one client before each local step i = 0, ..., I, each (B, N (I+1))."""
    return _quadratic_step(z) if isinstance(z, WeightedInstances) else _kinked_step(z)


def round_products(z: WeightedInstances | KinkedInstances) -> Products:
    """Of a round, each (B, N)."""
    return _quadratic_round(z) if isinstance(z, WeightedInstances) else _kinked_round(z)


def _at_start(z: WeightedInstances) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """grad F_n and grad f~ at the start, and their difference, (B, N, d), (B, 1, d), (B, N, d)."""
    whole = z.mean_gradient(z.phi)[:, None]
    return (
        (z.curvature * z.start)[:, None] + z.slopes,
        whole,
        z.slopes - sum_over_clients(z.phi, z.slopes)[:, None],
    )


def _quadratic_step(z: WeightedInstances) -> Products:
    own, f0, o = (v[:, :, None] for v in _at_start(z))  # (B, N, 1, d)
    a, gamma = z.curvature[:, None, None], z.gamma[:, None, None, None]
    first, second = (v[:, None] for v in z.sums)
    m = -gamma * first * own
    square = m**2 + gamma**2 * second * z.noise[:, None, None] ** 2
    found = {
        ("D", "D"): square, ("D", "k"): a * square, ("k", "k"): a**2 * square, ("D", "o"): m * o, ("D", "f0"): m * f0,
        ("k", "o"): a * m * o, ("f0", "k"): a * m * f0, ("o", "o"): o**2, ("f0", "o"): f0 * o, ("f0", "f0"): f0**2,
        ("xi", "xi"): z.noise[:, None, None] ** 2,
    }  # fmt: skip
    shape = (len(z), z.clients, z.local_steps + 1)
    flat = {product_key(*k): np.broadcast_to(v.sum(axis=3), shape).reshape(len(z), -1) for k, v in found.items()}
    return flat | zeros("D,xi k,xi o,xi f0,xi")


def _quadratic_round(z: WeightedInstances) -> Products:
    I, N, noise = z.local_steps, z.clients, z.noise[:, None] ** 2
    own, f0, o = _at_start(z)
    a, gamma = z.curvature[:, None], z.gamma[:, None, None]
    first, second = (v[:, :-1] for v in z.sums)
    m = -gamma[:, None] * first[:, None] * own[:, :, None]  # (B, N, I, d)
    squares = (m**2 + (gamma * second * gamma)[:, None] * noise[:, None]).mean(axis=2)
    m = m.mean(axis=2)
    reach = -gamma / I * first[:, ::-1]  # of the noise of step j in the mean change: over the steps after it
    variance = noise * (reach**2).sum(axis=1, keepdims=True)  # of the mean change
    with_noise = noise * reach.sum(axis=1, keepdims=True) / I  # its covariance with the mean noise
    phi, share = z.phi[:, :, None], (z.p * z.omega / N)[:, :, None]
    v = own + a * m
    s, mean = sum_over_clients(z.phi, a * m)[:, None], sum_over_clients(z.p * z.omega / N, v)[:, None]
    turned, crossed = a**2 * variance, a * with_noise  # variance of v, and its covariance with the mean noise
    p, w = z.p[:, :, None], z.omega[:, :, None]
    fresh = turned + 2 * crossed + noise / I  # variance of v and a together
    chosen = ((w / N) ** 2 * p * ((1 - p) * v**2 + fresh)).sum(axis=1, keepdims=True)

    def both(u: np.ndarray, w: np.ndarray) -> np.ndarray:
        return (u * w).sum(axis=1, keepdims=True)

    found = {
        ("D", "D"): squares, ("D", "K"): a * squares, ("K", "K"): a**2 * squares, ("D", "o"): m * o,
        ("D", "f0"): m * f0, ("K", "o"): a * m * o, ("K", "f0"): a * m * f0, ("o", "o"): o**2, ("f0", "o"): f0 * o,
        ("f0", "f0"): f0**2,
        ("Xi", "Xi"): noise, ("Xi", "a"): noise / I, ("a", "a"): noise / I, ("Xi", "kv"): crossed, ("a", "kv"): crossed,
        ("D", "a"): with_noise, ("K", "a"): crossed, ("kv", "kv"): (a * m) ** 2 + turned,
        ("D", "kv"): a * (m**2 + variance), ("K", "kv"): (a * m) ** 2 + turned, ("kv", "o"): a * m * o,
        ("kv", "f0"): a * m * f0, ("ks", "ks"): s**2 + both(phi, phi * turned), ("ks", "kv"): s * a * m + phi * turned,
        ("ks", "o"): s * o, ("ks", "f0"): s * f0, ("a", "ks"): phi * crossed,
        ("z", "z"): mean**2 + both(share, share * turned), ("ks", "z"): s * mean + both(phi, share * turned),
        ("f0", "z"): mean * f0, ("o", "z"): mean * o, ("kv", "z"): mean * a * m + share * turned,
        ("a", "z"): share * crossed, ("d", "f0"): mean * f0, ("d", "d"): mean**2 + chosen,
        ("d", "z"): mean**2 + both(share, share * (turned + crossed)),
        ("d", "ks"): s * mean + both(phi, share * (turned + crossed)),
    }  # fmt: skip
    shape = (len(z), N)
    return {product_key(*k): np.broadcast_to(v.sum(axis=2), shape) for k, v in found.items()} | zeros(
        "D,Xi K,Xi Xi,o Xi,f0 a,o a,f0"
    )


def _paths(z: KinkedInstances) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Change from x_t, slope less that at x_t, (B, 2^I, I+1), and noise, (B, 2^I, I), on every path."""
    I = z.local_steps
    signs = np.array(list(product((-1.0, 1.0), repeat=I)))  # their mean is zero
    x, gamma = z.start[:, None], z.gamma[:, None]
    noise = signs * z.noise[:, None, None]
    change = np.zeros((len(z), len(signs), I + 1))
    turned = np.zeros_like(change)
    at_start = z.slope(x)
    for i in range(I + 1):
        turned[:, :, i] = z.slope(x + change[:, :, i]) - at_start
        if i < I:
            change[:, :, i + 1] = change[:, :, i] - gamma * (at_start + turned[:, :, i] + noise[:, :, i])
    return change, turned, noise


def _kinked_step(z: KinkedInstances) -> Products:
    change, turned, _ = _paths(z)
    f0, none = z.slope(z.start[:, None]), np.zeros((1, 1))
    found = {
        ("D", "D"): (change**2).mean(axis=1), ("D", "k"): (change * turned).mean(axis=1),
        ("k", "k"): (turned**2).mean(axis=1), ("D", "f0"): change.mean(axis=1) * f0,
        ("f0", "k"): turned.mean(axis=1) * f0, ("f0", "f0"): f0**2, ("xi", "xi"): z.noise[:, None] ** 2,
    }  # fmt: skip
    return found | {product_key("o", w): none for w in ("D", "k", "o", "f0")} | zeros("D,xi k,xi o,xi f0,xi")


def _kinked_round(z: KinkedInstances) -> Products:
    change, turned, noise = _paths(z)
    change, turned = change[:, :, :-1], turned[:, :, :-1]
    f0 = z.slope(z.start[:, None])
    kv, a = turned.mean(axis=2), noise.mean(axis=2)
    v, weight = f0 + kv, (z.p * z.omega)[:, None]
    parts = {"kv": kv, "a": a, "ks": kv, "z": weight * v, "f0": np.broadcast_to(f0, kv.shape)}
    found = {product_key(u, w): (parts[u] * parts[w]).mean(axis=1)[:, None] for u in parts for w in parts}
    steps = {"D": change, "K": turned}
    for name, values in steps.items():
        found |= {product_key(name, w): (values * parts[w][:, :, None]).mean(axis=(1, 2))[:, None] for w in parts}
    found |= {product_key(u, w): (steps[u] * steps[w]).mean(axis=(1, 2))[:, None] for u in steps for w in steps}
    found |= {product_key("Xi", w): (a * parts[w]).mean(axis=1)[:, None] for w in parts}
    d = weight * (v + a)
    found |= {product_key("d", w): (d * parts[w]).mean(axis=1)[:, None] for w in ("z", "ks")}
    found["d", "f0"] = found["f0", "z"]
    found |= {("d", "d"): (weight * z.omega[:, None] * (v + a) ** 2).mean(axis=1)[:, None]}
    found |= {("Xi", "Xi"): (noise**2).mean(axis=(1, 2))[:, None]}
    none = {product_key("o", w): np.zeros((1, 1)) for w in (*parts, "D", "K", "Xi", "o", "d")}
    return found | none | zeros("D,Xi K,Xi a,f0 Xi,f0")


LARGEST = Symbol("[largest]", nonnegative=True)
OneRound = WeightedInstances | KinkedInstances


def basis_of(subject: StepOf) -> Basis | None:
    """By the vectors of the proof; None for another setting."""
    atoms = set(subject.proof.setting.atoms)
    return next((basis for basis in (STEP_BASIS, ROUND_BASIS) if set(dict(basis)) == atoms), None)


def relation_as_used(subject: StepOf) -> tuple[Relation, Relation | None]:
    """The step's relation; where it sums over clients what a premise bounds, with the largest there is for that bound.

    The second is the premise, whose left side at its largest the symbol `LARGEST` stands for.
    """
    step, proof = subject.step, subject.proof
    if not isinstance(step.rule, ClientMean | CauchySchwarz | SecondMoment):
        return step.conclusion, None
    place, _, name = next(p for p in step.premises if isinstance(p, str)).rpartition("/")
    home = next((p for p in PROOFS if p.id == place), proof)
    source = home.step(name)
    assert source is not None
    if source.conclusion.right == 0:
        return step.conclusion, None
    each = Relation(source.conclusion.left, LARGEST)
    try:
        return step.rule.relation(proof.setting, [each]), each
    except Unfit:  # the proof-step checker reports why; here the step is verified as it stands
        return step.conclusion, None


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    basis = basis_of(subject)
    assert basis is not None
    return readable(relation_as_used(subject)[0], basis)


@lru_cache(maxsize=256)
def measured(z: OneRound, basis: Basis) -> dict[str, np.ndarray]:
    """Products, the decrease of the objective, and the symbols of the lemmas."""
    products = (step_products if basis == STEP_BASIS else round_products)(z)
    named = {f"<{a},{b}>": v for (a, b), v in products.items()}
    return named | lemma_symbols(z) | {DECREASE.name: -z.ascent()}


def relation_sides(claim: Claim, z: OneRound) -> Sides:
    """A step's relation at every client and local step, or at every client."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    relation, basis = reading(subject), basis_of(subject)
    assert basis is not None
    values, each = measured(z, basis), relation_as_used(subject)[1]
    if each is not None:
        one = readable(each, basis)
        largest = {LARGEST.name: np.zeros((1, 1))}
        values = values | {LARGEST.name: evaluate_sides(one, values | largest, len(z))[0].max(axis=1, keepdims=True)}
    if missing := set(relation.names) - set(values):
        return not_measured(missing, len(z))
    found = evaluate_sides(relation, values, len(z))
    left = found[0]
    assumptions, conditions = hypotheses(subject, PROOFS)
    unknown = sorted({a.name for a in (*claim.assumptions, *assumptions)} - ONE_STEP)
    covered = (
        conditions_hold(conditions, values) & (not unknown) & _places(z, left.shape, subject.step.quantifiers, basis)
    )
    unmet = f"not checkable here: {', '.join(unknown)}" if unknown else ""
    return arrange_sides(subject.step.conclusion, relation, found, covered, CANCELED * found[1], unmet, z.describe)


def _places(z: OneRound, shape: tuple[int, ...], quantifiers: str, basis: Basis) -> np.ndarray:
    """The local steps of a step's quantifiers."""
    if basis != STEP_BASIS or shape[1] % (z.local_steps + 1):
        return np.ones((1, 1), dtype=bool)
    i = np.tile(np.arange(z.local_steps + 1), shape[1] // (z.local_steps + 1))[None]
    held = (i < z.local_steps) if "i < I" in quantifiers else np.ones_like(i, dtype=bool)
    return held & (i == 0) if "i = 0" in quantifiers else held
