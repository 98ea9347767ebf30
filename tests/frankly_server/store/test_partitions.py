# SPDX-License-Identifier: Apache-2.0
"""Partitions: reports in a separate partition are unchanged, and erasing them drops the partition."""

from dataclasses import replace

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.store import Database, upgrade

from tests.frankly_server.samples import SURVEY, row, stored

OTHER = "cd" * 16


@pytest.fixture
def partitioned(postgres_url: str) -> Database:
    """A separate PostgreSQL database without reports, for tests of partitions."""
    found = Database(postgres_url)
    upgrade(found)
    return found


def put(database: Database, n: int, survey: str = SURVEY, start: int = 0) -> None:
    with database.transaction("put") as tx:
        rows = [replace(row(report_id=f"{i:032x}"), survey=survey) for i in range(start, start + n)]
        tx.reports.add(rows)


def ids(database: Database, survey: str = SURVEY) -> list[str]:
    with database.reading("check") as tx:
        return sorted(found.id for found in stored(tx, survey))


def in_default(database: Database) -> int:
    with database.engine.connect() as connection:
        return int(
            connection.exec_driver_sql(
                "SELECT count(*) FROM frankly_reports.reports_default"
            ).scalar_one()
        )


def test_a_survey_moves_to_a_partition_and_continues(partitioned: Database) -> None:
    put(partitioned, 5)
    put(partitioned, 3, OTHER)
    with partitioned.transaction("make") as tx:
        assert tx.partitions.make(SURVEY)
        assert not tx.partitions.make(SURVEY)
        assert tx.partitions.surveys() == {SURVEY}
    assert in_default(partitioned) == 3
    put(partitioned, 4, start=3)  # two reports are already stored
    assert ids(partitioned) == [f"{i:032x}" for i in range(7)]
    assert in_default(partitioned) == 3
    with partitioned.reading("check") as tx:
        assert tx.reports.accepted(SURVEY) == 7
        assert tx.reports.get_many(SURVEY, [f"{6:032x}"])
    partitioned.close()


def test_erasing_drops_the_partition(partitioned: Database) -> None:
    put(partitioned, 5)
    put(partitioned, 3, OTHER)
    with partitioned.transaction("make") as tx:
        tx.partitions.make(SURVEY)
    with partitioned.transaction("erase") as tx:
        assert tx.reports.erase(SURVEY) == 5
        assert tx.partitions.surveys() == set()
    with partitioned.transaction("erase") as tx:
        assert tx.reports.erase(OTHER) == 3
    put(partitioned, 2)
    assert (ids(partitioned), ids(partitioned, OTHER)) == ([f"{i:032x}" for i in range(2)], [])
    partitioned.close()


def test_sqlite_has_none(sqlite: Database) -> None:
    with sqlite.transaction("make") as tx:
        assert tx.partitions.surveys() == set()
        with pytest.raises(InvalidInput, match="only PostgreSQL"):
            tx.partitions.make(SURVEY)


def test_only_ids_become_names(partitioned: Database) -> None:
    for survey in ("", "x", "ab" * 15, "'; DROP TABLE reports; --", "AB" * 16):
        with (
            partitioned.transaction("make") as tx,
            pytest.raises(InvalidInput, match="hexadecimal"),
        ):
            tx.partitions.make(survey)
    partitioned.close()


def test_erasing_waits_for_inserts_into_the_common_table_only(partitioned: Database) -> None:
    """Reports of other surveys wait for an erasure in the common table, but not for one in a partition."""
    with partitioned.transaction("make") as tx:
        assert tx.partitions.make(SURVEY)
    query = "SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND relation = 'reports'::regclass"
    for survey, waits in ((SURVEY, 0), (OTHER, 1)):
        with partitioned.transaction("erase") as tx:
            tx.partitions.hold(survey, block=True)
            assert tx._connection.exec_driver_sql(query).scalar_one() == waits
    partitioned.close()
