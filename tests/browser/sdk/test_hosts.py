# SPDX-License-Identifier: Apache-2.0
"""The contract with hosts (docs/hosts.md): a page that keeps all that it gets has no answer."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Playwright, Request

from tests.browser.sdk.reports import AT
from tests.browser.sdk.wire import Wire, program
from tests.chromium import CHROMIUM, QUIET
from tests.frankly_protocol.asked import AGE, DRUGS, WORK, asked

FIRST = 7_310_058_204_000
"""The first number that is typed: no other text of the test contains its first nine digits."""
MARK = str(FIRST)[:9]
SURVEY = asked(AGE, WORK, *DRUGS)
DEFAULT_COUNT, FULL_COUNT = 30, 10_000


class Seen:
    """What leaves a page: requests with their bodies, and lines of the console."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.lines: list[str] = []
        page.on("request", self._heard)
        page.on("console", lambda message: self.lines.append(message.text))

    def _heard(self, request: Request) -> None:
        self.requests.append(f"{request.url} {request.all_headers()} {request.post_data}")


def answered(
    playwright: Playwright, wire: Wire, profile: Path, count: int, leak: str = ""
) -> tuple[Any, Seen]:
    """Let people answer in the page of a host, and close the browser; `leak` is run in the page before."""
    context = playwright.chromium.launch_persistent_context(
        str(profile), executable_path=CHROMIUM, args=QUIET
    )
    page = context.new_page()
    seen = Seen(page)
    page.goto(f"{wire.origin}/blank.html")
    page.set_default_timeout(0)
    wire.answers["/host"] = ("text/plain", b"")
    numbers = list(range(FIRST, FIRST + count))
    page.evaluate(f"async (number) => {{ {leak} }}", FIRST)
    given = {"link": wire.publish(SURVEY), "at": AT, "numbers": numbers}
    result = page.evaluate(program("host"), given)
    context.close()
    return result, seen


def files_with(folder: Path, mark: str) -> list[str]:
    """Return the files of a browser's profile that contain a text, in one or two bytes for a letter."""
    forms = mark.encode(), mark.encode("utf-16-le")
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.name for path in files if any(form in path.read_bytes() for form in forms))


def test_a_host_gets_the_same_for_every_answer(
    playwright: Playwright, wire: Wire, tmp_path: Path, full: bool
) -> None:
    count = FULL_COUNT if full else DEFAULT_COUNT
    (sequences, markups), seen = answered(playwright, wire, tmp_path, count)

    assert len(sequences) == 1, "events depend on the answers"
    names = [name for name, _ in json.loads(sequences[0])]
    assert names[-1] == "frankly-sent"
    assert {"frankly-opened", "frankly-sealed"} < set(names)
    assert [sorted(detail) for name, detail in json.loads(sequences[0]) if name != "frankly-language"] == [
        ["code", "detail", "name", "survey"]
    ] * 3  # fmt: skip
    assert len(markups) == 1, "the page, its address or its cookies depend on the answers"

    assert len(wire.stored) == count
    reports = [json.loads(body) for body in wire.stored.values()]
    assert {len(body) for body in wire.stored.values()} == {len(wire.posted[0])}
    others = [
        {name: value for name, value in one.items() if name not in {"id", "y"}} for one in reports
    ]
    assert others == others[:1] * count, "only the symbol and the random id differ"
    texts = [*seen.requests, *seen.lines, *(path for path, _ in wire.requests)]
    assert [text for text in texts if MARK in text] == []
    assert files_with(tmp_path, MARK) == []


# Where a page could leave an answer, each under a name of its own.
LEAKS = """
  localStorage.setItem("a", `${number}storage`);
  document.cookie = `a=${number}cookie; max-age=9999`;
  await fetch(`/host?${number}address`, {headers: {a: `${number}header`}});
  await fetch("/v1/x", {method: "POST", body: `{"id": "${number}body"}`});
  console.log(`${number}console`);
"""


def test_an_answer_that_leaked_would_be_found(
    playwright: Playwright, wire: Wire, tmp_path: Path
) -> None:
    _, seen = answered(playwright, wire, tmp_path, 1, LEAKS)
    heard, mark = "".join(seen.requests), str(FIRST)
    assert files_with(tmp_path, f"{mark}storage")
    assert all(f"{mark}{kind}" in heard for kind in ("cookie", "header", "address", "body"))
    assert f"{mark}console" in "".join(seen.lines)
    assert f"{mark}address" in "".join(path for path, _ in wire.requests)
