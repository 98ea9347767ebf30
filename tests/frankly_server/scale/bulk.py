# SPDX-License-Identifier: Apache-2.0
"""Insertion of millions of reports into PostgreSQL by SQL, with the same rows as intake writes."""

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.store import Database

_REPORTS = """
INSERT INTO reports (survey, id, document, symbols, strata)
SELECT '\\x{survey}', id, '\\x{document}', (i % {a}) || ',' || ((i / 7) % {b}), ''
FROM (SELECT i, uuid_send(gen_random_uuid()) AS id FROM generate_series({first}, {last}) AS i OFFSET 0) AS made
ORDER BY id
"""
_AT_ONCE = 5_000_000


def fill(database: Database, document: SurveyDocument, n: int) -> None:
    """Insert and release n reports for a survey with two tables, in an empty PostgreSQL database.

    Random ids are inserted in sorted order, so that the index of the key grows at its end.
    """
    a, b = (
        block.mechanism.reports
        for block in document.blocks
        if isinstance(block.mechanism, DenseMechanism)
    )
    names = {
        "survey": document.survey,
        "document": document.digest.removeprefix("sha256:"),
        "a": a,
        "b": b,
    }
    with database.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        for first in range(1, n + 1, _AT_ONCE):
            within = names | {"first": first, "last": min(n, first + _AT_ONCE - 1)}
            connection.exec_driver_sql(_REPORTS.format(**within).replace("%", "%%"))
    with database.transaction("release") as tx:
        tx.releases.release(
            document.survey, document.digest, 2, "2026-06-02T00:00:00Z", is_over=lambda: False
        )
