# SPDX-License-Identifier: Apache-2.0
"""Python snippet of the Embed page, run unchanged with the server that generated it; its links."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import SystemClock
from frankly_sdk import AlreadyAnswered, Client, RollbackDetected
from frankly_server.accounts import Passwords
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from werkzeug.serving import make_server

from tests.frankly_server.accounts.people import CHEAP
from tests.frankly_server.web.admin.office import PASSWORD, send
from tests.migrated import opened
from tests.survey_files import DRINKS, REGION, SMOKES, habits
from tests.threads import listening

ITEM = (
    "instructed: {id: check, text: {en: 'Choose the second.'}, answer: b, "
    "choices: [{id: a, label: {en: First}}, {id: b, label: {en: Second}}]}\n"
)
# Name -> the survey file.
FILES = {
    "questions alone": habits(SMOKES, DRINKS, budget="2", window=""),
    "public questions, and an invitation": habits(
        SMOKES, budget="1", window="", strata=REGION + "tokens: {kind: invite}\n"
    ),
    "an item": habits(SMOKES, budget="1", window="", strata=ITEM),
    "public questions, and an item": habits(SMOKES, budget="1", window="", strata=REGION + ITEM),
}


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """The services of a server that is listening."""
    server = make_server("127.0.0.1", 0, app=lambda _environ, _start: [], threaded=True)
    settings = Settings(home=tmp_path, public_url=f"http://127.0.0.1:{server.server_port}")
    services = opened(settings, SystemClock(), Passwords(CHEAP))
    server.app = create_app(settings, services=services)
    with listening(server):
        yield services
    services.close()


@pytest.mark.parametrize("asked", FILES)
def test_the_python_of_the_page_runs(
    asked: str,
    services: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    services.surveys.apply(parse_definition(FILES[asked]))
    published = services.surveys.publish("habits")
    services.accounts.create("main", "viewer@example.org", "viewer", PASSWORD)
    client = create_app(services.settings, services=services).test_client()
    send(client, "/admin/sign-in", email="viewer@example.org", password=PASSWORD)
    page = client.get(f"/admin/surveys/{published.survey_id}/embed").text
    blocks = [
        html.unescape(snippet)
        for snippet in re.findall(r"<pre data-copy>(.*?)</pre>", page, re.DOTALL)
    ]
    (program,) = [block for block in blocks if block.startswith("from frankly_sdk")]
    names: dict[str, Any] = (
        {"invite": services.invites.make("habits", 1)[0]} if "token=" in program else {}
    )
    assert bool(names) == ("invitation" in asked)
    device = tmp_path / "device"
    device.mkdir()
    monkeypatch.chdir(device)
    exec(program, names)
    assert "Do you smoke?" in capsys.readouterr().out
    assert names["receipt"].code == "accepted"


def test_links_of_two_versions_on_devices(services: Services, tmp_path: Path) -> None:
    """What the page says of earlier links is true of devices."""
    file = FILES["questions alone"].decode()
    services.surveys.apply(parse_definition(file.encode()))
    first = services.surveys.publish("habits").link
    services.surveys.apply(parse_definition(file.replace("Do you smoke?", "Do you vape?").encode()))
    second = services.surveys.publish("habits").link
    answers = {"smokes": "no", "drinks": "never"}
    with Client.open(first, store=str(tmp_path / "first.db"), spread_s=0) as device:
        assert "Do you smoke?" in str(device.survey.explain())
        assert device.answer(answers).code == "accepted"
    with (
        Client.open(second, store=str(tmp_path / "first.db"), spread_s=0) as device,
        pytest.raises(AlreadyAnswered),
    ):
        device.answer(answers)
    with Client.open(second, store=str(tmp_path / "second.db"), spread_s=0):
        pass
    with pytest.raises(RollbackDetected):
        Client.open(first, store=str(tmp_path / "second.db"), spread_s=0)
