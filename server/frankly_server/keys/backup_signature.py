# SPDX-License-Identifier: Apache-2.0
"""Signatures of backups: publisher keys sign the manifest; the keys of any version verify it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from frankly_protocol.envelope import KEYS_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.trust import KeysDocument

from frankly_server.keys.keyring import Keyring
from frankly_server.store import BackupBroken

BACKUP_TYPE: Final = "application/vnd.frankly.backup+json"
_FIELD: Final = "manifest.sig"
_UNSIGNED: Final = (
    "the backup is not signed: it was made with --unsigned, or by another person. If you know "
    "its origin, add --unsigned"
)
_OTHERS: Final = (
    "these keys did not sign the backup, and neither did earlier versions of them. Try again with "
    "the right key folder in FRANKLY_HOME; if you know the backup's origin, add --unsigned"
)


@dataclass(frozen=True, slots=True)
class Signers:
    """Signers of a backup, by publisher key ids.

    version : version of the keys document that contains these keys. newest : version of the newest
    keys document, which differs for a backup from before a rotation.
    """

    key_ids: tuple[str, ...]
    version: int
    newest: int


def signer(keys: Keyring) -> Callable[[bytes], bytes]:
    """Return a function that signs a manifest with the publisher keys in the key folder.

    Raises InvalidInput(key_file) if there are fewer keys than the threshold requires.
    """
    publishers = keys.publishers()
    return lambda manifest: Envelope.seal(BACKUP_TYPE, manifest, publishers).to_bytes()


def signers_of(keys: Keyring, manifest: bytes, signature: bytes | None) -> Signers:
    """Return the signers of a manifest.

    Raises BackupBroken unless enough publisher keys of one version have signed it, and
    InvalidInput(key_file) if there are no keys to verify it with.
    """
    if signature is None:
        raise BackupBroken(_UNSIGNED, _FIELD)
    versions = [
        KeysDocument.parse(Envelope.from_bytes(data, KEYS_TYPE).payload) for data in keys.chain()
    ]
    try:
        envelope = Envelope.from_bytes(signature, BACKUP_TYPE)
    except DocumentRejected as error:
        raise BackupBroken(error.detail, _FIELD) from None
    # The envelope contains the signed manifest, which must equal the manifest in the backup.
    if envelope.payload != manifest:
        raise BackupBroken("the signature belongs to a different manifest", _FIELD)
    # Newest version first: most backups are more recent than the last rotation.
    for document in reversed(versions):
        if document.publisher.has_signed(signature, BACKUP_TYPE):
            by = tuple(sorted(envelope.signers(document.publisher.keys)))
            return Signers(by, document.version, versions[-1].version)
    raise BackupBroken(_OTHERS, _FIELD)
