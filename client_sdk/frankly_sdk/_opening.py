# SPDX-License-Identifier: Apache-2.0
"""Retrieval of a survey from the store or the server, with every check in both cases."""

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
from frankly_sdk._trusted import Remembered, accept_survey
from frankly_sdk.errors import NetworkError
from frankly_sdk.events import Event, OnEvent
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import Store
from frankly_sdk.transport import Transport

_UNKNOWN = "the server does not know this survey; check that the link is complete"
_UNPUBLISHED = "the server does not know this survey, or not this version of it: copy all of the link, to its end"


@dataclass(frozen=True, slots=True)
class Opened:
    """An accepted survey with its signers.

    signed_by : ids of the keys that signed it.
    chain : name of the chain of those keys, `Proven.first_root`.
    pinned : True if the link contains its digest.
    logged : True if a witnessed log contains it.
    """

    document: SurveyDocument
    signed_by: tuple[str, ...]
    chain: str
    pinned: bool
    logged: bool = False


@dataclass(frozen=True, slots=True)
class _Trusted:
    """Valid keys, and the name of their chain."""

    keys: KeysDocument
    chain: str


@dataclass(frozen=True, slots=True)
class Opening:
    """One attempt to get the survey that `link` names, at the time `now`.

    log : True to request a proof from the log, if the keys name a log with witnesses.
    collect_hosts : hosts that may collect reports in addition to the link's.
    """

    link: SurveyLink
    store: Store
    transport: Transport
    now: datetime
    announce: OnEvent
    log: bool = False
    collect_hosts: tuple[str, ...] = ()

    def survey(self, shipped: bytes | None) -> Opened:
        """Return the survey; `shipped` is the keys document that the app ships with, if any.

        A pinned survey that this install has accepted before needs no network, unless the stored
        keys have expired or did not sign it, or the log's proof is needed and too old. Whenever a
        document is fetched, the keys are fetched too, so that a withdrawn publisher key is noticed;
        they must follow from the stored keys, and are stored even if the survey is then refused.

        Raises DocumentRejected or a subclass, LinkError, NetworkError, StoreError.
        """
        alias = self._alias(shipped)
        known_keys = self._known_keys(alias, shipped)
        if known_keys is not None and known_keys.chain is not None:
            trusted = self._still_good(known_keys.envelope, known_keys.chain)
            if trusted is not None and self._is_cached(self._remembered(trusted), trusted):
                return self._with_keys(trusted)
        return self._with_keys(self._newest(alias, known_keys))

    def _alias(self, shipped: bytes | None) -> str:
        """Return the alias of a chain: the link's origin, with the digest of any shipped keys.

        Keys shipped with the app get their own alias, because keys that were trusted on first use
        or shipped earlier do not authenticate the new ones. Two aliases may turn out to name the
        same chain.
        """
        return self.link.origin if shipped is None else f"{self.link.origin}#{digest_of(shipped)}"

    def _known_keys(self, alias: str, shipped: bytes | None) -> KnownKeys | None:
        """Return the newest known keys of the alias's chain, otherwise the shipped ones.

        Returns None on first use.
        """
        remembered = self.store.alias_keys(alias)
        if remembered is not None or shipped is None:
            return remembered
        shipped_keys = KnownKeys.shipped(shipped)
        return (
            shipped_keys
            if shipped_keys.chain is None
            else self.store.keys(shipped_keys.chain) or shipped_keys
        )

    def _newest(self, alias: str, known_keys: KnownKeys | None) -> _Trusted:
        """Return the newest keys of the server's chain, which must contain the stored keys.

        All versions are always fetched: a request for only some would reveal which ones this device
        has. If the server sends no usable response, stored keys are used until they expire.
        """
        try:
            chain = read_chain(self._fetch(self.link.chain_url, MAX_CHAIN_BYTES))
        except NetworkError:
            if known_keys is None or known_keys.chain is None:
                raise
            return _Trusted(accept_keys(known_keys.envelope, self.now), known_keys.chain)
        proven = prove_chain(chain, known_keys, self.now)
        newest = KnownKeys(proven.newest, proven.first_root)
        # Unchanged keys are not written again: another process may hold the write lock.
        if self.store.alias_keys(alias) != newest:
            with self.store.transaction():
                # Read again, because another process may have stored keys of this origin in the
                # meantime.
                for stored_keys in (
                    self.store.alias_keys(alias),
                    self.store.keys(proven.first_root),
                ):
                    if stored_keys is not None:
                        proven.require_contains(stored_keys)
                self.store.remember_keys(alias, newest)
        return _Trusted(proven.keys, proven.first_root)

    def _remembered(self, trusted: _Trusted) -> Remembered | None:
        """Return the document accepted last for this survey, or None if there is none.

        A document of an unknown chain is returned if enough of the publisher's current keys signed
        it.
        """
        remembered = self.store.survey(trusted.chain, self.link.survey)
        if remembered is not None:
            return remembered
        inherited = self.store.survey(UNKNOWN_CHAIN, self.link.survey)
        publisher = trusted.keys.publisher
        if inherited is None or not publisher.has_signed(inherited.envelope, SURVEY_TYPE):
            return None
        return inherited

    def _is_cached(self, remembered: Remembered | None, trusted: _Trusted) -> bool:
        """Return True if the pinned document is stored and its signers are still trusted."""
        # Only a pin makes the network unnecessary: without one, there may be a newer version.
        if remembered is None or remembered.digest != self.link.digest:
            return False
        return trusted.keys.publisher.has_signed(remembered.envelope, SURVEY_TYPE)

    def _still_good(self, envelope: bytes, chain: str) -> _Trusted | None:
        try:
            return _Trusted(accept_keys(envelope, self.now), chain)
        except DocumentRejected:
            return None

    def _with_keys(self, trusted: _Trusted) -> Opened:
        remembered = self._remembered(trusted)
        data = self._envelope(remembered, trusted)
        publisher, check = trusted.keys.publisher, partial(self._is_logged, trusted)
        try:
            accepted = accept_survey(
                data, self.link, publisher, remembered, self.now, check, self.collect_hosts
            )
        except Equivocation:
            self._keep_evidence(trusted.chain, remembered, data)
            raise
        # Stored only after every check, so that a refused document is never remembered.
        document = Remembered(accepted.document.version, accepted.document.digest, data)
        if accepted.withdrawn is not None and accepted.withdrawn != document.digest:
            self._keep_evidence(trusted.chain, remembered, data)
        if remembered is None or remembered.envelope != data:
            self.store.remember(trusted.chain, self.link.survey, document, accepted.withdrawn)
        return Opened(
            accepted.document,
            accepted.signed_by,
            trusted.chain,
            self.link.digest is not None,
            accepted.logged,
        )

    def _is_logged(self, trusted: _Trusted, digest: str) -> bool:
        """Return True if a witnessed log contains the document, False if none is consulted.

        Raises the errors of `LogRule.require` if the log does not contain it.
        """
        role = trusted.keys.log
        if not self.log or role is None or not role.witnesses:
            return False

        def fetch(path: str, limit: int, kind: str) -> bytes:
            return self._fetch(self.link.origin + path, limit, kind)

        def renamed(old_name: str) -> None:
            self.announce(
                Event(
                    "log_renamed",
                    self.link.survey,
                    "log_renamed",
                    f"the log is now called {role.log.name} (before: {old_name}); its old head is kept as evidence",
                )
            )

        rule = LogRule(role, trusted.chain, self.store, fetch, self.now, renamed)
        rule.require(digest, prefer_kept=digest == self.link.digest)
        return True

    def _envelope(self, remembered: Remembered | None, trusted: _Trusted) -> bytes:
        """Return the document's envelope.

        The stored one is returned if it is the pinned one, or if the link has no pin and the server
        sends no usable response.
        """
        if remembered is not None and self._is_cached(remembered, trusted):
            return remembered.envelope
        try:
            unknown = _UNKNOWN if self.link.digest is None else _UNPUBLISHED
            return self._fetch(self.link.document_url, MAX_ENVELOPE_BYTES, unknown=unknown)
        except NetworkError:
            # The stored document is not the pinned one, so it cannot be used instead.
            if remembered is None or self.link.digest is not None:
                raise
            return remembered.envelope

    def _keep_evidence(self, chain: str, remembered: Remembered | None, data: bytes) -> None:
        if remembered is not None:
            other_digest = digest_of(Envelope.from_bytes(data, SURVEY_TYPE).payload)
            if other_digest != remembered.digest:  # if equal, it is the log that has forked
                self.store.keep_evidence(
                    chain, {remembered.digest: remembered.envelope, other_digest: data}
                )

    def _fetch(
        self, url: str, limit: int, kind: str = "application/json", unknown: str = _UNKNOWN
    ) -> bytes:
        reply = self.transport.get(url, limit)
        if reply.status == 404:
            raise NetworkError(unknown, "not_found")
        if reply.status != 200:
            raise NetworkError(
                f"the server answered with status {reply.status}; try again later", "status"
            )
        # A captive portal sends its own page with status 200.
        if reply.content_type != kind:
            raise NetworkError(
                "the reply did not come from the survey's server: check the network's log-in page",
                "not_json",
            )
        return reply.body
