# SPDX-License-Identifier: Apache-2.0
"""Surveys to which a key gives access, to iterate over, print or look up by name or title."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Self

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.rows import localised


@dataclass(frozen=True, slots=True)
class Survey:
    """A published survey.

    name : unique among those of the key's organisation. titles : the title by language.
    state : scheduled, live, paused, closed or archived. versions : number of published versions.
    n : released reports. questions, strata : ids of the newest version's questions, and of its
    public ones.
    """

    id: str
    name: str
    title: str
    state: str
    versions: int
    n: int
    questions: tuple[str, ...]
    strata: tuple[str, ...]
    titles: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_json(cls, value: Mapping[str, Any], language: str | None = None) -> Self:
        """Read a survey of the server's response."""
        return cls(
            value["survey"],
            value["name"],
            localised(value["title"], language, value["languages"]),
            value["state"],
            value["versions"],
            value["n"],
            tuple(value["questions"]),
            tuple(value["strata"]),
            value["title"],
        )


@dataclass(frozen=True, slots=True)
class Surveys:
    """The published surveys to which a key gives access, by name."""

    rows: tuple[Survey, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any], language: str | None = None) -> Self:
        """Read a response of the server. Raises KeyError, TypeError or AttributeError if malformed."""
        return cls(tuple(Survey.from_json(value, language) for value in body["surveys"]))

    def __iter__(self) -> Iterator[Survey]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def find(self, survey: str) -> Survey:
        """Return the survey with this id or name, or the only one with this title.

        Raises InvalidRequest(survey_unknown) if there is none, or if several have the title.
        """
        named = [row for row in self.rows if survey in (row.id, row.name)]
        # Names are checked before titles, because any admin may choose a title equal to another
        # survey's name.
        matches = named or [row for row in self.rows if survey in row.titles.values()]
        if len(matches) == 1:
            return matches[0]
        detail = (
            f"the key opens {', '.join(row.name for row in self.rows) or 'no survey'}"
            if not matches
            else f"{len(matches)} surveys have this title: name one of {', '.join(r.name for r in matches)}"
        )
        raise InvalidRequest(detail, code="survey_unknown", field="survey")

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [
            f"{row.name:<{width}}  {row.state:<9}  n {row.n:>9}  {row.title}" for row in self.rows
        ]
        return "\n".join(lines) or "no surveys"

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        titles = ("name", "title", "state", "versions", "n", "questions", "public questions")
        head = "".join(f"<th>{title}</th>" for title in titles)
        rows = "".join(
            f"<tr><td>{escape(row.name)}</td><td>{escape(row.title)}</td><td>{row.state}</td>"
            f"<td>{row.versions}</td><td>{row.n}</td><td>{escape(', '.join(row.questions))}</td>"
            f"<td>{escape(', '.join(row.strata))}</td></tr>"
            for row in self.rows
        )
        return f"<table><tr>{head}</tr>{rows}</table>"
