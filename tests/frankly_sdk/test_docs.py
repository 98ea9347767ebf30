# SPDX-License-Identifier: Apache-2.0
"""Pages docs/errors.md, which is generated from the code, and docs/sdk.md, whose code runs.

After a change to the problem table or to an error, run ``python -m tests.frankly_sdk.test_docs``.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import frankly_protocol.errors
import frankly_sdk.aio
import frankly_sdk.cli
import frankly_sdk.errors
import pytest
from frankly_protocol.errors import FranklyError
from frankly_protocol.problems import Problem
from frankly_sdk.events import EVENTS
from frankly_sdk.testing import FakeServer, make_survey

from tests.faults.servers import site

ROOT = Path(__file__).resolve().parents[2]
PAGE, GUIDE, EMBED = (ROOT / "docs" / name for name in ("errors.md", "sdk.md", "embed.md"))
HEAD = """# Errors

This page is for developers who handle errors. It lists the errors of the SDK, the problems that a server
reports, and the exit codes of `frankly-sdk`. It is generated from the code by `tests/frankly_sdk/test_docs.py`;
do not edit.

No error contains an answer, a symbol or a key, in its text or in its attributes.

## Errors of the SDK

Each error is a `FranklyError` with `code` (stable), `detail` (what is wrong, how to fix it) and `field`.
`Client.answer` raises only these; if the server cannot be reached, it returns a `Receipt`.

| class | is a | when |
|---|---|---|
"""
TABLE = """
## Problems of the server

Problems are `application/problem+json` (RFC 9457) with `type` = `urn:frankly:problem:CODE`. A device
takes such a response as final only if its code and status are in the same row. After 408, 425, 429, 5xx and
`too_early` it sends the report again.

| code | status | title |
|---|---|---|
"""
COMMAND = """
## Exit codes of `frankly-sdk`

| status | raised by |
|---|---|
| 2 | an invalid command line |
"""


def lines() -> Iterator[str]:
    yield HEAD
    for kind in _kinds():
        summary = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
        (base,) = kind.__bases__
        yield f"| `{kind.__name__}` | `{base.__name__}` | {summary} |\n"
    yield TABLE
    for problem in Problem:
        yield f"| `{problem.code}` | {problem.status} | {problem.title} |\n"
    yield COMMAND
    for kinds, status in frankly_sdk.cli._EXITS:
        yield f"| {status} | {', '.join(f'`{kind.__name__}`' for kind in kinds)} and their kinds |\n"


def _kinds() -> list[type[FranklyError]]:
    modules = (frankly_protocol.errors, frankly_sdk.errors)
    classes = [
        kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)
    ]
    return [
        kind
        for kind in dict.fromkeys(classes)
        if issubclass(kind, FranklyError) and kind is not FranklyError
    ]


def test_the_error_reference_equals_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == "".join(lines())


def test_every_error_can_be_imported_from_frankly_sdk() -> None:
    kinds: list[type[FranklyError]] = [FranklyError, *_kinds()]
    for kind in kinds:
        assert getattr(frankly_sdk, kind.__name__) is kind
        assert kind.__name__ in frankly_sdk.__all__


def test_the_guides_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block of docs/sdk.md runs, in order, with a server in this process."""
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    drawn = FakeServer(make_survey({}, drawn={f"q{i}": ["no", "yes"] for i in range(10)}))
    questions = {"a": ["no", "yes"], "b": ["no", "yes"]}
    armed = FakeServer(make_survey(questions, arms={"first": ["a"], "second": ["b"]}))

    def opened(link: str, store: str, **options: Any) -> frankly_sdk.Client:
        if store == "third.db":
            return drawn.open(tmp_path / store, **options)
        if store == "arms.db":
            return armed.open(tmp_path / store, **options)
        return server.open(tmp_path / store, link=link, **options)

    async def opened_aio(link: str, store: str, **options: Any) -> frankly_sdk.aio.Client:
        return await server.open_aio(tmp_path / store, link=link, **options)

    monkeypatch.setattr(frankly_sdk, "Client", SimpleNamespace(open=opened))
    monkeypatch.setattr(frankly_sdk.aio, "Client", SimpleNamespace(open=opened_aio))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 9
    for block in blocks:
        names: dict[str, Any] = {"link": server.link, "show": lambda *_words: None}
        exec(compile(block, GUIDE.name, "exec"), names)
        if "test_my_app" in names:
            names["test_my_app"](tmp_path)
    assert (len(server.reports), len(drawn.reports), len(armed.reports)) == (6, 1, 1)


@pytest.fixture
def create_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return `create_app` of the page that shows how to embed a survey."""
    (app,) = re.findall(
        r"^```python\n(# app\.py\n.*?)^```",
        EMBED.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    (tmp_path / "embedded_app.py").write_text(app, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("embedded_app", None)
    return importlib.import_module("embedded_app").create_app


def test_the_embedded_app_starts_without_network_and_recovers(
    tmp_path: Path, create_app: Any
) -> None:
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    server.network.online = False
    page = create_app(lambda: server.open(tmp_path / "a.db", one_person=True)).test_client()
    early = page.get("/")
    assert (early.status_code, early.text.startswith("Nothing is sent: ")) == (409, True)
    server.network.online = True
    assert "smokes?" in page.get("/").text
    assert page.post("/", data={"smokes": "yes"}).text == "sent"
    server.network.online = False
    later = create_app(lambda: server.open(tmp_path / "a.db", one_person=True)).test_client()
    assert "already been answered" in later.post("/", data={"smokes": "no"}).text
    assert len(server.reports) == 1


def test_the_embedded_app_asks_what_is_drawn_and_what_is_public(
    tmp_path: Path, create_app: Any
) -> None:
    survey = make_survey(
        {}, drawn={"smokes": ["no", "yes"], "drinks": ["no", "yes"]}, strata={"region": ["n", "s"]}
    )
    server = FakeServer(survey)
    page = create_app(lambda: server.open(tmp_path / "a.db", one_person=True)).test_client()
    asked = re.findall(r"<legend>(\w+)", page.get("/").text)
    assert asked[0] == "region"
    assert set(asked[1:]) < {"smokes", "drinks"}
    missing = page.post("/", data=dict.fromkeys(asked[1:], "yes"))
    assert (missing.status_code, "region" in missing.text, server.reports) == (409, True, {})
    taken = page.post("/", data=dict.fromkeys(asked[1:], "yes") | {"region": "s"}).text
    assert taken in ("sent", "queued")  # a report about what was drawn leaves at a random moment


def test_the_embedded_app_runs_against_a_real_server_in_the_folder_of_its_rehearsal(
    tmp_path: Path,
    create_app: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The rehearsal charges nothing to the person; a missing or wrong answer is told, and draws nothing."""
    (rehearsal,) = re.findall(
        r"^```python\n(# try_app\.py\n.*?)^```",
        EMBED.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "app", SimpleNamespace(create_app=create_app))
    exec(compile(rehearsal, "try_app.py", "exec"), {})
    assert capsys.readouterr().out.startswith("sent\n")
    questions = {name: ["no", "yes"] for name in ("smokes", "walks", "drinks", "reads")}
    with site(questions) as served:  # costs four nats of the five
        monkeypatch.setenv("SURVEY_LINK", served.link)
        http = create_app().test_client()
        for wrong in ({"smokes": "yes"}, dict.fromkeys(questions, "c4n4ry")):
            refused = http.post("/", data=wrong)
            assert (refused.status_code, "c4n4ry" in refused.text) == (409, False)
        assert http.post("/", data=dict.fromkeys(questions, "yes")).text == "sent"
        assert sum(request.startswith(b"POST") for request in served.requests) == 1


def test_the_guide_names_every_event_and_option() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for name in (
        *EVENTS,
        *(p for p in inspect.signature(frankly_sdk.Client.open).parameters if p != "cls"),
    ):
        assert f"`{name}`" in text, name


if __name__ == "__main__":
    PAGE.write_text("".join(lines()), encoding="utf-8")
