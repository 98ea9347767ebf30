# SPDX-License-Identifier: Apache-2.0
"""First start of docs/operations.md: root keys are removed from the server only after their copies
have been checked.

A script replaces `docker`: `docker compose run … keys` runs its command on this machine with a
folder instead of the volume, and every image has a different digest. The commands that pin images
use the script too.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.blocks import blocks

DOCKER = """#!/bin/sh
echo "$@" >> "$LOG"
case "$1 $2" in
"compose up" | "compose build" | "compose config" | "pull --quiet") exit 0 ;;
"image inspect") echo "${5%%:*}@sha256:$(printf %s "$5" | sha256sum | cut -c1-64)"; exit 0 ;;
esac
shift 2
while [ "$1" != keys ]; do shift; done
shift
[ $# -eq 0 ] && exec frankly keys init --yes --roots 2
if [ "$1" = sh ]; then exec sh -c "$(printf %s "$3" | sed "s#/var/lib/frankly#$FRANKLY_HOME#g")"; fi
exec $(printf '%s ' "$@" | sed "s#/var/lib/frankly#$FRANKLY_HOME#g")
"""


class Machine:
    """A working folder, the server's volume, and the blocks of the page."""

    def __init__(self, root: Path, folder: Path) -> None:
        """Find the blocks, and put the script `docker` on PATH."""
        page = (root / "docs" / "operations.md").read_text(encoding="utf-8")
        self.copy, self.check, self.remove = [
            block.body for block in blocks(page) if _first_start(block.body)
        ]
        [self.pin] = [block.body for block in blocks(page) if "docker pull" in block.body]
        self.keys, self.here, self.log = folder / "volume" / "keys", folder / "here", folder / "log"
        self.here.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        (programs / "docker").write_text(DOCKER)
        (programs / "docker").chmod(0o755)
        path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {
            **os.environ,
            "PATH": path,
            "FRANKLY_HOME": str(folder / "volume"),
            "LOG": str(self.log),
        }

    def run(self, script: str, place: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a block unchanged; as at a prompt, the lines after a failing line also run."""
        return subprocess.run(
            ["bash", "-c", script],
            cwd=place or self.here,
            env=self._environment,
            capture_output=True,
            text=True,
        )


def _first_start(body: str) -> bool:
    is_restore = "frankly restore" in body  # see test_drills.py
    return body.startswith("sha256sum --check") or ("docker compose run" in body and not is_restore)


@pytest.fixture
def machine(root: Path, tmp_path: Path) -> Machine:
    return Machine(root, tmp_path)


def safe_places(machine: Machine, folder: Path) -> list[Path]:
    """Create two backup folders, each with one key and the list of hashes; return their paths."""
    places = []
    for name in ("root.pem", "root-2.pem"):
        place = folder / name.removesuffix(".pem")
        place.mkdir()
        shutil.copy(machine.here / name, place)
        shutil.copy(machine.here / "root.sha256", place)
        places.append(place)
    return places


def test_keys_are_copied_checked_and_only_then_removed(machine: Machine, tmp_path: Path) -> None:
    assert machine.run(machine.copy).returncode == 0
    originals = {path.name: path.read_bytes() for path in machine.keys.glob("root*.pem")}
    assert originals.keys() == {"root.pem", "root-2.pem"}  # nothing is removed before the check
    assert {path.name: path.read_bytes() for path in machine.here.glob("*.pem")} == originals
    assert all(
        path.stat().st_mode & 0o077 == 0
        for path in [*machine.here.glob("*.pem"), machine.here / ".env"]
    )
    places = safe_places(machine, tmp_path)
    for place, name in zip(places, ("root.pem", "root-2.pem"), strict=True):
        completed = machine.run(machine.check, place)
        assert (completed.returncode, completed.stdout) == (0, f"{name}: OK\n")
    assert machine.run(machine.remove).returncode == 0
    assert [*machine.keys.glob("root*.pem"), *machine.here.glob("*.pem")] == []
    assert machine.log.read_text().splitlines()[-1] == "compose up -d"


def test_a_damaged_copy_of_a_key_fails_the_check(machine: Machine, tmp_path: Path) -> None:
    machine.run(machine.copy)
    place = safe_places(machine, tmp_path)[0]
    for damaged in (b"", (machine.here / "root-2.pem").read_bytes(), None):
        if damaged is None:
            (place / "root.pem").unlink()
        else:
            (place / "root.pem").write_bytes(damaged)
        completed = machine.run(machine.check, place)
        assert completed.returncode != 0, damaged
        assert "OK" not in completed.stdout, damaged


def test_every_image_by_tag_is_pinned_to_its_digest(root: Path, machine: Machine) -> None:
    assert machine.run(machine.copy).returncode == 0
    first_lines = (machine.here / ".env").read_text().splitlines()
    assert machine.run(machine.pin).returncode == 0
    lines = (machine.here / ".env").read_text().splitlines()
    assert lines[: len(first_lines)] == first_lines
    used = (root / "docker-compose.yml").read_text() + (root / "Dockerfile").read_text()
    tags = dict(re.findall(r"\$\{([A-Z]+_IMAGE):-([^}]+)\}", used))
    assert tags.keys() == {"POSTGRES_IMAGE", "CADDY_IMAGE", "DEBIAN_IMAGE"}
    assert f"ARG DEBIAN_IMAGE={tags['DEBIAN_IMAGE']}\n" in used
    # No other image is fetched: every image has a variable, except the one that this repository
    # builds.
    fetched = set(re.findall(r"(?m)^(?:FROM|    image:|  image:) (\S+)", used))
    assert {name for name in fetched if not name.startswith("${")} == {"frankly-server"}
    assert dict(line.split("=", 1) for line in lines[len(first_lines) :]) == {
        name: f"{tag.partition(':')[0]}@sha256:{hashlib.sha256(tag.encode()).hexdigest()}"
        for name, tag in tags.items()
    }
    assert (machine.here / ".env").stat().st_mode & 0o077 == 0
