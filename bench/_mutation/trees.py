# SPDX-License-Identifier: Apache-2.0
"""Copies of the repository, one for each process, each with one mutant at a time."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _mutation.mutant import Mutant

_IGNORED = shutil.ignore_patterns(
    ".git",
    ".venv",
    "node_modules",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    ".mutation",
    "site",
    "*.db",
)
_writes = itertools.count(1)


@contextmanager
def copies(root: Path, count: int) -> Iterator[list[Path]]:
    """Copy the repository `count` times into a temporary folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        trees = [Path(folder) / f"tree{i}" for i in range(count)]
        for tree in trees:
            shutil.copytree(root, tree, ignore=_IGNORED)
        yield trees


def write(tree: Path, mutant: Mutant) -> None:
    """Write a mutant into a tree."""
    path = tree / mutant.path
    _replace(path, mutant.apply(path.read_bytes()))


def restore(root: Path, tree: Path, mutant: Mutant) -> None:
    """Restore the original file."""
    _replace(tree / mutant.path, (root / mutant.path).read_bytes())


def _replace(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    # Python considers a compiled file current if time (in whole seconds) and size agree. Many
    # mutants have the size of the original, so every write gets a different time.
    time = 1_000_000_000 + next(_writes)
    os.utime(path, (time, time))
