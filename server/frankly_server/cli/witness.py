# SPDX-License-Identifier: Apache-2.0
"""`frankly witness`: check that logs of other servers are append-only, and co-sign their heads."""

import time
from collections.abc import Sequence
from pathlib import Path

import click
from frankly_protocol.clock import SystemClock
from frankly_protocol.envelope import SigningKey
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.notes import is_name

from frankly_server.cli import exits
from frankly_server.cli.console import json_option, respond
from frankly_server.keys.durable import written_whole
from frankly_server.keys.files import read_key, to_pem
from frankly_server.log.site import HttpSite
from frankly_server.log.witness import Witness
from frankly_server.settings import Settings

KEY_FILE = "witness.pem"


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--name", required=True, help="Name of this witness, as in witness.example.org/frankly."
)
@click.option(
    "--show",
    is_flag=True,
    help="Print NAME=KEY for a keys document and exit; the key is created if needed.",
)
@click.option(
    "--keys",
    "keys_file",
    type=click.Path(path_type=Path),
    help="Keys document to start from at the first visit.",
)
@click.option(
    "--every",
    type=click.IntRange(60, 86_400),
    help="Seconds between visits [default: one visit only].",
)
@json_option
def witness(
    urls: Sequence[str],
    name: str,
    show: bool,
    keys_file: Path | None,
    every: int | None,
    as_json: bool,
) -> None:
    """Visit servers at URL, check that their logs have only grown, and co-sign the heads.

    The last head of each log is stored under FRANKLY_HOME/witness. A log that shrank or forked
    since the last visit is refused; both heads of a fork are stored there as evidence.
    """
    folder = Settings.load().home / "witness"
    if not is_name(name):
        raise InvalidInput(Problem.USAGE, "a name has no spaces and no plus signs", "--name")
    key = _key(folder)
    if show:
        public = key.public.raw.hex()
        respond(as_json, {"name": name, "public": public}, output=[f"{name}={public}"])
        return
    if not urls:
        raise InvalidInput(Problem.USAGE, "name at least one server to visit", "URL")
    shipped = None if keys_file is None else keys_file.read_bytes()
    watcher = Witness(name, key, folder, SystemClock())
    while True:
        failed = [
            error for url in urls if (error := _visit(watcher, url, shipped, as_json)) is not None
        ]
        if every is None:
            if failed:
                raise failed[0]
            return
        # With --every, the next visit may succeed, so errors are shown and the loop continues.
        for error in failed:
            exits.write_error(error, as_json=as_json)
        time.sleep(every)


def _visit(watcher: Witness, url: str, shipped: bytes | None, as_json: bool) -> FranklyError | None:
    """Visit one server; return its error, so that one failure does not stop the other visits."""
    try:
        visit = watcher.visit(HttpSite(url), shipped)
    except FranklyError as error:
        return error
    outcome = "co-signed" if visit.named else "seen, but its keys do not name this witness"
    respond(
        as_json,
        {
            "url": url,
            "origin": visit.origin,
            "size": visit.size,
            "before": visit.size_before,
            "cosigned": visit.named,
        },
        f"{visit.origin}: {visit.size} entries, {outcome}.",
    )
    return None


def _key(folder: Path) -> SigningKey:
    path = folder / KEY_FILE
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with written_whole(path) as file:
            file.write(to_pem(SigningKey.generate()))
    return read_key(path)
