# SPDX-License-Identifier: Apache-2.0
"""Webhook addresses of surveys, and the outbox of events that are still to be sent.

New tables only: the release before goes on working while this runs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("survey", sa.LargeBinary(16), nullable=False, comment="the survey it is about"),
        sa.Column(
            "url",
            sa.String(500),
            nullable=False,
            comment="https address on a host the operator allows",
        ),
        sa.Column(
            "secret",
            sa.String(64),
            nullable=False,
            comment="HMAC key, hex; signing needs it as it is",
        ),
        sa.PrimaryKeyConstraint("survey", name="pk_webhooks"),
        sa.ForeignKeyConstraint(["survey"], ["surveys.id"], name="fk_webhooks_survey_surveys"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("survey", sa.LargeBinary(16), nullable=False, comment="the survey it is about"),
        sa.Column(
            "event",
            sa.String(64),
            nullable=False,
            comment="what happened, and to which version: told once",
        ),
        sa.Column(
            "id", sa.LargeBinary(16), nullable=False, comment="random; the same in every try"
        ),
        sa.Column(
            "body", sa.Text, nullable=False, comment="the JSON that is sent, the same in every try"
        ),
        sa.Column("state", sa.String(16), nullable=False, comment="waiting, delivered or failed"),
        sa.Column("tries", sa.Integer, nullable=False, comment="how often it was tried"),
        sa.Column(
            "due", sa.String(20), nullable=False, comment="not to be tried before; UTC, RFC 3339"
        ),
        sa.Column("detail", sa.String(200), nullable=False, comment="what the last try met"),
        sa.PrimaryKeyConstraint("survey", "event", name="pk_webhook_deliveries"),
        sa.ForeignKeyConstraint(
            ["survey"], ["surveys.id"], name="fk_webhook_deliveries_survey_surveys"
        ),
        sa.CheckConstraint(
            "state IN ('waiting', 'delivered', 'failed')", name=op.f("ck_webhook_deliveries_state")
        ),
        sa.CheckConstraint("tries >= 0", name=op.f("ck_webhook_deliveries_tries")),
    )


def downgrade() -> None:
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")
