# SPDX-License-Identifier: Apache-2.0
"""Hosted survey page, files of the browser SDK, and cross-origin access (CORS).

A page served by the collecting server protects less than a page with its own copy of the SDK: an
attacker who changes the server can change the page. The page tells respondents so, and a strict
Content-Security-Policy limits what it can load and connect to.
"""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Final

from apiflask import APIBlueprint, APIFlask
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import RootModel

from frankly_server.services import Services
from frankly_server.web import reading
from frankly_server.web.openapi import declare

_HERE: Final = Path(__file__).resolve()
_TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_SECONDS: Final = 300  # file names contain no version, so browsers must soon fetch them again
_POLICY: Final = (
    "default-src 'none'; script-src 'self' '{hash}'; style-src 'self'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types frankly"
)
_WORKER: Final = "default-src 'none'; script-src 'self'"
"""Policy of the verifying worker: a worker has the policy of its script, not of the page."""
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Survey</title>
<link rel="stylesheet" href="/sdk/v1/hosted.css" integrity="{style}">
<script type="importmap">{modules}</script>
<script type="module" src="/sdk/v1/hosted.js" integrity="{script}"></script>
</head>
<body><main><noscript>
<p>Your answers are randomised on your device, before anything is sent. That needs JavaScript, which is switched off
here; without it nothing can be answered.</p>
</noscript></main></body>
</html>
"""
# Open to every origin: these routes are public, and requests need no cookie or API key.
_OPEN_TO_PAGES: Final = re.compile(
    r"/sdk/v1/.*|/v1/keys(/chain)?|/v1/log/.*|/v1/surveys/[^/]*/(document|reports)"
)
REPORTS: Final = re.compile(r"/v1/surveys/([0-9a-f]{32})/reports")
OPEN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Retry-After",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Headers that let pages of other origins read a response."""


class PageText(RootModel[str]):
    """A page, script or style sheet for browsers."""


def files() -> dict[str, bytes]:
    """Return the SDK's files (name -> content), from the installed package or from the checkout.

    Raises FileNotFoundError if this installation has no browser SDK.
    """
    packaged = _HERE.parents[1] / "browser"
    folder = packaged if packaged.is_dir() else _HERE.parents[3] / "client_sdk" / "browser" / "src"
    contents = {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in _TYPES
    }
    if "hosted.js" not in contents:
        raise FileNotFoundError(folder)
    return contents


def integrity(content: bytes, algorithm: str = "sha384") -> str:
    """Return a hash in the form of an `integrity` attribute or, with sha256, of a CSP source."""
    return f"{algorithm}-" + base64.b64encode(hashlib.new(algorithm, content).digest()).decode(
        "ascii"
    )


def import_map(served: dict[str, bytes], origin: str = "") -> str:
    """Return an import map (JSON) with the hashes of all modules under `origin`/sdk/v1/.

    With it, browsers refuse any changed module; an `integrity` attribute covers only the module
    that a script element names, not the modules that it imports.
    """
    modules = {
        f"{origin}/sdk/v1/{name}": integrity(content)
        for name, content in served.items()
        if name[-3:] == ".js"
    }
    return json.dumps({"integrity": modules}, indent=0)


def hosted_page(served: dict[str, bytes]) -> tuple[str, str]:
    """Return the page and its Content-Security-Policy, which allows the inline import map by hash."""
    modules = import_map(served)
    values = {
        "modules": modules,
        "style": integrity(served["hosted.css"]),
        "script": integrity(served["hosted.js"]),
    }
    return _PAGE.format(**values), _POLICY.format(hash=integrity(modules.encode(), "sha256"))


def blueprint(services: Services) -> APIBlueprint:
    """Return the routes of the hosted page and of the SDK's files."""
    routes = APIBlueprint("hosted", __name__)
    # Read once at start, so that the hashes in the page always match the files.
    served = files()
    content, policy = hosted_page(served)

    @routes.get("/s/<survey_id>")
    @declare(
        routes,
        "hostedPage",
        answers={
            200: (
                "A page for answering this survey; the fragment of its link pins the document.",
                "text/html",
                PageText,
            )
        },
        problems=(Problem.SURVEY_UNKNOWN,),
    )
    def page(survey_id: str) -> Response:
        """Return a page on which people without an app can answer a survey."""
        reading.query(())
        # Called only to raise for unknown surveys (404); the page is the same for all surveys.
        services.surveys.envelope(reading.survey_id(survey_id))
        response = Response(content, content_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = policy
        return response

    @routes.get("/sdk/v1/<name>")
    @declare(
        routes,
        "sdkFile",
        answers={200: ("One file of the browser SDK.", "text/javascript", PageText)},
        also={200: ["text/css"]},
        problems=(Problem.NOT_FOUND,),
    )
    def sdk_file(name: str) -> Response:
        """Return one file of the browser SDK. In production serve your own copy instead."""
        reading.query(())
        # A name from the list of files, never a path: nothing else on disk can be reached.
        if name not in served:
            raise InvalidInput(
                Problem.NOT_FOUND, "the SDK has no such file; begin with /sdk/v1/index.js"
            )
        response = Response(served[name], content_type=_TYPES[Path(name).suffix])
        response.headers["Cache-Control"] = f"public, max-age={_SECONDS}"
        if name == "verifier.js":
            response.headers["Content-Security-Policy"] = _WORKER
        return response

    return routes


def open_to_pages(app: APIFlask) -> None:
    """Add CORS headers, which let pages of every origin read public routes and send reports."""

    def preflight() -> Response | None:
        method = request.headers.get("Access-Control-Request-Method")
        # Only reports need a preflight, because reads are simple requests.
        if request.method != "OPTIONS" or method != "POST" or not REPORTS.fullmatch(request.path):
            return None
        headers = {
            "Access-Control-Allow-Methods": "POST",
            "Access-Control-Allow-Headers": "content-type",
            "Access-Control-Max-Age": "86400",
        }
        return Response(status=204, headers=headers)

    def allow(response: Response) -> Response:
        if _OPEN_TO_PAGES.fullmatch(request.path):
            response.headers.update(OPEN)
        return response

    app.before_request(preflight)
    app.after_request(allow)
