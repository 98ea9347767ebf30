# SPDX-License-Identifier: Apache-2.0
"""Order of the tests for several workers: long tests first, each test once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONG, in_turns


def test_every_long_file_exists(root: Path) -> None:
    assert [name for name in LONG if not (root / name).is_file()] == []


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
def test_each_worker_begins_with_its_share_of_long_tests(workers: int) -> None:
    files = [*["tests/a.py"] * 50, LONG[1], LONG[0], LONG[0], *["tests/b.py"] * 18, LONG[2]]
    items: list[Any] = [SimpleNamespace(nodeid=f"{file}::test") for file in files]
    ordered = in_turns(items, workers)
    assert sorted(map(id, ordered)) == sorted(map(id, items))
    starts, at = [], 0
    for worker in range(workers):
        starts.append(ordered[at].nodeid.partition("::")[0])
        at += (len(items) - at) // (workers - worker)
    if workers > 1:
        assert starts[:3] == list(LONG[: min(workers, 3)])
    assert at == len(items)
