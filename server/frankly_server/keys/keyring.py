# SPDX-License-Identifier: Apache-2.0
"""The server's keys: an offline root, the publisher's key, and the keys document that ties them together."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from frankly_protocol.clock import Clock
from frankly_protocol.envelope import KEYS_TYPE, Envelope, SigningKey
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.keys import KeysDocument, Role, accept_keys

from frankly_server.keys.files import (
    key_file_problem,
    read_key,
    read_private,
    require_private_folder,
    to_pem,
    write_folder,
)

ROOT, PUBLISHER, DOCUMENT = "root.pem", "publisher.pem", "keys.json"
VALIDITY: Final = timedelta(days=730)


@dataclass(frozen=True, slots=True)
class NewKeys:
    """What `init` made: where, under which ids, and where older keys were set aside (None if there were none)."""

    folder: Path
    root_id: str
    publisher_id: str
    set_aside: Path | None


class Keyring:
    """The key folder of one server.

    Only the publisher's key and the keys document are needed to run; `root.pem` may be moved offline after `init`.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def init(self, *, force: bool = False) -> NewKeys:
        """Make a root key, a publisher key and version 1 of the keys document.

        With `force` keys that exist are set aside, not destroyed; devices that know the old root will refuse the new.
        Raises InvalidInput(file_exists) if there are keys already and `force` is not given.
        """
        if self._folder.exists() and not force:
            raise InvalidInput(
                Problem.FILE_EXISTS, "there are keys here already; --force sets them aside", str(self._folder)
            )
        root, publisher = SigningKey.generate(), SigningKey.generate()
        issued = self._clock.now().replace(microsecond=0)
        document = KeysDocument(1, issued, issued + VALIDITY, Role((root.public,), 1), Role((publisher.public,), 1))
        envelope = Envelope.seal(KEYS_TYPE, document.payload(), [root])
        files = {ROOT: to_pem(root), PUBLISHER: to_pem(publisher), DOCUMENT: envelope.to_bytes()}
        aside = write_folder(self._folder, files)
        return NewKeys(self._folder, root.public.key_id, publisher.public.key_id, aside)

    def document(self) -> bytes:
        """Return the signed keys document as served; raises InvalidInput(key_file)."""
        return read_private(self._folder / DOCUMENT)

    def publisher(self) -> SigningKey:
        """Return the publisher's key, after checking that the keys document names it and is valid now.

        Raises InvalidInput(key_file) naming the file and the way out.
        """
        require_private_folder(self._folder)
        key = read_key(self._folder / PUBLISHER)
        if key.public.key_id not in {known.key_id for known in self.trusted().publisher.keys}:
            raise key_file_problem(
                self._folder / PUBLISHER, "the keys document does not name this key; restore the pair that fits"
            )
        return key

    def trusted(self) -> KeysDocument:
        """Return the keys document, verified; raises InvalidInput(key_file) if it is damaged or expired."""
        data = self.document()
        try:
            return accept_keys(data, None, self._clock.now())
        except DocumentRejected as error:
            raise key_file_problem(self._folder / DOCUMENT, f"the keys document cannot be used: {error}") from None

    def check(self) -> None:
        """Refuse to start without a usable publisher key (BAD_INPUTS 54); raises InvalidInput(key_file)."""
        self.publisher()
