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


def dark_pixels(png: bytes) -> list[list[bool]]:
    """Return rows of True for black pixels of a picture in two colours, one bit each, black first."""
    (width, height, bits, kind), place, data = struct.unpack(">IIBB", png[16:26]), 8, b""
    assert (bits, kind) in ((1, 0), (1, 3))
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += length + 12
    lines, size = zlib.decompress(data), (width + 7) // 8
    rows, above = [], bytes(size)
    for start in range(0, len(lines), size + 1):
        method, row = lines[start], lines[start + 1 : start + 1 + size]
        assert method in (0, 2)  # as they are, or the difference from the row above
        above = bytes((a + b) % 256 for a, b in zip(row, above, strict=True)) if method else row
        rows.append([not above[x // 8] >> (7 - x % 8) & 1 for x in range(width)])
    assert len(rows) == height
    return rows
