# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at every line and opcode from the call of `answer` to the end of its acknowledgement.

The points are found by tracing the SDK. At each one a separate process is killed; the next start
finishes the work.
"""

import json
import os
import shutil
import signal
import sys
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

SDK = str(Path(frankly_sdk.__file__).parent)
SPARSE = 24
"""Number of points by default, evenly spread from a varying first one; --full tests every point."""
CLOCK = FakeClock()
DOCUMENT = make_survey({"smokes": ["no", "yes"]}, clock=CLOCK)
AUTHORITY = Authority(CLOCK)
CHAIN = digest(Envelope.from_bytes(AUTHORITY.keys, KEYS_TYPE).payload)
Patch = Callable[["Wire"], Any]


class Wire(FakeServer):
    """A server that outlives devices: it appends every body to a file before anything else."""

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


def traced(action: Callable[[], object], at: Callable[[int], None]) -> int:
    """Run `action`, calling `at(i)` before the i-th line or opcode of the SDK; return their number."""
    points = 0

    def look(frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal points
        if not frame.f_code.co_filename.startswith(SDK) or "/testing/" in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        at(points)
        points += 1
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        action()
    finally:
        sys.settrace(before)
    return points


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that contains the survey already, so that opening it adds no points."""
    path = tmp_path_factory.mktemp("opened") / "s.db"
    Wire(path.parent / "wire").open(path).close()
    return path


class Death(NamedTuple):
    """All values the server has seen; if one was sealed and if one was sent before the death."""

    values: set[bytes]
    sealed: bool
    was_sent: bool


def die_at(point: int, folder: Path, opened: Path, patch: Patch) -> Death:
    """Kill a device at one point, start it again, and let it finish."""
    folder.mkdir()
    shutil.copy(opened, folder / "s.db")
    wire = Wire(folder / "wire")
    child = os.fork()
    if child == 0:
        try:
            patch(wire)
            client = wire.open(folder / "s.db", spread_s=0)
            traced(
                lambda: client.answer({"smokes": "yes"}),
                lambda i: _kill_self() if i == point else None,
            )
        finally:
            os._exit(3)  # the point was not reached
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
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
        assert sealed.body in wire.values(), "an answer was lost after its seal"
    values = wire.values()
    shutil.rmtree(folder)
    return Death(values, sealed is not None, was_sent)


def spread(points: int, full: bool) -> range:
    step = 1 if full else points // SPARSE
    return range(os.getpid() % step, points, step)


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def count_points(folder: Path, opened: Path) -> int:
    shutil.copy(opened, folder / "count.db")
    with Wire(folder / "count.wire").open(folder / "count.db", spread_s=0) as client:
        return traced(lambda: client.answer({"smokes": "yes"}), lambda _i: None)


def test_killed_at_any_point_there_is_one_value_and_it_arrives(
    full: bool, opened: Path, tmp_path: Path
) -> None:
    points = count_points(tmp_path, opened)
    assert points > 150
    deaths = [
        die_at(point, tmp_path / str(point), opened, lambda _wire: None)
        for point in spread(points, full)
    ]
    assert {len(death.values) for death in deaths} == {1}
    assert all(death.sealed for death in deaths if death.was_sent), (
        "nothing is sent before the seal"
    )
    sealed = [death.sealed for death in deaths]
    assert sealed == sorted(sealed), "once sealed, it stays sealed"
    assert set(sealed) == {False, True}, "there are points before and after the seal"


def test_sending_before_the_seal_is_durable_is_detected(
    full: bool, opened: Path, tmp_path: Path
) -> None:
    """In the wrong order, the same harness must find second values."""

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
        die_at(point, tmp_path / str(point), opened, send_first) for point in spread(points, full)
    ]
    caught = [len(death.values) == 2 for death in deaths]
    assert caught == [death.was_sent and not death.sealed for death in deaths], (
        "second values exactly at the points between sending and sealing"
    )
    assert any(caught)


def test_every_killed_value_is_a_report_of_the_document(opened: Path, tmp_path: Path) -> None:
    (body,) = die_at(
        count_points(tmp_path, opened) - 1, tmp_path / "last", opened, lambda _wire: None
    ).values
    assert json.loads(body)["doc"] == DOCUMENT.digest
    assert len(body) == DOCUMENT.report_length
