# SPDX-License-Identifier: Apache-2.0
"""Command `frankly release`, and automatic releases by servers."""

from pathlib import Path

import pytest
from frankly_server.cli.gunicorn_server import Production
from frankly_server.cli.waitress_server import Server
from frankly_server.intake import Releasing
from frankly_server.web import logs

from tests.frankly_server.cli.conftest import Frankly, filled


def test_release_shows_the_next_time_and_releases_now(
    ready: Frankly, survey_file: Path, home: Path
) -> None:
    survey, _, database = filled(ready, survey_file, home, [(i % 2, i % 3) for i in range(30)])
    result = ready("release", "--json")
    assert (result.code, result.json["released"]) == (0, None)
    assert result.json["next"]["day"].endswith("T00:00:00Z")
    assert result.json["next"]["hour"].endswith(":00:00Z")
    with database.reading("look") as tx:
        assert tx.batches.number(survey) == 0
    assert ready("release", "nobody", "--now", "--json").problem["code"] == "survey_unknown"
    assert ready("release", "habits", "--now", "--json").json["released"] == 30
    nothing = ready("release", "--now").err
    assert "0 report(s) were released." in nothing
    assert "wait until at least release_step of them" in nothing
    with database.reading("look") as tx:
        assert tx.batches.number(survey) == 30
        assert tx.counts.recount(survey) == []
    database.close()


def test_servers_release_automatically(ready: Frankly, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[Releasing] = []

    def wake(releasing: Releasing) -> None:
        woken.append(releasing)

    run = Server.run

    def run_and_stop(server: Server) -> None:
        server.stop()
        run(server)

    monkeypatch.setattr(Releasing, "wake", wake)
    monkeypatch.setattr(
        logs, "configure", lambda **_: None
    )  # otherwise it would keep this test's stderr for later tests
    monkeypatch.setattr(Server, "run", run_and_stop)
    assert ready("serve", "--port", "0", "--json").code == 0
    assert len(woken) == 1
    started: list[str] = []
    Production(
        None,
        host="127.0.0.1",
        port=0,
        threads=1,
        ready=lambda _port: None,
        started=lambda: started.append("worker"),
    ).cfg.post_worker_init(None)
    assert started == ["worker"]
