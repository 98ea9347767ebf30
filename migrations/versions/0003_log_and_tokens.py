# SPDX-License-Identifier: Apache-2.0
"""The transparency log's entries, witnesses' signatures, and invite tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "log_entries",
        sa.Column(
            "position",
            sa.Integer,
            nullable=False,
            autoincrement=False,
            comment="index of the leaf, from 0, no gaps",
        ),
        sa.Column(
            "document", sa.LargeBinary(32), nullable=False, comment="digest of the logged document"
        ),
        sa.PrimaryKeyConstraint("position", name="pk_log_entries"),
        sa.ForeignKeyConstraint(
            ["document"], ["documents.digest"], name="fk_log_entries_document_documents"
        ),
        sa.UniqueConstraint("document", name="uq_log_entries_document"),
        sa.CheckConstraint("position >= 0", name=op.f("ck_log_entries_position")),
    )
    op.create_table(
        "log_cosignatures",
        sa.Column(
            "size",
            sa.Integer,
            nullable=False,
            autoincrement=False,
            comment="number of entries in the signed head",
        ),
        sa.Column("key_id", sa.LargeBinary(32), nullable=False, comment="key of the witness"),
        sa.Column(
            "line",
            sa.String(1000),
            nullable=False,
            comment="its newest signature line on that head",
        ),
        sa.PrimaryKeyConstraint("size", "key_id", name="pk_log_cosignatures"),
        sa.CheckConstraint("size >= 0", name=op.f("ck_log_cosignatures_size")),
    )
    op.create_table(
        "tokens",
        sa.Column(
            "survey", sa.LargeBinary(16), nullable=False, comment="the survey the token opens, once"
        ),
        sa.Column(
            "hash",
            sa.LargeBinary(32),
            nullable=False,
            comment="SHA-256 of the token; the token itself is not stored",
        ),
        sa.Column(
            "spent",
            sa.Boolean,
            nullable=False,
            comment="true once used; the report, the person and the time are not recorded",
        ),
        sa.PrimaryKeyConstraint("survey", "hash", name="pk_tokens"),
        sqlite_with_rowid=False,
    )
    # The first entries of the log are the documents published before the log existed.
    op.execute(
        "INSERT INTO log_entries (position, document) "
        "SELECT row_number() OVER (ORDER BY survey, version) - 1, digest FROM documents"
    )


def downgrade() -> None:
    for table in ("tokens", "log_cosignatures", "log_entries"):
        op.drop_table(table)
