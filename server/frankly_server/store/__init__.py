# SPDX-License-Identifier: Apache-2.0
"""The only SQL: tables, one door (`Database`), one class per aggregate."""

from frankly_server.store.api_keys import ApiKeyRow
from frankly_server.store.counts import CountKey, Difference
from frankly_server.store.database import Database, Transaction
from frankly_server.store.documents import DocumentRow
from frankly_server.store.errors import StoreUnavailable, UnsafeStore
from frankly_server.store.migrate import downgrade, upgrade
from frankly_server.store.reports import ReportRow
from frankly_server.store.surveys import SurveyRow

__all__ = [
    "ApiKeyRow",
    "CountKey",
    "Database",
    "Difference",
    "DocumentRow",
    "ReportRow",
    "StoreUnavailable",
    "SurveyRow",
    "Transaction",
    "UnsafeStore",
    "downgrade",
    "upgrade",
]
