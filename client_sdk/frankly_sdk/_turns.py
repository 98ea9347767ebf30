# SPDX-License-Identifier: Apache-2.0
"""Turns: among all threads and processes that use a store, only one sends a report at a time.

A report's turn is a lock of one byte of the file ``STORE-sending``; the byte's number is derived
from the report's random id. Two reports with the same byte only wait for each other.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from frankly_sdk._platform import LARGEST_BYTE, on_fork, open_private, try_lock, unlock

# Seconds between two attempts to lock a byte that another process has locked.
_POLL_S = 0.02


@dataclass(slots=True)
class _File:
    """An open file and the number of its locked bytes."""

    handle: int
    held: int = 0


class _Held:
    """Turns of this process, one descriptor per file: closing a second would drop all locks."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.turns: dict[tuple[Path, int], _File | None] = {}
        self.files: dict[Path, _File] = {}


_held = _Held()


def _forget() -> None:
    # Runs in a forked child: the locks belong to the parent, and another thread may have held the
    # condition.
    global _held  # noqa: PLW0603  one set of turns per process
    _held = _Held()


on_fork(after_in_child=_forget)


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of one store.

    path : absolute path of the store's lock file; created when a report is first sent.
    """

    path: Path

    @classmethod
    def of(cls, store: Path) -> "Turns":
        """Return the turns of a store file."""
        resolved = store.resolve()
        return cls(resolved.with_name(f"{resolved.name}-sending"))

    @contextlib.contextmanager
    def turn(self, report_id: str, patience_s: float) -> Iterator[bool]:
        """Hold a report's turn; yield False if another sender has it throughout `patience_s`.

        The wait is in real time, because the other sender is really sending. If the lock file
        cannot be opened, only the threads of this process exclude each other; the server still
        stores a report only once if two processes send it.
        """
        held, byte = _held, int(report_id, 16) % LARGEST_BYTE
        is_ours = self._take(held, byte, time.monotonic() + patience_s)
        try:
            yield is_ours
        finally:
            if is_ours and held is _held:  # after a fork, the turn is the parent's
                self._release(held, byte)

    def _take(self, held: _Held, byte: int, deadline: float) -> bool:
        turn = (self.path, byte)
        with held.changed:
            while turn in held.turns:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                held.changed.wait(min(left_s, threading.TIMEOUT_MAX))
            file = held.turns[turn] = self._file(held)
        while file is not None and not try_lock(file.handle, byte):
            if time.monotonic() >= deadline:
                self._release(held, byte)
                return False
            time.sleep(_POLL_S)
        return True

    def _file(self, held: _Held) -> _File | None:
        file = held.files.get(self.path)
        if file is None:
            try:
                file = held.files[self.path] = _File(open_private(self.path))
            except OSError:
                return None
        file.held += 1
        return file

    def _release(self, held: _Held, byte: int) -> None:
        with held.changed:
            file = held.turns.pop((self.path, byte))
            if file is not None:
                file.held -= 1
                with contextlib.suppress(OSError):
                    unlock(file.handle, byte)
                if not file.held:
                    del held.files[self.path]
                    os.close(file.handle)
            held.changed.notify_all()
