r"""Axioms for rounds in which every client decides by itself whether it takes part, and is weighted by a number of its
own.

The update of a round is $d=\frac1N\sum_n\mathbb 1_n\omega_n(v_n+a_n)$ with $v_n$ the mean gradient and $a_n$ the mean
noise of client n over its local steps; $z=\frac1N\sum_np_n\omega_nv_n$ is its mean, and $s=\sum_n\varphi_nv_n$ what
the objective $\tilde f=\sum_n\varphi_nF_n$ asks for. A vector that differs between the clients stands for that of any
one of them, so that a bound on its square without other such vectors holds for every client.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from fedbounds.bounds.audit.axioms import Jensen, Schema, Uncorrelated, Unfit, average_over_bracket
from fedbounds.bounds.audit.claim import Relation, Relations
from fedbounds.bounds.audit.nonnegative import ProofFinding, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Vec, gram_symbols, inner, square
from fedbounds.bounds.theory.client_reductions import OverClients, SumOverClients

LOCAL_NOISE = ("unbiased-noise", "martingale-noise")
PARTICIPATION = ("bernoulli-participation", "past-weights")
WEIGHTED = "objective-weights"


def in_every_client(premises: Relations, vector: Vec, setting: ProofSetting) -> sp.Expr:
    """The bound on |vector|^2 that the one premise shows for every client."""
    if len(premises) != 1 or premises[0].op != "<=" or not same(premises[0].left, square(vector)):
        raise Unfit(f"the premise does not bound |{vector}|^2")
    bound = premises[0].right
    own = [s for s, pair in gram_symbols(bound).items() if any(setting.atoms[name].per_client for name in pair)]
    if own:
        raise Unfit(f"{', '.join(sorted(map(str, own)))} differs between the clients")
    return bound


def given_past(noise: Vec, past: Vec) -> Uncorrelated:
    """For the noise of a client that computes, whether or not it takes part."""
    return Uncorrelated(noise, past, needs=LOCAL_NOISE)


def step_mean(vector: Vec) -> Jensen:
    """Jensen over the local steps of one client."""
    return Jensen(vector, over="steps", axiom="", needs=())


@dataclass(frozen=True)
class ClientMean(Schema):
    r"""$\|\sum_n\varphi_nu_n\|^2\le C$ where the premise shows $\|u_n\|^2\le C$ for every client, by Jensen."""

    vector: Vec  # u; the means over the clients come from the atoms
    uniform: bool  # whether varphi_n = 1/N; else they must be nonnegative and sum to 1
    axiom: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """What makes the weights a mean."""
        return () if self.uniform else (WEIGHTED,)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise."""
        bound = in_every_client(premises, self.vector, setting)
        return Relation(square(average_over_bracket(self.vector, setting.atoms)), bound)


@dataclass(frozen=True)
class CauchySchwarz(Schema):
    r"""$\|\sum_nc_nu_n\|^2\le N\sum_nc_n^2\,C$ where the premise shows $\|u_n\|^2\le C$ for every client."""

    of: str  # u, a vector of each client
    total: Vec  # a difference of two weighted sums of u over the clients; c_n are the differences of their weights
    squares: sp.Expr  # N sum_n c_n^2
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise, what is summed from the atoms."""
        for name in self.total.atoms:
            _sum_of(name, self.of, setting)
        if sorted(c for _, c in self.total.coefficients) != [-1, 1]:
            raise Unfit(f"{self.total} is not a difference of two sums over the clients")
        bound = in_every_client(premises, Vec.atom(self.of), setting)
        return Relation(square(self.total), self.squares * bound)


def _sum_of(total: str, each: str, setting: ProofSetting) -> None:
    atom = setting.atoms[total]
    if atom.per_client or atom.of != f"sum of {each}" or not setting.atoms[each].per_client:
        raise Unfit(f"{total} is not a sum of {each} over the clients")


@dataclass(frozen=True)
class MeanUpdate(Schema):
    r"""$\mathbb E_t\langle d,c\rangle=\mathbb E_t\langle z,c\rangle$ for c known at the start of the round, where z is
    the mean of d over participation and noise.
    """

    update: str  # d
    known: Vec  # c
    axiom: str = "each client takes part with probability p_n, independently of its noise, which has mean zero"
    needs: tuple[str, ...] = (*PARTICIPATION, *LOCAL_NOISE)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """Its mean and the times come from the atoms."""
        update = setting.atoms[self.update]
        if not update.mean or update.per_client or setting.atoms[update.mean].per_client:
            raise Unfit(f"{self.update} is not an update with a mean")
        for name in self.known.atoms:
            atom = setting.atoms[name]
            if atom.per_client or atom.kind == "noise" or atom.time >= update.time:
                raise Unfit(f"{name} is not known at the start of the round")
        return Relation(inner(Vec.atom(self.update), self.known), inner(Vec.atom(update.mean), self.known), "==")


@dataclass(frozen=True)
class SecondMoment(Schema):
    r"""$\mathbb E_t\|d\|^2\le\frac1{N^2}\sum_np_n\omega_n^2\,C+\mathbb E_t\|z\|^2$ where the premise shows
    $\mathbb E_t\|v_n+a_n\|^2\le C$ for every client.

    Independent summands: $\mathbb E\|d\|^2=\|\mathbb Ed\|^2+\frac1{N^2}\sum_n\big(p_n\omega_n^2\mathbb E\|v_n+a_n\|^2
    -p_n^2\omega_n^2\|\mathbb Ev_n\|^2\big)$, and $\mathbb Ed=\mathbb Ez$ because $\mathbb Ea_n=0$.
    """

    update: str  # d
    gradient: str  # gradient, noise: v and a
    noise: str
    squares: sp.Expr  # (1/N^2) sum_n p_n omega_n^2
    axiom: str = "the clients' updates are independent given the past: participation and noise are"
    needs: tuple[str, ...] = (*PARTICIPATION, *LOCAL_NOISE, "independent-clients")

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise, the mean from the atoms."""
        update, noise = setting.atoms[self.update], setting.atoms[self.noise]
        _sum_of(update.mean, self.gradient, setting)
        if update.per_client or update.of != f"sum of {self.gradient} + {self.noise}":
            raise Unfit(f"{self.update} does not sum {self.gradient} + {self.noise} over the participants")
        if noise.kind != "noise" or not noise.per_client:
            raise Unfit(f"{self.noise} is not noise of one client")
        bound = in_every_client(premises, Vec.atom(self.gradient) + Vec.atom(self.noise), setting)
        return Relation(square(Vec.atom(self.update)), self.squares * bound + square(Vec.atom(update.mean)))


@dataclass(frozen=True)
class Squared:
    """The squares of the two sides of a premise or condition, both nonnegative."""

    axiom: str = ""
    needs: tuple[str, ...] = ()

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Some relation that is known is the conclusion's root."""
        for known in (*premises, *facts):
            if same(conclusion.left, known.left**2) and same(conclusion.right, known.right**2):
                signs = (known.left.is_nonnegative, known.right.is_nonnegative, known.op == "<=", conclusion.op == "<=")
                if all(signs):
                    return ProofFinding(True, "squares", f"of {known}")
                return ProofFinding(False, "squares", f"{known} is not an inequality of nonnegative sides")
        return ProofFinding(False, "squares", "no premise or condition has these sides as squares")


@dataclass(frozen=True)
class Vanishing:
    """What a bound tends to be at most, as something grows: its limit."""

    variable: sp.Symbol  # what grows; conditions that hold once it is large enough are no conditions here
    axiom: str = ""
    needs: tuple[str, ...] = ()

    @property
    def grows(self) -> sp.Symbol:
        """The limit is in this symbol."""
        return self.variable

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The limit of every term."""
        limit = sp.Add(*(sp.limit(term, self.variable, sp.oo) for term in sp.Add.make_args(premises[0].right)))
        return Relation(premises[0].left, limit)

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """The limit is computed."""
        if len(premises) != 1 or premises[0].op != "<=" or conclusion.op != "<=":
            return ProofFinding(False, "limit", "one premise, the bound")
        wanted = self.relation(setting, premises)
        equal = conclusion.left == wanted.left and same(conclusion.right, wanted.right)
        return ProofFinding(equal, "limit", "an instance of it" if equal else f"the limit is {wanted.right}")


@dataclass(frozen=True)
class Centered(Schema):
    r"""$\|\nabla\tilde f-\nabla f\|^2\le\big(\sum_n|\varphi_n-\mu|\big)^2C$ where the premise shows
    $\|\nabla F_n-\nabla f\|^2\le C$ for every client.

    The deviations sum to zero, so that $\nabla\tilde f-\nabla f=\sum_n(\varphi_n-\mu)(\nabla F_n-\nabla f)$ for any
    number mu; then the triangle inequality.
    """

    each: str  # each, mean: grad F_n and grad f at one point
    mean: str
    weight: sp.Symbol  # varphi
    shift: sp.Expr  # mu
    axiom: str = "f is the mean of the F_n, so that the deviations from its gradient sum to zero"
    needs: tuple[str, ...] = (WEIGHTED,)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise, the weighted gradient from the atoms."""
        each, mean = setting.atoms[self.each], setting.atoms[self.mean]
        weighted = setting.atoms[each.mean]
        if (each.of, mean.of, weighted.of) != ("F_n", "f", "f~") or len({each.at, mean.at, weighted.at}) != 1:
            raise Unfit(f"{self.each}, {self.mean} and {each.mean} are not gradients of F_n, f and f~ at one point")
        if self.shift.xreplace({part: sp.Dummy() for part in self.shift.atoms(OverClients)}).has(self.weight):
            raise Unfit(f"{self.shift} differs between the clients")
        bound = in_every_client(premises, Vec.atom(self.each) - Vec.atom(self.mean), setting)
        spread = SumOverClients(sp.Abs(self.weight - self.shift))
        return Relation(square(Vec.atom(each.mean) - Vec.atom(self.mean)), spread**2 * bound)


@dataclass(frozen=True)
class Triangle(Schema):
    r"""$\|u+w\|^2\le(A+B)^2$ where the premises show $\|u\|^2\le A^2$ and $\|w\|^2\le B^2$."""

    first: Vec  # first, second: u and w
    second: Vec
    bounds: tuple[sp.Expr, sp.Expr]  # A and B, sums and products of what is not negative
    axiom: str = ""
    needs: tuple[str, ...] = ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The premises are these two bounds."""
        if len(premises) != 2:
            raise Unfit("two premises, the bounds of both vectors")
        for vector, bound, premise in zip((self.first, self.second), self.bounds, premises, strict=True):
            if premise.op != "<=" or not same(premise.left, square(vector)) or not same(premise.right, bound**2):
                raise Unfit(f"{premise} does not bound |{vector}|^2 by the square of {bound}")
            if not bound.xreplace(
                {s: sp.Dummy(nonnegative=True) for s in bound.atoms(SumOverClients) if _sizes(s)}
            ).is_nonnegative:
                raise Unfit(f"{bound} may be negative")
        return Relation(square(self.first + self.second), sp.Add(*self.bounds) ** 2)


def _sizes(total: sp.Expr) -> bool:
    return isinstance(total.args[0], sp.Abs)
