# SPDX-License-Identifier: Apache-2.0
"""Surveys that an API key gives access to, as they are listed."""

from collections.abc import Callable
from typing import Annotated

from frankly_protocol.documents import SurveyDocument
from pydantic import Field

from frankly_server.requests.fields import ClosedModel, OneOf
from frankly_server.store import Database
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys.definition import SurveyDefinition
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
        found = [
            (_name(row.name), row.id, state)
            for row in tx.surveys.all()
            for state in [states.get(row.id, SurveyStateRow())]
            if opens(row.id, state.organisation)
            and _name(row.name) > after
            and (drafts or tx.documents.latest(row.id) is not None)
        ]
    # By code points: the orders of databases differ.
    found.sort(key=lambda one: one[0])
    page = found if limit is None else found[:limit]
    rows = [listed(surveys, database, surveys.summary(one), state) for _, one, state in page]
    return rows, page[-1][0] if len(page) < len(found) else None


def listed(
    surveys: Surveys, database: Database, summary: Summary, state: SurveyStateRow
) -> ListedSurvey:
    """Return a survey as it is listed: by its newest version, or by its draft before the first."""
    with database.reading("list survey") as tx:
        latest, n = (tx.documents.latest(summary.survey_id), tx.batches.number(summary.survey_id))
    if latest is None:
        shown: SurveyDefinition | SurveyDocument = surveys.draft(summary.survey_id)
        form = shown.form.items if isinstance(shown, SurveyDefinition) and shown.form else ()
        questions = [question.id for question in form]
    else:
        shown, questions = SurveyDocument.from_envelope(latest.envelope), []
    return ListedSurvey(
        survey=summary.survey_id,
        name=_name(summary.name),
        title=dict(shown.title),
        languages=list(shown.languages),
        state=shown_state(summary, state),
        versions=summary.version,
        n=n,
        questions=[one.id for block in shown.blocks for one in block.questions] + questions,
        strata=[question.id for question in shown.strata],
    )


def _name(full_name: str) -> str:
    # A key gives access to one organisation's surveys, among which this part of the name is unique.
    return full_name.partition("@")[0]
