# SPDX-License-Identifier: Apache-2.0
"""Result of an estimates request, computed from counts of released batches.

This module reads no database and no clock: `answer` depends only on the request, the documents and
their counts. Under `inputs` the result contains the request, the newest release of each document
and the version of the code, so that `Analysis.replay` can compute it again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frankly_protocol import __version__
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.analysis.counted_document import Blocks, Key, Received
from frankly_server.analysis.part import Part
from frankly_server.analysis.periods import ALL_TIME, DAYS, PERIODS
from frankly_server.analysis.pooling import BETA
from frankly_server.analysis.request import VERSION, Request
from frankly_server.analysis.rows import NO_PRODUCTS, part_targets, table_json
from frankly_server.analysis.tables import Table, blocks_of, cell_weights, tables
from frankly_server.forms import counted_blocks
from frankly_server.store import Layout

NOTES = ("Shares are those of the people who reported; nothing corrects for those who did not.",)
READ = (
    "A table here has more combinations of symbols than releases count, so every report was read; "
    "this takes longer the more reports there are."
)

_MAX_TABLES = 1000
"""Largest number of tables in one request, because even this many take seconds."""


@dataclass(frozen=True, slots=True)
class Group:
    """Reports used for one estimate of a table: some documents, one stratum, one period.

    by, choice : a public question and its answer in these reports; None for all reports.
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
    requested = tables(documents, request)
    groups = [
        (table, group)
        for table in requested
        for group in _in_periods(table, _groups(table, request), request)
    ]
    # Checked before anything is estimated, which could take long.
    if len(groups) > _MAX_TABLES:
        detail = (
            f"these are more than {_MAX_TABLES} tables: use longer periods, fewer days (since, "
            "until) or questions"
        )
        raise InvalidInput(Problem.UNSUPPORTED, detail, "by")
    questions = [_question(table, group, request) for table, group in groups]
    # Title and languages may differ between versions.
    newest = documents[-1].document
    request_json = request.to_json()
    return {
        "survey": survey,
        "title": dict(newest.title),
        "languages": list(newest.languages),
        **{name: value for name, value in request_json.items() if name != "targets"},
        "n": sum(source.n for source in documents),
        "documents": [
            {"digest": source.document.digest, "version": source.document.version, "n": source.n}
            for source in documents
        ],
        "questions": questions,
        "beta": str(BETA),
        "notes": [*NOTES, *([READ] if any(map(_is_read, requested)) else [])],
        "inputs": {
            "code": __version__,
            "request": request_json,
            "documents": [source.to_json() for source in documents],
        },
    }


def encode(body: Mapping[str, Any]) -> bytes:
    """Return an answer as the bytes that are served, and that a replay must reproduce."""
    return json.dumps(body, sort_keys=True, allow_nan=False, ensure_ascii=False).encode() + b"\n"


def needed(documents: Sequence[Received], request: Request) -> dict[str, set[Blocks]]:
    """Return, by document digest, the groups of two or more blocks whose joint counts are needed."""
    joint_blocks: dict[str, set[Blocks]] = {}
    for table in tables(documents, request):
        for source in table.sources:
            blocks = blocks_of(source.document, table.questions)
            # Counts of single blocks have been read already.
            if blocks is not None and len(blocks) > 1:
                joint_blocks.setdefault(source.document.digest, set()).add(blocks)
    return joint_blocks


def _groups(table: Table, request: Request) -> list[Group]:
    """Return the groups of a table's estimates, for all days."""
    by = request.group
    if by is None:
        return [Group(None, table.sources)]
    if by == VERSION:
        return [
            Group({VERSION: str(source.document.version)}, (source,)) for source in table.sources
        ]
    # The strata of all versions, because a public question may have been added or dropped.
    strata = {q.id: q for source in table.sources for q in source.document.strata}
    if by not in strata:
        groupings = ", ".join([*sorted(strata), VERSION, *PERIODS])
        raise InvalidInput(
            Problem.STRATA_INVALID, f"estimates can be grouped by: {groupings}", "by"
        )
    sources = tuple(
        source for source in table.sources if by in {q.id for q in source.document.strata}
    )
    return [Group({by: c.id}, sources, by, c.id) for c in strata[by].choices]


def _in_periods(table: Table, groups: Sequence[Group], request: Request) -> list[Group]:
    """Return the groups once per requested period, in order of time within each group."""
    if not request.is_dated:
        return list(groups)
    _require_days(table)
    if request.period is None:
        name, periods = DAYS, [str(request.span)]
    else:
        blocks = [
            (source, blocks_of(source.document, table.questions) or ()) for source in table.sources
        ]
        nonempty = {period for source, positions in blocks for period in source.periods(positions)}
        name, periods = request.period, sorted(nonempty)
    return [
        replace(group, label=(group.label or {}) | {name: period}, period=period)
        for group in groups
        for period in periods
    ]


def _require_days(table: Table) -> None:
    # Daily counts are stored per single block, and only for blocks whose totals are stored.
    for source in table.sources:
        blocks = blocks_of(source.document, table.questions)
        if blocks is not None and (
            len(blocks) > 1 or not Layout.of(source.document).covers(blocks)
        ):
            detail = (
                f"daily joint counts of {table.id} are not stored: use all days or other targets"
            )
            raise InvalidInput(Problem.UNSUPPORTED, detail, "targets")


def _question(table: Table, group: Group, request: Request) -> dict[str, Any]:
    label, sources = group.label, group.sources
    keys_by_source = [(source, _keys(source, table, group)) for source in sources]
    used = [(source, keys) for source, keys in keys_by_source if keys]
    n = sum(source.cells[key].n for source, keys in used for key in keys)
    received = sum(_received(source, keys) for source, keys in keys_by_source)
    # The largest minimum, because respondents of each version were promised theirs.
    least = max(source.document.min_reports for source in sources)
    digests = [source.document.digest for source, _ in used]
    head = {
        "id": table.id,
        "block": _block_ids(table),
        "text": table.text,
        "by": label,
        "n": n,
        "received": received,
        "needed": least,
        "documents": digests,
    }
    # The rows are left out, because even their number would depend on reports below the minimum.
    if not used or n < least:
        return head | {"status": "insufficient", "rows": [], "covariance": None, **NO_PRODUCTS}
    by = "" if label is None else " ".join(f"{name}={value}" for name, value in label.items())
    parts = [_part(source, keys, table) for source, keys in used]
    return head | {"status": "ok"} | table_json(table, parts, request, digests, by)


def _keys(source: Received, table: Table, group: Group) -> list[Key]:
    blocks = blocks_of(source.document, table.questions)
    return [] if blocks is None else source.within(blocks, group.by, group.choice, group.period)


def _part(source: Received, keys: Sequence[Key], table: Table) -> Part:
    tally: dict[tuple[int, ...], int] = {}
    n_reports = 0
    for key in keys:
        n_reports += source.cells[key].n
        for symbols, n in source.cells[key].tally.items():
            tally[symbols] = tally.get(symbols, 0) + n
    positions = blocks_of(source.document, table.questions) or ()
    counted = counted_blocks(source.document)
    blocks = tuple(counted[i] for i in positions)
    cells = cell_weights(blocks, table)
    targets = cells if table.shares else rational.product(part_targets(table), cells)
    return Part(blocks, n_reports, tally, targets, source.document.strata, _received(source, keys))


def _received(source: Received, keys: Sequence[Key]) -> int:
    """Return the number of all reports in these strata and periods, whichever blocks they show."""
    # Every report is counted in the document's first block.
    return sum(source.cells[(0,), stratum, period].n for _, stratum, period in keys)


def _is_read(table: Table) -> bool:
    """Return True if some document stores no counts of the table, so that its reports are read."""
    layouts = [
        (Layout.of(source.document), blocks_of(source.document, table.questions))
        for source in table.sources
    ]
    return any(blocks is not None and not layout.covers(blocks) for layout, blocks in layouts)


def _block_ids(table: Table) -> str:
    document = table.sources[-1].document
    blocks = counted_blocks(document)
    ids = (blocks[i].id for i in blocks_of(document, table.questions) or ())
    return " × ".join(dict.fromkeys(ids))
