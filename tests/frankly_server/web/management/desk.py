# SPDX-License-Identifier: Apache-2.0
"""A program with API keys of every role, at an office with one published survey."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frankly_server.services import Services
from frankly_server.store.tables import kept_tables

from tests.frankly_server.web.admin.office import Office, make_office

YAML = "application/yaml"


@dataclass(frozen=True)
class Desk:
    """keys : by caller; "" for no key."""

    office: Office
    keys: Mapping[str, str]

    @property
    def services(self) -> Services:
        return self.office.services

    def ask(self, method: str, path: str, by: str = "owner", **options: Any) -> Any:
        """Send a request as this caller. json, data, headers : as for the client of Flask."""
        headers = dict(options.pop("headers", {}))
        if self.keys[by]:
            headers["Authorization"] = f"Bearer {self.keys[by]}"
        client = self.office.app.test_client()
        return client.open(path, method=method, headers=headers, **options)

    def create(self, file: bytes, by: str = "owner", **headers: str) -> Any:
        """Create a survey from a file as YAML."""
        return self.ask("POST", "/v1/surveys", by, data=file, content_type=YAML, headers=headers)

    def publish(self, survey: str) -> Any:
        """Publish a draft, wait until the job ends, and return the job."""
        job = self.ask("POST", f"/v1/surveys/{survey}/jobs")
        assert job.status_code == 202, job.text
        self.wait()
        return self.ask("GET", job.headers["Location"]).get_json()

    def wait(self) -> None:
        """Wait until all publishing jobs have ended."""
        for thread in threading.enumerate():
            if thread.name == "frankly-design":
                thread.join()

    def tables(self) -> dict[str, list[Any]]:
        """Return the rows of all tables but the audit trail."""
        with self.services.database.reading("all tables") as tx:
            return {
                name: list(tx.tables.rows(name))
                for name in kept_tables()
                if name not in ("audit_events", "idempotent_requests")
            }


def make_desk(home: Path, database_url: str | None = None) -> Desk:
    """Return a desk; the survey is limited to nobody, one key to it and one to another survey."""
    office = make_office(home, database_url)
    create = office.services.access.create
    keys = {
        "": "",
        "revoked": create("owner", "revoked"),
        "reader": create("reader", "reader", "main", [office.survey]),
        "analyst": create("analyst", "analyst"),
        "admin": create("admin", "admin"),
        "owner": create("owner", "owner"),
        "this survey": create("admin", "this", "main", [office.survey]),
        "another survey": create("owner", "another", "main", ["0" * 32]),
        "foreign owner": create("owner", "foreign", "other"),
    }
    office.services.access.revoke(office.services.access.authenticate(keys["revoked"]).prefix)
    return Desk(office, keys)
