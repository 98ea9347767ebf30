# SPDX-License-Identifier: Apache-2.0
"""Releases: pending reports become batches, and only then are they counted (ADR 0020).

A batch is all pending reports of one cell (document × stratum) at the moment of a release, at least `step` of them. It
never changes, and no later report joins it. Whatever the server tells of reports is a sum over whole batches.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, text

from frankly_server.store.counts import Counts
from frankly_server.store.schema import batches, documents

NOT_TOLD: Final = ""
"""Stratum of the reports that were too few in their own cells when their document closed."""

_PENDING: Final = "survey = :survey AND document = :document AND release IS NULL"
_FULL_CELL: Final = "SELECT strata FROM {} GROUP BY strata HAVING count(*) >= :step"
# PostgreSQL keeps rows in the order in which they were written, each with the number of its transaction. All pending
# rows, released or not, and all tokens spent since are therefore written anew in an order that tells nothing. One
# statement: a cell is judged by the rows that were moved. SQLite keeps rows in the order of their keys.
_RELEASE: Final = {
    "postgresql": f"""
        WITH moved AS (DELETE FROM reports WHERE {_PENDING} RETURNING id, symbols, strata)
        INSERT INTO reports (survey, id, document, symbols, strata, release)
        SELECT :survey, id, :document, symbols, strata,
               CASE WHEN strata IN ({_FULL_CELL.format("moved")}) THEN CAST(:release AS integer) END
        FROM moved ORDER BY id""",  # noqa: S608 - parts of ours; values travel as parameters
    "sqlite": f"""
        UPDATE reports SET release = :release
        WHERE {_PENDING} AND strata IN ({_FULL_CELL.format(f"reports WHERE {_PENDING}")})""",  # noqa: S608
}
_SETTLE: Final = {
    "postgresql": """
        WITH moved AS (DELETE FROM tokens WHERE survey = :survey AND spent AND NOT settled RETURNING hash)
        INSERT INTO tokens (survey, hash, spent, settled) SELECT :survey, hash, true, true FROM moved ORDER BY hash""",
    "sqlite": "UPDATE tokens SET settled = 1 WHERE survey = :survey AND spent AND NOT settled",
}


class Batch(NamedTuple):
    """One batch: its release (1, 2, … within the document), stratum, time (UTC, RFC 3339) and number of reports."""

    release: int
    stratum: str
    released: str
    n: int


class Releases:
    """Releases within one transaction, and the `batches` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_sqlite = connection.dialect.name == "sqlite"

    def release(self, survey: str, digest: str, step: int, released: str, *, is_over: bool) -> int:
        """Release the pending reports of a document; return how many, 0 also if another process is doing so.

        is_over : no report can come any more, so that what is left is released without its stratum, or deleted
        uncounted if it is less than a step altogether. released : the time, UTC, RFC 3339.
        """
        if not self._is_sqlite:  # there, whoever writes is alone
            self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            locked = select(func.pg_try_advisory_xact_lock(func.hashtextextended(f"release {digest}", 0)))
            if not self._connection.scalar(locked):
                return 0
        newest = select(func.coalesce(func.max(batches.c.release), 0)).where(batches.c.document == digest)
        values = {
            "survey": bytes.fromhex(survey), "document": bytes.fromhex(digest.removeprefix("sha256:")), "step": step,
            "release": self._connection.execute(newest).scalar_one() + 1,
        }  # fmt: skip
        self._run(_RELEASE[self._connection.dialect.name], values)
        if is_over:
            self._release_rest(values)
        self._run(_SETTLE[self._connection.dialect.name], values)
        return self._count(survey, digest, values["release"], released)

    def of_document(self, digest: str) -> Sequence[Batch]:
        """Return the batches of a document, by release and stratum."""
        columns = batches.c.release, batches.c.stratum, batches.c.released, batches.c.n
        wanted = select(*columns).where(batches.c.document == digest).order_by(*columns[:2])
        return [Batch(*row) for row in self._connection.execute(wanted)]

    def number(self, survey: str) -> int:
        """Return how many reports of a survey have been released."""
        of_survey = batches.c.document.in_(select(documents.c.digest).where(documents.c.survey == survey))
        total = select(func.coalesce(func.sum(batches.c.n), 0)).where(of_survey)
        return int(self._connection.execute(total).scalar_one())

    def erase(self, digest: str) -> None:
        """Delete the batches of a document."""
        self._connection.execute(delete(batches).where(batches.c.document == digest))

    def _release_rest(self, values: dict[str, Any]) -> None:
        if self._run(f"SELECT count(*) FROM reports WHERE {_PENDING}", values).scalar_one() < values["step"]:  # noqa: S608
            self._run(f"DELETE FROM reports WHERE {_PENDING}", values)  # noqa: S608
        else:
            told = values | {"stratum": NOT_TOLD}
            self._run(f"UPDATE reports SET release = :release, strata = :stratum WHERE {_PENDING}", told)  # noqa: S608

    def _count(self, survey: str, digest: str, release: int, released: str) -> int:
        numbers = Counts(self._connection).add(survey, digest, release, released[:10])
        rows = [
            {"document": digest, "release": release, "stratum": stratum, "released": released, "n": n}
            for stratum, n in sorted(numbers.items())
        ]
        if rows:
            self._connection.execute(insert(batches), rows)
        return sum(numbers.values())

    def _run(self, statement: str, values: dict[str, Any]) -> Any:
        return self._connection.execute(text(statement), values)
