r"""Data split over silos by features and over each silo's clients by samples, with a network in every silo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import combinations
from math import comb
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_choice, check_count, check_flag, quote
from fedbounds.bounds.theory.symbols import NONNEGATIVE, Constant, NoConstant
from fedbounds.empirical.data.datasets import Dataset, checksum
from fedbounds.empirical.data.partition import Partition
from fedbounds.empirical.problems.argument_checks import real
from fedbounds.empirical.problems.embedding_losses import loss_by_name
from fedbounds.empirical.problems.networks import Network
from fedbounds.empirical.problems.problem import LowerBound, decay_term
from fedbounds.empirical.problems.vertical import MOST_OUTCOMES, Vertical, blocks_from_sizes, check_counts

Split = Literal["columns", "channels"]
_CHUNK = 4096  # samples that are evaluated at once
_PIXELS = 2**18  # of images that are convolved at once: what comes of more leaves a processor's cache (measured)
_EACH = 2**21  # numbers in the gradients of single samples that are computed at once
_SMALL_IMAGE = 16 * 16  # pixels up to which one grouped convolution beats one per client on a processor (measured)


class SiloPart(NamedTuple):
    """What the clients of one silo know in a round; W is the number of samples that one of them holds at most."""

    counts: Tensor  # how many samples of the batch every client holds, (seeds, K_j)
    seen: Tensor  # their features, (seeds, K_j, W, channels, height, width), in the places of none any sample's
    labels: Tensor  # (seeds, K_j, W)
    weights: Tensor  # one over the number held, (seeds, K_j, W); 0 in the places of none
    others: Tensor  # what the other silos' embeddings of them sum to, (seeds, K_j, W, size)
    # the derivatives of the loss in the sum of all embeddings as the round begins, (seeds, K_j, W, size)
    slopes: Tensor


class SiloData(NamedTuple):
    """The data of one silo, of all its clients together."""

    # $h_j$, of its block (d_j,) and features (m, ...): (m, size); autograd differentiates it
    embed: Callable[[Tensor, Tensor], Tensor]
    features: Tensor  # of all samples, (M, ...)
    labels: Tensor  # (M,)
    shards: tuple[np.ndarray, ...]  # which samples each client holds, by ID


class PartialNoise(NamedTuple):
    r"""Of every client's partial gradient where a round begins, (clients,), float64."""

    sampling: Tensor  # $\mathbb E\|g_{k,j}-\mathbb E g_{k,j}\|^2$, of which samples of the batch the client holds
    divergence: Tensor  # $\|\mathbb Eg_{k,j}-\nabla_{(j)}f\|^2$, of which samples it holds at all


class VerticalNetworks(Vertical):
    r"""One network per silo on the silo's features of every sample; the loss is that of the sum of their outputs.

    $$f(\theta)=\frac1M\sum_{p=1}^M\ell\Big(\sum_{j=1}^Nh_j(\theta_j;X_j^{(p)});\,y^{(p)}\Big)$$

    Silo j holds a slice of every sample; its partition gives each of its clients a shard of the samples. Once a round a
    batch of sample IDs is drawn without replacement, the same for all silos. The partial gradient of a client is the
    mean over the samples of the batch that it holds,

    $$g_{k,j}=\frac1{|\zeta_{k,j}|}\sum_{p\in\zeta_{k,j}}\nabla_{\theta_j}
      \ell\big(\Phi_{-j}^{(p)}+h_j(\theta_{k,j};X_j^{(p)});y^{(p)}\big),$$

    with the others' embeddings $\Phi_{-j}$ as of the start of the round. Its expectation is the partial gradient of its
    shard's mean loss; the mean of these over clients is that of f if shards have equal sizes. Images of bytes are
    standardized by channel. With weight decay $\rho$ the objective has the term $\frac\rho2\|\theta\|^2$, and every
    $g_{k,j}$ the term $\rho\theta_{k,j}$.

    Metrics: `train_loss`, f; `train_accuracy`, `test_loss` (without decay), `test_accuracy`; for two classes
    `test_f1`, of class 1; for more than `top_k` classes `test_top_k_accuracy`, such as `test_top_5_accuracy`; on demand
    `gradient_norm_squared`.

    Args:
        dataset: images and labels; a row of a table is an image (1, 1, columns), a sequence one (1, steps, features).
        partitions: for each silo, which of its clients holds which sample.
        network: of all silos, or a name for each; see `Network`.
        batch: B, samples of a round; all of them if not given.
        split: the axis along which a sample is split over silos: `"columns"`, as the halves of an image, columns of a
            table and features of a sequence, or `"channels"`, as the views of an object.
        widths: columns or channels of each silo; if not given as equal as possible, the larger ones first.
        loss: `"cross-entropy"`, one output for each class; `"logistic"`, one output, two classes; `"least-squares"`,
            half the square of one output less the label.
        top_k: how many of the largest outputs count for the top-k accuracy.
        gradient_norm: whether metrics have the gradient's squared norm.
        weight_decay: $\rho\ge0$, in units of a loss; the paper has none.
        dtype: float32, or float64 for checks.
        device: where the tensors live.

    Raises:
        FedboundsError: partitions of other data, a value outside its range, features that cannot be split so, an
            unknown network or one with dropout or running statistics.

    Example:
        >>> from fedbounds.empirical.data.datasets import load_dataset
        >>> from fedbounds.empirical.data.partition import even_partition
        >>> wine = load_dataset("wine")
        >>> rows = [even_partition(wine.train_labels, 3, np.random.default_rng(silo)) for silo in range(2)]
        >>> problem = VerticalNetworks(wine, rows, batch=24)
        >>> problem.silos, problem.clients, problem.blocks  # 7 columns and a bias for each of 3 classes, then 6
        (2, 6, (slice(0, 24, None), slice(24, 45, None)))

    Source: Das et al. 2022, eqs. (2) to (4). The figures of the paper concatenate what its eq. (3) sums.
    """

    embeds = True

    def __init__(
        self,
        dataset: Dataset,
        partitions: Sequence[Partition],
        network: str | Sequence[str] = "linear",
        batch: int | None = None,
        *,
        split: Split = "columns",
        widths: Sequence[int] | None = None,
        loss: str = "cross-entropy",
        top_k: int = 5,
        gradient_norm: bool = False,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.samples, silos = len(dataset.train_labels), len(partitions)
        for silo, partition in enumerate(partitions):
            if len(partition.assignment) != self.samples:
                raise FedboundsError(
                    f"the partition of silo {silo} deals {len(partition.assignment)} samples, data set {dataset.name} "
                    f"has {self.samples}"
                )
        names = [network] * silos if isinstance(network, str) else network
        if not isinstance(names, Sequence) or len(names) != silos or not all(isinstance(name, str) for name in names):
            raise FedboundsError(f"network = {quote(network)} must be a name, or {silos} of them, one for each silo")
        self.batch = self.samples if batch is None else check_count("batch", batch, high=self.samples)
        self.top_k, self.gradient_norm = check_count("top_k", top_k), check_flag("gradient_norm", gradient_norm)
        self.weight_decay = real("weight_decay", weight_decay, NONNEGATIVE)
        self.loss = loss_by_name(loss, dataset.classes)
        self.embedding_size = self.loss.size
        self.dataset, self.partitions, self.data_checksum = dataset, tuple(partitions), checksum(dataset)
        self.dtype, self.device = dtype, torch.device(device)

        axis = -1 if check_choice("split", split, get_args(Split)) == "columns" else -3
        train, test = (torch.from_numpy(part).to(self.device, dtype) for part in dataset.standardised())
        slices = _slices(split, train.shape[axis], silos, widths)
        self._train = [part.contiguous() for part in train.split(slices, axis)]
        self._test = [part.contiguous() for part in test.split(slices, axis)]
        self._labels = torch.from_numpy(dataset.train_labels).to(self.device)
        self._test_labels = torch.from_numpy(dataset.test_labels).to(self.device)
        self._owners = [torch.from_numpy(partition.assignment).to(self.device) for partition in partitions]
        images = [(int(part.shape[1]), int(part.shape[2]), int(part.shape[3])) for part in self._train]
        self.networks = tuple(Network(one, image, self.loss.size) for one, image in zip(names, images, strict=True))
        for one in self.networks:
            if one.statistics or one.dropout:
                raise FedboundsError(f"network {one.name!r} has dropout or running statistics, which silos do not keep")
        self.blocks = blocks_from_sizes([one.size for one in self.networks])
        self.silo_clients = tuple(partition.clients for partition in partitions)
        self.clients, self.dimension = sum(self.silo_clients), self.blocks[-1].stop
        small = all(one.image[1] * one.image[2] <= _SMALL_IMAGE or not one.convolutional for one in self.networks)
        self.prefers_batched = small or self.device.type != "cpu"
        self.lower_bound = self._lower_bound()

    def initial_point(self, rng: np.random.Generator) -> Tensor:
        parts = [torch.from_numpy(network.initial(rng)) for network in self.networks]
        return torch.cat(parts).to(self.device, self.dtype)

    # --- a round ------------------------------------------------------------------------------------------------------

    def draw_round(self, rng: np.random.Generator) -> np.ndarray | None:
        """The IDs of the batch's samples, (B,); None if it has all of them."""
        return None if self.batch == self.samples else rng.choice(self.samples, self.batch, replace=False)

    def outcomes(self) -> np.ndarray | None:
        if self.batch == self.samples or comb(self.samples, self.batch) > MOST_OUTCOMES:
            return None
        return np.array(list(combinations(range(self.samples), self.batch)))

    @torch.no_grad()
    def exchange(self, x: Tensor, randomness: Tensor | None) -> tuple[SiloPart, ...]:
        everything = torch.arange(self.samples, device=self.device)[None]
        ids = everything.expand(len(x), -1) if randomness is None else randomness
        labels = self._labels[ids]
        embeddings = [self._embeddings(silo, x[:, block], ids) for silo, block in enumerate(self.blocks)]
        together = torch.stack(embeddings).sum(0)
        slopes, parts = self.loss.slopes(together, labels), []
        for silo, own in enumerate(embeddings):
            held, places, weights = self._places_of_clients(silo, ids)
            samples = _chosen(ids, places)
            seen = self._train[silo].index_select(0, samples.flatten()).view(*samples.shape, *self.networks[silo].image)
            others, steep = _chosen(together - own, places), _chosen(slopes, places)
            parts.append(SiloPart(held, seen, _chosen(labels, places), weights, others, steep))
        return tuple(parts)

    def silo_data(self, silo: int) -> SiloData:
        """What a silo holds, for those who deal it out themselves."""
        if self.weight_decay:
            raise FedboundsError("what silos hold has no weight decay: give weight_decay = 0, and add it to gradients")
        network, partition = self.networks[silo], self.partitions[silo]

        def embed(theta: Tensor, features: Tensor) -> Tensor:
            return network.logits(theta[None], features[None])[0]

        shards = tuple(np.flatnonzero(partition.assignment == k) for k in range(partition.clients))
        return SiloData(embed, self._train[silo], self._labels, shards)

    def partial_gradients(self, silo: int, own: Tensor, known: tuple[SiloPart, ...]) -> Tensor:
        return self._gradients(silo, own, known[silo], stale=False)

    def stale_gradients(self, silo: int, own: Tensor, known: tuple[SiloPart, ...]) -> Tensor:
        return self._gradients(silo, own, known[silo], stale=True)

    def descend(self, silo: int, own: Tensor, known: tuple[SiloPart, ...], size: float, stale: bool = False) -> None:
        kept = 1 - size * self._decays(known[silo]) if self.weight_decay else None
        for some, seen, slopes in self._calls(known[silo], stale):
            left = None if kept is None else kept[some]
            self.networks[silo].descend(own.view(-1, own.shape[-1])[some], seen, slopes, size, left)

    def batch_counts(self, silo: int, known: tuple[SiloPart, ...]) -> Tensor:
        return known[silo].counts

    def shares(self, silo: int) -> Tensor:
        sizes = torch.from_numpy(self.partitions[silo].sizes).to(self.device)
        return sizes.to(self.dtype) / self.samples

    def _places_of_clients(self, silo: int, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How many of the batch's samples, (seeds, B), each client holds, (seeds, K_j); their places in the batch and
        their weights, (seeds, K_j, W)."""
        owners = self._owners[silo][ids]
        held = owners.new_zeros(len(ids), self.silo_clients[silo])
        held.scatter_add_(1, owners, torch.ones_like(owners))
        order, after = owners.argsort(dim=1, stable=True), held.cumsum(1)
        column = torch.arange(int(held.max()), device=self.device)
        places = ((after - held)[..., None] + column).clamp(max=ids.shape[1] - 1)
        weights = (column < held[..., None]).to(self.dtype) / held[..., None].clamp(min=1)
        return held, _chosen(order, places), weights

    def _embeddings(self, silo: int, blocks: Tensor, ids: Tensor) -> Tensor:
        """$h_j$ of the samples ids, (seeds, B), at the blocks (seeds, d_j): (seeds, B, size)."""
        rows = [slice(None)] if self.prefers_batched else [slice(s, s + 1) for s in range(len(ids))]
        found = []
        for row in rows:
            chunks = ids[row].split(self._samples_at_once(silo), 1)
            parts = [self.networks[silo].logits(blocks[row], self._train[silo][some]) for some in chunks]
            found.append(torch.cat(parts, 1))
        return torch.cat(found)

    def _gradients(self, silo: int, own: Tensor, part: SiloPart, stale: bool) -> Tensor:
        copies = own.flatten(0, 1)
        out = torch.zeros_like(copies)
        for some, seen, slopes in self._calls(part, stale):
            out[some] = self.networks[silo].pull_back(copies[some], seen, slopes)
        return (out + self._decays(part) * copies if self.weight_decay else out).view(own.shape)

    def _decays(self, part: SiloPart) -> Tensor:
        """The weight decay of every client, (seeds K_j, 1); none without a sample of the batch."""
        return self.weight_decay * (part.counts.flatten()[:, None] > 0).to(self.dtype)

    def _calls(self, part: SiloPart, stale: bool) -> Iterator[tuple[slice, Tensor, Callable[[Tensor], Tensor]]]:
        """Whose gradients to ask for together, at which images, and the derivatives of their losses in the outputs:
        all clients at once, or one by one without padding where that is faster."""
        flat = [tensor.flatten(0, 1) for tensor in part]
        alone = [(slice(i, i + 1), count) for i, count in enumerate(flat[0].tolist()) if count]
        for some, width in [(slice(None), None)] if self.prefers_batched else alone:
            own = SiloPart(flat[0], *(tensor[some, :width] for tensor in flat[1:]))
            yield some, own.seen, partial(self._loss_slopes, own, stale)

    def _loss_slopes(self, part: SiloPart, stale: bool, outputs: Tensor) -> Tensor:
        steep = part.slopes if stale else self.loss.slopes(part.others + outputs, part.labels)
        return part.weights[..., None] * steep

    # --- the whole data -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _sums(self, x: Tensor, features: Sequence[Tensor], some: Tensor | slice = slice(None)) -> Tensor:
        """The sums of all embeddings at one point (d,): (samples, size)."""
        total = None
        for silo, block in enumerate(self.blocks):
            chunks = features[silo][some].split(self._samples_at_once(silo))
            own = torch.cat([self.networks[silo].logits(x[None, block], seen[None])[0] for seen in chunks])
            total = own if total is None else total + own
        assert total is not None
        return total

    def _pull_back(self, silo: int, own: Tensor, slopes: Tensor, some: Tensor | slice = slice(None)) -> Tensor:
        """The gradient (d_j,), in a silo's block, of what has the derivatives `slopes` (samples, size) in the sums."""
        out, at_once = torch.zeros_like(own), self._samples_at_once(silo)
        for seen, steep in zip(self._train[silo][some].split(at_once), slopes.split(at_once), strict=True):
            out += self.networks[silo].pull_back(own[None], seen[None], lambda _, s=steep: s[None])[0]
        return out

    def _slope(self, x: Tensor, sums: Tensor) -> Tensor:
        """The gradient of f at one point (d,), given the sums of all samples' embeddings there."""
        slopes = self.loss.slopes(sums, self._labels) / self.samples
        slope = torch.cat([self._pull_back(silo, x[block], slopes) for silo, block in enumerate(self.blocks)])
        return slope + self.weight_decay * x if self.weight_decay else slope

    def objective(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.dimension)
        losses = [
            self.loss.values(self._sums(row, self._train), self._labels).mean(dtype=torch.float64) for row in rows
        ]
        return torch.stack(losses).view(x.shape[:-1]) + decay_term(self.weight_decay, x).double()

    def objective_gradient(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.dimension)
        return torch.stack([self._slope(row, self._sums(row, self._train)) for row in rows]).view(x.shape)

    def gradient(self, x: Tensor, clients: Tensor) -> Tensor:
        rows, found = x.reshape(-1, self.dimension), []
        for row, client in zip(rows, clients.flatten().tolist(), strict=True):
            silo, own = self._shard(client)
            slopes = self.loss.slopes(self._sums(row, self._train, own), self._labels[own]) / len(own)
            block, gradient = self.blocks[silo], torch.zeros_like(row)
            gradient[block] = self._pull_back(silo, row[block], slopes, own)
            if self.weight_decay:
                gradient[block] += self.weight_decay * row[block]
            found.append(gradient)
        return torch.stack(found).view(x.shape)

    def local_loss(self, x: Tensor, client: int) -> Tensor:
        if not all(network.smooth for network in self.networks):
            kinked = sorted({network.name for network in self.networks if not network.smooth})
            raise FedboundsError(
                f"network {kinked[0]!r} has kinks (ReLU, maxima), so that its Hessian misses how its gradient jumps: "
                "compare gradients at pairs of points, or take a smooth network such as cnn-smooth"
            )
        _, own = self._shard(client)
        parts = [
            network.logits(x[None, block], features[own][None])[0]
            for network, block, features in zip(self.networks, self.blocks, self._train, strict=True)
        ]
        return self.loss.values(torch.stack(parts).sum(0), self._labels[own]).mean() + decay_term(self.weight_decay, x)

    def metrics(self, x: Tensor) -> dict[str, Tensor]:
        found: dict[str, list[float]] = {}
        for row in x:
            for name, value in self._measure(row).items():
                found.setdefault(name, []).append(value)
        return {name: torch.tensor(values, dtype=torch.float64) for name, values in found.items()}

    def _measure(self, row: Tensor) -> dict[str, float]:
        """The metrics at one point (d,)."""
        found: dict[str, float] = {}
        sums, labels = self._sums(row, self._train), self._labels
        if self.gradient_norm:
            found["gradient_norm_squared"] = float(self._slope(row, sums).square().sum())
        tested = self._sums(row, self._test), self._test_labels
        for data, (outputs, truth) in (("train", (sums, labels)), ("test", tested)):
            found[f"{data}_loss"] = float(self.loss.values(outputs, truth).mean(dtype=torch.float64))
            found[f"{data}_accuracy"] = float((self.loss.answers(outputs) == truth).double().mean())
        found["train_loss"] += float(decay_term(self.weight_decay, row))
        outputs, truth = tested
        if self.dataset.classes == 2:
            answers = self.loss.answers(outputs)
            both = int(answers.sum()) + int(truth.sum())
            found["test_f1"] = 2 * int((answers * truth).sum()) / both if both else 0.0
        if self.loss.size > self.top_k:
            among = (outputs.topk(self.top_k, dim=1).indices == truth[:, None]).any(1)
            found[f"test_top_{self.top_k}_accuracy"] = float(among.double().mean())
        return found

    # --- what the theory asks -----------------------------------------------------------------------------------------

    def partial_noise(self, x: Tensor) -> PartialNoise:
        r"""How far clients' partial gradients are from those of f at one point (d,), exactly.

        Client k of silo j, with m of the M samples, holds b of a batch of B, hypergeometric; of those who hold any

        $$\mathbb E\|g_{k,j}-\mathbb Eg_{k,j}\|^2=s^2\Big(\mathbb E\big[\tfrac1b\,\big|\,b\ge1\big]-\tfrac1m\Big)$$

        with the variance $s^2$ of its samples' partial gradients, divided by m - 1.
        """
        sampling, whole = self.gradient_variance(x)[0], self.objective_gradient(x)
        everyone = torch.arange(self.clients, device=self.device)
        away = self.gradient(x.expand(1, self.clients, -1), everyone[None])[0].double()
        for silo, client in zip(self.silo_of.tolist(), away, strict=True):
            client[self.blocks[silo]] -= whole[self.blocks[silo]]
        return PartialNoise(sampling, away.square().sum(1))

    def silo_variances(self, x: Tensor) -> Tensor:
        noises = [self.partial_noise(row) for row in x.reshape(-1, self.dimension)]
        each = [
            torch.stack([own.mean() for own in (noise.sampling + noise.divergence).split(self.silo_clients)])
            for noise in noises
        ]
        return torch.stack(each).view(*x.shape[:-1], self.silos)

    def gradient_variance(self, x: Tensor, blocks: Sequence[slice] = (slice(None),)) -> Tensor:
        parts, slopes = [], self.loss.slopes(self._sums(x, self._train), self._labels)
        for silo, own in enumerate(self.blocks):
            inside = [_overlap(block, own, self.dimension) for block in blocks]
            clients, size = self.silo_clients[silo], own.stop - own.start
            sums = x.new_zeros(clients, size, dtype=torch.float64)
            squares = x.new_zeros(len(blocks), clients, dtype=torch.float64)
            for some in torch.arange(self.samples, device=self.device).split(max(1, _EACH // size)):
                at, seen = x[own].expand(len(some), -1), self._train[silo][some][:, None]
                each = self.networks[silo].pull_back(at, seen, lambda _, s=slopes[some]: s[:, None]).double()
                owners = self._owners[silo][some]
                sums.index_add_(0, owners, each)
                squares.index_add_(1, owners, torch.stack([each[:, block].square().sum(1) for block in inside]))
            sizes = torch.from_numpy(self.partitions[silo].sizes).to(self.device)
            means = sums / sizes[:, None]
            within = squares - sizes * torch.stack([means[:, block].square().sum(1) for block in inside])
            share = torch.from_numpy(sub_batches(self.samples, self.partitions[silo].sizes, self.batch))
            parts.append(within.clamp(min=0) / (sizes - 1).clamp(min=1) * share.to(self.device))
        return torch.cat(parts, 1)

    def _shard(self, client: int) -> tuple[int, Tensor]:
        """The silo of a client, and its samples."""
        silo = int(self.silo_of[client])
        first = sum(self.silo_clients[:silo])
        return silo, torch.from_numpy(self.partitions[silo].samples[client - first]).to(self.device)

    def _samples_at_once(self, silo: int) -> int:
        """How many samples a silo's network sees at once."""
        network = self.networks[silo]
        cached = network.convolutional and self.device.type == "cpu"
        return min(_CHUNK, max(1, _PIXELS // (network.image[1] * network.image[2]))) if cached else _CHUNK

    # --- constants at every point -------------------------------------------------------------------------------------

    @property
    def linear(self) -> bool:
        """Whether all embeddings are affine functions of the parameters."""
        return all(network.name == "linear" for network in self.networks)

    @cached_property
    def _features_with_one(self) -> list[Tensor]:
        """Of every silo the features with a one beside them, (M, D_j + 1), float64."""
        flat = [features.flatten(1).double().cpu() for features in self._train]
        return [torch.cat([own, own.new_ones(len(own), 1)], 1) for own in flat]

    def _lower_bound(self) -> LowerBound:
        if not (self.linear and self.loss.steepness is None):
            return LowerBound("train_loss", 0.0, "the loss is not negative")
        table, labels = torch.cat(self._features_with_one, 1).numpy(), self.dataset.train_labels.astype(float)
        residual = labels - table @ np.linalg.lstsq(table, labels, rcond=None)[0]
        return LowerBound("train_loss", float(residual @ residual) / (2 * self.samples), "least squares, solved")

    def constants(self) -> dict[str, Constant | NoConstant]:
        r"""What is known for every parameter vector: of linear embeddings alone.

        $\nabla^2f=\frac1M\sum_p\nabla^2\ell\otimes\tilde X^{(p)}\tilde X^{(p)\top}$ with the features and a one of each
        silo in $\tilde X$, and likewise for a client's samples in its own block. Of b samples whose lengths are at
        most those of the b longest, the mean of $\tilde X_j\tilde X_j^\top$ has a norm of at most the mean of their
        squares, and of at most m/b times the norm of the mean over all m.
        """
        found: dict[str, Constant | NoConstant] = {"clients": Constant(float(self.clients), "exact")}
        if not self.linear:
            why = "gradients of a network grow without bound with its weights"
            return found | {
                name: NoConstant(why) for name in ("smoothness", "block_smoothness", "block_gradient_noise")
            }
        curvature, together = self.loss.curvature, torch.cat(self._features_with_one, 1)
        sharp = "" if self.loss.steepness is None else f", times {curvature:g}: upper bound"
        rho, decayed = self.weight_decay, ", and the weight decay" if self.weight_decay else ""
        largest = float(torch.linalg.matrix_norm(together.T @ together, 2)) / self.samples
        own = [self._steepest_shard(silo) for silo in range(self.silos)]
        note = "largest norm of a client's second moments" + (
            "" if self.batch == self.samples else ", upper bound for all its parts of batches"
        )
        return found | {
            "smoothness": Constant(curvature * largest + rho, "exact", "norm of the second moments" + sharp + decayed),
            "block_smoothness": Constant(curvature * max(own) + rho, "exact", note + sharp + decayed),
            "block_gradient_noise": self._noise(),
        }

    def _steepest_shard(self, silo: int) -> float:
        """A bound of the norm of the second moments of any part of a batch that a client of a silo may hold."""
        bounds, partition = [], self.partitions[silo]
        for own, size in zip(partition.samples, partition.sizes.tolist(), strict=True):
            table = self._features_with_one[silo][torch.from_numpy(own)]
            fewest = max(1, self.batch - (self.samples - size))
            longest = float(table.square().sum(1).sort(descending=True).values[:fewest].mean())
            bounds.append(min(longest, float(torch.linalg.matrix_norm(table.T @ table, 2)) / fewest))
        return max(bounds)

    def _noise(self) -> Constant | NoConstant:
        if self.loss.steepness is None:
            return NoConstant("partial gradients of least squares, and their variances, grow with the parameters")
        unequal = [silo for silo, partition in enumerate(self.partitions) if len(set(partition.sizes.tolist())) > 1]
        if unequal:
            return NoConstant(
                f"the shards of silo {unequal[0]} differ in size, so that the mean of its clients' partial gradients "
                "is not that of the objective"
            )
        squares = sum(float(own.square().sum(1).mean()) for own in self._features_with_one)
        if self.batch == self.samples and self.clients == self.silos:
            return Constant(0.0, "exact", "every client holds all samples, and a batch is all of them")
        note = f"upper bound, from |grad l| <= {self.loss.steepness:.3g} |features|, where all hold samples"
        return Constant(self.loss.steepness**2 * squares, "exact", note)


def sub_batches(samples: int, sizes: Sequence[int] | np.ndarray, batch: int) -> np.ndarray:
    r"""$\mathbb E[1/b\mid b\ge1]-1/m$ for the number b of a batch's samples that a client with m of them holds."""
    from scipy.stats import hypergeom  # takes its time

    found = []
    for m in np.asarray(sizes).tolist():
        b = np.arange(max(1, batch - (samples - m)), min(m, batch) + 1)
        chance = hypergeom.pmf(b, samples, m, batch)
        found.append(float((chance / b).sum() / chance.sum()) - 1 / m)
    return np.array(found)


def _slices(split: str, size: int, silos: int, widths: Sequence[int] | None) -> list[int]:
    """How many columns or channels each silo has."""
    if widths is None:
        if silos > size:
            raise FedboundsError(f"silos = {silos}: there are {size} {split} to split, at least one for each is needed")
        return [len(part) for part in np.array_split(np.arange(size), silos)]
    found = check_counts("widths", widths)
    if len(found) != silos or sum(found) != size:
        raise FedboundsError(f"widths = {quote(list(found))} must be {silos} numbers, of {size} {split} in all")
    return list(found)


def _chosen(values: Tensor, places: Tensor) -> Tensor:
    """Of values (seeds, B, ...) those at places (seeds, K, W): (seeds, K, W, ...)."""
    rows = torch.arange(len(values), device=values.device)[:, None, None]
    return values[rows, places]


def _overlap(block: slice, own: slice, dimension: int) -> slice:
    """Where in the block `own` those of its coordinates lie that are in another one too."""
    start, stop, _ = block.indices(dimension)
    return slice(min(max(start, own.start), own.stop) - own.start, min(max(stop, own.start), own.stop) - own.start)
