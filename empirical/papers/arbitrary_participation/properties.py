r"""The invariants of generalized FedAvg, one function each.

An invariant takes an `execute` (from a case to its models) and a `Case`, and returns two arrays that must be equal,
row by row, with the case that was run; its decorator says where it applies. $\Delta_t^n$ is the update of client n,
$q_t^n$ its weight, $\eta$ the multiplier, P the interval, and $t_0$ starts an interval.

Example:
    >>> from fedbounds.empirical.invariants import Case, PlainProblem
    >>> from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg
    >>> from fedbounds.empirical.problems import toy_example
    >>> problem = PlainProblem.from_problem(toy_example())
    >>> case = Case(problem, np.eye(3), step_size=0.5, local_steps=2, multiplier=4.0, interval=3)
    >>> sides = translation(lambda case: case.models(generalized_fedavg), case)
    >>> bool(abs(sides.got - sides.expected).max() < sides.within)
    True
    >>> (sides.got == sides.case.models(generalized_fedavg)).all(), sides.case.problem.x0
    (np.True_, array([2., 4.]))

Source: Wang & Ji 2022, *A Unified Analysis of Federated Learning with Arbitrary Client Participation*, Algorithm 1.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from fedbounds.empirical.invariants.cases import ABSENT, AMPLIFIED, ANY_SUM, LONG_INTERVAL, UNEQUAL, Case, Run, digits
from fedbounds.empirical.invariants.causes import differing_rows
from fedbounds.empirical.invariants.scope import ROUND_OFF, InvariantSides, Need, declare_scope
from fedbounds.empirical.papers.arbitrary_participation.numpy_reference import generalized_fedavg

SMALL = 2.0**-24  # the step size that stands for its limit 0
# Who applies the weights that are given; the others make weights of their own of who takes part.
ALGORITHM_1 = frozenset({"generalized-fedavg", "fedavg"})
AS_WEIGHTED = ALGORITHM_1 | {"frozen-gradient", "fedavgm", "fedadam", "fedprox"}
AS_PRESENT = AS_WEIGHTED | {"average-participating"}

Execute = Callable[[Case], np.ndarray]
Invariant = Callable[[Execute, Case], InvariantSides]


# --- the amplification ------------------------------------------------------------------------------------


@declare_scope(algorithms=ALGORITHM_1)
def anchor_form(execute: Execute, case: Case) -> InvariantSides:
    r"""An interval ends at its anchor plus eta times its un-amplified progress, and knows nothing else of the past.

    $$x_{t_0+P} = x_{t_0} + \eta(\hat x_{t_0+P} - x_{t_0}), \qquad x_t = \hat x_t \text{ for } t_0 < t < t_0 + P,$$

    with $\hat x$ the run from $x_{t_0}$ with $\eta = 1$: the form without an accumulator.
    """
    got = execute(case)
    expected = got.copy()
    for t0 in range(0, case.rounds, case.interval):
        later = case.restart(t0, got[t0])
        plain = execute(replace(later, weights=later.weights[: case.interval], multiplier=1.0))
        expected[t0 + 1 : t0 + len(plain)] = plain[1:]
        if len(plain) == case.interval + 1:
            expected[t0 + case.interval] = got[t0] + case.multiplier * (plain[-1] - got[t0])
    return InvariantSides(got, expected)


@declare_scope(algorithms=ALGORITHM_1)
def summed_displacements(execute: Execute, case: Case) -> InvariantSides:
    r"""The model is where it began, plus eta times what complete intervals moved, plus what the last rounds moved.

    $$x_t = x_0 + \eta\sum_{k\text{ complete}} u_k + u_{\text{tail}}, \qquad u_k = \sum_{t\in k}\sum_n q_t^n\Delta_t^n$$
    """
    got = execute(case)
    complete, tail = np.zeros_like(got[0]), np.zeros_like(got[0])
    expected = [case.problem.x0]
    for t in range(case.rounds):
        tail = tail + case.step(t, got[t])
        if case.ends(t):
            complete, tail = complete + tail, np.zeros_like(tail)
        expected.append(case.problem.x0 + case.multiplier * complete + tail)
    return InvariantSides(got, np.stack(expected))


@declare_scope(LONG_INTERVAL, algorithms=ALGORITHM_1)
def plain_multiplier(execute: Execute, case: Case) -> InvariantSides:
    r"""With eta = 1 the interval plays no role.

    $$x_t(\eta=1, P) = x_t(\eta=1, 1)$$
    """
    plain = replace(case, multiplier=1.0)
    shorter = replace(plain, interval=1)
    return InvariantSides(execute(plain), execute(shorter), case=plain, against=shorter)


@declare_scope(algorithms=ALGORITHM_1)
def two_sided_step_sizes(execute: Execute, case: Case) -> InvariantSides:
    r"""With P = 1, eta is a second step size, at the server.

    $$x_{t+1} = x_t + \eta\sum_n q_t^n\Delta_t^n$$
    """
    each = replace(case, interval=1)
    got = execute(each)
    steps = [case.multiplier * case.step(t, got[t]) for t in range(case.rounds)]
    return InvariantSides(got, np.stack([case.problem.x0, *(got[:-1] + steps)]), case=each)


@declare_scope(AMPLIFIED, algorithms=ALGORITHM_1, tolerance=1e-8)
def frozen_gradient_limit(execute: Execute, case: Case) -> InvariantSides:
    r"""As gamma tends to 0 with kappa = gamma eta fixed, all gradients are taken where the interval began.

    $$x_{t_0+P} \to x_{t_0} - \kappa\sum_{t=t_0}^{t_0+P-1}\sum_n q_t^n\sum_{i<I}g_n(x_{t_0})$$

    Computed with $\eta = 2^{24}$, and compared to three digits.
    """
    amplified = replace(case, step_size=SMALL * case.step_size, multiplier=1 / SMALL)
    got = execute(amplified)
    x, progress = case.problem.x0, np.zeros(case.problem.dimension)
    expected, problem = [x], case.problem
    for t in range(case.rounds):
        for n in range(problem.clients):
            gradients = [problem.gradient(n, x) + problem.noise(t, n, i) for i in range(case.local_steps)]
            progress = progress - case.step_size * case.weights[t, n] * np.sum(gradients, axis=0)
        if case.ends(t):
            x, progress = x + progress, np.zeros_like(x)
        expected.append(x)
    return InvariantSides(got, np.stack(expected), within=1e-3, case=amplified)


# --- one round --------------------------------------------------------------------------------------------


@declare_scope(algorithms=ALGORITHM_1)
def averaged_models(execute: Execute, case: Case) -> InvariantSides:
    r"""Before amplification the model is the weighted mean of the participants' models.

    $$x_{t+1} = \sum_n q_t^n y_{t,I}^n, \qquad \sum_n q_t^n = 1,\ t + 1 < t_0 + P$$

    Checked in the rounds that do not end an interval, or in all of them with $\eta = 1$ where P = 1.
    """
    case = case if case.interval > 1 else replace(case, multiplier=1.0)
    return _mean_of_models(execute, case, case.sums_to_one)


@declare_scope(ANY_SUM, algorithms=ALGORITHM_1)
def weights_as_given(execute: Execute, case: Case) -> InvariantSides:
    r"""Weights that do not sum to one are applied as they are; a round without participants changes nothing.

    $$x_{t+1} = \sum_n q_t^n y_{t,I}^n + \Big(1-\sum_n q_t^n\Big)x_t$$

    So the model is the participants' mean only if the weights sum to one. Outside the theory: the cases have such
    weights on request only.
    """
    case = case if case.interval > 1 else replace(case, multiplier=1.0)
    return _mean_of_models(execute, case, ~case.sums_to_one)


def _mean_of_models(execute: Execute, case: Case, rounds: np.ndarray) -> InvariantSides:
    got = execute(case)
    expected = got.copy()
    for t in np.flatnonzero(rounds).tolist():
        if case.multiplier == 1 or not case.ends(t):
            models = np.stack([got[t] + case.update(t, n, got[t]) for n in range(case.problem.clients)])
            expected[t + 1] = case.weights[t] @ models + (1 - case.weights[t].sum()) * got[t]
    return InvariantSides(got, expected, case=case)


# --- special cases of other algorithms ---------------------------------------------------------------------


def _rounds_of_fedavg(execute: Execute, case: Case) -> InvariantSides:
    """A run against rounds of FedAvg with a server multiplier, each from a model of the run."""
    got = execute(case)
    steps = [case.multiplier * case.step(t, got[t]) for t in range(case.rounds)]
    return InvariantSides(got, np.stack([case.problem.x0, *(got[:-1] + steps)]), case=case)


def _all_clients(case: Case, **changes: object) -> Case:
    """All clients take part in every round with equal weights, and gradients are exact."""
    weights = np.full_like(case.weights, 1 / case.problem.clients)
    return replace(case, problem=replace(case.problem, noises=None, **changes), weights=weights, interval=1)


@declare_scope(algorithms=frozenset({"fedprox"}))
def one_local_step(execute: Execute, case: Case) -> InvariantSides:
    r"""With one local step the proximal term is zero, and FedProx is FedAvg.

    $$I = 1 \implies x_{t+1} = x_t - \gamma\sum_n q_t^n g_n(x_t)$$
    """
    return _rounds_of_fedavg(execute, replace(case, local_steps=1, multiplier=1.0))


@declare_scope(algorithms=frozenset({"fednova"}))
def equal_local_steps(execute: Execute, case: Case) -> InvariantSides:
    r"""With equal local steps of all clients FedNova is FedAvg.

    $$\tau_n = I \text{ for all } n \implies x_{t+1} = x_t + \sum_n q_t^n\Delta_t^n$$
    """
    own = {**case.own, "client_steps": np.full(case.problem.clients, case.local_steps)}
    return _rounds_of_fedavg(execute, replace(case, multiplier=1.0, own=own))


@declare_scope(algorithms=frozenset({"scaffold"}))
def one_step_of_all_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""With one local step and full participation the control variates of SCAFFOLD cancel: it is gradient descent.

    $$I = 1,\ S_t = \{1, \dots, N\} \implies x_{t+1} = x_t - \gamma\eta\nabla f(x_t)$$
    """
    return _rounds_of_fedavg(execute, replace(_all_clients(case), local_steps=1))


@declare_scope(algorithms=frozenset({"scaffold"}))
def equal_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""If all clients have the same function and take part, $c_n = c$, and SCAFFOLD is FedAvg.

    $$F_n = f,\ S_t = \{1, \dots, N\} \implies x_{t+1} = x_t + \frac\eta N\sum_n\Delta_t^n$$
    """
    of = case.problem
    alike = {name: np.repeat(getattr(of, name)[:1], of.clients, 0) for name in ("hessians", "centers", "slopes")}
    return _rounds_of_fedavg(execute, _all_clients(case, **alike))


@declare_scope(algorithms=frozenset({"ef21"}))
def one_coordinate(execute: Execute, case: Case) -> InvariantSides:
    r"""In one dimension the largest entry is the vector: with full participation EF21 is gradient descent.

    $$d = 1,\ S_t = \{1, \dots, N\} \implies x_{t+1} = x_t - \gamma\nabla f(x_t)$$
    """
    of = case.problem
    first = {name: getattr(of, name)[..., :1] for name in ("centers", "slopes", "start", "origin")}
    scalar = _all_clients(case, **first, hessians=of.hessians[:, :1, :1], frame=np.eye(1))
    return _rounds_of_fedavg(execute, replace(scalar, local_steps=1, multiplier=1.0))


# --- clients ----------------------------------------------------------------------------------------------


@declare_scope(ABSENT, algorithms=AS_PRESENT)
def absent_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""A client whose weight is always zero changes nothing, whether it is computed or skipped.

    $$q_t^0 = 0 \text{ for all } t \implies x_t(F_0, F_1, \dots, F_N) = x_t(F_1, \dots, F_N)$$

    The absent client has the gradients and the noise of another, but its own center.
    """
    N = case.problem.clients
    more = case.rename_clients(np.append(0, np.arange(N)), np.hstack([np.zeros((case.rounds, 1)), case.weights]))
    elsewhere = replace(more.problem, centers=more.problem.centers + np.eye(N + 1, 1))
    more = replace(more, problem=elsewhere)
    return InvariantSides(execute(more), execute(case), case=more, against=case)


def relabeled_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""Renaming the clients, together with their weights and their noise, changes nothing.

    $$x_t(F_{\pi(n)}, q_t^{\pi(n)}) = x_t(F_n, q_t^n)$$
    """
    order = np.roll(np.arange(case.problem.clients), 1)
    renamed = case.rename_clients(order, case.weights[:, order])
    return InvariantSides(execute(renamed), execute(case), case=renamed, against=case)


@declare_scope(UNEQUAL, algorithms=AS_WEIGHTED)
def split_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""Two copies of a client, with the same noise and weights that add up to the client's, are the client.

    $$x_t(F_1, F_1, F_2, \dots;\ \tfrac14q^1, \tfrac34q^1, q^2, \dots) = x_t(F_1, F_2, \dots;\ q^1, q^2, \dots)$$

    With noise of its own for each copy this holds for $\sigma = 0$ only.
    """
    first, others = case.weights[:, :1], case.weights[:, 1:]
    who = np.append(0, np.arange(case.problem.clients))
    split = case.rename_clients(who, np.hstack([first / 4, 3 * first / 4, others]))
    return InvariantSides(execute(split), execute(case), case=split, against=case)


# --- coordinates and units --------------------------------------------------------------------------------


def translation(execute: Execute, case: Case) -> InvariantSides:
    r"""Moving the origin moves every model along.

    $$x_t(F_n(\cdot - s), x_0 + s) = x_t(F_n, x_0) + s$$
    """
    shift = np.arange(1.0, case.problem.dimension + 1)
    moved = case.translate(shift)
    return InvariantSides(
        execute(moved), execute(case) + shift, case=moved, against=case, via=f"moved by {digits(shift)}"
    )


@declare_scope(exempt=frozenset({"fedadam", "ef21"}))
def rotation(execute: Execute, case: Case) -> InvariantSides:
    r"""An orthogonal change of coordinates commutes with the run; noise is turned too.

    FedAdam scales coordinates, and EF21 selects some of them.

    $$x_t(F_n(U^\top\cdot), Ux_0) = Ux_t(F_n, x_0), \qquad U^\top U = I_d$$
    """
    v = np.arange(1.0, case.problem.dimension + 1)
    mirror = np.eye(len(v)) - 2 * np.outer(v, v) / (v @ v)
    turned = case.rotate(mirror)
    via = f"turned by {digits(mirror)}"
    return InvariantSides(execute(turned), execute(case) @ mirror, case=turned, against=case, via=via)


def scaling(execute: Execute, case: Case) -> InvariantSides:
    r"""Only the step size times the gradients matters: gradients a times as large undo a step size divided by a.

    $$x_t(aF_n, ag_n, \gamma/a) = x_t(F_n, g_n, \gamma)$$
    """
    steeper = case.scale(3.0)
    return InvariantSides(execute(steeper), execute(case), case=steeper, against=case)


# --- randomness -------------------------------------------------------------------------------------------


def determinism(execute: Execute, case: Case) -> InvariantSides:
    """The same case run again, with the same seed, gives the same models."""
    return InvariantSides(execute(replace(case)), execute(case), against=case)


def seed_without_noise(execute: Execute, case: Case) -> InvariantSides:
    """Where there is no noise, or the problem gives it, nothing is random: the seed plays no role."""
    other = replace(case, seed=case.seed + 1)
    return InvariantSides(execute(other), execute(case), case=other, against=case)


_COMPLETE = Need("a complete interval", lambda case: case.interval <= case.rounds)


def agreement_with(twin: Run, algorithms: frozenset[str] | None = None, *needs: Need) -> Invariant:
    """The invariant that a run and another implementation, of these algorithms or of any, give the same models.

    Args:
        twin: the other implementation.
        algorithms: the kinds of algorithm that it is compared for; None for all.
        needs: what some case must have besides, or nothing is compared.
    """

    @declare_scope(_COMPLETE, *needs, algorithms=algorithms)
    def reference_twin(execute: Execute, case: Case) -> InvariantSides:
        """The models are those of the reference: the pseudo-code of the paper, or the twin that is given."""
        return InvariantSides(execute(case), case.models(twin))

    return reference_twin


def agreement_with_some(twins: Callable[[Case], Iterable[Run]], lacking: str) -> Invariant:
    """The invariant that a run gives the models of one of several references; which one is to be said.

    Args:
        twins: the references for a case; if there are none, the invariant holds.
        lacking: what the caller must give for the comparison with the one reference.
    """

    @declare_scope(lacking=lacking)
    def reference_twin(execute: Execute, case: Case) -> InvariantSides:
        """The models are those of the reference, with some value of what is not given."""
        got = execute(case)
        nearest = InvariantSides(got, np.full_like(got, np.inf))
        for twin in twins(case):
            sides = InvariantSides(got, case.models(twin))
            if not differing_rows(sides, ROUND_OFF).any():
                return sides
            nearest = min(nearest, sides, key=lambda each: np.abs(each.got - each.expected).max())
        return nearest if np.isfinite(nearest.expected).all() else InvariantSides(got, got)

    return reference_twin


INVARIANTS: Mapping[str, Invariant] = {
    held.__name__.replace("_", " "): held
    for held in (
        anchor_form,
        summed_displacements,
        plain_multiplier,
        two_sided_step_sizes,
        frozen_gradient_limit,
        averaged_models,
        weights_as_given,
        absent_clients,
        relabeled_clients,
        split_clients,
        translation,
        rotation,
        scaling,
        determinism,
        seed_without_noise,
        agreement_with(generalized_fedavg, ALGORITHM_1),
    )
}
SPECIAL_CASES: Mapping[str, Invariant] = {
    held.__name__.replace("_", " "): held
    for held in (one_local_step, equal_local_steps, one_step_of_all_clients, equal_clients, one_coordinate)
}
