# SPDX-License-Identifier: Apache-2.0
"""Statements about one row among several: only this row is read, changed or replaced."""

import threading
from dataclasses import replace

from frankly_protocol.errors import InvalidInput
from frankly_server.store import Database
from frankly_server.store.accounts import AccountRow
from frankly_server.store.audit import AuditEvent
from frankly_server.store.jobs import JobRow
from frankly_server.store.partitions import _table
from frankly_server.store.webhooks import DeliveryRow, WebhookRow

from tests.frankly_server.samples import SURVEY, published
from tests.refusals import code_and_field

OTHER = "cd" * 16


def test_a_job_is_found_by_its_id(sqlite: Database) -> None:
    first = JobRow("01" * 16, SURVEY, "running", 0, 1, "", "2026-06-01T12:00:00Z")
    second = replace(first, id="02" * 16, done=1)
    published(sqlite)
    with sqlite.transaction("add") as tx:
        tx.jobs.add(first)
        tx.jobs.add(second)
        tx.jobs.change(second.id, detail="changed")
        assert tx.jobs.ask_to_stop(second.id, "2026-06-01T12:00:01Z")
        assert not tx.jobs.ask_to_stop(second.id, "2026-06-01T12:00:02Z")
        assert tx.jobs.get(first.id) == first
        assert tx.jobs.get(second.id) == replace(
            second, detail="changed", state="cancelling", updated="2026-06-01T12:00:01Z"
        )
        assert tx.jobs.get("03" * 16) is None


def test_a_survey_has_one_webhook_and_a_new_one_replaces_no_other(sqlite: Database) -> None:
    published(sqlite)
    published(sqlite, survey_id=OTHER)
    other = WebhookRow(OTHER, "https://other.example", "other")
    with sqlite.transaction("put") as tx:
        tx.webhooks.put(other)
        for url in ("https://first.example", "https://second.example"):
            tx.webhooks.put(WebhookRow(SURVEY, url, "secret"))
        webhook = tx.webhooks.get(SURVEY)
        assert webhook is not None
        assert webhook.url == "https://second.example"
        assert tx.webhooks.get(OTHER) == other
        tx.webhooks.remove(SURVEY)
        assert tx.webhooks.all() == [other]


def test_one_document_is_signed_again(sqlite: Database) -> None:
    document, other = published(sqlite), published(sqlite, survey_id=OTHER)
    with sqlite.transaction("renew") as tx:
        before = tx.documents.get(other.digest)
        tx.documents.renew(document.digest, b"signed again")
        renewed = tx.documents.get(document.digest)
        assert renewed is not None
        assert renewed.envelope == b"signed again"
        assert tx.documents.get(other.digest) == before


def test_a_long_subject_is_cut_to_its_column_and_never_stops_an_action(sqlite: Database) -> None:
    event = AuditEvent("2026-06-01T12:00:00Z", "main", "ada@example.org", "survey.applied", "")
    with sqlite.transaction("audit") as tx:
        for length in (254, 255, 4000):
            tx.audit.add(replace(event, subject="s" * length))
        trail = tx.audit.newest("main", None, 10)
    assert [len(stored.subject) for stored in trail] == [254, 254, 254]


def test_concurrent_appends_to_the_log_wait_and_get_the_next_position(database: Database) -> None:
    """The second append reads the size before the first append is committed."""
    documents = [published(database).digest, published(database, survey_id=OTHER).digest]
    positions: list[int] = []

    def append_second() -> None:
        with database.transaction("second") as tx:
            positions.append(tx.log.append(documents[1]))

    second = threading.Thread(target=append_second)
    with database.transaction("first") as tx:
        positions.append(tx.log.append(documents[0]))
        second.start()
        second.join(0.3)
        assert second.is_alive()
    second.join(30)
    assert positions == [0, 1]


def test_a_partition_is_named_by_an_id_only() -> None:
    assert _table(SURVEY).endswith(f".survey_{SURVEY}")
    for text in ("", "ab", SURVEY.upper(), f"{SURVEY}; DROP TABLE reports", f"{SURVEY}\n"):
        assert code_and_field(InvalidInput, _table, text) == ("survey_unknown", "survey")


def test_a_delivery_is_claimed_once_and_without_changing_others(sqlite: Database) -> None:
    published(sqlite)
    first = DeliveryRow(
        SURVEY, "closed 1", "01" * 16, "{}", "waiting", 0, "2026-06-01T12:00:00Z", ""
    )
    second = replace(first, event="closed 2", id="02" * 16)
    later = "2026-06-01T13:00:00Z"
    with sqlite.transaction("claim") as tx:
        assert tx.webhooks.add(first)
        assert tx.webhooks.add(second)
        assert not tx.webhooks.add(first)
        assert tx.webhooks.claim(first, later)
        assert not tx.webhooks.claim(first, later)
        due = {
            row.event: (row.tries, row.due)
            for row in tx.webhooks.due(later, "2026-06-02T12:00:00Z")
        }
    assert due == {"closed 1": (1, later), "closed 2": (0, first.due)}


def test_expired_pending_sign_ins_are_deleted_with_the_next_one(sqlite: Database) -> None:
    account = AccountRow(
        "0a" * 16, "main", "ada@example.org", "hash", "owner", "2026-06-01T12:00:00Z"
    )
    query = "SELECT hash FROM pending_sign_ins ORDER BY hash"
    with sqlite.transaction("sign in") as tx:
        tx.accounts.add(account)
        for i, minute in enumerate((0, 1, 5)):
            now, expires = f"2026-06-01T12:0{minute}:00Z", f"2026-06-01T12:0{minute + 4}:00Z"
            tx.second_factors.add_pending(f"{i:064x}", account.id, expires, now)
        assert tx.second_factors.pending(f"{1:064x}", "2026-06-01T12:05:00Z") is None
        assert len(tx._connection.exec_driver_sql(query).all()) == 1
