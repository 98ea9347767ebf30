# SPDX-License-Identifier: Apache-2.0
"""Hosted survey page, browser SDK files, and cross-origin access (CORS).

The page has its own files: the SDK, bundled into as few requests as possible and compressed at
bundling time. For other pages, the SDK is served as readable sources.

A page served by the collecting server protects less than a page with its own copy of the SDK: an
attacker who changes the server can change the page. The page informs respondents about this, and a
strict Content-Security-Policy limits what it can load and connect to.
"""

import base64
import gzip
import hashlib
import json
import re
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Final

from apiflask import APIBlueprint, APIFlask
from flask import Response, request
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.languages import direction_of
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.page_definition import PageDefinition, image_of
from frankly_server.web import page_look, reading
from frankly_server.web.front import closed_survey, unknown_survey
from frankly_server.web.models import PageText, Picture
from frankly_server.web.openapi import declare
from frankly_server.web.pages import wants_page
from frankly_server.web.visitors import texts_of_page, vary

_HERE: Final = Path(__file__).resolve()
_TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_SECONDS: Final = 300  # short, because the file names contain no version
_POLICY: Final = (
    "default-src 'none'; script-src 'self' '{hash}'; style-src '{style}'; connect-src 'self'; "
    "worker-src 'self'; {images}base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types frankly frankly-page"
)
_PAGE_FILES: Final = "/sdk/v1/page/"
_ENCODINGS: Final = {"br": ".br", "gzip": ".gz", "identity": ""}
"""Encodings of the page's files, the smallest first, with their file name extensions."""
_WORKER: Final = "default-src 'none'; script-src 'self'"
"""Policy of the verifying worker. A worker has the policy of its script, not of the page."""
_SERVICE: Final = "service.js"
"""The service worker: no module, so not in the import map."""
_SERVICE_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'",
    # The beginning of its scopes: those of the page and of the page's files.
    "Service-Worker-Allowed": "/s",
}
_PAGE: Final = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{style}</style>
<script type="importmap">{modules}</script>
<script type="module" src="{folder}hosted.js" integrity="{script}"></script>
<link rel="modulepreload" href="{folder}app.js" integrity="{app}">
<link rel="modulepreload" href="{folder}verifier.js" integrity="{verifier}">
</head>
<body>{logo}<main{panel} data-failed="{failed}"><noscript><p dir="{direction}">{unscripted}</p></noscript></main></body>
</html>
"""
# Open to every origin, because these routes are public and need no cookie or API key.
_OPEN_TO_PAGES: Final = re.compile(
    r"/sdk/v1/.*|/v1/keys(/chain)?|/v1/log/.*|/v1/surveys/[^/]*/(document|reports)"
)
REPORTS: Final = re.compile(r"/v1/surveys/([0-9a-f]{32})/reports")
OPEN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Retry-After",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Headers that allow pages of other origins to read a response."""


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


def page_files() -> dict[str, dict[str, bytes]]:
    """Return the hosted page's files from the bundler (name -> encoding -> content).

    Raises FileNotFoundError if this installation has no hosted page.
    """
    packaged = _HERE.parents[1] / "page"
    folder = packaged if packaged.is_dir() else _HERE.parents[3] / "client_sdk" / "browser" / "page"
    names = sorted(path.name for path in folder.glob("*.js"))
    if "hosted.js" not in names:
        raise FileNotFoundError(folder)
    return {
        name: {
            encoding: (folder / f"{name}{ending}").read_bytes()
            for encoding, ending in _ENCODINGS.items()
        }
        for name in names
    }


def integrity(content: bytes, algorithm: str = "sha384") -> str:
    """Return a hash in the form of an `integrity` attribute or, with sha256, of a CSP source."""
    return f"{algorithm}-" + base64.b64encode(hashlib.new(algorithm, content).digest()).decode(
        "ascii"
    )


def import_map(served: dict[str, bytes], origin: str = "", folder: str = "/sdk/v1/") -> str:
    """Return an import map (JSON) with the hashes of all modules under `origin`/`folder`.

    With the map, browsers refuse any changed module. An `integrity` attribute covers only the
    module of a script element, not the modules that it imports.
    """
    modules = {
        f"{origin}{folder}{name}": integrity(content)
        for name, content in served.items()
        if name[-3:] == ".js"
    }
    return json.dumps({"integrity": modules}, indent=0)


def _modules(scripts: dict[str, dict[str, bytes]]) -> str:
    """Return the import map of the hosted page's files."""
    modules = {name: content["identity"] for name, content in scripts.items() if name != _SERVICE}
    return import_map(modules, folder=_PAGE_FILES)


def service_worker(scripts: dict[str, dict[str, bytes]]) -> dict[str, bytes]:
    """Return the service worker of the page's files (encoding -> content), with their hashes.

    A release of other files is another worker, so a browser installs it.
    """
    modules = _modules(scripts)
    pinned = {"map": modules, "release": hashlib.sha256(modules.encode()).hexdigest()[:16]}
    content = f"self.pinned = {json.dumps(pinned)};\n".encode() + scripts[_SERVICE]["identity"]
    return {"gzip": gzip.compress(content, 9, mtime=0), "identity": content}


def panel_attributes(look: PageDefinition) -> str:
    """Return attributes for hosted.js with the way back to a panel, escaped; "" if there is none."""
    own = {"return-to": look.return_to, "completion-code": look.completion_code}
    return "".join(f' data-{name}="{escape(value)}"' for name, value in own.items() if value)


def hosted_page(
    scripts: dict[str, dict[str, bytes]] | None = None,
    style: str | None = None,
    accent: str | None = None,
    logo: str | None = None,
    panel: str = "",
    language: str = "en",
) -> tuple[str, str]:
    """Return the page and its Content-Security-Policy, with hashes of the inline map and style.

    scripts, style : by default `page_files` and hosted.css. accent : the survey's own colour. logo :
    path of its logo. panel : `panel_attributes`. language : of EXPLAINED, for what can be read
    before the element is there, or without it.
    """
    scripts = scripts or page_files()
    served = {name: content["identity"] for name, content in scripts.items()}
    modules = _modules(scripts)
    style = (style or files()["hosted.css"].decode()).strip()
    if accent:
        style += f"\n{page_look.style(accent)}"
    texts = Texts(language, "page")
    values = {
        "language": language,
        "direction": direction_of(language),
        "title": escape(texts.say("title")),
        "unscripted": escape(texts.say("script")),
        "failed": escape(texts.part("element").say("failed")),
        "modules": modules,
        "style": style,
        "logo": f'<header><img src="{logo}" alt=""></header>' if logo else "",
        "panel": panel,
        "folder": _PAGE_FILES,
        "script": integrity(served["hosted.js"]),
        "app": integrity(served["app.js"]),
        "verifier": integrity(served["verifier.js"]),
    }
    hashes = {
        "hash": integrity(modules.encode(), "sha256"),
        "style": integrity(style.encode(), "sha256"),
        "images": "img-src 'self'; " if logo else "",
    }
    return _PAGE.format(**values), _POLICY.format(**hashes)


def _encoded(contents: dict[str, bytes], content_type: str) -> Response:
    """Return a response in the first encoding that the browser accepts."""
    accepted = request.accept_encodings
    encoding = next(
        (one for one in contents if one == "identity" or accepted.quality(one) > 0), "identity"
    )
    response = Response(contents[encoding], content_type=content_type)
    if encoding != "identity":
        response.headers["Content-Encoding"] = encoding
    response.vary.add("Accept-Encoding")
    return response


def _script(contents: dict[str, bytes], name: str) -> Response:
    response = _encoded(contents, _TYPES[Path(name).suffix])
    response.headers["Cache-Control"] = f"public, max-age={_SECONDS}"
    if name == "verifier.js":
        response.headers["Content-Security-Policy"] = _WORKER
    if name == _SERVICE:
        response.headers.update(_SERVICE_HEADERS)
    return response


def blueprint(services: Services) -> APIBlueprint:
    """Return the routes of the hosted page and the SDK files."""
    routes = APIBlueprint("hosted", __name__)
    # Read once at start-up, so that the hashes in the page always match the files.
    served, scripts = files(), page_files()
    _add_page(routes, services, scripts, served["hosted.css"].decode())
    _add_files(routes, served, scripts | {_SERVICE: service_worker(scripts)})
    return routes


def _add_page(
    routes: APIBlueprint, services: Services, scripts: dict[str, dict[str, bytes]], style: str
) -> None:
    @lru_cache(maxsize=256)
    def rendered(
        accent: str | None, logo: str | None, panel: str, language: str
    ) -> tuple[dict[str, bytes], str]:
        content, policy = hosted_page(scripts, style, accent, logo, panel, language)
        text = content.encode()
        return {"gzip": gzip.compress(text, 9, mtime=0), "identity": text}, policy

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
        problems=(Problem.SURVEY_UNKNOWN, Problem.CLOSED),
    )
    def page(survey_id: str) -> Response:
        """Return a page on which people without an app can answer a survey, unless it has closed."""
        reading.query(())
        try:
            identity = reading.survey_id(survey_id)
            envelope = services.surveys.envelope(identity)
        except InvalidInput as refused:
            if refused.problem is Problem.SURVEY_UNKNOWN and wants_page():
                return unknown_survey()
            raise
        # Nobody answers what is not counted. A link may name any version, so all must be over.
        versions = services.surveys.open_versions(identity)
        if not versions and wants_page():
            return closed_survey(SurveyDocument.from_envelope(envelope).languages)
        if not versions:
            raise InvalidInput(Problem.CLOSED, "this survey takes no more answers")
        look = services.surveys.page(identity)
        language = texts_of_page(versions[-1].languages).language
        logo_path = f"/s/{identity}/logo" if look.logo else None
        text, policy = rendered(look.accent, logo_path, panel_attributes(look), language)
        response = vary(_encoded(text, "text/html; charset=utf-8"))
        response.headers["Content-Security-Policy"] = policy
        return response

    @routes.get("/s/<survey_id>/logo")
    @declare(
        routes,
        "hostedLogo",
        answers={200: ("The survey's logo.", "image/png", Picture)},
        also={200: ["image/jpeg", "image/webp"]},
        problems=(Problem.SURVEY_UNKNOWN, Problem.NOT_FOUND, Problem.CLOSED),
    )
    def logo(survey_id: str) -> Response:
        """Return the logo of a survey's page."""
        reading.query(())
        identity = reading.survey_id(survey_id)
        services.surveys.envelope(identity)  # raises for a draft, which is not public
        if not services.surveys.open_versions(identity):
            raise InvalidInput(Problem.CLOSED, "this survey takes no more answers")
        image = image_of(services.surveys.page(identity).logo or "")
        if image is None:
            raise InvalidInput(Problem.NOT_FOUND, "this survey has no logo")
        return Response(image[1], content_type=image[0])


def _add_files(
    routes: APIBlueprint, served: dict[str, bytes], of_page: dict[str, dict[str, bytes]]
) -> None:
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
        # The name must be in the list of files, so no other file on disk is accessible.
        if name not in served:
            raise InvalidInput(
                Problem.NOT_FOUND, "the SDK has no such file; begin with /sdk/v1/index.js"
            )
        return _script({"identity": served[name]}, name)

    @routes.get(f"{_PAGE_FILES}<name>")
    @declare(
        routes,
        "pageFile",
        answers={200: ("One file of the hosted page.", "text/javascript", PageText)},
        problems=(Problem.NOT_FOUND,),
    )
    def page_file(name: str) -> Response:
        """Return one file of the hosted page, compressed if the browser accepts it."""
        reading.query(())
        if name not in of_page:
            raise InvalidInput(Problem.NOT_FOUND, "the hosted page has no such file")
        return _script(of_page[name], name)


def open_to_pages(app: APIFlask) -> None:
    """Add CORS headers that allow pages of every origin to read public routes and send reports."""

    def preflight() -> Response | None:
        method = request.headers.get("Access-Control-Request-Method")
        # Only reports need a preflight request, because reads are simple requests.
        if request.method != "OPTIONS" or method != "POST" or not REPORTS.fullmatch(request.path):
            return None
        return Response(
            status=204,
            headers={
                "Access-Control-Allow-Methods": "POST",
                "Access-Control-Allow-Headers": "content-type",
                "Access-Control-Max-Age": "86400",
            },
        )

    def allow(response: Response) -> Response:
        if _OPEN_TO_PAGES.fullmatch(request.path):
            response.headers.update(OPEN)
        return response

    app.before_request(preflight)
    app.after_request(allow)
