# SPDX-License-Identifier: Apache-2.0
"""Vectors of what is asked (docs/spec/3-documents.md, 3.7 and 3.10): arms and plans from random bits, the
questions that they need, answers that fit or are refused, and the report from the bits that are left."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate
from random import Random
from typing import Any

from frankly_protocol.arms import Arm, Arms
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms.agreement import Plan
from frankly_sdk import UnknownChoice
from frankly_sdk._planning import Planning, Plans
from frankly_sdk.answer import Answer

from tests.frankly_protocol.asked import QUESTIONS, SETTLED, UNSETTLED, form
from tests.frankly_protocol.every_kind import form_block
from tests.frankly_protocol.samples import (
    armed,
    in_strata,
    ldp_block,
    question,
    survey,
    with_item,
    without_anchors,
)
from tests.vectors.from_answers import fault
from tests.vectors.from_numbers import Recorded, in_pieces

Case = dict[str, Any]
FAULTS = [
    ("rules and boxes", "blocks.0.ask", "all"),
    ("rules and boxes", "blocks.0.ask", None),
    ("two forms", "blocks.1.ask", ["drawn"]),
    ("pools and joint parts", "blocks.0.ask", "drawn"),
    # Sums and ids.
    ("arms", "arms", None),
    ("arms", "arms.arms.0.chance", 0),
    ("arms", "arms.arms.0.chance", 16385),
    ("arms", "arms.arms.1.id", "clear"),
    ("arms", "arms.arms.0.blocks", [1]),
    # Ids that are unknown, or occur twice.
    ("arms", "arms.arms.0.strata", ["affair", "regions"]),
    ("arms", "arms.arms.1.strata", ["region", "region"]),
    ("arms", "arms.arms.1.blocks", ["region"]),
    ("arms", "arms.arms.2.blocks", ["work", "weak", "work"]),
    # A block in no arm, a public question in none, and an arm without either.
    ("arms", "arms.arms.1.blocks", []),
    ("arms", "arms.arms.0.strata", ["region"]),
    ("arms of forms", "arms.arms.2.strata", []),
    # One id twice in an arm, and a question or the item with that of the arms.
    ("arms", "arms.arms.2.blocks", ["work", "strong", "weak"]),
    ("arms", "arms.arms.1.strata", ["affair", "region"]),
    ("arms", "arms.id", "affair"),
    ("arms of forms", "arms.id", "check"),
    # A rule that looks at a question of another arm, or at a later one of its own.
    ("arms of forms", "arms.arms.1.blocks", ["others", "few"]),
    ("arms of forms", "blocks.3.questions.1.ask_if.question", "trust"),
    ("arms of forms", "arms.arms.0.blocks", ["pools", "others", "first"]),
    # Tables that are not those of an arm, and those of two sets of public questions.
    ("tables in arms", "arms.arms.0.strata", ["region", "town"]),
    ("tables in arms", "arms.arms.1.strata", ["town"]),
]
"""Edits that are refused at step 4: other values, a block of another kind, and faults of arms."""


@cache
def documents() -> dict[str, SurveyDocument]:
    """Return documents with rules, boxes, several parts, parts of two questions, and two forms."""
    first, others = form(*QUESTIONS[:2]), form(*QUESTIONS[2:], drawn=True)
    pools = replace(form_block(), asks_drawn=True)
    one = replace(form(*QUESTIONS, drawn=True), id="one")
    return {
        "rules and boxes": survey(form(*QUESTIONS, drawn=True)),
        "a rule across blocks": survey(replace(first, id="first"), others),
        "pools and joint parts": survey(ldp_block(), pools),
        "two forms": survey(pools, one),
        "arms": armed(),
        "arms of forms": _arms_of_forms(),
        "tables in arms": _tables_in_arms(),
    }


def _arms_of_forms() -> SurveyDocument:
    """Return a survey whose arms ask what is drawn of other forms, or everything in the clear.

    The question work is protected in the first arm and public in the others. The second arm has its
    blocks in another order than the document.
    """
    first, others = form(*QUESTIONS[:2], drawn=True), form(*QUESTIONS[2:], drawn=True)
    few = form(question("trust", "low", "high"), question("debt", "no", "yes"), drawn=True)
    blocks = (
        replace(few, id="few"),
        replace(form_block(), id="pools", asks_drawn=True),
        replace(first, id="first"),
        replace(others, id="others"),
    )
    arms = (
        Arm("all", 20_000, (), ("pools", "first", "others")),
        Arm("few", 30_000, ("work", "region"), ("pools", "few")),
        Arm("clear", 15_536, ("work",), ()),
    )
    public = question("region", "north", "south"), question("work", "no", "yes")
    document = without_anchors(survey(*blocks))
    return with_item(replace(document, strata=public, arms=Arms("version", arms)))


def _tables_in_arms() -> SurveyDocument:
    """Return a survey with a prior of two tables, in two arms with the same public questions."""
    document = in_strata(((60, 40), (50, 50)), ((30, 20), (40, 60)))
    arms = (
        Arm("short", 1 << 15, ("region",), ("marriage",)),
        Arm("long", (1 << 15) - 1, ("region",), ("work", "marriage")),
        Arm("town", 1, ("town",), ()),
    )
    return replace(
        document,
        blocks=(*document.blocks, ldp_block("work")),
        strata=(*document.strata, question("town", "small", "large")),
        arms=Arms("arm", arms),
    )


def plans() -> Case:
    """Return the documents, plans with their reports, and answers to plans."""
    cases = [
        _case(name, document, Random(f"{name} {i}"), first)
        for name, document in documents().items()
        for i, first in enumerate([*_edges(document), *[None] * (4 if document.arms else 6)])
    ]
    return {
        "documents": [_described(name, document) for name, document in documents().items()],
        "faults": [
            {"document": name} | fault(documents()[name], path, value)
            for name, path, value in FAULTS
        ],
        "plans": cases,
        "answers": list(_answers(documents()["rules and boxes"])),
    }


def _described(name: str, document: SurveyDocument) -> Case:
    found = {"name": name, "digest": document.digest, "payload": document.payload().decode()}
    if document.arms is None:
        return found | _numbers(document)
    return found | {"arms": {arm: _numbers(view) for arm, view in document.views.items()}}


def _numbers(version: SurveyDocument) -> Case:
    """Return how much a document without arms, or an arm, asks."""
    asking = Planning(version).asking
    return {
        "always": sorted(asking.always),
        "mean": asking.mean.as_integer_ratio(),
        "most": asking.most,
        "of": asking.groups,
    }


def _edges(document: SurveyDocument) -> list[int]:
    """Return the smallest and the largest number that draw each arm."""
    arms = document.arms.arms if document.arms else ()
    ends = list(accumulate(arm.chance for arm in arms))
    return sorted(
        [end - 1 for end in ends] + [end - arm.chance for arm, end in zip(arms, ends, strict=True)]
    )


def _case(name: str, document: SurveyDocument, source: Random, first: int | None) -> Case:
    """Return a plan with its report; first : the first random number, None for any."""
    numbers = [] if first is None else [first]
    drawn = Recorded(lambda bits: numbers.pop() if numbers else source.getrandbits(bits))
    read = in_pieces(drawn)
    version = document.views[document.arms.draw(read)] if document.arms else document
    planning = Planning(version)
    found = planning.draw(read)
    needed = planning.needed(found)
    # Any choice of any question; the rules then decide what is reported.
    given = {one.id: source.choice(one.choices).id for one in needed.values() if one.box is None}
    given |= {one.id: "no" for one in needed.values() if one.box}
    settled = Answer(given).settled(version.questions, partial=True)
    assert isinstance(settled, Answer)
    chosen = settled.only(needed)
    assert isinstance(chosen, Answer)
    case = {
        "document": name,
        "bits": drawn.draws,
        "plan": _written(found),
        "questions": list(needed),
        "asked": planning.shown(found).asked,
        "given": given,
        "chosen": dict(chosen.revealed()),
    }
    if document.arms:
        public = {
            name: source.choice(one.choices).id for name, one in version.open_questions.items()
        }
        case |= {"arm": version.arm, "public": public, "strata": version.open_answers(public)}
    return case | _reported(version, found, chosen, source)


def _reported(version: SurveyDocument, found: Plans, chosen: Answer, source: Random) -> Case:
    """Return the rest of the random bits, and the symbols that they give."""
    rest, symbols = Recorded(source.getrandbits), []
    for block in version.blocks:
        mechanism: Any = block.mechanism
        truth, bits = chosen.row(block), in_pieces(rest)
        symbol = (
            mechanism.answer(truth, found[block.id], bits)
            if block.asks_drawn
            else mechanism.sample(truth, bits)
        )
        symbols.append(mechanism.symbol_json(symbol))
    return {"rest": rest.draws, "y": symbols}


def _written(found: Plans) -> Case:
    return {name: [plan.component, list(plan.parts)] for name, plan in found.items()}


def _answers(document: SurveyDocument) -> Iterator[Case]:
    """Yield partial answers for each of the questions drawn, and what a device makes of them."""
    planning, whole = Planning(document), [given for given, _ in (*SETTLED, *UNSETTLED)]
    for number in range(len(QUESTIONS)):
        found = {"form": Plan(number, (number,))}
        needed = planning.needed(found)
        source = Random(number)
        every = [one for one in whole if isinstance(one, dict)]
        for given in source.sample(every, 8):
            names = {name for one in needed.values() for name in (one.id, one.box and one.box.of)}
            kept = {name: value for name, value in given.items() if name in names}
            cut = {name: value for name, value in given.items() if source.random() < 0.6}
            for passed in (given, kept, cut):
                yield {"plan": _written(found), "given": passed} | _fitting(
                    passed, document, planning, found
                )


def _fitting(given: Any, document: SurveyDocument, planning: Planning, found: Any) -> Case:
    settled = Answer(given).settled(document.questions, partial=True)
    fit = settled.only(planning.needed(found)) if isinstance(settled, Answer) else settled
    if isinstance(fit, UnknownChoice):
        return {"chosen": None, "code": fit.code, "field": fit.field}
    return {"chosen": dict(fit.revealed()), "code": None, "field": None}
