# SPDX-License-Identifier: Apache-2.0
"""Points of small order on Ed25519's curve -x² + y² = 1 + d·x²·y², and all their encodings.

The points are computed, not copied from a list: they are multiples by L, the order of the base
point.
"""

from functools import cache

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
L = 2**252 + 27742317777372353535851937790883648493
IDENTITY = (0, 1)

Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    """Return the sum of two points; the addition law is complete, so it has no exceptions."""
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + t, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - t, -1, P)
    return x % P, y % P


def times(n: int, point: Point) -> Point:
    """Return n times a point."""
    total = IDENTITY
    for bit in f"{n:b}":
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def roots(y: int) -> list[int]:
    """Return every x with (x, y) on the curve: none, one or two."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    candidate = pow(square, (P + 3) // 8, P)
    tried = {candidate * unit % P for unit in (1, pow(2, (P - 1) // 4, P))}
    return sorted({sign * x % P for x in tried if x * x % P == square for sign in (1, -1)})


@cache  # 4,000 inversions
def small_order() -> frozenset[Point]:
    """Return the points whose multiple by 8 is the identity, computed as L times points of the curve."""
    points: set[Point] = set()
    y = 2
    while len(points) < 8:
        points |= {times(L, (x, y)) for x in roots(y)}
        y += 1
    return frozenset(points)


def encodings(y: int, x: int) -> list[bytes]:
    """Return every encoding of (x, y) that a lenient reader accepts: y, y + P if it fits, x = 0 signed."""
    signs = (0, 1) if x == 0 else (x % 2,)
    ys = [value for value in (y, y + P) if value < 2**255]
    return [(value | sign << 255).to_bytes(32, "little") for value in ys for sign in signs]


def small_order_encodings() -> list[bytes]:
    """Return the 14 encodings of the 8 points."""
    return sorted(data for x, y in small_order() for data in encodings(y, x))


def not_canonical() -> list[bytes]:
    """Return every encoding with y ≥ P, including those that encode no point."""
    return [(y | sign << 255).to_bytes(32, "little") for y in range(P, 2**255) for sign in (0, 1)]
