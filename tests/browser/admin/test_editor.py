# SPDX-License-Identifier: Apache-2.0
"""The editor in a browser: the preview beside the questions, what is typed and not saved, rows."""

from json import loads
from typing import Any

from frankly_server.surveys.definition import parse_definition, parse_value
from frankly_server.surveys.translating import with_languages
from playwright.sync_api import FrameLocator, Request

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.web.admin.test_question_form import FILE


def begun(desk: Desk) -> str:
    """Sign in as an owner of a survey with a form in two languages; return its address."""
    desk.services.surveys.apply(parse_definition(FILE.replace(b"FILE", b"members")))
    desk.open("/admin/")
    if desk.page.get_by_label("E-mail address").count():
        desk.sign_in("ada@example.org", PASSWORD)
    return f"/admin/surveys/{desk.services.surveys.summary('members').survey_id}"


def preview(desk: Desk) -> FrameLocator:
    return desk.page.frame_locator("iframe[name=preview]")


def test_the_preview_is_the_respondents_page_and_sends_nothing(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    desk.open(f"{survey}/questions")
    shown = preview(desk)
    shown.get_by_role("heading", name="Members").wait_for()
    # The element has verified the document and explains it.
    shown.get_by_text("This device changes").first.wait_for()
    page.get_by_role("link", name="German").click()
    shown.get_by_text("Rauchen Sie?").last.wait_for()
    page.get_by_role("link", name="English").click()
    shown.get_by_text("Do you smoke?").last.wait_for()
    desk.check("editor")
    page.get_by_role("link", name="As one person is asked").click()
    shown.get_by_text("this device has drawn").first.wait_for()
    page.get_by_role("link", name="All questions").click()
    shown.get_by_role("radiogroup", name="Do you smoke?").get_by_text("Yes").click()
    shown.get_by_label("How long?").fill("3")
    shown.locator("#send").click()
    shown.get_by_text("Thank you").wait_for()
    assert sent == []
    names = page.evaluate("indexedDB.databases().then((all) => all.map((one) => one.name))")
    assert names == []
    assert desk.services.surveys.versions("members") == []


def test_a_draft_that_cannot_be_published_says_why(desk: Desk) -> None:
    survey = begun(desk)
    file = FILE.replace(b"FILE", b"members").replace(
        b"form:",
        b"blocks: [{id: b, notion: dp, epsilon: 9, delta: '0', questions: [{id: q, type: yes-no, "
        b"text: {en: 'Q?', de: 'Q!'}}]}]\nform:\n  epsilon: 1",
    )
    definition = parse_definition(file)
    desk.services.surveys.redefine(
        survey.rsplit("/", 1)[1],
        definition,
        desk.services.surveys.draft("members").digest,
        lambda _tx: None,
    )
    desk.open(f"{survey}/questions")
    preview(desk).get_by_text(
        "No preview: the whole report reveals more than the budget"
    ).wait_for()
    assert desk.messages == []


def question(desk: Desk) -> Any:
    form = desk.services.surveys.draft("members").form
    assert form is not None
    return loads(form.questions[-1].model_dump_json(exclude_defaults=True))


def test_what_is_typed_comes_back_until_it_is_saved(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    desk.open(f"{survey}/new-question")
    page.get_by_label("English").first.fill("Tired?")
    page.get_by_label("A scale").check()
    for _ in range(2):
        page.get_by_role("button", name="Add a row").click()
    page.get_by_label("Choice 5, en").fill("Very")
    # Leaving asks first; the session may also end.
    page.once("dialog", lambda dialog: dialog.accept())
    desk.open(f"{survey}/drafts")
    desk.open(f"{survey}/new-question")
    page.get_by_text("What you had typed and not saved is back.").wait_for()
    assert page.get_by_label("English").first.input_value() == "Tired?"
    assert page.get_by_label("A scale").is_checked()
    assert page.get_by_label("Choice 5, en").input_value() == "Very"
    page.get_by_label("Choice 1, en").fill("A bit")
    desk.press("Save the question")
    scores = [(one["label"]["en"], one["score"]) for one in question(desk)["choices"]]
    assert scores == [("A bit", "1"), ("Very", "2")]
    desk.open(f"{survey}/new-question")
    assert page.get_by_label("English").first.input_value() == ""
    assert page.get_by_text("not saved is back").count() == 0


def test_a_refusal_stands_at_its_field_and_shows_it(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    desk.open(f"{survey}/questions/sports")
    # A column that the kind does not use is not shown, until something in it is wrong.
    assert not page.get_by_label("Number of choice 1").is_visible()
    page.get_by_label("A scale").check()
    page.get_by_label("Number of choice 1").fill("3")
    desk.press_refused("Save", 422)
    assert (
        page.evaluate("document.activeElement.getAttribute('aria-label')") == "Number of choice 2"
    )
    page.get_by_label("One of several choices").check()
    assert page.get_by_label("Number of choice 1").is_visible()
    desk.check("editor-refused")


def test_known_counts_are_shown_where_they_count(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    desk.open(f"{survey}/questions/years")
    page.get_by_text("what is known, short name").click()
    count, source = (
        page.get_by_label("Known count of choice 1"),
        page.get_by_label("Source of these"),
    )
    assert not count.is_visible()
    assert not source.is_visible()
    page.get_by_label("It is known, and published").check()
    count.fill("11")
    desk.check("known-counts")
    page.get_by_label("No: public").check()
    assert not source.is_visible()
    page.get_by_label("Yes, by itself").check()
    desk.press_refused("Save", 422)
    assert page.locator(":focus").get_attribute("aria-label") == "Known count of choice 2"
    for i in (2, 3):
        page.get_by_label(f"Known count of choice {i}").fill("1")
    desk.press_refused("Save", 422)
    assert page.locator(":focus").get_attribute("name") == "known_source"
    source.fill("A report")
    desk.press("Save")
    anchor = desk.services.surveys.draft("members").blocks[0].questions[0].anchor
    assert anchor is not None
    assert (anchor.counts, anchor.source) == ((11, 1, 1), "A report")


def test_a_copy_asks_its_question_again(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    desk.open(f"{survey}/questions")
    page.get_by_role("button", name="Duplicate Do you smoke?").click()
    desk.open(f"{survey}/questions/smokes-2")
    page.get_by_text("what is known, short name").click()
    again = page.get_by_label("Asks this question again")
    page.get_by_label("Yes, by itself").check()
    assert not again.is_visible()
    page.get_by_label("Yes, together with").check()
    again.select_option("smokes")
    desk.check("asked-again")
    page.get_by_label("Known count of choice 1").evaluate("(cell) => { cell.value = '11'; }")
    desk.press_refused("Save", 422)
    assert page.locator(":focus").get_attribute("aria-label") == "Known count of choice 1"
    page.get_by_label("Known count of choice 1").fill("")
    desk.press("Save")
    page.get_by_text("Asks “Do you smoke?” again.").wait_for()
    form = desk.services.surveys.draft("members").form
    assert form is not None
    asked = [one.anchor for one in form.questions if one.id == "smokes-2"]
    assert [anchor and anchor.repeats for anchor in asked] == ["smokes"]


def leave(desk: Desk, path: str) -> None:
    """Open another page although something was typed: the browser asks first."""
    desk.page.once("dialog", lambda dialog: dialog.accept())
    desk.open(path)


def test_what_comes_back_never_replaces_what_others_have_saved(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    desk.open(f"{survey}/questions/years")
    page.get_by_label("English").first.fill("Typed in English?")
    page.get_by_label("German").first.fill("Getippt?")
    leave(desk, f"{survey}/drafts")
    file = FILE.replace(b"FILE", b"members").replace(b"Wie lange?", b"Seit wann?")
    desk.services.surveys.apply(parse_definition(file))
    desk.open(f"{survey}/questions/years")
    note = page.get_by_text("What you had typed and not saved is back.").inner_text()
    assert "the draft has changed since: “Getippt?”" in note
    assert page.get_by_label("English").first.input_value() == "Typed in English?"
    assert page.get_by_label("German").first.input_value() == "Seit wann?"
    page.get_by_role("button", name="Discard it").click()
    page.wait_for_function("!document.querySelector('[role=status]')")
    assert page.get_by_label("English").first.input_value() == "How long?"


def test_texts_of_one_language_do_not_come_back_in_another(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    definition = desk.services.surveys.draft("members")
    draft = with_languages(loads(definition.to_json()), ["en", "de", "fr"])
    desk.services.surveys.apply(parse_value(draft))
    desk.open(f"{survey}/translations?to=de")
    page.get_by_label("German: Members").fill("Leute")
    leave(desk, f"{survey}/translations?to=fr")
    assert page.get_by_label("French: Members").input_value() == ""
    assert page.get_by_text("not saved is back").count() == 0
    desk.open(f"{survey}/translations?to=de")
    assert page.get_by_label("German: Members").input_value() == "Leute"
    # Signing out forgets it.
    desk.press("Sign out")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.open(f"{survey}/translations?to=de")
    assert page.get_by_label("German: Members").input_value() == "Mitglieder"


def test_a_refused_form_is_still_kept_and_hidden_answers_are_not_sent(desk: Desk) -> None:
    page, survey = desk.page, begun(desk)
    desk.open(f"{survey}/new-question")
    page.get_by_label("English").first.fill("Refused?")
    page.get_by_text("Who is asked, what should be precise").click()
    page.get_by_label("Who is asked").select_option("smokes")
    page.get_by_role("checkbox", name="Yes").first.check()
    page.get_by_label("Who is asked").select_option("")
    page.get_by_label("Short name of the question").fill("smokes")
    desk.press_refused("Save the question", 422)
    assert "another question" in page.locator("#refusal").inner_text()
    leave(desk, f"{survey}/drafts")
    desk.services.surveys.apply(
        parse_definition(FILE.replace(b"FILE", b"members").replace(b"Members", b"People"))
    )
    desk.open(f"{survey}/new-question")
    assert page.get_by_label("English").first.input_value() == "Refused?"
    page.get_by_text("Who is asked, what should be precise").click()
    page.get_by_label("Short name of the question").fill("fine")
    desk.press("Save the question")
    assert question(desk)["id"] == "fine"
    assert "ask_if" not in question(desk)
    desk.open(f"{survey}/questions")
    page.get_by_label("What people read before they answer").first.fill("Please")
    leave(desk, f"{survey}/drafts")
    desk.open(f"{survey}/questions")
    assert page.get_by_label("What people read before they answer").first.input_value() == "Please"
