# SPDX-License-Identifier: Apache-2.0
"""Plans of a document's arms and forms: drawn before any question is asked, stored, and read back (spec 4.5)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.asking import Asking
from frankly_protocol.canonical import digest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms.agreement import Plan as FormPlan
from frankly_protocol.mechanisms.base import RandomBits
from frankly_protocol.questions import Question

from frankly_sdk.errors import StoreError
from frankly_sdk.plan import Plan

Plans = Mapping[str, FormPlan]
"""A plan for each form, by the id of its block."""


@dataclass(frozen=True)
class Planning:
    """Draws, stores and reads the plans of one document."""

    document: SurveyDocument

    @cached_property
    def asking(self) -> Asking:
        """The forms of which only what is drawn is asked."""
        return Asking(self.document.blocks)

    @property
    def is_needed(self) -> bool:
        """True if the document has arms or such a form."""
        return self.document.arms is not None or bool(self.asking.forms)

    @cached_property
    def form(self) -> str:
        """Digest of what a plan depends on: arms, mechanisms, and questions without their words.

        A plan stays valid in a later version of the document if this is the same. The views of all
        arms have that of the document.
        """
        if self.document.whole is not None:
            return Planning(self.document.whole).form
        forms: list[Any] = [
            [block.id, mechanism.params_json(), [_shape(one) for one in block.questions]]
            for block, mechanism in self.asking.forms
        ]
        # Not around the forms: those with listed covers have as many levels as canonical JSON allows.
        arms = [] if self.document.arms is None else [self.document.arms.to_json()]
        return digest(canonical.dumps(arms + forms))

    def draw(self, randbits: RandomBits) -> Plans:
        """Draw a plan for each form, in the order of the document; raises RandomnessError."""
        return {block.id: mechanism.plan(randbits) for block, mechanism in self.asking.forms}

    def drawn_text(self, randbits: RandomBits) -> str:
        """Draw the arm, if there are arms, and the plans; return them in the form that is stored."""
        if self.document.views:
            arms = self.document.arms
            assert arms is not None  # noqa: S101 - it has views
            return Planning(self.document.views[arms.draw(randbits)]).drawn_text(randbits)
        plans = [[plan.component, plan.parts] for plan in self.draw(randbits).values()]
        return json.dumps(plans if self.document.arm is None else [self.document.arm, plans])

    def arm_of(self, text: str) -> str:
        """Return the arm of a stored plan; raises StoreError if it is not one of the document's."""
        try:
            arm, _ = json.loads(text)
            if arm not in self.document.views:
                raise ValueError
        except (TypeError, ValueError):
            raise _damaged() from None
        return str(arm)

    def read(self, text: str) -> Plans:
        """Read stored plans; raises StoreError if they are not plans of these forms."""
        plans = dict[str, FormPlan]()
        try:
            stored = json.loads(text)
            if self.document.arm is not None:
                arm, stored = stored
                if arm != self.document.arm:
                    raise ValueError
            for (block, mechanism), (component, parts) in zip(
                self.asking.forms, stored, strict=True
            ):
                plan = plans[block.id] = FormPlan(component, tuple(parts))
                if not all(type(n) is int and n >= 0 for n in (component, *parts)):
                    raise TypeError
                if not mechanism.can_draw(plan):
                    raise ValueError
        except (TypeError, ValueError):
            raise _damaged() from None
        return plans

    def needed(self, plans: Plans) -> Mapping[str, Question]:
        """Return the questions to ask, by id."""
        return {question.id: question for question in self.asking.asked(plans)}

    def shown(self, plans: Plans) -> Plan:
        """Return the plans as an app sees them."""
        asked = self.asking.asked(plans)
        groups = {question.box.of if question.box else question.id for question in asked}
        names, of = tuple(question.id for question in asked), self.asking.groups
        return Plan(names, len(groups), of, self.document.arm)


def _damaged() -> StoreError:
    return StoreError("the stored plan is damaged; nothing was sent")


def _shape(question: Question) -> list[Any]:
    """Return a question without its words, its figure, its anchor and its scores."""
    return [
        question.id,
        [[choice.id, choice.role, choice.low] for choice in question.choices],
        question.box and [question.box.of, question.box.role],
        question.ask_if and question.ask_if.to_json(),
    ]
