# SPDX-License-Identifier: Apache-2.0
"""Differences between Linux, macOS and Windows: private files, positioned IO, syncs, locks, forks.

Only this module checks which of these functions the system has. It checks for the functions instead
of the system's name, so that tests can remove them (tests/frankly_sdk/test_platform.py).

- Windows has no fork, no pread and pwrite, no close-on-exec flag and no POSIX permissions; files
  are locked by the C library's `locking`.
- On macOS, fsync does not flush the disk's own cache; F_FULLFSYNC does. SQLite uses it for the
  database if the pragma `fullfsync` is set.
"""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_FCNTL, _MSVCRT = _module("fcntl"), _module("msvcrt")
# On Windows, handles are not inherited by default, and files are opened in text mode by default.
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
LARGEST_BYTE = 2**31 - 2
"""The last byte that every system can lock: Windows counts positions in 32 bits."""


def on_fork(
    before: Callable[[], object] | None = None,
    after_in_parent: Callable[[], object] | None = None,
    after_in_child: Callable[[], object] | None = None,
) -> None:
    """Register functions to call around each fork; does nothing on a system without forks."""
    if not hasattr(os, "register_at_fork"):
        return
    hooks = {"before": before, "after_in_parent": after_in_parent, "after_in_child": after_in_child}
    os.register_at_fork(**{name: hook for name, hook in hooks.items() if hook is not None})


def create_private(path: Path) -> None:
    """Create an empty file that no other user can read; raises FileExistsError if there is one.

    Windows has no mode bits: there the file has the permissions of its folder, and the folders of a
    user's profile are private.
    """
    os.close(os.open(path, _FLAGS | os.O_EXCL, 0o600))


def make_private(path: Path) -> None:
    """Remove all other users' access to a file, if the system has mode bits."""
    if hasattr(os, "register_at_fork") and path.stat().st_mode & 0o077:
        path.chmod(0o600)


def open_private(path: Path) -> int:
    """Open a file for locking, creating it if necessary; return its descriptor."""
    return os.open(path, _FLAGS, 0o600)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Read up to `size` bytes from a position; only one thread may use the descriptor."""
    if hasattr(os, "pread"):
        return os.pread(handle, size, offset)
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, size)


def write_at(handle: int, data: bytes, offset: int) -> int:
    """Write bytes at a position and return their number; only one thread may use the descriptor."""
    if hasattr(os, "pwrite"):
        return os.pwrite(handle, data, offset)
    os.lseek(handle, offset, os.SEEK_SET)
    return os.write(handle, data)


def sync(handle: int) -> None:
    """Flush a file to the disk, and the disk's own cache too if the system can."""
    full = getattr(_FCNTL, "F_FULLFSYNC", None)
    if full is not None:
        try:
            _FCNTL.fcntl(handle, full)
        except OSError:
            pass  # some network file systems support only a plain sync
        else:
            return
    os.fsync(handle)


def try_lock(handle: int, byte: int) -> bool:
    """Lock one byte of a file against other processes; returns False if another has it.

    The file may be shorter. A lock ends at `unlock`, at the end of the process, and when the
    process closes any descriptor of the file. A forked child does not inherit it.
    """
    try:
        if _FCNTL is not None:
            _FCNTL.lockf(handle, _FCNTL.LOCK_EX | _FCNTL.LOCK_NB, 1, byte)
        else:
            os.lseek(handle, byte, os.SEEK_SET)
            _MSVCRT.locking(handle, _MSVCRT.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True


def unlock(handle: int, byte: int) -> None:
    """Release a byte locked by this process."""
    if _FCNTL is not None:
        _FCNTL.lockf(handle, _FCNTL.LOCK_UN, 1, byte)
    else:
        os.lseek(handle, byte, os.SEEK_SET)
        _MSVCRT.locking(handle, _MSVCRT.LK_UNLCK, 1)
