# SPDX-License-Identifier: Apache-2.0
"""frankly-sdk: randomise a file of answers on a tablet or in a call centre, and send what is sealed.

frankly-sdk randomise in.csv out.jsonl --link LINK --store FILE     (- reads answers from standard input)
frankly-sdk flush --link LINK --store FILE
frankly-sdk explain --link LINK --store FILE
frankly-sdk budget --link LINK --store FILE --respondent KEY
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

from frankly_sdk._table import Columns, read_rows
from frankly_sdk.batch import Randomised
from frankly_sdk.client import Client
from frankly_sdk.errors import LinkError, NetworkError, PolicyRefused, StoreError, SurveyClosed, UnknownChoice
from frankly_sdk.policy import Policy

Opener = Callable[[argparse.Namespace], Client]
BAD_INPUT, REFUSED, NETWORK, INTEGRITY = 3, 4, 5, 6
_EXITS: tuple[tuple[tuple[type[FranklyError], ...], int], ...] = (
    ((InvalidInput, UnknownChoice, LinkError), BAD_INPUT),
    ((PolicyRefused, SurveyClosed), REFUSED),
    ((NetworkError,), NETWORK),
    ((DocumentRejected, StoreError, RandomnessError), INTEGRITY),
)


def main(arguments: Sequence[str] | None = None, opener: Opener | None = None) -> int:
    """Run one command; 0, or 2 usage, 3 bad input, 4 refused by the app's policy, 5 network, 6 integrity."""
    chosen = _parser().parse_args(arguments)
    commands = {"randomise": _randomise, "flush": _flush, "explain": _explain, "budget": _budget}
    try:
        if chosen.command == "randomise":
            _require_free(chosen)
        with (opener or _open)(chosen) as client:
            return commands[chosen.command](chosen, client)
    except FranklyError as error:
        _say(f"frankly-sdk: {error}")
        return next((status for kinds, status in _EXITS if isinstance(error, kinds)), INTEGRITY)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("frankly-sdk", description="Randomise answers on this device; send only noise.")
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--link", required=True, help="https://host/s/ID#sha256=…")
    common.add_argument("--store", required=True, type=Path, help="this device's store")
    common.add_argument(
        "--cap", default=Policy().cap, help="nats for all surveys of one respondent (default %(default)s)"
    )
    common.add_argument(
        "--delta-cap", default=Policy().delta_cap, help="the δ that (ε, δ) promises may add up to (default %(default)s)"
    )
    common.add_argument(
        "--final-survey", action="append", default=[], metavar="ID", help="a survey that may use up the budget for ever"
    )
    common.add_argument("--keys", type=Path, help="the keys document to trust; otherwise the server's first one")
    words = "a host that may collect reports besides the link's; may be given several times"
    common.add_argument("--collect-host", action="append", default=[], metavar="HOST", help=words)
    batch = commands.add_parser("randomise", parents=[common], help="seal a table of answers, write what may leave")
    batch.add_argument("input", help="CSV: a column of respondent keys, one for each question; - is standard input")
    batch.add_argument("output", type=Path, help="one report a line, in an order that tells nothing")
    batch.add_argument("--respondent", default="respondent", metavar="COLUMN", help="the column of keys")
    batch.add_argument("--token", default="token", metavar="COLUMN", help="the column of tokens, if the survey asks")
    batch.add_argument("--force", action="store_true", help="replace the output if it is there")
    flush = commands.add_parser("flush", parents=[common], help="send every sealed report of the store")
    flush.add_argument("--seconds", type=float, default=60.0, help="about how long to try")
    explain = commands.add_parser("explain", parents=[common], help="what is asked, what leaves, what it can tell")
    budget = commands.add_parser("budget", parents=[common], help="what it costs, what is left before and after")
    for command in (explain, budget):
        command.add_argument("--respondent", metavar="KEY", help="of whom; the one the store belongs to if left out")
    return parser


def _open(chosen: argparse.Namespace) -> Client:
    keys = None
    if chosen.keys is not None:
        try:
            keys = chosen.keys.read_bytes()
        except OSError:
            raise InvalidInput(Problem.KEY_FILE, "this file cannot be read", str(chosen.keys)) from None
    final, hosts = tuple(chosen.final_survey), tuple(chosen.collect_host)
    policy = Policy(chosen.cap, delta_cap=chosen.delta_cap, final_surveys=final, collect_hosts=hosts)
    return Client.open(chosen.link, chosen.store, policy, keys=keys)


def _require_free(chosen: argparse.Namespace) -> None:
    if chosen.output.exists() and not chosen.force:
        raise InvalidInput(Problem.FILE_EXISTS, "it exists and is kept; --force replaces it", str(chosen.output))


def _randomise(chosen: argparse.Namespace, client: Client) -> int:
    rows = read_rows(chosen.input, Columns(chosen.respondent, chosen.token), client.survey.document)
    done = list(client.randomise_many(rows))
    _write(chosen.output, (row.report for row in done if row.report is not None))
    _summarise(done)
    return 0


def _flush(chosen: argparse.Namespace, client: Client) -> int:
    told = Counter(receipt.status for receipt in client.flush(chosen.seconds))
    _say(f"sent {told['sent']}, queued {told['queued']}, refused for good {told['refused']}")
    return NETWORK if told["queued"] else 0


def _explain(chosen: argparse.Namespace, client: Client) -> int:
    sys.stdout.write(f"{client.survey.explain(budget=client.budget(chosen.respondent))}\n")
    return 0


def _budget(chosen: argparse.Namespace, client: Client) -> int:
    sys.stdout.write(f"{client.budget(chosen.respondent)}\n")
    return 0


def _summarise(done: Sequence[Randomised]) -> None:
    told = Counter(row.status for row in done)
    _say(f"sealed {told['sealed']}, sent before {told['done']}, over the budget {told['over_budget']}")


def _write(path: Path, reports: Iterable[bytes]) -> None:
    """Write all lines or none, sorted: ids come first among what differs, and they are random.

    In the order of the table, whoever knows the list of people would know whose report is whose.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(report + b"\n" for report in sorted(reports))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError:
        detail = "it cannot be written; what was sealed stays in the store, run the same command again"
        raise InvalidInput(Problem.BAD_REQUEST, detail, str(path)) from None


def _say(words: str) -> None:
    sys.stderr.write(words + "\n")


if __name__ == "__main__":
    sys.exit(main())
