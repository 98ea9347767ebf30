# SPDX-License-Identifier: Apache-2.0
"""A small image."""

import struct
import zlib


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 96, 32, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress((b"\0" + b"\x8a\x1c\x4a" * 96) * 32))
    + _chunk(b"IEND", b"")
)
"""A picture of 96 × 32 pixels in one colour."""
