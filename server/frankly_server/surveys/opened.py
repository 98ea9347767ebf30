# SPDX-License-Identifier: Apache-2.0
"""Surveys that an API key gives access to, as they are listed."""

from collections.abc import Callable
from typing import Annotated, Any

from frankly_design.requests.fields import ClosedModel, OneOf
from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from pydantic import Field

from frankly_server.store import Database
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys.survey_state import shown_state
from frankly_server.surveys.surveys import Summary, Surveys


class ListedSurvey(ClosedModel):
    """A survey that the key opens; `versions` is the number of its published versions."""

    survey: str
    name: str = Field(description="Unique among the surveys of the key's organisation.")
    title: dict[str, str] = Field(
        description="Of the newest version; before the first, of the draft."
    )
    languages: list[str]
    state: Annotated[
        str, OneOf("states", ("draft", "scheduled", "live", "paused", "closed", "archived"))
    ]
    versions: int
    n: Annotated[int, Field(ge=0)] = Field(description="Number of released reports.")
    questions: list[str] = Field(
        description="Ids of the questions of the newest version; before the first, of the draft."
    )
    strata: list[str] = Field(description="Ids of its public questions.")


def opened_surveys(
    surveys: Surveys,
    database: Database,
    opens: Callable[[str, str], bool],
    *,
    drafts: bool = False,
    after: str = "",
    limit: int | None = None,
) -> tuple[list[ListedSurvey], str | None]:
    """Return the surveys with opens(survey id, organisation), sorted by name, and the next `after`.

    drafts : True for those that have not been published, too. after : only later names. limit : at
    most so many, None for all; then the second result is the last name if there are more.
    """
    with database.reading("list opened surveys") as tx:
        states = tx.survey_states.every()
        published = None if drafts else tx.documents.published_surveys()
        # Only names: drafts and documents are read for one page.
        found = [
            (_name(name), survey, state)
            for survey, name in tx.surveys.names()
            for state in [states.get(survey, SurveyStateRow())]
            if opens(survey, state.organisation)
            and _name(name) > after
            and (published is None or survey in published)
        ]
    # By code points: the orders of databases differ.
    found.sort(key=lambda one: one[0])
    page = found if limit is None else found[:limit]
    rows = [listed(database, surveys.summary(one), state) for _, one, state in page]
    return rows, page[-1][0] if len(page) < len(found) else None


def listed(database: Database, summary: Summary, state: SurveyStateRow) -> ListedSurvey:
    """Return a survey as it is listed: by its newest version, or by its draft before the first.

    summary : one with the newest version, from `Surveys.summary`.
    """
    newest = summary.newest
    with database.reading("list survey") as tx:
        row = tx.surveys.get(summary.survey_id) if newest is None else None
        n = tx.batches.number(summary.survey_id)
    return ListedSurvey(
        survey=summary.survey_id,
        name=_name(summary.name),
        state=shown_state(summary, state),
        versions=summary.version,
        n=n,
        **(_of_draft(row.definition if row else "{}") if newest is None else _of_version(newest)),
    )


def _of_version(document: SurveyDocument) -> dict[str, Any]:
    return {
        "title": dict(document.title),
        "languages": list(document.languages),
        "questions": [one.id for block in document.blocks for one in block.questions],
        "strata": [question.id for question in document.strata],
    }


def _of_draft(text: str) -> dict[str, Any]:
    """Return the same of a draft. text : its canonical JSON, which takes a second to check again."""
    draft = canonical.loads(text.encode("utf-8"))
    of_blocks = [one["id"] for block in draft.get("blocks", ()) for one in block["questions"]]
    of_form = [
        f"{one['id']}-{box['id']}" if box else one["id"]
        for one in draft.get("form", {}).get("questions", ())
        for box in one.get("boxes") or [None]
    ]
    return {
        "title": draft["title"],
        "languages": draft["languages"],
        "questions": of_blocks + of_form,
        "strata": [one["id"] for one in draft.get("strata", ())],
    }


def _name(full_name: str) -> str:
    # A key gives access to one organisation's surveys, among which this part of the name is unique.
    return full_name.partition("@")[0]
