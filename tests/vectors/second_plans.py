# SPDX-License-Identifier: Apache-2.0
"""Second implementation of what a device asks, written only from docs/spec/1-mechanisms.md (1.10) and
docs/spec/3-documents.md (3.5, 3.7)."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

from tests.vectors import second_answers, second_numbers
from tests.vectors.second_bytes import Refused

Plan = list[Any]
"""The component and the list of parts."""
Document = dict[str, Any]


def forms(document: Document) -> list[Document]:
    """Return the blocks whose `ask` is drawn."""
    return [block for block in document["blocks"] if block.get("ask") == "drawn"]


def drawn(document: Document, bits: second_numbers.Bits) -> dict[str, Plan]:
    """Draw a plan for each form, in the order of the document."""
    found = {}
    for block in forms(document):
        component = second_numbers.component(block, bits)
        pools = block["components"][component]["pools"]
        parts = [part for pool in pools for part in second_numbers.picked(pool, bits)]
        found[block["id"]] = [component, parts]
    return found


def every_plan(document: Document) -> Iterator[tuple[dict[str, Plan], Fraction]]:
    """Yield every combination of plans with its chance."""
    lists = []
    for block in forms(document):
        plans = []
        for number, component in enumerate(block["components"]):
            picks = [list(combinations(p["parts"], p["pick"])) for p in component["pools"]]
            chance = Fraction(component["chance"], 2 ** block["bits"] * prod(map(len, picks)))
            plans += [
                ([number, [i for pick in one for i in pick]], chance) for one in product(*picks)
            ]
        lists.append(plans)
    for chosen in product(*lists):
        names = [block["id"] for block in forms(document)]
        yield (
            {name: plan for name, (plan, _) in zip(names, chosen, strict=True)},
            prod((chance for _, chance in chosen), start=Fraction(1)),
        )


def asked(document: Document, plans: dict[str, Plan]) -> list[str]:
    """Return the ids of the questions asked, in the order of the document."""
    every = [question for block in document["blocks"] for question in block["questions"]]
    needed = {q["id"] for b in document["blocks"] if "ask" not in b for q in b["questions"]}
    for block in forms(document):
        for part in plans[block["id"]][1]:
            needed |= {block["questions"][i]["id"] for i in block["parts"][part]}
    before: set[str] = set()
    while before != needed:
        before = set(needed)
        needed |= {q["ask_if"]["question"] for q in every if q["id"] in before and "ask_if" in q}
        boxes = {q["box"]["of"] for q in every if q["id"] in before and "box" in q}
        needed |= {q["id"] for q in every if "box" in q and q["box"]["of"] in boxes}
    return [question["id"] for question in every if question["id"] in needed]


def groups(document: Document, names: list[str]) -> set[str]:
    """Return the questions as a person counts them."""
    every = [question for block in document["blocks"] for question in block["questions"]]
    return {q.get("box", {"of": q["id"]})["of"] for q in every if q["id"] in names}


def fitting(given: dict[str, Any], document: Document, plans: dict[str, Plan]) -> dict[str, str]:
    """Return the choices of the questions asked. Raises Refused with the question's id or ""."""
    every = [question for block in document["blocks"] for question in block["questions"]]
    passed = [q for q in every if {q["id"], q.get("box", {"of": q["id"]})["of"]} & set(given)]
    # Everything that is passed is checked; what is missing does not matter yet, so that a rule about
    # a question without an answer has no effect.
    known = {q["id"] for q in passed}
    checked: list[dict[str, Any]] = []
    for question in every:
        rule = question.get("ask_if")
        is_skipped = rule is not None and rule["question"] in known
        if question["id"] in known or (is_skipped and _skips(rule, given, checked)):
            known.add(question["id"])
            bare = {name: value for name, value in question.items() if name != "ask_if"}
            checked.append(question if is_skipped else bare)
    chosen = second_answers.settled(given, checked)
    names = asked(document, plans)
    for name in names:
        if name not in chosen:
            raise Refused(name)
    return {name: chosen[name] for name in names}


def _skips(rule: dict[str, Any], given: dict[str, Any], checked: list[dict[str, Any]]) -> bool:
    """Return True if the answers to the questions before a rule's let it skip."""
    earlier = {name: value for name, value in given.items() if _is_of(name, checked)}
    return second_answers.settled(earlier, checked)[rule["question"]] not in rule["choices"]


def _is_of(name: str, questions: list[dict[str, Any]]) -> bool:
    return any(name in (q["id"], q.get("box", {}).get("of")) for q in questions)


def symbols(
    document: Document, plans: dict[str, Plan], chosen: dict[str, str], bits: second_numbers.Bits
) -> list[Any]:
    """Draw the symbols of a report with given plans."""
    found = []
    for block in document["blocks"]:
        places = {
            i: [choice["id"] for choice in question["choices"]].index(chosen[question["id"]])
            for i, question in enumerate(block["questions"])
            if question["id"] in chosen
        }
        if block.get("ask") == "drawn":
            found.append(second_numbers.planned(block, plans[block["id"]], places, bits))
        elif block["kind"] == "agreement":
            found.append(second_numbers.symbol(block, places, bits))
        else:
            (place,) = places.values()
            found.append(second_numbers.symbol(block, place, bits))
    return found
