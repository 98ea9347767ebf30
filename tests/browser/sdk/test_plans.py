# SPDX-License-Identifier: Apache-2.0
"""Plans in Chromium: drawn once per store, asked by the element, and what the report is about."""

import json
from dataclasses import replace
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.asking import Asking
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms.agreement import Plan
from playwright.sync_api import BrowserContext, Page

from tests.browser.sdk.reports import AT, PAGE, SHOW
from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.asked import QUESTIONS, form
from tests.frankly_protocol.samples import ldp_block, question, survey

TEN = tuple(question(f"q{i}", "no", "yes") for i in range(10))
DOCUMENT = survey(ldp_block(epsilon="1"), form(*TEN, drawn=True))
OPEN = program("open")
ASK = "async () => (await client.plan()).questions"


def asked_by(body: bytes, document: SurveyDocument = DOCUMENT) -> list[str]:
    """Return the ids of the questions that the plan of a report needs."""
    symbols = json.loads(body)["y"]
    plans = {
        block.id: Plan(symbol[0], tuple(symbol[1::2]))
        for block, symbol in zip(document.blocks, symbols, strict=True)
        if block.asks_drawn
    }
    return [one.id for one in Asking(document.blocks).asked(plans)]


def opened(page: Page, wire: Wire, document: SurveyDocument = DOCUMENT, **options: Any) -> Page:
    page.goto(f"{wire.origin}/blank.html")
    policy = {"policy": {"cap": "9"}}
    link = wire.publish(document)
    page.evaluate(OPEN, {"link": link, "at": AT, "options": policy | options})
    return page


def rows(page: Page) -> list[Any]:
    """Return the stored plans, read without the SDK."""
    stored: list[Any] = page.evaluate("""async () => {
      const done = (request) => new Promise((resolve) => { request.onsuccess = () => resolve(request.result); });
      const db = await done(indexedDB.open("frankly"));
      const kept = await done(db.transaction("plans").objectStore("plans").getAll());
      db.close();
      return kept;
    }""")
    return stored


def test_reloads_and_other_tabs_find_the_first_plan(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    first = opened(page, wire).evaluate(ASK)
    assert first[0] == "affair"
    assert len(first) == 2
    shown = [opened(page, wire).evaluate(ASK)]
    other = opened(context.new_page(), wire)
    shown += other.evaluate(
        "() => Promise.all([1, 2, 3].map(async () => (await client.plan()).questions))"
    )
    assert shown == [first] * 4
    # A plan is in no request, and nothing of it is told.
    assert wire.posted == []
    names = "({name, survey, code, detail}) => JSON.stringify([name, survey, code, detail])"
    told = page.evaluate(f"""async () => {{
      const heard = [];
      client.on("*", (event) => heard.push(({names})(event)));
      const plan = await client.plan();
      return [heard, JSON.stringify(plan), String(plan), plan.asked, plan.of, Object.keys(plan)];
    }}""")
    assert told == [[f'["planned","{"ab" * 16}","",""]'], "{}", "[object Object]", 2, 11, []]
    given = dict.fromkeys(first, "yes")
    receipt = other.evaluate("given => client.answer(given, {patienceMs: 60000})", given)
    assert receipt["status"] == "sent"
    assert asked_by(wire.posted[0]) == first
    assert rows(page) == [None]
    again = page.evaluate(
        "async () => { try { return await client.plan(); } catch (e) { return [e.code, e.receipt.status]; } }"
    )
    assert again == ["already_answered", "sent"]


def test_tabs_that_plan_at_the_same_time_draw_once(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    pages = [opened(one, wire) for one in (page, *(context.new_page() for _ in range(4)))]
    for one in pages:
        one.evaluate("() => { window.drawn = client.plan().then(({questions}) => questions); }")
    assert len({tuple(one.evaluate("() => drawn")) for one in pages}) == 1


def test_a_draw_is_not_repeated_until_it_fits(page: Page, wire: Wire) -> None:
    attempt = """async () => {
      try {
        return (await client.answer({affair: "no", q0: "no"})).status;
      } catch (error) {
        return error.field ?? error.code;
      }
    }"""
    outcomes = [opened(page, wire).evaluate(attempt) for _ in range(3)]
    if outcomes[0] == "sent":
        assert outcomes[1:] == ["already_answered"] * 2
        return
    assert outcomes[1:] == outcomes[:1] * 2
    assert opened(page, wire).evaluate(ASK) == ["affair", outcomes[0]]


def test_a_new_version_keeps_the_plan_of_the_same_form(page: Page, wire: Wire) -> None:
    first = opened(page, wire).evaluate(ASK)
    words = tuple(replace(one, text={"en": f"{one.id}, please?"}) for one in TEN)
    newer = survey(
        ldp_block(epsilon="1"), form(*words, drawn=True), version=2, prev="sha256:" + "cd" * 32
    )
    assert opened(page, wire, newer).evaluate(ASK) == first
    fewer = replace(newer, version=3, blocks=(newer.blocks[0], form(*words[:2], drawn=True)))
    other = opened(page, wire, fewer).evaluate(ASK)
    assert set(other) < {"affair", "q0", "q1"}
    # The plan of the earlier form stays too, until the survey is answered.
    (kept,) = rows(page)
    assert len(kept) == 2


def test_without_random_bits_there_is_no_plan(page: Page, wire: Wire) -> None:
    opened(page, wire)
    code = page.evaluate("""async () => {
      const {withSeams} = await import("/sdk/testing.js"), {Client} = await import("/sdk/index.js");
      client.draw = () => { throw new Error("no bits"); };
      try { await client.plan(); } catch (error) { return error.code; }
    }""")
    assert code == "randomness"
    assert rows(page) == []


def test_a_survey_that_asks_everything_has_a_plan_of_everything(page: Page, wire: Wire) -> None:
    document = survey(form(*QUESTIONS))
    plan = opened(page, wire, document).evaluate(
        "async () => { const {questions, asked, of} = await client.plan(); return [questions, asked, of]; }"
    )
    assert plan == [[one.id for one in QUESTIONS], 5, 5]
    assert rows(page) == []


def test_a_database_of_version_2_gets_a_store_for_plans(page: Page, wire: Wire) -> None:
    page.evaluate("""async () => {
      const stores = ["aliases", "keys", "surveys", "answers", "checkpoints", "proofs", "evidence", "salt"];
      const request = indexedDB.open("frankly", 2);
      request.onupgradeneeded = () => stores.forEach((name) => request.result.createObjectStore(name));
      const db = await new Promise((done) => { request.onsuccess = () => done(request.result); });
      const tx = db.transaction(["salt"], "readwrite");
      tx.objectStore("salt").put(new Uint8Array(32).fill(7), 0);
      await new Promise((done) => { tx.oncomplete = done; });
      db.close();
    }""")
    opened(page, wire)
    assert len(page.evaluate(ASK)) == 2
    assert page.evaluate("async () => [...await client.store.get('salt', 0)]") == [7] * 32


def shown(page: Page, wire: Wire, link: str) -> None:
    """Show the element."""
    page.goto(f"{wire.origin}/form.html")
    page.evaluate(SHOW, [link, AT])
    page.locator("button[type=submit]").wait_for()


def test_the_element_asks_what_the_plan_needs_and_says_so(page: Page, wire: Wire) -> None:
    wire.pages["/form.html"] = PAGE
    link = wire.publish(DOCUMENT)
    shown(page, wire, link)
    fields = page.locator("fieldset").evaluate_all("all => all.map(({id}) => id)")
    assert fields[0] == "question-affair"
    assert len(fields) == 2
    said = page.locator("[part=drawn]").inner_text()
    assert said == "You are asked at most 2 of 11 questions; this device has drawn which."
    shown(page, wire, link)  # after a reload
    assert page.locator("fieldset").evaluate_all("all => all.map(({id}) => id)") == fields
    progress = page.get_by_role("progressbar", name="Still to answer: 2 of 2")
    assert progress.evaluate("({value, max}) => [value, max]") == [0, 2]
    page.locator(f"#{fields[1]} input[value=yes]").check()
    bar = page.get_by_role("progressbar", name="Still to answer: 1 of 2")
    assert bar.evaluate("({value, max}) => [value, max]") == [1, 2]
    page.evaluate("() => { document.querySelector('frankly-survey').lang = 'de'; }")
    page.get_by_role("progressbar", name="Still to answer: 1 of 2").wait_for()
    page.locator("#question-affair input[value=no]").check()
    page.locator("button[type=submit]").click()
    page.get_by_text("Thank you.").wait_for()
    assert wire.arrived.wait(60)
    page.get_by_text("Your randomised answer has arrived").wait_for()
    assert [f"question-{name}" for name in asked_by(wire.posted[0])] == fields


def test_a_page_that_is_left_sends_at_once_and_only_sealed_reports(page: Page, wire: Wire) -> None:
    wire.pages["/form.html"] = PAGE
    link = wire.publish(DOCUMENT)
    shown(page, wire, link)
    page.goto(f"{wire.origin}/blank.html")  # an abandoned form
    assert wire.posted == []
    page.goto(f"{wire.origin}/form.html")
    page.evaluate(SHOW.replace("spreadMs: 0", "spreadMs: 3600000"), [link, AT])
    page.locator("button[type=submit]").wait_for()
    for field in page.locator("fieldset").all():
        field.locator("input[value=yes]").check()
    page.locator("button[type=submit]").click()
    page.get_by_text("It is sent while this page is open").wait_for()
    assert wire.posted == []
    page.goto(f"{wire.origin}/blank.html")
    assert wire.arrived.wait(60)


def test_reports_about_what_was_drawn_are_spread_over_half_a_minute(page: Page, wire: Wire) -> None:
    for document, expected in ((DOCUMENT, 30_000), (survey(ldp_block(epsilon="1")), 10)):
        opened(page, wire, document, spreadMs=None, store=str(expected))
        assert page.evaluate("client.delivery.spreadMs") == expected


def late(page: Page) -> None:
    """Let every random moment be the last one of its spread."""
    page.evaluate("""() => {
      const system = crypto.getRandomValues.bind(crypto);
      const isMoment = (list) => list instanceof Uint32Array && list.length === 1;
      crypto.getRandomValues = (list) => isMoment(list) ? list.fill(2 ** 32 - 1) : system(list);
    }""")


def test_a_store_that_has_lost_the_plan_asks_what_it_draws_next(page: Page, wire: Wire) -> None:
    wire.pages["/form.html"] = PAGE
    shown(page, wire, wire.publish(DOCUMENT))
    fields = "all => all.map(({id}) => id.replace('question-', ''))"
    for _ in range(4):
        page.evaluate("""async () => {
          const element = document.querySelector("frankly-survey");
          element.remove();
          await new Promise((done) => setTimeout(done, 50));
          await new Promise((done) => { indexedDB.deleteDatabase("frankly").onsuccess = done; });
          const ready = new Promise((done) => element.addEventListener("frankly-language", ({detail}) =>
            element.shadowRoot.querySelector("form") || setTimeout(done, 300)));
          document.querySelector("main").append(element);
          await ready;
        }""")
        page.locator("button[type=submit]").wait_for()
        (kept,) = rows(page)
        ((_, (part,)),) = next(iter(kept.values()))
        assert page.locator("fieldset").evaluate_all(fields) == ["affair", f"q{part}"]


def test_a_waiting_report_leaves_at_its_moment_whatever_else_happens(
    page: Page, wire: Wire
) -> None:
    """Neither events of the network nor answers of other people put it off."""
    opened(page, wire, spreadMs=1500)
    late(page)
    for name in "ab":
        given = page.evaluate(
            "async name => (await client.plan({respondent: name})).questions", name
        )
        receipt = page.evaluate(
            "([given, respondent]) => client.answer(given, {respondent, patienceMs: 0})",
            [dict.fromkeys(given, "yes"), name],
        )
        assert (receipt["status"], receipt["code"]) == ("queued", "scheduled")
    page.evaluate("""async () => {
      for (let i = 0; i < 12; i++) {
        dispatchEvent(new Event("online"));
        await new Promise((done) => setTimeout(done, 20));
      }
    }""")
    # If they did, the reports would wait for the doubled retry times, more than two minutes.
    sent = page.evaluate("""async () => {
      const count = () => events.filter((name) => name === "sent").length;
      const end = Date.now() + 60000;
      while (count() < 2 && Date.now() < end) await new Promise((done) => setTimeout(done, 50));
      return count();
    }""")
    assert sent == 2


def test_a_moment_that_passes_while_it_is_looked_at_is_not_missed(page: Page, wire: Wire) -> None:
    """Every reading of the clock is a second later than the one before."""
    given = dict.fromkeys(opened(page, wire, spreadMs=1500).evaluate(ASK), "yes")
    late(page)
    page.evaluate("() => { let read = 0; client.delivery.time.timer = () => 1000 * read++; }")
    page.evaluate("given => client.answer(given, {patienceMs: 0})", given)
    assert wire.arrived.wait(60)


def test_attempts_that_must_wait_for_another_tab_do_not_add_up(page: Page, wire: Wire) -> None:
    """Twelve at once would each double the time until the next one, to more than half an hour."""
    given = dict.fromkeys(opened(page, wire, spreadMs=200).evaluate(ASK), "yes")
    page.evaluate("given => client.answer(given, {patienceMs: 0})", given)
    page.evaluate("""async () => {
      const another = () => new Promise((done) => setTimeout(done, 2500));
      const sending = navigator.locks.request(`frankly:${client.store.name}`, another);
      for (let i = 0; i < 12; i++) {
        dispatchEvent(new Event("online"));
        await new Promise((done) => setTimeout(done, 20));
      }
      await sending;
    }""")
    assert wire.arrived.wait(60)


def test_a_closed_client_sends_what_waits_for_its_moment(page: Page, wire: Wire) -> None:
    given = dict.fromkeys(opened(page, wire, spreadMs=3_600_000).evaluate(ASK), "yes")
    page.evaluate("given => client.answer(given, {patienceMs: 0})", given)
    assert wire.posted == []
    page.evaluate("client.close()")
    assert wire.arrived.wait(60)


def test_a_tab_is_told_that_another_one_has_delivered(
    page: Page, context: BrowserContext, wire: Wire
) -> None:
    given = dict.fromkeys(opened(page, wire, spreadMs=3_600_000).evaluate(ASK), "yes")
    page.evaluate("given => client.answer(given, {patienceMs: 0})", given)
    opened(context.new_page(), wire)
    assert wire.arrived.wait(60)
    page.evaluate("async () => { while (!events.includes('sent')) await client.flush(0); }")
    page.evaluate("client.close()")
    assert len(wire.posted) == 1


def test_no_moment_is_after_the_close(page: Page, wire: Wire) -> None:
    opened(page, wire, spreadMs=30_000)
    late(page)
    left = page.evaluate(
        """at => [40000, 22000, 5000].map((ms) => {
      client.delivery.schedule({id: String(ms), closes: at + ms});
      return client.delivery.spreadLeft({id: String(ms)});
    })""",
        AT,
    )
    assert 25_000 < left[0] <= 30_000
    assert 5_000 < left[1] <= 12_000
    assert left[2] == 0


def test_surveys_that_ask_everything_keep_their_patience(page: Page, wire: Wire) -> None:
    opened(page, wire, survey(ldp_block(epsilon="1")), spreadMs=3_600_000)
    receipt = page.evaluate("client.answer({affair: 'yes'})")
    assert (receipt["status"], receipt["code"]) == ("queued", "scheduled")


def test_a_language_with_the_name_of_the_field_changes_nothing(page: Page, wire: Wire) -> None:
    """Ashkun has the tag `ask`; the part is loaded in vain."""
    body = json.loads(
        survey(ldp_block(epsilon="1")).payload().replace(b'{"en":', b'{"ask":"x","en":')
    )
    document = SurveyDocument.parse(canonical.dumps(body | {"languages": ["en", "ask"]}))
    opened(page, wire, document, spreadMs=None)
    assert page.evaluate("client.survey.parts") == ["plans"]
    assert page.evaluate("client.delivery.spreadMs") == 10
    assert page.evaluate(ASK) == ["affair"]
    assert page.evaluate("events") == ["opened"]
