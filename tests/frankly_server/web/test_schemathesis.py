# SPDX-License-Identifier: Apache-2.0
"""Valid and invalid requests that schemathesis sends to every operation of the OpenAPI document."""

from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.frankly_server.web.site import Site

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Ids cannot be guessed, so half of the requests have the id of a survey, and two thirds have a
# valid key.
QUIET = list(HealthCheck)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: str(mode.value))
def test_every_operation_responds_as_declared(site: Site, mode: GenerationMode, full: bool) -> None:
    schema = schemathesis.openapi.from_wsgi("/openapi.json", site.client.application)
    request_counts: Counter[str] = Counter()
    owner = site.services.access.create("owner", "all operations")
    expected_operations = set()
    for operation in (
        result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)
    ):
        if mode is GenerationMode.NEGATIVE and not (operation.query or operation.body):
            continue  # the operation has no invalid requests
        expected_operations.add(operation.label)

        @settings(
            max_examples=1000 if full else 6,
            deadline=None,
            suppress_health_check=QUIET,
            database=None,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: schemathesis.Case[Any]) -> None:
            if "survey_id" in case.path_parameters and request_counts[case.operation.label] % 2:
                case.path_parameters["survey_id"] = site.survey
            headers = (
                {"Authorization": f"Bearer {owner}"}
                if request_counts[case.operation.label] % 3
                else {}
            )
            request_counts[case.operation.label] += 1
            case.call_and_validate(headers=headers, checks=CHECKS)

        run()
    assert set(request_counts) == expected_operations
    assert len(expected_operations) >= (48 if mode is GenerationMode.POSITIVE else 20)
