# SPDX-License-Identifier: Apache-2.0
"""Options of an app: events, logging, switching off, a relay, and the time of sending."""

import json
import logging
import pickle
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import frankly_sdk
import pytest
from frankly_sdk import Answer, Client, Event, FranklyError, InsecureTransport, LinkError
from frankly_sdk._steps import Stop
from frankly_sdk._turns import Turns
from frankly_sdk.delivery import Delivery
from frankly_sdk.store import Sealed, Store
from frankly_sdk.testing import FakeClock, FakeServer, drop, lose_receipt, make_survey, status
from frankly_sdk.transport import Reply, Transport

CANARY = "c4n4ry"


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", CANARY]}))


def test_events_are_recorded_in_order(server: FakeServer, tmp_path: Path) -> None:
    events: list[Event] = []
    server.network.then(*[drop()] * 9)
    with server.open(tmp_path / "s.db", on_event=events.append) as client:
        client.answer({"smokes": CANARY}, patience_s=0.02)
        server.network.then(lose_receipt())
        while client.flush(timeout_s=0)[-1].status == "queued":
            pass
    names = [event.name for event in events]
    assert names[:3] == ["opened", "sealed", "queued"]
    assert names[-1] == "sent"
    assert {event.survey for event in events} == {server.document.survey}
    assert CANARY not in repr(events)
    assert json.loads(server.requests[-1].body or b"{}")["id"] not in repr(events)


def test_events_do_not_depend_on_the_answer_or_the_draw(tmp_path: Path) -> None:
    event_logs = []
    document = make_survey({"smokes": ["no", CANARY]})
    for i, (answer, u) in enumerate((a, u) for a in ("no", CANARY) for u in (0, 2**48 - 1)):
        events: list[Any] = []
        server = FakeServer(document)
        with server.open(
            tmp_path / f"{i}.db", on_event=events.append, randbits=lambda b, u=u: u % 2**b
        ) as client:
            client.answer({"smokes": answer})
        event_logs.append(repr(events))
    assert len(set(event_logs)) == 1


def test_an_event_handler_that_fails_stops_nothing(
    server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_event: Event) -> None:
        raise ValueError(CANARY)

    with server.open(tmp_path / "s.db", on_event=fails) as client:
        assert client.answer({"smokes": CANARY}).status == "sent"
    assert "ValueError" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize("debug", [True, False])
def test_debug_writes_events_to_the_log_and_nothing_else(
    debug: bool, server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "frankly_sdk")
    with server.open(tmp_path / "s.db", debug=debug) as client:
        client.answer({"smokes": CANARY})
    ours = [record for record in caplog.records if record.name == "frankly_sdk"]
    assert len(ours) == (3 if debug else 0)
    assert CANARY not in caplog.text


def test_without_asking_for_it_nothing_is_written_to_the_log(
    server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "frankly_sdk")
    with server.open(tmp_path / "s.db") as client:
        client.answer({"smokes": CANARY})
    assert [record for record in caplog.records if record.name == "frankly_sdk"] == []


def test_switched_off_touches_neither_network_nor_files(server: FakeServer, tmp_path: Path) -> None:
    events: list[Event] = []
    with server.open(tmp_path / "s.db", enabled=False, on_event=events.append) as client:
        assert not client.enabled
        assert client.answer({"smokes": CANARY}).status == "disabled"
        assert client.flush() == []
        assert list(client.randomise_many([("p", {"smokes": CANARY}, {})])) == []
        with pytest.raises(FranklyError) as caught:
            _ = client.survey
    assert caught.value.code == "disabled"
    assert [event.name for event in events] == ["disabled", "disabled"]
    assert (server.requests, list(tmp_path.iterdir())) == ([], [])
    with pytest.raises(
        LinkError
    ):  # a developer's mistake raises an error even if the client is switched off
        Client.open("nonsense", tmp_path / "s.db", enabled=False)


class Recorder:
    """A transport that records URLs before it calls the server behind the relay."""

    def __init__(self, server: FakeServer, relay: str) -> None:
        self.server, self.relay, self.urls = server, relay, list[str]()

    def get(self, url: str, limit: int) -> Reply:
        self.urls.append(url)
        return self.server.get(url.replace(self.relay, "https://collect.example"), limit)

    def post(self, url: str, body: bytes, limit: int) -> Reply:
        self.urls.append(url)
        return self.server.post(url.replace(self.relay, "https://collect.example"), body, limit)

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("relay", ["https://relay.example", "https://relay.example/to/them/"])
def test_a_relay_carries_everything(relay: str, server: FakeServer, tmp_path: Path) -> None:
    recorder: Transport = Recorder(server, relay.rstrip("/"))
    with server.open(tmp_path / "s.db", transport=recorder, relay=relay) as client:
        assert client.answer({"smokes": "no"}).status == "sent"
    assert isinstance(recorder, Recorder)
    assert len(recorder.urls) == 3
    assert all(url.startswith(f"{relay.rstrip('/')}/v1/") for url in recorder.urls)
    assert f"?digest={server.document.digest}" in "".join(recorder.urls)


def test_a_relay_is_held_to_the_same_rules(server: FakeServer, tmp_path: Path) -> None:
    with pytest.raises(InsecureTransport) as caught:
        server.open(tmp_path / "s.db", relay="http://relay.example")
    assert caught.value.field == "relay"


def test_the_moment_of_sending_is_drawn_evenly_after_the_seal(tmp_path: Path) -> None:
    """Each tenth of the 100 seconds receives about 40 of 400 draws; six standard deviations are 36."""
    clock, tenths = FakeClock(), [0] * 10
    store = Store(tmp_path / "s.db")
    delivery = Delivery(
        FakeServer(make_survey({"q": ["a", "b"]})),
        store,
        Turns.of(tmp_path / "s.db"),
        clock,
        clock.timer,
        lambda _event: None,
        Stop(),
        100.0,
    )
    for i in range(400):
        sealed = Sealed("", "ab", "", "sha256:1", "https://host", str(i), b" ")
        delivery.schedule(sealed)
        tenths[int(delivery._not_before[str(i)] // 10)] += 1
    store.close()
    assert all(4 <= count <= 76 for count in tenths)


def test_the_moment_of_sending_does_not_depend_on_the_answer_or_the_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait has a separate random source; if that source is fixed, the time is always the same."""
    document, moments = make_survey({"smokes": ["no", "yes"]}), set()
    monkeypatch.setattr("frankly_sdk._backoff.secrets.randbits", lambda bits: 2**bits // 3)
    for i, (answer, u) in enumerate((a, u) for a in ("no", "yes") for u in (0, 2**48 - 1)):
        server = FakeServer(document)
        with server.open(
            tmp_path / f"{i}.db", randbits=lambda b, u=u: u % 2**b, spread_s=9.0
        ) as client:
            client.answer({"smokes": answer})
        moments.add(server.clock.timer())
    assert len(moments) == 1
    assert 2.9 < moments.pop() < 3.0


def test_without_patience_a_report_is_queued_until_its_moment(
    server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db", spread_s=1e6) as client:
        assert client.answer({"smokes": "no"}, patience_s=0).code == "scheduled"
        assert [receipt.code for receipt in client.flush(timeout_s=0)] == ["scheduled"]
        assert server.reports == {}
        assert [receipt.status for receipt in client.flush(timeout_s=1e6)] == ["sent"]


def test_the_wait_ends_with_the_process_and_the_next_opening_sends_at_once(
    server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db", spread_s=3600) as client:
        assert client.answer({"smokes": "no"}, patience_s=0).status == "queued"
        assert [request.body for request in server.requests if request.body is not None] == []
    with server.open(tmp_path / "s.db", spread_s=3600):
        assert len(server.reports) == 1
    with server.open(tmp_path / "other.db", spread_s=0) as client:
        assert client.answer({"smokes": "no"}, patience_s=0).status == "sent"


def test_a_scheduled_report_delays_no_other(tmp_path: Path) -> None:
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    with server.open(tmp_path / "s.db", spread_s=1e6) as slow:
        slow.answer({"smokes": "no"}, patience_s=0, respondent="a")
        for _ in slow.randomise_many([(str(i), {"smokes": "no"}, {}) for i in range(9)]):
            pass
        assert (
            sorted(receipt.status for receipt in slow.flush(timeout_s=0))
            == ["queued"] + ["sent"] * 9
        )


def test_an_answer_wrapped_by_the_app_shows_nothing_anywhere(
    server: FakeServer, tmp_path: Path
) -> None:
    answer = Answer({"smokes": CANARY})

    def fails(given: Answer) -> None:
        raise RuntimeError(f"{given}", given)

    with pytest.raises(RuntimeError) as caught:
        fails(answer)
    inner = caught.tb.tb_next
    trace = traceback.StackSummary.extract(traceback.walk_tb(inner), capture_locals=True).format()
    assert "given = Answer(…)" in "".join(trace)
    assert CANARY not in "".join(trace) + repr(caught.value)
    with pytest.raises(TypeError):
        pickle.dumps(answer)
    with server.open(tmp_path / "s.db") as client:
        assert client.answer(answer).status == "sent"


def test_every_exported_name_exists_and_the_package_is_typed() -> None:
    assert sorted(set(frankly_sdk.__all__)) == sorted(frankly_sdk.__all__)
    assert all(hasattr(frankly_sdk, name) for name in frankly_sdk.__all__)
    assert (Path(frankly_sdk.__file__).parent / "py.typed").exists()


def test_a_later_version_of_an_answered_survey_is_answered_already(tmp_path: Path) -> None:
    """A new version with the same questions keeps the first value and its cost."""
    first = FakeServer(make_survey({"smokes": ["no", "yes"]}))
    with first.open(tmp_path / "s.db") as client:
        client.answer({"smokes": "no"})
    second = FakeServer(
        replace(first.document, version=2, prev=first.document.digest, title={"en": "Again"}),
        authority=first.authority,
    )
    with second.open(tmp_path / "s.db") as client, pytest.raises(frankly_sdk.AlreadyAnswered):
        client.answer({"smokes": "no"})
    assert second.reports == {}


def test_a_final_refusal_is_an_event(server: FakeServer, tmp_path: Path) -> None:
    server.network.then(status(422, "symbol_unknown"))
    events: list[Event] = []
    with server.open(tmp_path / "s.db", on_event=events.append) as client:
        assert client.answer({"smokes": "no"}).status == "refused"
    assert [(event.name, event.code) for event in events][-1] == ("refused", "symbol_unknown")
