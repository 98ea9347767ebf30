# SPDX-License-Identifier: Apache-2.0
"""Accounts, sessions, an append-only audit trail, design jobs, survey states and API key scopes.

This migration only adds tables, so servers of the previous release can keep running.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TIME = "UTC, RFC 3339"
_ORGANISATION = "the organisation's name"
_REFUSAL = "audit events are never changed or deleted"


def upgrade() -> None:
    _accounts()
    _audit()
    _jobs()
    _standings()


def downgrade() -> None:
    for table in (
        "api_key_scopes",
        "survey_standings",
        "jobs",
        "audit_events",
        "sessions",
        "accounts",
    ):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_events_refuse()")


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.LargeBinary(16), nullable=False, comment="random"),
        sa.Column("organisation", sa.String(64), nullable=False, comment=_ORGANISATION),
        sa.Column(
            "email",
            sa.String(254),
            nullable=False,
            comment="e-mail address, folded; the name for signing in",
        ),
        sa.Column(
            "password",
            sa.String(300),
            nullable=False,
            comment="argon2id, with its parameters and salt",
        ),
        sa.Column("role", sa.String(16), nullable=False, comment="owner, admin, analyst or viewer"),
        sa.Column("created", sa.String(20), nullable=False, comment=_TIME),
        sa.Column(
            "disabled",
            sa.String(20),
            nullable=True,
            comment="UTC, RFC 3339; null while the account works",
        ),
        sa.Column(
            "failures",
            sa.Integer,
            nullable=False,
            comment="wrong passwords since the last right one",
        ),
        sa.Column(
            "locked_until",
            sa.String(20),
            nullable=True,
            comment="UTC, RFC 3339; null if it was never locked",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("email", name="uq_accounts_email"),
        sa.CheckConstraint(
            "role IN ('owner', 'admin', 'analyst', 'viewer')", name=op.f("ck_accounts_role")
        ),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_accounts_failures")),
    )
    op.create_table(
        "sessions",
        sa.Column(
            "hash", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the cookie's token"
        ),
        sa.Column(
            "account", sa.LargeBinary(16), nullable=False, comment="account that is signed in"
        ),
        sa.Column("expires", sa.String(20), nullable=False, comment=_TIME),
        sa.PrimaryKeyConstraint("hash", name="pk_sessions"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_sessions_account_accounts"),
    )


def _audit() -> None:
    op.create_table(
        "audit_events",
        sa.Column(
            "position",
            sa.Integer,
            nullable=False,
            autoincrement=True,
            comment="grows; rows are never changed",
        ),
        sa.Column("at", sa.String(20), nullable=False, comment=_TIME),
        sa.Column("organisation", sa.String(64), nullable=False, comment=_ORGANISATION),
        sa.Column(
            "actor",
            sa.String(254),
            nullable=False,
            comment="an account's email, or the command line",
        ),
        sa.Column("action", sa.String(64), nullable=False, comment="the action"),
        sa.Column(
            "subject",
            sa.String(254),
            nullable=False,
            comment="name of the thing that the action changed",
        ),
        sa.PrimaryKeyConstraint("position", name="pk_audit_events"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_events_keep BEFORE UPDATE OR DELETE ON audit_events "
            "FOR EACH ROW EXECUTE FUNCTION audit_events_refuse()"
        )
        return
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_events_keep_{verb.lower()} BEFORE {verb} ON audit_events "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.LargeBinary(16), nullable=False, comment="random"),
        sa.Column(
            "survey", sa.LargeBinary(16), nullable=False, comment="the survey being published"
        ),
        sa.Column(
            "state",
            sa.String(16),
            nullable=False,
            comment="running, cancelling, done, failed or cancelled",
        ),
        sa.Column("done", sa.Integer, nullable=False, comment="blocks designed"),
        sa.Column("total", sa.Integer, nullable=False, comment="number of blocks"),
        sa.Column(
            "detail",
            sa.Text,
            nullable=False,
            comment="id of the current block, digest of the new version, or reason of the failure",
        ),
        sa.Column("updated", sa.String(20), nullable=False, comment=_TIME),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["survey"], ["surveys.id"], name="fk_jobs_survey_surveys"),
        sa.CheckConstraint(
            "state IN ('running', 'cancelling', 'done', 'failed', 'cancelled')",
            name=op.f("ck_jobs_state"),
        ),
    )


def _standings() -> None:
    op.create_table(
        "survey_standings",
        sa.Column("survey", sa.LargeBinary(16), nullable=False, comment="the survey"),
        sa.Column("organisation", sa.String(64), nullable=False, comment=_ORGANISATION),
        sa.Column(
            "state",
            sa.String(16),
            nullable=False,
            comment="state set by the admin: open, paused, closed or archived",
        ),
        sa.Column(
            "stop_reports",
            sa.Integer,
            nullable=True,
            comment="number of released reports at which the survey closes; null: none",
        ),
        sa.Column(
            "stop_margin",
            sa.String(20),
            nullable=True,
            comment="margin from which that number was computed, as a decimal text; null: none",
        ),
        sa.PrimaryKeyConstraint("survey", name="pk_survey_standings"),
        sa.ForeignKeyConstraint(
            ["survey"], ["surveys.id"], name="fk_survey_standings_survey_surveys"
        ),
        sa.CheckConstraint(
            "state IN ('open', 'paused', 'closed', 'archived')",
            name=op.f("ck_survey_standings_state"),
        ),
    )
    op.create_table(
        "api_key_scopes",
        sa.Column("prefix", sa.String(16), nullable=False, comment="the key"),
        sa.Column("organisation", sa.String(64), nullable=False, comment=_ORGANISATION),
        sa.Column(
            "surveys",
            sa.Text,
            nullable=False,
            comment="ids of the surveys that it opens, separated by spaces; empty: all",
        ),
        sa.PrimaryKeyConstraint("prefix", name="pk_api_key_scopes"),
        sa.ForeignKeyConstraint(
            ["prefix"], ["api_keys.prefix"], name="fk_api_key_scopes_prefix_api_keys"
        ),
    )
