# SPDX-License-Identifier: Apache-2.0
"""Erasure of reports on a device, traced by strace: after the receipt, all bytes of reports are
overwritten.

A place is a byte of a file. A place is erased when it is overwritten; if the file is truncated or
deleted first, the byte stays readable on the disk.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults import traced
from tests.faults.servers import Site, site
from tests.faults.traced import calls

PRELUDE = """
import os, sys
from pathlib import Path
from frankly_sdk import Client, Policy
link, store = sys.argv[1:]
client = Client.open(link, store, Policy(cap="2"), spread_s=0)
"""
ANSWER = """
assert client.answer({"smokes": "yes"}).status == "sent"
"""
MANY = """
rows = [(f"p{i}", {"smokes": "yes"}, {}) for i in range(40)]
assert [row.status for row in client.randomise_many(rows)] == ["sealed"] * 40
assert [receipt.status for receipt in client.flush()] == ["sent"] * 40
"""
KILLED_BEFORE_OVERWRITING = """
from frankly_sdk._database import Database
Database.overwrite_journal = lambda self: os._exit(9)
"""


@dataclass
class Disk:
    """Places that contain a secret after the traced calls, by file."""

    secrets: tuple[bytes, ...] = ()
    held: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    ever: set[str] = field(default_factory=set)
    given_back: list[str] = field(default_factory=list)

    def follow(self, log: Path) -> None:
        """Apply the system calls of one process."""
        for call in calls(log):
            if call.name == "pwrite64":
                self._write(call.path, call.data, call.offset)
            elif call.name in ("write", "writev", "pwritev", "mmap"):
                assert "/s.db" not in call.path, call
            elif call.name in ("ftruncate", "truncate"):
                self._give_back(call.path, int(call.arguments))
            elif call.name in ("unlink", "unlinkat", "rename", "renameat", "renameat2"):
                self._give_back(call.path, 0)

    def _write(self, path: str, data: bytes, offset: int) -> None:
        self.held[path] -= set(range(offset, offset + len(data)))
        for secret in self.secrets:
            start = data.find(secret)
            while start >= 0:
                self.held[path] |= set(range(offset + start, offset + start + len(secret)))
                self.ever.add(Path(path).name)
                start = data.find(secret, start + 1)

    def _give_back(self, path: str, size: int) -> None:
        lost = {place for place in self.held[path] if place >= size}
        self.given_back += [path] if lost else []
        self.held[path] -= lost

    @property
    def remaining(self) -> dict[str, int]:
        """Count the places that still contain a secret, by file."""
        return {Path(path).name: len(places) for path, places in self.held.items() if places}


def run(served: Site, store: Path, log: Path, script: str, *options: str) -> int:
    """Run a script in a process whose writes strace logs to `log`; return its exit code."""
    return traced.run(log, script, served.link, str(store), options=options)


def disk_after(served: Site, *logs: Path) -> Disk:
    """Replay the writes of the processes and locate the ids and symbols of every report sent."""
    bodies = [
        request.partition(b"\r\n\r\n")[2].strip()
        for request in served.requests
        if request.startswith(b"POST")
    ]
    ids = [match[1] for body in bodies if (match := re.search(rb'"id":"([0-9a-f]{32})"', body))]
    disk = Disk(tuple({*bodies, *ids}))
    for log in logs:
        disk.follow(log)
    return disk


@pytest.mark.parametrize(
    "script", [ANSWER, MANY], ids=["one", "forty, each journal with the others' reports"]
)
def test_after_the_receipt_every_place_has_been_overwritten(script: str, tmp_path: Path) -> None:
    with site() as served:
        assert run(served, tmp_path / "s.db", tmp_path / "log", PRELUDE + script) == 0
        disk = disk_after(served, tmp_path / "log")
    assert disk.ever == {"s.db", "s.db-journal"}, "the trace must contain the writes of the report"
    assert (disk.remaining, disk.given_back) == ({}, [])


def test_the_next_start_finishes_the_overwriting(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with site() as served:
        assert (
            run(served, tmp_path / "s.db", first, PRELUDE + KILLED_BEFORE_OVERWRITING + ANSWER) == 9
        )
        before = disk_after(served, first)
        assert run(served, tmp_path / "s.db", second, PRELUDE) == 0
        after = disk_after(served, first, second)
    assert before.remaining.keys() == {"s.db-journal"}, (
        "the report must be in the journal when the process ends"
    )
    assert (after.remaining, after.given_back) == ({}, [])


def test_a_process_killed_at_any_sync_frees_no_place_with_a_report(
    full: bool, tmp_path: Path
) -> None:
    """The next start sends the sealed report and then erases it; a hot journal is overwritten, not
    deleted."""
    with site() as served:
        run(served, tmp_path / "s.db", tmp_path / "log", PRELUDE)
        run(served, tmp_path / "t.db", tmp_path / "log", PRELUDE + ANSWER)
        syncs = (tmp_path / "log").read_text().count("fdatasync(")
    assert syncs > 8
    for point in range(1, syncs + 1) if full else (syncs - 3, syncs - 1):
        store, first, second = (
            tmp_path / f"{point}.{name}" for name in ("s.db", "first", "second")
        )
        with site() as served:
            kill = f"inject=fdatasync:signal=KILL:when={point}"
            assert run(served, store, first, PRELUDE + ANSWER, "-e", kill) != 0
            assert run(served, store, second, PRELUDE + "client.flush()") == 0
            disk = disk_after(served, first, second)
        assert (disk.remaining, disk.given_back) == ({}, []), point
