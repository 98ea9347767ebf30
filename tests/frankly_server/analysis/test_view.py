# SPDX-License-Identifier: Apache-2.0
"""SQL view `noisy_counts`: the counts of released batches, read-only."""

import pytest
from frankly_server.store import Database
from sqlalchemy.exc import DBAPIError

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_server.samples import SURVEY, put, released, row


def test_the_view_shows_counts(database: Database) -> None:
    document = put(database, survey(ldp_block("affair", "1")))
    rows = [row(y, document=document.digest) for y in (0, 0, 1)]
    for counted_row in rows:
        released(database, document, [counted_row])
    with database.engine.connect() as connection:
        selected = connection.exec_driver_sql(
            "SELECT survey, version, document, block, stratum, symbol, n FROM noisy_counts"
        )
        shown_rows = sorted(tuple(line) for line in selected)
    assert [(*line[:-1], int(line[-1])) for line in shown_rows] == [
        (SURVEY, 1, document.digest, 0, "", 0, 2),
        (SURVEY, 1, document.digest, 0, "", 1, 1),
    ]
    with pytest.raises(DBAPIError), database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM noisy_counts")
