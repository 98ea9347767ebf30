# SPDX-License-Identifier: Apache-2.0
"""Getting a survey: from memory if this install has it, otherwise from the server, always through every check."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, MAX_ENVELOPE_BYTES, SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation
from frankly_protocol.trust import KeysDocument, accept_keys, prove_chain, read_chain, require_step, walk
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES

from frankly_sdk._logged import LogRule
from frankly_sdk._tables import UNKNOWN_CHAIN
from frankly_sdk._trusted import Remembered, accept_survey, stands
from frankly_sdk.errors import NetworkError
from frankly_sdk.events import Event, OnEvent
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import KnownKeys, Store
from frankly_sdk.transport import Transport

_KEYS_BYTES = 256 * 2**10
_UNKNOWN = "the server does not know this survey; check that the link is whole"
_UNPUBLISHED = "the server does not know this survey, or not this version of it: copy the link whole, to its end"


@dataclass(frozen=True, slots=True)
class Opened:
    """An accepted survey, the ids of the keys that signed it, whether the link pinned it, and whether it is logged.

    chain : of those keys, as in `frankly_protocol.trust.Proven`.
    """

    document: SurveyDocument
    signed_by: tuple[str, ...]
    chain: str
    pinned: bool
    logged: bool = False


@dataclass(frozen=True, slots=True)
class _Trusted:
    """Keys in force, and the chain they belong to."""

    keys: KeysDocument
    chain: str


@dataclass(frozen=True, slots=True)
class Opening:
    """One attempt to get the survey that `link` names, at the time `now`.

    log : ask the log for a proof, if the keys name a log that somebody watches. collect_hosts : hosts that may collect
    reports besides the one of the link.
    """

    link: SurveyLink
    store: Store
    transport: Transport
    now: datetime
    announce: OnEvent
    log: bool = False
    collect_hosts: tuple[str, ...] = ()

    def survey(self, shipped: bytes | None) -> Opened:
        """Return the survey; `shipped` is the keys document that came with the app, if any.

        A pinned survey that this install has accepted before needs no network, unless the keys at hand have expired or
        did not sign it. Whenever a document is fetched the keys are too, so that a withdrawn publisher is noticed; they
        must follow from the ones at hand, and count from then on, whatever becomes of the survey.

        Raises DocumentRejected and its kinds, InsecureTransport, NetworkError, StoreError.
        """
        alias = self._alias(shipped)
        known = self.store.keys(alias) or _shipped(shipped)
        if known is not None and known.chain is not None:
            trusted = self._still_good(known.envelope, known.chain)
            if trusted is not None and self._is_cached(self._remembered(trusted), trusted):
                return self._with_keys(trusted)
        newest, trusted = self._newest(known)
        if known is None or known.chain is None or newest != known.envelope:
            follows = None if known is None else known.envelope
            self.store.remember_keys(alias, KnownKeys(newest, trusted.chain), follows)
        return self._with_keys(trusted)

    def _alias(self, shipped: bytes | None) -> str:
        """Return the name under which keys are remembered: they all follow from the document the app ships, if any.

        An app that ships another document has an alias of its own: what was trusted on first use, or followed from
        older keys, says nothing about the new ones. Both may turn out to be of one chain.
        """
        return self.link.origin if shipped is None else f"{self.link.origin}#{digest_of(shipped)}"

    def _newest(self, known: KnownKeys | None) -> tuple[bytes, _Trusted]:
        """Return the newest keys; all versions are fetched while the chain is unknown, the newest one afterwards."""
        if known is None or known.chain is None:
            proven = prove_chain(self._fetch_chain(), None if known is None else known.envelope, self.now)
            return proven.newest, _Trusted(proven.keys, proven.first_root)
        newest = self._newest_keys(known.envelope)
        return newest, _Trusted(walk(newest, known.envelope, self._fetch_chain, self.now), known.chain)

    def _newest_keys(self, known: bytes) -> bytes:
        try:
            return self._fetch(self.link.keys_url, _KEYS_BYTES)
        except NetworkError:
            return known  # out of reach: those at hand count as long as they last

    def _fetch_chain(self) -> list[bytes]:
        """Return every version of the keys in one answer: asking for some would tell which ones are known here."""
        return read_chain(self._fetch(f"{self.link.keys_url}/chain", MAX_CHAIN_BYTES))

    def _remembered(self, trusted: _Trusted) -> Remembered | None:
        """Return the document accepted last; one of an unknown chain if the publisher's present keys signed it."""
        own = self.store.survey(trusted.chain, self.link.survey)
        if own is not None:
            return own
        inherited = self.store.survey(UNKNOWN_CHAIN, self.link.survey)
        return inherited if inherited is not None and stands(inherited, trusted.keys.publisher) else None

    def _is_cached(self, remembered: Remembered | None, trusted: _Trusted) -> bool:
        """Tell whether the pinned document is here, signed by keys that are still trusted."""
        if remembered is None or remembered.digest != self.link.digest:
            return False
        return stands(remembered, trusted.keys.publisher)

    def _still_good(self, known: bytes, chain: str) -> _Trusted | None:
        try:
            return _Trusted(accept_keys(known, known, self.now), chain)
        except DocumentRejected:
            return None

    def _with_keys(self, trusted: _Trusted) -> Opened:
        remembered = self._remembered(trusted)
        data = self._envelope(remembered, trusted)
        publisher, check = trusted.keys.publisher, partial(self._is_logged, trusted)
        try:
            found = accept_survey(data, self.link, publisher, remembered, self.now, check, self.collect_hosts)
        except Equivocation:
            self._keep_evidence(trusted.chain, remembered, data)
            raise
        document = Remembered(found.document.version, found.document.digest, data)
        if found.withdrawn is not None and found.withdrawn != document.digest:
            self._keep_evidence(trusted.chain, remembered, data)
        if remembered is None or remembered.envelope != data:
            self.store.remember(trusted.chain, self.link.survey, document, found.withdrawn)
        return Opened(found.document, found.signed_by, trusted.chain, self.link.digest is not None, found.logged)

    def _is_logged(self, trusted: _Trusted, digest: str) -> bool:
        """Tell whether a watched log vouches for the document; raises if the app wants it and the log does not."""
        role = trusted.keys.log
        if not self.log or role is None or not role.witnesses:
            return False

        def fetch(path: str, limit: int, kind: str) -> bytes:
            return self._fetch(self.link.origin + path, limit, kind)

        def renamed(old_name: str) -> None:
            words = f"the log is called {role.log.name} now, it was {old_name}: its old head is kept as evidence"
            self.announce(Event("log_renamed", self.link.survey, "log_renamed", words))

        rule = LogRule(role, trusted.chain, self.store, fetch, self.now, renamed)
        rule.require(digest, prefer_kept=digest == self.link.digest)
        return True

    def _envelope(self, remembered: Remembered | None, trusted: _Trusted) -> bytes:
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

    def _keep_evidence(self, chain: str, remembered: Remembered | None, data: bytes) -> None:
        if remembered is not None:
            other = digest_of(Envelope.from_bytes(data, SURVEY_TYPE).payload)
            if other != remembered.digest:  # otherwise it is the log that contradicts itself
                self.store.keep_evidence(chain, {remembered.digest: remembered.envelope, other: data})

    def _fetch(self, url: str, limit: int, kind: str = "application/json", unknown: str = _UNKNOWN) -> bytes:
        answer = self.transport.get(url, limit)
        if answer.status == 404:
            raise NetworkError(unknown, "not_found")
        if answer.status != 200:
            raise NetworkError(f"the server answered with status {answer.status}; try again later", "status")
        if answer.content_type != kind:
            raise NetworkError("what answered was not the survey's server: check the network's log-in page", "not_json")
        return answer.body


def _shipped(envelope: bytes | None) -> KnownKeys | None:
    """Return the keys an app ships; version 1 names its chain itself, a later one must be found in the server's."""
    if envelope is None:
        return None
    first = require_step(None, envelope).version == 1
    return KnownKeys(envelope, digest_of(Envelope.from_bytes(envelope, KEYS_TYPE).payload) if first else None)
