# SPDX-License-Identifier: Apache-2.0
"""Follow a page as a newcomer does: type its commands in order, run its Python, leave servers in the background.

    python3 -m tools.follow README.md [--without WORDS]... [--port N]

It needs nothing but Python, so that it runs where nothing is installed yet. What a reader fills in is filled in: the
link that `survey publish` printed, the key that `keys api` printed. tools/bare_root.py runs it in an empty Debian.
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
"""The port that pages name; another one is put in its place wherever it is written."""
PYTHONS: Final = {"frankly_sdk": "~/app/bin/python", "frankly_analyst": ".venv/bin/python"}
"""What a snippet imports → the Python it is for: an app's own environment, or the checkout's."""
LINK: Final = "https://ask.example.org/s/ID#sha256=…"
_PUBLISHED: Final = re.compile(r"https?://\S+/s/(?P<survey>[0-9a-f]{32})#sha256=[0-9a-f]{64}")
_KEY: Final = re.compile(r"frankly_live_[\w-]+")


class Failed(Exception):
    """A command or a snippet did not succeed; the message says what it printed."""


class Shell:
    """One reader's terminal: a folder, an environment, and at most one server in the background."""

    def __init__(self, folder: Path, environment: Mapping[str, str], port: int) -> None:
        self.folder, self.environment, self.port = folder, {**environment}, port
        self._server: subprocess.Popen[bytes] | None = None

    def run(self, line: str) -> str:
        """Run one command line; return what it printed on standard output. Raises Failed."""
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
        """Run one line by bash and return what it printed; raises Failed with both its outputs."""
        command = ["bash", "-euo", "pipefail", "-c", self.local(line)]
        return self.process(command, self.folder)

    def process(self, command: Sequence[str], folder: Path, stdin: str | None = None) -> str:
        """Run a program in `folder` with `stdin` as its input; return what it printed. Raises Failed."""
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
        """Stop the server as a reader does, and see that it ends well. Raises Failed."""
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
    """Reads one page to its end.

    without : command lines that contain one of these words are left out, and said to be.
    respondents : how many answer by the snippet that answers, each with a store of its own; surveys show no number
        for fewer than their minimum.
    """

    def __init__(
        self, shell: Shell, *, without: Sequence[str] = (), respondents: int = 100
    ) -> None:
        self._shell, self._without, self._respondents = shell, without, respondents
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
                raise Failed(f"what is this block for? {block.body}")
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
        if "client.answer(" in code and self._respondents > 1:
            loop = (
                f"for i in range({self._respondents - 1}):\n    exec(code.replace('answers.db', "
                f"f'answers-{{i}}.db'))"
            )
            title = f"{self._respondents - 1} others answer by the same lines"
            self._timed(title, lambda: self._python(f"code = {code!r}\n{loop}"))

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
    """Follow one page in the folder it is in; exit code 1 with the words of the command that failed."""
    parser = argparse.ArgumentParser(description="Follow a page, command by command.")
    parser.add_argument("page", type=Path)
    parser.add_argument(
        "--without", action="append", default=[], metavar="WORDS", help="leave out lines with WORDS"
    )
    parser.add_argument("--port", type=int, default=PORT, help="for servers, in place of 8000")
    options = parser.parse_args(arguments)
    shell = Shell(options.page.resolve().parent, os.environ, options.port)
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
