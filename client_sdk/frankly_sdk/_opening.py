# SPDX-License-Identifier: Apache-2.0
"""Getting a survey: from memory if this install has it, otherwise from the server, always through every check."""

from dataclasses import dataclass
from datetime import datetime

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import MAX_ENVELOPE_BYTES, SURVEY_TYPE, Envelope
from frankly_protocol.errors import ClockError, DocumentRejected, Equivocation
from frankly_protocol.trust import KeysDocument, accept_keys

from frankly_sdk._trusted import Remembered, accept_survey
from frankly_sdk.errors import NetworkError
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import Store
from frankly_sdk.transport import Transport

_KEYS_BYTES = 256 * 2**10


@dataclass(frozen=True, slots=True)
class Opened:
    """An accepted survey, the ids of the keys that may sign it, and whether the link pinned it."""

    document: SurveyDocument
    signed_by: tuple[str, ...]
    pinned: bool


def open_survey(link: SurveyLink, store: Store, transport: Transport, keys: bytes | None, now: datetime) -> Opened:
    """Return the survey a link names; `keys` are those shipped with the app, if any.

    A pinned survey that this install has accepted before needs no network. New keys are fetched if the ones at hand
    have expired or did not sign the document; they must follow from the old ones.
    """
    remembered = store.survey(link.survey)
    known = keys or store.keys(link.origin)
    cached = remembered if remembered and link.digest == remembered.digest else None
    if known is not None:
        try:
            return _accept(link, store, transport, (known, accept_keys(known, known, now)), cached, now)
        except DocumentRejected as error:
            if not isinstance(error, ClockError) and error.reason != "signature":
                raise
    fetched = _fetch(transport, link.keys_url, _KEYS_BYTES)
    return _accept(link, store, transport, (fetched, accept_keys(fetched, known, now)), cached, now)


def _accept(
    link: SurveyLink,
    store: Store,
    transport: Transport,
    keys: tuple[bytes, KeysDocument],
    cached: Remembered | None,
    now: datetime,
) -> Opened:
    remembered = store.survey(link.survey)
    data = cached.envelope if cached else _fetch(transport, link.document_url, MAX_ENVELOPE_BYTES)
    publisher = keys[1].publisher
    try:
        document = accept_survey(data, link, publisher, remembered, now)
    except Equivocation:
        if remembered is not None:
            payload = Envelope.from_bytes(data, SURVEY_TYPE).payload
            store.keep_evidence({remembered.digest: remembered.envelope, SurveyDocument.parse(payload).digest: data})
        raise
    if cached is None or keys[0] != store.keys(link.origin):
        store.remember(link.origin, keys[0], link.survey, Remembered(document.version, document.digest, data))
    return Opened(document, tuple(key.key_id for key in publisher.keys), link.digest is not None)


def _fetch(transport: Transport, url: str, limit: int) -> bytes:
    answer = transport.get(url, limit)
    if answer.status == 404:
        raise NetworkError("the server knows no such survey; check that the link is whole", "not_found")
    if answer.status != 200:
        raise NetworkError(f"the server answered with status {answer.status}; try again later", "status")
    return answer.body
