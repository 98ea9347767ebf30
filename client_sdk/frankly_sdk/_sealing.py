# SPDX-License-Identifier: Apache-2.0
"""Sealing: one draw, recorded in one transaction (docs/protocol.md §7, steps 1-4).

Nothing is sent before the transaction has ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from frankly_protocol.audit import ReportLevel
from frankly_protocol.blocks import Block
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import ClockError, InvalidInput, RandomnessError
from frankly_protocol.mechanisms.agreement import FormAnswers
from frankly_protocol.mechanisms.base import RandomBits
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report, SymbolJson
from frankly_protocol.trust.invite_codes import is_like_code, token_of_code
from frankly_protocol.trust.tokens import check_token, encode_token

from frankly_sdk.answer import Answer
from frankly_sdk.errors import BudgetExceeded, SurveyClosed, UnknownChoice
from frankly_sdk.policy import Policy
from frankly_sdk.store import Sealed, Store


@dataclass(frozen=True, slots=True)
class Row:
    """One respondent's answers.

    respondent : the result of `Store.respondent_name`.
    truth : the answers to randomise. public : the answers to public questions. Only the row that
        `settled` returns is randomised.
    token : the token that the document's token rule requires, or None if there is no rule.
    """

    respondent: str
    truth: Answer
    public: Answer
    token: str | None = field(default=None, repr=False)

    def settled(self, document: SurveyDocument) -> "Row | UnknownChoice":
        """Return the row with one choice per question (`Answer.settled`), or the error.

        The error is not raised, because a traceback would contain the answers.
        """
        truth = self.truth.settled(document.questions)
        if isinstance(truth, UnknownChoice):
            return truth
        public = self.public.settled({q.id: q for q in document.strata})
        if isinstance(public, UnknownChoice):
            return public
        return replace(self, truth=truth, public=public)


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


@dataclass(frozen=True, slots=True)
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

    def answered(self, respondent: str = "") -> Sealed | None:
        """Return this respondent's sealed answer to the survey, or None if there is none."""
        return self.store.answer(self.chain, self.document.survey, respondent)

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
        spent = store.spent(row.respondent)
        # Checked again under the lock: another process may have spent the budget since `open`.
        charge = self.policy.check(
            document, self.level, pinned=self.pinned, logged=self.logged, spent=spent
        )
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
        report = self._draw(row)
        if report is None:
            raise RandomnessError
        return store.seal(
            chain, document.survey, report.id, report.to_bytes(length), row.respondent
        )

    def _draw(self, row: Row) -> Report | None:
        """Draw every block's symbol and the report's id; returns None if a draw fails.

        The original error is dropped, because its traceback contains the true answers.
        """
        randbits = self.randbits
        try:
            symbols = tuple(
                _symbol(block, row.truth.row(block), randbits) for block in self.document.blocks
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


def _symbol(block: Block, truth: int | FormAnswers, randbits: RandomBits) -> SymbolJson:
    """Draw one block's symbol, in its JSON form."""
    mechanism = block.mechanism
    return mechanism.symbol_json(mechanism.sample(truth, randbits))  # type: ignore[arg-type]  # its own symbol
