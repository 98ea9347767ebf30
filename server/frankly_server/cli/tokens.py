# SPDX-License-Identifier: Apache-2.0
"""`frankly tokens`: single-use invite tokens, shown once."""

import click

from frankly_server.cli.console import json_option, respond
from frankly_server.cli.services import command_record, open_services


@click.command()
@click.argument("name")
@click.option(
    "--count", type=click.IntRange(1, 100_000), required=True, help="How many tokens to make."
)
@click.option("--codes", is_flag=True, help="Write codes of 16 characters, which people can type.")
@click.option("--source", default="", help="Source that they are for, in a survey with sources.")
@json_option
def tokens(name: str, count: int, codes: bool, source: str, as_json: bool) -> None:
    """Create invite tokens for the survey called NAME, one per line; each is valid for one report.

    Only their hashes are stored. A list of who got which token, together with the arriving
    requests, links people to their noisy reports: hand tokens out unseen, or let an outside issuer
    sign them blindly (docs/protocol.md §10).
    """
    with open_services() as services:
        record = command_record(
            services, f"invite tokens made{f' for {source}' if source else ''}: {count}", name
        )
        new_tokens = services.invites.make(name, count, record, codes=codes, source=source)
    # Tokens alone on stdout, so that they can go to a file or a pipe.
    respond(
        as_json,
        {"tokens": new_tokens},
        f"{len(new_tokens)} token(s), shown once.",
        output=new_tokens,
    )
