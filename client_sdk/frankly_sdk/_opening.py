# SPDX-License-Identifier: Apache-2.0
"""Getting a survey: from memory if this install has it, otherwise from the server, always through every check."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import MAX_ENVELOPE_BYTES, SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation
from frankly_protocol.trust import KeysDocument, accept_keys, read_chain, walk
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES

from frankly_sdk._logged import LogRule
from frankly_sdk._trusted import Remembered, accept_survey, stands
from frankly_sdk.errors import NetworkError
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import Store
from frankly_sdk.transport import Transport

_KEYS_BYTES = 256 * 2**10
_UNKNOWN = "the server does not know this survey; check that the link is whole"
_UNPUBLISHED = "the server does not know this survey, or not this version of it: copy the link whole, to its end"


@dataclass(frozen=True, slots=True)
class Opened:
    """An accepted survey, the ids of the keys that signed it, whether the link pinned it, and whether it is logged."""

    document: SurveyDocument
    signed_by: tuple[str, ...]
    pinned: bool
    logged: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """One attempt to get the survey that `link` names, at the time `now`.

    log : ask the log for a proof, if the keys name a log that somebody watches.
    """

    link: SurveyLink
    store: Store
    transport: Transport
    now: datetime
    log: bool = False

    def survey(self, shipped: bytes | None) -> Opened:
        """Return the survey; `shipped` is the keys document that came with the app, if any.

        A pinned survey that this install has accepted before needs no network, unless the keys at hand have expired or
        did not sign it. Whenever a document is fetched the keys are too, so that a withdrawn publisher is noticed; they
        must follow from the ones at hand, and count from then on, whatever becomes of the survey.

        Raises DocumentRejected and its kinds, InsecureTransport, NetworkError, StoreError.
        """
        chain = self._chain(shipped)
        known = self.store.keys(chain) or shipped
        trusted = self._still_good(known)
        if trusted is not None and self._is_cached(self.store.survey(self.link.survey), trusted):
            return self._with_keys(trusted)
        newest = self._newest_keys(known)
        trusted = walk(newest, known, self._fetch_chain, self.now)
        if newest != known:
            self.store.remember_keys(chain, newest, known)
        return self._with_keys(trusted)

    def _chain(self, shipped: bytes | None) -> str:
        """Return the name under which keys are remembered: they all follow from the document the app ships, if any.

        An app that ships another document begins a chain of its own: what was trusted on first use, or followed from
        older keys, says nothing about the new ones.
        """
        return self.link.origin if shipped is None else f"{self.link.origin}#{digest_of(shipped)}"

    def _newest_keys(self, known: bytes | None) -> bytes:
        try:
            return self._fetch(self.link.keys_url, _KEYS_BYTES)
        except NetworkError:
            if known is None:
                raise
            return known  # out of reach: those at hand count as long as they last

    def _fetch_chain(self) -> list[bytes]:
        """Return every version of the keys in one answer: asking for some would tell which ones are known here."""
        return read_chain(self._fetch(f"{self.link.keys_url}/chain", MAX_CHAIN_BYTES))

    def _is_cached(self, remembered: Remembered | None, trusted: KeysDocument) -> bool:
        """Tell whether the pinned document is here, signed by keys that are still trusted."""
        return (
            remembered is not None and remembered.digest == self.link.digest and stands(remembered, trusted.publisher)
        )

    def _still_good(self, known: bytes | None) -> KeysDocument | None:
        try:
            return accept_keys(known, known, self.now) if known is not None else None
        except DocumentRejected:
            return None

    def _with_keys(self, trusted: KeysDocument) -> Opened:
        remembered = self.store.survey(self.link.survey)
        data = self._envelope(remembered, trusted)
        try:
            check = partial(self._is_logged, trusted)
            found = accept_survey(data, self.link, trusted.publisher, remembered, self.now, check)
        except Equivocation:
            self._keep_evidence(remembered, data)
            raise
        document = Remembered(found.document.version, found.document.digest, data)
        if found.withdrawn is not None and found.withdrawn != document.digest:
            self._keep_evidence(remembered, data)
        if remembered is None or remembered.envelope != data:
            self.store.remember(self.link.survey, document, found.withdrawn)
        return Opened(found.document, found.signed_by, self.link.digest is not None, found.logged)

    def _is_logged(self, trusted: KeysDocument, digest: str) -> bool:
        """Tell whether a watched log vouches for the document; raises if the app wants it and the log does not."""
        if not self.log or trusted.log is None or not trusted.log.witnesses:
            return False

        def fetch(path: str, limit: int, kind: str) -> bytes:
            return self._fetch(self.link.origin + path, limit, kind)

        rule = LogRule(trusted.log, self.store, fetch, self.now)
        rule.require(digest, prefer_kept=digest == self.link.digest)
        return True

    def _envelope(self, remembered: Remembered | None, trusted: KeysDocument) -> bytes:
        """Return the document's envelope: the remembered one if the link pins it, or if the server is out of reach."""
        if remembered is not None and self._is_cached(remembered, trusted):
            return remembered.envelope
        try:
            unknown = _UNKNOWN if self.link.digest is None else _UNPUBLISHED
            return self._fetch(self.link.document_url, MAX_ENVELOPE_BYTES, unknown=unknown)
        except NetworkError:
            if remembered is None or self.link.digest is not None:
                raise
            return remembered.envelope

    def _keep_evidence(self, remembered: Remembered | None, data: bytes) -> None:
        if remembered is not None:
            other = digest_of(Envelope.from_bytes(data, SURVEY_TYPE).payload)
            if other != remembered.digest:  # otherwise it is the log that contradicts itself
                self.store.keep_evidence({remembered.digest: remembered.envelope, other: data})

    def _fetch(self, url: str, limit: int, kind: str = "application/json", unknown: str = _UNKNOWN) -> bytes:
        answer = self.transport.get(url, limit)
        if answer.status == 404:
            raise NetworkError(unknown, "not_found")
        if answer.status != 200:
            raise NetworkError(f"the server answered with status {answer.status}; try again later", "status")
        if answer.content_type != kind:
            raise NetworkError("what answered was not the survey's server: check the network's log-in page", "not_json")
        return answer.body
