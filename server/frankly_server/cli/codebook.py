# SPDX-License-Identifier: Apache-2.0
"""`frankly codebook`: a survey's variables, choices and promises as HTML, CSV and DDI."""

import json
from pathlib import Path

import click
from frankly_analyst import Codebook

from frankly_server.cli.console import json_option, respond
from frankly_server.cli.remote import analyst_errors, remote_of, survey_id_of, url_and_key
from frankly_server.cli.services import open_services


@click.command()
@click.argument("survey")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write.",
)
@click.option("--language", help="Language of the texts [default: the survey's first].")
@url_and_key
@json_option
def codebook(
    survey: str, out: Path, language: str | None, url: str | None, key: str | None, as_json: bool
) -> None:
    """Write codebook.html, codebook.csv and codebook.xml (DDI-Codebook 2.5) of a SURVEY's newest version.

    For a link, or a survey with --url, the document comes from that server. For a name or an id
    alone, it comes from this machine's database.
    """
    remote = remote_of(survey, url, key)
    with analyst_errors():
        if remote is None:
            with open_services() as services:
                envelope = services.surveys.envelope(survey_id_of(services, survey))
            book = Codebook.from_envelope(json.loads(envelope), language)
        else:
            book = remote[0].codebook(remote[1], language)
        files = [str(path) for path in book.write(out)]
    respond(as_json, {"files": files}, *files)
