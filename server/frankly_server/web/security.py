# SPDX-License-Identifier: Apache-2.0
"""Sessions, CSRF protection and headers of the admin pages. The API uses no cookies.

The cookie is a random token. Before sign-in it only ties a form to a browser. Sign-in replaces the
token, which prevents session fixation. Each form contains an HMAC of the token under a server key.
An attacker who plants a cookie in a browser cannot compute the HMAC.
"""

import hmac
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from flask import Response, abort, g, redirect, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import BROWSER_S, PENDING_S, SESSION_S, Person, SignedIn, may
from frankly_server.accounts.sessions import is_token
from frankly_server.services import Services

View = TypeVar("View", bound=Callable[..., Any])
PATH: Final = "/admin"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}


class CookieSession:
    """Session cookie and form check, before and after every request of the admin pages."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._secure = services.settings.public_url.startswith("https://")
        # Browsers accept a cookie with this prefix only over https and not from other subdomains.
        prefix = "__Host-" if self._secure else ""
        self.cookie, self._browser_cookie = f"{prefix}frankly_admin", f"{prefix}frankly_browser"

    def browser(self) -> str:
        """Return the cookie of a known browser, "" if there is none."""
        return request.cookies.get(self._browser_cookie, "")

    def enter(self) -> None:
        """Set g.person (or None); raise InvalidInput(forbidden) for a forged form."""
        token = request.cookies.get(self.cookie, "")
        g.token = token if is_token(token) else secrets.token_urlsafe(32)
        g.is_new = g.token != token
        g.person = None if g.is_new else self._services.accounts.person(token)
        g.form_token = self._services.keys.mac("form", g.token.encode())
        if request.method == "POST":
            sent = request.form.get("csrf", "")
            if g.is_new or not hmac.compare_digest(
                sent.encode("utf-8", "replace"), g.form_token.encode()
            ):
                raise InvalidInput(
                    Problem.FORBIDDEN,
                    "the form is too old, or was not opened here: go back, reload the page and send it again",
                    "csrf",
                )

    def leave(self, response: Response) -> Response:
        """Set the headers and, on a page with a new token, the cookie."""
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        # Only for pages: assets may be cached publicly, and a cached cookie would be shared.
        if g.get("is_new", False) and response.mimetype == "text/html":
            self._set(response, self.cookie, g.token, SESSION_S)
        return response

    def remember(self, response: Response, signed: SignedIn) -> None:
        """Set the cookies of a new session and of its browser."""
        g.is_new = False
        self._set(response, self.cookie, signed.token, SESSION_S)
        self._set(response, self._browser_cookie, signed.browser, BROWSER_S)

    def await_code(self, response: Response, token: str) -> None:
        """Set the session cookie to the token of a pending sign-in."""
        g.is_new = False
        self._set(response, self.cookie, token, PENDING_S)

    def forget(self, response: Response) -> None:
        """Delete the session cookie; the cookie of the browser stays."""
        g.is_new = False
        response.delete_cookie(
            self.cookie, path="/", secure=self._secure, httponly=True, samesite="Strict"
        )

    def _set(self, response: Response, name: str, value: str, max_age: int) -> None:
        # Scripts cannot read the cookie, and requests from other sites do not include it.
        response.set_cookie(
            name,
            value,
            max_age=max_age,
            path="/",  # the prefix __Host- requires it
            secure=self._secure,
            httponly=True,
            samesite="Strict",
        )


def needs(role: str, *, before_enrolment: bool = False) -> Callable[[View], View]:
    """Return a decorator for views that require a role: 403 for lower roles, else sign-in page.

    before_enrolment : True if members may open the view before they set up a second factor that
    their organisation requires; other views redirect them to their account page.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(*arguments: Any, **named: Any) -> Any:
            if g.person is None:
                return redirect(f"{PATH}/sign-in", 303)
            if g.person.must_enrol and not before_enrolment:
                return redirect(f"{PATH}/account", 303)
            if not may(g.person.role, role):
                abort(403)
            return view(*arguments, **named)

        guarded.needs = role  # type: ignore[attr-defined]  # the authorisation matrix reads it
        return guarded  # type: ignore[return-value]

    return wrap


def person() -> Person:
    """Return the signed-in person, in a view that `needs` guards."""
    signed_in: Person = g.person
    return signed_in
