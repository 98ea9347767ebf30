# SPDX-License-Identifier: Apache-2.0
"""Sealing: one draw, recorded in one transaction (docs/protocol.md §7, steps 1-4).

Nothing is sent before the transaction has ended.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from frankly_protocol.audit import Charge, ReportLevel
from frankly_protocol.blocks import Block
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import ClockError, InvalidInput, RandomnessError
from frankly_protocol.mechanisms.agreement import Plan, Truth
from frankly_protocol.mechanisms.base import RandomBits
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report, SymbolJson
from frankly_protocol.trust.invite_codes import is_like_code, token_of_code
from frankly_protocol.trust.tokens import check_token, encode_token

from frankly_sdk._planning import Planning, Plans
from frankly_sdk.answer import Answer
from frankly_sdk.errors import BudgetExceeded, StoreError, SurveyClosed, UnknownChoice
from frankly_sdk.policy import Policy
from frankly_sdk.store import Sealed, Store


@dataclass(frozen=True, slots=True)
class Row:
    """One respondent's answers.

    respondent : the result of `Store.respondent_name`.
    truth : the answers to randomise. public : the answers to public questions and to an instructed
        item; once settled, what the report contains of them. Only the row that `settled` returns is
        randomised.
    token : the token that the document's token rule requires, or None if there is no rule.
    """

    respondent: str
    truth: Answer
    public: Answer
    token: str | None = field(default=None, repr=False)

    def settled(self, planning: Planning) -> "Row | UnknownChoice":
        """Return the row with one choice per question (`Answer.settled`), or the error.

        If only what is drawn is asked, questions may have no answer (`Sealing.planned`). The error
        is not raised, because a traceback would contain the answers.
        """
        document = planning.document
        truth = self.truth.settled(document.questions, partial=planning.is_needed)
        if isinstance(truth, UnknownChoice):
            return truth
        public = self.public.settled(document.open_questions)
        if isinstance(public, UnknownChoice):
            return public
        sent = Answer(document.open_answers(public.revealed()))
        return replace(self, truth=truth, public=sent)


def token_to_send(document: SurveyDocument, token: str | None) -> str | None:
    """Return the token of the report: `token`, or the one that an invite code stands for.

    Raises InvalidInput(token_invalid) for a mistyped code, or if the survey's rule refuses the
    token.
    """
    if token is not None and not isinstance(token, str):
        raise InvalidInput(
            Problem.TOKEN_INVALID, "a token is a string, exactly as it was issued", "token"
        )
    rule = document.token
    if token is not None and rule is not None and rule.key is None and is_like_code(token):
        token = encode_token(token_of_code(token, document.survey))
    check_token(rule, document.survey, token)
    return token


@dataclass(frozen=True)
class Sealing:
    """Seals answers to one accepted document; `chain` is the name of the chain of its keys."""

    document: SurveyDocument
    level: ReportLevel
    chain: str
    pinned: bool
    logged: bool
    policy: Policy
    store: Store
    clock: Clock
    randbits: RandomBits

    @cached_property
    def planning(self) -> Planning:
        """The plans of the document."""
        return Planning(self.document)

    def answered(self, respondent: str = "") -> Sealed | None:
        """Return this respondent's sealed answer to the survey, or None if there is none."""
        return self.store.answer(self.chain, self.document.survey, respondent)

    def plan(self, respondent: str) -> Plans | None:
        """Return a respondent's plans, which the first call draws and stores.

        Returns None if this respondent has already answered. A plan is not drawn again for the same
        form, by another process or after a restart. Window and budget are checked as for sealing,
        but nothing is charged.
        """
        with self.store.transaction():
            if self.answered(respondent) is not None:
                return None
            self._plan(respondent)
        # Read after the commit: nothing is asked that is not stored durably.
        return self._stored(respondent)

    def planned(self, rows: Sequence[Row]) -> list[Row | UnknownChoice]:
        """Return each row with only the answers that its plan needs, or the error if one is missing.

        A respondent whose row does not answer every question gets a plan here, durably and before
        the row is compared with it: a plan that could be drawn again until the answers fit would
        depend on them.
        """
        if not self.planning.is_needed:
            return list(rows)
        every = len(self.document.questions)
        lacking = [row for row in rows if len(row.truth.revealed()) < every]
        if lacking:
            with self.store.transaction():
                for row in lacking:
                    # `_seal` refuses such a row, and finds the answer of one that has answered.
                    with contextlib.suppress(BudgetExceeded):
                        if self.answered(row.respondent) is None:
                            # First, so that a refused token does not depend on the plan.
                            token_to_send(self.document, row.token)
                            self._plan(row.respondent)
        stored = [(row, self._stored(row.respondent)) for row in rows]
        return [row if plans is None else self._fit(row, plans) for row, plans in stored]

    def _plan(self, respondent: str) -> None:
        """Store plans if there are none; call it inside a transaction."""
        self._require_open()
        self._charge(respondent)
        if self._stored(respondent) is not None:
            return
        try:
            # No local variable contains the plan, because a traceback would show it.
            self.store.keep_plan(
                *self._place(respondent), self.planning.text(self.planning.draw(self.randbits))
            )
        except StoreError as fault:
            raise fault.with_traceback(None) from None

    def _stored(self, respondent: str) -> Plans | None:
        """Return the stored plans, None if they are still to be drawn."""
        if not self.planning.is_needed:
            return {}
        text = self.store.plan(*self._place(respondent))
        return None if text is None else self.planning.read(text)

    def _place(self, respondent: str) -> tuple[str, str, str, str]:
        return self.chain, self.document.survey, respondent, self.planning.form

    def _fit(self, row: Row, plans: Plans | None) -> Row | UnknownChoice:
        """Return the row with the answers that its plans need; without plans, with all answers."""
        questions = self.planning.needed(plans) if plans else self.document.questions
        truth = row.truth.only(questions)
        return truth if isinstance(truth, UnknownChoice) else replace(row, truth=truth)

    def _charge(self, respondent: str) -> Charge:
        """Return the cost of an answer; raises BudgetExceeded if the respondent's budget lacks it."""
        spent = self.store.spent(respondent)
        return self.policy.check(
            self.document, self.level, pinned=self.pinned, logged=self.logged, spent=spent
        )

    def one(self, row: Row) -> Sealed | None:
        """Seal one answer; returns None if this respondent has already answered.

        A second caller, in another thread or process, waits for the lock and then finds the first
        caller's row: no second value is ever drawn. All checks and the reservation of disk space
        precede the draw.
        """
        with self.store.transaction():
            return self._seal(row)

    def many(self, rows: Iterable[Row]) -> list[Sealed | BudgetExceeded]:
        """Seal a batch in one transaction and return the results in order.

        For a respondent who has already answered, the first answer is returned and nothing is
        drawn.
        """
        results: list[Sealed | BudgetExceeded] = []
        with self.store.transaction():
            for row in rows:
                try:
                    sealed = self._seal(row) or self.answered(row.respondent)
                except BudgetExceeded as refused:
                    results.append(refused.with_traceback(None))
                else:
                    results += [sealed] if sealed is not None else []
        return results

    def _seal(self, row: Row) -> Sealed | None:
        document, store, chain = self.document, self.store, self.chain
        if self.answered(row.respondent) is not None:
            return None
        self._require_open()
        row = replace(row, token=token_to_send(document, row.token))
        # Checked again under the lock: another process may have spent the budget since `open`.
        charge = self._charge(row.respondent)
        plans = self._stored(row.respondent)
        fitting = self._fit(row, plans)
        if isinstance(fitting, UnknownChoice):
            raise fitting
        length = document.report_length
        # Space is reserved before the draw: if the disk is full, this must fail before any value is
        # drawn.
        store.reserve(
            chain,
            document.survey,
            document.digest,
            document.collect_url,
            length,
            charge,
            format_time(document.closes),
            row.respondent,
        )
        report = self._draw(fitting, plans)
        if report is None:
            raise RandomnessError
        return store.seal(
            chain, document.survey, report.id, report.to_bytes(length), row.respondent
        )

    def _draw(self, row: Row, plans: Plans | None) -> Report | None:
        """Draw every block's symbol and the report's id; returns None if a draw fails.

        plans : those stored before, None to draw them first.
        The original error is dropped, because its traceback contains the true answers.
        """
        randbits = self.randbits
        try:
            drawn = self.planning.draw(randbits) if plans is None else plans
            symbols = tuple(
                _symbol(block, row.truth.row(block), drawn.get(block.id), randbits)
                for block in self.document.blocks
            )
            return Report(
                self.document.digest,
                f"{randbits(128):032x}",
                symbols,
                row.public.revealed(),
                row.token,
            )
        except Exception:  # noqa: BLE001
            return None
        except BaseException as interruption:  # noqa: BLE001
            # Ctrl-C is re-raised without the frames that contain the answers.
            raise interruption.with_traceback(None) from None

    def _require_open(self) -> None:
        now, closes = self.clock.now(), self.document.closes
        try:
            self.document.require_window(now)
        except ClockError:
            if now < closes:
                raise
            raise SurveyClosed(
                f"the survey closed at {format_time(closes)}, this device's clock says {format_time(now)}"
            ) from None


def _symbol(
    block: Block, truth: int | Truth, plan: Plan | None, randbits: RandomBits
) -> SymbolJson:
    """Draw one block's symbol, in its JSON form; plan : that of a form that asks what is drawn."""
    mechanism: Any = block.mechanism
    drawn = (
        mechanism.sample(truth, randbits)
        if plan is None
        else mechanism.answer(truth, plan, randbits)
    )
    return cast("SymbolJson", mechanism.symbol_json(drawn))
