# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the SDK and the real server in one process, connected by a transport instead of a network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_sdk import Client, NetworkError, Policy
from frankly_sdk.answer import Given
from frankly_sdk.testing import open_client
from frankly_sdk.transport import Reply
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

from tests.migrated import opened
from tests.survey_files import HOW_OFTEN, REGION, SMOKES, habits

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ORIGIN = "http://127.0.0.1:8000"
DRINKS = f"""\
  - id: drinks
    notion: lip
    epsilon: "0.5"
    ceiling_cap: "2"
    mechanism: optimal
    prior:
      secret: ill
      secrets: ["no", "yes"]
      source: "a table"
      strata:
        - {{when: {{region: south}}, joint: [[20, 20, 10], [10, 10, 30]]}}
        - {{when: {{region: north}}, joint: [[50, 30, 10], [10, 20, 40]]}}
    questions:
      - id: drinks
        text: {{en: "How often do you drink?"}}
{HOW_OFTEN}"""
MOVES = f"""\
  - id: moves
    notion: ldp
    epsilon: "1"
    mechanism: grr
    questions:
      - id: moves
        text: {{en: "How often do you walk?"}}
{HOW_OFTEN}"""
SURVEY = habits(SMOKES, DRINKS, MOVES, budget="3", strata=REGION)
ANSWERS = {"smokes": "yes", "drinks": "daily", "moves": "never"}
STRATA = {"region": "south"}


@dataclass
class InProcess:
    """A Transport that calls the WSGI application directly, and records the bodies sent."""

    http: FlaskClient
    posted: list[bytes] = field(default_factory=list)
    lose: int = 0

    def get(self, url: str, limit: int) -> Reply:
        """Fetch from the application."""
        return self._answer("GET", url, None, limit)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        """Send to the application; the first `lose` responses are lost."""
        return self._post(url, body, limit, "application/json")

    def post_batch(self, url: str, body: bytes, limit: int) -> Reply:
        """Send a batch in the same way."""
        return self._post(url, body, limit, "application/vnd.frankly.batch+json")

    def _post(self, url: str, body: bytes, limit: int, content_type: str) -> Reply:
        self.posted.append(body)
        answer = self._answer("POST", url, body, limit, content_type)
        if self.lose:
            self.lose -= 1
            raise NetworkError("lost on the way back")
        return answer

    def close(self) -> None:
        """Nothing to close."""

    def _answer(
        self, method: str, url: str, body: bytes | None, limit: int, content_type: str | None = None
    ) -> Reply:
        address = urlsplit(url)
        assert f"{address.scheme}://{address.netloc}" == ORIGIN
        path = f"{address.path}?{address.query}" if address.query else address.path
        response = self.http.open(path, method=method, data=body, content_type=content_type)
        assert len(response.data) <= limit
        return Reply(
            response.status_code,
            response.mimetype or "",
            response.headers.get("Retry-After"),
            response.data,
        )


@dataclass
class Site:
    """A published survey in the real application on a real database."""

    services: Services
    settings: Settings
    link: str
    survey_id: str
    digest: str
    folder: Path

    def transport(self, at: datetime = NOW) -> InProcess:
        """Return a transport into the application, whose clock is set to `at`."""
        services = Services(self.settings, self.services.database, FixedClock(at))
        return InProcess(create_app(self.settings, services=services).test_client())

    def client(self, name: str, transport: InProcess, at: datetime = NOW) -> Client:
        """Open the survey in the install of this name."""
        options: dict[str, Any] = {
            "policy": Policy(cap="4"),
            "transport": transport,
            "clock": FixedClock(at),
        }
        return open_client(
            self.link, self.folder / f"{name}.db", sleep=lambda _s: None, spread_s=0, **options
        )

    def stored(self) -> int:
        """Count the stored reports."""
        with self.services.database.reading("test") as tx:
            return tx.reports.accepted(self.survey_id)


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    settings = Settings(
        home=tmp_path / "home", database_url=SecretStr(database_url), public_url=ORIGIN
    )
    services = opened(settings, FixedClock(NOW))
    services.surveys.apply(parse_definition(SURVEY))
    published = services.surveys.publish("habits")
    yield Site(services, settings, published.link, published.survey_id, published.digest, tmp_path)
    services.close()


@pytest.fixture
def answer_as(site: Site) -> Callable[[str], str]:
    """Return a function that answers as a named install and returns the receipt's code."""
    transport = site.transport()

    def answer(name: str) -> str:
        with site.client(name, transport) as client:
            return client.answer(ANSWERS, strata=STRATA).code

    return answer


FILE = """\
name: health
title: {en: Health}
languages: [en]
budget: 3
min_reports: 50
form:
  cross_tables: [[smoke, drink]]
  questions:
    - {id: smoke, type: yes-no, text: {en: "Do you smoke?"}}
    - id: drink
      text: {en: "How often do you drink?"}
      choices: [{id: never, label: {en: Never}}, {id: rarely, label: {en: Rarely}}, {id: often, label: {en: Often}}]
    - {id: debt, type: yes-no, text: {en: "Are you in debt?"}, expected: [80, 20]}
    - id: age
      type: number
      text: {en: "How old are you?"}
      ranges: [18, 30, 45, 60]
      no_answer: true
    - id: stop
      type: scale
      text: {en: "How hard would it be to stop smoking?"}
      wanted: mean
      choices:
        - {id: easy, label: {en: Easy}, score: 0}
        - {id: mixed, label: {en: In between}, score: 1}
        - {id: hard, label: {en: Hard}, score: 2}
      ask_if: {question: smoke, choices: ["yes"]}
      not_applicable: true
    - id: mood
      type: scale
      text: {en: "How was your week?"}
      wanted: mean
      choices:
        - {id: m0, label: {en: Bad}, score: 0}
        - {id: m1, label: {en: Fair}, score: 1}
        - {id: m2, label: {en: Good}, score: 2}
        - {id: m3, label: {en: Splendid}, score: 3}
    - id: pain
      text: {en: "How much pain did you have?"}
      wanted: distribution
      choices: [{id: p0, label: {en: None}}, {id: p1, label: {en: Little}}, {id: p2, label: {en: Some}},
                {id: p3, label: {en: Much}}, {id: p4, label: {en: Unbearable}}]
    - id: trust
      text: {en: "Do you trust your doctor?"}
      wanted: contrast
      contrast: [-1, 0, 1]
      choices: [{id: "no", label: {en: "No"}}, {id: some, label: {en: Somewhat}}, {id: "yes", label: {en: "Yes"}}]
    - id: drugs
      type: multi
      importance: 2
      text: {en: "Which did you take this year?"}
      boxes: [{id: weed, label: {en: Weed}}, {id: pills, label: {en: Pills}}, {id: other, label: {en: Other}}]
      no_answer: true
    - {id: work, type: yes-no, text: {en: "Do you have work?"}, not_applicable: true}
    - id: vote
      text: {en: "How did you vote?"}
      choices: [{id: left, label: {en: Left}}, {id: middle, label: {en: Middle}}, {id: right, label: {en: Right}}]
      no_answer: true
    - id: move
      text: {en: "Will you move?"}
      choices: [{id: stay, label: {en: Stay}}, {id: maybe, label: {en: Maybe}}, {id: go, label: {en: Go}}]
"""
PLAIN = {
    "debt": ("no", "yes"),
    "mood": ("m0", "m1", "m2", "m3"),
    "pain": ("p0", "p1", "p2", "p3", "p4"),
    "trust": ("no", "some", "yes"),
    "work": ("yes", "no", "not-applicable"),
    "vote": ("left", "middle", "right", "no-answer"),
    "move": ("stay", "maybe", "go"),
}


def made_up(rng: Random) -> dict[str, Given]:
    """Draw the answers of one person in the format that apps pass. Smokers drink more often."""
    given: dict[str, Given] = {
        name: rng.choices(choices, weights=range(len(choices), 0, -1))[0]
        for name, choices in PLAIN.items()
    }
    given["smoke"] = rng.choices(("no", "yes"), weights=(2, 1))[0]
    weights = (1, 2, 5) if given["smoke"] == "yes" else (3, 2, 1)
    given["drink"] = rng.choices(("never", "rarely", "often"), weights=weights)[0]
    given["age"] = "no-answer" if rng.random() < 0.1 else rng.randint(18, 90)
    if given["smoke"] == "yes":
        given["stop"] = rng.choice(("easy", "mixed", "hard"))
    boxes = [name for name in ("weed", "pills", "other") if rng.random() < 0.25]
    given["drugs"] = ["no-answer"] if rng.random() < 0.1 else boxes
    return given
