# SPDX-License-Identifier: Apache-2.0
"""`frankly counts`: show released counts, compare them with the reports, or rebuild them."""

import click

from frankly_server.cli import exits
from frankly_server.cli.console import json_option, respond, table
from frankly_server.cli.counts_show import score_table, show
from frankly_server.cli.services import open_database, record_command, survey_named
from frankly_server.store import Difference, SurveyRow, Transaction

_MAX_PLACES = 20


@click.group()
def counts() -> None:
    """Show the counts that estimates are computed from, check them, or rebuild them."""


counts.add_command(show)
counts.add_command(score_table)


@counts.command()
@click.argument("name", required=False)
@json_option
def verify(name: str | None, as_json: bool) -> None:
    """Recount the released reports of the survey called NAME (default: all) and compare.

    Exit code 6 if a count is wrong. The command reads one snapshot of the database and blocks no
    writer. It shows how many counts of each survey are wrong, in which documents and blocks.
    """
    with open_database() as database, database.reading("verify counts") as tx:
        differences = {survey.name: tx.counts.recount(survey.id) for survey in _surveys(tx, name)}
    rows = [
        (
            survey,
            str(len(wrong)),
            _places(wrong) if wrong else "every count agrees with the reports",
        )
        for survey, wrong in differences.items()
    ]
    respond(
        as_json,
        {
            "surveys": [
                {"name": survey, "wrong": len(wrong)} for survey, wrong in differences.items()
            ]
        },
        rows=table("Counts", ("survey", "wrong counts", "where"), rows),
    )
    if any(differences.values()):
        raise click.exceptions.Exit(exits.INTEGRITY)


@counts.command()
@click.argument("name", required=False)
@json_option
def rebuild(name: str | None, as_json: bool) -> None:
    """Recount the released reports of the survey called NAME (default: all) and store the counts.

    Releases of all surveys wait meanwhile; intake and estimates do not.
    """
    report_counts: dict[str, int] = {}
    with open_database() as database:
        with database.reading("list surveys") as tx:
            surveys = _surveys(tx, name)
        # One transaction per survey, so that releases can run between two surveys.
        for row in surveys:
            with database.transaction("rebuild counts") as tx:
                report_counts[row.name] = tx.counts.rebuild(row.id)
                # The published estimates come from the old counts; the next release writes them
                # again.
                tx.published_estimates.erase(row.id)
            record_command(database, "counts rebuilt", row.name)
    respond(
        as_json,
        {"surveys": [{"name": survey, "reports": n} for survey, n in report_counts.items()]},
        *(f"Survey {survey}: {n} reports were recounted." for survey, n in report_counts.items()),
    )


def _surveys(tx: Transaction, name: str | None) -> list[SurveyRow]:
    if name is None:
        return tx.surveys.all()
    return [survey_named(tx, name)]


def _places(wrong: list[Difference]) -> str:
    places = sorted({f"{d.key.document[:15]}… block {d.key.block}" for d in wrong})
    remainder = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return ", ".join(places[:_MAX_PLACES]) + remainder
