# SPDX-License-Identifier: Apache-2.0
"""64 concurrent copies of a report: one row, every copy acknowledged; other bodies refused (T11)."""

import threading
from collections import Counter
from pathlib import Path

import pytest
from frankly_server.app import create_app
from frankly_server.store import Database

from tests.frankly_server.log.sites import Place
from tests.frankly_server.samples import SURVEY, body, published, stored

COPIES = 64
PATH = f"/v1/surveys/{SURVEY}/reports"


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Place:
    """A server on each kind of database, with a clock within the samples' opening times."""
    return Place.make(tmp_path, None if database_url.startswith("sqlite") else database_url)


def race(place: Place, bodies: list[list[bytes]]) -> list[list[tuple[int, bytes]]]:
    """Send bodies[i][j] from thread j in round i, concurrently; return (status, body) by round."""
    app = create_app(place.settings, services=place.services)
    answers_by_round: list[list[tuple[int, bytes]]] = [[] for _ in bodies]
    together = threading.Barrier(COPIES)
    failed: list[BaseException] = []

    def run(number: int) -> None:
        client = app.test_client()
        try:
            for i, bodies_of_round in enumerate(bodies):
                together.wait(60)
                answer = client.post(
                    PATH, data=bodies_of_round[number], content_type="application/json"
                )
                answers_by_round[i].append((answer.status_code, bodies_of_round[number]))
        except BaseException as error:  # noqa: BLE001 - the main thread fails the test
            failed.append(error)
            together.abort()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(COPIES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    return answers_by_round


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
