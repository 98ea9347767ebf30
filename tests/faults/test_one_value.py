# SPDX-License-Identifier: Apache-2.0
"""Delivery of one value per respondent and survey, despite concurrent answers and network failures.

Each test runs with the sync client, with asyncio and with a background sender.
"""

import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from frankly_sdk import AlreadyAnswered, Client, Policy
from frankly_sdk.testing import Authority, FakeClock, FakeServer, lose_receipt, make_survey

from tests.frankly_sdk.drivers import (
    bodies,
    driver,  # noqa: F401
)
from tests.threads import concurrently

pytestmark = pytest.mark.usefixtures("driver")
CLOCK = FakeClock()
DOCUMENT = make_survey({"smokes": ["no", "yes"]}, clock=CLOCK)
AUTHORITY = Authority(CLOCK)
CROWD = 32


def fresh() -> FakeServer:
    return FakeServer(DOCUMENT, FakeClock(), AUTHORITY)


def answered(client: Client, answer: str) -> str:
    try:
        return client.answer({"smokes": answer}).status
    except AlreadyAnswered as late:
        return f"late, {late.receipt.status}"


def test_32_threads_send_one_value(tmp_path: Path) -> None:
    server, outcomes, ready = fresh(), list[str](), threading.Barrier(CROWD)
    with server.open(tmp_path / "s.db", spread_s=0) as client:

        def race(i: int) -> None:
            ready.wait()
            outcomes.append(answered(client, ("no", "yes")[i % 2]))

        concurrently(race, *[(i,) for i in range(CROWD)])
    assert Counter(outcomes) == {"sent": 1, "late, sent": CROWD - 1}
    assert len(set(bodies(server))) == len(server.reports) == 1


def test_32_processes_send_one_value(driver: str, full: bool, tmp_path: Path) -> None:  # noqa: F811
    crowd = CROWD if full or driver == "sync" else CROWD // 4
    fresh().open(tmp_path / "s.db").close()
    start_reader, start_writer = os.pipe()
    readers = [_racer(tmp_path / "s.db", i, start_reader, start_writer) for i in range(crowd)]
    os.close(start_reader)
    os.close(start_writer)  # every process waits for this pipe to close
    outputs = [_all_of(reader) for reader in readers]
    statuses = [os.wait()[1] for _ in range(crowd)]
    assert statuses == [0] * crowd
    values = {line for text in outputs for line in text.splitlines() if line}
    assert len(values) == 1


def _racer(store: Path, i: int, start_reader: int, start_writer: int) -> int:
    """Fork a device that answers when all devices are ready, and writes the bodies that it sent to a pipe."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        status = 1
        try:
            os.close(start_writer)
            server = fresh()
            with server.open(store, spread_s=0) as client:
                os.read(start_reader, 1)
                answered(client, ("no", "yes")[i % 2])
            os.write(writer, b"".join(body + b"\n" for body in bodies(server)))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    return reader


def _all_of(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as file:
        return file.read()


# Event loops and threads that deliver do not survive forks; see test_sender.py.
@pytest.mark.parametrize("driver", ["sync"], indirect=True)
def test_a_fork_between_seal_and_send_sends_one_value(driver: str, tmp_path: Path) -> None:  # noqa: F811
    """The process forks after the seal and before the first byte is sent; both processes continue."""
    server, reader_writer = fresh(), os.pipe()
    children: list[int] = []

    def split(_seconds: float) -> None:
        children.append(os.fork())

    with server.open(tmp_path / "s.db", spread_s=1e-3, sleep=split, timer=_Steps()) as client:
        receipt = client.answer({"smokes": "yes"})
        if children[0] == 0:
            os.write(reader_writer[1], b"".join(bodies(server)))
            os._exit(0)
        assert os.waitpid(children[0], 0)[1] == 0
    os.close(reader_writer[1])
    child_output = _all_of(reader_writer[0])
    assert receipt.status == "sent"
    assert len([*bodies(server), *child_output.splitlines()]) == 1


class _Steps:
    """A timer that does not advance, so that the wait after the seal lasts until the fork."""

    def __call__(self) -> float:
        return 0.0


@pytest.mark.parametrize("across_starts", [False, True])
def test_1000_dropped_responses_are_one_value(
    across_starts: bool,
    full: bool,
    driver: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    """The server stores each report, but the receipt is lost, so the same bytes are sent again and
    stored once."""
    drops = 1000 if full or (driver == "sync" and not across_starts) else 50
    server = fresh()
    server.network.then(*[lose_receipt()] * drops)
    waits = FakeClock()  # waits advance only this clock
    client = server.open(tmp_path / "s.db", sleep=waits.sleep, timer=waits.timer)
    receipt: Any = client.answer({"smokes": "yes"}, patience_s=0.01 if across_starts else 3e7)
    while receipt.status != "sent":
        client.close()
        client = server.open(tmp_path / "s.db")
        with pytest.raises(AlreadyAnswered) as late:
            client.answer({"smokes": "no"}, patience_s=0)
        receipt = late.value.receipt
    client.close()
    assert len(bodies(server)) >= drops
    assert len(set(bodies(server))) == len(server.reports) == 1


def test_a_survey_answered_by_many_on_one_device_is_one_value_each(tmp_path: Path) -> None:
    server, outcomes = fresh(), list[str]()
    with server.open(tmp_path / "s.db", spread_s=0, policy=Policy(cap="1")) as client:

        def race(key: str) -> None:
            try:
                outcomes.append(client.answer({"smokes": "no"}, respondent=key).status)
            except AlreadyAnswered:
                outcomes.append("late")

        concurrently(race, *[(str(i % 8),) for i in range(16)])
    assert Counter(outcomes) == {"sent": 8, "late": 8}
    assert len(server.reports) == 8
