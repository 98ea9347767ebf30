# SPDX-License-Identifier: Apache-2.0
"""Account page of the signed-in person: password, second factor, passkeys, sessions."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from apiflask import APIBlueprint
from flask import Response, g, request
from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.errors import InvalidInput
from markupsafe import Markup

from frankly_server.accounts import Person, may
from frankly_server.services import Services
from frankly_server.web.admin.forms import CREDENTIAL_CHARACTERS, field, takes
from frankly_server.web.admin.pages import attempt, go, render
from frankly_server.web.security import PATH, CookieSession, needs, person

if TYPE_CHECKING:
    import segno
else:
    segno = LazyModule("segno")

ACCOUNT = f"{PATH}/account"
Again = Callable[[InvalidInput], Response]
ShowCodes = Callable[[Callable[[], Sequence[str]]], Response]


def add_to(routes: APIBlueprint, services: Services, session: CookieSession) -> None:
    """Add the pages; `session` reads and sets the cookies."""

    def page(refused: InvalidInput | None = None, **values: Any) -> Response:
        state = services.second_factors.state(person())
        picture = state.link and Markup(_qr_code(state.link))  # noqa: S704 - made here, without text
        return render(
            "account.html",
            refused,
            state=state,
            picture=picture,
            passkeys=services.passkeys.of(person()),
            changed="changed" in request.args,
            has_keys=may(person().role, "admin")
            and any(
                key.organisation == person().organisation and key.revoked is None
                for key in services.access.list()
            ),
            passkey=services.passkeys.begin(person(), g.token)
            if services.passkeys.available
            else None,
            **values,
        )

    @routes.get("/account")
    @needs("viewer", before_enrolment=True)
    def account() -> Response:
        return page()

    @routes.post("/account")
    @needs("viewer", before_enrolment=True)
    @takes("old", "new")
    def change_password() -> Response:
        try:
            signed = services.accounts.change_password(
                person(),
                request.form.get("old", ""),
                request.form.get("new", ""),
                session.browser(),
            )
        except InvalidInput as refused:
            return page(refused)
        # All sessions have ended, including this one. The new session keeps the person signed in.
        response = go(f"{ACCOUNT}?changed")
        session.remember(response, signed)
        return response

    @routes.post("/account/sign-out-everywhere")
    @needs("viewer", before_enrolment=True)
    @takes()
    def sign_out_everywhere() -> Response:
        try:
            services.accounts.sign_out_everywhere(person())
        except InvalidInput as refused:
            return page(refused)
        response = go(f"{PATH}/sign-in?everywhere")
        session.forget(response)
        return response

    def show_codes(make: Callable[[], Sequence[str]]) -> Response:
        try:
            codes = make()
        except InvalidInput as refused:
            return page(refused)
        # No redirect, because only hashes are stored and only this response can show the codes.
        return page(status=201, codes=codes) if codes else go(ACCOUNT)

    _add_second_factor(routes, services, session, page, show_codes)
    _add_passkeys(routes, services, session, page, show_codes)


def _password() -> str:
    return request.form.get("password", "")


def _add_second_factor(
    routes: APIBlueprint,
    services: Services,
    session: CookieSession,
    again: Again,
    show_codes: ShowCodes,
) -> None:
    factors = services.second_factors

    def attempt_with_password(act: Callable[[Person, str, str], object]) -> Response:
        return attempt(lambda: act(person(), _password(), session.browser()), again, ACCOUNT)

    @routes.post("/account/totp")
    @needs("viewer", before_enrolment=True)
    @takes("password")
    def begin_totp() -> Response:
        return attempt_with_password(factors.begin_totp)

    @routes.post("/account/totp/confirm")
    @needs("viewer", before_enrolment=True)
    @takes("code")
    def confirm_totp() -> Response:
        return show_codes(lambda: factors.confirm_totp(person(), field("code", 200)))

    @routes.post("/account/totp/remove")
    @needs("viewer", before_enrolment=True)
    @takes("password")
    def remove_totp() -> Response:
        return attempt_with_password(factors.remove_totp)

    @routes.post("/account/recovery-codes")
    @needs("viewer", before_enrolment=True)
    @takes("password")
    def renew_codes() -> Response:
        return show_codes(lambda: factors.renew_codes(person(), _password(), session.browser()))


def _add_passkeys(
    routes: APIBlueprint,
    services: Services,
    session: CookieSession,
    again: Again,
    show_codes: ShowCodes,
) -> None:
    @routes.post("/account/passkeys")
    @needs("viewer", before_enrolment=True)
    @takes("password", "name", "challenge", "credential")
    def add_passkey() -> Response:
        return show_codes(
            lambda: services.passkeys.register(
                person(),
                _password(),
                g.token,
                field("challenge", 200),
                field("credential", CREDENTIAL_CHARACTERS),
                field("name", 200),
                session.browser(),
            )
        )

    @routes.post("/account/passkeys/remove")
    @needs("viewer", before_enrolment=True)
    @takes("password", "passkey")
    def remove_passkey() -> Response:
        return attempt(
            lambda: services.passkeys.remove(
                person(), _password(), field("passkey"), session.browser()
            ),
            again,
            ACCOUNT,
        )


def _qr_code(link: str) -> str:
    """Return a QR code as an SVG element, dark on light in both colour schemes for scanners."""
    return segno.make(link, error="m").svg_inline(
        scale=4, dark="#000", light="#fff", svgclass=None, lineclass=None, omitsize=False
    )
