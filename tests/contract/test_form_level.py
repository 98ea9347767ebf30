# SPDX-License-Identifier: Apache-2.0
"""Forms with one ε for many questions, which are charged once: level, budget, ledger and audit."""

import json
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from frankly_design.requests.verify import verify_json
from frankly_protocol import canonical
from frankly_protocol.audit import level_for, ln_up
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_sdk import BudgetExceeded, Client, Policy, PolicyRefused
from frankly_sdk.testing import open_client
from frankly_server.log.audit import audit
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition

from tests.contract.conftest import NOW, ORIGIN, Site
from tests.frankly_server.log.sites import Place
from tests.migrated import opened as services_with_keys
from tests.refusals import refusal
from tests.survey_files import SMOKES

NUMBER = 8
ANSWERS = {f"q{i}": f"c{i % 3}" for i in range(NUMBER)}


def questions() -> list[dict[str, Any]]:
    choices = [{"id": f"c{x}", "label": {"en": f"Choice {x}"}} for x in range(3)]
    return [
        {"id": f"q{i}", "text": {"en": f"Question {i}?"}, "choices": choices} for i in range(NUMBER)
    ]


def file(budget: str, *blocks: Any, name: str = "many", **form: Any) -> bytes:
    survey = {
        "name": name,
        "title": {"en": "Many"},
        "languages": ["en"],
        "min_reports": 10,
        "budget": budget,
        "form": {"questions": questions(), **form},
    }
    # JSON is valid YAML; a YAML dump would have anchors for equal lists.
    return json.dumps(survey | ({"blocks": list(blocks)} if blocks else {})).encode()


def smokes() -> Any:
    (block,) = yaml.load(SMOKES, Loader=yaml.BaseLoader)
    return block


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    settings = Settings(home=tmp_path, public_url=ORIGIN)
    with closing(services_with_keys(settings, FixedClock(NOW))) as server:
        yield server


def published(
    services: Services, data: bytes, folder: Path, name: str = "many"
) -> tuple[Site, SurveyDocument]:
    services.surveys.apply(parse_definition(data))
    found = services.surveys.publish(name)
    site = Site(services, services.settings, found.link, found.survey_id, found.digest, folder)
    return site, services.surveys.versions(name)[-1]


def opened(site: Site, store: Path, cap: str) -> Client:
    """Open a survey in an install with this cap."""
    return open_client(
        site.link,
        store,
        policy=Policy(cap=cap),
        transport=site.transport(),
        clock=FixedClock(NOW),
        spread_s=0,
    )


def test_the_report_level_equals_that_of_the_form_whatever_the_number_of_questions(
    services: Services, tmp_path: Path
) -> None:
    _, document = published(services, file("2"), tmp_path)
    odds = Fraction(*level_for(Fraction(2)))
    level = document.report_level
    assert level.odds == odds
    (line,) = level.lines
    assert (line.block, line.odds) == ("form", odds)
    assert level.answers.odds == odds


def test_levels_of_forms_and_blocks_add_up_once_each(services: Services, tmp_path: Path) -> None:
    _, document = published(services, file("3", smokes(), epsilon="2"), tmp_path)
    smoking = document.blocks[0].ceiling
    assert smoking is not None
    assert smoking <= Fraction(*level_for(Fraction(1)))
    odds = smoking * Fraction(*level_for(Fraction(2)))
    assert document.report_level.answers.odds == odds
    assert [line.block for line in document.report_level.lines] == ["smokes", "form"]


def test_the_budget_counts_the_form_once(services: Services) -> None:
    with pytest.raises(InvalidInput) as caught:
        services.surveys.apply(parse_definition(file("2.99", smokes(), epsilon="2")))
    assert (caught.value.code, caught.value.field) == ("budget_exceeded", "budget")


def test_a_device_charges_the_form_once_and_no_more(services: Services, tmp_path: Path) -> None:
    site, document = published(services, file("2"), tmp_path)
    with site.client("phone", site.transport()) as client:
        before = client.budget()
        assert (before.cost, before.left) == (ln_up(Fraction(*level_for(Fraction(2)))), "4.0000")
        receipt = client.answer(ANSWERS)
        assert (receipt.status, receipt.code) == ("sent", "accepted")
        after = client.budget()
        assert after.is_answered
        assert float(after.left) == pytest.approx(2, abs=1e-3)
    assert site.stored() == 1
    assert len(document.blocks[0].questions) == NUMBER


def test_a_cap_below_the_level_refuses_the_form_and_one_at_it_does_not(
    services: Services, tmp_path: Path
) -> None:
    site, _ = published(services, file("2"), tmp_path)
    assert refusal(PolicyRefused, opened, site, tmp_path / "a.db", "1.99").reason == "cap"
    opened(site, tmp_path / "b.db", "2").close()


def test_two_forms_of_two_use_up_four_and_a_third_is_refused(
    services: Services, tmp_path: Path
) -> None:
    sites = [
        published(services, file("2", name=name), tmp_path, name)[0] for name in ("a", "b", "c")
    ]
    for site in sites[:2]:
        with opened(site, tmp_path / "s.db", "4") as client:
            assert client.answer(ANSWERS).status == "sent"
    with pytest.raises(BudgetExceeded):
        opened(sites[2], tmp_path / "s.db", "4")


def test_verify_reports_the_level_of_the_form(services: Services, tmp_path: Path) -> None:
    _, document = published(services, file("2"), tmp_path)
    verdict = json.loads(json.dumps(verify_json(canonical.loads(document.payload()))))
    assert verdict["holds"] is True
    assert verdict["digest"] == document.digest
    (block,) = verdict["blocks"]
    (claim,) = block["claims"]
    assert (block["id"], claim["notion"]) == ("form", "ldp")
    assert claim["level_needed"] == block["ceiling"]
    assert Fraction(*block["ceiling"]) == Fraction(*level_for(Fraction(2)))


def test_verify_finds_a_form_that_promises_too_much(services: Services, tmp_path: Path) -> None:
    _, document = published(services, file("2"), tmp_path)
    payload = canonical.loads(document.payload())
    payload["blocks"][0]["claims"][0]["level"] = list(level_for(Fraction("1.9")))
    verdict = verify_json(payload)
    assert (verdict["holds"], verdict["report"]) == (False, None)
    with pytest.raises(DocumentRejected) as caught:
        SurveyDocument.parse(canonical.dumps(payload)).require_private()
    assert caught.value.reason == "privacy"


def test_an_audit_verifies_the_form_and_counts_its_reports(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    try:
        place.services.surveys.apply(parse_definition(file("2")))
        found = place.services.surveys.publish("many")
        report = audit(place, FixedClock(NOW))
        assert report.findings == []
        assert report.counts == {found.digest: 0}
        document = place.services.surveys.versions("many")[-1]
        payload = canonical.loads(document.payload())
        payload["blocks"][0]["claims"][0]["level"] = list(level_for(Fraction("1.9")))
        payload["version"], payload["prev"] = 2, document.digest
        false_digest = place.publish(SurveyDocument.parse(canonical.dumps(payload)))
        (finding,) = audit(place, FixedClock(NOW)).findings
        assert (finding.kind, finding.about) == ("privacy", false_digest)
    finally:
        place.services.close()
