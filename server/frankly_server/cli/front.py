# SPDX-License-Identifier: Apache-2.0
"""Entry point of `frankly`: its commands, and the translation of exceptions into exit codes."""

import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click
from click.shell_completion import CompletionItem, shell_complete
from frankly_protocol import __version__
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.cli import exits
from frankly_server.web import logs

# Imported on use: importing the solver and the web framework takes a second, and
# `frankly --help` should not wait for it.
VERBS = {
    "keys": ("frankly_server.cli.keys:keys", "Create signing keys and API keys."),
    "migrate": (
        "frankly_server.cli.migrate:migrate",
        "Create the tables, or bring them up to date.",
    ),
    "admin": ("frankly_server.cli.admin:admin", "Manage the accounts of the admin pages."),
    "survey": ("frankly_server.cli.survey:survey", "Apply, publish and list surveys."),
    "release": (
        "frankly_server.cli.release:release",
        "Show the next release times, or release pending reports now.",
    ),
    "tokens": ("frankly_server.cli.tokens:tokens", "Create invite tokens for a survey."),
    "serve": ("frankly_server.cli.serve:serve", "Serve documents, reports and estimates."),
    "backup": ("frankly_server.cli.backup:backup", "Write a backup of the database, or check one."),
    "restore": ("frankly_server.cli.backup:restore", "Fill an empty database from a backup."),
    "codebook": (
        "frankly_server.cli.codebook:codebook",
        "Write a survey's codebook: HTML, CSV and DDI.",
    ),
    "evidence": (
        "frankly_server.cli.evidence:evidence",
        "Write evidence about a survey for data protection officers and ethics boards.",
    ),
    "counts": (
        "frankly_server.cli.counts:counts",
        "Show the counts behind estimates, check or rebuild them.",
    ),
    "scale": (
        "frankly_server.cli.scale:scale",
        "Export reports as Parquet; count exports with DuckDB or Spark.",
    ),
    "doctor": (
        "frankly_server.cli.doctor:doctor",
        "Check everything a server needs, and say how to fix what is missing.",
    ),
    "estimates": (
        "frankly_server.cli.estimates:estimates",
        "Show a survey's estimates, each with its interval.",
    ),
    "witness": (
        "frankly_server.cli.witness:witness",
        "Watch the logs of other servers and co-sign their heads.",
    ),
    "audit": ("frankly_server.cli.audit:audit", "Re-verify everything a server has published."),
    "replay": (
        "frankly_server.cli.estimates:replay",
        "Recompute a saved result and compare byte for byte.",
    ),
    "design": (
        "frankly_server.cli.json_commands:design",
        "Design a mechanism (JSON in a file or on standard input).",
    ),
    "measure": (
        "frankly_server.cli.json_commands:measure",
        "Measure a mechanism (JSON in a file or on standard input).",
    ),
    "estimate": (
        "frankly_server.cli.json_commands:estimate",
        "Estimate shares from counts (JSON in a file or on standard input).",
    ),
    "plan": (
        "frankly_server.cli.plan:plan",
        "Plan reports, level or margin: of a survey file, or from JSON.",
    ),
    "waves": (
        "frankly_server.cli.json_commands:waves",
        "Plan several waves of a survey (JSON in a file or on standard input).",
    ),
    "verify": (
        "frankly_server.cli.json_commands:verify",
        "Verify a claim or a document (JSON in a file or on standard input).",
    ),
    "demo": (
        "frankly_server.cli.demo:demo",
        "Run an example survey end to end, with simulated devices.",
    ),
}


COMPLETE: Final = "_FRANKLY_COMPLETE"
"""Environment variable of click's completion."""
_WRITABLE: Final = "may this user write there, and is the disk writable?"
_WAYS_OUT: Final = {
    errno.ENOSPC: "make room, and try again",
    errno.EDQUOT: "make room, and try again",
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EIO: "the disk fails: see the system log",
}
"""Operating system error number -> remedy for the operator."""


class Verbs(click.Group):
    """A command group that imports the module of a command when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs in the order in which a new admin needs them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return a verb, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs, or the options, that begin with `incomplete`, without importing verbs."""
        verbs = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in VERBS.items()
            if name.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    __version__, message="frankly %(version)s", help="Show the version, which all packages share."
)
def cli() -> None:
    """Ask sensitive questions without ever holding the answers.

    \b
    A first survey:
      frankly keys init
      frankly migrate
      frankly survey apply survey.yaml
      frankly survey publish NAME
      frankly serve
    """  # noqa: D301 - click needs the unescaped \b


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its exit code."""
    # Shells ask for completions in this variable (docs/operations.md).
    if wanted := os.environ.get(COMPLETE):
        try:
            sys.exit(shell_complete(cli, {}, "frankly", COMPLETE, wanted))
        except (KeyError, ValueError):  # not the variables of a shell that completes
            sys.exit(exits.USAGE)
    # Commands print errors as messages; only `serve` writes log lines.
    logs.configure(level=logging.CRITICAL)
    sys.exit(run(list(sys.argv[1:] if argv is None else argv)))


def run(arguments: list[str], command: click.Command = cli, name: str = "frankly") -> int:
    """Run a command line; return its exit code. Errors go to stderr, as JSON with --json."""
    as_json = "--json" in arguments
    try:
        # Not click's own main(), which reports a closed pipe as a failure.
        with command.make_context(name, arguments) as context:
            command.invoke(context)
        sys.stdout.flush()
        return exits.OK
    except click.exceptions.Exit as done:
        return done.exit_code
    except FranklyError as error:
        exits.write_error(error, as_json=as_json)
        return exits.exit_code(error)
    except click.ClickException as error:
        return _usage(error, as_json)
    except (click.Abort, KeyboardInterrupt):
        click.echo("frankly: interrupted; completed steps are kept", err=True)
        return exits.INTERRUPTED
    except BrokenPipeError:
        # A reader that closes the pipe, as in `frankly … | head`, is not an error. Stdout becomes
        # /dev/null so that the flush at exit does not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except Exception as error:  # noqa: BLE001 - no traceback ever reaches a terminal
        refused = _refused_by_disk(error)
        exits.write_error(refused or _fault(error), as_json=as_json)
        return exits.BAD_INPUT if refused else exits.FAULT


def _usage(error: click.ClickException, as_json: bool) -> int:
    """Show click's message about a wrong command line."""
    if as_json:
        exits.write_error(InvalidInput(Problem.USAGE, error.format_message()), as_json=True)
    else:
        error.show()
    return exits.USAGE


def _refused_by_disk(error: Exception) -> FranklyError | None:
    """Return a FranklyError if the disk or file permissions caused `error`, else None."""
    if not isinstance(error, OSError) or error.errno not in _WAYS_OUT:
        return None
    return FranklyError(
        f"{error.strerror}: nothing is half written; {_WAYS_OUT[error.errno]}",
        code="disk",
        field=str(error.filename or "a file"),
    )


def _fault(error: Exception) -> FranklyError:
    """Return an error with the type and location of `error`, whose message might quote an input."""
    place = logs.code_place(error.__traceback__)
    return FranklyError(
        f"internal error: {type(error).__name__} at {place}; please report it", code="internal"
    )
