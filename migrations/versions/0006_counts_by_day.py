# SPDX-License-Identifier: Apache-2.0
"""Counts of symbols by UTC day, in addition to the totals. Reports still have no timestamp.

Earlier counts have no day: each symbol gets one undated row with its total, so that the sum over days equals the total.
No server may run until the migration has finished.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_KEY = ("document", "block", "stratum", "day", "symbol", "other_symbol", "slot")
_ALONE = -1  # value of other_symbol in rows that count a single symbol, not a pair of positions


def upgrade() -> None:
    _create()
    # Pairs of positions within one set are copied from pair_counts. Pairs of two blocks have no daily counts.
    op.execute(
        f"""
        INSERT INTO counts_by_day (document, block, stratum, day, symbol, other_symbol, slot, n)
        SELECT document, block, stratum, '', symbol, {_ALONE}, 0, SUM(n) FROM counts
        GROUP BY document, block, stratum, symbol
        UNION ALL
        SELECT document, block, stratum, '', symbol, other_symbol, 0, SUM(n) FROM pair_counts WHERE block = other
        GROUP BY document, block, stratum, symbol, other_symbol
        """  # noqa: S608 - one constant
    )
    op.execute(
        f"""
        CREATE VIEW noisy_counts_by_day AS
        SELECT {_hex_of("d.survey")} AS survey, d.version AS version, 'sha256:' || {_hex_of("c.document")} AS document,
               c.block AS block, c.stratum AS stratum, c.day AS day, c.symbol AS symbol, SUM(c.n) AS n
        FROM counts_by_day c JOIN documents d ON d.digest = c.document
        WHERE c.other_symbol = {_ALONE}
        GROUP BY d.survey, d.version, c.document, c.block, c.stratum, c.day, c.symbol
        """  # noqa: S608 - names of columns only
    )


def downgrade() -> None:
    op.execute("DROP VIEW noisy_counts_by_day")
    op.drop_table("counts_by_day")


def _create() -> None:
    op.create_table(
        "counts_by_day",
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
        sa.Column(
            "day", sa.String(10), nullable=False, comment="UTC day of arrival; empty if not known"
        ),
        sa.Column(
            "symbol", sa.Integer, nullable=False, comment="the report symbol, or a set's position"
        ),
        sa.Column(
            "other_symbol",
            sa.Integer,
            nullable=False,
            comment="a set's later position; -1 for a symbol alone",
        ),
        sa.Column(
            "slot", sa.SmallInteger, nullable=False, comment="spreads writers; summed on reading"
        ),
        sa.Column(
            "n", sa.BigInteger, nullable=False, comment="reports of that day with this symbol"
        ),
        sa.PrimaryKeyConstraint(*_KEY, name="pk_counts_by_day"),
        sa.CheckConstraint("n >= 0", name=op.f("ck_counts_by_day_n")),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )


def _hex_of(column: str) -> str:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    return f"encode({column}, 'hex')" if on_postgresql else f"lower(hex({column}))"
