# SPDX-License-Identifier: Apache-2.0
"""Examples that embed the SDK, run as apps would run them."""

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from flask.testing import FlaskClient
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_sdk.testing import FakeServer, drop, make_survey, status

from examples.flask_app.app import create_app
from examples.questionnaire import __main__ as questionnaire

QUESTIONS = {"smokes": ["no", "yes"], "walks": ["never", "daily"]}
FORM = {"smokes": "yes", "walks": "daily", "region": "south"}


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey(QUESTIONS, strata={"region": ["north", "south"]}))


def browser(server: FakeServer, folder: Path, **options: object) -> FlaskClient:
    return create_app(
        lambda: server.open(folder / "s.db", one_person=True, **options)
    ).test_client()


def test_the_app_starts_without_network_and_opens_the_survey_later(
    server: FakeServer, tmp_path: Path
) -> None:
    server.network.online = False
    http = browser(server, tmp_path)
    for early in (http.get("/"), http.post("/", data=FORM)):
        assert (early.status_code, "cannot be opened yet" in early.text) == (503, True)
    server.network.online = True
    assert "What leaves this device" in http.get("/").text
    assert http.post("/", data=FORM).status_code == 200
    assert sum("/document" in request.url for request in server.requests) == 1, (
        "the survey must be opened only once"
    )


def test_the_page_explains_the_survey_and_sends_the_answer(
    server: FakeServer, tmp_path: Path
) -> None:
    http = browser(server, tmp_path)
    page = http.get("/").get_data(as_text=True)
    assert "What leaves this device" in page
    assert "change by at most" in page
    assert "Once sent, your answer cannot be withdrawn.</p><button>" in page
    assert page.count('type="radio"') == 6
    first_post = http.post("/", data=FORM)
    assert (first_post.status_code, "erased" in first_post.get_data(as_text=True)) == (200, True)
    assert [report.strata for report in server.reports.values()] == [{"region": "south"}]
    second_post = http.post("/", data=FORM)
    assert (second_post.status_code, "answered already" in second_post.get_data(as_text=True)) == (
        409,
        True,
    )
    assert len(server.reports) == 1


BAD_FORMS = [{}, {**FORM, "smokes": "canary"}, {**FORM, "region": ""}]


@pytest.mark.parametrize("form", BAD_FORMS, ids=range(len(BAD_FORMS)))
def test_an_incomplete_form_is_refused_and_may_be_sent_again(
    form: dict[str, str], server: FakeServer, tmp_path: Path
) -> None:
    http = browser(server, tmp_path)
    response = http.post("/", data=form)
    assert response.status_code == 400
    assert "canary" not in response.get_data(as_text=True)
    assert http.post("/", data=FORM).status_code == 200


def test_the_page_without_a_network_and_after_the_end(server: FakeServer, tmp_path: Path) -> None:
    server.network.then(*[drop()] * 99)
    assert "sent later" in browser(server, tmp_path).post("/", data=FORM).get_data(as_text=True)
    closed_server = FakeServer(server.document, authority=server.authority)
    closed_server.network.then(status(410, "closed"))
    (tmp_path / "other").mkdir()
    assert "no longer accepts" in browser(closed_server, tmp_path / "other").post(
        "/", data=FORM
    ).get_data(as_text=True)


def test_a_refusal_is_shown_and_nothing_is_sent(server: FakeServer, tmp_path: Path) -> None:
    def broken(_bits: int) -> int:
        raise OSError

    response = browser(server, tmp_path, randbits=broken).post("/", data=FORM)
    assert response.status_code == 409
    assert "no random bits" in response.get_data(as_text=True)
    assert server.reports == {}


def test_the_questionnaire_asks_until_it_is_answered(server: FakeServer, tmp_path: Path) -> None:
    printed: list[str] = []
    typed = iter(["y", "0", "two", "2", "1", "2"])
    with server.open(tmp_path / "s.db") as client:
        assert (
            questionnaire.interview(client, None, lambda _prompt: next(typed), printed.append) == 0
        )
        assert next(typed, None) is None
        typed = iter(["y", "1", "1", "1"])
        assert (
            questionnaire.interview(client, "fr", lambda _prompt: next(typed), printed.append) == 0
        )
    assert "Once sent, an answer cannot be withdrawn." in printed[0]
    assert printed[-2:] == [
        "You have answered this survey here before; the first answer stands.",
        "sent: the server has stored the first answer",
    ]
    assert [report.strata for report in server.reports.values()] == [{"region": "south"}]


def test_declining_the_questionnaire_sends_nothing(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client:
        assert questionnaire.interview(client, None, lambda _prompt: "", lambda _words: None) == 1
        assert client.flush() == []
    assert server.reports == {}


def test_the_questionnaire_as_a_command(
    server: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n1\n1\n1\n"))
    doors = SimpleNamespace(open=lambda link, store: server.open(store, link=link))
    monkeypatch.setattr(questionnaire, "Client", doors)
    assert questionnaire.main([server.link, "--store", str(tmp_path / "s.db")]) == 0
    server.network.online = False
    assert questionnaire.main([server.link, "--store", str(tmp_path / "t.db")]) == 1
    assert "Nothing was sent" in capsys.readouterr().err


@pytest.mark.slow
def test_the_offline_day_ends_with_every_answer_once(root: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "examples.offline_day"], cwd=root, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert "12:40  14 people answered" in process.stdout
    assert "16:40  10 more answered, 2 had been met before" in process.stdout
    assert "24 reports are still waiting" in process.stdout
    assert "24 reports sent" in process.stdout


def test_the_examples_ask_what_is_drawn_and_show_it_again(tmp_path: Path) -> None:
    names = [f"habit-{i}" for i in range(6)]
    server = FakeServer(make_survey({}, drawn={name: ["no", "yes"] for name in names}))
    http = browser(server, tmp_path, spread_s=0)
    pages = {http.get("/").text for _ in range(3)}
    assert len(pages) == 1
    (asked,) = (name for name in names if f'name="{name}"' in min(pages))
    assert http.post("/", data=dict.fromkeys(set(names) - {asked}, "yes")).status_code == 400
    assert http.post("/", data={asked: "yes"}).status_code == 200
    answered = http.get("/")
    assert (answered.status_code, "answered already" in answered.text) == (409, True)
    (report,) = server.reports.values()
    mechanism = server.document.blocks[0].mechanism
    assert isinstance(mechanism, AgreementMechanism)
    symbol = mechanism.check_symbol(report.symbols[0])
    drawn = [mechanism.parts[part] for _, part, _ in mechanism.drawn(symbol)]
    assert drawn == [(names.index(asked),)]
    printed: list[str] = []
    with server.open(tmp_path / "q.db", spread_s=0) as client:
        typed = iter(["y", "1"])
        assert questionnaire.interview(client, None, lambda _: next(typed), printed.append) == 0
    assert len(server.reports) == 2
