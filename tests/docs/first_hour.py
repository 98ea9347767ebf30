# SPDX-License-Identifier: Apache-2.0
"""Runner of docs/first_hour_analyst.md, which follows the page as written and times every step.

`python -m tests.docs.first_hour` prints the times; with `--write` it also writes the outputs into
the page. The R steps are left out if Rscript is missing.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.docs.session import Session
from tests.frankly_analyst.desk import filled, serving

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "first_hour_analyst.md"
REPORTS: Final = 2400
KEY, PYTHON, R = "The key", "In Python", "In R"


@dataclass
class Step:
    """A heading of the page, with its duration in seconds and its (promised, printed) outputs."""

    part: str
    name: str
    seconds: float
    commands: int
    outputs: list[tuple[str, str]] = field(default_factory=list)


def sections(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield (part, heading, text) for every second-level and third-level heading."""
    part = ""
    for text in re.split(r"^(?=#{2,3} )", page, flags=re.MULTILINE):
        level, _, rest = text.partition(" ")
        heading = rest.partition("\n")[0]
        part = heading if level == "##" else part
        yield part, heading, text


def follow(folder: Path, *, parts: tuple[str, ...], write: Path | None = None) -> list[Step]:
    """Run the steps of these parts of the page against a filled survey.

    write : the page's file, which is rewritten with the printed outputs.
    """
    home = folder / "server"
    home.mkdir()
    session, steps = Session(folder, literal=True), []
    page = PAGE.read_text(encoding="utf-8")
    site = filled(home, REPORTS)
    session.environment |= {"FRANKLY_HOME": str(home)}
    if R in parts:
        session.environment |= {"R_LIBS_USER": str(_installed(folder)), "LC_ALL": "C.UTF-8"}
    with serving(site) as environment:
        session.port = urlsplit(environment["FRANKLY_URL"]).port or 0
        for part, heading, text in sections(page):
            if part not in parts or "```sh" not in text or "<!-- not run" in text:
                continue
            written = folder / "section.md"
            start, before = time.perf_counter(), session.commands
            outputs = session.follow(text, write=written)
            steps.append(
                Step(part, heading, time.perf_counter() - start, session.commands - before, outputs)
            )
            page = page.replace(text, written.read_text(encoding="utf-8"))
    session.close()
    if write is not None:
        write.write_text(page, encoding="utf-8")
    return steps


def _installed(folder: Path) -> Path:
    library = folder / "library"
    library.mkdir()
    command = ["R", "CMD", "INSTALL", "-l", str(library), str(ROOT / "analyst" / "r")]
    subprocess.run(command, check=True, capture_output=True)
    return library


def printed(steps: list[Step]) -> str:
    """Return the times as a table."""
    lines = [f"{step.part:<10} {step.name:<28} {step.seconds:6.1f} s" for step in steps]
    for part in dict.fromkeys(step.part for step in steps):
        total = sum(step.seconds for step in steps if step.part == part)
        lines.append(f"{part:<10} {'all':<28} {total:6.1f} s")
    return "\n".join(lines)


if __name__ == "__main__":
    chosen = (KEY, PYTHON, R) if shutil.which("Rscript") else (KEY, PYTHON)
    with tempfile.TemporaryDirectory() as scratch:
        write = PAGE if "--write" in sys.argv else None
        sys.stdout.write(printed(follow(Path(scratch), parts=chosen, write=write)) + "\n")
