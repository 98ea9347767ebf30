# SPDX-License-Identifier: Apache-2.0
"""Initial schema: every table, view and trigger of 0.1.0.

The tables are written out here, so that later changes of the code do not change this migration.
Constraints get their names from the naming convention in `frankly_server.store.schema`. Numbers up
to 0012 belong to databases of checkouts before 0.1.0, which are refused.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.LargeBinary(16)
_HASH = sa.LargeBinary(32)
_TIME = sa.String(20)
_NAME = sa.String(64)
_STRATUM = sa.String(1200)
_UTC = "UTC, RFC 3339"
_TOKEN = "SHA-256 of the cookie's token"  # noqa: S105 - a comment
_ORGANISATION = "the organisation's name"
_MECHANISM = "the document whose mechanism made the symbols"
_POSITION = "position of the block, from 0"
_AUDIT = "audit events are never changed or deleted"
_PARTITIONS = "frankly_reports"  # PostgreSQL's schema of the partitions of reports
_SINGLE = -1  # value of other_symbol in rows that count a single symbol, not a pair of positions


def upgrade() -> None:
    _surveys()
    _reports()
    _batches()
    _log()
    _accounts()
    _second_factors()
    _administration()
    _keep_audit_events()
    _views()


def downgrade() -> None:
    on_postgresql = _on_postgresql()
    for view in ("v_estimates", "noisy_counts_by_day", "noisy_counts"):
        op.execute(f"DROP VIEW {view}")
    for table in (
        *(
            "earlier_drafts",
            "webhook_deliveries",
            "webhooks",
            "idempotent_requests",
            "api_key_scopes",
            "api_keys",
            "jobs",
            "audit_events",
        ),
        *("organisations", "passkeys", "pending_sign_ins", "recovery_codes", "second_factors"),
        *("known_browsers", "sessions", "accounts", "log_cosignatures", "log_entries"),
        *("published_estimates", "batch_counts_by_day", "batch_pair_counts", "batch_counts"),
        *("batches", "day_counts", "tokens", "reports", "survey_standings", "documents", "surveys"),
    ):
        op.drop_table(table)
    if on_postgresql:
        op.execute("DROP FUNCTION audit_events_refuse()")
        op.execute(f"DROP SCHEMA {_PARTITIONS}")


def _surveys() -> None:
    op.create_table(
        "surveys",
        _key("id", _ID, "random, fixed at the first apply"),
        _column(
            "name",
            sa.String(129),
            "the admin's slug, with @ and the organisation unless that is main; unique on this server",
        ),
        _column("definition", sa.Text, "the draft as canonical JSON; the next version to publish"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "earlier_drafts",
        _key("survey", _ID, "its survey", "surveys.id"),
        _key("number", sa.Integer, "1, 2, ... within the survey"),
        _column("definition", sa.Text, "the draft as canonical JSON"),
        _column("replaced", _TIME, f"when another draft took its place; {_UTC}"),
    )
    op.create_table(
        "documents",
        _key("digest", _HASH, "SHA-256 of the signed payload"),
        _column("survey", _ID, "its survey", "surveys.id"),
        _column("version", sa.Integer, "1, 2, ... within the survey"),
        _column("source", _HASH, "digest of its definition"),
        _column("envelope", sa.LargeBinary, "the signed bytes as served; immutable"),
        _optional(
            "over_since", sa.String(20), "when a release first found it over; null: not over"
        ),
        sa.UniqueConstraint("survey", "version"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    op.create_table(
        "survey_standings",
        _key("survey", _ID, "the survey", "surveys.id"),
        _column("organisation", _NAME, _ORGANISATION),
        _column("state", sa.String(16), "state set by the admin: open, paused, closed or archived"),
        _optional(
            "stop_reports",
            sa.Integer,
            "number of released reports at which the survey closes; null: none",
        ),
        _optional(
            "stop_margin",
            sa.String(20),
            "margin from which that number was computed, as a decimal text; null: none",
        ),
        sa.CheckConstraint("state IN ('open', 'paused', 'closed', 'archived')", name="state"),
    )


def _reports() -> None:
    strata = "public answers as canonical JSON; empty without public questions or if withheld"
    op.create_table(
        "reports",
        _key("survey", _ID, "the survey answered"),
        _key("id", _ID, "random, drawn on the device"),
        _column("document", _HASH, _MECHANISM),
        _column("symbols", sa.Text, "randomised symbols, one per block, comma-separated"),
        _column("strata", sa.Text, strata),
        _optional("release", sa.Integer, "the release that counted it; null while it is pending"),
        sqlite_with_rowid=False,
        postgresql_partition_by="LIST (survey)",
    )
    if _on_postgresql():
        # Reports of a survey without a partition of its own; `store.partitions` makes the others.
        default = f"{_PARTITIONS}.reports_default"
        op.execute(f"CREATE SCHEMA IF NOT EXISTS {_PARTITIONS}")
        op.execute(
            f"CREATE TABLE {default} (LIKE reports INCLUDING COMMENTS, "
            "CONSTRAINT pk_reports_default PRIMARY KEY (survey, id))"
        )
        op.execute(f"ALTER TABLE reports ATTACH PARTITION {default} DEFAULT")
    used = "true once used; the report, the person and the time are not recorded"
    op.create_table(
        "tokens",
        _key("survey", _ID, "the survey the token opens, once"),
        _key("hash", _HASH, "SHA-256 of the token; the token itself is not stored"),
        _column("spent", sa.Boolean, used),
        _column("settled", sa.Boolean, "rewritten since it was spent", server_default=sa.false()),
        _column("source", _NAME, "the source that it is for; empty without", server_default=""),
        _column("revoked", sa.Boolean, "never valid again", server_default=sa.false()),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "day_counts",
        _key("survey", _ID, "survey to which the report was sent"),
        _key("day", sa.String(10), "UTC day; no finer time is stored"),
        _key("event", _NAME, "the problem code of refused reports"),
        _column("n", sa.BigInteger, "number of refusals"),
        sa.CheckConstraint("n >= 0", name="n"),
        sqlite_with_rowid=False,
    )


def _batches() -> None:
    op.create_table(
        "batches",
        _key("document", _HASH, _MECHANISM),
        _key("release", sa.Integer, "1, 2, ... within the document"),
        _key("stratum", _STRATUM, "as in reports.strata"),
        _column("released", _TIME, "time of the release; UTC, RFC 3339"),
        _column("n", sa.BigInteger, "number of its reports; never changed"),
        _optional("failed", sa.BigInteger, "those that failed the instructed item; null: no item"),
        sa.CheckConstraint("release >= 1", name="release"),
        sa.CheckConstraint("n >= 1", name="n"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "batch_counts",
        _key("document", _HASH, _MECHANISM),
        _key("block", sa.SmallInteger, _POSITION),
        _key("stratum", _STRATUM, "as in reports.strata"),
        _key("symbol", sa.Integer, "the report symbol"),
        _column("n", sa.BigInteger, "number of released reports with this symbol"),
        sa.CheckConstraint("n >= 0", name="n"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "batch_pair_counts",
        _key("document", _HASH, _MECHANISM),
        _key("block", sa.SmallInteger, _POSITION),
        _key("other", sa.SmallInteger, "position of a later block; for a set, its own"),
        _key("stratum", _STRATUM, "as in reports.strata"),
        _key("symbol", sa.Integer, "symbol of the block, or a position in a set"),
        _key(
            "other_symbol", sa.Integer, "symbol of the other block, or a later position in the set"
        ),
        _column("n", sa.BigInteger, "number of released reports with both"),
        sa.CheckConstraint("n >= 0", name="n"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "batch_counts_by_day",
        _key("document", _HASH, _MECHANISM),
        _key("block", sa.SmallInteger, _POSITION),
        _key("stratum", _STRATUM, "as in reports.strata"),
        _key("day", sa.String(10), "UTC day of the release"),
        _key("symbol", sa.Integer, "the report symbol, or a set's position"),
        _key("other_symbol", sa.Integer, "a set's later position; -1 for a symbol alone"),
        _column("n", sa.BigInteger, "reports released on that day with this symbol"),
        sa.CheckConstraint("n >= 0", name="n"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "published_estimates",
        _key("survey", _ID, "the survey"),
        _key("version", sa.Integer, "newest version with this question and its choices"),
        _key("question", _NAME, "id of the question"),
        _key("by_question", _NAME, "public question of the group; empty for all reports"),
        _key("by_choice", _NAME, "its answer in the group"),
        _key("choice", _NAME, "id of the choice"),
        _column("question_text", sa.Text, "in the survey's first language"),
        _column("label", sa.Text, "of the choice, in the first language"),
        _column("estimate", sa.Double, "unbiased share; may leave [0, 1]"),
        _optional("se", sa.Double, "standard error; null if unknown"),
        _optional("low", sa.Double, "lower end of the interval; null if unknown"),
        _optional("high", sa.Double, "upper end of the interval; null if unknown"),
        _column("level", sa.Double, "confidence level of the interval"),
        _column("method", sa.String(32), "kind of interval"),
        _column("n", sa.BigInteger, "reports that the estimate uses"),
        _column("flags", sa.Text, "warnings, separated by spaces"),
        _column("released", sa.BigInteger, "released reports of the survey when this was computed"),
    )


def _log() -> None:
    op.create_table(
        "log_entries",
        _key("position", sa.Integer, "index of the leaf, from 0, no gaps"),
        _column("document", _HASH, "digest of the logged document", "documents.digest"),
        sa.UniqueConstraint("document"),
        sa.CheckConstraint("position >= 0", name="position"),
    )
    op.create_table(
        "log_cosignatures",
        _key("size", sa.Integer, "number of entries in the signed head"),
        _key("key_id", _HASH, "key of the witness"),
        _column("line", sa.String(1000), "its newest signature line on that head"),
        sa.CheckConstraint("size >= 0", name="size"),
    )


def _accounts() -> None:
    op.create_table(
        "accounts",
        _key("id", _ID, "random"),
        _column("organisation", _NAME, _ORGANISATION),
        _column("email", sa.String(254), "e-mail address, folded; the name for signing in"),
        _column("password", sa.String(300), "argon2id, with its parameters and salt"),
        _column("role", sa.String(16), "owner, admin, analyst or viewer"),
        _column("created", _TIME, _UTC),
        _optional("disabled", _TIME, "UTC, RFC 3339; null while the account works"),
        _column("failures", sa.Integer, "wrong passwords since the last right one"),
        _optional("locked_until", _TIME, "UTC, RFC 3339; null if it was never locked"),
        _column("version", sa.Integer, "changes of password, role, second factor or state so far"),
        sa.UniqueConstraint("email"),
        sa.CheckConstraint("role IN ('owner', 'admin', 'analyst', 'viewer')", name="role"),
        sa.CheckConstraint("failures >= 0", name="failures"),
        sa.CheckConstraint("version >= 0", name="version"),
    )
    op.create_table(
        "sessions",
        _key("hash", _HASH, _TOKEN),
        _column("account", _ID, "account that is signed in", "accounts.id"),
        _column("expires", _TIME, _UTC),
    )
    op.create_table(
        "known_browsers",
        _key("hash", _HASH, _TOKEN),
        _column("account", _ID, "account that signed in with it", "accounts.id"),
        _column("expires", _TIME, _UTC),
        _column("failures", sa.Integer, "wrong passwords since that sign-in"),
        sa.CheckConstraint("failures >= 0", name="failures"),
    )
    op.create_index("ix_known_browsers_account", "known_browsers", ["account"])
    op.create_table(
        "organisations",
        _key("name", _NAME, "as in accounts.organisation"),
        _column("second_factor", sa.Boolean, "its members need a second factor"),
    )


def _second_factors() -> None:
    secret = "base32, not hashed, because codes are computed from it; null: none"  # noqa: S105 - a comment
    challenge = "time of issue of the newest challenge used, microseconds since 1970"
    op.create_table(
        "second_factors",
        _key("account", _ID, "its account", "accounts.id"),
        _optional("totp_secret", sa.String(64), secret),
        _optional("totp_since", _TIME, "UTC, RFC 3339; null until its first code was right"),
        _column("last_step", sa.BigInteger, "time step of the last code; used up to it"),
        _column("failures", sa.Integer, "wrong codes since the last right one"),
        _optional("locked_until", _TIME, "UTC, RFC 3339; null if it was never locked"),
        sa.CheckConstraint("failures >= 0", name="failures"),
    )
    op.create_table(
        "recovery_codes",
        _key("account", _ID, "its account", "accounts.id"),
        _key("hash", _HASH, "SHA-256 of the code, which has 80 bits"),
    )
    op.create_table(
        "pending_sign_ins",
        _key("hash", _HASH, _TOKEN),
        _column("account", _ID, "account that has given its password", "accounts.id"),
        _column("expires", _TIME, _UTC),
    )
    op.create_table(
        "passkeys",
        _key("credential", sa.String(1400), "its id, base64url"),
        _column("account", _ID, "its account", "accounts.id"),
        _column("public_key", sa.LargeBinary, "COSE key"),
        _column("sign_count", sa.BigInteger, "the authenticator's counter; 0 if none"),
        _column("last_challenge", sa.BigInteger, challenge),
        _column("name", _NAME, "name given by its owner"),
        _column("created", _TIME, _UTC),
        sa.CheckConstraint("sign_count >= 0", name="sign_count"),
    )
    op.create_index("ix_passkeys_account", "passkeys", ["account"])


def _administration() -> None:
    op.create_table(
        "audit_events",
        _key("position", sa.Integer, "grows; rows are never changed", autoincrement=True),
        _column("at", _TIME, _UTC),
        _column("organisation", _NAME, _ORGANISATION),
        _column("actor", sa.String(254), "an account's email, an API key, or the command line"),
        _column("action", _NAME, "the action"),
        _column("subject", sa.String(254), "name of the thing that the action changed"),
    )
    detail = (
        "id of the current block, digest of the new version, or problem (RFC 9457) of the failure"
    )
    op.create_table(
        "jobs",
        _key("id", _ID, "random"),
        _column("survey", _ID, "the survey being published", "surveys.id"),
        _column("state", sa.String(16), "running, cancelling, done, failed or cancelled"),
        _column("done", sa.Integer, "blocks designed"),
        _column("total", sa.Integer, "number of blocks"),
        _column("detail", sa.Text, detail),
        _column("updated", _TIME, _UTC),
        sa.CheckConstraint(
            "state IN ('running', 'cancelling', 'done', 'failed', 'cancelled')", name="state"
        ),
    )
    op.create_table(
        "api_keys",
        _key("prefix", sa.String(16), "first characters of the secret part, shown in lists"),
        _column("hash", _HASH, "SHA-256 of the whole key"),
        _column("role", sa.String(16), "reader, analyst, admin or owner"),
        _column("label", sa.String(200), "the admin's note"),
        _column("created", _TIME, _UTC),
        _optional("revoked", _TIME, "UTC, RFC 3339; null while the key works"),
        sa.CheckConstraint("role IN ('reader', 'analyst', 'admin', 'owner')", name="role"),
    )
    opened = "ids of the surveys that it opens, separated by spaces; empty: all"
    op.create_table(
        "api_key_scopes",
        _key("prefix", sa.String(16), "the key", "api_keys.prefix"),
        _column("organisation", _NAME, _ORGANISATION),
        _column("surveys", sa.Text, opened),
    )
    kept = "encrypted with a key that only the caller has; null: not kept"
    op.create_table(
        "idempotent_requests",
        _key("id", _HASH, "HMAC of the idempotency key under the API key"),
        _column("holder", sa.String(16), "the API key's prefix"),
        _column("request", _HASH, "SHA-256 of what was asked"),
        _column("attempt", _ID, "random: which of several attempts was the first"),
        _optional("answer", sa.LargeBinary, kept),
        _column("at", _TIME, _UTC),
    )
    op.create_index("ix_idempotent_requests_holder", "idempotent_requests", ["holder"])
    op.create_index("ix_idempotent_requests_at", "idempotent_requests", ["at"])
    op.create_table(
        "webhooks",
        _key("survey", _ID, "the survey it is about", "surveys.id"),
        _column("url", sa.String(500), "https address on a host the operator allows"),
        _column("secret", _NAME, "HMAC key in hex, not hashed, because it signs requests"),
    )
    op.create_table(
        "webhook_deliveries",
        _key("survey", _ID, "the survey it is about", "surveys.id"),
        _key("event", _NAME, "the event and its version; unique within the survey"),
        _column("id", _ID, "random; the same in every attempt"),
        _column("body", sa.Text, "JSON that is sent; the same in every attempt"),
        _column("state", sa.String(16), "waiting, delivered or failed"),
        _column("tries", sa.Integer, "number of attempts"),
        _column("due", _TIME, "time of the next attempt; UTC, RFC 3339"),
        _column("detail", sa.String(200), "result of the last attempt"),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="state"),
        sa.CheckConstraint("tries >= 0", name="tries"),
    )


def _keep_audit_events() -> None:
    if _on_postgresql():
        op.execute(
            "CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_AUDIT}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_events_keep BEFORE UPDATE OR DELETE ON audit_events "
            "FOR EACH ROW EXECUTE FUNCTION audit_events_refuse()"
        )
        return
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_events_keep_{verb.lower()} BEFORE {verb} ON audit_events "
            f"BEGIN SELECT RAISE(ABORT, '{_AUDIT}'); END"
        )


def _views() -> None:
    """Create the views for tools that read SQL.

    GROUP BY and DISTINCT, which changes nothing here, make them read-only on PostgreSQL.
    """
    keys = f"{_hex('d.survey')} AS survey, d.version AS version, 'sha256:' || {_hex('c.document')} AS document"
    for view, table, names, condition in (
        (
            "noisy_counts",
            "batch_counts",
            ("block", "stratum", "symbol"),
            # Reports that failed an instructed item are counted twice (`store.counts`).
            "WHERE c.stratum NOT LIKE 'failed%'",
        ),
        (
            "noisy_counts_by_day",
            "batch_counts_by_day",
            ("block", "stratum", "day", "symbol"),
            f"WHERE c.other_symbol = {_SINGLE}",
        ),
    ):
        selected = ", ".join(f"c.{name} AS {name}" for name in names)
        grouped = ", ".join(f"c.{name}" for name in names)
        op.execute(
            f"CREATE VIEW {view} AS SELECT {keys}, {selected}, SUM(c.n) AS n "  # noqa: S608 - names of columns only
            f"FROM {table} c JOIN documents d ON d.digest = c.document {condition} "
            f"GROUP BY d.survey, d.version, c.document, {grouped}"
        )
    op.execute(
        f"""
        CREATE VIEW v_estimates AS
        SELECT DISTINCT {_hex("e.survey")} AS survey, s.name AS survey_name, e.version, e.question, e.question_text,
               NULLIF(e.by_question, '') AS by_question, NULLIF(e.by_choice, '') AS by_choice, e.choice, e.label,
               e.estimate, e.se, e.low, e.high, e.level, e.method, e.n, e.flags, e.released
        FROM published_estimates e JOIN surveys s ON s.id = e.survey
        """  # noqa: S608 - names of columns only
    )


def _key(
    name: str, kind: Any, comment: str, references: str = "", *, autoincrement: bool = False
) -> "sa.Column[Any]":
    """Return a column of the primary key."""
    options = {"primary_key": True, "autoincrement": autoincrement}
    return _column(name, kind, comment, references, **options)


def _column(
    name: str, kind: Any, comment: str, references: str = "", **options: Any
) -> "sa.Column[Any]":
    foreign_keys = [sa.ForeignKey(references)] if references else []
    return sa.Column(name, kind, *foreign_keys, nullable=False, comment=comment, **options)


def _optional(name: str, kind: Any, comment: str) -> "sa.Column[Any]":
    return sa.Column(name, kind, comment=comment)


def _hex(column: str) -> str:
    return f"encode({column}, 'hex')" if _on_postgresql() else f"lower(hex({column}))"


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"
