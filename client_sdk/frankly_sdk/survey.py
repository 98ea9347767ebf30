# SPDX-License-Identifier: Apache-2.0
"""The accepted survey of a client, for the app to show."""

from collections.abc import Mapping
from dataclasses import dataclass

from frankly_protocol.audit import ReportLevel
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.budget import Budget
from frankly_protocol.explanation.catalogue import Catalogue
from frankly_protocol.explanation.explain import Explanation, explain


@dataclass(frozen=True)
class Survey:
    """An accepted survey, for the app to show.

    signed_by : ids of the publisher's keys with a valid signature.
    level : the privacy level of its whole report, under the app's own cap on δ.
    """

    document: SurveyDocument
    signed_by: tuple[str, ...]
    level: ReportLevel

    @property
    def title(self) -> str:
        """The title in the document's first language."""
        return self.document.title[self.document.languages[0]]

    @property
    def questions(self) -> Mapping[str, tuple[str, ...]]:
        """Question id → choice ids, in the document's order."""
        return {
            name: tuple(c.id for c in question.choices)
            for name, question in self.document.questions.items()
        }

    def explain(
        self,
        language: str | None = None,
        budget: Budget | None = None,
        texts: Catalogue | None = None,
    ) -> Explanation:
        """Return an explanation of questions, report and privacy bounds; show it before asking.

        language : one of the document's, by default its first.
        budget : the result of `Client.budget`; the explanation then includes this respondent's
            remaining budget before and after.
        texts : an app's own texts, which replace those of the same part and name in
            frankly_protocol/explanation/texts/.
        """
        return explain(self.document, self.level, self.signed_by, language, budget, texts)
