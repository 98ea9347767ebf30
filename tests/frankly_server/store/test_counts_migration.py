# SPDX-License-Identifier: Apache-2.0
"""The migration counts what is there already, and going back leaves what the older program kept."""

from collections import Counter
from random import Random

from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.store import CountKey, Database, ReportRow, downgrade, upgrade
from frankly_server.store.schema import counts
from sqlalchemy import inspect, select

from tests.frankly_server.samples import SURVEY, published
from tests.frankly_server.store.counted import block, by_day, kept, mechanisms, pairs, singles, symbols

BEFORE = "0003"


def test_reports_that_are_there_are_counted(fresh_database: Database) -> None:
    rng = Random(1)
    drawn = mechanisms(rng)
    document = published(fresh_database, *(block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn)))
    strata = ["", '{"region":"north"}']
    rows = [ReportRow(SURVEY, f"{i:032x}", document.digest, symbols(drawn, rng), strata[i % 3 // 2]) for i in range(50)]
    with fresh_database.transaction("fill") as tx:
        tx.reports.add_many(rows)
        for start in range(0, 50, 9):
            tx.counts.add(rows[start : start + 9], "2026-06-01")
    assert downgrade(fresh_database, BEFORE) == BEFORE
    assert not inspect(fresh_database.engine).has_table("pair_counts")
    # What was counted then: a table's symbols, and how many reports there were of any other kind.
    older = Counter(
        CountKey(row.document, b, row.strata, int(str(row.symbols[b])) if isinstance(m, DenseMechanism) else -1)
        for row in rows
        for b, m in enumerate(drawn)
    )
    with fresh_database.engine.connect() as connection:
        found: Counter[CountKey] = Counter()
        for digest, b, stratum, symbol, _slot, n in connection.execute(select(counts)):
            found[CountKey(digest, b, stratum, symbol)] += n
    assert found == older
    upgrade(fresh_database)
    with fresh_database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))
        assert tx.counts.recount(SURVEY) == []
        # Nobody knows their days any more: one undated row a symbol.
        undated = dict.fromkeys((row.id for row in rows), "")
        assert tx.counts.by_day(document.digest) == by_day(drawn, rows, undated)
