"""Compressors as codecs: an update goes in, bytes come out, and the server makes an update of the bytes alone."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import check_count
from fedbounds.empirical.algorithms.messages.envelope import OVERHEAD, seal, unseal

LARGEST = 1e30  # sums of as many such numbers as there are parameters still are float32


class Compressor(ABC):
    r"""How a client sends an update x (d,) in few bits; $\mathcal S(x)$ is what the server makes of them.

    Subclasses are frozen dataclasses of what both sides agree on beforehand.

    Attributes:
        kind: its name in a specification.
        code: its number in messages.
        unbiased: whether $E[\mathcal S(x)]=x$ for every x, up to float32 and the 24 bits of a chance.
        refuses_damaged: whether messages that were damaged on the way are refused.
    """

    kind: ClassVar[str]
    code: ClassVar[int]
    unbiased: ClassVar[bool]
    refuses_damaged: ClassVar[bool] = True

    @abstractmethod
    def pack(self, x: np.ndarray, rng: np.random.Generator) -> bytes:
        """The payload for an update that is finite and not empty, float32 (d,)."""

    @abstractmethod
    def unpack(self, payload: bytes, size: int) -> np.ndarray:
        """What the payload means, float32 (size,)."""

    def payload_bytes(self, size: int) -> int | None:
        """How long a payload is; None, the default, if that depends on the update or on chance."""
        return None

    def squared_error(self, x: np.ndarray) -> float | None:
        r"""$E\|\mathcal S(x)-x\|^2$ exactly, for one x (d,); None, the default, if it has no closed form."""
        return None

    def relative_error(self, size: int) -> float | None:
        r"""The least $q^2$ with $E\|\mathcal S(x)-x\|^2\le q^2\|x\|^2$ for every x (d,); None by default."""
        return None

    def encode(self, update: np.ndarray, rng: np.random.Generator) -> bytes:
        """The message for an update.

        Args:
            update: x, (d,), numbers of at most 1e30 in size.
            rng: the client's own randomness; no part of it needs to be known to the server.

        Raises:
            FedboundsError: not one vector of such numbers, or an empty one.
        """
        x = check_update(update)
        return seal(self.code, len(x), self.pack(x, rng), self.agreed)

    def decode(self, message: bytes, size: int | None = None) -> np.ndarray:
        r"""The update that the message means, float32 (d,).

        Args:
            message: as `encode` made it.
            size: d, if the server knows it; a message that declares another is refused before memory is made for it.

        Raises:
            FedboundsError: bytes that are no such message, damaged, of another length, version, encoding or agreement,
                of another size, or with numbers that are not finite.
        """
        declared, payload = unseal(message, self.code, self.agreed)
        if size is not None and declared != size:
            raise FedboundsError(f"the message holds an update of {declared} numbers, and the model has {size}")
        size = declared
        expected = self.payload_bytes(size) if size else 0
        if not size or expected not in (None, len(payload)):
            raise FedboundsError(f"the message carries {len(payload)} bytes for {size} numbers, which take {expected}")
        return self.unpack(payload, size)

    def message_bytes(self, size: int) -> int | None:
        """How long the message of an update of d numbers is; None if that depends on the update or on chance.

        Raises:
            FedboundsError: no number of numbers, or none of them.
        """
        payload = self.payload_bytes(check_count("size", size))
        return None if payload is None else OVERHEAD + payload

    def spec(self) -> dict[str, Any]:
        """What both sides agree on."""
        return {"kind": self.kind} | dataclasses.asdict(self)  # type: ignore[call-overload]

    @cached_property
    def agreed(self) -> bytes:
        """The same in bytes, which are no part of a message but of its checksum."""
        return json.dumps(self.spec(), sort_keys=True).encode()


def check_update(update: object) -> np.ndarray:
    """The update as float32 (d,)."""
    x = np.asarray(update)
    if x.ndim != 1 or x.dtype.kind not in "fiu":
        raise FedboundsError(f"an update is one vector of numbers, not {x.dtype} of shape {x.shape}")
    if not len(x):
        raise FedboundsError("the update is empty (d = 0): there is nothing to send")
    with np.errstate(over="ignore"):
        found = x.astype(np.float32)
    sendable = np.abs(found) <= LARGEST
    if not sendable.all():
        place = int(np.argmin(sendable))
        raise FedboundsError(f"update[{place}] = {x[place]:g} is not a finite number of at most {LARGEST:g}")
    return found
