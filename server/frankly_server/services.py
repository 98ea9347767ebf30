# SPDX-License-Identifier: Apache-2.0
"""The services of one server, constructed in one place for views and commands."""

from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from frankly_protocol.clock import Clock

from frankly_server.accounts import Accounts, Passkeys, Passwords, SecondFactors
from frankly_server.analysis import Analysis
from frankly_server.intake import Intake, Invites, Releasing
from frankly_server.keys import Access, Keyring
from frankly_server.log import LogService
from frankly_server.settings import Settings
from frankly_server.store import Database, StoreUnavailable
from frankly_server.surveys import Surveys
from frankly_server.surveys.jobs import Jobs
from frankly_server.surveys.outbound import Post
from frankly_server.surveys.survey_state import Lifecycle
from frankly_server.surveys.webhooks import Webhooks, WebhookThread


class Services:
    """The services over one database and one key folder; nothing is opened before its first use.

    surveys, intake, releasing, analysis : surveys, their reports, releases and estimates.
    access : API keys. keys : signing keys. log : the transparency log. invites : invite tokens.
    accounts, second_factors, passkeys : people who sign in. lifecycle, jobs : states of surveys,
    and publishing in the background. webhooks, herald : webhook addresses, and the thread that
    posts events to them.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        clock: Clock,
        passwords: Passwords | None = None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.keys = Keyring(settings.keys_folder, clock)
        self.access = Access(database, clock)
        self.surveys = Surveys(settings, database, self.keys, clock)
        self.intake = Intake(database, clock)
        self.releasing = Releasing(database, clock)
        self.log = LogService(database, self.keys, clock)
        self.invites = Invites(database)
        self.analysis = Analysis(database)
        self.accounts = Accounts(database, clock, passwords)
        # The issuer names the host, because an authenticator app may list several servers.
        issuer = f"Frankly {urlsplit(settings.public_url).hostname}"
        self.second_factors = SecondFactors(database, clock, self.accounts, issuer)
        self.passkeys = Passkeys(database, clock, self.accounts, self.keys, settings.public_url)
        self.lifecycle = Lifecycle(database)
        self.jobs = Jobs(database, self.surveys, clock)
        self.webhooks = Webhooks(database, clock, Post(settings.webhook_host_list))
        self.herald = WebhookThread(self.webhooks)

    def wake(self) -> None:
        """Start the threads of releases and webhooks in this process, unless they run already."""
        self.releasing.wake()
        self.herald.wake()

    @classmethod
    def open(cls, settings: Settings, clock: Clock) -> Self:
        """Return the services over the database of `settings`, after checking its schema.

        Raises UnsafeStore or StoreUnavailable as `Database.check` does.
        """
        database = Database(settings.store_url())
        try:
            database.check()
        finally:
            database.close()  # forked processes open their own connections
        return cls(settings, database, clock)

    def check_start(self) -> None:
        """Check the database and the publisher key before the server starts (bad input 54).

        A full or read-only database does not stop the start: documents and estimates can be read,
        and `/health/ready` fails until it can be written. Raises UnsafeStore, StoreUnavailable or
        InvalidInput(key_file), each with a message of one line.
        """
        self.database.check()
        with suppress(StoreUnavailable):
            self.database.check_writable()
        self.database.close()  # forked processes open their own connections
        self.keys.check()

    def check_health(self) -> None:
        """Raise StoreUnavailable or UnsafeStore if the database is down, unsafe or not migrated."""
        # A newer schema is accepted, because a migration may run while older processes still serve.
        self.database.check(started=True)

    def close(self) -> None:
        """Stop the threads, write counts held in memory, and close the connections."""
        # The database is closed last, because the other services may still write to it.
        self.herald.stop()
        self.releasing.stop()
        self.intake.close()
        self.database.close()
