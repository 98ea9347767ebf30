# SPDX-License-Identifier: Apache-2.0
"""Delivery of reports: waits between attempts, delivery at startup, and reports of closed surveys.

Each test runs with the sync client, with asyncio and with a background sender.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from frankly_sdk import AlreadyAnswered, ClockError, NetworkError, Policy, StoreError, SurveyClosed
from frankly_sdk.store import Store
from frankly_sdk.transport import Reply

from tests.frankly_protocol.samples import NOW, ldp_block, survey
from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.frankly_sdk.fakes import ANSWERS, FakeServer, problem
from tests.refusals import refusal

pytestmark = pytest.mark.usefixtures("driver")

DOWN = NetworkError("down")


class SleepingTimer:
    """A timer and its sleep function: time advances only during sleep, and every sleep is recorded."""

    def __init__(self) -> None:
        self.now = 0.0
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


class SetClock:
    """A clock that the test sets."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at


def _states(path: Path) -> dict[str, tuple[str, str]]:
    store = Store(path)
    answers = {form: store.answer(FakeServer().first_root, form) for form in ("ab" * 16, "cd" * 16)}
    states = {
        form: (answer.state, answer.code) for form, answer in answers.items() if answer is not None
    }
    store.close()
    return states


def test_waits_double_with_jitter_and_stay_within_patience(tmp_path: Path) -> None:
    time, server = SleepingTimer(), FakeServer(replies=[DOWN] * 99)
    with server.open(tmp_path / "s.db", timer=time, sleep=time.sleep) as client:
        assert client.answer(ANSWERS, patience_s=20_000).status == "queued"
    assert sum(time.naps) <= 20_000
    for i, nap in enumerate(time.naps):
        base = min(0.5 * 2**i, 3600)
        assert 0.5 * base <= nap < 1.5 * base
    assert len({nap / min(0.5 * 2**i, 3600) for i, nap in enumerate(time.naps)}) > 1, (
        "waits must have jitter"
    )
    assert len(set(server.posted)) == 1


WAITS = [
    ("7", 7.0, 7.5),
    ("0", 0.25, 0.75),
    ("-1", 0.25, 0.75),
    ("soon", 0.25, 0.75),
    ("٣", 0.25, 0.75),
    ("1" * 13, 0.25, 0.75),
]


@pytest.mark.parametrize(("retry_after", "smallest", "largest"), WAITS)
def test_retry_after_is_honoured_if_it_is_a_number_of_seconds(
    retry_after: str, smallest: float, largest: float, tmp_path: Path
) -> None:
    time, server = SleepingTimer(), FakeServer(replies=[problem(503, "unavailable", retry_after)])
    with server.open(tmp_path / "s.db", timer=time, sleep=time.sleep) as client:
        assert client.answer(ANSWERS).status == "sent"
    (nap,) = time.naps
    assert smallest <= nap <= largest


def test_retry_after_is_honoured_for_at_most_a_day(tmp_path: Path) -> None:
    time, server = SleepingTimer(), FakeServer(replies=[problem(429, "too_many", "1000000000")])
    with server.open(tmp_path / "s.db", timer=time, sleep=time.sleep) as client:
        assert client.answer(ANSWERS).code == "too_many"
        assert [receipt.code for receipt in client.flush(timeout_s=3600)] == ["waiting"]
        assert len(server.posted) == 1
        time.now = 24 * 3600.0
        assert [receipt.status for receipt in client.flush(timeout_s=0)] == ["sent"]
        assert client.flush() == []
    assert time.naps == []
    assert len(set(server.posted)) == 1


def test_jitter_without_randomness_still_delivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_bits: int) -> int:
        raise OSError

    monkeypatch.setattr("frankly_sdk._backoff.secrets.randbits", broken)
    with FakeServer(replies=[DOWN]).open(tmp_path / "s.db") as client:
        assert client.answer(ANSWERS).status == "sent"


def test_a_survey_that_closed_before_the_answer_draws_nothing(tmp_path: Path) -> None:
    clock, server = SetClock(), FakeServer()

    def never(_bits: int) -> int:
        raise AssertionError("nothing may be drawn")

    with server.open(tmp_path / "s.db", clock=clock, randbits=never) as client:
        clock.at = NOW + timedelta(days=31)
        assert "clock says" in refusal(SurveyClosed, client.answer, ANSWERS).detail
        clock.at = NOW - timedelta(days=2)
        with pytest.raises(ClockError):
            client.answer(ANSWERS)
    assert server.posted == []
    assert _states(tmp_path / "s.db") == {}


def test_a_survey_that_closed_after_the_seal_is_erased_and_still_counts(tmp_path: Path) -> None:
    """The next start delivers before it opens the survey, even if the survey can no longer be opened."""
    server = FakeServer(replies=[DOWN] * 99)
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, patience_s=0)
    server.replies = [problem(410, "closed")]
    with pytest.raises(ClockError):
        server.open(tmp_path / "s.db", clock=SetClock(NOW + timedelta(days=31)))
    assert _states(tmp_path / "s.db") == {"ab" * 16: ("refused", "closed")}
    assert server.posted[0].rstrip() not in (tmp_path / "s.db").read_bytes()
    with server.open(tmp_path / "s.db") as again, pytest.raises(AlreadyAnswered) as caught:
        again.answer(ANSWERS)
    assert (caught.value.receipt.status, caught.value.receipt.code) == ("refused", "closed")
    store = Store(tmp_path / "s.db")
    assert store.spent() == [server.document.report_level.cost]
    store.close()


def test_opening_one_survey_delivers_reports_of_another(tmp_path: Path) -> None:
    first = FakeServer(replies=[DOWN] * 99)
    with first.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, patience_s=0)
    second_survey = FakeServer(document=survey(survey_id="cd" * 16))
    with pytest.raises(NetworkError):
        second_survey.open(
            tmp_path / "s.db",
            link=f"https://other.example/s/{'ef' * 16}",
            transport=_Refusing(second_survey),
        )
    assert _states(tmp_path / "s.db") == {"ab" * 16: ("sent", "accepted")}
    assert second_survey.posted == first.posted[:1]


class _Refusing:
    """A server that accepts reports but serves no documents."""

    def __init__(self, server: FakeServer) -> None:
        self.post = server.post
        self.close = server.close

    def get(self, url: str, limit: int) -> Reply:
        raise NetworkError(f"no {url} within {limit}")


def test_a_server_out_of_reach_is_tried_once_in_a_flush(tmp_path: Path) -> None:
    document = survey(survey().blocks[0])
    for name in ("ab" * 16, "cd" * 16):
        server = FakeServer(document=replace(document, survey=name), replies=[DOWN] * 99)
        server.fetched.clear()
        with server.open(tmp_path / "s.db") as client:
            client.answer({"affair": "no"}, patience_s=0)
    server.posted.clear()
    with server.open(tmp_path / "s.db") as client:
        assert len(server.posted) == 1
        assert [receipt.status for receipt in client.flush(timeout_s=0)] == ["queued", "queued"]
        assert len(server.posted) == 2
        server.replies.clear()
        assert [receipt.status for receipt in client.flush(timeout_s=0)] == ["sent", "sent"]


class OneFails(FakeServer):
    """A server that answers every report of one survey in the same way."""

    failing, answer = "", problem(500, "internal")

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        if self.failing not in url:
            return super().post(url, body, limit)
        self.posted.append(body)
        return self.answer


def sealed_for_four(path: Path) -> list[str]:
    names = [f"{i:032x}" for i in range(4)]
    for name in names:
        original = survey(ldp_block())
        document = replace(original, survey=name, collect_url=f"{original.collect_url}/{name}")
        server = FakeServer(document=document, replies=[DOWN] * 99)
        with server.open(path, policy=Policy(cap="20")) as client:
            client.answer({"affair": "no"}, patience_s=0)
    return names


@pytest.mark.parametrize(
    "answer",
    [
        problem(413, "body_too_large"),
        problem(404, "survey_unknown"),
        problem(400, "json_invalid"),
        Reply(404, "text/html", None, b"<html>"),
        Reply(403, "text/html", None, b"<html>"),
    ],
    ids=lambda answer: f"{answer.status} {answer.content_type}",
)
def test_a_survey_that_is_not_taken_delays_no_other(answer: Reply, tmp_path: Path) -> None:
    names = sealed_for_four(tmp_path / "s.db")
    server = OneFails(document=survey(ldp_block(), survey_id="ef" * 16))
    server.failing, server.answer = names[1], answer
    with server.open(tmp_path / "s.db", policy=Policy(cap="64")):
        pass
    store = Store(tmp_path / "s.db")
    assert [sealed.survey for sealed in store.outbox()] == [names[1]]
    store.close()


def test_a_server_that_fails_on_one_report_gets_the_others_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure the other reports to the server wait, so the order is a new one each time."""
    names, rng = sealed_for_four(tmp_path / "s.db"), Random(4)
    monkeypatch.setattr("frankly_sdk.delivery.uniform", rng.random)
    server = OneFails(document=survey(ldp_block(), survey_id="ef" * 16))
    server.failing = names[0]
    with server.open(tmp_path / "s.db", policy=Policy(cap="64")) as client:
        for _ in range(20):
            left = client.flush(timeout_s=0)
    assert [receipt.code for receipt in left] == ["internal"]


def test_a_failed_erasure_is_repeated_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeServer()
    with monkeypatch.context() as patched:

        def full(*_args: object) -> None:
            raise StoreError("disk full")

        patched.setattr(Store, "close_answer", full)
        with server.open(tmp_path / "s.db") as client:
            assert client.answer(ANSWERS).status == "sent"
    assert _states(tmp_path / "s.db") == {"ab" * 16: ("sealed", "")}
    server.open(tmp_path / "s.db").close()
    assert _states(tmp_path / "s.db") == {"ab" * 16: ("sent", "accepted")}
    assert len(server.posted) == 2
    assert all(a == b for a, b in pairwise(server.posted))


def test_a_transport_that_was_passed_in_stays_open(tmp_path: Path) -> None:
    server, closed = FakeServer(), []
    server.close = lambda: closed.append(True)  # type: ignore[method-assign]
    server.open(tmp_path / "s.db").close()
    assert closed == []


STALLS = [
    NetworkError("slow", "limit"),
    NetworkError("certificate", "tls"),
    problem(503, "unavailable"),
    DOWN,
]


@pytest.mark.parametrize("stall", STALLS, ids=["tarpit", "tls", "busy", "down"])
def test_a_server_that_stalls_is_tried_once_per_start(
    stall: Reply | Exception, tmp_path: Path
) -> None:
    """With three sealed reports for one server, a start must not wait for the server three times."""
    policy = Policy(cap="20")
    for i in range(3):
        server = FakeServer(document=survey(ldp_block(), survey_id=f"{i:032x}"), replies=[DOWN] * 9)
        with server.open(tmp_path / "s.db", policy=policy) as client:
            client.answer({"affair": "no"}, patience_s=0)
    last = FakeServer(document=survey(ldp_block(), survey_id="ef" * 16), replies=[stall] * 9)
    last.open(tmp_path / "s.db", policy=policy).close()
    assert len(last.posted) == 1
