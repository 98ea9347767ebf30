# SPDX-License-Identifier: Apache-2.0
"""Invitations from the admin's page to the phone: cards, a personal link, and a code that is typed."""

import re

from frankly_server.intake.invites import InviteCounts
from frankly_server.surveys import editing
from frankly_server.surveys.definition import parse_value
from playwright.sync_api import Page

from tests.browser.admin.conftest import PASSWORD, Desk


def test_from_cards_to_answers_with_a_link_and_with_a_code(desk: Desk) -> None:
    draft = editing.new_draft("Pay and work", "pay", "en", "Are you paid fairly?", ["No", "Yes"])
    published = desk.services.surveys.apply(parse_value(draft | {"tokens": {"kind": "invite"}}))
    desk.services.surveys.publish("pay")
    page, where = desk.page, f"/admin/surveys/{published.survey_id}/invitations"
    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.open(where)
    page.get_by_label("How many").fill("4")
    page.get_by_label("Cards with QR codes").check()
    desk.press("Make them")
    desk.check("invitations-cards")
    box = page.locator("ul.cards svg").first.bounding_box()
    assert box is not None
    assert box["width"] == box["height"] > 100  # a squashed code cannot be scanned
    codes = page.locator("ul.cards code").all_inner_texts()
    assert len(codes) == 4
    link = desk.services.surveys.summary("pay").link
    assert link is not None
    _print_shows_cards_only(page)
    visitor = page.context.browser.new_page()  # type: ignore[union-attr]  # not None here
    visitor.goto(f"{link}&invite={codes[0]}")
    assert _answered(visitor)
    # Another browser, where a code is typed with a mistake first.
    other = page.context.browser.new_context().new_page()  # type: ignore[union-attr]
    other.goto(link)
    field = other.get_by_label("Invitation")
    field.fill(codes[1][:-1] + ("1" if codes[1][-1] != "1" else "2"))
    other.get_by_label("Yes").check()
    other.locator("button[type=submit]").click()
    other.locator("#invitation-error").filter(has_text="not valid").wait_for()
    field.fill(codes[1].lower())
    assert _answered(other)
    for one in (visitor, other):
        one.context.close()
    desk.open(where)
    used = re.search(r"Used\n(.*)", page.locator("dl").inner_text())
    assert used
    assert used.group(1) == "fewer than 10"
    page.get_by_label("Or all unused invitations").check()
    desk.press("Revoke")
    assert desk.services.invites.total(published.survey_id or "") == InviteCounts(made=4, used=2)


def _answered(page: Page) -> bool:
    page.get_by_label("Yes").check()
    page.locator("button[type=submit]").click()
    page.get_by_text("Your randomised answer has arrived").wait_for()
    return True


def _print_shows_cards_only(page: Page) -> None:
    page.emulate_media(media="print")
    assert page.locator("ul.cards").is_visible()
    for hidden in ("header.site", "nav.tabs", "form", ".lead"):
        assert not page.locator(hidden).first.is_visible(), hidden
    page.emulate_media(media="screen")
