# SPDX-License-Identifier: Apache-2.0
"""`frankly doctor`: checks of everything a server needs, and how to fix what is missing."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from frankly_protocol import __version__
from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.errors import FranklyError
from frankly_protocol.trust import prove_chain

from frankly_server.cli import exits
from frankly_server.cli.console import json_option, respond, table
from frankly_server.keys import Keyring, nearly_full
from frankly_server.log import LogService
from frankly_server.settings import Settings
from frankly_server.store import Database, StoreUnavailable
from frankly_server.surveys import Surveys

_FREE_BYTES = 1 << 30
_SOON_DAYS = 60


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check. `state` : ok, warning or broken. `words` : the finding or the remedy."""

    what: str
    state: str
    words: str


@click.command()
@click.option(
    "--counts", is_flag=True, help="Also recount the reports and compare (reads all of them)."
)
@json_option
def doctor(counts: bool, as_json: bool) -> None:
    """Check settings, database, keys, disk and libraries. Exit code 6 if something is broken."""
    findings = list(examine(SystemClock(), counts=counts))
    rows = [(finding.what, finding.state, finding.words) for finding in findings]
    respond(
        as_json,
        {"version": __version__, "findings": [asdict(finding) for finding in findings]},
        rows=table(f"Frankly {__version__}", ("what", "state", "finding"), rows),
    )
    if any(finding.state == "broken" for finding in findings):
        raise click.exceptions.Exit(exits.INTEGRITY)


def examine(clock: Clock, *, counts: bool = False) -> Iterator[CheckResult]:
    """Yield one result per check; only one result if the settings cannot be loaded."""
    try:
        settings = Settings.load()
    except FranklyError as error:
        yield _broken("settings", error)
        return
    yield CheckResult("settings", "ok", f"home {settings.home}")
    yield _address(settings)
    database = _checked("database", lambda: _database(settings))
    keys = _checked("keys", lambda: _keys(settings, clock))
    yield from (database, keys)
    if "broken" not in (database.state, keys.state):
        yield _checked("signatures", lambda: _signatures(settings, clock))
    yield _checked("log", lambda: _log(settings, clock))
    yield _disk(settings.home)
    yield _libraries()
    if counts:
        yield _checked("counts", lambda: _counts(settings))


def _checked(what: str, check: Callable[[], tuple[str, str]]) -> CheckResult:
    try:
        state, detail = check()
    except FranklyError as error:
        return _broken(what, error)
    return CheckResult(what, state, detail)


def _broken(what: str, error: FranklyError) -> CheckResult:
    detail = exits.detail_of(error)
    return CheckResult(what, "broken", f"{error.field}: {detail}" if error.field else detail)


def _address(settings: Settings) -> CheckResult:
    url = settings.public_url
    if url.startswith("https://"):
        return CheckResult("address", "ok", url)
    return CheckResult(
        "address",
        "warning",
        f"{url}: devices refuse http except on this machine; set FRANKLY_PUBLIC_URL to the https address",
    )


def _database(settings: Settings) -> tuple[str, str]:
    with closing(Database(settings.store_url())) as database:
        if not database.is_there():
            return "broken", "there is no database yet; run `frankly migrate`"
        database.check()
        # A readable but full or read-only database would only fail at the first report.
        database.check_writable()
        return "ok", f"{database.engine.dialect.name}, durable, with the schema this program needs"


def _keys(settings: Settings, clock: Clock) -> tuple[str, str]:
    keys = Keyring(settings.keys_folder, clock)
    keys.check()
    prove_chain(keys.chain(), None, clock.now())  # as every device does
    time_left = keys.trusted().expires - clock.now()
    if time_left.days < _SOON_DAYS:
        return "warning", f"the keys document expires in {time_left.days} days; rotate before then"
    full = nearly_full(keys.chain_used())
    if full is not None:
        return "warning", full
    return (
        "ok",
        f"the publisher's key is in the keys document, valid for {time_left.days} more days",
    )


def _signatures(settings: Settings, clock: Clock) -> tuple[str, str]:
    with closing(Database(settings.store_url())) as database:
        keyring = Keyring(settings.keys_folder, clock)
        retired = Surveys(settings, database, keyring, clock).signed_by_others()
    if retired:
        return (
            "broken",
            f"{len(retired)} document(s) are signed by retired keys only; run `frankly keys resign`",
        )
    return "ok", "the publisher keys in force have signed every published survey"


def _log(settings: Settings, clock: Clock) -> tuple[str, str]:
    with closing(Database(settings.store_url())) as database:
        log = LogService(database, Keyring(settings.keys_folder, clock), clock)
        try:
            noted = log.check()
            size = log.entries(0)[0] if database.has_tables() else 0
        except StoreUnavailable:
            return "warning", "it cannot be compared while the database cannot be read"
    folder = settings.keys_folder
    if folder.is_dir() and not log.noted.is_writable:
        return (
            "warning",
            f"{folder} cannot be written by this user: its noted head stays at {noted} of the log's {size} "
            "entries, so a later start with an older database would go unnoticed",
        )
    if noted < size:
        return (
            "warning",
            f"{log.noted.path} notes {noted} of the log's {size} entries; the next start of the server notes all",
        )
    return "ok", f"the database has the {noted} entries that {log.noted.path} notes"


def _disk(home: Path) -> CheckResult:
    # The home may not exist before the first `frankly migrate`.
    existing_folder = next(folder for folder in (home, *home.resolve().parents) if folder.exists())
    free = shutil.disk_usage(existing_folder).free
    if not os.access(existing_folder, os.W_OK):
        return CheckResult("disk", "broken", f"{existing_folder} cannot be written by this user")
    state = "ok" if free > _FREE_BYTES else "warning"
    return CheckResult("disk", state, f"{free / 1e9:.1f} GB free at {existing_folder}")


def _libraries() -> CheckResult:
    try:
        from frankly_design.numeric import rays  # noqa: F401, PLC0415 - slow to load, and the import is the check
    except ImportError:
        return CheckResult(
            "libraries",
            "broken",
            "pycddlib lacks exact arithmetic; install libcdd-dev and rebuild it",
        )
    version = ".".join(map(str, sys.version_info[:3]))
    return CheckResult(
        "libraries", "ok", f"Python {version}; vertices by cdd with exact rationals (gmp)"
    )


def _counts(settings: Settings) -> tuple[str, str]:
    with closing(Database(settings.store_url())) as database, database.reading("count again") as tx:
        wrong = [survey.name for survey in tx.surveys.all() if tx.counts.recount(survey.id)]
    if wrong:
        return (
            "broken",
            f"the counts of {', '.join(wrong)} do not agree with the reports: run `frankly counts rebuild`",
        )
    return "ok", "every count agrees with the reports"
