r"""Steps of the proofs about one round, read as they stand, at the exact inner products of every instance.

Every path of every client's noise and every sample is enumerated. Client i's local step k has noise of one of two
values, so a client has $2^{\max\tau}$ paths; clients outside the sample run too. Points are relative to the
round's start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import combinations, product

import numpy as np

from fedbounds.bounds.audit.claim import Claim
from fedbounds.bounds.audit.proof_step_checker import StepOf
from fedbounds.bounds.audit.vectors import factors_of_product
from fedbounds.bounds.papers.fed_norm_sgda.proof import (
    PROOFS,
    ascent,
    corollaries,
    descent,
    envelope,
    local_steps,
    moreau,
    printed,
    restart,
)
from fedbounds.bounds.papers.fed_norm_sgda.proof.snapshot import STALE
from fedbounds.bounds.papers.fed_norm_sgda.proof.symbols import A_DRIFT, DELTA, W_DRIFT, X
from fedbounds.bounds.papers.fed_norm_sgda.proof.theorem_4 import LAG, LENGTH
from fedbounds.bounds.theory.result import Condition
from fedbounds.empirical.falsification.instances.readable import (
    Basis,
    Readable,
    conditions_hold,
    hypotheses,
    not_measured,
    readable,
)
from fedbounds.empirical.falsification.instances.sides import Sides
from fedbounds.empirical.papers.fed_norm_sgda.instances.problems import RoundInstances, lift


def every_path(steps: int) -> Array:
    """The signs of all paths, (2^steps, steps)."""
    return np.array(list(product((-1.0, 1.0), repeat=steps)))


@dataclass(frozen=True, eq=False)
class Paths:
    """All paths of all clients, each array (B, n, paths, steps, d)."""

    X: Array  # X, Y: local models before a step, less the round's start
    Y: Array
    Gx: Array  # Gx, Gy: exact gradients there; that in y at the snapshot for Fed-Norm-SGDA+
    Gy: Array
    xix: Array  # xix, xiy: noise
    xiy: Array


def run_clients(z: RoundInstances, stale: bool) -> Paths:
    """Algorithm 1, line by line, on all paths at once."""
    signs = every_path(z.coefficients.shape[3])
    start = tuple(v[:, None, None] for v in (z.x, z.y))
    directions = tuple(v[:, :, None] for v in (z.noise_x, z.noise_y))
    eta = tuple(v[:, None, None, None] for v in (-z.steps["etax"], z.steps["etay"]))
    snapshot = z.snapshot[:, None, None]
    moved: tuple[list[Array], list[Array]] = ([], [])
    exact: tuple[list[Array], list[Array]] = ([], [])
    noise: tuple[list[Array], list[Array]] = ([], [])
    shape = (*z.w.shape, len(signs))
    for k in range(signs.shape[1]):
        for b in (0, 1):
            total = np.zeros((*shape, start[b].shape[-1]))
            for j in range(k):
                total += z.coefficients[:, :, None, k, j, None] * (exact[b][j] + noise[b][j])
            moved[b].append(eta[b] * total)
        x, y = (start[b] + moved[b][k] for b in (0, 1))
        at = list(z.gradients(x, y))
        if stale:
            at[1] = z.gradients(np.broadcast_to(snapshot, x.shape), y)[1]
        for b in (0, 1):
            variance = (z.sigma**2)[:, :, None] + (z.beta**2)[:, :, None] * (at[b] ** 2).sum(axis=-1)
            exact[b].append(at[b])
            noise[b].append((signs[:, k] * np.sqrt(variance))[..., None] * directions[b])
    stacked = (np.stack(blocks[b], axis=3) for blocks in (moved, exact, noise) for b in (0, 1))
    return Paths(*stacked)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of a round by name, and the weights of the bracket."""

    local: Mapping[str, Array]  # of a client and a local step, broadcasting to (B, n, paths, steps, d)
    shared: Mapping[str, Array]  # of the server, broadcasting to (B, ways, samples, d)
    weights: Array  # w_i a_i^(k)/|a_i|_1, (B, n, steps)
    # what `w:`, `a:` and `r:` multiply the weights with, each broadcasting to (B, n, steps)
    scales: Mapping[str, Array]

    def has_vector(self, name: str) -> bool:
        """Whether there is such a vector."""
        prefix, _, base = name.rpartition(":")
        return base in self.local or (not prefix and base in self.shared)

    def product(self, a: str, b: str) -> Array:
        """The bracket of two vectors, (B, 1)."""
        if a in self.shared and b in self.shared:
            return self.mean((self.shared[a] * self.shared[b]).sum(axis=-1))
        (prefix, _, u), (other, _, v) = a.rpartition(":"), b.rpartition(":")
        assert prefix == other
        return self.bracket((self.local[u] * self.local[v]).sum(axis=-1), prefix)

    def bracket(self, values: Array, prefix: str = "") -> Array:
        """The mean over clients, paths and local steps of values (B, n, paths, steps), (B, 1)."""
        weights = self.weights * self.scales[prefix]
        return (np.broadcast_to(values, self._all).mean(axis=2) * weights).sum(axis=(1, 2))[:, None]

    @property
    def _all(self) -> tuple[int, ...]:
        return self.local["X"].shape[:4]

    @staticmethod
    def mean(values: Array) -> Array:
        """The mean over ways and samples of values (B, ways, samples), (B, 1)."""
        return values.mean(axis=(1, 2))[:, None]


def drift_weights(z: RoundInstances) -> Array:
    """rho_ik, (B, n, steps)."""
    before = np.where(z.last, 0.0, z.final)
    growth = z.beta.max(axis=1)[:, None, None] ** 2
    whole = z.final.sum(axis=2, keepdims=True) * (before.sum(axis=2, keepdims=True) + growth * z.final)
    return np.where(z.last, 0.0, whole)


def vectors(z: RoundInstances, stale: bool) -> Vectors:
    """Of Fed-Norm-SGDA, or of Fed-Norm-SGDA+ with its snapshot."""
    paths, n, P = run_clients(z, stale), z.w.shape[1], z.sampled
    share = z.final / z.final.sum(axis=2, keepdims=True)
    x, y, old = z.x[:, None, None], z.y[:, None, None], z.snapshot[:, None, None]
    best = z.maximizer(x)
    state = {"x0": np.zeros_like(x), "y0": np.zeros_like(y), "ys": best - y, "Phi": z.mean_gradients(x, best)[0]}
    state["Fx"], state["Fy"] = z.mean_gradients(x, y)
    if stale:
        state |= {"Fy": z.mean_gradients(old, y)[1], "xb": z.proximal(x) - x, "yb": z.maximizer(old) - y}
    local = {name: v[:, :, :, None] for name, v in state.items()}
    local |= {name: getattr(paths, name) for name in ("X", "Y", "Gx", "Gy", "xix", "xiy")}
    start = [np.broadcast_to(v[:, :, :, None], (len(z), n, 1, 1, v.shape[3])) for v in (x, y, old)]
    local["gx"], gy = z.gradients(start[0], start[1])
    local["gy"] = z.gradients(start[2], start[1])[1] if stale else gy
    shared = dict(state)
    ways = np.array(list(product(range(len(every_path(share.shape[2]))), repeat=n)))
    samples = np.array([[i in chosen for i in range(n)] for chosen in combinations(range(n), P)], dtype=float)
    for b in "xy":
        for mean, each, total in (("h", "G", "s"), ("z", "xi", "n")):
            of_client = (share[:, :, None, :, None] * getattr(paths, each + b)).sum(axis=3)
            local[mean + b] = of_client[:, :, :, None]
            weighed = z.w[:, None, :, None] * of_client[:, np.arange(n), ways]  # (B, ways, n, d)
            shared[total + b] = np.einsum("bwnd,cn->bwcd", weighed * (n / P), samples)
            if mean == "h":
                shared[f"H{b}"] = weighed.sum(axis=2)[:, :, None]
    shared["x1"] = -lift(z.steps["Gammax"][:, None], shared["sx"]) * (shared["sx"] + shared["nx"])
    shared["y1"] = lift(z.steps["Gammay"][:, None], shared["sy"]) * (shared["sy"] + shared["ny"])
    there = x + shared["x1"]
    shared["Fy1"] = z.mean_gradients(there, np.broadcast_to(y, (*there.shape[:3], y.shape[3])))[1]
    one = np.ones((1, 1, 1))
    scales = {"": one, "w": z.w[:, :, None], "a": z.w[:, :, None] * share, "r": drift_weights(z)}
    return Vectors(local, shared, z.w[:, :, None] * share, scales)


Array = np.ndarray
CANCELED = 1e-12  # error of both sides relative to the sizes of what they are summed from
OF_CLIENTS = frozenset({"w", "p", "tau", "a1", "a2", "amax", "alast"})
# what every instance meets by construction
ALWAYS = frozenset({
    "smooth", "unbiased-block-noise", "bounded-heterogeneity", "uniform-sampling", "local-coefficients",
    "growing-coefficients", "independent-clients", "martingale-noise", "bounded-ascent", "bounded-maximizer",
})  # fmt: skip


def before_clients(name: str, value: Array) -> Array:
    """Symbols of clients have these last; all others get an axis of length 1 for them."""
    return value if name in OF_CLIENTS else value[..., None]


@dataclass(frozen=True, eq=False)
class PopulationNumbers:
    """Numbers for the symbols of one kind of proof, on one population."""

    symbols: dict[str, Array]  # by name
    has_vector: Callable[[str], bool]  # whether there is a vector of this name
    product: Callable[[str, str], Array]  # of two vectors, (B, X)
    sizes: dict[str, Array]  # of symbols that are differences of larger numbers
    floor: Callable[[str], Array | float]  # how large a vector's own summands are, (B, 1), where these cancel
    _known: dict[str, Array] = field(default_factory=dict)
    _held: dict[tuple[Condition, ...], Array] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the symbol has a value."""
        pair = factors_of_product(name)
        return name in self.symbols if pair is None else all(map(self.has_vector, pair))

    def value(self, name: str) -> Array:
        """Of a product or a symbol."""
        pair = factors_of_product(name)
        if pair is None:
            return self.symbols[name]
        if name not in self._known:
            self._known[name] = self.product(*pair)
        return self._known[name]

    def within(self, conditions: tuple[Condition, ...]) -> Array:
        """Whether the conditions hold, (B, 1)."""
        if conditions not in self._held:
            symbols = {name: before_clients(name, value) for name, value in self.symbols.items()}
            self._held[conditions] = (
                conditions_hold(conditions, symbols)[..., 0] if conditions else np.ones((1, 1), dtype=bool)
            )
        return self._held[conditions]

    def size(self, name: str) -> Array:
        """At most how large what a symbol is summed from is: for products the lengths of the vectors multiplied."""
        pair = factors_of_product(name)
        if pair is None:
            return self.sizes.get(name, np.abs(self.symbols[name]))
        first, second = (np.sqrt(np.abs(self.value(f"<{v},{v}>"))) + self.floor(v) for v in pair)
        return first * second


# --- what the symbols stand for --------------------------------------------------------------------------------------


def of_round(z: RoundInstances, stale: bool) -> PopulationNumbers:
    """One round of Fed-Norm-SGDA, or of Fed-Norm-SGDA+ if `stale`."""
    v = vectors(z, stale)
    symbols: dict[str, Array] = _drifts(z, v)
    sizes: dict[str, Array] = {}
    x, y = (p[:, None, None] for p in (z.x, z.y))
    here, best = z.objective(x, y), z.envelope(x)
    after_x = x + v.shared["x1"]
    waiting = np.broadcast_to(y, (*after_x.shape[:3], y.shape[3]))
    moved = z.envelope(after_x)
    found = {DELTA.name: best - here}
    large = Vectors.mean(np.abs(here) + np.abs(best) + np.abs(moved))
    if stale:
        values, far = _of_snapshot(z, v)
        found, large = found | values, large + far
        of_clients, of_clients_sizes = _of_clients(z, v)
        symbols, sizes = symbols | of_clients, of_clients_sizes
    else:
        between, end = z.objective(after_x, waiting), z.objective(after_x, waiting + v.shared["y1"])
        found |= {
            descent.DECREASE.name: best - moved,
            ascent.FALL_X.name: here - between,
            ascent.FALL_Y.name: between - end,
            ascent.GAP_DECREASE.name: best - here - moved + end,
            printed.LATER.name: moved - between,
        }
    for name, values in found.items():
        symbols[name] = Vectors.mean(values)
        sizes[name] = large + np.abs(symbols[name])
    return PopulationNumbers(z.constants | symbols, v.has_vector, v.product, sizes, lambda name: _floor(z, v, name))


def _floor(z: RoundInstances, v: Vectors, name: str) -> Array | float:
    """Points are differences of coordinates, and gradients are sums of products with these and of slopes."""
    prefix, _, base = name.rpartition(":")
    if base[0] in "zn" or base.startswith("xi"):
        return 0.0
    unit = 1 / z.smoothness if base[0] in "xyXY" else 1.0
    return (unit * z.gradient_size)[:, None] * np.sqrt(v.scales[prefix].max(axis=(1, 2)))[:, None]


def _drifts(z: RoundInstances, v: Vectors) -> dict[str, Array]:
    moved = (v.local["X"] ** 2).sum(axis=-1) + (v.local["Y"] ** 2).sum(axis=-1)
    L = z.smoothness[:, None] ** 2
    return {
        name: L * v.bracket(moved, prefix) for name, prefix in ((X.name, ""), (W_DRIFT.name, "w"), (A_DRIFT.name, "a"))
    }


def _of_snapshot(z: RoundInstances, v: Vectors) -> tuple[dict[str, Array], Array]:
    """Symbols of Fed-Norm-SGDA+ for values of the objective, (B, ways, samples), and how large these values are."""
    x, y, old = (p[:, None, None] for p in (z.x, z.y, z.snapshot))
    near, after = x + v.shared["xb"], x + v.shared["x1"]
    L = z.smoothness[:, None, None]

    next_near = z.proximal(after)
    top, bottom, top_next = z.envelope(near), z.objective(near, y), z.envelope(next_near)
    way, next_way = (L * (step**2).sum(axis=-1) for step in (near - x, next_near - after))
    found = {
        STALE.name: z.envelope(old) - z.objective(old, y),
        moreau.FALL.name: z.objective(x, y) - bottom,
        moreau.ENVELOPE_DECREASE.name: top + way - top_next - next_way,
        moreau.TO_PROX.name: z.envelope(x) - top,
        moreau.AT_PROX.name: top - bottom,
    }
    parts = (top, bottom, top_next, way, next_way, z.objective(old, y))
    return found, Vectors.mean(sum((np.abs(v) for v in parts), start=np.zeros((1, 1, 1))))


def _of_clients(z: RoundInstances, v: Vectors) -> tuple[dict[str, Array], dict[str, Array]]:
    """The other symbols of Fed-Norm-SGDA+, and the sizes of those that are differences."""

    def values(points: Array) -> Array:
        """f_i at the snapshot and these y, (B, n, paths, steps)."""
        points = z.y[:, None, None, None] + np.broadcast_to(points, v.local["Y"].shape)
        return z.values(
            np.broadcast_to(z.snapshot[:, None, None, None], (*points.shape[:4], z.snapshot.shape[1])), points
        )

    ahead, g = v.shared["yb"], v.shared["sx"] + v.shared["nx"]
    local, start, top = (values(v.local[name]) for name in ("Y", "y0", "yb"))
    first = (ahead**2).sum(axis=-1)
    last = ((ahead - v.shared["y1"]) ** 2).sum(axis=-1)
    radii = ((z.y**2).sum(axis=1), ((z.y + ahead[:, 0, 0]) ** 2).sum(axis=1))
    of_values = v.bracket(np.abs(local) + np.abs(start) + np.abs(top))
    symbols = {
        restart.ABOVE.name: v.bracket(local - top),
        restart.BELOW.name: v.bracket(start - local),
        restart.FIRST.name: Vectors.mean(first),
        restart.APPROACH.name: Vectors.mean(first - last),
        moreau.GRADIENT.name: 4 * z.smoothness[:, None] ** 2 * (v.shared["xb"][:, 0] ** 2).sum(axis=-1),
        LENGTH.name: Vectors.mean(np.linalg.norm(g, axis=-1)),
        LAG.name: np.linalg.norm(z.x - z.snapshot, axis=1)[:, None],
        "R": np.maximum(*radii)[:, None],
    }
    coordinates = (np.linalg.norm(z.y, axis=1)[:, None] + np.sqrt(Vectors.mean(first + last))) ** 2
    return symbols, {restart.APPROACH.name: coordinates, restart.ABOVE.name: of_values, restart.BELOW.name: of_values}


def of_local_steps(z: RoundInstances) -> PopulationNumbers:
    """Every client's local models after k = 1, ..., tau_i steps, in both blocks, (B, 2 n steps)."""
    paths, a, steps = run_clients(z, stale=False), z.coefficients, z.coefficients.shape[3]
    rows: dict[str, list[Array]] = {}
    for b, eta in (("x", z.steps["etax"]), ("y", z.steps["etay"])):
        G, xi = getattr(paths, f"G{b}"), getattr(paths, f"xi{b}")
        squares = (G**2).sum(axis=4).mean(axis=2)  # (B, n, steps)
        for k in range(1, steps + 1):
            weights = a[:, :, k]
            e, zeta = ((weights[:, :, None, :, None] * part).sum(axis=3) for part in (G, xi))
            u = -eta[:, None, None, None] * (e + zeta)
            vectors_ = {"e": e, "zeta": zeta, "u": u, "G": G[:, :, :, k - 1], "xi": xi[:, :, :, k - 1]}
            for p, q in (("u", "u"), ("e", "e"), ("e", "zeta"), ("zeta", "zeta"), ("G", "G"), ("xi", "xi")):
                rows.setdefault(f"<{p},{q}>", []).append((vectors_[p] * vectors_[q]).sum(axis=3).mean(axis=2))
            for symbol, value in (
                (local_steps.STEP, np.broadcast_to(eta[:, None], z.w.shape)),
                (local_steps.SUM, weights.sum(axis=2)),
                (local_steps.SQUARES, (weights**2).sum(axis=2)),
                (local_steps.OF_GRADIENTS, (weights * squares).sum(axis=2)),
                (local_steps.SQUARES_OF_GRADIENTS, (weights**2 * squares).sum(axis=2)),
            ):
                rows.setdefault(symbol.name, []).append(value)
    found = {name: np.concatenate(parts, axis=1) for name, parts in rows.items()}
    names = {"e", "zeta", "u", "G", "xi"}
    return PopulationNumbers(
        z.constants | found, names.__contains__, lambda p, q: found[f"<{p},{q}>"], {}, lambda _: 0.0
    )


def of_two_points(z: RoundInstances) -> PopulationNumbers:
    """x_t and the snapshot, with the maximizer of F~ at each."""
    x, u = z.x[:, None], z.snapshot[:, None]
    yx, yu = z.maximizer(x), z.maximizer(u)
    known = {"x": 0 * x, "u": u - x, "yx": 0 * yx, "yu": yu - yx, "e": z.mean_gradients(u, yx)[1]}
    known |= {"px": z.mean_gradients(x, yx)[0], "pu": z.mean_gradients(u, yu)[0]}
    symbols = {envelope.SMOOTHNESS_OF_ENVELOPE.name: z.envelope_smoothness[:, None]}
    size = z.gradient_size[:, None]
    return PopulationNumbers(
        z.constants | symbols,
        known.__contains__,
        lambda p, q: (known[p] * known[q]).sum(axis=-1),
        {},
        lambda name: size / z.smoothness[:, None] if name[0] in "uxy" else size,
    )


def of_meant_objective(z: RoundInstances) -> PopulationNumbers:
    """x_t as the only round of a run, the envelope of sum_i w_i f_i and that of sum_i p_i f_i."""
    x, meant = z.x[:, None], replace(z, w=z.p)
    yw, yp = z.maximizer(x), meant.maximizer(x)
    each = np.repeat(x, z.w.shape[1], axis=1), np.repeat(yw, z.w.shape[1], axis=1)
    known = {"yw": 0 * yw, "yp": yp - yw, "xt": 0 * x, "xw": z.proximal(x) - x, "xp": meant.proximal(x) - x}
    known |= {"Phi": z.mean_gradients(x, yw)[0], "Fp": meant.mean_gradients(x, yw)[0]}
    known |= {"Phip": meant.mean_gradients(x, yp)[0], "g": z.gradients(*each)[0]}

    def product(p: str, q: str) -> Array:
        values = (known[p] * known[q]).sum(axis=-1)
        return (z.w * values).sum(axis=1, keepdims=True) if "g" in (p, q) else values

    v, moreau_scale = z.constants, 4 * z.smoothness[:, None] ** 2
    gradient, far = product("Phi", "Phi"), known["xw"] - known["xp"]
    symbols = {
        corollaries.MEAN.name: gradient,
        corollaries.LAG.name: product("yp", "yp"),
        corollaries.MISMATCH.name: v["chi2"] * (v["betaG"] ** 2 * gradient + v["sigmaG"] ** 2),
        corollaries.LEAST.name: product("Phip", "Phip"),
        corollaries.MOREAU_MEAN.name: moreau_scale * product("xw", "xw"),
        corollaries.PROX_LAG.name: (far**2).sum(axis=-1),
        corollaries.LEAST_MOREAU.name: moreau_scale * product("xp", "xp"),
    }
    size = z.gradient_size[:, None]
    gradients = (corollaries.MEAN.name, corollaries.LEAST.name)
    sizes = {name: (np.sqrt(symbols[name]) + size) ** 2 for name in gradients}
    floors = {True: size / z.smoothness[:, None], False: size}
    return PopulationNumbers(v | symbols, known.__contains__, product, sizes, lambda name: floors[name[0] in "xy"])


KINDS: dict[str, Callable[[RoundInstances], PopulationNumbers]] = {  # by a vector that only this kind of proof has
    "zeta": of_local_steps,
    "yx": of_two_points,
    "Fp": of_meant_objective,
    "xp": of_meant_objective,
    "xs": lambda z: of_round(z, stale=True),
    "ys": lambda z: of_round(z, stale=False),
}


@lru_cache(maxsize=256)
def measured(z: RoundInstances, kind: str) -> PopulationNumbers:
    """The numbers of proofs of one kind, on one population."""
    return KINDS[kind](z)


# --- a step's two sides ----------------------------------------------------------------------------------------------


def kind_of(subject: StepOf) -> str | None:
    """By the vectors of the proof; None for another setting."""
    return next((kind for kind in KINDS if kind in subject.proof.setting.atoms), None)


@cache
def _basis(names: tuple[str, ...]) -> Basis:
    return tuple((name, (name,)) for name in names)


def reading(subject: StepOf) -> Readable:
    """The step's relation as a function of numbers."""
    return readable(subject.step.conclusion, _basis(tuple(subject.proof.setting.atoms)))


def covers(claim: Claim, subject: StepOf, z: RoundInstances, numbers: PopulationNumbers) -> tuple[Array, str]:
    """Where what a step and its premises assume holds, (B, 1), and what no instance is known to meet."""
    assumptions, conditions = hypotheses(subject, PROOFS)
    met = dict.fromkeys(ALWAYS, True) | z.met()
    names = {a.name for a in (*claim.assumptions, *assumptions)}
    held = np.ones((len(z), 1), dtype=bool)
    for name in names:
        held = held & np.reshape(met.get(name, False), (-1, 1))
    unknown = sorted(names - set(met))
    return held & numbers.within(conditions), f"not met here: {', '.join(unknown)}" if unknown else ""


def evaluate_relation(relation: Readable, number: Callable[[str], Array], instances: int) -> list[Array]:
    """The left side, the size of its summands, and the right side's summands, each (B, X)."""
    with np.errstate(all="ignore"):
        found = relation.function(*(before_clients(name, number(name)) for name in relation.names))
    shape = np.broadcast_shapes(*map(np.shape, found), (instances, 1, 1))
    return [np.broadcast_to(np.asarray(v, dtype=float), shape)[..., 0] for v in found]


def relation_sides(claim: Claim, z: RoundInstances) -> Sides:
    """A step's relation on instances that other steps are tried on too."""
    return sides_of(claim, z, measured(z, _kind(claim)))


def fresh_sides(claim: Claim, z: RoundInstances) -> Sides:
    """The same on instances that are soon forgotten."""
    return sides_of(claim, z, KINDS[_kind(claim)](z))


def _kind(claim: Claim) -> str:
    assert isinstance(claim.subject, StepOf)
    kind = kind_of(claim.subject)
    assert kind is not None
    return kind


def sides_of(claim: Claim, z: RoundInstances, numbers: PopulationNumbers) -> Sides:
    """A step's relation, exactly."""
    subject = claim.subject
    assert isinstance(subject, StepOf)
    relation = reading(subject)
    if missing := {name for name in relation.names if not numbers.has(name)}:
        return not_measured(missing, len(z))
    left, _, *summands = evaluate_relation(relation, numbers.value, len(z))
    rounding = CANCELED * sum(np.abs(part) for part in evaluate_relation(relation, numbers.size, len(z))[1:])
    covered, unmet = covers(claim, subject, z, numbers)
    if subject.step.conclusion.op == "==":
        total = sum(summands, start=np.zeros(left.shape))
        return Sides(np.abs(left - total), {}, covered, rounding, unmet, z.describe)
    moved = -sum((np.minimum(s, 0) for s in summands), start=np.zeros(left.shape))  # negative summands change sides
    terms = {name: np.maximum(s, 0) for name, s in zip(relation.terms, summands, strict=True)}
    if (left <= 0).all() and not any(term.any() for term in terms.values()):  # and the left side, if it is negative
        return Sides(moved, {"left side": -left}, covered, rounding, unmet, z.describe)
    return Sides(left + moved, terms, covered, rounding, unmet, z.describe)
