# SPDX-License-Identifier: Apache-2.0
"""A survey with an anchor through the whole path: file, devices, server, API, replay and page."""

import json
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_sdk import Policy
from frankly_sdk.testing import open_client
from frankly_server.accounts import Passwords
from frankly_server.analysis import encode
from frankly_server.analysis.analysis import Analysis
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import estimates_json
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store.reports import reports
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr
from sqlalchemy import select

from tests.contract.conftest import NOW, ORIGIN, InProcess
from tests.frankly_server.accounts.people import CHEAP
from tests.frankly_server.analysis.test_anchors import counted
from tests.frankly_server.web.admin.office import PASSWORD, send
from tests.migrated import opened

PEOPLE = 900
QUESTION = "  - {{id: {0}, text: {{en: '{0}?'}}, type: yes-no{1}}}\n"
HEAD = (
    "name: habits\ntitle: {en: Habits}\nlanguages: [en]\nopens: 2026-05-01T00:00:00Z\n"
    "closes: 2026-07-01T00:00:00Z\nexpires: 2026-08-01T00:00:00Z\nmin_reports: 20\nrelease_step: 2\n"
)
BORN = ", anchor: {counts: [11, 1], source: register}"
IN_A_FORM = f"{HEAD}budget: '3'\nform:\n ask: all\n questions:\n" + "".join(
    QUESTION.format(name, BORN if name == "born" else "")
    for name in ("a", "b", "c", "d", "e", "born")
)
AGAIN = IN_A_FORM.replace(BORN, ", anchor: {repeats: a}")
IN_BLOCKS = f"{HEAD}budget: '4'\nblocks:\n" + "".join(
    f"- id: {name}\n  notion: ldp\n  epsilon: '2'\n  questions:\n" + QUESTION.format(name, more)
    for name, more in (("a", ""), ("born", BORN))
)


@pytest.mark.parametrize("file", [IN_A_FORM, AGAIN, IN_BLOCKS])
def test_figures_are_those_of_the_reports(file: str, tmp_path: Path) -> None:
    url = SecretStr(f"sqlite:///{tmp_path / 'frankly.db'}")
    settings = Settings(home=tmp_path / "home", database_url=url, public_url=ORIGIN)
    with closing(opened(settings, FixedClock(NOW), Passwords(CHEAP))) as services:
        services.surveys.apply(parse_definition(file.encode()))
        published = services.surveys.publish("habits")
        document = SurveyDocument.from_envelope(services.surveys.envelope(published.survey_id))
        assert [q.id for q in document.questions.values() if q.anchor] == ["born"]
        app = create_app(settings, services=services)
        http, rng = app.test_client(), Random(4)
        with open_client(
            published.link, tmp_path / "device.db", spread_s=0, policy=Policy(cap="5"),
            transport=InProcess(http), clock=FixedClock(NOW),
        ) as client:  # fmt: skip
            rows: list[tuple[str, dict[str, str], dict[str, str]]] = []
            for i in range(PEOPLE):
                yes = 0.1 if rng.random() > 0.2 else 0.5
                answers = {
                    name: "yes" if rng.random() < yes else "no" for name in document.questions
                }
                if file == AGAIN and yes < 0.5:
                    answers["born"] = answers["a"]
                rows.append((f"p{i}", answers, {}))
            assert {row.status for row in client.randomise_many(rows)} == {"sealed"}
            client.flush()
        with services.database.engine.connect() as connection:
            stored = [row.symbols for row in connection.execute(select(reports.c.symbols))]
        assert services.releasing.release() == PEOPLE
        key = services.access.create("analyst", "test")
        path = f"/v1/surveys/{published.survey_id}/estimates"
        response = http.get(path, headers={"Authorization": f"Bearer {key}"})
        found = {entry["id"]: entry for entry in response.get_json()["questions"]}["a"]
        assert found["random_answers"]["shown"]
        assert all(row["corrected"] is not None for row in found["rows"])
        # Once more from the reports, without the database's counts.
        has_form = isinstance(document.blocks[0].mechanism, AgreementMechanism)
        split = [
            [json.loads(one)] if has_form else [int(y) for y in one.split(",")] for one in stored
        ]
        source = counted(document, split)
        by_hand = estimates_json(published.survey_id, [source], Request.from_json({}))
        again = {entry["id"]: entry for entry in by_hand["questions"]}["a"]
        for row, other in zip(found["rows"], again["rows"], strict=True):
            for name in ("corrected", "corrected_se", "corrected_low", "corrected_high"):
                assert row[name] == pytest.approx(other[name], abs=1e-12)
        assert Analysis(services.database).replay(response.get_json()) == encode(
            response.get_json()
        )
        assert (found["n"] < PEOPLE) is has_form
        text = _page(services, app, published.survey_id)
        assert (
            f"{found['random_answers']['n']:,} reports show a question that tells how many people answer at random."
            in text
        )
        known = (
            "It is known how all people together answer “born?”: “No” 91.7%, “Yes” 8.3% (register)."
        )
        assert (known in text) is (file != AGAIN)
        # The biases of the derivation for a share of 3%, where an assumption does not hold.
        assert "and with it −0.3%. If 5% of the people, instead of 10%" in text


def _page(services: Services, app: Any, survey: str) -> str:
    services.accounts.create("main", "ada@example.org", "owner", PASSWORD)
    office = app.test_client()
    send(office, "/admin/sign-in", email="ada@example.org", password=PASSWORD)
    return " ".join(office.get(f"/admin/surveys/{survey}/estimates").text.split())
