# SPDX-License-Identifier: Apache-2.0
"""Which questions a device has to ask for the plans of a document's forms (docs/maths/forms.md).

A report about a few questions needs the answers to these alone. What was not asked cannot leak.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Plan, Pool
from frankly_protocol.questions import Question


@dataclass(frozen=True)
class Asking:
    """Questions asked for a plan of each form; a *group* is what a person reads as one question.

    blocks : the blocks of a document, in its order. A form is here a block that `asks_drawn`; the
        questions of all others are always asked. as_drawn : as if each block that may ask only
        what is drawn did so.
    """

    blocks: Sequence[Block]
    as_drawn: bool = False

    @cached_property
    def forms(self) -> tuple[tuple[Block, AgreementMechanism], ...]:
        """The forms, in the order of the document."""
        return tuple(
            (block, block.form)
            for block in self.blocks
            if block.form is not None and (block.asks_drawn or self.as_drawn)
        )

    @cached_property
    def always(self) -> frozenset[str]:
        """Groups that are asked for every plan: those of other blocks, and what they depend on."""
        forms = [block.id for block, _ in self.forms]
        others = (block for block in self.blocks if block.id not in forms)
        return self._closed(question.id for block in others for question in block.questions)

    def asked(self, plans: Mapping[str, Plan]) -> tuple[Question, ...]:
        """Return the questions to ask, in the order of the document.

        plans : a plan for each form, by the id of its block. With a question come the one that its
        rule names, and so on, and all boxes of its group. Rules then apply to these: a question
        that its rule skips is not shown.
        """
        groups = set(self.always)
        for block, mechanism in self.forms:
            drawn = mechanism.questions_of(plans[block.id])
            groups |= self._closed(block.questions[i].id for i in drawn)
        return tuple(
            question for name, question in self._questions.items() if self._group[name] in groups
        )

    @property
    def groups(self) -> int:
        """The number of groups of the document."""
        return len(set(self._group.values()))

    @property
    def mean(self) -> Fraction:
        """The mean number of groups asked, over all plans; rules may skip some of them."""
        return len(self.always) + mean_drawn(self._closures, self._drawn)

    @property
    def most(self) -> int:
        """A number of groups that no plan exceeds: the largest closures of every slot, added up."""
        return min(len(self.always) + most_drawn(self._closures, self._drawn), self.groups)

    @cached_property
    def _questions(self) -> dict[str, Question]:
        return {question.id: question for block in self.blocks for question in block.questions}

    @cached_property
    def _group(self) -> dict[str, str]:
        """The group of each question: the id of the question with boxes, or its own."""
        return {
            name: one.box.of if one.box is not None else name
            for name, one in self._questions.items()
        }

    @property
    def _drawn(self) -> frozenset[str]:
        """Groups that some plans leave out, or could."""
        return frozenset(self._group.values()) - self.always

    @cached_property
    def _closures(self) -> "tuple[Closures, ...]":
        return tuple(
            (
                tuple(
                    self._closed(block.questions[i].id for i in part) for part in mechanism.parts
                ),
                mechanism,
            )
            for block, mechanism in self.forms
        )

    def _closed(self, names: Iterable[str]) -> frozenset[str]:
        """Return the groups of these questions, and those on which they depend."""
        groups: set[str] = set()
        pending = list(names)
        while pending:
            question = self._questions[pending.pop()]
            groups.add(self._group[question.id])
            # The boxes of a group have one rule, so any of them leads to what the group depends on.
            if question.ask_if is not None:
                pending.append(question.ask_if.question)
        return frozenset(groups)


Closures = tuple[Sequence[frozenset[str]], AgreementMechanism]
"""The groups that each part of a form brings with it, and the form."""


def mean_drawn(forms: Sequence[Closures], groups: frozenset[str]) -> Fraction:
    """Return the mean number of these groups that the drawn parts bring with them."""
    total = Fraction(0)
    for group in groups:
        missed = Fraction(1)
        for closures, mechanism in forms:
            missed *= sum(
                Fraction(component.chance, 1 << mechanism.bits)
                * _all_missed(component, closures, group)
                for component in mechanism.components
            )
        total += 1 - missed
    return total


def most_drawn(forms: Sequence[Closures], groups: frozenset[str]) -> int:
    """Return a number of these groups that no plan exceeds: the largest closures of every slot."""
    return sum(
        max(
            sum(
                sum(_largest(pool, [len(closure & groups) for closure in closures]))
                for pool in component.pools
            )
            for component in mechanism.components
        )
        for closures, mechanism in forms
    )


def _all_missed(component: Component, closures: Sequence[frozenset[str]], group: str) -> Fraction:
    """Return the chance that no drawn part of a component brings the group with it."""
    chance = Fraction(1)
    for pool in component.pools:
        without = sum(group not in closures[part] for part in pool.parts)
        chance *= Fraction(comb(without, pool.pick), comb(len(pool.parts), pool.pick))
    return chance


def _largest(pool: Pool, added: Sequence[int]) -> list[int]:
    return sorted((added[part] for part in pool.parts), reverse=True)[: pool.pick]
