# SPDX-License-Identifier: Apache-2.0
"""Groups of reports with separate estimates: versions, public answers and periods."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from frankly_analyst.request import COMPARISONS
from frankly_design.kinds.parts import cell_questions
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.periods import ALL_TIME, DAYS, PERIODS
from frankly_server.analysis.request import VERSION, Request
from frankly_server.analysis.tables import Table, blocks_of
from frankly_server.store import Layout


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

    @property
    def name(self) -> str:
        """The label as text, such as ``region=north week=2026-W18``; "" for all reports."""
        return " ".join(f"{name}={value}" for name, value in (self.label or {}).items())


def groups_of(table: Table, request: Request) -> list[Group]:
    """Return the groups of a table's estimates, in order.

    Raises InvalidInput: strata_invalid (unknown `by`), unsupported (daily counts are not stored).
    """
    return _in_periods(table, groups_of_all_days(table, request), request)


def groups_of_all_days(table: Table, request: Request) -> list[Group]:
    """Return the groups of a table's estimates, for all days. Raises InvalidInput(strata_invalid)."""
    by = request.group
    if by is None:
        return [Group(None, table.sources)]
    if by == VERSION:
        versions = dict.fromkeys(source.document.version for source in table.sources)
        return [
            Group(
                {VERSION: str(version)},
                tuple(one for one in table.sources if one.document.version == version),
            )
            for version in versions
        ]
    # Strata of all versions, because a public question may have been added or removed.
    known: dict[str, dict[str, None]] = {}
    for source in table.sources:
        for name, choices in groupings(source.document).items():
            # Those of the newest version come last and have the last word; arms are collected.
            ids = dict.fromkeys(choices)
            known[name] = (known.get(name, {}) | ids) if _is_arm(source, name) else ids
    if by not in known:
        raise InvalidInput(
            Problem.STRATA_INVALID,
            f"estimates can be grouped by: {', '.join([*sorted(known), VERSION, *PERIODS])}",
            "by",
        )
    sources = tuple(source for source in table.sources if by in groupings(source.document))
    if any(sources_of(source.document) == by for source in sources):
        # Where the source was an answer like any other, anybody could name any.
        sources = tuple(source for source in sources if sources_of(source.document) == by)
    if any(_is_arm(source, by) for source in sources):
        sources = _alike(sources)
        known[by] = {name: None for one in sources for name in groupings(one.document)[by]}
    return [
        Group(
            {by: choice},
            tuple(
                one
                for one in sources
                if not _is_arm(one, by) or choice in groupings(one.document)[by]
            ),
            by,
            choice,
        )
        for choice in known[by]
    ]


def groupings(document: SurveyDocument) -> dict[str, tuple[str, ...]]:
    """Return the values by which a document's reports can be grouped: public answers, and the arm."""
    arms, arm = document.arms, document.arm
    return {q.id: tuple(choice.id for choice in q.choices) for q in cell_questions(document)} | (
        {} if arms is None or arm is None else {arms.id: (arm,)}
    )


def sources_of(document: SurveyDocument) -> str | None:
    """Return the public question whose choices are sources with tokens of their own (spec 3.11), or None."""
    return None if document.token is None else document.token.question


def _alike(sources: Sequence[Received]) -> tuple[Received, ...]:
    """Return the arms of the newest version that has them, and of those with the same arms for the table.

    Versions are answered by different people, so arms are compared only if all of them have the same
    mixture of versions: the same chances, and the table's questions in the same arms.
    """

    def design(source: Received) -> tuple[Any, ...]:
        arms, digest = source.document.arms, source.document.digest
        asked = {one.document.arm for one in sources if one.document.digest == digest}
        every = () if arms is None else arms.arms
        return tuple((arm.id, arm.chance) for arm in every), frozenset(asked)

    newest = design(sources[-1])
    return tuple(source for source in sources if design(source) == newest)


def are_arms(table: Table, by: str | None) -> bool:
    """Return True if some groups by this name are arms, which devices draw."""
    return any(_is_arm(source, by) for source in table.sources)


def _is_arm(source: Received, name: str | None) -> bool:
    return source.document.arms is not None and source.document.arms.id == name


def _in_periods(table: Table, groups: Sequence[Group], request: Request) -> list[Group]:
    """Return each group once per requested period, in chronological order."""
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
    # Daily counts exist only for single blocks whose totals are stored.
    for source in table.sources:
        blocks = blocks_of(source.document, table.questions)
        if blocks is not None and (
            len(blocks) > 1 or not Layout.of(source.document).covers(blocks)
        ):
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"daily joint counts of {table.id} are not stored: use all days or other targets",
                "targets",
            )


def scores_of_choices(table: Table, by: str | None) -> dict[str, float]:
    """Return the score, or smallest number, of each choice of a public question that has one."""
    strata = {q.id: q for source in table.sources for q in source.document.strata}
    if by not in strata:
        return {}
    numbers = {c.id: c.low if c.score is None else c.score for c in strata[by].choices}
    return {choice: float(number) for choice, number in numbers.items() if number is not None}


def is_within_periods(request: Request, groups: Sequence[Group]) -> bool:
    """Return True if groups of one period are compared, False if periods of one group are.

    Raises InvalidInput(strata_invalid) if `compare` names a group that does not exist.
    """
    names = set(request.contrast or ())
    if request.contrast is None and request.compare not in (None, *COMPARISONS):
        names = {str(request.compare)}
    ids = {id_of(group, within_periods=True) for group in groups} - {""}
    periods = {group.period for group in groups if request.period is not None}
    if names and not (names <= ids or names <= periods):
        group_names = ", ".join([*sorted(ids), *sorted(periods)][:20])
        raise InvalidInput(
            Problem.STRATA_INVALID,
            f"compare names no group of these estimates; the groups are {group_names}",
            "compare",
        )
    return request.period is None or bool(names and names <= ids)


def id_of(group: Group, *, within_periods: bool) -> str:
    """Return the period, version or answer that identifies a group in a comparison."""
    if not within_periods:
        return group.period
    return (group.label or {}).get(VERSION) or group.choice or ""
