# SPDX-License-Identifier: Apache-2.0
"""Key ceremonies on disk: versions form a chain, on one machine or several, despite interruptions."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.envelope import SigningKey
from frankly_protocol.errors import InvalidInput
from frankly_protocol.trust import KeysDocument, KnownKeys, prove_chain, write_chain
from frankly_server.keys import KeyPlan, Keyring, Rotation, RotationChange, rotation, status

from tests.frankly_protocol.samples import NOW, sealed_keys
from tests.refusals import refusal

CLOCK = FixedClock(NOW)
PASSPHRASE = b"correct horse battery"
WITNESS = SigningKey.from_raw(bytes([9]) * 32).public


def made(folder: Path, passphrase: bytes | None = None, **plan: int) -> Keyring:
    keyring = Keyring(folder / "keys", CLOCK)
    keyring.init(plan=KeyPlan(**plan), passphrase=passphrase)
    return keyring


def newest(keyring: Keyring, first: bytes) -> KeysDocument:
    """Return the newest keys, verified by a device that has only the first keys."""
    return prove_chain(keyring.chain(), KnownKeys.shipped(first), NOW).keys


def ids(keyring: Keyring, role: str) -> list[str]:
    return [
        line.key_id
        for line in status(keyring, CLOCK).keys
        if line.role == role and line.state == "in force"
    ]


CHANGES: dict[str, Callable[[Keyring], RotationChange]] = {
    "nothing but the expiry": lambda k: RotationChange(validity=timedelta(days=10)),
    "publisher": lambda k: RotationChange(drop=frozenset(ids(k, "publisher"))),
    "one more publisher, both must sign": lambda k: RotationChange(publishers=1, publisher_threshold=2),
    "root": lambda k: RotationChange(drop=frozenset(ids(k, "root"))),
    "two more roots, two of three must sign": lambda k: RotationChange(roots=2, root_threshold=2),
    "log": lambda k: RotationChange(log=True),
    "revoked log": lambda k: RotationChange(drop=frozenset(ids(k, "log"))),
    "a witness": lambda k: RotationChange(witnesses=(("w.example", WITNESS),)),
    "everything": lambda k: RotationChange(drop=frozenset(ids(k, "root") + ids(k, "publisher")), log=True,
                                   witnesses=(("w.example", WITNESS),)),
}  # fmt: skip


@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("first", ["everything", "two more roots, two of three must sign"])
def test_devices_follow_any_two_changes_and_the_server_continues(
    tmp_path: Path, first: str, second: str
) -> None:
    keyring = made(tmp_path)
    document_before = keyring.document()
    for version, name in ((2, first), (3, second)):
        result = Rotation(keyring, CLOCK).propose(CHANGES[name](keyring))
        assert (result.in_force, result.document.version) == (True, version)
        assert newest(keyring, document_before) == result.document == keyring.trusted()
        keyring.check()
    assert len(keyring.chain()) == 3
    assert keyring.document(1) == document_before
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "keys").iterdir())


def test_roots_on_two_sticks_sign_one_after_the_other(tmp_path: Path) -> None:
    keyring = made(tmp_path, PASSPHRASE, roots=3, root_threshold=2)
    first = keyring.document()
    sticks = []
    for path in keyring.key_files("root.pem"):
        sticks.append(tmp_path / path.name)
        path.rename(sticks[-1])
    with pytest.raises(InvalidInput, match="no root key"):
        Rotation(keyring, CLOCK).propose(RotationChange(publishers=1))
    with pytest.raises(InvalidInput, match="encrypted"):
        Rotation(keyring, CLOCK, sticks[:1]).propose(RotationChange(publishers=1))
    waiting = Rotation(keyring, CLOCK, sticks[:1], PASSPHRASE).propose(
        RotationChange(drop=frozenset(ids(keyring, "publisher")))
    )
    assert (waiting.in_force, waiting.old_missing, waiting.new_missing) == (False, 1, 1)
    assert keyring.document() == first
    assert status(keyring, CLOCK).pending == 2
    assert [line.state for line in status(keyring, CLOCK).keys if line.role == "publisher"] == [
        "in force",
        "next",
    ]
    again = Rotation(keyring, CLOCK, sticks[:1], PASSPHRASE).sign()
    assert (again.in_force, again.old_missing) == (False, 1)
    result = Rotation(keyring, CLOCK, sticks[2:], PASSPHRASE).sign()
    assert result.in_force
    assert newest(keyring, first) == result.document
    assert status(keyring, CLOCK).pending is None
    with pytest.raises(InvalidInput, match="no new version waits"):
        Rotation(keyring, CLOCK, sticks[2:], PASSPHRASE).sign()


def test_no_step_is_done_in_a_folder_that_others_may_enter(tmp_path: Path) -> None:
    """A ceremony writes private keys to the folder, and file modes do not protect an open folder."""
    keyring = made(tmp_path, roots=2, root_threshold=2)
    _, other = keyring.key_files("root.pem")
    other.rename(tmp_path / "stick.pem")
    steps = Rotation(keyring, CLOCK)
    assert not steps.propose(RotationChange(publishers=1)).in_force
    (tmp_path / "stick.pem").rename(other)
    keyring.folder.chmod(0o750)
    before = sorted(path.name for path in keyring.folder.iterdir())
    for step in (steps.sign, lambda: steps.propose(RotationChange(publishers=1))):
        with pytest.raises(InvalidInput, match="chmod 700"):
            step()
    assert sorted(path.name for path in keyring.folder.iterdir()) == before
    keyring.folder.chmod(0o700)
    assert steps.sign().in_force


def test_new_roots_sign_together_with_the_old_roots(tmp_path: Path) -> None:
    keyring = made(tmp_path)
    first = keyring.document()
    (old,) = keyring.key_files("root.pem")
    old.rename(tmp_path / "stick.pem")
    result = Rotation(keyring, CLOCK, [tmp_path / "stick.pem"]).propose(
        RotationChange(drop=frozenset(ids(keyring, "root")))
    )
    assert result.in_force
    assert len(keyring.key_files("root.pem")) == 1
    assert Rotation(keyring, CLOCK).propose(RotationChange()).in_force
    assert newest(keyring, first).version == 3


@pytest.mark.parametrize("step", range(1, 6))
def test_an_interrupted_rotation_leaves_the_old_version_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    keyring = made(tmp_path)
    first = keyring.document()
    calls = 0
    real = rotation._write

    def failing(path: Path, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(rotation, "_write", failing)
    change = RotationChange(drop=frozenset(ids(keyring, "publisher") + ids(keyring, "root")))
    with pytest.raises(OSError, match="space"):
        Rotation(keyring, CLOCK).propose(change)
    keyring.check()
    assert keyring.document() == first
    monkeypatch.undo()
    assert Rotation(keyring, CLOCK).propose(change).in_force
    assert newest(keyring, first).version == 2
    keyring.check()


def test_expired_keys_can_be_renewed(tmp_path: Path) -> None:
    keyring = made(tmp_path)
    first, late = keyring.document(), FixedClock(NOW + timedelta(days=3000))
    with pytest.raises(InvalidInput, match="valid from"):
        Keyring(tmp_path / "keys", late).check()
    assert any("expired" in remark for remark in status(keyring, late).remarks)
    Rotation(keyring, late).propose(RotationChange())
    Keyring(tmp_path / "keys", late).check()
    assert prove_chain(keyring.chain(), KnownKeys.shipped(first), late.at).keys.version == 2


REFUSED: dict[str, tuple[RotationChange, str, str]] = {
    "an unknown key": (RotationChange(drop=frozenset({"00" * 32})), "not_found", "key"),
    "a threshold out of reach": (RotationChange(root_threshold=2), "field_type", "threshold"),
    "too many keys": (RotationChange(publishers=40), "field_type", "publisher.keys"),
    "a witness with an invalid name": (RotationChange(witnesses=(("a b", WITNESS),)), "field_type",
        "log.witnesses[0].name"),
    "two witnesses of one key": (RotationChange(witnesses=(("a", WITNESS), ("b", WITNESS))), "field_type",
        "log.witnesses"),
    "more witnesses needed than there are": (
        RotationChange(witnesses=(("a", WITNESS),), witness_threshold=2), "field_type", "log.threshold"),
    "no validity": (RotationChange(validity=timedelta(0)), "field_type", "expires"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_change_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    keyring = made(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "keys").iterdir()}
    change, code, field = REFUSED[name]
    refused = refusal(InvalidInput, Rotation(keyring, CLOCK).propose, change)
    assert (refused.code, refused.field) == (code, field)
    assert {path.name: path.read_bytes() for path in (tmp_path / "keys").iterdir()} == before


@pytest.mark.parametrize("passphrase", [b"", b"short", b"x" * 1024])
def test_a_passphrase_is_neither_too_short_nor_too_long(tmp_path: Path, passphrase: bytes) -> None:
    assert refusal(InvalidInput, made, tmp_path, passphrase).code == "key_file"
    assert not (tmp_path / "keys").exists()


def test_an_encrypted_root_opens_with_its_passphrase_only(tmp_path: Path) -> None:
    keyring = made(tmp_path, PASSPHRASE)
    keyring.check()
    (path,) = keyring.key_files("root.pem")
    assert b"ENCRYPTED" in path.read_bytes()
    for passphrase in (None, b"another passphrase"):
        with pytest.raises(InvalidInput) as refused:
            Rotation(keyring, CLOCK, (), passphrase).propose(RotationChange())
        assert refused.value.code == "key_file"
    assert (
        Rotation(keyring, CLOCK, (), PASSPHRASE)
        .propose(RotationChange(drop=frozenset(ids(keyring, "root"))))
        .in_force
    )
    assert all(b"ENCRYPTED" in path.read_bytes() for path in keyring.key_files("root.pem"))


@pytest.mark.parametrize(
    "plan", [{"roots": 0}, {"roots": 33}, {"root_threshold": 2}, {"publisher_threshold": 0}]
)
def test_a_plan_needs_as_many_keys_as_must_sign(tmp_path: Path, plan: dict[str, Any]) -> None:
    assert refusal(InvalidInput, made, tmp_path, **plan).code == "key_file"


def test_two_publishers_sign_together(tmp_path: Path) -> None:
    keyring = made(tmp_path, publishers=3, publisher_threshold=2)
    assert len(keyring.publishers()) == 3
    files = keyring.key_files("publisher.pem")
    files[0].unlink()
    assert len(keyring.publishers()) == 2
    files[1].unlink()
    with pytest.raises(InvalidInput, match="1 of the 2 needed"):
        keyring.check()


def grown(folder: Path, versions: int) -> Keyring:
    """Return a keyring at this version; older versions are generated directly, because ceremonies
    take long."""
    keyring = made(folder)
    root = keyring.private_keys("root.pem")
    document = keyring.trusted()
    for version in range(2, versions + 1):
        data = sealed_keys(replace(document, version=version), *root)
        for name in (f"keys-{version}.json", "keys.json"):
            (folder / "keys" / name).write_bytes(data)
            (folder / "keys" / name).chmod(0o600)
    return keyring


def test_the_longest_chain_is_served_completely_and_nothing_follows_it(tmp_path: Path) -> None:
    keyring = grown(tmp_path, 1023)
    first = keyring.document(1)
    assert Rotation(keyring, CLOCK).propose(RotationChange()).in_force
    assert (newest(keyring, first).version, len(keyring.chain())) == (1024, 1024)
    before = sorted((tmp_path / "keys").iterdir())
    with pytest.raises(
        InvalidInput, match="begin a new one with `frankly keys init --force`"
    ) as refused:
        Rotation(keyring, CLOCK).propose(RotationChange(publishers=1))
    assert refused.value.code == "key_file"
    assert sorted((tmp_path / "keys").iterdir()) == before
    assert any("100 %" in remark for remark in status(keyring, CLOCK).remarks)


@pytest.mark.parametrize(("versions", "warns"), [(895, False), (896, True)])
def test_an_operator_is_warned_of_a_chain_that_is_nearly_full(
    tmp_path: Path, versions: int, warns: bool
) -> None:
    keyring = grown(tmp_path, versions)
    assert any("maximum length" in remark for remark in status(keyring, CLOCK).remarks) is warns


def test_large_versions_fill_a_chain_sooner(tmp_path: Path) -> None:
    keyring = made(tmp_path)
    witnesses = tuple((chr(0x10000 + i) * 255, SigningKey.generate().public) for i in range(32))
    Rotation(keyring, CLOCK).propose(RotationChange(witnesses=witnesses))
    size = len(write_chain(keyring.chain()[1:]))
    document, root = keyring.trusted(), keyring.private_keys("root.pem")
    while keyring.chain_used() < 1:
        document = replace(document, version=document.version + 1)
        data = sealed_keys(document, *root)
        for name in (f"keys-{document.version}.json", "keys.json"):
            (tmp_path / "keys" / name).write_bytes(data)
            (tmp_path / "keys" / name).chmod(0o600)
    assert (
        4 * 2**20 - 128 * 2**10
        <= len(write_chain(keyring.chain()))
        <= 4 * 2**20 - 128 * 2**10 + size
    )
    with pytest.raises(InvalidInput, match="no chain of keys longer"):
        Rotation(keyring, CLOCK).propose(RotationChange())


def test_a_ceremony_needs_no_older_versions_in_its_folder(tmp_path: Path) -> None:
    keyring = grown(tmp_path, 3)
    for version in (1, 2):
        (tmp_path / "keys" / f"keys-{version}.json").unlink()
    assert status(keyring, CLOCK).version == 3
    assert Rotation(keyring, CLOCK).propose(RotationChange()).in_force
    with pytest.raises(InvalidInput, match="no version 1"):
        keyring.chain()


def test_keys_without_a_log_get_one_when_it_is_wanted_or_a_witness_comes() -> None:
    for change, has_log in (
        (RotationChange(), False),
        (RotationChange(log=True), True),
        (RotationChange(witnesses=(("w.example", WITNESS),)), True),
    ):
        log = rotation._log(None, change, lambda: SigningKey.from_raw(bytes([7]) * 32).public)
        assert (log is not None) is has_log


def test_a_proposal_that_was_overtaken_is_not_signed(tmp_path: Path) -> None:
    """The proposal's version is already in force, so the proposal does not follow the newest version."""
    keyring = made(tmp_path, roots=2, root_threshold=2)
    sticks = [path.rename(tmp_path / path.name) for path in keyring.key_files("root.pem")]
    assert not Rotation(keyring, CLOCK, sticks[:1]).propose(RotationChange()).in_force
    pending = keyring.folder / rotation.PENDING
    before = pending.read_bytes()
    assert Rotation(keyring, CLOCK, sticks[1:]).sign().in_force
    descriptor = os.open(pending, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, before)
    os.close(descriptor)
    with pytest.raises(InvalidInput, match="does not follow the version in force"):
        Rotation(keyring, CLOCK, sticks).sign()
    assert keyring.trusted().version == 2
