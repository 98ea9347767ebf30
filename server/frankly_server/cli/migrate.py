# SPDX-License-Identifier: Apache-2.0
"""`frankly migrate`: bring the database to the schema this program needs."""

import click

from frankly_server.cli.console import json_option, remarks, write_json
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade


@click.command()
@json_option
def migrate(as_json: bool) -> None:
    """Create the tables, or bring them up to date; running it again changes nothing."""
    settings = Settings.load()
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = Database(settings.store_url())
    try:
        version = upgrade(database)
    finally:
        database.close()
    if as_json:
        write_json({"schema": version})
    else:
        remarks().print(f"The database has schema version {version}.", markup=False)
