"""Networks from the user's code, which is imported only if it is allowed, and registered networks as torch modules."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote
from fedbounds.bounds.inputs.user_files import read_bytes
from fedbounds.empirical.problems.networks import Network

ALLOWED = "FEDBOUNDS_ALLOW_IMPORT"  # "1" in the environment of this process and its workers
_LARGEST = 2**24  # bytes of a source file


def is_factory(network: str) -> bool:
    """Whether a network is given as MODULE:FACTORY or FILE.py:FACTORY."""
    return ":" in network


@contextmanager
def allow_import() -> Iterator[None]:
    """Allow this process, and those that it starts, to import factories."""
    before = os.environ.get(ALLOWED)
    os.environ[ALLOWED] = "1"
    try:
        yield
    finally:
        os.environ.pop(ALLOWED)
        if before is not None:
            os.environ[ALLOWED] = before


def make_module(network: str, seed: int) -> nn.Module:
    """The torch module that a factory returns; its parameters are drawn from torch's random numbers with this seed.

    Raises:
        FedboundsError: imports are not allowed; the module or the factory is not there, fails, or makes no module.
    """
    factory = _load_factory(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = factory()
        except Exception as error:
            raise _failure(network, "its call", error) from error
    if not isinstance(module, nn.Module) or not any(True for _ in module.parameters()):
        raise FedboundsError(
            f"network = {quote(network)} returns {type(module).__name__}; expected a torch.nn.Module with parameters"
        )
    return module


def source_checksum(network: str) -> str:
    """A fingerprint of the source file of a factory, and its name, for cache keys."""
    module = _load_module(network)
    path = getattr(module, "__file__", None)
    content = b"" if path is None else read_bytes(path, f"the module {path}", _LARGEST)
    return hashlib.sha256(network.rpartition(":")[2].encode() + b"\n" + content).hexdigest()


def _load_factory(network: str) -> Callable[[], object]:
    name = network.rpartition(":")[2]
    factory = getattr(_load_module(network), name, None)
    if not callable(factory):
        raise FedboundsError(f"network = {quote(network)}: the module has no function {name!r}; give one that it has")
    return factory


def _load_module(network: str) -> ModuleType:
    if os.environ.get(ALLOWED) != "1":
        raise FedboundsError(
            f"network = {quote(network)} runs code of that module; to allow it give --allow-import (or {ALLOWED}=1)"
        )
    place = network.rpartition(":")[0]
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        read_bytes(place, f"the module {place}", _LARGEST)  # an input, as other files are
        name = f"_fedbounds_{hashlib.sha256(str(Path(place).resolve()).encode()).hexdigest()[:16]}"
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except FedboundsError:
        raise
    except Exception as error:
        raise _failure(network, "its import", error) from error
    return module


def _failure(network: str, step: str, error: Exception) -> FedboundsError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return FedboundsError(f"network = {quote(network)}: {step} fails with {reason[:300]}")


def check_outputs(module: nn.Module, network: str, inputs: Tensor, outputs: int, *, exact: bool) -> None:
    """Refuse a module that does not take the samples, or has another number of outputs."""
    try:
        with torch.no_grad():
            shape = tuple(module.eval()(inputs).shape)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise FedboundsError(
            f"network = {quote(network)} fails on features {tuple(inputs.shape)}: {' '.join(str(error).split())[:300]}"
        ) from error
    if shape[:1] != inputs.shape[:1] or (shape[1:] != (outputs,) if exact else len(shape) != 2 or shape[1] < outputs):
        wanted = f"({len(inputs)}, {outputs})"
        raise FedboundsError(f"network = {quote(network)} returns shape {shape} for two samples; expected {wanted}")


class RegisteredNetwork(nn.Module):
    """A network of the registry as a module with one flat parameter."""

    def __init__(self, network: Network, seed: int) -> None:
        super().__init__()
        if network.statistics:
            raise FedboundsError(
                f"network {network.name!r} has running statistics, which need kind = 'images'; take another network"
            )
        self.network = network
        self.parameter = nn.Parameter(torch.from_numpy(network.initial(np.random.default_rng(seed))).float())

    def forward(self, images: Tensor) -> Tensor:
        return self.network.logits(self.parameter[None], images[None])[0]
