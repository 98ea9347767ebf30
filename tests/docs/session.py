# SPDX-License-Identifier: Apache-2.0
"""Sessions that follow a page as a reader would: save its files, run its commands, compare their
output.

`python -m tests.docs.session docs/embed.md` follows a page and writes the output into its blocks.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from frankly_server.cli import front

from tests.ports import free_port
from tools.blocks import blocks
from tools.follow import PORT, Shell

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
_PLAIN = re.compile(
    r"(?:echo '(?P<input>[^']*)' \| )?frankly (?P<verb>[^|<>$`*;&]+?)(?: > (?P<file>[\w.]+))?"
)
"""Commands that need no shell, with optional input and output file."""


class Session(Shell):
    """A shell for one page, or for several pages that continue each other.

    literal : start a process for every `frankly` command; otherwise only servers run as processes.
    """

    def __init__(self, folder: Path, *, literal: bool) -> None:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("FRANKLY_")
        }
        overrides = {"PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "100"}
        super().__init__(folder, {**inherited, **overrides}, free_port())
        self._literal = literal
        self.commands = 0

    def follow(self, page: str, *, write: Path | None = None) -> list[tuple[str, str]]:
        """Run every block of a page in order; return (promised, printed) for every block of output.

        write : the page's file, which is rewritten with the output.
        """
        printed, outputs, pieces, copied_to = "", [], [], 0
        for block in blocks(page):
            if block.why is not None:
                continue
            if block.language == "text":
                outputs.append((block.body, printed))
                pieces += [page[copied_to : block.start], printed]
                copied_to, printed = block.end, ""
            elif block.name is not None:
                (self.folder / block.name).write_text(self.local(block.body), encoding="utf-8")
            elif block.language == "sh":
                printed = "".join(self.typed(line) for line in block.commands)
            else:
                raise AssertionError(f"neither file nor command nor output: {block.body}")
        if write is not None:
            write.write_text("".join([*pieces, page[copied_to:]]), encoding="utf-8")
        return outputs

    def typed(self, line: str) -> str:
        """Run one command line and return its output, with the page's port and paths."""
        self.commands += 1
        front_command = None if self._literal else _PLAIN.fullmatch(line)
        printed = self._front(front_command) if front_command is not None else self.run(line)
        portable = printed.replace(f":{self.port}", f":{PORT}").replace(str(self.folder), "~")
        return "".join(f"{text.rstrip()}\n" for text in portable.splitlines())

    def _front(self, line: re.Match[str]) -> str:
        outer, outer_stdin = dict(os.environ), sys.stdin
        # A stream with `buffer`, because commands write results as bytes
        out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        try:
            os.environ.clear()
            os.environ.update(self.environment)
            sys.stdin = io.TextIOWrapper(io.BytesIO((line["input"] or "").encode()))
            with (
                contextlib.chdir(self.folder),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                code = front.run(shlex.split(line["verb"]))
        finally:
            os.environ.clear()
            os.environ.update(outer)
            sys.stdin = outer_stdin
        assert code == 0, f"{line[0]}\n{err.getvalue()}"
        out.seek(0)
        printed = out.read()
        if line["file"] is None:
            return printed
        (self.folder / line["file"]).write_text(printed, encoding="utf-8")
        return ""


def shape(text: str) -> str:
    """Return an output without random names and estimates, which differ between runs."""
    text = re.sub(r"[0-9a-f]{16,}|[A-Za-z0-9_-]{40,}", "H", text)
    text = re.sub(r'"y":\[\d\]', '"y":[N]', text)
    if not re.search(r"% ±|% to [\d−-]|│ +[\d.−]+% +│|\bestimate +low\b|\ball \d+ bytes\b", text):
        return text
    text = re.sub(r"[−-]?\d+(\.\d+)?", "N", text)
    text = re.sub(
        r"\b(imprecise|[a-z]+(_[a-z]+)+)\b,?|[][]", "", text
    )  # flags depend on random numbers
    return re.sub(r"[\s━─═┃│┌┐└┘├┤┬┴┼┏┓┗┛┡┩╇┳┻╈]+", " ", text).strip()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        session = Session(Path(scratch), literal=False)
        try:
            for name in sys.argv[1:]:
                page = Path(name)
                session.follow(page.read_text(encoding="utf-8"), write=page)
        finally:
            session.close()
