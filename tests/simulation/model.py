# SPDX-License-Identifier: Apache-2.0
"""Simulated survey and devices, with a reference model of acknowledged reports and required rows.

Every report has a symbol that no other report of the run has, so that counting a report twice
counts a symbol twice.
"""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.keys import Rotation, RotationChange
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, StoreUnavailable
from pydantic import SecretStr
from sqlalchemy import event

from tests.frankly_protocol.samples import NOW, ceiling, ldp_block, question, survey
from tests.frankly_server.log.sites import Place
from tests.frankly_server.samples import SURVEY, stored

SYMBOLS = 24
MAX_ROTATIONS = 2
MAX_VERSIONS = 4
STEP = 2


@contextmanager
def never_committing(database: Database) -> Iterator[None]:
    """Make SQLite refuse every commit, so that all writes are lost with the process."""
    touched: list[Any] = []

    def watch(connection: Any, *_more: Any) -> None:
        def judge(action: int, what: str | None, *_more: str | None) -> int:
            commits = action == sqlite3.SQLITE_TRANSACTION and what == "COMMIT"
            # A statement outside a transaction commits by itself.
            commits |= action == sqlite3.SQLITE_INSERT and not connection.in_transaction
            return sqlite3.SQLITE_DENY if commits else sqlite3.SQLITE_OK

        connection.set_authorizer(judge)
        touched.append(connection)

    event.listen(database.engine, "checkout", watch)
    try:
        yield
    finally:
        event.remove(database.engine, "checkout", watch)
        for connection in touched:
            with suppress(sqlite3.ProgrammingError):  # the connection is closed
                connection.set_authorizer(None)


def block() -> Block:
    """Return a block with one question of many choices and a likelihood ratio of 2 to 1."""
    bits, off = 48, -(-(2**48) // (SYMBOLS + 1))
    diagonal = 2**48 - (SYMBOLS - 1) * off
    rows = tuple(tuple(diagonal if x == y else off for y in range(SYMBOLS)) for x in range(SYMBOLS))
    mechanism = DenseMechanism(bits, rows)
    promise = Promise(Claim("ldp", level_for(Fraction(1))))
    questions = (question("colour", *(f"c{i}" for i in range(SYMBOLS))),)
    return replace(
        ldp_block(), questions=questions, mechanism=mechanism, promises=(promise,), design_prior=(1,) * SYMBOLS,
        ceiling=ceiling(mechanism),
    )  # fmt: skip


BLOCK = block()


@dataclass
class Sealed:
    """One device's report: its final bytes, and whether the device has received an acknowledgement."""

    id: str
    symbol: int
    document: SurveyDocument
    body: bytes
    acknowledged: bool = False
    day: str = ""  # UTC day of the release; empty while the report is pending


@dataclass
class World:
    """The server, its clock and the model; `stored_reports` : reports that must be in rows, by id."""

    settings: Settings
    services: Services
    now: datetime = NOW
    versions: list[SurveyDocument] = field(default_factory=list)
    sealed: list[Sealed] = field(default_factory=list)
    stored_reports: dict[str, Sealed] = field(default_factory=dict)
    rotations: int = 0
    latest: datetime = NOW
    releases: int = 1
    first_over: dict[str, datetime] = field(default_factory=dict)  # by digest

    @classmethod
    def make(cls, folder: Path, template: Path) -> "World":
        """Return a separate world with copies of the files of a prepared server."""
        shutil.copytree(template, folder)
        settings = Settings(
            home=folder / "home", database_url=SecretStr(f"sqlite:///{folder / 'frankly.db'}")
        )
        world = cls(settings, Services(settings, Database(settings.store_url()), FixedClock(NOW)))
        world.publish(10)
        return world

    def restart(self) -> None:
        """Start a new process on the same files, at the current time."""
        self.services.close()
        self.services = Services(
            self.settings, Database(self.settings.store_url()), FixedClock(self.now)
        )

    def move_clock(self, hours: int) -> None:
        """Move the clock, forwards or back, and restart."""
        self.now += timedelta(hours=hours)
        self.latest = max(self.latest, self.now)
        self.restart()

    def publish(self, days: int) -> None:
        """Publish the next version, which is open for `days` from now; older versions do not change."""
        if (
            len(self.versions) == MAX_VERSIONS or self.now < NOW
        ):  # no document is signed before the keys are valid
            return
        before = self.versions[-1].digest if self.versions else None
        document = survey(BLOCK, survey_id=SURVEY, version=len(self.versions) + 1, prev=before)
        document = replace(
            document, closes=max(self.now, NOW) + timedelta(days=days), release_step=STEP
        )
        Place(self.services, self.settings).publish(document)
        self.versions.append(document)

    def rotate(self) -> None:
        """Add a publisher key; earlier documents stay valid."""
        if self.rotations < MAX_ROTATIONS and self.now >= NOW:
            self.rotations += 1
            Rotation(self.services.keys, FixedClock(NOW)).propose(RotationChange(publishers=1))

    def seal(self, draw: Random) -> Sealed:
        """Answer one of the versions on a new device, with a new symbol."""
        document, number, report_id = (
            draw.choice(self.versions),
            len(self.sealed),
            f"{draw.getrandbits(128):032x}",
        )
        body = json.dumps(
            {
                "v": 1,
                "doc": document.digest,
                "id": report_id,
                "y": [number],
                "strata": {},
                "token": None,
            }
        )
        self.sealed.append(Sealed(report_id, number, document, body.encode()))
        return self.sealed[-1]

    def expected(self, report: Sealed) -> str:
        """Return the status or problem code that the model predicts for a report sent now."""
        if self.now < report.document.opens:
            return "too_early"
        if self.now > min(report.document.closes, report.document.expires):
            return "closed"
        return "duplicate" if report.id in self.stored_reports else "accepted"

    def send(self, report: Sealed, *, lost: bool = False) -> None:
        """Send a report and compare the receipt with the model; if `lost`, the device never
        receives the receipt."""
        expected_status = self.expected(report)
        assert self.receipt_of(report.body) == expected_status
        if expected_status == "accepted":
            self.stored_reports[report.id] = report
        if expected_status in ("accepted", "duplicate") and not lost:
            report.acknowledged = True

    def receipt_of(self, body: bytes) -> str:
        """Send bytes to the server; return the status of its receipt or the code of its refusal."""
        try:
            return self.services.intake.accept(SURVEY, body).status
        except InvalidInput as refused:
            return refused.code

    def conflict(self, report: Sealed) -> None:
        """Send another body with a stored id, which must be refused."""
        expected_status = self.expected(report)
        if expected_status != "accepted":
            altered = json.loads(report.body) | {"y": [(report.symbol + 1) % SYMBOLS]}
            assert self.receipt_of(json.dumps(altered).encode()) == (
                "id_conflict" if expected_status == "duplicate" else expected_status
            )

    def crash(self, report: Sealed, *, after_commit: bool) -> None:
        """Kill the process in the transaction or between commit and response; start a new process."""
        if after_commit:
            self.send(report, lost=True)
        elif self.expected(report) in ("accepted", "duplicate"):
            with never_committing(self.services.database), pytest.raises(StoreUnavailable):
                self.receipt_of(report.body)
        self.restart()

    def release(self, *, crashing: bool = False) -> None:
        """Release pending reports, or crash before the commit."""
        if crashing:
            with never_committing(self.services.database), pytest.raises(StoreUnavailable):
                self.services.releasing.release()
            self.restart()
            return
        n = self.services.releasing.release()
        self.releases += 1
        for document in self.versions:
            is_last = self.look(document)
            pending = [
                r for r in self.stored_reports.values() if r.document == document and not r.day
            ]
            if len(pending) >= STEP:
                n -= len(pending)
                for report in pending:
                    report.day = f"{self.now:%Y-%m-%d}"
            elif is_last:  # fewer than a step when no more can come are deleted uncounted
                for report in pending:
                    del self.stored_reports[report.id]
        assert n == 0

    def look(self, document: SurveyDocument) -> bool:
        """Note a release of a document; return True if it is its last one."""
        if self.now < min(document.closes, document.expires) + timedelta(days=1):
            self.first_over.pop(document.digest, None)
            return False
        hours = (self.now - self.first_over.get(document.digest, self.now)) / timedelta(hours=1)
        if not 0 <= hours <= 72:
            self.first_over[document.digest] = self.now
        self.first_over.setdefault(document.digest, self.now)
        return 23 <= hours <= 72

    def check(self) -> None:
        """Check that all stored reports and counts agree with the model."""
        with self.services.database.reading("check") as tx:
            kept_rows = [(row.id, row.symbols, row.document) for row in stored(tx, SURVEY)]
            counted: Counter[tuple[str, int]] = Counter()
            by_day: Counter[tuple[str, int, str]] = Counter()
            for document in self.versions:
                for key, n in tx.counts.of_document(document.digest).items():
                    counted[document.digest, key.symbol] += n
                for on, n in tx.counts.by_day(document.digest).items():
                    by_day[document.digest, on.symbol, on.day] += n
            assert tx.counts.recount(SURVEY) == []
        stored_reports = self.stored_reports.values()
        assert sorted(kept_rows) == sorted(
            (r.id, (r.symbol,), r.document.digest) for r in stored_reports
        )
        assert counted == {(r.document.digest, r.symbol): 1 for r in stored_reports if r.day}
        assert by_day == {(r.document.digest, r.symbol, r.day): 1 for r in stored_reports if r.day}
        lost = [r for r in self.sealed if r.acknowledged and r.id not in self.stored_reports]
        over = {
            d.digest
            for d in self.versions
            if self.latest >= min(d.closes, d.expires) + timedelta(days=1, hours=23)
        }
        assert all(r.document.digest in over for r in lost)
        assert (
            max(Counter(r.document.digest for r in lost).values(), default=0) < STEP * self.releases
        )
