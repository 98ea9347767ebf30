# SPDX-License-Identifier: Apache-2.0
"""Questions and choices of a survey, with a text per language (spec 3.5).

A device converts ticked boxes, numbers and skipped questions into one choice of each question, so
that all of them are randomised and sent in the same way.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any, Final

from frankly_protocol import schema
from frankly_protocol.mechanisms.base import MAX_SET_ANSWERS

Words = Mapping[str, str]
Languages = tuple[str, ...]

NO_ANSWER: Final = "no_answer"
NOT_APPLICABLE: Final = "not_applicable"
ROLES: Final = (NO_ANSWER, NOT_APPLICABLE)
"""Roles of a choice or box that is not an answer: prefers not to say, or was not asked."""
MEAN, DISTRIBUTION, CONTRAST = FIGURES = ("mean", "distribution", "contrast")
"""Figures that a question can be asked for, if not for the shares of its choices."""
NO, YES = BOX_CHOICES = ("no", "yes")
PASSED, FAILED = RESULTS = ("passed", "failed")
"""What a report says about an instructed item."""
_NO_SKIPPED: Final = f"a question with a rule needs a choice or a box of the role {NOT_APPLICABLE}"
_SCORE: Final = re.compile(r"(?!-0$)-?(0|[1-9][0-9]{0,8})(\.[0-9]{0,5}[1-9])?")


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that can be given.

    label : a text per language. role : one of ROLES, or None. low : smallest number of its range, in
    a question that asks for a number. score : its value on a scale.
    """

    id: str
    label: Words
    role: str | None = None
    low: int | None = None
    score: Fraction | None = None

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Choice":
        """Read a choice; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"id", "label"}, {"role", "from", "score"})
        low = data.get("from")
        return cls(
            schema.identifier(data["id"], field + ".id"),
            schema.words(data["label"], field + ".label", languages),
            _role(data, field),
            None if "from" not in data else schema.integer(low, field + ".from", -(2**53) + 1),
            _score(data["score"], field + ".score") if "score" in data else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the choice in its JSON form."""
        optional = {
            "role": self.role,
            "from": self.low,
            "score": None if self.score is None else decimal_text(self.score),
        }
        return {"id": self.id, "label": dict(self.label)} | _given(optional)


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a question of which any number of boxes can be ticked.

    Each box is itself a question, with the choices BOX_CHOICES and the id `of` + `-` + the box's.
    of, text : id and text of the question that the person reads. label : the box's text. role : one
    of ROLES if the box excludes the others, else None.
    """

    of: str
    text: Words
    label: Words
    role: str | None = None

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Box":
        """Read a box; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"of", "text", "label"}, {"role"})
        return cls(
            schema.identifier(data["of"], field + ".of"),
            schema.words(data["text"], field + ".text", languages),
            schema.words(data["label"], field + ".label", languages),
            _role(data, field),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the box in its JSON form."""
        texts = {"of": self.of, "text": dict(self.text), "label": dict(self.label)}
        return texts | _given({"role": self.role})


@dataclass(frozen=True, slots=True)
class AskIf:
    """Skip rule: the question is asked only if an earlier one was answered with one of `choices`.

    A device answers a skipped question with the choice or the box of the role NOT_APPLICABLE.
    """

    question: str
    choices: tuple[str, ...]

    @classmethod
    def from_json(cls, value: Any, field: str) -> "AskIf":
        """Read a rule; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"question", "choices"})
        choices = schema.items(data["choices"], field + ".choices", 1, 63, schema.identifier)
        schema.distinct(choices, field + ".choices")
        return cls(schema.identifier(data["question"], field + ".question"), choices)

    def to_json(self) -> dict[str, Any]:
        """Return the rule in its JSON form."""
        return {"question": self.question, "choices": list(self.choices)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The figure for which a question is asked, instead of the shares of its choices.

    figure : one of FIGURES. numbers : of a contrast, one for each choice, in their order; else empty.
    """

    figure: str
    numbers: tuple[Fraction, ...] = ()

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Wanted":
        """Read a wanted figure; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"figure"}, {"numbers"})
        if data["figure"] not in FIGURES:
            raise schema.reject(f"expected one of {', '.join(FIGURES)}", field + ".figure")
        if ("numbers" in data) != (data["figure"] == CONTRAST):
            raise schema.reject("a contrast has numbers, and no other figure has", field)
        if "numbers" not in data:
            return cls(data["figure"])
        where = field + ".numbers"
        return cls(CONTRAST, schema.items(data["numbers"], where, 2, MAX_SET_ANSWERS, _score))

    def to_json(self) -> dict[str, Any]:
        """Return the wanted figure in its JSON form."""
        numbers = [decimal_text(number) for number in self.numbers]
        return {"figure": self.figure} | _given({"numbers": numbers or None})


@dataclass(frozen=True, slots=True)
class Anchor:
    """What is known beforehand of the answers of those who read a question (spec 3.9).

    counts : one for each choice, in their order; a choice's share is its count, divided by their sum.
    source : where these numbers are published. repeats : instead of both, id of the earlier question
    that it asks a second time, so that everybody who reads gives the same answer.
    """

    counts: tuple[int, ...] = ()
    source: str = ""
    repeats: str | None = None

    @classmethod
    def from_json(cls, value: Any, field: str) -> "Anchor":
        """Read an anchor; raises DocumentRejected("schema"), naming the field."""
        if isinstance(value, dict) and "repeats" in value:
            data = schema.DOCUMENT.record(value, field, {"repeats"})
            return cls(repeats=schema.identifier(data["repeats"], field + ".repeats"))
        data = schema.DOCUMENT.record(value, field, {"counts", "source"})
        where = field + ".counts"
        counts = schema.items(data["counts"], where, 2, MAX_SET_ANSWERS, schema.integer)
        return cls(counts, schema.text(data["source"], field + ".source"))

    def to_json(self) -> dict[str, Any]:
        """Return the anchor in its JSON form."""
        if self.repeats is not None:
            return {"repeats": self.repeats}
        return {"counts": list(self.counts), "source": self.source}

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The known share of each choice; () for a repeated question."""
        return tuple(Fraction(count, sum(self.counts)) for count in self.counts)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with 2 to 1000 choices, or one box.

    wanted : the figure for which it is asked; None for the shares of its choices. anchor : the shares
    that its choices are known to have; None if they are not known.
    """

    id: str
    text: Words
    choices: tuple[Choice, ...]
    box: Box | None = None
    ask_if: AskIf | None = None
    wanted: Wanted | None = None
    anchor: Anchor | None = None
    _positions: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A frozen dataclass refuses an ordinary assignment.
        object.__setattr__(
            self, "_positions", {choice.id: i for i, choice in enumerate(self.choices)}
        )

    def index(self, choice: str) -> int | None:
        """Return the position of a choice id, or None if it is not one of the choices.

        The time does not depend on which choice it is, because a dictionary is used.
        """
        return self._positions.get(choice)

    @property
    def box_id(self) -> str:
        """Id of the box among those of its question; empty for other questions."""
        return "" if self.box is None else self.id[len(self.box.of) + 1 :]

    @property
    def is_repeated(self) -> bool:
        """True if it asks another question a second time, so nothing is estimated about it."""
        return self.anchor is not None and self.anchor.repeats is not None

    @property
    def asks_number(self) -> bool:
        """True if the person gives a number, of which only the range is used."""
        return any(choice.low is not None for choice in self.choices)

    @property
    def skipped(self) -> str:
        """Id of the choice that a device uses if the question is skipped."""
        if self.box is not None:
            return YES if self.box.role == NOT_APPLICABLE else NO
        return next(choice.id for choice in self.choices if choice.role == NOT_APPLICABLE)

    def of_number(self, number: int) -> str | None:
        """Return the id of the choice whose range contains a number, None below all ranges."""
        ranges = [(choice.low, choice.id) for choice in self.choices if choice.low is not None]
        # A range ends where the next range begins, so the last lower end at or below the number
        # identifies the range.
        place = bisect_right([low for low, _ in ranges], number)
        return ranges[place - 1][1] if place else None

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Question":
        """Read a question; raises DocumentRejected("schema"), naming the field."""
        optional = {"box", "ask_if", "wanted", "anchor"}
        data = schema.DOCUMENT.record(value, field, {"id", "text", "choices"}, optional)
        question = cls(
            schema.identifier(data["id"], field + ".id"),
            schema.words(data["text"], field + ".text", languages),
            schema.items(
                data["choices"],
                field + ".choices",
                2,
                MAX_SET_ANSWERS,
                lambda entry, where: Choice.from_json(entry, where, languages),
            ),
            Box.from_json(data["box"], field + ".box", languages) if "box" in data else None,
            AskIf.from_json(data["ask_if"], field + ".ask_if") if "ask_if" in data else None,
            Wanted.from_json(data["wanted"], field + ".wanted") if "wanted" in data else None,
            Anchor.from_json(data["anchor"], field + ".anchor") if "anchor" in data else None,
        )
        question._require_choices(field + ".choices")
        question._require_wanted(field + ".wanted")
        question._require_anchor(field + ".anchor")
        if question.box is not None:
            question._require_box(question.box, field)
        return question

    @classmethod
    def public_from_json(cls, value: Any, field: str, languages: Languages) -> "Question":
        """Read a public question: no boxes, rules, wanted figure, anchor, roles, ranges or scores."""
        question = cls.from_json(value, field, languages)
        if (
            question.box
            or question.ask_if
            or question.wanted
            or question.anchor
            or any(choice != Choice(choice.id, choice.label) for choice in question.choices)
        ):
            raise schema.reject("a public question has plain choices only", field)
        return question

    def _require_choices(self, field: str) -> None:
        schema.distinct(tuple(choice.id for choice in self.choices), field)
        roles = tuple(choice.role for choice in self.choices if choice.role is not None)
        schema.distinct(roles, field)
        answers = [choice for choice in self.choices if choice.role is None]
        if not answers:
            raise schema.reject("expected a choice that is an answer", field)
        for name, values in (
            ("from", [choice.low for choice in answers]),
            ("score", [choice.score for choice in answers]),
        ):
            # If only some choices had numbers, the mean and the median would be undefined.
            if sum(v is not None for v in values) not in (0, len(values)):
                raise schema.reject(
                    f"expected {name} in every choice that is an answer, or none", field
                )
        if any(
            choice.low is not None or choice.score is not None
            for choice in self.choices
            if choice.role
        ):
            raise schema.reject("a choice with a role has no range and no score", field)
        lows = [choice.low for choice in answers if choice.low is not None]
        # `of_number` searches the lower ends by bisection, which needs an order.
        if any(a >= b for a, b in pairwise(lows)):
            raise schema.reject("expected ranges in increasing order", field)

    def _require_wanted(self, field: str) -> None:
        if self.wanted is None:
            return
        if self.box is not None:
            raise schema.reject("a box is asked for its share", field)
        if self.wanted.figure == MEAN and any(
            choice.score is None for choice in self.choices if choice.role is None
        ):
            raise schema.reject("a mean needs a score in every choice that is an answer", field)
        if self.wanted.numbers and len(self.wanted.numbers) != len(self.choices):
            raise schema.reject("a contrast has one number for each choice", field)

    def _require_anchor(self, field: str) -> None:
        if self.anchor is None:
            return
        # What is known of all people says nothing about those who are asked, or who want to answer.
        is_repeated = self.anchor.repeats is not None
        if self.box or self.ask_if or any(one.role for one in self.choices if not is_repeated):
            raise schema.reject(
                "a question with an anchor is asked of everybody, and all its choices are answers",
                field,
            )
        counts = self.anchor.counts
        if not is_repeated and (len(counts) != len(self.choices) or not any(counts)):
            raise schema.reject("expected a count for each choice, not all 0", field + ".counts")

    def _require_box(self, box: Box, field: str) -> None:
        plain = zip(BOX_CHOICES, self.choices, strict=False)
        if self.choices != tuple(Choice(name, choice.label) for name, choice in plain):
            raise schema.reject("a box has the plain choices no and yes", field + ".choices")
        if not (self.id.startswith(box.of + "-") and self.box_id):
            raise schema.reject(f"expected an id that begins with {box.of}-", field + ".id")

    def to_json(self) -> dict[str, Any]:
        """Return the question in its JSON form."""
        choices = [choice.to_json() for choice in self.choices]
        optional = {
            "box": self.box and self.box.to_json(),
            "ask_if": self.ask_if and self.ask_if.to_json(),
            "wanted": self.wanted and self.wanted.to_json(),
            "anchor": self.anchor and self.anchor.to_json(),
        }
        return {"id": self.id, "text": dict(self.text), "choices": choices} | _given(optional)


@dataclass(frozen=True, slots=True)
class Instructed:
    """An item that asks for one given choice, such as "please choose the second" (spec 3.8).

    question : a plain question, answered in the clear. answer : id of the choice that it asks for.
    Only whether that choice was made is part of a report.
    """

    question: Question
    answer: str

    @property
    def id(self) -> str:
        """The item's id, distinct from those of all questions."""
        return self.question.id

    def result(self, choice: str) -> str:
        """Return the value that a report has for this choice, PASSED or FAILED."""
        return PASSED if choice == self.answer else FAILED

    @classmethod
    def from_json(cls, value: Any, field: str, languages: Languages) -> "Instructed":
        """Read an item; raises DocumentRejected("schema"), naming the field."""
        data = schema.DOCUMENT.record(value, field, {"id", "text", "choices", "answer"})
        plain = {name: part for name, part in data.items() if name != "answer"}
        question = Question.public_from_json(plain, field, languages)
        answer = schema.identifier(data["answer"], field + ".answer")
        if question.index(answer) is None:
            raise schema.reject("expected one of the item's choices", field + ".answer")
        return cls(question, answer)

    def to_json(self) -> dict[str, Any]:
        """Return the item in its JSON form."""
        return self.question.to_json() | {"answer": self.answer}


def require_rules(questions: Iterable[Question]) -> None:
    """Raise DocumentRejected("schema") unless boxes are adjacent and rules can be followed.

    questions : all questions that a document randomises, in its order.
    """
    earlier: dict[str, Question] = {}
    for question in questions:
        if question.ask_if is not None:
            # Rules refer only to earlier questions, because a device asks in order and must already
            # know the answer.
            source = earlier.get(question.ask_if.question)
            if source is None or any(source.index(c) is None for c in question.ask_if.choices):
                raise schema.reject("expected choices of an earlier question", question.id)
            if question.box is None and all(c.role != NOT_APPLICABLE for c in question.choices):
                raise schema.reject(_NO_SKIPPED, question.id)
        _require_repeated(question, earlier)
        earlier[question.id] = question
    # Python and JavaScript check in this order, so that both raise the same one of several errors.
    seen = set(earlier)
    for name, group in groupby(earlier.values(), lambda one: one.box and one.box.of):
        if name is None:
            continue
        if name in seen:
            raise schema.reject(
                "boxes of one question must be adjacent, under an id of their own", name
            )
        seen.add(name)
        _require_group(name, tuple(group))


def _require_repeated(question: Question, earlier: Mapping[str, Question]) -> None:
    """Raise DocumentRejected unless a repeated question has the choices of one asked of everybody."""
    if question.anchor is None or question.anchor.repeats is None:
        return
    first = earlier.get(question.anchor.repeats)
    ids = [choice.id for choice in question.choices]
    if first is None or first.box or first.ask_if or [one.id for one in first.choices] != ids:
        raise schema.reject("expected an earlier question with the same choices", question.id)


def _require_group(name: str, questions: Sequence[Question]) -> None:
    """Raise DocumentRejected unless these boxes form one valid question."""
    boxes = [question.box for question in questions if question.box is not None]
    texts, rules = [box.text for box in boxes], [question.ask_if for question in questions]
    # The person sees the boxes as one question, so they cannot differ in text or rule.
    if any(text != texts[0] for text in texts) or any(rule != rules[0] for rule in rules):
        raise schema.reject("boxes of one question have one text and one rule", name)
    roles = tuple(box.role for box in boxes if box.role is not None)
    schema.distinct(roles, name)
    if len(roles) == len(boxes):
        raise schema.reject("expected a box that is an answer", name)
    if rules[0] is not None and NOT_APPLICABLE not in roles:
        raise schema.reject(_NO_SKIPPED, name)


def decimal_text(score: Fraction) -> str:
    """Return a score as its shortest decimal text."""
    whole, rest = divmod(abs(score), 1)
    # Exact: `_score` accepts at most six decimals.
    digits = f"{int(rest * 10**6):06}".rstrip("0")
    return f"{'-' if score < 0 else ''}{whole}{'.' if digits else ''}{digits}"


def _score(value: Any, field: str) -> Fraction:
    if not isinstance(value, str) or not _SCORE.fullmatch(value):
        raise schema.reject(
            'expected a number such as "2.5", as text, with at most 6 decimals', field
        )
    return Fraction(value)


def _role(data: Mapping[str, Any], field: str) -> str | None:
    if "role" not in data:
        return None
    if data["role"] not in ROLES:
        raise schema.reject(f"expected one of {', '.join(ROLES)}", field + ".role")
    return str(data["role"])


def _given(optional: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in optional.items() if value is not None}
