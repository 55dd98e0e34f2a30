"""What must hold for any implementation of SCAFFOLD, ours or another; runs are as in `check_invariants`."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from fedbounds.testing import Case, InvariantSides, Report, Run, Subject, search, strategy_of

Execute = Callable[[Case], np.ndarray]


def _all_clients(case: Case, **changes: object) -> Case:
    """Everybody takes part in every round with the same weight, and gradients are exact."""
    weights = np.full_like(case.weights, 1 / case.problem.clients)
    problem = replace(case.problem, noises=None, **changes)
    return replace(case, problem=problem, weights=weights, interval=1)


def _as_fedavg(execute: Execute, case: Case) -> InvariantSides:
    """A run against the rounds of FedAvg from each of its models."""
    got = execute(case)
    steps = [case.multiplier * case.step(t, got[t]) for t in range(case.rounds)]
    return InvariantSides(got, np.stack([case.problem.x0, *(got[:-1] + steps)]), case=case)


def one_step_of_all_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""With one local step and full participation the control variates cancel, and it is gradient descent.

    $$K = 1,\ S = N \implies x^{r+1} = x^r - \eta_l\eta_g\nabla f(x^r)$$
    """
    return _as_fedavg(execute, replace(_all_clients(case), local_steps=1))


def equal_clients(execute: Execute, case: Case) -> InvariantSides:
    r"""If all clients are alike and take part, $c_i = c$: it is FedAvg, whatever K."""
    of = case.problem
    alike = {name: np.repeat(getattr(of, name)[:1], of.clients, 0) for name in ("hessians", "centers", "slopes")}
    return _as_fedavg(execute, _all_clients(case, **alike))


INVARIANTS: Mapping[str, Callable[[Execute, Case], InvariantSides]] = {
    held.__name__.replace("_", " "): held for held in (one_step_of_all_clients, equal_clients)
}


def check_scaffold(run: Run, *, examples: int = 50, seed: int = 0, tolerance: float = 1e-9) -> Report:
    """Look for runs of an implementation of SCAFFOLD that break an invariant, and shrink them."""
    subject = Subject(run, Case.models, run, algorithm="scaffold")
    cases = strategy_of(None, "fedbounds.empirical.invariants.strategies.cases")
    return search(subject, INVARIANTS, cases, examples, seed, tolerance)
