# SPDX-License-Identifier: Apache-2.0
"""The demo's server killed mid-way and restarted: no report is lost or stored twice.

The devices take turns with the sync client, asyncio and the background sender.
"""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from frankly_analyst import Analyst
from frankly_sdk import AlreadyAnswered, NetworkError, Policy
from frankly_server.cli import front

from examples.affairs.data import split
from examples.demo.people import Person
from examples.demo.server import DemoServer
from tests.frankly_sdk.drivers import OPENERS

RESPONDENTS = 110
NAMES = list(OPENERS)


@pytest.fixture
def stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> DemoServer:
    """The demo's server, not yet started; its commands run in this process."""
    server = DemoServer(tmp_path / "server")
    for name, value in server.settings.items():
        monkeypatch.setenv(name, value)

    def frankly(*arguments: str) -> str:
        capsys.readouterr()
        assert front.run(list(arguments)) == 0
        return capsys.readouterr().out

    monkeypatch.setattr(server, "frankly", frankly)
    return server


def test_killing_the_server_midway_loses_and_repeats_no_report(
    stopped: DemoServer, tmp_path: Path
) -> None:
    devices = tmp_path / "devices"
    devices.mkdir()
    people = split()[1][:RESPONDENTS]
    some_done = threading.Event()
    rounds: list[Counter[str]] = []

    def everyone_answers(link: str) -> None:
        rounds.append(answer_all(link, devices, people, some_done.set))

    with stopped as server:
        published = server.prepare()
        server.start()
        answering = threading.Thread(target=everyone_answers, args=(published["link"],))
        answering.start()
        assert some_done.wait(timeout=60)
        server.kill()
        acknowledged = _stored(server.home)
        server.start()
        answering.join(timeout=120)
        # Devices that could not reach the server try again, as apps do at their next start.
        while not set(rounds[-1]) <= {"sent"}:
            everyone_answers(published["link"])
            assert len(rounds) < 10
        server.release()
        estimates = Analyst(server.url, server.analyst_key()).estimates(
            published["survey"], census=True
        )

    assert 0 < acknowledged < RESPONDENTS, "the kill must have come during the run"
    assert _stored(server.home) == RESPONDENTS
    assert {row.n for row in estimates.rows} == {RESPONDENTS}
    _counts_agree_with_reports(server.home)


def answer_all(
    link: str, folder: Path, people: list[Person], done: Callable[[], None]
) -> Counter[str]:
    """Let every person answer on a separate device, or send what it has sealed; return the statuses."""

    def answer(number: int) -> str:
        try:
            store = folder / f"{number:05}.db"
            with OPENERS[NAMES[number % len(NAMES)]](link, store, Policy(cap="5")) as client:
                choices = {name: people[number][name] for name in client.survey.questions}
                try:
                    status = client.answer(choices).status
                except AlreadyAnswered as before:
                    status = before.receipt.status
        except NetworkError:
            return "unreachable"
        if status == "sent":
            done()
        return str(status)

    with ThreadPoolExecutor(2) as threads:
        return Counter(threads.map(answer, range(len(people))))


def _stored(home: Path) -> int:
    with closing(sqlite3.connect(home / "frankly.db")) as database, database:
        (n,) = database.execute("SELECT count(*) FROM reports").fetchone()
        return int(n)


def _counts_agree_with_reports(home: Path) -> None:
    with closing(sqlite3.connect(home / "frankly.db")) as database, database:
        counted = database.execute(
            "SELECT block, symbol, sum(n) FROM batch_counts GROUP BY block, symbol"
        ).fetchall()
        recounted: Counter[tuple[int, int]] = Counter()
        for (symbols,) in database.execute("SELECT symbols FROM reports"):
            recounted.update(enumerate(int(symbol) for symbol in symbols.split(",")))
    assert {(block, symbol): n for block, symbol, n in counted} == dict(recounted)
    assert len({block for block, _, _ in counted}) == 4
    assert {sum(n for b, _, n in counted if b == block) for block in range(4)} == {RESPONDENTS}
