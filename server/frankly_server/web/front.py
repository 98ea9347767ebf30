# SPDX-License-Identifier: Apache-2.0
"""Front page of the server, and pages for people whose survey is unknown or closed."""

from collections.abc import Sequence
from html import escape
from typing import Final

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.problems import Problem

from frankly_server.web import reading
from frankly_server.web.models import PageText
from frankly_server.web.openapi import declare
from frankly_server.web.pages import html_page
from frankly_server.web.visitors import texts_of_page, vary

_FRONT: Final = """<h1>Frankly</h1>
<p><strong>This server collects answers to sensitive questions without ever holding them.</strong> Each device adds
random noise to these answers before it sends them, so the server sees only noisy ones; from many of them it computes
shares with their margins of error. Answers that a survey marks as public are sent as they are.</p>
<h2>Were you invited to a survey?</h2>
<p>Open the whole link that you were given. It begins with this address, followed by <code>/s/</code>
and many characters.</p>
<h2>Do you run surveys?</h2>
<p><a href="/admin/">Sign in</a> to write, publish and monitor them.</p>
<h2>Do you analyse surveys?</h2>
<p>Use an API key from an admin; <a href="/openapi.json">this document</a> describes every address.</p>
<h2>Do you want to check this server?</h2>
<p>Its <a href="/v1/keys">keys</a> and its <a href="/v1/log/checkpoint">log of published surveys</a> are public, and
<code>frankly audit</code> checks both from outside.</p>
"""


def blueprint() -> APIBlueprint:
    """Return the route of the front page."""
    routes = APIBlueprint("front", __name__)

    @routes.get("/")
    @declare(
        routes,
        "frontPage",
        answers={200: ("A page that says what this server is.", "text/html", PageText)},
    )
    def front() -> Response:
        """Return a page that says what this server is, and where each kind of reader should go next."""
        reading.query(())
        return html_page("Frankly", _FRONT)

    return routes


def unknown_survey() -> Response:
    """Return the page for a survey that does not exist, with the status of its problem."""
    return _instead(texts_of_page(), Problem.SURVEY_UNKNOWN, "unknown", "unknown_more")


def closed_survey(languages: Sequence[str]) -> Response:
    """Return the page for a survey in these languages that takes no more answers, with the status of its problem."""
    texts = texts_of_page(languages)
    return _instead(texts, Problem.CLOSED, "closed", "closed_late", "closed_results")


def _instead(texts: Texts, problem: Problem, title: str, *paragraphs: str) -> Response:
    """Return a page that is shown instead of a survey."""
    heading = escape(texts.say(title))
    lines = [f"<h1>{heading}</h1>", *(f"<p>{escape(texts.say(name))}</p>" for name in paragraphs)]
    body = "\n".join((*lines, ""))
    return vary(html_page(heading, body, status=problem.status, language=texts.language))
