# SPDX-License-Identifier: Apache-2.0
"""Order of the system calls that write keys, keys documents and backups, traced by strace.

A power cut may remove bytes written to a file after the file's last fsync, and names added to a
folder after the folder's last fsync. Therefore a file may be given its name only when its bytes are
on disk, and every name must be on disk before the next name appears. The keys document, which names
keys, is written last.
"""

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

RUN = """
import shlex, sys
from frankly_server.cli import front
for line in sys.argv[1:]:
    assert front.run(shlex.split(line)) == 0, line
"""
SKIPPED = """
import os, stat
sync = os.fsync
def skip(handle):
    if not stat.{kind}(os.fstat(handle).st_mode):
        sync(handle)
os.fsync = skip
"""
CALLS = (
    "openat,mkdir,write,writev,pwrite64,ftruncate,sendfile,copy_file_range,"
    "fsync,fdatasync,rename,renameat,renameat2"
)
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
QUOTED = re.compile(r'"([^"]*)"')


@dataclass
class Disk:
    """Bytes and names that a power cut could remove after the calls; faults : calls in the wrong order."""

    folder: Path
    unsynced: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    appeared: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def follow(self, log: Path) -> None:
        """Apply the system calls of one process, except those on databases."""
        for line in log.read_text().splitlines():
            call = CALL.match(line)
            if call is None or int(call[3]) < 0 or str(self.folder) not in line or ".db" in line:
                continue
            name, arguments = call[1], call[2]
            quoted = QUOTED.findall(arguments)
            if name == "mkdir" or (name == "openat" and "O_CREAT" in arguments):
                self._name(quoted[0])
            elif name.startswith("rename"):
                self._rename(*quoted)
            elif name in ("fsync", "fdatasync"):
                self._sync(_path_of(arguments))
            elif name != "openat":
                self.unsynced.add(_path_of(arguments))

    def _name(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        self.names[parent].add(name)

    def _sync(self, path: str) -> None:
        self.unsynced.discard(path)
        self.names[path].clear()

    def _rename(self, old: str, new: str) -> None:
        if any(f"{path}/".startswith(f"{old}/") for path in self.unsynced):
            self.faults.append(f"{new}: over bytes that are not on disk")
        if self.names.pop(old, None):
            self.faults.append(f"{new}: over names that are not on disk")
        parent, _, name = old.rpartition("/")
        self.names[parent].discard(name)
        waiting = [name for name in self.names[new.rpartition("/")[0]] if name[0] != "."]
        if waiting:
            self.faults.append(f"{new}: before {waiting} is on disk")
        self._name(new)
        self.appeared.append(Path(new).name)

    def end(self) -> list[str]:
        """Return every fault, including the bytes and names that are not on disk at the end."""
        names = [f"{parent}: {names} not on disk" for parent, names in self.names.items() if names]
        return [*self.faults, *(f"{path}: bytes not on disk" for path in self.unsynced), *names]


def _path_of(arguments: str) -> str:
    """Return the path of the call's file, which strace prints after the descriptor."""
    path = re.search(r"<([^>]*)>", arguments)
    assert path is not None, arguments
    return path[1]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("FRANKLY_HOME", str(home))
    return home


def traced(folder: Path, before: str, *commands: str) -> Disk:
    """Run `frankly` commands in one process under strace, and follow its system calls."""
    strace = shutil.which("strace")
    assert strace is not None, "strace is not installed: apt-get install strace"
    log = folder / "strace"
    command = [
        strace,
        "-f",
        "--seccomp-bpf",
        "-y",
        "-s",
        "0",
        "-e",
        f"trace={CALLS}",
        "-o",
        str(log),
    ]
    completed = subprocess.run(
        [*command, sys.executable, "-c", before + RUN, *commands], capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    disk = Disk(folder)
    disk.follow(log)
    return disk


def test_no_name_appears_before_its_bytes_and_all_are_synced(tmp_path: Path, home: Path) -> None:
    first = traced(tmp_path, "", "keys init --yes")
    # The folder must appear only when it is complete. SQLite, whose calls are ignored, would sync
    # the folder's name later.
    assert (first.end(), first.appeared) == ([], ["keys"])
    later = traced(
        tmp_path,
        "",
        "migrate",
        f"backup create {tmp_path / 'backup.zip'}",
        "keys rotate --publisher --yes",
        f"backup create {tmp_path / 'backup.zip'} --force",
    )
    assert later.end() == []
    [new_key] = (home / "keys").glob("publisher-*.pem")
    # A new key must be on disk before a document names it.
    keys = [new_key.name, "keys-1.json", "keys-2.json", "keys.json"]
    assert later.appeared == ["backup.zip", *keys, "backup.zip"]


@pytest.mark.parametrize(
    ("kind", "fault"), [("S_ISREG", "over bytes that are not"), ("S_ISDIR", "names that are not")]
)
def test_a_missing_fsync_is_detected(tmp_path: Path, home: Path, kind: str, fault: str) -> None:
    disk = traced(tmp_path, SKIPPED.format(kind=kind), "keys init --yes")
    assert disk.appeared == ["keys"]
    assert any(fault in text for text in disk.end()), disk.end()
    assert (home / "keys" / "publisher.pem").is_file()
