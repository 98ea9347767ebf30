# SPDX-License-Identifier: Apache-2.0
"""Sealing: one draw, recorded in one transaction (docs/protocol.md §7, steps 1-4).

Nothing is sent before the transaction has ended.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
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
from frankly_protocol.questions import Question
from frankly_protocol.report import Report, SymbolJson
from frankly_protocol.trust.invite_codes import is_like_code, token_of_code
from frankly_protocol.trust.tokens import check_token, encode_token

from frankly_sdk._planning import Planning, Plans
from frankly_sdk.answer import Answer
from frankly_sdk.errors import BudgetExceeded, StoreError, SurveyClosed, UnknownChoice
from frankly_sdk.plan import Plan as ShownPlan
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
    arm : the drawn arm (`Sealing.armed`), None if there is none.
    """

    respondent: str
    truth: Answer
    public: Answer
    token: str | None = field(default=None, repr=False)
    arm: str | None = field(default=None, repr=False)

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

    def within(self, view: SurveyDocument) -> "Row":
        """Return the row in its arm, without answers to questions that only other arms have."""
        known = _names(view.whole or view)
        return replace(
            self,
            truth=self.truth.without(known - _names_of(view.questions)),
            public=self.public.without(known - _names_of(view.open_questions)),
            arm=view.arm,
        )


def _names_of(questions: Mapping[str, Question]) -> frozenset[str]:
    """Return the names under which answers to some questions are given."""
    return frozenset(questions) | {q.box.of for q in questions.values() if q.box is not None}


def _names(document: SurveyDocument) -> frozenset[str]:
    """Return the names of the questions of all arms."""
    views = document.views.values()
    found = [_names_of(questions) for v in views for questions in (v.questions, v.open_questions)]
    return frozenset[str]().union(*found)


def token_to_send(document: SurveyDocument, token: str | None, source: object = None) -> str | None:
    """Return the token of the report: `token`, or the one that an invite code stands for.

    source : the respondent's (`source_of`). Raises InvalidInput: token_invalid for a mistyped code, or if
    the survey's rule refuses the token; strata_invalid for an unknown source.
    """
    if token is not None and not isinstance(token, str):
        raise InvalidInput(
            Problem.TOKEN_INVALID, "a token is a string, exactly as it was issued", "token"
        )
    rule = None if document.token is None else document.token.rule_for(source)
    if token is not None and rule is not None and rule.key is None and is_like_code(token):
        token = encode_token(token_of_code(token, document.survey))
    check_token(rule, document.survey, token)
    return token


def source_of(document: SurveyDocument, public: Answer) -> object:
    """Return the answer to the public question that names a respondent's source; None without sources."""
    rule = document.token
    return None if rule is None or rule.question is None else public.get(rule.question)


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

    @cached_property
    def arms(self) -> "Mapping[str, Sealing]":
        """Sealing in each arm, with the level of its view; empty without arms."""
        return {
            name: replace(self, document=view, level=self.policy.level(view))
            for name, view in self.document.views.items()
        }

    def answered(self, respondent: str = "") -> Sealed | None:
        """Return this respondent's sealed answer to the survey, or None if there is none."""
        return self.store.answer(self.chain, self.document.survey, respondent)

    def plan(self, respondent: str) -> ShownPlan | None:
        """Return a respondent's plan, which the first call draws and stores.

        Returns None if this respondent has already answered. A plan is not drawn again for the same
        form, by another process or after a restart. Window and budget are checked as for sealing,
        but nothing is charged.
        """
        with self.store.transaction():
            if self.answered(respondent) is not None:
                return None
            self._plan(respondent)
        # Read after the commit: nothing is asked that is not stored durably.
        sealing = self._drawn(respondent)
        return sealing.planning.shown(sealing.stored(respondent) or {})

    def _drawn(self, respondent: str) -> "Sealing":
        """Return the sealing of the arm in a stored plan; without arms, this one."""
        text = self.store.plan(*self._place(respondent)) if self.arms else None
        return self if text is None else self.arms[self.planning.arm_of(text)]

    def armed(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows in the arms that their respondents have drawn, or draw here, durably.

        The answers may be different in every arm, so they are looked at only afterwards. Without
        arms the rows are returned unchanged; so is that of a respondent who has answered or whose
        budget is too small, which `one` and `many` find.
        """
        if not self.arms:
            return list(rows)
        self._plan_all(rows)
        drawn = [self._drawn(row.respondent).document for row in rows]
        return [
            row if view.arm is None else row.within(view)
            for row, view in zip(rows, drawn, strict=True)
        ]

    def settled(self, row: Row) -> Row | UnknownChoice:
        """Return the row with one choice per question of its arm, or the error."""
        if not self.arms:
            return row.settled(self.planning)
        return row if row.arm is None else self.arms[row.arm].settled(row)

    def planned(self, rows: Sequence[Row]) -> list[Row | UnknownChoice]:
        """Return each row with only the answers that its plan needs, or the error if one is missing.

        A respondent whose row does not answer every question gets a plan here, durably and before
        the row is compared with it: a plan that could be drawn again until the answers fit would
        depend on them.
        """
        if not self.planning.is_needed:
            return list(rows)
        if self.arms:
            return [row if row.arm is None else self.arms[row.arm].fitted(row) for row in rows]
        every = len(self.document.questions)
        self._plan_all([row for row in rows if len(row.truth.revealed()) < every])
        return [self.fitted(row) for row in rows]

    def fitted(self, row: Row) -> Row | UnknownChoice:
        plans = self.stored(row.respondent)
        return row if plans is None else self._fit(row, plans)

    def _plan_all(self, rows: Sequence[Row]) -> None:
        """Store plans of the respondents who have none, unless they have answered."""
        if not rows:
            return
        with self.store.transaction():
            for row in rows:
                # `seal_row` refuses such a row, and finds the answer of one that has answered.
                with contextlib.suppress(BudgetExceeded):
                    if self.answered(row.respondent) is None:
                        # First, so that a refused token does not depend on the plan.
                        token_to_send(
                            self.document, row.token, source_of(self.document, row.public)
                        )
                        self._plan(row.respondent)

    def _plan(self, respondent: str) -> None:
        """Store plans if there are none; call it inside a transaction."""
        self._require_open()
        self._charge(respondent)
        if not self.planning.is_needed or self.store.plan(*self._place(respondent)) is not None:
            return
        try:
            # No local variable contains the plan, because a traceback would show it.
            self.store.keep_plan(*self._place(respondent), self.planning.drawn_text(self.randbits))
        except StoreError as fault:
            raise fault.with_traceback(None) from None

    def stored(self, respondent: str) -> Plans | None:
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
            return self.seal_row(row)

    def many(self, rows: Iterable[Row]) -> list[Sealed | BudgetExceeded]:
        """Seal a batch in one transaction and return the results in order.

        For a respondent who has already answered, the first answer is returned and nothing is
        drawn.
        """
        results: list[Sealed | BudgetExceeded] = []
        with self.store.transaction():
            for row in rows:
                try:
                    sealed = self.seal_row(row) or self.answered(row.respondent)
                except BudgetExceeded as refused:
                    results.append(refused.with_traceback(None))
                else:
                    results += [sealed] if sealed is not None else []
        return results

    def seal_row(self, row: Row) -> Sealed | None:
        if row.arm is not None and self.arms:
            if self.answered(row.respondent) is None:
                # As before the draw: other answers since then must not leave out people of one arm only.
                self._charge(row.respondent)
            return self.arms[row.arm].seal_row(row)
        document, store, chain = self.document, self.store, self.chain
        if self.answered(row.respondent) is not None:
            return None
        self._require_open()
        row = replace(
            row, token=token_to_send(document, row.token, source_of(document, row.public))
        )
        # Checked again under the lock: another process may have spent the budget since `open`.
        charge = self._charge(row.respondent)
        # Without a plan of its own, a document with arms would draw a second arm.
        plans = None if self.arms else self.stored(row.respondent)
        if plans is None and document.arms is not None:
            raise StoreError("the plan of this answer is gone; nothing was sent")
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
