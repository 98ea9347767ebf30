# SPDX-License-Identifier: Apache-2.0
"""A survey of the caller's organisation, for the pages and the management API."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from json import loads

from frankly_server.services import Services
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys import Summary
from frankly_server.surveys.definition import FORM_ID, SurveyDefinition
from frankly_server.surveys.editing import Draft
from frankly_server.surveys.survey_state import shown_state
from frankly_server.web import reading
from frankly_server.web.security import PATH


@dataclass(frozen=True)
class OpenedSurvey:
    """A survey of the caller's organisation. read : reads its draft, which can take a second."""

    summary: Summary
    state_row: SurveyStateRow
    read: Callable[[], SurveyDefinition]

    @cached_property
    def definition(self) -> SurveyDefinition:
        """The draft."""
        return self.read()

    @property
    def id(self) -> str:
        """The survey's id."""
        return self.summary.survey_id

    @property
    def name(self) -> str:
        """The name within the organisation."""
        return self.summary.name.partition("@")[0]

    @property
    def state(self) -> str:
        """The state as one word, for display."""
        return shown_state(self.summary, self.state_row)

    @property
    def title(self) -> str:
        """The title in the first language."""
        return self.definition.title[self.definition.languages[0]]

    @property
    def draft(self) -> Draft:
        """The definition as plain values, for editing."""
        return dict(loads(self.definition.to_json()))

    @property
    def parts(self) -> list[tuple[str, str]]:
        """What is protected by itself, with a name: each block, then the questions of the form together."""
        language, form = self.definition.languages[0], self.definition.form
        blocks = [(one.id, one.questions[0].text[language]) for one in self.definition.blocks]
        return blocks if form is None else [*blocks, (FORM_ID, "The questions protected together")]

    def path(self, tab: str = "") -> str:
        """Return the path of one of the survey's pages."""
        return f"{PATH}/surveys/{self.id}" + (f"/{tab}" if tab else "")


def opened(services: Services, survey_id: str, organisation: str) -> OpenedSurvey:
    """Return a survey of an organisation. Raises survey_unknown for any other survey."""
    checked_id = reading.survey_id(survey_id)
    state_row = services.lifecycle.require(checked_id, organisation)
    return _opened(services, services.surveys.summary(checked_id), state_row)


def every_survey(services: Services, organisation: str) -> list[OpenedSurvey]:
    """Return every survey of an organisation, sorted by name."""
    state_rows = services.lifecycle.every()
    return [
        _opened(services, row, state_row)
        for row in services.surveys.list()
        # A survey without a row in survey_states belongs to the main organisation and is open.
        for state_row in [state_rows.get(row.survey_id, SurveyStateRow())]
        if state_row.organisation == organisation
    ]


def _opened(services: Services, summary: Summary, state_row: SurveyStateRow) -> OpenedSurvey:
    return OpenedSurvey(summary, state_row, partial(services.surveys.draft, summary.survey_id))
