# SPDX-License-Identifier: Apache-2.0
"""Rehearsal of a draft, which shows a report that the mechanism draws and the server would accept."""

import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.tables.limits import Limits
from frankly_protocol.errors import InvalidInput
from frankly_protocol.report import Report
from frankly_server.surveys import drafting, editing, trial
from frankly_server.surveys.definition import BlockDefinition, parse_value
from frankly_server.surveys.drafting import DraftedBlock, draft_block, time_slices
from frankly_server.surveys.protection import Protection, protect
from frankly_server.surveys.trial import drafted, rehearse, simulate

from tests.frankly_server.surveys.drafts import add_question
from tests.frankly_server.web.site import NOW, Site

HERE = "https://example.org"


def draft(mechanism: str = "optimal") -> editing.Draft:
    draft_value = editing.new_draft("Life", "life", "en", "Ill?", ["No", "Yes"])
    draft_value = protect(draft_value, "ill", Protection({"epsilon": "1.5"}, mechanism=mechanism))
    return add_question(draft_value, "Where?", ["North", "South"], public=True)


@pytest.mark.parametrize("mechanism", ["optimal", "grr", "oue", "subset-selection"])
def test_the_rehearsed_report_is_a_report_of_the_survey(mechanism: str) -> None:
    document = drafted(parse_value(draft(mechanism)), NOW, HERE)
    rehearsal = rehearse(document, {"ill": "yes", "where": "south"})
    report = Report.from_bytes(rehearsal.report.encode().ljust(rehearsal.length))
    assert (report.doc, report.strata, report.token) == (document.digest, {"where": "south"}, None)
    assert rehearsal.length == document.report_length
    for block, sent, symbol in zip(document.blocks, rehearsal.sent, report.symbols, strict=True):
        inside = block.mechanism.check_symbol(symbol)
        assert sent.chance == block.mechanism.probability(inside, 1)  # type: ignore[arg-type]
        assert sent.min_chance <= sent.chance <= sent.max_chance
        assert sent.max_chance <= sent.min_chance * Fraction("4.4817")  # e^1.5, rounded up


@pytest.mark.parametrize(("said", "sent"), [("sometimes", "passed"), ("never", "failed")])
def test_a_rehearsed_report_says_whether_the_item_was_passed(said: str, sent: str) -> None:
    value = editing.add_item(draft("grr"), editing.item_words("en"))
    document = drafted(parse_value(value), NOW, HERE)
    answers = {"ill": "yes", "where": "south"}
    for choice in ({}, {"check": "passed"}, {"check": "x"}):
        with pytest.raises(InvalidInput) as refused:
            rehearse(document, answers | choice)
        assert refused.value.field == "check"
    rehearsal = rehearse(document, answers | {"check": said})
    report = Report.from_bytes(rehearsal.report.encode().ljust(rehearsal.length))
    assert report.strata == {"check": sent, "where": "south"}
    assert len(rehearsal.report) <= rehearsal.length


@dataclass
class Watch:
    """A clock that advances by a quarter of a second on every reading."""

    now: float = 100.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


@pytest.mark.parametrize(
    "greedy", [{*range(40)}, {0}, {38, 39}, set()], ids=["all", "first", "last", "none"]
)
def test_a_draft_of_many_blocks_has_one_limit(
    monkeypatch: pytest.MonkeyPatch, greedy: set[int]
) -> None:
    """Blocks that use their whole time slice neither exceed the limit nor starve each other."""
    draft_value = editing.new_draft("Many", "many", "en", "Q0?", ["No", "Yes"])
    for i in range(1, 40):
        draft_value = add_question(draft_value, f"Q{i}?", ["No", "Yes"])
    draft_value["budget"] = "60"
    took: dict[Any, Any] = {}
    watch = Watch()

    def searching(block: BlockDefinition, field: str, limits: Limits) -> DraftedBlock:
        number, began = len(took), watch.now
        while number in greedy and not limits.out_of_time():
            pass
        took[number] = watch.now - began
        return draft_block(block, field, Limits())

    monkeypatch.setattr(drafting, "draft_block", searching)
    began = watch.now
    assert len(drafted(parse_value(draft_value), NOW, HERE, watch).blocks) == 40
    # Each reading of the clock takes 0.25 s; each block reads it twice, and once more if a limit is
    # used up.
    looks = 0.25 * (2 * 40 + 1 + len(greedy))
    assert watch.now - began <= trial.SEARCH_S + looks
    assert all((took[i] > 0) == (i in greedy) for i in range(40))
    if greedy == {0}:
        assert took[0] <= trial.SEARCH_S / 40 + 0.5


def test_blocks_that_need_little_time_leave_it_to_the_others() -> None:
    """Three blocks share 12 s: the first uses 1 s of its 4 s, so 11 s remain for two; the second
    uses all of its 5.5 s."""
    now = [0.0]
    turns = time_slices(lambda: now[0], 12.0, 3)
    for needed, until in ((1.0, 4.0), (5.5, 6.5), (5.5, 12.0)):
        limits = next(turns)
        assert not limits.out_of_time()
        now[0], began = until, now[0]
        assert not limits.out_of_time()
        now[0] = until + 0.01
        assert limits.out_of_time()
        now[0] = began + needed
    assert list(turns) == []


def test_the_draw_equals_that_of_the_mechanism() -> None:
    """Of 64 evenly spaced numbers, each symbol gets the share that equals its probability."""
    document = drafted(parse_value(draft()), NOW, HERE)
    mechanism = document.blocks[0].mechanism
    symbol_counts: Counter[int] = Counter()
    for i in range(64):
        rehearsal = rehearse(
            document, {"ill": "no", "where": "north"}, lambda bits, i=i: (i << bits) // 64
        )
        symbol_counts[json.loads(rehearsal.report)["y"][0]] += 1
    for y in range(2):
        assert abs(symbol_counts[y] - 64 * mechanism.probability(y, 0)) <= 1  # type: ignore[arg-type]


def test_a_rehearsal_stores_nothing(site: Site) -> None:
    before = site.services.intake.refusals(site.survey), site.services.log.audit(site.survey)
    definition = site.services.surveys.draft(site.survey)
    rehearse(
        drafted(definition, NOW, HERE), {"smokes": "yes", "drinks": "never", "region": "north"}
    )
    assert (
        site.services.intake.refusals(site.survey),
        site.services.log.audit(site.survey),
    ) == before


@pytest.mark.parametrize(
    "answers", [{}, {"ill": "yes"}, {"ill": "perhaps", "where": "north"}, {"where": "north"}]
)
def test_a_question_without_an_answer_is_named_and_the_answer_not_repeated(
    answers: dict[str, str],
) -> None:
    with pytest.raises(InvalidInput) as refused:
        rehearse(drafted(parse_value(draft()), NOW, HERE), answers)
    assert refused.value.field in ("ill", "where")
    assert "perhaps" not in refused.value.detail


@pytest.mark.parametrize("mechanism", ["optimal", "grr", "oue", "subset-selection"])
def test_a_thousand_equal_answers_are_estimated_within_their_worst_case(mechanism: str) -> None:
    block = drafted(parse_value(draft(mechanism)), NOW, HERE).blocks[0]
    simulation = simulate(block, 1)
    assert simulation.n == 1000
    for x, share in enumerate(simulation.unbiased):
        error = simulation.worst_case_se[x]
        assert share is not None
        assert error is not None
        assert abs(share - (x == 1)) <= 6 * error  # fails once in 10^8
