"""A device that is not there: numbers live in main memory, but only `.to` and `.cpu` move tensors to it and back.

What a CUDA device refuses, operations on tensors of two devices and NumPy's view of one that is elsewhere, is refused
here too, and every number is the processor's; so a whole run on it must equal the run on the processor. What moves
numbers to it or back, or would make the processor wait for it, is written down in `TRAFFIC`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

ELSEWHERE = torch.device("xla:0")  # a kind that torch names and this build cannot have
MOVES = {"_to_copy", "copy_"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mv, torch.Tensor.mv)
READ = {"_local_scalar_dense", "equal"}  # what answers with a Python number
WAITS = {"nonzero", "masked_select", "_unique2", "unique_consecutive", "bincount"}  # results whose size must be known
TRAFFIC: list[str] = []


class Elsewhere(torch.Tensor):
    """A tensor on the pretended device."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Elsewhere:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined,no-any-return]
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device="cpu"
        )

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return ELSEWHERE

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        TRAFFIC.append("cpu")
        return self.held

    def tolist(self) -> Any:
        TRAFFIC.append("tolist")
        return self.held.tolist()

    def numpy(self) -> Any:  # type: ignore[override]
        raise TypeError(f"a tensor on {ELSEWHERE} has no view in NumPy; use .cpu() first")

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return dispatched(func, args, dict(kwargs or {}))


class Operations(TorchDispatchMode):
    """Every operation of torch, also those without a tensor to tell the device by."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return dispatched(func, args, dict(kwargs or {}))


class Constructors(TorchFunctionMode):
    """`torch.tensor(data, device=...)` and `.to(other)`, which look at devices before any operation is seen."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func is torch.tensor and torch.device(named.get("device") or "cpu") == ELSEWHERE:
            TRAFFIC.append("tensor")
            return Elsewhere(func(*args, **{**named, "device": "cpu"}))
        if func is torch.Tensor.to and len(args) == 2 and isinstance(args[1], Elsewhere):
            return func(args[0], ELSEWHERE, args[1].dtype)
        if (
            func in PRODUCTS and not named and any(isinstance(one, Elsewhere) for one in args)
        ):  # it changes shapes in place
            return dispatched(torch.ops.aten.matmul.default, args, named)
        return func(*args, **named)


@contextmanager
def pretended_device() -> Iterator[str]:
    """While it is entered, tensors can be made on the device of this name, or moved there."""
    with Operations(), Constructors():
        yield str(ELSEWHERE)


def dispatched(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """One operation: computed in main memory, its results where its tensors are."""
    name = func.overloadpacket.__name__  # type: ignore[attr-defined]
    tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
    there = [one for one in tensors if isinstance(one, Elsewhere)]
    target = kwargs.get("device")
    if target is not None:
        kwargs["device"] = torch.device("cpu")
    away = bool(there) if target is None else torch.device(target).type == ELSEWHERE.type
    here = [one for one in tensors if not isinstance(one, Elsewhere) and one.dim()]
    if name not in MOVES and there and here and not (name in INDEXING and isinstance(args[0], Elsewhere)):
        raise RuntimeError(f"{name}: tensors on {ELSEWHERE} and on the processor, {[tuple(one.shape) for one in here]}")
    if name == "copy_":
        away = isinstance(args[0], Elsewhere)
    crosses = name in MOVES and (len(there) < len(tensors) if away else bool(there))
    masks = name in INDEXING and any(one.dtype == torch.bool for one in tensors[1:])
    if crosses or (there and (here or masks or name in READ | WAITS)):
        TRAFFIC.append(name)
    plain_args, plain_kwargs = tree_map_only(Elsewhere, lambda one: one.held, (tuple(args), kwargs))
    found = func(*plain_args, **plain_kwargs)
    if name in READ:
        return found
    same = {id(one.held): one for one in there}

    def moved(one: torch.Tensor) -> torch.Tensor:
        return same[id(one)] if id(one) in same else Elsewhere(one)

    return tree_map_only(torch.Tensor, moved, found) if away else found
