# SPDX-License-Identifier: Apache-2.0
"""A client that openapi-python-client makes from docs/openapi.json runs a survey from its file to its archive."""

import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from frankly_protocol.clock import SystemClock
from frankly_sdk import Client
from frankly_server.app import create_app
from frankly_server.settings import Settings
from pydantic import SecretStr

from tests.frankly_server.web.site import captured_logs, operations, waitress
from tests.migrated import opened
from tests.ports import free_port
from tests.survey_files import SMOKES, habits

PACKAGE = "frankly_client"
CONFIG = f"post_hooks: []\npackage_name_override: {PACKAGE}\n"
WITHOUT = re.compile(r"parsing (\S+ \S+) within \w+\. Endpoint will not be generated")
# So high that the shares say what was answered: of 60 answers, 0.7 are changed on average.
FILE = yaml.safe_load(
    habits(SMOKES.replace('epsilon: "1"', 'epsilon: "4.5"'), budget="4.5", window="")
)
PEOPLE, YES = 60, 20
PATIENCE_S, PAUSE_S = 120.0, 0.05
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Manager:
    """A program that knows an address, an API key and the generated package, nothing of the server."""

    client: Any
    tags: Mapping[str, str]

    def ask(self, operation: str, *path: str, status: int = 200, **given: Any) -> Any:
        """Carry out an operation; return the object of its response, whose status is `status`."""
        answer = module(self.tags[operation], operation).sync_detailed(
            *path, client=self.client, **given
        )
        assert answer.status_code == status, answer.content
        return answer.parsed

    def move(self, survey: str, move: str) -> str:
        """Change the state of a survey; return its new state."""
        body = model("MoveRequest", {"move": move})
        return str(self.ask("move_survey", survey, body=body).state)


def module(tag: str, operation: str) -> Any:
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{operation}")


def model(name: str, values: Mapping[str, Any]) -> Any:
    return getattr(importlib.import_module(f"{PACKAGE}.models"), name).from_dict(values)


@pytest.fixture(scope="module")
def document(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "docs" / "openapi.json").read_bytes()))


@pytest.fixture(scope="module")
def generated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Make the package, which can be imported afterwards; yield what the generator said."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "config.yaml").write_text(CONFIG)
    made = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate"),
            *("--path", str(root / "docs" / "openapi.json")),
            *("--output-path", str(folder / "client"), "--config", str(folder / "config.yaml")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    said = made.stdout + made.stderr
    assert made.returncode == 0, said
    sys.path.insert(0, str(folder / "client"))
    yield said
    sys.path.remove(str(folder / "client"))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.usefixtures("generated")
def test_every_operation_with_a_key_is_in_the_package(document: dict[str, Any]) -> None:
    keyed = [
        (operation["tags"][0].lower(), operation["operationId"])
        for operation in operations(document).values()
        if operation.get("security")
    ]
    assert len(keyed) == 36
    for tag, operation in keyed:
        assert callable(module(tag, operation).sync), operation
        assert callable(module(tag, operation).sync_detailed), operation


def test_the_generator_leaves_out_only_what_a_witness_sends(generated: str) -> None:
    """Cosignatures are plain text, which this generator cannot send; no client of surveys needs them."""
    assert WITHOUT.findall(generated) == ["POST /v1/log/cosignatures"]
    assert "Unable to process schema" not in generated


class Daytime:
    """The system's clock, three hours late around midnight, when nobody can ask for a release."""

    def now(self) -> datetime:
        now = SystemClock().now()
        return now - timedelta(hours=3) if now.hour in (22, 23, 0, 1) else now


@contextmanager
def served(home: Path) -> Iterator[tuple[str, str]]:
    """Serve an empty server; yield its address and an owner's key, as the operator gives them."""
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    settings = Settings(
        home=home, database_url=SecretStr(f"sqlite:///{home / 'frankly.db'}"), public_url=origin
    )
    services = opened(settings, Daytime())
    key, app = services.access.create("owner", "scripts"), create_app(settings, services=services)
    with closing(services), waitress(app, port, threads=4), captured_logs():
        yield origin, key


@pytest.fixture
def manager(generated: str, document: dict[str, Any], tmp_path: Path) -> Iterator[Manager]:
    tags = {
        one["operationId"]: one["tags"][0].lower()
        for one in operations(document).values()
        if "tags" in one
    }
    with served(tmp_path) as (origin, key):
        authenticated = importlib.import_module(PACKAGE).AuthenticatedClient
        with authenticated(base_url=origin, token=key) as client:
            yield Manager(client, tags)


def test_a_survey_from_its_file_to_its_archive(manager: Manager, tmp_path: Path) -> None:
    tried = manager.ask("dry_run", body=model("SurveyFile", FILE))
    assert (tried.status, tried.survey, [one.id for one in tried.blocks]) == (
        *("created", None),
        ["smokes"],
    )
    assert manager.ask("surveys", drafts="true").surveys == [], "a dry run stores nothing"

    survey = created(manager)
    assert published(manager, survey).is_new
    link = manager.ask("survey", survey).link
    assert answered(link, tmp_path) == PEOPLE * ["sent"]
    assert manager.ask("survey", survey).n == 0, "not released yet"

    assert manager.ask("release", survey).released == PEOPLE
    assert manager.ask("releases", survey).n == PEOPLE
    check_estimates(manager.ask("estimates", survey))

    assert manager.move(survey, "pause") == "paused"
    assert manager.move(survey, "resume") == "live"
    assert manager.move(survey, "close") == "closed"
    assert answered_late(manager, survey) == (410, "closed")
    assert manager.ask("survey", survey).state == "closed"
    assert manager.move(survey, "archive") == "archived"
    assert manager.ask("surveys").surveys[0].n == PEOPLE


def created(manager: Manager) -> str:
    """Create the survey, twice with one idempotency key; return its id."""
    first, again = (
        manager.ask(
            "create_survey", body=model("SurveyFile", FILE), idempotency_key="one", status=201
        )
        for _ in range(2)
    )
    assert first == again
    assert first.state == "draft"
    return str(first.survey)


def published(manager: Manager, survey: str) -> Any:
    """Publish in the background; return the job, which is done."""
    job, until = manager.ask("publish", survey, status=202), time.monotonic() + PATIENCE_S
    while job.state == "running":
        assert time.monotonic() < until
        time.sleep(PAUSE_S)
        job = manager.ask("job", survey, job.job)
    assert job.state == "done", job
    return job


def answered_late(manager: Manager, survey: str) -> tuple[int, str]:
    """Send a valid report; return the status and the code of the refusal.

    Sent by the client's own connection, because the generated module for reports does not import.
    """
    [version] = manager.ask("versions", survey).versions
    report = {
        "v": 1,
        "doc": version.digest,
        "id": f"{1:032x}",
        "y": [0],
        "strata": {},
        "token": None,
    }
    answer = manager.client.get_httpx_client().post(f"/v1/surveys/{survey}/reports", json=report)
    return answer.status_code, model("ProblemDetails", answer.json()).code


def answered(link: str, folder: Path) -> list[str]:
    """Answer for 60 people on one device with the SDK for Python; return what became of the reports."""
    people: list[tuple[str, dict[str, str], dict[str, str]]] = [
        (f"person {i}", {"smokes": "yes" if i < YES else "no"}, {}) for i in range(PEOPLE)
    ]
    with Client.open(link, store=folder / "device.db", spread_s=0) as client:
        assert all(row.status == "sealed" for row in client.randomise_many(people))
        return [receipt.status for receipt in client.flush(PATIENCE_S)]


def check_estimates(estimates: Any) -> None:
    """The shares are those of all released reports, and their intervals hold what was answered."""
    [question] = estimates.questions
    assert (estimates.n, question.n, question.status) == (PEOPLE, PEOPLE, "ok")
    shares = {row.choice: row for row in question.rows}
    assert shares.keys() == {"no", "yes"}
    assert sum(row.estimate for row in shares.values()) == pytest.approx(1)
    yes = shares["yes"]
    assert 0 < yes.low < yes.estimate < yes.high < 1
    assert yes.low < YES / PEOPLE < yes.high
    assert yes.high - yes.low < 0.3
