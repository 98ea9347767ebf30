# SPDX-License-Identifier: Apache-2.0
"""Results page of one survey for whoever has its link: read-only, without an account or a cookie.

The address contains a key of the role reader, which opens nothing else (ADR 0060). Log lines contain
the template of the route, never the address.
"""

from html import escape
from typing import Final

from apiflask import APIBlueprint
from flask import Response, g
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.languages import direction_of
from frankly_protocol.problems import Problem
from werkzeug.exceptions import HTTPException

from frankly_server.keys.access import link_secret
from frankly_server.services import Services
from frankly_server.web import problems
from frankly_server.web.admin.pages import render
from frankly_server.web.limits import RateLimits
from frankly_server.web.models import PageText, Picture
from frankly_server.web.openapi import declare
from frankly_server.web.opened_survey import OpenedSurvey, opened
from frankly_server.web.pages import html_page, wants_page
from frankly_server.web.results import page as results
from frankly_server.web.results.words import Words, own_name
from frankly_server.web.security import HEADERS
from frankly_server.web.visitors import language_of, vary

PATH: Final = "/results"
_NO_LINK: Final = "this link does not work: a part is missing, or it was withdrawn"
_PROBLEMS: Final = (
    Problem.NOT_FOUND,
    Problem.CONFIDENCE_RANGE,
    Problem.FIELD_TYPE,
    Problem.TARGETS_INVALID,
    Problem.STRATA_INVALID,
    Problem.UNSUPPORTED,
)


def address(services: Services, token: str) -> str:
    """Return the link of a reader's key. token : the whole key."""
    return f"{services.settings.public_url}{PATH}/{link_secret(token)}"


def blueprint(services: Services, limits: RateLimits) -> APIBlueprint:
    """Return the routes, bound to `services`, with the rate limit of API keys."""
    routes = APIBlueprint("shared_results", __name__)
    routes.after_request(_with_headers)
    routes.register_error_handler(FranklyError, _refused)
    routes.register_error_handler(HTTPException, problems.from_http)
    routes.register_error_handler(Exception, _broken)

    def shared(secret: str) -> OpenedSurvey:
        """Return the published survey of a link; set g.principal. Raises InvalidInput(not_found)."""
        try:
            principal = services.access.authenticate_link(secret)
            survey = opened(services, principal.surveys[0], principal.organisation)
        except InvalidInput as refused:
            # The same for every cause, so that nobody learns which links there were.
            raise InvalidInput(Problem.NOT_FOUND, _NO_LINK) from refused
        if not survey.summary.version:
            raise InvalidInput(Problem.NOT_FOUND, _NO_LINK)
        # Whose turn it is in the queue of analyses.
        g.principal = principal
        limits.questions.take(principal.prefix)
        return survey

    @routes.get(f"{PATH}/<secret>")
    @declare(
        routes,
        "sharedResults",
        answers={200: ("The results of a survey.", "text/html", PageText)},
        problems=_PROBLEMS,
    )
    def page(secret: str) -> Response:
        """Return the results page of the survey to which somebody gave a link."""
        survey = shared(secret)
        g.results_path = f"{PATH}/{secret}"
        documents = services.surveys.versions(survey.id)
        words = results.language_of(documents)
        values = results.values(services, survey, g.results_path, words=words)
        # The published title: the draft's may be one that nobody has seen yet.
        shown = {
            "title": words.text(documents[-1].title),
            "own_name": own_name,
            "direction": direction_of(words.language),
        }
        return vary(render("shared_results.html", **(values | shown)))

    @routes.get(f"{PATH}/<secret>/<name>")
    @declare(
        routes,
        "sharedChart",
        answers={200: ("A chart of the results.", "image/svg+xml", Picture)},
        also={200: ["text/csv"]},
        problems=_PROBLEMS,
    )
    def chart(secret: str, name: str) -> Response:
        """Return one chart of a results page, as a picture or as its numbers."""
        survey = shared(secret)
        g.results_path = f"{PATH}/{secret}"
        words = results.language_of(services.surveys.versions(survey.id))
        return vary(results.chart(services, survey, name, words))

    return routes


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _refused(error: FranklyError) -> Response:
    """Render a refusal: a page for people, a problem for programs."""
    problem = problems.from_frankly(error)
    if not wants_page():
        problem.vary.add("Accept")
        return problem
    words = _words()
    if problem.status_code >= 500:
        response = _page("broken", words.say("broken"), problem)
    elif problem.status_code == Problem.TOO_MANY.status:
        seconds = problem.headers["Retry-After"]
        response = _page("busy", words.say("busy", seconds=seconds), problem)
    elif "results_path" not in g:
        response = _page("unknown", words.say("unknown_link"), problem)
    else:
        # Which field, and what it may be, is known in English only.
        detail = escape(error.detail) if words.language == "en" else words.say("refused")
        response = _page("refused", detail, problem, g.results_path)
    if "Retry-After" in problem.headers:
        seconds = problem.headers["Retry-After"]
        # The page loads itself again: many may open a link that was mailed to them at once.
        response.headers["Retry-After"], response.headers["Refresh"] = seconds, seconds
    return response


def _broken(error: Exception) -> Response:
    """Render an unexpected error; the log line has its type and code location."""
    problem = problems.from_unexpected(error)
    if not wants_page():
        return problem
    return _page("broken", _words().say("broken"), problem)


def _words() -> Words:
    """Return the language of the browser, because no survey is known."""
    tag = language_of()
    return Words(tag, tag)


def _page(name: str, sentence: str, problem: Response, path: str | None = None) -> Response:
    """Return the page of a refusal. path : of the results, if there are any to return to."""
    words = _words()
    title, body = words.say(f"{name}_title"), f"<p>{sentence}</p>"
    if path is not None:
        body += f'\n<p><a href="{escape(path)}">{words.say("to_results")}</a></p>'
    response = html_page(
        title, f"<h1>{title}</h1>\n{body}\n", status=problem.status_code, language=words.language
    )
    response.vary.add("Accept")
    return vary(response)
