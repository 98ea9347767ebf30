# SPDX-License-Identifier: Apache-2.0
"""Command `frankly demo`: the process it starts, and its error without a checkout."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from frankly_server.cli import demo, front


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    seen: list[tuple[list[str], str]] = []

    def run(
        command: list[str], *, env: dict[str, str], **_: Any
    ) -> subprocess.CompletedProcess[str]:
        seen.append((command, env["PYTHONPATH"]))
        return subprocess.CompletedProcess(command, 7)

    monkeypatch.setattr(subprocess, "run", run)
    return seen


@pytest.mark.parametrize(
    "arguments", [[], ["multi"], ["workplace", "--respondents", "200"], ["--home", "x"]]
)
def test_it_starts_the_examples_of_the_checkout_and_passes_on_their_exit_code(
    started: list[tuple[list[str], str]], root: Path, arguments: list[str]
) -> None:
    assert front.run(["demo", *arguments]) == 7
    [(command, path)] = started
    assert command[1:] == ["-m", "examples.demo", *arguments]
    assert path == str(root)


def test_without_a_checkout_it_says_where_the_demo_is(
    started: list[tuple[list[str], str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        demo, "__file__", str(tmp_path / "site-packages/frankly_server/cli/demo.py")
    )
    assert front.run(["demo"]) == 2
    assert "python3 run.py setup" in capsys.readouterr().err
    assert not started
