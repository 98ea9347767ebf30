# SPDX-License-Identifier: Apache-2.0
"""`frankly demo`: run an example survey of a checkout end to end, in a child process."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

_DEMO = Path("examples/demo/__main__.py")


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("survey", required=False)
@click.pass_context
def demo(context: click.Context, survey: str | None) -> None:
    """Run SURVEY (redbook, affairs, workplace or multi) end to end: server, devices, analyst.

    \b
    --respondents N   let only the first N answer (at least 100)
    --home FOLDER     folder of keys, database and devices (.demo in the checkout)
    --report FILE     file of the result page (demo-report.html in the checkout)

    The devices use frankly-sdk, and the data come with statsmodels. Run the demo in a checkout of
    Frankly, where `python3 run.py demo` installs both.
    """  # noqa: D301 - click needs the unescaped \b
    environment = {**os.environ, "PYTHONPATH": str(_checkout())}
    command = [sys.executable, "-m", "examples.demo", *([survey] if survey else []), *context.args]
    raise click.exceptions.Exit(subprocess.run(command, env=environment, check=False).returncode)  # noqa: S603


def _checkout() -> Path:
    """Return the checkout that contains the current folder, else the one with this module."""
    # An installed server carries what the demo would import by its own name.
    is_whole = all(find_spec(name) for name in ("frankly_protocol", "frankly_analyst"))
    for folder in (Path.cwd(), *Path.cwd().parents, *Path(__file__).resolve().parents):
        if is_whole and (folder / _DEMO).is_file():
            return folder
    raise InvalidInput(
        Problem.USAGE,
        "the demo is in Frankly's source: run it in a checkout, after `python3 run.py setup`",
        "demo",
    )
