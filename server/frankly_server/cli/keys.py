# SPDX-License-Identifier: Apache-2.0
"""`frankly keys`: signing keys on disk, and API keys."""

from pathlib import Path

import click
from frankly_protocol.clock import SystemClock

from frankly_server.cli import keys_rotate
from frankly_server.cli.console import json_option, respond
from frankly_server.cli.services import open_services, survey_id_named
from frankly_server.keys import KeyPlan, Keyring, access
from frankly_server.settings import Settings
from frankly_server.store.survey_states import MAIN


@click.group()
def keys() -> None:
    """Create, rotate and revoke signing keys; create API keys."""


keys_rotate.add_to(keys)


@keys.command()
@click.option("--yes", is_flag=True, help="Do not ask; needed without a terminal.")
@click.option(
    "--force",
    is_flag=True,
    help="Set existing keys aside; apps that trust them will refuse the new ones.",
)
@click.option(
    "--roots", type=click.IntRange(1, 32), default=1, help="How many root keys to make [1]."
)
@click.option(
    "--root-threshold",
    type=click.IntRange(1, 32),
    default=1,
    help="How many root keys must sign [1].",
)
@click.option(
    "--publishers",
    type=click.IntRange(1, 32),
    default=1,
    help="How many publisher keys to make [1].",
)
@click.option(
    "--publisher-threshold",
    type=click.IntRange(1, 32),
    default=1,
    help="How many must sign a survey [1].",
)
@keys_rotate.passphrase_option
@json_option
def init(yes: bool, force: bool, passphrase_file: Path | None, as_json: bool, **plan: int) -> None:
    """Create the root keys, the publisher's keys, the log's key and the keys document.

    Files are readable by their owner only. Keep root keys offline: only rotations need them again.
    """
    folder = Settings.load().keys_folder
    passphrase = keys_rotate.read_passphrase(passphrase_file)
    question = f"Make new signing keys in {folder}?"
    if force:
        question = (
            f"Set aside the keys in {folder}? Every app that trusts them will refuse the new ones."
        )
    # Confirmed after the passphrase is read: if that fails, there is nothing to confirm.
    keys_rotate.ask(yes, question)
    new_keys = Keyring(folder, SystemClock()).init(
        force=force, plan=KeyPlan(**plan), passphrase=passphrase
    )
    keys_rotate.record_keys("signing keys made", f"{new_keys.publisher_ids[0][:16]}…")
    aside = None if new_keys.set_aside is None else str(new_keys.set_aside)
    respond(
        as_json,
        {
            "folder": str(new_keys.folder),
            "root": new_keys.root_ids[0],
            "roots": list(new_keys.root_ids),
            "publisher": new_keys.publisher_ids[0],
            "publishers": list(new_keys.publisher_ids),
            "log": new_keys.log_id,
            "encrypted": passphrase is not None,
            "set_aside": aside,
        },
        f"Keys made in {new_keys.folder}, readable by you alone.",
        *(f"  root       {key_id}" for key_id in new_keys.root_ids),
        *(f"  publisher  {key_id}" for key_id in new_keys.publisher_ids),
        f"  log        {new_keys.log_id}",
        *([] if aside is None else [f"The older keys are in {aside}."]),
        "Move root*.pem to a safe place offline: root keys are needed only to rotate keys.",
    )


@keys.command()
@click.option(
    "--role", type=click.Choice(access.ROLES), required=True, help="The rights of the key."
)
@click.option("--label", required=True, help="Your note on who holds it.")
@click.option(
    "--survey", metavar="NAME", help="The only survey that it opens; the role reader needs one."
)
@json_option
def api(role: str, label: str, survey: str | None, as_json: bool) -> None:
    """Create an API key; it is shown once, and only its hash is stored.

    A key of the role reader opens one survey's results page at /results/ and the key without frankly_live_.
    """
    with open_services() as services:
        surveys, organisation, opened = [], MAIN, "all surveys"
        if survey is not None:
            surveys, opened = [survey_id_named(services.database, survey)], survey
            organisation = services.lifecycle.get(surveys[0]).organisation
        token = services.access.create(
            role,
            label,
            organisation,
            surveys,
            recorder=lambda prefix: services.accounts.command_recorder(
                organisation, "API key made", f"{prefix}…, {role}, {opened}: {label}"
            ),
        )
    respond(
        as_json,
        {"key": token, "role": role, "label": label},
        "This key is shown once; store it where you keep secrets.",
        # Alone on standard output, for `KEY=$(frankly keys api …)`.
        output=[token],
    )
