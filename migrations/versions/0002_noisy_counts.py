# SPDX-License-Identifier: Apache-2.0
"""A view for tools that read SQL: noisy counts by survey, version, block, stratum and symbol; no estimate."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    def hex_of(column: str) -> str:
        on_postgresql = op.get_bind().dialect.name == "postgresql"
        return f"encode({column}, 'hex')" if on_postgresql else f"lower(hex({column}))"

    # GROUP BY also makes it read-only on PostgreSQL; an SQLite view always is.
    op.execute(
        f"""
        CREATE VIEW noisy_counts AS
        SELECT {hex_of("d.survey")} AS survey, d.version AS version, 'sha256:' || {hex_of("c.document")} AS document,
               c.block AS block, c.stratum AS stratum, c.symbol AS symbol, SUM(c.n) AS n
        FROM counts c JOIN documents d ON d.digest = c.document
        GROUP BY d.survey, d.version, c.document, c.block, c.stratum, c.symbol
        """  # noqa: S608 - names of columns only
    )


def downgrade() -> None:
    op.execute("DROP VIEW noisy_counts")
