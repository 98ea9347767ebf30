# SPDX-License-Identifier: Apache-2.0
"""The client: open a pinned link, verify, answer once.

with Client.open(link, store="answers.db") as client:
    print(client.survey.explain())
    receipt = client.answer({"q1": "yes"})
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from frankly_protocol.explanation.budget import Budget

from frankly_sdk._core import Core, Options
from frankly_sdk._sealing import Row
from frankly_sdk._seams import Seams
from frankly_sdk._steps import run
from frankly_sdk.answer import Answer, Given
from frankly_sdk.batch import Randomised, Respondent
from frankly_sdk.events import OnEvent
from frankly_sdk.plan import Plan
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt
from frankly_sdk.survey import Survey

__all__ = ["Client", "Survey"]


class Client:
    """One install answering one survey.

    Use `Client.open`; safe to share between threads and across a fork. `frankly_sdk.aio.Client` is
    the same for asyncio.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

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
        ca_file: str | Path | None = None,
        spread_s: float | None = None,
        background: bool = False,
        one_person: bool = False,
        patience_s: float | None = None,
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
        on_event : called with each `Event`, from the thread in which it happens.
        relay : address of a reverse proxy that all requests go through.
        ca_file : certificates to trust instead of the public ones, for a server with a private
            certificate.
        spread_s : each report is sent at a random moment within this many seconds of being sealed;
            0 to 34560000 (400 days, the longest validity of a document). By default 0.01, and 30 for
            a survey that asks only what is drawn.
        background : deliver queued reports in a thread, without calls of `flush`, until `close` or
            the end of the process, which it delays by less than a second.
        one_person : this install belongs to one person, although a web server runs in it; without
            it, an answer without a respondent in a web request issues a SharedStoreWarning.
        patience_s : seconds that this call may wait for servers in all, 0 to 34560000; at most half
            of them for the reports of an earlier run. After that no request is made, and a survey
            that is not stored here raises NetworkError. By default each request may take 30
            seconds, and 10 in silence.

        Raises InvalidInput for an argument of the wrong type or out of range, LinkError,
        StoreError, NetworkError, DocumentRejected or a subclass, PolicyRefused. If an error is
        raised, no answer was drawn and no new report was sent.
        """
        options = Options(
            link,
            store,
            policy,
            keys,
            enabled,
            debug,
            on_event,
            relay,
            ca_file,
            spread_s,
            background,
            one_person,
            patience_s,
        )
        return cls(Core.open(options, Seams()))

    @property
    def enabled(self) -> bool:
        """False if the client was opened with enabled=False and does nothing."""
        return self._core.parts is not None

    @property
    def survey(self) -> Survey:
        """The accepted survey.

        Raises Disabled if there is none because the client was opened with enabled=False.
        """
        return self._core.survey

    def budget(self, respondent: str | None = None) -> Budget:
        """Return the survey's cost for a respondent, and the budget left before and after it.

        Nothing is charged.

        respondent : as for `answer`.

        Raises Disabled, InvalidInput for a key that is not a non-blank string, StoreError.
        """
        return self._core.budget(respondent)

    def plan(self, respondent: str | None = None) -> Plan:
        """Return the questions to ask: all, or only those that this device has drawn for its report.

        Call it before the first question is shown. The first call draws, and stores the draw durably
        before it returns; later calls, in any process, return the same until the answer is sealed. A
        new version of the document keeps the draw unless its questions or their mechanism changed.
        Nothing is charged or sent: that nobody answered remains on this device.

        respondent : as for `answer`.

        Raises AlreadyAnswered, BudgetExceeded, PolicyRefused, SurveyClosed, ClockError if the survey
        has not opened yet, Disabled, InvalidInput for a key that is not a non-blank string,
        StoreError, RandomnessError.
        """
        self._core.shared.check(respondent)
        return self._core.plan(respondent)

    def answer(
        self,
        choices: Mapping[str, Given] | Answer,
        *,
        strata: Mapping[str, str] | None = None,
        respondent: str | None = None,
        token: str | None = None,
        patience_s: float | None = None,
    ) -> Receipt:
        """Randomise, seal and send one answer. The true answers in `choices` are not stored anywhere.

        choices : question id → choice id, for every question of `plan`. Answers to other questions
            of the survey must be valid, and are dropped. Without an earlier call of `plan`, a draw
            is made here.
        strata : public question id → choice id, for every public question and an instructed item. The
            source that a link names need not be repeated.
        respondent : if many people answer on this device, a key for each: there is one answer and
            one ledger per key. Keys that differ only in surrounding spaces or in their Unicode form
            belong to the same person. Without a key, the answer is that of the person who owns the
            install; a blank key is refused.
        token : for surveys that require one, or the invite code that stands for it; by default the
            code of a personal link. It is sent with the report and erased with it.
        patience_s : seconds to keep trying before returning ``queued``, 0 to 34560000, by default
            10, and for a survey that asks only what is drawn 10 after the random moment of sending;
            the sealed bytes are sent again at the next start
            or `flush`, or by the background sender. With 0 there is at most one attempt, and none
            before that moment. An attempt gets a second if less is left.

        Raises UnknownChoice, AlreadyAnswered (after trying to deliver the earlier answer),
        SurveyClosed, ClockError if the survey has not opened yet, InvalidInput (token_invalid, or
        an invalid respondent or patience_s), PolicyRefused, StoreError, RandomnessError. If an
        error is raised, no answer of this call was sealed or sent. Delivery problems are reported
        in the receipt.
        """
        row = Row("", Answer.of(choices), Answer.of({} if strata is None else strata), token)
        # A traceback keeps local variables, so only the redacted `Answer` may contain the answers.
        del choices, strata
        self._core.shared.check(respondent)
        steps = self._core.answer(row, respondent, patience_s)
        del row  # the steps drop the answers when they are sealed
        return run(steps, self._core.sleep)

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
        return self._core.randomise_many(rows)

    def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Send the reports that are still sealed in this store, for about `timeout_s` seconds.

        Returns a receipt for each report. The first call also returns those of the reports of an
        earlier run that `open` has delivered; reports of the background sender are only events.
        More than 100 reports to one address are sent together, at most 100 in a request. Servers that
        do not respond end the call in time; those that respond get all that is due.

        Raises StoreError, and InvalidInput unless timeout_s is a number from 0 to 34560000.
        """
        return run(self._core.flush(timeout_s), self._core.sleep)

    def close(self) -> None:
        """Close the store and the client's own connections; sealed reports stay in the store.

        Calls of other threads that wait between two attempts return ``queued``.
        """
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
