# SPDX-License-Identifier: Apache-2.0
"""Estimates written at releases, and the view v_estimates for tools that read SQL.

The table stays empty until FRANKLY_ESTIMATES_VIEW is on. Servers of the previous release neither read nor write it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "published_estimates",
        sa.Column("survey", sa.LargeBinary(16), nullable=False, comment="the survey"),
        sa.Column(
            "version",
            sa.Integer,
            autoincrement=False,
            nullable=False,
            comment="newest version with this question and its choices",
        ),
        sa.Column("question", sa.String(64), nullable=False, comment="id of the question"),
        sa.Column(
            "by_question",
            sa.String(64),
            nullable=False,
            comment="public question of the group; empty for all reports",
        ),
        sa.Column("by_choice", sa.String(64), nullable=False, comment="its answer in the group"),
        sa.Column("choice", sa.String(64), nullable=False, comment="id of the choice"),
        sa.Column(
            "question_text", sa.Text, nullable=False, comment="in the survey's first language"
        ),
        sa.Column("label", sa.Text, nullable=False, comment="of the choice, in the first language"),
        sa.Column(
            "estimate", sa.Double, nullable=False, comment="unbiased share; may leave [0, 1]"
        ),
        sa.Column("se", sa.Double, comment="standard error; null if unknown"),
        sa.Column("low", sa.Double, comment="lower end of the interval; null if unknown"),
        sa.Column("high", sa.Double, comment="upper end of the interval; null if unknown"),
        sa.Column("level", sa.Double, nullable=False, comment="confidence level of the interval"),
        sa.Column("method", sa.String(32), nullable=False, comment="kind of interval"),
        sa.Column("n", sa.BigInteger, nullable=False, comment="reports that the estimate uses"),
        sa.Column("flags", sa.Text, nullable=False, comment="warnings, separated by spaces"),
        sa.Column(
            "released",
            sa.BigInteger,
            nullable=False,
            comment="released reports of the survey when this was computed",
        ),
        sa.PrimaryKeyConstraint(
            "survey",
            "version",
            "question",
            "by_question",
            "by_choice",
            "choice",
            name="pk_published_estimates",
        ),
    )
    # DISTINCT makes the view read-only on PostgreSQL; rows are distinct anyway.
    op.execute(
        f"""
        CREATE VIEW v_estimates AS
        SELECT DISTINCT {_hex_of("e.survey")} AS survey, s.name AS survey_name, e.version, e.question, e.question_text,
               NULLIF(e.by_question, '') AS by_question, NULLIF(e.by_choice, '') AS by_choice, e.choice, e.label,
               e.estimate, e.se, e.low, e.high, e.level, e.method, e.n, e.flags, e.released
        FROM published_estimates e JOIN surveys s ON s.id = e.survey
        """  # noqa: S608 - column name only
    )


def downgrade() -> None:
    op.execute("DROP VIEW v_estimates")
    op.drop_table("published_estimates")


def _hex_of(column: str) -> str:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    return f"encode({column}, 'hex')" if on_postgresql else f"lower(hex({column}))"
