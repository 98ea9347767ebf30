# SPDX-License-Identifier: Apache-2.0
"""Reading a survey's released batches: their counts; reports themselves only where more could be counted than is kept.

What is kept, and so how long reading takes, follows from the document alone (`store.Layout`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any

from frankly_protocol.mechanisms import DenseMechanism, Mechanism

from frankly_server.analysis.counted_document import Blocks, Cell, Key, Received
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.request import Request
from frankly_server.store import NO_NUMBER, DocumentRow, Layout, Transaction, is_masked, is_set, members

Tallies = dict[Key, Counter[tuple[int, ...]]]


def received(tx: Transaction, row: DocumentRow) -> Received:
    """Return a document with the counts of each block by itself: symbols, or pairs of positions of large sets."""
    found = Received.of(row.envelope, {}, tx.batches.newest(row.digest))
    layout = Layout.of(found.document)
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for count, n in tx.counts.of_document(row.digest).items():
        key = ((count.block,), count.stratum, ALL_TIME)
        totals[key] += n
        if layout.radices[count.block]:
            tallies[key][layout.parts(count.block, count.symbol)] += n
    for block in layout.sets:
        for pair, n in tx.counts.pairs(row.digest, block, block).items():
            tallies[(block,), pair.stratum, ALL_TIME][pair.symbol, pair.other_symbol] += n
    rest = [(i,) for i in range(len(found.document.blocks)) if not layout.covers((i,))]
    return found.with_cells(_cells(totals, tallies)).with_cells(_from_reports(tx, row, found, rest))


def with_tables(tx: Transaction, row: DocumentRow, found: Received, wanted: Iterable[Blocks]) -> Received:
    """Return the document with the counts of several blocks together too."""
    layout = Layout.of(found.document)
    tallies: Tallies = defaultdict(Counter)
    rest = []
    for blocks in wanted:
        if not layout.covers(blocks):
            rest.append(blocks)
            continue
        i, j = blocks
        for pair, n in tx.counts.pairs(row.digest, i, j).items():
            tallies[blocks, pair.stratum, ALL_TIME][
                layout.parts(i, pair.symbol) + layout.parts(j, pair.other_symbol)
            ] += n
    totals = {key: sum(tally.values()) for key, tally in tallies.items()}
    return found.with_cells(_cells(totals, tallies)).with_cells(_from_reports(tx, row, found, rest))


def with_periods(tx: Transaction, row: DocumentRow, found: Received, request: Request) -> Received:
    """Return the document with the counts of each block by itself in every period asked for."""
    layout = Layout.of(found.document)
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for count, n in tx.counts.by_day(row.digest, request.span.since, request.span.until).items():
        period = request.span.period(count.day, request.period)
        if period is None:
            continue
        key = ((count.block,), count.stratum, period)
        if count.other_symbol != NO_NUMBER:
            tallies[key][count.symbol, count.other_symbol] += n
            continue
        totals[key] += n
        if layout.radices[count.block]:
            tallies[key][layout.parts(count.block, count.symbol)] += n
    return found.with_cells(_cells(totals, tallies))


def again(tx: Transaction, row: DocumentRow, found: Received, wanted: Iterable[Blocks], request: Request) -> Received:
    """Return the document with the cells that a result was made from: of releases up to the one that it names.

    They come from the reports: counts hold later releases as well.
    """
    single = [(i,) for i in range(len(found.document.blocks))]
    cells = _from_reports(tx, row, found, [*single, *wanted], found.release)
    days = {batch.release: batch.released[:10] for batch in tx.batches.of_document(row.digest)}
    periods = {release: request.span.period(day, request.period) for release, day in days.items()}
    dated = _from_reports(tx, row, found, single, found.release, periods) if request.is_dated else {}
    return found.with_cells(cells).with_cells(dated)


def _from_reports(
    tx: Transaction,
    row: DocumentRow,
    found: Received,
    wanted: Sequence[Blocks],
    newest: int | None = None,
    periods: dict[int, str | None] | None = None,
) -> dict[Key, Cell]:
    """Return the same cells as counts give, from every released report: the time grows with their number.

    newest : the last release that counts, None for all. periods : of each release, None for all time.
    """
    if not wanted:
        return {}
    mechanisms = [block.mechanism for block in found.document.blocks]
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for alike in tx.released_reports.of_document(row.survey, row.digest):
        period = ALL_TIME if periods is None else periods.get(alike.release)
        if period is None or (newest is not None and alike.release > newest):
            continue
        for blocks in wanted:
            key = (blocks, alike.stratum, period)
            totals[key] += alike.n
            for entry in _entries([mechanisms[i] for i in blocks], [alike.symbols[i] for i in blocks]):
                tallies[key][entry] += alike.n
    return _cells(totals, tallies)


def _cells(totals: dict[Key, int], tallies: Tallies) -> dict[Key, Cell]:
    return {key: Cell(n, dict(tallies[key])) for key, n in totals.items()}


def _entries(mechanisms: Sequence[Mechanism], symbols: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return what one report adds to: pairs of positions for a large set, else its symbols' parts together."""
    if len(mechanisms) == 1 and is_set(mechanisms[0]) and not is_masked(mechanisms[0]):
        return list(combinations_with_replacement(members(symbols[0]), 2))
    return [tuple(part for m, symbol in zip(mechanisms, symbols, strict=True) for part in _parts(m, symbol))]


def _parts(mechanism: Mechanism, symbol: Any) -> tuple[int, ...]:
    """Return a stored symbol as whole numbers: one, or one per factor of a product."""
    if isinstance(mechanism, DenseMechanism):
        return (int(symbol),)
    read = mechanism.check_symbol(symbol)
    return read if isinstance(read, tuple) else (read,)
