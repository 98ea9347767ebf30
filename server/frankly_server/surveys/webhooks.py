# SPDX-License-Identifier: Apache-2.0
"""Webhooks: signed notifications of closed surveys and met targets, with retries.

A notification contains the survey, the event and the number of released reports, but no data about
single reports. Form, headers and signature are those of Standard Webhooks (standardwebhooks.com), so
that receivers verify them with its libraries. The signature contains the time of the attempt.
"""

import base64
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from frankly_protocol.canonical import dumps
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem
from standardwebhooks import Webhook

from frankly_server.store import Database, Record, Transaction, unrecorded
from frankly_server.store.webhooks import DeliveryRow, WebhookRow
from frankly_server.surveys.outbound import Post, allowed

WAITS_S: Final = (60, 300, 1800, 7200, 21600, 86400)
"""Seconds between attempts: seven attempts in about 33 hours, then the delivery fails."""
CLOSED, MET, TEST = "survey.closed", "target.met", "test"
_PREFIX: Final = "whsec_"
_EVERY_S: Final = 30.0
_log: Final = structlog.get_logger("frankly.webhooks")


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """A survey's webhook address (or None), and its past and pending deliveries."""

    url: str | None
    deliveries: Sequence[DeliveryRow]


class Webhooks:
    """Service for addresses and the outbox; a background thread calls `run_round`."""

    def __init__(self, database: Database, clock: Clock, post: Post) -> None:
        self._database, self._clock, self._post = database, clock, post

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts that the operator allows; if there are none, webhooks are off."""
        return self._post.hosts

    def of(self, survey_id: str) -> WebhookStatus:
        """Return a survey's address and deliveries."""
        with self._database.reading("read webhook") as tx:
            row = tx.webhooks.get(survey_id)
            return WebhookStatus(None if row is None else row.url, tx.webhooks.of_survey(survey_id))

    def set(self, survey_id: str, url: str, record: Record = unrecorded) -> str:
        """Set the survey's address; return the new secret as receivers' libraries expect it.

        Past events are not sent. Raises InvalidInput: field_type, unsupported.
        """
        allowed(url, self._post.hosts)
        secret = secrets.token_hex(32)
        with self._database.administering("set webhook") as tx:
            tx.webhooks.remove(survey_id)
            tx.webhooks.put(WebhookRow(survey_id, url, secret))
            # Past events enter the outbox as delivered, so that no later round sends them.
            for event, row in self._happened(tx, survey_id):
                if tx.webhooks.add(row):
                    tx.webhooks.settle(
                        row, "delivered", f"{event} before this address was set; not sent"
                    )
            record(tx)
        return _PREFIX + base64.b64encode(bytes.fromhex(secret)).decode()

    def remove(self, survey_id: str, record: Record = unrecorded) -> None:
        """Delete the survey's webhook."""
        with self._database.administering("remove webhook") as tx:
            tx.webhooks.remove(survey_id)
            record(tx)

    def send_test(self, survey_id: str, record: Record = unrecorded) -> None:
        """Put a test message into the survey's outbox; it is sent like any other event.

        Raises InvalidInput: not_found without an address, immutable while an earlier test waits.
        """
        with self._database.administering("test webhook") as tx:
            survey = tx.surveys.get(survey_id)
            if tx.webhooks.get(survey_id) is None or survey is None:
                raise InvalidInput(Problem.NOT_FOUND, "set an address first", "url")
            if any(
                row.state == "waiting" and row.event.startswith(f"{TEST}/")
                for row in tx.webhooks.of_survey(survey_id)
            ):
                raise InvalidInput(
                    Problem.IMMUTABLE, "an earlier test message has not been delivered yet", "url"
                )
            latest = tx.documents.latest(survey_id)
            facts = {
                "survey": survey_id,
                "name": survey.name,
                "version": latest.version if latest else None,
                "reports": None,
                "target": None,
            }
            tx.webhooks.add(self._row(survey_id, f"{TEST}/{secrets.token_hex(4)}", TEST, facts))
            record(tx)

    def run_round(self) -> int:
        """Add new events to the outbox, send due deliveries, and return the number of attempts."""
        with self._database.reading("list webhooks") as tx:
            hooks = {row.survey: row for row in tx.webhooks.all()}
        # One transaction per survey, so that none of them is long.
        for survey_id in hooks:
            with self._database.transaction("note events") as tx:
                for _, row in self._happened(tx, survey_id):
                    tx.webhooks.add(row)
        with self._database.reading("due webhooks") as tx:
            # A webhook may have been removed after the list was read.
            latest = format_time(self._moment() + timedelta(seconds=max(WAITS_S)))
            due = [row for row in tx.webhooks.due(self._now(), latest) if row.survey in hooks]
        return sum(self._try(hooks[row.survey], row) for row in due)

    def _happened(self, tx: Transaction, survey_id: str) -> Iterator[tuple[str, DeliveryRow]]:
        """Yield the events of a survey that have occurred and are not in its outbox."""
        latest, row = tx.documents.latest(survey_id), tx.surveys.get(survey_id)
        state_row = tx.survey_states.get(survey_id)
        if latest is None or row is None:
            return
        document, stop = SurveyDocument.from_envelope(latest.envelope), state_row.stop_reports
        end = min(document.closes, document.expires)
        has_ended = state_row.state in ("closed", "archived") or self._clock.now() > end
        keys = {CLOSED: f"{CLOSED}/{latest.version}"} if has_ended else {}
        keys |= {} if stop is None else {MET: f"{MET}/{latest.version}/{stop}"}
        known_events = {delivery.event for delivery in tx.webhooks.of_survey(survey_id)}
        if set(keys.values()) <= known_events:
            return  # otherwise every round would count the reports of every survey
        n = tx.batches.number(survey_id)
        for event, key in keys.items():
            if key not in known_events and (event == CLOSED or n >= (stop or 0)):
                facts = {
                    "survey": survey_id,
                    "name": row.name,
                    "version": latest.version,
                    "reports": n,
                    "target": stop,
                }
                yield event, self._row(survey_id, key, event, facts)

    def _row(self, survey_id: str, key: str, event: str, facts: dict[str, Any]) -> DeliveryRow:
        # The body is stored, so that every attempt sends the same bytes and id.
        body = dumps({"type": event, "timestamp": self._now(), "data": facts}).decode()
        id_, now = secrets.token_hex(16), self._now()
        return DeliveryRow(survey_id, key, id_, body, "waiting", 0, now, "not tried yet")

    def _try(self, hook: WebhookRow, row: DeliveryRow) -> int:
        is_last = row.tries >= len(WAITS_S)
        due = (
            self._now()
            if is_last
            else format_time(self._moment() + timedelta(seconds=WAITS_S[row.tries]))
        )
        with self._database.transaction("claim webhook") as tx:
            # Committed before the request, so that no other process sends this delivery and a crash
            # only delays it.
            if not tx.webhooks.claim(row, due):
                return 0  # another process was first
        now, signer = self._moment(), Webhook(bytes.fromhex(hook.secret))
        headers = {
            "Content-Type": "application/json",
            "webhook-id": row.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signer.sign(row.id, now, row.body),
        }
        try:
            # Outside a transaction, because the request may take half a minute.
            status = self._post(hook.url, row.body.encode(), headers)
            # Redirects count as failures, because a redirect could lead to a host that is not
            # allowed.
            state, detail = (
                ("delivered" if 200 <= status < 300 else "waiting"),
                f"answered {status}",
            )
        except FranklyError as error:
            state, detail = "waiting", error.detail
        with self._database.transaction("settle webhook") as tx:
            tx.webhooks.settle(row, "failed" if is_last and state == "waiting" else state, detail)
        return 1

    def _moment(self) -> datetime:
        return self._clock.now().replace(microsecond=0)

    def _now(self) -> str:
        return format_time(self._moment())


class WebhookThread:
    """Background thread that calls `run_round` every `every_s` seconds.

    The thread starts with the first request to a process, because threads do not survive a fork.
    """

    def __init__(self, webhooks: Webhooks, every_s: float = _EVERY_S) -> None:
        self._webhooks, self._every_s = webhooks, every_s
        self._pid, self._over = 0, threading.Event()

    def wake(self) -> None:
        """Start the thread if this process has none and a host is allowed."""
        # A forked process inherits the stored pid of its parent, but no threads.
        if self._webhooks.hosts and self._pid != os.getpid():
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="frankly-webhooks", daemon=True).start()

    def stop(self) -> None:
        """End the thread after its round."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._webhooks.run_round()
            except FranklyError as error:  # for example while the database is down
                _log.warning("webhook delivery round failed", error=error.code)
            except Exception as error:  # noqa: BLE001 - a thread has no caller; the next round may succeed
                _log.error("webhook delivery round failed unexpectedly", error=type(error).__name__)
            # wait instead of sleep, so that stop() ends the thread immediately.
            self._over.wait(self._every_s)
