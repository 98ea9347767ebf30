# SPDX-License-Identifier: Apache-2.0
"""The client: open a pinned link, verify, answer once.

with Client.open(link, store="answers.db") as client:
    print(client.survey.explain())
    receipt = client.answer({"q1": "yes"})
"""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from frankly_protocol.clock import Clock, SystemClock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import ClockError, RandomnessError
from frankly_protocol.mechanisms.base import RandomBits
from frankly_protocol.report import Report

from frankly_sdk._choices import Choices
from frankly_sdk._opening import Opened, Opening
from frankly_sdk.delivery import Delivery
from frankly_sdk.errors import AlreadyAnswered, SurveyClosed
from frankly_sdk.explain import Explanation, explain
from frankly_sdk.link import SurveyLink
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt
from frankly_sdk.store import Sealed, Store
from frankly_sdk.transport import HttpTransport, Transport


@dataclass(frozen=True)
class Survey:
    """An accepted survey, as an app shows it."""

    document: SurveyDocument
    signed_by: tuple[str, ...]

    @property
    def title(self) -> str:
        """The title in the document's first language."""
        return self.document.title[self.document.languages[0]]

    @property
    def questions(self) -> Mapping[str, tuple[str, ...]]:
        """Question id → choice ids, in the document's order."""
        return {name: tuple(c.id for c in question.choices) for name, question in self.document.questions.items()}

    def explain(self, language: str | None = None) -> Explanation:
        """Return plain words about what is asked, what leaves and what it can tell; show them before asking."""
        return explain(self.document, self.signed_by, language)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a client works with."""

    policy: Policy
    store: Store
    delivery: Delivery
    clock: Clock
    randbits: RandomBits
    closing: ExitStack


class Client:
    """One install answering one survey. Use `Client.open`; safe to share between threads and across a fork."""

    def __init__(self, opened: Opened, parts: _Parts) -> None:
        self.survey = Survey(opened.document, opened.signed_by)
        self._pinned = opened.pinned
        self._parts = parts

    @classmethod
    def open(
        cls,
        link: str,
        store: str | Path,
        policy: Policy | None = None,
        *,
        keys: bytes | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        randbits: RandomBits = secrets.randbits,
        sleep: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Deliver what an earlier run could not, then fetch and verify a survey (steps 1 to 10).

        A survey seen before opens without network. link : ``https://host/s/ID#sha256=…``. store : path of this
        install's store file. keys : bytes of the keys document shipped with the app; without it the server's first one
        is trusted and remembered. transport : stays the caller's to close. The others exist for tests.

        Raises LinkError, StoreError, NetworkError, DocumentRejected and its kinds, PolicyRefused. Nothing of a new
        answer has been drawn or sent then.
        """
        wanted = SurveyLink.parse(link)
        policy, clock = policy or Policy(), clock or SystemClock()
        with ExitStack() as undo:
            if transport is None:
                transport = own = HttpTransport(timer)
                undo.callback(own.close)
            kept = Store(Path(store))
            undo.callback(kept.close)
            delivery = Delivery(transport, kept, sleep, timer)
            delivery.flush(timeout_s=0)  # whatever becomes of the survey: it may be closed by now, or be another one
            opened = Opening(wanted, kept, transport, clock.now()).survey(keys)
            if kept.answer(wanted.survey) is None:  # (10); what has been answered is spent already
                policy.check(opened.document, pinned=opened.pinned, spent=kept.spent())
            return cls(opened, _Parts(policy, kept, delivery, clock, randbits, undo.pop_all()))

    def answer(
        self, choices: Mapping[str, str], *, strata: Mapping[str, str] | None = None, patience_s: float = 10
    ) -> Receipt:
        """Randomise, seal, then send. The answers themselves are not kept anywhere.

        choices : question id → choice id, every question exactly once. strata : the same for public questions.
        patience_s : how long to keep trying before returning ``queued``; the sealed bytes are sent again at the next
        start or `flush`.

        Raises UnknownChoice, AlreadyAnswered (after trying to deliver what was sealed before), SurveyClosed,
        PolicyRefused, StoreError, RandomnessError. Delivery problems come back in the receipt.
        """
        truth, public = Choices(choices), Choices(strata or {})
        del choices, strata
        document = self.survey.document
        fault = truth.fault(document.questions) or public.fault({q.id: q for q in document.strata})
        if fault is not None:
            raise fault
        sealed = self._seal(document, truth, public)
        if sealed is None:
            raise AlreadyAnswered(self._deliver_again(patience_s))
        return self._parts.delivery.deliver(sealed, patience_s)

    def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Send what is still sealed in this store, for about `timeout_s` seconds; return a receipt for each report."""
        return self._parts.delivery.flush(timeout_s)

    def close(self) -> None:
        """Close the store and the client's own connections; sealed reports stay in the store."""
        self._parts.closing.close()

    def _seal(self, document: SurveyDocument, truth: Choices, public: Choices) -> Sealed | None:
        """Draw and write under one lock, durably, before any socket is touched; None if there is an answer already.

        Whoever comes second, in another thread or process, waits for the lock and then finds the first one's row: no
        second value is ever drawn. What can fail, fails before the draw.
        """
        store, length = self._parts.store, document.report_length
        with store.transaction():
            if store.answer(document.survey) is not None:
                return None
            self._require_open(document)
            self._parts.policy.check(document, pinned=self._pinned, spent=store.spent())
            store.reserve(document.survey, document.digest, document.collect_url, length, document.form_level)
            report = self._draw(document, truth, public)
            if report is None:
                raise RandomnessError
            return store.seal(document.survey, report.id, report.to_bytes(length))

    def _draw(self, document: SurveyDocument, truth: Choices, public: Choices) -> Report | None:
        """Draw every block's symbol and the report's id; None if the random source failed.

        The source's own error is dropped: its traceback holds the true rows.
        """
        randbits = self._parts.randbits
        try:
            symbols = tuple(block.mechanism.sample(truth.row(block), randbits) for block in document.blocks)
            return Report(document.digest, f"{randbits(128):032x}", symbols, public.public())
        except Exception:  # noqa: BLE001
            return None
        except BaseException as interruption:  # noqa: BLE001
            raise interruption.with_traceback(None) from None  # Ctrl-C passes on, without the frames below

    def _require_open(self, document: SurveyDocument) -> None:
        now = self._parts.clock.now()
        try:
            document.require_window(now)
        except ClockError:
            if now < document.closes:
                raise
            closed = f"the survey closed at {format_time(document.closes)}, this device's clock says {format_time(now)}"
            raise SurveyClosed(closed) from None

    def _deliver_again(self, patience_s: float) -> Receipt:
        kept = self._parts.store.answer(self.survey.document.survey)
        if kept is not None and kept.state == "sealed":
            return self._parts.delivery.deliver(kept, patience_s)
        if kept is not None and kept.state == "refused":
            return Receipt("refused", kept.code, "the server refused the first answer for good")
        return Receipt("sent", kept.code if kept else "accepted", "the server has stored the first answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
