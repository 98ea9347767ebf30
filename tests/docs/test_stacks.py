# SPDX-License-Identifier: Apache-2.0
"""Recipes of docs/stacks.md, run unchanged with a server in this process."""

import ast
import asyncio
import importlib
import inspect
import json
import queue
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import frankly_sdk
import frankly_sdk.aio
import pytest
from frankly_sdk.testing import FakeServer, drop, make_survey

from tools.blocks import blocks


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}))


@pytest.fixture
def recipe(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that saves the page's files and imports one file."""
    page = (root / "docs" / "stacks.md").read_text(encoding="utf-8")
    files = {block.name: block.body for block in blocks(page) if block.name is not None}
    assert len(files) == 6
    for name, body in files.items():
        assert name is not None
        assert len([line for line in body.splitlines()[1:] if line.strip()]) <= 25, name
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURVEY_LINK", "from the admin")
    yield importlib.import_module
    for name in files:
        sys.modules.pop(str(name).removesuffix(".py"), None)


class Asgi:
    """A client that calls an ASGI app directly, without a server or a socket."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        """Return the status and JSON body of one response."""
        sent: list[dict[str, Any]] = []
        scope = {"type": "http", "http_version": "1.1", "method": method, "path": path,
                 "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http",
                 "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
                 "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent)
        return sent[0]["status"], json.loads(content)


def test_fastapi(
    server: FakeServer, recipe: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(_link: str, store: str, **options: Any) -> frankly_sdk.aio.Client:
        return await server.open_aio(store, **options)

    module = recipe("fastapi_app")
    monkeypatch.setattr(module.Client, "open", opened)

    async def visit() -> None:
        http = Asgi(module.app)
        async with module.lifespan(module.app):
            status, page = await http.call("GET", "/")
            assert (status, "is made here, on this device" in page["explanation"]) == (200, True)
            for wrong in ({}, {"smokes": "c4n4ry"}):
                reply = await http.call("POST", "/answers", json.dumps(wrong).encode())
                assert reply == (409, {"detail": "unknown_choice"})
            answers = [json.dumps({"smokes": choice}).encode() for choice in ("yes", "no")]
            replies = [await http.call("POST", "/answers", body) for body in answers]
            assert replies == [(200, {"status": "sent"})] * 2

    asyncio.run(visit())
    assert len(server.reports) == 1


def test_flask(
    server: FakeServer, recipe: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = recipe("flask_app")
    monkeypatch.setattr(
        module.Client, "open", lambda _link, store, **options: server.open(store, **options)
    )
    http = module.app.test_client()
    server.network.online = False
    assert http.get("/").status_code == 503
    server.network.online = True
    assert "is made here, on this device" in http.get("/").get_json()["explanation"]
    for wrong in ({}, {"smokes": "c4n4ry"}):
        refused = http.post("/", data=wrong)
        assert (refused.status_code, refused.get_json()) == (409, {"code": "unknown_choice"})
    for choice in ("yes", "no"):
        reply = http.post("/", data={"smokes": choice})
        assert (reply.status_code, reply.get_json()) == (200, {"status": "sent"})
    module.client().close()
    assert len(server.reports) == 1


def test_django(
    server: FakeServer, recipe: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    import django
    from django.conf import settings
    from django.test import Client as Http

    if not settings.configured:
        settings.configure(ROOT_URLCONF="kiosk.urls", ALLOWED_HOSTS=["*"], USE_TZ=True)
        django.setup()
    module = recipe("survey_views")
    monkeypatch.setattr(
        module.Client, "open", lambda _link, store, **options: server.open(store, **options)
    )
    http = Http(enforce_csrf_checks=True)
    server.network.online = False
    assert http.get("/").status_code == 503
    server.network.online = True
    page = http.get("/").json()
    assert "is made here, on this device" in page.pop("explanation")
    for wrong in ({}, {"smokes": "c4n4ry"}):
        refused = http.post("/", wrong | page)
        assert (refused.status_code, refused.json()) == (409, {"code": "unknown_choice"})
    for choice in ("yes", "no"):
        reply = http.post("/", {"smokes": choice} | page)
        assert (reply.status_code, reply.json()) == (200, {"status": "sent"})
    module.client().close()
    assert len(server.reports) == 1


def cells(root: Path) -> list[str]:
    """Return the cells of the page's notebook."""
    page = (root / "docs" / "stacks.md").read_text(encoding="utf-8")
    part = page.partition("## A notebook\n")[2].partition("\n## ")[0]
    return [block.body for block in blocks(part) if block.language == "python"]


async def run_cell(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does, in a running loop; return the value of its last line."""
    *body, last = ast.parse(cell).body
    assert isinstance(last, ast.Expr)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for mode, part in (("exec", ast.Module(body, [])), ("eval", ast.Expression(last.value))):
        code = compile(part, "cell", mode, flags=flags)
        value = eval(code, names)
        if inspect.isawaitable(value):
            value = await value
    return value


def test_a_notebook(
    server: FakeServer, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(_link: str, store: str, **options: Any) -> frankly_sdk.aio.Client:
        return await server.open_aio(tmp_path / store, **options)

    monkeypatch.setenv("SURVEY_LINK", server.link)
    monkeypatch.setattr(
        frankly_sdk.Client,
        "open",
        lambda _link, store, **options: server.open(tmp_path / store, **options),
    )
    monkeypatch.setattr(frankly_sdk.aio.Client, "open", opened)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: "yes")
    made = cells(root)
    assert len(made) == 3
    names: dict[str, Any] = {}

    async def visit() -> list[Any]:
        return [await run_cell(cell, names) for cell in made]

    survey, *receipts = asyncio.run(visit())
    assert [receipt.status for receipt in receipts] == ["sent", "sent"]
    assert len(repr(survey)) < 100
    assert "is made here, on this device" in survey._repr_html_()
    assert "yes" not in {value for name, value in names.items() if isinstance(value, str)}
    with pytest.raises(frankly_sdk.AlreadyAnswered):
        asyncio.run(run_cell(made[1], names))
    names["client"].close()
    assert len(server.reports) == 2


class Widget:
    """A label or button without a display."""

    made: list["Widget"] = []  # noqa: RUF012  reset by each test

    def __init__(self, _window: Any, text: str = "", command: Any = None) -> None:
        self.text, self.press = text, command
        Widget.made.append(self)

    def configure(self, text: str) -> None:
        """Set the text."""
        self.text = text

    def pack(self) -> None:
        """Do nothing: there is no window."""


class Loop:
    """The event loop of a Python without tkinter: Debian has it in a package of its own."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, Callable[[], object]]] = []

    def after(self, ms: int, call: Callable[[], object]) -> None:
        """Call a function in `update`, after some milliseconds."""
        self._waiting.append((time.monotonic() + ms / 1000, call))

    def update(self) -> None:
        """Call what is due."""
        waiting, self._waiting = self._waiting, []
        for due, call in waiting:
            if due <= time.monotonic():
                call()
            else:
                self._waiting.append((due, call))

    def eval(self, _: str) -> None:
        """Cancel everything, which is all that the test evaluates."""
        self._waiting.clear()


@pytest.fixture
def tkinter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return tkinter, or what stands in for it, without a display: labels and buttons are stand-ins."""
    try:
        module = importlib.import_module("tkinter")
    except ImportError:
        module = ModuleType("tkinter")
        monkeypatch.setitem(sys.modules, "tkinter", module)
        monkeypatch.setattr(module, "Tcl", Loop, raising=False)
    for name in ("Label", "Button"):
        monkeypatch.setattr(module, name, Widget, raising=False)
    return module


def test_a_desktop_app(
    server: FakeServer,
    recipe: Callable[[str], ModuleType],
    tkinter: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event loop is tkinter's own where there is one, from an interpreter without Tk."""
    monkeypatch.setattr(Widget, "made", [])
    events: queue.Queue[Any] = queue.Queue()
    window = tkinter.Tcl()
    server.network.then(drop())
    with server.open("answers.db", background=True, on_event=events.put) as client:
        recipe("desktop_app").show(window, client, events)
        explanation, no, yes, status = Widget.made
        assert ("is made here, on this device" in explanation.text, no.text, yes.text) == (
            True,
            "no",
            "yes",
        )
        yes.press()
        assert status.text == "queued"
        until = time.monotonic() + 60
        while status.text != "sent":
            window.update()
            server.clock.advance(timedelta(seconds=0.1))
            time.sleep(0.005)
            assert time.monotonic() < until
        no.press()
        assert status.text == "sent"
    window.eval("foreach id [after info] {after cancel $id}")
    assert len(server.reports) == 1
