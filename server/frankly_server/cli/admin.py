# SPDX-License-Identifier: Apache-2.0
"""`frankly admin`: create, list, unlock, reset and disable accounts on the server's machine."""

import secrets
from pathlib import Path
from typing import Any, Final

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import Person, WaysLeft
from frankly_server.cli.console import json_option, respond, table
from frankly_server.cli.services import open_services
from frankly_server.store import AccountRow

# A file instead of an argument, because other users of the machine can read arguments.
_password_option = click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read the password from this file.",
)
_email_option = click.option("--email", required=True, help="The account's address.")
_MADE: Final = (
    "API keys of its organisation stay, and so do accounts that this person has made: revoke keys "
    "at /admin/keys, disable accounts that you do not know at /admin/people. /admin/audit shows "
    "what this person did."
)


@click.group()
def admin() -> None:
    """Create, list, unlock, reset and disable accounts of the admin pages (/admin/)."""


@admin.command("create-owner")
@click.option("--email", required=True, help="The owner's e-mail address, used to sign in.")
@click.option(
    "--organisation",
    default="main",
    show_default=True,
    help="The owner's organisation; created if it is new.",
)
@_password_option
@json_option
def create_owner(email: str, organisation: str, password_file: Path | None, as_json: bool) -> None:
    """Create an owner's account. Without --password-file, a random password is shown once."""
    password = _password(password_file)
    with open_services() as services:
        person = services.accounts.create(organisation, email, "owner", password)
    _show(
        person,
        f"{person.email} owns {person.organisation} and can sign in at /admin/.",
        as_json,
        None if password_file else password,
    )


@admin.command("list")
@json_option
def list_accounts(as_json: bool) -> None:
    """List every account of this server: organisation, address, role, and whether it can sign in."""
    with open_services() as services:
        accounts = services.accounts.every()
        states = [services.accounts.state_of(account) for account in accounts]
    rows = [
        (account.organisation, account.email, account.role, state)
        for account, state in zip(accounts, states, strict=True)
    ]
    names = ("organisation", "email", "role", "state")
    respond(
        as_json,
        {"accounts": [dict(zip(names, row, strict=True)) for row in rows]},
        rows=table("Accounts", names, rows),
    )


@admin.command()
@_email_option
@json_option
def unlock(email: str, as_json: bool) -> None:
    """Unlock an account that too many wrong passwords have locked."""
    with open_services() as services:
        account = services.accounts.unlock(email)
    disabled = account.disabled is not None
    _show(
        account,
        f"{account.email} is disabled and still cannot sign in: unlocking does not change that."
        if disabled
        else f"{account.email} can sign in again.",
        as_json,
        disabled=disabled,
    )


@admin.command("reset-password")
@_email_option
@_password_option
@json_option
def reset_password(email: str, password_file: Path | None, as_json: bool) -> None:
    """Set an account's password, unlock it and end its sessions. Passkeys stay, and are listed.

    Without --password-file, a random password is shown once.
    """
    password = _password(password_file)
    with open_services() as services:
        account, left = services.accounts.reset_password(email, password)
    disabled = account.disabled is not None
    _show(
        account,
        f"{account.email} has a new password; its sessions have ended and its known browsers are "
        f"forgotten. {'It is disabled and still cannot sign in. ' if disabled else ''}"
        f"{_in_words(left)}",
        as_json,
        None if password_file else password,
        disabled=disabled,
        passkeys=list(left.passkeys),
        totp=left.totp,
        recovery_codes=left.codes,
    )


@admin.command("reset-second-factor")
@_email_option
@json_option
def reset_second_factor(email: str, as_json: bool) -> None:
    """Remove an account's second factors, passkeys included, and end its sessions.

    The password alone then suffices to sign in.
    """
    with open_services() as services:
        person = services.second_factors.reset(email)
    _show(
        person,
        f"{person.email} has no second factor any more; its sessions have ended. {_MADE}",
        as_json,
    )


@admin.command()
@_email_option
@json_option
def disable(email: str, as_json: bool) -> None:
    """Disable an account and end its sessions. Its surveys stay with its organisation."""
    with open_services() as services:
        person = services.accounts.disable_address(email)
    _show(
        person, f"{person.email} cannot sign in any more; its sessions have ended. {_MADE}", as_json
    )


def _password(path: Path | None) -> str:
    """Return the password in the file, or a random one."""
    if path is None:
        return secrets.token_urlsafe(15)
    try:
        # Editors end a file with a line break, which is not part of the password.
        return path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            Problem.USAGE, "the password file cannot be read as UTF-8", "password-file"
        ) from None


def _in_words(left: WaysLeft) -> str:
    """Return what a new password leaves, and the command that removes it."""
    stays = (
        [f"passkeys that sign in without it ({'; '.join(left.passkeys)})"] if left.passkeys else []
    )
    stays += ["an app's codes"] if left.totp else []
    stays += [f"{left.codes} recovery codes"] if left.codes else []
    if not stays:
        return f"It has no passkey and no second factor. {_MADE}"
    return f"It keeps {', '.join(stays)}: `frankly admin reset-second-factor` removes them. {_MADE}"


def _show(
    person: Person | AccountRow,
    message: str,
    as_json: bool,
    password: str | None = None,
    **values: Any,
) -> None:
    account = {"email": person.email, "organisation": person.organisation, "role": person.role}
    account |= values
    if password is None:
        respond(as_json, account, message)
        return
    respond(
        as_json,
        account | {"password": password},
        message,
        "The password is shown once"
        + ("." if values.get("disabled") else "; change it after signing in."),
    )
    if not as_json:
        click.echo(password)
