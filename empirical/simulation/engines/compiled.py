"""The local steps of a round as one compiled function: no Python between them.

On a CPU `torch.compile` compiles a step and its loop; on a CUDA device the steps are recorded once, as a CUDA graph,
and replayed. Both use the functions of the batched engine and agree with it up to rounding.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedbounds.empirical.algorithms import LocalSGD
from fedbounds.empirical.problems import Problem
from fedbounds.empirical.simulation.engines.batched import Batched
from fedbounds.empirical.simulation.engines.local_steps import Blocks

Steps = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_LOG = logging.getLogger("fedbounds")

REPAID = 7_000_000  # local steps of dense networks that save more than compiling takes; see benchmarks/compiled.py
SAVED = 4e-6  # seconds that a compiled local step saves
COMPILING = 30.0  # seconds
WRITTEN_OUT = 16  # local steps that are compiled one after another: an eighth faster than a loop, for a second each
IN_A_ROW = 3  # rounds of one shape before it is compiled
MOST_SHAPES = 2  # that are compiled for


def may_repay(rounds: int, participants: int, steps: int) -> bool:
    """Whether a compilation may save time, if so many participants take so many steps in the rounds of all seeds."""
    return rounds * participants * steps >= REPAID


def python_steps(problem: Problem, local: LocalSGD) -> Steps:
    """The updates of pairs, as `update(start, clients, drawn, sizes)` of tensors: a loop over what was drawn."""

    def update(start: Tensor, clients: Tensor, drawn: Tensor, sizes: Tensor) -> Tensor:
        if not local.frozen:
            return problem.fuse_steps(start, clients, drawn, sizes) - start
        y = start
        for own in drawn:
            y = torch.addcmul(y, problem.stochastic_gradient(start, clients, own), sizes, value=-1)
        return y - start

    return update


def looped_steps(problem: Problem, local: LocalSGD) -> Steps:
    """As `python_steps`, with a loop operator that is compiled once for any number of steps."""
    from torch._higher_order_ops.while_loop import while_loop  # a prototype of torch's, and may go

    def update(start: Tensor, clients: Tensor, drawn: Tensor, sizes: Tensor) -> Tensor:
        def goes_on(k: Tensor, y: Tensor) -> Tensor:
            return k < local.steps

        def step(k: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            own = drawn.index_select(0, k.unsqueeze(0))
            if not local.frozen:
                return k + 1, problem.fuse_steps(y, clients, own, sizes)
            found = problem.stochastic_gradient(start, clients, own[0])
            return k + 1, torch.addcmul(y, found, sizes, value=-1)

        first = torch.zeros((), dtype=torch.int64, device=start.device)
        return while_loop(goes_on, step, (first, start))[1] - start

    return update


def compiled_steps(steps: Steps, backend: str, *given: Tensor) -> Steps:
    """A function compiled for tensors like these, and for no others; earlier compilations are forgotten."""
    from torch._inductor import config  # a second of its own

    torch.compiler.reset()
    unasked: dict[str, str | int | bool | Callable[..., Any]] = {
        "guard_filter_fn": torch.compiler.skip_all_guards_unsafe
    }
    made = torch.compile(steps, fullgraph=True, dynamic=False, backend=backend, options=unasked)
    with config.patch(cpp_wrapper=True):  # what is around the products in C++ too: a fifth faster
        # once for all: to look the code up and to ask whether it still fits takes a third of a round of a small network
        found = made.aot_compile((given, {}))
    found.disable_guard_check()
    return found


class RecordedGraph:
    """A function recorded as a CUDA graph for tensors of one shape; it must not synchronize or move data."""

    def __init__(self, steps: Callable[..., Tensor], *given: Tensor) -> None:
        self.given, self.graph = [one.clone() for one in given], torch.cuda.CUDAGraph()
        with torch.cuda.device(given[0].device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):  # libraries make their plans and workspaces outside of the graph
                    steps(*self.given)
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(self.graph):
                self.found = steps(*self.given)

    def __call__(self, *given: Tensor) -> Tensor:
        for place, one in zip(self.given, given, strict=True):
            place.copy_(one)
        self.graph.replay()
        return self.found.clone()


class CompiledEngine(Batched):
    """The batched engine with local steps that are compiled where this is possible and saves time.

    A batch shape is compiled when it has occurred in some successive rounds; other shapes run uncompiled. If it cannot
    be compiled, the reason is logged. Without `rounds`, the length of the phase, it compiles in any case.
    """

    label = "batched"  # until something is compiled
    backend: ClassVar[str] = "inductor"

    def __init__(
        self, problem: Problem, local: LocalSGD, needs_updates: bool = False, rounds: int | None = None
    ) -> None:
        super().__init__(problem, local, needs_updates)
        self.possible = local.plain and local.oracle == "stochastic" and not problem.statistics
        self.rounds, self.joins = rounds, problem.device.type != "cpu"  # here numbers may depend on the whole batch
        self.made: dict[tuple[int, ...], Callable[..., Tensor]] = {}
        self.before: tuple[int, ...] = ()
        self.times = 0

    def updates(
        self,
        x: Tensor,
        clients: Tensor,
        drawn: Blocks,
        correction: Tensor | None,
        words: Tensor | None,
        step_sizes: Tensor | None,
    ) -> Tensor:
        if correction is None and words is None and self._is_wanted(x):
            blocks = list(drawn)
            sizes = x.new_full((*x.shape[:-1], 1), self.local.step_size) if step_sizes is None else step_sizes
            found = self._compiled_updates(
                x.contiguous(), clients, [own for _, own in blocks if own is not None], sizes
            )
            if found is not None:
                self.label = "compiled"
                return found
            drawn = iter(blocks)
        return super().updates(x, clients, drawn, correction, words, step_sizes)

    def _is_wanted(self, x: Tensor) -> bool:
        """Whether the shape of a batch is compiled, or should be now."""
        shape = tuple(x.shape)
        if not self.possible or shape in self.made:
            return self.possible
        self.times, self.before = self.times + 1 if shape == self.before else 1, shape
        if len(self.made) == MOST_SHAPES:
            return False
        steps = x.shape[0] * x.shape[1] * self.local.steps
        return self.rounds is None or (self.times >= IN_A_ROW and self.rounds * steps >= REPAID)

    def _compiled_updates(self, x: Tensor, clients: Tensor, drawn: Sequence[Tensor], sizes: Tensor) -> Tensor | None:
        """The updates; None if they cannot be compiled, of which the reason is logged once."""
        try:
            every = drawn[0] if len(drawn) == 1 else torch.cat(list(drawn))
            given, shape = (x, clients.long(), every.contiguous(), sizes), tuple(x.shape)
            if shape not in self.made:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of the compiler
                    self.made[shape] = self._compiled(*given)
            return self.made[shape](*given)
        except Exception as error:  # of a compiler, a backend or a driver
            self.possible = False
            reason = str(error).strip().partition("\n")[0] if drawn else "only stochastic gradients are"
            _LOG.warning("local steps are not compiled: %s: %s", type(error).__name__, reason)
            return None

    def _compiled(self, *given: Tensor) -> Callable[..., Tensor]:
        if given[0].device.type == "cuda":
            return RecordedGraph(python_steps(self.problem, self.local), *given)
        steps = python_steps if self.local.steps <= WRITTEN_OUT else looped_steps
        return compiled_steps(steps(self.problem, self.local), self.backend, *given)
