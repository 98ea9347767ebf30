# SPDX-License-Identifier: Apache-2.0
"""Known browsers and second factors of the people who run surveys.

New tables only: the release before goes on working while this runs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TIME = "UTC, RFC 3339"


def upgrade() -> None:
    _known_browsers()
    _second_factors()


def downgrade() -> None:
    for table in ("pending_sign_ins", "recovery_codes", "second_factors", "known_browsers"):
        op.drop_table(table)


def _known_browsers() -> None:
    op.create_table(
        "known_browsers",
        sa.Column(
            "hash", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the cookie's token"
        ),
        _account("who signed in with it"),
        sa.Column("expires", sa.String(20), nullable=False, comment=_TIME),
        sa.Column(
            "failures", sa.Integer, nullable=False, comment="wrong passwords since that sign-in"
        ),
        sa.PrimaryKeyConstraint("hash", name="pk_known_browsers"),
        _of_account("known_browsers"),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_known_browsers_failures")),
    )
    op.create_index("ix_known_browsers_account", "known_browsers", ["account"])


def _second_factors() -> None:
    op.create_table(
        "second_factors",
        _account("whose it is"),
        sa.Column(
            "totp_secret",
            sa.String(64),
            comment="base32; checking a code needs it as it is; null: none",
        ),
        sa.Column(
            "totp_since",
            sa.String(20),
            comment="UTC, RFC 3339; null until its first code was right",
        ),
        sa.Column(
            "last_step",
            sa.BigInteger,
            nullable=False,
            comment="time step of the last code; used up to it",
        ),
        sa.Column(
            "failures", sa.Integer, nullable=False, comment="wrong codes since the last right one"
        ),
        sa.Column(
            "locked_until", sa.String(20), comment="UTC, RFC 3339; null if it was never locked"
        ),
        sa.PrimaryKeyConstraint("account", name="pk_second_factors"),
        _of_account("second_factors"),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_second_factors_failures")),
    )
    op.create_table(
        "recovery_codes",
        _account("whose it is"),
        sa.Column(
            "hash",
            sa.LargeBinary(32),
            nullable=False,
            comment="SHA-256 of the code, which has 80 bits",
        ),
        sa.PrimaryKeyConstraint("account", "hash", name="pk_recovery_codes"),
        _of_account("recovery_codes"),
    )
    op.create_table(
        "pending_sign_ins",
        sa.Column(
            "hash", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the cookie's token"
        ),
        _account("whose password was right"),
        sa.Column("expires", sa.String(20), nullable=False, comment=_TIME),
        sa.PrimaryKeyConstraint("hash", name="pk_pending_sign_ins"),
        _of_account("pending_sign_ins"),
    )


def _account(comment: str) -> "sa.Column[object]":
    return sa.Column("account", sa.LargeBinary(16), nullable=False, comment=comment)


def _of_account(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["account"], ["accounts.id"], name=f"fk_{table}_account_accounts"
    )
