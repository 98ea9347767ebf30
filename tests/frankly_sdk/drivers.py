# SPDX-License-Identifier: Apache-2.0
"""Drivers that run the same tests with the sync client, with asyncio, and with a background sender.

The fixture `driver` replaces the function that `FakeServer.open` calls. The drivers have the
interface of the sync client, so the tests and their assertions stay the same.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import pytest
from frankly_sdk import AlreadyAnswered, Budget, Client, Event, Plan, Randomised, Receipt, aio
from frankly_sdk._core import PATIENCE_S
from frankly_sdk.store import Sealed
from frankly_sdk.survey import Survey
from frankly_sdk.testing import FakeClock, FakeServer, open_aio_client, open_client

from tests.frankly_sdk.fakes import Ticking

OPENERS: dict[str, Callable[..., Any]] = {}


@pytest.fixture(params=["sync", "aio", "background"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a test with each of the three clients; return the name of the current one."""
    with monkeypatch.context() as patched:
        for module in ("tests.frankly_sdk.fakes", "frankly_sdk.testing.server"):
            patched.setattr(f"{module}.open_client", OPENERS[request.param])
        yield request.param


SYNC_BY_DEFAULT = [
    "sync",
    pytest.param("aio", marks=pytest.mark.full_only),
    pytest.param("background", marks=pytest.mark.full_only),
]
"""Values of `driver` for tests that take long: those besides the sync client run with --full."""


class _Driven:
    """A client with the interface of the sync client."""

    client: Any

    @property
    def survey(self) -> Survey:
        """The accepted survey."""
        survey: Survey = self.client.survey
        return survey

    @property
    def _core(self) -> Any:
        return self.client._core

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class AioDriven(_Driven):
    """An asyncio client on an event loop in a separate thread; every call is a task of this loop."""

    def __init__(self, arguments: Any, options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        try:
            self.client: aio.Client = self.run(open_aio_client(*arguments, **options))
        except BaseException:
            self._end()
            raise

    def run(self, task: Any) -> Any:
        """Run a coroutine to completion, from any thread."""
        return asyncio.run_coroutine_threadsafe(task, self.loop).result(60)

    def plan(self, respondent: str | None = None) -> Plan:
        """Plan as the sync client does."""
        plan: Plan = self.run(self.client.plan(respondent))
        return plan

    def answer(self, *arguments: Any, **options: Any) -> Receipt:
        """Answer as the sync client does."""
        receipt: Receipt = self.run(self.client.answer(*arguments, **options))
        return receipt

    def budget(self, respondent: str | None = None) -> Budget:
        """Return the budget as the sync client does."""
        budget: Budget = self.run(self.client.budget(respondent))
        return budget

    def randomise_many(self, rows: Iterable[Any]) -> Iterator[Randomised]:
        """Seal rows as the sync client does; the client yields those of a transaction together."""
        results = self.client.randomise_many(rows)
        while (row := self.run(anext(results, None))) is not None:
            yield row

    def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Flush as the sync client does."""
        receipts: list[Receipt] = self.run(self.client.flush(timeout_s))
        return receipts

    def close(self) -> None:
        """Close the client and its loop."""
        self.run(self.client.close())
        self._end()

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Parking:
    """The background sender's wait, which ends when the sender is woken or the test calls `go`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_parked = False
        self._event = threading.Event()

    def wait(self, event: threading.Event, _seconds: float) -> None:
        """Park the sender."""
        with self._changed:
            self._is_parked, self._event = True, event
            self._changed.notify_all()
            while self._is_parked and not event.is_set():
                self._changed.wait(0.002)
            self._is_parked = False

    def settle(self) -> None:
        """Wait until the sender is parked."""
        until = time.monotonic() + 60
        with self._changed:
            while not self._is_parked or self._event.is_set():
                self._changed.wait(0.01)
                if time.monotonic() > until:
                    raise TimeoutError("the sender does not come to rest")

    def go(self) -> None:
        """Let the sender continue."""
        with self._changed:
            self._is_parked = False
            self._changed.notify_all()


class BackgroundDriven(_Driven):
    """A client that makes one attempt and leaves delivery to the background sender.

    `answer` sets no patience: the sender makes the further attempts, and its waits use the test's
    timer.
    """

    def __init__(self, arguments: Any, options: Any) -> None:
        if isinstance(options.get("timer"), Ticking):  # a self-advancing timer ends every wait
            clock = FakeClock()
            options |= {"timer": clock.timer, "sleep": clock.sleep}
        self.timer = options.get("timer", time.monotonic)
        self.sleep = options.get("sleep") or time.sleep
        self.parking = Parking()
        self.last = Event("queued", "")
        self._one_at_a_time = threading.Lock()
        heard = options.pop("on_event", None)

        def hear(event: Event) -> None:
            if event.name == "queued" and event.code != "sending":
                self.last = event
            if heard is not None:
                heard(event)

        self.client: Client = open_client(
            *arguments,
            **(options | {"on_event": hear, "background": True, "wait": self.parking.wait}),
        )
        if self.client.enabled:
            self.parking.settle()

    def plan(self, respondent: str | None = None) -> Plan:
        """Plan as the sync client does."""
        return self.client.plan(respondent)

    def answer(
        self,
        *arguments: Any,
        patience_s: float | None = None,
        respondent: str | None = None,
        **options: Any,
    ) -> Receipt:
        """Answer without patience, and leave further attempts to the sender."""
        begun = self.timer()
        try:
            receipt = self.client.answer(*arguments, patience_s=0, respondent=respondent, **options)
        except AlreadyAnswered as before:
            receipt = self._delivered(before.receipt, begun, patience_s, respondent)
            raise AlreadyAnswered(receipt) from None
        return self._delivered(receipt, begun, patience_s, respondent)

    def _patience_s(self, sealed: Sealed) -> float:
        """Return the time that a client without a sender has by default."""
        parts = self.client._core.parts
        assert parts is not None
        is_drawn = parts.sealing.planning.is_needed
        return PATIENCE_S + (parts.delivery.spread_left_s(sealed) if is_drawn else 0)

    def _delivered(
        self, receipt: Receipt, begun: float, patience_s: float | None, respondent: str | None
    ) -> Receipt:
        parts = self.client._core.parts
        assert parts is not None
        name = parts.store.respondent_name(respondent or "")
        while receipt.status == "queued":
            with self._one_at_a_time:
                self.parking.settle()
                sealed = parts.sealing.answered(name)
                assert sealed is not None
                if patience_s is None:
                    patience_s = self._patience_s(sealed)
                if sealed.state != "sealed":
                    return Receipt(sealed.state, sealed.code, "")
                wait_s = parts.delivery.due_s(sealed)
                if self.timer() + wait_s > begun + patience_s:
                    return Receipt("queued", self.last.code, self.last.detail)
                if wait_s > 0:
                    self.sleep(wait_s)
                self.parking.go()
        return receipt

    def budget(self, respondent: str | None = None) -> Budget:
        """Return the budget as the sync client does."""
        return self.client.budget(respondent)

    def randomise_many(self, rows: Iterable[Any]) -> Iterator[Randomised]:
        """Seal rows as the sync client does; the parked sender is woken after the last."""
        return self.client.randomise_many(rows)

    def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Flush as the sync client does, next to the parked sender."""
        return self.client.flush(timeout_s)

    def close(self) -> None:
        """Close the client, which ends its sender."""
        self.client.close()
        parts: Any = self.client._core.parts
        running = parts and parts.sender._running
        assert running is None or not running.thread.is_alive()


OPENERS |= {
    "sync": open_client,
    "aio": lambda *arguments, **options: AioDriven(arguments, options),
    "background": lambda *arguments, **options: BackgroundDriven(arguments, options),
}


def bodies(server: FakeServer) -> list[bytes]:
    """Return every report sent."""
    return [request.body for request in server.requests if request.body is not None]
