# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at every line and opcode between the call of `answer` and the end of the acknowledgement.

The points are found by tracing the SDK in all threads. At each one a separate process is killed;
the next start finishes the work. The sync client, asyncio and the background sender are killed.
"""

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import frankly_sdk
import pytest
from frankly_protocol.canonical import digest
from frankly_protocol.envelope import KEYS_TYPE, Envelope
from frankly_sdk import AlreadyAnswered
from frankly_sdk.store import Store
from frankly_sdk.testing import Authority, FakeClock, FakeServer, make_survey
from frankly_sdk.transport import Reply

from tests.frankly_sdk.drivers import SYNC_BY_DEFAULT, driver  # noqa: F401

SDK = str(Path(frankly_sdk.__file__).parent)
SPARSE = {"sync": 24, "aio": 8, "background": 8}
"""Number of points by default, evenly spread from a varying first one; --full tests every point of
the sync client, and every fourth one of the others."""
CLOCK = FakeClock()
DOCUMENT = make_survey({"smokes": ["no", "yes"]}, clock=CLOCK)
AUTHORITY = Authority(CLOCK)
CHAIN = digest(Envelope.from_bytes(AUTHORITY.keys, KEYS_TYPE).payload)
Patch = Callable[["Wire"], Any]
_NOT_REACHED = 3


class Wire(FakeServer):
    """A server that outlives devices, because it appends every body to a file first."""

    def __init__(self, seen: Path) -> None:
        super().__init__(DOCUMENT, FakeClock(), AUTHORITY)
        self.seen = seen

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        handle = os.open(self.seen, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, body + b"\n")
        os.close(handle)
        return super().post(url, body, limit)

    def values(self) -> set[bytes]:
        return set(self.seen.read_bytes().splitlines()) if self.seen.exists() else set()


class Points:
    """Lines and opcodes of the SDK, in the order in which the threads reach them, from `arm` on.

    at : called with the number of each point before it is executed.
    """

    def __init__(self, at: Callable[[int], None]) -> None:
        self.at = at
        self.count = 0
        self._is_armed = False
        self._counting = threading.Lock()
        self._before = sys.gettrace(), threading.gettrace()

    def watch(self) -> None:
        """Trace this thread, and the threads that start from now on."""
        threading.settrace(self._look)
        sys.settrace(self._look)

    def arm(self) -> None:
        """Count from now on, in the functions that are called from now on."""
        self._is_armed = True

    def end(self) -> None:
        """Stop counting and tracing."""
        self._is_armed = False
        own, others = self._before
        sys.settrace(own)
        threading.settrace(others)

    def _look(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not self._is_armed or not name.startswith(SDK) or "/testing/" in name:
            return None
        frame.f_trace_opcodes = True
        with self._counting:
            point = self.count
            self.count += 1
        self.at(point)
        return self._look


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that already contains the survey, so that opening the survey adds no points."""
    path = tmp_path_factory.mktemp("opened") / "s.db"
    Wire(path.parent / "wire").open(path).close()
    return path


class Death(NamedTuple):
    """All values the server has seen; if one was sealed and if one was sent before the death.

    was_reached : False if the process ended before the point.
    """

    values: set[bytes]
    sealed: bool
    was_sent: bool
    was_reached: bool


def answer_traced(wire: Wire, store: Path, at: Callable[[int], None]) -> int:
    """Answer once, calling `at` at every point; return the number of points."""
    points = Points(at)
    points.watch()
    try:
        with wire.open(store, spread_s=0) as client:
            points.arm()
            client.answer({"smokes": "yes"})
            points.end()
    finally:
        points.end()
    return points.count


def die_at(point: int, folder: Path, opened: Path, patch: Patch) -> Death:
    """Kill a device at one point, start it again, and let it finish."""
    folder.mkdir()
    shutil.copy(opened, folder / "s.db")
    wire = Wire(folder / "wire")
    child = os.fork()
    if child == 0:
        try:
            patch(wire)
            answer_traced(wire, folder / "s.db", lambda i: _kill_self() if i == point else None)
        finally:
            os._exit(_NOT_REACHED)
    status = os.waitpid(child, 0)[1]
    # Threads take their turns differently each time, so that their last points are not always there.
    assert status == signal.SIGKILL or os.waitstatus_to_exitcode(status) == _NOT_REACHED
    was_sent = bool(wire.values())
    store = Store(folder / "s.db")
    sealed = store.answer(CHAIN, DOCUMENT.survey)
    store.close()
    with wire.open(folder / "s.db", spread_s=0) as again:
        try:
            assert again.answer({"smokes": "no"}).status == "sent"
            assert sealed is None
        except AlreadyAnswered as late:
            assert sealed is not None
            assert late.receipt.status == "sent"
    if sealed is not None and sealed.body is not None:
        assert sealed.body in wire.values(), "a sealed answer must not be lost"
    values = wire.values()
    shutil.rmtree(folder)
    return Death(values, sealed is not None, was_sent, status == signal.SIGKILL)


def spread(points: int, full: bool, name: str) -> range:
    step = points // SPARSE[name]
    if full:
        step = 1 if name == "sync" else 4
    return range(os.getpid() % step, points, step)


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def count_points(folder: Path, opened: Path) -> int:
    shutil.copy(opened, folder / "count.db")
    return answer_traced(Wire(folder / "count.wire"), folder / "count.db", lambda _i: None)


def test_killed_at_any_point_there_is_one_value_and_it_arrives(
    driver: str,  # noqa: F811
    full: bool,
    opened: Path,
    tmp_path: Path,
) -> None:
    points = count_points(tmp_path, opened)
    assert points > 150
    deaths = [
        die_at(point, tmp_path / str(point), opened, lambda _wire: None)
        for point in spread(points, full, driver)
    ]
    reached = [death.was_reached for death in deaths]
    assert all(reached) if driver == "sync" else sum(reached) > len(reached) / 2
    assert {len(death.values) for death in deaths} == {1}
    assert all(death.sealed for death in deaths if death.was_sent), (
        "nothing may be sent before the seal"
    )
    sealed = [death.sealed for death in deaths]
    assert driver != "sync" or sealed == sorted(sealed), "once sealed, it stays sealed"
    assert set(sealed) == {False, True}, "there are points before and after the seal"


@pytest.mark.parametrize("driver", SYNC_BY_DEFAULT, indirect=True)
def test_sending_before_the_seal_is_durable_is_detected(
    driver: str,  # noqa: F811
    full: bool,
    opened: Path,
    tmp_path: Path,
) -> None:
    """With the wrong order, the same harness must find a second value."""

    def send_first(wire: Wire) -> None:
        write = Store.seal

        def wrong(
            store: Store, chain: str, survey: str, report_id: str, body: bytes, respondent: str = ""
        ) -> Any:
            wire.post(DOCUMENT.collect_url, body, 0)
            return write(store, chain, survey, report_id, body, respondent)

        Store.seal = wrong  # type: ignore[assignment, method-assign]

    points = count_points(tmp_path, opened)
    deaths = [
        die_at(point, tmp_path / str(point), opened, send_first)
        for point in spread(points, full, driver)
    ]
    caught = [len(death.values) == 2 for death in deaths]
    assert caught == [death.was_sent and not death.sealed for death in deaths], (
        "a second value must appear exactly at the points between sending and sealing"
    )
    assert any(caught)


def test_every_killed_value_is_a_report_of_the_document(opened: Path, tmp_path: Path) -> None:
    (body,) = die_at(
        count_points(tmp_path, opened) - 1, tmp_path / "last", opened, lambda _wire: None
    ).values
    assert json.loads(body)["doc"] == DOCUMENT.digest
    assert len(body) == DOCUMENT.report_length
