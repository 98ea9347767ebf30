# SPDX-License-Identifier: Apache-2.0
"""Helpers for commands: open the services or the database, and find a survey by name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import Accounts
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, Record, SurveyRow, Transaction
from frankly_server.store.survey_states import MAIN


@contextmanager
def open_services(settings: Settings | None = None) -> Iterator[Services]:
    """Open the services of `settings` (default: the environment's) and close them at the end.

    The database must be durable and have the current schema.
    """
    opened = Services.open(_with_home(settings or Settings.load()), SystemClock())
    with closing(opened) as services:
        yield services


@contextmanager
def open_database() -> Iterator[Database]:
    """Open the database of the environment's settings and close it at the end.

    It must be durable and have the current schema.
    """
    with closing(Database(_with_home(Settings.load()).store_url())) as database:
        database.check()
        yield database


def _with_home(settings: Settings) -> Settings:
    if settings.database_url is None and not settings.home.is_dir():
        raise InvalidInput(
            Problem.UNSAFE_SETTING,
            f"there is no database in {settings.home} yet; run `frankly migrate`, or set FRANKLY_HOME",
            "FRANKLY_HOME",
        )
    return settings


def command_record(services: Services, action: str, survey: str | None = None) -> Record:
    """Return the writer of a command's event on the audit trail of the survey's organisation.

    survey : name or id of the survey that the command changes; None for all surveys, whose event
    the main organisation gets.
    """

    def record(tx: Transaction) -> None:
        row = None if survey is None else tx.surveys.by_name(survey) or tx.surveys.get(survey)
        organisation = MAIN if row is None else tx.survey_states.get(row.id).organisation
        subject = "all surveys" if row is None else row.name
        services.accounts.command_recorder(organisation, action, subject)(tx)

    return record


def record_command(
    database: Database, action: str, subject: str, clock: Clock | None = None
) -> None:
    """Record what a command has done to the database itself, for the main organisation.

    clock : the source of time; default: the system clock.
    """
    with database.administering("record command") as tx:
        Accounts(database, clock or SystemClock()).command_recorder(MAIN, action, subject)(tx)


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


def survey_id_named(database: Database, name: str) -> str:
    """Return the id of the survey of this name. Raises InvalidInput(survey_unknown)."""
    with database.reading("find survey") as tx:
        return survey_named(tx, name).id
