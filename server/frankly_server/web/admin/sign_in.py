# SPDX-License-Identifier: Apache-2.0
"""Sign-in by passkey, or by password and the account's second factor; sign-out."""

from apiflask import APIBlueprint
from flask import Response, g, request
from frankly_protocol.errors import FranklyError, InvalidInput

from frankly_server.accounts import SecondFactorNeeded, SignedIn
from frankly_server.services import Services
from frankly_server.web.admin.pages import CREDENTIAL_CHARACTERS, field, go, render
from frankly_server.web.security import PATH, Door, needs


def add_to(routes: APIBlueprint, services: Services, door: Door) -> None:
    """Add the pages; `door` sets and deletes the session cookie."""
    _add_password(routes, _Entrance(services, door))
    _add_second_step(routes, _Entrance(services, door))

    @routes.get("/")
    @needs("viewer")
    def home() -> Response:
        return go(f"{PATH}/surveys")

    @routes.post("/sign-out")
    def sign_out() -> Response:
        # Signing out twice is not an error: the page may be an old one.
        if g.person is not None:
            services.accounts.sign_out(g.token)
        response = go(f"{PATH}/sign-in")
        door.forget(response)
        return response


class _Entrance:
    """Helper of all sign-in routes: it renders their pages and completes a sign-in."""

    def __init__(self, services: Services, door: Door) -> None:
        self.services, self.door = services, door

    def page(self, name: str, status: int = 200, **values: object) -> Response:
        """Return a page that also offers to sign in with a passkey."""
        passkeys = self.services.passkeys
        passkey = passkeys.ask(g.token) if passkeys.available else None
        return render(name, status=status, passkey=passkey, **values)

    def refuse(self, name: str, refused: FranklyError, **values: object) -> Response:
        """Return a page with the reason for a refused sign-in."""
        status = refused.problem.status if isinstance(refused, InvalidInput) else 429
        return self.page(name, status, error=refused, **values)

    def enter(self, signed: SignedIn) -> Response:
        """Set the cookies of a new session, and go to the surveys."""
        response = self._leave_old(f"{PATH}/surveys")
        self.door.remember(response, signed)
        return response

    def await_code(self, waits: SecondFactorNeeded) -> Response:
        """Set the cookie of a sign-in that waits for a second factor, and go to that step."""
        response = self._leave_old(f"{PATH}/sign-in/code")
        self.door.await_code(response, waits.token)
        return response

    def _leave_old(self, path: str) -> Response:
        # The cookie is about to be replaced, and without it the old session cannot be signed out.
        if g.person is not None:
            self.services.accounts.sign_out(g.token)
        return go(path)


def _add_password(routes: APIBlueprint, entrance: _Entrance) -> None:
    @routes.get("/sign-in")
    def sign_in() -> Response:
        return go(f"{PATH}/surveys") if g.person else entrance.page("sign_in.html")

    @routes.post("/sign-in")
    def do_sign_in() -> Response:
        try:
            signed = entrance.services.accounts.sign_in(
                field("email"), request.form.get("password", ""), entrance.door.browser()
            )
        # The password was right, but there is no session yet.
        except SecondFactorNeeded as waits:
            return entrance.await_code(waits)
        except FranklyError as refused:
            return entrance.refuse("sign_in.html", refused, email=field("email", 254))
        return entrance.enter(signed)


def _add_second_step(routes: APIBlueprint, entrance: _Entrance) -> None:
    factors, passkeys = entrance.services.second_factors, entrance.services.passkeys

    @routes.get("/sign-in/code")
    def ask_code() -> Response:
        waits = factors.waits(g.token)
        return entrance.page("sign_in_code.html") if waits else go(f"{PATH}/sign-in")

    @routes.post("/sign-in/code")
    def take_code() -> Response:
        try:
            signed = factors.finish(g.token, field("code", 200), entrance.door.browser())
        except InvalidInput as refused:
            name = "sign_in.html" if refused.field == "sign-in" else "sign_in_code.html"
            return entrance.refuse(name, refused)
        return entrance.enter(signed)

    @routes.post("/sign-in/passkey")
    def take_passkey() -> Response:
        try:
            signed = passkeys.sign_in(
                g.token,
                field("challenge", 200),
                field("credential", CREDENTIAL_CHARACTERS),
                entrance.door.browser(),
            )
        except InvalidInput as refused:
            return entrance.refuse("sign_in.html", refused)
        return entrance.enter(signed)
