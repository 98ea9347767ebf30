# SPDX-License-Identifier: Apache-2.0
"""Delivery of sealed reports; every attempt sends the same bytes (docs/protocol.md §7)."""

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk.errors import LinkError, NetworkError, StoreError
from frankly_sdk.events import Event, OnEvent
from frankly_sdk.receipt import Receipt
from frankly_sdk.store import Sealed, Store
from frankly_sdk.transport import Reply, Transport

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 3600.0
# One day: no server may make a device wait longer.
_LONGEST_RETRY_AFTER_S = 24 * 3600.0
_RECEIPT_BYTES = 64 * 2**10
_ACKNOWLEDGED = ("accepted", "duplicate")
# Request Timeout, Too Early and Too Many Requests.
_TRY_AGAIN = frozenset({408, 425, 429})
_SPREAD = "scheduled"
_EVENLY = "sealed; it is sent at a random moment, so that the sending time reveals nothing"
_REST = "the server asked this device to wait; the answer will be sent later"
_LATER = "the server cannot take the answer right now; it will be sent again"
_SKIPPED = "an earlier report to this server could not be delivered; this one will be tried later"
_STRANGER = "the reply did not come from the survey's server; the answer will be sent again"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Sends sealed reports to their servers.

    sleep : waits the given number of seconds.
    timer : returns seconds, from a clock that never runs backwards.
    spread_s : a report is first sent after a random time, uniform from 0 to this many seconds,
        drawn after sealing and independently of everything else.
    """

    transport: Transport
    store: Store
    sleep: Callable[[float], None]
    timer: Callable[[], float]
    announce: OnEvent
    spread_s: float = 0.0
    _not_before: dict[str, float] = field(default_factory=dict)

    def flush(self, timeout_s: float) -> list[Receipt]:
        """Try every sealed report that is due within `timeout_s` seconds.

        If a server fails to accept a report, the other reports to it are skipped. Returns a receipt
        for every sealed report.
        """
        deadline = self.timer() + timeout_s
        receipts, unreachable = [], set()
        for sealed in self.store.outbox():
            server = urlsplit(sealed.collect_url).netloc
            if server in unreachable:
                receipts.append(_queued("network", _SKIPPED))
                continue
            receipts.append(self.deliver(sealed, max(0.0, deadline - self.timer())))
            # A server that fails on one report would probably fail on the others: the next flush
            # tries again.
            if receipts[-1].status == "queued" and receipts[-1].code not in (
                Problem.TOO_EARLY.code,
                _SPREAD,
            ):
                unreachable.add(server)
        return receipts

    def schedule(self, sealed: Sealed) -> None:
        """Draw the time at which a newly sealed report is sent, within `spread_s` seconds.

        The draw depends on neither answer nor symbol. If this process ends first, the report is
        sent at the next start of the app, a time that does not depend on the answer either.
        """
        self._not_before[sealed.report_id] = self.timer() + self.spread_s * _uniform()

    def deliver(self, sealed: Sealed, patience_s: float) -> Receipt:
        """Send until acknowledged or finally refused, for at most about `patience_s` seconds.

        After that, the report stays queued.
        """
        receipt = self._deliver(sealed, patience_s)
        if receipt.status != "queued":
            self._not_before.pop(sealed.report_id, None)
        self.announce(Event(receipt.status, sealed.survey, receipt.code, receipt.detail))
        return receipt

    def _deliver(self, sealed: Sealed, patience_s: float) -> Receipt:
        now = self.timer()
        deadline, wait_s = now + patience_s, _FIRST_WAIT_S
        asked_s, own_s = (
            self._not_before.get(key, 0.0) - now for key in (sealed.collect_url, sealed.report_id)
        )
        pause_s = max(0.0, asked_s, own_s)
        receipt = _queued("waiting", _REST) if asked_s >= own_s else _queued(_SPREAD, _EVENLY)
        while now + pause_s <= deadline:
            if pause_s:
                self.sleep(pause_s)
            receipt, asked_s = self._once(sealed)
            if receipt.status != "queued":
                # If erasing fails now, the report is sent again at the next start, which is
                # harmless, and erased then.
                with contextlib.suppress(StoreError):
                    self.store.close_answer(sealed, receipt.status, receipt.code)
                break
            now = self.timer()
            if asked_s:
                # By address, so that other reports to this address wait as well.
                self._not_before[sealed.collect_url] = now + asked_s
            pause_s = max(asked_s, wait_s * _jitter())
            # Exponential backoff, so that retries do not overload a struggling server.
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        return receipt

    def _once(self, sealed: Sealed) -> tuple[Receipt, float]:
        """Send once; return the receipt and the seconds that the server asks the device to wait.

        If the transport raises LinkError, the receipt is ``refused``.
        """
        # Another process may have delivered and erased the report in the meantime.
        if sealed.body is None:
            return Receipt("refused", "erased", "there is nothing left to send"), 0.0
        try:
            answer = self.transport.post(sealed.collect_url, sealed.body, _RECEIPT_BYTES)
        except NetworkError as error:
            return _queued(error.code, error.detail), 0.0
        except LinkError as error:
            return Receipt("refused", error.code, error.detail), 0.0
        return _judge(answer, sealed.report_id), _retry_after(answer.retry_after)


def _judge(answer: Reply, report_id: str) -> Receipt:
    """Return the receipt for a reply.

    Only a reply in the form of the survey's server leads to an erasure: a page with status 200 is
    not an acknowledgement, and a 404 from a gateway is not a refusal.
    """
    body = _body(answer)
    if (
        answer.status in (200, 201)
        and body.get("id") == report_id
        and body.get("status") in _ACKNOWLEDGED
    ):
        return Receipt("sent", str(body["status"]), "the server has stored the randomised answer")
    # A captive portal sends its own page with status 200, which must not lead to an erasure.
    if answer.status < 300:
        return _queued("no_receipt", _STRANGER)
    problem = Problem.from_code(str(body.get("code")))
    if problem is None or problem.status != answer.status:
        busy = answer.status in _TRY_AGAIN or answer.status >= 500
        return _queued(f"http_{answer.status}", _LATER if busy else _STRANGER)
    # A survey that has not opened yet answers 409 with Retry-After: the report is only early.
    if answer.status in _TRY_AGAIN or answer.status >= 500 or problem is Problem.TOO_EARLY:
        return _queued(problem.code, _LATER)
    if problem is Problem.CLOSED:
        return Receipt(
            "refused",
            problem.code,
            "the survey has closed; the randomised answer was erased",
        )
    return Receipt(
        "refused",
        problem.code,
        f"the server refused the report for good: {problem.title}",
    )


def _queued(code: str, detail: str) -> Receipt:
    return Receipt("queued", code, detail)


def _body(answer: Reply) -> dict[str, object]:
    try:
        body = parse_json(answer.body, max_bytes=_RECEIPT_BYTES)
    except InvalidInput:
        return {}
    return body if isinstance(body, dict) else {}


def _retry_after(text: str | None) -> float:
    """Return the seconds of a Retry-After header, bounded; 0 for a date or an invalid value."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 12):
        return 0.0
    return min(float(text), _LONGEST_RETRY_AFTER_S)


def _jitter() -> float:
    """Return a factor from 0.5 to 1.5, so that clients do not retry in lockstep."""
    return 0.5 + _uniform()


def _uniform() -> float:
    """Return a uniform random multiple of 2^-20 in [0, 1), or 0.5 without a random source."""
    try:
        return secrets.randbits(20) / 2**20
    except (OSError, NotImplementedError):
        return 0.5  # safe: only the timing depends on it; the noise was drawn before
