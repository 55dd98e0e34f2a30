r"""Least squares over silos: every sample has features in all of them, and one client in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count, check_flag, check_memory
from fedbounds.bounds.theory.symbols import Constant, NoConstant
from fedbounds.empirical.problems.argument_checks import array, real
from fedbounds.empirical.problems.vertical import (
    EACH_VARIANCE,
    MOST_OUTCOMES,
    NOISES,
    SyntheticVertical,
    check_holders,
    cut_into_runs,
)
from fedbounds.empirical.problems.vertical_networks import sub_batches

_MOST_PARTS = 5000  # of a batch that a client may hold, of which each is looked at


class ExchangedSums(NamedTuple):
    """What the silos know of each other in a round."""

    ids: Tensor  # which samples the batch has, (seeds, B)
    others: tuple[Tensor, ...]  # of every silo what the other silos' embeddings sum to, less the label, (seeds, B)
    slopes: Tensor  # the derivatives of the loss in the embedding as the round begins, (seeds, B)


class VerticalLeastSquares(SyntheticVertical):
    r"""Half the mean square of what the silos' linear embeddings sum to, less the labels.

    $$f(\theta)=\frac1{2M}\sum_{p=1}^M\Big(\sum_{j=1}^NX_j^{(p)\top}\theta_j-y^{(p)}\Big)^2,\qquad
      g_{k,j}=\frac1{|\zeta_{k,j}|}\sum_{p\in\zeta_{k,j}}\big(X^{(p)\top}\theta-y^{(p)}\big)X_j^{(p)}$$

    The batch $\zeta$ is drawn once a round, without replacement; client k of silo j holds $\zeta_{k,j}$ of it. Or a
    vector of labels is drawn once a round, of several that are equally likely; f is then the mean over them. If all
    clients hold the same features, as copies of one data set, Assumptions 1 to 3 hold with equality.

    Args:
        features: X, `(M, d)`.
        labels: y, `(M,)`, or several of them, `(n, M)`.
        blocks: $d_j$, how many features each silo has.
        silo_clients: $K_j$, one number for each silo.
        batch: B, all samples if not given.
        holders: `(silos, M)`, which client of silo j has which sample, counted from 0; cyclic, if not given.
        x0: the starting point `(d,)`.
        device: where the tensors live.

    Raises:
        FedboundsError: a shape that does not fit, a value outside its range, a client without samples.

    Example:
        >>> problem = VerticalLeastSquares([[1, 0], [0, 1], [1, 1], [2, 0]], [1, 2, 3, 4], [1, 1], [2, 2], batch=3)
        >>> problem.silo_variances(problem.x0).round(decimals=6).tolist()
        [7.875, 0.875]

    Source: Das et al. 2022, eqs. (2) to (4), with linear embeddings.
    """

    embeds = True
    embedding_size = 1

    def __init__(
        self,
        features: Any,
        labels: Any,
        blocks: Sequence[int],
        silo_clients: Sequence[int],
        batch: int | None = None,
        x0: Any = None,
        *,
        holders: Any = None,
        device: torch.device | str = "cpu",
    ) -> None:
        X, y = array("features", features, (None, None)), array("labels", labels)
        self.samples, self.dimension = X.shape
        if y.ndim not in (1, 2) or y.shape[-1] != self.samples:
            raise FedboundsError(f"labels have shape {tuple(y.shape)}, must be ({self.samples},) or (any, {len(X)})")
        self._set_silos(blocks, silo_clients, "features", "samples have", x0, device)
        self.batch = self.samples if batch is None else check_count("batch", batch, high=self.samples)
        self.features, self.labels = X.to(self.device), torch.atleast_2d(y).to(self.device)
        self.shared_noise = len(self.labels) > 1  # all clients see the same labels in a round
        if holders is None:
            self.holders = cut_into_runs(self.samples, self.silo_clients)
        else:
            self.holders = check_holders(holders, self.samples, self.silo_clients)
        self._holders = torch.from_numpy(self.holders).to(self.device)

    @cached_property
    def sizes(self) -> tuple[np.ndarray, ...]:
        """How many samples the clients of each silo hold."""
        return tuple(
            np.bincount(own, minlength=count) for own, count in zip(self.holders, self.silo_clients, strict=True)
        )

    def shares(self, silo: int) -> Tensor:
        return torch.from_numpy(self.sizes[silo] / self.samples).to(self.device)

    # --- a round ------------------------------------------------------------------------------------------------------

    def draw_round(self, rng: np.random.Generator) -> np.ndarray | None:
        """The number of a vector of labels, if there are several, and the batch, if it is not all samples."""
        many = len(self.labels) > 1
        label = rng.integers(0, len(self.labels), 1) if many else np.zeros(0, int)
        if self.batch == self.samples:
            return label if many else None
        return np.concatenate([label, np.sort(rng.choice(self.samples, self.batch, replace=False))])

    def outcomes(self) -> np.ndarray | None:
        whole, many = self.batch == self.samples, len(self.labels) > 1
        if (whole and not many) or comb(self.samples, self.batch) * len(self.labels) > MOST_OUTCOMES:
            return None
        batches = [()] if whole else list(combinations(range(self.samples), self.batch))
        labels = [(n,) for n in range(len(self.labels))] if many else [()]
        return np.array([(*label, *one) for label in labels for one in batches])

    def exchange(self, x: Tensor, randomness: Tensor | None) -> ExchangedSums:
        everything = torch.arange(self.samples, device=self.device).expand(len(x), -1)
        labels, ids = self.labels.mean(0).expand(len(x), -1), everything
        if randomness is not None:
            if len(self.labels) > 1:
                labels, randomness = self.labels[randomness[:, 0]], randomness[:, 1:]
            ids = randomness if randomness.shape[1] else everything
        sums = [(self.features[:, block][ids] * x[:, None, block]).sum(-1) for block in self.blocks]
        slopes = torch.stack(sums).sum(0) - labels.gather(1, ids)
        return ExchangedSums(ids, tuple(slopes - own for own in sums), slopes)

    def partial_gradients(self, silo: int, own: Tensor, known: ExchangedSums) -> Tensor:
        seen = self.features[:, self.blocks[silo]][known.ids]
        theirs = own.gather(1, self._holders_of_batch(silo, known))
        return self._mean(silo, ((theirs * seen).sum(-1) + known.others[silo])[..., None] * seen, known)

    def stale_gradients(self, silo: int, own: Tensor, known: ExchangedSums) -> Tensor:
        seen = self.features[:, self.blocks[silo]][known.ids]
        return self._mean(silo, known.slopes[..., None] * seen, known)

    def batch_counts(self, silo: int, known: ExchangedSums) -> Tensor:
        holders = self._holders[silo][known.ids]
        empty = holders.new_zeros(len(holders), self.silo_clients[silo])
        return empty.scatter_add(1, holders, torch.ones_like(holders))

    def _holders_of_batch(self, silo: int, known: ExchangedSums) -> Tensor:
        """Who holds each sample of the batch, for every coordinate of the block, (seeds, B, d_j)."""
        size = self.blocks[silo].stop - self.blocks[silo].start
        return self._holders[silo][known.ids][..., None].expand(-1, -1, size)

    def _mean(self, silo: int, each: Tensor, known: ExchangedSums) -> Tensor:
        """Each client's mean over the samples (seeds, B, d_j) that it holds; of none, zero."""
        empty = each.new_zeros(len(each), self.silo_clients[silo], each.shape[-1])
        total = empty.scatter_add(1, self._holders_of_batch(silo, known), each)
        return total / self.batch_counts(silo, known).clamp(min=1)[..., None]

    def silo_variances(self, x: Tensor) -> Tensor:
        r"""Where every client holds some of the batch, exactly, by the number b of its m samples that it holds.

        $$\sigma_j^2=\frac1{K_j}\sum_k\Big[s_{k,j}^2\big(\mathbb E[\tfrac1b\mid b\ge1]-\tfrac1m\big)
          +\|\mathbb Eg_{k,j}-\nabla_{(j)}f\|^2\Big]$$

        with the variance $s^2$ of its samples' gradients, divided by m - 1; several labels add the mean over them.
        """
        residuals, found = (x @ self.features.T)[..., None, :] - self.labels, []
        exact = self.objective_gradient(x)
        for block, holders, sizes in zip(self.blocks, self.holders, self.sizes, strict=True):
            seen, m = self.features[:, block], torch.from_numpy(sizes).to(x)
            who = torch.from_numpy(np.eye(len(sizes))[holders]).to(x)  # (M, K)
            means = torch.einsum("...np,pk,pe->...nke", residuals, who / m, seen)
            squares = (residuals.square() * seen.square().sum(-1)) @ who - m * means.square().sum(-1)
            left = torch.from_numpy(sub_batches(self.samples, sizes, self.batch)).to(x)
            sampling = squares.clamp(min=0) / (m - 1).clamp(min=1) * left
            apart = (means - exact[..., None, None, block]).square().sum(-1)
            found.append((sampling + apart).mean((-1, -2)))
        return torch.stack(found, -1)

    # --- the objective ------------------------------------------------------------------------------------------------

    def objective(self, x: Tensor) -> Tensor:
        return ((x @ self.features.T)[..., None, :] - self.labels).square().mean((-1, -2)) / 2

    def objective_gradient(self, x: Tensor) -> Tensor:
        return (x @ self.features.T - self.labels.mean(0)) @ self.features / self.samples

    @cached_property
    def _minimizer(self) -> Tensor:
        table, labels = self.features.cpu().numpy(), self.labels.mean(0).cpu().numpy()
        return torch.from_numpy(np.linalg.lstsq(table, labels, rcond=None)[0]).to(self.device)

    def minimizer(self) -> Tensor:
        """Where f is least (in one such place), (d,)."""
        return self._minimizer.clone()

    def objective_gap(self, x: Tensor) -> Tensor:
        r"""$f(x)-\min f$: (..., d) -> (...)."""
        return ((x - self._minimizer) @ self.features.T).square().mean(-1) / 2

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        return {
            "gradient_norm_squared": self.objective_gradient(x).square().sum(-1),
            "objective": self.objective(x),
            "objective_gap": self.objective_gap(x),
        }

    def _parts(self, silo: int) -> Iterator[tuple[Tensor, int]]:
        """Of every client of a silo its samples, and the fewest of them that a batch may have if it has any.

        A mean over more samples is a mean of means over fewer, so that no norm of one exceeds all of those.
        """
        for client, size in enumerate(self.sizes[silo].tolist()):
            own = torch.from_numpy(np.flatnonzero(self.holders[silo] == client)).to(self.device)
            yield own, max(1, self.batch - (self.samples - size))

    def _steepest(self, silo: int, columns: slice) -> tuple[float, bool]:
        """The largest norm of the mean of $X_jX_{columns}^T$ over parts of batches, and whether it is exact."""
        left, right, found, exact = self.features[:, self.blocks[silo]], self.features[:, columns], 0.0, True
        for own, fewest in self._parts(silo):
            if comb(len(own), fewest) <= _MOST_PARTS:
                chosen = own[torch.tensor(list(combinations(range(len(own)), fewest)), device=self.device)]
                means = left[chosen].mT @ right[chosen] / fewest
                found = max(found, float(torch.linalg.matrix_norm(means, 2).max()))
            else:
                norms = torch.linalg.vector_norm(left[own], dim=1) * torch.linalg.vector_norm(right[own], dim=1)
                found, exact = max(found, float(norms.sort(descending=True).values[:fewest].mean())), False
        return found, exact

    @cached_property
    def equal(self) -> bool:
        """Whether the batch is all samples and all clients of a silo have the same second moments of features."""
        if self.batch < self.samples:
            return False
        for silo, block in enumerate(self.blocks):
            each = torch.stack([
                self.features[own][:, block].T @ self.features[own] / len(own) for own, _ in self._parts(silo)
            ])  # fmt: skip
            if float((each - each[:1]).abs().max()) > 1e-12 * float(each.abs().max()):
                return False
        return True

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""Those of Assumptions 1 to 3; exact, but where there are too many parts of batches, of which it says so.

        smoothness $\|X^\top X\|/M$; block smoothness the largest norm of $X_{\zeta,j}^\top X_{\zeta,j}/|\zeta|$ over
        the parts $\zeta$ of batches that clients may hold, and partial smoothness that of
        $X_{\zeta,j}^\top X_\zeta/|\zeta|$, in the whole model; the noise of each block only where it is the same at
        every x: clients have equal second moments, and see all their samples.
        """
        found: dict[str, Constant | NoConstant] = {
            **self._sizes(),
            "smoothness": Constant(
                float(torch.linalg.matrix_norm(self.features, 2)) ** 2 / self.samples, "exact", "norm of X'X/M"
            ),
            "initial_gap": Constant(float(self.objective_gap(self.x0)), "exact", "f(x0) - min f"),
        }
        for name, within in (("block_smoothness", True), ("partial_smoothness", False)):
            parts = [self._steepest(j, block if within else slice(None)) for j, block in enumerate(self.blocks)]
            what = "in its own block" if within else "in the whole model"
            note = f"largest norm of the second moments of a client's part of a batch, {what}"
            sharp = "" if all(exact for _, exact in parts) else ": upper bound"
            found[name] = Constant(max(value for value, _ in parts), "exact", note + sharp)
        if not self.equal:
            return found | dict.fromkeys(NOISES, NoConstant(_GROWS))
        variances = self.silo_variances(self.x0).cpu().numpy()
        shared = "all clients see the same labels in a round" if self.shared_noise else ""
        return found | self._noises(variances, EACH_VARIANCE, f"over silos of {EACH_VARIANCE}", shared)


_GROWS = "clients differ in what they see of the features, so their gradients differ the more the larger the model is"


def random_vertical_least_squares(
    silos: int,
    clients: int,
    samples: int,
    dimension: int,
    *,
    batch: int | None = None,
    copies: bool = False,
    label_vectors: int = 1,
    label_noise: float = 1.0,
    permuted: bool = False,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> VerticalLeastSquares:
    r"""Gaussian features, and labels that are linear in them but for Gaussian noise; $\theta^0=0$.

    Args:
        silos: N.
        clients: of each silo, K.
        samples: that each client holds; the data set has K times as many.
        dimension: of each silo's block.
        batch: B, all samples if not given.
        copies: whether the clients hold copies of the same samples.
        label_vectors: of how many vectors of labels one is drawn in each round.
        label_noise: its standard deviation, in units of a label; without noise labels have a variance of about 1.
        permuted: whether each silo deals the samples out to its clients in an order of its own.
        seed: of the instance; the same seed is the same problem.
        device: where the tensors live.

    Raises:
        FedboundsError: a value outside its range, or more than fits into memory.

    Example:
        >>> problem = random_vertical_least_squares(2, 3, 4, 2, copies=True)
        >>> problem.samples, problem.constants()["block_gradient_noise"].value < 1e-25
        (12, True)
    """
    silos, clients, samples, dimension = (
        check_count(name, value)
        for name, value in (("silos", silos), ("clients", clients), ("samples", samples), ("dimension", dimension))
    )
    many, copies, permuted = (
        check_count("label_vectors", label_vectors), check_flag("copies", copies), check_flag("permuted", permuted),
    )  # fmt: skip
    spread = real("label_noise", label_noise)
    check_least_squares_memory(silos, clients, samples, dimension, many)
    rng = np.random.default_rng(check_count("seed", seed, low=0))
    rows, repeats = (samples, clients) if copies else (samples * clients, 1)
    features = rng.standard_normal((rows, silos * dimension))
    truth = rng.standard_normal(silos * dimension) / np.sqrt(silos * dimension)
    with np.errstate(over="ignore"):  # what is infinite is refused
        labels = features @ truth + spread * rng.standard_normal((many, rows))
    holders = None
    if permuted:
        turn = cut_into_runs(samples * clients, [clients] * silos)
        if copies:  # whole copies change hands
            holders = np.stack([rng.permutation(clients)[row] for row in turn])
        else:
            holders = np.stack([rng.permutation(row) for row in turn])
    return VerticalLeastSquares(
        np.tile(features, (repeats, 1)), np.tile(labels, (1, repeats)), [dimension] * silos, [clients] * silos, batch,
        holders=holders, device=device,
    )  # fmt: skip


def check_least_squares_memory(silos: int, clients: int, samples: int, dimension: int, label_vectors: int) -> None:
    """Refuse a random instance that this machine cannot hold while it is made."""
    numbers = clients * samples * (silos * dimension + label_vectors + silos)
    what = f"least squares with silos = {silos}, clients = {clients}, samples = {samples}, dimension = {dimension}"
    check_memory(what, 8 * 4 * numbers)
