# SPDX-License-Identifier: Apache-2.0
"""Sign-in, with a second factor if the account has one, and sign-out."""

from apiflask import APIBlueprint
from flask import Response, g, request
from frankly_protocol.errors import FranklyError, InvalidInput

from frankly_server.accounts import SecondFactorNeeded
from frankly_server.services import Services
from frankly_server.web.admin.pages import field, go, render
from frankly_server.web.security import PATH, Door, needs


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
        except SecondFactorNeeded as waits:
            response = go(f"{PATH}/sign-in/code")
            door.await_code(response, waits.token)
            return response
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

    _add_second_step(routes, services, door)


def _add_second_step(routes: APIBlueprint, services: Services, door: Door) -> None:
    @routes.get("/sign-in/code")
    def ask_code() -> Response:
        waits = services.second_factors.waits(g.token)
        return render("sign_in_code.html") if waits else go(f"{PATH}/sign-in")

    @routes.post("/sign-in/code")
    def take_code() -> Response:
        try:
            signed = services.second_factors.finish(g.token, field("code", 200), door.browser())
        except InvalidInput as refused:
            page = "sign_in.html" if refused.field == "sign-in" else "sign_in_code.html"
            return render(page, status=refused.problem.status, error=refused)
        response = go(f"{PATH}/surveys")
        door.remember(response, signed)
        return response
