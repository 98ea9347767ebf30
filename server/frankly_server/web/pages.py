# SPDX-License-Identifier: Apache-2.0
"""Pages without scripts for everybody: one style, allowed by its hash in a strict policy."""

import base64
import hashlib
from typing import Final

from flask import Response, request
from frankly_protocol.languages import direction_of

_CSS: Final = """
:root { color-scheme: light dark; background: light-dark(#fbfcfc, #10191c); color: light-dark(#17262a, #e8f0f1); }
body { margin: 0; font: 100%/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 42rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .2rem; } p { margin: .4rem 0; }
a { color: light-dark(#0b5c6b, #8fd3e0); } code { overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
""".strip()
_HASH: Final = base64.b64encode(hashlib.sha256(_CSS.encode()).digest()).decode("ascii")
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_PAGE: Final = """<!doctype html>
<html lang="{language}" dir="{direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body><main>
{body}</main></body>
</html>
"""

_NOWHERE: Final = """<h1>There is no such page</h1>
<p>Perhaps a part of the address is missing or mistyped. The <a href="/">front page</a> says what this server is.</p>
"""


def html_page(title: str, body: str, *, status: int = 200, language: str = "en") -> Response:
    """Return a page; `title` and `body` are trusted HTML without input of a request."""
    text = _PAGE.format(
        title=title, style=_CSS, body=body, language=language, direction=direction_of(language)
    )
    response = Response(text, status=status, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = _POLICY
    return response


def unknown_page() -> Response:
    """Return the page for an address that does not exist."""
    return html_page("No such page", _NOWHERE, status=404)


def wants_page() -> bool:
    """Return True for a browser that opens an address, False for programs."""
    # Programs accept anything or JSON; only a navigation prefers HTML to both.
    accepted = request.accept_mimetypes
    return accepted.best_match(["application/problem+json", "text/html"]) == "text/html"
