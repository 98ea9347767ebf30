# SPDX-License-Identifier: Apache-2.0
"""Sending sealed bytes until somebody acknowledges them: the same bytes every time (docs/protocol.md §7)."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

from frankly_sdk.errors import LinkError, NetworkError
from frankly_sdk.receipt import Receipt
from frankly_sdk.store import Sealed, Store
from frankly_sdk.transport import Answer, Transport

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 3600.0
_LONGEST_RETRY_AFTER_S = 24 * 3600.0
_RECEIPT_BYTES = 64 * 2**10
_ACKNOWLEDGED = ("accepted", "duplicate")
_TRY_AGAIN = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Delivery:
    """Carries sealed reports to their servers.

    sleep : waits so many seconds. timer : seconds from a clock that never runs backwards.
    """

    transport: Transport
    store: Store
    sleep: Callable[[float], None]
    timer: Callable[[], float]

    def deliver(self, sealed: Sealed, patience_s: float) -> Receipt:
        """Send until acknowledged or finally refused, at most for about `patience_s` seconds; then it stays queued."""
        deadline = self.timer() + patience_s
        wait_s = _FIRST_WAIT_S
        while True:
            receipt, asked_s = self._once(sealed)
            if receipt.status != "queued":
                self.store.close_answer(sealed.survey, receipt.status)
                return receipt
            # Jitter keeps a crowd that failed together from returning together; `secrets` is all a device draws from.
            pause_s = max(asked_s, wait_s * (0.5 + secrets.randbelow(1000) / 1000))
            if self.timer() + pause_s > deadline:
                return receipt
            self.sleep(pause_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _once(self, sealed: Sealed) -> tuple[Receipt, float]:
        """Send once; return what came of it and how many seconds the server asked to wait."""
        if sealed.body is None:
            return Receipt("refused", "erased", "there is nothing left to send"), 0.0
        try:
            answer = self.transport.post(sealed.collect_url, sealed.body, _RECEIPT_BYTES)
        except NetworkError as error:
            return _queued(error.code, error.detail), 0.0
        except LinkError as error:
            return Receipt("refused", error.code, error.detail), 0.0
        body = _body(answer)
        if answer.status in (200, 201):
            return _acknowledgement(sealed, body), 0.0
        code = body.get("code")
        code = code if isinstance(code, str) and code.isascii() and len(code) <= 64 else f"http_{answer.status}"
        # A survey that has not opened yet answers 409 with Retry-After: the report is fine, only early.
        if answer.status in _TRY_AGAIN or answer.status >= 500 or code == "too_early":
            words = "the server cannot take the answer right now; it will be sent again"
            return _queued(code, words), _retry_after(answer.retry_after)
        return Receipt("refused", code, f"the server refused the report for good ({answer.status}, {code})"), 0.0


def _acknowledgement(sealed: Sealed, body: dict[str, object]) -> Receipt:
    """Only our own receipt body counts: a proxy's page with status 200 must not make us erase anything."""
    status = body.get("status")
    if body.get("id") == sealed.report_id and status in _ACKNOWLEDGED:
        return Receipt("sent", str(status), "the server has stored the randomised answer")
    return _queued("no_receipt", "what answered was not the survey's server; the answer will be sent again")


def _queued(code: str, detail: str) -> Receipt:
    return Receipt("queued", code, detail)


def _body(answer: Answer) -> dict[str, object]:
    try:
        body = parse_json(answer.body, max_bytes=_RECEIPT_BYTES)
    except InvalidInput:
        return {}
    return body if isinstance(body, dict) else {}


def _retry_after(text: str | None) -> float:
    """Return the seconds asked for, within bounds; dates and nonsense count as nothing said."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 12):
        return 0.0
    return min(float(text), _LONGEST_RETRY_AFTER_S)
