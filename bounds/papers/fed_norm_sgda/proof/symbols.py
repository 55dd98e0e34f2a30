r"""The abbreviations of the proofs, and the vectors of one round.

The bracket $\langle u,v\rangle$ averages over all noise and sampling up to round t, over the clients with their weights
$w_i$ and over the local steps k with weights $a_i^{(k)}/\|a_i\|_1$. What weighs clients or steps otherwise is written
with scaled vectors: where $u$ is `X`, `w:X` is $\sqrt{w_i}\,u$, `a:X` is $\sqrt{w_ia_i^{(k)}/\|a_i\|_1}\,u$ (so that
$\langle$`a:X`,`a:X`$\rangle=\sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2\mathbb E\|u\|^2$), and `r:X` is
$\sqrt{\rho_{ik}}\,u$ with $\rho_{ik}=\|a_i\|_1(\|a_{i,-1}\|_1+\beta_L^2a_i^{(k)})$ for all local steps but the last,
where it is 0: the weights with which the gradients make the local models drift.
"""

from collections.abc import Iterator, Mapping

import sympy as sp
from sympy import Symbol

from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Atom, Vec, product_symbol, square
from fedbounds.bounds.papers.fed_norm_sgda import composites
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n

PAPER = "fed-norm-sgda"
L, kappa, sigmaL, betaL, sigmaG, betaG, nu, Gx = n.Lf, n.kappa, n.sigmaL, n.betaL, n.sigmaG, n.betaG, n.nu, n.Gx
etax, etay, Gammax, Gammay, C_w, D = n.etax, n.etay, n.Gammax, n.Gammay, n.C_w, n.D
mu = L / kappa

# --- constants -----------------------------------------------------------------------------------------------------

r = Symbol("r", positive=True)  # n/P
c, d, W, Z, Q, K, a_m = sp.symbols("c d W Z Q K a_m", nonnegative=True)
S_1, S_2, N, V, theta_G, theta_delta = sp.symbols("S_1 S_2 N V theta_G theta_delta", nonnegative=True)
M = Symbol("L_Phi", positive=True)  # smoothness of the envelope
CONSTANTS: Mapping[sp.Symbol, sp.Expr] = {
    r: composites.r,
    d: composites.d,
    c: composites.c,
    W: composites.W,
    Z: composites.Z,
    Q: composites.Q,
    K: composites.K,
    a_m: composites.a_m,
    S_1: d * W + betaL**2 * Q,
    S_2: d * W + betaL**2 * K,
    N: r * (sigmaL**2 * Z + 2 * sigmaG**2 * S_1),
    V: (etax**2 + etay**2) * L**2 * (sigmaL**2 * C_w + 2 * sigmaG**2 * D),
    theta_G: 8 * L**2 * D * betaG**2 * etax**2,
    theta_delta: 8 * L**3 * D * betaG**2 * (2 * kappa * etax**2 + etay**2),
    M: (1 + kappa) * L,
}


def closed(symbols: Mapping[sp.Symbol, sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
    """Every symbol by what it stands for, without symbols."""
    found = dict(symbols)
    while any(value.free_symbols & set(found) for value in found.values()):
        found = {symbol: value.xreplace(found) for symbol, value in found.items()}
    return found


# --- vectors -------------------------------------------------------------------------------------------------------

BLOCKS = {"x": "descent", "y": "ascent"}


def scaled(prefix: str, atom: Atom) -> Atom:
    """The vector times the root of its weight."""
    words = {"w": "sqrt(w_i)", "a": "sqrt(w_i a_i^(k)/|a_i|_1)", "r": "sqrt(rho_ik)"}[prefix]
    mean = f"w:{atom.mean}" if prefix == "w" and atom.mean in ("hx", "hy") else ""
    return Atom(
        f"{prefix}:{atom.name}",
        atom.kind,
        atom.time,
        f"{words} times {atom.meaning}",
        " ".join(f"{prefix}:{point}" for point in atom.at.split()),
        atom.of,
        True,
        mean,
        still=prefix == "w" and atom.still,
    )


def block_atoms(b: str, start: str, local: str) -> Iterator[Atom]:
    """The vectors of one block; gradients at the start of the round are taken at `start`, local ones at `local`."""
    words = BLOCKS[b]
    yield Atom(f"g{b}", "gradient", 0, f"grad_{b} f_i, the round's start", start, f"f_i/{b}", mean=f"F{b}", still=True)
    yield Atom(
        f"F{b}", "gradient", 0, f"grad_{b} F~, the round's start", start, f"F~/{b}", per_client=False, still=True
    )
    yield Atom(f"G{b}", "gradient", 1, f"grad_{b} f_i at the local model of step k", local, f"f_i/{b}", mean=f"h{b}")
    yield Atom(f"h{b}", "gradient", 1, f"sum_k a_i^(k) G{b}/|a_i|_1", of=f"mean of G{b}", mean=f"H{b}")
    yield Atom(f"H{b}", "gradient", 1, f"sum_i w_i h{b}", of=f"mean of h{b}", per_client=False)
    yield Atom(f"s{b}", "gradient", 1, f"sum over the sample of (n w_i/P) h{b}", "", f"sample of h{b}", False, f"H{b}")
    yield Atom(f"xi{b}", "noise", 0, f"noise of client i in block {b} of local step k, drawn after (x_t, y_t)")
    yield Atom(f"z{b}", "noise", 0, f"sum_k a_i^(k) xi{b}/|a_i|_1", of=f"mean of xi{b}")
    yield Atom(
        f"n{b}",
        "noise",
        0,
        f"sum over the sample of (n w_i/P) z{b}: s{b} + n{b} is the server's direction of {words}",
        of=f"sample of z{b}",
        per_client=False,
    )


def with_scaled(atoms: Mapping[str, Atom], wanted: str) -> dict[str, Atom]:
    """The atoms and their scaled versions, which are named like `a:Gx`."""
    found = dict(atoms)
    for name in wanted.split():
        prefix, _, base = name.partition(":")
        found[name] = scaled(prefix, atoms[base])
    return found


POINTS = (
    Atom("x0", "point", 0, "x_t", per_client=False, still=True),
    Atom("y0", "point", 0, "y_t", per_client=False, still=True),
    Atom("X", "point", 1, "x_i^(t,k), the local model before step k"),
    Atom("Y", "point", 1, "y_i^(t,k), the local model before step k"),
)
SCALED = " ".join(
    [f"{p}:{v}" for p in "war" for v in ("Gx", "gx", "Gy", "gy")]
    + [f"{p}:{v}" for p in "wa" for v in ("x0", "y0", "X", "Y")]
    + [f"w:{v}" for v in ("hx", "hy", "zx", "zy")]
)
BRACKET = (
    "expectation over all noise and sampling up to round t; mean over clients with weights w_i and over local steps "
    "with weights a_i^(k)/|a_i|_1 where a vector is of one client or of one step"
)

# one round, opaque: what differs from round to round
X = Symbol("[X_t]", nonnegative=True)
DELTA = Symbol("[delta_t]", nonnegative=True)
x0, y0, xs, ys = (Vec.atom(name) for name in ("x0", "y0", "xs", "ys"))
Fx, Fy = Vec.atom("Fx"), Vec.atom("Fy")


def local_distance(prefix: str = "") -> sp.Expr:
    """Lf^2 times the squared distance of the local models from the start of the round, scaled or not."""
    names = (("X", "x0"), ("Y", "y0"))
    return L**2 * sum(square(Vec.atom(prefix + a) - Vec.atom(prefix + b)) for a, b in names)


W_DRIFT = Symbol("[X_t, clients weighed by w_i^2]", nonnegative=True)
A_DRIFT = Symbol("[X_t, weighed as the noise is]", nonnegative=True)
SYMBOLS = {**CONSTANTS, X: local_distance(), W_DRIFT: local_distance("w:"), A_DRIFT: local_distance("a:")}


def round_setting(start_y: str, *more: Atom) -> ProofSetting:
    """One round; the gradient in y is taken at the x of `start_y`, of the round's start or of the snapshot."""
    local_y = "X Y" if start_y == "x0 y0" else "xs Y"
    atoms = (*POINTS, *block_atoms("x", "x0 y0", "X Y"), *block_atoms("y", start_y, local_y), *more)
    return ProofSetting(BRACKET, with_scaled({a.name: a for a in atoms}, SCALED), symbols=SYMBOLS)


G = product_symbol("Phi", "Phi")
H = product_symbol("Hx", "Hx")
ENVELOPE_ATOMS = (
    Atom("ys", "point", 0, "y~*(x_t), where F~(x_t, .) is largest", per_client=False, still=True),
    Atom("Phi", "gradient", 0, "grad Phi~(x_t) = grad_x F~(x_t, y~*(x_t))", "x0 ys", "F~/x", False, still=True),
    Atom("x1", "point", 1, "x_{t+1}", per_client=False),
    Atom("Fy1", "gradient", 1, "grad_y F~ at (x_{t+1}, y_t)", "x1 y0", "F~/y", per_client=False),
)
DESCENT_SETTING = round_setting("x0 y0", *ENVELOPE_ATOMS)
