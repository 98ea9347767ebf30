# SPDX-License-Identifier: Apache-2.0
"""The blocks of a survey document: questions randomised together, their mechanism, and what it promises (DESIGN §4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from frankly_protocol import schema
from frankly_protocol.audit import PRIOR_BASED, Claim
from frankly_protocol.audit import ceiling as ceiling_of
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, InvalidInput, UnsupportedDocument
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS

KINDS = ("dense",)
DOCUMENT_NOTIONS = ("ldp", "secret-ldp", "lip")
"""What a survey document can carry so far: fewer than the verifier knows."""

Words = Mapping[str, str]
Languages = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that can be given; `label` holds a text per language."""

    id: str
    label: Words


@dataclass(frozen=True, slots=True)
class Question:
    """A question with 2 to 64 choices."""

    id: str
    text: Words
    choices: tuple[Choice, ...]

    def index(self, choice: str) -> int | None:
        """Return the position of a choice id, None if it is not one of the choices."""
        return next((i for i, c in enumerate(self.choices) if c.id == choice), None)

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Question":
        """Read a question; DocumentRejected("schema") names the field."""
        data = schema.record(value, field, {"id", "text", "choices"})

        def choice(entry: Any, where: str) -> Choice:
            parts = schema.record(entry, where, {"id", "label"})
            return Choice(
                schema.identifier(parts["id"], where + ".id"),
                schema.words(parts["label"], where + ".label", languages),
            )

        choices = schema.items(data["choices"], field + ".choices", 2, 64, choice)
        schema.distinct(tuple(c.id for c in choices), field + ".choices")
        return cls(
            schema.identifier(data["id"], field + ".id"),
            schema.words(data["text"], field + ".text", languages),
            choices,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the question as it stands in a document."""
        choices = [{"id": c.id, "label": dict(c.label)} for c in self.choices]
        return {"id": self.id, "text": dict(self.text), "choices": choices}


@dataclass(frozen=True, slots=True)
class Prior:
    """The public prior a prior-based notion rests on: counts joint[s][x] of a named secret against the answers."""

    secret: str
    secrets: tuple[str, ...]
    joint: tuple[tuple[int, ...], ...]
    source: str

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Prior":
        """Read a prior; DocumentRejected("schema") names the field."""
        data = schema.record(value, field, {"secret", "secrets", "joint", "source"})
        names = schema.items(data["secrets"], field + ".secrets", 2, 64, schema.identifier)
        schema.distinct(names, field + ".secrets")
        return cls(
            schema.identifier(data["secret"], field + ".secret"),
            names,
            schema.items(data["joint"], field + ".joint", len(names), len(names), _counts),
            schema.text(data["source"], field + ".source"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the prior as it stands in a document."""
        joint = [list(row) for row in self.joint]
        return {"secret": self.secret, "secrets": list(self.secrets), "joint": joint, "source": self.source}


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the designer claims of optimality, as decimal text: informative, never trusted for privacy."""

    objective: str
    value: str
    bound: str | None

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Certificate":
        """Read a certificate; DocumentRejected("schema") names the field."""
        data = schema.record(value, field, {"objective", "value", "bound"})
        return cls(
            schema.identifier(data["objective"], field + ".objective"),
            schema.text(data["value"], field + ".value", 64),
            schema.optional(data["bound"], field + ".bound", lambda v, f: schema.text(v, f, 64)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as it stands in a document."""
        return {"objective": self.objective, "value": self.value, "bound": self.bound}


@dataclass(frozen=True, slots=True)
class Block:
    """One or more questions randomised together by one mechanism.

    The joint answer of several questions is counted in row-major order, the last question fastest.
    level : (p, q), E = p/q. prior : needed by prior-based notions. design_prior : counts over joint answers that fix
    the published decoder. ceiling : recomputed and compared when the block is read; None is infinite.
    """

    id: str
    questions: tuple[Question, ...]
    mechanism: DenseMechanism
    notion: str
    level: tuple[int, int]
    prior: Prior | None
    design_prior: tuple[int, ...]
    ceiling: Fraction | None
    mechanism_name: str
    certificate: Certificate | None

    def __post_init__(self) -> None:
        answers = prod(len(q.choices) for q in self.questions)
        if answers > MAX_ANSWERS:
            raise schema.reject(f"a block's questions may have at most {MAX_ANSWERS} joint answers", self.id)
        if self.mechanism.answers != answers:
            raise DocumentRejected("weights", f"{answers} joint answers need as many rows", "weights")
        if (self.prior is not None) != (self.notion in PRIOR_BASED):
            raise schema.reject("a prior belongs to prior-based notions, and only to them", "prior")
        if len(self.design_prior) != answers or not all(self.design_prior):
            raise schema.reject(f"expected {answers} positive counts", "design_prior")
        if self.ceiling != ceiling_of(self.mechanism):
            raise DocumentRejected("privacy", "the stated ceiling is not that of the weights", "ceiling")

    @property
    def claim(self) -> Claim:
        """What is promised, in the words of the verifier."""
        return Claim(self.notion, self.level, self.prior.joint if self.prior else None)

    @property
    def secret(self) -> str | None:
        """The secret a prior-based notion protects, None for a prior-free notion."""
        return self.prior.secret if self.prior else None

    @property
    def ratio(self) -> Fraction:
        """The promised level E."""
        return Fraction(*self.level)

    def truth(self, choices: Mapping[str, str]) -> int:
        """Return the row of the joint answer; `choices` maps every question id of the block to one of its choice ids.

        Raises KeyError if a question or choice is missing: callers check answers first, with words fit for people.
        """
        row = 0
        for question in self.questions:
            position = question.index(choices[question.id])
            if position is None:
                raise KeyError(question.id)
            row = row * len(question.choices) + position
        return row

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Block":
        """Read a block, its weights and ceiling checked, its privacy not yet (acceptance step 9 does that)."""
        data = schema.record(value, field, _KEYS)
        if data["kind"] not in KINDS or data["notion"] not in DOCUMENT_NOTIONS:
            raise UnsupportedDocument("unknown kind or notion: update the app", field)
        try:
            return cls(
                id=schema.identifier(data["id"], field + ".id"),
                questions=schema.items(
                    data["questions"], field + ".questions", 1, 16, lambda v, f: Question.from_json(v, f, languages)
                ),
                mechanism=_mechanism(data["bits"], data["weights"], field),
                notion=data["notion"],
                level=_ratio(data["level"], field + ".level"),
                prior=schema.optional(data["prior"], field + ".prior", Prior.from_json),
                design_prior=_counts(data["design_prior"], field + ".design_prior"),
                ceiling=schema.optional(data["ceiling"], field + ".ceiling", lambda v, f: Fraction(*_ratio(v, f))),
                mechanism_name=schema.identifier(data["mechanism"], field + ".mechanism"),
                certificate=schema.optional(data["certificate"], field + ".certificate", Certificate.from_json),
            )
        except DocumentRejected as error:
            if error.field and not error.field.startswith(field):
                error.field = f"{field}.{error.field}"
            raise

    def to_json(self) -> dict[str, Any]:
        """Return the block as it stands in a document."""
        return {
            "id": self.id,
            "questions": [q.to_json() for q in self.questions],
            "kind": "dense",
            "bits": self.mechanism.bits,
            "weights": [list(row) for row in self.mechanism.weights],
            "notion": self.notion,
            "level": list(self.level),
            "prior": self.prior.to_json() if self.prior else None,
            "design_prior": list(self.design_prior),
            "ceiling": None if self.ceiling is None else list(self.ceiling.as_integer_ratio()),
            "mechanism": self.mechanism_name,
            "certificate": self.certificate.to_json() if self.certificate else None,
        }


_KEYS = frozenset(
    "id questions kind bits weights notion level prior design_prior ceiling mechanism certificate".split()
)


def _counts(value: Any, field: str) -> tuple[int, ...]:
    return schema.items(value, field, 2, MAX_ANSWERS, schema.integer)


def _ratio(value: Any, field: str) -> tuple[int, int]:
    p, q = schema.items(value, field, 2, 2, lambda v, f: schema.integer(v, f, 1, MAX_INT))
    return p, q


def _mechanism(bits: Any, weights: Any, field: str) -> DenseMechanism:
    """Build the mechanism; type and sum faults are weight faults, not schema faults (BAD_INPUTS 18)."""
    if not isinstance(weights, list) or not all(isinstance(row, list) and len(row) <= MAX_REPORTS for row in weights):
        raise DocumentRejected("weights", "expected a table of whole numbers", field + ".weights")
    try:
        return DenseMechanism(bits, tuple(tuple(row) for row in weights))
    except InvalidInput as error:
        raise DocumentRejected("weights", error.detail, f"{field}.{error.field}") from None
