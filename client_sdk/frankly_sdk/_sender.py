# SPDX-License-Identifier: Apache-2.0
"""Background sender: a thread that delivers the queued reports of a store.

It runs the same delivery as `Client.answer`, one attempt at a time, when a report is sealed or its
wait is over. It is a daemon thread, so that an unresponsive server never delays the end of a
process: unacknowledged reports stay sealed, and the same bytes are sent at the next start.
"""

import atexit
import contextlib
import os
import threading
from dataclasses import dataclass

from frankly_sdk._seams import Seams
from frankly_sdk._steps import run
from frankly_sdk.delivery import SENDING, Delivery
from frankly_sdk.errors import StoreError
from frankly_sdk.receipt import Receipt
from frankly_sdk.store import Sealed
from frankly_sdk.transport import OVERALL_S

STOP_S = 0.9
"""Longest wait, in seconds, for an attempt to end when the sender is stopped."""
# Polling interval: another process that uses the store cannot wake this thread.
_LOOK_S = 300.0
# Wait while another sender of the store has a report's turn.
_TURN_S = 1.0


@dataclass(slots=True)
class _Thread:
    """The running thread, with the id of its process: a forked child has to start its own."""

    pid: int
    due: threading.Event
    thread: threading.Thread


@dataclass(slots=True, eq=False)
class Sender:
    """Delivers a store's queued reports until `stop`; `wake` starts it.

    delivery : its `stop` ends the thread, too.
    """

    delivery: Delivery
    seams: Seams
    _running: _Thread | None = None
    _stopped: bool = False

    def wake(self) -> None:
        """Make the thread look for due reports now; start it if this process has none."""
        if self._stopped:
            return
        running = self._running
        if running is None or running.pid != os.getpid() or not running.thread.is_alive():
            due = threading.Event()
            thread = threading.Thread(
                target=self._run, args=(due,), name="frankly-sender", daemon=True
            )
            running = self._running = _Thread(os.getpid(), due, thread)
            thread.start()
        running.due.set()

    def start(self) -> None:
        """Start the thread; the end of the process stops it, if `stop` does not."""
        _open.append(self)
        self.wake()

    def stop(self) -> None:
        """End the thread; an attempt that takes longer than `STOP_S` is not interrupted."""
        self.tell()
        with contextlib.suppress(ValueError):
            _open.remove(self)
        running = self._running
        is_here = running is not None and running.pid == os.getpid()
        # An app may close in `on_event`.
        if running is not None and is_here and running.thread is not threading.current_thread():
            running.thread.join(self.delivery.stop.left_s(STOP_S))

    def tell(self) -> None:
        """Let the thread end, without waiting for it."""
        self._stopped = True
        self.delivery.stop.set()
        running = self._running
        if running is not None and running.pid == os.getpid():
            running.due.set()

    def _run(self, due: threading.Event) -> None:
        while not self.delivery.stop.is_set():
            pause_s = _LOOK_S
            # A store that cannot be read now, on a full or slow disk, may be readable later.
            with contextlib.suppress(StoreError):
                pause_s = self.round()
            self.seams.wait(due, pause_s)
            due.clear()

    def round(self) -> float:
        """Try every due report once; return the seconds until the next one is due."""
        soonest_s = _LOOK_S
        for reports in self.delivery.groups(self.delivery.due_s):
            # Checked again for each batch and report, because a failure of the previous one delays
            # the others to its server.
            is_batch = len(reports) > 1 and self.delivery.due_s(reports[0]) <= 0
            receipts = self.delivery.deliver_batch(reports) if is_batch else {}
            for sealed in reports:
                if self.delivery.stop.is_set():
                    return soonest_s
                wait_s = self._attempt(sealed, receipts.get(sealed.report_id))
                soonest_s = min(soonest_s, wait_s)
        return soonest_s

    def _attempt(self, sealed: Sealed, receipt: Receipt | None) -> float:
        """Send a report that is due and has no receipt of a batch.

        Returns the seconds until it is due again, infinity if it is settled.
        """
        if receipt is None:
            if (wait_s := self.delivery.due_s(sealed)) > 0:
                return wait_s
            # With a patience of 0, waits are below the timer's resolution.
            receipt = run(self.delivery.deliver(sealed, 0, OVERALL_S), lambda _s: None)
        if receipt.status != "queued":
            return float("inf")
        return _TURN_S if receipt.code == SENDING else max(0.0, self.delivery.due_s(sealed))


_open: list[Sender] = []
"""The senders that have not been stopped."""


def _stop_all() -> None:
    # All are told first, so that several clients together delay the end by no more than one.
    senders = list(_open)
    for sender in senders:
        sender.tell()
    for sender in senders:
        sender.stop()


atexit.register(_stop_all)
