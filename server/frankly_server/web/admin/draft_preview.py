# SPDX-License-Identifier: Apache-2.0
"""Preview of a draft as respondents will see it: the SDK's own element, in a frame of the pages."""

from dataclasses import asdict
from typing import Final

from apiflask import APIBlueprint
from flask import Response, json, request
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput

from frankly_server.services import Services
from frankly_server.surveys.searches import Busy, Places
from frankly_server.surveys.signed_draft import shown_definition, signed_draft
from frankly_server.surveys.trial import TRIAL_S, drafted
from frankly_server.web import hosted, page_look, reading
from frankly_server.web.admin.pages import link_to, render
from frankly_server.web.admin.survey_page import survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src '{style}'; connect-src 'self'; worker-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'; trusted-types frankly"
)
_ASKS: Final = ("all", "drawn")


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    hosted_style = hosted.files()["hosted.css"].decode().strip()

    @routes.get("/surveys/<survey_id>/preview")
    @survey_view(services, "viewer")
    def preview(survey: OpenedSurvey) -> Response:
        page = survey.definition.page
        style = hosted_style
        if page and page.accent:
            style += f"\n{page_look.style(page.accent)}"
        response = render(
            "preview.html",
            survey=survey,
            style=style,
            logo=page.logo if page else None,
            page=page,
            script=link_to("preview.js"),
            data=f"{survey.path('preview/draft')}?ask={_ask()}",
        )
        policy = _POLICY.format(style=hosted.integrity(style.encode(), "sha256"))
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Frame-Options"] = "SAMEORIGIN"
        return response

    @routes.get("/surveys/<survey_id>/preview/draft")
    @survey_view(services, "viewer")
    def draft(survey: OpenedSurvey) -> Response:
        try:
            document = designed(services, survey, _ask(), services.previews)
            made = signed_draft(document, services.settings.public_url.rstrip("/"))
        except Busy as busy:
            return Response(json.dumps({"busy": busy.detail}), content_type=reading.JSON)
        except InvalidInput as refused:
            told = {
                "refused": f"{refused.detail} ({refused.field})"
                if refused.field
                else refused.detail
            }
            return Response(json.dumps(told), content_type=reading.JSON)
        return Response(json.dumps(asdict(made)), content_type=reading.JSON)


def designed(
    services: Services, survey: OpenedSurvey, ask: str = "drawn", places: Places | None = None
) -> SurveyDocument:
    """Return the draft's document as it is shown today; it is designed only once a day.

    ask : as in `_ask`. places : as of `search_once`. Raises Busy and the errors of `drafted`.
    """
    definition, now = survey.definition, services.surveys.now()
    asked: str | None = ask
    if ask == "drawn":
        # An unstated choice stays unstated, as in the version that would be published now.
        following = services.surveys.next_version(definition, survey.id)
        asked = following.form.ask if following.form else None
    shown = shown_definition(definition, asked)
    # As of today's first second, so that the same draft is designed once a day only.
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    url = f"{services.settings.public_url.rstrip('/')}/v1/surveys/{'0' * 32}/reports"
    return search_once(services, drafted, shown, today, url, seconds=TRIAL_S, places=places)


def _ask() -> str:
    """Return what is shown of a form: all questions, or those that one person is asked."""
    asked = request.args.get("ask", _ASKS[0])
    return asked if asked in _ASKS else _ASKS[0]
