# SPDX-License-Identifier: Apache-2.0
"""Small file systems that a test can fill, make read-only, or make fail."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

REFUSED = "this test mounts a disk, which needs root (CAP_SYS_ADMIN)"


@dataclass(frozen=True)
class Disk:
    """A mounted tmpfs."""

    folder: Path

    @property
    def free_bytes(self) -> int:
        """Number of bytes that can still be written."""
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def fill(self, leave_bytes: int = 0) -> None:
        """Fill the disk except for `leave_bytes`, with a file that does not belong to the server."""
        with (self.folder / "filler").open("ab") as filler:
            while (size := self.free_bytes - leave_bytes) > 0:
                # Other processes also write, so the space may already be used.
                with suppress(OSError):
                    os.posix_fallocate(filler.fileno(), filler.seek(0, os.SEEK_END), size)

    def make_room(self) -> None:
        """Remove the file that `fill` wrote."""
        (self.folder / "filler").unlink()

    def set_read_only(self, read_only: bool) -> None:
        """Remount; no file may be open for writing."""
        _run("mount", "-o", "remount,ro" if read_only else "remount,rw", str(self.folder))


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Mount a disk of this size at an existing folder; skip the test if mounting is not permitted."""
    options = f"size={megabytes}m,mode=700"
    try:
        _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(REFUSED)
    try:
        yield Disk(folder)
    finally:
        _unmount(folder)


@dataclass(frozen=True)
class FailingDisk:
    """A mounted ext4 image, which becomes read-only at its first error, as disks on Debian do."""

    folder: Path
    image: Path

    def fail(self) -> None:
        """Make the kernel detect an error, after which it refuses every write, even to open files."""
        device = subprocess.run(
            ["findmnt", "--noheadings", "--output=SOURCE", str(self.folder)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error").write_text("test")

    def repair(self) -> None:
        """Unmount, repair and mount again; nothing may be open on it."""
        _run("umount", str(self.folder))
        # Exit code 1: errors were corrected.
        repaired = subprocess.run(["fsck.ext4", "-p", str(self.image)], capture_output=True)
        assert repaired.returncode == 1, repaired
        self.mount()

    def mount(self) -> None:
        """Mount the image."""
        options = "loop,errors=remount-ro"
        _run("mount", "-t", "ext4", "-o", options, str(self.image), str(self.folder))


@contextmanager
def failing_disk(folder: Path, image: Path) -> Iterator[FailingDisk]:
    """Mount a disk that can fail at an existing folder; skip the test if mounting is not permitted."""
    with image.open("wb") as file:
        file.truncate(32 << 20)
    _run("mkfs.ext4", "-q", "-F", str(image))
    disk = FailingDisk(folder, image)
    try:
        disk.mount()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"{REFUSED} and a loop device")
    try:
        yield disk
    finally:
        _unmount(folder)


def _unmount(folder: Path) -> None:
    # --lazy: a process that the test has killed may still be closing its files.
    _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
