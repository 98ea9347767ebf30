# SPDX-License-Identifier: Apache-2.0
"""Files of randomised reports for all estimators: GRR and optimised unary encoding, K answers."""

from math import exp
from pathlib import Path

import numpy as np
from frankly_protocol.mechanisms import DenseMechanism, UnaryMechanism
from numpy.typing import NDArray

K, EPSILON, BITS = 16, 1.0, 48
BATCHES = 100
"""Number of surveys into which the reports are divided to compare errors."""
_ROWS = 1 << 20


def truth() -> NDArray[np.float64]:
    """Return the true shares: each answer is 0.8 times as frequent as the previous one."""
    weights = 0.8 ** np.arange(K)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def grr() -> DenseMechanism:
    """Return generalised randomised response with integer weights."""
    off = round(2**BITS / (exp(EPSILON) + K - 1))
    on = 2**BITS - (K - 1) * off
    return DenseMechanism(
        BITS, tuple(tuple(on if x == y else off for y in range(K)) for x in range(K))
    )


def unary() -> UnaryMechanism:
    """Return optimised unary encoding with integer weights."""
    return UnaryMechanism(BITS, K, 1 << (BITS - 1), round(2**BITS / (exp(EPSILON) + 1)))


def write(folder: Path, n: int, seed: int = 16) -> None:
    """Write grr.npy, shape (n,), and unary.npy, shape (n, k), both of bytes."""
    rng = np.random.default_rng(seed)
    table = np.array(grr().weights) / 2.0**BITS
    np.save(folder / "grr.npy", rng.choice(K, size=n, p=truth() @ table).astype(np.uint8))
    bits = np.lib.format.open_memmap(folder / "unary.npy", mode="w+", dtype=np.uint8, shape=(n, K))
    keep, flip = unary().keep / 2.0**BITS, unary().flip / 2.0**BITS
    for start in range(0, n, _ROWS):
        rows = min(_ROWS, n - start)
        x = rng.choice(K, size=rows, p=truth())
        drawn = rng.random((rows, K), dtype=np.float32)
        bits[start : start + rows] = drawn < np.where(np.arange(K) == x[:, None], keep, flip)
    bits.flush()
