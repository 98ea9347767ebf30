# SPDX-License-Identifier: Apache-2.0
"""Command `frankly keys status`: the state of every key, and remarks only in the states that they
describe."""

from datetime import timedelta
from pathlib import Path

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.envelope import SigningKey
from frankly_server.keys import KeyPlan, Keyring, Rotation, RotationChange, status
from frankly_server.keys.keyring import VALIDITY

from tests.frankly_protocol.samples import NOW

CLOCK = FixedClock(NOW)
WITNESS = SigningKey.from_raw(bytes([9]) * 32).public
EXPIRED, SOON = "these keys have expired", "these keys expire in"
ROOT, WAITS, UNWATCHED = "a root key is in this folder", "a new version waits", "no witness watches"


def made(folder: Path) -> Keyring:
    keyring = Keyring(folder / "keys", CLOCK)
    keyring.init(plan=KeyPlan(roots=2, root_threshold=2, publishers=2))
    return keyring


def remarks(keyring: Keyring, clock: FixedClock = CLOCK) -> list[str]:
    every = (EXPIRED, SOON, ROOT, WAITS, UNWATCHED)
    found = status(keyring, clock).remarks
    assert all(any(text.startswith(one) for one in every) for text in found)
    return [one for one in every if any(text.startswith(one) for text in found)]


@pytest.mark.parametrize(
    ("days", "expected"),
    [(61, []), (60, []), (59, [SOON]), (1, [SOON]), (0, [SOON]), (-1, [EXPIRED]), (-9, [EXPIRED])],
)
def test_the_expiry_is_announced_sixty_days_before(
    tmp_path: Path, days: int, expected: list[str]
) -> None:
    late = FixedClock(NOW + VALIDITY - timedelta(days=days))
    assert remarks(made(tmp_path), late) == [*expected, ROOT, UNWATCHED]
    if expected == [SOON]:
        assert any(f"expire in {days} days" in text for text in status(made(tmp_path / "b"), late).remarks)  # fmt: skip


def test_each_remark_ends_with_its_reason(tmp_path: Path) -> None:
    keyring = made(tmp_path)
    first, second = keyring.key_files("root.pem")
    sticks = [first.rename(tmp_path / "1.pem"), second.rename(tmp_path / "2.pem")]
    assert remarks(keyring) == [UNWATCHED]
    change = RotationChange(witnesses=(("w.example", WITNESS),))
    Rotation(keyring, CLOCK, sticks[:1]).propose(change)
    assert (remarks(keyring), status(keyring, CLOCK).pending) == ([WAITS, UNWATCHED], 2)
    assert [(line.role, line.name, line.here) for line in status(keyring, CLOCK).keys if line.state == "next"] == [
        ("witness", "w.example", None)
    ]  # fmt: skip
    assert Rotation(keyring, CLOCK, sticks[1:]).sign().in_force
    assert (remarks(keyring), status(keyring, CLOCK).pending) == ([], None)


def test_keys_are_listed_by_role_with_their_files(tmp_path: Path) -> None:
    keyring = made(tmp_path)
    roots = keyring.key_files("root.pem")
    roots[0].rename(tmp_path / "stick.pem")
    state = status(keyring, CLOCK)
    assert {line.state for line in state.keys} == {"in force"}
    assert sorted((line.role, line.here) for line in state.keys) == [
        ("log", True), ("publisher", True), ("publisher", True), ("root", False), ("root", True),
    ]  # fmt: skip
    assert state.thresholds == {"root": 2, "publisher": 1, "witness": 0}
    publisher = next(line.key_id for line in state.keys if line.role == "publisher")
    roots[1].rename(tmp_path / "other.pem")
    sticks = [tmp_path / "stick.pem", tmp_path / "other.pem"]
    Rotation(keyring, CLOCK, sticks).propose(RotationChange(drop=frozenset({publisher})))
    retired = [line for line in status(keyring, CLOCK).keys if line.state == "retired"]
    assert [(line.role, line.key_id, line.here) for line in retired] == [("publisher", publisher, True)]  # fmt: skip
    Rotation(keyring, CLOCK, sticks).propose(RotationChange(log=True))
    roles = [line.role for line in status(keyring, CLOCK).keys if line.state == "retired"]
    assert roles == ["publisher", "log"]
