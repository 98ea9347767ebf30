# SPDX-License-Identifier: Apache-2.0
"""Counts of noisy symbols by stratum, with the mechanisms that made them, for analysts (spec 8.11).

This module reads no database and no clock: `counts_answer` depends only on the request, the
documents and their counts.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from frankly_design.kinds.parts import cell_questions, clear_blocks, counted_blocks
from frankly_protocol.blocks import Choice, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Blocks, Received
from frankly_server.analysis.counts_factors import factors_json, marginals_json
from frankly_server.analysis.counts_request import CountsQuery
from frankly_server.analysis.groups import sources_of
from frankly_server.analysis.part import Part
from frankly_server.analysis.periods import ALL_TIME, PERIODS
from frankly_server.analysis.tables import blocks_of, estimable_blocks
from frankly_server.store import Layout

MAX_STRATA: Final = 10_000
MAX_COUNTS: Final = 1_000_000
Group = tuple[str, ...]
"""Answers to the questions of `CountsQuery.by`, in the same order."""
Positions = Mapping[str, Sequence[Blocks]]
"""`Received.key` → positions of the blocks of each part."""


@dataclass(slots=True)
class _Grouped:
    """Number of reports of a group, and counts of their joint symbols."""

    n: int = 0
    tally: Counter[tuple[int, ...]] = field(default_factory=Counter)


def requested_blocks(documents: Sequence[Received], query: CountsQuery) -> Positions:
    """Return the positions of the blocks of each requested part.

    Raises InvalidInput: strata_invalid for an unknown public question, targets_invalid for an
    unknown question, unsupported for a table whose counts are not stored.
    """
    # A public question that divides no cells, because an arm asks it in the clear, has no strata.
    public_ids = {q.id for source in documents for q in cell_questions(source.document)}
    if not set(query.groups) <= public_ids:
        raise InvalidInput(
            Problem.STRATA_INVALID,
            f"counts can be grouped by: {', '.join([*sorted(public_ids), *PERIODS])}",
            "by",
        )
    if query.questions is None:
        return {
            source.key: [
                (i,)
                for i, _ in estimable_blocks(source.document)
                if Layout.of(source.document).covers((i,))
            ]
            for source in documents
        }
    positions = {}
    for source in documents:
        blocks_asked = (*source.document.blocks, *clear_blocks(source.document))
        questions = {q.id: q for block in blocks_asked for q in block.questions}
        # Older versions may lack a question or have other choices for it.
        if set(query.questions) <= questions.keys():
            blocks = blocks_of(source.document, [questions[name] for name in query.questions])
            if blocks is not None:
                positions[source.key] = [blocks]
    if not positions:
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            "no version of the survey has all these questions: see its document",
            "questions",
        )
    for source in documents:
        for blocks in positions.get(source.key, ()):
            _require_counted(source.document, blocks, query)
    return positions


def counts_answer(
    survey: str, documents: Sequence[Received], positions: Positions, query: CountsQuery
) -> dict[str, Any]:
    """Return the counts of a survey's documents (oldest first) as JSON values.

    Raises InvalidInput(unsupported) for more strata or counts than a response holds.
    """
    newest = documents[-1].document
    remaining, parts = MAX_COUNTS, []
    by_token = {sources_of(source.document) for source in documents} & {*query.groups}
    for source in documents:
        # Where the source was an answer like any other, anybody could name any, as in estimates.
        is_sure = by_token <= {sources_of(source.document)}
        grouped = _by_group(source, positions.get(source.key, ()), query, is_sure=is_sure)
        for blocks, groups in grouped.items():
            body, size = _part_json(source, blocks, groups, query, remaining)
            # All parts share one limit, because one response holds them all.
            remaining -= size
            parts.append(body)
    strata: dict[str, Question] = {}
    # Newest first: each public question keeps its latest wording, even if it was removed later.
    for source in reversed(documents):
        for question in cell_questions(source.document):
            strata.setdefault(question.id, question)
    return {
        "survey": survey,
        "title": dict(newest.title),
        "languages": list(newest.languages),
        "by": list(query.by),
        "questions": None if query.questions is None else list(query.questions),
        "since": query.span.since,
        "until": query.span.until,
        "n": sum(source.n for source in documents),
        "strata_questions": list(map(_question_json, strata.values())),
        "parts": parts,
        "left_out": [] if query.questions else _uncounted(documents),
    }


def _require_counted(document: SurveyDocument, blocks: Blocks, query: CountsQuery) -> None:
    """Raise InvalidInput(unsupported) unless releases count these blocks, by day if requested."""
    if not Layout.of(document).covers(blocks):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "releases do not count these questions together: request fewer, or estimates with "
            "these questions as targets",
            "questions",
        )
    if query.is_dated and len(blocks) > 1:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "questions of several blocks are not counted by day: leave out days and periods",
            "questions",
        )


def _uncounted(documents: Sequence[Received]) -> list[str]:
    """Return the ids of blocks without stored counts, whose estimates read the reports."""
    return sorted(
        {
            block.id
            for source in documents
            for i, block in estimable_blocks(source.document)
            if not Layout.of(source.document).covers((i,))
        }
    )


def _by_group(
    source: Received, positions: Sequence[Blocks], query: CountsQuery, *, is_sure: bool
) -> Mapping[Blocks, Mapping[Group | None, _Grouped]]:
    """Return the counts of each part by group; None is the key of reports without an answer.

    is_sure : False if an answer that groups are made of was not held by the tokens of this version;
    no report then has a group.
    """
    grouped: dict[Blocks, dict[Group | None, _Grouped]] = {
        blocks: defaultdict(_Grouped) for blocks in positions
    }
    # A cell exists for all time and, if days are requested, for each period or the span.
    is_wanted: Callable[[str], bool] = (
        (lambda period: period != ALL_TIME) if query.is_dated else (lambda period: not period)
    )
    # A stratum occurs in many cells, so its JSON is parsed only once.
    answers_of = lru_cache(maxsize=None)(lambda stratum: _answers(stratum, query.groups))
    for (blocks, stratum, period), counted in source.cells.items():
        groups = grouped.get(blocks)
        if groups is None or not is_wanted(period):
            continue
        answers = answers_of(stratum) if is_sure else None
        if answers is not None and query.period is not None:
            answers = (*answers, period)
        group = groups[answers]
        group.n += counted.n
        for symbols, n in counted.tally.items():
            group.tally[symbols] += n
    return grouped


def _answers(stratum: str, questions: Group) -> Group | None:
    if not questions:
        return ()
    answers: dict[str, str] = json.loads(stratum) if stratum else {}
    chosen = tuple(answers[name] for name in questions if name in answers)
    return chosen if len(chosen) == len(questions) else None


def _part_json(
    source: Received,
    blocks: Blocks,
    groups: Mapping[Group | None, _Grouped],
    query: CountsQuery,
    remaining: int,
) -> tuple[dict[str, Any], int]:
    """Return a part as JSON values and the number of its counts, at most `remaining`."""
    document = source.document
    counted = counted_blocks(document)
    part = Part(tuple(counted[i] for i in blocks), 0, {}, ())
    published = {
        group: entry
        for group, entry in groups.items()
        if group is not None and entry.n >= document.min_reports
    }
    # Small strata are withheld, like their estimates; their sum lets readers check the total.
    withheld = [e for g, e in groups.items() if g is not None and g not in published and e.n]
    # Reports of versions without the public question belong to no stratum.
    lost = groups[None].n if None in groups else 0
    n = sum(entry.n for entry in groups.values())
    rest = _rest([entry for group, entry in groups.items() if group not in published])
    # Without `by` all reports are one stratum, so it is withheld under the same condition.
    is_shown = rest.n > 0 and n >= document.min_reports
    size = (len(published) + is_shown) * part.kind.size
    if len(published) > MAX_STRATA or size > remaining:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"these are more than {MAX_STRATA} strata of a part, or {MAX_COUNTS} counts: name fewer "
            "public questions (by) or fewer questions",
            "by",
        )
    order = _order(document, query.groups)
    body: dict[str, Any] = {
        "document": document.digest,
        "version": document.version,
        **({} if document.arm is None else {"arm": document.arm}),
        "release": source.release,
        "block": " × ".join(dict.fromkeys(block.id for block in part.blocks)),
        "questions": [_question_json(q) for block in part.blocks for q in block.questions],
        "kind": "sets" if part.kind.is_set else "table",
        "n": n,
        "minimum": document.min_reports,
        "factors": factors_json(part.kind, part.design_prior),
        "strata": [
            {"by": dict(zip(query.by, group, strict=True)), "n": entry.n}
            | _counts_json(part, entry)
            for group, entry in sorted(published.items(), key=lambda item: order(item[0]))
        ],
        "withheld": {"strata": len(withheld), "reports": sum(entry.n for entry in withheld)},
        "without_stratum": lost,
        "rest": {"n": rest.n} | _counts_json(part, rest) if is_shown else None,
    }
    return body | marginals_json(part, query.questions), size


def _rest(entries: Iterable[_Grouped]) -> _Grouped:
    """Return the counts of all reports in no returned stratum: the total less the strata."""
    rest = _Grouped()
    for entry in entries:
        rest.n += entry.n
        rest.tally.update(entry.tally)
    return rest


def _order(document: SurveyDocument, names: Group) -> Callable[[Group], Any]:
    """Return a sort key for groups: by the order of the choices, periods by time."""
    questions = {question.id: question for question in document.strata}
    places = [
        {c.id: i for i, c in enumerate(questions[n].choices)} if n in questions else {}
        for n in names
    ]

    def key(group: Group) -> Any:
        # Not strict: the last entry can be a period, and periods sort by time as text.
        answers = zip(places, group, strict=False)
        # A choice can be unknown only if the stored stratum belongs to another document.
        return [place.get(choice, len(place)) for place, choice in answers], group

    return key


def _counts_json(part: Part, entry: _Grouped) -> dict[str, Any]:
    kind = part.kind
    if not kind.is_set:
        counts = [0] * kind.size
        for key, n in entry.tally.items():
            counts[kind.index(key)] += n
        return {"counts": counts}
    counted: Any = kind.counts(entry.n, entry.tally)
    masks = None if counted.symbols is None else [list(pair) for pair in counted.symbols if pair[1]]
    return {"pairs": list(map(list, counted.pairs)), "masks": masks}


def _question_json(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "text": dict(question.text),
        "choices": list(map(_choice_json, question.choices)),
    }


def _choice_json(choice: Choice) -> dict[str, Any]:
    optional = {
        "score": None if choice.score is None else float(choice.score),
        "role": choice.role,
        "from": choice.low,
    }
    return {"id": choice.id, "label": dict(choice.label)} | {
        name: value for name, value in optional.items() if value is not None
    }
