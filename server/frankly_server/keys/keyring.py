# SPDX-License-Identifier: Apache-2.0
"""Signing keys of a server (root, publishers, log) and the keys documents that list them."""

import hmac
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from frankly_protocol.clock import Clock
from frankly_protocol.envelope import KEYS_TYPE, Envelope, SigningKey
from frankly_protocol.errors import ClockError, DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust import (
    KeysDocument,
    LogRole,
    NamedKey,
    Role,
    SignedKeys,
    accept_keys,
    write_chain,
)
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES, MAX_VERSIONS
from frankly_protocol.trust.keys import MAX_VALIDITY
from frankly_protocol.trust.notes import LOG

from frankly_server.keys.files import (
    key_file_problem,
    read_key,
    read_private,
    require_private_folder,
    to_pem,
    write_folder,
)

ROOT, PUBLISHER, LOG_KEY, DOCUMENT = "root.pem", "publisher.pem", "log.pem", "keys.json"
VALIDITY: Final = MAX_VALIDITY
MAX_KEYS: Final = 32
_NEARLY_FULL: Final = Fraction(7, 8)
_MAX_VERSION_BYTES: Final = 128 * 2**10
"""An upper bound on the bytes that one version adds to the served chain."""


@dataclass(frozen=True, slots=True)
class NewKeys:
    """The result of `init`: folder and ids of the new keys.

    set_aside : the folder to which older keys were moved; None if there were no keys.
    """

    folder: Path
    root_ids: tuple[str, ...]
    publisher_ids: tuple[str, ...]
    log_id: str
    set_aside: Path | None


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """Number of keys that `init` generates per role, and number of signatures required."""

    roots: int = 1
    root_threshold: int = 1
    publishers: int = 1
    publisher_threshold: int = 1


class Keyring:
    """The key folder of one server.

    To run, a server needs only the publisher's keys, the log's key and the keys documents; root
    keys (`root*.pem`) belong offline after `init`. `keys.json` is the newest keys document,
    `keys-N.json` is version N.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        """The folder of the key files."""
        self._clock = clock
        self._chain: list[bytes] = []

    def init(
        self, *, force: bool = False, plan: KeyPlan | None = None, passphrase: bytes | None = None
    ) -> NewKeys:
        """Generate keys for every role and version 1 of the keys document.

        force : move existing keys aside (they are not deleted). Devices that know the old root
        refuse the new one. passphrase : encrypts the root keys.
        Raises InvalidInput: file_exists if the folder exists and `force` is false, key_file for a
        plan or passphrase that cannot be used.
        """
        plan = plan or KeyPlan()
        if self.folder.exists() and not force:
            raise InvalidInput(
                Problem.FILE_EXISTS,
                "there are keys here already; --force sets them aside",
                str(self.folder),
            )
        roots = _generate(plan.roots, plan.root_threshold, "root")
        publishers = _generate(plan.publishers, plan.publisher_threshold, "publisher")
        log = SigningKey.generate()
        issued = self._clock.now().replace(microsecond=0)
        document = KeysDocument(
            1,
            issued,
            issued + VALIDITY,
            Role(tuple(key.public for key in roots), plan.root_threshold),
            Role(tuple(key.public for key in publishers), plan.publisher_threshold),
            # No witnesses yet; a rotation adds them.
            LogRole(NamedKey(f"frankly/{log.public.key_id[:16]}", log.public, LOG), (), 0),
        )
        envelope = Envelope.seal(KEYS_TYPE, document.payload(), roots).to_bytes()
        files = {numbered(ROOT, i): to_pem(key, passphrase) for i, key in enumerate(roots)}
        files |= {numbered(PUBLISHER, i): to_pem(key) for i, key in enumerate(publishers)}
        files |= {LOG_KEY: to_pem(log), DOCUMENT: envelope, version_name(1): envelope}
        # The files are written together, so that a crash cannot leave keys without a document.
        set_aside = write_folder(self.folder, files)
        return NewKeys(self.folder, _ids(roots), _ids(publishers), log.public.key_id, set_aside)

    def document(self, version: int | None = None) -> bytes:
        """Return the signed bytes of the newest keys document, or of `version`.

        Raises InvalidInput: key_file, or not_found for a version that does not exist.
        """
        if version is None:
            return read_private(self.folder / DOCUMENT)
        path = self.folder / version_name(version)
        if path.is_file():
            return read_private(path)
        newest = self.document()
        if version == KeysDocument.parse(Envelope.from_bytes(newest, KEYS_TYPE).payload).version:
            return newest
        raise InvalidInput(
            Problem.NOT_FOUND, f"there is no version {version} of the keys", "version"
        )

    def chain(self) -> list[bytes]:
        """Return every version, oldest first.

        Cached until the newest version changes, because every device requests the chain.
        """
        # The newest version is read from disk each time, because a command may have rotated the
        # keys.
        if self._chain[-1:] != [self.document()]:
            newest = self.trusted_or_expired().version  # devices check the dates
            self._chain = [self.document(version) for version in range(1, newest + 1)]
        return self._chain

    def chain_used(self) -> Fraction:
        """Return the length of the chain as a share of the longest that devices accept.

        At 1 or more, no further version is possible. Versions that are missing from this folder, as
        on an offline machine, do not count towards the chain's bytes.
        """
        version = self.trusted_or_expired().version
        paths = [self.folder / version_name(number) for number in range(1, version + 1)]
        size = len(write_chain([read_private(path) for path in paths if path.is_file()]))
        return max(
            Fraction(version, MAX_VERSIONS), Fraction(size, MAX_CHAIN_BYTES - _MAX_VERSION_BYTES)
        )

    def require_room(self) -> None:
        """Raise InvalidInput(key_file) if no further version is possible."""
        if self.chain_used() >= 1:
            version = self.trusted_or_expired().version
            limit = f"devices accept no chain of keys longer than these {version:,} versions"
            way_out = "begin a new one with `frankly keys init --force`, and ship it with the apps"
            raise key_file_problem(self.folder / DOCUMENT, f"{limit}; {way_out}")

    def publishers(self) -> list[SigningKey]:
        """Return the publisher keys in this folder that the keys document lists.

        Raises InvalidInput(key_file) if there are fewer than the threshold, or if a file cannot be
        used.
        """
        require_private_folder(self.folder)
        role = self.trusted().publisher
        # Retired keys stay in the folder, but their signatures do not count.
        trusted_ids = {key.key_id for key in role.keys}
        signers = [key for key in self.private_keys(PUBLISHER) if key.public.key_id in trusted_ids]
        if len(signers) < role.threshold:
            raise key_file_problem(
                self.folder / PUBLISHER,
                "the keys document does not name enough of these keys "
                f"({len(signers)} of the {role.threshold} needed); restore the missing ones",
            )
        return signers

    def log_key(self) -> SigningKey | None:
        """Return the key that signs the log's checkpoints; None if the keys document has no log.

        Raises InvalidInput(key_file) if the log's key is not in this folder.
        """
        role = self.trusted().log
        if role is None:
            return None
        for key in self.private_keys(LOG_KEY):
            if key.public == role.log.public:
                return key
        raise key_file_problem(
            self.folder / LOG_KEY,
            "this is not the log key that the keys document names; restore it",
        )

    def private_keys(self, name: str, passphrase: bytes | None = None) -> list[SigningKey]:
        """Return every key of one role in the folder, including retired keys.

        Raises InvalidInput(key_file) if there is no key, or if a key cannot be read.
        """
        paths = self.key_files(name) or [self.folder / name]
        return [read_key(path, passphrase) for path in paths]

    def mac(self, purpose: str, message: bytes) -> str:
        """Return the HMAC-SHA-256 of a message, in hex, under a key derived from a publisher key.

        purpose : selects the derived key. Servers that share a key folder compute the same MAC; new
        publisher keys can change it. Raises InvalidInput(key_file).
        """
        # Read from disk each time, so that all processes switch to a new key at the same time.
        secret = self.private_keys(PUBLISHER)[0].raw
        key = HKDF(SHA256(), length=32, salt=None, info=f"frankly {purpose}".encode()).derive(
            secret
        )
        return hmac.new(key, message, "sha256").hexdigest()

    def key_files(self, name: str) -> list[Path]:
        """Return the paths of a role's key files: root.pem, root-2.pem, root-0123abcd.pem."""
        stem = Path(name).stem
        # The glob also matches other names, such as rootless.pem.
        return sorted(
            path for path in self.folder.glob(f"{stem}*.pem") if path.stem.partition("-")[0] == stem
        )

    def trusted(self) -> KeysDocument:
        """Return the verified keys document.

        Raises InvalidInput(key_file) if it is missing, damaged or expired.
        """
        data = self.document()
        try:
            return accept_keys(data, self._clock.now())
        except ClockError as error:
            way_out = "set the clock; if it is right, sign a new version with `frankly keys rotate`"
            raise key_file_problem(self.folder / DOCUMENT, f"{error.detail}; {way_out}") from None
        except DocumentRejected as error:
            raise key_file_problem(
                self.folder / DOCUMENT, f"the keys document cannot be used: {error}"
            ) from None

    def trusted_or_expired(self) -> KeysDocument:
        """Return the keys document, verified except for its dates, for renewal.

        Raises InvalidInput(key_file) if it is missing or damaged.
        """
        try:
            return SignedKeys.read(self.document()).keys
        except DocumentRejected as error:
            raise key_file_problem(
                self.folder / DOCUMENT, f"the keys document cannot be used: {error}"
            ) from None

    def check(self) -> None:
        """Raise InvalidInput(key_file) without usable publisher and log keys (bad input 54)."""
        self.publishers()
        self.log_key()


def nearly_full(used: Fraction) -> str | None:
    """Return a warning if the chain is nearly as long as devices accept, else None."""
    if used < _NEARLY_FULL:
        return None
    percent = 100 * used.numerator // used.denominator
    message = f"the chain of keys has reached {percent} % of its maximum length"
    way_out = "plan a new one (`frankly keys init --force`) to ship with the apps"
    return f"{message}: rotate rarely, and {way_out}"


def numbered(name: str, index: int) -> str:
    """Return the file name of a role's key: root.pem for index 0, root-2.pem for index 1."""
    path = Path(name)
    return name if index == 0 else f"{path.stem}-{index + 1}{path.suffix}"


def version_name(version: int) -> str:
    """Return the file name of one version of the keys document."""
    return f"keys-{version}.json"


def _generate(count: int, threshold: int, role: str) -> list[SigningKey]:
    if not 1 <= threshold <= count <= MAX_KEYS:
        raise InvalidInput(
            Problem.KEY_FILE,
            f"give 1 to {MAX_KEYS} {role} keys, and a threshold from 1 to their number",
            f"{role}_threshold",
        )
    return [SigningKey.generate() for _ in range(count)]


def _ids(keys: list[SigningKey]) -> tuple[str, ...]:
    return tuple(key.public.key_id for key in keys)
