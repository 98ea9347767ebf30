# SPDX-License-Identifier: Apache-2.0
"""How many of its questions a survey asks a person."""

from collections.abc import Sequence

from frankly_protocol.asking import Asking
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument


def asks_less(blocks: Sequence[Block], *, as_drawn: bool = False) -> bool:
    """Return True if some plan of the forms among these blocks leaves out a question.

    as_drawn : as in `Asking`.
    """
    asking = Asking(blocks, as_drawn)
    return asking.mean < asking.groups


def asked_in_words(document: SurveyDocument) -> str:
    """Return a sentence that says how many of its questions a document asks a person.

    Boxes of one question count as one; public questions are asked besides.
    """
    asking, public = Asking(document.blocks), len(document.strata)
    besides = ", and the public one" if public == 1 else f", and the {public} public ones"
    rules = any(question.ask_if is not None for question in document.questions.values())
    if asking.forms:
        mean = f"{float(asking.mean):.1f} on average{' before rules skip any' if rules else ''}"
        number = f"at most {asking.most} of the {asking.groups} questions ({mean})"
        return f"A person is asked {number}{besides if public else ''}: what the report is about, and what that needs."
    all_of_them = f"all {asking.groups} questions" if asking.groups > 1 else "the one question"
    skipped = " except those that a rule skips" if rules else ""
    return f"A person is asked {all_of_them}{skipped}{besides if public else ''}."
