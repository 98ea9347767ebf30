# SPDX-License-Identifier: Apache-2.0
"""Sessions, forms and headers of the admin's pages. Nothing here touches the API, which knows no cookie.

A cookie holds a random token: before signing in it only ties a form to a browser, signing in replaces it. The forms'
hidden field is an HMAC of the cookie's token, so that no other site can send a form in somebody's name.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from flask import Response, abort, g, redirect, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import SESSION_S, Person, may
from frankly_server.services import Services

View = TypeVar("View", bound=Callable[..., Any])
PATH: Final = "/admin"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class Door:
    """Knows who is asking; one for the whole blueprint."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._secure = services.settings.public_url.startswith("https://")
        self.cookie = "__Secure-frankly_admin" if self._secure else "frankly_admin"

    def enter(self) -> None:
        """Find out who is asking, and stop a form that did not come from our own page (before every request)."""
        token = request.cookies.get(self.cookie, "")
        g.token = token if _TOKEN.fullmatch(token) else secrets.token_urlsafe(32)
        g.is_new = g.token != token
        g.person = None if g.is_new else self._services.accounts.person(token)
        if request.method == "POST":
            sent = request.form.get("csrf", "")
            if g.is_new or not hmac.compare_digest(
                sent.encode("utf-8", "replace"), form_token().encode()
            ):
                words = "the form is too old, or was not opened here: go back, reload the page and send it again"
                raise InvalidInput(Problem.FORBIDDEN, words, "csrf")

    def leave(self, response: Response) -> Response:
        """Set headers and, where the token is new, the cookie (after every request)."""
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if g.get("is_new", False) and response.mimetype == "text/html":
            self.remember(response, g.token)
        return response

    def remember(self, response: Response, token: str) -> None:
        """Put a session's token into the cookie, out of reach of scripts and of other sites."""
        g.is_new = False
        response.set_cookie(
            self.cookie,
            token,
            max_age=SESSION_S,
            path=PATH,
            secure=self._secure,
            httponly=True,
            samesite="Strict",
        )

    def forget(self, response: Response) -> None:
        """Take the cookie away."""
        g.is_new = False
        response.delete_cookie(
            self.cookie, path=PATH, secure=self._secure, httponly=True, samesite="Strict"
        )


def form_token() -> str:
    """Return what this browser's forms carry."""
    return hmac.new(g.token.encode(), b"frankly form", hashlib.sha256).hexdigest()


def needs(role: str) -> Callable[[View], View]:
    """Let only people of this role or one that does more see a view; who is not signed in is sent to sign in."""

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(*arguments: Any, **named: Any) -> Any:
            if g.person is None:
                return redirect(f"{PATH}/sign-in", 303)
            if not may(g.person.role, role):
                abort(403)
            return view(*arguments, **named)

        guarded.needs = role  # type: ignore[attr-defined]  # the authorisation matrix reads it
        return guarded  # type: ignore[return-value]

    return wrap


def person() -> Person:
    """Return who is signed in; only for views that `needs` guards."""
    found: Person = g.person
    return found
