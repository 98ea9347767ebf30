# SPDX-License-Identifier: Apache-2.0
"""Background sender: it wakes, waits, ends within a second, and never sends at the same time as another."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from frankly_sdk import AlreadyAnswered, Client, Event, NetworkError
from frankly_sdk._turns import Turns
from frankly_sdk.testing import FakeServer, drop, make_survey, status
from frankly_sdk.transport import Reply

from tests.faults.servers import site
from tests.frankly_sdk.drivers import bodies
from tests.refusals import refusal

ANSWER = {"smokes": "yes"}


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}))


def eventually(is_so: Callable[[], Any]) -> None:
    """Wait until a condition holds, up to a minute, because the machine may be busy."""
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.002)


def senders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "frankly-sender"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(senders())  # of other tests in this process, whatever they left
    yield
    eventually(lambda: set(senders()) <= before)


def test_a_new_report_wakes_it(server: FakeServer, tmp_path: Path) -> None:
    events: list[Event] = []
    options: dict[str, Any] = {"background": True, "on_event": events.append, "spread_s": 600}
    with server.open(tmp_path / "s.db", **options) as client:
        assert client.answer(ANSWER, patience_s=0).code == "scheduled"
        assert server.reports == {}
        server.clock.advance(timedelta(seconds=601))  # more than the random delay
        eventually(lambda: events[-1].name == "sent")
    assert len(bodies(server)) == 1


def test_a_report_of_another_client_waits_for_a_random_moment_too(
    server: FakeServer, tmp_path: Path
) -> None:
    """A sender that finds a sealed report without a sending time, as right after sealing, draws a time."""
    with (
        server.open(tmp_path / "s.db", background=True, spread_s=600) as sending,
        server.open(tmp_path / "s.db", spread_s=600) as other,
    ):
        assert other.answer(ANSWER, patience_s=0).code == "scheduled"
        parts = sending._core.parts
        assert parts is not None
        parts.deliver_later()
        time.sleep(0.05)
        assert bodies(server) == []
        eventually(lambda: server.clock.advance(timedelta(seconds=60)) or server.reports)
    assert len(bodies(server)) == 1


def test_rows_of_a_batch_wake_it(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db", spread_s=0, background=True) as client:
        rows: list[Any] = [(f"p{i}", ANSWER, {}) for i in range(3)]
        assert len(list(client.randomise_many(rows))) == 3
        eventually(lambda: len(server.reports) == 3)
    assert len(bodies(server)) == 3


def due_s(client: Client) -> float:
    """Return the seconds until the last queued report is due."""
    parts = client._core.parts
    assert parts is not None
    return max(map(parts.delivery.due_s, parts.store.outbox()))


def test_the_sender_waits_as_long_as_the_server_requests(
    server: FakeServer, tmp_path: Path
) -> None:
    server.network.then(status(503, retry_after=7))
    with server.open(tmp_path / "s.db", background=True) as client:
        assert client.answer(ANSWER, patience_s=0).code == "scheduled"
        server.clock.advance(timedelta(seconds=1))
        eventually(lambda: due_s(client) > 6)
        server.clock.advance(timedelta(seconds=6.9))
        time.sleep(0.05)
        assert len(bodies(server)) == 1
        server.clock.advance(timedelta(seconds=0.2))
        eventually(lambda: server.reports)
    assert len(set(bodies(server))) == 1


def test_waits_double_and_one_server_is_tried_with_one_report(
    server: FakeServer, tmp_path: Path
) -> None:
    """Three reports are queued; each round tries only the first report, after a longer wait."""
    server.network.online = False
    with pytest.raises(NetworkError):
        server.open(tmp_path / "s.db", background=True)
    server.network.online = True
    with server.open(tmp_path / "s.db", background=True) as client:
        for i in range(3):
            client.answer(ANSWER, respondent=f"p{i}", patience_s=0)
        server.network.then(*[drop()] * 4)
        wait_s = 1.0
        for i in range(4):
            server.clock.advance(timedelta(seconds=wait_s + 1e-6))
            eventually(lambda: due_s(client) > 0)
            time.sleep(0.02)
            assert len(bodies(server)) == i + 1
            wait_s = due_s(client)
            assert 0.25 * 2**i <= wait_s < 0.75 * 2**i  # half a second with jitter, doubled
        server.clock.advance(timedelta(hours=1))
        eventually(lambda: len(server.reports) == 3)


def test_reports_of_an_earlier_run_are_sent_without_a_call(
    server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWER, patience_s=0)
    server.network.then(drop())
    with server.open(tmp_path / "s.db", background=True):
        assert len(bodies(server)) == 1  # the attempt of `open`, which failed
        eventually(lambda: server.clock.advance(timedelta(seconds=1)) or server.reports)
    assert len(set(bodies(server))) == 1


def test_a_switched_off_client_starts_no_thread(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db", enabled=False, background=True) as client:
        assert client.answer(ANSWER).status == "disabled"
        assert client._core.parts is None
    assert list(tmp_path.iterdir()) == []


def test_an_app_may_close_its_client_in_an_event(server: FakeServer, tmp_path: Path) -> None:
    opened: list[Client] = []
    client = server.open(
        tmp_path / "s.db",
        background=True,
        on_event=lambda event: opened[0].close() if event.name == "sent" else None,
    )
    opened.append(client)
    client.answer(ANSWER, patience_s=0)
    server.clock.advance(timedelta(seconds=1))
    eventually(lambda: server.reports)


class Slow:
    """A transport that blocks a report until the test releases it."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.get = server.get
        self.close = server.close
        self.arrived, self.through = threading.Event(), threading.Event()

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        self.arrived.set()
        assert self.through.wait(60)
        return self.server.post(url, body, limit)


def test_while_it_sends_nobody_else_does(server: FakeServer, tmp_path: Path) -> None:
    """A flush, a second answer and a second client do not touch a report that is being sent."""
    slow = Slow(server)
    with (
        server.open(tmp_path / "s.db", background=True, transport=slow) as client,
        server.open(tmp_path / "s.db") as other,
    ):
        client.answer(ANSWER, patience_s=0)
        server.clock.advance(timedelta(seconds=1))
        assert slow.arrived.wait(60)
        for flushing in (client, other):
            assert [receipt.code for receipt in flushing.flush(0)] == ["sending"]
        error = refusal(AlreadyAnswered, other.answer, ANSWER, patience_s=0)
        assert (error.receipt.status, error.receipt.code) == ("queued", "sending")
        slow.through.set()
        with pytest.raises(AlreadyAnswered) as again:
            other.answer(ANSWER)  # waits for its turn, then finds the report delivered
        assert again.value.receipt.status == "sent"
    assert len(bodies(server)) == 1


@pytest.mark.slow
def test_closing_does_not_wait_for_a_slow_server(server: FakeServer, tmp_path: Path) -> None:
    slow = Slow(server)
    client = server.open(tmp_path / "s.db", background=True, transport=slow)
    client.answer(ANSWER, patience_s=0)
    server.clock.advance(timedelta(seconds=1))
    assert slow.arrived.wait(60)
    start = time.monotonic()
    client.close()
    assert time.monotonic() - start < 30  # it waits for STOP_S; the request blocks for a minute
    slow.through.set()
    eventually(lambda: server.reports)
    server.open(tmp_path / "s.db").close()
    assert len(set(bodies(server))) == 1, (
        "the same bytes must be sent again, because the receipt came too late"
    )


HANGING = """
import sys, time
from frankly_sdk.testing import FakeServer, make_survey, open_client
server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
def post(url, body, limit):
    print("posting", flush=True)
    time.sleep(60)
server.post = post
client = open_client(server.link, sys.argv[1], transport=server, clock=server.clock, background=True)
client.answer({"smokes": "yes"}, patience_s=0)
sys.stdin.readline()
print(time.monotonic(), flush=True)
"""


@pytest.mark.slow
def test_a_process_ends_without_waiting_for_a_server_that_hangs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(tmp_path / "s.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "posting\n"
    ended_from = float(process.communicate("go\n", timeout=60)[0])
    # CLOCK_MONOTONIC is the same clock for all processes of a machine, so the duration includes the
    # interpreter's shutdown. The sender waits for at most STOP_S, the server for a minute.
    assert time.monotonic() - ended_from < 30
    assert process.returncode == 0


def test_a_forked_child_starts_its_own(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db", background=True) as client:
        eventually(senders)
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                client.answer(ANSWER, patience_s=0)
                server.clock.advance(timedelta(seconds=1))
                eventually(lambda: server.reports)
                client.close()
                os.write(writer, b"%d" % len(bodies(server)))
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            assert file.read() == b"1"
        os.wait()
        assert refusal(AlreadyAnswered, client.answer, ANSWER).receipt.status == "sent"
    assert bodies(server) == []


LOCKER = """
import sys
from pathlib import Path
from frankly_sdk._turns import Turns
with Turns(Path(sys.argv[1])).turn("ab" * 16, 0) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.readline()
"""


def test_turns_of_two_processes(tmp_path: Path) -> None:
    """A sender waits for the turn of another process; when that process ends, the turn is free."""
    turns, other_report = Turns.of(tmp_path / "s.db"), "cd" * 16
    process = subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(turns.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    with turns.turn("ab" * 16, 0.05) as is_ours, turns.turn(other_report, 0) as is_free:
        assert (is_ours, is_free) == (False, True)
    process.communicate("end\n", timeout=60)
    with turns.turn("ab" * 16, 5) as is_ours:
        assert is_ours
    assert (turns.path.stat().st_mode & 0o777, turns.path.read_bytes()) == (0o600, b"")


def test_a_folder_that_takes_no_lock_file_still_has_turns(tmp_path: Path) -> None:
    turns = Turns(tmp_path / "missing" / "s.db-sending")
    with turns.turn("ab" * 16, 0) as first, turns.turn("ab" * 16, 0) as second:
        assert (first, second) == (True, False)


PAIR = """
import sys
from frankly_sdk import Client, AlreadyAnswered
client = Client.open(sys.argv[1], sys.argv[2], background=True, spread_s=0.2)
try:
    client.answer({"smokes": "yes"}, respondent=sys.argv[3], patience_s=0)
except AlreadyAnswered:
    pass
print("sealed", flush=True)
sys.stdin.readline()
client.close()
"""


@pytest.mark.slow
def test_two_processes_with_one_store_send_every_report_once(tmp_path: Path) -> None:
    """Each process also sees the reports of the other; a real server counts the reports that arrive."""
    with site() as served:
        received: list[bytes] = []
        reply = served.reply

        def counting(request: bytes) -> bytes:
            if request.startswith(b"POST"):
                received.append(request.rpartition(b"\r\n\r\n")[2])
            return reply(request)

        served.reply = counting  # type: ignore[method-assign]
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", PAIR, served.link, str(tmp_path / "s.db"), respondent],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for respondent in ("a", "b")
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "sealed\n"
        eventually(lambda: len(set(received)) == 2)
        for process in processes:
            process.communicate("end\n", timeout=60)
    assert len(received) == len(set(received)) == 2
