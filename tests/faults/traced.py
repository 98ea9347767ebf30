# SPDX-License-Identifier: Apache-2.0
"""System calls of a process on its files, logged by strace."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WRITES = (
    "trace=pwrite64,write,writev,pwritev,ftruncate,truncate,unlink,unlinkat,rename,renameat,renameat2,"
    "fdatasync,openat"
)
_CALL = re.compile(r'(\w+)\((?:AT_FDCWD[^,]*, )?(?:\d+<([^>]*)>|"([^"]*)")(?:, (.*))?\) += (-?\d+)')


class Call(NamedTuple):
    """A call that succeeded: its name, the file, and the further arguments as strace prints them."""

    name: str
    path: str
    arguments: str

    @property
    def data(self) -> bytes:
        """The bytes that `write` or `pwrite64` writes."""
        return plain(self.arguments.split(", ")[0].strip('"')).encode("latin-1")

    @property
    def offset(self) -> int:
        """Where `pwrite64` writes them."""
        return int(self.arguments.rsplit(", ", 1)[1])


def run(log: Path, script: str, *arguments: str, options: tuple[str, ...] = ()) -> int:
    """Run a script in a process whose calls strace logs to `log`; return its exit code.

    options : further options of strace.
    """
    strace = shutil.which("strace")
    assert strace is not None, "strace is not installed: apt-get install strace"
    # The filter stops the process at these calls alone; with it, a fault was not always injected.
    filtering = () if options else ("--seccomp-bpf",)
    tracing = [strace, "-f", *filtering, "-y", "-xx", "-s", "300000", "-e", WRITES, *options]
    completed = subprocess.run(
        [*tracing, "-o", str(log), sys.executable, "-c", script, *arguments],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode in (0, 9, -9, 137), completed.stderr
    return completed.returncode


def calls(log: Path) -> Iterator[Call]:
    """Yield the calls of one process that succeeded."""
    for line in log.read_text().splitlines():
        call = _CALL.search(line)
        if call is not None and int(call[5]) >= 0:
            yield Call(call[1], plain(call[2] or call[3]), call[4] or "")


def plain(text: str) -> str:
    r"""Decode bytes that strace prints as \xNN to characters with the same codes."""
    return (
        bytes.fromhex(text.replace("\\x", "")).decode("latin-1") if text.startswith("\\x") else text
    )
