# SPDX-License-Identifier: Apache-2.0
"""Acceptance of a survey document: a function of bytes, remembered state, time and a log check.

The numbers are those of docs/protocol.md §4. Step (10) is `Policy.check`, step (11) is `explain`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, Equivocation, RollbackDetected
from frankly_protocol.trust import Role

from frankly_sdk.link import SurveyLink, require_collect


@dataclass(frozen=True, slots=True)
class Remembered:
    """The document that this install accepted last for a survey."""

    version: int
    digest: str
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted document and its signers.

    signed_by : ids of the publisher's keys with a valid signature.
    logged : True if a witnessed log contains it.
    withdrawn : digest of the remembered document if it is no longer signed by enough of the
        publisher's keys, otherwise None.
    """

    document: SurveyDocument
    signed_by: tuple[str, ...]
    logged: bool
    withdrawn: str | None


LogCheck = Callable[[str], bool]
"""Function that looks up a digest in the log. Returns True if the log contains it, False if no log
is consulted; otherwise raises DocumentRejected or NetworkError."""


def accept_survey(
    data: bytes,
    link: SurveyLink,
    publisher: Role,
    remembered: Remembered | None,
    now: datetime,
    log_check: LogCheck = lambda _digest: False,
    collect_hosts: Collection[str] = (),
) -> Accepted:
    """Return the document in the envelope `data` if it passes steps (1) to (9).

    collect_hosts : hosts that may collect reports in addition to the link's.

    The remembered document sets a lower bound for the version only while enough of the publisher's
    current keys have signed it: a document signed with a stolen key must not block genuine
    documents after that key is withdrawn, whatever its version is.

    Raises DocumentRejected or a subclass, LinkError for the address that collects reports, or the
    errors of `log_check`; after an error, nothing may be sent.
    """
    envelope = Envelope.from_bytes(data, SURVEY_TYPE)  # (1) (2)
    payload = envelope.verify(publisher.keys, publisher.threshold)  # (3)
    document = SurveyDocument.parse(payload)  # (4) (5)
    if document.survey != link.survey:
        raise DocumentRejected("pin", "this is another survey's document", "survey")
    require_collect(document.collect_url, link.origin, collect_hosts)
    document.require_window(now)  # (6)
    binding = (
        remembered
        if remembered is not None and publisher.has_signed(remembered.envelope, SURVEY_TYPE)
        else None
    )
    _require_not_older(document, binding)  # (7)
    require_pin(link, digest_of(payload))  # (8)
    logged = log_check(digest_of(payload))  # (8)
    # This check comes last because it takes longest; documents refused for other reasons never
    # reach it.
    document.require_private()  # (9)
    withdrawn = remembered.digest if remembered is not None and binding is None else None
    return Accepted(document, _signers(envelope, publisher), logged, withdrawn)


def require_pin(link: SurveyLink, digest: str) -> None:
    """Raise DocumentRejected("pin") unless the link pins this digest or none (step 8)."""
    if link.digest is not None and digest != link.digest:
        raise DocumentRejected(
            "pin", f"the link pins {link.digest}, the server sent {digest}", "digest"
        )


def _require_not_older(document: SurveyDocument, remembered: Remembered | None) -> None:
    if remembered is None or document.version > remembered.version:
        return
    if document.version < remembered.version:
        raise RollbackDetected(
            f"version {document.version} is older than version {remembered.version}, seen before"
        )
    if document.digest != remembered.digest:
        raise Equivocation(f"version {document.version} has been seen here with other content")


def _signers(envelope: Envelope, publisher: Role) -> tuple[str, ...]:
    # The threshold may be met although further signatures are invalid, and those signers must not
    # be listed.
    valid = envelope.signers(publisher.keys)
    return tuple(key.key_id for key in publisher.keys if key.key_id in valid)
