# SPDX-License-Identifier: Apache-2.0
"""Database access: named transactions (`Database`) and one class per table."""

from frankly_design.kinds.symbols import NO_NUMBER

from frankly_server.store.accounts import AccountRow
from frankly_server.store.api_keys import ApiKeyRow
from frankly_server.store.audit import AuditEvent
from frankly_server.store.backup import BackupBroken, Contents
from frankly_server.store.backup import restore as restore_backup
from frankly_server.store.backup import save as save_backup
from frankly_server.store.backup import verify as read_back
from frankly_server.store.batches import ReleasedBatch, day_of
from frankly_server.store.counts import CountKey, DayKey, Difference, PairKey
from frankly_server.store.database import Database, Record, Transaction, unrecorded
from frankly_server.store.documents import DocumentRow
from frankly_server.store.errors import StoreUnavailable, UnsafeStore
from frankly_server.store.idempotency import IdempotentRequestRow
from frankly_server.store.log import LogEntryRow
from frankly_server.store.migrate import downgrade, upgrade
from frankly_server.store.passkeys import PasskeyRow
from frankly_server.store.released_reports import IdenticalReports
from frankly_server.store.releases import WITHHELD_STRATUM
from frankly_server.store.reports import ReportRow
from frankly_server.store.second_factors import SecondFactorRow
from frankly_server.store.statistics import Layout
from frankly_server.store.surveys import SurveyRow

__all__ = [
    "NO_NUMBER",
    "WITHHELD_STRATUM",
    "AccountRow",
    "ApiKeyRow",
    "AuditEvent",
    "BackupBroken",
    "Contents",
    "CountKey",
    "Database",
    "DayKey",
    "Difference",
    "DocumentRow",
    "IdempotentRequestRow",
    "IdenticalReports",
    "Layout",
    "LogEntryRow",
    "PairKey",
    "PasskeyRow",
    "Record",
    "ReleasedBatch",
    "ReportRow",
    "SecondFactorRow",
    "StoreUnavailable",
    "SurveyRow",
    "Transaction",
    "UnsafeStore",
    "day_of",
    "downgrade",
    "read_back",
    "restore_backup",
    "save_backup",
    "unrecorded",
    "upgrade",
]
