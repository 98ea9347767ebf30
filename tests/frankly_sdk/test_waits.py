# SPDX-License-Identifier: Apache-2.0
"""Waits end when the caller asked, whatever hangs: the look-up of a name, a connection, a server.

The transport's own limits are raised to a minute here, so that only the caller's limit can end a
wait. Times are compared with ten seconds more than the limit, because a machine may be busy.
"""

import contextlib
import gc
import math
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from frankly_sdk import NetworkError, Policy
from frankly_sdk._steps import Stop
from frankly_sdk.relay import RelayTransport
from frankly_sdk.testing import FakeServer, make_survey
from frankly_sdk.transport import HttpTransport, Reply, within

from tests.faults.servers import Site, listening, ok, site
from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_sdk import fakes
from tests.frankly_sdk.drivers import OPENERS, driver  # noqa: F401
from tests.refusals import refusal

ANSWER = {"smokes": "yes"}
PATIENCE_S, BUSY_S = 0.4, 10


@pytest.fixture(autouse=True)
def patient_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONNECT_S", "READ_S", "OVERALL_S"):
        monkeypatch.setattr(f"frankly_sdk.transport.{name}", 60.0)


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def dripping(connection: socket.socket) -> None:
    connection.recv(65536)
    for byte in ok(b"{}" + b" " * 10_000):
        connection.sendall(bytes((byte,)))
        time.sleep(0.01)


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds + BUSY_S


class Hanging:
    """A survey on a real socket, whose server stops responding when the test says so."""

    def __init__(self, served: Site) -> None:
        self.link, self.over = served.link, threading.Event()
        self._is_silent, reply = False, served.reply

        def slow(request: bytes) -> bytes:
            if self._is_silent:
                self.over.wait(60)
            return reply(request)

        served.reply = slow  # type: ignore[method-assign]

    def stop_responding(self) -> None:
        self._is_silent = True

    def respond_again(self) -> None:
        self._is_silent = False
        self.over.set()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    with site() as served:
        made = Hanging(served)
        yield made
        made.over.set()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "aio"])
def test_answer_flush_and_open_end_in_time_with_a_silent_server(
    kind: str, hanging: Hanging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frankly_sdk._core.OPENING_S", PATIENCE_S)
    path = tmp_path / "s.db"
    with OPENERS[kind](hanging.link, path, spread_s=0) as client:
        hanging.stop_responding()
        with at_most(PATIENCE_S):
            receipt = client.answer(ANSWER, patience_s=PATIENCE_S)
        assert (receipt.status, receipt.code) == ("queued", "limit")
        for timeout_s in (PATIENCE_S, 0):
            with at_most(timeout_s + 1):
                assert [late.code for late in client.flush(timeout_s)] == ["limit"]
    for options in ({}, {"background": True}):
        with at_most(1), OPENERS["sync"](hanging.link, path, **options):
            pass
        if kind == "aio":
            with at_most(1):
                OPENERS["aio"](hanging.link, path, **options).close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "aio"])
def test_answer_ends_in_time_if_a_name_is_not_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    look_up = socket.getaddrinfo

    def endless(*arguments: Any, **options: Any) -> Any:
        over.wait(60)
        return look_up(*arguments, **options)

    server, http = FakeServer(make_survey({"smokes": ["no", "yes"]})), HttpTransport()
    monkeypatch.setattr(http, "get", server.get)
    with (
        contextlib.closing(http),
        OPENERS[kind](
            server.link, tmp_path / "s.db", transport=http, clock=server.clock, spread_s=0
        ) as client,
    ):
        monkeypatch.setattr(socket, "getaddrinfo", endless)
        with at_most(PATIENCE_S):
            assert client.answer(ANSWER, patience_s=PATIENCE_S).code == "limit"
        over.set()


def usable(hanging: Hanging, path: Path) -> None:
    """Check that an opening that has failed left no lock: the store can be opened and written."""
    with OPENERS["sync"](hanging.link, path, spread_s=0) as client:
        assert client.answer(ANSWER, patience_s=BUSY_S).status == "sent"


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPENERS)
@pytest.mark.parametrize("talk", [silent, dripping])
def test_a_first_opening_ends_in_time(
    talk: Callable[[socket.socket], None], kind: str, hanging: Hanging, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    with listening(talk) as origin:
        link = hanging.link.replace(urlsplit(hanging.link).netloc, urlsplit(origin).netloc)
        with at_most(PATIENCE_S):
            error = refusal(NetworkError, OPENERS[kind], link, path, patience_s=PATIENCE_S)
    assert (error.code, error.detail) == ("limit", "the server did not respond in time")
    usable(hanging, path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPENERS)
def test_a_first_opening_ends_in_time_if_a_name_is_not_found(
    kind: str, hanging: Hanging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, path, look_up = threading.Event(), tmp_path / "s.db", socket.getaddrinfo

    def endless(*arguments: Any, **options: Any) -> Any:
        over.wait(60)
        return look_up(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", endless)
        with at_most(PATIENCE_S):
            error = refusal(NetworkError, OPENERS[kind], hanging.link, path, patience_s=PATIENCE_S)
        over.set()
    assert error.code == "limit"
    usable(hanging, path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OPENERS)
def test_reports_of_an_earlier_run_do_not_extend_an_opening(
    kind: str, hanging: Hanging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The survey is stored, so it opens although its server does not respond."""
    for name in ("OPENING_S", "LEAST_S"):
        monkeypatch.setattr(f"frankly_sdk._core.{name}", 60.0)
    path = tmp_path / "s.db"
    with OPENERS["sync"](hanging.link, path, spread_s=3600) as client:
        client.answer(ANSWER, patience_s=0)
    hanging.stop_responding()
    with at_most(PATIENCE_S):
        client = OPENERS["sync" if kind == "background" else kind](
            hanging.link, path, background=kind == "background", patience_s=PATIENCE_S
        )
    hanging.respond_again()
    with at_most(0):
        client.close()
    with OPENERS["sync"](hanging.link, path) as client:
        assert {receipt.status for receipt in client.flush(BUSY_S)} <= {"sent"}


class Timed:
    """A transport whose requests take a second of the servers' clock, and end at a deadline.

    GET goes to `server`, and reports go to `first`, whose survey the store has answered before.
    """

    def __init__(self, server: FakeServer, first: FakeServer, deadline: float = math.inf) -> None:
        self._server, self._first, self._deadline = server, first, deadline

    def _take_a_second(self) -> None:
        clock = self._server.clock
        left_s = max(0.0, self._deadline - clock.timer())
        clock.advance(timedelta(seconds=min(1, left_s)))
        if left_s < 1:
            raise NetworkError("late", "limit")

    def get(self, url: str, limit: int) -> Reply:
        self._take_a_second()
        return self._server.get(url, limit)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        self._take_a_second()
        return self._first.post(url, body, limit)

    def within(self, seconds: float) -> "Timed":
        deadline = min(self._deadline, self._server.clock.timer() + seconds)
        return Timed(self._server, self._first, deadline)

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.usefixtures("driver")
def test_reports_of_an_earlier_run_take_half_of_the_time_of_opening(tmp_path: Path) -> None:
    """Their server responds, and the rest are sent later, without the limit of opening."""
    first, path = FakeServer(make_survey({"smokes": ["no", "yes"]})), tmp_path / "s.db"
    with OPENERS["sync"](first.link, path, **first._ours()) as client:
        list(client.randomise_many((f"p{i}", ANSWER, {}) for i in range(20)))
    second = FakeServer(make_survey({"drinks": ["no", "yes"]}), authority=first.authority)
    with second.open(path, transport=Timed(second, first), patience_s=20) as client:
        assert len(first.reports) == 10
        assert second.clock.timer() == 12  # the keys and the document
        client.flush(3600)
    assert len(first.reports) == 20


@pytest.mark.usefixtures("driver")
def test_without_time_only_a_stored_survey_opens(tmp_path: Path) -> None:
    server, path = FakeServer(make_survey({"smokes": ["no", "yes"]})), tmp_path / "s.db"
    timed = Timed(server, server)
    late = refusal(NetworkError, server.open, path, transport=timed, patience_s=0)
    assert (late.code, server.requests) == ("limit", [])
    server.open(path, transport=timed, patience_s=2).close()
    asked = len(server.requests)
    with server.open(path, transport=timed, patience_s=0) as client:
        assert client.survey.questions == {"smokes": ("no", "yes")}
        assert len(server.requests) == asked
        assert client.answer(ANSWER).status == "sent"


@pytest.mark.parametrize("relay", [None, "https://relay.example"])
def test_a_limit_within_a_limit_does_not_extend_it(relay: str | None) -> None:
    now = [0.0]
    with contextlib.closing(HttpTransport(lambda: now[0])) as http:
        transport = http if relay is None else RelayTransport(http, relay)
        for outer, inner in ((-1, 60), (60, -1)):
            late = within(within(transport, outer), inner)
            assert refusal(NetworkError, late.get, "https://collect.example", 99).code == "limit"


def not_reading(connection: socket.socket) -> None:
    connection.recv(1)
    threading.Event().wait(20)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("talk", [silent, dripping, not_reading])
def test_every_step_of_a_request_is_bounded(
    talk: Callable[[socket.socket], None], scheme: str
) -> None:
    """With https the TLS handshake hangs, without it the body of the request or of the response."""
    body = b"x" * (64 * 2**20 if talk is not_reading else 10)
    with listening(talk) as origin, contextlib.closing(HttpTransport()) as http:
        address = origin.replace("http", scheme)
        for transport in (http, RelayTransport(http, address)):
            with at_most(PATIENCE_S):
                error = refusal(NetworkError, within(transport, PATIENCE_S).post, address, body, 99)
            # A byte that is no TLS ends the handshake at once.
            is_no_tls = scheme == "https" and talk is dripping
            assert error.code == ("tls" if is_no_tls else "limit")


def test_a_deadline_that_has_passed_sends_nothing() -> None:
    asked = threading.Event()
    http = HttpTransport()
    with listening(lambda _connection: asked.set()) as origin, contextlib.closing(http):
        late = within(http, -1)
        assert refusal(NetworkError, late.get, origin, 99).code == "limit"
        assert refusal(NetworkError, late.post, origin, b"", 99).code == "limit"
        late.close()
    assert not asked.is_set()


def test_an_address_that_fails_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(lambda connection: connection.sendall(ok(b"{}"))) as origin:
        port, look_up = int(origin.rpartition(":")[2]), socket.getaddrinfo
        closed = look_up("127.0.0.2", 9, 0, socket.SOCK_STREAM)
        open_one = look_up("127.0.0.1", port, 0, socket.SOCK_STREAM)
        unknown = [(9999, *closed[0][1:])]  # as IPv6 on a kernel without it
        addresses = [*unknown, *closed, *open_one]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments: addresses)
        with contextlib.closing(HttpTransport()) as http:
            assert http.get(f"http://localhost:{port}/", 99).body == b"{}"


def test_silent_servers_together_use_the_time_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three servers do not respond; once the first has used up the time, the others are skipped."""
    hosts = tuple(f"c{i}.example" for i in range(3))
    policy, path = Policy(cap="20", collect_hosts=hosts), tmp_path / "s.db"
    down = NetworkError("down")
    for i, host in enumerate(hosts):
        document = replace(
            survey(ldp_block()), survey=f"{i:032x}", collect_url=f"https://{host}/v1/reports"
        )
        server = fakes.FakeServer(document=document, replies=[down] * 9)
        with server.open(path, policy=policy, spread_s=3600) as client:
            client.answer({"affair": "no"}, patience_s=0)
    last = fakes.FakeServer(document=survey(ldp_block(), survey_id="ef" * 16))
    with monkeypatch.context() as patched:
        patched.setattr("frankly_sdk.delivery.time", Passing(last))
        last.replies = [down] * 3
        with last.open(path, policy=policy) as client:
            assert len(last.posted) == 1, "opening"
            codes = sorted(receipt.code for receipt in client.flush(0))
    assert (codes, len(last.posted)) == (["network", "waiting", "waiting"], 2)


class Passing:
    """A clock that shows a minute more after each report that was posted."""

    def __init__(self, server: fakes.FakeServer) -> None:
        self._server = server

    def monotonic(self) -> float:
        return 60.0 * len(self._server.posted)


def test_what_is_left_is_counted_from_the_first_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has several things to end waits for them together no longer than for one."""
    stop, now = Stop(), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    assert stop.left_s(0.9) == 0.9
    stop.set()
    now[0] += 0.5
    stop.set()
    assert stop.left_s(0.9) == pytest.approx(0.4)
    now[0] += 5
    assert stop.left_s(0.9) == 0


def test_a_client_that_is_not_closed_closes_its_database(tmp_path: Path) -> None:
    """From Python 3.13 on, an open database that is collected is a ResourceWarning."""
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    client = server.open(tmp_path / "s.db")
    assert client._core.parts is not None
    opened = client._core.parts.store._database._current.db
    del client
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError):
        opened.execute("SELECT 1")
