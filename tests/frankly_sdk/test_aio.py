# SPDX-License-Identifier: Apache-2.0
"""Asyncio client: the loop stays responsive, a cancelled answer is drawn at most once, and close
ends waits.

Delivery and one-value tests also run with asyncio (tests/frankly_sdk/drivers.py).
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from frankly_sdk import AlreadyAnswered, Client, Disabled, InvalidInput, aio
from frankly_sdk.testing import FakeServer, drop, make_survey
from frankly_sdk.transport import Reply

from tests.frankly_sdk.drivers import Parking

ANSWER = {"smokes": "yes"}
SEAMS = {"transport", "clock", "randbits", "sleep", "timer", "wait"}


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}))


def run(task: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(task, 20))


class Gate:
    """A transport whose reports wait until the test opens the gate."""

    def __init__(self, server: FakeServer) -> None:
        self.get, self.close, self._server = server.get, server.close, server
        self.arrived, self.open = threading.Event(), threading.Event()

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        self.arrived.set()
        assert self.open.wait(60)
        return self._server.post(url, body, limit)


async def until(is_so: Callable[[], Any]) -> None:
    while not is_so():  # noqa: ASYNC110  events in threads
        await asyncio.sleep(0.002)


def test_both_clients_have_the_same_names_and_arguments_and_no_seam() -> None:
    """A test seam in a public signature would let an app replace the noise or the clock."""
    for kind in (Client, aio.Client):
        for name, method in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                assert not SEAMS & set(inspect.signature(method).parameters), name
    public = [name for name in dir(Client) if not name.startswith("_")]
    assert public == [name for name in dir(aio.Client) if not name.startswith("_")]
    for name in ("open", "answer", "budget", "flush", "close", "randomise_many"):
        sync, other = (inspect.signature(getattr(kind, name)) for kind in (Client, aio.Client))
        assert sync.parameters == other.parameters, name


def test_a_whole_visit(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit() -> None:
        async with await server.open_aio(tmp_path / "s.db") as client:
            assert client.enabled
            assert "smokes?" in str(client.survey.explain(budget=await client.budget()))
            rows: list[Any] = [(f"p{i}", ANSWER, {}) for i in range(3)]
            monkeypatch.setattr(aio, "ROWS_PER_TRANSACTION", 2)
            sealed = [row.status async for row in client.randomise_many(rows)]
            assert sealed == ["sealed"] * 3
            assert (await client.answer(ANSWER)).status == "sent"
            assert {receipt.status for receipt in await client.flush(60)} == {"sent"}
            with pytest.raises(AlreadyAnswered):
                await client.answer(ANSWER)
            with pytest.raises(InvalidInput):
                await client.flush(-1)

    run(visit())
    assert len(server.reports) == 4


def test_a_switched_off_client(server: FakeServer, tmp_path: Path) -> None:
    async def visit() -> None:
        async with await aio.Client.open(server.link, tmp_path / "s.db", enabled=False) as client:
            assert (await client.answer(ANSWER)).status == "disabled"
            assert [row async for row in client.randomise_many([])] == []
            with pytest.raises(Disabled):
                await client.budget()

    run(visit())
    assert list(tmp_path.iterdir()) == []


def test_the_loop_runs_while_a_server_does_not_respond(server: FakeServer, tmp_path: Path) -> None:
    gate = Gate(server)

    async def visit() -> int:
        async with await server.open_aio(tmp_path / "s.db", transport=gate) as client:
            answering, ticks = asyncio.ensure_future(client.answer(ANSWER)), 0
            while not gate.arrived.is_set() or ticks < 20:
                await asyncio.sleep(0.001)
                ticks += 1
            gate.open.set()
            assert (await answering).status == "sent"
            return ticks

    assert run(visit()) >= 20


@pytest.mark.parametrize("moment", ["before it runs", "in the request", "between two attempts"])
def test_a_cancelled_answer_is_drawn_once_or_not_at_all(
    moment: str, server: FakeServer, tmp_path: Path
) -> None:
    gate, draws = Gate(server), list[int]()

    def counted(bits: int) -> int:
        draws.append(bits)
        return 0

    options: dict[str, Any] = {"randbits": counted, "spread_s": 0}
    if moment == "in the request":
        options["transport"] = gate
    if moment == "between two attempts":
        server.network.then(drop())
        options["sleep"] = None  # a real wait of at least 0.25 seconds

    async def visit() -> None:
        async with await server.open_aio(tmp_path / "s.db", **options) as client:
            answering = asyncio.ensure_future(client.answer(ANSWER, patience_s=1000))
            if moment == "in the request":
                await until(gate.arrived.is_set)
            if moment == "between two attempts":
                await until(lambda: len(server.requests) == 3)
                await asyncio.sleep(0.05)
            answering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await answering
            gate.open.set()
            drawn_before = list(draws)
            if moment == "before it runs":
                assert drawn_before == []
                assert (await client.answer(ANSWER)).status == "sent"
            else:
                assert drawn_before == [48, 128]
                assert (await client.budget()).is_answered, "the cost must be charged"
                with pytest.raises(AlreadyAnswered) as again:
                    await client.answer({"smokes": "no"})
                assert again.value.receipt.status == "sent"
        assert draws == [48, 128]

    run(visit())
    assert len(server.reports) == 1
    assert len({request.body for request in server.requests if request.body}) == 1


def test_a_cancelled_answer_is_delivered_in_the_background(
    server: FakeServer, tmp_path: Path
) -> None:
    server.network.then(drop())
    parking = Parking()

    async def visit() -> None:
        options: dict[str, Any] = {"sleep": None, "spread_s": 0, "background": True}
        options["wait"] = parking.wait
        async with await server.open_aio(tmp_path / "s.db", **options) as client:
            parking.settle()  # a sender that is still starting might send the report first
            answering = asyncio.ensure_future(client.answer(ANSWER, patience_s=1000))
            await until(lambda: len(server.requests) == 3)
            await asyncio.sleep(0.05)
            answering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await answering
            server.clock.sleep(1)
            await until(lambda: parking.go() or server.reports)

    run(visit())


@pytest.mark.slow
def test_closing_ends_waits_and_leaves_slow_requests(server: FakeServer, tmp_path: Path) -> None:
    gate = Gate(server)

    async def visit() -> None:
        server.network.then(drop())
        first = await server.open_aio(tmp_path / "a.db", sleep=None, spread_s=0)
        waiting = asyncio.ensure_future(first.answer(ANSWER, patience_s=1000))
        await until(lambda: len(server.requests) == 3)
        await asyncio.sleep(0.02)
        await first.close()
        assert (await waiting).status == "queued"
        second = await server.open_aio(tmp_path / "b.db", transport=gate)
        stuck = asyncio.ensure_future(second.answer(ANSWER))
        await until(gate.arrived.is_set)
        start = time.monotonic()
        await second.close()
        # It gives the request a moment to end, but does not wait for it: the gate is still closed.
        assert 0.5 < time.monotonic() - start < 30
        stuck.cancel()

    run(visit())
    gate.open.set()


def test_a_cancelled_opening_closes_what_it_opened(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching, through, closed = threading.Event(), threading.Event(), threading.Event()
    get = server.get

    def slow(url: str, limit: int) -> Reply:
        fetching.set()
        assert through.wait(60)
        return get(url, limit)

    monkeypatch.setattr(server, "get", slow)
    monkeypatch.setattr("frankly_sdk._core.Core.close", lambda _core: closed.set())

    async def visit() -> None:
        opening = asyncio.ensure_future(server.open_aio(tmp_path / "s.db"))
        await until(fetching.is_set)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        through.set()
        await until(closed.is_set)

    run(visit())


def test_an_error_in_a_thread_holds_no_answer(server: FakeServer, tmp_path: Path) -> None:
    async def visit() -> None:
        async with await server.open_aio(tmp_path / "s.db") as client:
            with pytest.raises(Exception, match="valid") as caught:
                await client.answer({"smokes": "c4n4ry"})
            trace = caught.value.__traceback__
            while trace is not None:
                if trace.tb_frame.f_globals["__name__"].startswith("frankly_sdk"):
                    assert "c4n4ry" not in repr(trace.tb_frame.f_locals)
                trace = trace.tb_next

    run(visit())
