# SPDX-License-Identifier: Apache-2.0
"""Views of the page of results: all answers together, groups, periods, and two questions together."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from frankly_analyst.request import EstimatesRequest, as_text
from frankly_design.estimate.margins import DEFAULT
from frankly_design.form.joint_tables import comparable_pairs
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.groups import groupings
from frankly_server.analysis.periods import PERIODS
from frankly_server.analysis.request import VERSION
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.sections import Names

_MOST_PAIRS: Final = 40
"""Largest number of pairs of questions to choose from; the page of all figures has them all."""
_MOST_OF_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class View:
    """What the page shows.

    value : as in the query, "" for all answers together. kind : "by" for groups, "per" for periods, "pair"
    for two questions, or "". requests : to the analysis. options : the query of the page of all figures
    that shows the same.
    """

    value: str
    kind: str
    requests: tuple[Asked, ...]
    options: Mapping[str, str]

    @property
    def words(self) -> list[str]:
        """The words of the value, for the name of a file."""
        return re.findall(r"[a-z0-9_]+", self.value)

    @classmethod
    def of(
        cls, value: str, documents: Sequence[SurveyDocument], denial: float | None = None
    ) -> Self:
        """Return the view of a query. documents : the survey's versions. denial : of the request.

        Raises InvalidInput: field_type for a view that the survey does not have, unsupported for a
        view of groups, periods or two questions with `denial`.
        """
        if value and denial is not None:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "the page says what denial changes of all answers together: leave out the view, or denial",
                "denial",
            )
        kind, _, name = value.partition(":")
        strata = {name for document in documents for name in groupings_of(document)}
        if kind == "by" and name in strata | ({VERSION} if len(documents) > 1 else set()):
            asked = Asked(EstimatesRequest(method=DEFAULT, by=name), by=name)
            return cls(value, kind, (asked,), {"by": name})
        if kind == "per" and name in PERIODS:
            asked = Asked(EstimatesRequest(method=DEFAULT, by=name), period=name)
            return cls(value, kind, (asked,), {"period": name})
        pair = name.split(",")
        if kind == "pair" and tuple(pair) in comparable_pairs(documents[-1]):
            row, column = pair
            requests = (
                EstimatesRequest(method=DEFAULT, targets=pair, percent=percent)
                for percent in (None, "row")
            )
            tables = tuple(Asked(one, row=row, column=column) for one in requests)
            return cls(value, kind, tables, {"row": row, "column": column})
        if value:
            raise InvalidInput(Problem.FIELD_TYPE, "choose one of the views of the list", "show")
        request = EstimatesRequest(method=DEFAULT, denial=denial)
        options = {} if denial is None else {"denial": as_text("denial", denial)}
        return cls("", "", (Asked(request),), options)

    @property
    def denial(self) -> float | None:
        """Largest share who deny an answer that concerns them; None if nothing is said of denial."""
        return self.requests[0].request.denial


def views_of(
    documents: Sequence[SurveyDocument], names: Names
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what the page can show, in groups: (heading, [(value, words)])."""
    texts = {one.id: names.of(one.text) for document in documents for one in document.strata}
    strata = dict.fromkeys(name for document in documents for name in groupings_of(document))
    say = names.words.say
    groups = [(f"by:{name}", texts.get(name, say("view_arm"))) for name in strata]
    if len(documents) > 1:
        groups.append((f"by:{VERSION}", say("view_version")))
    pairs = [
        (f"pair:{a},{b}", say("view_pair", first=_named(a, names), second=_named(b, names)))
        for a, b in comparable_pairs(documents[-1])
    ]
    lists = [
        (say("views_groups"), groups),
        (say("views_time"), [(f"per:{name}", say(f"view_{name}")) for name in PERIODS]),
        (say("views_pairs"), pairs[:_MOST_PAIRS]),
    ]
    return [(heading, entries) for heading, entries in lists if entries]


def groupings_of(document: SurveyDocument) -> list[str]:
    """Return what a document's reports can be grouped by, its arms first."""
    found = dict.fromkeys(name for one in document.versions for name in groupings(one))
    arms = [] if document.arms is None else [document.arms.id]
    return [*arms, *(name for name in found if name not in arms)]


def _named(question: str, names: Names) -> str:
    text = names.questions[question]
    return text if len(text) <= _MOST_OF_NAME else f"{text[: _MOST_OF_NAME - 1].rstrip()}…"
