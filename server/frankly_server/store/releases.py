# SPDX-License-Identifier: Apache-2.0
"""Releases: pending reports become batches; only reports in batches are counted (ADR 0020).

A batch consists of all pending reports of one cell (document × stratum) at the time of a release,
at least `step` of them. A batch never changes, and no later report is added to it. Estimates and
exports use only complete batches; for pending reports the server shows only a size band.

With an instructed item a pending report's stratum also says whether it passed. This has no influence
on when it is released: a cell is released as a whole. It becomes two batches, of those that passed
and of those that failed, if both have at least `step` reports. Otherwise it becomes one whose reports
no longer say it, and the number of those that failed is kept with it. If at least `step` passed, the
counts of those that failed wait for those of other cells, and are released with them (`CountsTables`).

With arms the stratum also says which was drawn, so a cell is of one arm. What remains at the end is
released, or deleted, arm by arm: rows may lose their strata, but their symbols show the arm anyway.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from frankly_protocol import canonical
from frankly_protocol.questions import FAILED, PASSED
from sqlalchemy import func, select, text

from frankly_server.store.access import TableAccess
from frankly_server.store.batches import BatchesTable, day_of
from frankly_server.store.counts import CountsTables

WITHHELD_STRATUM: Final = ""
"""Stratum of reports whose cells had too few reports when their document closed."""

_PENDING: Final = "survey = :survey AND document = :document AND release IS NULL"
_CELL: Final = "strata"
_CELL_WITH_ITEM: Final = "replace(strata, :failed, :passed)"
"""The stratum as if every report had passed, so that a cell consists of those that passed and failed."""
_PENDING_OF_ARM: Final = f"{_PENDING} AND replace(strata, :arm, '') <> strata"
_WITHHELD: Final = ":stratum"
_WITHHELD_WITH_ITEM: Final = (
    f"CASE WHEN strata = {_CELL_WITH_ITEM} THEN :all_passed ELSE :all_failed END"
)
# PostgreSQL stores rows in the order of writing, each with its transaction number (xmin), which
# would reveal the order of arrival. So all pending rows of the document, including those that stay
# pending, and all tokens spent since the last release are deleted and inserted again in the order
# of their random keys. One statement deletes and inserts the reports, so that a cell's size counts
# exactly the moved rows. On SQLite, `Database.forget_deleted` writes the whole file again.
_RELEASE: Final = {
    "postgresql": """
        WITH moved AS (DELETE FROM reports WHERE {pending} RETURNING id, symbols, strata)
        INSERT INTO reports (survey, id, document, symbols, strata, release)
        SELECT :survey, id, :document, symbols, strata,
               CASE WHEN {cell} IN (SELECT {cell} FROM moved GROUP BY {cell} HAVING count(*) >= :step)
               THEN CAST(:release AS integer) END
        FROM moved ORDER BY id""",
    "sqlite": """
        UPDATE reports SET release = :release WHERE {pending} AND {cell} IN
        (SELECT {cell} FROM reports WHERE {pending} GROUP BY {cell} HAVING count(*) >= :step)""",
}
_SETTLE: Final = {
    "postgresql": """
        WITH moved AS (DELETE FROM tokens WHERE survey = :survey AND spent AND NOT settled RETURNING hash, source)
        INSERT INTO tokens (survey, hash, spent, settled, source)
        SELECT :survey, hash, true, true, source FROM moved ORDER BY hash""",
    "sqlite": "UPDATE tokens SET settled = 1 WHERE survey = :survey AND spent AND NOT settled",
}
_OF_RELEASE: Final = "survey = :survey AND document = :document AND release = :release"
# As above: written in the order of their keys, in one statement, so that neither place nor
# transaction shows which of the rows had which stratum.
_JOIN: Final = {
    "postgresql": f"""
        WITH moved AS (DELETE FROM reports WHERE {_OF_RELEASE} AND strata IN (:one, :other) RETURNING id, symbols)
        INSERT INTO reports (survey, id, document, symbols, strata, release)
        SELECT :survey, id, :document, symbols, :joined, CAST(:release AS integer) FROM moved ORDER BY id""",  # noqa: S608
    "sqlite": f"UPDATE reports SET strata = :joined WHERE {_OF_RELEASE} AND strata IN (:one, :other)",  # noqa: S608
}


def _lock(digest: str) -> Any:
    """Return the number of the advisory lock of a document's releases."""
    return func.hashtextextended(f"release {digest}", 0)


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
        item: str | None = None,
        arms: tuple[str, Sequence[str]] | None = None,
    ) -> int:
        """Release the pending reports of a document; return the number of released reports.

        Returns 0 if another process is releasing this document. unless_in : (start, end); there is
        no release if the newest release was between these times, inclusive. is_over : returns True
        if no report can arrive any more; called only if there is a release. The remaining reports
        are then released without their stratum, or deleted uncounted if there are fewer than `step`
        of them in total.
        released : time of the release, UTC, RFC 3339. item : id of the document's instructed item.
        arms : the id of its arms, and the id of each.
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
        values = keys | {"release": release, "step": step} | _texts(item, {})
        cell = _CELL if item is None else _CELL_WITH_ITEM
        self._run(_RELEASE[dialect].format(pending=_PENDING, cell=cell), values)
        if is_over():
            self._release_remainder(values, item, [] if arms is None else _each(*arms))
        failed = {} if item is None else self._forget_results(survey, digest, values, item)
        self._run(_SETTLE[dialect], values)
        numbers = CountsTables(self._connection).add(survey, digest, release, day_of(released))
        batches.add(digest, release, released, numbers, failed)
        return sum(numbers.values())

    def hold(self, digests: Iterable[str]) -> None:
        """Wait for running releases of these documents, and prevent others until the transaction ends.

        On SQLite no lock is needed, because there is one writer at a time.
        """
        if self._is_postgresql:
            self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            for digest in digests:
                self._connection.execute(select(func.pg_advisory_xact_lock(_lock(digest))))

    def _locked(self, digest: str) -> bool:
        """Return True if no other transaction is releasing this document.

        Needed only on PostgreSQL, because SQLite has one writer.
        """
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        locked = select(func.pg_try_advisory_xact_lock(_lock(digest)))
        return bool(self._connection.scalar(locked))

    def _release_remainder(
        self, values: dict[str, Any], item: str | None, arms: Sequence[Mapping[str, str]]
    ) -> None:
        """Release what remains, without its strata; `arms` : what the strata of each arm contain."""
        stratum = _WITHHELD if item is None else _WITHHELD_WITH_ITEM
        pending = _PENDING_OF_ARM if arms else _PENDING
        # Each statement counts the pending rows itself, so that a report stored between the two
        # statements cannot be released in a batch that is too small.
        remainder = f"{pending} AND (SELECT count(*) FROM reports WHERE {pending})"  # noqa: S608
        withheld = f"UPDATE reports SET release = :release, strata = {stratum} WHERE {remainder}"  # noqa: S608
        for arm in arms or [dict[str, str]()]:
            texts = values | _texts(item, arm)
            self._run(f"DELETE FROM reports WHERE {remainder} < :step", texts)  # noqa: S608
            self._run(f"{withheld} >= :step", texts)

    def _forget_results(
        self, survey: str, digest: str, values: dict[str, Any], item: str
    ) -> Mapping[str, int]:
        """Join the cells of a release in which too few passed or failed, so that no row says who.

        Returns how many failed the item, by the stratum of each batch.
        """
        query = f"SELECT strata, count(*) FROM reports WHERE {_OF_RELEASE} GROUP BY strata"  # noqa: S608
        cells: dict[str, dict[str, int]] = defaultdict(dict)
        for stratum, n in self._run(query, values).all():
            cells[without(stratum, item)][stratum] = n
        failed, joins, few, step = (
            dict[str, int](),
            list[dict[str, str]](),
            list[str](),
            values["step"],
        )
        for joined, numbers in cells.items():
            failing = {s: n for s, n in numbers.items() if json.loads(s)[item] == FAILED}
            n_failed = sum(failing.values())
            n_passed = sum(numbers.values()) - n_failed
            if min(n_passed, n_failed) >= step:
                failed |= dict.fromkeys(numbers, 0) | failing
                continue
            failed[joined] = n_failed
            joins.append({"joined": joined, "one": min(numbers), "other": max(numbers)})
            # Otherwise the counts of all less those of the failures would be of a few who passed.
            few += failing if n_passed >= step else ()
        # Before the rows lose what they say.
        CountsTables(self._connection).add_failures(survey, digest, values["release"], few, step)
        for names in joins:
            self._run(_JOIN[self._connection.dialect.name], values | names)
        return failed

    def _run(self, statement: str, values: dict[str, Any]) -> Any:
        return self._connection.execute(text(statement), values)


def without(stratum: str, item: str) -> str:
    """Return a stratum without the result of the instructed item."""
    answers = json.loads(stratum)
    del answers[item]
    return canonical.dumps(answers).decode("ascii") if answers else WITHHELD_STRATUM


def _each(name: str, arms: Sequence[str]) -> list[Mapping[str, str]]:
    return [{name: arm} for arm in arms]


def _texts(item: str | None, arm: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of SQL statements: strata, and what an item and an arm add to them.

    Ids are quoted, and consist of letters that need no escape, so `"item":"failed"` occurs in a
    stratum only as the item's result.
    """
    of_arm = {"arm": _text(arm)[1:-1]} if arm else {}
    if item is None:
        return of_arm | {"stratum": _text(arm) if arm else WITHHELD_STRATUM}
    texts = {name: _text({item: name})[1:-1] for name in (PASSED, FAILED)}
    return of_arm | texts | {f"all_{name}": _text({item: name, **arm}) for name in (PASSED, FAILED)}


def _text(answers: Mapping[str, str]) -> str:
    return canonical.dumps(dict(answers)).decode("ascii")
