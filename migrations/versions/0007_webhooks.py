# SPDX-License-Identifier: Apache-2.0
"""Webhook addresses of surveys, and the outbox of events that are still to be sent.

This migration only adds tables, so servers of the previous release can keep running.
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
            comment="HMAC key in hex, not hashed, because it signs requests",
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
            comment="the event and its version; unique within the survey",
        ),
        sa.Column(
            "id", sa.LargeBinary(16), nullable=False, comment="random; the same in every attempt"
        ),
        sa.Column(
            "body", sa.Text, nullable=False, comment="JSON that is sent; the same in every attempt"
        ),
        sa.Column("state", sa.String(16), nullable=False, comment="waiting, delivered or failed"),
        sa.Column("tries", sa.Integer, nullable=False, comment="number of attempts"),
        sa.Column(
            "due", sa.String(20), nullable=False, comment="time of the next attempt; UTC, RFC 3339"
        ),
        sa.Column("detail", sa.String(200), nullable=False, comment="result of the last attempt"),
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
