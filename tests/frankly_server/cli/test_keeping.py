# SPDX-License-Identifier: Apache-2.0
"""Commands `frankly backup`, `restore`, `survey erase` and `doctor`, as an operator uses them."""

import hashlib
import json
import shutil
import stat
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from frankly_protocol.clock import SystemClock, parse_time
from frankly_server.cli.services import open_services
from frankly_server.keys import Keyring
from frankly_server.store import Database

from tests.frankly_server.cli.conftest import Frankly
from tests.frankly_server.samples import row, stored


def published(ready: Frankly, survey_file: Path) -> str:
    assert ready("survey", "apply", str(survey_file)).code == 0
    result = ready("survey", "publish", "habits", "--json")
    assert result.code == 0, result.err
    return str(result.json["survey"])


def test_a_backup_is_private_checked_and_overwritten_only_on_request(
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
    assert ready("restore", str(file)).code == 0
    assert [line["survey"] for line in ready("survey", "list", "--json").json["surveys"]] == [
        survey
    ]
    assert ready("restore", str(file)).code == 6


def test_a_backup_is_restored_only_if_its_own_keys_signed_it(
    ready: Frankly, survey_file: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(ready, survey_file)
    file, forged, old = tmp_path / "b.zip", tmp_path / "forged.zip", tmp_path / "old.zip"
    made = ready("backup", "create", str(file), "--json").json
    assert ready("backup", "create", str(old), "--unsigned").code == 0
    key_ids = [key.public.key_id for key in Keyring(home / "keys", SystemClock()).publishers()]
    assert (made["signers"], made["keys_version"]) == (key_ids, 1)
    saved = parse_time(made["saved"])
    assert abs((SystemClock().now() - saved).total_seconds()) < 60
    forge(file, forged)
    monkeypatch.setenv("FRANKLY_DATABASE_URL", f"sqlite:///{tmp_path / 'moved.db'}")
    for name, reason in ((forged, "different manifest"), (old, "not signed")):
        for command in (("restore",), ("backup", "verify")):
            refused = ready(*command, str(name), "--json")
            assert (refused.code, refused.problem["field"]) == (6, "manifest.sig")
            assert reason in refused.problem["detail"]
    assert not (tmp_path / "moved.db").exists()
    # After a rotation, the command accepts keys of an earlier version and says so.
    assert ready("keys", "rotate", "--publisher", "--yes").code == 0
    said = ready("restore", str(file)).err
    with open_services() as services:
        event = services.accounts.trail("main")[0]
        assert (event.action, event.subject) == (
            "backup restored",
            f"the whole database of {made['saved']}",
        )
        assert services.accounts.backed_up() == (event.at, 0)
    assert (
        f"Signed by the publisher {key_ids[0][:16]} of version 1 of the keys (the newest is 2)."
        in said
    )
    assert made["saved"] in said
    assert "1 surveys" in said
    # Keys of another ceremony are refused.
    assert ready("keys", "init", "--force", "--yes").code == 0
    refused = ready("backup", "verify", str(file), "--json")
    assert "did not sign" in refused.problem["detail"]
    assert ready("backup", "verify", str(file), "--unsigned", "--json").json["signers"] is None
    shutil.rmtree(home / "keys")
    refused = ready("backup", "verify", str(file), "--json")
    assert (refused.code, refused.problem["code"]) == (3, "key_file")


def forge(source: Path, target: Path) -> None:
    """Write the backup with another row and a matching manifest, which is possible without the keys."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        members = {name: old.read(name) for name in old.namelist()}
        manifest = json.loads(members["manifest.json"])
        name = "tables/surveys.jsonl"
        members[name] = members[name].replace(b"smoke", b"smile", 1)
        manifest["tables"]["surveys"]["sha256"] = hashlib.sha256(members[name]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()
        for member, content in members.items():
            new.writestr(member, content)


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
        tx.releases.release(survey, digest, 1, "2026-06-02T00:00:00Z", is_over=lambda: False)
        tx.days.add(survey, "2026-11-21", {"closed": 1})
    database.close()
    files = [home / "frankly.db", home / "frankly.db-wal"]
    assert any(bytes.fromhex(marker) in file.read_bytes() for file in files if file.exists())
    result = ready("survey", "erase", "habits", "--yes", "--json")
    assert result.code == 0, result.err
    assert result.json == {"status": "erased", "survey": survey, "name": "habits", "reports": 1}
    assert not any(bytes.fromhex(marker) in file.read_bytes() for file in files if file.exists())
    with database.reading("look") as tx:
        assert not list(stored(tx, survey))
        assert not tx.counts.of_document(digest)
        assert not tx.batches.of_document(digest)
        assert not tx.days.of_survey(survey)
        assert tx.documents.versions(survey)
    database.close()


def test_erasing_says_what_it_deleted(ready: Frankly, survey_file: Path) -> None:
    published(ready, survey_file)
    result = ready("survey", "erase", "habits", stdin="y\n")
    assert result.code == 0
    assert "Survey habits: 0 reports and their counts are deleted." in " ".join(result.err.split())
    assert "[y/N]" not in ready("survey", "erase", "habits", "--yes").err


def test_erasing_asks_first_and_needs_a_known_survey(ready: Frankly, survey_file: Path) -> None:
    published(ready, survey_file)
    assert ready("survey", "erase", "habits", stdin="n\n").code == 130
    assert ready("survey", "erase", "habits", stdin="").code == 130
    result = ready("survey", "erase", "nobody", "--yes", "--json")
    assert (result.code, result.problem["code"]) == (3, "survey_unknown")


def findings(frankly: Frankly, *options: str, code: int = 0) -> dict[str, str]:
    result = frankly("doctor", "--json", *options)
    assert result.code == code, result.err
    return {finding["what"]: finding["state"] for finding in result.json["findings"]}


def test_the_doctor_finds_no_fault_in_a_new_server(ready: Frankly, survey_file: Path) -> None:
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
    assert not home.exists()  # the doctor creates nothing
    monkeypatch.setenv("FRANKLY_TYPO", "1")
    assert findings(frankly, code=6) == {"settings": "broken"}


def test_the_doctor_reports_missing_versions_of_the_keys(ready: Frankly, home: Path) -> None:
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
        tx.releases.release(survey, digest, 1, "2026-06-02T00:00:00Z", is_over=lambda: False)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE batch_counts SET n = n + 1")
    database.close()
    (home / "keys" / "publisher.pem").chmod(0o644)
    states = findings(ready, "--counts", code=6)
    assert "signatures" not in states  # signatures cannot be checked without keys
    assert (states["counts"], states["keys"]) == ("broken", "broken")
