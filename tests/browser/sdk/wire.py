# SPDX-License-Identifier: Apache-2.0
"""Test server for a survey and the SDK's files on one local port; it records requests and fails on demand."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.trust import write_chain
from playwright.sync_api import Page

from tests.frankly_protocol.asked import asked
from tests.frankly_protocol.samples import keys_document, sealed, sealed_keys
from tests.frankly_sdk.fakes import payable_survey
from tests.threads import listening

_PACKAGE = Path(__file__).resolve().parents[3] / "client_sdk" / "browser"
FOLDERS = {"src": _PACKAGE / "src", "bundle": _PACKAGE / "bundle"}
SERVED = {"/sdk/": FOLDERS["src"], "/bundle/": FOLDERS["bundle"]}
STRICT = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types frankly"
)
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


def program(name: str) -> str:
    """Return a function that a test runs in a page."""
    return (Path(__file__).parent / "programs" / f"{name}.js").read_text("utf-8")


@dataclass
class Wire:
    """steps : what happens to the next reports: ``drop`` (not received), ``lose`` (stored, no
    response), a status, or ``pass``, also after the last step. posted : bodies received. pages :
    files by path, without a policy. answers : type and content of other paths, None for 404.
    heard : called with the path of every GET before it is answered."""

    origin: str = ""
    documents: dict[str, SurveyDocument] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    posted: list[bytes] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    pages: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, tuple[str, bytes | None]] = field(default_factory=dict)
    heard: Callable[[str], object] = str
    arrived: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, document: SurveyDocument | None = None, survey_id: str = "ab" * 16) -> str:
        """Serve a document whose reports are sent to this server; return the pinned link."""
        original = document or payable_survey()
        served = replace(
            original, survey=survey_id, collect_url=f"{self.origin}/v1/surveys/{survey_id}/reports"
        )
        self.documents[survey_id] = served
        return f"{self.origin}/s/{survey_id}#{served.digest.replace(':', '=')}"

    def take(self, body: bytes) -> tuple[int | None, bytes]:
        """Return the status and body of the response to a report; a status of None closes the connection."""
        with self._lock:
            self.posted.append(body)
            self.arrived.set()
            step = self.steps.pop(0) if self.steps else "pass"
            if step == "drop":
                return None, b""
            if step.isdigit():
                return int(step), b"{}"
            report = json.loads(body)
            stored_body = self.stored.setdefault(report["id"], body)
        assert stored_body == body
        if step == "lose":
            return None, b""
        return 201, json.dumps({"status": "accepted", "id": report["id"]}).encode()


@contextmanager
def running(wire: Wire) -> Iterator[Wire]:
    """Serve from a thread on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_arguments: Any) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            wire.requests.append((self.path, dict(self.headers.items())))
            wire.heard(self.path)
            kind, body = _content(wire, self.path)
            self.reply(200 if body is not None else 404, body or b"", kind)

        def do_POST(self) -> None:
            wire.requests.append((self.path, dict(self.headers.items())))
            status, body = wire.take(self.rfile.read(int(self.headers["Content-Length"])))
            if status is None:
                self.close_connection = True
            else:
                self.reply(status, body, "application/json")

        def reply(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if self.path not in wire.pages:
                self.send_header("Content-Security-Policy", STRICT)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with listening(server) as wire.origin:
        yield wire


def _content(wire: Wire, path: str) -> tuple[str, bytes | None]:
    route = path.partition("?")[0]
    if route in wire.pages:
        return TYPES[Path(route).suffix], wire.pages[route]
    if route in wire.answers:
        return wire.answers[route]
    if route == "/blank.html":
        return "text/html", b"<!doctype html><html lang=en><title>A host page</title><main></main>"
    for prefix, folder in SERVED.items():
        if route.startswith(prefix) and (folder / route.removeprefix(prefix)).is_file():
            return TYPES[Path(route).suffix], (folder / route.removeprefix(prefix)).read_bytes()
    if route == "/v1/keys":
        return "application/json", sealed_keys(keys_document())
    if route == "/v1/keys/chain":
        return "application/json", write_chain([_content(wire, "/v1/keys")[1] or b""])
    for name, document in wire.documents.items():
        if route == f"/v1/surveys/{name}/document":
            return "application/json", sealed(document.payload())
    return "application/json", None


ASKED = asked()
SETTLE = """async ({payload, given}) => {
  const [{bytesOf, digestOf}, {readSurvey}, {questionsOf}, {settled}, {describe, speak}, {inWords}] = await Promise.all(
    ["canonical", "documents", "survey", "answers", "errors", "texts"].map((name) => import(`/sdk/${name}.js`)));
  speak(inWords);
  const bytes = bytesOf(payload), questions = questionsOf(await readSurvey(bytes, await digestOf(bytes)));
  return given.map((one) => {
    try {
      const chosen = settled(one, questions);
      return {chosen, again: settled(chosen, questions)};
    } catch (error) {
      return {code: error.code ?? String(error), field: error.field, valid: error.valid, message: error.message};
    }
  });
}"""


def settle(page: Page, given: list[Any]) -> list[dict[str, Any]]:
    """Settle each of these answers in the browser for the survey with every way of answering."""
    answers: list[dict[str, Any]] = page.evaluate(
        SETTLE, {"payload": ASKED.payload().decode(), "given": given}
    )
    return answers
