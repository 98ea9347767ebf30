# SPDX-License-Identifier: Apache-2.0
"""Getting a survey: from memory if this install has it, otherwise from the server, always through every check."""

from dataclasses import dataclass
from datetime import datetime

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import MAX_ENVELOPE_BYTES, SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation
from frankly_protocol.trust import KeysDocument, accept_keys

from frankly_sdk._trusted import Remembered, accept_survey
from frankly_sdk.errors import NetworkError
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import Store
from frankly_sdk.transport import Transport

_KEYS_BYTES = 256 * 2**10


@dataclass(frozen=True, slots=True)
class Opened:
    """An accepted survey, the ids of the keys that signed it, and whether the link pinned it."""

    document: SurveyDocument
    signed_by: tuple[str, ...]
    pinned: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """One attempt to get the survey that `link` names, at the time `now`."""

    link: SurveyLink
    store: Store
    transport: Transport
    now: datetime

    def survey(self, shipped: bytes | None) -> Opened:
        """Return the survey; `shipped` is the keys document that came with the app, if any.

        A pinned survey that this install has accepted before needs no network. New keys are fetched if the ones at hand
        have expired or did not sign the document; they must follow from the old ones.

        Raises DocumentRejected and its kinds, InsecureTransport, NetworkError, StoreError.
        """
        known = shipped or self.store.keys(self.link.origin)
        if known is not None and (trusted := self._still_good(known)) is not None:
            try:
                return self._with_keys(known, trusted)
            except DocumentRejected as error:
                if error.reason != "signature":
                    raise
        fetched = self._fetch(self.link.keys_url, _KEYS_BYTES)
        return self._with_keys(fetched, accept_keys(fetched, known, self.now))

    def _still_good(self, known: bytes) -> KeysDocument | None:
        try:
            return accept_keys(known, known, self.now)
        except DocumentRejected:
            return None

    def _with_keys(self, keys: bytes, trusted: KeysDocument) -> Opened:
        remembered = self.store.survey(self.link.survey)
        data = self._envelope(remembered)
        try:
            found = accept_survey(data, self.link, trusted.publisher, remembered, self.now)
        except Equivocation:
            self._keep_evidence(remembered, data)
            raise
        document = Remembered(found.document.version, found.document.digest, data)
        if remembered is None or remembered.digest != document.digest or keys != self.store.keys(self.link.origin):
            self.store.remember(self.link.origin, keys, self.link.survey, document)
        return Opened(found.document, found.signed_by, self.link.digest is not None)

    def _envelope(self, remembered: Remembered | None) -> bytes:
        """Return the document's envelope: the remembered one if the link pins it, or if the server is out of reach."""
        if remembered is not None and remembered.digest == self.link.digest:
            return remembered.envelope
        try:
            return self._fetch(self.link.document_url, MAX_ENVELOPE_BYTES)
        except NetworkError:
            if remembered is None or self.link.digest is not None:
                raise
            return remembered.envelope

    def _keep_evidence(self, remembered: Remembered | None, data: bytes) -> None:
        if remembered is not None:
            other = digest_of(Envelope.from_bytes(data, SURVEY_TYPE).payload)
            self.store.keep_evidence({remembered.digest: remembered.envelope, other: data})

    def _fetch(self, url: str, limit: int) -> bytes:
        answer = self.transport.get(url, limit)
        if answer.status == 404:
            raise NetworkError("the server knows no such survey; check that the link is whole", "not_found")
        if answer.status != 200:
            raise NetworkError(f"the server answered with status {answer.status}; try again later", "status")
        if answer.content_type != "application/json":
            raise NetworkError("what answered was not the survey's server: check the network's log-in page", "not_json")
        return answer.body
