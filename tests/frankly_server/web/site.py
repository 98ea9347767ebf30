# SPDX-License-Identifier: Apache-2.0
"""Published survey in a real application with a real database; only the clock is fixed."""

import io
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import structlog
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_protocol.problems import Problem
from frankly_server.app import create_app
from frankly_server.cli.waitress_server import Server
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from frankly_server.web import logs
from pydantic import SecretStr

from tests.migrated import migrated
from tests.survey_files import DRINKS, REGION, SMOKES, habits

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
SURVEY = habits(SMOKES, DRINKS, budget="2", strata=REGION)
_MERGED = DRINKS.replace(
    "grr", "optimal\n    objective: information\n    accept_unidentifiable: true"
)
_PRIOR = "    prior: {joint: [[10, 30, 60]], source: made up}\n"
UNIDENTIFIABLE = habits(SMOKES, _MERGED + _PRIOR, budget="2", strata=REGION)
"""The same with a mechanism that separates only “daily” from the other choices."""


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

    def release(self, item: str | None = None) -> int:
        """Release all pending reports, even if there are few; return their number.

        item : id of the survey's instructed item, if it has one.
        """
        n = 0
        with self.services.database.transaction("release") as tx:
            for row in tx.documents.versions(self.survey):
                n += tx.releases.release(
                    self.survey,
                    row.digest,
                    1,
                    "2026-06-02T00:00:00Z",
                    is_over=lambda: False,
                    item=item,
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


def make_site(home: Path, database_url: str, survey: bytes = SURVEY, name: str = "habits") -> Site:
    """Migrate, create keys, publish the survey of this name, create API keys."""
    settings = Settings(home=home, database_url=SecretStr(database_url))
    migrated(database_url).close()
    services = Services.open(settings, FixedClock(NOW))
    services.keys.init()
    services.surveys.apply(parse_definition(survey))
    published = services.surveys.publish(name)
    return Site(
        settings=settings,
        services=services,
        client=create_app(settings, services=services).test_client(),
        survey=published.survey_id,
        digest=published.digest,
        analyst_key=services.access.create("analyst", "test"),
        admin_key=services.access.create("admin", "test"),
    )


@contextmanager
def waitress(application: Any, port: int = 0, threads: int = 2) -> Iterator[str]:
    """Serve a WSGI application from a thread as `frankly serve` does; yield the origin."""
    server = Server(
        application, host="127.0.0.1", port=port, threads=threads, body_limit_bytes=2**21
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()
        thread.join()


CANARY = "canary-7f3a9"


def check_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """Assert that a response is exactly one entry of the problem table; return its object."""
    assert (answer.status_code, answer.get_json()["code"]) == (status, code), answer.data
    assert answer.content_type == "application/problem+json"
    problem = Problem.from_code(code)
    assert problem is not None
    assert (answer.get_json()["type"], answer.get_json()["title"], answer.get_json()["status"]) == (
        problem.uri,
        problem.title,
        status,
    )
    assert answer.get_json()["detail"]
    assert CANARY not in answer.text
    return dict(answer.get_json())


def operations(spec: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method.upper()): operation
        for path, item in spec["paths"].items()
        for method, operation in item.items()
    }


def check_declared(spec: dict[str, Any], path: str, method: str, answer: Any) -> None:
    """Assert that the document declares a response's status, media type, body and problem."""
    declared = operations(spec)[path, method]["responses"]
    assert str(answer.status_code) in declared, (path, answer.status_code)
    content = declared[str(answer.status_code)].get("content")
    if content is None:
        assert (answer.status_code, answer.data) == (304, b"")
        return
    kind = answer.content_type if answer.content_type in content else answer.mimetype
    assert kind in content, (path, answer.content_type)
    schema = content[kind]["schema"] | {"components": spec["components"]}
    if "json" in answer.content_type:
        jsonschema.Draft202012Validator(schema).validate(answer.get_json())
    if answer.status_code >= 400:
        assert (
            f"`{answer.get_json()['code']}`:" in declared[str(answer.status_code)]["description"]
        ), (path, answer.get_json())


class Hand:
    """A clock in seconds that tests advance."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now
