# SPDX-License-Identifier: Apache-2.0
"""Translations page: every text of a draft beside the one of its first language."""

from collections.abc import Sequence
from typing import Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.translating import (
    DraftText,
    is_untranslated,
    texts_of,
    untranslated,
    with_translations,
)
from frankly_server.web import reading
from frankly_server.web.admin.forms import field, takes
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import show, store, survey_view
from frankly_server.web.opened_survey import OpenedSurvey

_MOST: Final = 4000  # as in a survey file


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/translations")
    @survey_view(services, "viewer")
    def translations(survey: OpenedSurvey) -> Response:
        return _page(survey, _language(survey, reading.query(("to", "saved")).get("to", "")))

    @routes.post("/surveys/<survey_id>/translations")
    @survey_view(services, "admin")
    @takes("seen", "to", many=("text", "original"))
    def translate(survey: OpenedSurvey) -> Response:
        to = field("to")
        return attempt(
            lambda: _keep(services, survey, to),
            lambda refused: _page(survey, to, refused),
            f"{survey.path('translations')}?to={to}&saved=yes",
        )


def _language(survey: OpenedSurvey, asked: str) -> str:
    """Return the language of the page: the one asked for, the first that is incomplete, or the second."""
    others = survey.definition.languages[1:]
    if asked in others:
        return asked
    return next(iter(untranslated(survey.draft)), others[0] if others else "")


def _posted(name: str) -> list[str]:
    return [text.replace("\r\n", "\n").strip() for text in request.form.getlist(name)]


def _keep(services: Services, survey: OpenedSurvey, to: str) -> None:
    if to not in survey.definition.languages[1:]:
        raise InvalidInput(Problem.IMMUTABLE, "this language was removed meanwhile")
    first = survey.definition.languages[0]
    texts = list(texts_of(survey.draft))
    originals, typed = [text.by_language[first].strip() for text in texts], _posted("text")
    if _posted("original") != originals or len(typed) != len(originals):
        raise InvalidInput(
            Problem.IMMUTABLE,
            "the questions have changed meanwhile. What you typed stands beside its text again: look at "
            "it, and save once more",
        )
    try:
        store(services, survey, with_translations(survey.draft, to, typed))
    except InvalidInput as refused:
        raise InvalidInput(
            refused.problem, refused.detail, _field_of(refused.field or "", to, texts)
        ) from None


def _field_of(path: str, to: str, texts: Sequence[DraftText]) -> str:
    """Return the field of the text at which the draft was refused, or the path if there is none."""
    for i, text in enumerate(texts):
        # Of labels that look the same, the list is refused.
        if path in (f"{text.path}.{to}", text.path) or text.path.startswith(f"{path}["):
            return f"text[{i}]"
    return path


def _page(survey: OpenedSurvey, to: str, refused: InvalidInput | None = None) -> Response:
    first = survey.definition.languages[0]
    # By text, because the questions may have changed since the form was shown.
    typed: dict[str, list[str]] = {}
    if refused is not None:
        for original, words in zip(_posted("original"), _posted("text"), strict=False):
            typed.setdefault(original, []).append(words)
    rows = []
    for text in texts_of(survey.draft) if to in survey.definition.languages[1:] else ():
        original = text.by_language[first]
        is_missing = is_untranslated(text.by_language, to, first)
        # A text that is not translated yet is an empty field, so that what is missing is seen.
        shown = "" if is_missing else text.by_language[to]
        of_text = typed.get(original.strip())
        rows.append((text.kind, original, of_text.pop(0) if of_text else shown, is_missing))
    return show(
        "translations.html",
        survey,
        "questions",
        refused,
        to=to,
        rows=rows,
        # Typed for texts that are gone; kept on the page, to be copied.
        homeless=[words for of_text in typed.values() for words in of_text if words],
        missing=untranslated(survey.draft),
        most=_MOST,
    )
