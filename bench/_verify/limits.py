# SPDX-License-Identifier: Apache-2.0
"""Cost of verifying documents at the limit of the work budget: Python, Node, and a page in Chromium."""

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from frankly_protocol.audit import report_level
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from playwright.sync_api import sync_playwright

from _verify import worst
from tests.chromium import CHROMIUM, QUIET

_HERE = Path(__file__).parent
_SOURCES = _HERE.parents[1] / "client_sdk" / "browser" / "src"
ROUNDS = 5
_OPEN = """async ({text, beside}) => {
  const [{bytesOf, digestOf}, {checkBeside}, {check}] =
    await Promise.all(["canonical", "beside", "verifier"].map((name) => import(`/${name}.js`)));
  let last = performance.now(), longest = 0;
  const look = () => {
    longest = Math.max(longest, performance.now() - last - 4);
    last = performance.now();
  };
  const looking = setInterval(look, 4);
  const began = performance.now(), bytes = bytesOf(text), digest = await digestOf(bytes);
  for await (const _ of (beside ? checkBeside : check)(bytes, digest, [0n, 1n]));
  const took = performance.now() - began;
  await new Promise((done) => setTimeout(done, 20));
  clearInterval(looking);
  return [longest, took];
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""


def judged() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows for the largest accepted documents, and for those to refuse or read quickly.

    A row has the CPU seconds of reading, and of verifying with the report's level, by language.
    """
    with _node() as ask:
        accepted = []
        for name, make, limit in worst.families():
            size, document = worst.largest(make, limit)
            accepted.append({"case": name, "n": size} | _row(document, ask))
        return accepted, [
            {"case": name} | _row(oversized, ask) for name, oversized in worst.too_large().items()
        ]


def opened() -> dict[str, list[float]]:
    """Return milliseconds of opening eight yes-or-no questions (SRLIP), and of longest freezes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(_SOURCES)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    samples: dict[str, list[float]] = {}
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            for name, beside in (("worker", True), ("page", False)):
                rounds = [_visit(browser, server.server_port, beside=beside) for _ in range(ROUNDS)]
                for figure, values in zip(("gap", "open"), zip(*rounds, strict=True), strict=True):
                    samples[f"{figure}_srlip_2^8_{name}_ms"] = list(values)
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    return samples


def _visit(browser: Any, port: int, *, beside: bool) -> list[float]:
    """Return milliseconds: the longest freeze of the page, and the whole opening."""
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{port}/hosted.css")
    seconds: list[float] = page.evaluate(
        _OPEN, {"text": worst.honest().payload().decode(), "beside": beside}
    )
    page.close()
    return seconds


@contextmanager
def _node() -> Iterator[Callable[[Path], dict[str, Any]]]:
    command = ["node", str(_HERE / "judge.mjs")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        if running.stdin is None or running.stdout is None:
            raise OSError("no pipes to node")

        def ask(path: Path) -> dict[str, Any]:
            print(path, file=running.stdin, flush=True)
            started: dict[str, Any] = json.loads(running.stdout.readline())  # type: ignore[union-attr]
            return started

        yield ask
        running.stdin.close()


def _row(document: SurveyDocument, ask: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    payload, code = document.payload(), None
    start = time.process_time()
    read = SurveyDocument.parse(payload)
    between = time.process_time()
    try:
        read.require_private()
        report_level(read)
    except DocumentRejected as error:
        code = error.code
    end = time.process_time()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(payload)
        file.flush()
        answer = ask(Path(file.name))
    if answer["code"] != code:
        raise AssertionError((answer["code"], code))
    times = {
        "python_s": end - between,
        "node_s": answer["judged"],
        "python_read_s": between - start,
        "node_read_s": answer["read"],
    }
    return {"bytes": len(payload), "verdict": code or "accepted"} | times
