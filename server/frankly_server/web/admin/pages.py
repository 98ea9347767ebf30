# SPDX-License-Identifier: Apache-2.0
"""Rendering of templates, static files and error pages."""

import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, abort, g, make_response, redirect, render_template
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import may
from frankly_server.surveys.searches import Busy
from frankly_server.web.headers import PUBLIC_FOREVER
from frankly_server.web.security import PATH

_KINDS: Final = {
    "admin.css": "text/css; charset=utf-8",
    "admin.js": "text/javascript; charset=utf-8",
    "preview.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_FILES: Final = {
    name: resources.files(__package__).joinpath("static", name).read_bytes() for name in _KINDS
}
_LINKS: Final = {
    name: f"{PATH}/assets/{hashlib.sha256(data).hexdigest()[:16]}/{name}"
    for name, data in _FILES.items()
}


LANGUAGES: Final = {
    "ar": "Arabic",
    "da": "Danish",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}
"""Names of the languages that pages offer for surveys, in the language of the pages."""


def assets(routes: APIBlueprint) -> None:
    """Serve style sheet, script and icon under paths with a digest, for caching."""

    @routes.get("/assets/<digest>/<name>")
    def asset(digest: str, name: str) -> Response:
        if _LINKS.get(name) != f"{PATH}/assets/{digest}/{name}":
            abort(404)
        response = Response(_FILES[name], content_type=_KINDS[name])
        response.headers["Cache-Control"] = PUBLIC_FOREVER
        return response


def link_to(name: str) -> str:
    """Return the path of a static file."""
    return _LINKS[name]


def render(
    template: str, refused: FranklyError | None = None, *, status: int = 200, **values: Any
) -> Response:
    """Render a page; templates also get the signed-in person, their rights and the CSRF token.

    refused : error of a form, which the page shows; its HTTP status, if any, becomes the page's.
    """
    person = g.get("person")
    text = render_template(
        f"admin/{template}",
        person=person,
        may=lambda role: person is not None and may(person.role, role),
        csrf=g.get("form_token", ""),
        css=_LINKS["admin.css"],
        js=_LINKS["admin.js"],
        icon=_LINKS["icon.svg"],
        error=refused,
        **values,
    )
    response = make_response(
        text, refused.problem.status if isinstance(refused, InvalidInput) else status
    )
    if isinstance(refused, Busy):
        response.headers["Retry-After"] = str(refused.retry_after_s)
    return response


def failed(error: FranklyError) -> Response:
    """Render an error page for a FranklyError that no form shows."""
    if isinstance(error, Busy):
        response = render("busy.html", status=429, seconds=error.retry_after_s)
        response.headers["Retry-After"] = str(error.retry_after_s)
        return response
    problem = error.problem if isinstance(error, InvalidInput) else Problem.from_code(error.code)
    status = 500 if problem is None else problem.status
    detail = "An internal error occurred; try again later." if status == 500 else error.detail
    # Only the operator may know which key file or setting is wrong; `frankly doctor` shows it.
    if problem in (Problem.KEY_FILE, Problem.UNSAFE_SETTING):
        status, detail = (
            503,
            "The server is not set up for this yet; its operator can run `frankly doctor`.",
        )
    return render("error.html", status=status, title="That did not work", detail=detail)


def attempt(
    act: Callable[[], object], again: Callable[[InvalidInput], Response], then: str = ""
) -> Response:
    """Run a form's action and redirect to `then`, or else to the path that the action returns.

    If the action raises a refusal, return the page that `again` builds from it.
    """
    try:
        result = act()
    except InvalidInput as refused:
        # No form field can fix these errors, so the error page shows them.
        if refused.problem in (Problem.SURVEY_UNKNOWN, Problem.KEY_FILE):
            raise
        return again(refused)
    return go(then or str(result))


def go(path: str) -> Response:
    """Redirect the browser to another page with GET."""
    response = redirect(path, 303)
    assert isinstance(response, Response)  # noqa: S101 - what flask's redirect returns, though typed wider
    return response
