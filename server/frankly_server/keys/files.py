# SPDX-License-Identifier: Apache-2.0
"""Key files on disk: readable only by their owner, written atomically."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from frankly_protocol.envelope import SigningKey
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.keys.durable import sync_folder

_GROUP_AND_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MAX_FILE_BYTES: Final = 1 << 20
MIN_PASSPHRASE: Final = 12
_MAX_PASSPHRASE: Final = 1023  # longest passphrase that PKCS #8 encryption accepts


def key_file_problem(path: Path, detail: str) -> InvalidInput:
    """Return the error for a key file that cannot be used."""
    return InvalidInput(Problem.KEY_FILE, detail, str(path))


def to_pem(key: SigningKey, passphrase: bytes | None = None) -> bytes:
    """Return a private key as PKCS #8 PEM, encrypted if there is a passphrase.

    Raises InvalidInput(key_file) for a passphrase of fewer than 12 or more than 1,023 bytes.
    """
    private = Ed25519PrivateKey.from_private_bytes(key.raw)
    if passphrase is None:
        return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    if not MIN_PASSPHRASE <= len(passphrase) <= _MAX_PASSPHRASE:
        raise InvalidInput(
            Problem.KEY_FILE,
            f"a passphrase has {MIN_PASSPHRASE} to {_MAX_PASSPHRASE} bytes; use several words",
            "passphrase",
        )
    return private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase)
    )


def read_key(path: Path, passphrase: bytes | None = None) -> SigningKey:
    """Return the Ed25519 key in a PEM file that only its owner may read.

    passphrase : used only if the file is encrypted. Raises InvalidInput(key_file) if the file is
    missing or readable by others, if it contains no Ed25519 key, or if it is encrypted and
    `passphrase` is None or wrong.
    """
    data = read_private(path)
    encrypted = b"ENCRYPTED PRIVATE KEY" in data
    if encrypted and passphrase is None:
        raise key_file_problem(
            path,
            "the key is encrypted: give its passphrase; keys that a running server uses must not "
            "be encrypted, because their file mode protects them",
        )
    try:
        # The library raises an error if a passphrase is passed for an unencrypted key.
        private = load_pem_private_key(data, password=passphrase if encrypted else None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        raise key_file_problem(
            path,
            "the passphrase is wrong or the file is damaged; if damaged, restore it from a backup"
            if encrypted
            else "this is not a PEM private key; restore the file from a backup",
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise key_file_problem(
            path, "only Ed25519 keys are used here; make one with `frankly keys init`"
        )
    return SigningKey.from_raw(private.private_bytes_raw())


def read_private(path: Path) -> bytes:
    """Return the bytes of a file that only its owner may read; raises InvalidInput(key_file)."""
    try:
        with path.open("rb") as file:
            # The mode of the open file is checked, because the path could be replaced before
            # reading.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _GROUP_AND_OTHERS:
                raise key_file_problem(
                    path, f"others may read this file (mode {mode:04o}); run chmod 600 {path}"
                )
            # The read is bounded, in case the path is a large file by mistake.
            return file.read(_MAX_FILE_BYTES)
    except FileNotFoundError:
        raise key_file_problem(
            path, "the file is missing; run `frankly keys init`, or restore it"
        ) from None
    except PermissionError:
        raise key_file_problem(
            path, f"this user may not read the file; run chown for the server's user on {path}"
        ) from None
    except OSError as error:
        raise key_file_problem(path, f"the file cannot be read ({type(error).__name__})") from None


def require_private_folder(folder: Path) -> None:
    """Raise InvalidInput(key_file) if the folder exists and others have access to it."""
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & _GROUP_AND_OTHERS:
        raise key_file_problem(folder, f"others may enter this folder; run chmod 700 {folder}")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path | None:
    """Write `files` to a new folder called `folder`; return the new path of the old one, or None.

    Files get mode 0600, the folder 0700. The new folder is complete on disk before the old one is
    moved aside and the new one is renamed (bad input 52).
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))  # mode 0700
    for name, data in files.items():
        _write(temporary / name, data)
    sync_folder(temporary)
    old_folder = _set_aside(folder) if folder.exists() else None
    temporary.rename(folder)
    sync_folder(folder.parent)
    return old_folder


def _set_aside(folder: Path) -> Path:
    # The first free number, so that no earlier folder is overwritten.
    number = 1
    while (path := folder.with_name(f"{folder.name}.old-{number}")).exists():
        number += 1
    folder.rename(path)
    return path


def _write(path: Path, data: bytes) -> None:
    # The file is created with its final mode, so that others can never open it.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
