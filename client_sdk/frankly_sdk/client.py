# SPDX-License-Identifier: Apache-2.0
"""The client: open a pinned link, verify, answer once.

with Client.open(link, store="answers.db") as client:
    print(client.survey.explain())
    receipt = client.answer({"q1": "yes"})
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import RandomnessError
from frankly_protocol.mechanisms.dense import RandomBits
from frankly_protocol.report import Report

from frankly_sdk._choices import checked_choices
from frankly_sdk._opening import Opened, open_survey
from frankly_sdk.delivery import Delivery
from frankly_sdk.errors import AlreadyAnswered
from frankly_sdk.explain import Explanation, explain
from frankly_sdk.link import SurveyLink, require_secure
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


class Client:
    """One install answering one survey. Use `Client.open`; safe to share between threads."""

    def __init__(self, opened: Opened, policy: Policy, store: Store, delivery: Delivery, randbits: RandomBits) -> None:
        self.survey = Survey(opened.document, opened.signed_by)
        self._pinned = opened.pinned
        self._policy = policy
        self._store = store
        self._delivery = delivery
        self._randbits = randbits

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
        """Fetch and verify a survey (steps 1 to 10); a survey seen before opens without network.

        link : ``https://host/s/ID#sha256=…``. store : path of this install's store file. keys : bytes of the keys
        document shipped with the app; without it the server's first one is trusted and remembered. The others exist for
        tests.

        Raises LinkError, StoreError, NetworkError, DocumentRejected and its kinds, PolicyRefused. Nothing is sent then.
        """
        wanted = SurveyLink.parse(link)
        policy = policy or Policy()
        own = transport or HttpTransport(timer)
        try:
            remembered = Store(Path(store))
        except BaseException:
            own.close()
            raise
        try:
            opened = open_survey(wanted, remembered, own, keys, (clock or SystemClock()).now())
            require_secure(opened.document.collect_url)
            if remembered.answer(wanted.survey) is None:  # (10); what has been answered is spent already
                policy.check(opened.document, pinned=opened.pinned, spent=remembered.spent())
            client = cls(opened, policy, remembered, Delivery(own, remembered, sleep, timer), randbits)
            client.flush(timeout_s=0)  # what an earlier run could not deliver
        except BaseException:
            remembered.close()
            own.close()
            raise
        return client

    def answer(
        self, choices: Mapping[str, str], *, strata: Mapping[str, str] | None = None, patience_s: float = 10
    ) -> Receipt:
        """Randomise, seal, then send. The answers themselves are not kept anywhere.

        choices : question id → choice id, every question exactly once. strata : the same for public questions.
        patience_s : how long to keep trying before returning ``queued``; the sealed bytes are sent again at the next
        start or `flush`.

        Raises UnknownChoice, AlreadyAnswered (after trying to deliver what was sealed before), PolicyRefused,
        StoreError, RandomnessError. Delivery problems come back in the receipt.
        """
        document = self.survey.document
        public = checked_choices({q.id: q for q in document.strata}, strata or {})
        truths = checked_choices(document.questions, choices)
        sealed = self._seal(document, truths, public)
        if sealed is None:
            raise AlreadyAnswered(self._deliver_again(patience_s)) from None
        return self._delivery.deliver(sealed, patience_s)

    def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Send what is still sealed in this store, each for at most about `timeout_s` seconds; return the receipts."""
        return [self._delivery.deliver(sealed, timeout_s) for sealed in self._store.outbox()]

    def close(self) -> None:
        """Close the store and the connections; sealed reports stay in the store."""
        self._delivery.transport.close()
        self._store.close()

    def _seal(self, document: SurveyDocument, truths: Mapping[str, str], public: Mapping[str, str]) -> Sealed | None:
        """Draw and write under one lock, durably, before any socket is touched; None if there is an answer already.

        Whoever comes second, in another thread or process, waits for the lock and then finds the first one's row: no
        second value is ever drawn.
        """
        with self._store.transaction():
            if self._store.answer(document.survey) is not None:
                return None
            self._policy.check(document, pinned=self._pinned, spent=self._store.spent())
            symbols = tuple(block.mechanism.sample(block.truth(truths), self._randbits) for block in document.blocks)
            report_id = self._draw_id()
            body = Report(document.digest, report_id, symbols, public).to_bytes(document.report_length)
            sealed = Sealed(document.survey, document.collect_url, report_id, body, "sealed")
            self._store.seal(sealed, document.form_level)
        return sealed

    def _draw_id(self) -> str:
        try:
            return f"{self._randbits(128):032x}"
        except (OSError, NotImplementedError):
            raise RandomnessError from None

    def _deliver_again(self, patience_s: float) -> Receipt:
        kept = self._store.answer(self.survey.document.survey)
        if kept is not None and kept.state == "sealed":
            return self._delivery.deliver(kept, patience_s)
        if kept is not None and kept.state == "refused":
            return Receipt("refused", "refused", "the server refused the first answer for good")
        return Receipt("sent", "accepted", "the server has stored the first answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
