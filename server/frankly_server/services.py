# SPDX-License-Identifier: Apache-2.0
"""Service container of one server, shared by views and commands."""

from collections import OrderedDict
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from frankly_protocol.clock import Clock

from frankly_server.accounts import Accounts, Passkeys, Passwords, SecondFactors
from frankly_server.intake import Intake, Invites, Releasing
from frankly_server.intake.throttle import Throttle
from frankly_server.keys import Access, Keyring
from frankly_server.keys.idempotency import IdempotentRequests
from frankly_server.log import LogService
from frankly_server.settings import Settings
from frankly_server.store import Database, StoreUnavailable
from frankly_server.surveys import Surveys
from frankly_server.surveys.jobs import Jobs
from frankly_server.surveys.outbound import Post
from frankly_server.surveys.searches import ANALYSES, MANAGING, PREVIEWS, SEARCHES, Places
from frankly_server.surveys.survey_state import Lifecycle
from frankly_server.surveys.webhooks import Webhooks, WebhookThread

if TYPE_CHECKING:
    from frankly_server.analysis import Analysis


class Services:
    """All services over one database and one key folder; resources are opened on first use.

    surveys, intake, releasing, analysis : surveys, their reports, releases and estimates.
    access, idempotency : API keys, and requests that were sent twice. keys : signing keys. log : the
    transparency log. invites : invite tokens.
    accounts, second_factors, passkeys : sign-in. lifecycle, jobs : states of surveys, and
    publishing in the background. searches, analyses, previews, managing : places for slow work of
    requests.
    kept_results : results of searches, the newest last (`web.searching.search_once`). kept_views : what
    pages of results show, until the next release (`web.results.page`). webhooks,
    webhook_thread : webhook addresses, and the thread that posts events to them.
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
        self._clock = clock
        self.keys = Keyring(settings.keys_folder, clock)
        self.access = Access(database, clock)
        self.idempotency = IdempotentRequests(database, clock)
        self.surveys = Surveys(settings, database, self.keys, clock)
        self.intake = Intake(database, clock, Throttle(settings.source_rate_per_s))
        self.log = LogService(database, self.keys, clock)
        self.invites = Invites(database)
        self.accounts = Accounts(database, clock, passwords)
        # The issuer contains the host, because an authenticator app may list several servers.
        issuer = f"Frankly {urlsplit(settings.public_url).hostname}"
        self.second_factors = SecondFactors(database, clock, self.accounts, issuer)
        self.passkeys = Passkeys(database, clock, self.accounts, self.keys, settings.public_url)
        self.lifecycle = Lifecycle(database)
        self.jobs = Jobs(database, self.surveys, clock)
        self.searches, self.analyses = Places(*SEARCHES), Places(*ANALYSES)
        self.previews, self.managing = Places(*PREVIEWS), Places(*MANAGING)
        self.kept_results: OrderedDict[bytes, Any] = OrderedDict()
        self.kept_views: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self.webhooks = Webhooks(database, clock, Post(settings.webhook_host_list))
        self.webhook_thread = WebhookThread(self.webhooks)

    @cached_property
    def releasing(self) -> Releasing:
        """Releases of reports."""
        if not self.settings.estimates_view:
            return Releasing(self.database, self._clock, None)
        # Imported on use: it imports numpy, which most commands do not need.
        from frankly_server.analysis import Publishing  # noqa: PLC0415

        return Releasing(self.database, self._clock, Publishing(self.database))

    @cached_property
    def analysis(self) -> "Analysis":
        """Estimates of surveys."""
        # Imported on use: it imports numpy, which most commands do not need.
        from frankly_server.analysis import Analysis  # noqa: PLC0415

        return Analysis(self.database)

    def stop_searches(self) -> None:
        """Let searches and previews that run or wait end: the server stops."""
        for places in (self.searches, self.previews, self.managing):
            places.stop()

    def wake(self) -> None:
        """Start the release and webhook threads in this process, unless they are running."""
        self.releasing.wake()
        self.webhook_thread.wake()

    @classmethod
    def open(cls, settings: Settings, clock: Clock) -> Self:
        """Return the services over the database of `settings`, after checking its schema.

        Raises the errors of `Database.check`: UnsafeStore or StoreUnavailable.
        """
        # Closed after the check: forked processes open their own connections.
        with closing(Database(settings.store_url())) as database:
            database.check()
        return cls(settings, database, clock)

    def check_start(self) -> None:
        """Check the database, the keys and the log before the server starts (bad input 54).

        A full or read-only database does not prevent the start: documents and estimates can be
        read, and `/health/ready` fails until the database can be written. Raises UnsafeStore,
        StoreUnavailable or InvalidInput (key_file; unsafe_setting if the log lacks entries of the
        noted head), each with a one-line message.
        """
        self.database.check()
        with suppress(StoreUnavailable):
            self.database.check_writable()
        self.keys.check()
        self.log.check()
        self.log.note()
        self.database.close()  # forked processes open their own connections

    def check_health(self) -> None:
        """Raise StoreUnavailable or UnsafeStore if the database is down, unsafe or not migrated."""
        # A newer schema is accepted, because a migration may run while older processes still serve.
        self.database.check(started=True)

    def close(self) -> None:
        """Stop the threads, write the counts that are in memory, and close the connections."""
        # The database is closed last, because the other services may still write to it.
        self.webhook_thread.stop()
        self.releasing.stop()
        self.intake.close()
        self.database.close()
