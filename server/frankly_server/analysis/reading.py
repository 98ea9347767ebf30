# SPDX-License-Identifier: Apache-2.0
"""Read access to released batches: stored counts, or the reports if no counts are stored.

The document alone determines which counts are stored (`store.Layout`), and so the reading time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from frankly_design.kinds.kind import Counted
from frankly_design.kinds.parts import counted_blocks

from frankly_server.analysis.counted_document import Blocks, CellCounts, Key, Received
from frankly_server.analysis.periods import ALL_TIME, Span
from frankly_server.analysis.request import Request
from frankly_server.store import (
    NO_NUMBER,
    CountKey,
    DayKey,
    DocumentRow,
    Layout,
    PairKey,
    Transaction,
    day_of,
)

Tallies = dict[Key, Counter[tuple[int, ...]]]
_CountKey = TypeVar("_CountKey", CountKey, PairKey, DayKey)


class Dated(Protocol):
    """A request for a span of days, optionally by period."""

    @property
    def span(self) -> Span:
        """Days of release to include."""

    @property
    def period(self) -> str | None:
        """One of `PERIODS`, or None."""


def received(
    tx: Transaction, row: DocumentRow, *, only_counts: bool = False
) -> tuple[Received, ...]:
    """Return a document with the counts of each single block: symbols, or pairs for large sets.

    Of a document with arms, the view of each. only_counts : skip blocks whose counts are not stored,
    instead of reading their reports.
    """
    sources = Received.of(row.envelope, tx.batches.newest(row.digest))
    return tuple(_received(tx, row, one, only_counts) for one in sources)


def beside_each_other(sources: Sequence[Received]) -> list[Received]:
    """Return the sources, each arm with the numbers of reports in the others of its document."""
    numbers = [
        {
            (stratum, period): cell.n
            for (blocks, stratum, period), cell in source.cells.items()
            if blocks == (0,)
        }
        if source.document.arm is not None
        else {}
        for source in sources
    ]
    return [
        replace(
            source,
            # Strata name their arm, so none is in two of them.
            beside={
                key: n
                for other, one in zip(sources, numbers, strict=True)
                if other is not source and other.document.digest == source.document.digest
                for key, n in one.items()
            },
        )
        for source in sources
    ]


def _received(tx: Transaction, row: DocumentRow, source: Received, only_counts: bool) -> Received:
    source = _with_results(tx, row, source)
    layout = Layout.of(source.document)
    pairs = _held(
        source,
        {
            pair: n
            for block in layout.sets
            for pair, n in tx.counts.pairs(row.digest, block, block).items()
        },
    )
    cells = _single_blocks(layout, _held(source, tx.counts.of_document(row.digest)), pairs)
    uncounted = [
        (i,)
        for i, block in enumerate(counted_blocks(source.document))
        if not layout.covers((i,)) and block.form is None and not only_counts
    ]
    return source.with_cells(cells).with_cells(_from_reports(tx, row, source, uncounted))


def _single_blocks(
    layout: Layout, singles: Mapping[CountKey, int], pairs: Mapping[PairKey, int]
) -> dict[Key, CellCounts]:
    """Return the cells of single blocks; of `pairs` only those of positions of large sets are used."""
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for count, n in singles.items():
        key = ((count.block,), count.stratum, ALL_TIME)
        totals[key] += n
        # Large sets have no counts by symbol, but pair counts.
        if layout.radices[count.block]:
            tallies[key][layout.parts(count.block, count.symbol)] += n
    for pair, n in pairs.items():
        if pair.block == pair.other:
            tallies[(pair.block,), pair.stratum, ALL_TIME][pair.symbol, pair.other_symbol] += n
    return _cells(totals, tallies)


def _with_results(tx: Transaction, row: DocumentRow, source: Received) -> Received:
    """Return the document with what is known of its instructed item up to `source.release`."""
    if source.document.instructed is None:
        return source
    layout = Layout.of(source.document)
    singles, pairs = tx.counts.failures(row.digest, source.release, source.document.arm)
    cells = _single_blocks(layout, singles, pairs)
    for pair, n in pairs.items():
        if pair.block != pair.other:
            key = ((pair.block, pair.other), pair.stratum, ALL_TIME)
            joint = layout.parts(pair.block, pair.symbol) + layout.parts(
                pair.other, pair.other_symbol
            )
            cell = cells.get(key, CellCounts(0, {}))
            cells[key] = CellCounts(cell.n + n, {**cell.tally, joint: n})
    failures = {blocks: cell for (blocks, _, _), cell in cells.items()}
    batches = tx.batches.of_document(row.digest)
    return replace(source.with_batches(batches), failures=failures)


def with_tables(
    tx: Transaction, row: DocumentRow, source: Received, joint_blocks: Iterable[Blocks]
) -> Received:
    """Return the document with joint counts of several blocks added."""
    layout = Layout.of(source.document)
    tallies: Tallies = defaultdict(Counter)
    uncounted = []
    for blocks in joint_blocks:
        if not layout.covers(blocks):
            uncounted.append(blocks)
            continue
        i, j = blocks
        for pair, n in _held(source, tx.counts.pairs(row.digest, i, j)).items():
            tallies[blocks, pair.stratum, ALL_TIME][
                layout.parts(i, pair.symbol) + layout.parts(j, pair.other_symbol)
            ] += n
    totals = {key: sum(tally.values()) for key, tally in tallies.items()}
    return source.with_cells(_cells(totals, tallies)).with_cells(
        _from_reports(tx, row, source, uncounted)
    )


def with_periods(tx: Transaction, row: DocumentRow, source: Received, request: Dated) -> Received:
    """Return the document with counts of each single block in every requested period added."""
    layout = Layout.of(source.document)
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    by_day = tx.counts.by_day(row.digest, request.span.since, request.span.until)
    for count, n in _held(source, by_day).items():
        period = request.span.period(count.day, request.period)
        if period is None:
            continue
        key = ((count.block,), count.stratum, period)
        # A row with a second symbol counts a pair within a set, not reports.
        if count.other_symbol != NO_NUMBER:
            tallies[key][count.symbol, count.other_symbol] += n
            continue
        totals[key] += n
        if layout.radices[count.block]:
            tallies[key][layout.parts(count.block, count.symbol)] += n
    return source.with_cells(_cells(totals, tallies))


def replayed(
    tx: Transaction,
    row: DocumentRow,
    source: Received,
    joint_blocks: Iterable[Blocks],
    request: Request,
) -> Received:
    """Return the document with the cells of releases up to `source.release`, for a replay.

    The cells are computed from the reports, because stored counts include later releases.
    """
    single = [(i,) for i in range(len(counted_blocks(source.document)))]
    cells = _from_reports(tx, row, source, [*single, *joint_blocks], source.release)
    batches = tx.batches.of_document(row.digest)
    days = {batch.release: day_of(batch.released) for batch in batches}
    # A report has no date of its own, so its release determines the day.
    periods = {release: request.span.period(day, request.period) for release, day in days.items()}
    dated = (
        _from_reports(tx, row, source, single, source.release, periods) if request.is_dated else {}
    )
    return _with_results(tx, row, source).with_cells(cells).with_cells(dated)


def _from_reports(
    tx: Transaction,
    row: DocumentRow,
    source: Received,
    block_groups: Sequence[Blocks],
    newest: int | None = None,
    periods: dict[int, str | None] | None = None,
) -> dict[Key, CellCounts]:
    """Return the same cells as stored counts, but computed from every released report.

    The time grows with the number of reports. newest : last release to include, None for all.
    periods : period by release, None for all time.
    """
    if not block_groups:
        return {}
    layout = Layout.of(source.document)
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for group in tx.released_reports.of_document(row.survey, row.digest):
        period = ALL_TIME if periods is None else periods.get(group.release)
        if period is None or (newest is not None and group.release > newest):
            continue
        if not source.holds(group.stratum):
            continue
        counted = layout.symbols(group.symbols)
        for blocks in block_groups:
            symbols = [counted[i] for i in blocks]
            # A report without some of the parts contains no information about their joint answers.
            if None in symbols:
                continue
            key = (blocks, group.stratum, period)
            totals[key] += group.n
            for entry in _entries([layout.kinds[i] for i in blocks], symbols):
                tallies[key][entry] += group.n
    return _cells(totals, tallies)


def _held(source: Received, stored: Mapping[_CountKey, int]) -> dict[_CountKey, int]:
    """Return the counts of the strata of an arm; without arms, all."""
    holds = lru_cache(maxsize=None)(source.holds)
    return {key: n for key, n in stored.items() if holds(key.stratum)}


def _cells(totals: dict[Key, int], tallies: Tallies) -> dict[Key, CellCounts]:
    return {key: CellCounts(n, dict(tallies[key])) for key, n in totals.items()}


def _entries(kinds: Sequence[Counted], symbols: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the tally keys of one report: those of a single block, else one joint key."""
    if len(kinds) == 1:
        return kinds[0].keys(symbols[0])
    pairs = zip(kinds, symbols, strict=True)
    return [tuple(part for kind, symbol in pairs for part in kind.parts(symbol))]
