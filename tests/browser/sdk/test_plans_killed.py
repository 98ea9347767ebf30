# SPDX-License-Identifier: Apache-2.0
"""Pages that die at every point of asking and answering, and what leaves the device for every plan."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import replace
from itertools import count

from frankly_protocol.arms import Arm, Arms
from playwright.sync_api import Browser, BrowserContext, Page
from playwright.sync_api import Error as PageError

from tests.browser.sdk.reports import AT, PAGE
from tests.browser.sdk.test_plans import DOCUMENT, asked_by, opened
from tests.browser.sdk.wire import Wire, program
from tests.narrowing import present

DIES = program("dies")
# One arm asks a question more than the other one.
ARMED = replace(
    DOCUMENT,
    blocks=(*DOCUMENT.blocks, replace(DOCUMENT.blocks[1], id="second")),
    arms=Arms(
        "arm",
        (
            Arm("a", 1 << 15, (), tuple(block.id for block in DOCUMENT.blocks)),
            Arm("b", 1 << 15, (), ("second",)),
        ),
    ),
)


def renderers(browser: Browser) -> list[int]:
    """Return the ids of the processes in which pages run."""
    session = browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return [int(process["id"]) for process in found if process["type"] == "renderer"]


def life(browser: Browser, context: BrowserContext, wire: Wire, link: str, dies: int) -> int | None:
    """Run a page until it dies at a point, or has nothing left to do; return its number of points."""
    page = context.new_page()
    page.goto(f"{wire.origin}/form.html")
    processes = renderers(browser)

    def heard(path: str) -> None:
        if path == "/dies":
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    wire.heard = heard
    try:
        points = page.evaluate(DIES, {"link": link, "at": AT, "dies": dies})
    except PageError:
        return None
    else:
        assert isinstance(points, int), points
        return points
    finally:
        page.close()


def test_pages_that_die_anywhere_show_one_arm_and_plan_and_send_one_report(
    browser: Browser, wire: Wire, full: bool
) -> None:
    wire.pages["/form.html"] = PAGE
    deaths, wanted, points = 0, 1000 if full else 50, 0
    for number in count():
        context = browser.new_context()
        wire.requests.clear()
        wire.posted.clear()
        wire.stored.clear()
        link = wire.publish(ARMED, survey_id=f"{number:032x}")
        # The first respondent's page lives, and tells how many points there are.
        for turn in count(1):
            dies = (number + turn * 7) % max(points, 1) + 1 if number and deaths < wanted else 0
            lived = life(browser, context, wire, link, dies)
            deaths += lived is None
            if lived is not None:
                points = max(points, lived)
                break
        context.close()
        shown = {path for path, _ in wire.requests if path.startswith("/shown")}
        assert len(shown) == len(set(wire.posted)) == len(wire.stored) == 1
        (body,) = wire.stored.values()
        view = present(ARMED.version_of(json.loads(body)["strata"]))
        assert shown == {f"/shown?{','.join(asked_by(body, view))}"}
        if deaths >= wanted:
            break
    assert points > 30


def test_requests_are_the_same_for_every_plan_and_every_answer(page: Page, wire: Wire) -> None:
    """Two hundred people, and all that leaves for each: addresses, headers, lengths."""
    opened(page, wire).evaluate("client.answered('nobody')")  # loads the module for several people
    wire.requests.clear()
    plans = page.evaluate("""async () => {
      const plans = [];
      for (let person = 0; person < 200; person++) {
        const respondent = `person ${person}`, {questions} = await client.plan({respondent});
        const said = questions.map((id, i) => [id, ["no", "yes"][(person >> i) & 1]]);
        await client.answer(Object.fromEntries(said), {respondent});
        await fetch("/next");
        plans.push(questions);
      }
      return plans;
    }""")
    assert [asked_by(body) for body in wire.posted] == plans
    assert len({tuple(plan) for plan in plans}) == 10  # each is missing with a chance of 7e-10
    requests = [(path, sorted(headers.items())) for path, headers in wire.requests]
    size, rest = divmod(len(requests), 200)
    assert rest == 0
    assert {path for path, _ in requests} == {requests[0][0], "/next"}
    assert all(requests[i : i + size] == requests[:size] for i in range(0, len(requests), size))
