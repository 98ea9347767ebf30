# SPDX-License-Identifier: Apache-2.0
"""Budget of one install with a cap of 3 nats: three of many surveys are answered, despite clock
jumps and restarts.

The default is 30 surveys, because each survey syncs the store several times; --full uses 100.
"""

from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from frankly_sdk import BudgetExceeded, Client, Policy
from frankly_sdk.testing import Authority, FakeClock, FakeServer, make_survey

from tests.frankly_sdk.drivers import driver  # noqa: F401

DECADE = timedelta(days=3652)
JUMPS = {"none": timedelta(0), "forward": DECADE, "backward": -DECADE}
CAP = Policy(cap="3")


def survey_at(at: datetime, epsilon: str = "1") -> FakeServer:
    """Return a survey that is open at `at`, with keys valid at that time, so that only the ledger
    can refuse the survey."""
    clock = FakeClock(at)
    return FakeServer(
        make_survey({"smokes": ["no", "yes"]}, epsilon, clock=clock), clock, Authority(clock)
    )


@pytest.fixture
def surveys(full: bool) -> int:
    return 100 if full else 30


@pytest.mark.usefixtures("driver")
def test_3_are_answered_and_the_others_refused(surveys: int, tmp_path: Path) -> None:
    """A new client opens each survey, and the clock jumps by ten years between surveys."""
    start, outcomes = FakeClock().now(), list[str]()
    for i in range(surveys):
        jump = list(JUMPS.values())[i % 3]
        server = survey_at(start + jump)
        try:
            # Each server has its own pinned keys, because this test is not about trust in keys.
            with server.open(tmp_path / "s.db", policy=CAP, keys=server.authority.keys) as client:  # type: ignore[union-attr]
                outcomes.append(client.answer({"smokes": "yes"}).status)
        except BudgetExceeded:
            outcomes.append("budget")
            assert not [request for request in server.requests if request.body is not None]
    assert outcomes == ["sent"] * 3 + ["budget"] * (surveys - 3)


@pytest.mark.usefixtures("driver")
def test_clients_opened_before_anything_is_spent(surveys: int, tmp_path: Path) -> None:
    """All clients are open at the same time; each answer checks the ledger again while it holds the
    ledger's lock."""
    servers = [survey_at(FakeClock().now()) for _ in range(surveys)]
    keys = [server.authority.keys for server in servers if server.authority is not None]
    clients: list[Client] = []
    outcomes = {"sent": 0, "budget": 0}
    for server, pinned_keys in zip(servers, keys, strict=True):
        clients.append(server.open(tmp_path / "s.db", policy=CAP, keys=pinned_keys))
    for client in clients:
        try:
            outcomes[client.answer({"smokes": "no"}).status] += 1
        except BudgetExceeded:
            outcomes["budget"] += 1
        finally:
            client.close()
    assert outcomes == {"sent": 3, "budget": surveys - 3}


@pytest.mark.usefixtures("driver")
def test_a_clock_jump_while_a_client_is_open_renews_no_budget(tmp_path: Path) -> None:
    server = survey_at(FakeClock().now())
    with server.open(tmp_path / "s.db", policy=Policy(cap="1")) as client:
        client.answer({"smokes": "no"})
    for jump in JUMPS.values():
        late = survey_at(FakeClock().now() + jump)
        with pytest.raises(BudgetExceeded):
            late.open(tmp_path / "s.db", policy=Policy(cap="1"), keys=late.authority.keys)  # type: ignore[union-attr]


FRACTIONS = [("0.1", 30), ("0.3", 10), ("0.25", 12), ("0.7", 4), ("3", 1), ("2.99", 1)]


@pytest.mark.parametrize(("epsilon", "fits"), FRACTIONS)
def test_the_cap_admits_exactly_as_many_surveys_as_exact_arithmetic(
    epsilon: str, fits: int, tmp_path: Path
) -> None:
    """Nothing is rounded at the limit: ten surveys at 0.3 fit a cap of 3, but an eleventh of any
    size does not."""
    assert Fraction(epsilon) * fits <= 3 < Fraction(epsilon) * (fits + 1)
    sent_count = 0
    for _ in range(fits + 1):
        server = survey_at(FakeClock().now(), epsilon)
        try:
            with server.open(tmp_path / "s.db", policy=CAP, keys=server.authority.keys) as client:  # type: ignore[union-attr]
                sent_count += client.answer({"smokes": "no"}).status == "sent"
                assert fits >= sent_count
        except BudgetExceeded:
            assert sent_count == fits
    assert sent_count == fits
