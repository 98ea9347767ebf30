# SPDX-License-Identifier: Apache-2.0
"""`frankly survey`: drafts from files, signed documents, and the states of surveys."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

import click
from frankly_design.numeric.lazy import LazyModule
from frankly_design.requests.whole_report import cost_words, level_table, report_json
from frankly_protocol.audit import ReportLevel
from frankly_protocol.clock import format_time
from rich.console import Console

from frankly_server.cli import survey_counts, survey_expected, survey_import, survey_state
from frankly_server.cli.console import json_option, remarks, respond, results, table, write_json
from frankly_server.cli.search_progress import designs_shown
from frankly_server.cli.services import command_record, open_services
from frankly_server.store.survey_states import MAIN
from frankly_server.surveys import expected, survey_templates
from frankly_server.surveys.arms_definition import cells_of_arms
from frankly_server.surveys.older_versions import older_links
from frankly_server.surveys.surveys import ERASED

if TYPE_CHECKING:
    from frankly_server.surveys import definition, live
    from frankly_server.surveys.published import Published, PublishedBlock
else:
    # Lazy, because these modules import the design engine, which most commands do not need.
    definition = LazyModule("frankly_server.surveys.definition")
    live = LazyModule("frankly_server.surveys.live")

# More than the parser accepts, so that it refuses a larger file instead of parsing a prefix.
MAX_FILE_BYTES = 8 * 2**20
_COUNTED = {"level": "its level", "ceiling": "its ceiling"}
_ENDLESS = (
    "A ceiling of ∞, or above 16, means that some reports rule some answers out. The promise about "
    "the secret holds under the published prior, but not against an observer who knows more."
)
_NOT_ESTIMABLE = "In {}, no number of reports can distinguish {}. Only these can be estimated: {}."
_UNCHANGED = "Answers are sent unchanged in: {}. They reveal no more about the secret than the promise allows."


@click.group()
def survey() -> None:
    """Import, apply, compare, export, publish, list, pause, resume, close, archive and erase surveys."""


for moving_command in survey_state.commands():
    survey.add_command(moving_command)
survey.add_command(survey_import.import_form)


@survey.command()
@click.argument("file", type=click.File("rb"))
@survey_counts.option
@click.option("--dry-run", is_flag=True, help="Check and show what would change; change nothing.")
@click.option("--organisation", default=MAIN, show_default=True, help="The survey's owner.")
@json_option
def apply(
    file: BinaryIO, counts: Sequence[str], dry_run: bool, organisation: str, as_json: bool
) -> None:
    """Make the stored draft equal to a survey FILE (YAML); repeating it changes nothing."""
    definition = survey_counts.definition(file.read(MAX_FILE_BYTES), counts)
    with open_services() as services, designs_shown() as report:
        change = services.surveys.apply(
            definition,
            progress=report,
            dry_run=dry_run,
            organisation=organisation,
            recorder=lambda status, survey_id: command_record(
                services, f"draft {status}", survey_id
            ),
        )
        outlook = expected.expected_of(
            services.surveys.next_version(definition, change.survey_id), report
        )
    if as_json:
        write_json(
            {
                "status": change.status,
                "survey": change.survey_id,
                "name": change.name,
                "dry_run": dry_run,
                "diff": list(change.diff),
                "report": report_json(change.level),
                "warnings": list(change.warnings),
                "expected": expected.expected_json(definition, outlook),
            }
        )
        return
    for line in change.diff:
        click.echo(line)
    # The level of the complete report, which respondents are promised, precedes the warnings.
    strata = bool(definition.strata)
    _print_report_level(remarks(), change.level, has_strata=strata)
    _warn(change.warnings)
    for part in survey_expected.shown(definition, outlook):
        remarks().print(part, markup=False)
    verb = (
        f"would be {change.status}"
        if dry_run and change.status != "unchanged"
        else f"is {change.status}"
    )
    remarks().print(f"Survey {change.name} {verb}.", markup=False)
    if not dry_run:
        remarks().print(f"Next: frankly survey publish {change.name}", markup=False)


@survey.command()
@click.argument("name")
@json_option
def publish(name: str, as_json: bool) -> None:
    """Design, certify and sign the survey called NAME, unless its definition is unchanged."""
    # `designs_shown` removes its bar before the command writes to standard output.
    with open_services() as services, designs_shown() as report:
        published = services.surveys.publish(
            name,
            report,
            recorder=lambda version, status: command_record(
                services, f"version {version} {status}", name
            ),
        )
        draft = services.surveys.draft(name)
        open_versions = services.surveys.open_versions(name)
    if as_json:
        older = [
            {"version": document.version, "closes": format_time(document.closes)}
            for document in open_versions
            if document.version < published.version
        ]
        write_json(_published(published) | {"older_links": older})
        return
    _show(published)
    if published.version > 1:
        new_link = (
            f"Version {published.version} has its own link: give it out instead of the one before."
        )
        older_sentence = older_links(open_versions, published.version, draft.drawn_questions)
        remarks().print(f"{new_link} {older_sentence}".rstrip(), markup=False)
    pending = sum(live.expected_pending(cells, draft.step) for cells in cells_of_arms(draft))
    remarks().print(
        f"Reports are released every {draft.release_every} (UTC), in batches of at least "
        f"{draft.step} with the same public answers; about {pending} are expected to be waiting.",
        markup=False,
    )


@survey.command()
@click.argument("file", type=click.File("rb"))
@survey_counts.option
@json_option
def diff(file: BinaryIO, counts: Sequence[str], as_json: bool) -> None:
    """Show what applying a survey FILE would change, line by line; change nothing."""
    with open_services() as services, designs_shown() as report:
        change = services.surveys.apply(
            survey_counts.definition(file.read(MAX_FILE_BYTES), counts),
            dry_run=True,
            progress=report,
        )
    respond(
        as_json,
        {
            "status": change.status,
            "survey": change.survey_id,
            "name": change.name,
            "diff": list(change.diff),
        },
        f"Survey {change.name}: {change.status}.",
        output=change.diff,
    )


@survey.command()
@click.argument("name")
@json_option
def export(name: str, as_json: bool) -> None:
    """Write the draft of the survey called NAME as YAML, which `apply` reads."""
    with open_services() as services:
        definition = services.surveys.draft(name)
    respond(
        as_json,
        json.loads(definition.to_json()),
        output=[definition.to_yaml().decode().removesuffix("\n")],
    )


@survey.command()
@click.argument("name", required=False)
@json_option
def template(name: str | None, as_json: bool) -> None:
    """List the templates that come with the server, or write the one called NAME."""
    if name is not None:
        click.echo(survey_templates.template(name), nl=False)
        return
    templates = survey_templates.templates()
    respond(
        as_json,
        {
            "templates": [
                {"name": key, "title": one.title, "about": one.sentence}
                for key, one in templates.items()
            ]
        },
        rows=table("Templates", ("name", "title"), [(k, t.title) for k, t in templates.items()]),
    )


@survey.command()
def schema() -> None:
    """Write the JSON Schema of survey files, for editors that check as you type."""
    click.echo(json.dumps(definition.file_schema(), indent=2, ensure_ascii=False))


@survey.command("list")
@json_option
def list_surveys(as_json: bool) -> None:
    """List every survey of this server: draft, scheduled, open, paused, closed or archived."""
    with open_services() as services:
        surveys = services.surveys.list()
        states = services.lifecycle.states(surveys)
    # The lifecycle calls an open survey "live"; the commands say "open", as `resume` does.
    # Both outputs use the same list, so that JSON and table cannot differ.
    states_of_surveys = [
        (s, "open" if states[s.survey_id] == "live" else states[s.survey_id]) for s in surveys
    ]
    listed = [
        {
            "survey": s.survey_id,
            "name": s.name,
            "state": state,
            "version": s.version,
            "link": s.link,
        }
        for s, state in states_of_surveys
    ]
    rows = [
        (s.name, state, str(s.version) if s.version else "none", s.survey_id, s.link or "")
        for s, state in states_of_surveys
    ]
    names = ("name", "state", "version", "id", "link")
    respond(as_json, {"surveys": listed}, rows=table("Surveys", names, rows))


@survey.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase(name: str, yes: bool, as_json: bool) -> None:
    """Delete every report of the survey called NAME and all their counts. This cannot be undone.

    Its draft and its signed documents stay, so that respondents can still check the promises. An
    open survey accepts later reports. Earlier backups and exports still contain the reports.
    """
    if not yes:
        # The prompt goes to standard error, because a program may read standard output.
        click.confirm(f"Delete every report of {name}? This cannot be undone", abort=True, err=True)
    with open_services() as services:
        erased = services.surveys.erase(name, command_record(services, ERASED, name))
    respond(
        as_json,
        {
            "status": "erased",
            "survey": erased.survey_id,
            "name": erased.name,
            "reports": erased.reports,
        },
        f"Survey {erased.name}: {erased.reports} reports and their counts are deleted.",
    )


def _print_report_level(out: Console, level: ReportLevel, *, has_strata: bool) -> None:
    """Print the privacy level of the complete report for each secret, and the cost of answering."""
    columns, rows = level_table(level, has_strata=has_strata)
    # The last column is about the public answers, which are sent too.
    given = " in addition to the public answers" if has_strata else ""
    out.print(table(f"Revealed by the randomised answers{given}, at most", columns, rows))
    if level.secrets:
        out.print(
            "Lines about a secret hold if its published counts are true; the last line always holds.",
            markup=False,
        )
    out.print(cost_words(level), markup=False)


def _warn(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def _published(survey_version: "Published") -> dict[str, object]:
    return {
        "status": survey_version.status,
        "survey": survey_version.survey_id,
        "name": survey_version.name,
        "version": survey_version.version,
        "digest": survey_version.digest,
        "link": survey_version.link,
        "report": report_json(survey_version.level),
        "budget": survey_version.budget,
        "blocks": [block.to_json() for block in survey_version.blocks],
        "warnings": list(survey_version.warnings),
    }


def _show(published: "Published") -> None:
    out = results()
    title = f"{published.name}, version {published.version} ({published.status})"
    columns = ("block", "notion", "ε (nats)", "mechanism", "ceiling (nats)", "counts by")
    out.print(table(title, columns, [_row(block) for block in published.blocks]))
    _print_report_level(out, published.level, has_strata=published.has_strata)
    out.print(
        f"What is protected stays within the budget of {published.budget} nats of log-odds.",
        markup=False,
    )
    # Printed once for all blocks, because the sentence is the same for each.
    if any(block.rules_out for block in published.blocks):
        out.print(_ENDLESS, markup=False)
    if unchanged := [block.id for block in published.blocks if block.answers_unchanged]:
        out.print(_UNCHANGED.format(", ".join(unchanged)), markup=False)
    for block in published.blocks:
        if block.untold:
            out.print(
                _NOT_ESTIMABLE.format(
                    block.id, "; ".join(block.untold), "; ".join(block.estimable)
                ),
                markup=False,
            )
        if block.regret:
            out.print(f"{block.id}: {block.regret}.", markup=False)
        for note in block.notes:
            out.print(f"{block.id}: {note}", markup=False)
    _warn(published.warnings)
    out.print(
        "Give respondents this link in full; with it, a device accepts only this document:",
        markup=False,
    )
    # Nothing else goes to standard output, so that a script can read the link.
    click.echo(published.link)


def _row(block: "PublishedBlock") -> tuple[str, ...]:
    ceiling = "∞" if block.ceiling == "inf" else block.ceiling
    return (
        block.id,
        block.notion,
        "–"
        if block.epsilon == "inf"
        else block.epsilon,  # dpv, and alip with one side, bound no ratio
        block.mechanism,
        ceiling,
        _COUNTED.get(block.counted_by, block.counted_by),
    )
