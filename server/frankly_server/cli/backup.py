# SPDX-License-Identifier: Apache-2.0
"""`frankly backup` and `frankly restore`: one file, verified by reading it back."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import click
from frankly_protocol.clock import SystemClock, format_time

from frankly_server.accounts.service import BACKED_UP, RESTORED
from frankly_server.cli.console import json_option, remarks, respond
from frankly_server.cli.services import open_services, record_command
from frankly_server.keys import Keyring
from frankly_server.keys.backup_signature import Signers, signer, signers_of
from frankly_server.keys.durable import written_whole
from frankly_server.log import LogService
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import (
    Contents,
    Database,
    StoreUnavailable,
    read_back,
    restore_backup,
    save_backup,
    upgrade,
)

_NO_KEYS = "The backup holds no signing keys: keep a copy of the key folder elsewhere, offline."
_AGAIN = (
    "Everybody signs in again. Passwords, passkeys, second factors, recovery codes, roles, API keys and "
    "invitations are as they were when the backup was made: what was changed, revoked or used since then "
    "has to be changed or revoked again (/admin/people, /admin/keys)."
)
_ALL = "the whole database"
_UNRECORDED = "The backup is whole, but is not in the audit trail: the database cannot be written."
_unsigned = click.option(
    "--unsigned",
    is_flag=True,
    help="Neither make nor check a signature: the backup's origin then cannot be verified.",
)


@click.group()
def backup() -> None:
    """Write a backup of the whole database, or check one."""


@backup.command("create")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@_unsigned
@json_option
def create(file: Path, force: bool, unsigned: bool, as_json: bool) -> None:
    """Write a backup to FILE (a zip that only you can read), sign it and verify it.

    Servers may keep running.
    """
    with open_services() as services:
        # Created before the file is opened, so that nothing is written without usable keys.
        check = _Check(services.keys, unsigned)
        sign = None if unsigned else signer(services.keys)
        saved = format_time(services.surveys.now().replace(microsecond=0))
        with written_whole(file, replace=force) as target:
            contents = save_backup(services.database, target, saved, sign)
            # Inside the block: a broken backup must not get the final name or replace an older one.
            if read_back(target, check) != contents:
                raise AssertionError("the written backup differs when it is read back")
        _record(services)
    _print_contents("saved", contents, check, file, as_json)
    if not as_json:
        remarks().print(_NO_KEYS, markup=False)


def _record(services: Services) -> None:
    """Note the backup in the audit trail; a database that cannot be written needs its backup most."""
    try:
        record_command(services.database, BACKED_UP, _ALL)
    except StoreUnavailable:
        remarks().print(_UNRECORDED, markup=False)


@backup.command("verify")
@click.argument("file", type=click.File("rb"))
@_unsigned
@json_option
def verify(file: BinaryIO, unsigned: bool, as_json: bool) -> None:
    """Read FILE to its end, compare every table with the manifest, and check who signed it."""
    # Without the database: a backup can be checked on any machine that has the keys.
    check = _Check(Keyring(Settings.load().keys_folder, SystemClock()), unsigned)
    _print_contents("whole", read_back(file, check), check, Path(file.name), as_json)


@click.command()
@click.argument("file", type=click.File("rb"))
@_unsigned
@json_option
def restore(file: BinaryIO, unsigned: bool, as_json: bool) -> None:
    """Fill an empty database from FILE, and read it back; on an error nothing changes.

    The signature is checked against the key folder in FRANKLY_HOME: copy that folder there first.
    Tables are created if there are none. Afterwards the key folder notes the log of this backup.
    """
    settings, clock = Settings.load(), SystemClock()
    keys = Keyring(settings.keys_folder, clock)
    check = _Check(keys, unsigned)
    with closing(Database(settings.store_url())) as database:
        if not database.has_tables():
            read_back(file, check)  # otherwise a broken backup would leave tables behind
            settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            upgrade(database)
        contents = restore_backup(database, file, check)
        record_command(database, RESTORED, f"{_ALL} of {contents.saved}")
        # After the commit, because a head must not be noted that no database has.
        lost = _accepted(LogService(database, keys, clock))
    _print_contents("restored", contents, check, Path(file.name), as_json, {"lost_log": lost})
    if not as_json:
        remarks().print(_AGAIN, markup=False)
        if lost is not None:
            remarks().print(lost, markup=False)


def _accepted(log: LogService) -> str | None:
    """Note the head of the restored log; return a sentence if entries are lost or it failed."""
    try:
        return log.accept()
    except OSError as error:
        return (
            f"The log of this backup is not noted, because {log.noted.path} cannot be written "
            f"({error.strerror}): make it writable, then run `frankly migrate --accept-lost-log`."
        )


class _Check:
    """Check of a manifest's signature, skipped if `unsigned`; the result is in `signers`."""

    def __init__(self, keys: Keyring, unsigned: bool) -> None:
        self._keys, self._unsigned = keys, unsigned
        self.signers: Signers | None = None

    def __call__(self, manifest: bytes, signature: bytes | None) -> None:
        if not self._unsigned:
            self.signers = signers_of(self._keys, manifest, signature)

    @property
    def sentence(self) -> str:
        """Sentence with the signers and the version of the keys document that contains them."""
        if self.signers is None:
            return "Its signature was not checked."
        ids = ", ".join(key_id[:16] for key_id in self.signers.key_ids)
        age = (
            "the newest"
            if self.signers.version == self.signers.newest
            else f"the newest is {self.signers.newest}"
        )
        return (
            f"Signed by the publisher {ids} of version {self.signers.version} of the keys ({age})."
        )


def _print_contents(
    status: str,
    contents: Contents,
    check: _Check,
    file: Path,
    as_json: bool,
    more: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    surveys, reports = (contents.tables[name][0] for name in ("surveys", "reports"))
    when = f" at {contents.saved}" if contents.saved else ""
    signers = check.signers
    respond(
        as_json,
        {
            "status": status,
            "schema": contents.schema,
            "saved": contents.saved or None,
            "signers": list(signers.key_ids) if signers else None,
            "keys_version": signers.version if signers else None,
            "rows": contents.rows,
            "tables": {name: n for name, (n, _) in contents.tables.items()},
            **more,
        },
        f"{file}: {status}; made{when} with {surveys} surveys and {reports} reports, "
        f"{contents.rows} rows in all (schema {contents.schema}). {check.sentence}",
    )
