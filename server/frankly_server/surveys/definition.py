# SPDX-License-Identifier: Apache-2.0
"""Survey definitions: the strict data model of survey files, without design or storage."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import product
from math import prod
from typing import Annotated, Any, Final, Literal, Self

from frankly_design.families import PAIRS
from frankly_design.requests.choices import DesignChoices
from frankly_design.requests.faults import faults_of, invalid
from frankly_design.requests.fields import ClosedModel, Epsilon, Flag, Slug, custom
from frankly_protocol import canonical
from frankly_protocol.arms import MAX_ARMS
from frankly_protocol.audit.bounds import MAX_EPSILON
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_CHOICES, MAX_QUESTIONS
from frankly_protocol.mechanisms.base import MAX_SET_ANSWERS
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import SOURCES, TokenRule
from frankly_protocol.trust.tokens import issuer_key
from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from frankly_server.surveys.anchors import require_anchors
from frankly_server.surveys.arms_definition import (
    ArmDefinition,
    arms_of,
    placed_in,
    require_arms,
    strata_of,
)
from frankly_server.surveys.asked import asks_less
from frankly_server.surveys.fields import Budget, Language, LocalisedText, Moment, Reports
from frankly_server.surveys.notions import NotionDefinition, StatedLevels
from frankly_server.surveys.page_definition import PageDefinition
from frankly_server.surveys.prior_definition import PriorDefinition, in_strata_order
from frankly_server.surveys.question_definition import (
    FormItem,
    FormQuestionDefinition,
    InstructedDefinition,
    QuestionDefinition,
    require_asked,
)
from frankly_server.surveys.truths import TruthsDefinition
from frankly_server.surveys.yaml import read_yaml, write_yaml

MAX_JOINT: Final = 256
MAX_FEW_CHOICES: Final = 64
"""Largest number of choices of a form question, and of a public question."""
FORM_ID: Final = "form"
"""Id of the document's block for the questions of `form`."""
RELEASE_STEP: Final = 10
"""Default of `release_step`, unless `min_reports` is less."""
_MIN_STEPS_PER_CELL: Final = 5
"""Least expected number of reports per cell, in release steps.

About half a step of each cell is pending at any time. With fewer reports per cell, more than a
tenth of them would be pending.
"""


class BlockDefinition(StatedLevels, DesignChoices):
    """Questions randomised together, and their protection.

    priors : additional tables under which every prior-based notion must also hold. Without a prior,
    the design assumes that all answers are equally likely. truths : plausible true shares; the
    design minimises the largest variance over these instead of the variance at the prior's shares.
    accept_identity : allow a mechanism that sends answers unchanged if the notion permits it.
    accept_unidentifiable : allow a mechanism from whose reports some shares cannot be estimated.
    See `DesignChoices` for the notion, its levels and the choice of the mechanism.
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
        # Beyond MAX_JOINT only mechanisms without a table are possible.
        most = MAX_SET_ANSWERS if self.notion == "ldp" else MAX_JOINT
        if self.answers > most:
            raise custom(
                Problem.CHOICES_COUNT,
                f"the questions of a block have at most {MAX_JOINT} joint answers, under ldp alone "
                f"{MAX_SET_ANSWERS}; these have {self.answers}",
            )
        # Exactly one of the two, because with both it would be unclear which levels are promised.
        if (self.notion is None) == (not self.notions):
            raise custom(Problem.FIELD_MISSING, "give either notion or notions")
        # A single prior-based notion among several already needs the prior.
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
        """True if answers are pairs (s, u): the prior has a row for each s, a column for each u."""
        return self.mechanism in PAIRS or any(levels.has_pairs for levels in self.protections)

    def _check_prior(self, prior: PriorDefinition, *, named: bool) -> None:
        rows = len(prior.tables[0])
        # For pairs (s, u) each row is an s, so the columns are only the values of u.
        columns = self.answers // rows if self.in_pairs else self.answers
        for table, place in zip(prior.tables, prior.places, strict=True):
            for s, row in enumerate(table):
                if len(row) != columns:
                    place_text = f", {place}," if place else ""
                    raise custom(
                        Problem.PRIOR_SHAPE,
                        f"row {s} of the prior{place_text} has {len(row)} columns, not {columns}",
                    )
        if named and prior.secrets is None and (rows > 1 or self.in_pairs):
            raise custom(
                Problem.FIELD_MISSING,
                "a prior with several rows needs the names secret and secrets",
            )


def _require_few_choices(questions: Sequence[QuestionDefinition], where: str) -> None:
    """Raise choices_count if a form or public question has too many choices."""
    for question in questions:
        if len(question.choices) > MAX_FEW_CHOICES:
            raise custom(
                Problem.CHOICES_COUNT,
                f"{where} has 2 to {MAX_FEW_CHOICES} choices, "
                f"{question.id} has {len(question.choices)}",
            )


def _form_questions(
    questions: tuple[FormQuestionDefinition, ...],
) -> tuple[FormQuestionDefinition, ...]:
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise custom(
            Problem.DEFINITION_INVALID,
            f"a form has 1 to {MAX_QUESTIONS} questions; this one has {len(questions)}",
        )
    items = [item for question in questions for item in question.items]
    if len(items) > MAX_QUESTIONS:
        raise custom(
            Problem.DEFINITION_INVALID,
            f"a form has at most {MAX_QUESTIONS} questions and boxes; this one has {len(items)}",
        )
    _require_few_choices(questions, "a form question")
    total = sum(len(item.choices) for item in items)
    if total > MAX_CHOICES:
        raise custom(
            Problem.CHOICES_COUNT,
            f"a form has at most {MAX_CHOICES} choices in all; this one has {total}: "
            "ask fewer questions, or merge choices",
        )
    return questions


class FormDefinition(ClosedModel):
    """Questions that share one level; the design is optimised for the requested estimates.

    epsilon : the level of all answers together, in nats; in a survey without blocks, the default is
    the survey's budget. ask : ``all``, or ``drawn`` if a device draws first what its report is about
    and asks only the questions that this needs; by default as the version before (see
    `SurveyDefinition.after`), and drawn in the first one; where no question is left out, all.
    cross_tables : pairs of questions whose joint table is requested; other joint tables can be
    estimated only if some reports happen to show both questions.
    """

    epsilon: Epsilon | None = None
    ask: Literal["all", "drawn"] | None = None
    questions: Annotated[
        tuple[FormQuestionDefinition, ...],
        AfterValidator(_form_questions),
        Field(json_schema_extra={"minItems": 1, "maxItems": MAX_QUESTIONS}),
    ]
    cross_tables: Annotated[tuple[tuple[Slug, Slug], ...], Field(max_length=60)] = ()

    @property
    def items(self) -> tuple[FormItem, ...]:
        """The randomised items: every question, or each of its boxes."""
        return tuple(item for question in self.questions for item in question.items)

    @field_validator("cross_tables")
    @classmethod
    def _of_two_questions(
        cls, pairs: tuple[tuple[str, str], ...], info: ValidationInfo
    ) -> tuple[tuple[str, str], ...]:
        if "questions" not in info.data:  # invalid questions are reported at their own path
            return pairs
        # Boxes are drawn like questions, so a pair can contain a box.
        items = (item for question in info.data["questions"] for item in question.items)
        sizes = {item.id: len(item.choices) for item in items}
        for pair in pairs:
            if len(set(pair)) < 2 or not set(pair) <= set(sizes):
                raise custom(
                    Problem.DEFINITION_INVALID,
                    f"a pair is two different questions of the form: {', '.join(sizes)}",
                )
            cells = prod(sizes[name] for name in pair)
            if cells > MAX_JOINT:
                raise custom(
                    Problem.CHOICES_COUNT,
                    f"a joint table has at most {MAX_JOINT} cells: {' and '.join(pair)} have "
                    f"{cells}; leave out the pair, or merge choices",
                )
        # A table and its transpose are the same request.
        if len({frozenset(pair) for pair in pairs}) < len(pairs):
            raise custom(Problem.DEFINITION_INVALID, "name each pair only once, in either order")
        return pairs


def _usable_key(key: str) -> str:
    try:
        # The same parser as on devices, so that a key that devices cannot read is refused here.
        issuer_key(key)
    except InvalidInput:
        raise custom(
            Problem.DEFINITION_INVALID,
            "the issuer's key must be RSA with 2048 to 4096 bits, as DER in base64url without padding",
        ) from None
    return key


IssuerKey = Annotated[str, AfterValidator(_usable_key)]


class TokensDefinition(ClosedModel):
    """The token that reports need: an invite of this server, or a token of an outside issuer.

    key : the issuer's RSA key, DER SubjectPublicKeyInfo in base64url without padding; None for
    invites. With sources, each has tokens of its own: question is the public question whose choices
    they are, and keys has the issuer's key of those that have one. The others have invites.
    """

    kind: Literal["invite", "rsa-pss", "sources"]
    key: IssuerKey | None = None
    question: Slug | None = None
    keys: dict[Slug, IssuerKey] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if (self.key is not None) != (self.kind == "rsa-pss"):
            raise custom(
                Problem.DEFINITION_INVALID,
                "tokens of an outside issuer need its key; invites and sources have no key here",
            )
        if (self.question is not None) != (self.kind == SOURCES):
            raise custom(
                Problem.DEFINITION_INVALID,
                "sources are the choices of a public question: name it, or leave it out with another kind",
            )
        if self.keys and self.kind != SOURCES:
            raise custom(Problem.DEFINITION_INVALID, "only sources have keys: leave them out")
        return self

    def rule(self, strata: Iterable[QuestionDefinition]) -> TokenRule:
        """Return the token rule of the document."""
        if self.question is None:
            return TokenRule(self.kind, self.key)
        sources = next(one for one in strata if one.id == self.question).choices
        rules = {
            one.id: TokenRule("rsa-pss", self.keys[one.id])
            if one.id in self.keys
            else TokenRule("invite")
            for one in sources
        }
        return TokenRule(self.kind, question=self.question, rules=rules)


class SurveyDefinition(ClosedModel):
    """A survey file: blocks with a level each, a form with one level for many questions, or both.

    budget : upper limit on the level of the whole report, in nats.

    Missing times are set when a version is published: it opens immediately, closes 90 days later
    and expires 30 days after that. tokens : the token that reports need; None if no token is
    needed.
    release_every : how often pending reports are released. release_step : least number of reports
    of a cell that are released together; by default 10, or min_reports if that is less.
    instructed : an item that asks for one given choice; see `InstructedDefinition`. Not beside a prior,
    because who passes and who fails would need a prior of their own.
    arms : versions of the survey of which a device draws one; see `ArmDefinition`.
    page : the look of the hosted page, which is not in the document.
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
    arms: Annotated[tuple[ArmDefinition, ...], Field(max_length=MAX_ARMS)] = ()
    strata: Annotated[tuple[QuestionDefinition, ...], Field(max_length=8)] = ()
    tokens: TokensDefinition | None = None
    blocks: Annotated[tuple[BlockDefinition, ...], Field(max_length=99)] = ()
    # The default is validated, so that a survey without questions is refused at this path.
    form: FormDefinition | None = Field(None, validate_default=True)
    instructed: InstructedDefinition | None = None
    page: PageDefinition | None = None

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
        _require_few_choices(strata, "a public question")
        fields = info.data
        # Fields missing here were invalid, and their errors are already reported.
        if len(strata) < 2 or fields.get("accept_small_cells") or "expected_reports" not in fields:
            return strata
        # Each arm has cells of its own (`require_arms`).
        if fields.get("arms"):
            return strata
        min_reports = fields.get("min_reports") or RELEASE_STEP
        cells = prod(len(question.choices) for question in strata)
        step = fields.get("release_step") or min(RELEASE_STEP, min_reports)
        if fields["expected_reports"] < cells * _MIN_STEPS_PER_CELL * step:
            raise custom(
                Problem.DEFINITION_INVALID,
                f"the public questions have {cells} combinations, so that "
                f"{fields['expected_reports']} expected_reports leave fewer than "
                f"{_MIN_STEPS_PER_CELL * step} for each: many reports would stay pending for long, "
                "or lose their public answers at the end. Ask fewer public questions, or set "
                "accept_small_cells: true",
            )
        return strata

    @field_validator("instructed")
    @classmethod
    def _without_priors(
        cls, item: InstructedDefinition | None, info: ValidationInfo
    ) -> InstructedDefinition | None:
        if item is None:
            return None
        _require_few_choices([item], "an instructed item")
        protections = [
            levels for block in info.data.get("blocks", ()) for levels in block.protections
        ]
        if any(levels.is_prior_based for levels in protections):
            raise custom(
                Problem.UNSUPPORTED,
                "this item cannot be asked beside a promise that rests on a prior: who passes and who "
                "fails would need a prior of their own. Leave it out, or protect the answers "
                "themselves (ldp)",
            )
        return item

    @field_validator("form")
    @classmethod
    def _beside_the_blocks(
        cls, form: FormDefinition | None, info: ValidationInfo
    ) -> FormDefinition | None:
        blocks, budget = info.data.get("blocks"), info.data.get("budget")
        if form is None:
            if blocks == ():
                raise custom(Problem.FIELD_MISSING, "give blocks, a form, or both")
            return None
        # Estimates and documents refer to the form by this id.
        if blocks and any(block.id == FORM_ID for block in blocks):
            raise custom(
                Problem.DEFINITION_INVALID,
                f"the block of a form is called {FORM_ID}: give the other block another id",
            )
        # The budget also covers the blocks, so it cannot serve as the form's level.
        if form.epsilon is None and blocks:
            raise custom(
                Problem.FIELD_MISSING, "in a survey with blocks, the form needs an epsilon"
            )
        if form.epsilon is None and budget is not None and Decimal(budget) > MAX_EPSILON:
            raise custom(
                Problem.FIELD_MISSING,
                f"give the form an epsilon of at most {MAX_EPSILON}, or lower the budget",
            )
        return form

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        times = [time for time in (self.opens, self.closes, self.expires) if time is not None]
        if times != sorted(times) or (self.opens is not None and self.opens == self.closes):
            raise custom(Problem.DEFINITION_INVALID, "times must satisfy opens < closes ≤ expires")
        _distinct("language", self.languages)
        _distinct("block", [block.id for block in self.blocks])
        # Distinct across blocks and strata, because answers are identified by question id; with arms
        # within each of them (`require_arms`).
        if not self.arms:
            _distinct("question", [question.id for question in self.questions])
        for text_name, texts in self._texts():
            if set(texts) != set(self.languages):
                raise custom(
                    Problem.DEFINITION_INVALID,
                    f"{text_name} needs a text in each of {', '.join(self.languages)}, and in no other language",
                )
        return self

    def after(self, versions: Iterable[SurveyDocument]) -> "SurveyDefinition":
        """Return the definition of the version after these: an unstated `ask` is that of the last one.

        versions : the earlier ones, the newest first. Those count that have a form, and ask in another
        way than they would with the other `ask`. People who answer again, and results that are
        compared, get the same way of asking unless the file changes it.
        """
        if self.form is None or self.form.ask is not None:
            return self
        deciding = (one for one in versions if asks_less(one.blocks, as_drawn=True))
        last = next(deciding, None)
        if last is None or any(block.asks_drawn for block in last.blocks):
            return self
        return self.model_copy(update={"form": self.form.model_copy(update={"ask": "all"})})

    @property
    def form_epsilon(self) -> str:
        """The level of the form in nats; the survey's budget if the form states none."""
        stated = None if self.form is None else self.form.epsilon
        return self.budget if stated is None else stated

    @property
    def parts(self) -> tuple[str, ...]:
        """Ids of the parts that are designed separately: the blocks, then the form."""
        return (*(block.id for block in self.blocks), *([FORM_ID] if self.form else []))

    @property
    def step(self) -> int:
        """The least number of reports released together."""
        default = min(RELEASE_STEP, self.min_reports)
        return default if self.release_step is None else self.release_step

    @property
    def questions(self) -> tuple[QuestionDefinition | FormItem, ...]:
        """Every question: those of the blocks, of the form, the public strata, the instructed item."""
        item = () if self.instructed is None else (self.instructed,)
        return (*self.drawn_questions, *self.strata, *item)

    @property
    def drawn_questions(self) -> tuple[QuestionDefinition | FormItem, ...]:
        """The questions that are randomised: those of the blocks, then those of the form."""
        in_blocks = (question for block in self.blocks for question in block.questions)
        return (*in_blocks, *(() if self.form is None else self.form.items))

    @property
    def places(self) -> Iterable[tuple[str, QuestionDefinition | FormItem]]:
        """Path in the file and question, or box, for everything that is randomised."""
        for i, block in enumerate(self.blocks):
            for k, question in enumerate(block.questions):
                yield f"blocks[{i}].questions[{k}]", question
        for k, asked in enumerate(() if self.form is None else self.form.questions):
            for item in asked.items:
                yield f"form.questions[{k}]", item

    def _texts(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        yield "title", self.title
        if self.consent is not None:
            yield "consent", self.consent
        for question in self.questions:
            yield f"the text of {question.id}", question.text
            for choice in question.choices:
                yield f"the label of {question.id}.{choice.id}", choice.label

    def to_json(self) -> str:
        """Return the definition as canonical JSON, without fields that have default values."""
        # Defaults are left out, so that a new optional field does not change old digests.
        return canonical.dumps(
            self.model_dump(mode="json", exclude_defaults=True, by_alias=True)
        ).decode("utf-8")

    def to_yaml(self) -> bytes:
        """Return the definition as a survey file, which `parse_definition` reads back."""
        value = canonical.loads(self.to_json().encode("utf-8"))
        # Fields are in the order of the model; canonical JSON would sort the keys.
        return write_yaml({name: value[name] for name in type(self).model_fields if name in value})

    @property
    def digest(self) -> str:
        """The ``sha256:…`` digest of the canonical JSON."""
        return canonical.digest(self.to_json().encode("utf-8"))

    @property
    def published_digest(self) -> str:
        """The digest without `page`: a change of the page needs no new version."""
        return self.model_copy(update={"page": None}).digest

    @classmethod
    def from_json(cls, text: str) -> "SurveyDefinition":
        """Parse a definition written by `to_json`."""
        return _parsed(text)


# Every page of a survey parses its draft, which takes up to a second. Few, because the largest
# drafts take 50 MB of memory.
@lru_cache(maxsize=4)
def _parsed(text: str) -> SurveyDefinition:
    return parse_value(canonical.loads(text.encode("utf-8")))


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of survey files; `apply` also checks, for example, sums of levels."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_unless_null(SurveyDefinition.model_json_schema()),
        "title": "A survey file",
        "anyOf": [
            {"required": ["blocks"], "properties": {"blocks": {"minItems": 1}}},
            {"required": ["form"]},
        ],
    }


def _unless_null(schema: Any) -> Any:
    """Return the schema without null, because optional fields of a file are omitted instead."""
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
    """Parse a survey file (YAML, UTF-8).

    Raises InvalidInput with the problem and field path of the first fault; the detail lists further
    faults.
    """
    return parse_value(read_yaml(data))


def written(value: Any) -> Any:
    """Return JSON values with fractions as texts, in which a survey file keeps every digit."""
    if isinstance(value, dict):
        return {name: written(one) for name, one in value.items()}
    if isinstance(value, list):
        return [written(one) for one in value]
    return value if value is None or isinstance(value, str | int) else str(value)


def parse_value(value: Any) -> SurveyDefinition:
    """Parse a survey definition from texts, lists and maps. Raises like `parse_definition`."""
    if not isinstance(value, dict):
        raise InvalidInput(
            Problem.DEFINITION_INVALID, "a survey is a map of fields, beginning with name: …"
        )
    try:
        definition = SurveyDefinition.model_validate(value)
    except ValidationError as error:
        raise invalid(faults_of(error, Problem.DEFINITION_INVALID)) from None
    public = [(f"strata[{k}]", question) for k, question in enumerate(definition.strata)]
    if definition.instructed is not None:
        public.append(("instructed", definition.instructed))
    require_arms(definition)
    require_anchors(definition, public)
    _require_sources(definition)
    arms = arms_of(definition)
    listed = [list(definition.places)]
    if arms is not None:
        listed = [placed_in(definition, arm) for arm in arms.arms]
    for places in listed:
        require_asked(places, public, definition.languages)
    return definition.model_copy(
        update={"blocks": tuple(_in_order(definition, i) for i in range(len(definition.blocks)))}
    )


def _require_sources(definition: SurveyDefinition) -> None:
    """Raise InvalidInput unless the sources are the choices of a public question that all arms ask."""
    tokens = definition.tokens
    if tokens is None or tokens.question is None:
        return

    def refuse(detail: str, field: str) -> InvalidInput:
        return InvalidInput(Problem.DEFINITION_INVALID, detail, field)

    question = next((one for one in definition.strata if one.id == tokens.question), None)
    if question is None:
        raise refuse(
            "this is the id of no public question: sources are the choices of one of strata",
            "tokens.question",
        )
    for name in sorted(tokens.keys.keys() - {choice.id for choice in question.choices}):
        raise refuse(f"this is no choice of {question.id}", f"tokens.keys.{name}")
    # A token names no source, so one key for two would let its tokens count for either.
    for name, key in tokens.keys.items():
        if list(tokens.keys.values()).count(key) > 1:
            raise refuse(
                "another source has the same key: each needs its own", f"tokens.keys.{name}"
            )
    for i, arm in enumerate(definition.arms):
        if question.id not in arm.strata:
            raise refuse(
                f"{question.id} names the source of every report: ask it in every arm",
                f"arms[{i}].strata",
            )


def _in_order(survey: SurveyDefinition, i: int) -> BlockDefinition:
    """Return a block with its strata in the document's order. Raises InvalidInput(prior_shape)."""
    block, questions = (
        survey.blocks[i],
        [
            (q.id, [choice.id for choice in q.choices])
            for q in strata_of(survey, survey.blocks[i].id)
        ],
    )
    if block.prior is None:
        return block
    return block.model_copy(
        update={
            "prior": in_strata_order(block.prior, questions, f"blocks[{i}].prior"),
            "priors": tuple(
                in_strata_order(prior, questions, f"blocks[{i}].priors[{k}]")
                for k, prior in enumerate(block.priors)
            ),
        }
    )


def _distinct(kind: str, names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise custom(
                Problem.DEFINITION_INVALID,
                f"two {kind}s are called {name}; ids are unique in a survey",
            )
