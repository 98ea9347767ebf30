# SPDX-License-Identifier: Apache-2.0
"""The client: open a pinned link, verify, answer once.

with Client.open(link, store="answers.db") as client:
    print(client.survey.explain())
    receipt = client.answer({"q1": "yes"})
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from frankly_protocol.audit import ReportLevel
from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms.base import RandomBits

from frankly_sdk._checks import each, key_fault, require, time_of
from frankly_sdk._opening import Opening
from frankly_sdk._sealing import Row, Sealing
from frankly_sdk.answer import Answer, Given
from frankly_sdk.batch import Randomised, Respondent, randomise
from frankly_sdk.budget import Budget
from frankly_sdk.delivery import Delivery
from frankly_sdk.errors import AlreadyAnswered, Disabled, UnknownChoice
from frankly_sdk.events import Event, OnEvent, announcer
from frankly_sdk.explain import Explanation, explain
from frankly_sdk.link import SurveyLink
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt
from frankly_sdk.relay import RelayTransport
from frankly_sdk.store import Store
from frankly_sdk.transport import HttpTransport, Transport

SPREAD_S = 0.01
"""Default upper limit of the random send delay, in seconds: 10,000 times the largest timing
difference between two draws."""


@dataclass(frozen=True)
class Survey:
    """An accepted survey, for the app to show.

    signed_by : ids of the publisher's keys with a valid signature.
    level : the privacy level of its whole report, under the app's own cap on δ.
    """

    document: SurveyDocument
    signed_by: tuple[str, ...]
    level: ReportLevel

    @property
    def title(self) -> str:
        """The title in the document's first language."""
        return self.document.title[self.document.languages[0]]

    @property
    def questions(self) -> Mapping[str, tuple[str, ...]]:
        """Question id → choice ids, in the document's order."""
        return {
            name: tuple(c.id for c in question.choices)
            for name, question in self.document.questions.items()
        }

    def explain(self, language: str | None = None, budget: Budget | None = None) -> Explanation:
        """Return an explanation of questions, report and privacy bounds; show it before asking.

        language : one of the document's, by default its first.
        budget : the result of `Client.budget`; the explanation then includes this respondent's
            remaining budget before and after.
        """
        return explain(self.document, self.level, self.signed_by, language, budget)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an enabled client."""

    survey: Survey
    store: Store
    sealing: Sealing
    delivery: Delivery


class Client:
    """One install answering one survey.

    Use `Client.open`; safe to share between threads and across a fork.
    """

    def __init__(
        self,
        link: SurveyLink,
        parts: _Parts | None,
        announce: OnEvent,
        closing: ExitStack,
    ) -> None:
        self._link = link
        self._parts = parts
        self._announce = announce
        self._closing = closing

    @classmethod
    def open(
        cls,
        link: str,
        store: str | Path,
        policy: Policy | None = None,
        *,
        keys: bytes | None = None,
        enabled: bool = True,
        debug: bool = False,
        on_event: OnEvent | None = None,
        relay: str | None = None,
        spread_s: float = SPREAD_S,
        transport: Transport | None = None,
        clock: Clock | None = None,
        randbits: RandomBits = secrets.randbits,
        sleep: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Send reports left by an earlier run, then fetch and verify a survey (steps 1 to 10).

        A survey accepted before can be opened offline while its keys, and the log's proof if one is
        needed, are valid.

        link : ``https://host/s/ID#sha256=…``.
        store : path of this install's store file.
        keys : bytes of the keys document shipped with the app; without it the first one that the
            server sends is trusted and remembered.
        enabled : if false, the client touches neither network nor files, and `answer` does nothing.
        debug : write events to the log ``frankly_sdk`` too.
        on_event : called with each `Event`.
        relay : address of a reverse proxy that all requests go through.
        spread_s : each report is sent at a random moment within this many seconds of being sealed;
            0 to 34560000 (400 days, the longest validity of a document).
        transport : sends the requests; the caller has to close it.
        clock, randbits, sleep, timer : replaced in tests only (`frankly_sdk.testing`).

        Raises InvalidInput for an argument of the wrong type or out of range, LinkError,
        StoreError, NetworkError, DocumentRejected or a subclass, PolicyRefused. If it raises, no
        answer was drawn and no new report was sent.
        """
        require(
            store=store, policy=policy, keys=keys, enabled=enabled, debug=debug, on_event=on_event
        )
        require(
            spread_s=spread_s,
            transport=transport,
            clock=clock,
            randbits=randbits,
            sleep=sleep,
            timer=timer,
        )
        survey_link, announce = SurveyLink.parse(link), announcer(on_event, debug=debug)
        if not enabled:
            return cls(survey_link, None, announce, ExitStack())
        policy, clock = policy or Policy(), clock or SystemClock()
        # Closes everything opened so far if a later step raises; `pop_all` hands it to the client.
        with ExitStack() as undo:
            if transport is None:
                transport = http = HttpTransport(timer)
                undo.callback(http.close)
            transport = transport if relay is None else RelayTransport(transport, relay)
            stored = Store(Path(store))
            undo.callback(stored.close)
            delivery = Delivery(transport, stored, sleep, timer, announce, spread_s)
            # First: opening may fail, and the pending reports may belong to another survey.
            delivery.flush(timeout_s=0)
            wants_log, hosts = policy.wants_log(survey_link.digest), policy.collect_hosts
            opened = Opening(
                survey_link, stored, transport, time_of(clock), announce, wants_log, hosts
            ).survey(keys)
            level, chain = policy.level(opened.document), opened.chain
            # (10); an answered survey has already been charged
            if stored.answer(chain, survey_link.survey) is None:
                policy.check(
                    opened.document,
                    level,
                    pinned=opened.pinned,
                    logged=opened.logged,
                    spent=stored.spent(),
                )
            announce(Event("opened", survey_link.survey))
            sealing = Sealing(
                opened.document,
                level,
                chain,
                opened.pinned,
                opened.logged,
                policy,
                stored,
                clock,
                randbits,
            )
            survey = Survey(opened.document, opened.signed_by, level)
            parts = _Parts(survey, stored, sealing, delivery)
            return cls(survey_link, parts, announce, undo.pop_all())

    @property
    def enabled(self) -> bool:
        """False if the client was opened with enabled=False and does nothing."""
        return self._parts is not None

    @property
    def survey(self) -> Survey:
        """The accepted survey.

        Raises Disabled if there is none because the client was opened with enabled=False.
        """
        if self._parts is None:
            raise Disabled
        return self._parts.survey

    def budget(self, respondent: str | None = None) -> Budget:
        """Return the survey's cost for a respondent, and the budget left before and after it.

        Nothing is charged.

        respondent : as for `answer`.

        Raises Disabled, InvalidInput for a key that is not a non-blank string, StoreError.
        """
        wrong = None if respondent is None else key_fault(respondent)
        if wrong is not None:
            raise wrong
        if self._parts is None:
            raise Disabled
        store, survey = self._parts.store, self._parts.survey
        name = store.respondent_name(respondent or "")
        return self._parts.sealing.policy.budget(
            survey.document,
            survey.level,
            store.spent(name),
            is_answered=store.answer(self._parts.sealing.chain, survey.document.survey, name)
            is not None,
        )

    def answer(
        self,
        choices: Mapping[str, Given] | Answer,
        *,
        strata: Mapping[str, str] | None = None,
        respondent: str | None = None,
        token: str | None = None,
        patience_s: float = 10,
    ) -> Receipt:
        """Randomise, seal and send one answer. The true answers in `choices` are not stored anywhere.

        choices : question id → choice id, for every question.
        strata : public question id → choice id, for every public question.
        respondent : if many people answer on this device, a key for each: there is one answer and
            one ledger per key. Keys that differ only in surrounding spaces or in their Unicode form
            belong to the same person. Without a key, the answer is that of the person who owns the
            install; a blank key is refused.
        token : for surveys that require one; it is sent with the report and erased with it.
        patience_s : how long to keep trying before returning ``queued``, 0 to 34560000; the sealed
            bytes are sent again at the next start or `flush`. With 0 there is at most one attempt,
            and none before the random send time.

        Raises UnknownChoice, AlreadyAnswered (after trying to deliver the earlier answer),
        SurveyClosed, ClockError if the survey has not opened yet, InvalidInput (token_invalid, or
        an invalid respondent or patience_s), PolicyRefused, StoreError, RandomnessError. If it
        raises, no answer of this call was sealed or sent. Delivery problems are reported in the
        receipt.
        """
        row = Row("", Answer.of(choices), Answer.of({} if strata is None else strata), token)
        # A traceback keeps local variables; only the redacted `Answer` may hold the answers.
        del choices, strata
        require(patience_s=patience_s)
        wrong = None if respondent is None else key_fault(respondent)
        if wrong is not None:
            raise wrong
        parts = self._parts
        if parts is None:
            self._announce(Event("disabled", self._link.survey))
            return Receipt(
                "disabled",
                "disabled",
                "the app has switched this off: nothing was drawn, stored or sent",
            )
        settled = row.settled(parts.survey.document)
        if isinstance(settled, UnknownChoice):
            raise settled
        # Done only after every check of the answers, because this may write the store's salt.
        row = replace(settled, respondent=parts.store.respondent_name(respondent or ""))
        sealed = parts.sealing.one(row)
        if sealed is None:
            raise AlreadyAnswered(self._deliver_again(parts, row.respondent, patience_s))
        parts.delivery.schedule(sealed)
        self._announce(Event("sealed", sealed.survey))
        return parts.delivery.deliver(sealed, patience_s)

    def randomise_many(self, rows: Iterable[Respondent]) -> Iterator[Randomised]:
        """Seal many respondents' answers, 500 in each transaction; `flush` sends them.

        rows : tuples (respondent key, choices, strata), with the token as a fourth member if the
            survey requires one; every key has its own ledger and one answer.

        A yielded result is durable. If a row is wrong, no row of its transaction is sealed, but those
        of earlier transactions stay sealed. If a key occurs twice in one call, its first row is used;
        the other gets the status ``already``, and if the two keys are written differently, an event
        ``same_respondent`` names both rows.

        Raises UnknownChoice, its field beginning with ``rows[i]``, InvalidInput for a row of the
        wrong shape, a blank key or an invalid token, SurveyClosed, ClockError, PolicyRefused other
        than BudgetExceeded, StoreError, RandomnessError.
        """
        # Checked when called, not at the first `next` of the returned iterator.
        source = each(rows)
        if self._parts is None:
            self._announce(Event("disabled", self._link.survey))
            return iter(())
        return randomise(self._parts.sealing, source, self._announce)

    def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Send the reports that are still sealed in this store, for about `timeout_s` seconds.

        Returns a receipt for each report.

        Raises StoreError, and InvalidInput unless timeout_s is a number from 0 to 34560000.
        """
        require(timeout_s=timeout_s)
        return self._parts.delivery.flush(timeout_s) if self._parts is not None else []

    def close(self) -> None:
        """Close the store and the client's own connections; sealed reports stay in the store."""
        self._closing.close()

    def _deliver_again(self, parts: _Parts, respondent: str, patience_s: float) -> Receipt:
        # The first report's bytes are sent again; nothing new is drawn.
        sealed = parts.sealing.answered(respondent)
        if sealed is not None and sealed.state == "sealed":
            return parts.delivery.deliver(sealed, patience_s)
        # After a final refusal nothing is drawn again: a second draw would reveal more.
        if sealed is not None and sealed.state == "refused":
            return Receipt("refused", sealed.code, "the server refused the first answer for good")
        return Receipt(
            "sent",
            sealed.code if sealed else "accepted",
            "the server has stored the first answer",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
