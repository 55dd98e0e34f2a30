r"""What the proofs of Sharma et al. (2023) trust of the algorithm, of its noise and of smoothness, as schemas.

Every schema yields one relation from the declared meaning of the vectors and names the assumptions it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy as sp

from fedbounds.bounds.audit.axioms import Jensen, Schema, Uncorrelated, Unfit
from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.nonnegative import same
from fedbounds.bounds.audit.steps import Setting
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, square
from fedbounds.bounds.clients import SumOverClients
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import letters as of

NOISE = ("unbiased-block-noise", "martingale-noise")
SAMPLING = "uniform-sampling"
ON_THE_SIMPLEX = Relation(SumOverClients(n.w), sp.S.One, "==")
# what the root of a scaled vector's weight is at most, and on average over the local steps if the vector stays the same
LARGEST = {"w": (of.W, of.W), "a": (of.K, of.Q), "r": (of.a_m, of.D)}


def weights_are_a_mean(premises: Sequence[Relation]) -> None:
    """The weights must be known to sum to 1.

    Raises:
        Unfit: they are not.
    """
    if not any(p.op == "==" and p.left == ON_THE_SIMPLEX.left and p.right == 1 for p in premises):
        raise Unfit("no premise says that the weights sum to 1")


def points(atom: Atom) -> tuple[str, ...]:
    """The two blocks of the point where a gradient is taken."""
    return tuple(atom.at.split())


@dataclass(frozen=True)
class BlockSmooth(Schema):
    r"""$\sum_b\|\nabla_bf(u)-\nabla_bf(v)\|^2\le L^2\|u-v\|^2$, over one block or both, for joint points u and v.

    Args:
        pairs: for each block the gradients at u and at v, of one function.
    """

    pairs: tuple[tuple[str, str], ...]
    axiom: str = "smoothness: |grad f(u) - grad f(v)| <= Lf |u - v| for u, v = (x, y), of f_i and of its means"
    needs: tuple[str, ...] = ("smooth",)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """Functions and points come from the atoms; of F~ the weights must be a mean."""
        firsts, seconds = ([setting.atoms[pair[k]] for pair in self.pairs] for k in (0, 1))
        if any(a.of != b.of or {a.kind, b.kind} != {"gradient"} for a, b in zip(firsts, seconds, strict=True)):
            raise Unfit("these are not gradients of one function in one block each")
        functions, blocks = zip(*(a.of.split("/") for a in firsts), strict=True)
        if len(set(functions)) != 1 or len(set(blocks)) != len(blocks) or functions[0] not in ("f", "f_i", "F~"):
            raise Unfit("these are not gradients of one function in different blocks")
        if len({points(a) for a in firsts}) != 1 or len({points(b) for b in seconds}) != 1:
            raise Unfit("the blocks are not taken at the same two points")
        if len(points(firsts[0])) != len(points(seconds[0])):
            raise Unfit("one of the two points lacks a block")
        if functions[0] == "F~":
            weights_are_a_mean(premises)
        left = sp.Add(*(square(Vec.atom(a) - Vec.atom(b)) for a, b in self.pairs))
        moved = sum(
            square(Vec.atom(u) - Vec.atom(v))
            for u, v in zip(points(firsts[0]), points(seconds[0]), strict=True)
            if u != v
        )
        return Relation(left, sp.expand(of.L**2 * moved))


@dataclass(frozen=True)
class WeightedMean(Jensen):
    r"""$\|\sum_iw_iu_i\|^2\le\sum_iw_i\|u_i\|^2$ for weights that a premise says sum to 1."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The means come from the atoms."""
        weights_are_a_mean(premises)
        return super().relation(setting, premises)


@dataclass(frozen=True)
class Scaled(Schema):
    r"""$\|\sqrt m\,u\|^2\le m_{\max}\|u\|^2$, with the mean of m over the local steps where u is the same in all.

    The weights are $w_i\le W$; $w_ia_i^{(k)}/\|a_i\|_1\le K$, on average $w_i\|a_i\|_2^2/\|a_i\|_1^2\le Q$; and
    $\rho_{ik}\le\max_i\|a_i\|_1(\|a_{i,-1}\|_1+\beta_L^2\alpha)$, on average
    $\|a_{i,-1}\|_1^2+\beta_L^2\|a_{i,-1}\|_2^2\le D$.

    Args:
        prefix: "w", "a" or "r".
        vector: u.
        still: whether u must stay the same over the local steps.
    """

    prefix: str
    vector: Vec
    still: bool = False
    axiom: str = (
        "the weights w_i, w_i a_i^(k)/|a_i|_1 and rho_ik, and their means over the local steps, at their largest"
    )
    needs: tuple[str, ...] = ()

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """Which vectors stay the same comes from the atoms."""
        moving = [name for name in self.vector.atoms if not setting.atoms[name].still]
        if self.still and moving:
            raise Unfit(f"{', '.join(moving)} is not the same in all local steps")
        return Relation(
            square(scaled(self.prefix, self.vector)), LARGEST[self.prefix][self.still] * square(self.vector)
        )


def scaled(prefix: str, vector: Vec) -> Vec:
    """The same combination of scaled vectors."""
    return Vec.of({f"{prefix}:{name}": k for name, k in vector.coefficients})


@dataclass(frozen=True)
class SampleSquare(Schema):
    r"""$\mathbb E\|\sum_{i\in\mathcal C}\frac{nw_i}Pu_i\|^2=c\|\sum_iw_iu_i\|^2+\frac nPd\sum_iw_i^2\|u_i\|^2$ for a
    sample of P from n without replacement.

    Each client is in it with probability $\frac Pn$, each two with $\frac{P(P-1)}{n(n-1)}$; one client alone always is.

    Args:
        sample: the sum over the sample; its atom names u.
    """

    sample: str
    axiom: str = "P of n clients are drawn uniformly without replacement, independently of everything else"
    needs: tuple[str, ...] = (SAMPLING,)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The letters c, d and r must stand for these probabilities."""
        weights_are_a_mean(premises)
        each = _sampled(setting, self.sample)
        one, two = n.P / n.n, n.P * (n.P - 1) / (n.n * (n.n - 1))
        more = {sp.Max(1, n.n - 1): n.n - 1}  # from two clients on
        factor = (n.n / n.P) ** 2
        stands = {
            letter: setting.letters[letter].xreplace(setting.letters).xreplace(more) for letter in (of.r, of.c, of.d)
        }
        if not (
            same(stands[of.c].xreplace(stands), factor * two)
            and same((of.r * of.d).xreplace(stands), factor * (one - two))
        ):
            raise Unfit("c, d and r do not stand for the probabilities of being drawn")
        mean = Vec.atom(setting.atoms[each].mean)
        right = of.c * square(mean) + of.r * of.d * square(scaled("w", Vec.atom(each)))
        return Relation(square(Vec.atom(self.sample)), sp.expand(right), "==")


def _sampled(setting: Setting, sample: str) -> str:
    word, _, each = setting.atoms[sample].of.partition(" of ")
    if word != "sample" or not setting.atoms[each].per_client:
        raise Unfit(f"{sample} is not a sum over the sample")
    return each


@dataclass(frozen=True)
class SampleMean(Schema):
    r"""$\mathbb E\langle\sum_{i\in\mathcal C}\frac{nw_i}Pu_i,v\rangle=\mathbb E\langle\sum_iw_iu_i,v\rangle$ for v that
    is known before the sample is drawn.

    Args:
        sample: the sum over the sample.
        known: v.
    """

    sample: str
    known: Vec
    axiom: str = "each client is drawn with probability P/n, independently of everything else"
    needs: tuple[str, ...] = (SAMPLING,)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """Times come from the atoms."""
        each = _sampled(setting, self.sample)
        for name in self.known.atoms:
            atom = setting.atoms[name]
            if atom.per_client or atom.time > 0 or atom.kind == "noise":
                raise Unfit(f"{name} is not known at the start of the round")
        mean = Vec.atom(setting.atoms[each].mean)
        return Relation(inner(Vec.atom(self.sample), self.known), inner(mean, self.known), "==")


@dataclass(frozen=True)
class NoiseGivenStart(Uncorrelated):
    r"""$\mathbb E\langle\zeta,u\rangle=0$ for noise of the round and u known before it is drawn."""

    axiom: str = "noise has mean zero given the past and the sample, so its products with the past vanish"
    needs: tuple[str, ...] = (*NOISE, SAMPLING)


@dataclass(frozen=True)
class MixingPrice(Schema):
    r"""$(2-\nu)\,\mathbb E\langle u,\zeta\rangle=0$: either $\nu=2$, or every client takes one step, and then the exact
    gradients u of the round are known before its noise.

    Args:
        exact: u, a sum of exact gradients of the round.
        noise: zeta, the same sum of noise.
    """

    exact: str
    noise: str
    axiom: str = (
        "nu = 1 only if every client takes one local step, whose gradient is known before its noise; else nu = 2"
    )
    needs: tuple[str, ...] = (*NOISE, SAMPLING)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The first must be made of gradients, the second of noise."""
        u, z = setting.atoms[self.exact], setting.atoms[self.noise]
        if u.kind != "gradient" or z.kind != "noise":
            raise Unfit(f"{self.exact} is no gradient or {self.noise} no noise")
        return Relation((2 - n.nu) * inner(Vec.atom(self.exact), Vec.atom(self.noise)), sp.S.Zero, "==")


@dataclass(frozen=True)
class NoiseOfSample(Schema):
    r"""$\mathbb E\|\sum_{i\in\mathcal C}\frac{nw_i}P\zeta_i\|^2=\frac nP\sum_iw_i^2\mathbb E\|\zeta_i\|^2$.

    Args:
        sample: the sum over the sample.
    """

    sample: str
    axiom: str = "noise of different clients is uncorrelated and independent of the sample"
    needs: tuple[str, ...] = (*NOISE, SAMPLING, "independent-clients")

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The clients' noise comes from the atom."""
        each = _sampled(setting, self.sample)
        if setting.atoms[each].kind != "noise":
            raise Unfit(f"{each} is not noise")
        return Relation(square(Vec.atom(self.sample)), of.r * square(scaled("w", Vec.atom(each))), "==")


@dataclass(frozen=True)
class NoiseOverSteps(Schema):
    r"""$\sum_iw_i^2\mathbb E\|\zeta_i\|^2\le
    \sum_i\frac{w_i^2}{\|a_i\|_1^2}\sum_k[a_i^{(k)}]^2(s+b\,\mathbb E\|u_{ik}\|^2)$ for
    $\zeta_i=\frac1{\|a_i\|_1}\sum_ka_i^{(k)}\xi_{ik}$, where the premise shows
    $\mathbb E\|\xi_{ik}\|^2\le s+b\,\mathbb E\|u_{ik}\|^2$.

    Args:
        total: zeta; its atom names xi.
        gradient: u.
    """

    total: str
    gradient: str
    axiom: str = "noise of different local steps is uncorrelated, having mean zero given the past"
    needs: tuple[str, ...] = NOISE

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The bound comes from the premise."""
        word, _, each = setting.atoms[self.total].of.partition(" of ")
        if word != "mean" or setting.atoms[each].kind != "noise":
            raise Unfit(f"{self.total} is not the noise of all local steps")
        if len(premises) != 1 or not same(premises[0].left, square(Vec.atom(each))):
            raise Unfit(f"the premise does not bound |{each}|^2")
        if setting.atoms[self.gradient].kind != "gradient":
            raise Unfit(f"{self.gradient} is no gradient")
        own = square(Vec.atom(self.gradient))
        growth = sp.diff(premises[0].right, own)
        level = sp.expand(premises[0].right - growth * own)
        if growth.free_symbols & {own} or level.has(own):
            raise Unfit(f"{premises[0]} is not linear in |{self.gradient}|^2")
        right = of.Z * level + growth * square(scaled("a", Vec.atom(self.gradient)))
        return Relation(square(scaled("w", Vec.atom(self.total))), sp.expand(right))


@dataclass(frozen=True)
class SelfBounded(Schema):
    r"""$\|\nabla g(v)\|^2\le2L\,(\max g-g(v))$ for a smooth function bounded above: here of y, $F~(x,\cdot)$.

    Args:
        gradient: grad_y F~.
        gap: what $\max_yF~-F~$ is called at its point.
    """

    gradient: str
    gap: sp.Symbol
    axiom: str = "a smooth function that is bounded above: |grad|^2 <= 2 Lf times the distance to its maximum"
    needs: tuple[str, ...] = ("smooth",)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The gradient must be that of F~ in y."""
        weights_are_a_mean(premises)
        atom = setting.atoms[self.gradient]
        if atom.of != "F~/y":
            raise Unfit(f"{self.gradient} is not a gradient of F~ in y")
        return Relation(square(Vec.atom(self.gradient)), 2 * of.L * self.gap)


@dataclass(frozen=True)
class SmoothFall(Schema):
    r"""$g(u)-g(u+s)\le-\langle\nabla g(u),s\rangle+\frac M2\|s\|^2$ for a smooth g.

    Args:
        gradient: grad g(u), in the block in which g moves.
        step: s.
        fall: the symbol of E g(u) - E g(u + s); it has no sign.
        smoothness: M.
        function: of whom: "F~" in either block, or "Phi~".
    """

    gradient: str
    step: Vec
    fall: sp.Symbol
    smoothness: sp.Expr = field(default_factory=lambda: of.L)
    function: str = "F~"
    axiom: str = "descent lemma, in either direction"
    needs: tuple[str, ...] = ("smooth",)

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """Of F~ the weights must be a mean; of Phi~ a premise must say how smooth it is."""
        atom = setting.atoms[self.gradient]
        if atom.kind != "gradient" or atom.per_client:
            raise Unfit(f"{self.gradient} is not a gradient of what all clients share")
        weights_are_a_mean(premises)
        if self.fall.is_nonnegative is not None:
            raise Unfit(f"the symbol {self.fall} has a sign, but the function may move either way")
        if self.function == "Phi~":
            if self.gradient != "Phi" or not any(p.op == "<=" and p.right == self.smoothness for p in premises):
                raise Unfit("no premise says how smooth Phi~ is")
        elif not atom.of.startswith("F~/") or self.smoothness != of.L:
            raise Unfit(f"{self.gradient} is not a gradient of F~, which is Lf-smooth")
        right = -inner(Vec.atom(self.gradient), self.step) + self.smoothness / 2 * square(self.step)
        return Relation(self.fall, sp.expand(right))


@dataclass(frozen=True)
class SmoothRise(SmoothFall):
    r"""$g(u+s)-g(u)\le\langle\nabla g(u),s\rangle+\frac M2\|s\|^2$; `fall` is still $g(u)-g(u+s)$."""

    def relation(self, setting: Setting, premises: Sequence[Relation]) -> Relation:
        """The same with the sides' signs turned."""
        fall = super().relation(setting, premises)
        right = inner(Vec.atom(self.gradient), self.step) + self.smoothness / 2 * square(self.step)
        return Relation(-fall.left, sp.expand(right))
