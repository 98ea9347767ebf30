# SPDX-License-Identifier: Apache-2.0
"""Command `frankly evidence`: the folder, and refusals that leave nothing behind."""

import errno
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from frankly_server.evidence import FILES

from tests.contract.test_arms import FILE as ARMS
from tests.frankly_server.cli.conftest import Frankly


@pytest.fixture
def published(ready: Frankly, survey_file: Path) -> Frankly:
    """A server with a published survey, and a draft."""
    assert ready("survey", "apply", survey_file).code == 0
    assert ready("survey", "publish", "habits").code == 0
    survey_file.write_text(survey_file.read_text().replace("name: habits", "name: draft"))
    assert ready("survey", "apply", survey_file).code == 0
    return ready


def test_the_folder_is_written_for_a_name_and_for_an_id(published: Frankly, tmp_path: Path) -> None:
    listed = published("survey", "list", "--json").json["surveys"]
    survey = next(line["survey"] for line in listed if line["name"] == "habits")
    for text, out in (("habits", tmp_path / "a"), (survey, tmp_path / "b")):
        written = published("evidence", text, "--out", out, "--json")
        assert written.code == 0, written.err
        assert written.json == {"files": [str(out / name) for name in FILES]}
        assert all((out / name).stat().st_size for name in FILES)


# Name -> (arguments after `evidence`, code, field, words of the way out)
REFUSED: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    "an unknown survey": (("nobody", "--out", "new"), "survey_unknown", "survey", "frankly survey list"),
    "a draft": (("draft", "--out", "new"), "not_found", "survey", "frankly survey publish"),
    "an unknown language": (("habits", "--language", "fr", "--out", "new"), "field_type", "language", "en"),
    "a folder with a file": (("habits", "--out", "full"), "file_exists", "out", "not empty"),
    "a file": (("habits", "--out", "full/mine.txt"), "file_exists", "out", "not a folder"),
    "a link": (("habits", "--out", "link"), "file_exists", "out", "not a folder"),
    "no folder above": (("habits", "--out", "no/new"), "usage", "out", "make it first"),
    "a file above": (("habits", "--out", "full/mine.txt/new"), "usage", "out", "make it first"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a folder that is not empty and a link to nowhere."""
    current = tmp_path / "here"
    (current / "full").mkdir(parents=True)
    (current / "full" / "mine.txt").write_text("mine")
    (current / "link").symlink_to("nowhere")
    monkeypatch.chdir(current)
    return current


def test_refusals_name_the_field_and_write_nothing(published: Frankly, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    for name, (arguments, code, field, words) in REFUSED.items():
        refused = published("evidence", *arguments, "--json")
        # Wrong use of a command has its own exit code.
        assert refused.code == (2 if code == "usage" else 3), name
        assert (refused.problem["code"], refused.problem["field"]) == (code, field), name
        assert words in refused.problem["detail"], name
        assert sorted(folder.rglob("*")) == before, name
    assert (folder / "full" / "mine.txt").read_text() == "mine"


def test_a_survey_with_arms_is_refused_and_nothing_is_written(
    ready: Frankly, folder: Path, tmp_path: Path
) -> None:
    """The folder would state one level and one list of questions, which no arm has."""
    # Without its times, which have passed.
    text = re.sub(r"(?m)^(opens|closes|expires): .*\n", "", ARMS.decode())
    (tmp_path / "arms.yaml").write_text(text)
    assert ready("survey", "apply", tmp_path / "arms.yaml").code == 0
    assert ready("survey", "publish", "split").code == 0
    refused = ready("evidence", "split", "--out", "new", "--json")
    assert refused.code == 3
    assert (refused.problem["code"], refused.problem["field"]) == ("unsupported", "survey")
    assert "written for surveys without arms only" in refused.problem["detail"]
    assert not (folder / "new").exists()


def test_a_folder_without_permission_is_named(
    published: Frankly, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", "secret-temporary-name")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    refused = published("evidence", "habits", "--out", "new", "--json")
    assert (refused.code, refused.problem["code"], refused.problem["field"]) == (3, "disk", "new")
    assert "may this user write there" in refused.problem["detail"]
    assert not (folder / "new").exists()
