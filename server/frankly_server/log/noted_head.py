# SPDX-License-Identifier: Apache-2.0
"""Noted head: size and root of the log's last head, kept in the key folder, apart from the database.

A server with the right keys on an empty, older or other database would show a shorter log or
another one, which devices and witnesses refuse. The noted head reveals this before the start.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from frankly_protocol import canonical
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust import Tree
from frankly_protocol.trust.merkle import HASH_BYTES

from frankly_server.keys.durable import give_to_owner, locked, written_whole
from frankly_server.keys.files import key_file_problem, read_private

NOTED_HEAD: Final = "log-head.json"
_LOCK: Final = ".log-head.lock"
_WAY_OUT: Final = (
    "set FRANKLY_DATABASE_URL to the right database, or fill an empty one with "
    "`frankly restore FILE`; only if the entries are lost for good, run `frankly migrate --accept-lost-log`"
)


@dataclass(frozen=True, slots=True)
class Head:
    """Number of entries of a log, and its root: 32 bytes."""

    size: int
    root: bytes

    @classmethod
    def of(cls, tree: Tree) -> "Head":
        """Return the head of a tree."""
        return cls(tree.size, tree.root())

    def is_in(self, tree: Tree) -> bool:
        """Return True if the tree begins with the entries of this head."""
        return self.size <= tree.size and tree.root(self.size) == self.root

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return canonical.dumps({"root": self.root.hex(), "size": self.size})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Head":
        """Parse the file. Raises ValueError or DocumentRejected if it is not a noted head."""
        fields: Any = canonical.loads(data)
        if not isinstance(fields, dict) or set(fields) != {"root", "size"}:
            raise ValueError("not a noted head")
        root, size = fields["root"], fields["size"]
        # `type`, because True is an int.
        if type(size) is not int or size < 0 or not isinstance(root, str):
            raise ValueError("not a noted head")
        head = cls(size, bytes.fromhex(root))
        # The comparison also refuses roots of another length, and other spellings of the digits.
        if len(head.root) != HASH_BYTES or head.to_bytes() != data:
            raise ValueError("not a noted head")
        return head


class NotedHead:
    """The noted head in one key folder, which several server processes may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / NOTED_HEAD
        """The file."""
        self._size = 0  # size up to which this process has noted the log

    def read(self) -> Head | None:
        """Return the noted head, None if there is none, as after `frankly keys init`.

        Raises InvalidInput(key_file) if the file is damaged or readable by others.
        """
        if not self.path.exists():
            return None
        try:
            return Head.from_bytes(read_private(self.path))
        except (ValueError, DocumentRejected):
            raise key_file_problem(
                self.path,
                "this is not a noted head of the log: restore the file; or delete it if "
                "FRANKLY_DATABASE_URL names the right database, and the next start writes it again",
            ) from None

    def require_in(self, head: Head, tree: Tree) -> None:
        """Raise InvalidInput(unsafe_setting) unless the tree begins with the entries of `head`."""
        if head.is_in(tree):
            return
        if tree.size == 0:
            found = "the log of this database is empty"
        elif tree.size < head.size:
            found = (
                f"the log of this database has {tree.size} entries: an older or another database"
            )
        else:
            found = f"the log of this database has {tree.size} other entries: another database"
        raise InvalidInput(
            Problem.UNSAFE_SETTING,
            f"{found}; {self.path} notes {head.size} entries, which devices and witnesses may have "
            f"seen; {_WAY_OUT}",
            "FRANKLY_DATABASE_URL",
        )

    def note(self, tree: Tree) -> None:
        """Note the head of a log that has grown; a head is never replaced by a smaller or other one.

        Nothing is raised if the file cannot be written, as in a read-only key folder: the log
        remains available, and `frankly doctor` warns.
        """
        if tree.size <= self._size:
            return
        with suppress(OSError, InvalidInput), locked(self._folder / _LOCK):
            noted = self.read()
            # Otherwise commands on a wrong database would hide it from the next start.
            if noted is None or (noted.size < tree.size and noted.is_in(tree)):
                self._write(Head.of(tree))
            self._size = tree.size

    def accept(self, tree: Tree) -> str | None:
        """Note the head of a log whatever was noted; return a sentence if noted entries are lost.

        Does nothing without a key folder. Raises OSError if the file cannot be written.
        """
        if not self._folder.is_dir():
            return None
        noted, head = None, Head.of(tree)
        with suppress(InvalidInput):  # a damaged file is replaced
            noted = self.read()
        if noted != head:
            with locked(self._folder / _LOCK):
                self._write(head)
        if noted is None or noted.is_in(tree):
            return None
        return (
            f"{noted.size} entries of the log were noted, and this database does not have all of "
            f"them (it has {tree.size}): devices in log mode and witnesses that have seen the missing "
            "ones refuse this log for good."
        )

    @property
    def is_writable(self) -> bool:
        """True if this user may write to the key folder."""
        return os.access(self._folder, os.W_OK)

    def _write(self, head: Head) -> None:
        with written_whole(self.path, replace=True) as file:
            file.write(head.to_bytes())
        give_to_owner(self.path)
