"""Devices of the tensors of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from fedbounds.bounds.errors import FedboundsError


def resolve_device(name: str, network: bool) -> str:
    """The device that a name means on this machine: "cpu", "cuda" or "cuda:1".

    "auto" is a CUDA device for networks, if there is one; else the processor, which is faster for small problems.
    """
    kind, colon, index = name.partition(":") if isinstance(name, str) else ("", "", "")
    if name not in ("auto", "cpu", "cuda") and not (kind == "cuda" and colon and index.isdecimal()):
        raise FedboundsError(f"device = {name!r} must be auto, cpu, cuda or cuda:i")
    here = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return "cuda" if network and here else "cpu"
    if kind == "cuda" and int(index or 0) >= here:
        there = f"cuda:0 to cuda:{here - 1}" if here else "no CUDA device"
        raise FedboundsError(f"device = {name!r}: torch {torch.__version__} sees {there} here; give device = 'cpu'")
    return name


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Disable TF32 on a CUDA device, so that float32 products agree with those of the CPU."""
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def device_name(device: torch.device | str) -> str:
    """The name of a device for the records of a run; "cpu" for the CPU."""
    device = torch.device(device)
    return f"{device}, {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device)
