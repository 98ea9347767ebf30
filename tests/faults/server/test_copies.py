# SPDX-License-Identifier: Apache-2.0
"""Concurrent copies of a report: 64 copies make one row and are all acknowledged; other bodies are
refused (T11)."""

import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from frankly_server.app import create_app
from frankly_server.store import Database

from tests.frankly_server.log.sites import Place
from tests.frankly_server.samples import SURVEY, body, published, stored
from tests.threads import concurrently

COPIES = 64
PATH = f"/v1/surveys/{SURVEY}/reports"


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Place:
    """A server on each kind of database, with a clock inside the samples' opening times."""
    return Place.make(tmp_path, None if database_url.startswith("sqlite") else database_url)


def race(place: Place, bodies: list[list[bytes]]) -> list[list[tuple[int, bytes]]]:
    """Send bodies[i][j] concurrently from thread j in round i; return (status, body) by round."""
    app = create_app(place.settings, services=place.services)
    answers_by_round: list[list[tuple[int, bytes]]] = [[] for _ in bodies]
    together = threading.Barrier(COPIES)
    failed: list[BaseException] = []

    def run(number: int) -> None:
        client = app.test_client()
        try:
            for i, bodies_of_round in enumerate(bodies):
                together.wait(60)
                sent = bodies_of_round[number]
                answers_by_round[i].append((delivered(client, sent), sent))
        except BaseException as error:  # noqa: BLE001 - the main thread fails the test
            failed.append(error)
            together.abort()

    concurrently(run, *[(number,) for number in range(COPIES)])
    assert not failed
    return answers_by_round


def delivered(client: FlaskClient, sent: bytes) -> int:
    """Send a report as the SDKs do, repeating it after each 503; return the last response's status.

    There are more threads than the server has slots, so a server on a slow machine refuses some
    requests.
    """
    deadline = time.monotonic() + 60
    while True:
        status = client.post(PATH, data=sent, content_type="application/json").status_code
        if status != 503 or time.monotonic() > deadline:
            return status
        time.sleep(0.05)


def stored_ids(database: Database) -> Counter[str]:
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == []
        return Counter(row.id for row in stored(tx, SURVEY))


def test_copies_are_one_report(place: Place, full: bool) -> None:
    ids = 1000 if full else 4
    document = published(place.services.database)
    bodies = [[body(document, report_id=f"{i:032x}")] * COPIES for i in range(ids)]
    for answers in race(place, bodies):
        assert Counter(status for status, _ in answers) == {201: 1, 200: COPIES - 1}
    assert stored_ids(place.services.database) == Counter({f"{i:032x}": 1 for i in range(ids)})
    place.services.close()


def test_the_first_of_two_bodies_is_stored_and_the_other_refused(place: Place, full: bool) -> None:
    ids = 1000 if full else 4
    document = published(place.services.database)
    bodies = [
        [body(document, j % 2, 0, report_id=f"{i:032x}") for j in range(COPIES)] for i in range(ids)
    ]
    for answers in race(place, bodies):
        [winner] = [sent for status, sent in answers if status == 201]
        assert {sent == winner for status, sent in answers if status == 409} == {False}
        assert Counter(status for status, _ in answers) == {
            201: 1,
            200: COPIES // 2 - 1,
            409: COPIES // 2,
        }
        with place.services.database.reading("check") as tx:
            stored_rows = tx.reports.get_many(
                SURVEY, [winner[winner.index(b'"id":"') + 6 :][:32].decode()]
            )
        assert [row.symbols[0] for row in stored_rows.values()] == [bodies_symbol(winner)]
    assert stored_ids(place.services.database) == Counter({f"{i:032x}": 1 for i in range(ids)})
    place.services.close()


def bodies_symbol(sent: bytes) -> int:
    """Return the first symbol in a report's bytes."""
    return int(sent[sent.index(b'"y":[') + 5 : sent.index(b'"y":[') + 6])
