# SPDX-License-Identifier: Apache-2.0
"""Atomic file writes: a file is on disk completely or not at all (bad input 52); locks."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def written_whole(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Yield a temporary file that becomes `path` at the end of the block, with mode 0600.

    If the block raises, the temporary file is deleted and `path` stays as it was. Raises
    InvalidInput(file_exists) before writing if `path` exists and `replace` is false.
    """
    if path.exists() and not replace:
        raise InvalidInput(Problem.FILE_EXISTS, "this file exists; --force replaces it", str(path))
    temporary = None
    try:
        # In the same folder, because a rename is atomic only within one file system.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # mode 0600
        temporary = Path(name)
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            # Synced before the rename: otherwise `path` could be an empty file after a power cut.
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_folder(path.parent)
    # BaseException: an interrupt must not leave the temporary file either.
    except BaseException as error:
        # Deletion also fails if the file system has become read-only; the first error is raised.
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        # Errors of write and fsync do not name the file, and callers do not know the temporary
        # name.
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a rename in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file against other threads and processes, creating it if necessary, with mode 0600.

    The OS releases the lock of a killed process. On Windows nobody waits. Raises OSError.
    """
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "w") as lock:
        give_to_owner(path)
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def give_to_owner(path: Path) -> None:
    """Give a file to the owner of its folder, if this process may: an operator may be root.

    Otherwise the server, which runs as another user, could not read the file.
    """
    owner = path.parent.stat()
    with suppress(OSError, AttributeError):
        os.chown(path, owner.st_uid, owner.st_gid)
