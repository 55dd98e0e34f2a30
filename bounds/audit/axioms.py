"""Axioms: the assumptions as schemas, each of which makes its relation from the declared meaning of the atoms.

An axiom names the assumptions it needs; a step that uses it without them among its premises is not proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import sympy as sp

from fedbounds.bounds.audit.claim import Relation, Relations, Relator
from fedbounds.bounds.audit.nonnegative import ProofFinding, same
from fedbounds.bounds.audit.proof_step_checker import ProofSetting
from fedbounds.bounds.audit.vectors import Atom, Vec, inner, square

MEANS = ("f", "F~")  # the objectives, means of the clients' functions


class Unfit(ValueError):
    """The schema does not fit these vectors; says why."""


def average_over_bracket(vector: Vec, atoms: Mapping[str, Atom]) -> Vec:
    """The mean over the bracket's clients (rounds, local steps): every atom by its mean."""
    total = Vec(())
    for name, coefficient in vector.coefficients:
        atom = atoms[name]
        if atom.per_client and not atom.mean:
            raise Unfit(f"the mean of {name} is not declared")
        if atom.mean == "0":
            continue
        if atom.mean and atoms[atom.mean].per_client:
            raise Unfit(f"{atom.mean}, the mean of {name}, differs between the clients")
        total = total + Vec(((atom.mean or name, coefficient),))
    return total


def average_over_steps(vector: Vec, atoms: Mapping[str, Atom]) -> Vec:
    """The mean over the local steps of one client: what stays the same is its own."""
    total = Vec(())
    for name, coefficient in vector.coefficients:
        atom = atoms[name]
        if not (atom.still or (atom.mean and atoms[atom.mean].per_client)):
            raise Unfit(f"the mean of {name} over the local steps is not declared")
        total = total + Vec(((name if atom.still else atom.mean, coefficient),))
    return total


@dataclass(frozen=True)
class Schema:
    """Shared check of the axioms: the conclusion must be the relation that the schema yields.

    What a function must be known to be (its weights sum to 1, it is so smooth) is `given`: among premises or
    conditions.
    """

    equalities: ClassVar[bool] = True
    gives: ClassVar[str] = "what its vectors stand for"

    @property
    def given(self) -> tuple[Relation, ...]:
        """What premises or conditions must say."""
        return ()

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """What the axiom says of these vectors."""
        raise Unfit("no schema")

    def check(self, conclusion: Relation, premises: Relations, facts: Relations, setting: ProofSetting) -> ProofFinding:
        """Equal sides and operator."""
        unsaid = [str(said) for said in self.given if said not in (*premises, *facts)]
        if unsaid:
            return ProofFinding(False, "axiom", f"no premise says that {', '.join(unsaid)}")
        try:
            wanted = self.relation(setting, premises)
        except Unfit as reason:
            return ProofFinding(False, "axiom", str(reason))
        except KeyError as name:
            return ProofFinding(False, "axiom", f"{name} is not one of the atoms: {', '.join(setting.atoms)}")
        equal = (
            conclusion.op == wanted.op and same(conclusion.left, wanted.left) and same(conclusion.right, wanted.right)
        )
        return ProofFinding(equal, "axiom", "an instance of it" if equal else f"the axiom says {wanted}")


@dataclass(frozen=True)
class Smooth(Schema):
    r"""$\sum_b\|\nabla_bf(u)-\nabla_bf(v)\|^2\le L^2\|u-v\|^2$ for the points where the gradients are taken.

    Args:
        first, second: the gradients of one function at u and at v; of joint points one for each of some blocks,
            between blanks, the blocks of a function being named as in "f_i/x".
        L: the smoothness.
        given: of a mean, that its weights sum to 1.
    """

    first: str
    second: str
    L: sp.Expr
    given: tuple[Relation, ...] = ()
    axiom: str = "smoothness: |grad f(u) - grad f(v)| <= L |u - v|, of every client's function and of their means"
    needs: tuple[str, ...] = ("smooth",)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """Functions and points come from the atoms."""
        pairs = tuple(zip(self.first.split(), self.second.split(), strict=True))
        firsts, seconds = ([setting.atoms[pair[k]] for pair in pairs] for k in (0, 1))
        if any(a.of != b.of or {a.kind, b.kind} != {"gradient"} for a, b in zip(firsts, seconds, strict=True)):
            raise Unfit(f"{self.first} and {self.second} are not gradients of one function")
        functions, blocks = {a.of.partition("/")[0] for a in firsts}, {a.of.partition("/")[2] for a in firsts}
        if not functions < {"F_n", "f_i", *MEANS} or len(functions) != 1 or len(blocks) != len(pairs):
            raise Unfit(f"{self.first} and {self.second} are not gradients of one function in different blocks")
        if functions == {"F~"} and not self.given:
            raise Unfit("nothing says that the weights of F~ sum to 1")
        if len({a.at for a in firsts}) != 1 or len({b.at for b in seconds}) != 1:
            raise Unfit("the blocks are not taken at the same two points")
        u, v = firsts[0].at.split(), seconds[0].at.split()
        if len(u) != len(v):
            raise Unfit("one of the two points lacks a block")
        moved = sum(square(Vec.atom(a) - Vec.atom(b)) for a, b in zip(u, v, strict=True) if a != b)
        left = sp.Add(*(square(Vec.atom(a) - Vec.atom(b)) for a, b in pairs))
        return Relation(left, self.L**2 * moved)


@dataclass(frozen=True)
class Uncorrelated(Schema):
    r"""$\mathbb E\langle\xi,u\rangle=0$ for noise that has mean zero given the past, and u of the past.

    Args:
        noise: a combination of noise atoms of one time.
        past: a combination of points and gradients of the same time or before.
    """

    noise: Vec
    past: Vec
    axiom: str = "noise has mean zero given the past and the participation, so its products with the past vanish"
    needs: tuple[str, ...] = ("unbiased-noise", "martingale-noise", "exogenous-participation")

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """Times come from the atoms."""
        noises = [setting.atoms[name] for name in self.noise.atoms]
        if any(a.kind != "noise" for a in noises) or len({a.time for a in noises}) != 1:
            raise Unfit(f"{self.noise} is not noise of one time")
        late = [
            n for n in self.past.atoms if setting.atoms[n].kind == "noise" or setting.atoms[n].time > noises[0].time
        ]
        if late:
            raise Unfit(f"{', '.join(late)} may depend on the noise")
        return Relation(inner(self.noise, self.past), sp.S.Zero, "==")


@dataclass(frozen=True)
class MeanOf(Schema):
    r"""$\langle v,c\rangle=\langle\bar v,c\rangle$ for c that is the same for all clients, because the weights sum to
    1.

    Args:
        vector: v.
        common: c.
    """

    vector: Vec
    common: Vec
    axiom: str = "the weights are nonnegative and sum to 1, so that the bracket's mean is a mean"
    needs: tuple[str, ...] = ("weights",)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """Which atoms are common to all clients comes from the atoms."""
        own = [name for name in self.common.atoms if setting.atoms[name].per_client]
        if own:
            raise Unfit(f"{', '.join(own)} differs between the clients")
        mean = average_over_bracket(self.vector, setting.atoms)
        return Relation(inner(self.vector, self.common), inner(mean, self.common), "==")


@dataclass(frozen=True)
class Jensen(Schema):
    r"""$\|\bar v\|^2\le\langle v,v\rangle$: the squared mean is at most the mean square, as $\langle v-\bar v,v-\bar
    v\rangle\ge0$.

    Args:
        vector: v.
        over: the bracket's clients, or the local steps of one.
        given: that the weights sum to 1, where no assumption says so.
    """

    vector: Vec
    over: Literal["clients", "steps"] = "clients"
    given: tuple[Relation, ...] = ()
    axiom: str = "the weights are nonnegative and sum to 1, so that the bracket's mean is a mean"
    needs: tuple[str, ...] = ("weights",)

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The mean comes from the atoms."""
        mean = average_over_bracket if self.over == "clients" else average_over_steps
        return Relation(square(mean(self.vector, setting.atoms)), square(self.vector))


@dataclass(frozen=True)
class Independent(Schema):
    r"""$\mathbb E\|\sum_nq_n\xi_n\|^2=\sum_nq_n^2\mathbb E\|\xi_n\|^2$.

    Args:
        noise: the noise of one client.
        total: the symbol of the right-hand side.
    """

    noise: str
    total: sp.Symbol
    axiom: str = "independence: noise of different clients is uncorrelated"
    needs: tuple[str, ...] = ("unbiased-noise", "independent-clients", "exogenous-participation")
    gives: ClassVar[str] = "what the sum stands for"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The mean comes from the atom."""
        atom = setting.atoms[self.noise]
        if atom.kind != "noise" or not atom.mean:
            raise Unfit(f"{self.noise} is not noise with a mean over the clients")
        return Relation(square(Vec.atom(atom.mean)), self.total, "==")


@dataclass(frozen=True)
class NoiseOverTime(Schema):
    r"""$\mathbb E\|\frac1K\sum_k\zeta_k\|^2\le\frac cK$ where the premise bounds each $\mathbb E\|\zeta_k\|^2$ by c.

    Args:
        mean: the noise averaged over the window.
        each: the noise of one step, as it stands in the premise.
        steps: K.
    """

    mean: str
    each: str
    steps: sp.Expr
    axiom: str = "noise of different steps is uncorrelated, having mean zero given the past"
    needs: tuple[str, ...] = ("unbiased-noise", "martingale-noise", "exogenous-participation")
    gives: ClassVar[str] = "the number of steps"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise."""
        each = setting.atoms[self.each]
        if each.kind != "noise" or each.mean != self.mean:
            raise Unfit(f"{self.mean} is not the mean of the noise {self.each}")
        if len(premises) != 1 or not same(premises[0].left, square(Vec.atom(self.each))):
            raise Unfit(f"the premise does not bound |{self.each}|^2")
        return Relation(square(Vec.atom(self.mean)), premises[0].right / self.steps)


@dataclass(frozen=True)
class SumOfNoise(Schema):
    r"""$\mathbb E\|\sum_jc_j\xi_j\|^2\le s\sum_jc_j^2+b\sum_jc_j^2\mathbb E\|u_j\|^2$ where the premise shows
    $\mathbb E\|\xi_j\|^2\le s+b\,\mathbb E\|u_j\|^2$.
    """

    total: sp.Expr  # total, each, of: the squares of the sum, of one summand and of u
    each: sp.Expr
    of: sp.Expr
    squares: sp.Expr  # squares, weighed: $\sum_jc_j^2$, and with the squares of u
    weighed: sp.Expr
    axiom: str
    needs: tuple[str, ...]

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The bound comes from the premise."""
        if len(premises) != 1 or not same(premises[0].left, self.each):
            raise Unfit(f"the premise does not bound {self.each}")
        growth = sp.diff(premises[0].right, self.of)
        level = sp.expand(premises[0].right - growth * self.of)
        if growth.has(self.of) or level.has(self.of):
            raise Unfit(f"{premises[0]} is not linear in {self.of}")
        return Relation(self.total, sp.expand(self.squares * level + growth * self.weighed))


@dataclass(frozen=True)
class Assumed(Schema):
    """A hypothesis that bounds one quantity, at the point where the proof uses it.

    Args:
        left, right: what it says here.
        needs: the assumption.
    """

    left: sp.Expr
    right: sp.Expr
    needs: tuple[str, ...]
    op: Relator = "<="
    axiom: str = ""
    gives: ClassVar[str] = "what the assumption says here"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The hypothesis, which must have a name."""
        if not self.needs:
            raise Unfit("no assumption is named that says so")
        return Relation(self.left, self.right, self.op)


@dataclass(frozen=True)
class ByMeaning(Schema):
    r"""What the vectors of one proof say of each other by their meaning: the algorithm's step, a point's definition."""

    name: str  # what it is called, e.g. "ServerStep"
    left: sp.Expr  # left, right, op: what it says
    right: sp.Expr
    axiom: str = ""  # what is trusted; empty where the meanings alone give it
    needs: tuple[str, ...] = ()  # the assumptions that it uses
    op: Relator = "<="
    given: tuple[Relation, ...] = ()  # what premises or conditions must say

    def __str__(self) -> str:
        """Name, axiom, needs and what is given; the relation is the step's own conclusion."""
        given = f", given={'; '.join(map(str, self.given))}" if self.given else ""
        return f"{self.name}(axiom={self.axiom!r}, needs={self.needs!r}{given})"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """What it says."""
        return Relation(self.left, self.right, self.op)


@dataclass(frozen=True)
class Descent(Schema):
    r"""$\mathbb E f(x^+)-\mathbb E f(x)\le\mathbb E\langle\nabla f(x),x^+-x\rangle+\frac L2\mathbb E\|x^+-x\|^2$.

    Args:
        gradient: grad f at x.
        step: x^+ - x.
        decrease: the symbol of E f(x) - E f(x^+).
        L: the smoothness of f.
        of: what the gradient is said to be of; "F~/y" of a weighted mean as it depends on y.
        given: that its weights sum to 1, or that it is so smooth, where no assumption says so.
        falls: whether it is said of -f: E f(x) - E f(x^+) <= -<grad f(x), x^+ - x> + L/2 |x^+ - x|^2.
    """

    gradient: str
    step: Vec
    decrease: sp.Symbol
    L: sp.Expr
    of: str = "f"
    given: tuple[Relation, ...] = ()
    falls: bool = False
    axiom: str = "descent lemma: the objective is L-smooth, being a mean of L-smooth functions"
    needs: tuple[str, ...] = ("smooth",)
    gives: ClassVar[str] = "how far the algorithm moves"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """The gradient must be that of the objective."""
        atom = setting.atoms[self.gradient]
        if atom.kind != "gradient" or atom.of != self.of or atom.per_client:
            raise Unfit(f"{self.gradient} is not a gradient of {self.of}")
        if self.decrease.is_nonnegative is not None:
            raise Unfit(f"the symbol {self.decrease} has a sign, but {self.of} may move either way")
        first, second = inner(Vec.atom(self.gradient), self.step), self.L / 2 * square(self.step)
        if self.falls:
            return Relation(self.decrease, sp.expand(second - first))
        return Relation(-self.decrease, sp.expand(first + second))


@dataclass(frozen=True)
class Starts(Schema):
    """A squared distance is zero at the start, because the two points coincide there."""

    quantity: sp.Expr  # the squared distance
    because: str  # in words
    op: Relator = "=="
    axiom: str = "the algorithm: where its models start"
    needs: tuple[str, ...] = ()
    gives: ClassVar[str] = "where the algorithm starts"

    def relation(self, setting: ProofSetting, premises: Relations) -> Relation:
        """It is 0."""
        return Relation(self.quantity, sp.S.Zero, self.op)
