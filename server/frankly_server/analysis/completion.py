# SPDX-License-Identifier: Apache-2.0
"""Relative completion of the questions of a form, from released reports only (spec 8.12)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_server.analysis.counted_document import Blocks, Received
from frankly_server.analysis.periods import ALL_TIME
from frankly_server.analysis.tables import blocks_of
from frankly_server.estimate.completion import completion
from frankly_server.forms import counted_blocks

Shares = Callable[[Received, float], Sequence[Mapping[str, Any]]]
"""Shares of every question of one document at a level, as in a response."""


def completions_json(
    documents: Sequence[Received], level: float, shares: Shares
) -> list[dict[str, Any]]:
    """Return the completion of every form of the documents, oldest first.

    The interval of a share and the lower bound of a completion each hold at (1 + level) / 2, so a
    bound that combines them holds at `level`.
    """
    return [
        _completion_json(source, place, form, level, shares)
        for source in documents
        for place, form in _forms(source.document)
    ]


def _forms(document: SurveyDocument) -> list[tuple[int, AgreementMechanism]]:
    """Return the forms of a document with their positions among the counted blocks."""
    mechanisms = enumerate(block.mechanism for block in counted_blocks(document))
    return [(place, form) for place, form in mechanisms if isinstance(form, AgreementMechanism)]


def _completion_json(
    source: Received, place: int, form: AgreementMechanism, level: float, shares: Shares
) -> dict[str, Any]:
    document = source.document
    block = counted_blocks(document)[place]
    # The parts of a form follow it among the counted blocks.
    parts = range(place + 1, place + 1 + len(form.parts))
    n, *shown = (_n(source, i) for i in (place, *parts))
    head = {
        "document": document.digest,
        "version": document.version,
        "block": block.id,
        "ask": "drawn" if block.asks_drawn else "all",
        "n": n,
        "needed": document.min_reports,
    }
    if n < document.min_reports:
        return head | {
            "test": {"statistic": None, "df": None, "p": None, "flags": []},
            "parts": [],
            "bounds": [],
        }
    each = (1 + level) / 2
    found = completion(form, shown, n, level, each)
    kept: dict[Blocks, float] = {
        (i,): part.kept for i, part in zip(parts, found.parts, strict=True)
    }
    questions = {question.id: question for question in block.questions}
    return head | {
        "test": {"statistic": found.statistic, "df": found.freedom, "p": found.p, "flags": []},
        "parts": [
            {
                "questions": [block.questions[i].id for i in form.parts[k]],
                "n": shown[k],
                "chance": part.chance,
                "relative": part.relative,
                "low": part.ends[0],
                "high": part.ends[1],
                "kept": part.kept,
            }
            for k, part in enumerate(found.parts)
        ],
        # If everything is asked, nobody knows the plan, and cannot give up because of it.
        "bounds": [
            bound
            for estimated in (shares(source, each) if block.asks_drawn else ())
            if estimated["id"] in questions
            # A question can be in several parts, of which one is used for its estimate.
            for bound in _bounds(
                estimated, kept[blocks_of(document, [questions[estimated["id"]]]) or ()]
            )
        ],
    }


def _n(source: Received, place: int) -> int:
    return sum(
        cell.n
        for (blocks, _, period), cell in source.cells.items()
        if (blocks, period) == ((place,), ALL_TIME)
    )


def _bounds(estimated: Mapping[str, Any], kept: float) -> list[dict[str, Any]]:
    """Return bounds of a question's shares among all who would have completed the best part.

    If the share p is among a proportion c of them, and nothing is known of the others, their share
    is between c·p and c·p + 1 − c; the wider the smaller c is.
    """
    return [
        {
            "question": estimated["id"],
            "choice": row["choice"],
            "label": row["label"],
            "low": kept * max(0.0, row["low"]),
            "high": 1 - kept * (1 - min(1.0, row["high"])),
        }
        for row in estimated["rows"]
        if row["low"] is not None
    ]
