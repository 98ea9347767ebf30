# SPDX-License-Identifier: Apache-2.0
"""Survey definitions: the strict data model of survey files. Nothing is designed or stored here."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Annotated, Any, Final, Literal, Self

from frankly_protocol import canonical
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import token_verifier
from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from frankly_server.design.families import PAIRS
from frankly_server.faults import faults_of, invalid
from frankly_server.requests.choices import DesignChoices
from frankly_server.requests.fields import ClosedModel, Flag, Slug, custom
from frankly_server.surveys.fields import (
    Budget,
    Language,
    LocalisedText,
    Moment,
    Reports,
    folded,
)
from frankly_server.surveys.known import PriorDefinition, in_strata_order
from frankly_server.surveys.notions import NotionDefinition, StatedLevels
from frankly_server.surveys.truths import TruthsDefinition
from frankly_server.surveys.yaml import read_yaml, write_yaml

MAX_JOINT: Final = 256
RELEASE_STEP: Final = 10
"""Default of `release_step`: the least number of reports that are released together."""
_MIN_STEPS_PER_CELL: Final = 5
"""Least expected number of reports per cell, in release steps.

On average half a step is pending: below this number, more than a tenth of the reports would be
waiting at any time.
"""


class ChoiceDefinition(ClosedModel):
    """One choice of a question."""

    id: Slug
    label: LocalisedText


def _choices(choices: tuple[ChoiceDefinition, ...]) -> tuple[ChoiceDefinition, ...]:
    if not 2 <= len(choices) <= 64:
        raise custom(
            Problem.CHOICES_COUNT,
            f"a question has 2 to 64 choices, this one has {len(choices)}",
        )
    _no_collision([("id", choice.id, choice.id) for choice in choices])
    # SurveyDefinition checks that every text has every language.
    for language in choices[0].label:
        _no_collision(
            [
                ("label", c.label[language], folded(c.label[language]))
                for c in choices
                if language in c.label
            ]
        )
    return choices


def _no_collision(named: Iterable[tuple[str, str, str]]) -> None:
    name_by_normal: dict[str, str] = {}
    for label_kind, name, normal in named:
        if normal in name_by_normal:
            message = f"the {label_kind}s “{name_by_normal[normal]}” and “{name}” look the same; change one"
            raise custom(Problem.CHOICES_COLLIDE, message)
        name_by_normal[normal] = name


class QuestionDefinition(ClosedModel):
    """A question with 2 to 64 choices."""

    id: Slug
    text: LocalisedText
    choices: Annotated[
        tuple[ChoiceDefinition, ...],
        AfterValidator(_choices),
        Field(json_schema_extra={"minItems": 2, "maxItems": 64}),
    ]


class BlockDefinition(StatedLevels, DesignChoices):
    """Questions randomised together, and their protection.

    priors : further tables under which every prior-based notion must also hold. Without a prior,
    the design assumes that all answers are equally likely. truths : plausible true shares; the
    design minimises the largest variance over them instead of the variance at the prior's shares.
    accept_identity : allow a mechanism that sends answers unchanged if the notion permits it. See
    `DesignChoices` for the other fields.
    """

    id: Slug
    questions: Annotated[tuple[QuestionDefinition, ...], Field(min_length=1, max_length=16)]
    notions: Annotated[tuple[NotionDefinition, ...], Field(min_length=1, max_length=16)] = ()
    truths: TruthsDefinition = None
    prior: PriorDefinition | None = None
    priors: Annotated[tuple[PriorDefinition, ...], Field(max_length=8)] = ()
    accept_identity: Flag = False
    accept_unidentifiable: Flag = False

    @property
    def answers(self) -> int:
        """The number of joint answers to the block's questions."""
        return prod(len(question.choices) for question in self.questions)

    @property
    def joint_answers(self) -> tuple[str, ...]:
        """Ids of the joint answers in row-major order, the last question fastest."""
        choice_ids = [[choice.id for choice in question.choices] for question in self.questions]
        return tuple("-".join(ids) for ids in product(*choice_ids))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.answers > MAX_JOINT:
            message = f"the questions of a block have at most {MAX_JOINT} joint answers, these have {self.answers}"
            raise custom(Problem.CHOICES_COUNT, message)
        # Exactly one of the two: with both it would be unclear which levels are promised.
        if (self.notion is None) == (not self.notions):
            raise custom(Problem.FIELD_MISSING, "give either notion or notions")
        # A single prior-based notion is enough to need the prior.
        prior_based = next((levels for levels in self.protections if levels.is_prior_based), None)
        if self.prior is None:
            if prior_based is not None:
                raise custom(
                    Problem.FIELD_MISSING,
                    f"{prior_based.notion} protects a secret under a prior: give one",
                )
            return self
        for prior in (self.prior, *self.priors):
            self._check_prior(prior, named=prior_based is not None)
        return self

    @property
    def in_pairs(self) -> bool:
        """True if answers are pairs (s, u), so that the prior has a row per s and a column per u."""
        return self.mechanism in PAIRS or any(
            levels.notion == "rldp" for levels in self.protections
        )

    def _check_prior(self, prior: PriorDefinition, *, named: bool) -> None:
        rows = len(prior.tables[0])
        # For pairs (s, u) each row is an s, so the columns are the values of u alone.
        columns = self.answers // rows if self.in_pairs else self.answers
        for table, place in zip(prior.tables, prior.places, strict=True):
            for s, row in enumerate(table):
                if len(row) != columns:
                    place_text = f", {place}," if place else ""
                    message = f"row {s} of the prior{place_text} has {len(row)} columns, the questions need {columns}"
                    raise custom(Problem.PRIOR_SHAPE, message)
        if named and prior.secrets is None and (rows > 1 or self.in_pairs):
            raise custom(
                Problem.FIELD_MISSING,
                "a prior with several rows needs the names secret and secrets",
            )


class TokensDefinition(ClosedModel):
    """The token that reports need: an invite of this server, or a token of an outside issuer.

    key : the issuer's RSA key, DER SubjectPublicKeyInfo in base64url without padding; None for
    invites.
    """

    kind: Literal["invite", "rsa-pss"]
    key: str | None = None

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if (self.key is None) != (self.kind == "invite"):
            message = "tokens of an outside issuer need its key; invites have no key"
            raise custom(Problem.DEFINITION_INVALID, message)
        try:
            # The same parser as on devices, so that a key they cannot read is refused here.
            token_verifier(self.rule)
        except InvalidInput:
            message = "the issuer's key must be RSA with 2048 to 4096 bits, as DER in base64url without padding"
            raise custom(Problem.DEFINITION_INVALID, message) from None
        return self

    @property
    def rule(self) -> TokenRule:
        """The token rule of the document."""
        return TokenRule(self.kind, self.key)


class SurveyDefinition(ClosedModel):
    """A survey file. budget : upper limit on the level of the whole report, in nats.

    Missing times are set when a version is published: it opens at once, closes 90 days later and
    expires 30 days after that. tokens : the token that reports need; None if no token is needed.
    release_every : how often pending reports are released. release_step : least number of reports
    of a cell that are released together; by default 10, or min_reports if that is less.
    expected_reports : expected number of reports. Several public questions are refused if they
    leave too few expected reports per cell, unless accept_small_cells.
    """

    name: Slug
    title: LocalisedText
    consent: LocalisedText | None = None
    languages: Annotated[tuple[Language, ...], Field(min_length=1, max_length=32)]
    opens: Moment | None = None
    closes: Moment | None = None
    expires: Moment | None = None
    min_reports: Reports = 100
    release_every: Literal["day", "hour"] = "day"
    release_step: Reports | None = None
    expected_reports: Reports = 1000
    accept_small_cells: Flag = False
    budget: Budget
    strata: Annotated[tuple[QuestionDefinition, ...], Field(max_length=8)] = ()
    tokens: TokensDefinition | None = None
    blocks: Annotated[tuple[BlockDefinition, ...], Field(min_length=1, max_length=100)]

    @field_validator("release_step")
    @classmethod
    def _within_the_minimum(cls, step: int | None, info: ValidationInfo) -> int | None:
        min_reports = info.data.get("min_reports")  # missing if min_reports itself is invalid
        if step is not None and min_reports is not None and step > min_reports:
            raise custom(
                Problem.DEFINITION_INVALID,
                f"write at most {min_reports} (min_reports), or raise min_reports",
            )
        return step

    @field_validator("strata")
    @classmethod
    def _with_large_cells(
        cls, strata: tuple[QuestionDefinition, ...], info: ValidationInfo
    ) -> tuple[QuestionDefinition, ...]:
        fields = info.data
        # Missing fields were invalid; their own errors are reported already.
        if len(strata) < 2 or fields.get("accept_small_cells") or "expected_reports" not in fields:
            return strata
        min_reports = fields.get("min_reports") or RELEASE_STEP
        cells = prod(len(question.choices) for question in strata)
        step = fields.get("release_step") or min(RELEASE_STEP, min_reports)
        if fields["expected_reports"] < cells * _MIN_STEPS_PER_CELL * step:
            message = (
                f"the public questions have {cells} combinations, so that "
                f"{fields['expected_reports']} expected_reports leave fewer than "
                f"{_MIN_STEPS_PER_CELL * step} for each: many reports would wait for long, or lose their "
                "public answers at the end. Ask fewer of them, or set accept_small_cells: true"
            )
            raise custom(Problem.DEFINITION_INVALID, message)
        return strata

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        times = [time for time in (self.opens, self.closes, self.expires) if time is not None]
        if times != sorted(times) or (self.opens is not None and self.opens == self.closes):
            raise custom(Problem.DEFINITION_INVALID, "times must satisfy opens < closes ≤ expires")
        _distinct("language", self.languages)
        _distinct("block", [block.id for block in self.blocks])
        # Distinct across blocks and strata, because answers are given by question id.
        _distinct("question", [question.id for question in self.questions])
        for text_name, texts in self._texts():
            if set(texts) != set(self.languages):
                message = f"{text_name} needs a text in each of {', '.join(self.languages)}, and in no other language"
                raise custom(Problem.DEFINITION_INVALID, message)
        return self

    @property
    def step(self) -> int:
        """The least number of reports released together."""
        default = min(RELEASE_STEP, self.min_reports)
        return default if self.release_step is None else self.release_step

    @property
    def questions(self) -> tuple[QuestionDefinition, ...]:
        """Every question: those of the blocks, then the public strata."""
        return (*(question for block in self.blocks for question in block.questions), *self.strata)

    def _texts(self) -> Iterable[tuple[str, dict[str, str]]]:
        yield "title", self.title
        if self.consent is not None:
            yield "consent", self.consent
        for question in self.questions:
            yield f"the text of {question.id}", question.text
            for choice in question.choices:
                yield f"the label of {question.id}.{choice.id}", choice.label

    def to_json(self) -> str:
        """Return the definition as canonical JSON; fields left at their defaults are left out."""
        # Without defaults, so that a new optional field does not change old digests.
        return canonical.dumps(self.model_dump(mode="json", exclude_defaults=True)).decode("utf-8")

    def to_yaml(self) -> bytes:
        """Return a survey file; reading it gives exactly this definition."""
        # Through JSON, which leaves out the defaults.
        value = canonical.loads(self.to_json().encode("utf-8"))
        # In the order of the model, because canonical JSON sorts its keys.
        return write_yaml({name: value[name] for name in type(self).model_fields if name in value})

    @property
    def digest(self) -> str:
        """The ``sha256:…`` digest of the canonical JSON."""
        return canonical.digest(self.to_json().encode("utf-8"))

    @classmethod
    def from_json(cls, text: str) -> "SurveyDefinition":
        """Return the definition that `to_json` wrote."""
        return parse_value(canonical.loads(text.encode("utf-8")))


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of survey files; `apply` checks further rules, such as sums of levels."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_unless_null(SurveyDefinition.model_json_schema()),
        "title": "A survey file",
    }


def _unless_null(schema: Any) -> Any:
    """Return the schema without null: in a file, optional fields are left out instead."""
    if isinstance(schema, list):
        return [_unless_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    without_null = {
        key: _unless_null(value)
        for key, value in schema.items()
        if (key, value) != ("default", None)
    }
    # pydantic writes an optional field as anyOf with null; without null one option is left.
    single = without_null.pop("anyOf") if len(without_null.get("anyOf", ())) == 1 else ()
    return {**without_null, **{key: value for option in single for key, value in option.items()}}


def parse_definition(data: bytes) -> SurveyDefinition:
    """Read a survey file (YAML, UTF-8).

    Raises InvalidInput with problem and field path of the first fault, and further faults in the
    detail.
    """
    return parse_value(read_yaml(data))


def parse_value(value: Any) -> SurveyDefinition:
    """Read a survey definition from texts, lists and maps; raises as `parse_definition`."""
    if not isinstance(value, dict):
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            "a survey is a map of fields, beginning with name: …",
        )
    try:
        definition = SurveyDefinition.model_validate(value)
    except ValidationError as error:
        raise invalid(faults_of(error, Problem.DEFINITION_INVALID)) from None
    return definition.model_copy(
        update={"blocks": tuple(_in_order(definition, i) for i in range(len(definition.blocks)))}
    )


def _in_order(survey: SurveyDefinition, i: int) -> BlockDefinition:
    """Return a block with its strata in the document's order. Raises InvalidInput(prior_shape)."""
    block, questions = (
        survey.blocks[i],
        [(q.id, [choice.id for choice in q.choices]) for q in survey.strata],
    )
    if block.prior is None:
        return block
    return block.model_copy(update={
        "prior": in_strata_order(block.prior, questions, f"blocks[{i}].prior"),
        "priors": tuple(
            in_strata_order(prior, questions, f"blocks[{i}].priors[{k}]") for k, prior in enumerate(block.priors)
        ),
    })  # fmt: skip


def _distinct(kind: str, names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise custom(
                Problem.DEFINITION_INVALID,
                f"two {kind}s are called {name}; ids are unique in a survey",
            )
