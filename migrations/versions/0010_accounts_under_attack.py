# SPDX-License-Identifier: Apache-2.0
"""Known browsers of the people who run surveys.

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


def downgrade() -> None:
    op.drop_table("known_browsers")


def _known_browsers() -> None:
    op.create_table(
        "known_browsers",
        sa.Column(
            "hash", sa.LargeBinary(32), nullable=False, comment="SHA-256 of the cookie's token"
        ),
        sa.Column("account", sa.LargeBinary(16), nullable=False, comment="who signed in with it"),
        sa.Column("expires", sa.String(20), nullable=False, comment=_TIME),
        sa.Column(
            "failures", sa.Integer, nullable=False, comment="wrong passwords since that sign-in"
        ),
        sa.PrimaryKeyConstraint("hash", name="pk_known_browsers"),
        sa.ForeignKeyConstraint(
            ["account"], ["accounts.id"], name="fk_known_browsers_account_accounts"
        ),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_known_browsers_failures")),
    )
    op.create_index("ix_known_browsers_account", "known_browsers", ["account"])
