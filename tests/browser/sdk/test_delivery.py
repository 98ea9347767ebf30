# SPDX-License-Identifier: Apache-2.0
"""Delivery of exactly one value, although pages crash, tabs race, networks fail or storage fails."""

import json
import os
import signal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright
from playwright.sync_api import Error as PageError

from tests.browser.sdk.wire import Wire, program
from tests.chromium import CHROMIUM, QUIET
from tests.frankly_protocol.samples import NOW

AT = int(NOW.timestamp() * 1000)
ANSWERS = {"affair": "yes", "marriage": "good"}
OPEN = program("open")
SEAL = "(choices) => { client.answer(choices); return new Promise((done) => client.on('sealed', done)); }"
SENT = "events.includes('sent') || new Promise((done) => client.on('sent', done))"
TRY = program("try")


def opened(page: Page, link: str, **options: Any) -> None:
    page.evaluate(OPEN, {"link": link, "at": AT, "options": options})


def answer(page: Page, patience: int = 3000) -> Any:
    return page.evaluate(
        """([choices, patienceMs]) =>
             client.answer(choices, {patienceMs}).catch((e) => ({status: e.code, receipt: e.receipt}))""",
        [ANSWERS, patience],
    )


def finished(wire: Wire, page: Page, link: str) -> None:
    """Check that the next visit sends the same bytes, or answers if nothing was sealed before."""
    wire.steps.clear()
    page.goto(f"{wire.origin}/blank.html")
    opened(page, link)
    answer(page)
    assert len(set(wire.posted)) == 1
    assert len(wire.stored) == 1
    record = page.evaluate("client.store.answer(client.chain, client.survey.survey)")
    assert (record["state"], record["body"], record["id"]) == ("sent", None, "")


def test_an_answer_is_sealed_sent_and_erased(page: Page, wire: Wire) -> None:
    opened(page, wire.publish())
    assert answer(page)["status"] == "sent"
    (body,) = wire.posted
    report = json.loads(body)
    document = wire.documents["ab" * 16]
    assert len(body) == document.report_length
    assert set(report) == {"v", "doc", "id", "y", "strata", "token"}
    for block, symbol in zip(document.blocks, report["y"], strict=True):
        block.mechanism.check_symbol(symbol)
    assert page.evaluate("events") == ["opened", "sealed", "sent"]
    assert answer(page)["receipt"]["status"] == "sent"
    assert len(wire.posted) == 1


def test_requests_carry_no_cookie_referrer_or_credential(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    context.add_cookies([{"name": "who", "value": "me", "url": wire.origin}])
    page.reload()
    opened(page, wire.publish())
    wire.requests.clear()
    answer(page)
    assert [path.rpartition("/")[2] for path, _ in wire.requests] == ["reports"]
    for _, headers in wire.requests:
        assert not {"cookie", "referer", "authorization"} & {name.lower() for name in headers}


def test_a_page_that_dies_between_seal_and_acknowledgement(
    context: BrowserContext, wire: Wire, full: bool
) -> None:
    every = product(
        ("close", "reload", "leave", "crash"), ("drop", "lose", "503", "hold"), range(0, 50, 10)
    )
    representative_cases = [
        ("close", "hold", 0),
        ("reload", "lose", 10),
        ("leave", "drop", 20),
        ("crash", "503", 0),
    ]
    for i, (how, step, delay) in enumerate(every if full else representative_cases):
        link, fresh_store = wire.publish(survey_id=f"{i:032x}"), {"store": f"install {i}"}
        wire.posted.clear()
        wire.stored.clear()
        page = context.new_page()
        page.goto(f"{wire.origin}/blank.html")
        opened(page, link, spreadMs=60_000 if step == "hold" else 0, **fresh_store)
        wire.steps[:] = [] if step == "hold" else [step] * 3
        page.evaluate(SEAL, ANSWERS)
        page.wait_for_timeout(delay)
        if how == "reload":
            page.reload()
        elif how == "leave":
            page.goto("about:blank")
        elif how == "crash":
            with pytest.raises(PageError, match="crash"):  # the tab's process dies
                page.goto("chrome://crash")
        page.close()
        wire.steps.clear()
        after = context.new_page()
        after.goto(f"{wire.origin}/blank.html")
        opened(after, link, **fresh_store)
        answer(after)
        assert (len(set(wire.posted)), len(wire.stored)) == (1, 1), (how, step, delay)
        after.close()


@pytest.mark.parametrize("what", ["hidden", "left"])
def test_the_wait_before_sending_ends_when_the_page_is_hidden_or_left(
    page: Page, wire: Wire, what: str
) -> None:
    opened(page, wire.publish(), spreadMs=3_600_000)
    assert answer(page, 0)["code"] == "scheduled"
    page.wait_for_timeout(100)
    assert wire.posted == []
    if what == "hidden":
        page.evaluate(
            """() => {
              Object.defineProperty(document, "visibilityState", {value: "hidden"});
              document.dispatchEvent(new Event("visibilitychange"));
            }"""
        )
    else:
        page.goto("about:blank")
    assert wire.arrived.wait(60)
    assert len(set(wire.posted)) == 1  # leaving also hides the page, which sends the same bytes


def test_a_browser_that_is_killed_keeps_what_it_sealed(
    playwright: Playwright, wire: Wire, tmp_path: Path, full: bool
) -> None:
    for i, delay in enumerate(range(50)) if full else [(1, 20)]:
        profile, link = tmp_path / str(i), wire.publish(survey_id=f"{i:032x}")
        wire.posted.clear()
        wire.stored.clear()
        first = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=CHROMIUM, args=QUIET
        )
        page = first.new_page()
        page.goto(f"{wire.origin}/blank.html")
        opened(page, link)
        wire.steps[:] = [("drop", "lose", "503")[i % 3]] * 20
        page.evaluate(SEAL, ANSWERS)
        page.wait_for_timeout(delay)
        kill(profile)
        with pytest.raises(PageError):  # the browser has been killed
            page.evaluate("1")
        sealed = set(wire.posted)
        second = playwright.chromium.launch_persistent_context(
            str(profile), executable_path=CHROMIUM, args=QUIET
        )
        finished(wire, second.new_page(), link)
        assert sealed <= set(wire.posted)
        second.close()


def kill(profile: Path) -> None:
    """Send SIGKILL to the browser process that uses this profile."""
    for entry in Path("/proc").iterdir():
        try:
            arguments = (
                (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            )
        except OSError:
            continue
        if f"--user-data-dir={profile}".encode() in arguments and not any(
            word.startswith(b"--type=") for word in arguments
        ):
            os.kill(int(entry.name), signal.SIGKILL)


def test_two_tabs_that_race_send_one_value(context: BrowserContext, wire: Wire, full: bool) -> None:
    pages = [context.new_page(), context.new_page()]
    for i in range(25 if full else 2):
        link = wire.publish(survey_id=f"{i:032x}")
        wire.posted.clear()
        wire.stored.clear()
        for page in pages:
            page.goto(f"{wire.origin}/blank.html")
            opened(page, link, store=f"install {i}")
            page.evaluate(
                "(choices) => { window.done = client.answer(choices).catch((e) => ({status: e.code})); }",
                ANSWERS,
            )
        ends = sorted(page.evaluate("done")["status"] for page in pages)
        assert ends == ["already_answered", "sent"]
        assert len(set(wire.posted)) == len(wire.stored) == 1


def test_an_hour_offline_loses_nothing(context: BrowserContext, wire: Wire) -> None:
    page = context.new_page()
    page.clock.install()
    page.goto(f"{wire.origin}/blank.html")
    opened(page, wire.publish())
    context.set_offline(offline=True)
    assert answer(page, 0)["status"] == "queued"
    page.clock.fast_forward("01:00:00")
    assert wire.posted == []
    context.set_offline(offline=False)
    page.clock.run_for(10)
    assert wire.arrived.wait(60)
    page.evaluate(SENT)
    assert len(wire.stored) == 1


def test_a_pinned_survey_opens_again_without_network(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    link = wire.publish()
    opened(page, link)
    page.evaluate("client.close()")
    context.set_offline(offline=True)
    opened(page, link)
    assert answer(page, 0)["status"] == "queued"
    context.set_offline(offline=False)
    page.evaluate(SENT)
    assert len(wire.stored) == 1


BLOCK = "Object.defineProperty(window, 'indexedDB', {get() { throw new DOMException('blocked', 'SecurityError'); }})"


def test_without_persistent_storage_nothing_is_sent_unless_the_developer_opts_in(
    page: Page, wire: Wire
) -> None:
    link = wire.publish()
    page.evaluate(BLOCK)
    wire.requests.clear()
    problem = page.evaluate(TRY, {"code": OPEN, "given": {"link": link, "at": AT, "options": {}}})
    assert (
        problem["code"],
        [path for path, _ in wire.requests if not path.startswith("/sdk/")],
    ) == ("store", [])
    opened(page, link, allowMemory=True)
    assert answer(page)["status"] == "sent"
    assert answer(page)["status"] == "already_answered"
    assert len(wire.posted) == 1


# Link -> (code, field) of the refusal. In every case nothing is drawn, stored or sent.
REFUSED: dict[str, tuple[str, str | None]] = {
    "https://collect.example/": ("link", "link"),
    "no link": ("insecure_transport", "link"),
    "https://collect.example:port/": ("link", "link"),
    "http://collect.example/s/" + "ab" * 16: ("insecure_transport", "link"),
    "https://me:secret@collect.example/s/" + "ab" * 16: ("link", "link"),
}


@pytest.mark.parametrize("link", REFUSED)
def test_links_that_cannot_be_used(page: Page, wire: Wire, link: str) -> None:
    problem = page.evaluate(TRY, {"code": OPEN, "given": {"link": link, "at": AT, "options": {}}})
    assert (problem["code"], problem["field"]) == REFUSED[link]
    assert wire.posted == []


POLICIES: dict[str, tuple[dict[str, Any], str]] = {
    "cap": ({"cap": "0.5"}, "policy_composition"),
    "no decimal": ({"cap": "1e1"}, "eps_format"),
    "not finite": ({"cap": "nan"}, "eps_not_finite"),
    "out of range": ({"cap": "65"}, "eps_out_of_range"),
    "ceiling": ({"maxCeiling": "1"}, "policy_ceiling"),
    "log": ({"requireLog": True}, "policy_unlogged"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_surveys_outside_the_apps_policy_are_refused(page: Page, wire: Wire, name: str) -> None:
    policy, code = POLICIES[name]
    visit = {"link": wire.publish(), "at": AT, "options": {"policy": policy}}
    problem = page.evaluate(TRY, {"code": OPEN, "given": visit})
    assert problem["code"] in (code, "policy_cap" if name == "cap" else code)
    assert wire.posted == []


BAD_ANSWERS: dict[str, tuple[Any, str | None]] = {
    "none": (None, None),
    "missing": ({"affair": "yes"}, "marriage"),
    "unknown": ({"affair": "perhaps", "marriage": "good"}, "affair"),
    "no text": ({"affair": 1, "marriage": "good"}, "affair"),
    "surplus": ({**ANSWERS, "more": "yes"}, None),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_invalid_answers_are_refused_and_never_repeated(page: Page, wire: Wire, name: str) -> None:
    choices, field = BAD_ANSWERS[name]
    opened(page, wire.publish())
    problem = page.evaluate(TRY, {"code": "(choices) => client.answer(choices)", "given": choices})
    assert (problem["code"], problem["field"]) == ("unknown_choice", field)
    assert "perhaps" not in problem["detail"]
    assert (wire.posted, page.evaluate("client.store.outbox()")) == ([], [])


def test_with_a_failing_random_source_nothing_is_sealed(page: Page, wire: Wire) -> None:
    opened(page, wire.publish())
    page.evaluate(
        "() => { crypto.getRandomValues = () => { throw new Error('no bits for yes'); }; }"
    )
    problem = page.evaluate(TRY, {"code": "(choices) => client.answer(choices)", "given": ANSWERS})
    assert problem["code"] == "randomness"
    assert (wire.posted, page.evaluate("client.store.outbox()")) == ([], [])
