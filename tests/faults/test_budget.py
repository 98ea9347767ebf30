# SPDX-License-Identifier: Apache-2.0
"""One hundred surveys, one install, a cap of 3 nats: three answers, through clock jumps and restarts."""

from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from frankly_sdk import BudgetExceeded, Client, Policy
from frankly_sdk.testing import Authority, FakeClock, FakeServer, make_survey

DECADE = timedelta(days=3652)
JUMPS = {"none": timedelta(0), "forward": DECADE, "backward": -DECADE}
CAP = Policy(cap="3")


def survey_at(at: datetime, epsilon: str = "1") -> FakeServer:
    """Return a survey open at `at`, with keys valid then, so that only the ledger can refuse it."""
    clock = FakeClock(at)
    return FakeServer(
        make_survey({"smokes": ["no", "yes"]}, epsilon, clock=clock), clock, Authority(clock)
    )


@pytest.mark.parametrize("surveys", [100])
def test_3_are_answered_and_97_refused(surveys: int, tmp_path: Path) -> None:
    """Each survey is opened by a new client, and the clock jumps by ten years between them."""
    start, outcomes = FakeClock().now(), list[str]()
    for i in range(surveys):
        jump = list(JUMPS.values())[i % 3]
        server = survey_at(start + jump)
        try:
            # Each server has its own pinned keys: trust in keys is not under test here.
            with server.open(tmp_path / "s.db", policy=CAP, keys=server.authority.keys) as client:  # type: ignore[union-attr]
                outcomes.append(client.answer({"smokes": "yes"}).status)
        except BudgetExceeded:
            outcomes.append("budget")
            assert not [request for request in server.requests if request.body is not None]
    assert outcomes == ["sent"] * 3 + ["budget"] * 97


def test_100_clients_opened_before_anything_is_spent(tmp_path: Path) -> None:
    """All are open at the same time; each answer checks the ledger again under its lock."""
    servers = [survey_at(FakeClock().now()) for _ in range(100)]
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
    assert outcomes == {"sent": 3, "budget": 97}


def test_a_clock_that_jumps_while_a_client_is_open_renews_nothing(tmp_path: Path) -> None:
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
    """No rounding at the edge: ten surveys at 0.3 fit a cap of 3, an eleventh of any size does not."""
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
