# SPDX-License-Identifier: Apache-2.0
"""Reading counts of a survey's documents; reports themselves only where more could be counted than is kept.

What is kept, and so how long reading takes, follows from the document alone (`store.Layout`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.mechanisms import DenseMechanism, Mechanism

from frankly_server.analysis.periods import ALL_TIME, UNDATED_WORD
from frankly_server.analysis.received import Blocks, Cell, Key, Received
from frankly_server.analysis.request import Request
from frankly_server.store import NO_NUMBER, UNDATED, DocumentRow, Layout, Transaction, is_masked, is_set, members

Tallies = dict[Key, Counter[tuple[int, ...]]]


def received(tx: Transaction, row: DocumentRow) -> Received:
    """Return a document with the counts of each block by itself: symbols, or pairs of positions of large sets."""
    document = SurveyDocument.parse(Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload)
    layout = Layout.of(document)
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
    rest = [(i,) for i in range(len(document.blocks)) if not layout.covers((i,))]
    cells = {key: Cell(n, dict(tallies[key])) for key, n in totals.items()}
    return Received(document, row.envelope, cells | _from_reports(tx, row, document, rest))


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
    cells = {key: Cell(sum(tally.values()), dict(tally)) for key, tally in tallies.items()}
    return Received(
        found.document,
        found.envelope,
        {**found.cells, **cells, **_from_reports(tx, row, found.document, rest)},
    )


def with_periods(tx: Transaction, row: DocumentRow, found: Received, request: Request) -> Received:
    """Return the document with the counts of each block by itself in every period asked for, and of the undated."""
    layout = Layout.of(found.document)
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for count, n in tx.counts.by_day(row.digest, request.span.since, request.span.until).items():
        period = UNDATED_WORD if count.day == UNDATED else request.span.period(count.day, request.period)
        if period is None:
            continue
        key = ((count.block,), count.stratum, period)
        if count.other_symbol != NO_NUMBER:
            tallies[key][count.symbol, count.other_symbol] += n
            continue
        totals[key] += n
        if layout.radices[count.block]:
            tallies[key][layout.parts(count.block, count.symbol)] += n
    cells = {key: Cell(n, dict(tallies[key])) for key, n in totals.items()}
    return Received(found.document, found.envelope, {**found.cells, **cells})


def _from_reports(
    tx: Transaction, row: DocumentRow, document: SurveyDocument, wanted: Sequence[Blocks]
) -> dict[Key, Cell]:
    """Return the same cells as counts give, from every report of a document: the time grows with their number."""
    if not wanted:
        return {}
    mechanisms = [block.mechanism for block in document.blocks]
    totals: Counter[Key] = Counter()
    tallies: Tallies = defaultdict(Counter)
    for symbols, stratum, n in tx.together.of_document(row.survey, row.digest):
        for blocks in wanted:
            totals[blocks, stratum, ALL_TIME] += n
            for entry in _entries([mechanisms[i] for i in blocks], [symbols[i] for i in blocks]):
                tallies[blocks, stratum, ALL_TIME][entry] += n
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
