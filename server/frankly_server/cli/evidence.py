# SPDX-License-Identifier: Apache-2.0
"""`frankly evidence`: a folder for data protection officers and ethics boards about one survey."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from frankly_design.numeric.lazy import LazyModule

from frankly_server.cli.console import json_option, respond
from frankly_server.cli.services import open_services

if TYPE_CHECKING:
    from frankly_server import evidence as evidence_folder
else:
    # It imports the templates' engine and YAML, which no other command needs.
    evidence_folder = LazyModule("frankly_server.evidence")


@click.command()
@click.argument("survey")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("evidence"),
    show_default=True,
    help="Folder to make.",
)
@click.option("--language", help="Language of the survey's texts [default: the survey's first].")
@json_option
def evidence(survey: str, out: Path, language: str | None, as_json: bool) -> None:
    """Write evidence about the newest version of a SURVEY (name or id) of this machine's database.

    The folder answers the points of NIST SP 800-226, lists threats by LINDDUN, and begins a data-protection impact
    assessment, a consent text, an information sheet, and an entry for the registry of deployments. It
    states only what the signed document and the server's state show; the rest is marked "to be filled in by you".
    """
    with open_services() as services:
        facts = evidence_folder.collect(services, survey, language)
    files = [str(path) for path in evidence_folder.write_folder(out, facts)]
    respond(as_json, {"files": files}, *files)
