# SPDX-License-Identifier: Apache-2.0
"""Key files, which must be private, complete, Ed25519 and match their document; others are refused
(bad inputs 51-54)."""

import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from frankly_protocol.clock import FixedClock
from frankly_protocol.envelope import Envelope, SigningKey
from frankly_protocol.errors import InvalidInput
from frankly_protocol.trust.keys import accept_keys
from frankly_server.keys import KeyPlan, Keyring, Rotation, RotationChange, files
from frankly_server.keys.backup_signature import BACKUP_TYPE, signer, signers_of
from frankly_server.keys.keyring import VALIDITY
from frankly_server.store import BackupBroken

from tests.frankly_protocol.samples import NOW
from tests.refusals import refusal


def _keyring(folder: Path) -> Keyring:
    return Keyring(folder, FixedClock(NOW))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def publishers(keyring: Keyring) -> list[str]:
    return [key.public.key_id for key in keyring.publishers()]


def test_init_creates_keys_that_work(tmp_path: Path) -> None:
    keyring = _keyring(tmp_path / "home" / "keys")
    created = keyring.init()
    document = accept_keys(keyring.document(), NOW)
    assert (
        [key.key_id for key in document.publisher.keys]
        == list(created.publisher_ids)
        == publishers(keyring)
    )
    assert [key.key_id for key in document.root.keys] == list(created.root_ids)
    assert (document.version, document.expires) == (1, NOW + VALIDITY)
    assert created.set_aside is None


def test_every_file_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "keys"
    before = os.umask(0)
    try:
        _keyring(folder).init()
    finally:
        os.umask(before)
    names = {"root.pem", "publisher.pem", "log.pem", "keys.json", "keys-1.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert [_mode(path) for path in (folder.parent, folder)] == [0o700, 0o700]
    assert {_mode(path) for path in folder.iterdir()} == {0o600}


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    keyring = _keyring(tmp_path / "keys")
    first = keyring.init()
    assert refusal(InvalidInput, keyring.init).code == "file_exists"
    assert publishers(keyring) == list(first.publisher_ids)
    for number in (1, 2):
        second = keyring.init(force=True)
        assert second.set_aside == tmp_path / f"keys.old-{number}"
        assert publishers(keyring) == list(second.publisher_ids)
    assert publishers(_keyring(tmp_path / "keys.old-1")) == list(first.publisher_ids)


def test_the_root_key_may_be_offline(tmp_path: Path) -> None:
    keyring = _keyring(tmp_path / "keys")
    keyring.init()
    (tmp_path / "keys" / "root.pem").unlink()
    keyring.check()


@pytest.mark.parametrize("step", ["_write", "sync_folder"])
def test_an_interrupted_init_leaves_no_partial_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    keyring = _keyring(tmp_path / "keys")
    first = keyring.init()
    calls: list[Path] = []
    real: Callable[..., None] = getattr(files, step)

    def full_disk(path: Path, *data: bytes) -> None:
        calls.append(path)
        if len(calls) == {"_write": 2, "sync_folder": 1}[step]:
            raise OSError(28, "No space left on device")
        real(path, *data)

    monkeypatch.setattr(files, step, full_disk)
    with pytest.raises(OSError, match="No space"):
        keyring.init(force=True)
    assert publishers(keyring) == list(first.publisher_ids)


def _rsa(*, password: bytes | None = None) -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _encrypted(pem: bytes) -> bytes:
    key = load_pem_private_key(pem, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "missing"),
    "readable by the group": (lambda path: path.chmod(0o640), "chmod 600"),
    "readable by all": (lambda path: path.chmod(0o604), "chmod 600"),
    "rsa": (lambda path: path.write_bytes(_rsa()), "Ed25519"),
    "encrypted": (lambda path: path.write_bytes(_encrypted(path.read_bytes())), "encrypted"),
    "garbage": (lambda path: path.write_bytes(b"\x00garbage"), "not a PEM"),
    "empty": (lambda path: path.write_bytes(b""), "not a PEM"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:60]), "not a PEM"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be read"),
    "another key": (
        lambda path: path.write_bytes(files.to_pem(SigningKey.generate())),
        "does not name",
    ),
    "folder open to others": (lambda path: path.parent.chmod(0o755), "chmod 700"),
    "document damaged": (
        lambda path: (path.parent / "keys.json").write_bytes(b"{}"),
        "cannot be used",
    ),
    "document missing": (lambda path: (path.parent / "keys.json").unlink(), "missing"),
    "document readable by all": (
        lambda path: (path.parent / "keys.json").chmod(0o644),
        "chmod 600",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_unusable_key_files_are_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    keyring = _keyring(tmp_path / "keys")
    keyring.init()
    spoil, message = BAD_FILES[name]
    spoil(tmp_path / "keys" / "publisher.pem")
    with pytest.raises(InvalidInput, match=message) as refused:
        keyring.check()
    assert refused.value.code == "key_file"
    assert str(tmp_path / "keys") in (refused.value.field or "")


def test_expired_keys_are_refused(tmp_path: Path) -> None:
    _keyring(tmp_path / "keys").init()
    later = Keyring(tmp_path / "keys", FixedClock(NOW + VALIDITY + timedelta(days=1)))
    with pytest.raises(InvalidInput, match="valid from"):
        later.check()


def test_signers_of_a_backup_are_found_in_the_version_of_their_keys(tmp_path: Path) -> None:
    """The test includes versions before a rotation; an additional signature by a stranger does not count."""
    clock = FixedClock(NOW)
    keyring = Keyring(tmp_path / "keys", clock)
    keyring.init(plan=KeyPlan(publishers=2))
    first, manifest = keyring.publishers(), b"{}"
    stranger = SigningKey.from_raw(bytes([5]) * 32)
    old = Envelope.seal(BACKUP_TYPE, manifest, [*first, stranger]).to_bytes()
    ids = sorted(key.public.key_id for key in first)
    signers = signers_of(keyring, manifest, old)
    assert (sorted(signers.key_ids), signers.version, signers.newest) == (ids, 1, 1)
    drop = frozenset(ids)
    assert Rotation(keyring, clock).propose(RotationChange(drop=drop, publishers=1)).in_force
    signers = signers_of(keyring, manifest, old)
    assert (sorted(signers.key_ids), signers.version, signers.newest) == (ids, 1, 2)
    signers = signers_of(keyring, manifest, signer(keyring)(manifest))
    assert (signers.version, signers.newest, len(signers.key_ids)) == (2, 2, 1)
    for signature in (None, b"{}", Envelope.seal(BACKUP_TYPE, manifest, [stranger]).to_bytes(),
                      Envelope.seal(BACKUP_TYPE, b"other", first).to_bytes()):  # fmt: skip
        with pytest.raises(BackupBroken):
            signers_of(keyring, manifest, signature)
