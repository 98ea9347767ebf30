# SPDX-License-Identifier: Apache-2.0
"""Application factory: assembles the WSGI application from settings, services and blueprints."""

import os
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from apiflask import APIFlask
from flask import Response
from flask.sessions import NullSession, SecureCookieSessionInterface
from frankly_protocol import __version__
from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.web import (
    analyst,
    counts_models,
    estimates_models,
    front,
    headers,
    hosted,
    limits,
    logs,
    management,
    metrics,
    models,
    openapi,
    plan_models,
    planning,
    problems,
    public,
    reading,
    shared_results,
)
from frankly_server.web.admin import blueprint as admin_pages
from frankly_server.web.management import models as management_models
from frankly_server.web.openapi import declare
from frankly_server.web.receiving import Receiving
from frankly_server.web.slots import Slots

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class _NoSession(SecureCookieSessionInterface):
    """Disabled session of Flask: the admin pages set their own cookies."""

    def open_session(self, *_arguments: Any) -> NullSession:
        return NullSession()

    def save_session(self, *_arguments: Any) -> None:
        return None


_MAX_FORM_PARTS: Final = 5_000
"""Largest number of fields of a form: a question has up to 100 rows, a survey over 2,000 texts."""


def create_app(
    settings: Settings, *, clock: Clock | None = None, services: Services | None = None
) -> APIFlask:
    """Return the WSGI application.

    Parameters
    ----------
    settings : limits and addresses.
    clock : the source of time; default: the system clock.
    services : ready-made services; default: those of `settings`, after the start-up checks.

    Raises
    ------
    FranklyError : unsafe_setting for an unsafe setting or database, key_file without a usable
        publisher key, unavailable if the database cannot be reached; the message has one line
        (bad input 54).
    """
    _refuse_debug()
    bound = services if services is not None else _open(settings, clock or SystemClock())
    app = APIFlask(
        "frankly_server",
        title="Frankly",
        version=__version__,
        spec_path=None,
        docs_path=None,
        json_errors=False,
        static_folder=None,  # type: ignore[arg-type]  # files are served by routes only
    )
    app.session_interface = _NoSession()
    # Each resource has one address: a path with a doubled slash is a 404, not a redirect.
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.config.update(
        MAX_CONTENT_LENGTH=settings.body_limit_bytes,
        MAX_FORM_PARTS=_MAX_FORM_PARTS,
        MAX_FORM_MEMORY_SIZE=settings.body_limit_bytes,
        PROVIDE_AUTOMATIC_OPTIONS=False,
    )
    openapi.configure(app)
    headers.register(app)
    problems.register(app)
    hosted.open_to_pages(app)
    allowed = limits.RateLimits(settings)
    app.register_blueprint(public.blueprint(bound, settings, allowed))
    app.register_blueprint(analyst.blueprint(bound, allowed))
    app.register_blueprint(planning.blueprint(bound, allowed))
    app.register_blueprint(management.blueprint(bound, allowed))
    app.register_blueprint(hosted.blueprint(bound))
    app.register_blueprint(front.blueprint())
    app.register_blueprint(shared_results.blueprint(bound, allowed))
    app.register_blueprint(admin_pages(bound))
    _add_description(app)
    receiving = Receiving(app, bound.intake, allowed.reports, settings.report_limit_bytes)
    # Flask documents this assignment for middleware, but mypy rejects assignments to methods.
    app.wsgi_app = Slots(receiving, settings.threads, metrics.of(app))  # type: ignore[method-assign]
    return app


def wsgi() -> APIFlask:
    """Return the application for a WSGI server, as in ``gunicorn 'frankly_server.app:wsgi()'``.

    With gunicorn's option ``--limit-request-line 8190``, queries may be as long as those of `frankly serve`.
    """
    logs.configure()
    settings = Settings.load()
    services = _open(settings, SystemClock())
    app = create_app(settings, services=services)
    answer = app.wsgi_app

    def awake(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        services.wake()  # on each request, because threads do not survive the fork of a worker
        return answer(environ, start_response)

    app.wsgi_app = awake  # type: ignore[method-assign]
    return app


def _open(settings: Settings, clock: Clock) -> Services:
    """Return services that have passed the start-up checks; close them if a check fails."""
    services = Services.open(settings, clock)
    try:
        services.check_start()
    except FranklyError:
        services.close()
        raise
    return services


def _refuse_debug() -> None:
    if os.environ.get("FLASK_DEBUG", "0") not in ("", "0", "false"):
        raise InvalidInput(
            Problem.UNSAFE_SETTING, "unset it: debug pages would show requests", "FLASK_DEBUG"
        )


def _add_description(app: APIFlask) -> None:
    """Add the route of the OpenAPI document, which includes this route.

    It is built once, at the first request, because building it would delay the start of a server.
    """
    described = (
        *(*models.ALL, *estimates_models.ALL, *counts_models.ALL, *plan_models.ALL),
        *management_models.ALL,
    )
    built: list[bytes] = []
    building = Lock()

    @app.get("/openapi.json")
    @declare(app, "openapi", answers={200: ("This document.", reading.JSON, models.OpenApi)})
    def openapi_document() -> Response:
        """Return the description of every route, in OpenAPI 3.1."""
        reading.query(())
        with building:
            if not built:
                built.append(openapi.finish(app, described))
        return Response(built[0], content_type=reading.JSON)
