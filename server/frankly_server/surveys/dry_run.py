# SPDX-License-Identifier: Apache-2.0
"""What publishing would say of a draft, and what it said of a version, as JSON values."""

from datetime import datetime
from typing import Any

from frankly_design.requests.whole_report import report_json
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument

from frankly_server.surveys import trial
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.devices import expected_form, warnings_of
from frankly_server.surveys.expected import Expected, expected_json, expected_questions
from frankly_server.surveys.live import without_result
from frankly_server.surveys.published import promised


def draft_json(definition: SurveyDefinition, now: datetime, url: str) -> dict[str, Any]:
    """Return what publishing a draft would say; it takes up to `trial.TRIAL_S` seconds.

    definition : as `Surveys.next_version` returns it. Raises the InvalidInput errors of publishing.
    """
    expected_form(definition)  # refuses a prior that cannot be used
    document, rows = trial.expectations(definition, now, url)
    expected = Expected(document, expected_questions(definition, rows))
    return _said_json(document, definition.expected_reports) | {
        "budget": definition.budget,
        "expected": expected_json(definition, expected),
    }


def version_json(document: SurveyDocument, people: int) -> dict[str, Any]:
    """Return what publishing said of a version. people : who are expected to answer."""
    return {
        "version": document.version,
        "digest": document.digest,
        "issued": format_time(document.issued),
        "opens": format_time(document.opens),
        "closes": format_time(document.closes),
        "expires": format_time(document.expires),
        **_said_json(document, people),
    }


def _said_json(document: SurveyDocument, people: int) -> dict[str, Any]:
    return {
        "report": report_json(document.report_level),
        "blocks": [block.to_json() for block in promised(document)],
        "warnings": [*warnings_of(document), *without_result(document, people)],
    }
