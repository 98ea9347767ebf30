# SPDX-License-Identifier: Apache-2.0
"""Kills at any instruction: a new client opens the files on disk at that point and finishes.

While a client answers, the test traces every line and opcode of the SDK, in all threads, and copies
the store's files at each point, as SIGKILL would leave them. A new client opens each distinct state.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import frankly_sdk
import pytest
from frankly_sdk import AlreadyAnswered, Client, NetworkError, aio
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.frankly_sdk.fakes import ANSWERS, FakeServer

SDK = str(Path(frankly_sdk.__file__).parent)
# Its last lines in one thread run next to the next step, and it touches neither store nor network.
AIO = aio.__file__
NAME = "s.db"


@dataclass(frozen=True)
class Moment:
    """The store's files, and how many times the report was passed to the network."""

    files: tuple[tuple[str, bytes], ...]
    posted: int


def moments(
    folder: Path, server: FakeServer, action: Callable[[], object]
) -> tuple[list[Moment], Counter[str]]:
    """Run `action`; return the distinct moments in order, and the traced points of each thread.

    Threads that `action` starts are traced too.
    """
    distinct: dict[Moment, None] = {}
    points = Counter[str]()

    def moment() -> Moment | None:
        try:
            files = tuple((path.name, path.read_bytes()) for path in sorted(folder.iterdir()))
        except FileNotFoundError:  # another thread has deleted the journal
            return None
        return Moment(files, len(server.posted))

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name == AIO or not name.startswith(SDK):
            return None
        frame.f_trace_opcodes = True
        points[threading.current_thread().name] += 1
        # Read twice: files that another thread changes in between are in no state of the disk.
        if (first := moment()) is not None and first == moment():
            distinct.setdefault(first)
        return trace

    before, before_in_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        threading.settrace(before_in_threads)
    return list(distinct), points


def values_on_the_wire(moment: Moment, crashed: FakeServer, folder: Path) -> set[bytes]:
    """Restart from a moment with another answer; return all values that the server has received."""
    folder.mkdir()
    for name, data in moment.files:
        (folder / name).write_bytes(data)
    restarted = FakeServer(document=crashed.document)
    with restarted.open(folder / NAME) as client:
        try:
            client.answer({"affair": "no", "marriage": "bad"})
        except AlreadyAnswered as late:
            assert late.receipt.status == "sent"
    store = Store(folder / NAME)
    stored = store.answer(crashed.first_root, crashed.document.survey)
    assert stored is not None
    assert (stored.state, stored.body) == ("sent", None)
    store.close()
    return {*crashed.posted[: moment.posted], *restarted.posted}


@pytest.mark.slow
def test_killed_anywhere_there_is_one_value_and_it_arrives(
    driver: str,  # noqa: F811  the fixture
    tmp_path: Path,
) -> None:
    server, folder = FakeServer(), tmp_path / "first"
    folder.mkdir()
    if driver == "background":
        server.replies = [NetworkError("down")]  # the sender makes the second attempt

    def open_and_answer() -> None:
        with server.open(folder / NAME) as client:
            assert client.answer(ANSWERS).status == "sent"

    crash_points, points = moments(folder, server, open_and_answer)
    assert points.total() > 500
    thread = {"aio": "frankly-step", "background": "frankly-sender"}.get(driver)
    assert points[thread or threading.current_thread().name] > 100
    assert crash_points[-1].posted == (2 if driver == "background" else 1)
    assert len(crash_points) >= 8, (
        "expected at least: no file, new, opened, journal, sealed, sent, journal, erased"
    )
    for i, moment in enumerate(crash_points):
        assert len(values_on_the_wire(moment, server, tmp_path / str(i))) == 1, i


@pytest.mark.usefixtures("driver")
def test_sending_before_the_seal_is_durable_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method must detect a fault that sends before sealing."""
    server, folder = FakeServer(), tmp_path / "first"
    folder.mkdir()
    write = Store.seal

    def send_first(
        store: Store, chain: str, survey: str, report_id: str, body: bytes, respondent: str
    ) -> Any:
        server.post("", body, 0)
        return write(store, chain, survey, report_id, body, respondent)

    with server.open(folder / NAME) as client, monkeypatch.context() as wrong:
        wrong.setattr(Store, "seal", send_first)
        crash_points, _ = moments(folder, server, lambda: client.answer(ANSWERS))
    sent_values = [
        values_on_the_wire(moment, server, tmp_path / str(i))
        for i, moment in enumerate(crash_points)
    ]
    assert max(map(len, sent_values)) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("driver")
def test_the_store_does_not_depend_on_the_truth(tmp_path: Path) -> None:
    """With the same draws and the same symbol, no byte of the store depends on the answer at any moment."""
    document = survey(ldp_block())
    stores: list[list[bytes]] = []
    for truth in ("no", "yes"):
        server, folder = FakeServer(document=document), tmp_path / truth
        folder.mkdir()
        # The largest draw sends symbol 1 for both true answers.
        with server.open(folder / NAME, randbits=lambda bits: 2**bits - 1) as client:
            crash_points, _ = moments(folder, server, _answering(client, truth))
        # The journal is left out, because SQLite writes a random number to its header.
        stores.append(list(dict.fromkeys(dict(moment.files)[NAME] for moment in crash_points)))
    assert stores[0] == stores[1]
    assert len(stores[0]) >= 3


def _answering(client: Client, truth: str) -> Callable[[], object]:
    return lambda: client.answer({"affair": truth})
