# SPDX-License-Identifier: Apache-2.0
"""Office for tests of pages: two organisations, a person in every role, and a published survey."""

import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_server.accounts import Passwords
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr
from werkzeug.datastructures import MultiDict

from tests.frankly_server.accounts.people import CHEAP
from tests.frankly_server.web.site import NOW, SURVEY
from tests.migrated import opened

PASSWORD = "correct horse battery"
ANSWERS = 400
"""Number of reports of the fixture `answered`."""
CALLERS = ("nobody", "viewer", "analyst", "admin", "owner", "foreign owner")


@dataclass(frozen=True)
class Office:
    """survey : id of the main organisation's survey. job, key, account : ids of the organisation's
    other objects."""

    services: Services
    app: Any
    survey: str
    job: str
    key: str
    account: str

    @property
    def file(self) -> str:
        """A survey file whose survey name is already taken."""
        return SURVEY.decode()

    def client(self, caller: str) -> FlaskClient:
        """Return a browser in which this caller is signed in."""
        client: FlaskClient = self.app.test_client()
        if caller != "nobody":
            email = f"{caller.replace(' ', '-')}@example.org"
            # Forms that earlier tests submitted with garbage may have locked the account.
            self.services.accounts.unlock(email)
            answer = send(client, "/admin/sign-in", email=email, password=PASSWORD)
            assert answer.status_code == 303
        return client


def token(client: FlaskClient) -> str:
    """Return the form token of a client's pages."""
    text = client.get("/admin/account", follow_redirects=True).text
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', text)
    assert found
    return found.group(1)


def without_terms(page: str) -> str:
    """Return a page's text without the links of terms to what they mean."""
    return re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", page)


def send(client: FlaskClient, path: str, **fields: Any) -> Any:
    """Send a form as a browser would."""
    return client.post(
        path, data={"csrf": token(client), **fields}, content_type="multipart/form-data"
    )


def begin(client: FlaskClient, **changes: str) -> Any:
    """Create a draft with one question by the wizard's first form; return the response."""
    form = {
        "how": "question",
        "title": "Work",
        "language": "en",
        "question": "Tired?",
        "choices": "No\nYes",
    }
    return send(client, "/admin/surveys/new", **(form | changes))


def ask(client: FlaskClient, survey: str, text: str, choices: str, **changes: str) -> Any:
    """Add a question with one choice per line to the survey at this address; return the response."""
    fields = {"id": "", "kind": "single", "place": "block", "text-en": text} | changes
    rows = [{"label-en": label, "choice": "", "was": ""} for label in choices.split("\n")]
    data = MultiDict([("csrf", token(client)), *fields.items()])
    for row in rows:
        data.update(row)
    address = f"{survey.removesuffix('/questions')}/new-question"
    return client.post(address, data=data, content_type="multipart/form-data")


def make_office(home: Path, database_url: str | None = None) -> Office:
    """Return an office with its survey published and a job that has ended; on SQLite by default."""
    settings = Settings(
        home=home, database_url=None if database_url is None else SecretStr(database_url)
    )
    services = opened(settings, FixedClock(NOW), Passwords(CHEAP))
    people = {}
    for caller in CALLERS[1:]:
        organisation, role = ("other", "owner") if caller == "foreign owner" else ("main", caller)
        address = f"{caller.replace(' ', '-')}@example.org"
        people[caller] = services.accounts.create(organisation, address, role, PASSWORD)
    services.surveys.apply(parse_definition(SURVEY))
    survey = services.surveys.publish("habits").survey_id
    job = finish_job(services, survey)
    services.access.create("analyst", "x")
    key = services.access.list()[0].prefix
    return Office(
        services, create_app(settings, services=services), survey, job, key, people["viewer"].id
    )


def finish_job(services: Services, survey: str) -> str:
    """Publish in the background, wait until the job ends, and return the job's id."""
    job = services.jobs.start(survey)
    for thread in threading.enumerate():
        if thread.name == "frankly-design":
            thread.join()
    return job
