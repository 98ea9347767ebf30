# SPDX-License-Identifier: Apache-2.0
"""The surveys of the demo: data, survey file and description."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from frankly_design.form.comparisons import few_questions, separate_blocks
from frankly_design.tables.limits import Limits
from frankly_protocol.documents import SurveyDocument
from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.drafting import form_request

from examples.demo.people import Person
from examples.demo.results import Asked

_EXAMPLES: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Rivals:
    """Respondents that other methods would need for the precision of a form.

    known : the best known method, in which a report is about `drawn` questions on average. separate :
    a block for each question.
    """

    known: int
    drawn: float
    separate: int

    @property
    def in_words(self) -> str:
        """Both numbers as a sentence."""
        how = (
            "one question drawn at random for each"
            if self.drawn < 1.05
            else f"{self.drawn:.1f} questions drawn for each on average, and their joint answer randomised"
        )
        return (
            f"For the same precision at the same level, the best method known to us for these questions ({how}) "
            f"needs {self.known:,} respondents; a separate block for each question needs {self.separate:,}."
        )


@dataclass(frozen=True, slots=True)
class DemoSurvey:
    """A survey that can be demonstrated.

    title : of the run. source : of the data. cap : nats that the simulated app allows. tables :
    questions whose joint table is also shown: questions of one block, or requested pairs of a form.
    """

    name: str
    title: str
    source: str
    cap: str
    tables: tuple[tuple[str, ...], ...] = ()

    @property
    def file(self) -> Path:
        """The survey file that is applied and published."""
        return _EXAMPLES / self.name / "survey.yaml"

    @property
    def definition(self) -> SurveyDefinition:
        """The definition in the survey file."""
        return parse_definition(self.file.read_bytes())

    def split(self) -> tuple[Sequence[Person], Sequence[Person]]:
        """Return (the public pilot, from which priors are counted; the respondents)."""
        load: Callable[[], tuple[list[Person], list[Person]]] = import_module(
            f"examples.{self.name}.data"
        ).split
        return load()

    def asked(self) -> dict[str, Asked]:
        """Return each question by id, as its answers are compared with the estimates."""
        return {
            question.id: Asked(
                question.text["en"],
                tuple(choice.id for choice in question.choices),
                tuple(choice.low for choice in question.choices if choice.low is not None),
            )
            for question in self.definition.questions
        }

    def rivals(self, respondents: int, document: SurveyDocument) -> Rivals | None:
        """Return the numbers of respondents that other methods would need for the form's variance.

        All have the same total level; `document` states the form's variance. None for a survey
        without a form.
        """
        definition, certificate = self.definition, document.blocks[-1].certificate
        if definition.form is None or certificate is None:
            return None
        request = form_request(definition.form, definition.form_epsilon, Limits())
        known, blocks = few_questions(request), separate_blocks(request)
        needed = respondents / float(certificate.value)
        return Rivals(round(needed * known.value), known.drawn, round(needed * blocks.value))

    def choices(self, question: str) -> tuple[str, ...]:
        """Return the choice ids of one question, in the file's order."""
        return next(
            tuple(c.id for c in q.choices) for q in self.definition.questions if q.id == question
        )


SURVEYS: Final = {
    survey.name: survey
    for survey in (
        DemoSurvey(
            "redbook",
            "Nine questions of 1974 under one level",
            "Redbook survey of 1974 (R. C. Fair, 1978), shipped with statsmodels",
            cap="5",
            tables=(("affair", "rate_marriage"),),
        ),
        DemoSurvey(
            "affairs",
            "The Redbook survey of 1974",
            "Redbook survey of 1974 (R. C. Fair, 1978), shipped with statsmodels",
            cap="5",
        ),
        DemoSurvey(
            "workplace",
            "Health at work",
            "RAND Health Insurance Experiment, shipped with statsmodels",
            cap="5",
            tables=(("limitation", "health"),),
        ),
        DemoSurvey(
            "multi",
            "Three attributes and a vote",
            "American National Election Study 1996, shipped with statsmodels",
            cap="5",
            tables=(("views", "degree"),),
        ),
    )
}
"""Surveys of `python -m examples.demo` by name; the first is the default."""
