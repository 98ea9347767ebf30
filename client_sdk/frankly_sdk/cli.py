# SPDX-License-Identifier: Apache-2.0
"""Command frankly-sdk: randomise a file of answers and send the sealed reports.

frankly-sdk randomise in.csv out.jsonl --link LINK --store FILE     (- reads answers from standard input)
frankly-sdk flush --link LINK --store FILE
frankly-sdk plan --link LINK --store FILE [--respondent KEY]
frankly-sdk explain --link LINK --store FILE [--respondent KEY]
frankly-sdk budget --link LINK --store FILE [--respondent KEY]
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from frankly_protocol.errors import DocumentRejected, FranklyError, InvalidInput, RandomnessError
from frankly_protocol.problems import Problem

from frankly_sdk._platform import sync
from frankly_sdk._table import Columns, placed, read_rows
from frankly_sdk.batch import Randomised
from frankly_sdk.client import Client
from frankly_sdk.errors import (
    AlreadyAnswered,
    LinkError,
    NetworkError,
    PolicyRefused,
    StoreError,
    SurveyClosed,
    UnknownChoice,
)
from frankly_sdk.events import Event
from frankly_sdk.policy import Policy
from frankly_sdk.store import Store

Opener = Callable[[argparse.Namespace], Client]
BAD_INPUT, REFUSED, NETWORK, INTEGRITY = 3, 4, 5, 6
_EXITS: tuple[tuple[tuple[type[FranklyError], ...], int], ...] = (
    ((InvalidInput, UnknownChoice, LinkError), BAD_INPUT),
    ((PolicyRefused, SurveyClosed, AlreadyAnswered), REFUSED),
    ((NetworkError,), NETWORK),
    ((DocumentRejected, StoreError, RandomnessError), INTEGRITY),
)


def main(arguments: Sequence[str] | None = None, opener: Opener | None = None) -> int:
    """Run one command and return its exit status.

    0 success, 2 usage, 3 bad input, 4 refused by the policy, 5 network, 6 integrity.
    """
    options = _parser().parse_args(arguments)
    commands = {
        "randomise": _randomise,
        "flush": _flush,
        "plan": _plan,
        "explain": _explain,
        "budget": _budget,
    }
    try:
        # Checked before the store is opened: no answer may be sealed if the output file must not be
        # replaced.
        if options.command == "randomise":
            _require_free(options)
        # Counted first, because the client sends most reports when it opens.
        if options.command == "flush" and sys.stderr.isatty():
            options.progress = _Progress(options.store)
        with (opener or _open)(options) as client:
            return commands[options.command](options, client)
    except FranklyError as error:
        _say(f"frankly-sdk: {error}", options.progress)
        return exit_status(error)


def exit_status(error: FranklyError) -> int:
    """Return the exit status for an error."""
    return next((status for kinds, status in _EXITS if isinstance(error, kinds)), INTEGRITY)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "frankly-sdk", description="Randomise answers on this device and send the reports."
    )
    parser.set_defaults(progress=None)
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--link", required=True, help="https://host/s/ID#sha256=…")
    common.add_argument("--store", required=True, type=Path, help="file of this device's store")
    common.add_argument(
        "--cap",
        default=Policy().cap,
        help="nats that all surveys of one respondent may cost together (default %(default)s)",
    )
    common.add_argument(
        "--delta-cap",
        default=Policy().delta_cap,
        help="largest total δ of all (ε, δ) promises (default %(default)s)",
    )
    common.add_argument(
        "--final-survey",
        action="append",
        default=[],
        metavar="ID",
        help="a survey that may use up the whole budget permanently; can be repeated",
    )
    common.add_argument(
        "--keys",
        type=Path,
        help="file of the keys document to trust; by default the first one that the server sends",
    )
    common.add_argument(
        "--collect-host",
        action="append",
        default=[],
        metavar="HOST",
        help="a host, other than the link's, that may collect reports; can be repeated",
    )
    batch = commands.add_parser(
        "randomise",
        parents=[common],
        help="seal a table of answers and write the reports to a file",
    )
    batch.add_argument(
        "input",
        help="CSV: a column of respondent keys and one column per question; - is standard input",
    )
    batch.add_argument(
        "output",
        type=Path,
        help="file for the reports, one per line, sorted, so that the input's order does not show",
    )
    batch.add_argument(
        "--respondent", default="respondent", metavar="COLUMN", help="the column of keys"
    )
    batch.add_argument(
        "--token",
        default="token",
        metavar="COLUMN",
        help="the column of tokens, if the survey requires them",
    )
    batch.add_argument("--force", action="store_true", help="replace an existing output file")
    flush = commands.add_parser(
        "flush", parents=[common], help="send every sealed report of the store"
    )
    flush.add_argument("--seconds", type=float, default=60.0, help="approximate time to try")
    plan = commands.add_parser(
        "plan",
        parents=[common],
        help="show what to ask: all questions, or those drawn for the report",
    )
    explain = commands.add_parser(
        "explain", parents=[common], help="show questions, report and privacy bounds"
    )
    budget = commands.add_parser(
        "budget",
        parents=[common],
        help="show the survey's cost, and the remaining budget before and after",
    )
    for command in (plan, explain, budget):
        command.add_argument(
            "--respondent",
            metavar="KEY",
            help="the respondent's key; by default the person whom the store belongs to",
        )
    return parser


def _open(options: argparse.Namespace) -> Client:
    keys = None
    if options.keys is not None:
        try:
            keys = options.keys.read_bytes()
        except OSError:
            raise InvalidInput(
                Problem.KEY_FILE, "this file cannot be read", str(options.keys)
            ) from None
    final, hosts = tuple(options.final_survey), tuple(options.collect_host)
    policy = Policy(
        options.cap, delta_cap=options.delta_cap, final_surveys=final, collect_hosts=hosts
    )
    return Client.open(options.link, options.store, policy, keys=keys, on_event=options.progress)


def _require_free(options: argparse.Namespace) -> None:
    if options.output.exists() and not options.force:
        raise InvalidInput(
            Problem.FILE_EXISTS,
            "this file exists and was not replaced; --force replaces it",
            str(options.output),
        )


def _randomise(options: argparse.Namespace, client: Client) -> int:
    rows = read_rows(
        options.input, Columns(options.respondent, options.token), client.survey.document
    )
    try:
        results = list(client.randomise_many(rows))
    except UnknownChoice as missing:
        raise placed(missing) from None
    _write(options.output, (row.report for row in results if row.report is not None))
    _summarise(results)
    return 0


def _flush(options: argparse.Namespace, client: Client) -> int:
    counts = Counter(receipt.status for receipt in client.flush(options.seconds))
    _say(
        f"sent {counts['sent']}, queued {counts['queued']}, refused permanently {counts['refused']}",
        options.progress,
    )
    # The exit status lets a script see that it should run the command again later.
    return NETWORK if counts["queued"] else 0


class _Progress:
    """A line on the terminal that says how many reports of the store have been sent."""

    def __init__(self, path: Path) -> None:
        self._sent = self._total = 0
        if path.exists():
            store = Store(path)
            self._total = store.pending()
            store.close()

    def __call__(self, event: Event) -> None:
        if event.name == "sent":
            self._sent += 1
            total = max(self._sent, self._total)
            # The line never gets shorter, so it covers the one before.
            sys.stderr.write(f"\rsent {self._sent:,} of {total:,}")
            sys.stderr.flush()

    def end(self) -> None:
        """End the line, if there is one."""
        if self._sent:
            sys.stderr.write("\n")


def _plan(options: argparse.Namespace, client: Client) -> int:
    plan, survey = client.plan(options.respondent), client.survey
    document = survey.document if plan.arm is None else survey.arms[plan.arm].document
    if plan.arm is not None:
        sys.stdout.write(f"Version {plan.arm}, drawn by this device.\n")
    in_the_clear = document.open_questions.values()
    public = f", and {len(in_the_clear)} in the clear" if in_the_clear else ""
    sys.stdout.write(f"Ask {plan.asked} of {plan.of} questions{public}.\n")
    for question in (*in_the_clear, *(document.questions[name] for name in plan.questions)):
        # The names are those of the columns of a table.
        choices, rule = ", ".join(choice.id for choice in question.choices), question.ask_if
        number = ", or a whole number" if question.asks_number else ""
        text = question.text[document.languages[0]]
        asked_if = f"; only if {rule.question} is {' or '.join(rule.choices)}" if rule else ""
        sys.stdout.write(f"{question.id}: {text} ({choices}{number}{asked_if})\n")
    return 0


def _explain(options: argparse.Namespace, client: Client) -> int:
    sys.stdout.write(f"{client.survey.explain(budget=client.budget(options.respondent))}\n")
    return 0


def _budget(options: argparse.Namespace, client: Client) -> int:
    sys.stdout.write(f"{client.budget(options.respondent)}\n")
    return 0


def _summarise(results: Sequence[Randomised]) -> None:
    # There is no status "already": a table with a repeated key is refused.
    counts = Counter(row.status for row in results)
    # Only counts are printed: a line for each row would show whose budget was exceeded.
    _say(
        f"sealed {counts['sealed']}, acknowledged or refused before {counts['done']}, "
        f"over the budget {counts['over_budget']}"
    )


def _write(path: Path, reports: Iterable[bytes]) -> None:
    """Write all lines or none, in sorted order.

    Reports first differ in their random ids, so the sorted order is random. From the order of the
    table, a reader who knows the list of people could match reports to people.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(report + b"\n" for report in sorted(reports))
                file.flush()
                sync(file.fileno())
            # Synced before the rename: after a power cut the output is either complete or unchanged.
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError:
        raise InvalidInput(
            Problem.BAD_REQUEST,
            "this file cannot be written; the sealed reports are in the store: run the command again",
            str(path),
        ) from None


def _say(message: str, progress: _Progress | None = None) -> None:
    if progress is not None:
        progress.end()
    sys.stderr.write(message + "\n")


if __name__ == "__main__":
    sys.exit(main())
