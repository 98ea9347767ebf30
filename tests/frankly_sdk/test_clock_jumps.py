# SPDX-License-Identifier: Apache-2.0
"""The clock of a device jumps by a day: one value, sent once; errors name a wrong clock.

Each test runs with the sync client, with asyncio and with a background sender.
"""

from datetime import timedelta
from pathlib import Path

import pytest
from frankly_sdk import AlreadyAnswered, Client, ClockError
from frankly_sdk.testing import FakeClock, FakeServer, make_survey

from tests.frankly_sdk.drivers import driver  # noqa: F401

pytestmark = pytest.mark.usefixtures("driver")
DAY = timedelta(days=1)
ANSWER = {"smokes": "yes"}


@pytest.fixture
def server() -> FakeServer:
    """A survey that opened yesterday by the server's clock, which is always correct."""
    clock = FakeClock()
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}, clock=clock), clock)
    clock.advance(DAY)
    return server


def at(server: FakeServer, ahead: timedelta) -> FakeClock:
    """Return a device clock that is ahead of the server's clock; timers are not affected."""
    clock = FakeClock()
    clock.set(server.clock.now() + ahead)
    return clock


def opened(server: FakeServer, path: Path, clock: FakeClock, **options: object) -> Client:
    return server.open(path, clock=clock, **options)


def bodies(server: FakeServer) -> set[bytes]:
    return {request.body for request in server.requests if request.body is not None}


@pytest.mark.parametrize("ahead", [DAY, -DAY], ids=["ahead", "behind"])
def test_a_jump_between_sealing_and_sending(
    server: FakeServer, tmp_path: Path, ahead: timedelta
) -> None:
    clock = at(server, timedelta(0))
    with opened(server, tmp_path / "s.db", clock, spread_s=3600.0) as client:
        assert client.answer(ANSWER, patience_s=0).status == "queued"
        clock.set(clock.now() + ahead)
        (receipt,) = client.flush(timeout_s=3600)
        assert receipt.status == "sent"
        # The timer measures the random delay, so a clock jump does not change the delay.
        assert sum(server.clock.naps) <= 3600
        with pytest.raises(AlreadyAnswered):
            client.answer(ANSWER)
    assert len(server.reports) == len(bodies(server)) == 1


@pytest.mark.parametrize("ahead", [DAY, -DAY], ids=["ahead", "behind"])
def test_a_jump_between_two_starts_of_the_app(
    server: FakeServer, tmp_path: Path, ahead: timedelta
) -> None:
    path = tmp_path / "s.db"
    with opened(server, path, at(server, timedelta(0)), spread_s=1e6) as client:
        assert client.answer(ANSWER, patience_s=0).status == "queued"
    with opened(server, path, at(server, ahead), spread_s=0) as client:
        assert not client.flush(timeout_s=10) or len(server.reports) == 1
    with opened(server, path, at(server, timedelta(0)), spread_s=0) as client:
        client.flush(timeout_s=10)
        with pytest.raises(AlreadyAnswered):
            client.answer(ANSWER)
    assert len(server.reports) == len(bodies(server)) == 1


def test_a_clock_outside_the_survey_is_named_and_can_be_set_right(
    server: FakeServer, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    length = server.document.closes - server.clock.now()
    for ahead in (-2 * DAY, length + DAY):
        with (
            pytest.raises(ClockError) as refused,
            opened(server, path, at(server, ahead)) as client,
        ):
            client.answer(ANSWER)
        assert "clock" in refused.value.detail
        assert not bodies(server)
    with opened(server, path, at(server, timedelta(0)), spread_s=0) as client:
        assert client.answer(ANSWER).status == "sent"
    assert len(server.reports) == 1
