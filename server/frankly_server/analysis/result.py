# SPDX-License-Identifier: Apache-2.0
"""From counts of released batches to an answer.

Nothing here reads a database or a clock: `answer` is a function of the request, the documents and their counts. The
answer names all of them under `inputs`, next to the version of the code, for `Analysis.replay`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frankly_protocol import __version__
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.analysis.counted_document import Blocks, Key, Received
from frankly_server.analysis.periods import ALL_TIME, DAYS, PERIODS
from frankly_server.analysis.pooling import Part
from frankly_server.analysis.request import VERSION, Request
from frankly_server.analysis.rows import BETA, NO_PRODUCTS, part_targets, table_json
from frankly_server.analysis.tables import Table, blocks_of, cell_weights, tables
from frankly_server.store import Layout

NOTES = ("Shares are those of the people who reported; nothing corrects for those who did not.",)
READ = (
    "More symbols can come together here than a release counts: every report was read, which takes longer the more "
    "there are."
)

_MOST_TABLES = 1000
"""Estimates of so many tables take seconds."""


@dataclass(frozen=True, slots=True)
class Group:
    """What one estimate of a table is about: the reports to these documents of one period.

    by, choice : a public question and the choice of it that they name; None for all.
    """

    label: dict[str, str] | None
    sources: tuple[Received, ...]
    by: str | None = None
    choice: str | None = None
    period: str = ALL_TIME


def answer(survey: str, documents: Sequence[Received], request: Request) -> dict[str, Any]:
    """Return the estimates of a survey's documents (oldest first) as JSON values.

    Raises InvalidInput: targets_invalid, strata_invalid (an unknown `by`), unsupported.
    """
    asked = tables(documents, request)
    groups = [(table, group) for table in asked for group in _in_periods(table, _groups(table, request), request)]
    if len(groups) > _MOST_TABLES:
        words = (
            f"these are more than {_MOST_TABLES} tables: take longer periods, fewer days (since, until) or questions"
        )
        raise InvalidInput(Problem.UNSUPPORTED, words, "by")
    questions = [_question(table, group, request) for table, group in groups]
    newest = documents[-1].document
    return {
        "survey": survey,
        "title": dict(newest.title),
        "languages": list(newest.languages),
        "level": request.level,
        "method": request.method,
        "census": request.census,
        "population": request.population,
        "percent": request.percent,
        "weights": request.weights,
        "by": request.by,
        "since": request.span.since,
        "until": request.span.until,
        "n": sum(each.n for each in documents),
        "documents": [
            {"digest": each.document.digest, "version": each.document.version, "n": each.n} for each in documents
        ],
        "questions": questions,
        "beta": BETA,
        "notes": [*NOTES, *([READ] if any(map(_is_read, asked)) else [])],
        "inputs": {
            "code": __version__,
            "request": request.to_json(),
            "documents": [each.to_json() for each in documents],
        },
    }


def encode(body: Mapping[str, Any]) -> bytes:
    """Return an answer as the exact bytes that are served and that `replay` compares."""
    return json.dumps(body, sort_keys=True, allow_nan=False, ensure_ascii=False).encode() + b"\n"


def needed(documents: Sequence[Received], request: Request) -> dict[str, set[Blocks]]:
    """Return which blocks of each document are wanted together, more than one at a time."""
    found: dict[str, set[Blocks]] = {}
    for table in tables(documents, request):
        for source in table.sources:
            blocks = blocks_of(source.document, table.questions)
            if blocks is not None and len(blocks) > 1:
                found.setdefault(source.document.digest, set()).add(blocks)
    return found


def _groups(table: Table, request: Request) -> list[Group]:
    """Return what the estimates of a table are about, of all days."""
    by = request.group
    if by is None:
        return [Group(None, table.sources)]
    if by == VERSION:
        return [Group({VERSION: str(each.document.version)}, (each,)) for each in table.sources]
    asked = {q.id: q for each in table.sources for q in each.document.strata}
    if by not in asked:
        known = ", ".join([*sorted(asked), VERSION, *PERIODS])
        raise InvalidInput(Problem.STRATA_INVALID, f"estimates can be told apart by: {known}", "by")
    sources = tuple(each for each in table.sources if by in {q.id for q in each.document.strata})
    return [Group({by: c.id}, sources, by, c.id) for c in asked[by].choices]


def _in_periods(table: Table, groups: Sequence[Group], request: Request) -> list[Group]:
    """Return the groups again for each period asked for, the first one first."""
    if not request.is_dated:
        return list(groups)
    _require_days(table)
    if request.period is None:
        name, periods = DAYS, [str(request.span)]
    else:
        blocks = [(source, blocks_of(source.document, table.questions) or ()) for source in table.sources]
        found = {period for source, positions in blocks for period in source.periods(positions)}
        name, periods = request.period, sorted(found)
    return [
        replace(group, label=(group.label or {}) | {name: period}, period=period)
        for group in groups
        for period in periods
    ]


def _require_days(table: Table) -> None:
    """Days are counted of every block by itself, and of as large blocks as totals are."""
    for source in table.sources:
        blocks = blocks_of(source.document, table.questions)
        if blocks is not None and (len(blocks) > 1 or not Layout.of(source.document).covers(blocks)):
            words = f"what came in together on a day is not kept for {table.id}: ask for all days, or other targets"
            raise InvalidInput(Problem.UNSUPPORTED, words, "targets")


def _question(table: Table, group: Group, request: Request) -> dict[str, Any]:
    label, sources = group.label, group.sources
    found = [(source, _keys(source, table, group)) for source in sources]
    used = [(source, keys) for source, keys in found if keys]
    n = sum(source.cells[key].n for source, keys in used for key in keys)
    least = max(source.document.min_reports for source in sources)
    digests = [source.document.digest for source, _ in used]
    head = {
        "id": table.id,
        "block": _block_ids(table),
        "text": table.text,
        "by": label,
        "n": n,
        "needed": least,
        "documents": digests,
    }
    if not used or n < least:
        return head | {"status": "insufficient", "rows": [], "covariance": None, **NO_PRODUCTS}
    body = table_json(table, [_part(source, keys, table) for source, keys in used], request, digests)
    told = "" if label is None else " ".join(f"{name}={value}" for name, value in label.items())
    for row in body["rows"]:
        row["by"] = told
    return head | {"status": "ok"} | body


def _keys(source: Received, table: Table, group: Group) -> list[Key]:
    blocks = blocks_of(source.document, table.questions)
    return [] if blocks is None else source.within(blocks, group.by, group.choice, group.period)


def _part(source: Received, keys: Iterable[Key], table: Table) -> Part:
    tally: dict[tuple[int, ...], int] = {}
    n_reports = 0
    for key in keys:
        n_reports += source.cells[key].n
        for symbols, n in source.cells[key].tally.items():
            tally[symbols] = tally.get(symbols, 0) + n
    positions = blocks_of(source.document, table.questions) or ()
    blocks = tuple(source.document.blocks[i] for i in positions)
    cells = cell_weights(blocks, table)
    targets = cells if table.shares else rational.product(part_targets(table), cells)
    return Part(blocks, n_reports, tally, targets, source.document.strata)


def _is_read(table: Table) -> bool:
    """Tell whether a table's counts are not kept for some document, and so are made from its reports."""
    wanted = [(Layout.of(source.document), blocks_of(source.document, table.questions)) for source in table.sources]
    return any(blocks is not None and not layout.covers(blocks) for layout, blocks in wanted)


def _block_ids(table: Table) -> str:
    document = table.sources[-1].document
    return " × ".join(document.blocks[i].id for i in blocks_of(document, table.questions) or ())
