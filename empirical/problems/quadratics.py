r"""Quadratic clients $F_n(x) = \frac12 (x - c_n)^\top A_n (x - c_n)$: every constant of the theory is known."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_memory
from fedbounds.bounds.participation.constants import check_client_weights
from fedbounds.bounds.theory.symbols import Constant, Domain, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real, start_point
from fedbounds.empirical.problems.problem import Synthetic

_COPIES = 4  # of the Hessians and centers while a random instance is made
_PARALLEL = 1e-12  # relative size below which a residual of linear algebra in float64 counts as zero


class Quadratic(Synthetic):
    r"""Quadratics with one Hessian for all clients or one each, dense or diagonal, and Gaussian gradient noise.

    $$F_n(x) = \tfrac12 (x - c_n)^\top A_n (x - c_n), \qquad g_n(x) = A_n (x - c_n) + s\,\xi,\quad \xi\sim N(0, I_d).$$

    Which of the four forms it is, is recognized from the numbers (equal matrices are one matrix, matrices without
    off-diagonal entries are vectors) and exploited: diagonal Hessians cost O(d) a gradient, a shared one is a single
    matrix product for all seeds and clients, different dense ones are multiplied in place, never gathered into copies.

    Args:
        hessians: $A_n$, in units of f/x^2: `(d, d)` shared, `(d,)` shared and diagonal, `(clients, d, d)`, or
            `(clients, d)` diagonal. With as many clients as dimensions a square matrix is a shared Hessian.
        centers: $c_n$ as `(clients, d)`, in units of x.
        noise: $s \ge 0$, per coordinate, in units of f/x; $\sigma^2 = d s^2$.
        x0: the starting point `(d,)`; zero if not given.
        client_weights: $p_n > 0$ of $f=\sum_np_nF_n$, which are divided by their sum, such as numbers of samples;
            $\frac1N$ each if not given.
        device: where the tensors live.

    Attributes:
        hessians: in the most compact of the four shapes; `shared` and `diagonal` say which.
        centers: `(clients, d)`.

    Raises:
        FedboundsError: a shape that does not fit, a number that is not finite, a Hessian that is not symmetric.

    Example:
        >>> problem = Quadratic(hessians=[1.0, 0.25], centers=[[2, 0], [-2, 4], [0, -4], [0, 0]], x0=[3, -2])
        >>> problem.shared, problem.diagonal
        (True, True)
        >>> problem.constants()["initial_gap"].value
        5.0

    Source: Wang & Ji 2022, Assumptions 1-3' (the constants are derived in `constants`).
    """

    affine = True
    faster_together = True

    def __init__(
        self,
        hessians: Any,
        centers: Any,
        noise: float = 0.0,
        x0: Any = None,
        *,
        client_weights: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        c = array("centers", centers, (None, None))
        self.clients, self.dimension = int(c.shape[0]), int(c.shape[1])
        self.dtype, self.device = torch.float64, torch.device(device)
        self.noise = real("noise", noise)
        compact, self.shared, self.diagonal = _recognize(array("hessians", hessians), self.clients, self.dimension)
        self.hessians, self.centers = compact.to(self.device), c.to(self.device)
        self.x0 = start_point(x0, self.dimension, self.device)
        self.client_weights = check_client_weights(client_weights, self.clients)

    def hessian(self, client: int) -> Tensor:
        """The Hessian of one client as a dense matrix `(d, d)`."""
        compact = self.hessians if self.shared else self.hessians[client]
        return torch.diag(compact) if self.diagonal else compact

    def local_loss(self, x: Tensor, client: int) -> Tensor:
        away = x - self.centers[client]
        return away @ self.hessian(client) @ away / 2

    @cached_property
    def eigen(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues and eigenvectors of dense Hessians."""
        eigenvalues, frames = torch.linalg.eigh(self.hessians)
        return eigenvalues, frames

    @cached_property
    def mean_hessian(self) -> Tensor:
        r"""$\bar A = \sum_n p_n A_n$, the Hessian of $f$: `(d,)` if diagonal, else `(d, d)`."""
        return self.hessians if self.shared else self.client_mean(self.hessians)

    @cached_property
    def _linear(self) -> Tensor:
        r"""$\sum_n p_n A_n c_n$, so that $\nabla f(x) = \bar A x$ minus this."""
        return self.client_mean(self._at_centers)

    @cached_property
    def _at_centers(self) -> Tensor:
        """$A_n c_n$ as `(clients, d)`."""
        everyone = torch.arange(self.clients, device=self.device).unsqueeze(0)
        return self._apply(self.centers.unsqueeze(0), everyone)[0]

    def _apply(self, x: Tensor, clients: Tensor) -> Tensor:
        """$A_n x$ for every pair of run and client: (seeds, cohort, d) -> the same shape, a new tensor."""
        if self.diagonal:
            return x * (self.hessians if self.shared else self.hessians[clients])
        if self.shared:
            return x @ self.hessians
        return self._apply_different(x, clients)

    def _apply_different(self, x: Tensor, clients: Tensor) -> Tensor:
        """On a processor one product per client that takes part: copying dense Hessians costs more than using them."""
        if x.device.type != "cpu":
            return torch.einsum("scij,scj->sci", self.hessians[clients], x)
        rows, names = x.reshape(-1, self.dimension), clients.reshape(-1)
        out = torch.empty_like(rows)
        if clients.shape[0] == 1:
            for row, client in enumerate(names.tolist()):
                torch.mv(self.hessians[client], rows[row], out=out[row])
            return out.view(x.shape)
        order = torch.argsort(names)
        present, sizes = torch.unique_consecutive(names[order], return_counts=True)
        parts, products = rows[order].split(sizes.tolist()), torch.empty_like(rows)
        for client, part, product in zip(present.tolist(), parts, products.split(sizes.tolist()), strict=True):
            torch.mm(part, self.hessians[client], out=product)
        out[order] = products
        return out.view(x.shape)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        return self._apply(x - self.centers[clients], clients)

    def objective_gradient(self, x: Tensor) -> Tensor:
        return _times(x, self.mean_hessian) - self._linear

    def objective(self, x: Tensor) -> Tensor:
        constant = self.client_mean((self._at_centers * self.centers).sum(-1)) / 2
        return ((_times(x, self.mean_hessian) / 2 - self._linear) * x).sum(-1) + constant

    def minimizer(self) -> Tensor:
        r"""$x^* = \bar A^{-1} \sum_n p_n A_n c_n$ as `(d,)`: the minimizer of f (one of them, if there are many).

        Raises:
            FedboundsError: f is unbounded below.
        """
        if self._minimizer is None:
            raise FedboundsError(f"the objective has no minimizer: {_UNBOUNDED}")
        return self._minimizer.clone()

    @cached_property
    def _minimizer(self) -> Tensor | None:
        if self.shared and float(self._spectrum[0]) >= 0:
            return self.client_mean(self.centers)
        dense = torch.diag(self.mean_hessian) if self.diagonal else self.mean_hessian
        return solve_stationarity(dense, self._linear)

    def objective_gap(self, x: Tensor) -> Tensor:
        away = x - self.minimizer()
        return (_times(away, self.mean_hessian) * away).sum(-1) / 2

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        if self._minimizer is None:
            return {"gradient_norm_squared": self.objective_gradient(x).square().sum(-1)}
        return super().metrics(x)

    def offsets(self) -> np.ndarray:
        if not self.shared:
            raise FedboundsError(f"there are no fixed offsets: {_DIFFERENT}")
        return _times(self.client_mean(self.centers) - self.centers, self.hessians).cpu().numpy()

    @cached_property
    def _spectrum(self) -> Tensor:
        """The eigenvalues of all Hessians, ascending."""
        values = self.hessians if self.diagonal else torch.linalg.eigvalsh(self.hessians)
        return values.reshape(-1).sort().values

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""The constants of Assumptions 1-3, all exact; those that do not exist say why.

        smoothness $L = \max_n \|A_n\|_2$; strong convexity $\mu = \min_n \lambda_{\min}(A_n)$ if positive; initial gap
        $F = \frac12 (x_0-x^*)^\top \bar A (x_0-x^*)$; gradient noise $\sigma = \sqrt d\,s$; divergence
        $d = \max_n \|A (c_n - \bar c)\|$ if all Hessians are equal, otherwise $\nabla F_n - \nabla f$ is unbounded.
        """
        lowest = float(self._spectrum[0])
        found: dict[str, Constant | NoConstant] = {
            "clients": Constant(float(self.clients), "exact"),
            "smoothness": Constant(float(self._spectrum.abs().max()), "exact", "largest eigenvalue of all Hessians"),
            "strong_convexity": NoConstant(f"the smallest eigenvalue of the Hessians is {lowest:g}"),
            "initial_gap": NoConstant(_UNBOUNDED),
            "gradient_noise": self._noise_constant(),
            "gradient_divergence_sup": NoConstant(_DIFFERENT),
            "gradient_bound": NoConstant("the gradient of a quadratic grows without bound"),
        }
        if not bool(self.mean_hessian.any()):
            found["gradient_bound"] = Constant(float(torch.linalg.vector_norm(self._linear)), "exact", "f is linear")
        if lowest >= 0 and self._minimizer is not None:
            least = Constant(float(self.objective(self.minimizer())), "exact", "f*, as min F_n = 0")
            found["function_heterogeneity"] = least
        if lowest > 0:
            found["strong_convexity"] = Constant(lowest, "exact", "smallest eigenvalue of all Hessians")
        if self._minimizer is not None:
            found["initial_gap"] = Constant(float(self.objective_gap(self.x0)), "exact", "f(x0) - f*")
        if self.shared:
            spread = float(np.linalg.norm(self.offsets(), axis=1).max())
            found["gradient_divergence_sup"] = Constant(spread, "exact", "max_n ||A (c_n - mean c)||, at every x")
        return found


_UNBOUNDED = "the mean of the quadratics is unbounded below"
_DIFFERENT = "the Hessians differ between clients, so grad F_n - grad f is unbounded in x"


def toy_example(noise: float = 0.0, *, device: torch.device | str = "cpu") -> Quadratic:
    r"""Three clients in the plane, $F_n(x) = \frac12\|x - z_n\|^2$, starting from $(1, 2)$.

    The corners $z = (-1, 0), (1, 0), (0, \sqrt3)$ form an equilateral triangle; the minimizer is its center.

    Example:
        >>> toy_example().minimizer()
        tensor([0.0000, 0.5774], dtype=torch.float64)

    Source: Wang & Ji 2022, Appendix B.1.
    """
    corners = [[-1.0, 0.0], [1.0, 0.0], [0.0, 3.0**0.5]]
    return Quadratic([1.0, 1.0], corners, noise, [1.0, 2.0], device=device)


def random_quadratic(
    clients: int,
    dimension: int,
    heterogeneity: float = 1.0,
    condition: float = 10.0,
    *,
    shared: bool = True,
    diagonal: bool = False,
    noise: float = 0.0,
    initial_gap: float = 1.0,
    client_weights: Any = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Quadratic:
    r"""An instance with prescribed constants: $L = 1$, the divergence at the minimizer and the initial gap.

    Every Hessian has eigenvalues spaced evenly in logarithm from `1/condition` to 1, in random directions (a random
    order, if diagonal); centers are Gaussian and scaled.

    Args:
        clients: N >= 1.
        dimension: d >= 1.
        heterogeneity: $\max_n \|\nabla F_n(x^*)\|$, in units of f/x; with a shared Hessian it is the divergence d.
            One client has none, whatever the argument.
        condition: ratio of the largest to the smallest eigenvalue, >= 1 (in one dimension the Hessian is 1).
        shared: one Hessian for all clients, or one each.
        diagonal: Hessians are diagonal.
        noise: s, standard deviation of the gradient noise per coordinate.
        initial_gap: $f(x_0) - f^*$.
        client_weights: $p_n$, as for `Quadratic`.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_quadratic(clients=5, dimension=3, heterogeneity=2.0, condition=100.0)
        >>> round(problem.constants()["gradient_divergence_sup"].value, 9)
        2.0
    """
    clients, dimension = check_count("clients", clients), check_count("dimension", dimension)
    heterogeneity, gap = real("heterogeneity", heterogeneity), real("initial_gap", initial_gap)
    condition = real("condition", condition, Domain(low=1))
    shared, diagonal = check_flag("shared", shared), check_flag("diagonal", diagonal)
    rng = np.random.default_rng(check_count("seed", seed, low=0))

    many = 1 if shared else clients
    check_quadratic_memory(clients, dimension, shared, diagonal)
    eigenvalues = np.geomspace(1.0, 1.0 / condition, dimension)
    if diagonal:
        hessians = np.stack([rng.permutation(eigenvalues) for _ in range(many)])
        if many == dimension:  # in full, as a square matrix would be taken for one shared Hessian
            hessians = hessians[:, :, None] * np.eye(dimension)
    else:
        frames = np.linalg.qr(rng.standard_normal((many, dimension, dimension)))[0]
        hessians = (frames * eigenvalues) @ frames.transpose(0, 2, 1)
        hessians = (hessians + hessians.transpose(0, 2, 1)) / 2
    hessians = hessians[0] if shared else hessians
    centers = rng.standard_normal((clients, dimension))
    direction = rng.standard_normal(dimension)

    unscaled = Quadratic(hessians, centers, client_weights=client_weights)
    at_minimizer = unscaled.minimizer().expand(1, clients, dimension)
    gradients = unscaled.gradient(at_minimizer, torch.arange(clients)[None])
    divergence = float(torch.linalg.vector_norm(gradients, dim=-1).max())
    scale = heterogeneity / divergence if clients > 1 else 0.0
    minimizer = scale * unscaled.minimizer()
    curvature = float(unscaled.objective_gap(unscaled.minimizer() + torch.from_numpy(direction)))
    with np.errstate(over="ignore"):  # what is infinite is refused
        centers, x0 = scale * centers, minimizer.numpy() + direction * (gap / curvature) ** 0.5
    return Quadratic(hessians, centers, noise, x0, client_weights=client_weights, device=device)


def check_quadratic_memory(clients: int, dimension: int, shared: bool, diagonal: bool) -> None:
    """Refuse a random quadratic that this machine cannot hold while it is made."""
    many = 1 if shared else clients
    in_full = not diagonal or many == dimension
    numbers = clients * dimension + many * dimension * (dimension if in_full else 1)
    check_memory(f"a quadratic with clients = {clients}, dimension = {dimension}", 8 * _COPIES * numbers)


def solve_stationarity(hessian: Tensor, slope: Tensor) -> Tensor | None:
    r"""A minimizer of $\frac12x^\top Ax-b^\top x$, (d,); None if this is unbounded below."""
    values = torch.linalg.eigvalsh(hessian)
    if float(values[0]) < -_PARALLEL * float(values.abs().max()) * len(hessian):
        return None
    solution = torch.linalg.pinv(hessian, hermitian=True) @ slope
    residual = float(torch.linalg.vector_norm(hessian @ solution - slope))
    return solution if residual <= 1e-9 * float(torch.linalg.vector_norm(slope)) else None


def _times(x: Tensor, hessian: Tensor) -> Tensor:
    """$A x$ for a symmetric A, `(d,)` diagonal or `(d, d)`; x is `(..., d)`."""
    return x * hessian if hessian.ndim == 1 else x @ hessian


def _recognize(hessians: Tensor, clients: int, dimension: int) -> tuple[Tensor, bool, bool]:
    """The most compact form of the Hessians, whether they are shared, and whether they are diagonal."""
    shape, square = tuple(hessians.shape), (dimension, dimension)
    if shape not in {(dimension,), square, (clients, dimension), (clients, *square)}:
        raise FedboundsError(
            f"hessians has shape {shape}; with centers ({clients}, {dimension}) it must be ({dimension},), "
            f"{square}, ({clients}, {dimension}) or ({clients}, {dimension}, {dimension})"
        )
    dense = shape[-2:] == square
    shared = hessians.ndim == 1 or shape == square
    if dense:
        if (hessians - hessians.mT).abs().amax() > 1e-12 * hessians.abs().amax():
            either = shape == square == (clients, dimension)
            hint = "; give different diagonal Hessians as (clients, d, d)" if either else ""
            raise FedboundsError(f"hessians must be symmetric{hint}")
        hessians = (hessians + hessians.mT) / 2
        diagonals = hessians.diagonal(dim1=-2, dim2=-1)
        if not hessians.sub(torch.diag_embed(diagonals)).any():
            dense, hessians = False, diagonals
    if not shared and bool((hessians == hessians[:1]).all()):
        shared, hessians = True, hessians[0]
    return hessians.contiguous(), shared, not dense
