# SPDX-License-Identifier: Apache-2.0
"""Erasure of reports on a device, traced by strace: after the receipt, all bytes of reports are
overwritten.

A place is a byte of a file. A place is erased when it is overwritten; if the file is truncated or
deleted first, the byte stays readable on the disk.
"""

import re
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.servers import Site, site

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
CALL = re.compile(r'(\w+)\((?:AT_FDCWD[^,]*, )?(?:\d+<([^>]*)>|"([^"]*)")(?:, (.*))?\) += (-?\d+)')


@dataclass
class Disk:
    """Places that contain a secret after the traced calls, by file."""

    secrets: tuple[bytes, ...] = ()
    held: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    ever: set[str] = field(default_factory=set)
    given_back: list[str] = field(default_factory=list)

    def follow(self, log: Path) -> None:
        """Apply the system calls of one process."""
        for line in log.read_text().splitlines():
            call = CALL.search(line)
            if call is None or int(call[5]) < 0:
                continue
            name, path, content = call[1], _plain(call[2] or call[3]), call[4] or ""
            if name == "pwrite64":
                self._write(path, content)
            elif name in ("write", "writev", "pwritev", "mmap"):
                assert "/s.db" not in path, line
            elif name in ("ftruncate", "truncate"):
                self._give_back(path, int(content))
            elif name in ("unlink", "unlinkat", "rename", "renameat", "renameat2"):
                self._give_back(path, 0)

    def _write(self, path: str, content: str) -> None:
        text, _, place = content.rsplit(", ", 2)
        data, offset = _plain(text.strip('"')).encode("latin-1"), int(place)
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


def _plain(text: str) -> str:
    """Decode bytes that strace prints as \\xNN to characters with the same codes."""
    return (
        bytes.fromhex(text.replace("\\x", "")).decode("latin-1") if text.startswith("\\x") else text
    )


def run(served: Site, store: Path, log: Path, script: str, *options: str) -> int:
    """Run a script in a process whose writes strace logs to `log`; return its exit code."""
    strace = shutil.which("strace")
    assert strace is not None, "strace is not installed: apt-get install strace"
    calls = "trace=pwrite64,write,writev,pwritev,ftruncate,truncate,unlink,unlinkat,rename,renameat,renameat2,fdatasync"
    traced = [strace, "-f", "-y", "-xx", "-s", "300000", "-e", calls, *options, "-o", str(log)]
    completed = subprocess.run(
        [*traced, sys.executable, "-c", script, served.link, str(store)],
        capture_output=True,
        text=True,
    )
    assert completed.returncode in (0, 9, -signal.SIGKILL, 128 + signal.SIGKILL), completed.stderr
    return completed.returncode


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
