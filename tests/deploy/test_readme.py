# SPDX-License-Identifier: Apache-2.0
"""The README's commands and snippets, run as they stand: an admin's first survey, an answer, a first query."""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import free_port


def _blocks(root: Path, language: str) -> list[str]:
    text = (root / "README.md").read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who follows the README, with a home and a port of this test's own."""
    port = free_port()
    settings = {"FRANKLY_HOME": str(tmp_path / "frankly"), "FRANKLY_PORT": str(port)}
    return {**os.environ, **settings, "FRANKLY_PUBLIC_URL": f"http://127.0.0.1:{port}"}


def _run(root: Path, script: str, shell: dict[str, str]) -> str:
    done = subprocess.run(["bash", "-euc", script], cwd=root, env=shell, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    return done.stdout


def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError("the server did not start")


def _answer(snippet: str, link: str, store: Path) -> str:
    """Run the three-line start as it stands, with a real link and a store of its own; return the receipt's status."""
    names: dict[str, Any] = {}
    snippet = snippet.replace("https://ask.example.org/s/ID#sha256=…", link).replace("answers.db", str(store))
    exec(snippet, names)
    return str(names["receipt"].status)


def test_the_readme_can_be_followed_from_keys_to_estimates(
    root: Path, tmp_path: Path, shell: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    admin, analyst, machine = (block for block in _blocks(root, "") if ".venv/bin/frankly " in block)
    start, query = _blocks(root, "python")
    lines = [line for line in admin.splitlines() if not line.startswith("export")]
    assert lines.pop() == ".venv/bin/frankly serve"
    _run(root, "\n".join(lines), shell)
    (survey,) = json.loads(_run(root, ".venv/bin/frankly survey list --json", shell))["surveys"]

    serving = subprocess.Popen([root / ".venv" / "bin" / "frankly", "serve"], cwd=root, env=shell)
    try:
        _wait_for(shell["FRANKLY_PUBLIC_URL"])
        statuses = [_answer(start, survey["link"], tmp_path / f"{i}.db") for i in range(100)]
        assert statuses == ["sent"] * 100
        assert "Have you had an affair while married?" in capsys.readouterr().out

        assert "Teacher, nurse, artist, technician" in _run(root, analyst, shell)
        key = _run(root, ".venv/bin/frankly keys api --role analyst --label me", shell).strip()
        names: dict[str, Any] = {"key": key, "survey_id": survey["survey"]}
        exec(query.replace("http://127.0.0.1:8000", shell["FRANKLY_PUBLIC_URL"]), names)
        assert len(capsys.readouterr().out.splitlines()) == 2 + 6 + 5 + 6
    finally:
        serving.terminate()
        assert serving.wait(timeout=20) == 0
    assert json.loads(_run(root, machine, shell))["rank"] == 2
