# SPDX-License-Identifier: Apache-2.0
"""What is asked (spec 3.7 and 3.10): drawn once from the given bits, stored, and what the report is about."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.asking import Asking
from frankly_protocol.documents import SurveyDocument
from frankly_sdk.answer import Answer

from tests.conformance.conftest import Install
from tests.conformance.site import BAD_INPUT, INTEGRITY, REFUSED
from tests.frankly_protocol.samples import put, sealed
from tests.vectors import make
from tests.vectors.from_numbers import in_pieces

VECTORS = json.loads((make.HERE / "plans.json").read_text("ascii"))
DOCUMENTS = {case["name"]: case["payload"] for case in VECTORS["documents"]}


def shown(install: Install, name: str) -> SurveyDocument:
    """Show a document of the vectors with this site's address for reports, and open it."""
    sample = SurveyDocument.parse(DOCUMENTS[name].encode())
    made = install.site.make()
    document = install.site.show(replace(sample, collect_url=made.collect_url))
    # One of the documents has a ceiling that is infinite.
    install.init(cap="64", final_surveys=[document.survey])
    return document


class Draw:
    """A device's draw for answers to every question: its bits, its arm, its questions and its symbols."""

    def __init__(self, document: SurveyDocument, seed: int) -> None:
        source, self._bits = Random(seed), list[list[Any]]()

        def read(size: int) -> int:
            value = source.getrandbits(size)
            self._bits.append([size, f"{value:x}"])
            return value

        view = document.views[document.arms.draw(read)] if document.arms else document
        self.given = {
            one.id: "no" if one.box else source.choice(one.choices).id
            for one in view.questions.values()
        }
        self.public = {
            one.id: source.choice(one.choices).id for one in view.open_questions.values()
        }
        asking = Asking(view.blocks)
        plans = {block.id: mechanism.plan(read) for block, mechanism in asking.forms}
        self.bits_of_plan, self._bits = self._bits, []
        self.arm = {} if view.arm is None else {"arm": view.arm}
        self.questions = [one.id for one in asking.asked(plans)]
        self.strata = view.open_answers(self.public)
        settled = Answer(self.given).settled(view.questions)
        assert isinstance(settled, Answer)
        self.symbols = []
        for block in view.blocks:
            mechanism: Any = block.mechanism
            plan = [plans[block.id]] if block.id in plans else []
            draw = mechanism.answer if plan else mechanism.sample
            symbol = draw(settled.row(block), *plan, in_pieces(read))
            self.symbols.append(mechanism.symbol_json(symbol))
        read(128)  # the report's id
        self.rest = self._bits

    def require_in(self, report: bytes, document: SurveyDocument) -> None:
        """Assert that a report has these symbols and public answers, and the document's length."""
        body = json.loads(report)
        assert (body["y"], body["strata"]) == (self.symbols, self.strata)
        assert len(report) == document.report_length


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("seed", range(3))
def test_bits_give_the_plan_and_its_report(install: Install, name: str, seed: int) -> None:
    document = shown(install, name)
    draw = Draw(document, seed)
    planned = install.plan(bits=draw.bits_of_plan)
    assert (planned.status, planned.body["questions"]) == (0, draw.questions)
    assert {"arm": planned.body.get("arm")} == {"arm": None} | draw.arm
    assert install.site.posted == []
    # A second draw would need bits.
    assert install.plan(bits=[]).body == planned.body
    given = {name: draw.given[name] for name in draw.questions}
    answered = install.answer(given, strata=draw.public, bits=draw.rest)
    assert answered.body == {"status": "sent", "code": "accepted"}
    (sent,) = install.site.posted
    draw.require_in(sent, document)
    again = install.plan()
    assert (again.status, again.code) == (REFUSED, "already_answered")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_without_an_earlier_plan_all_plans_are_drawn_first(install: Install, name: str) -> None:
    document = shown(install, name)
    draw = Draw(document, 7)
    bits = [*draw.bits_of_plan, *draw.rest]
    answered = install.answer(draw.given, strata=draw.public, bits=bits)
    assert answered.body == {"status": "sent", "code": "accepted"}
    (sent,) = install.site.posted
    draw.require_in(sent, document)


@pytest.mark.parametrize("case", VECTORS["plans"])
def test_bits_give_the_plans_of_the_vectors(install: Install, case: dict[str, Any]) -> None:
    shown(install, case["document"])
    (numbers,) = [one for one in VECTORS["documents"] if one["name"] == case["document"]]
    expected = {"questions": case["questions"], "asked": case["asked"], "of": numbers.get("of")}
    if "arm" in case:
        expected |= {"arm": case["arm"], "of": numbers["arms"][case["arm"]]["of"]}
    assert install.plan(bits=case["bits"]).body == expected


def test_without_random_bits_there_is_no_plan(install: Install) -> None:
    shown(install, "rules and boxes")
    outcome = install.plan(bits=[])
    assert (outcome.status, outcome.code) == (INTEGRITY, "randomness")
    assert install.plan().status == 0


def test_a_respondent_without_the_budget_has_no_plan(install: Install) -> None:
    shown(install, "rules and boxes")
    install.init(cap="64")
    assert install.plan().status == 0
    install.init(cap="0.5")
    assert (install.plan().status, install.plan().code) == (REFUSED, "policy_cap")


# The commands refuse fractions and large numbers before they look at a question.
REFUSALS = [
    case
    for case in VECTORS["answers"]
    if case["code"] and not any(type(v) is float or v == 2**53 for v in case["given"].values())
]


@pytest.mark.parametrize("case", REFUSALS[::5])
def test_answers_that_do_not_fit_the_plan_are_refused(
    install: Install, case: dict[str, Any]
) -> None:
    document = shown(install, "rules and boxes")
    [[component, _]] = case["plan"].values()
    mechanism: Any = document.blocks[0].mechanism
    first = sum(one.chance for one in mechanism.components[:component])
    assert install.plan(bits=[[48, f"{first:x}"]]).status == 0
    outcome = install.answer(case["given"])
    assert (outcome.status, outcome.code) == (BAD_INPUT, "unknown_choice")
    assert outcome.body.get("field") == case["field"]
    assert install.site.posted == []


@pytest.mark.parametrize("case", VECTORS["faults"])
def test_faults_of_what_is_asked_are_refused(install: Install, case: dict[str, Any]) -> None:
    body = json.loads(shown(install, case["document"]).payload())
    put(case["path"], case["value"])(body)
    install.site.envelope = sealed(canonical.dumps(body))
    install.init(pin=False, allow_unpinned=True)
    outcome = install.refresh()
    assert (outcome.status, outcome.code) == (INTEGRITY, case["code"])
