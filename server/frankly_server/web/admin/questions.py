# SPDX-License-Identifier: Apache-2.0
"""Draft pages: new survey, questions and texts, and the draft as a file."""

import re
from collections import Counter
from json import loads
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys import editing, survey_templates
from frankly_server.surveys.anchors import anchored
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.draft_changes import summary
from frankly_server.surveys.editing import Draft
from frankly_server.surveys.fields import folded
from frankly_server.surveys.page_definition import DEFAULT_ACCENT, MAX_LOGO_BYTES, logo_text
from frankly_server.surveys.sources import source_names, with_sources
from frankly_server.surveys.translating import untranslated, with_languages
from frankly_server.surveys.xlsform import read_xlsform
from frankly_server.surveys.xlsform_workbook import is_workbook
from frankly_server.web import actions, reading
from frankly_server.web.admin.forms import choice, field, lines, require_only, takes, ticked
from frankly_server.web.admin.pages import attempt, render
from frankly_server.web.admin.protected_words import protected_words, strength_in_words
from frankly_server.web.admin.survey_page import by_language, keep, show, store, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search, without_slot
from frankly_server.web.security import PATH, needs, person

_OF_QUESTION: Final = ("title", "language", "question", "choices", "one_level")
IMPORT_S: Final = 30.0
"""Seconds within which a workbook is read; the largest takes about 6."""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ABOUT: Final = (
    *("languages", "add_language", "title-", "consent-", "min_reports", "closes"),
    *("accent", "logo", "no_logo", "return_to", "completion_code"),
)
"""Fields about the survey, except the choice of invitations, which a file with a key makes."""
_ITEM: Final = {"text": "item_text", "choices": "item_choices"}
"""Fields for a new instructed item, by the field of the draft."""


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_new(routes, services)
    _add_questions(routes, services)
    _add_item(routes, services)
    _add_file(routes, services)


def _add_new(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/new")
    @needs("admin")
    def new_survey() -> Response:
        return render("new.html", templates=survey_templates.templates())

    @routes.post("/surveys/new")
    @needs("admin")
    @takes("how", *_OF_QUESTION, "template", "file", "upload")
    def make_survey() -> Response:
        def again(refused: InvalidInput | None = None) -> Response:
            return render(
                "new.html", refused, templates=survey_templates.templates(), form=request.form
            )

        try:
            upload = _uploaded() if request.form.get("how") == "file" else b""
            if is_workbook(upload):
                return _imported(services, upload)
        except InvalidInput as refused:
            name = "upload" if refused.field == "xlsform" else refused.field
            return again(InvalidInput(refused.problem, refused.detail, name))

        def act() -> str:
            survey_id = actions.create_survey(services, person(), _first_draft(upload))
            return f"{PATH}/surveys/{survey_id}/questions"

        return attempt(act, again)


def _imported(services: Services, workbook: bytes) -> Response:
    """Render what becomes of an XLSForm; the page's form makes the survey."""
    imported = search(services, read_xlsform, workbook, seconds=IMPORT_S)
    counts = Counter(row.outcome for row in imported.rows)
    text = parse_value(imported.draft).to_yaml().decode()
    return render("imported.html", imported=imported, counts=counts, text=text)


def _uploaded() -> bytes:
    """Return the content of an uploaded file; b"" for none. Raises InvalidInput if a text is given too."""
    upload = request.files.get("upload")
    data = upload.read() if upload and upload.filename else b""
    if data and request.form.get("file", "").strip():
        raise InvalidInput(
            Problem.UNSUPPORTED, "choose a file, or paste its text, not both", "upload"
        )
    return data


def _first_draft(upload: bytes) -> SurveyDefinition:
    """Return the first draft: from a template, a file or the single question of the form."""
    how = choice("how", ("question", "template", "file"), "question")
    own = {"question": _OF_QUESTION, "template": ("template",), "file": ("file", "upload")}
    require_only("how", *own[how])
    if how == "template":
        return parse_definition(survey_templates.template(field("template")))
    if how == "file":
        return _definition_of(upload)
    title = field("title")
    draft = editing.new_draft(
        title,
        editing.slug(title),
        field("language") if "language" in request.form else "en",
        field("question"),
        lines("choices"),
        one_level=ticked("one_level"),
    )
    return parse_value(draft)


def _definition_of(upload: bytes) -> SurveyDefinition:
    """Return the definition in an uploaded survey file, or else in the form's text."""
    if is_workbook(upload):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "this is a workbook: make a new survey from it, and copy what you need",
            "upload",
        )
    # Lone surrogates are encoded here, and the parser then refuses them as invalid UTF-8.
    text = upload or request.form.get("file", "").encode("utf-8", "surrogatepass")
    if not text.strip():
        raise InvalidInput(
            Problem.FIELD_MISSING, "choose a file, or paste the text of one", "upload"
        )
    return parse_definition(text)


def _add_questions(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/<survey_id>/questions")
    @survey_view(services, "viewer")
    def questions(survey: OpenedSurvey) -> Response:
        reading.query(("saved",))
        return questions_page(services, survey)

    @routes.post("/surveys/<survey_id>/joint-tables")
    @survey_view(services, "admin")
    @takes("seen", "first", "second", "drop")
    def joint_tables(survey: OpenedSurvey) -> Response:
        def act() -> None:
            dropped = field("drop")
            if dropped:
                require_only("seen", "drop")
                draft = editing.without_pair(survey.draft, dropped)
            else:
                draft = editing.with_pair(survey.draft, field("first"), field("second"))
            try:
                store(services, survey, draft)
            except InvalidInput as refused:
                name = "second" if "cross_tables" in (refused.field or "") else refused.field
                raise InvalidInput(refused.problem, refused.detail, name) from None

        return attempt(
            act,
            lambda refused: questions_page(services, survey, refused, pair=request.form),
            survey.path("questions?saved=joint#joint"),
        )

    @routes.post("/surveys/<survey_id>/questions/<question_id>/remove")
    @survey_view(services, "admin")
    @takes("seen")
    def remove_question(survey: OpenedSurvey, question_id: str) -> Response:
        return attempt(
            lambda: store(services, survey, editing.remove_question(survey.draft, question_id)),
            lambda refused: questions_page(services, survey, refused),
            survey.path("questions"),
        )

    @routes.post("/surveys/<survey_id>/text")
    @survey_view(services, "admin")
    @takes("seen", *_ABOUT, "invited", "sources")
    def change_text(survey: OpenedSurvey) -> Response:
        return attempt(
            lambda: _store_about(services, survey),
            lambda refused: questions_page(services, survey, refused, about=request.form),
            survey.path("questions?saved=about#about"),
        )


def _add_item(routes: APIBlueprint, services: Services) -> None:
    @routes.post("/surveys/<survey_id>/item")
    @survey_view(services, "admin")
    @takes("seen", *_ITEM.values(), "item_answer")
    def add_item(survey: OpenedSurvey) -> Response:
        def act() -> None:
            if survey.definition.instructed is not None:
                raise InvalidInput(
                    Problem.DEFINITION_INVALID,
                    "a survey has one such item: change it, or remove it first",
                    "item_text",
                )
            draft = editing.add_item(survey.draft, _item())
            try:
                store(services, survey, draft)
            except InvalidInput as refused:
                part = (refused.field or "").removeprefix("instructed.").partition(".")[0]
                name = (
                    "item_choices" if refused.problem is Problem.CHOICES_COUNT else _ITEM.get(part)
                )
                raise InvalidInput(refused.problem, refused.detail, name or refused.field) from None

        return attempt(
            act,
            lambda refused: questions_page(services, survey, refused, item=request.form),
            survey.path("questions"),
        )


def _item() -> editing.ItemWords:
    """Return the form's instructed item. Raises InvalidInput for an answer that is no choice."""
    choices, answer = lines("item_choices"), folded(field("item_answer"))
    places = [i for i, label in enumerate(choices) if folded(label) == answer]
    if not places:
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            "write one of the item's choices here, word for word",
            "item_answer",
        )
    return editing.ItemWords(field("item_text"), tuple(choices), places[0])


def _store_about(services: Services, survey: OpenedSurvey) -> None:
    """Store the draft with the form's values; a fault of the sources' question is shown at their field."""
    try:
        store(services, survey, _with_about(survey))
    except InvalidInput as refused:
        if lines("sources") and (refused.field or "").startswith(("strata", "tokens", "arms")):
            raise InvalidInput(refused.problem, refused.detail, "sources") from None
        raise


def _with_about(survey: OpenedSurvey) -> Draft:
    """Return the draft with the form's texts, numbers, last day and languages."""
    draft = survey.draft
    draft["title"] = by_language(survey, "title")
    consent = by_language(survey, "consent")
    draft["consent"] = consent if any(consent.values()) else None
    draft["min_reports"] = field("min_reports")
    # The rule for an outside issuer has a key, which only a file can state.
    if (draft.get("tokens") or {}).get("key"):
        require_only("seen", *_ABOUT)
    else:
        draft = with_sources(draft, lines("sources"), invited=ticked("invited"))
    draft["page"] = _page(draft.get("page") or {})
    closes = field("closes")
    # A file can state another time of the day, which stays unless the date changes.
    if closes != (draft.get("closes") or "")[:10]:
        if closes and not _DAY.fullmatch(closes):
            raise InvalidInput(Problem.FIELD_TYPE, "write a day as 2026-12-31", "closes")
        # The form contains a date; the survey closes at the end of that day, UTC.
        draft["closes"] = f"{closes}T23:59:59Z" if closes else None
    # A language that was added has no fields on the page yet, so it comes last.
    languages = field("languages").replace(",", " ").split()
    if field("add_language"):
        languages.append(field("add_language"))
    before = survey.draft
    for gone in set(before["languages"]) - set(languages):
        for name in ("title", "consent"):
            was = (before.get(name) or {}).get(gone, "")
            if draft[name] and draft[name].get(gone, "") != was:
                raise InvalidInput(
                    Problem.UNSUPPORTED,
                    "this text was changed, but its language is removed: keep the language, or put the text back",
                    f"{name}-{gone}",
                )
    return with_languages(draft, languages or [""])


def _page(page: dict[str, Any]) -> dict[str, Any] | None:
    """Return the form's colour, logo and way back to a panel; None for the usual ones."""
    own = {
        name: field(name) if name in request.form else page.get(name)
        for name in ("accent", "return_to", "completion_code")
    }
    if own["accent"] == DEFAULT_ACCENT:
        own["accent"] = None
    upload = request.files.get("logo")
    # One byte more than allowed, so that a file that is too large is refused.
    image = upload.read(MAX_LOGO_BYTES + 1) if upload and upload.filename else b""
    if image and ticked("no_logo"):
        raise InvalidInput(Problem.UNSUPPORTED, "choose a logo, or remove it, not both", "logo")
    own["logo"] = logo_text(image) if image else None if ticked("no_logo") else page.get("logo")
    return {name: value for name, value in own.items() if value} or None


def questions_page(
    services: Services, survey: OpenedSurvey, refused: InvalidInput | None = None, **values: Any
) -> Response:
    """Render the page of all questions; if a form was refused, with its values."""
    earlier = services.surveys.earlier_drafts(survey.id)
    definition = survey.definition
    levels = (levels for block in definition.blocks for levels in block.protections)
    return show(
        "questions.html",
        survey,
        "questions",
        refused,
        missing=untranslated(survey.draft),
        last_draft=earlier[0].number if earlier else None,
        last_change=summary(loads(earlier[0].text), survey.draft) if earlier else (),
        item_words=editing.item_words(definition.languages[0]),
        anchored=[question for _, question in anchored(definition)],
        rests_on_prior=any(level.is_prior_based for level in levels),
        default_accent=DEFAULT_ACCENT,
        source_names=source_names(survey.draft),
        # The anchor of what was saved.
        saved="" if refused else request.args.get("saved", ""),
        protected={block.id: protected_words(block, definition) for block in definition.blocks},
        form_strength=strength_in_words(definition.form_epsilon, "ldp"),
        **values,
    )


def _add_file(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/<survey_id>/file")
    @survey_view(services, "viewer")
    def survey_file(survey: OpenedSurvey) -> Response:
        # Long lists of choices take seconds.
        with without_slot(services.analyses):
            return show("file.html", survey, "file", text=survey.definition.to_yaml().decode())

    @routes.post("/surveys/<survey_id>/file")
    @survey_view(services, "admin")
    @takes("seen", "file", "upload")
    def replace_by_file(survey: OpenedSurvey) -> Response:
        text = request.form.get("file", "")

        def act() -> None:
            upload = request.files.get("upload")
            data = upload.read() if upload and upload.filename else b""
            # The page shows the present file as text, which an upload replaces.
            shown = survey.definition.to_yaml().decode()
            if data and text.replace("\r\n", "\n").strip() not in ("", shown.strip()):
                raise InvalidInput(
                    Problem.UNSUPPORTED,
                    "you changed the text too: use the file or the text",
                    "upload",
                )
            definition = _definition_of(data)
            if definition.name != survey.name:
                raise InvalidInput(
                    Problem.DEFINITION_INVALID,
                    f"this survey is called {survey.name}: keep the name, or make a new "
                    "survey from the file",
                    "name",
                )
            keep(services, survey, definition)

        return attempt(
            act,
            lambda refused: show("file.html", survey, "file", refused, text=text),
            survey.path("questions"),
        )
