# SPDX-License-Identifier: Apache-2.0
"""One's own account: password, second factor, sessions."""

from collections.abc import Callable, Sequence

import segno
from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from markupsafe import Markup

from frankly_server.services import Services
from frankly_server.web.admin.pages import attempt, field, go, render
from frankly_server.web.security import PATH, Door, needs, person

ACCOUNT = f"{PATH}/account"


def add_to(routes: APIBlueprint, services: Services, door: Door) -> None:
    """Add the pages; `door` reads and sets the cookies."""

    def page(status: int = 200, **values: object) -> Response:
        state = services.second_factors.state(person())
        picture = state.link and Markup(_qr_code(state.link))  # noqa: S704 - drawn here, no text in it
        return render("account.html", status=status, state=state, picture=picture, **values)

    def again(refused: InvalidInput) -> Response:
        return page(refused.problem.status, error=refused)

    @routes.get("/account")
    @needs("viewer")
    def account() -> Response:
        return page()

    @routes.post("/account")
    @needs("viewer")
    def change_password() -> Response:
        try:
            signed = services.accounts.change_password(
                person(),
                request.form.get("old", ""),
                request.form.get("new", ""),
                door.browser(),
            )
        except InvalidInput as refused:
            return again(refused)
        response = go(ACCOUNT)
        door.remember(response, signed)
        return response

    @routes.post("/account/sign-out-everywhere")
    @needs("viewer")
    def sign_out_everywhere() -> Response:
        services.accounts.sign_out_everywhere(person())
        response = go(f"{PATH}/sign-in")
        door.forget(response)
        return response

    _add_second_factor(routes, services, door, page, again)


def _add_second_factor(
    routes: APIBlueprint,
    services: Services,
    door: Door,
    page: Callable[..., Response],
    again: Callable[[InvalidInput], Response],
) -> None:
    factors = services.second_factors

    def show_codes(make: Callable[[], Sequence[str]]) -> Response:
        try:
            codes = make()
        except InvalidInput as refused:
            return again(refused)
        # No redirect: only hashes are stored, so that this page alone can show the codes.
        return page(201, codes=codes)

    def password() -> str:
        return request.form.get("password", "")

    @routes.post("/account/totp")
    @needs("viewer")
    def begin_totp() -> Response:
        def act() -> str:
            factors.begin_totp(person(), password(), door.browser())
            return ACCOUNT

        return attempt(act, again)

    @routes.post("/account/totp/confirm")
    @needs("viewer")
    def confirm_totp() -> Response:
        return show_codes(lambda: factors.confirm_totp(person(), field("code", 200)))

    @routes.post("/account/totp/remove")
    @needs("viewer")
    def remove_totp() -> Response:
        def act() -> str:
            factors.remove_totp(person(), password(), door.browser())
            return ACCOUNT

        return attempt(act, again)

    @routes.post("/account/recovery-codes")
    @needs("viewer")
    def renew_codes() -> Response:
        return show_codes(lambda: factors.renew_codes(person(), password(), door.browser()))


def _qr_code(link: str) -> str:
    """Return a QR code as an SVG element; dark on light in both colour schemes, as readers expect."""
    return segno.make(link, error="m").svg_inline(
        scale=4, dark="#000", light="#fff", svgclass=None, lineclass=None, omitsize=False
    )
