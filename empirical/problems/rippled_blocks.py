r"""Not convex, split over silos, with exact constants; gradients may be much steeper than $\nabla f$."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real
from fedbounds.empirical.problems.block_quadratics import deviations, random_block_quadratic
from fedbounds.empirical.problems.problem import LowerBound
from fedbounds.empirical.problems.vertical import SHARED, SyntheticVertical, every_outcome

WaveLaw = Literal["signs", "phases"]


class _RippledExchange(NamedTuple):
    """Of every silo what others add to its gradient, (seeds, 1, d_j), and the waves, (seeds, K_j or 1, 1)."""

    others: tuple[Tensor, ...]
    waves: tuple[Tensor | None, ...]


class RippledBlocks(SyntheticVertical):
    r"""A quadratic with ripples, and noise that is a wave in the model: its slope is not bounded by that of f.

    $$f(\theta)=\tfrac12\theta^\top A\theta+\sum_ia_i\cos(w_i\theta_i),\qquad
      g_{k,j}(\theta)_i=\nabla_if(\theta)+\begin{cases}s_{k,j}\,b_i\sin(\omega\theta_i)&\text{signs}\\
      b_i\sin(\omega\theta_i+\varphi_{k,j})&\text{phases}\end{cases}$$

    with a sign s or a phase $\varphi$, uniform, that is drawn once a round. Assumptions 1 to 3 hold; $L_{max}$ grows
    with $\omega$, L does not.

    Args:
        hessian: A, symmetric, `(d, d)`, in units of f/x^2.
        blocks: $d_j$, how many parameters each silo has; their sum is d.
        silo_clients: $K_j$, one number for each silo.
        ripple: a, one number >= 0 or `(d,)`, in units of f.
        ripple_frequency: w, one number >= 0 or `(d,)`, in units of 1/x.
        noise: b, one number >= 0 or `(d,)`, in units of a gradient.
        noise_frequency: $\omega\ge0$, in units of 1/x.
        noise_law: "signs" or "phases".
        shared_noise: whether all clients draw the same, or each its own.
        x0: the starting point `(d,)`.
        device: where the tensors live.

    Raises:
        FedboundsError: a shape that does not fit, a value outside its range, A not symmetric.

    Example:
        >>> problem = RippledBlocks([[1, 0], [0, 1]], [1, 1], [1, 1], 0.5, 1.0, noise=0.1, noise_frequency=100)
        >>> {name: round(problem.constants()[name].value, 9) for name in ("smoothness", "block_smoothness")}
        {'smoothness': 1.5, 'block_smoothness': 11.5}

    Source: Das et al. 2022, Assumptions 1 to 3; the family is ours.
    """

    def __init__(
        self,
        hessian: Any,
        blocks: Sequence[int],
        silo_clients: Sequence[int],
        ripple: Any = 0.0,
        ripple_frequency: Any = 1.0,
        noise: Any = 0.0,
        noise_frequency: float = 1.0,
        *,
        noise_law: WaveLaw = "signs",
        shared_noise: bool = False,
        x0: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        a = array("hessian", hessian, (None, None))
        if a.shape[0] != a.shape[1] or not bool(torch.allclose(a, a.T)):
            raise FedboundsError(f"hessian of shape {tuple(a.shape)} must be a symmetric matrix")
        d = self.dimension = len(a)
        self._set_silos(blocks, silo_clients, "parameters", "the Hessian has", x0, device)
        self.hessian = a.to(self.device)
        self.ripple, self.ripple_frequency, self.noise = (
            torch.from_numpy(deviations(name, value, d)).to(self.device)
            for name, value in (("ripple", ripple), ("ripple_frequency", ripple_frequency), ("noise", noise))
        )
        self.noise_frequency = real("noise_frequency", noise_frequency)
        self.noise_law = check_choice("noise_law", noise_law, get_args(WaveLaw))
        self.shared_noise = check_flag("shared_noise", shared_noise)
        self.lower_bound = self._lower_bound()

    def _lower_bound(self) -> LowerBound | None:
        least, largest = torch.linalg.eigvalsh(self.hessian)[[0, -1]].tolist()
        if least < -1e-12 * self.dimension * max(abs(least), abs(largest)):
            return None
        return LowerBound(
            "objective", -float(self.ripple.sum()), "no ripple is below -a, and the quadratic is not negative"
        )

    # --- a round ------------------------------------------------------------------------------------------------------

    @property
    def _waves(self) -> int:
        """How many signs or phases a round draws."""
        return (1 if self.shared_noise else self.clients) * int(bool(self.noise.any()))

    def draw_round(self, rng: np.random.Generator) -> np.ndarray | None:
        """A sign or a phase for all clients, (1,), or for each client, (clients,)."""
        if not self._waves:
            return None
        signs = self.noise_law == "signs"
        return rng.integers(0, 2, self._waves) * 2.0 - 1 if signs else rng.uniform(0, 2 * np.pi, self._waves)

    def outcomes(self) -> np.ndarray | None:
        return every_outcome([-1.0, 1.0], self._waves) if self._waves and self.noise_law == "signs" else None

    def exchange(self, x: Tensor, randomness: Tensor | None) -> _RippledExchange:
        others, waves, first = [], [], 0
        for block, count in zip(self.blocks, self.silo_clients, strict=True):
            rows = self.hessian[block].clone()
            rows[:, block] = 0
            others.append((x @ rows.T)[:, None])
            own = slice(None) if self.shared_noise else slice(first, first + count)
            waves.append(None if randomness is None else randomness[:, own, None])
            first += count
        return _RippledExchange(tuple(others), tuple(waves))

    def partial_gradients(self, silo: int, own: Tensor, known: _RippledExchange) -> Tensor:
        block, wave = self.blocks[silo], known.waves[silo]
        frequency = self.ripple_frequency[block]
        found = own @ self.hessian[block, block] - self.ripple[block] * frequency * (frequency * own).sin()
        found = found + known.others[silo]
        if wave is None:
            return found
        at = self.noise_frequency * own
        return found + self.noise[block] * (wave * at.sin() if self.noise_law == "signs" else (at + wave).sin())

    def silo_variances(self, x: Tensor) -> Tensor:
        squares = (self.noise_frequency * x).sin().square() if self.noise_law == "signs" else torch.full_like(x, 0.5)
        each = self.noise.square() * squares
        return torch.stack([each[..., block].sum(-1) for block in self.blocks], -1)

    # --- the objective ------------------------------------------------------------------------------------------------

    def objective(self, x: Tensor) -> Tensor:
        return ((x @ self.hessian) * x / 2 + self.ripple * (self.ripple_frequency * x).cos()).sum(-1)

    def objective_gradient(self, x: Tensor) -> Tensor:
        return x @ self.hessian - self.ripple * self.ripple_frequency * (self.ripple_frequency * x).sin()

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        return {"gradient_norm_squared": self.objective_gradient(x).square().sum(-1), "objective": self.objective(x)}

    def _steepest(self, hessian: Tensor, waves: Tensor) -> float:
        """The largest norm of a matrix plus a diagonal within -waves to waves: at one of the two ends of the order."""
        up, down = (torch.linalg.eigvalsh(hessian + sign * torch.diag(waves)) for sign in (1, -1))
        return max(float(up[-1]), -float(down[0]))

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""Those of Assumptions 1 to 3.

        smoothness: the largest norm of $A-\mathrm{diag}(a_iw_i^2\cos(w_i\theta_i))$, exact; block smoothness the same
        of $A_{jj}$ with $a_iw_i^2+b_i\omega$, where waves can all be at their steepest, as with phases, and if not an
        upper bound; noise of each block $\sum b_i^2$ with signs, attained, and half of it with phases, everywhere.
        """
        curves = self.ripple * self.ripple_frequency**2
        steep = curves + self.noise * self.noise_frequency
        own = [self._steepest(self.hessian[block, block], steep[block]) for block in self.blocks]
        half = 1.0 if self.noise_law == "signs" else 0.5
        squares = half * self.noise.square().cpu().numpy() * (self.noise_frequency > 0 or self.noise_law == "phases")
        variances = np.array([squares[block].sum() for block in self.blocks])
        where = "largest, where all sines are one" if self.noise_law == "signs" else "the same everywhere"
        shared = SHARED if self.shared_noise and self._waves else ""
        found: dict[str, Constant | NoConstant] = {
            **self._sizes(),
            "smoothness": Constant(
                self._steepest(self.hessian, curves), "exact", "where ripples are at their steepest"
            ),
            "block_smoothness": Constant(
                max(own), "exact", "where ripples and noise are at their steepest at once, if they can: upper bound"
            ),
            "initial_gap": NoConstant("the quadratic is unbounded below"),
            **self._noises(variances, f"the variance, {where}", f"of the variances, {where}", shared),
        }
        if self.lower_bound is not None:
            gap = float(self.objective(self.x0)) - self.lower_bound.value
            found["initial_gap"] = Constant(gap, "exact", "f(x0) plus the sum of all ripples: upper bound")
        return found


def random_rippled_blocks(
    silos: int,
    clients: int,
    dimension: int,
    condition: float = 10.0,
    *,
    ripple: float = 0.2,
    ripple_frequency: float = 2.0,
    noise: float = 0.0,
    noise_frequency: float = 1.0,
    noise_law: WaveLaw = "signs",
    shared_noise: bool = False,
    spread: float = 1.0,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> RippledBlocks:
    r"""An instance whose A has norm 1 and eigenvalues evenly spaced in logarithm, in random directions.

    Args:
        silos: N.
        clients: of each silo, K.
        dimension: of each silo's block.
        condition: ratio of the largest to the smallest eigenvalue of A, >= 1.
        ripple, ripple_frequency, noise, noise_frequency, noise_law, shared_noise: as for `RippledBlocks`.
        spread: standard deviation of each coordinate of $\theta^0$, in units of x.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_rippled_blocks(2, 3, 2, ripple=0.0)
        >>> round(problem.constants()["smoothness"].value, 9)
        1.0
    """
    silos, clients, dimension = (
        check_count(name, value) for name, value in (("silos", silos), ("clients", clients), ("dimension", dimension))
    )
    base = random_block_quadratic(silos, 1, dimension, condition=condition, seed=seed)
    x0 = np.random.default_rng([seed, 2]).standard_normal(silos * dimension) * real("spread", spread)
    return RippledBlocks(
        base.hessian, [dimension] * silos, [clients] * silos, ripple, ripple_frequency, noise, noise_frequency,
        noise_law=noise_law, shared_noise=shared_noise, x0=x0, device=device,
    )  # fmt: skip
