# SPDX-License-Identifier: Apache-2.0
"""Refusal of requests while no slot is free: the first waits, others are refused immediately,
liveness is never refused."""

import json
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from frankly_server.web import slots
from frankly_server.web.metrics import Metrics
from frankly_server.web.slots import LIVE, Slots


class Held:
    """An application whose requests wait until the test releases them."""

    def __init__(self) -> None:
        self.let_go, self.begun = threading.Event(), threading.Semaphore(0)

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] != LIVE:
            self.begun.release()
            assert self.let_go.wait(60)
        if environ["PATH_INFO"] == "/fails":
            raise ZeroDivisionError
        start_response("200 OK", [])
        return [b"done"]


def ask(
    application: Slots, path: str = "/v1/keys", method: str = "GET"
) -> tuple[str, dict[str, str], bytes]:
    """Return the status, headers and body of a response."""
    said: list[Any] = []
    body = application(
        {"PATH_INFO": path, "REQUEST_METHOD": method},
        lambda *head: said.append(head),  # type: ignore[arg-type]
    )
    (status, headers), text = said[0], b"".join(body)
    return status, dict(headers), text


@pytest.mark.parametrize("number", [1, 3])
def test_a_free_thread_refuses_while_all_slots_wait(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, counted, waits = Held(), Metrics(), []
    application = Slots(held, number, counted)
    acquire = application._free.acquire

    def counting(blocking: bool = True, timeout: float | None = None) -> bool:
        waits.append(timeout)
        return acquire(blocking, timeout)

    monkeypatch.setattr(application._free, "acquire", counting)
    monkeypatch.setattr(slots, "_WAIT_S", 0.01)
    threads = [threading.Thread(target=ask, args=(application,)) for _ in range(number)]
    for thread in threads:
        thread.start()
        assert held.begun.acquire(timeout=60)
    waits.clear()
    for _ in range(3):
        status, headers, body = ask(application, method="POST")
        assert (status, headers["Retry-After"]) == ("503 SERVICE UNAVAILABLE", "5")
        assert headers["Content-Type"] == "application/problem+json"
        assert int(headers["Content-Length"]) == len(body)
        assert json.loads(body)["code"] == "unavailable"
        assert ask(application, LIVE)[0] == "200 OK"
    assert waits == [None, 0.01, None, None]  # only the first request waits
    assert 'route="none",method="POST",status="503"} 3' in counted.text()
    held.let_go.set()
    for thread in threads:
        thread.join()
    assert ask(application)[0] == "200 OK"


def test_further_threads_wait_without_being_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has threads for slow work, too; of quick requests in them, one competes for a slot."""
    held, statuses, competing = Held(), list[str](), list[float | None]()
    application = Slots(held, 1, Metrics())
    acquire = application._free.acquire

    def counting(blocking: bool = True, timeout: float | None = None) -> bool:
        competing.extend([timeout] if timeout else [])
        return acquire(blocking, timeout)

    monkeypatch.setattr(application._free, "acquire", counting)
    monkeypatch.setattr(slots, "_WAIT_S", 60.0)
    threads = [
        threading.Thread(target=lambda: statuses.append(ask(application)[0])) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    assert held.begun.acquire(timeout=60)
    while not competing:
        time.sleep(0.001)
    time.sleep(0.05)  # time for the others to compete, which none may
    assert (competing, statuses) == ([60.0], [])
    held.let_go.set()
    for thread in threads:
        thread.join()
    assert statuses == ["200 OK"] * 6


def test_slow_work_that_ends_holds_no_slot_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold the slot idle until the requests that compete for it have been refused."""
    begun, slow, is_waiting = threading.Event(), threading.Event(), threading.Event()

    def work(environ: Any, start_response: Any) -> Iterable[bytes]:
        with environ[slots.SLOTS].released():
            begun.set()
            assert slow.wait(60)
        start_response("200 OK", [])
        return []

    application = Slots(work, 1, Metrics())
    thread = threading.Thread(target=ask, args=(application,), daemon=True)
    thread.start()
    assert begun.wait(60)
    # Two other requests, of which neither has taken the slot yet.
    for _ in range(2):
        assert application._entered.acquire(timeout=60)
    acquire = application._entered.acquire
    monkeypatch.setattr(application._entered, "acquire", lambda: is_waiting.set() or acquire())
    slow.set()
    assert is_waiting.wait(60)
    assert application._take()
    application._give_back()
    application._entered.release(2)
    thread.join(60)
    assert not thread.is_alive()


def test_a_failing_request_returns_its_slot() -> None:
    held = Held()
    held.let_go.set()
    application = Slots(held, 1, Metrics())
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            ask(application, "/fails")
    assert ask(application)[0] == "200 OK"
