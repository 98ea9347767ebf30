# SPDX-License-Identifier: Apache-2.0
"""Flush: receipts of what left while opening, batches of more than 100 reports, and the progress line."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.problems import Problem, problem_body
from frankly_sdk import Policy, StoreError
from frankly_sdk._turns import Turns
from frankly_sdk.cli import main
from frankly_sdk.store import Sealed, Store
from frankly_sdk.testing import FakeClock, FakeServer, drop, lose_receipt, make_survey, status
from frankly_sdk.transport import HttpTransport, Reply

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_sdk.drivers import OPENERS, BackgroundDriven, bodies, driver  # noqa: F401
from tests.frankly_sdk.fakes import FakeServer as OneByOne
from tests.frankly_server.web.site import NOW, make_site, waitress

BATCH = b'{"reports":['
Change = Callable[[list[dict[str, Any]]], object]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(make_survey({"smokes": ["no", "yes"]}))


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are tried in the order of the outbox instead of a random one."""
    monkeypatch.setattr("frankly_sdk.delivery.uniform", lambda: 0.5)


def seal(server: FakeServer, path: Path, n: int) -> list[bytes]:
    """Seal reports without sending any; return their bytes in the order of their ids."""
    with OPENERS["sync"](server.link, path, **server._ours()) as client:
        rows = client.randomise_many((f"p{i}", {"smokes": "yes"}, {}) for i in range(n))
        return sorted(row.report for row in rows)


def outbox(path: Path) -> list[Sealed]:
    store = Store(path)
    reports = store.outbox()
    assert store.pending() == len(reports)
    store.close()
    return reports


def statuses(receipts: Any) -> dict[tuple[str, str], int]:
    return Counter((receipt.status, receipt.code) for receipt in receipts)


def changed(change: Change) -> Callable[[Callable[[], Reply]], Reply]:
    """Return a step of the network that changes the results of a batch that the server has judged."""

    def step(server: Callable[[], Reply]) -> Reply:
        reply = server()
        content = json.loads(reply.body)
        change(content["results"])
        return replace(reply, body=json.dumps(content).encode())

    return step


def refused(problem: Problem) -> dict[str, Any]:
    return {"status": "refused", "problem": problem_body(problem, problem.title)}


# What left while the client opened


def run(server: FakeServer, folder: Path, *arguments: str) -> int:
    return main(
        [*arguments, "--link", server.link, "--store", str(folder / "s.db")],
        lambda chosen: server.open(
            chosen.store, policy=Policy(chosen.cap), on_event=chosen.progress
        ),
    )


def table(folder: Path, n: int) -> tuple[str, str]:
    rows = "".join(f"p{i},yes\n" for i in range(n))
    (folder / "in.csv").write_text(f"respondent,smokes\n{rows}", encoding="utf-8")
    return str(folder / "in.csv"), str(folder / "out.jsonl")


def test_the_command_counts_what_left_when_it_opened(
    server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(server, tmp_path, "randomise", *table(tmp_path, 30)) == 0
    assert server.reports == {}
    capsys.readouterr()
    assert run(server, tmp_path, "flush") == 0
    assert capsys.readouterr().err == "sent 30, queued 0, refused permanently 0\n"
    assert len(server.reports) == 30
    assert run(server, tmp_path, "flush") == 0
    assert capsys.readouterr().err == "sent 0, queued 0, refused permanently 0\n"


@pytest.mark.usefixtures("driver")
def test_the_first_flush_returns_the_receipts_of_opening_once(
    server: FakeServer, tmp_path: Path
) -> None:
    seal(server, tmp_path / "s.db", 3)
    server.network.then(status(410, "closed"), lambda server: server(), drop())
    with server.open(tmp_path / "s.db") as client:
        assert statuses(client.flush()) == {
            ("refused", "closed"): 1,
            ("sent", "accepted"): 2,  # one while opening, and the one that was lost then
        }
        assert client.flush() == []


@pytest.mark.usefixtures("driver")
def test_a_report_that_could_not_be_erased_while_opening_is_returned_once(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> None:
        raise StoreError("disk full")

    seal(server, tmp_path / "s.db", 2)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "close_answers", full)
        client = server.open(tmp_path / "s.db")
    with client:
        assert statuses(client.flush()) == {("sent", "duplicate"): 2}


# Batches


@pytest.mark.usefixtures("driver")
def test_many_reports_are_sent_in_batches_of_a_hundred(server: FakeServer, tmp_path: Path) -> None:
    sealed = seal(server, tmp_path / "s.db", 250)
    with server.open(tmp_path / "s.db") as client:
        assert statuses(client.flush()) == {("sent", "accepted"): 250}
    parts = (sealed[:100], sealed[100:200], sealed[200:])
    assert bodies(server) == [BATCH + b",".join(part) + b"]}" for part in parts]
    assert len(server.reports) == 250
    assert outbox(tmp_path / "s.db") == []
    files = [tmp_path / "s.db", tmp_path / "s.db-journal"]
    stored = b"".join(file.read_bytes() for file in files)
    assert not any(name.encode() in stored for name in server.reports)


@pytest.mark.usefixtures("driver")
def test_later_flushes_and_the_background_sender_use_batches_too(
    server: FakeServer, tmp_path: Path
) -> None:
    seal(server, tmp_path / "s.db", 150)
    server.network.online = False
    with server.open(tmp_path / "s.db") as client:
        attempts = bodies(server)
        assert [body.startswith(BATCH) for body in attempts] == [True, False]
        server.network.online = True
        if isinstance(client, BackgroundDriven):
            server.clock.advance(timedelta(hours=1))
            client.parking.go()
            client.parking.settle()
        else:
            assert statuses(client.flush()) == {("sent", "accepted"): 150}
    sent = bodies(server)[2:]
    assert sent[0] == attempts[0], "a retry must send the same bytes"
    assert [len(json.loads(body)["reports"]) for body in sent] == [100, 50]
    assert len(server.reports) == 150


@pytest.mark.parametrize(("n", "requests"), [(100, 100), (101, 2), (102, 2)])
@pytest.mark.usefixtures("driver")
def test_up_to_a_hundred_reports_are_sent_one_by_one(
    n: int, requests: int, server: FakeServer, tmp_path: Path
) -> None:
    seal(server, tmp_path / "s.db", n)
    server.open(tmp_path / "s.db").close()
    assert len(bodies(server)) == requests
    assert len(server.reports) == n


@pytest.mark.usefixtures("driver")
def test_a_transport_without_batches_sends_one_by_one(tmp_path: Path) -> None:
    server = OneByOne(document=survey(ldp_block()))
    with server.open(tmp_path / "s.db", relay="https://relay.example") as client:
        assert list(client.randomise_many((f"p{i}", {"affair": "no"}, {}) for i in range(101)))
        assert statuses(client.flush()) == {("sent", "accepted"): 101}
    assert len(server.posted) == 101


def mixed(results: list[dict[str, Any]]) -> None:
    for i, problem in enumerate(
        (Problem.ID_CONFLICT, Problem.SURVEY_UNKNOWN, Problem.CLOSED, Problem.UNAVAILABLE), 2
    ):
        results[i] = refused(problem)
    results[6] = refused(Problem.CLOSED) | {"status": "accepted"}
    results[7]["problem"] = {"code": "closed", "status": "410"}
    results[7]["status"] = "refused"
    results[8] = refused(Problem.CLOSED)
    results[8]["problem"]["status"] = 404


@pytest.mark.usefixtures("driver")
def test_each_result_is_judged_as_a_reply_to_one_report(server: FakeServer, tmp_path: Path) -> None:
    sealed = seal(server, tmp_path / "s.db", 101)
    server.post(server.document.collect_url, sealed[1], 0)
    server.requests.clear()
    server.network.then(changed(mixed))
    with server.open(tmp_path / "s.db") as client:
        if isinstance(client, BackgroundDriven):
            client.close()
    assert len(bodies(server)) == 1, "the sender must not try again at once"
    kept = {report.body for report in outbox(tmp_path / "s.db")}
    assert kept == {sealed[i] for i in (3, 5, 6, 7, 8, 100)}
    store = Store(tmp_path / "s.db")
    rows = store._database.rows("SELECT state, code FROM answers WHERE state != 'sealed'")
    store.close()
    assert Counter(rows) == {
        ("sent", "accepted"): 92,
        ("sent", "duplicate"): 1,
        ("refused", "id_conflict"): 1,
        ("refused", "closed"): 1,
    }


@pytest.mark.usefixtures("driver")
def test_receipts_of_a_mixed_batch(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db") as client:
        list(client.randomise_many((f"p{i}", {"smokes": "no"}, {}) for i in range(101)))
        server.network.then(changed(mixed))
        assert statuses(client.flush()) == {
            ("sent", "accepted"): 93,
            ("refused", "id_conflict"): 1,
            ("queued", "survey_unknown"): 1,
            ("refused", "closed"): 1,
            ("queued", "unavailable"): 1,
            ("queued", "no_receipt"): 2,
            ("queued", "http_404"): 1,
            ("queued", "network"): 1,  # skipped after the failures of the batch
        }
        assert statuses(client.flush()) == {("sent", "duplicate"): 5, ("sent", "accepted"): 1}
    assert len(server.reports) == 101


def test_after_the_survey_has_closed_any_refusal_in_a_batch_is_final(
    server: FakeServer, tmp_path: Path
) -> None:
    def unknown(results: list[dict[str, Any]]) -> None:
        results[0] = refused(Problem.SURVEY_UNKNOWN)
        results[1] = refused(Problem.UNAVAILABLE)

    with server.open(tmp_path / "s.db") as client:
        list(client.randomise_many((f"p{i}", {"smokes": "no"}, {}) for i in range(101)))
        server.clock.set(server.document.closes + timedelta(minutes=11))
        server.network.then(changed(unknown))
        assert statuses(client.flush()) == {
            ("refused", "closed"): 99,
            ("queued", "unavailable"): 1,
            ("queued", "network"): 1,
        }


def reply(code: int, body: bytes) -> Callable[[Callable[[], Reply]], Reply]:
    return lambda _server: Reply(code, "application/json", None, body)


def wrong_status(server: Callable[[], Reply]) -> Reply:
    return replace(server(), status=201)


def swapped(results: list[dict[str, Any]]) -> None:
    results[3] = refused(Problem.CLOSED)
    results[0], results[1] = results[1], results[0]


FAILURES: dict[str, Any] = {
    "lost": drop(),
    "lost on the way back": lose_receipt(),
    "a server that knows no batches": status(415, "content_type"),
    "a limit": status(413, "body_too_large"),
    "gone": status(410, "closed"),
    "busy": status(503),
    "a page": reply(200, b"<html>"),
    "a single receipt": reply(200, b'{"status":"accepted","id":"' + b"0" * 32 + b'"}'),
    "not a list": reply(200, b'{"results":{"0":{"status":"accepted"}}}'),
    "no objects": reply(200, json.dumps({"results": ["accepted"] * 100}).encode()),
    "another status": wrong_status,
    "too short": changed(lambda results: results.pop()),
    "too long": changed(lambda results: results.append(refused(Problem.CLOSED))),
    "another order": changed(swapped),
    "too large": changed(lambda results: results[0].update(x="x" * 2**18)),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("driver", ["sync", "aio"], indirect=True)
def test_a_batch_without_one_result_for_each_report_erases_nothing(
    failure: Any, server: FakeServer, tmp_path: Path
) -> None:
    sealed = seal(server, tmp_path / "s.db", 120)
    server.network.then(failure, drop())
    with server.open(tmp_path / "s.db") as client:
        assert [report.body for report in outbox(tmp_path / "s.db")] == sealed
        # The batch fails again, so its reports are sent one by one, and then the next batch.
        server.network.then(failure)
        server.requests.clear()
        assert {receipt.status for receipt in client.flush()} == {"sent"}
    assert bodies(server)[1:101] == sealed[:100]
    assert len(bodies(server)) == 102
    assert len(server.reports) == 120
    assert outbox(tmp_path / "s.db") == []


@pytest.mark.usefixtures("driver")
def test_a_busy_server_is_left_alone_as_long_as_it_asks(server: FakeServer, tmp_path: Path) -> None:
    seal(server, tmp_path / "s.db", 120)
    server.network.then(status(429, "too_many", retry_after=60))
    with server.open(tmp_path / "s.db") as client:
        assert statuses(client.flush(59)) == {("queued", "waiting"): 1, ("queued", "network"): 119}
        assert len(bodies(server)) == 1
        assert statuses(client.flush(60)) == {("sent", "accepted"): 120}


def test_a_report_that_is_not_due_is_in_no_batch(server: FakeServer, tmp_path: Path) -> None:
    with server.open(tmp_path / "s.db", spread_s=600) as client:
        assert client.answer({"smokes": "no"}, patience_s=0).code == "scheduled"
        list(client.randomise_many((f"p{i}", {"smokes": "no"}, {}) for i in range(101)))
        assert statuses(client.flush(0)) == {("sent", "accepted"): 101, ("queued", "scheduled"): 1}
        assert len(bodies(server)) == 2
        assert statuses(client.flush(600)) == {("sent", "accepted"): 1}


def test_a_report_that_another_sender_has_is_in_no_batch(
    server: FakeServer, tmp_path: Path
) -> None:
    with server.open(tmp_path / "s.db") as client:
        list(client.randomise_many((f"p{i}", {"smokes": "no"}, {}) for i in range(101)))
        others = outbox(tmp_path / "s.db")[7].report_id
        with Turns.of(tmp_path / "s.db").turn(others, 0):
            receipts = client.flush(0)
        assert statuses(receipts) == {("sent", "accepted"): 100, ("queued", "sending"): 1}
        assert others not in server.reports


@pytest.mark.usefixtures("driver")
def test_a_report_that_another_sender_has_delivered_is_in_no_batch(
    server: FakeServer, tmp_path: Path
) -> None:
    def deliver_another(_results: list[dict[str, Any]]) -> None:
        other = Store(tmp_path / "s.db")
        other.close_answer(other.outbox()[110], "sent", "duplicate")
        other.close_answer(other.outbox()[110], "refused", "closed")
        other.close()

    with server.open(tmp_path / "s.db") as client:
        list(client.randomise_many((f"p{i}", {"smokes": "no"}, {}) for i in range(150)))
        server.network.then(changed(deliver_another))
        assert statuses(client.flush()) == {
            ("sent", "accepted"): 148,
            ("sent", "duplicate"): 1,
            ("refused", "closed"): 1,
        }
    assert len(server.reports) == 148
    assert len(bodies(server)) == 2


# Name -> (body, status, code), as of the real server.
BAD = {
    "no JSON": (b"[", 400, "json_invalid"),
    "a list": (b"[]", 422, "field_type"),
    "no reports": (b'{"reports":[]}', 422, "field_type"),
    "too many": (b'{"reports":[' + b"0," * 1000 + b"0]}", 422, "field_type"),
    "too large": (b" " * (2 * 2**20 + 1), 413, "body_too_large"),
}


@pytest.mark.parametrize(("body", "expected", "code"), BAD.values(), ids=BAD)
def test_the_fake_server_refuses_a_bad_batch(
    body: bytes, expected: int, code: str, server: FakeServer
) -> None:
    reply = server.post_batch(server.document.collect_url, body, 0)
    assert (reply.status, json.loads(reply.body)["code"]) == (expected, code)


def test_the_fake_server_refuses_a_batch_of_another_survey(server: FakeServer) -> None:
    assert server.post_batch("https://collect.example/other", b"{}", 0).status == 404


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """Return the origin of a real server, and its site."""
    home = tmp_path_factory.mktemp("site")
    site = make_site(home, f"sqlite:///{home / 'frankly.db'}")
    with waitress(site.client.application) as address:
        yield address, site
    site.services.close()


def test_a_real_server_accepts_batches(
    driver: str,  # noqa: F811  the fixture
    origin: tuple[str, Any],
    tmp_path: Path,
) -> None:
    """Through a relay, because the survey's address is not the one at which the server listens."""
    address, site = origin
    stored = site.services.intake.accepted(site.survey)
    link = f"{site.settings.public_url}/s/{site.survey}#{site.digest.replace(':', '=')}"
    transport, clock = HttpTransport(), FakeClock(NOW)
    answers = {"smokes": "yes", "drinks": "daily"}
    options: dict[str, Any] = {"transport": transport, "clock": clock, "relay": address}
    options |= {"timer": clock.timer, "sleep": clock.sleep}
    with OPENERS[driver](link, tmp_path / "s.db", **options) as client:
        rows = ((f"p{i}", answers, {"region": "north"}) for i in range(150))
        reports = [row.report for row in client.randomise_many(rows)]
        if isinstance(client, BackgroundDriven):
            client.parking.settle()  # it has been woken, and has found that no report is due
        clock.sleep(1)
        before = outbox(tmp_path / "s.db")
        assert statuses(client.flush()) == {("sent", "accepted"): 150}
        # The same bytes again, as after a crash before the erasure.
        parts = client._core.parts
        assert parts is not None
        again = parts.delivery.deliver_batch(before[:100])
    assert len(set(reports)) == 150
    assert again.keys() == {report.report_id for report in before[:100]}
    assert site.services.intake.accepted(site.survey) == stored + 150
    transport.close()


# The progress line


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_progress(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(server, tmp_path, "randomise", *table(tmp_path, 1100)) == 0
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    assert run(server, tmp_path, "flush") == 0
    progress, last, rest = terminal.getvalue().split("\n")
    assert progress.split("\r") == ["", *(f"sent {i:,} of 1,100" for i in range(1, 1101))]
    assert (last, rest) == ("sent 1100, queued 0, refused permanently 0", "")


def test_the_progress_line_ends_before_an_error(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(server, tmp_path, "randomise", *table(tmp_path, 2)) == 0
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    assert run(server, tmp_path, "flush", "--cap", "0.5") == 4  # refused after sending
    progress, last = terminal.getvalue().split("\n", 1)
    assert progress == "\rsent 1 of 2\rsent 2 of 2"
    assert last.startswith("frankly-sdk: ")
    monkeypatch.setattr("sys.stderr", empty := Terminal())
    assert main(["flush", "--link", "no link", "--store", str(tmp_path / "new.db")]) == 3
    assert empty.getvalue().startswith("frankly-sdk: ")
    assert not (tmp_path / "new.db").exists()
