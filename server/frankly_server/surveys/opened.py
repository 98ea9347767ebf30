# SPDX-License-Identifier: Apache-2.0
"""Published surveys that an API key gives access to, as shown to analysts."""

from collections.abc import Callable
from typing import Annotated

from frankly_protocol.documents import SurveyDocument
from pydantic import Field

from frankly_server.requests.fields import ClosedModel, OneOf
from frankly_server.store import Database
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys.survey_state import shown_state
from frankly_server.surveys.surveys import Surveys


class ListedSurvey(ClosedModel):
    """A published survey that the key opens; `versions` is the number of its versions."""

    survey: str
    name: str = Field(description="Unique among the surveys of the key's organisation.")
    title: dict[str, str]
    languages: list[str]
    state: Annotated[str, OneOf("states", ("scheduled", "live", "paused", "closed", "archived"))]
    versions: int
    n: Annotated[int, Field(ge=0)] = Field(description="Number of released reports.")
    questions: list[str] = Field(description="Ids of the newest version's questions.")
    strata: list[str] = Field(description="Ids of its public questions.")


def opened_surveys(
    surveys: Surveys, database: Database, opens: Callable[[str, str], bool]
) -> list[ListedSurvey]:
    """Return the published surveys with opens(survey id, organisation), sorted by name."""
    opened = []
    summaries = surveys.list()
    with database.reading("list opened surveys") as tx:
        states = tx.survey_states.every()
        for summary in summaries:
            state = states.get(summary.survey_id, SurveyStateRow())
            latest = tx.documents.latest(summary.survey_id)
            if latest is None or not opens(summary.survey_id, state.organisation):
                continue
            document = SurveyDocument.from_envelope(latest.envelope)
            opened.append(
                ListedSurvey(
                    survey=summary.survey_id,
                    # A key gives access to one organisation's surveys, among which this part of the
                    # name is unique.
                    name=summary.name.partition("@")[0],
                    title=dict(document.title),
                    languages=list(document.languages),
                    state=shown_state(summary, state),
                    versions=latest.version,
                    n=tx.batches.number(summary.survey_id),
                    questions=[q.id for block in document.blocks for q in block.questions],
                    strata=[question.id for question in document.strata],
                )
            )
    return opened
