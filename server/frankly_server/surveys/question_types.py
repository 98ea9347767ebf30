# SPDX-License-Identifier: Apache-2.0
"""The types of questions: how a question is answered, in survey files and on the question's page.

A type is a short way of writing a question down. Documents have choices only: a box is a question with
the choices no and yes.
"""

from dataclasses import dataclass
from typing import Final

from frankly_protocol.questions import NO, YES


@dataclass(frozen=True, slots=True)
class QuestionType:
    """A way in which a question is answered.

    name : in survey files and forms. words, more : on the page. listed : the field with the rows of the
    question. begins : ids of the choices that it has unless others are given. number : the field of a
    choice that its number fills, "" if choices have none. given_by : the field of a file that only this
    type has and needs, "" for none. stored_as : the type of a stored question of this type.
    """

    name: str
    words: str
    more: str = ""
    listed: str = "choices"
    begins: tuple[str, ...] = ()
    number: str = ""
    given_by: str = ""
    stored_as: str = ""

    @property
    def has_boxes(self) -> bool:
        """True if each row is a yes-or-no question of its own."""
        return self.listed == "boxes"

    @property
    def is_scale(self) -> bool:
        """True if choices have scores."""
        return self.number == "score"

    @property
    def has_ranges(self) -> bool:
        """True if choices are ranges of numbers."""
        return self.number == "from"

    @property
    def is_plain(self) -> bool:
        """True if it has choices without numbers, as a public question must."""
        return not self.has_boxes and not self.number


SINGLE: Final = QuestionType("single", "One of several choices")
TYPES: Final = {
    one.name: one
    for one in (
        QuestionType("yes-no", "Yes or no", begins=(NO, YES), stored_as="single"),
        SINGLE,
        QuestionType(
            "multi",
            "Any number of boxes",
            "each box is a yes-or-no question of its own",
            listed="boxes",
            begins=(NO, YES),
            given_by="boxes",
        ),
        QuestionType(
            "scale",
            "A scale",
            "choices with scores, such as 0 to 10; its mean is estimated",
            number="score",
        ),
        QuestionType(
            "number",
            "A number, in ranges",
            "such as an age: people type it, and the device keeps its range only",
            number="from",
            given_by="ranges",
        ),
    )
}
"""Every type, in the order of the page."""
