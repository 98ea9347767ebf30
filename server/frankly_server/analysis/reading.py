# SPDX-License-Identifier: Apache-2.0
"""Reading counts of a survey's documents; reports themselves only where counts per block cannot tell."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.mechanisms import DenseMechanism, Mechanism

from frankly_server.analysis.received import Blocks, Cell, Key, Received
from frankly_server.store import DocumentRow, Transaction


def received(tx: Transaction, row: DocumentRow) -> Received:
    """Return a document with the counts of each block by itself.

    Symbols of a table are counted as they come in; those of other kinds are too many, so their reports are read.
    """
    document = SurveyDocument.parse(Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload)
    tallies: dict[Key, Counter[tuple[int, ...]]] = defaultdict(Counter)
    listed = {i for i, block in enumerate(document.blocks) if not isinstance(block.mechanism, DenseMechanism)}
    for key, n in tx.counts.of_document(row.digest).items():
        if key.block not in listed:
            tallies[(key.block,), key.stratum][(key.symbol,)] += n
    if listed:
        _add_together(tx, row, document, [(i,) for i in sorted(listed)], tallies)
    return Received(document, row.envelope, {key: _cell(tally) for key, tally in tallies.items()})


def with_tables(tx: Transaction, row: DocumentRow, found: Received, wanted: Iterable[Blocks]) -> Received:
    """Return the document with the counts of several blocks together too."""
    tallies: dict[Key, Counter[tuple[int, ...]]] = defaultdict(Counter)
    _add_together(tx, row, found.document, list(wanted), tallies)
    return Received(found.document, found.envelope, found.cells | {key: _cell(t) for key, t in tallies.items()})  # type: ignore[operator]


def _add_together(
    tx: Transaction,
    row: DocumentRow,
    document: SurveyDocument,
    wanted: list[Blocks],
    tallies: dict[Key, Counter[tuple[int, ...]]],
) -> None:
    mechanisms = [block.mechanism for block in document.blocks]
    for symbols, stratum, n in tx.together.of_document(row.survey, row.digest):
        for blocks in wanted:
            joined = tuple(part for i in blocks for part in _parts(mechanisms[i], symbols[i]))
            tallies[blocks, stratum][joined] += n


def _parts(mechanism: Mechanism, symbol: Any) -> tuple[int, ...]:
    """Return a stored symbol as whole numbers: one, or one per factor of a product."""
    if isinstance(mechanism, DenseMechanism):
        return (int(symbol),)
    read = mechanism.check_symbol(symbol)
    return read if isinstance(read, tuple) else (read,)


def _cell(tally: Counter[tuple[int, ...]]) -> Cell:
    return Cell(sum(tally.values()), dict(tally))
