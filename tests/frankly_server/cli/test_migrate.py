# SPDX-License-Identifier: Apache-2.0
"""A server knows its database: `serve`, `migrate`, `restore` and `doctor` on the right and the wrong one."""

import json
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from frankly_server.cli import front
from frankly_server.cli.services import open_services
from frankly_server.log import noted_head
from frankly_server.store import Database

from tests.frankly_server.cli.conftest import Done, Frankly
from tests.frankly_server.samples import published
from tests.migrated import migrated

ENTRIES = 3


def fill(path: Path, first: int, count: int = ENTRIES) -> Database:
    """Return a migrated SQLite database at `path` with a log of `count` documents."""
    database = migrated(f"sqlite:///{path}")
    for i in range(first, first + count):
        document = published(database, survey_id=f"{i:08x}" * 4)
        with database.transaction("log") as tx:
            tx.log.append(document.digest)
    return database


def start() -> None:
    """Check what `frankly serve` checks, in this process."""
    with open_services() as services:
        services.check_start()


@pytest.fixture
def known(frankly: Frankly, home: Path) -> Frankly:
    """A server with keys, whose key folder notes a log of three entries."""
    assert frankly("keys", "init", "--yes").code == 0
    fill(home / "frankly.db", 0).close()
    start()
    assert size_noted(home) == ENTRIES
    return frankly


def size_noted(home: Path) -> int:
    return int(json.loads((home / "keys" / "log-head.json").read_bytes())["size"])


def missing(_path: Path) -> None:
    pass


def without_tables(path: Path) -> None:
    sqlite3.connect(path).close()


def without_entries(path: Path) -> None:
    migrated(f"sqlite:///{path}").close()


def older(path: Path) -> None:
    fill(path, 0, 2).close()


def another(path: Path) -> None:
    fill(path, 7, 5).close()


WRONG: list[tuple[Callable[[Path], None], str]] = [
    (missing, "is empty"), (without_tables, "is empty"), (without_entries, "is empty"),
    (older, "has 2 entries: an older or another"), (another, "has 5 other entries"),
]  # fmt: skip
WITH_TABLES = WRONG[2:]


def at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRANKLY_DATABASE_URL", f"sqlite:///{path}")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tables(path: Path) -> list[str] | None:
    """Return the names of the tables, None if there is no file."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_migrate_stops_on_a_wrong_database_and_changes_nothing(
    known: Frankly,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    words: str,
) -> None:
    wrong = tmp_path / "wrong.db"
    make(wrong)
    before = tables(wrong), files(home / "keys")
    at(wrong, monkeypatch)
    result = known("migrate", "--json")
    assert_refused(result, words)
    assert (tables(wrong), files(home / "keys")) == before
    # The way out: the right database.
    monkeypatch.delenv("FRANKLY_DATABASE_URL")
    assert known("migrate").code == 0
    start()


@pytest.mark.parametrize(("make", "words"), WITH_TABLES)
def test_serve_does_not_start_on_a_wrong_database(
    known: Frankly,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    words: str,
) -> None:
    make(tmp_path / "wrong.db")
    at(tmp_path / "wrong.db", monkeypatch)
    # Without the check, these commands would serve for ever.
    for name in ("run", "__init__"):
        monkeypatch.setattr(f"frankly_server.cli.serve.Server.{name}", stop)
    assert_refused(known("serve", "--port", "0", "--json"), words)
    assert_refused(known("serve", "--production", "--port", "0", "--json"), words)


def stop(*_arguments: object, **_options: object) -> None:
    raise AssertionError("the server has started")


def assert_refused(result: Done, words: str) -> None:
    assert result.code == 3, result.err
    assert (result.problem["code"], result.problem["field"]) == (
        "unsafe_setting",
        "FRANKLY_DATABASE_URL",
    )
    assert words in result.problem["detail"]
    assert f"notes {ENTRIES} entries" in result.problem["detail"]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_a_lost_log_is_accepted_explicitly(
    known: Frankly,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    words: str,
) -> None:
    make(tmp_path / "wrong.db")
    at(tmp_path / "wrong.db", monkeypatch)
    assert words in known("migrate").err
    accepted = known("migrate", "--accept-lost-log", "--json")
    assert accepted.code == 0, accepted.err
    assert accepted.json["lost_log"].startswith(f"{ENTRIES} entries of the log were noted")
    assert "refuse this log for good" in accepted.json["lost_log"]
    start()
    assert known("migrate", "--accept-lost-log", "--json").json["lost_log"] is None
    assert stat.S_IMODE((home / "keys" / "log-head.json").stat().st_mode) == 0o600


def test_new_keys_are_free_of_any_log(
    known: Frankly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(tmp_path / "new.db", monkeypatch)
    assert known("migrate").code == 3
    assert known("keys", "init", "--force", "--yes").code == 0
    assert known("migrate").code == 0
    start()


def test_a_published_document_is_noted_although_nobody_fetches_a_head(
    ready: Frankly, survey_file: Path, home: Path
) -> None:
    assert not (home / "keys" / "log-head.json").exists()
    ready("survey", "apply", survey_file)
    assert not (home / "keys" / "log-head.json").exists()
    assert ready("survey", "publish", "habits").code == 0
    assert size_noted(home) == 1


def backup(known: Frankly, path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back up the database at `path`."""
    at(path, monkeypatch)
    assert known("backup", "create", file).code == 0


@pytest.mark.parametrize("make", [older, another])
def test_a_restore_notes_the_restored_log_and_says_what_is_lost(
    known: Frankly,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
) -> None:
    make(tmp_path / "old.db")
    backup(known, tmp_path / "old.db", tmp_path / "b.zip", monkeypatch)
    at(tmp_path / "new.db", monkeypatch)
    assert known("migrate").code == 3
    result = known("restore", tmp_path / "b.zip")
    assert result.code == 0, result.err
    assert f"{ENTRIES} entries of the log were noted" in result.err
    assert size_noted(home) == (2 if make is older else 5)
    assert known("migrate").code == 0
    start()
    assert log_line(known)[0] == "ok"


def test_a_restore_of_the_whole_log_says_nothing(
    known: Frankly, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(known, home / "frankly.db", tmp_path / "b.zip", monkeypatch)
    for name in ("new.db", "migrated.db"):
        if name == "migrated.db":
            without_entries(tmp_path / name)
        at(tmp_path / name, monkeypatch)
        result = known("restore", tmp_path / "b.zip", "--json")
        assert result.code == 0, result.err
        assert result.json["lost_log"] is None
        start()


@pytest.mark.parametrize("damage", ["cut", "row"])
def test_a_failed_restore_changes_neither_database_nor_noted_head(
    known: Frankly, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    older(tmp_path / "old.db")
    backup(known, tmp_path / "old.db", tmp_path / "b.zip", monkeypatch)
    content = (tmp_path / "b.zip").read_bytes()
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content = content.replace(b"tables/log_entries.jsonl", b"tables/log_entriez.jsonl")
    (tmp_path / "b.zip").write_bytes(content)
    before = files(home / "keys")
    at(tmp_path / "new.db", monkeypatch)
    assert known("restore", tmp_path / "b.zip").code == 6
    assert not (tmp_path / "new.db").exists()
    without_entries(tmp_path / "migrated.db")
    at(tmp_path / "migrated.db", monkeypatch)
    assert known("restore", tmp_path / "b.zip").code == 6
    assert files(home / "keys") == before


def test_a_restore_into_a_filled_database_keeps_the_noted_head(
    known: Frankly, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(tmp_path / "old.db")
    backup(known, tmp_path / "old.db", tmp_path / "b.zip", monkeypatch)
    monkeypatch.delenv("FRANKLY_DATABASE_URL")
    assert known("restore", tmp_path / "b.zip").code == 6
    assert size_noted(home) == ENTRIES


def test_a_restore_beside_a_key_folder_that_cannot_be_written_says_so(
    known: Frankly, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(tmp_path / "old.db")
    backup(known, tmp_path / "old.db", tmp_path / "b.zip", monkeypatch)
    at(tmp_path / "new.db", monkeypatch)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(30, "Read-only file system", str(home / "keys" / "log-head.json"))

    with monkeypatch.context() as patch:
        patch.setattr(noted_head, "written_whole", refuse)
        result = known("restore", tmp_path / "b.zip")
        assert result.code == 0, result.err
        assert "cannot be written (Read-only file system)" in result.err
        assert size_noted(home) == ENTRIES
        assert known("migrate", "--accept-lost-log").code == 3
    assert known("migrate", "--accept-lost-log").code == 0
    start()


def log_line(frankly: Frankly) -> tuple[str, str]:
    result = frankly("doctor", "--json")
    (line,) = [finding for finding in result.json["findings"] if finding["what"] == "log"]
    assert (result.code == 6) >= (line["state"] == "broken")
    return line["state"], line["words"]


def test_the_doctor_compares_the_log_and_writes_nothing(
    known: Frankly, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(home / "keys")
    state, words = log_line(known)
    assert (state, f"the {ENTRIES} entries" in words) == ("ok", True)
    for make, found in WRONG:
        make(tmp_path / f"{make.__name__}.db")
        at(tmp_path / f"{make.__name__}.db", monkeypatch)
        state, words = log_line(known)
        assert (state, found in words) == ("broken", True)
    assert not (tmp_path / "missing.db").exists()
    monkeypatch.delenv("FRANKLY_DATABASE_URL")
    (home / "keys" / "log-head.json").write_bytes(b"{")
    assert log_line(known)[0] == "broken"
    (home / "keys" / "log-head.json").unlink()
    state, words = log_line(known)
    assert (state, f"notes 0 of the log's {ENTRIES} entries" in words) == ("warning", True)
    assert not (home / "keys" / "log-head.json").exists()
    start()
    assert files(home / "keys") == before


def test_the_doctor_warns_of_a_key_folder_that_cannot_be_written(
    known: Frankly, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != home / "keys" and real(path, mode))
    state, words = log_line(known)
    assert (state, str(home / "keys") in words) == ("warning", True)
    assert f"stays at {ENTRIES} of the log's {ENTRIES} entries" in words


def test_the_doctor_accepts_a_new_server(ready: Frankly) -> None:
    state, words = log_line(ready)
    assert (state, "the 0 entries" in words) == ("ok", True)


def test_help_says_what_accepting_a_lost_log_means(capsys: pytest.CaptureFixture[str]) -> None:
    front.run(["migrate", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "refuse this server's log for good" in printed
