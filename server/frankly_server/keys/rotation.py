# SPDX-License-Identifier: Apache-2.0
"""Key rotation: propose the next version, sign it with old and new roots, and put it in force.

Root keys may be on different machines, so signing can take several steps. New private keys are on
disk before a document lists them, and a single rename replaces the newest document. After an
interruption at any point, either the old or the new version is in force.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from frankly_protocol.clock import Clock
from frankly_protocol.envelope import KEYS_TYPE, Envelope, PublicKey, Signature, SigningKey, pae
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust import KeysDocument, LogRole, NamedKey, Role, SignedKeys
from frankly_protocol.trust.notes import LOG, WITNESS

from frankly_server.keys.durable import written_whole
from frankly_server.keys.files import (
    key_file_problem,
    read_key,
    read_private,
    require_private_folder,
    to_pem,
)
from frankly_server.keys.keyring import (
    DOCUMENT,
    LOG_KEY,
    PUBLISHER,
    ROOT,
    VALIDITY,
    Keyring,
    version_name,
)

PENDING: Final = "keys.next.json"


@dataclass(frozen=True, slots=True)
class RotationChange:
    """Changes in the next version.

    drop : ids of keys to remove, of any role. roots, publishers : numbers of new keys. log : True
    for a new log key. Thresholds of None are unchanged, unless witnesses are added or removed.
    witnesses : (name, public key) to add; an existing name gets the new key. validity : time until
    the next version expires.
    """

    drop: frozenset[str] = frozenset()
    roots: int = 0
    publishers: int = 0
    log: bool = False
    root_threshold: int | None = None
    publisher_threshold: int | None = None
    witness_threshold: int | None = None
    witnesses: tuple[tuple[str, PublicKey], ...] = ()
    validity: timedelta = VALIDITY


@dataclass(frozen=True, slots=True)
class Proposal:
    """The next version: in force, or pending until root keys have signed it.

    old_missing, new_missing : number of missing signatures of the current and the new root role.
    """

    document: KeysDocument
    in_force: bool
    old_missing: int
    new_missing: int


class Rotation:
    """The steps of a rotation in one key folder.

    extra_files : root key files outside the folder, for example on a USB stick. passphrase :
    decrypts root keys and encrypts new ones; None if they are not encrypted.
    """

    def __init__(
        self,
        keyring: Keyring,
        clock: Clock,
        extra_files: Sequence[Path] = (),
        passphrase: bytes | None = None,
    ) -> None:
        self._keyring = keyring
        self._folder = keyring.folder
        self._clock = clock
        self._extra_files = tuple(extra_files)
        self._passphrase = passphrase

    def propose(self, change: RotationChange) -> Proposal:
        """Generate new keys and sign the next version; put it in force if it has enough signatures.

        Every available root key signs. An earlier pending proposal is replaced.
        Raises InvalidInput: key_file without a root key, for unreadable keys or for a full chain;
        field_type for a change that leaves a role without enough keys; not_found for a change with
        an unknown key.
        """
        require_private_folder(self._folder)
        self._keyring.require_room()
        old = self._keyring.trusted_or_expired()
        # `generate`, which is called while the document is built, collects the private keys here.
        generated: list[tuple[str, SigningKey]] = []

        def generate(name: str) -> PublicKey:
            generated.append((name, SigningKey.generate()))
            return generated[-1][1].public

        root_ids = {key.key_id for key in old.root.keys}
        roots = [key for key in self._roots() if key.public.key_id in root_ids]
        if not roots:
            raise key_file_problem(
                self._folder / ROOT, "no root key is available; give one with --root-key FILE"
            )
        try:
            # Parsed again from the bytes: the parser enforces the rules for roles and thresholds.
            document = KeysDocument.parse(self._next(old, change, generate).payload())
        except DocumentRejected as error:
            raise InvalidInput(Problem.FIELD_TYPE, error.detail, error.field) from None
        # Written before the proposal that lists them: a crash must not lose a key in force.
        for name, key in generated:
            path = self._folder / f"{Path(name).stem}-{key.public.key_id[:12]}.pem"
            _write(path, to_pem(key, self._passphrase if name == ROOT else None))
        roots += [key for name, key in generated if name == ROOT]
        return self._sign(Envelope(KEYS_TYPE, document.payload(), ()), roots)

    def sign(self) -> Proposal:
        """Add the signatures of the available root keys to the pending proposal.

        Raises InvalidInput(key_file) if there is no pending proposal, or if it does not follow the
        version in force.
        """
        require_private_folder(self._folder)
        path = self._folder / PENDING
        if not path.is_file():
            raise key_file_problem(
                path, "no new version waits for signatures; make one with `frankly keys rotate`"
            )
        try:
            envelope = Envelope.from_bytes(read_private(path), KEYS_TYPE)
            document = KeysDocument.parse(envelope.payload)
        except DocumentRejected as error:
            raise key_file_problem(path, f"the proposal cannot be used: {error}") from None
        if document.version != self._keyring.trusted_or_expired().version + 1:
            raise key_file_problem(
                path, "the proposal does not follow the version in force; make a new one"
            )
        return self._sign(envelope, self._roots())

    def _sign(self, envelope: Envelope, roots: Sequence[SigningKey]) -> Proposal:
        old, document = self._keyring.trusted_or_expired(), KeysDocument.parse(envelope.payload)
        root_keys = (*old.root.keys, *document.root.keys)
        root_ids = _ids(root_keys)
        message = pae(envelope.payload_type, envelope.payload)
        signatures = {s.key_id: s for s in envelope.signatures}
        for key in roots:
            # Other available keys, such as retired root keys, do not sign.
            if key.public.key_id in root_ids:
                signatures[key.public.key_id] = Signature(key.public.key_id, key.sign(message))
        envelope = replace(
            envelope,
            # Sorted, so that the bytes do not depend on the order of signing.
            signatures=tuple(signatures[name] for name in sorted(signatures)),
        )
        valid = envelope.signers(root_keys)
        roles = (old.root, document.root)
        missing = [max(0, role.threshold - len(valid & _ids(role.keys))) for role in roles]
        data = envelope.to_bytes()
        if any(missing):
            _write(self._folder / PENDING, data)
            return Proposal(document, False, *missing)
        SignedKeys.read(data).require_follows(old)  # as every device checks
        # keys.json is written last: until then, the folder still serves the old version.
        _write(self._folder / version_name(old.version), self._keyring.document())
        _write(self._folder / version_name(document.version), data)
        _write(self._folder / DOCUMENT, data)
        (self._folder / PENDING).unlink(missing_ok=True)
        return Proposal(document, True, 0, 0)

    def _next(
        self, old: KeysDocument, change: RotationChange, generate: Callable[[str], PublicKey]
    ) -> KeysDocument:
        known_ids = _ids((*old.root.keys, *old.publisher.keys)) | _named_ids(old.log)
        if change.drop - known_ids:
            raise InvalidInput(
                Problem.NOT_FOUND,
                "no key of this id is in the keys document; `frankly keys status` lists them",
                "key",
            )
        issued = self._clock.now().replace(microsecond=0)
        return KeysDocument(
            version=old.version + 1,
            issued=issued,
            expires=issued + change.validity,
            root=_role(
                old.root, change.drop, change.roots, change.root_threshold, lambda: generate(ROOT)
            ),
            publisher=_role(
                old.publisher,
                change.drop,
                change.publishers,
                change.publisher_threshold,
                lambda: generate(PUBLISHER),
            ),
            log=_log(old.log, change, lambda: generate(LOG_KEY)),
        )

    def _roots(self) -> list[SigningKey]:
        """Return the root keys of the folder and of `extra_files`."""
        paths = [*self._keyring.key_files(ROOT), *self._extra_files]
        return [read_key(path, self._passphrase) for path in paths]


def _role(
    old: Role,
    drop: frozenset[str],
    count: int,
    threshold: int | None,
    generate: Callable[[], PublicKey],
) -> Role:
    """Return a role without the dropped keys and with `count` new ones.

    More are added if dropping keys leaves fewer than the threshold.
    """
    keys = [key for key in old.keys if key.key_id not in drop]
    required = old.threshold if threshold is None else threshold
    # Only after a drop: otherwise a threshold above the number of keys is an error of the caller.
    missing = max(0, required - len(keys)) if len(keys) < len(old.keys) else 0
    keys += [generate() for _ in range(max(count, missing))]
    return Role(tuple(keys), required)


def _log(
    old: LogRole | None, change: RotationChange, generate: Callable[[], PublicKey]
) -> LogRole | None:
    if old is None:
        if change.witnesses or change.log:
            public = generate()
            old = LogRole(NamedKey(f"frankly/{public.key_id[:16]}", public, LOG), (), 0)
        else:
            return None
    elif change.log or old.log.public.key_id in change.drop:
        # The origin stays the same: it identifies the tree, which continues under the new key.
        old = replace(old, log=replace(old.log, public=generate()))
    added = dict(change.witnesses)
    remaining = [
        w for w in old.witnesses if w.public.key_id not in change.drop and w.name not in added
    ]
    witnesses = (*remaining, *(NamedKey(name, public, WITNESS) for name, public in added.items()))
    # Without an explicit threshold, it is at most the number of witnesses, so it can be reached.
    threshold = change.witness_threshold
    if threshold is None:
        threshold = min(old.threshold, len(witnesses))
    # The first witness raises the threshold from 0 to 1, because 0 would require no signature.
    return LogRole(old.log, witnesses, threshold or (1 if witnesses else 0))


def _ids(keys: Sequence[PublicKey]) -> set[str]:
    return {key.key_id for key in keys}


def _named_ids(role: LogRole | None) -> set[str]:
    return set() if role is None else {key.public.key_id for key in (role.log, *role.witnesses)}


def _write(path: Path, data: bytes) -> None:
    with written_whole(path, replace=True) as file:
        file.write(data)
