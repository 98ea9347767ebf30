# SPDX-License-Identifier: Apache-2.0
"""Commands `frankly keys status|rotate|revoke|sign`, `frankly witness` and `frankly audit`."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
from frankly_protocol.clock import SystemClock
from frankly_server.app import create_app
from frankly_server.cli import keys_rotate
from frankly_server.services import Services
from frankly_server.settings import Settings

from tests.frankly_server.cli.conftest import Done, Frankly
from tests.frankly_server.web.site import waitress


def test_a_ceremony_from_the_first_key_to_a_revoked_one(
    frankly: Frankly, home: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse battery\n")
    secret.chmod(0o600)
    created = frankly(
        "keys",
        "init",
        "--yes",
        "--roots",
        "2",
        "--root-threshold",
        "2",
        "--passphrase-file",
        secret,
        "--json",
    )
    assert (created.code, created.json["encrypted"], len(created.json["roots"])) == (0, True, 2)
    assert frankly("keys", "rotate", "--yes").code == 3  # the roots are encrypted
    rotated = frankly(
        "keys", "rotate", "--publisher", "--passphrase-file", secret, "--yes", "--json"
    )
    assert (rotated.json["version"], rotated.json["in_force"]) == (2, True)
    now = frankly("keys", "status", "--json").json
    states = {line["key_id"]: line["state"] for line in now["keys"] if line["role"] == "publisher"}
    assert states[created.json["publisher"]] == "retired"
    assert sorted(states.values()) == ["in force", "retired"]
    (current,) = [key for key, state in states.items() if state == "in force"]
    stick = tmp_path / "stick.pem"
    (home / "keys" / "root-2.pem").rename(stick)
    waiting = frankly(
        "keys", "revoke", current[:12], "--passphrase-file", secret, "--yes", "--json"
    ).json
    assert (waiting["in_force"], waiting["old_missing"]) == (False, 1)
    signed = frankly(
        "keys", "sign", "--root-key", stick, "--passphrase-file", secret, "--json"
    ).json
    assert (signed["version"], signed["in_force"]) == (3, True)
    assert "in force" in frankly("keys", "status").out
    assert frankly("keys", "revoke", "zz", "--yes", "--json").problem["code"] == "not_found"
    assert frankly("keys", "rotate", "--witness", "w", "--yes").code == 2
    assert frankly("keys", "rotate").code == 2  # there is no terminal for a confirmation


def test_documents_signed_only_by_retired_keys_are_reported_until_signed_again(
    ready: Frankly, survey_file: Path
) -> None:
    def signature_state() -> tuple[str, int | None, bool]:
        findings = {
            finding["what"]: finding for finding in ready("doctor", "--json").json["findings"]
        }
        status_text, as_json = ready("keys", "status"), ready("keys", "status", "--json").json
        asks_for_resigning = "frankly keys resign" in " ".join(status_text.err.split())
        assert asks_for_resigning == ("frankly keys resign" in findings["signatures"]["words"])
        return findings["signatures"]["state"], as_json["signed_by_retired"], asks_for_resigning

    assert signature_state() == ("ok", 0, False)
    assert ready("survey", "apply", survey_file).code == 0
    first = ready("survey", "publish", "habits", "--json").json
    assert signature_state() == ("ok", 0, False)
    assert ready("keys", "rotate", "--publisher", "--yes").code == 0
    assert signature_state() == ("broken", 1, True)
    assert ready("doctor").code == 6
    again = ready("survey", "publish", "habits", "--json").json
    assert (again["status"], again["warnings"][:-1]) == ("unchanged", first["warnings"])
    assert "frankly keys resign" in again["warnings"][-1]
    assert ready("keys", "resign", "--yes").code == 0
    assert signature_state() == ("ok", 0, False)


def test_status_needs_no_database(frankly: Frankly, home: Path) -> None:
    assert frankly("keys", "init", "--yes").code == 0
    assert frankly("keys", "status", "--json").json["signed_by_retired"] is None
    assert sorted(path.name for path in home.iterdir()) == ["keys"]  # status creates nothing


def last(rotated: Done) -> Any:
    """Return the object that a command printed; the same stream contains the server's log."""
    return json.loads(rotated.out.strip().splitlines()[-1])


@pytest.fixture
def url(ready: Frankly, home: Path) -> Iterator[str]:
    """Serve this home on a free port; yield the URL."""
    services = Services.open(Settings.load(), SystemClock())
    app = create_app(Settings.load(), services=services)
    with closing(services), waitress(app) as origin:
        yield origin


def test_a_witness_and_an_audit_from_outside(
    ready: Frankly, survey_file: Path, url: str, tmp_path: Path
) -> None:
    witness_line = ready("witness", "--name", "w.example", "--show")
    assert (witness_line.code, witness_line.out.startswith("w.example=")) == (0, True)
    assert ready("keys", "rotate", "--witness", witness_line.out.strip(), "--yes").code == 0
    assert ready("survey", "apply", survey_file).code == 0
    digest = ready("survey", "publish", "habits", "--json").json["digest"]
    unwatched = last(ready("audit", url, "--json"))
    assert (unwatched["holds"], unwatched["watched"], unwatched["size"]) == (True, False, 1)
    visit = ready("witness", url, "--name", "w.example", "--json")
    assert (visit.code, last(visit)["cosigned"], last(visit)["size"]) == (0, True, 1)
    report = ready("audit", url, "--state", tmp_path / "head", "--json")
    assert (report.code, last(report)["watched"]) == (0, True)
    assert [(d["digest"], d["reports"]) for d in last(report)["documents"]] == [(digest, 0)]
    assert ready("audit", url, "--state", tmp_path / "head").code == 0
    note = (tmp_path / "head").read_bytes()
    (tmp_path / "head").write_bytes(note.replace(b"\n1\n", b"\n7\n"))
    forked = ready("audit", url, "--state", tmp_path / "head", "--json")
    assert (forked.code, [f["kind"] for f in last(forked)["findings"]]) == (6, ["log"])
    assert ready("keys", "rotate", "--publisher", "--yes").code == 0
    assert ready("audit", url).code == 6
    assert ready("keys", "resign", "--yes", "--json").json == {"signed": [digest]}
    assert ready("audit", url).code == 0


def test_errors_of_witness_and_audit(ready: Frankly, url: str) -> None:
    for arguments, code in (
        (["--name", "a b", "--show"], 2), (["--name", "w"], 2), (["http://example.org", "--name", "w"], 2),
        (["http://127.0.0.1:1", "--name", "w"], 5), ([url, "--name", "w", "--every", "5"], 2),
    ):  # fmt: skip
        assert (arguments, ready("witness", *arguments).code) == (arguments, code)
    assert ready("audit", "http://127.0.0.1:1").code == 5
    assert last(ready("witness", url, "--name", "w", "--json"))["cosigned"] is False


def test_roots_and_publishers_are_replaced_one_for_one_and_added_to_the_others(
    frankly: Frankly,
) -> None:
    def in_force(role: str) -> set[str]:
        lines = frankly("keys", "status", "--json").json["keys"]
        return {line["key_id"] for line in lines if (line["role"], line["state"]) == (role, "in force")}  # fmt: skip

    assert frankly("keys", "init", "--yes", "--roots", "2", "--publishers", "2").code == 0
    roots, publishers = in_force("root"), in_force("publisher")
    assert frankly("keys", "rotate", "--root", "--yes").code == 0
    assert (len(in_force("root")), in_force("root") & roots) == (2, set())
    assert in_force("publisher") == publishers
    assert frankly("keys", "rotate", "--publisher", "--add-publisher", "1", "--yes").code == 0
    assert (len(in_force("publisher")), in_force("publisher") & publishers) == (3, set())
    before = in_force("root")
    assert frankly("keys", "rotate", "--add-root", "1", "--yes").code == 0
    assert (len(in_force("root")), in_force("root") >= before) == (3, True)


def test_an_interrupted_question_stays_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is an interrupt; a missing terminal is a usage error."""

    def interrupted(*_: object, **__: object) -> bool:
        raise click.Abort

    monkeypatch.setattr(click, "confirm", interrupted)
    with pytest.raises(click.Abort):
        keys_rotate.ask(False, "Go on?")
    keys_rotate.ask(True, "Go on?")
