# SPDX-License-Identifier: Apache-2.0
"""What `frankly survey apply` says of each question, for the number of people who are expected."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frankly_analyst.plots import NUMBER
from frankly_design.numeric.lazy import LazyModule
from rich.table import Table

from frankly_server.cli.console import table
from frankly_server.surveys.asked import asked_in_words, without_refusal
from frankly_server.surveys.expected import Expected, ExpectedQuestion

if TYPE_CHECKING:
    from frankly_server.surveys import correction
    from frankly_server.surveys.definition import SurveyDefinition
else:
    # Lazy, because it imports the design engine.
    correction = LazyModule("frankly_server.surveys.correction")


def shown(definition: "SurveyDefinition", expected: Expected | str) -> Iterator[Table | str]:
    """Yield a table and a sentence for people, or only a sentence if it is not known."""
    if isinstance(expected, str):
        yield f"What to expect of each question is not known: {expected}."
        return
    title = (
        f"If {definition.expected_reports} people answer (a result needs {definition.min_reports} "
        "answers about its question)"
    )
    columns = ("question", "answers about it", "wanted", "margin")
    rows = [(one.text, str(one.reports), one.figure, _margin(one)) for one in expected.questions]
    yield table(title, columns, rows)
    yield asked_in_words(expected.document)
    yield from correction.correction_in_words(expected.document)
    yield from without_refusal(expected.document)


def _margin(question: ExpectedQuestion) -> str:
    if not question.has_result:
        return "no result"
    if question.margin is None:
        return "unknown"
    is_number = question.unit == NUMBER
    return f"±{question.margin:.2g}" if is_number else f"±{100 * question.margin:.1f} points"
