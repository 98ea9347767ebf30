# SPDX-License-Identifier: Apache-2.0
"""Windows and macOS, simulated by removing functions that they lack and adding functions that they
have.

The simulated Windows has no fcntl, fork hooks, pread, pwrite, close-on-exec flag or mode bits. Its
`msvcrt` locks behave as documented: they lock bytes exclusively, immediately, or raise
PermissionError.
"""

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from frankly_sdk import _platform

WINDOWS = """
import asyncio, fcntl, os, requests, subprocess, sys, types
lockf, posix = fcntl.lockf, (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN)
calls = []
def locking(handle, mode, size):
    calls.append(mode)
    byte = os.lseek(handle, 0, os.SEEK_CUR)
    assert byte < 2**31 - 1
    try:
        lockf(handle, posix[0] if mode == 1 else posix[1], size, byte)
    except OSError:
        raise PermissionError(13, "Permission denied") from None
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=1, LK_UNLCK=0)
sys.modules["fcntl"] = None
for name in ("pread", "pwrite", "register_at_fork", "fork", "O_CLOEXEC"):
    delattr(os, name)
os.O_BINARY = 0
from frankly_sdk import AlreadyAnswered
from frankly_sdk.testing import FakeServer, lose_receipt, make_survey
server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
server.network.then(lose_receipt())
with server.open(sys.argv[1], background=True) as client:
    assert client.answer({"smokes": "yes"}, patience_s=60).status == "sent"
    try:
        client.answer({"smokes": "no"})
    except AlreadyAnswered as before:
        assert before.receipt.status == "sent"
# At least the delivery and the second answer; on a busy machine the background tries once more.
assert calls.count(1) == calls.count(0) >= 2, calls
assert len(server.reports) == 1
assert not any(open(sys.argv[1] + "-journal", "rb").read())
from frankly_sdk._turns import Turns
from pathlib import Path
turns = Turns.of(Path(sys.argv[1]))
with turns.turn("ab" * 16, 0.05) as is_ours:
    print(is_ours)
"""
HOLDER = """
import sys
from pathlib import Path
from frankly_sdk._turns import Turns
with Turns.of(Path(sys.argv[1])).turn("ab" * 16, 5) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.readline()
"""


def test_an_answer_and_a_turn_on_a_simulated_windows(tmp_path: Path) -> None:
    store = str(tmp_path / "s.db")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, store],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    windows = subprocess.run(
        [sys.executable, "-c", WINDOWS, store], capture_output=True, text=True, timeout=60
    )
    holder.communicate("end\n", timeout=60)
    assert (windows.stdout, windows.stderr) == ("False\n", ""), "another process must have the turn"


def test_macos_syncs_past_the_cache_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    fails: list[OSError] = []

    def control(handle: int, command: int) -> None:
        calls.append(command)
        if fails:
            raise fails.pop()

    monkeypatch.setattr(_platform, "_FCNTL", SimpleNamespace(fcntl=control, F_FULLFSYNC=51))
    monkeypatch.setattr(os, "fsync", lambda _handle: calls.append("fsync"))
    _platform.sync(0)
    assert calls == [51]
    fails.append(OSError(errno.ENOTSUP, "not on this file system"))
    _platform.sync(0)
    assert calls == [51, 51, "fsync"]


@pytest.mark.parametrize("missing", [True, False])
def test_positions_are_kept_without_pread(
    missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing:
        monkeypatch.delattr(os, "pread")
        monkeypatch.delattr(os, "pwrite")
    (tmp_path / "file").write_bytes(b"0123456789")
    handle = _platform.open_private(tmp_path / "file")
    assert _platform.read_at(handle, 3, 4) == b"456"
    assert _platform.write_at(handle, b"ab", 8) == 2
    assert _platform.read_at(handle, 99, 7) == b"7ab"
    os.close(handle)


def test_no_other_module_uses_functions_that_a_system_may_lack(root: Path) -> None:
    lacking = ("fcntl", "msvcrt", "os.pread", "os.pwrite", "register_at_fork", "os.fork", "O_CLOEXEC",
               "os.fsync", "getuid", "chmod")  # fmt: skip
    found = {
        (path.name, name)
        for folder in ("client_sdk/frankly_sdk", "shared/frankly_protocol")
        for path in (root / folder).rglob("*.py")
        for name in lacking
        if path.name != "_platform.py" and name in path.read_text("utf-8")
    }
    assert found == set()
