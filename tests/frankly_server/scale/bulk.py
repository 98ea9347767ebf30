# SPDX-License-Identifier: Apache-2.0
"""Millions of reports put into PostgreSQL by its own statements, in the rows that intake writes."""

from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.store import Database, upgrade

from tests.frankly_server.samples import published

_REPORTS = """
INSERT INTO reports (survey, id, document, symbols, strata)
SELECT '\\x{survey}', decode(replace(gen_random_uuid()::text || '', '-', ''), 'hex'), '\\x{document}',
       (i % {a}) || ',' || ((i / 7) % {b}), ''
FROM generate_series(1, {n}) AS i
"""
_COUNTS = """
INSERT INTO counts (document, block, stratum, symbol, slot, n)
SELECT document, {block}, strata, split_part(symbols, ',', {place})::int, 0, count(*) FROM reports GROUP BY 1, 3, 4
"""
_PAIRS = """
INSERT INTO pair_counts (document, block, other, stratum, symbol, other_symbol, slot, n)
SELECT document, 0, 1, strata, split_part(symbols, ',', 1)::int, split_part(symbols, ',', 2)::int, 0, count(*)
FROM reports GROUP BY 1, 4, 5, 6
"""


def loaded(url: str, n: int) -> Database:
    """Return a database with a survey of two tables and n reports on it, counted."""
    database = Database(url)
    upgrade(database)
    document = published(database)
    tables = [b.mechanism for b in document.blocks]
    a, b = (m.reports for m in tables if isinstance(m, DenseMechanism))
    names = {"survey": document.survey, "document": document.digest.removeprefix("sha256:"), "a": a, "b": b, "n": n}
    with database.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(_REPORTS.format(**names).replace("%", "%%"))
        for block in (0, 1):
            connection.exec_driver_sql(_COUNTS.format(block=block, place=block + 1))
        connection.exec_driver_sql(_PAIRS)
    return database
