# SPDX-License-Identifier: Apache-2.0
"""Form with every kind of question of spec 3.5, and invalid edits of the form, for both SDKs."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, level_for, stated_ceiling
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_protocol.promises import Promise
from frankly_protocol.questions import Anchor, AskIf, Box, Choice, Question, Wanted

from tests.frankly_protocol.samples import put, question, survey

AGE = Question(
    "age",
    {"en": "How old are you?"},
    (
        Choice("young", {"en": "18–29"}, low=18),
        Choice("middle", {"en": "30–59"}, low=30),
        Choice("old", {"en": "60 or more"}, low=60),
        Choice("silent", {"en": "Prefer not to say"}, role="no_answer"),
    ),
    wanted=Wanted("distribution"),
)
WORK = replace(
    question("work", "no", "yes"),
    wanted=Wanted("contrast", (Fraction(-1, 2), Fraction(1))),
    anchor=Anchor((2, 3), "Census of 2022"),
)
STRESS = Question(
    "stress",
    {"en": "How stressful is your work?"},
    (
        Choice("calm", {"en": "calm"}, score=Fraction(-1)),
        Choice("mixed", {"en": "mixed"}, score=Fraction(0)),
        Choice("hard", {"en": "hard"}, score=Fraction(1)),
        Choice("none", {"en": "Does not apply"}, role="not_applicable"),
    ),
    ask_if=AskIf("work", ("yes",)),
    wanted=Wanted("mean"),
)


def box(of: str, name: str, role: str | None = None, rule: AskIf | None = None) -> Question:
    """Return one checkbox of the question `of`."""
    text, label = {"en": f"Which {of}?"}, {"en": name}
    plain = question(f"{of}-{name}", "no", "yes")
    return Question(
        plain.id, {"en": f"Which {of}? {name}"}, plain.choices, Box(of, text, label, role), rule
    )


_IF_HARD = AskIf("stress", ("mixed", "hard"))
SIGNS = (
    box("signs", "sleep", rule=_IF_HARD),
    box("signs", "pain", rule=_IF_HARD),
    box("signs", "untold", "no_answer", _IF_HARD),
    box("signs", "skipped", "not_applicable", _IF_HARD),
)
SIGNS_ALWAYS = tuple(replace(one, ask_if=None) for one in SIGNS)
DRUGS = (box("drugs", "beer"), box("drugs", "weed"))
QUESTIONS = (AGE, WORK, STRESS, *SIGNS, *DRUGS)


def form(*questions: Question, epsilon: str = "2", drawn: bool = False) -> Block:
    """Return a block of the agreement kind that draws one of its questions.

    drawn : whether only what is drawn is asked.
    """
    level = level_for(Fraction(epsilon))
    sizes = tuple(len(one.choices) for one in questions)
    chances = [(1 << 48) // len(sizes)] * len(sizes)
    chances[0] += (1 << 48) - sum(chances)
    mechanism = AgreementMechanism(
        48,
        *level,
        sizes,
        tuple((i,) for i in range(len(sizes))),
        tuple(
            Component(chance, 1, (Pool((i,), 1, Cover(size, 1), 1),))
            for i, (chance, size) in enumerate(zip(chances, sizes, strict=True))
        ),
    )
    return Block(
        "form",
        questions,
        mechanism,
        (Promise(Claim("ldp", level)),),
        (1,) * sum(sizes),
        stated_ceiling(mechanism),
        "agreement",
        None,
        asks_drawn=drawn,
    )


def asked(*questions: Question) -> SurveyDocument:
    """Return a survey with these questions, by default one of every kind."""
    return survey(form(*(questions or QUESTIONS)))


_AT = {one.id: i for i, one in enumerate(QUESTIONS)}
Edit = Callable[[dict[str, Any]], object]


def _fault(name: str, path: str, value: Any, field: str | None = None) -> tuple[str, Any, str]:
    """Return the path and value of an invalid edit of a question, and the field that the error
    names.

    field : by default the edited field; @ stands for the question's path.
    """
    named = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))
    where = (field or "@" + named).replace("@", f"blocks[0].questions[{_AT[name]}]")
    return f"blocks.0.questions.{_AT[name]}.{path}", value, where


INVALID_EDITS: list[tuple[str, Any, str]] = [
    _fault("age", "choices.3.role", "refused"),
    _fault("age", "choices.3.role", None),
    _fault("age", "choices.3.from", 90, "@.choices"),
    _fault("age", "choices.3.score", "1", "@.choices"),
    _fault("age", "choices.2.role", "no_answer", "@.choices"),
    _fault("age", "choices.1.from", ..., "@.choices"),
    _fault("age", "choices.1.from", 18, "@.choices"),
    _fault("age", "choices.1.from", "30"),
    _fault("age", "choices.1.from", True),
    _fault("age", "choices.1.from", None),
    _fault("stress", "choices.0.score", 1),
    _fault("stress", "choices.0.score", "-0"),
    _fault("stress", "choices.0.score", "1.0"),
    _fault("stress", "choices.0.score", "01"),
    _fault("stress", "choices.0.score", "1e3"),
    _fault("stress", "choices.0.score", ..., "@.choices"),
    _fault("stress", "choices.3.role", ..., "@.choices"),
    _fault("stress", "choices.3.role", "no_answer", "stress"),
    _fault("stress", "ask_if.question", "stress", "stress"),
    _fault("stress", "ask_if.question", "signs-sleep", "stress"),
    _fault("stress", "ask_if.question", "absent", "stress"),
    _fault("stress", "ask_if.choices", ["maybe"], "stress"),
    _fault("stress", "ask_if.choices", []),
    _fault("stress", "ask_if.choices", ["yes", "yes"]),
    _fault("stress", "ask_if.choices", "yes"),
    _fault("stress", "ask_if", None),
    _fault("stress", "ask_if.unless", "yes"),
    _fault("signs-pain", "box.of", "other", "@.id"),
    _fault("signs-pain", "id", "signs-", "@.id"),
    _fault("signs-pain", "id", "pain", "@.id"),
    _fault("signs-pain", "box.text.en", "Other text?", "signs"),
    _fault("signs-pain", "box.label", {"fr": "douleur"}, "@.box.label.en"),
    _fault("signs-pain", "box.role", "other"),
    _fault("signs-pain", "box.role", "no_answer", "signs"),
    _fault("signs-pain", "ask_if", ..., "signs"),
    _fault("signs-pain", "choices.0.id", "off", "@.choices"),
    _fault("signs-pain", "choices.1.role", "no_answer", "@.choices"),
    _fault("signs-skipped", "box.role", ..., "signs"),
    _fault("age", "wanted", None),
    _fault("age", "wanted", "distribution"),
    _fault("age", "wanted.figure", ...),
    _fault("age", "wanted.figure", "median"),
    _fault("age", "wanted.figure", "toString"),
    _fault("age", "wanted.figure", ["mean"]),
    _fault("age", "wanted.figure", "contrast", "@.wanted"),
    _fault("age", "wanted.figure", "mean", "@.wanted"),
    _fault("age", "wanted.numbers", ["1", "0", "0", "0"], "@.wanted"),
    _fault("age", "wanted.numbers", None, "@.wanted"),
    _fault("age", "wanted.scale", "1"),
    _fault("stress", "wanted.numbers", ["1", "0", "0", "0"], "@.wanted"),
    _fault("work", "wanted.figure", "mean", "@.wanted"),
    _fault("work", "wanted.figure", "shares"),
    _fault("work", "wanted.numbers", ..., "@.wanted"),
    _fault("work", "wanted.numbers", None),
    _fault("work", "wanted.numbers", []),
    _fault("work", "wanted.numbers", ["1"]),
    _fault("work", "wanted.numbers", ["0"] * 1001),
    _fault("work", "wanted.numbers", ["1", "0", "2"], "@.wanted"),
    _fault("work", "wanted.numbers.0", "1.50"),
    _fault("work", "wanted.numbers.0", "-0"),
    _fault("work", "wanted.numbers.1", "1e3"),
    _fault("work", "wanted.numbers.1", 1),
    _fault("work", "wanted.numbers.1", None),
    _fault("drugs-beer", "wanted", {"figure": "distribution"}),
    _fault("drugs-weed", "wanted", {"figure": "contrast", "numbers": ["0", "1"]}),
    _fault("work", "anchor", None),
    _fault("work", "anchor", [2, 3]),
    _fault("work", "anchor", "Census of 2022"),
    _fault("work", "anchor", {}, "@.anchor.counts"),
    _fault("work", "anchor.counts", ...),
    _fault("work", "anchor.source", ...),
    _fault("work", "anchor.shares", [0, 1]),
    _fault("work", "anchor.counts", None),
    _fault("work", "anchor.counts", {"no": 2, "yes": 3}),
    _fault("work", "anchor.counts", []),
    _fault("work", "anchor.counts", [1]),
    _fault("work", "anchor.counts", [2, 3, 0]),
    _fault("work", "anchor.counts", [0, 0]),
    _fault("work", "anchor.counts", [0] * 1001),
    _fault("work", "anchor.counts.0", -1),
    _fault("work", "anchor.counts.0", "2"),
    _fault("work", "anchor.counts.1", True),
    _fault("work", "anchor.counts.1", None),
    _fault("work", "anchor.source", ""),
    _fault("work", "anchor.source", None),
    _fault("work", "anchor.source", {"en": "Census of 2022"}),
    _fault("work", "anchor.source", "a\u202eb"),
    _fault("work", "anchor.source", "x" * 4001),
    _fault("work", "anchor", {"repeats": None}, "@.anchor.repeats"),
    _fault("work", "anchor", {"repeats": ""}, "@.anchor.repeats"),
    _fault("work", "anchor", {"repeats": "Age"}, "@.anchor.repeats"),
    _fault("work", "anchor", {"repeats": ["age"]}, "@.anchor.repeats"),
    _fault("work", "anchor", {"repeats": "x" * 65}, "@.anchor.repeats"),
    _fault("work", "anchor.repeats", "age", "@.anchor.counts"),
    _fault("work", "anchor", {"counts": [2, 3], "repeats": "age"}, "@.anchor.counts"),
    _fault("work", "anchor", {"repeats": "age", "source": "Census"}, "@.anchor.source"),
    _fault("work", "anchor", {"repeats": "age"}, "work"),
    _fault("work", "anchor", {"repeats": "work"}, "work"),
    _fault("work", "anchor", {"repeats": "stress"}, "work"),
    _fault("work", "anchor", {"repeats": "drugs-beer"}, "work"),
    _fault("work", "anchor", {"repeats": "absent"}, "work"),
    _fault("work", "choices.1.role", "no_answer", "@.anchor"),
    _fault("work", "ask_if", {"question": "age", "choices": ["old"]}, "@.anchor"),
    _fault("age", "anchor", {"counts": [1, 1, 1, 1], "source": "Census"}),
    _fault("stress", "anchor", {"counts": [1, 1, 1, 0], "source": "Census"}),
    _fault("stress", "anchor", {"repeats": "age"}),
    _fault("drugs-beer", "anchor", {"counts": [9, 1], "source": "Census"}),
    _fault("drugs-beer", "anchor", {"repeats": "work"}),
    ("strata", [WORK.to_json()], "strata[0]"),
    (
        "strata",
        [
            question("town", "no", "yes").to_json()
            | {"anchor": {"counts": [1, 1], "source": "Census"}}
        ],
        "strata[0]",
    ),
    (
        "strata",
        [question("town", "no", "yes").to_json() | {"wanted": {"figure": "mean"}}],
        "strata[0].wanted",
    ),
]
"""Edits after which a device rejects the document as malformed: path, value, field of the error."""

FAULTS: list[tuple[Edit, str]] = [(put(path, value), field) for path, value, field in INVALID_EDITS]
"""The same, as functions that edit a document."""

NONE = ("no", "no", "no", "yes")
SETTLED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    (
        {"age": 44, "work": "yes", "stress": "hard", "signs": ["pain", "sleep"], "drugs": []},
        ("middle", "yes", "hard", "yes", "yes", "no", "no", "no", "no"),
    ),
    ({"age": "old", "work": "no", "drugs": ["weed"]}, ("old", "no", "none", *NONE, "no", "yes")),
    (
        {"age": "silent", "work": "yes", "stress": "calm", "drugs-beer": "yes", "drugs-weed": "no"},
        ("silent", "yes", "calm", *NONE, "yes", "no"),
    ),
    # An answer to a skipped question is ignored.
    (
        {"age": 18, "work": "no", "stress": "hard", "signs": ["pain"], "drugs": []},
        ("young", "no", "none", *NONE, "no", "no"),
    ),
    (
        {"age": 18, "work": "yes", "stress": "mixed", "signs": ["untold"], "drugs": []},
        ("young", "yes", "mixed", "no", "no", "yes", "no", "no", "no"),
    ),
]
"""Answers of a form, and the choice that results for every question."""

_GOOD = SETTLED[0][0]
UNSETTLED: list[tuple[dict[str, Any], str | None]] = [
    (_GOOD | {"age": 17}, "age"),
    (_GOOD | {"age": "44"}, "age"),
    (_GOOD | {"age": True}, "age"),
    (_GOOD | {"age": 2**53}, "age"),
    (_GOOD | {"age": 44.5}, "age"),
    (_GOOD | {"work": 1}, "work"),
    (_GOOD | {"stress": None}, "stress"),
    (_GOOD | {"signs": ["canary"]}, "signs"),
    (_GOOD | {"signs": "pain"}, "signs"),
    (_GOOD | {"signs": [1]}, "signs"),
    (_GOOD | {"signs": {"pain": True}}, "signs"),
    (_GOOD | {"signs": ["pain", "untold"]}, "signs"),
    (_GOOD | {"signs": ["untold", "skipped"]}, "signs"),
    (_GOOD | {"drugs-beer": "no"}, "drugs"),
    (_GOOD | {"canary": "yes"}, None),
    ({name: value for name, value in _GOOD.items() if name != "signs"}, "signs-sleep"),
    ({name: value for name, value in _GOOD.items() if name != "work"}, "work"),
]
"""Answers that are refused, and the question that the error names."""
OTHERS: list[tuple[tuple[Question, ...], str]] = [
    ((SIGNS[0], WORK, *SIGNS[1:]), "signs-sleep"),
    ((DRUGS[0], WORK, DRUGS[1]), "drugs"),
    ((question("drugs", "no", "yes"), *DRUGS), "drugs"),
    ((*DRUGS, question("drugs", "no", "yes")), "drugs"),
    ((replace(DRUGS[0], box=replace(DRUGS[0].box, role="no_answer")),), "drugs"),  # type: ignore[type-var]
]


def again(first: Question, name: str = "again", **changes: Any) -> Question:
    """Return the question that asks another one a second time."""
    changes = {"anchor": Anchor(repeats=first.id), "wanted": None, **changes}
    return replace(first, **{"id": name, "text": {"en": f"Again: {name}?"}, **changes})


_NO, _YES = WORK.choices
_FLIPPED = again(WORK, choices=(_YES, _NO))
REPEATED: list[tuple[tuple[Question, ...], str | None]] = [
    ((WORK, again(WORK)), None),
    ((AGE, again(AGE)), None),
    ((AGE, *DRUGS, WORK, *SIGNS_ALWAYS, again(WORK)), None),
    ((WORK, again(WORK), again(WORK, "third")), None),
    ((WORK, again(WORK), again(again(WORK), "third")), None),
    ((WORK, STRESS, again(WORK, choices=(replace(_NO, label={"en": "not"}), _YES))), None),
    # The same ids; what else a choice has may differ.
    ((AGE, again(AGE, choices=tuple(Choice(one.id, one.label) for one in AGE.choices))), None),
    ((again(WORK),), "again"),
    ((again(WORK), WORK), "again"),
    ((WORK, again(again(WORK))), "again"),
    ((AGE, again(AGE, choices=AGE.choices[:3])), "again"),
    ((WORK, _FLIPPED), "again"),
    ((WORK, again(WORK, choices=(*WORK.choices, Choice("maybe", {"en": "maybe"})))), "again"),
    ((WORK, again(WORK, choices=(_NO, replace(_YES, id="yes_")))), "again"),
    ((*DRUGS, again(DRUGS[0], box=None)), "again"),
    ((*DRUGS, again(WORK, anchor=Anchor(repeats="drugs"))), "again"),
    ((WORK, STRESS, again(STRESS, ask_if=None)), "again"),
    # The first of several faults, in the order of the document; boxes come last.
    ((again(WORK), STRESS), "again"),
    ((STRESS, again(WORK)), "stress"),
    ((DRUGS[0], WORK, _FLIPPED, DRUGS[1]), "again"),
]
"""Questions of which one is asked a second time, and the question at which they are refused."""
