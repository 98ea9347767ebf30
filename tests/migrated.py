# SPDX-License-Identifier: Apache-2.0
"""Migrated databases: an SQLite file is migrated once for each test process, and then copied."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from frankly_protocol.clock import Clock
from frankly_server.accounts import Passwords
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, upgrade


def migrated(url: str) -> Database:
    """Return an open database with all tables at a URL where nothing is yet.

    Copying a file takes a thousandth of the time of migrating, which tests/frankly_server/store and
    tests/deploy/test_migrations.py do themselves.
    """
    if url.startswith("sqlite:///"):
        path = Path(url.removeprefix("sqlite:///"))
        assert not path.exists()
        path.touch(0o600)
        path.write_bytes(_migrated_file())
        return Database(url)
    database = Database(url)
    upgrade(database)
    return database


def opened(settings: Settings, clock: Clock, passwords: Passwords | None = None) -> Services:
    """Return services with new keys on the migrated database that the settings name."""
    services = Services(settings, migrated(settings.store_url()), clock, passwords)
    services.keys.init()
    return services


@cache
def _migrated_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "frankly.db"
        database = Database(f"sqlite:///{path}")
        upgrade(database)
        database.close()
        return path.read_bytes()
