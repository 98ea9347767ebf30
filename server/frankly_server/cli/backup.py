# SPDX-License-Identifier: Apache-2.0
"""`frankly backup` and `frankly restore`: one file, verified by reading it back each time."""

from pathlib import Path
from typing import BinaryIO

import click

from frankly_server.cli.console import json_option, remarks, write_json
from frankly_server.cli.services import open_services
from frankly_server.durable import written_whole
from frankly_server.store import Contents, read_back, restore_backup, save_backup

_NO_KEYS = "The backup holds no signing keys: keep a copy of the key folder elsewhere, offline."


@click.group()
def backup() -> None:
    """Write a backup of the whole database, or check one."""


@backup.command("create")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@json_option
def create(file: Path, force: bool, as_json: bool) -> None:
    """Write a backup to FILE (a zip, readable by you alone) and verify it; servers may run."""
    with open_services() as services, written_whole(file, replace=force) as target:
        contents = save_backup(services.database, target)
        # Inside the block: a broken backup must not get its name or replace an older one.
        if read_back(target) != contents:
            raise AssertionError("the backup read back differs from the one written")
    _print_contents("saved", contents, file, as_json)
    if not as_json:
        remarks().print(_NO_KEYS, markup=False)


@backup.command("verify")
@click.argument("file", type=click.File("rb"))
@json_option
def verify(file: BinaryIO, as_json: bool) -> None:
    """Read FILE to its end and compare every table with the manifest."""
    _print_contents("whole", read_back(file), Path(file.name), as_json)


@click.command()
@click.argument("file", type=click.File("rb"))
@json_option
def restore(file: BinaryIO, as_json: bool) -> None:
    """Fill an empty, migrated database from FILE: all of it, read back and compared, or nothing."""
    with open_services() as services:
        contents = restore_backup(services.database, file)
    _print_contents("restored", contents, Path(file.name), as_json)


def _print_contents(status: str, contents: Contents, file: Path, as_json: bool) -> None:
    if as_json:
        tables = {name: n for name, (n, _) in contents.tables.items()}
        write_json(
            {"status": status, "schema": contents.schema, "rows": contents.rows, "tables": tables}
        )
        return
    reports = contents.tables["reports"][0]
    summary = f"{file}: {status}; {contents.rows} rows, {reports} of them reports (schema {contents.schema})."
    remarks().print(summary, markup=False)
