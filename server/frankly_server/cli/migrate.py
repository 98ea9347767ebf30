# SPDX-License-Identifier: Apache-2.0
"""`frankly migrate`: bring the database to the schema this program needs."""

from contextlib import closing

import click

from frankly_server.cli.console import json_option, respond
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade


@click.command()
@json_option
def migrate(as_json: bool) -> None:
    """Create the tables, or bring them up to date; running it again changes nothing."""
    settings = Settings.load()
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(Database(settings.store_url())) as database:
        version = upgrade(database)
    respond(as_json, {"schema": version}, f"The database has schema version {version}.")
