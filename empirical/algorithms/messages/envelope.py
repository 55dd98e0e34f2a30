r"""What surrounds every message: enough to refuse one that is not what the server thinks it is.

| bytes | |
|---|---|
| 0-1 | `fb` |
| 2 | the version of this layout, 1 |
| 3 | which encoding |
| 4-11 | d, the numbers of the update, little endian |
| 12-15 | CRC-32 of the bytes 0-11, of what both sides agreed on beforehand, and of the payload |
| 16- | the payload |
"""

from __future__ import annotations

import struct
from zlib import crc32

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.checks import quote

MAGIC, VERSION = b"fb", 1
HEAD = struct.Struct("<2sBBQ")
OVERHEAD = HEAD.size + 4


def seal(code: int, size: int, payload: bytes, agreed: bytes = b"") -> bytes:
    """The message that holds a payload."""
    head = HEAD.pack(MAGIC, VERSION, code, size)
    return head + struct.pack("<I", crc32(payload, crc32(agreed, crc32(head)))) + payload


def unseal(message: bytes, code: int, agreed: bytes = b"") -> tuple[int, bytes]:
    """The size and the payload of a message."""
    if not isinstance(message, bytes | bytearray | memoryview):
        raise FedboundsError(f"a message is bytes, not {quote(type(message).__name__)}")
    message = bytes(message)
    if len(message) < OVERHEAD:
        raise FedboundsError(f"the message ends after {len(message)} bytes, within its head of {OVERHEAD}")
    magic, version, other, size = HEAD.unpack_from(message)
    if magic != MAGIC:
        raise FedboundsError(f"this is no message of fedbounds: it begins with {quote(magic)}")
    if version != VERSION:
        raise FedboundsError(f"the message has version {version} of the layout; this is version {VERSION}")
    if other != code:
        raise FedboundsError(f"the message has encoding {other}, and this is encoding {code}")
    (checksum,) = struct.unpack_from("<I", message, HEAD.size)
    payload = message[OVERHEAD:]
    if checksum != crc32(payload, crc32(agreed, crc32(message[: HEAD.size]))):
        raise FedboundsError("the message was damaged or cut short, or encoded with other settings: checksums differ")
    return size, payload
