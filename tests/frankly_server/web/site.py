# SPDX-License-Identifier: Apache-2.0
"""Published survey in a real application with a real database; only the clock is fixed."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from frankly_server.web import logs
from pydantic import SecretStr

from tests.migrated import migrated
from tests.survey_files import DRINKS, REGION, SMOKES, habits

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
SURVEY = habits(SMOKES, DRINKS, budget="2", strata=REGION)


@dataclass(frozen=True)
class Site:
    """An application with one published survey, with methods to send requests."""

    settings: Settings
    services: Services
    client: FlaskClient
    survey: str
    digest: str
    analyst_key: str
    admin_key: str

    @property
    def reports_path(self) -> str:
        return f"/v1/surveys/{self.survey}/reports"

    @property
    def document_path(self) -> str:
        return f"/v1/surveys/{self.survey}/document"

    @property
    def estimates_path(self) -> str:
        return f"/v1/surveys/{self.survey}/estimates"

    def at(self, now: datetime) -> "Site":
        """Return the same survey on a server whose clock is at `now`."""
        services = Services.open(self.settings, FixedClock(now))
        return replace(
            self,
            services=services,
            client=create_app(self.settings, services=services).test_client(),
        )

    def report(self, number: int = 1, **changes: Any) -> dict[str, Any]:
        """Return a valid report with some fields replaced."""
        body = {"v": 1, "doc": self.digest, "id": f"{number:032x}", "y": [number % 2, number % 3],
                "strata": {"region": "north"}, "token": None}  # fmt: skip
        return body | changes

    def release(self) -> int:
        """Release all pending reports, even if there are few; return their number."""
        n = 0
        with self.services.database.transaction("release") as tx:
            for row in tx.documents.versions(self.survey):
                n += tx.releases.release(
                    self.survey, row.digest, 1, "2026-06-02T00:00:00Z", is_over=False
                )
        return n

    def send(self, report: Any, **options: Any) -> Any:
        """POST a report, as a JSON value or as bytes."""
        data = report if isinstance(report, bytes) else json.dumps(report).encode()
        return self.client.post(
            self.reports_path, data=data, **{"content_type": "application/json", **options}
        )

    def estimates(self, query: str = "", key: str | None = None) -> Any:
        """GET the estimates with the analyst's key."""
        headers = {"Authorization": f"Bearer {key or self.analyst_key}"}
        return self.client.get(self.estimates_path + query, headers=headers)

    def counts(self, query: str = "", key: str | None = None) -> Any:
        """GET the counts with the analyst's key."""
        headers = {"Authorization": f"Bearer {key or self.analyst_key}"}
        return self.client.get(f"/v1/surveys/{self.survey}/counts{query}", headers=headers)


@contextmanager
def captured_logs() -> Iterator[io.StringIO]:
    """Log as the entry points do, but to a string; restore the previous configuration afterwards."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    logs.configure(stream)
    yield stream
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


def make_site(home: Path, database_url: str, survey: bytes = SURVEY) -> Site:
    """Migrate, create keys, publish the survey, create API keys."""
    settings = Settings(home=home, database_url=SecretStr(database_url))
    migrated(database_url).close()
    services = Services.open(settings, FixedClock(NOW))
    services.keys.init()
    services.surveys.apply(parse_definition(survey))
    published = services.surveys.publish("habits")
    return Site(
        settings=settings,
        services=services,
        client=create_app(settings, services=services).test_client(),
        survey=published.survey_id,
        digest=published.digest,
        analyst_key=services.access.create("analyst", "test"),
        admin_key=services.access.create("admin", "test"),
    )
