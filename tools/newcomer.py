# SPDX-License-Identifier: Apache-2.0
"""A newcomer's three tasks, done only with the pages: python3 -m tools.newcomer [--port N].

The tool runs every command and saves every file of a page up to the command that ends the task,
including installation. It uses an empty home folder, the machine's python3 and a fresh clone of the
last commit, and prints the numbers of commands, lines and seconds of each task.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.blocks import Block, blocks
from tools.follow import PORT, Failed, Shell

ROOT: Final = Path(__file__).resolve().parents[1]


class Task(NamedTuple):
    """A page, followed from its top to the command `until`, which ends the task."""

    words: str
    page: str
    until: str


TASKS: Final = (
    Task("embed in a Flask app", "embed", "python try_app.py"),
    Task("publish a LIP survey from a CSV pilot", "run_a_survey", "frankly survey publish habits"),
    Task("get a cross-table into pandas", "analyse", "python crosstab.py"),
)


def steps(page: str, until: str | None = None) -> Iterator[Block | tuple[str, bool]]:
    """Yield the steps of a page: files to save, and commands, with True for installations."""
    for block in blocks(page):
        if block.name is not None and block.language != "sh":
            yield block
        elif block.language == "sh":
            for line in block.commands:
                yield line, block.why is not None
                if line == until:
                    return


def size_of(page: str, until: str) -> tuple[int, int]:
    """Return the numbers of commands and of lines of files (without the name) of a task."""
    page_steps = list(steps(page, until))
    files = [step for step in page_steps if isinstance(step, Block)]
    return len(page_steps) - len(files), sum(len(file.body.splitlines()) - 1 for file in files)


def perform(shell: Shell, checkout: Path, steps_to_do: Iterator[Block | tuple[str, bool]]) -> float:
    """Save files and run commands, installations in the checkout; return seconds. Raises Failed."""
    start, folder = time.monotonic(), shell.folder
    for step in steps_to_do:
        if isinstance(step, Block):
            (folder / str(step.name)).write_text(shell.local(step.body), encoding="utf-8")
            continue
        line, installs = step
        shell.folder = checkout if installs else folder
        shell.run(line)
        shell.folder = folder
    return time.monotonic() - start


def try_all(scratch: Path, port: int) -> None:
    """Do the three tasks in an empty home. Raises Failed."""
    checkout = scratch / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)  # noqa: S603, S607
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
    }
    home = {
        "HOME": str(scratch),
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    (scratch / "app-folder").mkdir()
    (scratch / "survey").mkdir()
    app, survey = (
        Shell(scratch / name, {**environment, **home}, port) for name in ("app-folder", "survey")
    )
    try:
        for task, shell in zip(TASKS, (app, survey, survey), strict=True):
            page = (checkout / "docs" / f"{task.page}.md").read_text(encoding="utf-8")
            seconds = perform(shell, checkout, steps(page, task.until))
            commands, lines = size_of(page, task.until)
            sys.stdout.write(f"| {task.words} | {commands} | {lines} | {seconds:.0f} |\n")
            sys.stdout.flush()
            if task.page == "run_a_survey":  # the next task needs a server with reports
                perform(
                    survey, checkout, iter(list(steps(page))[len(list(steps(page, task.until))) :])
                )
    finally:
        survey.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Do the tasks and print a table row for each; exit 1 with the message of a failure."""
    parser = argparse.ArgumentParser(description="A newcomer's three tasks, timed.")
    parser.add_argument("--port", type=int, default=PORT, help="port of the server instead of 8000")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="newcomer-") as scratch:
        try:
            try_all(Path(scratch), options.port)
        except Failed as failed:
            sys.exit(f"failed: {failed}")


if __name__ == "__main__":
    main()
