# SPDX-License-Identifier: Apache-2.0
"""How many of its questions a survey asks a person."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from frankly_protocol.asking import Asking
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import NO_ANSWER

if TYPE_CHECKING:
    from frankly_server.surveys.definition import SurveyDefinition


_MOST_NAMED = 4


def asks(definition: "SurveyDefinition") -> str:
    """Return "all" or "drawn", what a definition that `SurveyDefinition.after` returned asks of a form."""
    return "all" if definition.form is None or definition.form.ask == "all" else "drawn"


def asks_less(blocks: Sequence[Block], *, as_drawn: bool = False) -> bool:
    """Return True if some plan of the forms among these blocks leaves out a question.

    as_drawn : as in `Asking`.
    """
    asking = Asking(blocks, as_drawn)
    return asking.mean < asking.groups


def without_refusal(document: SurveyDocument) -> tuple[str, ...]:
    """Return a warning that names the drawn questions without "prefer not to say"; () without any.

    Who is asked little notices each question more. People who leave are not counted; people who may
    refuse are, within the level.
    """
    texts: dict[str, Mapping[str, str]] = {}
    refusable: set[str] = set()
    for block in document.blocks:
        for question in block.questions if block.asks_drawn else ():
            box = question.box
            group, text = (question.id, question.text) if box is None else (box.of, box.text)
            texts[group] = text
            roles = [choice.role for choice in question.choices] + ([box.role] if box else [])
            if NO_ANSWER in roles:
                refusable.add(group)
    names = [f"“{text[document.languages[0]]}”" for g, text in texts.items() if g not in refusable]
    if not names:
        return ()
    # One more name is shorter than a note that one is left out.
    listed = names if len(names) <= _MOST_NAMED + 1 else names[:_MOST_NAMED]
    others = f" and {len(names) - len(listed)} more questions" if listed != names else ""
    return (
        f"Nobody can refuse {', '.join(listed)}{others} except by leaving, and who leaves is not counted. "
        "Offer “Prefer not to say” (a tick at each question, no_answer: true in a survey file): it is protected "
        "like every answer, and its share is estimated.",
    )


def asked_in_words(document: SurveyDocument) -> str:
    """Return a sentence that says how many of its questions a document asks a person.

    Boxes of one question count as one; public questions and an instructed item are asked besides.
    """
    if document.views:
        return " ".join(
            f"Arm {name}: {asked_in_words(view)}" for name, view in document.views.items()
        )
    asking, public = Asking(document.blocks), len(document.strata)
    others = ["the public one" if public == 1 else f"the {public} public ones"] if public else []
    if document.instructed is not None:
        others.append("the item that shows who reads")
    rules = any(question.ask_if is not None for question in document.questions.values())
    if asking.forms:
        mean = f"{float(asking.mean):.1f} on average{' before rules skip any' if rules else ''}"
        number = f"at most {asking.most} of the {asking.groups} questions ({mean})"
        verb = "is" if len(others) == 1 and public <= 1 else "are"
        also = f" Besides, {' and '.join(others)} {verb} asked." if others else ""
        return f"A person is asked {number}: what the report is about, and what that needs.{also}"
    if not document.blocks:
        return f"A person is asked {' and '.join(others)}."
    all_of_them = f"all {asking.groups} questions" if asking.groups > 1 else "the one question"
    skipped = " except those that a rule skips" if rules else ""
    besides = f", and {' and '.join(others)}" if others else ""
    return f"A person is asked {all_of_them}{skipped}{besides}."
