# SPDX-License-Identifier: Apache-2.0
"""Services working together, from a survey file to estimates; they refuse to start without keys or tables."""

import json
from pathlib import Path

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, StoreUnavailable, UnsafeStore
from frankly_server.surveys.definition import parse_definition

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import body
from tests.frankly_server.surveys.samples import FILE
from tests.refusals import refusal


@pytest.fixture
def services(database: Database, tmp_path: Path) -> Services:
    """Services on a migrated database, with keys."""
    services = Services(Settings(home=tmp_path), database, FixedClock(NOW))
    services.keys.init()
    return services


def test_from_a_survey_file_to_estimates(services: Services) -> None:
    services.check_start()
    services.check_health()
    services.surveys.apply(parse_definition(FILE.encode()))
    out = services.surveys.publish("habits")
    payload = Envelope.from_bytes(services.surveys.envelope(out.survey_id), SURVEY_TYPE).payload
    document = SurveyDocument.parse(payload)
    sent = [body(document, i % 2, i % 3) for i in range(60)]
    assert services.intake.accept(out.survey_id, sent[0]).status == "accepted"
    services.intake.accept_batch(out.survey_id, sent)
    assert services.analysis.estimates(out.survey_id)["n"] == 0
    assert services.releasing.release() == 60
    result = services.analysis.estimates(out.survey_id)
    assert result["n"] == 60
    assert [
        (question_result["id"], question_result["status"], len(question_result["rows"]))
        for question_result in result["questions"]
    ] == [("affair", "ok", 2), ("happy", "ok", 3)]
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    with services.database.reading("check") as tx:
        assert tx.counts.recount(out.survey_id) == []


def test_start_is_refused_without_a_usable_key(services: Services, tmp_path: Path) -> None:
    (tmp_path / "keys" / "publisher.pem").unlink()
    assert refusal(InvalidInput, services.check_start).code == "key_file"
    services.check_health()


def test_opening_checks_the_database(tmp_path: Path) -> None:
    with pytest.raises(UnsafeStore, match="frankly migrate"):
        Services.open(Settings(home=tmp_path), FixedClock(NOW))
    missing = Settings.model_validate(
        {"home": tmp_path, "database_url": f"sqlite:///{tmp_path}/none/x.db"}
    )
    with pytest.raises(StoreUnavailable):
        Services.open(missing, FixedClock(NOW))


def test_opening_a_migrated_database_works(sqlite: Database, tmp_path: Path) -> None:
    services = Services.open(Settings(home=tmp_path), FixedClock(NOW))
    assert services.surveys.list() == []
    services.close()
