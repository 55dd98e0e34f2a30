r"""The algorithm of Theorem III: the SCAFFOLD of fedbounds with the global step size that the theorem sets."""

from dataclasses import dataclass, field
from typing import Any

import fedbounds as fb
from fedbounds.empirical.algorithms.scaffold import Scaffold


def participants(process: fb.participation.Process) -> int:
    """S, for clients drawn as in Algorithm 1.

    Raises:
        FedboundsError: another participation.
    """
    if isinstance(process, fb.participation.Full):
        return process.clients
    if isinstance(process, fb.participation.WithoutReplacement):
        return process.participants
    raise fb.FedboundsError(
        f"Theorem III has no {process.kind} participation: its S clients are drawn without replacement; use "
        "without-replacement or full"
    )


@dataclass(frozen=True)
class PrescribedScaffold(Scaffold):
    r"""SCAFFOLD with $\eta_g=\sqrt S$, for S clients that are drawn without replacement.

    Args:
        local_step_size: $\eta_l > 0$, units x^2/f; at most $\frac1{24\beta K\sqrt S}(S/N)^{2/3}$ in the theorem.
        local_steps: $K \ge 1$.

    Raises:
        FedboundsError: a number outside its domain; another participation.

    Example:
        >>> PrescribedScaffold(0.1, 5).bind_process(fb.participation.WithoutReplacement(10, 4)).server_multiplier
        2.0

    Source: Karimireddy et al. 2020, Algorithm 1, option II, and Theorem III.
    """

    kind = "scaffold-theorem-3"
    server_multiplier: float = field(init=False, default=1.0)  # of the process

    def bind_process(self, process: fb.participation.Process) -> Scaffold:
        return Scaffold(self.local_step_size, self.local_steps, participants(process) ** 0.5)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "local_step_size": self.local_step_size, "local_steps": self.local_steps}


ALGORITHMS = (PrescribedScaffold,)
