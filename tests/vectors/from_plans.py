# SPDX-License-Identifier: Apache-2.0
"""Vectors of what is asked (docs/spec/3-documents.md, 3.7): plans from random bits, the questions that
they need, answers that fit or are refused, and the report from the bits that are left."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms.agreement import Plan
from frankly_sdk import UnknownChoice
from frankly_sdk._planning import Planning
from frankly_sdk.answer import Answer

from tests.frankly_protocol.asked import QUESTIONS, SETTLED, UNSETTLED, form
from tests.frankly_protocol.every_kind import form_block
from tests.frankly_protocol.samples import ldp_block, survey
from tests.vectors.from_answers import fault
from tests.vectors.from_numbers import Recorded, in_pieces

Case = dict[str, Any]
FAULTS = [
    ("rules and boxes", "blocks.0.ask", "all"),
    ("rules and boxes", "blocks.0.ask", None),
    ("two forms", "blocks.1.ask", ["drawn"]),
    ("pools and joint parts", "blocks.0.ask", "drawn"),
]
"""Edits that are refused at step 4: other values, and a block of another kind."""


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
    }


def plans() -> Case:
    """Return the documents, plans with their reports, and answers to plans."""
    cases = [
        _case(name, document, Random(f"{name} {i}"))
        for name, document in documents().items()
        for i in range(6)
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
    asking = Planning(document).asking
    return {
        "name": name,
        "digest": document.digest,
        "payload": document.payload().decode(),
        "always": sorted(asking.always),
        "mean": asking.mean.as_integer_ratio(),
        "most": asking.most,
        "of": asking.groups,
    }


def _case(name: str, document: SurveyDocument, source: Random) -> Case:
    planning, drawn = Planning(document), Recorded(source.getrandbits)
    found = planning.draw(in_pieces(drawn))
    needed = planning.needed(found)
    # Any choice of any question; the rules then decide what is reported.
    given = {one.id: source.choice(one.choices).id for one in needed.values() if one.box is None}
    given |= {one.id: "no" for one in needed.values() if one.box}
    settled = Answer(given).settled(document.questions, partial=True)
    assert isinstance(settled, Answer)
    chosen = settled.only(needed)
    assert isinstance(chosen, Answer)
    rest, symbols = Recorded(source.getrandbits), []
    for block in document.blocks:
        mechanism: Any = block.mechanism
        truth, bits = chosen.row(block), in_pieces(rest)
        symbol = (
            mechanism.answer(truth, found[block.id], bits)
            if block.asks_drawn
            else mechanism.sample(truth, bits)
        )
        symbols.append(mechanism.symbol_json(symbol))
    return {
        "document": name,
        "bits": drawn.draws,
        "plan": _written(found),
        "questions": list(needed),
        "asked": planning.shown(found).asked,
        "given": given,
        "chosen": dict(chosen.revealed()),
        "rest": rest.draws,
        "y": symbols,
    }


def _written(found: Any) -> Case:
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
