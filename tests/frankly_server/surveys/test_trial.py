# SPDX-License-Identifier: Apache-2.0
"""Trying a draft: what is shown is a report the server would take, drawn by the mechanism a device draws with."""

import json
from collections import Counter
from fractions import Fraction

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.report import Report
from frankly_server.surveys import editing
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.protecting import Protection, protect
from frankly_server.surveys.trial import drafted, everybody, rehearse

from tests.frankly_server.web.site import NOW, Site

HERE = "https://example.org"


def draft(mechanism: str = "optimal") -> editing.Draft:
    made = editing.new_draft("Life", "life", "en", "Ill?", ["No", "Yes"])
    made = protect(made, "ill", Protection("1.5", mechanism=mechanism))
    return editing.add_question(made, "Where?", ["North", "South"], public=True)


@pytest.mark.parametrize("mechanism", ["optimal", "grr", "oue", "subset-selection"])
def test_what_would_leave_is_a_report_of_the_survey(mechanism: str) -> None:
    document = drafted(parse_value(draft(mechanism)), NOW, HERE)
    found = rehearse(document, {"ill": "yes", "where": "south"})
    report = Report.from_bytes(found.report.encode().ljust(found.length))
    assert (report.doc, report.strata, report.token) == (document.digest, {"where": "south"}, None)
    assert found.length == document.report_length
    for block, sent, symbol in zip(document.blocks, found.sent, report.symbols, strict=True):
        inside = block.mechanism.check_symbol(symbol)
        assert sent.chance == block.mechanism.probability(inside, 1)  # type: ignore[arg-type]
        assert sent.least <= sent.chance <= sent.most
        assert sent.most <= sent.least * Fraction("4.4817")  # e^1.5, rounded up


def test_the_draw_is_the_mechanism_s_own() -> None:
    """Enumerated: of 64 evenly spread draws as many give each symbol as its weight says."""
    document = drafted(parse_value(draft()), NOW, HERE)
    mechanism = document.blocks[0].mechanism
    told: Counter[int] = Counter()
    for i in range(64):
        found = rehearse(document, {"ill": "no", "where": "north"}, lambda bits, i=i: (i << bits) // 64)  # type: ignore[misc]
        told[json.loads(found.report)["y"][0]] += 1
    for y in range(2):
        assert abs(told[y] - 64 * mechanism.probability(y, 0)) <= 1  # type: ignore[arg-type]


def test_a_rehearsal_keeps_nothing(site: Site) -> None:
    before = site.services.intake.refusals(site.survey), site.services.log.audit(site.survey)
    definition = site.services.surveys.draft(site.survey)
    rehearse(drafted(definition, NOW, HERE), {"smokes": "yes", "drinks": "never", "region": "north"})
    assert (site.services.intake.refusals(site.survey), site.services.log.audit(site.survey)) == before


@pytest.mark.parametrize("answers", [{}, {"ill": "yes"}, {"ill": "perhaps", "where": "north"}, {"where": "north"}])
def test_a_question_without_an_answer_is_named_and_the_answer_not_repeated(answers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        rehearse(drafted(parse_value(draft()), NOW, HERE), answers)
    assert refused.value.field in ("ill", "where")
    assert "perhaps" not in refused.value.detail


@pytest.mark.parametrize("mechanism", ["optimal", "grr", "oue", "subset-selection"])
def test_a_thousand_equal_answers_are_told_within_their_worst_case(mechanism: str) -> None:
    block = drafted(parse_value(draft(mechanism)), NOW, HERE).blocks[0]
    found = everybody(block, 1)
    assert found.n == 1000
    for x, share in enumerate(found.unbiased):
        reach = found.margins.hoeffding[x]
        assert share is not None
        assert reach is not None
        assert abs(share - (x == 1)) <= 2 * reach  # Hoeffding's twice over: false once in millions
