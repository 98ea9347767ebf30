# SPDX-License-Identifier: Apache-2.0
"""Getting a survey: from memory if this install has it, otherwise from the server, always through every check."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import MAX_ENVELOPE_BYTES, SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation
from frankly_protocol.trust import KeysDocument, KnownKeys, accept_keys, prove_chain, read_chain
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES

from frankly_sdk._logged import LogRule
from frankly_sdk._tables import UNKNOWN_CHAIN
from frankly_sdk._trusted import Remembered, accept_survey, stands
from frankly_sdk.errors import NetworkError
from frankly_sdk.events import Event, OnEvent
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import Store
from frankly_sdk.transport import Transport

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
        known = self._known(alias, shipped)
        if known is not None and known.chain is not None:
            trusted = self._still_good(known.envelope, known.chain)
            if trusted is not None and self._is_cached(self._remembered(trusted), trusted):
                return self._with_keys(trusted)
        return self._with_keys(self._newest(alias, known))

    def _alias(self, shipped: bytes | None) -> str:
        """Return the name under which a chain is remembered: its keys all follow from those the app ships, if any.

        An app that ships another document has an alias of its own: what was trusted on first use, or followed from
        older keys, says nothing about the new ones. Both may turn out to be of one chain.
        """
        return self.link.origin if shipped is None else f"{self.link.origin}#{digest_of(shipped)}"

    def _known(self, alias: str, shipped: bytes | None) -> KnownKeys | None:
        """Return the newest keys known of the alias' chain, otherwise the ones shipped; None on first use."""
        remembered = self.store.alias_keys(alias)
        if remembered is not None or shipped is None:
            return remembered
        own = KnownKeys.shipped(shipped)
        return own if own.chain is None else self.store.keys(own.chain) or own

    def _newest(self, alias: str, known: KnownKeys | None) -> _Trusted:
        """Return the newest keys, of a chain that holds those known: of this alias, and of the chain by any alias.

        All versions are fetched, always: to ask for some would tell which ones are known here, or that none is.
        """
        try:
            chain = read_chain(self._fetch(self.link.chain_url, MAX_CHAIN_BYTES))
        except NetworkError:
            if known is None or known.chain is None:
                raise
            return _Trusted(accept_keys(known.envelope, self.now), known.chain)  # they count as long as they last
        proven = prove_chain(chain, known, self.now)
        newest = KnownKeys(proven.newest, proven.first_root)
        if self.store.alias_keys(alias) != newest:
            with self.store.transaction():
                others = self.store.keys(proven.first_root)
                if others is not None:
                    proven.require_contains(others)
                self.store.remember_keys(alias, newest)
        return _Trusted(proven.keys, proven.first_root)

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
            return _Trusted(accept_keys(known, self.now), chain)
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
