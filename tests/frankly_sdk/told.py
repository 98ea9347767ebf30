# SPDX-License-Identifier: Apache-2.0
"""Random documents with their explanations, and the true law of their reports by brute force."""

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from random import Random

from frankly_protocol.audit import Charge, ReportLevel
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.budget import Budget
from frankly_protocol.explanation.explain import Explanation, explain
from frankly_protocol.mechanisms import AgreementMechanism, AnyMechanism
from frankly_protocol.questions import Anchor, AskIf, Box, Choice, Question
from frankly_protocol.tokens import TokenRule
from frankly_sdk import Policy

from tests.frankly_protocol.audit.definitions import table
from tests.frankly_protocol.audit.leakage import Leakage, Ratio, Rows
from tests.frankly_protocol.audit.worlds import Case, Cell, Shape, Source, World, agreement, case
from tests.frankly_protocol.every_kind import form_block
from tests.frankly_protocol.samples import question, survey, with_item


def dressed(document: SurveyDocument, rng: Random) -> SurveyDocument:
    """Return a document with the same law whose questions are of many kinds, perhaps with a token
    and either an instructed item or anchors."""
    blocks: list[Block] = []
    for block in document.blocks:
        first, asked = blocks[0].questions[0] if blocks else None, list[Question]()
        for one in block.questions:
            asked.append(_dressed(one, first, rng))
            # Within a block, boxes are made only where no question could have a rule.
            first = first or asked[0]
        if rng.random() < 0.3:  # questions of the same words
            asked = [replace(one, text=asked[0].text) for one in asked]
        drawn = isinstance(block.mechanism, AgreementMechanism) and rng.random() < 0.5
        boxes = _boxes(tuple(asked), block.id, rng)
        blocks.append(replace(block, questions=boxes, asks_drawn=drawn))
    tokens = (None, None, TokenRule("invite"), TokenRule("rsa-pss", "A" * 64))
    consent = rng.choice((None, {"en": "Please answer."}))
    whole = replace(document, blocks=tuple(blocks), token=rng.choice(tokens), consent=consent)
    has_prior = any(block.rests_on_prior for block in blocks)  # no item may stand beside one
    return _anchored(whole, rng) if has_prior or rng.random() < 0.5 else with_item(whole)


def _anchored(document: SurveyDocument, rng: Random) -> SurveyDocument:
    """Return the document with anchors of some of the questions that may have one."""
    blocks, earlier = [], dict[tuple[str, ...], str]()
    for block in document.blocks:
        asked = []
        for i, one in enumerate(block.questions):
            is_of_all = not (one.box or one.ask_if)
            is_open = is_of_all and not any(choice.role for choice in one.choices)
            counts = tuple(rng.randrange(10) + (x == 0) for x in range(len(one.choices)))
            anchor = Anchor(counts, f"Table {block.id}-{i} of 2022")
            ids = tuple(choice.id for choice in one.choices)
            if is_open and rng.random() < 0.3:
                asked.append(replace(one, anchor=anchor))
            elif is_of_all and ids in earlier and rng.random() < 0.4:
                asked.append(replace(one, anchor=Anchor(repeats=earlier[ids])))
            else:
                asked.append(one)
            if is_of_all:
                earlier[ids] = one.id
        blocks.append(replace(block, questions=tuple(asked)))
    return replace(document, blocks=tuple(blocks))


def _dressed(asked: Question, first: Question | None, rng: Random) -> Question:
    if len(asked.choices) > 2 and first and not first.box and rng.random() < 0.4:
        *others, last = asked.choices
        skipped = replace(last, role="not_applicable")
        rule = AskIf(first.id, (first.choices[0].id,))
        return replace(asked, choices=(*others, skipped), ask_if=rule)
    if len(asked.choices) > 2 and rng.random() < 0.4:
        ranges = tuple(replace(c, low=10 * i) for i, c in enumerate(asked.choices))
        return replace(asked, choices=ranges)
    return asked


def _boxes(asked: tuple[Question, ...], name: str, rng: Random) -> tuple[Question, ...]:
    """Return the questions; if all have two choices, perhaps as the boxes of one question."""
    if any(len(one.choices) > 2 for one in asked) or rng.random() < 0.5:
        return asked
    yes_or_no = (Choice("no", {"en": "no"}), Choice("yes", {"en": "yes"}))
    return tuple(
        replace(
            question(f"{name}-x{j}", "no", "yes"),
            choices=yes_or_no,
            box=Box(name, {"en": f"Which {name}?"}, {"en": f"box {'abcd'[j]}"}),
        )
        for j in range(len(asked))
    )


@dataclass(frozen=True)
class Told:
    """A random document, its explanation, and the worlds where its tables are true."""

    case: Case
    document: SurveyDocument
    policy: Policy
    spent: tuple[Charge, ...]
    is_answered: bool = False

    @classmethod
    def of(cls, seed: int) -> "Told":
        """Return the random document of a seed, dressed at random; every third is one form."""
        drawn = case(seed) if seed % 3 else _of_a_form(seed)
        rng = Random(f"dressed {seed}")
        cap, delta_cap = rng.choice(("5", "1", "30")), rng.choice(("0", "0.2", "0.9"))
        delta = rng.choice((Fraction(0), Fraction(1, 100) * (delta_cap != "0")))
        spent = rng.choice(((), (Charge(Fraction(3, 2), delta),)))
        final = (drawn.document.survey,) if rng.random() < 0.5 else ()
        policy = Policy(cap=cap, delta_cap=delta_cap, final_surveys=final)
        return cls(drawn, dressed(drawn.document, rng), policy, spent, rng.random() < 0.1)

    @cached_property
    def level(self) -> ReportLevel:
        """The level of the whole report under the app's cap on δ."""
        return self.policy.level(self.document)

    @cached_property
    def budget(self) -> Budget:
        """The respondent's budget after `spent`."""
        return self.policy.budget(
            self.document, self.level, self.spent, is_answered=self.is_answered
        )

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation in English, with the budget."""
        return explain(self.document, self.level, ("ab" * 32,), None, self.budget)

    @cached_property
    def mechanisms(self) -> list[AnyMechanism]:
        """The mechanism of every block."""
        return [block.mechanism for block in self.document.blocks]

    @cached_property
    def leakages(self) -> list[Leakage]:
        """The leakage of the whole report in every world, given the public answers."""
        return [Leakage(self.case.shape, self.mechanisms, world) for world in self.case.worlds]

    @cached_property
    def answers(self) -> Rows:
        """The law of the whole report for every joint answer."""
        return self.leakages[0].answers

    def alone(self, i: int, source: Source, *, beside: bool = False) -> list[Rows]:
        """Return the laws of block i given each value of a promise's secret, in the promise's world.

        They are given the public answers if the promise is, and for readers of each part of the
        block's answers if `beside`.
        """
        leakage, r = self._alone(i, source), source.secret or 0
        return [rows for _, rows in (leakage.beside(r, 0) if beside else leakage.about(r))]

    def posterior(self, i: int, source: Source) -> Fraction:
        """Return the largest probability of a promise's sensitive value after block i alone."""
        return _posterior(self._alone(i, source), source)

    def _alone(self, i: int, source: Source) -> Leakage:
        projected: dict[Cell, int] = defaultdict(int)
        for (s, x, z), n in self.case.worlds[source.world].items():
            projected[s, (x[i],), z if source.promise.is_stratified else 0] += n
        shape = replace(self.case.shape, questions=(self.case.shape.questions[i],))
        return Leakage(shape, [self.mechanisms[i]], projected)

    def columns(self, i: int) -> list[list[Fraction]]:
        """Return P(y|·) of every symbol of block i that can be sent."""
        return list(table(self.mechanisms[i]).values())

    def odds(self, i: int) -> Ratio:
        """Return the largest ratio of a symbol's chances under two answers to block i."""
        columns = self.columns(i)
        if any(not min(column) for column in columns):
            return None
        return max(max(column) / min(column) for column in columns)

    def secrets(self, name: str) -> list[Rows]:
        """Return the laws of the whole report given each value of a secret, by world and stratum."""
        return [
            rows
            for leakage in self.leakages
            for r in self._numbers(name)
            for _, rows in leakage.about(r)
        ]

    def strata(self, name: str) -> list[Rows]:
        """Return the laws of the public answers given each value of a secret, by world."""
        return [leakage.strata(r) for leakage in self.leakages for r in self._numbers(name)]

    def posteriors(self, name: str, value: str) -> list[Fraction]:
        """Return the largest probability of a secret's value after the whole report.

        There is one for each promise about it, in the world where the promise's table is true.
        """
        r, s = map(int, value.removeprefix("s").split("-"))
        assert self.case.shape.names[r] == name
        return [
            _posterior(self.leakages[source.world], source)
            for source in self.case.sources
            if (source.secret, source.promise.claim.sensitive) == (r, s)
        ]

    def _numbers(self, name: str) -> list[int]:
        """Return the secrets of this name about which something is promised; two may share it."""
        declared = {source.secret for source in self.case.sources if source.secret is not None}
        return [r for r in sorted(declared) if self.case.shape.names[r] == name]


def _of_a_form(seed: int) -> Case:
    """Return a random form whose questions have different numbers of choices."""
    rng = Random(f"form {seed}")
    sizes = rng.choice(((2, 3), (3, 2), (4, 2), (2, 2, 3), (2, 3, 2), (2, 2, 2)))
    block = form_block(agreement(rng, sizes))
    (promise,) = block.promises
    world: World = {((s,), (x,), 0): 1 for s in range(2) for x in range(prod(sizes))}
    shape = Shape((2,), (sizes,), (), {})
    return Case(seed, shape, survey(block), (world,), (Source(promise),))


def _posterior(leakage: Leakage, source: Source) -> Fraction:
    s = source.promise.claim.sensitive
    return max(
        rows.posterior(values.index(s))
        for values, rows in leakage.about(source.secret or 0)
        if s is not None and s in values
    )
