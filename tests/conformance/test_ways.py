# SPDX-License-Identifier: Apache-2.0
"""Ways of answering (spec 3.5): the device turns boxes, numbers and rules into choices."""

import json
from random import Random
from typing import Any

import pytest

from tests.conformance.conftest import Install
from tests.conformance.site import BAD_INPUT
from tests.frankly_protocol.asked import QUESTIONS, SETTLED, UNSETTLED, form
from tests.vectors.from_numbers import in_pieces


@pytest.mark.parametrize(("given", "choices"), SETTLED)
def test_the_draw_equals_that_of_the_choices_derived_from_answers(
    install: Install, given: dict[str, Any], choices: tuple[str, ...]
) -> None:
    random, bits = Random(31), []

    def read(size: int) -> int:
        value = random.getrandbits(size)
        bits.append([size, f"{value:x}"])
        return value

    block = form(*QUESTIONS)
    document = install.site.show(install.site.make(block))
    chosen = dict(zip((one.id for one in QUESTIONS), choices, strict=True))
    symbol = block.mechanism.sample(block.truth(chosen), in_pieces(read))  # type: ignore[arg-type]
    read(128)  # the report's id
    install.init()
    assert install.answer(given, bits=bits).body == {"status": "sent", "code": "accepted"}
    (sent,) = install.site.posted
    assert json.loads(sent)["y"] == [block.mechanism.symbol_json(symbol)]  # type: ignore[arg-type]
    assert len(sent) == document.report_length


# Fractions and numbers of 2^53 or more are left out, because the commands refuse such input.
WHOLE = [
    case
    for case in UNSETTLED
    if not {44.5, 2**53} & {v for v in case[0].values() if type(v) in (int, float)}
]


@pytest.mark.parametrize(("given", "field"), WHOLE)
def test_answers_without_a_choice_are_refused_by_question(
    install: Install, given: dict[str, Any], field: str | None
) -> None:
    install.site.show(install.site.make(form(*QUESTIONS)))
    install.init()
    outcome = install.answer(given)
    assert (outcome.status, outcome.code) == (BAD_INPUT, "unknown_choice")
    assert outcome.body.get("field") == field
    assert "canary" not in outcome.text
    assert install.site.posted == []
