# SPDX-License-Identifier: Apache-2.0
"""Batches of failures over cells and releases: what estimates and replays use of them."""

import json
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.kinds.decoder import shares
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism
from frankly_server.analysis import Analysis, encode
from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.reading import received, replayed, with_tables
from frankly_server.analysis.request import Request
from frankly_server.store import Database, ReportRow

from tests.frankly_protocol.samples import question, survey, with_item
from tests.frankly_server.samples import SURVEY, put
from tests.frankly_server.store.counted import block, mechanisms, symbols

STEP = 5
REGIONS = ("north", "south")


def document_of(database: Database, drawn: list[Mechanism]) -> SurveyDocument:
    document = with_item(
        replace(survey(*(block(f"b{i}", m) for i, m in enumerate(drawn))), min_reports=20),
        regions=question("region", *REGIONS),
    )
    return put(database, replace(document, release_step=STEP))


def collect(database: Database, document: SurveyDocument, drawn: list[Mechanism]) -> list[Any]:
    """Release some reports on each of four days, and return those that count as known failures."""
    rng, known, waiting = Random(8), list[Any](), list[Any]()
    for day in range(1, 5):
        rows, failing = [], []
        for region, n_failed in (("north", 2), ("south", 1)):
            for i in range(40):
                result = "failed" if i < n_failed else "passed"
                stratum = json.dumps({"check": result, "region": region}, separators=(",", ":"))
                rows.append(
                    ReportRow(
                        SURVEY,
                        f"{rng.getrandbits(128):032x}",
                        document.digest,
                        symbols(drawn, rng),
                        stratum,
                    )
                )
                failing += [rows[-1].symbols] if i < n_failed else []
        with database.transaction("receive and release") as tx:
            tx.reports.add(rows)
            tx.releases.release(
                SURVEY,
                document.digest,
                STEP,
                f"2026-06-0{day}T00:00:00Z",
                is_over=lambda: False,
                item="check",
            )
        waiting += failing
        if len(waiting) >= STEP:
            known, waiting = known + waiting, []
    assert (len(known), len(waiting)) == (12, 0)
    return known


@pytest.mark.parametrize("seed", range(4))
def test_they_are_counted_as_the_reports_are(database: Database, seed: int) -> None:
    drawn = mechanisms(Random(seed))
    document = document_of(database, drawn)
    known = collect(database, document, drawn)
    with database.reading("look") as tx:
        (row,) = tx.documents.versions(SURVEY)
        (source,) = received(tx, row)
        pairs = [blocks for blocks in source.failures if len(blocks) > 1]
        (empty,) = Received.of(row.envelope, source.release)
        again = replayed(tx, row, empty, (), Request())
        assert again.failures == source.failures
        # Each block counts every one of them, and pairs of blocks those that releases count.
        assert {cell.n for cell in source.failures.values()} == {len(known)}
        assert pairs
        assert with_tables(tx, row, source, pairs).failures == source.failures
        for place in range(len(drawn)):
            of_all = Counter[tuple[int, ...]]()
            for (blocks, _, period), cell in source.cells.items():
                if (blocks, period) == ((place,), ""):
                    of_all.update(cell.tally)
            # A part of all reports: no count of the failures is larger.
            assert not Counter(source.failures[place,].tally) - of_all


def test_figures_and_replays_use_them(database: Database) -> None:
    drawn = [m for m in mechanisms(Random(3)) if m.answers == 2][:1]
    document = document_of(database, drawn)
    known = collect(database, document, drawn)
    analysis = Analysis(database)
    body = analysis.estimates(SURVEY)
    ((found,), (mechanism,)) = body["questions"], drawn
    assert found["random_answers"]["failed"] == 12
    with database.reading("look") as tx:
        rows = [
            (json.loads(f"[{','.join(map(str, one.symbols))}]"), one.n)
            for one in tx.released_reports.of_document(SURVEY, document.digest)
        ]
    of_all, of_failed = (np.zeros(mechanism.reports) for _ in range(2))
    for (symbol,), n in rows:
        of_all[symbol] += n
    for (symbol,) in known:
        of_failed[symbol] += 1
    others = [int(n) for n in of_all - of_failed]
    t = float(estimate(mechanism, others, targets=shares(2)).unbiased[1] or 0)
    f, lam = 1 - 12 / 320, 12 / 320 * 4 / 3
    assert found["rows"][1]["corrected"] == pytest.approx(0.5 + (t - 0.5) * f / (1 - lam))
    assert analysis.replay(body) == encode(body)
    # Of regions and days it is not known who failed, so all reports count there.
    for one in analysis.estimates(SURVEY, by="region")["questions"]:
        row, random = one["rows"][1], one["random_answers"]["random"]
        assert row["corrected"] == pytest.approx(0.5 + (row["estimate"] - 0.5) / (1 - random))
    days = analysis.estimates(SURVEY, by="day")
    assert len(days["questions"]) == 4
    assert analysis.replay(days) == encode(days)
