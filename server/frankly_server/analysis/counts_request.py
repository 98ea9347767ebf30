# SPDX-License-Identifier: Apache-2.0
"""Parser and checks for the counts request that `frankly_analyst.counts_request` declares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_analyst.counts_request import COUNTS_FIELDS
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.analysis.periods import ALL_DAYS, PERIODS, Span
from frankly_server.analysis.request import VERSION

MAX_BY: Final = 16
MAX_QUESTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class CountsQuery:
    """A checked counts request.

    groups : ids of public questions. period : one of `PERIODS`, or None. questions : ids of one
    table, or None for every part by itself. span : days of release to include.
    """

    groups: tuple[str, ...] = ()
    period: str | None = None
    questions: tuple[str, ...] | None = None
    span: Span = ALL_DAYS

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the answers that define a stratum; the period is last."""
        return self.groups if self.period is None else (*self.groups, self.period)

    @property
    def is_dated(self) -> bool:
        """True if the result depends on the days of release."""
        return self.period is not None or bool(self.span)

    @classmethod
    def from_json(cls, value: Any) -> "CountsQuery":
        """Read a request; null stands for a field's default.

        Raises InvalidInput: field_type, field_unknown, strata_invalid, targets_invalid.
        """
        record = REQUEST.record(value, None, frozenset(), frozenset(COUNTS_FIELDS))
        by = _names(record.get("by"), "by", MAX_BY, Problem.FIELD_TYPE)
        questions = _names(
            record.get("questions"), "questions", MAX_QUESTIONS, Problem.TARGETS_INVALID
        )
        if VERSION in by:
            raise InvalidInput(
                Problem.FIELD_TYPE,
                "leave this out: every part names its version, and versions are never added",
                "by",
            )
        periods = [name for name in by if name in PERIODS]
        if len(periods) > 1:
            raise InvalidInput(
                Problem.FIELD_TYPE, f"name at most one of {', '.join(PERIODS)}", "by"
            )
        return cls(
            tuple(name for name in by if name not in PERIODS),
            periods[0] if periods else None,
            tuple(questions) or None,
            Span.read(record.get("since"), record.get("until")),
        )


def _names(value: Any, field: str, most: int, problem: Problem) -> Sequence[str]:
    """Return the names in a list or in a comma-separated text; an empty result for None."""
    if value is None or value == "":
        return ()
    names = value.split(",") if isinstance(value, str) else value
    if (
        not isinstance(names, list | tuple)
        or not all(isinstance(name, str) and name for name in names)
        or len(set(names)) < len(names)
        or len(names) > most
    ):
        raise InvalidInput(problem, f"give up to {most} different ids, separated by commas", field)
    return names
