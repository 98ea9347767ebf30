# SPDX-License-Identifier: Apache-2.0
"""Guides, followed as written: the tests save files, run commands and compare outputs.

Random numbers differ between runs; the text around them does not. `--full` starts a process for
each command. After a change, run `python -m tests.docs.session docs/run_a_survey.md
docs/analyse.md`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.registry import BLOCKS, GUIDES
from tests.docs.session import Session, shape
from tools.blocks import Block, blocks
from tools.follow import PORT
from tools.newcomer import TASKS, Task, size_of, steps


@pytest.fixture
def session(tmp_path: Path, full: bool) -> Iterator[Session]:
    opened = Session(tmp_path, literal=full)
    yield opened
    opened.close()


def follow(session: Session, page: Path) -> None:
    outputs = session.follow(page.read_text(encoding="utf-8"))
    assert outputs
    for promised, printed in outputs:
        assert shape(printed) == shape(promised)


def test_a_survey_from_a_pilot_to_a_cross_table(session: Session, root: Path) -> None:
    follow(session, root / "docs" / "run_a_survey.md")
    assert (session.folder / "survey.yaml").exists()
    follow(session, root / "docs" / "analyse.md")
    assert (session.folder / "crosstab.csv").read_text().count("\n") == 1 + 2 * 4
    the_snippets_of(session, root / "docs" / "results.md", 5)
    the_snippets_of(session, root / "docs" / "estimates.md", 1)


def the_snippets_of(session: Session, page: Path, count: int) -> None:
    """Run the Python blocks that the registry assigns to this test, with names defined by earlier guides."""
    names = {
        "url": session.local(f"http://127.0.0.1:{PORT}"),
        "key": (session.folder / "key.txt").read_text().split()[-1],
        "survey": json.loads((session.folder / "surveys.json").read_text())["surveys"][0]["survey"],
    }
    name = f"docs/{page.name}"
    starts = [start for (of, start), fate in BLOCKS.items() if of == name and fate == GUIDES]
    snippets = [
        block.body
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.language == "python" and block.body.startswith(tuple(starts))
    ]
    assert len(snippets) == count
    for snippet in snippets:
        exec(compile(snippet, page.name, "exec"), names)


@pytest.mark.parametrize("page", ["embed", "tour"])
def test_a_separate_guide(session: Session, root: Path, page: str) -> None:
    follow(session, root / "docs" / f"{page}.md")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.page)
def test_a_newcomers_task_is_short(root: Path, task: Task) -> None:
    """A task needs at most 10 commands, including the installation, and files of 30 lines;
    measured.md has the figures."""
    page = (root / "docs" / f"{task.page}.md").read_text(encoding="utf-8")
    followed = list(steps(page, task.until))
    assert followed[-1] == (task.until, False)
    commands, lines = size_of(page, task.until)
    assert commands <= 10
    assert all(
        len(step.body.splitlines()) - 1 <= 30 for step in followed if isinstance(step, Block)
    )
    measured = (root / "docs" / "measured.md").read_text(encoding="utf-8")
    assert f"| {task.words} | {commands} | {lines} | " in measured
