# SPDX-License-Identifier: Apache-2.0
"""Releases: pending reports become batches; only reports in batches are counted (ADR 0020).

A batch consists of all pending reports of one cell (document × stratum) at the time of a release,
at least `step` of them. A batch never changes, and no later report is added to it. Estimates and
exports use only complete batches; for pending reports the server shows only a size band.
"""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import func, select, text

from frankly_server.store.access import TableAccess
from frankly_server.store.batches import BatchesTable, day_of
from frankly_server.store.counts import CountsTables

WITHHELD_STRATUM: Final = ""
"""Stratum of reports whose cells had too few reports when their document closed."""

_PENDING: Final = "survey = :survey AND document = :document AND release IS NULL"
_FULL_CELL: Final = "SELECT strata FROM {} GROUP BY strata HAVING count(*) >= :step"
_REMAINDER: Final = f"{_PENDING} AND (SELECT count(*) FROM reports WHERE {_PENDING})"  # noqa: S608 - constants only
# PostgreSQL stores rows in the order of writing, each with its transaction number (xmin), which
# would reveal the order of arrival. So all pending rows of the document, including those that stay
# pending, and all tokens spent since the last release are deleted and inserted again in the order
# of their random keys. One statement deletes and inserts the reports, so that a cell's size counts
# exactly the moved rows. On SQLite, `Database.forget_deleted` writes the whole file again.
_RELEASE: Final = {
    "postgresql": f"""
        WITH moved AS (DELETE FROM reports WHERE {_PENDING} RETURNING id, symbols, strata)
        INSERT INTO reports (survey, id, document, symbols, strata, release)
        SELECT :survey, id, :document, symbols, strata,
               CASE WHEN strata IN ({_FULL_CELL.format("moved")}) THEN CAST(:release AS integer) END
        FROM moved ORDER BY id""",  # noqa: S608 - constants only; values are parameters
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


class Releases(TableAccess):
    """Releases within one transaction."""

    def release(
        self,
        survey: str,
        digest: str,
        step: int,
        released: str,
        *,
        is_over: Callable[[], bool],
        unless_in: tuple[str, str] | None = None,
    ) -> int:
        """Release the pending reports of a document; return the number of released reports.

        Returns 0 if another process is releasing this document. unless_in : (start, end); there is
        no release if the newest release was between these times, inclusive. is_over : returns True
        if no report can arrive any more; called only if there is a release. The remaining reports
        are then released without their stratum, or deleted uncounted if there are fewer than `step`
        of them in total.
        released : time of the release, UTC, RFC 3339.
        """
        dialect, batches = self._connection.dialect.name, BatchesTable(self._connection)
        if self._is_postgresql and not self._locked(digest):
            return 0
        # Read after taking the lock, because another process may just have released the document.
        newest = batches.newest_time(digest) if unless_in else None
        if unless_in and newest is not None and unless_in[0] <= newest <= unless_in[1]:
            return 0
        document = bytes.fromhex(digest.removeprefix("sha256:"))
        release = batches.newest(digest) + 1
        keys = {"survey": bytes.fromhex(survey), "document": document}
        values = keys | {"release": release, "step": step}
        self._run(_RELEASE[dialect], values)
        if is_over():
            self._release_remainder(values)
        self._run(_SETTLE[dialect], values)
        numbers = CountsTables(self._connection).add(survey, digest, release, day_of(released))
        batches.add(digest, release, released, numbers)
        return sum(numbers.values())

    def _locked(self, digest: str) -> bool:
        """Return True if no other transaction is releasing this document.

        Needed only on PostgreSQL, because SQLite has one writer.
        """
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        locked = select(
            func.pg_try_advisory_xact_lock(func.hashtextextended(f"release {digest}", 0))
        )
        return bool(self._connection.scalar(locked))

    def _release_remainder(self, values: dict[str, Any]) -> None:
        # Each statement counts the pending rows itself, so that a report stored between the two
        # statements cannot be released in a batch that is too small.
        self._run(f"DELETE FROM reports WHERE {_REMAINDER} < :step", values)  # noqa: S608
        withheld = (
            f"UPDATE reports SET release = :release, strata = :stratum WHERE {_REMAINDER} >= :step"  # noqa: S608
        )
        self._run(withheld, values | {"stratum": WITHHELD_STRATUM})

    def _run(self, statement: str, values: dict[str, Any]) -> Any:
        return self._connection.execute(text(statement), values)
