# SPDX-License-Identifier: Apache-2.0
"""An admin makes a survey from nothing, a respondent answers it through the SDK, and the intake page shows it."""

from frankly_sdk import Client

from tests.browser.admin.conftest import PASSWORD, Desk

ANSWERS = 12


def test_from_nothing_to_answers(desk: Desk) -> None:
    page = desk.page
    desk.open("/admin/")
    desk.check("sign-in")
    _sign_in(desk)
    desk.check("surveys-empty")
    _write_survey(desk)
    _publish(desk)
    link = page.locator("pre").first.inner_text()
    desk.check("embed")
    for i in range(ANSWERS):
        with Client.open(link, store=desk.home / f"device{i}.db", spread_s=0) as client:
            assert (
                client.answer({"did-you-ever-cheat": "yes"}, strata={"where-do-you-live": "north"}).code == "accepted"
            )
    desk.follow(page.get_by_role("link", name="Intake"))
    assert page.locator(".big").inner_text() == str(ANSWERS)
    assert "more answers for ±3%" in page.locator("main").inner_text()
    desk.check("intake")
    _run(desk)
    for name, place in (("people", "People"), ("keys", "API keys"), ("audit", "Audit"), ("account", "Your account")):
        desk.follow(page.get_by_role("navigation", name="Main").get_by_role("link", name=place))
        desk.check(name)
    desk.follow(page.get_by_role("link", name="Frankly", exact=True))
    desk.check("surveys")


def _sign_in(desk: Desk) -> None:
    page = desk.page
    page.get_by_label("E-mail address").fill("ada@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Password").press("Enter")  # no mouse is needed anywhere
    page.wait_for_url("**/admin/surveys")


def _write_survey(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="New survey"))
    desk.check("new")
    page.get_by_label("Title of the survey").fill("Study habits")
    page.get_by_label("First question").fill("Did you ever cheat?")
    page.get_by_label("Its choices, one a line").fill("No\nYes")
    desk.press("Begin")
    page.get_by_role("textbox", name="Question", exact=True).fill("Where do you live?")
    page.get_by_label("Its choices, one a line").fill("North\nSouth")
    page.get_by_label("Public:").check()
    desk.press("Add")
    desk.check("questions")
    desk.follow(page.get_by_role("link", name="Protection", exact=False).first)
    desk.check("protection")
    page.get_by_label("In words").check()
    page.get_by_role("textbox", name="So many times").fill("4")
    desk.press("Keep, and see the margins")
    # Truth with chance 4/5 at a factor of 4: 1.96 / (2·(2·0.8 − 1)·√500) = 0.073.
    assert "±7.3" in page.locator("tr.chosen").inner_text()
    desk.check("margins")
    desk.follow(page.get_by_role("link", name="Next: try it"))
    desk.press("Send")
    desk.check("try")


def _publish(desk: Desk) -> None:
    page = desk.page
    desk.follow(page.get_by_role("link", name="Next: publish"))
    desk.check("publish-before")
    desk.press("Publish")
    page.get_by_role("link", name="Get the link").wait_for()
    desk.check("job")
    desk.follow(page.get_by_role("link", name="See the certificate"))
    desk.check("publish")
    desk.follow(page.get_by_role("link", name="Embed"))


def _run(desk: Desk) -> None:
    page = desk.page
    page.get_by_role("radio", name="at a margin, in percentage points").check()
    page.get_by_role("textbox", name="Margin in percentage points").fill("3")
    desk.press("Set the rule")
    assert "(±3 points)" in page.locator("main").inner_text()
    desk.press("Pause")
    assert page.locator(".state").inner_text() == "paused"
    desk.press("Resume")
    assert page.locator(".state").inner_text() == "live"
