# SPDX-License-Identifier: Apache-2.0
"""`frankly keys`: signing keys on disk, and API keys."""

import click
from frankly_protocol.clock import SystemClock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli.console import json_option, remarks, write_json
from frankly_server.cli.opening import open_services
from frankly_server.keys import Keyring
from frankly_server.settings import Settings


@click.group()
def keys() -> None:
    """Make signing keys and API keys."""


@keys.command()
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
@click.option("--force", is_flag=True, help="Set existing keys aside: apps that know them will refuse.")
@json_option
def init(yes: bool, force: bool, as_json: bool) -> None:
    """Make the root key, the publisher's key and the keys document.

    Files are readable by their owner only. The root key is needed again only to rotate keys: keep it offline.
    """
    settings = Settings.load()
    folder = settings.keys_folder
    if not yes:
        question = f"Make new signing keys in {folder}?"
        if force:
            question = f"Set aside the keys in {folder}? Every app that knows them will refuse the new ones."
        _confirm(question)
    made = Keyring(folder, SystemClock()).init(force=force)
    aside = None if made.set_aside is None else str(made.set_aside)
    if as_json:
        write_json(
            {"folder": str(made.folder), "root": made.root_id, "publisher": made.publisher_id, "set_aside": aside}
        )
        return
    say = remarks()
    say.print(f"Keys made in {made.folder}, readable by you alone.", markup=False)
    say.print(f"  root       {made.root_id}\n  publisher  {made.publisher_id}", markup=False)
    if aside:
        say.print(f"The older keys are in {aside}.", markup=False)
    say.print("Move root.pem to a safe place offline: it is needed only to rotate keys.", markup=False)


def _confirm(question: str) -> None:
    """Ask once; a no, or nobody there to ask, is a usage error and changes nothing."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            raise InvalidInput(Problem.USAGE, "there is no terminal to ask; add --yes") from None
        raise
    if not agreed:
        raise InvalidInput(Problem.USAGE, "you said no; nothing was made")


@keys.command()
@click.option("--role", type=click.Choice(["analyst", "admin"]), required=True, help="What the key opens.")
@click.option("--label", required=True, help="Your note on who holds it.")
@json_option
def api(role: str, label: str, as_json: bool) -> None:
    """Make an API key; it is shown once, and only its hash is kept."""
    with open_services() as services:
        token = services.access.create(role, label)
    if as_json:
        write_json({"key": token, "role": role, "label": label})
        return
    remarks().print("This key is shown once; store it where secrets live.", markup=False)
    click.echo(token)
