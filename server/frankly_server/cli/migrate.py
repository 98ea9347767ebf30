# SPDX-License-Identifier: Apache-2.0
"""`frankly migrate`: bring the database to the schema this program needs."""

from contextlib import closing

import click
from frankly_protocol.clock import SystemClock

from frankly_server.cli.console import json_option, respond
from frankly_server.cli.services import record_command
from frankly_server.keys import Keyring
from frankly_server.log import LogService
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade


@click.command()
@click.option(
    "--accept-lost-log",
    is_flag=True,
    help="Accept a database whose log lacks entries that the key folder notes. Devices in log mode "
    "and witnesses that have seen these entries refuse this server's log for good.",
)
@json_option
def migrate(accept_lost_log: bool, as_json: bool) -> None:
    """Create the tables, or bring them up to date; running it again changes nothing.

    Before any change it compares the log with the head noted in the key folder, and stops if this
    is an empty, older or other database.
    """
    settings = Settings.load()
    with closing(Database(settings.store_url())) as database:
        clock = SystemClock()
        log = LogService(database, Keyring(settings.keys_folder, clock), clock)
        if not accept_lost_log:
            log.check()
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        version = upgrade(database)
        lost = log.accept() if accept_lost_log else None
        if lost is not None:
            record_command(database, "lost log accepted", "the whole database")
    respond(
        as_json,
        {"schema": version, "lost_log": lost},
        f"The database has schema version {version}.",
        *([] if lost is None else [lost]),
    )
