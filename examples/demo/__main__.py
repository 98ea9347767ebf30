# SPDX-License-Identifier: Apache-2.0
"""An example survey end to end: a server, thousands of simulated devices, and an analyst.

python -m examples.demo [affairs|workplace|multi] [--respondents N] [--home FOLDER]
"""

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from frankly_analyst import Analyst, AnalystError, Estimates
from frankly_analyst.plots import figure
from frankly_protocol.documents import SurveyDocument
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from examples.demo.page import Facts, render
from examples.demo.people import Person
from examples.demo.respondents import Answers, answer_all, stores, workers
from examples.demo.results import Question, compare, compare_table, verdict
from examples.demo.server import DemoServer, ServerFailed
from examples.demo.surveys import SURVEYS, DemoSurvey

ROOT = Path(__file__).resolve().parents[2]
IMPLAUSIBLE = 1e-3
"""The demo fails if the observed misses are less probable than this under correct margins."""
FIRST = 500
"""After so many people, the first results are shown, if at least as many are still to answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if every report was stored once and the margins are plausible."""
    parser = argparse.ArgumentParser(
        prog="frankly demo", description="An example survey end to end, with real answers."
    )
    titles = "; ".join(f"{survey.name}: {survey.title}" for survey in SURVEYS.values())
    parser.add_argument(
        "survey", nargs="?", choices=list(SURVEYS), default=next(iter(SURVEYS)), help=titles
    )
    parser.add_argument(
        "--respondents", type=int, metavar="N", help="only the first N people answer (at least 100)"
    )
    parser.add_argument(
        "--home",
        type=Path,
        default=ROOT / ".demo",
        metavar="FOLDER",
        help="for keys, database and devices",
    )
    parser.add_argument("--report", type=Path, default=ROOT / "demo-report.html", metavar="FILE")
    chosen = parser.parse_args(arguments)
    # Ends as by Ctrl-C does: processes are stopped and stores removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if chosen.respondents is not None and chosen.respondents < 100:
        parser.error("the survey shows no estimates below 100 respondents")
    console = Console(width=max(100, Console().width) if not sys.stdout.isatty() else None)
    return run(SURVEYS[chosen.survey], chosen.home, chosen.report, chosen.respondents, console)


def run(
    survey: DemoSurvey, home: Path, report: Path, respondent_limit: int | None, console: Console
) -> int:
    """Run the survey in `home`, which is emptied first, write `report`, and return the exit code.

    respondent_limit : number of people that answer, or None for all.
    """
    started = time.monotonic()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    pilot, everyone = survey.split()
    respondents = everyone[:respondent_limit]
    from_pilot = f"{len(pilot):,} people are the public pilot; " if pilot else ""
    who = f"{len(respondents):,} {'others' if pilot else 'people'}"
    console.print(
        f"[bold]{survey.title}.[/] {from_pilot}{who} answer now, each on a separate device."
    )
    with DemoServer(home / "server") as server, stores(home) as devices, workers() as pool:
        server.install()
        server.launch()
        with ThreadPoolExecutor() as beside:
            key = beside.submit(server.analyst_key)
            published = server.publish(survey)
        analyst = Analyst(server.url, key.result())
        _print_promises(console, published)
        server.start()
        console.print(f"Server: {server.url} (a separate process, waitress and SQLite)\n")

        def first_results() -> None:
            # If the server is away, the devices try again; these results can be left out.
            with suppress(ServerFailed, AnalystError):
                server.release()
                _print_first(console, survey, analyst.estimates(published["survey"]), respondents)

        answers = _collect(
            console, pool, published["link"], devices, respondents, survey.cap, first_results
        )
        server.release()
        estimates = analyst.estimates(published["survey"], census=True)
        tables = [(names, estimates.crosstab(*names)) for names in survey.tables]
        document = server.document(published["survey"])
    questions = compare(estimates.rows, respondents, survey.asked())
    # If there are few respondents, too few reports contain both questions of a pair.
    joint = [_joint(survey, names, found, respondents) for names, found in tables if found.rows]
    for question in (*questions, *joint):
        console.print(_question_table(question))
    missing = len(survey.asked()) - len(questions)
    if missing:
        console.print(
            f"{missing} of {len(survey.asked())} questions have no result: fewer than "
            f"{document.min_reports} of the {len(respondents):,} reports are about each of them."
        )
    inside, checked, chance = verdict(questions)
    facts = _facts(
        survey, published, document, len(pilot), len(respondents), inside, checked, answers
    )
    report.write_text(render([*questions, *joint], facts), encoding="utf-8")
    # Reports that were counted for each question.
    received = {one.get("received", one["n"]) for one in estimates.body["questions"]}
    stored_once = received == {len(respondents)}
    return _conclude(
        console, server, survey, facts, chance, stored_once, report, time.monotonic() - started
    )


def _joint(
    survey: DemoSurvey, names: Sequence[str], found: Estimates, respondents: Sequence[Person]
) -> Question:
    return compare_table(found.rows, respondents, names, [survey.choices(name) for name in names])


def _print_first(
    console: Console, survey: DemoSurvey, estimates: Estimates, respondents: Sequence[Person]
) -> None:
    """Print the estimates of the first question while others are still answering."""
    first = next(iter(survey.asked()))
    (question,) = compare(estimates.of(first), respondents, survey.asked())
    console.print(f"\nFirst results, of {estimates.n:,} people; the others go on answering:")
    console.print(_question_table(question))


def _collect(
    console: Console,
    pool: Executor,
    link: str,
    devices: Path,
    respondents: Sequence[Person],
    cap: str,
    first_results: Callable[[], None],
) -> Answers:
    """Let everyone answer; devices that reached no server retry, as at an app's next start."""
    done, shown = 0, len(respondents) < 2 * FIRST
    total, waiting = Answers(), list(enumerate(respondents))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        for step in (
            "verify, draw what to ask, ask, randomise, send",
            "second attempt",
            "third attempt",
        ):
            task = progress.add_task(step, total=len(waiting))

            def advance(further: Answers, task: TaskID = task) -> None:
                nonlocal done, shown
                progress.advance(task, further.sent + len(further.waiting))
                done += further.sent
                if done >= FIRST and not shown:
                    shown = True
                    first_results()

            answers = answer_all(pool, link, devices, waiting, advance, cap=cap)
            total += answers
            waiting = [(number, respondents[number]) for number in answers.waiting]
            if not waiting:
                break
    console.print()
    return total


def _print_promises(console: Console, published: dict[str, Any]) -> None:
    table = Table(
        "block",
        "notion",
        "ε (nats)",
        "mechanism",
        "ceiling",
        "counts by",
        title="Designed and signed",
    )
    for line in _blocks(published):
        table.add_row(*line)
    console.print(table)
    console.print(_report_note(published))
    console.print(f"[yellow]{_ceiling_note(published)}[/]")
    console.print(f"Pinned link: {published['link']}", soft_wrap=True)


def _blocks(published: dict[str, Any]) -> list[tuple[str, str, str, str, str, str]]:
    return [
        (
            b["id"],
            b["notion"],
            _nats(b["epsilon"]),
            b["mechanism"],
            _nats(b["ceiling"]),
            b["counted_by"],
        )
        for b in published["blocks"]
    ]


def _nats(text: str) -> str:
    return "∞" if text == "inf" else text


def _report_note(published: dict[str, Any]) -> str:
    """Return the bound of the whole report on each secret, and the cost of answering, in nats."""
    report = published["report"]
    secrets = [
        f"up to {_nats(limits['odds'])} nats of log-odds about “{name}”"
        for name, limits in report["secrets"].items()
    ]
    told = f"{', '.join(secrets)}, of a budget of {published['budget']}, and " if secrets else ""
    return (
        f"A whole report reveals {told}up to {_nats(report['answers']['odds'])} nats about the answers, whatever "
        f"is known beforehand. Answering costs a device {_nats(report['cost'])} nats."
    )


def _ceiling_note(published: dict[str, Any]) -> str:
    endless = [b["id"] for b in published["blocks"] if b["rules_out"]]
    if not endless:
        return (
            "Every ceiling is finite: no report rules an answer out, whatever is known beforehand."
        )
    names = ", ".join(endless)
    return (
        f"The ceiling of block “{names}” is infinite or nearly so: some of its reports rule out some answers. "
        "The block limits what a report reveals about the secret, provided that the pilot’s counts are right; it "
        "does not protect the answer itself."
    )


def _question_table(question: Question) -> Table:
    first = question.rows[0].row
    caption = (
        f"n = {first.n:,} · {first.mechanism} · {first.notion} ε = {first.epsilon} · ceiling "
        f"{_nats(first.ceiling)}"
    )
    table = Table("answer", title=question.text, caption=caption, min_width=90)
    for name in ("estimate", "95% interval", "truth", "truth is"):
        table.add_column(name, justify="right")
    for line in question.rows:
        where = "[green]inside[/]" if line.inside else "[red]outside[/]"
        row = line.row
        estimate, truth = (figure(value, row.unit) for value in (row.estimate, line.truth))
        table.add_row(row.label, estimate, row.interval, truth, where)
    return table


def _facts(
    survey: DemoSurvey,
    published: dict[str, Any],
    document: SurveyDocument,
    pilot: int,
    respondents: int,
    inside: int,
    checked: int,
    answers: Answers,
) -> Facts:
    return Facts(
        title=survey.title,
        source=survey.source,
        pilot=pilot,
        respondents=respondents,
        inside=inside,
        checked=checked,
        asked=answers.asked,
        of=answers.of,
        report_note=_report_note(published),
        blocks=_blocks(published),
        ceiling_note=_ceiling_note(published),
        rivals=survey.rivals(respondents, document),
    )


def _conclude(
    console: Console,
    server: DemoServer,
    survey: DemoSurvey,
    facts: Facts,
    chance: float,
    stored_once: bool,
    report: Path,
    seconds: float,
) -> int:
    console.print()
    if facts.checked:
        console.print(
            f"{facts.inside} of {facts.checked} true figures lie inside their 95% intervals "
            f"(probability of so few or fewer: {chance:.3g}). All people answered, so the intervals cover only "
            "the randomisation."
        )
    if facts.asked < facts.of:
        console.print(facts.asked_in_words)
    if facts.rivals is not None:
        console.print(facts.rivals.in_words)
    console.print(
        f"{seconds:.0f} s for {facts.respondents:,} respondents. Report page: {report}",
        soft_wrap=True,
    )
    if not stored_once:
        console.print(f"[red]The server has not stored exactly {facts.respondents:,} reports.[/]")
        return 1
    if chance < IMPLAUSIBLE:
        console.print("[red]So many misses mean that the margins are wrong.[/]")
        return 1
    settings = " ".join(f"{name}={value}" for name, value in server.settings.items())
    console.print("\n[bold]Try next[/] (with the demo's server):")
    console.print(f"  export {settings}", soft_wrap=True)
    for command in ("survey list", f"estimates {survey.name}", "serve"):
        console.print(f"  .venv/bin/frankly {command}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
