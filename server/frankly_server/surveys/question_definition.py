# SPDX-License-Identifier: Apache-2.0
"""Questions of a survey file: choices, boxes, ranges, roles and skip rules (spec 3.5).

A file may use short forms (`type`, `ranges`, `no_answer`, `not_applicable`) instead of listing all
choices. Parsing replaces them with choices; they are not stored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from frankly_design.requests.design_form import ALL_EQUAL, Wanted, require_one_each
from frankly_design.requests.fields import NUMERAL, ClosedModel, Number, Slug, Whole, custom
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_QUESTIONS
from frankly_protocol.mechanisms.base import MAX_SET_ANSWERS
from frankly_protocol.problems import Problem
from frankly_protocol.questions import NO, ROLES, YES, AskIf, Box, Choice, Question, require_rules
from frankly_protocol.questions import Wanted as WantedFigure
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from frankly_server.surveys.anchors import AnchorDefinition
from frankly_server.surveys.fields import LocalisedText, folded
from frankly_server.surveys.lookalikes import code_points
from frankly_server.surveys.question_types import SINGLE, TYPES


def _short_form(schema: dict[str, Any]) -> None:
    """Add the fields that only files have to the schema of a question."""
    label = {"anyOf": [{"enum": [True, "true"]}, schema["properties"]["text"]]}
    whole = {"type": ["integer", "string"]}
    schema["properties"] |= {
        "type": {"enum": list(TYPES)},
        "ranges": {"type": "array", "items": whole, "minItems": 2, "maxItems": 64},
        "no_answer": label,
        "not_applicable": label,
    }
    schema["required"] = [name for name in schema["required"] if name != "choices"]


Role = Literal["no_answer", "not_applicable"]
_IDS: Final = {role: role.replace("_", "-") for role in ROLES}
_PLACES: Final = {"no": 0, "yes": 1, "no_answer": 2, "not_applicable": 3}
_WORDS: Final = {
    "ar": ("لا", "نعم", "أفضّل عدم الإجابة", "لا ينطبق"),
    "da": ("Nej", "Ja", "Ønsker ikke at svare", "Ikke relevant"),
    "de": ("Nein", "Ja", "Keine Angabe", "Trifft nicht zu"),
    "en": ("No", "Yes", "Prefer not to say", "Does not apply"),
    "es": ("No", "Sí", "Prefiero no responder", "No procede"),
    "fr": ("Non", "Oui", "Je préfère ne pas répondre", "Sans objet"),
    "it": ("No", "Sì", "Preferisco non rispondere", "Non pertinente"),
    "ja": ("いいえ", "はい", "答えたくない", "該当しない"),
    "nl": ("Nee", "Ja", "Zeg ik liever niet", "Niet van toepassing"),
    "pl": ("Nie", "Tak", "Wolę nie odpowiadać", "Nie dotyczy"),
    "pt": ("Não", "Sim", "Prefiro não responder", "Não se aplica"),
    "sv": ("Nej", "Ja", "Vill inte svara", "Ej tillämpligt"),
    "tr": ("Hayır", "Evet", "Belirtmek istemiyorum", "Geçerli değil"),
    "uk": ("Ні", "Так", "Не хочу відповідати", "Не стосується мене"),
    "zh": ("否", "是", "不愿回答", "不适用"),
}
"""Labels of common choices by language, at the indices `_PLACES`."""


def _is_exact(text: str) -> bool:
    """Return True if a document can state this decimal: it has 9 digits before and 6 after the point."""
    number = Fraction(text)
    return abs(number) < 10**9 and (number * 10**6).denominator == 1


def _exact(text: str) -> str:
    if not _is_exact(text):
        raise ValueError("write at most 9 digits before and 6 after the point")
    return text


Score = Annotated[Number, AfterValidator(_exact)]


class ChoiceDefinition(ClosedModel):
    """One choice of a question.

    role : no_answer or not_applicable, for a choice that is no answer. from : smallest number of
    the choice's range, in a question for a number. score : its value on a scale.
    """

    id: Slug
    label: LocalisedText
    role: Role | None = None
    low: int | None = Field(None, alias="from")
    score: Score | None = None


class BoxDefinition(ClosedModel):
    """One box of a question with several boxes to tick; a box with a role excludes the others."""

    id: Slug
    label: LocalisedText
    role: Role | None = None


class AskIfDefinition(ClosedModel):
    """Skip rule: the question is asked only after one of these choices of an earlier question."""

    question: Slug
    choices: Annotated[tuple[Slug, ...], Field(min_length=1, max_length=63)]


def _choices(choices: tuple[ChoiceDefinition, ...]) -> tuple[ChoiceDefinition, ...]:
    if not 2 <= len(choices) <= MAX_SET_ANSWERS:
        raise custom(
            Problem.CHOICES_COUNT,
            f"a question has 2 to {MAX_SET_ANSWERS} choices; this one has {len(choices)}",
        )
    require_different(choices)
    return choices


def require_different(named: Iterable[ChoiceDefinition | BoxDefinition]) -> None:
    """Raise choices_collide if two of these have the same id or labels that look the same."""
    choices = list(named)
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


def _no_collision(named: Iterable[tuple[str, str, str]]) -> None:
    name_by_normal: dict[str, str] = {}
    for label_kind, name, normal in named:
        if normal in name_by_normal:
            first = name_by_normal[normal]
            # Labels that look the same may differ in invisible characters.
            difference = f": {code_points(first, name)}" if first != name else ""
            raise custom(
                Problem.CHOICES_COLLIDE,
                f"the {label_kind}s “{first}” and “{name}” look the same{difference}; change one",
            )
        name_by_normal[normal] = name


class QuestionDefinition(ClosedModel):
    """A question with 2 to 1000 choices; in a form, or if it is public, 2 to 64.

    In a file, `type` determines its fields. single (default) : `choices`. yes-no : `choices` may be
    left out. scale : every choice has a `score`. number : `ranges` lists the smallest whole number
    of each range instead of `choices`. multi, in a form only : any number of `boxes` can be ticked.
    no_answer, not_applicable : true, or a label, adds a choice with that role at the end. anchor : what is
    known of all people's answers, or the question that this one asks again; see `require_anchors` for
    the questions that can have one.
    """

    model_config = ConfigDict(json_schema_extra=_short_form)

    id: Slug
    text: LocalisedText
    choices: Annotated[
        tuple[ChoiceDefinition, ...],
        AfterValidator(_choices),
        Field(json_schema_extra={"minItems": 2, "maxItems": MAX_SET_ANSWERS}),
    ]
    ask_if: AskIfDefinition | None = None
    anchor: AnchorDefinition | None = None

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, data: Any) -> Any:
        return written_out(data) if isinstance(data, Mapping) else data

    def for_devices(self) -> Question:
        """Return the question of the signed document."""
        rule = None if self.ask_if is None else AskIf(self.ask_if.question, self.ask_if.choices)
        known = None if self.anchor is None else self.anchor.for_devices()
        choices = tuple(map(_choice, self.choices))
        return Question(self.id, self.text, choices, None, rule, None, known)


class InstructedDefinition(QuestionDefinition):
    """An item that asks for one given choice, such as "please choose the second", in the clear.

    answer : id of the choice that it asks for. Reports say only whether that choice was made. Whoever
    answers at random chooses it by chance, so estimates can be corrected for such people.
    """

    answer: Slug

    @field_validator("answer")
    @classmethod
    def _that_is_a_choice(cls, answer: str, info: ValidationInfo) -> str:
        choices = info.data.get("choices")  # missing if they are invalid themselves
        if choices is not None and answer not in {choice.id for choice in choices}:
            ids = ", ".join(choice.id for choice in choices)
            raise custom(
                Problem.DEFINITION_INVALID, f"write the id of the choice that it asks for: {ids}"
            )
        return answer


class FormQuestionDefinition(Wanted, QuestionDefinition):
    """A question of a form with its wanted estimates.

    boxes : for a question of type multi; each is randomised as a separate question with the choices
    no and yes. scores : short form of the choices' scores, for a wanted mean; not stored.
    expected : expected counts of the choices, in their order; the design is best for these shares,
    and estimates are unbiased for any true shares. See `Wanted` for the other fields.
    """

    boxes: Annotated[tuple[BoxDefinition, ...], Field(max_length=MAX_QUESTIONS)] = ()
    # Defaults are validated, so that the errors for missing numbers have the right field.
    contrast: tuple[Score, ...] | None = Field(None, validate_default=True)
    scores: tuple[Score, ...] | None = Field(None, validate_default=True)
    expected: tuple[Whole, ...] | None = None

    @field_validator("boxes")
    @classmethod
    def _that_differ(
        cls, boxes: tuple[BoxDefinition, ...], info: ValidationInfo
    ) -> tuple[BoxDefinition, ...]:
        if boxes:
            require_different(boxes)
            if info.data.get("wanted", "shares") != "shares":
                raise ValueError("the share of each box is estimated: leave wanted out")
        return boxes

    @field_validator("scores")
    @classmethod
    def _of_the_choices(
        cls, scores: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        """Raise unless the wanted figure can be estimated from the choices' scores."""
        wanted, choices = info.data.get("wanted"), info.data.get("choices")
        if wanted is None or choices is None:
            return None  # these have errors of their own
        answers = [choice for choice in choices if choice.role is None]
        # `_move_scores` has moved scores that fit into the choices.
        if scores is not None:
            raise _misplaced(scores, wanted, answers)
        numbers = {None if c.score is None else Decimal(c.score) for c in answers}
        if wanted == "mean" and None in numbers:
            raise custom(
                Problem.FIELD_MISSING,
                "the field wanted needs this: one number for each choice that is an answer, in order",
            )
        if wanted in ("mean", "distribution") and None not in numbers and len(numbers) == 1:
            raise ValueError(ALL_EQUAL)
        if wanted == "distribution" and len(answers) == 1:
            raise ValueError("a distribution needs two choices that are answers: leave wanted out")
        return None

    @field_validator("expected")
    @classmethod
    def _one_count_for_each_choice(
        cls, expected: tuple[int, ...] | None, info: ValidationInfo
    ) -> tuple[int, ...] | None:
        if expected is not None:
            require_one_each(expected, info)
        return expected

    def for_devices(self) -> Question:
        """Return the question of the signed document, with its wanted figure."""
        question = QuestionDefinition.for_devices(self)
        if self.wanted == "shares":
            return question
        return replace(
            question, wanted=WantedFigure(self.wanted, tuple(map(Fraction, self.contrast or ())))
        )

    @property
    def items(self) -> tuple["FormItem", ...]:
        """The randomised items: the question, or each of its boxes."""
        if not self.boxes:
            return (FormItem(self),)
        return tuple(FormItem(self, box) for box in self.boxes)


@dataclass(frozen=True, slots=True)
class FormItem:
    """A question of a form, or one of its boxes."""

    question: FormQuestionDefinition
    box: BoxDefinition | None = None

    @property
    def id(self) -> str:
        """Id of the question in the signed document."""
        return self.question.id if self.box is None else f"{self.question.id}-{self.box.id}"

    @property
    def text(self) -> Mapping[str, str]:
        """The text shown with estimates."""
        if self.box is None:
            return self.question.text
        return {
            language: f"{text} {self.box.label.get(language, '')}"
            for language, text in self.question.text.items()
        }

    @property
    def choices(self) -> tuple[ChoiceDefinition, ...]:
        """The choices; no and yes for a box."""
        return self.question.choices

    @property
    def expected(self) -> tuple[int, ...]:
        """Expected counts of the choices; 1 each if the file has none."""
        return self.question.expected or (1,) * len(self.choices)

    def for_devices(self) -> Question:
        """Return the question of the signed document."""
        question, box = self.question.for_devices(), self.box
        if box is None:
            return question
        # Devices show the boxes of a question together, although each is randomised separately.
        asked = Box(self.question.id, self.question.text, box.label, box.role)
        return replace(question, id=self.id, text=self.text, box=asked)


def _choice(choice: ChoiceDefinition) -> Choice:
    score = None if choice.score is None else Fraction(choice.score)
    return Choice(choice.id, choice.label, choice.role, choice.low, score)


def written_out(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question of a file with all choices, without `type` and the other short forms.

    Raises PydanticCustomError if a field is missing or does not fit the type.
    """
    question = dict(data)
    name = question.pop("type", None)
    ranges = question.pop("ranges", None)
    given = {"ranges": ranges is not None, "boxes": "boxes" in question}
    # A file may omit the type if the other keys determine it.
    name = name or next(
        (one.name for one in TYPES.values() if given.get(one.given_by)), SINGLE.name
    )
    if name not in tuple(TYPES):  # a value of a file need not be hashable
        raise custom(Problem.DEFINITION_INVALID, f"type is one of {', '.join(TYPES)}")
    type_ = TYPES[name]
    if any(is_given != (field == type_.given_by) for field, is_given in given.items()):
        raise custom(
            Problem.DEFINITION_INVALID,
            "ranges belong to the type number, which needs them, and boxes to the type multi",
        )
    languages = tuple(question["text"]) if isinstance(question.get("text"), Mapping) else ()
    if type_.has_ranges:
        question["choices"] = _of_ranges(ranges, languages)
    if type_.begins and "choices" not in question:
        question["choices"] = [
            {"id": choice, "label": _label(choice, languages)} for choice in type_.begins
        ]
    _move_scores(question)
    if type_.is_scale:
        _require_scores(question.get("choices"))
    listed = type_.listed
    for role in ROLES:
        stated = question.pop(role, None)
        # A value that is not a list is left unchanged, and refused later.
        if stated not in (None, False, "false") and isinstance(question.get(listed), list | tuple):
            label = stated if isinstance(stated, Mapping) else _label(role, languages)
            question[listed] = [*question[listed], {"id": _IDS[role], "label": label, "role": role}]
    return question


def _of_ranges(ranges: Any, languages: Iterable[str]) -> list[dict[str, Any]]:
    if not isinstance(ranges, list | tuple) or not 2 <= len(ranges) <= 64:
        raise custom(Problem.CHOICES_COUNT, "ranges lists the smallest numbers of 2 to 64 ranges")
    try:
        lows = [int(str(low)) for low in ranges]
    except ValueError:
        raise custom(Problem.FIELD_TYPE, "ranges contains only whole numbers") from None
    if any(a >= b for a, b in pairwise(lows)):
        raise custom(Problem.DEFINITION_INVALID, "the numbers of ranges must increase")
    choices = []
    for low, following in zip(lows, [*lows[1:], None], strict=True):
        # The last range has no upper end.
        high = None if following is None else following - 1
        text = f"{low}+" if high is None else str(low) if high == low else f"{low}–{high}"
        # An id must not contain the character – of the label or begin with a minus sign.
        end = "up" if high is None else str(high)
        name = f"{low}" if high == low else f"{low}_{end}"
        label = dict.fromkeys(languages, text)
        choices.append({"id": name.replace("-", "m"), "label": label, "from": low})
    return choices


def usual_label(name: str, languages: Sequence[str]) -> dict[str, str]:
    """Return the label of a common choice, `no`, `yes` or a role, in each language.

    A language without words gets those of the first language that has some, or English ones.
    """
    known = [words for tag in languages if (words := _WORDS.get(tag.partition("-")[0].lower()))]
    fallback = (known or [_WORDS["en"]])[0]
    return {
        tag: _WORDS.get(tag.partition("-")[0].lower(), fallback)[_PLACES[name]] for tag in languages
    }


def role_id(role: str) -> str:
    """Return the id of a new choice with a role."""
    return _IDS[role]


def choices_of_ranges(lows: Sequence[str], languages: Sequence[str]) -> list[dict[str, Any]]:
    """Return the choices of a question for a number. lows : smallest number of each range.

    Raises PydanticCustomError unless they are 2 to 64 increasing whole numbers.
    """
    return _of_ranges(lows, languages)


def _label(name: str, languages: Iterable[str]) -> dict[str, str]:
    known = {language: _WORDS.get(language.partition("-")[0].lower()) for language in languages}
    unknown = [language for language, words in known.items() if words is None]
    if unknown:
        raise custom(
            Problem.FIELD_MISSING,
            f"there are no words for {name.replace('_', ' ')} in {', '.join(unknown)}: "
            f"write the choice out, with its id and label{'' if name in (NO, YES) else ' and role'}",
        )
    return {language: words[_PLACES[name]] for language, words in known.items() if words}


def _require_scores(choices: Any) -> None:
    if isinstance(choices, list | tuple) and not all(
        isinstance(choice, Mapping) and ("score" in choice or choice.get("role"))
        for choice in choices
    ):
        raise custom(Problem.FIELD_MISSING, "every choice of a scale needs a score")


def _move_scores(question: dict[str, Any]) -> None:
    """Move the `scores` of a wanted mean into the choices that are answers.

    Scores that do not fit stay, and are refused with their own path (`_misplaced`).
    """
    scores, choices = question.get("scores"), question.get("choices")
    if question.get("wanted") != "mean" or not isinstance(scores, list | tuple):
        return
    if not isinstance(choices, list | tuple) or not all(isinstance(c, Mapping) for c in choices):
        return
    answers = [choice for choice in choices if not choice.get("role")]
    are_exact = all(
        NUMERAL.fullmatch(str(score).removeprefix("-")) and _is_exact(str(score))
        for score in scores
    )
    if len(scores) != len(answers) or not are_exact or any("score" in c for c in answers):
        return
    remaining = iter(scores)
    question["choices"] = [
        dict(choice) if choice.get("role") else dict(choice) | {"score": next(remaining)}
        for choice in choices
    ]
    del question["scores"]


def _misplaced(
    scores: Sequence[str], wanted: str, answers: Sequence[ChoiceDefinition]
) -> Exception:
    """Return the error of `scores` that were not moved into the choices."""
    if wanted != "mean":
        return custom(
            Problem.UNSUPPORTED,
            "these are used only with wanted: mean; otherwise write a score at each choice",
        )
    if len(scores) != len(answers):
        return ValueError(
            f"give one number for each choice that is an answer: {len(answers)} numbers, "
            f"not {len(scores)}; a choice with a role has none"
        )
    return ValueError("the choices have scores of their own: give the numbers once")


def require_asked(
    drawn: Iterable[tuple[str, QuestionDefinition | FormItem]],
    public: Iterable[tuple[str, QuestionDefinition]],
    languages: tuple[str, ...],
) -> None:
    """Raise InvalidInput with the path if devices would refuse the ranges, boxes or skip rules.

    drawn, public : path and question of everything that is randomised or public, in order.
    """
    with _named({}):
        for path, question in public:
            Question.public_from_json(question.for_devices().to_json(), path, languages)
    paths: dict[str | None, str] = {}
    questions = []
    for path, item in drawn:
        asked = item.for_devices()
        with _named({}):
            questions.append(Question.from_json(asked.to_json(), path, languages))
        paths[asked.id] = path
        if asked.box is not None:
            paths.setdefault(asked.box.of, path)
    with _named(paths):
        require_rules(questions)


@contextmanager
def _named(paths: Mapping[str | None, str]) -> Iterator[None]:
    """Convert a device's error into an error of the file, at the path of the affected question."""
    try:
        yield
    except DocumentRejected as refused:
        path = paths.get(refused.field, refused.field)
        raise InvalidInput(Problem.DEFINITION_INVALID, refused.detail, path) from None
