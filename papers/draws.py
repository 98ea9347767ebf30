# SPDX-License-Identifier: Apache-2.0
"""Pseudo-random distributions from SHAKE-256 of a seed text: the same in every run and on every machine.

They do not depend on the version of a random generator, and draw i does not depend on the number of draws.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from frankly_design.notions.prior import Prior
from numpy.typing import NDArray
from scipy.special import ndtri

FloatArray = NDArray[np.float64]
_TOTAL = 10**9


def uniforms(seed: str, count: int) -> FloatArray:
    """Return numbers in (0, 1) with 53 bits, shape (count,): SHAKE-256 of the seed, eight bytes each."""
    raw = np.frombuffer(hashlib.shake_256(seed.encode()).digest(8 * count), dtype="<u8")
    return np.asarray(((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def normalised(secrets: int, answers: int, seed: str, draws: int) -> Iterator[Prior]:
    """Yield priors with cells uniform in (0, 1), normalised to counts of about 10^9 in all, each at least 1."""
    for i in range(draws):
        cells = uniforms(f"{seed}/{i}", secrets * answers).reshape(secrets, answers)
        yield _counted(cells / cells.sum())


def jeffreys(secrets: int, answers: int, seed: str, draws: int) -> Iterator[FloatArray]:
    """Yield distributions from Dirichlet(½, …, ½), shape (secrets, answers): squares of normals, normalised."""
    for i in range(draws):
        squares = ndtri(uniforms(f"{seed}/{i}", secrets * answers)) ** 2
        yield np.asarray(squares / squares.sum()).reshape(secrets, answers)


def jeffreys_priors(secrets: int, answers: int, seed: str, draws: int) -> Iterator[Prior]:
    """Yield the distributions of `jeffreys` as priors: counts of about 10^9 in all, each at least 1."""
    for cells in jeffreys(secrets, answers, seed, draws):
        yield _counted(cells)


def sample(cells: FloatArray, size: int, seed: str) -> list[list[int]]:
    """Return the counts of `size` independent draws from a distribution, as rows of its shape."""
    edges = np.cumsum(cells.ravel())
    drawn = np.searchsorted(edges / edges[-1], uniforms(seed, size), side="right")
    counts = np.bincount(np.minimum(drawn, cells.size - 1), minlength=cells.size)
    return [[int(n) for n in row] for row in counts.reshape(cells.shape)]


def _counted(cells: FloatArray) -> Prior:
    counts = np.maximum(1, np.rint(_TOTAL * cells)).astype(np.int64)
    return Prior.from_rows([[int(n) for n in row] for row in counts])
