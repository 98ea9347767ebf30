# SPDX-License-Identifier: Apache-2.0
"""`frankly scale`: export reports as Parquet segments, and compute counts and estimates there."""

from pathlib import Path
from typing import Any

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.cli import exits
from frankly_server.cli.console import json_option, remarks, respond, results, table, write_json
from frankly_server.cli.services import open_database, record_command, survey_id_named
from frankly_server.scale import DuckDB, ExportCounts, Spark, count, export
from frankly_server.scale.export import ROWS
from frankly_server.store import Layout, PairKey

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def scale() -> None:
    """Export reports as Parquet segments, and count the segments with DuckDB or Apache Spark."""


@scale.command("export")
@click.argument("name")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=ROWS,
    show_default=True,
    help="Maximum number of reports per segment.",
)
@json_option
def export_command(name: str, folder: Path, rows: int, as_json: bool) -> None:
    """Export the reports of the survey called NAME to FOLDER, or update the export that is there.

    An interrupted export is resumed by the next one. Servers may keep running. `frankly survey
    erase` does not delete exports: remove their folders too.
    """
    with open_database() as database:
        manifest = export(database, survey_id_named(database, name), folder, rows=rows)
    # Counted from the manifest, which lists only finished segments.
    segments = sum(1 for _ in manifest.files())
    respond(
        as_json,
        {"survey": manifest.survey, "reports": manifest.rows, "segments": segments},
        f"{manifest.rows} reports are in {segments} segments.",
    )


@scale.command()
@click.argument("name")
@json_option
def partition(name: str, as_json: bool) -> None:
    """Move the reports of the survey called NAME to a separate table (PostgreSQL).

    Erasing the survey then drops the table instead of deleting row by row. Reports that arrive
    during the move wait or get 503: run this while the survey is small or paused.
    """
    with open_database() as database:
        survey = survey_id_named(database, name)
        with database.transaction("make partition") as tx:
            created = tx.partitions.make(survey)
        if created:
            record_command(database, "partition made", name)
    outcome = "now has its own table" if created else "already had its own table"
    respond(as_json, {"survey": survey, "made": created}, f"Survey {name} {outcome}.")


@scale.command("count")
@click.argument("folders", type=_FOLDER, nargs=-1, required=True)
@click.option(
    "--spark",
    "master",
    help="Count on this Spark master, such as spark://host:7077 [default: DuckDB on this machine].",
)
@click.option(
    "--estimates",
    "estimated",
    is_flag=True,
    help="Write estimates from these counts as JSON, as the database would give them.",
)
@click.option(
    "--crosstab",
    multiple=True,
    help="With --estimates: question id of a joint table; repeat the option for each question.",
)
@click.option(
    "--against-database",
    is_flag=True,
    help="Compare with this machine's database; exit code 6 if the counts differ.",
)
@json_option
def count_command(
    folders: tuple[Path, ...],
    master: str | None,
    estimated: bool,
    crosstab: tuple[str, ...],
    against_database: bool,
    as_json: bool,
) -> None:
    """Count the reports in exports of one survey; a report in several exports counts once.

    --json writes all counts of each document: those of single blocks as [block, stratum, symbol,
    n], those of pairs as [block, other block, stratum, symbol, other symbol, n].
    """
    if crosstab and not estimated:
        raise InvalidInput(Problem.USAGE, "--crosstab is for --estimates", "crosstab")
    counted = count(folders, Spark(master) if master else DuckDB())
    # Compared before any output, so that there is none if the database is unavailable.
    differs = _differences(counted) if against_database else []
    if estimated:
        answer = counted.analysis().estimates(counted.survey, targets=list(crosstab) or None)
        click.echo(encode(answer), nl=False)
    elif as_json:
        write_json(_json(counted) | ({"different": differs} if against_database else {}))
    else:
        _show(counted, differs if against_database else None)
    if differs:
        raise click.exceptions.Exit(exits.INTEGRITY)


def _differences(counted: ExportCounts) -> list[str]:
    """Return the digests of documents whose counts differ from the database's."""
    wrong = []
    with open_database() as database, database.reading("compare counts") as tx:
        for document in counted.documents:
            layout = Layout.of(document.document())
            pairs: dict[PairKey, int] = {}
            # Pairs of positions within a set are stored under (block, block), as in `PairKey`.
            for block, other_block in [*((block, block) for block in layout.sets), *layout.pairs]:
                pairs |= tx.counts.pairs(document.digest, block, other_block)
            same = counted.singles(document.digest) == tx.counts.of_document(document.digest)
            if not same or counted.pairs(document.digest) != pairs:
                wrong.append(document.digest)
    return wrong


def _json(counted: ExportCounts) -> dict[str, Any]:
    documents = [
        {
            "digest": document.digest,
            "reports": counted.by_digest[document.digest].reports,
            "counts": sorted([*key[1:], n] for key, n in counted.singles(document.digest).items()),
            "pairs": sorted([*key[1:], n] for key, n in counted.pairs(document.digest).items()),
        }
        for document in counted.documents
    ]
    # Overlapping exports contain some reports twice; their ids identify them.
    duplicates = counted.rows - counted.reports
    return {
        "survey": counted.survey,
        "reports": counted.reports,
        "duplicates": duplicates,
        "documents": documents,
    }


def _show(counted: ExportCounts, differs: list[str] | None) -> None:
    remarks_by_difference = {
        None: "",
        True: "differs from the database",
        False: "the database has the same",
    }
    rows = [
        (
            str(document.version),
            f"{document.digest[:15]}…",
            str(counted.by_digest[document.digest].reports),
            remarks_by_difference[None if differs is None else document.digest in differs],
        )
        for document in counted.documents
    ]
    results().print(table("Reports", ("version", "document", "reports", ""), rows))
    remarks().print(f"{counted.rows - counted.reports} duplicates were counted once.", markup=False)
