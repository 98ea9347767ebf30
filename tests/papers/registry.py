# SPDX-License-Identifier: Apache-2.0
"""Registry of the papers' claims and the tests that show them: a decorator and a table.

`claims` has the statement and verdict of each claim; `python -m tests.papers` prints them as a
page.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

import tests.papers

Test = TypeVar("Test", bound=Callable[..., None])

CLAIMS: dict[str, list[str]] = {}
"""Claim ("Thesis Thm 6.2") -> the tests that show it."""


def paper(*claims: str) -> Callable[[Test], Test]:
    """Register a test for claims, which are named by paper and place as in docs/maths/coverage.md."""

    def register(test: Test) -> Test:
        for claim in claims:
            CLAIMS.setdefault(claim, []).append(
                f"{test.__module__.rpartition('.')[2]}::{test.__name__}"
            )
        return test

    return register


def collect() -> dict[str, list[str]]:
    """Import every test module of this folder and return the claims."""
    for module in pkgutil.iter_modules(tests.papers.__path__):
        if module.name.startswith("test_"):
            importlib.import_module(f"tests.papers.{module.name}")
    return CLAIMS
