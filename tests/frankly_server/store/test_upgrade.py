# SPDX-License-Identifier: Apache-2.0
"""Upgrade from live counts to batches: every report is counted once, even reports from an old server."""

from random import Random

from frankly_server.store import Database, ReportRow, downgrade, upgrade
from frankly_server.store.reports import symbols_text
from frankly_server.store.schema import SUPERSEDED
from sqlalchemy import Connection, text

from tests.frankly_server.samples import SURVEY, published, release, spent
from tests.frankly_server.store.counted import block, kept, mechanisms, pairs, singles, symbols

BEFORE = "0008"
STRATA = ("", '{"region":"north"}')


def old_server_keeps(connection: Connection, row: ReportRow) -> int:
    """Insert a row and a live count as the older release does; return the number of counted reports."""
    values = {
        "survey": bytes.fromhex(row.survey),
        "id": bytes.fromhex(row.id),
        "document": bytes.fromhex(row.document.removeprefix("sha256:")),
        "symbols": symbols_text(row.symbols),
        "strata": row.strata,
    }
    new = connection.execute(
        text(
            "INSERT INTO reports (survey, id, document, symbols, strata) "
            "VALUES (:survey, :id, :document, :symbols, :strata) ON CONFLICT DO NOTHING RETURNING id"
        ),
        values,
    ).all()
    if new:
        add = (
            "INSERT INTO counts (document, block, stratum, symbol, slot, n) VALUES (:document, 0, :strata, 0, 3, 1) "
            "ON CONFLICT (document, block, stratum, symbol, slot) DO UPDATE SET n = counts.n + excluded.n"
        )
        connection.execute(text(add), values)
    return len(new)


def add_token(connection: Connection, token_hash: str, *, spent: bool) -> None:
    values = {"survey": bytes.fromhex(SURVEY), "hash": bytes.fromhex(token_hash), "spent": spent}
    connection.execute(
        text("INSERT INTO tokens (survey, hash, spent) VALUES (:survey, :hash, :spent)"), values
    )


def old_tables(database: Database) -> list[int]:
    with database.engine.connect() as connection:
        return [
            connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()
            for name in sorted(SUPERSEDED)
        ]


def test_old_reports_and_those_of_an_old_server_are_counted_once(fresh_database: Database) -> None:
    database, rng = fresh_database, Random(1)
    drawn = mechanisms(rng)
    document = published(
        database, *(block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn))
    )
    rows = [
        ReportRow(
            SURVEY,
            f"{rng.getrandbits(128):032x}",
            document.digest,
            symbols(drawn, rng),
            STRATA[i % 2],
        )
        for i in range(40)
    ]
    downgrade(database, BEFORE)
    with database.engine.begin() as connection:
        assert sum(old_server_keeps(connection, row) for row in rows[:25]) == 25
        add_token(connection, "11" * 32, spent=True)
    assert old_tables(database)[0] == 2
    upgrade(database)
    # The old server still stores reports, detects copies and spends a token; its counts are
    # discarded.
    with database.engine.begin() as connection:
        assert sum(old_server_keeps(connection, row) for row in rows[20:]) == 15
        add_token(connection, "22" * 32, spent=False)
        connection.exec_driver_sql("UPDATE tokens SET spent = true WHERE NOT spent")
    assert old_tables(database) == [0, 0, 0]
    with database.reading("look") as tx:
        assert not tx.counts.of_document(document.digest)
        assert tx.reports.accepted(SURVEY) == 40
    assert release(database, document, step=5) == 40
    with database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))
        assert [(batch.release, batch.n) for batch in tx.batches.of_document(document.digest)] == [
            (1, 20),
            (1, 20),
        ]
        assert tx.counts.recount(SURVEY) == []
    assert spent(database) == 2
    with database.engine.connect() as connection:
        assert (
            connection.exec_driver_sql("SELECT count(*) FROM tokens WHERE settled").scalar_one()
            == 2
        )


def test_going_back_keeps_reports_and_released_counts(fresh_database: Database) -> None:
    database, rng = fresh_database, Random(2)
    drawn = mechanisms(rng)
    document = published(
        database, *(block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn))
    )
    rows = [
        ReportRow(SURVEY, f"{rng.getrandbits(128):032x}", document.digest, symbols(drawn, rng), "")
        for _ in range(12)
    ]
    with database.transaction("fill") as tx:
        tx.reports.add(rows)
    release(database, document)
    expected_singles = singles(drawn, rows)
    downgrade(database, BEFORE)
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM reports").scalar_one() == 12
        count_rows = connection.exec_driver_sql(
            "SELECT block, stratum, symbol, n FROM counts"
        ).all()
    assert {(block_, stratum, symbol): n for block_, stratum, symbol, n in count_rows} == {
        (key.block, key.stratum, key.symbol): n for key, n in expected_singles.items()
    }
    upgrade(database)
    release(database, document)
    with database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (expected_singles, pairs(drawn, rows))
