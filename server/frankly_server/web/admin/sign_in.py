# SPDX-License-Identifier: Apache-2.0
"""Sign-in by passkey, or by password and the account's second factor; sign-out."""

from typing import Any

from apiflask import APIBlueprint
from flask import Response, g, request
from frankly_protocol.errors import FranklyError, InvalidInput

from frankly_server.accounts import SecondFactorNeeded, SignedIn
from frankly_server.services import Services
from frankly_server.web.admin.forms import CREDENTIAL_CHARACTERS, field, takes
from frankly_server.web.admin.pages import go, render
from frankly_server.web.security import PATH, CookieSession, needs


def add_to(routes: APIBlueprint, services: Services, session: CookieSession) -> None:
    """Add the pages; `session` sets and deletes the session cookie."""
    _add_password(routes, _Entrance(services, session))
    _add_second_step(routes, _Entrance(services, session))

    @routes.get("/")
    @needs("viewer")
    def home() -> Response:
        return go(f"{PATH}/surveys")

    @routes.post("/sign-out")
    @takes()
    def sign_out() -> Response:
        # Signing out twice is not an error, because the page may be old.
        if g.person is not None:
            services.accounts.sign_out(g.token)
        response = go(f"{PATH}/sign-in")
        session.forget(response)
        return response


class _Entrance:
    """Helper for all sign-in routes, which renders their pages and completes a sign-in."""

    def __init__(self, services: Services, session: CookieSession) -> None:
        self.services, self.session = services, session

    def page(self, name: str, refused: FranklyError | None = None, **values: Any) -> Response:
        """Return a page that also offers to sign in with a passkey.

        refused : error of a sign-in; the status is 429 unless the error has another HTTP status.
        """
        passkeys = self.services.passkeys
        passkey = passkeys.ask(g.token) if passkeys.available else None
        return render(name, refused, status=429 if refused else 200, passkey=passkey, **values)

    def enter(self, signed: SignedIn) -> Response:
        """Set the cookies of a new session and redirect to the surveys."""
        response = self._leave_old(f"{PATH}/surveys")
        self.session.remember(response, signed)
        return response

    def await_code(self, waits: SecondFactorNeeded) -> Response:
        """Set the cookie of a pending sign-in and redirect to the second step."""
        response = self._leave_old(f"{PATH}/sign-in/code")
        self.session.await_code(response, waits.token)
        return response

    def _leave_old(self, path: str) -> Response:
        # The cookie will be replaced, and without it the old session could not be signed out.
        if g.person is not None:
            self.services.accounts.sign_out(g.token)
        return go(path)


def _add_password(routes: APIBlueprint, entrance: _Entrance) -> None:
    @routes.get("/sign-in")
    def sign_in() -> Response:
        return (
            go(f"{PATH}/surveys")
            if g.person
            else entrance.page("sign_in.html", signed_out_everywhere="everywhere" in request.args)
        )

    @routes.post("/sign-in")
    @takes("email", "password")
    def do_sign_in() -> Response:
        try:
            signed = entrance.services.accounts.sign_in(
                field("email"), request.form.get("password", ""), entrance.session.browser()
            )
        # The password is right, but there is no session yet.
        except SecondFactorNeeded as waits:
            return entrance.await_code(waits)
        except FranklyError as refused:
            return entrance.page("sign_in.html", refused, email=request.form.get("email"))
        return entrance.enter(signed)


def _add_second_step(routes: APIBlueprint, entrance: _Entrance) -> None:
    factors, passkeys = entrance.services.second_factors, entrance.services.passkeys

    @routes.get("/sign-in/code")
    def ask_code() -> Response:
        waits = factors.waits(g.token)
        return entrance.page("sign_in_code.html") if waits else go(f"{PATH}/sign-in")

    @routes.post("/sign-in/code")
    @takes("code")
    def take_code() -> Response:
        try:
            signed = factors.finish(g.token, field("code", 200), entrance.session.browser())
        except InvalidInput as refused:
            name = "sign_in.html" if refused.field == "sign-in" else "sign_in_code.html"
            return entrance.page(name, refused)
        return entrance.enter(signed)

    @routes.post("/sign-in/passkey")
    @takes("challenge", "credential")
    def take_passkey() -> Response:
        try:
            signed = passkeys.sign_in(
                g.token,
                field("challenge", 200),
                field("credential", CREDENTIAL_CHARACTERS),
                entrance.session.browser(),
            )
        except InvalidInput as refused:
            return entrance.page("sign_in.html", refused)
        return entrance.enter(signed)
