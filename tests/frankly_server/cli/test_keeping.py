# SPDX-License-Identifier: Apache-2.0
"""`frankly backup`, `restore`, `survey erase` and `doctor`, as an operator uses them."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from frankly_server.store import Database

from tests.frankly_server.cli.conftest import Frankly
from tests.frankly_server.samples import row, stored


def published(ready: Frankly, survey_file: Path) -> str:
    assert ready("survey", "apply", str(survey_file)).code == 0
    result = ready("survey", "publish", "habits", "--json")
    assert result.code == 0, result.err
    return str(result.json["survey"])


def test_a_backup_is_private_checked_and_never_overwritten_by_chance(
    ready: Frankly, tmp_path: Path
) -> None:
    file = tmp_path / "b.zip"
    result = ready("backup", "create", str(file), "--json")
    assert (result.code, result.json["status"]) == (0, "saved"), result.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ready("backup", "verify", str(file), "--json").json["status"] == "whole"
    again = ready("backup", "create", str(file), "--json")
    assert (again.code, again.problem["code"]) == (3, "file_exists")
    assert ready("backup", "create", str(file), "--force").code == 0
    assert [path.name for path in tmp_path.iterdir() if "b.zip" in path.name] == ["b.zip"]


def test_a_backup_moves_a_server(
    ready: Frankly, survey_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = published(ready, survey_file)
    file = tmp_path / "b.zip"
    assert ready("backup", "create", str(file)).code == 0
    monkeypatch.setenv("FRANKLY_DATABASE_URL", f"sqlite:///{tmp_path / 'moved.db'}")
    assert ready("migrate").code == 0
    assert ready("restore", str(file)).code == 0
    assert [line["survey"] for line in ready("survey", "list", "--json").json["surveys"]] == [
        survey
    ]
    assert ready("restore", str(file)).code == 6


def test_a_damaged_backup_ends_with_code_6(ready: Frankly, tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    file.write_bytes(b"not a backup")
    result = ready("backup", "verify", str(file), "--json")
    assert (result.code, result.problem["code"]) == (6, "integrity")


def test_erased_reports_are_gone_from_the_file_too(
    ready: Frankly, survey_file: Path, home: Path
) -> None:
    survey = published(ready, survey_file)
    database = Database(f"sqlite:///{home / 'frankly.db'}")
    marker = "c0ffee" * 5 + "00"
    with database.transaction("fill") as tx:
        digest = tx.documents.versions(survey)[0].digest
        stored_report = replace(row(1, 1, document=digest, report_id=marker), survey=survey)
        tx.reports.add([stored_report])
        tx.releases.release(survey, digest, 1, "2026-06-02T00:00:00Z", is_over=False)
        tx.days.add(survey, "2026-11-21", {"closed": 1})
    database.close()
    files = [home / "frankly.db", home / "frankly.db-wal"]
    assert any(bytes.fromhex(marker) in file.read_bytes() for file in files if file.exists())
    result = ready("survey", "erase", "habits", "--yes", "--json")
    assert (result.code, result.json["reports"]) == (0, 1), result.err
    assert not any(bytes.fromhex(marker) in file.read_bytes() for file in files if file.exists())
    with database.reading("look") as tx:
        assert not list(stored(tx, survey))
        assert not tx.counts.of_document(digest)
        assert not tx.batches.of_document(digest)
        assert not tx.days.of_survey(survey)
        assert tx.documents.versions(survey)
    database.close()


def test_erasing_asks_first_and_knows_the_survey(ready: Frankly, survey_file: Path) -> None:
    published(ready, survey_file)
    assert ready("survey", "erase", "habits", stdin="n\n").code == 130
    assert ready("survey", "erase", "habits", stdin="").code == 130
    result = ready("survey", "erase", "nobody", "--yes", "--json")
    assert (result.code, result.problem["code"]) == (3, "survey_unknown")


def findings(frankly: Frankly, *options: str, code: int = 0) -> dict[str, str]:
    result = frankly("doctor", "--json", *options)
    assert result.code == code, result.err
    return {finding["what"]: finding["state"] for finding in result.json["findings"]}


def test_the_doctor_finds_a_new_server_well(ready: Frankly, survey_file: Path) -> None:
    published(ready, survey_file)
    states = findings(ready, "--counts")
    assert states["database"] == states["keys"] == states["libraries"] == states["counts"] == "ok"
    assert states["address"] == "warning"  # http on this machine
    assert "broken" not in ready("doctor").out


def test_the_doctor_names_what_is_broken(
    frankly: Frankly, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = findings(frankly, code=6)
    assert (states["database"], states["keys"]) == ("broken", "broken")
    assert not home.exists()  # looking changes nothing
    monkeypatch.setenv("FRANKLY_TYPO", "1")
    assert findings(frankly, code=6) == {"settings": "broken"}


def test_the_doctor_misses_older_versions_of_the_keys(ready: Frankly, home: Path) -> None:
    for _ in range(2):
        assert ready("keys", "rotate", "--yes").code == 0
    assert findings(ready)["keys"] == "ok"
    (home / "keys" / "keys-2.json").unlink()
    result = ready("doctor", "--json")
    (keys,) = [finding for finding in result.json["findings"] if finding["what"] == "keys"]
    assert (result.code, keys["state"]) == (6, "broken")
    assert "version 2" in keys["words"]


def test_the_doctor_finds_wrong_counts_and_open_key_files(
    ready: Frankly, survey_file: Path, home: Path
) -> None:
    survey = published(ready, survey_file)
    database = Database(f"sqlite:///{home / 'frankly.db'}")
    with database.transaction("miscount") as tx:
        digest = tx.documents.versions(survey)[0].digest
        tx.reports.add([replace(row(1, 1, document=digest), survey=survey)])
        tx.releases.release(survey, digest, 1, "2026-06-02T00:00:00Z", is_over=False)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE batch_counts SET n = n + 1")
    database.close()
    (home / "keys" / "publisher.pem").chmod(0o644)
    states = findings(ready, "--counts", code=6)
    assert "signatures" not in states  # cannot be checked without keys
    assert (states["counts"], states["keys"]) == ("broken", "broken")
