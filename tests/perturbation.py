# SPDX-License-Identifier: Apache-2.0
"""Solvers that return other last digits, as they do on another processor.

`pytest -p tests.perturbation --perturb=SEED` runs any tests of the designer with them.
"""

import random
from collections.abc import Callable

import pytest
from frankly_design.notions.prior import Prior
from frankly_design.optimum.programme import Optimum

Rows = Callable[[Optimum, Prior], list[list[int]]]


def perturbed(original: Rows, seed: int) -> Rows:
    """Return `Optimum.rows` with entries changed by up to 1e-12 and zeros by up to 1e-15 of a row."""

    def rows(optimum: Optimum, prior: Prior) -> list[list[int]]:
        rng = random.Random(seed)  # equal requests have equal digits, as on one processor
        return [
            [
                v + int(v * 1e-12 * (2 * rng.random() - 1))
                if v
                else int(sum(row) * 1e-15 * rng.random())
                for v in row
            ]
            for row in original(optimum, prior)
        ]

    return rows


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --perturb."""
    parser.addoption("--perturb", type=int, metavar="SEED", help="change the solver's last digits")


def pytest_configure(config: pytest.Config) -> None:
    """Change the last digits of all optima of this process."""
    seed = config.getoption("perturb", None)
    if seed is not None:
        Optimum.rows = perturbed(Optimum.rows, seed)  # type: ignore[method-assign, assignment]
