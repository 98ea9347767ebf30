# SPDX-License-Identifier: Apache-2.0
"""Counts of pairs, and of the symbols of products and small sets as integers (see `store.statistics`).

The migration counts all existing reports. No server may run until it has finished.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op
from frankly_server.store.statistics import NO_NUMBER, Layout

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Tables at this revision: later changes in the code must not change this migration.
_documents = sa.table("documents", *map(sa.column, ("digest", "survey", "envelope")))
_reports = sa.table("reports", *map(sa.column, ("survey", "document", "symbols", "strata")))
_COUNT = ("document", "block", "stratum", "symbol")
_PAIR = ("document", "block", "other", "stratum", "symbol", "other_symbol")
_counts = sa.table("counts", *map(sa.column, (*_COUNT, "slot", "n")))
_pairs = sa.table("pair_counts", *map(sa.column, (*_PAIR, "slot", "n")))
_CHUNK = 1000


def upgrade() -> None:
    _create()
    for digest, survey, layout in _layouts():
        numbers: Counter[tuple[Any, ...]] = Counter()
        pairs: Counter[tuple[Any, ...]] = Counter()
        for symbols, stratum, n in _whole_reports(survey, digest):
            found = layout.numbers(symbols)
            for block in _newly_numbered(layout, symbols):
                numbers[digest, block, stratum, found[block]] += n
            for blocks, together in layout.pairs_of(symbols, found):
                for pair in together:
                    pairs[digest, *blocks, stratum, *pair] += n
        _replace(digest, numbers)
        _fill(_pairs, _PAIR, pairs)


def downgrade() -> None:
    for digest, survey, layout in _layouts():
        totals: Counter[tuple[Any, ...]] = Counter()
        for symbols, stratum, n in _whole_reports(survey, digest):
            for block in _newly_numbered(layout, symbols):
                totals[digest, block, stratum, NO_NUMBER] += n
        _replace(digest, totals)
    op.drop_table("pair_counts")


def _create() -> None:
    op.create_table(
        "pair_counts",
        sa.Column(
            "document",
            sa.LargeBinary(32),
            nullable=False,
            comment="the document whose mechanism made the symbols",
        ),
        sa.Column(
            "block", sa.SmallInteger, nullable=False, comment="position of the block, from 0"
        ),
        sa.Column(
            "other",
            sa.SmallInteger,
            nullable=False,
            comment="position of a later block; for a set, its own",
        ),
        sa.Column("stratum", sa.String(1200), nullable=False, comment="as in reports.strata"),
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
        sa.Column(
            "slot", sa.SmallInteger, nullable=False, comment="spreads writers; summed on reading"
        ),
        sa.Column("n", sa.BigInteger, nullable=False, comment="reports with both"),
        sa.PrimaryKeyConstraint(*_PAIR, "slot", name="pk_pair_counts"),
        sa.CheckConstraint("n >= 0", name=op.f("ck_pair_counts_n")),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )


def _layouts() -> list[tuple[bytes, bytes, Layout]]:
    found = op.get_bind().execute(
        sa.select(_documents.c.digest, _documents.c.survey, _documents.c.envelope)
    )
    return [
        (bytes(digest), bytes(survey), Layout.read(bytes(envelope)))
        for digest, survey, envelope in found
    ]


def _newly_numbered(layout: Layout, symbols: list[Any]) -> list[int]:
    """Return the blocks with integer symbols that were not counted by symbol before: sets and products."""
    return [b for b, symbol in enumerate(symbols) if layout.radices[b] and type(symbol) is not int]


def _whole_reports(survey: bytes, digest: bytes) -> Iterator[tuple[Any, str, int]]:
    """Yield (symbols, stratum, number of reports) of one document."""
    keys = (_reports.c.symbols, _reports.c.strata)
    wanted = (_reports.c.survey == survey) & (_reports.c.document == digest)
    every = sa.select(*keys, sa.func.count()).where(wanted).group_by(*keys)
    for symbols, stratum, n in op.get_bind().execute(
        every, execution_options={"yield_per": _CHUNK}
    ):
        yield json.loads(f"[{symbols}]"), stratum, n


def _replace(digest: bytes, found: Counter[tuple[Any, ...]]) -> None:
    """Replace the stored counts of these blocks."""
    blocks = sorted({block for _, block, *_ in found})
    op.get_bind().execute(
        sa.delete(_counts).where(_counts.c.document == digest, _counts.c.block.in_(blocks))
    )
    _fill(_counts, _COUNT, found)


def _fill(table: Any, names: tuple[str, ...], found: Counter[tuple[Any, ...]]) -> None:
    rows = [dict(zip(names, key, strict=True)) | {"slot": 0, "n": n} for key, n in found.items()]
    for start in range(0, len(rows), _CHUNK):
        op.bulk_insert(table, rows[start : start + _CHUNK])
