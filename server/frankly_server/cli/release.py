# SPDX-License-Identifier: Apache-2.0
"""`frankly release`: show the times of the next releases, or release pending reports now."""

import click
from frankly_protocol.clock import SystemClock, format_time

from frankly_server.cli.console import json_option, remarks, write_json
from frankly_server.cli.services import open_services, survey_named
from frankly_server.times import next_release


@click.command()
@click.argument("name", required=False)
@click.option("--now", is_flag=True, help="Release at once instead of at the next published time.")
@json_option
def release(name: str | None, now: bool, as_json: bool) -> None:
    """Show the next release times; with --now, release the pending reports of the survey called NAME (default: all).

    A running server releases reports by itself at the published times: 00:00 UTC, and every full
    hour for surveys whose documents say `hour`. With --now, an observer who knows the time of the
    release can compare the estimates before and after it, and so learns about the reports released
    then: at least one full batch, but some of its reports may be the observer's own.
    """
    with open_services() as services:
        survey = None
        if name is not None:
            with services.database.reading("find survey") as tx:
                survey = survey_named(tx, name).id
        released = services.releasing.release(survey=survey) if now else None
    times = {
        every: format_time(next_release(every, SystemClock().now())) for every in ("hour", "day")
    }
    if as_json:
        write_json({"released": released, "next": times})
        return
    if released is not None:
        remarks().print(f"{released} report(s) were released.", markup=False)
    remarks().print(
        f"Running servers release next at {times['hour']} (hour) and {times['day']} (day).",
        markup=False,
    )
