# SPDX-License-Identifier: Apache-2.0
"""Delivery of sealed reports; every attempt sends the same bytes (docs/protocol.md §7)."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from frankly_protocol.canonical import parse_json
from frankly_protocol.clock import Clock, parse_time
from frankly_protocol.documents import CLOCK_SKEW
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import FINAL, Problem

from frankly_sdk._backoff import FIRST_WAIT_S, Backoffs, jitter, longer, uniform
from frankly_sdk._checks import time_of
from frankly_sdk._steps import Steps, Stop
from frankly_sdk._turns import Turns
from frankly_sdk.errors import LinkError, NetworkError, StoreError
from frankly_sdk.events import Event, OnEvent
from frankly_sdk.receipt import Receipt
from frankly_sdk.store import Sealed, Store
from frankly_sdk.transport import OVERALL_S, Reply, Transport, post_batch, within

# One day: no server may make a device wait longer.
_LONGEST_RETRY_AFTER_S = 24 * 3600.0
LEAST_S = 1.0
"""The time of an attempt if less is left of what the caller asked for."""
_CLOSING_S = 10.0  # no random moment is later than this long before a survey closes
_RECEIPT_BYTES, _RESULTS_BYTES = 64 * 2**10, 256 * 2**10
_BATCH = 100  # reports of 16 KiB in one request: less than the 2 MiB that a server reads
_ACKNOWLEDGED = ("accepted", "duplicate")
# Request Timeout, Too Early and Too Many Requests.
_SILENT = frozenset({"network", "limit"})
_TRY_AGAIN = frozenset({408, 425, 429})
_CODE = re.compile(r"[a-z_]{1,40}")
_SPREAD, SENDING = "scheduled", "sending"
_OF_SERVER = frozenset(
    {
        *(problem.code for problem in Problem if problem.status in _TRY_AGAIN | {500, 503}),
        *("network", "tls", "limit", "redirect", "encoding", "waiting", "no_receipt"),
    }
)
"""Codes of queued reports that affect all reports to the server, as do `http_` and such a status."""
_OF_REPORT = frozenset(
    {
        *(Problem.TOO_EARLY.code, Problem.DOC_MISMATCH.code, "link", _SPREAD, SENDING),
        *(Problem.JSON_INVALID.code, Problem.NUMBER_NOT_FINITE.code, Problem.Y_TYPE.code),
        *(Problem.FIELD_UNKNOWN.code, Problem.FIELD_MISSING.code, Problem.FIELD_TYPE.code),
    }
)
"""Codes that affect no other report; any further code affects the reports of the same survey."""
_EVENLY = "sealed; it is sent at a random moment, so that the sending time reveals nothing"
_REST = "the server asked this device to wait; the answer will be sent later"
_LATER = "the server cannot take the answer right now; it will be sent again"
_SKIPPED = "an earlier report to this server could not be delivered; this one will be tried later"
_LATE = "the time ran out, because a server did not respond; this one will be tried later"
_OTHER = "another thread or process is sending this answer right now"
_STORED = "the server has stored the randomised answer"
_STRANGER = (
    "the reply did not come from the survey's server; the answer will be sent again until the survey "
    "closes"
)
_NOT_NOW = "the server does not take this report at the moment; it will be sent again until the survey closes"
_CLOSED = "the survey has closed; the randomised answer was erased"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Sends sealed reports to their servers; its operations yield their waits (`Steps`).

    turns : excludes the other senders of this store while a report is sent.
    clock : tells whether a survey has closed. timer : returns seconds, from a clock that never runs
        backwards.
    stop : once it is set, operations end before their next attempt.
    spread_s : a report is first sent after a random time, uniform from 0 to this many seconds,
        drawn after sealing and independently of everything else.
    """

    transport: Transport
    store: Store
    turns: Turns
    clock: Clock
    timer: Callable[[], float]
    announce: OnEvent
    stop: Stop
    spread_s: float = 0.0
    _not_before: dict[str, float] = field(default_factory=dict)
    _backoffs: Backoffs = field(default_factory=Backoffs)

    def flush(self, timeout_s: float, least_s: float = LEAST_S) -> Steps[dict[str, Receipt]]:
        """Try every sealed report that is due within `timeout_s` seconds.

        If a server fails to accept a report, the other reports to it are skipped, or only those of
        the same survey if the server does not know it. If servers that do not respond have used up
        the time, all other reports are skipped. Returns the receipt of every sealed report, by
        report id.

        least_s : as for `deliver`.
        """
        # Real time, as in `Turns`: the servers are really silent.
        until = time.monotonic() + max(timeout_s, least_s)
        now, is_silent = self.timer(), False
        deadline = now + timeout_s
        receipts, unreachable = dict[str, Receipt](), set[str]()
        for reports in self.groups(lambda sealed: self._not_before_s(sealed) - now):
            address = reports[0].collect_url
            server = urlsplit(address).netloc
            if is_silent and time.monotonic() >= until:
                receipts |= {sealed.report_id: _queued("waiting", _LATE) for sealed in reports}
                continue
            if not {server, address} & unreachable:
                left_s = max(least_s, deadline - self.timer())
                receipts |= self.deliver_batch(reports, left_s)
            for sealed in reports:
                receipt = receipts.get(sealed.report_id)
                if receipt is None and {server, address} & unreachable:
                    receipts[sealed.report_id] = _queued("network", _SKIPPED)
                    continue
                if receipt is None:
                    patience_s = max(0.0, deadline - self.timer())
                    receipt = yield from self.deliver(sealed, patience_s, least_s)
                receipts[sealed.report_id] = receipt
                is_silent = is_silent or receipt.code in _SILENT
                # What fails on one report would probably fail on the others, so they wait for the
                # next flush.
                if receipt.status == "queued" and receipt.code not in _OF_REPORT:
                    unreachable.add(server if _is_of_server(receipt.code) else address)
        return receipts

    def groups(self, wait_s: Callable[[Sealed], float]) -> Iterator[list[Sealed]]:
        """Yield the outbox as batches of at most 100 reports, and all other reports alone.

        There are batches for each address with more than 100 reports for which `wait_s` is not
        positive. Addresses and reports are in a new random order each time: otherwise a report that
        a server always fails on would come before the same others each time.
        """
        groups = dict[str, list[Sealed]]()
        for sealed in sorted(self.store.outbox(), key=lambda _: uniform()):
            groups.setdefault(sealed.collect_url, []).append(sealed)
        for group in groups.values():
            due, others = list[Sealed](), list[Sealed]()
            for sealed in group:
                (due if wait_s(sealed) <= 0 else others).append(sealed)
            size = _BATCH if len(due) > _BATCH else 1
            yield from (due[i : i + size] for i in range(0, len(due), size))
            yield from ([sealed] for sealed in others)

    def schedule(self, sealed: Sealed) -> None:
        """Draw the time at which a newly sealed report is sent, within `spread_s` seconds.

        The draw depends on neither answer nor symbol. If this process ends first, the report is
        sent at the next start of the app, a time that does not depend on the answer either.
        """
        spread_s = self.spread_s
        if sealed.closes is not None:
            # A report that arrives after the close is refused.
            left_s = (parse_time(sealed.closes) - time_of(self.clock)).total_seconds() - _CLOSING_S
            spread_s = max(0.0, min(spread_s, left_s))
        # The background sender may have seen the report, and drawn its time, before this call.
        self._not_before.setdefault(sealed.report_id, self.timer() + spread_s * uniform())

    def spread_left_s(self, sealed: Sealed) -> float:
        """Return the seconds until the random moment of a report, 0 if it has passed or has none."""
        return max(0.0, self._not_before.get(sealed.report_id, 0.0) - self.timer())

    def due_s(self, sealed: Sealed) -> float:
        """Return the seconds until the background sender sends a report; zero or less if it is due.

        A report that another process has sealed, or that this one sealed just now, gets its random
        time here: it is never sent at the moment of sealing.
        """
        self.schedule(sealed)
        resting = self._backoffs.until(sealed.collect_url)
        return max(self._not_before_s(sealed), resting) - self.timer()

    def _not_before_s(self, sealed: Sealed) -> float:
        return max(self._not_before.get(key, 0.0) for key in (sealed.collect_url, sealed.report_id))

    def deliver(
        self, sealed: Sealed, patience_s: float, least_s: float = LEAST_S
    ) -> Steps[Receipt]:
        """Send until acknowledged or finally refused, for at most `patience_s` seconds.

        After that, the report stays queued.

        least_s : the time of an attempt, in seconds, if less of the patience is left.
        """
        receipt = yield from self._deliver(sealed, patience_s, least_s)
        self._tried(sealed, receipt)
        return receipt

    def _tried(self, sealed: Sealed, receipt: Receipt) -> None:
        if receipt.status != "queued":
            self._not_before.pop(sealed.report_id, None)
            self._backoffs.settled(sealed.collect_url)
        self.announce(Event(receipt.status, sealed.survey, receipt.code, receipt.detail))

    def deliver_batch(
        self, reports: Sequence[Sealed], within_s: float = OVERALL_S
    ) -> dict[str, Receipt]:
        """Send several reports to one address in one request; return their receipts by report id.

        Reports without a receipt have to be sent alone: another sender has their turn, or the reply
        does not consist of one result for each report. The server may not know batches.

        within_s : the longest time of the request, in seconds.
        """
        if len(reports) < 2 or self.stop.is_set():
            return {}
        receipts = dict[str, Receipt]()
        with contextlib.ExitStack() as held:
            unsent = list[Sealed]()
            for sealed in reports:
                if not held.enter_context(self.turns.turn(sealed.report_id, 0)):
                    continue
                if (settled := self._settled(sealed)) is not None:
                    receipts[sealed.report_id] = settled
                else:
                    unsent.append(sealed)
            if unsent:
                receipts |= self._batch_once(reports[0].collect_url, unsent, within_s)
        for sealed in reports:
            if sealed.report_id in receipts:
                self._tried(sealed, receipts[sealed.report_id])
        # After `_tried`, which ends the waits of a server that has settled other reports.
        queued = {receipt.code for receipt in receipts.values() if receipt.status == "queued"}
        if queued:
            is_survey = not any(map(_is_of_server, queued))
            self._backoffs.failed(reports[0].collect_url, self.timer(), is_survey=is_survey)
        return receipts

    def _batch_once(
        self, address: str, reports: Sequence[Sealed], within_s: float
    ) -> dict[str, Receipt]:
        """Send a batch once, erase what is settled, and return the receipts; none on failure."""
        # The sealed bytes are not parsed and written again: a report sent alone has the same.
        body = b",".join(sealed.body for sealed in reports if sealed.body is not None)
        try:
            transport = within(self.transport, within_s)
            reply = post_batch(transport, address, b'{"reports":[' + body + b"]}", _RESULTS_BYTES)
        except (NetworkError, LinkError):
            return {}
        receipts = {
            sealed.report_id: _judge(result, sealed.report_id, has_closed=self._has_closed(sealed))
            for sealed, result in _results(reply, reports)
        }
        settled = [
            (sealed, receipt.status, receipt.code)
            for sealed in reports
            if (receipt := receipts.get(sealed.report_id)) and receipt.status != "queued"
        ]
        if len(settled) < len(reports) and reply and (asked_s := _retry_after(reply.retry_after)):
            self._not_before[address] = self.timer() + asked_s
        if settled:
            # If erasing fails now, the reports are sent again, as after a single one (`_in_turn`).
            with contextlib.suppress(StoreError):
                self.store.close_answers(settled)
        return receipts

    def _deliver(self, sealed: Sealed, patience_s: float, least_s: float) -> Steps[Receipt]:
        now = self.timer()
        deadline, wait_s = now + patience_s, FIRST_WAIT_S
        asked_s, own_s = (
            self._not_before.get(key, 0.0) - now for key in (sealed.collect_url, sealed.report_id)
        )
        pause_s = max(0.0, asked_s, own_s)
        receipt = _queued("waiting", _REST) if asked_s >= own_s else _queued(_SPREAD, _EVENLY)
        while now + pause_s <= deadline:
            if pause_s:
                yield pause_s
            if self.stop.is_set():
                break
            receipt, asked_s = self._in_turn(sealed, deadline - now - pause_s, least_s)
            if receipt.status != "queued" or receipt.code == SENDING:
                break
            now = self.timer()
            if asked_s:
                # Recorded by address, so that other reports to this address wait as well.
                self._not_before[sealed.collect_url] = now + asked_s
            self._backoffs.failed(
                sealed.collect_url, now, is_survey=not _is_of_server(receipt.code)
            )
            pause_s = max(asked_s, wait_s * jitter())
            wait_s = longer(wait_s)
        return receipt

    def _in_turn(self, sealed: Sealed, patience_s: float, least_s: float) -> tuple[Receipt, float]:
        """Send once, unless another sender of this store does or has done so (`_once`)."""
        until = time.monotonic() + patience_s
        with self.turns.turn(sealed.report_id, patience_s) as is_ours:
            if not is_ours:
                return _queued(SENDING, _OTHER), 0.0
            settled = self._settled(sealed)
            if settled is not None:
                return settled, 0.0
            receipt, asked_s = self._once(sealed, max(least_s, until - time.monotonic()))
            if receipt.status != "queued":
                # If erasing fails now, the report is sent again at the next start, which is
                # harmless, and erased then.
                with contextlib.suppress(StoreError):
                    self.store.close_answer(sealed, receipt.status, receipt.code)
            return receipt, asked_s

    def _settled(self, sealed: Sealed) -> Receipt | None:
        """Return the receipt if another sender has delivered the report since it was read."""
        try:
            stored = self.store.answer(sealed.chain, sealed.survey, sealed.respondent)
        except StoreError:
            return None  # sealed, so it may be sent again; the server stores it once
        if stored is None or stored.state == "sealed":
            return None
        if stored.state == "refused":
            return Receipt("refused", stored.code, "the server refused the report for good")
        return Receipt("sent", stored.code, _STORED)

    def _once(self, sealed: Sealed, within_s: float) -> tuple[Receipt, float]:
        """Send once; return the receipt and the seconds that the server asks the device to wait."""
        if sealed.body is None:
            return Receipt("refused", "erased", "there is nothing left to send"), 0.0
        try:
            transport = within(self.transport, within_s)
            answer = transport.post(sealed.collect_url, sealed.body, _RECEIPT_BYTES)
        except (NetworkError, LinkError) as error:
            return _queued(error.code, error.detail), 0.0
        receipt = _judge(answer, sealed.report_id, has_closed=self._has_closed(sealed))
        return receipt, _retry_after(answer.retry_after)

    def _has_closed(self, sealed: Sealed) -> bool:
        if sealed.closes is None:
            return False
        return time_of(self.clock) > parse_time(sealed.closes) + CLOCK_SKEW


def _judge(answer: Reply, report_id: str, *, has_closed: bool) -> Receipt:
    """Return the receipt for a reply.

    A report is erased only after an acknowledgement or a final refusal in the format of the survey's
    server, or after any other refusal once the survey has closed by its document. A server with an
    empty database does not know the survey, and a captive portal sends its own page with status 200.
    """
    body = _body(answer)
    if (
        answer.status in (200, 201)
        and body.get("id") == report_id
        and body.get("status") in _ACKNOWLEDGED
    ):
        return Receipt("sent", str(body["status"]), _STORED)
    code = _code(answer, body)
    problem = Problem.from_code(code)
    if problem in FINAL:
        detail = f"the server refused the report permanently: {problem.title}"
        return Receipt("refused", code, _CLOSED if problem is Problem.CLOSED else detail)
    if answer.status in _TRY_AGAIN or answer.status >= 500 or problem is Problem.TOO_EARLY:
        return _queued(code, _LATER)
    if has_closed:
        return Receipt("refused", Problem.CLOSED.code, _CLOSED)
    return _queued(code, _NOT_NOW if code == body.get("code") else _STRANGER)


def _results(reply: Reply | None, reports: Sequence[Sealed]) -> Iterable[tuple[Sealed, Reply]]:
    """Return each report of a batch with the reply that it would have got alone.

    Empty unless the reply has exactly one result for each report, in the same order.
    """
    results = _body(reply, _RESULTS_BYTES).get("results") if reply and reply.status == 200 else None
    if not isinstance(results, list) or len(results) != len(reports):
        return ()
    pairs = list(zip(reports, results, strict=True))
    if not all(
        isinstance(result, dict) and result.get("id", sealed.report_id) == sealed.report_id
        for sealed, result in pairs
    ):
        return ()
    return [(sealed, _alone(result)) for sealed, result in pairs]


def _alone(result: Mapping[str, object]) -> Reply:
    problem, status = result.get("problem"), None
    if result.get("status") == "refused" and isinstance(problem, dict):
        result, status = problem, problem.get("status")
    return Reply(status if type(status) is int else 200, "", None, json.dumps(result).encode())


def _code(answer: Reply, body: Mapping[str, object]) -> str:
    """Return the code of a problem of the protocol, else one for the reply's status."""
    code = body.get("code")
    if isinstance(code, str) and _CODE.fullmatch(code) and body.get("status") == answer.status:
        problem = Problem.from_code(code)
        if problem not in FINAL or problem.status == answer.status:
            return code
    return "no_receipt" if answer.status < 300 else f"http_{answer.status}"


def _is_of_server(code: str) -> bool:
    """Return True if a queued report's code affects all reports to the server."""
    status = code.removeprefix("http_")
    is_busy = status.isdigit() and (int(status) in _TRY_AGAIN or int(status) >= 500)
    return is_busy or code in _OF_SERVER


def _queued(code: str, detail: str) -> Receipt:
    return Receipt("queued", code, detail)


def _body(answer: Reply, max_bytes: int = _RECEIPT_BYTES) -> dict[str, object]:
    try:
        body = parse_json(answer.body, max_bytes=max_bytes)
    except InvalidInput:
        return {}
    return body if isinstance(body, dict) else {}


def _retry_after(text: str | None) -> float:
    """Return the seconds of a Retry-After header, bounded; 0 for a date or an invalid value."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 12):
        return 0.0
    return min(float(text), _LONGEST_RETRY_AFTER_S)
