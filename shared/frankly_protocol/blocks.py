# SPDX-License-Identifier: Apache-2.0
"""The blocks of a survey document: questions, their mechanism and its promises (spec 3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from frankly_protocol import schema
from frankly_protocol.audit import lift_bound, stated_ceiling
from frankly_protocol.errors import DocumentRejected, InvalidInput, UnsupportedDocument
from frankly_protocol.mechanisms import BLOCK_KINDS, AgreementMechanism, AnyMechanism, Mechanism
from frankly_protocol.mechanisms.agreement import Truth
from frankly_protocol.mechanisms.base import MAX_REPORTS
from frankly_protocol.promises import MAX_PROMISES, Prior, Promise, counts
from frankly_protocol.questions import Choice, Languages, Question, Words

__all__ = ["Block", "Certificate", "Choice", "Languages", "Prior", "Promise", "Question", "Words"]

DRAWN: Final = "drawn"
"""The value of a form's `ask`, if a device asks only the questions that it has drawn."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The designer's claim of optimality, as decimal text; never trusted for privacy."""

    objective: str
    value: str
    bound: str | None

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Certificate":
        """Read a certificate; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"objective", "value", "bound"})
        return cls(
            schema.identifier(data["objective"], field + ".objective"),
            schema.text(data["value"], field + ".value", 64),
            schema.optional(data["bound"], field + ".bound", lambda v, f: schema.text(v, f, 64)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the certificate in its JSON form."""
        return {"objective": self.objective, "value": self.value, "bound": self.bound}


@dataclass(frozen=True, slots=True)
class Block:
    """One or more questions randomised together by one mechanism.

    Joint answers of several questions are numbered in row-major order, the last question fastest.
    A block of the agreement kind has up to 100 questions and no numbered joint answers.

    promises : 1 to 16, all of which must hold; `ratio` is the level of the first.
    design_prior : counts over joint answers, which determine the published decoder; for the
        agreement kind, over the choices of each question, one question after the other.
    ceiling : recomputed and compared when a block is created; None if infinite or above 2^53 − 1.
    asks_drawn : True if a device draws the plan of its report first and asks only the questions that
        the plan needs (`frankly_protocol.asking`); only for the agreement kind.
    """

    id: str
    questions: tuple[Question, ...]
    mechanism: AnyMechanism
    promises: tuple[Promise, ...]
    design_prior: tuple[int, ...]
    ceiling: Fraction | None
    mechanism_name: str
    certificate: Certificate | None
    asks_drawn: bool = False

    def __post_init__(self) -> None:
        counted = self.mechanism.counts_of(self._sizes)
        if not 1 <= len(self.promises) <= MAX_PROMISES:
            raise schema.reject(f"a block has 1 to {MAX_PROMISES} claims", "claims")
        # A count of 0 could leave the published decoder undefined for that answer.
        if len(self.design_prior) != counted or not all(self.design_prior):
            raise schema.reject(f"expected {counted} positive counts", "design_prior")
        # Recomputed, because no figure from the publisher is trusted for privacy.
        if self.ceiling != stated_ceiling(self.mechanism):
            raise DocumentRejected(
                "privacy", "the stated ceiling is not that of the mechanism", "ceiling"
            )

    @property
    def numbered_mechanism(self) -> Mechanism:
        """The mechanism, for a block whose joint answers are numbered.

        Raises TypeError for the agreement kind.
        """
        return self.mechanism.numbered

    @property
    def form(self) -> AgreementMechanism | None:
        """The mechanism if this block is a form, of the agreement kind, else None."""
        return self.mechanism.as_form

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(question.choices) for question in self.questions)

    @property
    def notion(self) -> str:
        """The distinct names of the promised notions in the order of `promises`, joined by `+`.

        alip with one side is named pml or pmc.
        """
        return "+".join(dict.fromkeys(promise.claim.name for promise in self.promises))

    @property
    def rests_on_prior(self) -> bool:
        """True if a promise depends on a public prior or on lower bounds, which may be false."""
        return any(promise.secret is not None for promise in self.promises)

    @property
    def ratio(self) -> Fraction | None:
        """The level E of the first promise; for alip, the larger of its two levels.

        None if that promise does not bound a ratio on both sides (dpv, one-sided alip).
        """
        return lift_bound(self.promises[0].claim)

    def truth(self, choices: Mapping[str, str]) -> int | Truth:
        """Return the true answer in the form that the mechanism accepts.

        That is the row of the joint answer or, for the agreement kind, the position of the choice
        of each question. `choices` maps every question id of the block to one of its choice ids; if
        the block asks only what is drawn, every question that was asked.

        Raises KeyError for a missing question or an unknown choice: callers check answers first and
        raise a readable error.
        """
        positions = dict[int, int]()
        for i, question in enumerate(self.questions):
            if self.asks_drawn and question.id not in choices:
                continue
            position = question.index(choices[question.id])
            if position is None:
                raise KeyError(question.id)
            positions[i] = position
        return self.mechanism.truth_of(positions, self._sizes)

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Block":
        """Read a block; checks parameters and ceiling, but not the promises (acceptance step 9).

        Raises DocumentRejected (schema, weights, privacy or work_limit), naming the field, and
        UnsupportedDocument for an unknown kind or notion.
        """
        kind = value.get("kind") if isinstance(value, dict) else None
        # Checked before the fields, so that an old app reports a new kind as unsupported, not
        # its fields as unknown.
        known = BLOCK_KINDS.get(kind) if isinstance(kind, str) else None
        if isinstance(value, dict) and "kind" in value and known is None:
            raise UnsupportedDocument("unknown kind of mechanism: update the app", field)
        params = known.PARAMS if known else ()
        optional = known.OPTIONAL if known else frozenset[str]()
        data = schema.DOCUMENT.record(value, field, _KEYS | set(params), optional)
        assert known is not None  # noqa: S101 - a record without a kind has been refused
        # Without the field all questions are asked, so that no document has two texts.
        if data.get("ask", DRAWN) != DRAWN:
            raise schema.reject(f"expected {DRAWN}, or no such field", field + ".ask")
        try:
            return cls(
                id=schema.identifier(data["id"], field + ".id"),
                questions=schema.items(
                    data["questions"],
                    field + ".questions",
                    1,
                    known.MOST_QUESTIONS,
                    lambda v, f: Question.from_json(v, f, languages),
                ),
                mechanism=_mechanism(known, {name: data[name] for name in params}, field),
                promises=schema.items(
                    data["claims"], field + ".claims", 1, MAX_PROMISES, Promise.from_json
                ),
                design_prior=counts(
                    data["design_prior"], field + ".design_prior", known.MOST_COUNTS
                ),
                ceiling=schema.optional(
                    data["ceiling"], field + ".ceiling", lambda v, f: Fraction(*schema.ratio(v, f))
                ),
                mechanism_name=schema.identifier(data["mechanism"], field + ".mechanism"),
                certificate=schema.optional(
                    data["certificate"], field + ".certificate", Certificate.from_json
                ),
                asks_drawn="ask" in data,
            )
        except DocumentRejected as error:
            # Constructors name fields relative to the block; the prefix makes them full paths.
            if error.field and not error.field.startswith(field):
                error.field = f"{field}.{error.field}"
            raise

    def to_json(self) -> dict[str, Any]:
        """Return the block in its JSON form."""
        return {
            "id": self.id,
            "questions": [q.to_json() for q in self.questions],
            "kind": self.mechanism.kind,
            **self.mechanism.params_json(),
            "claims": [promise.to_json() for promise in self.promises],
            "design_prior": list(self.design_prior),
            "ceiling": None if self.ceiling is None else list(self.ceiling.as_integer_ratio()),
            "mechanism": self.mechanism_name,
            "certificate": self.certificate.to_json() if self.certificate else None,
            **({"ask": DRAWN} if self.asks_drawn else {}),
        }


_KEYS = frozenset("id questions kind claims design_prior ceiling mechanism certificate".split())


def _mechanism(kind: type[AnyMechanism], params: Mapping[str, Any], field: str) -> AnyMechanism:
    """Build the mechanism.

    Wrong types and sums have the reason weights, not schema (bad input 18).
    """
    # Type and row length are checked before the mechanism computes with the numbers.
    for table in kind.tables_of(params):
        if not isinstance(table, list) or not all(
            isinstance(row, list) and len(row) <= MAX_REPORTS for row in table
        ):
            raise DocumentRejected(
                "weights", "expected a table of whole numbers", f"{field}.{kind.PARAMS[1]}"
            )
    try:
        return kind.from_params(params, field)
    except InvalidInput as error:
        raise DocumentRejected("weights", error.detail, f"{field}.{error.field}") from None
