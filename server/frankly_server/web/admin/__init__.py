# SPDX-License-Identifier: Apache-2.0
"""Admin pages, rendered on the server; usable by keyboard and, passkeys aside, without scripts."""

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.errors import FranklyError
from werkzeug.exceptions import HTTPException

from frankly_server.services import Services
from frankly_server.web import problems
from frankly_server.web.admin import (
    account,
    estimates,
    margins,
    people,
    protection,
    publish,
    questions,
    sign_in,
    survey_state,
    webhook,
)
from frankly_server.web.admin.pages import assets, failed, render
from frankly_server.web.security import PATH, Door


def blueprint(services: Services) -> APIBlueprint:
    """Return the pages, bound to `services`; the OpenAPI document does not describe them."""
    routes = APIBlueprint(
        "admin", __name__, url_prefix=PATH, template_folder="templates", enable_openapi=False
    )
    door = Door(services)
    routes.before_request(door.enter)
    routes.after_request(door.leave)
    routes.register_error_handler(FranklyError, failed)
    routes.register_error_handler(HTTPException, _missing)
    routes.register_error_handler(Exception, _broken)
    # Runs before every request of the app, not only of these pages: threads do not survive a fork,
    # so each worker process starts its webhook thread at its first request.
    routes.before_app_request(services.herald.wake)
    assets(routes)
    sign_in.add_to(routes, services, door)
    account.add_to(routes, services, door)
    people.add_to(routes, services)
    questions.add_to(routes, services)
    protection.add_to(routes, services)
    margins.add_to(routes, services)
    publish.add_to(routes, services)
    survey_state.add_to(routes, services)
    estimates.add_to(routes, services)
    webhook.add_to(routes, services)
    return routes


def _missing(error: HTTPException) -> Response:
    """Show an HTTP error: wrong role, no such page, file too large."""
    code = error.code or 500
    messages = {
        403: (
            "No access",
            "Your role does not give you access to this page. Ask an owner of your organisation.",
        ),
        404: ("Not found", "There is no such page, or it belongs to another organisation."),
        413: ("Too large", "The file or form is larger than this page accepts."),
    }
    title, detail = messages.get(
        code, ("That did not work", "Go back, check what you sent and try again.")
    )
    return render("error.html", status=code, title=title, detail=detail)


def _broken(error: Exception) -> Response:
    """Show that an unexpected error occurred; the log line has its type and code location."""
    problems.from_unexpected(error)
    return render(
        "error.html",
        status=500,
        title="That did not work",
        detail="An internal error occurred; try again later.",
    )
