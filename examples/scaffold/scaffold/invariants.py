"""What must hold for any implementation of SCAFFOLD with the step sizes of Theorem III.

Runs are as in `check_invariants`, which has the invariants of SCAFFOLD with any step sizes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from fedbounds.testing import Case, InvariantSides, Report, Run, Subject, search, strategy_of

Execute = Callable[[Case], np.ndarray]


def prescribed_step(execute: Execute, case: Case) -> InvariantSides:
    r"""With one local step, full participation and no noise it is gradient descent with the step $\eta_l\sqrt N$.

    $$K = 1,\ S = N \implies x^{r+1} = x^r - \eta_l\sqrt N\,\nabla f(x^r)$$
    """
    N = case.problem.clients
    plain = replace(case.problem, noises=None)
    whole = replace(case, problem=plain, weights=np.full_like(case.weights, 1 / N), local_steps=1, interval=1)
    got = execute(whole)
    steps = [N**0.5 * whole.step(r, got[r]) for r in range(case.rounds)]
    return InvariantSides(got, np.stack([plain.x0, *(got[:-1] + steps)]), case=whole)


INVARIANTS: Mapping[str, Callable[[Execute, Case], InvariantSides]] = {"prescribed step": prescribed_step}


def check_prescribed(run: Run, *, examples: int = 50, seed: int = 0, tolerance: float = 1e-9) -> Report:
    """Look for runs of an implementation that break an invariant, and shrink them."""
    subject = Subject(run, Case.models, run, algorithm="scaffold-theorem-3")
    cases = strategy_of(None, "fedbounds.empirical.invariants.strategies.cases")
    return search(subject, INVARIANTS, cases, examples, seed, tolerance)
