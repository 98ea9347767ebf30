# SPDX-License-Identifier: Apache-2.0
"""Tables of the admin pages: accounts, sessions, audit trail, jobs, owners of surveys and keys.

None of them holds anything about a respondent. A survey or an API key without a row here belongs to
the main organisation: these tables came later than `surveys` and `api_keys` and do not change them,
so that the previous release keeps working on the same database.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from frankly_server.store.schema import HexBytes, metadata

_TIME = "UTC, RFC 3339"
_ORGANISATION = "the organisation's name"

accounts = Table(
    "accounts",
    metadata,
    Column("id", HexBytes(16), primary_key=True, comment="random"),
    Column("organisation", String(64), nullable=False, comment=_ORGANISATION),
    Column("email", String(254), nullable=False, comment="folded; what people sign in with"),
    Column(
        "password", String(300), nullable=False, comment="argon2id, with its parameters and salt"
    ),
    Column("role", String(16), nullable=False, comment="owner, admin, analyst or viewer"),
    Column("created", String(20), nullable=False, comment=_TIME),
    Column("disabled", String(20), comment="UTC, RFC 3339; null while the account works"),
    Column("failures", Integer, nullable=False, comment="wrong passwords since the last right one"),
    Column("locked_until", String(20), comment="UTC, RFC 3339; null if it was never locked"),
    UniqueConstraint("email"),
    CheckConstraint("role IN ('owner', 'admin', 'analyst', 'viewer')", name="role"),
    CheckConstraint("failures >= 0", name="failures"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", HexBytes(32), primary_key=True, comment="SHA-256 of the cookie's token"),
    Column(
        "account", HexBytes(16), ForeignKey("accounts.id"), nullable=False, comment="who signed in"
    ),
    Column("expires", String(20), nullable=False, comment=_TIME),
)

audit_events = Table(
    "audit_events",
    metadata,
    Column(
        "position",
        Integer,
        primary_key=True,
        autoincrement=True,
        comment="grows; rows are never changed",
    ),
    Column("at", String(20), nullable=False, comment=_TIME),
    Column("organisation", String(64), nullable=False, comment=_ORGANISATION),
    Column("actor", String(254), nullable=False, comment="an account's email, or the command line"),
    Column("action", String(64), nullable=False, comment="what was done"),
    Column("subject", String(254), nullable=False, comment="what it was done to, by name"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", HexBytes(16), primary_key=True, comment="random"),
    Column(
        "survey",
        HexBytes(16),
        ForeignKey("surveys.id"),
        nullable=False,
        comment="the survey being published",
    ),
    Column(
        "state",
        String(16),
        nullable=False,
        comment="running, cancelling, done, failed or cancelled",
    ),
    Column("done", Integer, nullable=False, comment="blocks designed"),
    Column("total", Integer, nullable=False, comment="blocks in all"),
    Column(
        "detail",
        Text,
        nullable=False,
        comment="the block at work, the digest published, or why it failed",
    ),
    Column("updated", String(20), nullable=False, comment=_TIME),
    CheckConstraint(
        "state IN ('running', 'cancelling', 'done', 'failed', 'cancelled')", name="state"
    ),
)

standings = Table(
    "survey_standings",
    metadata,
    Column(
        "survey", HexBytes(16), ForeignKey("surveys.id"), primary_key=True, comment="the survey"
    ),
    Column("organisation", String(64), nullable=False, comment=_ORGANISATION),
    Column(
        "state",
        String(16),
        nullable=False,
        comment="open, paused, closed or archived: the admin's word",
    ),
    Column("stop_reports", Integer, comment="close at so many reports; null for no such rule"),
    Column(
        "stop_margin",
        String(20),
        comment="the margin that number was worked out from, as a decimal text",
    ),
    CheckConstraint("state IN ('open', 'paused', 'closed', 'archived')", name="state"),
)

key_scopes = Table(
    "api_key_scopes",
    metadata,
    Column(
        "prefix", String(16), ForeignKey("api_keys.prefix"), primary_key=True, comment="the key"
    ),
    Column("organisation", String(64), nullable=False, comment=_ORGANISATION),
    Column(
        "surveys",
        Text,
        nullable=False,
        comment="ids of the surveys it opens, by spaces; empty for all",
    ),
)
