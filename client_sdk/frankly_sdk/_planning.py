# SPDX-License-Identifier: Apache-2.0
"""Plans of a document's forms: drawn before any question is asked, stored, and read back (spec 4.5)."""

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
        """True if the document has such a form."""
        return bool(self.asking.forms)

    @cached_property
    def form(self) -> str:
        """Digest of what a plan depends on: mechanisms, and questions without their words.

        A plan stays valid in a later version of the document if this is the same.
        """
        return digest(
            canonical.dumps(
                [
                    [block.id, mechanism.params_json(), [_shape(one) for one in block.questions]]
                    for block, mechanism in self.asking.forms
                ]
            )
        )

    def draw(self, randbits: RandomBits) -> Plans:
        """Draw a plan for each form, in the order of the document; raises RandomnessError."""
        return {block.id: mechanism.plan(randbits) for block, mechanism in self.asking.forms}

    def text(self, plans: Plans) -> str:
        """Return plans in the form that is stored."""
        return json.dumps([[plan.component, plan.parts] for plan in plans.values()])

    def read(self, text: str) -> Plans:
        """Read stored plans; raises StoreError if they are not plans of these forms."""
        plans = dict[str, FormPlan]()
        try:
            for (block, mechanism), (component, parts) in zip(
                self.asking.forms, json.loads(text), strict=True
            ):
                plan = plans[block.id] = FormPlan(component, tuple(parts))
                if not all(type(n) is int and n >= 0 for n in (component, *parts)):
                    raise TypeError
                if not mechanism.can_draw(plan):
                    raise ValueError
        except (TypeError, ValueError):
            raise StoreError("the stored plan is damaged; nothing was sent") from None
        return plans

    def needed(self, plans: Plans) -> Mapping[str, Question]:
        """Return the questions to ask, by id."""
        return {question.id: question for question in self.asking.asked(plans)}

    def shown(self, plans: Plans) -> Plan:
        """Return the plans as an app sees them."""
        asked = self.asking.asked(plans)
        groups = {question.box.of if question.box else question.id for question in asked}
        return Plan(tuple(question.id for question in asked), len(groups), self.asking.groups)


def _shape(question: Question) -> list[Any]:
    """Return a question without its words, its figure, its anchor and its scores."""
    return [
        question.id,
        [[choice.id, choice.role, choice.low] for choice in question.choices],
        question.box and [question.box.of, question.box.role],
        question.ask_if and question.ask_if.to_json(),
    ]
