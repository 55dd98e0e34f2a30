"""Forms of reference theorems against the lemmas of their papers: does the form follow, for all constants?

The lemmas themselves are premises, which are read and not proved here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import sympy as sp

from fedbounds.bounds.audit.claim import Relation
from fedbounds.bounds.audit.nonnegative import ProofFinding, prove
from fedbounds.bounds.audit.proof_step_checker import condition_fact
from fedbounds.bounds.theory.client_reductions import SumOverClients
from fedbounds.bounds.theory.printing import plain
from fedbounds.bounds.theory.registry import load
from fedbounds.bounds.theory.result import Form


@dataclass(frozen=True)
class Derivation:
    """Whether a form follows from premises, step by step."""

    claim: str  # KEY:FORM
    premises: tuple[str, ...]
    steps: Mapping[str, ProofFinding]

    @property
    def holds(self) -> bool:
        """Whether every step is proved."""
        return all(step.holds for step in self.steps.values())

    def __str__(self) -> str:
        if self.holds:
            return f"follows from {', '.join(self.premises)}, which are not proved here"
        failed = next(f"{what}: {step.evidence}" for what, step in self.steps.items() if not step.holds)
        return f"does not follow from {', '.join(self.premises)}: {failed}"


def _symbols(*forms: Form) -> dict[str, sp.Symbol]:
    return {str(s): s for form in forms for e in form.expressions for s in e.free_symbols}


def sampled_fedavg(form_name: str) -> Derivation:
    r"""The descent of a round, from lemmas 5 to 7: the decrease is at least c e |grad f|^2 - c e R, e = gamma eta I.

    The sum over the rounds, divided by c e T, is F/(c e T) + R; c is what the term of the initial gap says.
    """
    key = "jhunjhunwala-2022/fedavg"
    form, *lemmas = load(key).form(form_name), *(load(f"jhunjhunwala-2022/lemma-{k}").form() for k in (5, 6, 7))
    s, (descent, drift, sampled) = _symbols(form, *lemmas), (lemma.bound for lemma in lemmas)
    sampled = sampled.xreplace({s["dr"]: drift})
    used = s["gamma"] * s["eta"] * s["I"]
    gap = form.terms[0].expression
    c = sp.cancel(s["F"] / (gap * used * s["T"]))
    decrease = used / 2 * s["gn"] - descent.xreplace({s["er"]: drift, s["hs"]: sampled})
    rest = form.bound - gap
    facts = [condition_fact(condition) for condition in form.conditions]
    steps = {"a round descends": prove(sp.expand(decrease - c * used * (s["gn"] - rest)), facts)}
    for condition in (condition for lemma in lemmas for condition in lemma.conditions):
        fact = condition_fact(condition)
        steps[f"{plain(condition.left)} {condition.op} {plain(condition.right)}"] = prove(fact.right - fact.left, facts)
    return Derivation(f"{key}:{form_name}", ("lemma-5", "lemma-6", "lemma-7"), steps)


def decaying_steps(key: str, form_name: str) -> Derivation:
    r"""Li et al.: D(t+1) <= (1 - mu h) D(t) + h^2 B at the steps h(t) = 2/(mu (shift + t)), D = E|x - x*|^2.

    B = sum_n w_n^2 sigma_n^2 + 6 L Gamma + 8 (I - 1)^2 G^2 + C; C = 0, 4 I^2 G^2/S, or (N - S)/(N - 1) of it.

    The form X bounds L/2 D; by induction over t, D(t) <= 2 X(t)/L. The lemmas need h <= 1/(4 L) and h(t) <= 2 h(t + I).
    """
    form = load(key).form(form_name)
    s = _symbols(form)
    L, mu = s["L"], s["mu"]
    shift, B, t = sp.Symbol("shift", positive=True), sp.Symbol("B", nonnegative=True), sp.Symbol("t", nonnegative=True)
    least = next(one for one in form.bound.atoms(sp.Max) if one.has(s["I"]))
    distance = form.terms[0].expression.xreplace({least: shift})
    factor = 2 * L / (mu**2 * (shift + s["K"]))  # of B: that of the sequence 4 B/mu^2/(shift + t)
    noise = s["sigma"] ** 2 * (SumOverClients(s["w"] ** 2) if "w" in s else 1 / s["N"])
    summands = {
        "gradient noise": noise,
        "heterogeneity": 6 * L * s["Gamma"],
        "client drift": 8 * (s["I"] - 1) ** 2 * s["Gs"] ** 2,
        "participation": 4 * s["I"] ** 2 * s["Gs"] ** 2 / s["S"] if "S" in s else sp.S.Zero,
    }
    if "N" in s:
        summands["participation"] *= (s["N"] - s["S"]) / sp.Max(s["N"] - 1, 1)

    def bound(at: sp.Expr) -> sp.Expr:
        return (2 / L * (distance + factor * B)).xreplace({s["K"]: at})

    step = 2 / (mu * (shift + t))
    after = (1 - mu * step) * bound(t) + step**2 * B
    facts = [Relation(part, shift) for part in least.args] + [Relation(mu, L), Relation(sp.S.One, s["I"])]
    facts += [condition_fact(condition) for condition in form.conditions]
    rest = {term.name: term.expression.xreplace({least: shift}) for term in form.terms[1:]}
    steps = {
        **{f"B: {name}": prove(rest.get(name, sp.S.Zero) - factor * part, facts) for name, part in summands.items()},
        "the first step is at most 1/(4 L)": prove(1 / (4 * L) - 2 / (mu * shift), facts),
        "steps halve in I iterations at most": prove(2 * step.xreplace({t: t + s["I"]}) - step, facts),
        "the induction starts": prove(bound(sp.S.Zero) - s["D2"], facts),
        "the induction goes from t to t + 1": prove(sp.together(bound(t + 1) - after), facts),
    }
    return Derivation(f"{key}:{form_name}", ("lemmas 1 to 3",), steps)


DESCENT = ("explicit", "explicit:supplement")
LI = ("li-2020/fedavg-full", "li-2020/fedavg-with-replacement", "li-2020/fedavg-without-replacement")
DERIVATIONS: Mapping[str, Callable[[], Derivation]] = {
    **{
        f"jhunjhunwala-2022/fedavg:{form}": partial(sampled_fedavg, form)
        for form in ("explicit", "explicit:supplement")
    },
    **{f"{key}:{form}": partial(decaying_steps, key, form) for key in LI for form in ("printed", "printed:poster")},
}  # KEY:FORM -> its check, which takes about a second
