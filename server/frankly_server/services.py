# SPDX-License-Identifier: Apache-2.0
"""Every service of one server, wired once; views and commands parse, call one of these, and render."""

from frankly_protocol.clock import Clock, SystemClock
from frankly_server.analysis import Analysis
from frankly_server.intake import Intake
from frankly_server.keys import Access, Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database
from frankly_server.surveys import Surveys


class Services:
    """The services over one database and one key folder; nothing is opened before it is used.

    surveys, intake, analysis : the survey's life. access : API keys. keys : signing keys.
    """

    def __init__(self, settings: Settings, database: Database | None = None, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self.settings = settings
        self.database = database or Database(settings.store_url())
        self.keys = Keyring(settings.keys_folder, clock)
        self.access = Access(self.database, clock)
        self.surveys = Surveys(settings, self.database, self.keys, clock)
        self.intake = Intake(self.database, clock)
        self.analysis = Analysis(self.database)

    def check_start(self) -> None:
        """Refuse to start on an unsafe or unknown database, or without a publisher key (BAD_INPUTS 54).

        Raises UnsafeStore, StoreUnavailable or InvalidInput(key_file): one line each.
        """
        self.database.check()
        self.keys.check()

    def check_health(self) -> None:
        """Raise StoreUnavailable or UnsafeStore unless the database answers and has our schema."""
        self.database.check()

    def close(self) -> None:
        """Close the database's connections."""
        self.database.close()
