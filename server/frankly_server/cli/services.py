# SPDX-License-Identifier: Apache-2.0
"""Helpers for commands: open the services or the database, and find a survey by name."""

from collections.abc import Iterator
from contextlib import contextmanager

from frankly_protocol.clock import SystemClock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, SurveyRow, Transaction


@contextmanager
def open_services(settings: Settings | None = None) -> Iterator[Services]:
    """Open the services of `settings` (default: the environment's) and close them at the end.

    The database must be durable and have the current schema.
    """
    services = Services.open(_with_home(settings or Settings.load()), SystemClock())
    try:
        yield services
    finally:
        services.close()


@contextmanager
def open_database() -> Iterator[Database]:
    """Open the database of the environment's settings and close it at the end.

    It must be durable and have the current schema.
    """
    database = Database(_with_home(Settings.load()).store_url())
    try:
        database.check()
        yield database
    finally:
        database.close()


def _with_home(settings: Settings) -> Settings:
    if settings.database_url is None and not settings.home.is_dir():
        detail = f"there is no database in {settings.home} yet; run `frankly migrate`, or set FRANKLY_HOME"
        raise InvalidInput(Problem.UNSAFE_SETTING, detail, "FRANKLY_HOME")
    return settings


def survey_named(tx: Transaction, name: str) -> SurveyRow:
    """Return the survey of this name. Raises InvalidInput(survey_unknown)."""
    survey = tx.surveys.by_name(name)
    if survey is None:
        raise InvalidInput(
            Problem.SURVEY_UNKNOWN,
            "there is no survey of this name: see `frankly survey list`",
            "NAME",
        )
    return survey
