# SPDX-License-Identifier: Apache-2.0
"""Canary marks in every field that identifies a sender, none of which may be in stored data (T15)."""

import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.tokens import TokenRule
from frankly_server.store import save_backup
from pydantic import SecretStr

from tests.faults.server.running import METRICS_TOKEN
from tests.frankly_protocol.samples import ldp_block, lip_block, survey
from tests.frankly_server.log.sites import Place
from tests.frankly_server.samples import SURVEY, put, report
from tests.frankly_server.web.site import captured_logs
from tests.postgres import PostgresServer

AGENT, FORWARDED, REFERER = "canary-agent/77.13", "203.0.113.77", "https://canary-referer.example/"
ADDRESS = "198.51.100.177"
MARKS = (AGENT, FORWARDED, REFERER, ADDRESS, "canary")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_mark_of_a_sender_is_stored_anywhere(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, full: bool
) -> None:
    home, copies = tmp_path / "place", tmp_path / "kept"
    home.mkdir()
    copies.mkdir()
    postgres: PostgresServer | None = (
        request.getfixturevalue("postgres") if kind == "postgresql" else None
    )
    place = Place.make(home, postgres.create() if postgres else None)
    place = replace(
        place,
        settings=place.settings.model_copy(update={"metrics_token": SecretStr(METRICS_TOKEN)}),
    )
    document = put(
        place.services.database,
        replace(survey(ldp_block(), lip_block()), token=TokenRule("invite")),
    )
    tokens = place.services.invites.make(SURVEY, 1000 if full else 120)
    with captured_logs() as logged:
        for number, token in enumerate(tokens):
            sent = replace(report(document, number % 2, 0), token=token).to_bytes(
                document.report_length
            )
            assert send(place, sent, number).status_code == 201
        for number, token in enumerate(tokens[:50]):  # refusals are stored only as counts
            again = replace(report(document, number % 2, 0), token=token).to_bytes(
                document.report_length
            )
            assert send(place, again, number).status_code == 409
            assert send(place, b'{"canary":"' + AGENT.encode() + b'"}', number).status_code == 422
        metrics = place.http.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
    assert (metrics.status_code, b"frankly_requests_total" in metrics.data) == (200, True)
    (copies / "metrics").write_bytes(metrics.data)
    (copies / "logs").write_text(logged.getvalue())
    assert (
        logged.getvalue().count("/reports") == 100
    )  # only refusals are logged: no log line shows the time of an accepted answer
    dump(place, copies, postgres)
    places = [
        home,
        copies,
        *([postgres._home] if postgres else []),
    ]  # PostgreSQL's data files, WAL and log
    assert any("wal" in str(path) for top in places for path in top.rglob("*"))
    assert files_with_marks([*MARKS, *tokens], places) == []
    assert files_with_marks([SURVEY], [copies])  # the search does find data that exists
    place.services.close()


def send(place: Place, body: bytes, number: int) -> Any:
    """Send a report with marks in every header that identifies a sender."""
    headers = {"User-Agent": f"{AGENT} {number}", "X-Forwarded-For": FORWARDED, "Forwarded": f"for={FORWARDED}",
               "X-Real-IP": FORWARDED, "Referer": REFERER, "Cookie": "s=canary", "Authorization": "Bearer canary",
               "X-Request-Id": f"canary{number}", "From": "canary@example.org"}  # fmt: skip
    return place.http.post(f"/v1/surveys/{SURVEY}/reports", data=body, content_type="application/json",
                           headers=headers, environ_base={"REMOTE_ADDR": ADDRESS})  # fmt: skip


def dump(place: Place, folder: Path, postgres: PostgresServer | None) -> None:
    """Write an operator's copies: an unpacked backup and PostgreSQL's own dump."""
    with (folder / "backup.zip").open("w+b") as file:
        save_backup(place.services.database, file)
    with zipfile.ZipFile(folder / "backup.zip") as archive:
        archive.extractall(folder / "backup")
    if postgres is not None:
        url = place.settings.store_url().replace("+psycopg", "")
        with (folder / "dump").open("wb") as file:
            subprocess.run([str(postgres.binaries / "pg_dump"), url], stdout=file, check=True)


def files_with_marks(marks: list[str], places: list[Path]) -> list[str]:
    """Return the files below these folders that contain one of the marks."""
    command = [
        "grep",
        "--recursive",
        "--text",
        "--fixed-strings",
        "--files-with-matches",
        "--file=-",
        *map(str, places),
    ]
    completed = subprocess.run(
        command, input="\n".join(marks), capture_output=True, text=True, check=False
    )
    assert completed.returncode in (0, 1), completed.stderr
    return completed.stdout.splitlines()
