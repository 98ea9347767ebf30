# SPDX-License-Identifier: Apache-2.0
"""`frankly keys status|rotate|revoke|sign|resign`: commands of a key ceremony."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from frankly_protocol.clock import SystemClock, format_time
from frankly_protocol.envelope import PublicKey
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import Accounts
from frankly_server.cli.console import json_option, remarks, respond, table
from frankly_server.cli.services import open_services
from frankly_server.keys import Keyring, Proposal, Rotation, RotationChange, nearly_full
from frankly_server.keys import status as keys_status
from frankly_server.keys.files import read_private
from frankly_server.settings import Settings
from frankly_server.store import Database
from frankly_server.store.survey_states import MAIN
from frankly_server.surveys import Surveys

_FILE = click.Path(path_type=Path)
_PLACES = {True: "here", False: "elsewhere", None: "theirs"}
passphrase_option = click.option(
    "--passphrase-file",
    type=_FILE,
    help="File (mode 0600) with the passphrase of the root keys in its first line.",
)
_root_option = click.option(
    "--root-key",
    "root_keys",
    type=_FILE,
    multiple=True,
    help="File of a root key that is not in the key folder; repeatable.",
)


def add_to(group: click.Group) -> None:
    """Add the commands of this module to `frankly keys`."""
    for command in (status, rotate, revoke, sign, resign):
        group.add_command(command)


def read_passphrase(path: Path | None) -> bytes | None:
    """Return the first line of a private file; None if `path` is None.

    Raises InvalidInput(key_file).
    """
    # Only the line break is removed: a passphrase may begin or end with spaces.
    return None if path is None else read_private(path).split(b"\n", 1)[0].rstrip(b"\r")


@click.command()
@json_option
def status(as_json: bool) -> None:
    """Show the keys in force, next and retired, with remarks on what to do."""
    key_status, waiting = keys_status(_keyring(), SystemClock()), _waiting()
    rows = [
        (key.role, key.state, _PLACES[key.here], key.name or "", key.key_id)
        for key in key_status.keys
    ]
    title = f"Keys, version {key_status.version}, until {format_time(key_status.expires)}"
    notes = [f"- {remark}" for remark in key_status.remarks]
    if waiting:
        notes.append(
            f"- {waiting} document(s) are signed by retired keys only, and devices refuse them: "
            "run `frankly keys resign`"
        )
    respond(
        as_json,
        asdict(key_status)
        | {
            "issued": format_time(key_status.issued),
            "expires": format_time(key_status.expires),
            # null without a database, because "unknown" must not look like "none".
            "signed_by_retired": waiting,
        },
        *notes,
        rows=table(title, ("Role", "State", "Private key", "Name", "Id"), rows),
    )


@click.command()
@click.option("--publisher", is_flag=True, help="Replace every publisher key.")
@click.option("--root", is_flag=True, help="Replace every root key.")
@click.option("--log", is_flag=True, help="Replace the log's signing key; its entries stay.")
@click.option(
    "--add-publisher",
    type=click.IntRange(0, 31),
    default=0,
    help="Number of publisher keys to add.",
)
@click.option(
    "--add-root", type=click.IntRange(0, 31), default=0, help="Number of root keys to add."
)
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    metavar="NAME=HEX",
    help="Add a witness, or change its key.",
)
@click.option("--root-threshold", type=click.IntRange(1, 32), help="How many root keys must sign.")
@click.option(
    "--publisher-threshold", type=click.IntRange(1, 32), help="How many publisher keys must sign."
)
@click.option(
    "--witness-threshold", type=click.IntRange(1, 32), help="How many witnesses a device needs."
)
@click.option(
    "--days",
    type=click.IntRange(1, 400),
    default=400,
    help="Days for which the new version is valid [400].",
)
@_root_option
@passphrase_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def rotate(
    root_keys: Sequence[Path],
    passphrase_file: Path | None,
    yes: bool,
    as_json: bool,
    witnesses: Sequence[str],
    **options: Any,
) -> None:
    """Create the next version of the keys document; without options, only the expiry changes.

    The new version is in force once enough old and new root keys have signed it. Until then it
    waits in keys.next.json for `sign`.
    """
    keyring = _keyring()
    # Expired keys are accepted, because this command renews them.
    now = keyring.trusted_or_expired()
    # To replace a key, drop it and add a new one. Thresholds stay unless an option changes them.
    drop = {key.key_id for key in now.publisher.keys if options["publisher"]}
    drop |= {key.key_id for key in now.root.keys if options["root"]}
    change = RotationChange(
        drop=frozenset(drop),
        roots=options["add_root"] + (len(now.root.keys) if options["root"] else 0),
        publishers=options["add_publisher"]
        + (len(now.publisher.keys) if options["publisher"] else 0),
        log=options["log"],
        root_threshold=options["root_threshold"],
        publisher_threshold=options["publisher_threshold"],
        witness_threshold=options["witness_threshold"],
        witnesses=tuple(_witness(text) for text in witnesses),
        validity=timedelta(days=options["days"]),
    )
    # Confirmed before any private key is read and before any file is written.
    ask(yes, f"Make version {now.version + 1} of the keys in {keyring.folder}?")
    passphrase = read_passphrase(passphrase_file)
    _print_proposal(
        Rotation(keyring, SystemClock(), root_keys, passphrase).propose(change), as_json
    )


@click.command()
@click.argument("key_ids", nargs=-1, required=True, metavar="KEY_ID...")
@_root_option
@passphrase_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def revoke(
    key_ids: Sequence[str],
    root_keys: Sequence[Path],
    passphrase_file: Path | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Drop keys, such as stolen ones, from the next version; a role with too few gets new ones.

    Devices refuse signatures by a revoked key after their next fetch of the keys. KEY_ID is the
    beginning of a key's id.
    """
    keyring = _keyring()
    keys_in_force = [
        line.key_id for line in keys_status(keyring, SystemClock()).keys if line.state == "in force"
    ]
    # All ids are resolved first: if one is wrong, no key may be revoked.
    drop = frozenset(_one_key(keys_in_force, start) for start in key_ids)
    ask(yes, f"Revoke {len(drop)} key(s)? Documents that only they signed will be refused.")
    passphrase = read_passphrase(passphrase_file)
    _print_proposal(
        Rotation(keyring, SystemClock(), root_keys, passphrase).propose(RotationChange(drop=drop)),
        as_json,
    )


@click.command()
@_root_option
@passphrase_option
@json_option
def sign(root_keys: Sequence[Path], passphrase_file: Path | None, as_json: bool) -> None:
    """Add the signatures of the available root keys to the pending version."""
    rotation = Rotation(_keyring(), SystemClock(), root_keys, read_passphrase(passphrase_file))
    _print_proposal(rotation.sign(), as_json)


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def resign(yes: bool, as_json: bool) -> None:
    """Sign published documents that lack signatures by publisher keys in force.

    Run this after replacing publisher keys: devices refuse documents that only older keys have
    signed. If a key was stolen, check the list first: documents that a thief put into this database
    would be signed as well.
    """
    with open_services() as services:
        waiting = services.surveys.signed_by_others()
        # Listed before the confirmation, so that the user can compare them with the known surveys.
        for digest in waiting:
            remarks().print(f"  {digest}", markup=False)
        ask(yes or not waiting, f"Sign these {len(waiting)} document(s) with the keys in force?")
        record = services.accounts.command_recorder(
            MAIN, "documents signed again", f"documents: {len(waiting)}"
        )
        signed = services.surveys.sign_again(waiting, record)
    respond(as_json, {"signed": signed}, f"{len(signed)} document(s) signed again.")


def _keyring() -> Keyring:
    return Keyring(Settings.load().keys_folder, SystemClock())


def _waiting() -> int | None:
    """Return the number of published documents that lack signatures by keys in force.

    Returns None if the database or the keys cannot be read, because key ceremonies also run on
    offline machines.
    """
    settings = Settings.load()
    with closing(Database(settings.store_url())) as database, suppress(FranklyError):
        if database.is_there():
            database.check()
            return len(Surveys(settings, database, _keyring(), SystemClock()).signed_by_others())
    return None


def record_keys(action: str, subject: str) -> None:
    """Write a change of the signing keys to the audit trail of the main organisation.

    Nothing is written without a database: key ceremonies also run on offline machines, and the
    signed keys document shows every change anyway.
    """
    settings = Settings.load()
    with closing(Database(settings.store_url())) as database, suppress(FranklyError):
        if database.is_there():
            database.check()
            record = Accounts(database, SystemClock()).command_recorder(MAIN, action, subject)
            with database.administering("record keys") as tx:
                # An empty database stays empty, because `frankly restore` fills no other.
                if not tx.tables.is_empty():
                    record(tx)


def _witness(text: str) -> tuple[str, PublicKey]:
    name, separator, public = text.partition("=")
    # Checked here, because `bytes.fromhex` would also accept spaces.
    if not separator or len(public) != 64 or public.strip("0123456789abcdef"):
        raise InvalidInput(
            Problem.USAGE,
            "write NAME=KEY, the key as the 64 hex digits that `frankly witness --show` prints",
            "--witness",
        )
    key = PublicKey(bytes.fromhex(public))
    if not key.is_sound:
        raise InvalidInput(
            Problem.USAGE, "this is not a valid Ed25519 key: copy the witness's key", "--witness"
        )
    return name, key


def _one_key(key_ids: Sequence[str], start: str) -> str:
    matches = [key_id for key_id in key_ids if start and key_id.startswith(start)]
    if len(matches) != 1:
        detail = (
            "no key in force has an id that begins with this"
            if not matches
            else "several keys have an id that begins with this; write more of it"
        )
        raise InvalidInput(Problem.NOT_FOUND, f"{detail}; `frankly keys status` lists them", "key")
    return matches[0]


def ask(yes: bool, question: str) -> None:
    """Ask for confirmation unless `yes`.

    Raises InvalidInput(usage) if the user declines or there is no terminal.
    """
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as abort:
        # click raises Abort on Ctrl-C, and from an EOFError if there is no terminal.
        if isinstance(abort.__context__, EOFError):
            raise InvalidInput(Problem.USAGE, "there is no terminal to ask; add --yes") from None
        raise
    if not agreed:
        raise InvalidInput(Problem.USAGE, "cancelled: nothing was changed")


def _print_proposal(proposal: Proposal, as_json: bool) -> None:
    document = proposal.document
    record_keys(
        "signing keys changed" if proposal.in_force else "change of signing keys prepared",
        f"version {document.version}",
    )
    if proposal.in_force:
        message = (
            f"Version {document.version} is in force until {format_time(document.expires)}. "
            "Clients adopt it at their next fetch of a survey, and refuse documents that only keys "
            "outside it have signed. Run `frankly keys resign` if publisher keys were replaced."
        )
    else:
        message = (
            f"Version {document.version} waits for {proposal.old_missing} signature(s) of root keys in force and "
            f"{proposal.new_missing} of the new ones: run `frankly keys sign --root-key FILE`."
        )
    result = {
        "version": document.version,
        "expires": format_time(document.expires),
        "in_force": proposal.in_force,
        "old_missing": proposal.old_missing,
        "new_missing": proposal.new_missing,
    }
    full = nearly_full(_keyring().chain_used())
    respond(as_json, result, message, *([] if full is None else [full]))
