"""Axiom schemas of the proofs: the algorithm, its noise and smoothness; each names the assumptions it needs."""

from dataclasses import dataclass

import sympy as sp

from fedbounds.bounds.audit.axioms import Descent, Schema, Smooth, SumOfNoise, Uncorrelated, Unfit
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import same
from fedbounds.bounds.audit.participation_rules import MeanUpdate
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Vec, inner, square
from fedbounds.bounds.papers.fed_norm_sgda.notation import NOTATION as n
from fedbounds.bounds.papers.fed_norm_sgda.proof import symbols as of
from fedbounds.bounds.theory.client_reductions import SumOverClients

NOISE = ("unbiased-block-noise", "martingale-noise")
SAMPLING = "uniform-sampling"
UNCORRELATED = "noise of different local steps is uncorrelated, having mean zero given the past"
ON_THE_SIMPLEX = Relation(SumOverClients(n.w), sp.S.One, "==")
# what the root of a scaled vector's weight is at most, and on average over the local steps if the vector stays the same
LARGEST = {"w": (of.W, of.W), "a": (of.K, of.Q), "r": (of.a_m, of.D)}


AS_A_MEAN = (ON_THE_SIMPLEX,)


def smooth(first: str, second: str, *given: Relation) -> Smooth:
    """Smoothness in these blocks between joint points."""
    return Smooth(first, second, of.L, given)


def given_start(noise: Vec, past: Vec) -> Uncorrelated:
    """For noise of the round and what is known before it is drawn."""
    return Uncorrelated(noise, past, needs=(*NOISE, SAMPLING))


def of_objective(gradient: str, step: Vec, decrease: sp.Symbol) -> Descent:
    """How F~ falls in the block of the gradient."""
    block = gradient.removeprefix("F")[0]
    return Descent(gradient, step, decrease, of.L, f"F~/{block}", AS_A_MEAN, falls=True)


@dataclass(frozen=True)
class Scaled(Schema):
    r"""$\|\sqrt m\,u\|^2\le m_{\max}\|u\|^2$, with the mean of m over the local steps where u is the same in all.

    The weights are $w_i\le W$; $w_ia_i^{(k)}/\|a_i\|_1\le K$, on average $w_i\|a_i\|_2^2/\|a_i\|_1^2\le Q$; and
    $\rho_{ik}\le\max_i\|a_i\|_1(\|a_{i,-1}\|_1+\beta_L^2\alpha)$, on average
    $\|a_{i,-1}\|_1^2+\beta_L^2\|a_{i,-1}\|_2^2\le D$.
    """

    prefix: str  # "w", "a" or "r"
    vector: Vec  # u
    still: bool = False  # whether u must stay the same over the local steps
    axiom: str = (
        "the weights w_i, w_i a_i^(k)/|a_i|_1 and rho_ik, and their means over the local steps, at their largest"
    )
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
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
    """

    sample: str  # the sum over the sample; its atom names u
    axiom: str = "P of n clients are drawn uniformly without replacement, independently of everything else"
    needs: tuple[str, ...] = (SAMPLING,)

    @property
    def given(self) -> tuple[Relation, ...]:
        """The weights must be a mean."""
        return AS_A_MEAN

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The symbols c, d and r must stand for these probabilities."""
        each = _sampled(setting, self.sample)
        one, two = n.P / n.n, n.P * (n.P - 1) / (n.n * (n.n - 1))
        more = {sp.Max(1, n.n - 1): n.n - 1}  # from two clients on
        factor = (n.n / n.P) ** 2
        stands = {
            symbol: setting.symbols[symbol].xreplace(setting.symbols).xreplace(more) for symbol in (of.r, of.c, of.d)
        }
        if not (
            same(stands[of.c].xreplace(stands), factor * two)
            and same((of.r * of.d).xreplace(stands), factor * (one - two))
        ):
            raise Unfit("c, d and r do not stand for the probabilities of being drawn")
        mean = Vec.atom(setting.atoms[each].mean)
        right = of.c * square(mean) + of.r * of.d * square(scaled("w", Vec.atom(each)))
        return Relation(square(Vec.atom(self.sample)), sp.expand(right), "==")


def _sampled(setting: ProofSetting, sample: str) -> str:
    word, _, each = setting.atoms[sample].of.partition(" of ")
    if word != "sample" or not setting.atoms[each].per_client:
        raise Unfit(f"{sample} is not a sum over the sample")
    return each


def sample_mean(sample: str, known: Vec) -> MeanUpdate:
    """For a sum over the sample and what is known before it is drawn."""
    return MeanUpdate(
        sample, known, "each client is drawn with probability P/n, independently of all else", (SAMPLING,)
    )


@dataclass(frozen=True)
class MixingPrice(Schema):
    r"""$(2-\nu)\,\mathbb E\langle u,\zeta\rangle=0$: either $\nu=2$, or every client takes one step, and then the exact
    gradients u of the round are known before its noise.
    """

    exact: str  # u, a sum of exact gradients of the round
    noise: str  # zeta, the same sum of noise
    axiom: str = (
        "nu = 1 only if every client takes one local step, whose gradient is known before its noise; else nu = 2"
    )
    needs: tuple[str, ...] = (*NOISE, SAMPLING)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The first must be made of gradients, the second of noise."""
        u, z = setting.atoms[self.exact], setting.atoms[self.noise]
        if u.kind != "gradient" or z.kind != "noise":
            raise Unfit(f"{self.exact} is no gradient or {self.noise} no noise")
        return Relation((2 - n.nu) * inner(Vec.atom(self.exact), Vec.atom(self.noise)), sp.S.Zero, "==")


@dataclass(frozen=True)
class NoiseOfSample(Schema):
    r"""$\mathbb E\|\sum_{i\in\mathcal C}\frac{nw_i}P\zeta_i\|^2=\frac nP\sum_iw_i^2\mathbb E\|\zeta_i\|^2$."""

    sample: str  # the sum over the sample
    axiom: str = "noise of different clients is uncorrelated and independent of the sample"
    needs: tuple[str, ...] = (*NOISE, SAMPLING, "independent-clients")

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The clients' noise comes from the atom."""
        each = _sampled(setting, self.sample)
        if setting.atoms[each].kind != "noise":
            raise Unfit(f"{each} is not noise")
        return Relation(square(Vec.atom(self.sample)), of.r * square(scaled("w", Vec.atom(each))), "==")


def noise_of_steps(total: Vec, each: Vec, gradient: Vec) -> SumOfNoise:
    r"""$\sum_iw_i^2\mathbb E\|\zeta_i\|^2$ for $\zeta_i=\frac1{\|a_i\|_1}\sum_ka_i^{(k)}\xi_{ik}$, whose noise grows
    with a gradient.
    """
    weighed = square(scaled("a", gradient))
    return SumOfNoise(square(scaled("w", total)), square(each), square(gradient), of.Z, weighed, UNCORRELATED, NOISE)


@dataclass(frozen=True)
class SelfBounded(Schema):
    r"""$\|\nabla g(v)\|^2\le2L\,(\max g-g(v))$ for a smooth function bounded above: here of y, $F~(x,\cdot)$."""

    gradient: str  # grad_y F~
    gap: sp.Symbol  # what $\max_yF~-F~$ is called at its point
    axiom: str = "a smooth function that is bounded above: |grad|^2 <= 2 Lf times the distance to its maximum"
    needs: tuple[str, ...] = ("smooth",)

    @property
    def given(self) -> tuple[Relation, ...]:
        """The weights must be a mean."""
        return AS_A_MEAN

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The gradient must be that of F~ in y."""
        atom = setting.atoms[self.gradient]
        if atom.of != "F~/y":
            raise Unfit(f"{self.gradient} is not a gradient of F~ in y")
        return Relation(square(Vec.atom(self.gradient)), 2 * of.L * self.gap)
