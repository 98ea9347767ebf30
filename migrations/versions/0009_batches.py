# SPDX-License-Identifier: Apache-2.0
"""Reports wait for a release, and only released batches are counted (ADR 0020).

All existing reports become pending, and so do reports that a server of the previous version stores later. The next
release (`frankly release --now`) counts each of them once. The old tables of live counts are emptied but not dropped:
servers of the previous version can keep accepting reports, and a trigger discards the rows they insert there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Names at this revision: later renames in the code must not change this migration.
_OLD = ("counts", "pair_counts", "counts_by_day")
_ALONE = -1  # value of other_symbol in rows that count a single symbol, not a pair of positions


def upgrade() -> None:
    op.execute("DROP VIEW noisy_counts_by_day")
    op.execute("DROP VIEW noisy_counts")
    _create()
    _comment_strata(
        "public answers as canonical JSON; empty without public questions or if withheld"
    )
    release = "the release that counted it; null while it is pending"
    op.add_column("reports", sa.Column("release", sa.Integer, comment=release))
    settled = "rewritten since it was spent"
    op.add_column(
        "tokens",
        sa.Column(
            "settled", sa.Boolean, nullable=False, server_default=sa.false(), comment=settled
        ),
    )
    for table in _OLD:
        op.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        _drop_what_is_written(table)
    _views("batch_counts", "batch_counts_by_day")


def downgrade() -> None:
    """Restore the counts of released reports; `frankly counts rebuild` of the older version adds pending reports."""
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    op.execute("DROP VIEW noisy_counts_by_day")
    op.execute("DROP VIEW noisy_counts")
    for table in _OLD:
        op.execute(f"DROP TRIGGER {table}_dropped" + (f" ON {table}" if on_postgresql else ""))
    if on_postgresql:
        op.execute("DROP FUNCTION frankly_drop_row()")
    for table, keys in (
        ("counts", "document, block, stratum, symbol"),
        ("pair_counts", "document, block, other, stratum, symbol, other_symbol"),
        ("counts_by_day", "document, block, stratum, day, symbol, other_symbol"),
    ):
        op.execute(f"INSERT INTO {table} ({keys}, slot, n) SELECT {keys}, 0, n FROM batch_{table}")  # noqa: S608
        op.drop_table(f"batch_{table}")
    op.drop_table("batches")
    op.drop_column("tokens", "settled")
    op.drop_column("reports", "release")
    _comment_strata("public strata as canonical JSON, empty if none")
    _views("counts", "counts_by_day")


def _create() -> None:
    op.create_table(
        "batches",
        _document(),
        sa.Column(
            "release",
            sa.Integer,
            nullable=False,
            autoincrement=False,
            comment="1, 2, ... within the document",
        ),
        _stratum(),
        sa.Column(
            "released", sa.String(20), nullable=False, comment="time of the release; UTC, RFC 3339"
        ),
        sa.Column(
            "n", sa.BigInteger, nullable=False, comment="number of its reports; never changed"
        ),
        sa.PrimaryKeyConstraint("document", "release", "stratum", name="pk_batches"),
        sa.CheckConstraint("release >= 1", name=op.f("ck_batches_release")),
        sa.CheckConstraint("n >= 1", name=op.f("ck_batches_n")),
        sqlite_with_rowid=False,
    )
    symbol = sa.Column("symbol", sa.Integer, nullable=False, comment="the report symbol")
    _counts(
        "batch_counts", "number of released reports with this symbol", _block(), _stratum(), symbol
    )
    _counts(
        "batch_pair_counts",
        "number of released reports with both",
        _block(),
        sa.Column(
            "other",
            sa.SmallInteger,
            nullable=False,
            comment="position of a later block; for a set, its own",
        ),
        _stratum(),
        sa.Column(
            "symbol",
            sa.Integer,
            nullable=False,
            comment="symbol of the block, or a position in a set",
        ),
        sa.Column(
            "other_symbol",
            sa.Integer,
            nullable=False,
            comment="symbol of the other block, or a later position in the set",
        ),
    )
    _counts(
        "batch_counts_by_day",
        "reports released on that day with this symbol",
        _block(),
        _stratum(),
        sa.Column("day", sa.String(10), nullable=False, comment="UTC day of the release"),
        sa.Column(
            "symbol", sa.Integer, nullable=False, comment="the report symbol, or a set's position"
        ),
        sa.Column(
            "other_symbol",
            sa.Integer,
            nullable=False,
            comment="a set's later position; -1 for a symbol alone",
        ),
    )


def _document() -> "sa.Column[object]":
    words = "the document whose mechanism made the symbols"
    return sa.Column("document", sa.LargeBinary(32), nullable=False, comment=words)


def _block() -> "sa.Column[object]":
    return sa.Column(
        "block", sa.SmallInteger, nullable=False, comment="position of the block, from 0"
    )


def _stratum() -> "sa.Column[object]":
    return sa.Column("stratum", sa.String(1200), nullable=False, comment="as in reports.strata")


def _counts(name: str, meaning: str, *keys: "sa.Column[object]") -> None:
    columns = [_document(), *keys]
    op.create_table(
        name,
        *columns,
        sa.Column("n", sa.BigInteger, nullable=False, comment=meaning),
        sa.PrimaryKeyConstraint(*(column.name for column in columns), name=f"pk_{name}"),
        sa.CheckConstraint("n >= 0", name=op.f(f"ck_{name}_n")),
        sqlite_with_rowid=False,
    )


def _comment_strata(words: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"COMMENT ON COLUMN reports.strata IS '{words}'")


def _drop_what_is_written(table: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {table}_dropped BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END"
        )
        return
    op.execute(
        "CREATE OR REPLACE FUNCTION frankly_drop_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_dropped BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION frankly_drop_row()"
    )


def _views(counts: str, by_day: str) -> None:
    """Create the views for tools that read SQL; GROUP BY also makes them read-only on PostgreSQL."""
    keys = f"{_hex_of('d.survey')} AS survey, d.version AS version, 'sha256:' || {_hex_of('c.document')} AS document"
    groups = "d.survey, d.version, c.document"
    for view, table, columns, alone in (
        ("noisy_counts", counts, "c.block, c.stratum, c.symbol", ""),
        (
            "noisy_counts_by_day",
            by_day,
            "c.block, c.stratum, c.day, c.symbol",
            f"WHERE c.other_symbol = {_ALONE}",
        ),
    ):
        named = ", ".join(
            f"{column} AS {column.removeprefix('c.')}" for column in columns.split(", ")
        )
        op.execute(
            f"CREATE VIEW {view} AS SELECT {keys}, {named}, SUM(c.n) AS n "  # noqa: S608 - names of columns only
            f"FROM {table} c JOIN documents d ON d.digest = c.document {alone} GROUP BY {groups}, {columns}"
        )


def _hex_of(column: str) -> str:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    return f"encode({column}, 'hex')" if on_postgresql else f"lower(hex({column}))"
