# SPDX-License-Identifier: Apache-2.0
"""`frankly admin`: the first account of an organisation; the admin pages do the rest."""

import secrets
from pathlib import Path

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, remarks, write_json
from frankly_server.cli.services import open_services


@click.group()
def admin() -> None:
    """Make accounts for the admin pages (/admin/)."""


@admin.command("create-owner")
@click.option("--email", required=True, help="The owner's e-mail address, to sign in with.")
@click.option(
    "--organisation",
    default="main",
    show_default=True,
    help="Whose surveys the owner sees; made if new.",
)
# A file, because other users of the machine can read the arguments of a command.
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read the password from here.",
)
@json_option
def create_owner(email: str, organisation: str, password_file: Path | None, as_json: bool) -> None:
    """Make the owner of an organisation. Without a password file, a random one is shown once."""
    password = secrets.token_urlsafe(15) if password_file is None else _read(password_file)
    with open_services() as services:
        person = services.accounts.create(organisation, email, "owner", password)
    if as_json:
        account = {"email": person.email, "organisation": person.organisation, "role": person.role}
        write_json(account | ({"password": password} if password_file is None else {}))
        return
    remarks().print(
        f"{person.email} owns {person.organisation} and can sign in at /admin/.", markup=False
    )
    if password_file is None:
        remarks().print("The password is shown once; change it after signing in.", markup=False)
        click.echo(password)


def _read(path: Path) -> str:
    try:
        # Editors end a file with a line break, which is not part of the password.
        return path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(
            Problem.USAGE, "the password file cannot be read as UTF-8", "password-file"
        ) from None
