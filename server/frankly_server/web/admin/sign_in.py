# SPDX-License-Identifier: Apache-2.0
"""Sign-in, sign-out and change of password."""

from apiflask import APIBlueprint
from flask import Response, g, request
from frankly_protocol.errors import FranklyError, InvalidInput

from frankly_server.services import Services
from frankly_server.web.admin.pages import field, go, render
from frankly_server.web.security import PATH, Door, needs, person


def add_to(routes: APIBlueprint, services: Services, door: Door) -> None:
    """Add the pages; `door` sets and deletes the session cookie."""

    @routes.get("/")
    @needs("viewer")
    def home() -> Response:
        return go(f"{PATH}/surveys")

    @routes.get("/sign-in")
    def sign_in() -> Response:
        return go(f"{PATH}/surveys") if g.person else render("sign_in.html")

    @routes.post("/sign-in")
    def do_sign_in() -> Response:
        try:
            signed = services.accounts.sign_in(
                field("email"), request.form.get("password", ""), door.browser()
            )
        except FranklyError as refused:
            status = refused.problem.status if isinstance(refused, InvalidInput) else 429
            return render("sign_in.html", status=status, error=refused, email=field("email", 254))
        # The cookie gets the new token, so that no one could end the old session later.
        if g.person is not None:
            services.accounts.sign_out(g.token)
        response = go(f"{PATH}/surveys")
        door.remember(response, signed)
        return response

    @routes.post("/sign-out")
    def sign_out() -> Response:
        if g.person is not None:
            services.accounts.sign_out(g.token)
        response = go(f"{PATH}/sign-in")
        door.forget(response)
        return response

    _add_account(routes, services, door)


def _add_account(routes: APIBlueprint, services: Services, door: Door) -> None:
    @routes.get("/account")
    @needs("viewer")
    def account() -> Response:
        return render("account.html")

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
            return render("account.html", status=refused.problem.status, error=refused)
        response = go(f"{PATH}/account")
        door.remember(response, signed)
        return response

    @routes.post("/account/sign-out-everywhere")
    @needs("viewer")
    def sign_out_everywhere() -> Response:
        services.accounts.sign_out_everywhere(person())
        response = go(f"{PATH}/sign-in")
        door.forget(response)
        return response
