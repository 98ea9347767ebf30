# SPDX-License-Identifier: Apache-2.0
"""Pages for the people, API keys and audit trail of an organisation."""

import secrets
from collections.abc import Callable
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import ROLES
from frankly_server.keys import access
from frankly_server.services import Services
from frankly_server.web import actions, reading
from frankly_server.web.admin.forms import field, takes
from frankly_server.web.admin.pages import attempt, render
from frankly_server.web.admin.survey_page import mine
from frankly_server.web.security import PATH, needs, person

_PAGE = 50
_OFFERED: Final = tuple(role for role in access.ROLES if role != access.READER)
"""Roles of new keys on the page of keys; readers' are links, which the page of a survey gives."""


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_people(routes, services)
    _add_keys(routes, services)

    @routes.get("/audit")
    @needs("owner")
    def audit() -> Response:
        before = reading.whole(reading.query(("before",)).get("before"), "before")
        # One more event than the page shows: if there is one, there is a next page.
        events = services.accounts.trail(person().organisation, before, _PAGE + 1)
        return render("audit.html", events=events[:_PAGE], more=len(events) > _PAGE)


def _add_people(routes: APIBlueprint, services: Services) -> None:
    def page(refused: InvalidInput | None = None, **values: Any) -> Response:
        mine = person().organisation
        needed, enrolled = services.second_factors.members(mine)
        return render(
            "people.html",
            refused,
            people=services.accounts.list(mine),
            roles=ROLES,
            second_factor=needed,
            enrolled=enrolled,
            **values,
        )

    @routes.get("/people")
    @needs("owner")
    def people() -> Response:
        return page()

    @routes.post("/people")
    @needs("owner")
    @takes("email", "role")
    def add_person() -> Response:
        password = secrets.token_urlsafe(12)
        try:
            account = services.accounts.create(
                person().organisation, field("email"), field("role"), password, person()
            )
        except InvalidInput as refused:
            return page(refused, form=request.form)
        # No redirect, because only the hash is stored and only this response can show the password.
        return page(status=201, made=account, password=password)

    _add_changes(routes, services, page)


def _add_changes(
    routes: APIBlueprint, services: Services, again: Callable[[InvalidInput], Response]
) -> None:
    @routes.post("/people/second-factor")
    @needs("owner")
    @takes("needed")
    def require_second_factor() -> Response:
        def act() -> None:
            needed = field("needed")
            if needed not in ("yes", "no"):
                raise InvalidInput(Problem.FIELD_TYPE, "choose yes or no", "needed")
            services.second_factors.require(person(), needed == "yes")

        return attempt(act, again, f"{PATH}/people")

    @routes.post("/people/<account_id>/role")
    @needs("owner")
    @takes("role")
    def set_role(account_id: str) -> Response:
        return attempt(
            lambda: services.accounts.set_role(person(), account_id, field("role")),
            again,
            f"{PATH}/people",
        )

    @routes.post("/people/<account_id>/disable")
    @needs("owner")
    @takes()
    def disable(account_id: str) -> Response:
        return attempt(
            lambda: services.accounts.disable(person(), account_id), again, f"{PATH}/people"
        )


def _add_keys(routes: APIBlueprint, services: Services) -> None:
    def page(refused: InvalidInput | None = None, **values: Any) -> Response:
        ours = person().organisation
        keys = [key for key in services.access.list() if key.organisation == ours]
        surveys = {one.id: one.summary.name for one in mine(services)}
        return render("keys.html", refused, keys=keys, surveys=surveys, roles=_OFFERED, **values)

    @routes.get("/keys")
    @needs("admin")
    def keys() -> Response:
        return page()

    @routes.post("/keys")
    @needs("admin")
    @takes("label", "role", many=("survey",))
    def add_key() -> Response:
        chosen = request.form.getlist("survey")
        try:
            token = actions.make_key(services, person(), field("role"), field("label"), chosen)
        except InvalidInput as refused:
            return page(refused, form=request.form, chosen=chosen)
        # No redirect, because only the hash is stored and only this response can show the key.
        return page(status=201, token=token)

    @routes.post("/keys/<prefix>/revoke")
    @needs("admin")
    @takes()
    def revoke_key(prefix: str) -> Response:
        return attempt(lambda: actions.revoke_key(services, person(), prefix), page, f"{PATH}/keys")
