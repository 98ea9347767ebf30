# SPDX-License-Identifier: Apache-2.0
"""Surveys, documents, reports, counts, refusals per day and API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _surveys()
    _reports()
    _counters()
    _api_keys()


def downgrade() -> None:
    for table in ("api_keys", "day_counts", "counts", "reports", "documents", "surveys"):
        op.drop_table(table)


def _surveys() -> None:
    op.create_table(
        "surveys",
        sa.Column(
            "id", sa.LargeBinary(16), nullable=False, comment="random, fixed at the first apply"
        ),
        sa.Column(
            "name", sa.String(64), nullable=False, comment="the admin's slug, unique on this server"
        ),
        sa.Column(
            "definition",
            sa.Text,
            nullable=False,
            comment="the draft as canonical JSON; the next version to publish",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_surveys"),
        sa.UniqueConstraint("name", name="uq_surveys_name"),
    )
    op.create_table(
        "documents",
        sa.Column(
            "digest", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the signed payload"
        ),
        sa.Column("survey", sa.LargeBinary(16), nullable=False, comment="its survey"),
        sa.Column("version", sa.Integer, nullable=False, comment="1, 2, ... within the survey"),
        sa.Column(
            "source",
            sa.LargeBinary(32),
            nullable=False,
            comment="digest of its definition",
        ),
        sa.Column(
            "envelope",
            sa.LargeBinary,
            nullable=False,
            comment="the signed bytes as served; immutable",
        ),
        sa.PrimaryKeyConstraint("digest", name="pk_documents"),
        sa.ForeignKeyConstraint(["survey"], ["surveys.id"], name="fk_documents_survey_surveys"),
        sa.UniqueConstraint("survey", "version", name="uq_documents_survey_version"),
        sa.CheckConstraint("version >= 1", name=op.f("ck_documents_version")),
    )


def _reports() -> None:
    op.create_table(
        "reports",
        sa.Column("survey", sa.LargeBinary(16), nullable=False, comment="the survey answered"),
        sa.Column("id", sa.LargeBinary(16), nullable=False, comment="random, drawn on the device"),
        sa.Column(
            "document",
            sa.LargeBinary(32),
            nullable=False,
            comment="the document whose mechanism made the symbols",
        ),
        sa.Column(
            "symbols",
            sa.Text,
            nullable=False,
            comment="randomised symbols, one per block, comma-separated",
        ),
        sa.Column(
            "strata",
            sa.Text,
            nullable=False,
            comment="public strata as canonical JSON, empty if none",
        ),
        sa.PrimaryKeyConstraint("survey", "id", name="pk_reports"),
        sqlite_with_rowid=False,
    )


def _counters() -> None:
    op.create_table(
        "counts",
        sa.Column(
            "document",
            sa.LargeBinary(32),
            nullable=False,
            comment="the document whose mechanism made the symbols",
        ),
        sa.Column(
            "block", sa.SmallInteger, nullable=False, comment="position of the block, from 0"
        ),
        sa.Column("stratum", sa.String(1200), nullable=False, comment="as in reports.strata"),
        sa.Column("symbol", sa.Integer, nullable=False, comment="the report symbol"),
        sa.Column(
            "slot", sa.SmallInteger, nullable=False, comment="spreads writers; summed on reading"
        ),
        sa.Column("n", sa.BigInteger, nullable=False, comment="reports with this symbol"),
        sa.PrimaryKeyConstraint("document", "block", "stratum", "symbol", "slot", name="pk_counts"),
        sa.CheckConstraint("n >= 0", name=op.f("ck_counts_n")),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "day_counts",
        sa.Column(
            "survey",
            sa.LargeBinary(16),
            nullable=False,
            comment="survey to which the report was sent",
        ),
        sa.Column("day", sa.String(10), nullable=False, comment="UTC day; no finer time is stored"),
        sa.Column(
            "event", sa.String(64), nullable=False, comment="the problem code of refused reports"
        ),
        sa.Column("n", sa.BigInteger, nullable=False, comment="number of refusals"),
        sa.PrimaryKeyConstraint("survey", "day", "event", name="pk_day_counts"),
        sa.CheckConstraint("n >= 0", name=op.f("ck_day_counts_n")),
        sqlite_with_rowid=False,
    )


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column(
            "prefix",
            sa.String(16),
            nullable=False,
            comment="first characters of the secret part, shown in lists",
        ),
        sa.Column("hash", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the whole key"),
        sa.Column("role", sa.String(16), nullable=False, comment="admin or analyst"),
        sa.Column("label", sa.String(200), nullable=False, comment="the admin's note"),
        sa.Column("created", sa.String(20), nullable=False, comment="UTC, RFC 3339"),
        sa.Column(
            "revoked",
            sa.String(20),
            nullable=True,
            comment="UTC, RFC 3339; null while the key works",
        ),
        sa.PrimaryKeyConstraint("prefix", name="pk_api_keys"),
        sa.CheckConstraint("role IN ('admin', 'analyst')", name=op.f("ck_api_keys_role")),
    )
