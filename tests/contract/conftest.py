# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the SDK and the real server in one process, connected by a transport instead of a network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_sdk import Client, NetworkError, Policy
from frankly_sdk.testing import open_client
from frankly_sdk.transport import Reply
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

from tests.migrated import migrated
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
        self.posted.append(body)
        answer = self._answer("POST", url, body, limit)
        if self.lose:
            self.lose -= 1
            raise NetworkError("lost on the way back")
        return answer

    def close(self) -> None:
        """Nothing to close."""

    def _answer(self, method: str, url: str, body: bytes | None, limit: int) -> Reply:
        address = urlsplit(url)
        assert f"{address.scheme}://{address.netloc}" == ORIGIN
        path = f"{address.path}?{address.query}" if address.query else address.path
        content_type = "application/json" if body is not None else None
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
    database = migrated(settings.store_url())
    services = Services(settings, database, FixedClock(NOW))
    services.keys.init()
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
