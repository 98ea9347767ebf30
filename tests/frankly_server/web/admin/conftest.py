# SPDX-License-Identifier: Apache-2.0
"""Fixtures: offices, shared by all tests of a module that do not change them."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.frankly_server.web.admin.office import ANSWERS, Office, make_office


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    made = make_office(tmp_path_factory.mktemp("office"))
    yield made
    made.services.close()


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office whose survey has reports: for `smokes`, everybody in the north sent symbol 1,
    everybody in the south symbol 0."""
    office = make_office(tmp_path_factory.mktemp("answered"))
    digest = office.services.surveys.versions(office.survey)[-1].digest
    reports = [
        {"v": 1, "doc": digest, "id": f"{i:032x}", "y": [i % 2, min(i % 4, 2)],
         "strata": {"region": "north" if i % 2 else "south"}, "token": None}
        for i in range(ANSWERS)
    ]  # fmt: skip
    for outcome in office.services.intake.accept_batch(office.survey, reports):
        assert getattr(outcome, "status", None) == "accepted", outcome
    office.services.releasing.release()
    yield office
    office.services.close()


@pytest.fixture(scope="module")
def analyst(answered: Office) -> FlaskClient:
    return answered.client("analyst")
