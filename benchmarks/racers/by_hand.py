"""FedAvg as one writes it with torch, three times: one client after the other, by `vmap`, and batched by hand."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from benchmarks.racers.job import STEPS, Job
from benchmarks.racers.torch_modules import module

Round = Callable[[Tensor, Tensor, Tensor], Tensor]  # model, clients (cohort,), samples (cohort, steps, batch) -> model


def plain_loop(job: Job) -> Round:
    """One client after the other, with torch modules."""
    images, labels, net = torch.from_numpy(job.first), torch.from_numpy(job.second), module(parts(job))
    optimizer = torch.optim.SGD(net.parameters(), lr=job.size)

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        total = torch.zeros_like(model)
        for client, own in zip(clients.tolist(), samples, strict=True):
            nn.utils.vector_to_parameters(model.clone(), net.parameters())  # they become views of it
            for batch in own:
                optimizer.zero_grad()
                F.cross_entropy(net(images[client, batch]), labels[client, batch]).backward()
                optimizer.step()
            total += nn.utils.parameters_to_vector(net.parameters()).detach()
        return total / len(samples)

    return play


def by_vmap(job: Job) -> Round:
    """The cohort batched by `torch.func`."""
    images, labels, net = torch.from_numpy(job.first), torch.from_numpy(job.second), module(parts(job))
    names = [name for name, _ in net.named_parameters()]

    def loss(own: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(net, own, (x,)), y)

    slopes = vmap(grad(loss))

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        copies = {name: part.detach() for name, part in zip(names, copied(job, model, len(clients)), strict=True)}
        with torch.no_grad():
            for batch in samples.unbind(1):
                found = slopes(copies, images[clients[:, None], batch], labels[clients[:, None], batch])
                copies = {name: copy - job.size * found[name] for name, copy in copies.items()}
        return torch.cat([copy.mean(0).flatten() for copy in copies.values()])

    return play


def hand_batched(job: Job) -> Round:
    """The cohort's networks in one batch: grouped convolutions and batched products, with autograd."""
    images, labels = torch.from_numpy(job.first), torch.from_numpy(job.second)

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        copies, cohort = copied(job, model, len(clients)), len(clients)
        for batch in samples.unbind(1):
            own = [copy.requires_grad_() for copy in copies]
            hidden = images[clients[:, None], batch]
            for weight, bias in zip(own[:-4:2], own[1:-4:2], strict=True):
                grouped = hidden.transpose(0, 1).flatten(1, 2)
                grouped = F.conv2d(grouped, weight.flatten(0, 1), bias.flatten(), padding=2, groups=cohort)
                hidden = F.max_pool2d(grouped.relu(), 2).unflatten(1, (cohort, -1)).transpose(0, 1)
            hidden = torch.baddbmm(own[-3][:, None], hidden.flatten(2), own[-4].mT).relu()
            answers = torch.baddbmm(own[-1][:, None], hidden, own[-2].mT)
            truth = labels[clients[:, None], batch].flatten()
            loss = F.cross_entropy(answers.flatten(0, 1), truth, reduction="sum") / batch.shape[1]
            slopes = torch.autograd.grad(loss, own)
            with torch.no_grad():
                copies = [copy - job.size * slope for copy, slope in zip(own, slopes, strict=True)]
        return torch.cat([copy.detach().mean(0).flatten() for copy in copies])

    return play


def quadratic_loop(job: Job) -> Round:
    """Quadratics, one client after the other."""
    hessians, centers = torch.from_numpy(job.first), torch.from_numpy(job.second)

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        total = torch.zeros_like(model)
        for client in clients.tolist():
            here = model.clone()
            for _ in range(STEPS):
                slope = hessians[client] @ (here - centers[client])
                here -= job.size * (slope + job.noise * torch.randn_like(here))
            total += here
        return total / len(clients)

    return play


def quadratic_batched(job: Job) -> Round:
    """Quadratics, the cohort's Hessians gathered, one batched product per local step."""
    hessians, centers = torch.from_numpy(job.first), torch.from_numpy(job.second)

    def play(model: Tensor, clients: Tensor, samples: Tensor) -> Tensor:
        own, around, here = hessians[clients], centers[clients], model.expand(len(clients), -1).clone()
        noise = job.noise * torch.randn(STEPS, *here.shape, dtype=here.dtype)
        for drawn in noise:
            here -= job.size * (torch.bmm(own, (here - around)[:, :, None])[:, :, 0] + drawn)
        return here.mean(0)

    return play


def parts(job: Job) -> list[Tensor]:
    return [torch.from_numpy(part) for part in job.model]


def copied(job: Job, model: Tensor, cohort: int) -> list[Tensor]:
    """The parts of a flat model, once for each client."""
    split = model.split([part.size for part in job.model])
    return [
        own.view(part.shape).expand(cohort, *part.shape).clone() for own, part in zip(split, job.model, strict=True)
    ]
