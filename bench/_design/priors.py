# SPDX-License-Identifier: Apache-2.0
"""Random priors with fixed seeds, the same in every run."""

from collections.abc import Iterator

import numpy as np
from frankly_design.notions.prior import Prior

_TOTAL = 10**9


def dirichlet(secrets: int, answers: int, seed: int) -> Iterator[Prior]:
    """Yield priors drawn uniformly from the simplex of all cells: counts ≥ 1, about 10^9 in all."""
    generator = np.random.default_rng(seed)
    while True:
        cells = generator.dirichlet(np.ones(secrets * answers)).reshape(secrets, answers)
        yield Prior.from_rows(np.maximum(1, np.rint(_TOTAL * cells)).astype(int).tolist())
