# SPDX-License-Identifier: Apache-2.0
"""The accepted survey of a client, for the app to show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice

from frankly_protocol.audit import ReportLevel
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.budget import Budget
from frankly_protocol.explanation.catalogue import Catalogue
from frankly_protocol.explanation.explain import Explanation, explain

_SHOWN = 4
"""Number of questions that the repr of a survey names."""


@dataclass(frozen=True, repr=False)
class Survey:
    """An accepted survey, for the app to show.

    signed_by : ids of the publisher's keys with a valid signature.
    level : the privacy level of its whole report, under the app's own cap on δ; of a survey with
        arms, the largest of theirs.
    arms : the survey as each arm asks it, by the arm's id (`Plan.arm`); empty without arms.
    """

    document: SurveyDocument
    signed_by: tuple[str, ...]
    level: ReportLevel
    arms: "Mapping[str, Survey]" = field(default_factory=dict)

    def __repr__(self) -> str:
        names = [*islice(self.questions, _SHOWN), *(["…"] if len(self.questions) > _SHOWN else [])]
        return f"<Survey {self.title!r}, version {self.document.version}: {', '.join(names)}>"

    def _repr_html_(self) -> str:
        """Return the explanation as HTML for notebooks."""
        return self.explain()._repr_html_()

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

        Of a survey with arms that is the explanation of the arm that costs most; show that of
        the drawn one, ``survey.arms[plan.arm].explain()``.

        language : one of the document's, by default its first.
        budget : the result of `Client.budget`; the explanation then includes this respondent's
            remaining budget before and after.
        texts : an app's own texts, which replace those of the same part and name in
            frankly_protocol/explanation/texts/.
        """
        most = max(self.arms.values(), key=_cost, default=self)
        return explain(most.document, most.level, self.signed_by, language, budget, texts)


def _cost(survey: Survey) -> tuple[bool, Fraction]:
    """Return what an arm costs, to compare arms; an infinite cost is the largest."""
    odds = survey.level.cost.odds
    return odds is None, odds or Fraction(0)
