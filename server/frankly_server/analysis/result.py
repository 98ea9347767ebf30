# SPDX-License-Identifier: Apache-2.0
"""Result of an estimates request, computed from counts of released batches.

This module reads no database and no clock: `answer` depends only on the request, the documents and
their counts. The key `inputs` of the result contains the request, the newest release of each
document and the version of the code, from which `Analysis.replay` computes the result again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from frankly_analyst.request import SHARES
from frankly_design.kinds.parts import counted_blocks
from frankly_design.numeric import rational
from frankly_protocol import __version__
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.anchors import pairs_with_anchors
from frankly_server.analysis.arms import arms_json
from frankly_server.analysis.comparing import comparisons, require_margin
from frankly_server.analysis.completion import Shares, completions_json
from frankly_server.analysis.contrasts import Sample
from frankly_server.analysis.counted_document import Blocks, CellCounts, Key, Received
from frankly_server.analysis.groups import Group, groups_of
from frankly_server.analysis.part import Part
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.pooling import BETA, pool
from frankly_server.analysis.populations import populations, require_groups
from frankly_server.analysis.random_answers import Results, correct, require_stated, results_of
from frankly_server.analysis.request import Request
from frankly_server.analysis.rows import (
    add_denied,
    part_targets,
    status_of,
    table_json,
    target_places,
    without_rows,
)
from frankly_server.analysis.sources import sources_json
from frankly_server.analysis.tables import Table, blocks_of, cell_weights, tables
from frankly_server.store import Layout

NOTES = ("Shares are those of the people who reported; nothing corrects for those who did not.",)
READ = (
    "A table here has more combinations of symbols than releases count, so every report was read; "
    "this takes longer the more reports there are."
)

_MAX_TABLES = 1000
"""Largest number of tables in one request; even this many take seconds."""


def estimates_json(survey: str, documents: Sequence[Received], request: Request) -> dict[str, Any]:
    """Return the estimates of a survey's documents (oldest first) as JSON values.

    Raises InvalidInput: targets_invalid, strata_invalid (an unknown `by`), unsupported.
    """
    require_stated(documents, request)
    requested = tables(documents, request)
    require_margin(requested, request)
    by_table = [(table, groups_of(table, request)) for table in requested]
    of_population = require_groups(requested, request)
    groups = [(table, group) for table, of_table in by_table for group in of_table]
    # Checked before the estimates are computed, which could take long.
    if len(groups) > _MAX_TABLES:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"these are more than {_MAX_TABLES} tables: use longer periods, fewer days (since, "
            "until) or questions",
            "by",
        )
    # There are no groups if the requested periods have no releases.
    results = [result for _, of_table in by_table for result in results_of(of_table, request)]
    answered = [
        _question(*pair, request, result) for pair, result in zip(groups, results, strict=True)
    ]
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
            | ({} if source.document.arm is None else {"arm": source.document.arm})
            for source in documents
        ],
        "arms": arms_json(documents),
        "sources": sources_json(documents, request),
        "questions": _questions(by_table, answered, request),
        "comparisons": comparisons(
            [(*pair, sample) for pair, (_, sample) in zip(groups, answered, strict=True)], request
        ),
        "completions": completions_json(documents, request.level, _shares_of(request))
        if request.completion
        else [],
        "beta": str(BETA),
        "notes": [*NOTES, *of_population, *([READ] if any(map(_is_read, requested)) else [])],
        "inputs": {
            "code": __version__,
            "request": request_json,
            # Arms of one document have its releases.
            "documents": list({one.document.digest: one.to_json() for one in documents}.values()),
        },
    }


def _questions(
    by_table: Sequence[tuple[Table, Sequence[Group]]],
    answered: Sequence[tuple[dict[str, Any], Sample | None]],
    request: Request,
) -> list[dict[str, Any]]:
    """Return the estimates of each table's groups, followed by those of the population they are of."""
    questions, left = [], iter(answered)
    for table, of_table in by_table:
        estimated = [(group, *next(left)) for group in of_table]
        questions += [question for _, question, _ in estimated]
        questions += populations(table, estimated, request)
    return questions


def _shares_of(request: Request) -> Shares:
    """Return the function that estimates the shares of one document by the request's method."""

    def shares(source: Received, level: float) -> list[dict[str, Any]]:
        of_one = replace(request, targets=SHARES, combinations=None, percent=None, level=level)
        found = tables([source], of_one)
        return [
            _question(table, group, of_one, Results(group))[0]
            for table in found
            for group in [Group(None, table.sources)]
        ]

    return shares


def needed(documents: Sequence[Received], request: Request) -> dict[str, set[Blocks]]:
    """Return the groups of two or more blocks that need joint counts, by `Received.key`."""
    joint_blocks: dict[str, set[Blocks]] = {}
    for table in tables(documents, request):
        for source in table.sources:
            blocks = blocks_of(source.document, table.questions)
            # Counts of single blocks are already available.
            if blocks is None:
                continue
            pairs = [blocks] if len(blocks) > 1 else pairs_with_anchors(source.document, blocks)
            if pairs:
                joint_blocks.setdefault(source.key, set()).update(pairs)
    return joint_blocks


def _question(
    table: Table, group: Group, request: Request, results: Results
) -> tuple[dict[str, Any], Sample | None]:
    """Return a group's estimates as JSON, and its sample for comparisons.

    The sample is None if the group has too few reports.
    """
    label, sources = group.label, group.sources
    keys_by_source = [(source, _keys(source, table, group)) for source in sources]
    used = [(source, keys) for source, keys in keys_by_source if keys]
    n = sum(source.cells[key].n for source, keys in used for key in keys)
    received = sum(_own(source, keys) for source, keys in keys_by_source)
    # The largest minimum of the versions whose reports are used, because each one promised its own
    # minimum to its respondents.
    least = max(
        source.document.min_reports for source in ([source for source, _ in used] or sources)
    )
    digests = list(dict.fromkeys(source.document.digest for source, _ in used))
    head = {
        "id": table.id,
        "block": _block_ids(table),
        "text": _text(table, group),
        "by": label,
        "n": n,
        "received": received,
        "needed": least,
        "documents": digests,
        **_arms_of([source for source, _ in used]),
    }
    # No rows at all: even their number would reveal something about fewer reports than the minimum.
    if not used or n < least:
        return head | without_rows(), None
    parts = [
        _part(
            source,
            [source.cells[key] for key in keys],
            table,
            _own(source, keys),
            source.others(group.by, group.choice, group.period),
        )
        for source, keys in used
    ]
    pooled = pool(parts, request)
    body = table_json(table, parts, pooled, request, digests, group.name)
    failed = [_failed(source, keys, table, group) for source, keys in used]
    with_failed = list(zip([source for source, _ in used], parts, failed, strict=True))
    places = target_places(table)
    figures, random_answers = correct(table, with_failed, pooled, results, places, request)
    # Quantiles follow the targets, and are not corrected.
    for row, figure in zip(body["rows"], figures, strict=False):
        row.update(figure, flags=[*row["flags"], *figure.get("flags", ())])
    add_denied(body["rows"], table, request.denial)
    body["random_answers"] = random_answers
    rows = {row["choice"]: row for row in body["rows"] if row["estimate"] is not None}
    spans = {t.id: place for t, place in zip(table.targets, places, strict=True)}
    keys_of_parts = [_slot(source, request) for source, _ in used]
    sample = Sample("", group.name, parts, keys_of_parts, pooled, rows, spans)
    return head | {"status": status_of(body["rows"])} | body, sample


def _arms_of(sources: Sequence[Received]) -> dict[str, list[str]]:
    """Return the arms whose reports are used; nothing without arms."""
    arms = list(dict.fromkeys(source.document.arm for source in sources if source.document.arm))
    return {"arms": arms} if arms else {}


def _text(table: Table, group: Group) -> dict[str, str]:
    """Return the table's text; of a group that is an arm, in the words of that arm."""
    if not group.sources:
        return table.text
    document = group.sources[-1].document
    if document.arms is None or group.by != document.arms.id:
        return table.text
    own = {**document.open_questions, **document.questions}
    return replace(table, questions=tuple(own[q.id] for q in table.questions)).text


def _keys(source: Received, table: Table, group: Group) -> list[Key]:
    blocks = blocks_of(source.document, table.questions)
    return [] if blocks is None else source.within(blocks, group.by, group.choice, group.period)


def _part(
    source: Received,
    cells: Sequence[CellCounts],
    table: Table,
    received: int | None = None,
    beside: int = 0,
) -> Part:
    tally: dict[tuple[int, ...], int] = {}
    for cell in cells:
        for symbols, n in cell.tally.items():
            tally[symbols] = tally.get(symbols, 0) + n
    n_reports = sum(cell.n for cell in cells)
    positions = blocks_of(source.document, table.questions) or ()
    counted = counted_blocks(source.document)
    blocks = tuple(counted[i] for i in positions)
    weights = cell_weights(blocks, table)
    targets = weights if table.shares else rational.product(part_targets(table), weights)
    return Part(blocks, n_reports, tally, targets, source.document.strata, received, beside)


def _failed(source: Received, keys: Sequence[Key], table: Table, group: Group) -> Part | None:
    """Return the part of the reports that are known to have failed the instructed item, or None."""
    cells = [source.cells[key] for key in keys if source.failed(key)]
    blocks = blocks_of(source.document, table.questions)
    # Batches of failures are over all strata and days, so they are not known of a group.
    if group.by is None and group.period == ALL_TIME and blocks is not None:
        cells += [source.failures[blocks]] if blocks in source.failures else []
    return _part(source, cells, table) if cells else None


def _slot(source: Received, request: Request) -> str:
    """Return what parts of several groups have in common if the groups do not differ.

    That is their document and, unless its arms are the groups, their arm.
    """
    arms = source.document.arms
    return source.document.digest if arms and request.group == arms.id else source.key


def _own(source: Received, keys: Sequence[Key]) -> int:
    """Return the number of reports in these strata and periods, whatever blocks they contain."""
    # Every report is counted in the first block of the document, or of its arm.
    return sum(source.cells[(0,), stratum, period].n for _, stratum, period in keys)


def _is_read(table: Table) -> bool:
    """Return True if a document has no stored counts for the table, so its reports must be read."""
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
