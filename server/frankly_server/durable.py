# SPDX-License-Identifier: Apache-2.0
"""Files that are on disk whole, or not there at all (BAD_INPUTS 52)."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem


@contextmanager
def written_whole(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write; it appears under `path`, mode 0600, once all of it is on disk, and not if the block raises.

    Raises InvalidInput(file_exists) before anything is written if `path` is taken and `replace` is not given.
    """
    if path.exists() and not replace:
        raise InvalidInput(Problem.FILE_EXISTS, "this file exists; --force replaces it", str(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # mode 0600
    made = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        made.rename(path)
        sync_folder(path.parent)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
