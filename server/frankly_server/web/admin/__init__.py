# SPDX-License-Identifier: Apache-2.0
"""Admin pages, rendered on the server; they need no mouse and, except for passkeys, no scripts."""

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.errors import FranklyError
from werkzeug.exceptions import HTTPException

from frankly_server.services import Services
from frankly_server.web import problems
from frankly_server.web.admin import (
    account,
    answers,
    draft_preview,
    earlier_drafts,
    estimates,
    invitations,
    margins,
    overview,
    people,
    plan,
    protection,
    publish,
    question_page,
    questions,
    result_links,
    results,
    sheet,
    sign_in,
    translations,
    webhook,
    words,
)
from frankly_server.web.admin.pages import LANGUAGES, assets, failed, render
from frankly_server.web.security import PATH, CookieSession


def blueprint(services: Services) -> APIBlueprint:
    """Return the pages, bound to `services`; the OpenAPI document does not describe them."""
    routes = APIBlueprint(
        "admin", __name__, url_prefix=PATH, template_folder="templates", enable_openapi=False
    )
    # Macros are imported without the values of a page.
    routes.record_once(lambda state: state.app.jinja_env.globals.update(language_names=LANGUAGES))
    session = CookieSession(services)
    routes.before_request(session.enter)
    routes.after_request(session.leave)
    routes.register_error_handler(FranklyError, failed)
    routes.register_error_handler(HTTPException, _missing)
    routes.register_error_handler(Exception, _broken)
    # Runs before every request of the app, not only for these pages. Threads do not survive a
    # fork, so each worker process starts its webhook thread at its first request.
    routes.before_app_request(services.webhook_thread.wake)
    assets(routes)
    sign_in.add_to(routes, services, session)
    account.add_to(routes, services, session)
    people.add_to(routes, services)
    overview.add_to(routes, services)
    questions.add_to(routes, services)
    question_page.add_to(routes, services)
    translations.add_to(routes, services)
    draft_preview.add_to(routes, services)
    earlier_drafts.add_to(routes, services)
    protection.add_to(routes, services)
    margins.add_to(routes, services)
    plan.add_to(routes, services)
    publish.add_to(routes, services)
    sheet.add_to(routes, services)
    invitations.add_to(routes, services)
    answers.add_to(routes, services)
    estimates.add_to(routes, services)
    results.add_to(routes, services)
    result_links.add_to(routes, services)
    webhook.add_to(routes, services)
    words.add_to(routes)
    return routes


def _missing(error: HTTPException) -> Response:
    """Render an HTTP error: wrong role, no such page, file too large."""
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
    """Render an unexpected error; the log line has its type and code location."""
    problems.from_unexpected(error)
    return render(
        "error.html",
        status=500,
        title="That did not work",
        detail="An internal error occurred; try again later.",
    )
