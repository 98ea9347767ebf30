# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all; the order of syncs is followed in tests/faults/server/test_order.py."""

import os
from pathlib import Path

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.durable import written_whole


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_appears_with_the_end_of_the_block_and_is_its_owners_alone(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_of_a_block_that_fails_nothing_is_left(
    tmp_path: Path, error: type[BaseException], exists: bool
) -> None:
    """A half-written private key would stay readable for good: nobody knows its name."""
    before = {"key.pem": b"old"} if exists else {}
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error), written_whole(tmp_path / "key.pem", replace=True) as file:
        file.write(b"half of a private k")
        file.flush()
        raise error
    assert files(tmp_path) == before


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_of_a_file_that_cannot_be_finished_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"), written_whole(tmp_path / "key.pem") as file:
        file.write(b"whole")
    assert files(tmp_path) == {}


def test_a_file_that_exists_is_replaced_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(b"old")
    with (
        pytest.raises(InvalidInput, match="--force") as refused,
        written_whole(tmp_path / "key.pem"),
    ):
        raise AssertionError("the block must not begin")
    assert refused.value.code == "file_exists"
    assert files(tmp_path) == {"key.pem": b"old"}
