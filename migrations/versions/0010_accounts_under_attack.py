# SPDX-License-Identifier: Apache-2.0
"""Known browsers and second factors of accounts, and security settings of organisations.

This migration only adds tables, so servers of the previous release can keep running.
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
    _passkeys()
    op.create_table(
        "organisations",
        sa.Column("name", sa.String(64), nullable=False, comment="as in accounts.organisation"),
        sa.Column(
            "second_factor", sa.Boolean, nullable=False, comment="its members need a second factor"
        ),
        sa.PrimaryKeyConstraint("name", name="pk_organisations"),
    )


def downgrade() -> None:
    for table in (
        "organisations",
        "passkeys",
        "pending_sign_ins",
        "recovery_codes",
        "second_factors",
        "known_browsers",
    ):
        op.drop_table(table)


def _known_browsers() -> None:
    op.create_table(
        "known_browsers",
        sa.Column(
            "hash", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the cookie's token"
        ),
        _account("account that signed in with it"),
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
        _account("its account"),
        sa.Column(
            "totp_secret",
            sa.String(64),
            comment="base32, not hashed, because codes are computed from it; null: none",
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
        _account("its account"),
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
        _account("account that has given its password"),
        sa.Column("expires", sa.String(20), nullable=False, comment=_TIME),
        sa.PrimaryKeyConstraint("hash", name="pk_pending_sign_ins"),
        _of_account("pending_sign_ins"),
    )


def _passkeys() -> None:
    op.create_table(
        "passkeys",
        sa.Column("credential", sa.String(1400), nullable=False, comment="its id, base64url"),
        _account("its account"),
        sa.Column("public_key", sa.LargeBinary, nullable=False, comment="COSE key"),
        sa.Column(
            "sign_count",
            sa.BigInteger,
            nullable=False,
            comment="the authenticator's counter; 0 if none",
        ),
        sa.Column(
            "last_challenge",
            sa.BigInteger,
            nullable=False,
            comment="time of issue of the newest challenge used, microseconds since 1970",
        ),
        sa.Column("name", sa.String(64), nullable=False, comment="name given by its owner"),
        sa.Column("created", sa.String(20), nullable=False, comment=_TIME),
        sa.PrimaryKeyConstraint("credential", name="pk_passkeys"),
        _of_account("passkeys"),
        sa.CheckConstraint("sign_count >= 0", name=op.f("ck_passkeys_sign_count")),
    )
    op.create_index("ix_passkeys_account", "passkeys", ["account"])


def _account(comment: str) -> "sa.Column[object]":
    return sa.Column("account", sa.LargeBinary(16), nullable=False, comment=comment)


def _of_account(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["account"], ["accounts.id"], name=f"fk_{table}_account_accounts"
    )
