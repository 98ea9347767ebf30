# SPDX-License-Identifier: Apache-2.0
"""Opening and closing what a verb works with."""

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
    """Give the services of `settings` (default: the environment's); the database must be safe and have our schema."""
    services = Services.open(_with_home(settings or Settings.load()), SystemClock())
    try:
        yield services
    finally:
        services.close()


@contextmanager
def open_database() -> Iterator[Database]:
    """Give the database of the environment's settings, which must be safe and have our schema."""
    database = Database(_with_home(Settings.load()).store_url())
    try:
        database.check()
        yield database
    finally:
        database.close()


def _with_home(settings: Settings) -> Settings:
    if settings.database_url is None and not settings.home.is_dir():
        words = f"there is no database in {settings.home} yet; run `frankly migrate`, or set FRANKLY_HOME"
        raise InvalidInput(Problem.UNSAFE_SETTING, words, "FRANKLY_HOME")
    return settings


def survey_named(tx: Transaction, name: str) -> SurveyRow:
    """Return the survey of this name. Raises InvalidInput(survey_unknown)."""
    found = tx.surveys.by_name(name)
    if found is None:
        raise InvalidInput(Problem.SURVEY_UNKNOWN, "there is no survey of this name: see `frankly survey list`", "NAME")
    return found
