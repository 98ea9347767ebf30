# SPDX-License-Identifier: Apache-2.0
"""Relative completion of the questions of a form, from released reports only (spec 8.12)."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frankly_design.estimate.completion import Shown, completion, draws_one, kept
from frankly_design.kinds.parts import counted_blocks, part_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.tables import blocks_of

Shares = Callable[[Received, float], Sequence[Mapping[str, Any]]]
"""Shares of every question of one document at a level, as in a response."""


def completions_json(
    documents: Sequence[Received], level: float, shares: Shares
) -> list[dict[str, Any]]:
    """Return the completion of every form of the documents, oldest first."""
    return [
        _completion_json(source, place, form, level, shares)
        for source in documents
        for place, form in _forms(source.document)
    ]


def _forms(document: SurveyDocument) -> list[tuple[int, AgreementMechanism]]:
    """Return the forms of a document with their positions among the counted blocks."""
    forms = enumerate(block.form for block in counted_blocks(document))
    return [(place, form) for place, form in forms if form is not None]


def _completion_json(
    source: Received, place: int, form: AgreementMechanism, level: float, shares: Shares
) -> dict[str, Any]:
    document, block = source.document, counted_blocks(source.document)[place]
    n = sum(cell.n for key, cell in source.cells.items() if _is_about(key, place))
    head = {
        "document": document.digest,
        "version": document.version,
        **({} if document.arm is None else {"arm": document.arm}),
        "block": block.id,
        "ask": "drawn" if block.asks_drawn else "all",
        "n": n,
        "needed": document.min_reports,
    }
    if n < document.min_reports:
        untested: dict[str, Any] = {"statistic": None, "df": None, "p": None, "flags": []}
        return head | {"test": untested, "parts": [], "bounds": []}
    shown = _shown(source, place, form)
    found = completion(form, shown, n, level)
    return head | {
        "test": {"statistic": found.statistic, "df": found.freedom, "p": found.p, "flags": []},
        "parts": [
            {
                "questions": [block.questions[i].id for i in members],
                "n": part.n,
                "chance": part.chance,
                "relative": part.relative,
                "low": part.ends[0],
                "high": part.ends[1],
            }
            for members, part in zip(form.parts, found.parts, strict=True)
        ],
        "bounds": _bounds(source, place, form, shown, level, shares),
    }


def _shown(source: Received, place: int, form: AgreementMechanism) -> Shown:
    """Return, for each part of the form at `place`, the reports of each component that show it."""
    blocks, shown = counted_blocks(source.document), []
    # The parts of a form follow it among the counted blocks.
    for part in range(place + 1, place + 1 + len(form.parts)):
        table, counts = part_of(blocks[part].mechanism), Counter[int]()
        assert table is not None  # noqa: S101 - see `counted_blocks`
        for key, cell in source.cells.items():
            if _is_about(key, part):
                for (column,), number in cell.tally.items():
                    counts[table.shown(column)[0]] += number
        shown.append(counts)
    return shown


def _is_about(key: tuple[tuple[int, ...], str, str], block: int) -> bool:
    blocks, _, period = key
    return (blocks, period) == ((block,), ALL_TIME)


def _bounds(
    source: Received,
    place: int,
    form: AgreementMechanism,
    shown: Shown,
    level: float,
    shares: Shares,
) -> list[dict[str, Any]]:
    """Return bounds of the shares among all who would have completed the best part.

    If the share p is among a proportion c of them, and nothing is known of the others, their share
    is between c·p and c·p + 1 − c. There are none if everything is asked, because then nobody knows
    the plan and gives up because of it; and none if plans have several parts, because whoever gives
    up at one of them is missing from the reports about the others too.
    """
    block = counted_blocks(source.document)[place]
    if not block.asks_drawn or not draws_one(form):
        return []
    # Each at half of the error, so that both hold at `level`; rounding may not make it certain.
    each = min((1 + level) / 2, math.nextafter(1.0, 0.0))
    of_parts = kept(form, shown, each)
    # A question can be in several parts, of which one is used for its estimate.
    places = {q.id: blocks_of(source.document, (q,)) or () for q in block.questions}
    kept_of = {name: of_parts[part - place - 1] for name, (part,) in places.items()}
    return [
        {
            "question": estimated["id"],
            "choice": row["choice"],
            "label": row["label"],
            "low": kept_of[estimated["id"]] * _share(row["low"]),
            "high": 1 - kept_of[estimated["id"]] * (1 - _share(row["high"])),
        }
        for estimated in shares(source, each)
        if estimated["id"] in kept_of
        for row in estimated["rows"]
        if row["low"] is not None
    ]


def _share(end: float) -> float:
    """Return an end of an interval, cut to a possible share."""
    return min(1.0, max(0.0, end))
