# SPDX-License-Identifier: Apache-2.0
"""Durability of the server's files (keys, keys document, backups): contents are on disk before
their names."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from frankly_protocol.clock import SystemClock
from frankly_protocol.errors import InvalidInput
from frankly_server.keys import Keyring, durable
from frankly_server.keys.durable import written_whole

Events = list[tuple[str, str]]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Events:
    """The fsync and rename calls of this process, with paths, in order."""
    recorded: Events = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def synced(descriptor: int) -> None:
        recorded.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    for name, call in (("rename", rename), ("replace", replace)):

        def renamed(source: str, target: str, call: object = call, **more: object) -> None:
            recorded.append(("rename", f"{source} {target}"))
            call(source, target, **more)  # type: ignore[operator]

        monkeypatch.setattr(os, name, renamed)
    return recorded


def assert_durable(events: Events, target: Path) -> None:
    """Check that the file renamed to `target` was synced before, and its folder afterwards."""
    places = [
        i
        for i, (kind, paths) in enumerate(events)
        if kind == "rename" and paths.endswith(f" {target}")
    ]
    assert places
    for place in places:
        source = events[place][1].partition(" ")[0]
        assert ("sync", source) in events[:place], "the file or folder itself must be synced first"
        assert ("sync", str(target.parent)) in events[place:], (
            "the new name must be synced afterwards"
        )


def test_a_file_is_synced_before_its_name_and_the_folder_after(
    tmp_path: Path, events: Events
) -> None:
    with written_whole(tmp_path / "b.zip") as file:
        file.write(b"whole")
    assert (tmp_path / "b.zip").read_bytes() == b"whole"
    assert_durable(events, tmp_path / "b.zip")


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_file_that_fails_leaves_nothing(tmp_path: Path, fault: type[BaseException]) -> None:
    (tmp_path / "b.zip").write_bytes(b"before")
    with pytest.raises(fault), written_whole(tmp_path / "b.zip", replace=True) as file:
        file.write(b"half")
        raise fault
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]
    assert (tmp_path / "b.zip").read_bytes() == b"before"


def test_keys_are_synced_file_by_file_before_their_folder_has_its_name(
    tmp_path: Path, events: Events
) -> None:
    folder = tmp_path / "keys"
    Keyring(folder, SystemClock()).init()
    assert_durable(events, folder)
    before = {
        Path(path).name
        for kind, path in events[: events.index(next(e for e in events if e[0] == "rename"))]
    }
    assert {path.name for path in folder.iterdir()} <= before


def test_an_error_after_the_rename_is_raised_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary file has already been renamed, so its absence must not be reported as the error."""

    def fail(_folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable, "sync_folder", fail)
    with pytest.raises(OSError, match="Input/output"), written_whole(tmp_path / "b.zip") as file:
        file.write(b"whole")


def test_no_file_stays_open(tmp_path: Path) -> None:
    """A server that runs for months writes thousands of files."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with written_whole(tmp_path / "b.zip", replace=True) as file:
            file.write(b"whole")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(b"before")
    with pytest.raises(InvalidInput) as caught, written_whole(tmp_path / "b.zip"):
        raise AssertionError("nothing may be written")
    assert (caught.value.code, caught.value.field) == ("file_exists", str(tmp_path / "b.zip"))
    assert (tmp_path / "b.zip").read_bytes() == b"before"


def test_a_file_appears_at_the_end_of_the_block_with_mode_0600(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with written_whole(tmp_path / "key.pem") as file:
            file.write(b"whole")
            [half] = tmp_path.iterdir()
            assert half.name != "key.pem"
            assert half.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)
    assert files(tmp_path) == {"key.pem": b"whole"}
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_an_unfinished_file_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"), written_whole(tmp_path / "key.pem") as file:
        file.write(b"whole")
    assert files(tmp_path) == {}


def test_a_lock_makes_others_wait_and_is_private(tmp_path: Path) -> None:
    order = []
    with ThreadPoolExecutor(1) as threads:

        def second() -> None:
            with durable.locked(tmp_path / "lock"):
                order.append("second")

        with durable.locked(tmp_path / "lock"):
            waiting = threads.submit(second)
            time.sleep(0.1)
            order.append("first")
        waiting.result(timeout=60)
    assert order == ["first", "second"]
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_system_without_locks_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "fcntl", None)
    with durable.locked(tmp_path / "lock"), durable.locked(tmp_path / "lock"):
        pass
