# SPDX-License-Identifier: Apache-2.0
"""Follow a page as a newcomer: run its commands and Python in order, servers in the background.

    python3 -m tools.follow docs/first_survey.md [--without WORDS]... [--port N]

The tool needs only Python, so it can run before anything is installed. Like a reader, it fills in
the link printed by `survey publish` and the key printed by `keys api`. tools/bare_root.py runs it
in an empty Debian.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.blocks import blocks

PORT: Final = 8000
"""The port written in pages; --port replaces it everywhere."""
PYTHONS: Final = {"frankly_sdk": "~/app/bin/python", "frankly_analyst": ".venv/bin/python"}
"""Package that a snippet imports → its Python: that of an app's environment or the checkout's."""
LINK: Final = "https://ask.example.org/s/ID#sha256=…"
_PUBLISHED: Final = re.compile(r"https?://\S+/s/(?P<survey>[0-9a-f]{32})#sha256=[0-9a-f]{64}")
_KEY: Final = re.compile(r"frankly_live_[\w-]+")


class Failed(Exception):
    """A command or a snippet failed; the message contains its output."""


class Shell:
    """A terminal: a folder, an environment, and at most one server in the background."""

    def __init__(self, folder: Path, environment: Mapping[str, str], port: int) -> None:
        self.folder, self.environment, self.port = folder, {**environment}, port
        self._server: subprocess.Popen[bytes] | None = None

    def run(self, line: str) -> str:
        """Run one command line and return its standard output. Raises Failed."""
        arguments = shlex.split(line, comments=True)
        if arguments[0] == "export":
            for word in arguments[1:]:
                name, _, value = word.partition("=")
                self.environment[name] = self.bash(f'{name}={value}; printf %s "${name}"')
            return ""
        if arguments[-1] == "&":
            self._serve(arguments[:-1])
            return ""
        return self.bash(line)

    def bash(self, line: str) -> str:
        """Run one line with bash and return its standard output. Raises Failed with all output."""
        command = ["bash", "-euo", "pipefail", "-c", self.local(line)]
        return self.process(command, self.folder)

    def process(self, command: Sequence[str], folder: Path, stdin: str | None = None) -> str:
        """Run a program in `folder` with `stdin` as its input; return its output. Raises Failed."""
        result = subprocess.run(  # noqa: S603 - a page's own commands
            command,
            cwd=folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise Failed(
                f"{shlex.join(command)}\nexit code {result.returncode}\n{result.stdout}\n{result.stderr}"
            )
        return result.stdout

    def local(self, text: str) -> str:
        """Return a page's text with this terminal's port."""
        return text.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{self.port}")

    def close(self) -> None:
        """Stop the server with SIGTERM. Raises Failed if its exit code is not 0."""
        server, self._server = self._server, None
        if server is None or server.poll() is not None:
            return
        server.terminate()
        if code := server.wait(timeout=120):
            raise Failed(f"the server ended with exit code {code}")

    def _serve(self, command: list[str]) -> None:
        environment = {**self.environment, "FRANKLY_PORT": str(self.port)}
        log = Path(self.environment.get("FRANKLY_HOME", self.folder)) / "server.log"
        with log.open("wb") as file:
            self._server = subprocess.Popen(  # noqa: S603
                command, cwd=self.folder, env=environment, stdout=file, stderr=file
            )  # noqa: RUF100, S603
        for _ in range(2400):
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health"):
                return
            if self._server.poll() is not None:
                break
            time.sleep(0.05)
        raise Failed(f"the server did not start\n{log.read_text()}")


class Reader:
    """Runs all blocks of one page.

    without : command lines with one of these texts are skipped and listed in `left_out`.
    """

    def __init__(self, shell: Shell, *, without: Sequence[str] = ()) -> None:
        self._shell, self._without = shell, without
        self._link = self._key = ""
        self.done: list[str] = []
        self.left_out: list[str] = []

    def follow(self, page: str) -> None:
        """Run every block of a page in order; those for a shell are marked `sh`. Raises Failed."""
        for block in blocks(page):
            if block.language == "python":
                self._snippet(block.body)
                continue
            if block.language != "sh":
                raise Failed(f"this block is neither sh nor python: {block.body}")
            for line in block.commands:
                self._command(line)

    def _command(self, line: str) -> None:
        if any(text in line for text in self._without):
            self.left_out.append(line)
            _say(f"left out: {line}")
            return
        printed = self._timed(line, lambda: self._shell.run(line))
        if match := _PUBLISHED.search(printed):
            self._link = match[0]
        if match := _KEY.search(printed):
            self._key = match[0]

    def _snippet(self, body: str) -> None:
        published = _PUBLISHED.fullmatch(self._link)
        if published is None:
            raise Failed(f"no link was published before this snippet:\n{body}")
        names = f"key, survey_id = {self._key!r}, {published['survey']!r}\n"
        code = self._shell.local(body.replace(LINK, self._link))
        self._timed(f"python: {body.splitlines()[0]} …", lambda: self._python(names + code))

    def _python(self, code: str) -> str:
        [place] = [place for package, place in PYTHONS.items() if package in code]
        home = Path(self._shell.environment["HOME"])
        python = home / place[2:] if place.startswith("~/") else self._shell.folder / place
        return self._shell.process([str(python), "-"], home, code)

    def _timed(self, title: str, work: Callable[[], str]) -> str:
        start = time.monotonic()
        printed = work()
        self.done.append(title)
        _say(f"{time.monotonic() - start:7.1f} s  {title}")
        return printed


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Follow one page in this folder; exit 1 with the output of the command that failed."""
    parser = argparse.ArgumentParser(description="Follow a page, command by command.")
    parser.add_argument("page", type=Path)
    parser.add_argument(
        "--without", action="append", default=[], metavar="WORDS", help="skip lines with WORDS"
    )
    parser.add_argument("--port", type=int, default=PORT, help="port of servers instead of 8000")
    options = parser.parse_args(arguments)
    shell = Shell(Path.cwd(), os.environ, options.port)
    reader, start = Reader(shell, without=options.without), time.monotonic()
    try:
        try:
            reader.follow(options.page.read_text(encoding="utf-8"))
        finally:
            shell.close()
    except Failed as failed:
        sys.exit(f"failed: {failed}")
    _say(
        f"{len(reader.done)} commands and snippets, {len(reader.left_out)} left out, {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
