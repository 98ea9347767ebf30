# SPDX-License-Identifier: Apache-2.0
"""For web pages: the hosted survey page, the browser SDK's files, and what other origins may read.

A page that the collecting server serves protects less than a page that brings its own copy of the SDK: whoever changes
the server can change the page. The page says so. What it may do is bound by a strict Content-Security-Policy.
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
_SECONDS: Final = 300
_POLICY: Final = (
    "default-src 'none'; script-src 'self' '{hash}'; style-src 'self'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types frankly"
)
_WORKER: Final = "default-src 'none'; script-src 'self'"
"""The policy of the script that verifies beside the page; a worker keeps to its own script's policy."""
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
# What a page of another origin may read: everything here is public, and no request carries a credential.
_OPEN_TO_PAGES: Final = re.compile(
    r"/sdk/v1/.*|/v1/keys(/chain)?|/v1/log/.*|/v1/surveys/[^/]*/(document|reports)"
)
REPORTS: Final = re.compile(r"/v1/surveys/([0-9a-f]{32})/reports")
OPEN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Retry-After",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""What lets a page of another origin read an answer."""


class PageText(RootModel[str]):
    """A text for browsers."""


def files() -> dict[str, bytes]:
    """Return the SDK's modules by name: from inside the installed package, or from the checkout.

    Raises FileNotFoundError if this installation came without them.
    """
    packaged = _HERE.parents[1] / "browser"
    folder = packaged if packaged.is_dir() else _HERE.parents[3] / "client_sdk" / "browser" / "src"
    found = {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in _TYPES
    }
    if "hosted.js" not in found:
        raise FileNotFoundError(folder)
    return found


def integrity(content: bytes, algorithm: str = "sha384") -> str:
    """Return the value for an `integrity` attribute, or with sha256 for a policy's source."""
    return f"{algorithm}-" + base64.b64encode(hashlib.new(algorithm, content).digest()).decode(
        "ascii"
    )


def import_map(served: dict[str, bytes], origin: str = "") -> str:
    """Return an import map by which browsers load the modules of `origin`/sdk/v1/ only as they are now.

    It covers modules that other modules import, too; an `integrity` attribute covers the first one alone.
    """
    modules = {
        f"{origin}/sdk/v1/{name}": integrity(content)
        for name, content in served.items()
        if name[-3:] == ".js"
    }
    return json.dumps({"integrity": modules}, indent=0)


def hosted_page(served: dict[str, bytes]) -> tuple[str, str]:
    """Return the page and its Content-Security-Policy, which lets the one inline text pass by its hash."""
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
    served = files()
    content, policy = hosted_page(served)

    @routes.get("/s/<survey_id>")
    @declare(
        routes,
        "hostedPage",
        answers={
            200: (
                "A page that answers this survey; its link's fragment pins the document.",
                "text/html",
                PageText,
            )
        },
        problems=(Problem.SURVEY_UNKNOWN,),
    )
    def page(survey_id: str) -> Response:
        """Return a page on which people without an app can answer a survey."""
        reading.query(())
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
        """Return one file of the browser SDK, for demonstrations: for the strong promise, bundle your own copy."""
        reading.query(())
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
    """Let web pages of every origin read what devices read, and send reports; never with credentials."""

    def preflight() -> Response | None:
        asked = request.headers.get("Access-Control-Request-Method")
        if request.method != "OPTIONS" or asked != "POST" or not REPORTS.fullmatch(request.path):
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
