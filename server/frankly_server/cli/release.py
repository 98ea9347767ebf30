# SPDX-License-Identifier: Apache-2.0
"""`frankly release`: show the times of the next releases, or release pending reports now."""

import click
from frankly_protocol.clock import SystemClock, format_time

from frankly_server.cli.console import json_option, respond
from frankly_server.cli.services import command_record, open_services, survey_id_named
from frankly_server.intake.times import next_release

_WAITING = "Reports wait until at least release_step of them have the same public answers."


@click.command()
@click.argument("name", required=False)
@click.option("--now", is_flag=True, help="Release at once instead of at the next published time.")
@json_option
def release(name: str | None, now: bool, as_json: bool) -> None:
    """Show the next release times; with --now, release the pending reports of the survey called NAME (default: all).

    A running server releases reports by itself at the published times: 00:00 UTC, and every full
    hour for surveys whose documents say `hour`. With --now, an observer who knows the time of the
    release can compare the estimates before and after it. The difference reveals something about
    the released reports: at least one full batch, but some of its reports may be the observer's
    own.
    """
    with open_services() as services:
        survey = None if name is None else survey_id_named(services.database, name)
        released = None
        if now:
            # Recorded before the release, of which a part may fail.
            with services.database.administering("record release") as tx:
                command_record(services, "reports released at once", survey)(tx)
            released = services.releasing.release(survey=survey)
    times = {
        every: format_time(next_release(every, SystemClock().now())) for every in ("hour", "day")
    }
    respond(
        as_json,
        {"released": released, "next": times},
        *([] if released is None else [f"{released} report(s) were released."]),
        *([_WAITING] if released == 0 else []),
        f"Running servers release next at {times['hour']} (hour) and {times['day']} (day).",
    )
