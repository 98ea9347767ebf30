# SPDX-License-Identifier: Apache-2.0
"""Translations page: every text of a draft beside the one of its first language."""

import hashlib
from collections.abc import Sequence
from typing import Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.translating import (
    is_untranslated,
    texts_of,
    untranslated,
    with_translations,
)
from frankly_server.web.admin.forms import choice, takes
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import OpenedSurvey, show, store, survey_view

_MOST: Final = 4000  # as in a survey file


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/translations")
    @survey_view(services, "viewer")
    def translations(survey: OpenedSurvey) -> Response:
        return _page(survey, _language(survey, request.args.get("to", "")))

    @routes.post("/surveys/<survey_id>/translations")
    @survey_view(services, "admin")
    @takes("seen", "to", "of", many=("text",))
    def translate(survey: OpenedSurvey) -> Response:
        to = choice("to", survey.definition.languages[1:])
        return attempt(
            lambda: _keep(services, survey, to),
            lambda refused: _page(survey, to, refused),
            f"{survey.path('translations')}?to={to}",
        )


def _language(survey: OpenedSurvey, asked: str) -> str:
    """Return the language of the page: the one asked for, the first that is incomplete, or the second."""
    others = survey.definition.languages[1:]
    if asked in others:
        return asked
    return next(iter(untranslated(survey.draft)), others[0] if others else "")


def _originals(survey: OpenedSurvey) -> list[str]:
    return [text.by_language[survey.definition.languages[0]] for text in texts_of(survey.draft)]


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def _typed() -> list[str]:
    return [text.replace("\r\n", "\n").strip() for text in request.form.getlist("text")]


def _keep(services: Services, survey: OpenedSurvey, to: str) -> None:
    originals, typed = _originals(survey), _typed()
    # A draft with other questions has other texts, or the same in another order.
    if request.form.get("of") != _digest(originals) or len(typed) != len(originals):
        raise InvalidInput(
            Problem.IMMUTABLE,
            "the questions have changed meanwhile: copy what you typed, and open this page again",
        )
    try:
        store(services, survey, with_translations(survey.draft, to, typed, originals))
    except InvalidInput as refused:
        place = _refused_text(survey, to, typed, originals)
        name = refused.field if place is None else f"text[{place}]"
        raise InvalidInput(refused.problem, refused.detail, name) from None


def _refused_text(
    survey: OpenedSurvey, to: str, typed: Sequence[str], originals: Sequence[str]
) -> int | None:
    """Return the place of the first text that alone makes the draft invalid; None if there is none."""
    stored = [text.by_language[to] for text in texts_of(survey.draft)]
    for i, text in enumerate(typed):
        if text == stored[i]:
            continue
        changed = [*stored[:i], text, *stored[i + 1 :]]
        try:
            parse_value(with_translations(survey.draft, to, changed, originals))
        except InvalidInput:
            return i
    return None


def _page(survey: OpenedSurvey, to: str, refused: InvalidInput | None = None) -> Response:
    first = survey.definition.languages[0]
    typed = _typed() if refused is not None else []
    rows = []
    for i, text in enumerate(texts_of(survey.draft) if to else ()):
        words = text.by_language
        is_missing = is_untranslated(words, to, first)
        # A text that is not translated yet is an empty field, so that what is missing is seen.
        shown = "" if is_missing else words[to]
        if i < len(typed):
            shown = typed[i]
        rows.append((text.kind, words[first], shown, is_missing))
    return show(
        "translations.html",
        survey,
        "questions",
        refused,
        to=to,
        rows=rows,
        of=_digest(_originals(survey)),
        missing=untranslated(survey.draft),
        most=_MOST,
    )
