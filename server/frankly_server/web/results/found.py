# SPDX-License-Identifier: Apache-2.0
"""What the analysis finds for a page of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_analyst.request import ALL, PREVIOUS, RESPONDENTS, SCALES, SHARES, WANTED
from frankly_design.estimate.scales import Scale
from frankly_protocol.documents import SurveyDocument

from frankly_server.services import Services
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.sections import Section, names_of, sections_of
from frankly_server.web.results.words import Words

_COMPARED: Final = 12
"""Largest number of groups for comparisons of all pairs, whose number grows quadratically."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the analysis found: its answer about shares, that about wanted figures, and the sections.

    asked : what was asked.
    """

    asked: Asked
    answer: Mapping[str, Any]
    wanted: Mapping[str, Any] | None
    sections: Sequence[Section]


def found_of(
    services: Services,
    survey_id: str,
    documents: Sequence[SurveyDocument],
    query: Asked,
    *,
    completion: bool = True,
    words: Words | None = None,
) -> Found:
    """Return what a query of the page finds. documents : the survey's versions, at least one.

    words : the language of the page, as of `names_of`. completion : False to leave out the test of
    completion. Raises the errors of the analysis.
    """
    fields = query.request.given() | _compared(documents, query)
    # Sentences and plots are about shares; the wanted figures have tables of their own.
    if query.request.targets == WANTED:
        fields["targets"] = SHARES
        # Completion is of all released reports, so pages of groups and periods leave it out.
        dated = query.request.since or query.request.until
        partial = query.request.by or dated or query.request.percent
        fields["completion"] = completion and not partial
    answer = services.analysis.estimates(survey_id, **fields)
    scales = wanted = None
    if _can_show_figures(query):
        questions = [q for document in documents for q in document.questions.values()]
        if any(map(Scale.of, questions)):
            fields = query.request.given() | _compared(documents, query) | {"targets": SCALES}
            scales = services.analysis.estimates(survey_id, **fields)
        if any(question.wanted for question in questions):
            wanted = services.analysis.estimates(survey_id, **query.request.given())
    sections = sections_of(answer, query, names_of(documents, words), scales, wanted)
    return Found(query, answer, wanted, sections)


def _compared(documents: Sequence[SurveyDocument], query: Asked) -> dict[str, str]:
    """Return the request field for comparing groups, {} if groups are not compared.

    Percentages are not compared, because their families have no simultaneous intervals.
    """
    request = query.request
    if request.by is None or request.compare or request.percent or request.method == "sequence":
        return {}
    if query.by is None:
        return {"compare": PREVIOUS}
    if query.period is not None:
        return {}
    sizes = [len(q.choices) for document in documents for q in document.strata if q.id == query.by]
    sizes += [len(d.arms.arms) for d in documents if d.arms is not None and d.arms.id == query.by]
    groups = max(sizes, default=len(documents))
    return {"compare": ALL} if groups <= _COMPARED else {}


def _can_show_figures(query: Asked) -> bool:
    """Return True unless the page has a joint table, or weights that ratios do not support."""
    return query.request.targets == WANTED and query.request.weights == RESPONDENTS
