# SPDX-License-Identifier: Apache-2.0
"""A complete survey: an admin creates it, respondents answer, an analyst reads the estimates; every
page is checked."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from frankly_analyst.charts import WIDTH
from frankly_sdk import Client
from frankly_server.accounts.sessions import person_of
from frankly_server.web.results.sentences import sentences_of
from frankly_server.web.results.words import Words
from playwright.sync_api import Page

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.accounts.people import code

ANSWERS = 12
# Routes that are not pages: files, data, and the redirect to the first page.
NO_PAGES = {
    "/admin/",
    "/admin/assets/<digest>/<name>",
    "/admin/surveys/<survey_id>/versions/<int:version>",
    "/admin/surveys/<survey_id>/jobs/<job_id>/state",
    "/admin/surveys/<survey_id>/preview/draft",
    "/admin/surveys/<survey_id>/estimates/download",
    "/admin/surveys/<survey_id>/qr.png",
    "/admin/surveys/<survey_id>/results/<chart>",
}


def test_from_nothing_to_an_estimate(desk: Desk) -> None:
    page = desk.page
    _arrive(desk)
    _write_survey(desk)
    _edit_questions(desk)
    _protect_and_try(desk)
    _publish(desk)
    link = page.locator("pre").first.inner_text()
    desk.check("overview-new")
    _see_notice(desk)
    desk.follow(page.get_by_role("link", name="Run", exact=True))
    desk.follow(page.get_by_role("link", name="Embed", exact=True).first)
    snippets = page.locator("pre").all_inner_texts()
    desk.check("embed")
    _estimates_wait(desk)
    _answer(desk, link, snippets)
    _see_answers(desk)
    _share_results(desk)
    _run(desk)
    _set_a_rule(desk)
    _set_webhook(desk)
    password = _make_analyst(desk)
    for name, place in (("keys", "API keys"), ("audit", "Audit"), ("account", "Your account")):
        desk.follow(page.get_by_role("navigation", name="Main").get_by_role("link", name=place))
        desk.check(name)
    desk.follow(page.get_by_role("link", name="Frankly", exact=True))
    desk.check("surveys", again=True)
    _use_a_second_factor(desk)
    desk.press("Sign out")
    desk.sign_in("eve@example.org", password)
    assert page.url.endswith("/admin/account")
    desk.check("account-must-enrol")
    ada = desk.services.accounts.list("main")[0]
    owner = person_of(ada)
    desk.services.second_factors.require(owner, False)
    desk.open("/admin/")
    _read(desk, link)
    desk.open_refused("/admin/audit", 403)
    desk.check("refused", again=True)
    # The routes come from the application's URL map, so a new page that no test opens fails here.
    assert desk.checked | NO_PAGES == {
        rule.rule
        for rule in desk.routes.iter_rules()
        if rule.rule.startswith("/admin/") and "GET" in (rule.methods or ())
    }
    assert desk.checked & NO_PAGES == set()


def _arrive(desk: Desk) -> None:
    """Open the pages that everybody may see, and sign in."""
    desk.open("/")
    desk.check("front")
    for name, path in (("unknown-survey", "/s/" + "0" * 32), ("unknown", "/nothing")):
        desk.open_refused(path, 404)
        desk.check(name, again=True)
    desk.open("/admin/")
    desk.check("sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.check("surveys-empty")


def _see_notice(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Notice to print"))
    desk.check("notice", again=True)
    for width in (320, 1280):  # whole and square, or it cannot be scanned
        page.set_viewport_size({"width": width, "height": 800})
        box, around = (page.locator(what).bounding_box() for what in (".notice svg", ".notice"))
        assert box is not None
        assert around is not None
        assert 200 < box["width"] == box["height"] < around["width"]
        assert page.locator(".notice svg").get_attribute("viewBox")


def _see_answers(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Overview"))
    assert page.locator(".big").inner_text() == "10 to 19"
    assert "0 of them are released" in page.locator("main").inner_text()
    assert desk.services.releasing.release() >= 6
    desk.follow(page.get_by_role("link", name="Overview"))
    assert "of all who took part" in page.locator("dl.results").inner_text()


def _see_results(desk: Desk) -> None:
    """Read the results, and take a picture of one with its title; paper has no controls."""
    page = desk.page
    desk.follow(page.get_by_role("link", name="Results", exact=True))
    desk.check("results")
    with page.expect_download() as download:
        page.get_by_role("link", name="Picture (PNG)").first.click()
    assert download.value.suggested_filename == "study-habits-1.png"
    picture = Path(download.value.path()).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    # Three pixels for each of the chart's, which has a margin.
    assert int.from_bytes(picture[16:20], "big") >= 3 * WIDTH
    page.emulate_media(media="print")
    for hidden in ("form.show", ".downloads", "nav", "[data-print]", ".result details"):
        assert not page.locator(hidden).first.is_visible(), hidden
    assert page.locator(".result svg").first.is_visible()
    assert page.locator(".on-paper").is_visible()
    page.emulate_media(media="screen")


def _share_results(desk: Desk) -> None:
    """Give a link to the results, open it, and withdraw it."""
    page, here = desk.page, urlsplit(desk.page.url).path
    _see_results(desk)
    desk.follow(page.get_by_role("link", name="Share by a link"))
    page.get_by_label("Who gets it?").fill("The board")
    desk.press("Give a link")
    desk.check("result-links")
    shared = urlsplit(page.locator("pre").first.inner_text()).path
    desk.open(shared)
    assert page.get_by_role("heading", level=1).inner_text() == "Study habits"
    # The languages of the survey, and no way to the pages of those who run it.
    assert page.get_by_role("navigation").all_inner_texts() == ["English Français"]
    assert page.locator("a[href^='/admin']").count() == 0
    desk.check("shared-results")
    desk.open(f"{here}/results/links")
    desk.press("Withdraw the link of The board")
    assert "withdrawn" in page.locator("main").inner_text()
    desk.open_refused(shared, 404)
    desk.check("shared-results-withdrawn", again=True)
    desk.open(here)


def _use_a_second_factor(desk: Desk) -> None:
    page = desk.page
    desk.open("/admin/account")
    page.locator("#begin-totp").fill(PASSWORD)
    desk.press("Set it up")
    desk.check("account-totp")
    secret = page.locator("pre").inner_text()
    page.get_by_label("Code", exact=True).fill(code(secret, int(time.time())))
    desk.press("Use it from now on")
    desk.check("account-codes")
    recovery = page.locator("pre").inner_text().split()
    desk.press("Sign out")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.check("sign-in-code")
    page.get_by_label("Code", exact=True).fill("000000")
    desk.press_refused("Sign in", 401)
    page.get_by_label("Code", exact=True).fill(recovery[0])
    desk.press("Sign in")
    desk.open("/admin/account")
    assert "Unused codes: 9" in page.locator("main").inner_text()
    desk.check("account-second-factor")
    desk.open("/admin/people")
    desk.press("Require it of everybody")
    desk.check("people-second-factor")


def _choose_a_template(page: Page) -> None:
    """Choose one by its picture, as with a mouse or a finger, and the next one by keyboard."""
    names = page.get_by_role("radio")
    assert names.first.is_checked()
    picture = page.locator(".template svg").nth(2)
    assert picture.evaluate("one => one.getBoundingClientRect().width") > 300
    picture.click(force=True)  # the label lies above it
    assert page.get_by_role("radio", name="How many of our people are harassed").is_checked()
    page.keyboard.press("ArrowDown")
    assert names.nth(3).is_checked()


def _write_survey(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="What do the words mean?"))
    desk.check("words")
    page.go_back()
    desk.follow(page.get_by_role("link", name="Write your first survey"))
    desk.check("new")
    _choose_a_template(page)
    page.get_by_label("Title of the survey").fill("Study habits")
    page.get_by_label("First question").fill("Did you ever cheat?")
    page.get_by_label("Its choices, one per line").fill("No\nYes")
    page.get_by_label("Protect all answers together").uncheck()
    desk.press("Begin")
    desk.follow(page.get_by_role("link", name="Add a question"))
    desk.check("new-question")
    page.get_by_label("Text", exact=True).fill("Where do you live?")
    assert not page.get_by_label("Choice 1, en").is_visible()
    page.get_by_label("One of several choices").check()
    page.get_by_label("Choice 1, en").fill("North")
    page.get_by_label("Choice 2, en").fill("South")
    page.get_by_label("No: public").check()
    desk.press("Save the question")
    desk.check("questions")


def _edit_questions(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Edit Did you ever cheat?"))
    desk.check("question")
    page.get_by_label("Choice 2, en").press("Enter")  # keeps the question, and moves no choice
    desk.follow(page.get_by_role("link", name="Add a question"))
    page.get_by_label("Text", exact=True).fill("Which?")
    page.get_by_label("One of several choices").check()
    page.get_by_label("Choice 1, en").fill("Same")
    page.get_by_label("Choice 2, en").fill("same")
    desk.press_refused("Save the question", 422)
    desk.check("questions-refused", again=True)
    page.once("dialog", lambda dialog: dialog.accept())
    desk.follow(page.get_by_role("link", name="Cancel"))
    page.get_by_label("Add a language").select_option("French")
    desk.press("Save")
    desk.follow(page.get_by_role("link", name="Translate them"))
    page.get_by_label("French: Study habits").fill("Habitudes")
    desk.check("translations")
    desk.press("Save")
    desk.follow(page.get_by_role("link", name="All questions"))
    desk.follow(page.get_by_role("link", name="Earlier drafts"))
    desk.check("earlier-drafts")
    desk.open(f"{page.url.removesuffix('/drafts').removeprefix(desk.url)}/preview#en")
    page.get_by_role("heading", name="Study habits").wait_for()
    desk.check("preview")
    page.go_back()
    desk.follow(page.get_by_role("link", name="All questions"))


def _protect_and_try(desk: Desk) -> None:
    page = desk.page
    page.get_by_label("Show no estimate with fewer answers than").fill("6")
    desk.press("Save")
    desk.follow(page.get_by_role("link", name="Protection", exact=False).first)
    # What it means follows each change without a press.
    page.get_by_text("can become 74% sure at most, never certain").wait_for()
    page.get_by_label("How many people do you expect to answer?").fill("400")
    page.get_by_text("10.6 points").wait_for()  # 1.96 · (e + 1) / (2 · (e − 1) · √400)
    desk.check("protection")
    page.get_by_text("For experts").click()
    page.get_by_label("Exact level ε, in nats").fill("1.3863")
    page.get_by_text("can become 81% sure at most, never certain").wait_for()
    desk.check("protection-experts")
    desk.press("Save")
    assert "Saved." in page.locator("main").inner_text()
    desk.follow(page.get_by_role("link", name="Margins").first)
    # At a factor of 4 the truth is sent with probability 4/5: 1.96 / (2·(2·0.8 − 1)·√500) = 0.073.
    assert "±7.3" in page.locator("tr.chosen").first.inner_text()
    desk.check("margins")
    desk.follow(page.get_by_role("link", name="Plan", exact=True))
    # 1.96²·¼·((e^ε + 1)/(e^ε − 1))²/0.05² at a factor of 4: 1,068 answers.
    assert "1,068 answers give ±5 points" in page.locator("main").inner_text()
    desk.check("plan")
    desk.follow(page.get_by_role("link", name="File"))
    desk.check("file")
    desk.follow(page.get_by_role("link", name="Try it"))
    desk.press("Show what would be sent")
    sent_preview = page.locator("main pre").inner_text()
    assert re.search(r'"y":\[[01]\],"strata":\{"where-do-you-live":"north"\}', sent_preview)
    desk.check("try")
    desk.press("Send")
    desk.check("try-everybody", again=True)


def _publish(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Next: publish"))
    desk.check("publish-before", again=True)
    desk.press("Publish")
    page.get_by_role("link", name="Get the link").wait_for()
    desk.check("job", again=True)
    desk.follow(page.get_by_role("link", name="What was published"))
    desk.check("publish")
    desk.follow(page.get_by_role("link", name="Sheets to print"))
    desk.check("sheet")
    desk.follow(page.get_by_role("link", name="Run", exact=True))


def _estimates_wait(desk: Desk) -> None:
    desk.follow(desk.page.get_by_role("link", name="Results", exact=True))
    assert "6 answers that it needs" in desk.page.locator("main").inner_text()
    desk.check("results-too-few")
    desk.follow(desk.page.get_by_role("link", name="All figures and options"))
    assert "6 are needed" in desk.page.locator("main").inner_text()
    desk.check("estimates-too-few")


def _answer(desk: Desk, link: str, snippets: list[str]) -> None:
    """Answer once on the hosted page, twice through the Embed page's snippets, and otherwise in an app."""
    with _visitor(desk) as visitor:
        visitor.goto(link)
        _fill_in(visitor)
    element, code = (
        next(text for text in snippets if text.startswith(start))
        for start in ('<script type="mod', "imp")
    )
    with _visitor(desk) as visitor:
        _open_own(visitor, desk, element)
        _fill_in(visitor)
    with (
        _visitor(desk) as visitor,
        visitor.expect_console_message(lambda said: said.text == "accepted"),
    ):
        _open_own(
            visitor, desk, f'<script type="module">{code}\nconsole.log(receipt.code);</script>'
        )
    for i in range(3, ANSWERS):
        with Client.open(link, store=desk.home / f"device{i}.db", spread_s=0) as client:
            place = "north" if i % 2 else "south"
            receipt = client.answer(
                {"did-you-ever-cheat": "yes"}, strata={"where-do-you-live": place}
            )
            assert receipt.code == "accepted"


@contextmanager
def _visitor(desk: Desk) -> Iterator[Page]:
    """Return a visitor's page in a separate browser context."""
    context = desk.page.context.browser.new_context()  # type: ignore[union-attr]  # not None here
    yield context.new_page()
    context.close()


def _open_own(page: Page, desk: Desk, snippet: str) -> None:
    """Open an app's page with this snippet; the SDK's files come from the server."""
    assert "/frankly/" in snippet
    body = f"<!doctype html><title>Mine</title>{snippet.replace('/frankly/', '/sdk/v1/')}"
    page.route(
        "**/mine.html",
        lambda route: route.fulfill(content_type="text/html; charset=utf-8", body=body),
    )
    page.goto(f"{desk.url}/mine.html")


def _fill_in(page: Page) -> None:
    page.get_by_label("Yes").check()
    page.get_by_label("North").check()
    page.locator("button[type=submit]").click()
    page.get_by_text("Your randomised answer has arrived").wait_for()


def _run(desk: Desk) -> None:
    """Pause and resume, and look at every change of state; the keyboard alone opens what each means."""
    page = desk.page
    assert page.get_by_text("Close the survey first, or pause it if it should go on.").count() == 1
    desk.press("Pause")
    assert page.locator(".state").inner_text() == "paused"
    page.get_by_text("Close …").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_by_label("I know that this cannot be undone").first.is_checked()
    page.get_by_text("Erase the answers …").press("Enter")
    page.get_by_label("To confirm, type").fill("study")
    desk.press_refused("Erase the answers", 422)
    assert (
        page.get_by_text("Nothing was erased: type the title, Study habits, to confirm.").count()
        >= 1
    )
    assert page.evaluate("document.activeElement.name") == "name"
    for summary in page.locator("main summary").all():
        if not summary.locator("xpath=..").evaluate("details => details.open"):
            summary.click()
    desk.check("overview")
    desk.press("Resume")
    assert page.locator(".state").inner_text() == "live"


def _set_a_rule(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Answers", exact=True))
    assert "more answers for ±3%" in page.locator("main").inner_text()
    desk.check("answers")
    # Entering the margin makes the choice.
    page.get_by_role("textbox", name="Margin in percentage points").fill("3")
    assert page.get_by_role("radio", name="at a margin, in percentage points").is_checked()
    desk.press("Set the rule")
    assert "(±3 points)" in page.locator("main").inner_text()


def _set_webhook(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Webhook"))
    page.get_by_label("Where to send it").fill("https://hooks.example.org/frankly")
    desk.press("Notify this address")
    assert re.fullmatch("whsec_[A-Za-z0-9+/]{43}=", page.locator("pre").first.inner_text())
    desk.check("webhook")
    desk.follow(page.get_by_role("link", name="Invitations"))
    assert "open to everybody who has its link" in page.locator("main").inner_text()
    desk.check("invitations")


def _make_analyst(desk: Desk) -> str:
    page = desk.page
    desk.follow(page.get_by_role("navigation", name="Main").get_by_role("link", name="People"))
    page.get_by_label("E-mail address").fill("eve@example.org")
    page.get_by_label("Role", exact=True).select_option("analyst")
    desk.press("Add")
    desk.check("people")
    return page.locator("pre").first.inner_text()


def _read(desk: Desk, link: str) -> None:
    """Check that the analyst sees the service's estimates and no link to the API keys."""
    page = desk.page
    desk.follow(page.get_by_role("link", name="Study habits", exact=True))
    assert page.get_by_role("link", name="API keys").count() == 0
    desk.follow(page.get_by_role("link", name="Results", exact=True))
    desk.follow(page.get_by_role("link", name="All figures and options"))
    survey = link.partition("/s/")[2].partition("#")[0]
    answer = desk.services.analysis.estimates(survey)
    for row in answer["questions"][0]["rows"]:
        share = f"{row['estimate'] * 100:.1f}%".replace("-", "−")
        cells = page.locator("table tbody tr", has_text=row["label"]["en"]).first.inner_text()
        assert share in cells
        assert all(f"{row[end] * 100:.1f}%".replace("-", "−") in cells for end in ("low", "high"))
    assert page.locator("svg.intervals .whisker").count() == 6
    # Twelve random reports may lead to any result, even an estimate outside the possible range.
    findings, page_text = (
        sentences_of(answer["questions"][0], answer["level"], Words("en")).findings,
        page.locator("main").inner_text(),
    )
    assert len(findings) >= 2
    assert all(finding in page_text for finding in findings), findings
    desk.check("estimates")
    page.get_by_text("What to show").click()
    page.get_by_label("Separate by group").select_option(label="Where do you live?")
    page.get_by_label("Confidence").select_option("0.9")
    desk.press("Show")
    assert "North" in page.locator("svg.intervals").inner_html()
    desk.check("estimates-apart", again=True)
    page.get_by_label("Estimate", exact=True).select_option("mle")
    page.get_by_label("Separate by group").select_option("")
    desk.press("Show")
    assert page.locator("svg.intervals .whisker").count() == 6
    desk.check("estimates-likeliest", again=True)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "study-habits.csv"
