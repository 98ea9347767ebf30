# SPDX-License-Identifier: Apache-2.0
"""Baseline of batches: COPY into a table with the same columns and primary key."""

import secrets
import time

import psycopg
from frankly_protocol.documents import SurveyDocument

from _intake.bare import TABLE, Row, copied


class Copying:
    """COPY of rows into a table of the same columns and key, in a separate database."""

    def __init__(self, url: str, document: SurveyDocument) -> None:
        self._document = document
        self._connection = psycopg.connect(url.replace("+psycopg", ""))
        self._connection.execute(TABLE.format(bytes="BYTEA"))
        self._connection.commit()

    def per_s(self, n: int, size: int) -> float:
        """Return the rows per second when n rows are copied in transactions of `size`."""
        rows = _rows(self._document, n)
        start = time.perf_counter()
        for at in range(0, n, size):
            copied(self._connection, rows[at : at + size])
            self._connection.commit()
        return n / (time.perf_counter() - start)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _rows(document: SurveyDocument, n: int) -> list[Row]:
    survey, digest = (
        bytes.fromhex(document.survey),
        bytes.fromhex(document.digest.removeprefix("sha256:")),
    )
    return [(survey, secrets.token_bytes(16), digest, f"{i % 5},{i % 3}", "") for i in range(n)]
