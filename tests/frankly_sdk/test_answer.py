# SPDX-License-Identifier: Apache-2.0
"""Randomise once, seal, then send: an interruption at any point leaves exactly one value.

Each test runs with the sync client, with asyncio and with a background sender.
"""

import json
import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import ceiling
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import (
    AlreadyAnswered,
    Client,
    NetworkError,
    RandomnessError,
    StoreError,
    UnknownChoice,
)
from frankly_sdk._sealing import Row
from frankly_sdk.answer import Answer
from frankly_sdk.store import Store
from frankly_sdk.transport import Reply

from tests.frankly_protocol.samples import at, ldp_block, survey
from tests.frankly_sdk.drivers import SYNC_BY_DEFAULT, driver  # noqa: F401
from tests.frankly_sdk.fakes import ANSWERS, FakeServer, problem, receipt
from tests.refusals import refusal
from tests.threads import concurrently

pytestmark = pytest.mark.usefixtures("driver")


def test_an_answer_is_sent_once_and_its_symbols_are_erased(tmp_path: Path) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        assert client.answer(ANSWERS).code == "accepted"
    (body,) = server.posted
    assert len(body) == server.document.report_length
    assert json.loads(body)["doc"] == server.document.digest
    store = Store(tmp_path / "s.db")
    stored = store.answer(server.first_root, server.document.survey)
    assert stored is not None
    assert (stored.state, stored.body, stored.report_id) == ("sent", None, "")
    store.close()
    assert json.loads(body)["id"].encode() not in _stored_bytes(tmp_path)


BAD_ANSWERS: list[tuple[Any, str | None]] = [
    ({"affair": "canary", "marriage": "good"}, "affair"),
    ({"affair": None, "marriage": "good"}, "affair"),
    ({"affair": True, "marriage": "good"}, "affair"),
    ({"affair": 1, "marriage": "good"}, "affair"),
    ({"affair": ["canary"], "marriage": "good"}, "affair"),
    ({"marriage": "good"}, "affair"),
    ({**ANSWERS, "canary": "yes"}, None),
    ({}, "affair"),
    (None, None),
    ("canary", None),
]


@pytest.mark.parametrize(("choices", "field"), BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_wrong_answers_list_what_is_valid_and_are_not_repeated(
    choices: Any, field: str | None, tmp_path: Path
) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        error = refusal(UnknownChoice, client.answer, choices)
        assert error.field == field
        assert error.valid in (("no", "yes"), ("affair", "marriage"))
        assert "canary" not in str(error)
        assert client.answer(ANSWERS).status == "sent"  # an invalid answer costs nothing
    assert len(server.posted) == 1


def test_a_second_answer_is_refused_and_never_drawn(tmp_path: Path) -> None:
    server, draws = FakeServer(), Counter[int]()

    def counted(bits: int) -> int:
        draws[bits] += 1
        return 0

    with server.open(tmp_path / "s.db", randbits=counted) as client:
        client.answer(ANSWERS)
        for again in (ANSWERS, {"affair": "no", "marriage": "bad"}):
            assert refusal(AlreadyAnswered, client.answer, again).receipt.status == "sent"
    assert draws == {48: 2, 128: 1}
    assert len(server.posted) == 1


def test_the_seal_is_durable_before_the_first_byte_is_sent(tmp_path: Path) -> None:
    """During the first send, another connection reads the committed row with the same bytes."""
    server, committed_rows = FakeServer(), []

    def read_store() -> None:
        with (
            closing(sqlite3.connect(f"file:{tmp_path / 's.db'}?mode=ro", uri=True)) as reader,
            reader,
        ):
            committed_rows.append(reader.execute("SELECT state, body FROM answers").fetchall())

    server.on_post = read_store
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS)
    assert committed_rows == [[("sealed", server.posted[0])]]


class Crash(BaseException):
    """Simulated end of the process."""


CRASHES = ["sample", "seal", "commit", "post", "after_post", "acknowledge"]


@pytest.mark.parametrize("point", CRASHES)
def test_after_a_crash_at_any_step_there_is_one_value(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash at any step and a restart, no second value is sent and no sealed report is lost."""
    server = FakeServer()
    client = server.open(tmp_path / "s.db")
    with monkeypatch.context() as patched:
        _crash_at(point, server, patched)
        with pytest.raises(Crash):
            client.answer(ANSWERS)
    server.on_post = lambda: None
    sealed_before = bool(_outbox(tmp_path / "s.db"))
    with server.open(tmp_path / "s.db") as again:
        if point in ("sample", "seal"):
            assert not sealed_before
            again.answer(ANSWERS)
        else:
            with pytest.raises(AlreadyAnswered):
                again.answer({"affair": "no", "marriage": "bad"})
    assert len(set(server.posted)) == 1
    assert _outbox(tmp_path / "s.db") == []
    client.close()  # a crash would also have ended the thread of its background sender


def _crash_at(point: str, server: FakeServer, patched: pytest.MonkeyPatch) -> None:
    def crash(*_args: object, **_options: object) -> None:
        raise Crash

    original_post = server.post

    def post_then_crash(url: str, body: bytes, limit: int) -> Reply:
        original_post(url, body, limit)
        raise Crash

    actions: dict[str, Callable[[], None]] = {
        "sample": lambda: patched.setattr(DenseMechanism, "sample", crash),
        "seal": lambda: patched.setattr(Store, "seal", crash),
        "commit": lambda: patched.setattr("frankly_sdk.delivery.Delivery.deliver", crash),
        "post": lambda: setattr(server, "on_post", crash),
        "after_post": lambda: patched.setattr(server, "post", post_then_crash),
        "acknowledge": lambda: patched.setattr(Store, "close_answer", crash),
    }
    actions[point]()


def _outbox(path: Path) -> list[object]:
    store = Store(path)
    queued: list[object] = list(store.outbox())
    store.close()
    return queued


def test_racing_threads_and_clients_draw_one_value(tmp_path: Path) -> None:
    server = FakeServer()
    clients = [server.open(tmp_path / "s.db") for _ in range(4)]
    outcomes: list[str] = []

    def race(client: Client) -> None:
        try:
            outcomes.append(client.answer(ANSWERS).status)
        except AlreadyAnswered as late:
            outcomes.append(f"late, {late.receipt.status}")

    concurrently(race, *[(client,) for client in clients] * 4)
    for client in clients:
        client.close()
    assert Counter(outcomes) == {"sent": 1, "late, sent": 15}
    assert len(set(server.posted)) == 1


def test_racing_processes_draw_one_value(tmp_path: Path) -> None:
    """Eight forks of one process answer at the same time, and the test compares the bodies that they send."""
    readers = []
    for _ in range(8):
        reader, writer = os.pipe()
        if os.fork() == 0:
            server = FakeServer()
            try:
                with server.open(tmp_path / "s.db") as client:
                    client.answer(ANSWERS)
            except AlreadyAnswered:
                pass
            finally:
                os.write(writer, b"\n".join(server.posted) + b"\n")
                os._exit(0)
        os.close(writer)
        readers.append(reader)
    piped = b"".join(os.read(reader, 65536) for reader in readers)
    for _ in readers:
        os.wait()
    bodies = {line.strip() for line in piped.splitlines() if line.strip()}
    assert len(bodies) == 1


def test_without_randomness_nothing_is_sealed_or_sent(tmp_path: Path) -> None:
    def broken(_bits: int) -> int:
        raise OSError("canary")

    server = FakeServer()
    with server.open(tmp_path / "s.db", randbits=broken) as client, pytest.raises(RandomnessError):
        client.answer(ANSWERS)
    assert server.posted == []
    assert _outbox(tmp_path / "s.db") == []


def test_the_source_of_randomness_is_the_operating_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the system's random source fails and the app passed no other source, there is no fallback."""

    def broken(_size: int) -> bytes:
        raise OSError("no entropy")

    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        with monkeypatch.context() as patched:
            patched.setattr("random._urandom", broken)
            with pytest.raises(RandomnessError):
                client.answer(ANSWERS)
        assert server.posted == []
        assert client.answer(ANSWERS).status == "sent"


@pytest.mark.parametrize("driver", SYNC_BY_DEFAULT, indirect=True)
def test_every_draw_of_a_small_mechanism_reaches_the_wire_as_published(tmp_path: Path) -> None:
    """For four bits, all draws and all truths, the symbols sent follow the signed rows exactly."""

    mechanism = DenseMechanism(4, ((9, 4, 3), (3, 4, 9)))
    document = survey(
        replace(
            ldp_block(),
            mechanism=mechanism,
            promises=at(ldp_block(), (3, 1)),
            ceiling=ceiling(mechanism),
        )
    )
    sent: dict[str, Counter[int]] = {"no": Counter(), "yes": Counter()}
    for (truth, row), u in product(sent.items(), range(16)):
        server = FakeServer(document=document)
        with server.open(
            tmp_path / f"{truth}{u}.db", randbits=lambda bits, u=u: u if bits == 4 else 7
        ) as client:
            client.answer({"affair": truth})
        row.update(json.loads(server.posted[0])["y"])
    assert [tuple(row[y] for y in range(3)) for row in sent.values()] == list(mechanism.weights)


REPLIES: list[tuple[list[Reply | Exception], str, str, int]] = [
    ([NetworkError("down")], "sent", "accepted", 2),
    ([problem(503, "unavailable", "1"), problem(429, "too_many")], "sent", "accepted", 3),
    ([problem(500, "internal")] * 3, "sent", "accepted", 4),
    ([problem(408, "timed_out")], "sent", "accepted", 2),
    ([Reply(200, "text/html", None, b"<html>hotel wifi</html>")], "sent", "accepted", 2),
    (
        [Reply(201, "application/json", None, b'{"status":"accepted","id":"other"}')],
        "sent",
        "accepted",
        2,
    ),
    ([Reply(200, "application/json", None, b"[" * 9999)], "sent", "accepted", 2),
    ([problem(503, "unavailable", "1000000000")], "queued", "unavailable", 1),
    ([problem(503, "unavailable", "-1")], "sent", "accepted", 2),
    ([problem(503, "unavailable", "tomorrow")], "sent", "accepted", 2),
    ([problem(409, "too_early", "86400")], "queued", "too_early", 1),
    ([problem(410, "closed")], "refused", "closed", 1),
    ([problem(409, "id_conflict")], "refused", "id_conflict", 1),
    ([problem(422, "symbol_unknown")], "refused", "symbol_unknown", 1),
    # A server that has lost its database for a while.
    ([problem(404, "survey_unknown")] * 2, "sent", "accepted", 3),
    ([problem(404, "survey_unknown")] * 50, "queued", "survey_unknown", 0),
    ([problem(418, "of_the_future")], "sent", "accepted", 2),
    # Replies of gateways and log-in pages, with any status, must erase nothing.
    ([Reply(404, "text/html", None, b"<html>")], "sent", "accepted", 2),
    ([Reply(410, "text/html", None, b"<html>")] * 50, "queued", "http_410", 0),
    ([problem(403, "closed")] * 50, "queued", "http_403", 0),
    ([Reply(301, "text/html", None, b"")] * 50, "queued", "http_301", 0),
    ([NetworkError("down")] * 50, "queued", "network", 4),
]


@pytest.mark.parametrize(("replies", "status", "code", "tries"), REPLIES, ids=range(len(REPLIES)))
def test_the_same_bytes_are_sent_until_a_definite_receipt(
    replies: list[Reply | Exception], status: str, code: str, tries: int, tmp_path: Path
) -> None:
    server = FakeServer(replies=list(replies))
    with server.open(tmp_path / "s.db") as client:
        result = client.answer(ANSWERS, patience_s=20)
    assert (result.status, result.code) == (status, code)
    assert len(set(server.posted)) == 1
    if status != "queued":
        assert len(server.posted) == tries
    # Sealed bytes are stored for later or permanently erased; their cost is never refunded.
    assert len(_outbox(tmp_path / "s.db")) == (status == "queued")
    store = Store(tmp_path / "s.db")
    assert store.spent() == [server.document.report_level.cost]
    store.close()


def test_queued_reports_are_sent_at_the_next_start(tmp_path: Path) -> None:
    server = FakeServer(replies=[NetworkError("down")] * 100)
    with server.open(tmp_path / "s.db") as client:
        assert client.answer(ANSWERS, patience_s=0).status == "queued"
    server.replies.clear()
    server.open(tmp_path / "s.db").close()
    assert len(set(server.posted)) == 1
    assert _outbox(tmp_path / "s.db") == []


def test_a_duplicate_is_an_acknowledgement(tmp_path: Path) -> None:
    """The first report was stored but its receipt was lost; the receipt "duplicate" acknowledges
    the report."""
    server = FakeServer(replies=[NetworkError("lost on the way back")])
    original = server.post

    def stored_before(url: str, body: bytes, limit: int) -> Reply:
        answer = original(url, body, limit)
        return Reply(200, answer.content_type, None, receipt(body, "duplicate"))

    server.post = stored_before  # type: ignore[method-assign]
    with server.open(tmp_path / "s.db") as client:
        assert client.answer(ANSWERS).code == "duplicate"


def test_the_store_is_private_and_never_holds_the_truth(tmp_path: Path) -> None:
    server = FakeServer(replies=[NetworkError("down")] * 50)
    with server.open(tmp_path / "s.db") as client:
        client.answer(ANSWERS, patience_s=0)
        stored_bytes = _stored_bytes(tmp_path)
    assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600
    # The cached document contains choice ids, but no id is stored as the answer to a question.
    assert b"'yes'" not in stored_bytes
    assert json.dumps(ANSWERS).encode() not in stored_bytes
    sealed = json.loads(server.posted[0])
    assert set(sealed) == {"v", "doc", "id", "y", "strata", "token"}
    assert all(type(y) is int for y in sealed["y"])


def _stored_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA user_version = 99")


BROKEN_STORES: list[Callable[[Path], object]] = [
    lambda path: path.mkdir(),
    lambda path: path.write_bytes(
        b"this is not a database at all, but it is long enough to be read as one" * 20
    ),
    _newer,
]


@pytest.mark.parametrize("breaks", BROKEN_STORES, ids=["folder", "corrupt", "newer"])
def test_a_store_that_cannot_be_used_stops_everything(
    breaks: Callable[[Path], object], tmp_path: Path
) -> None:
    breaks(tmp_path / "s.db")
    server = FakeServer()
    with pytest.raises(StoreError):
        server.open(tmp_path / "s.db")
    assert (server.fetched, server.posted) == ([], [])


def test_a_locked_store_stops_before_sampling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frankly_sdk._database._BUSY_S", 0.01)
    server = FakeServer()

    def never(_bits: int) -> int:
        raise AssertionError("nothing may be drawn")

    with server.open(tmp_path / "s.db", randbits=never) as client:
        locker = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
        locker.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError):
            client.answer(ANSWERS)
        locker.close()
    assert server.posted == []


def test_a_row_before_its_seal_shows_neither_answers_nor_token() -> None:
    row = Row("", Answer.of({"smokes": "c4n4ry"}), Answer.of({"region": "c4n4ry"}), "c4n4ry")
    assert "c4n4ry" not in repr(row)
