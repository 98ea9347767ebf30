# SPDX-License-Identifier: Apache-2.0
"""Arms (spec 3.10): which are accepted, how one is drawn, and the level of a report that names it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from frankly_protocol.arms import BITS, Arm, Arms
from frankly_protocol.audit import largest_level, report_level
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.questions import Anchor, AskIf, Choice
from frankly_protocol.report import Report

from tests.frankly_protocol.samples import (
    armed,
    dp_block,
    in_strata,
    ldp_block,
    lip_block,
    put,
    question,
    survey,
    with_item,
)
from tests.narrowing import present

DOCUMENT = armed()


def arms_of(*arms: tuple[str, int, tuple[str, ...]]) -> Arms:
    return Arms("arm", tuple(Arm(name, chance, (), blocks) for name, chance, blocks in arms))


def test_a_document_with_arms_is_read_as_it_was_written() -> None:
    assert SurveyDocument.parse(DOCUMENT.payload()) == DOCUMENT
    assert b'"arms"' not in survey().payload()


def test_a_view_is_the_document_with_what_its_arm_asks() -> None:
    views = DOCUMENT.views
    assert list(views) == ["clear", "strong", "weak"]
    asked = {name: [*view.open_questions, *view.questions] for name, view in views.items()}
    assert asked == {
        "clear": ["affair", "region"],
        "strong": ["region", "affair"],
        "weak": ["region", "work", "affair"],
    }
    assert [block.id for block in views["weak"].blocks] == ["work", "weak"]
    for view in views.values():
        assert (view.digest, view.payload()) == (DOCUMENT.digest, DOCUMENT.payload())
        assert view.report_length == DOCUMENT.report_length
        assert view.versions == (view,)
    assert len({DOCUMENT.key, *(view.key for view in views.values())}) == 4
    assert survey().versions == (survey(),)


def test_a_document_shows_its_id_version_arm_size_and_digest() -> None:
    document = armed()
    digest = document.digest[: len("sha256:") + 12]
    start = f"<SurveyDocument {document.survey}, version 1"
    assert repr(document) == f"{start}: 2 questions, {digest}…>"
    assert repr(document.views["strong"]) == f"{start}, arm strong: 1 question, {digest}…>"


def test_reports_of_all_arms_have_one_length() -> None:
    lengths = []
    for view in DOCUMENT.views.values():
        symbols = tuple(block.mechanism.longest_symbol_json() for block in view.blocks)
        longest = {q.id: max((c.id for c in q.choices), key=len) for q in view.strata}
        strata = view.open_answers(longest)
        report = Report(DOCUMENT.digest, "0" * 32, symbols, strata)
        assert len(report.to_bytes(DOCUMENT.report_length)) == DOCUMENT.report_length
        lengths.append(len(report.to_bytes(0)))
    assert max(lengths) == DOCUMENT.report_length > min(lengths)


def test_a_report_names_its_arm() -> None:
    assert present(DOCUMENT.version_of({"arm": "weak"})).arm == "weak"
    assert DOCUMENT.version_of({}) is None
    assert DOCUMENT.version_of({"arm": "other"}) is None
    assert present(survey().version_of({})).arm is None
    assert DOCUMENT.open_values["arm"] == ("clear", "strong", "weak")
    view = DOCUMENT.views["strong"]
    assert view.open_values["arm"] == ("strong",)
    assert view.open_answers({"region": "north"}) == {"region": "north", "arm": "strong"}


def test_every_arm_is_drawn_with_its_chance() -> None:
    arms = Arms("arm", tuple(Arm(n, c, (), (n,)) for n, c in (("a", 1), ("b", 65_534), ("c", 1))))
    for one in (present(DOCUMENT.arms), arms):
        drawn = [one.draw(lambda bits, n=n: n) for n in range(1 << BITS)]
        assert {name: drawn.count(name) for name in one.ids} == {a.id: a.chance for a in one.arms}
        assert sum(arm.share for arm in one.arms) == 1


FIRST = "arms.arms.0"
REFUSED: list[tuple[str, Any, str]] = [
    ("arms", None, "arms"),
    ("arms", [], "arms"),
    ("arms.id", "Arm", "arms.id"),
    ("arms.note", "x", "arms.note"),
    ("arms.arms", [], "arms.arms"),
    ("arms.arms.1", ..., "arms.arms"),
    (f"{FIRST}.chance", 0, "arms.arms[0].chance"),
    (f"{FIRST}.chance", 65_536, "arms.arms[0].chance"),
    (f"{FIRST}.chance", True, "arms.arms[0].chance"),
    (f"{FIRST}.chance", (1 << 14) + 1, "arms.arms"),
    (f"{FIRST}.id", "weak", "arms.arms"),
    (f"{FIRST}.strata", ["strong"], "arms.arms[0].strata"),
    (f"{FIRST}.strata", ["region", "region"], "arms.arms[0].strata"),
    (f"{FIRST}.strata", None, "arms.arms[0].strata"),
    (f"{FIRST}.strata", ..., "arms.arms[0].strata"),
    (f"{FIRST}.strata", [], "arms.arms[0].blocks"),
    (f"{FIRST}.blocks", ["affair"], "arms.arms[0].blocks"),
    (f"{FIRST}.blocks", ["work", "work"], "arms.arms[0].blocks"),
    (f"{FIRST}.strata", ["region"], "arms.arms"),
    ("arms.arms.1.blocks", [], "arms.arms"),
    ("strata.1.id", "affair", "arms.arms[0].strata"),
    ("arms.id", "region", "blocks"),
    ("arms.id", "work", "blocks"),
    ("arms.arms.1.blocks", ["strong", "weak"], "blocks"),
    (f"{FIRST}.blocks", ["strong"], "blocks"),
]


@pytest.mark.parametrize(("path", "value", "name"), REFUSED)
def test_arms_that_are_none_are_refused(path: str, value: Any, name: str) -> None:
    body = json.loads(DOCUMENT.payload())
    put(path, value)(body)
    with pytest.raises(DocumentRejected) as refused:
        SurveyDocument.parse(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
    assert (refused.value.reason, refused.value.field) == ("schema", name)


def test_public_questions_have_one_id_each() -> None:
    twice = (*DOCUMENT.strata, question("affair", "a", "b"))
    with pytest.raises(DocumentRejected) as refused:
        replace(DOCUMENT, strata=twice)
    assert refused.value.field == "strata"


def of_block(change: Callable[[Block], Block]) -> SurveyDocument:
    """Return the document with its last block, the first of the arm "weak", changed."""
    *others, last = DOCUMENT.blocks
    return replace(DOCUMENT, blocks=(*others, change(last)))


def after_affair(block: Block) -> Block:
    choice = Choice("none", {"en": "-"}, role="not_applicable")
    asked = replace(block.questions[0], ask_if=AskIf("affair", ("yes",)))
    return replace(block, questions=(replace(asked, choices=(asked.choices[0], choice)),))


def repeated(block: Block) -> Block:
    return replace(block, questions=(replace(block.questions[0], anchor=Anchor(repeats="affair")),))


@pytest.mark.parametrize("change", [after_affair, repeated])
def test_rules_look_at_earlier_questions_of_their_own_arm(change: Callable[[Block], Block]) -> None:
    with pytest.raises(DocumentRejected) as refused:
        of_block(change)
    assert refused.value.field == "work"
    # In the other order it is an earlier question, whatever the order of the document.
    *others, weak = present(DOCUMENT.arms).arms
    turned = Arms("arm", (*others, replace(weak, blocks=weak.blocks[::-1])))
    *blocks, last = DOCUMENT.blocks
    accepted = replace(DOCUMENT, arms=turned, blocks=(*blocks, change(last)))
    assert list(accepted.views["weak"].questions) == ["affair", "work"]


def test_priors_have_a_table_for_each_stratum_of_their_arm() -> None:
    document = in_strata(((60, 40), (50, 50)), ((30, 20), (10, 40)))
    blocks = (ldp_block("work"), *document.blocks)
    with_region = Arm("a", 1 << 15, ("region",), (blocks[1].id,))
    without = Arm("b", 1 << 15, (), ("work",))
    arms = Arms("arm", (with_region, without))
    assert replace(document, blocks=blocks, arms=arms).views["a"].strata
    with pytest.raises(DocumentRejected) as refused:
        # The arm with the prior has no public question, so two tables are too many.
        arms = Arms("arm", (replace(with_region, strata=()), replace(without, strata=("region",))))
        replace(document, blocks=blocks, arms=arms)
    assert refused.value.field == "blocks[1].claims[0].prior.tables"


def test_an_item_is_in_every_arm_and_beside_no_prior() -> None:
    document = with_item(replace(survey(ldp_block(), ldp_block("work")), strata=()))
    arms = arms_of(("a", 1 << 15, ("affair",)), ("b", 1 << 15, ("work",)))
    views = replace(document, arms=arms).views.values()
    assert [list(view.open_questions) for view in views] == [["check"], ["check"]]
    with pytest.raises(DocumentRejected) as refused:
        arms = arms_of(("a", 1 << 15, ("affair",)), ("b", 1 << 15, ("marriage",)))
        replace(document, blocks=(ldp_block(), lip_block()), arms=arms)
    assert refused.value.field == "instructed"


def law(document: SurveyDocument, truth: dict[str, int]) -> Iterator[tuple[Any, Fraction]]:
    """Yield every report without its public answers, with its chance; tables only."""
    for arm in present(document.arms).arms:
        view, rows = document.views[arm.id], []
        for block in view.blocks:
            mechanism: Any = block.mechanism
            row = mechanism.weights[truth[block.questions[0].id]]
            rows.append([Fraction(w, mechanism.denominator) for w in row])
        for symbols in product(*(range(len(row)) for row in rows)):
            chance = arm.share
            for row, symbol in zip(rows, symbols, strict=True):
                chance *= row[symbol]
            yield (arm.id, symbols), chance


def test_the_level_of_the_document_is_the_largest_ratio_of_its_reports() -> None:
    """Enumerated: the arm is public and drawn with the same chances whatever the answers."""
    answers = [{"affair": a, "work": w} for a, w in product(range(2), repeat=2)]
    laws = [dict(law(DOCUMENT, truth)) for truth in answers]
    assert all(sum(one.values()) == 1 for one in laws)
    ratios = [
        first[report] / second[report] for first in laws for second in laws for report in first
    ]
    level = DOCUMENT.report_level
    assert max(ratios) == level.cost.odds == level.ceiling == level.answers.odds
    views = [report_level(view) for view in DOCUMENT.views.values()]
    assert level.cost.odds == max(present(one.cost.odds) for one in views)
    assert views[0].cost.odds == 1
    assert [line.block for line in level.lines] == ["strong", "work", "weak"]


def test_a_secret_counts_in_every_arm_whether_or_not_it_promises_something() -> None:
    blocks = (lip_block(), ldp_block("work", "4"))
    arms = arms_of(("a", 1 << 15, ("marriage",)), ("b", 1 << 15, ("work",)))
    level = replace(survey(*blocks), arms=arms).report_level
    promised, other = (report_level(survey(block)) for block in blocks)
    assert promised.secrets["affair"].odds is not None
    assert level.secrets["affair"].odds == other.cost.odds
    assert level.secrets["affair"].counted is None
    assert level.cost.odds is None
    assert level.ceiling is None


def test_delta_is_the_largest_of_the_arms_not_their_sum() -> None:
    blocks = (dp_block("affair"), dp_block("work", delta=Fraction(1, 1 << 10)))
    arms = arms_of(("a", 1 << 15, ("affair",)), ("b", 1 << 15, ("work",)))
    document = replace(survey(*blocks), arms=arms)
    levels = [report_level(view, Fraction(1, 2)) for view in document.views.values()]
    assert largest_level(document.versions, Fraction(1, 2)).cost.delta == max(
        one.cost.delta for one in levels
    )


def test_every_promise_of_every_arm_is_verified() -> None:
    DOCUMENT.require_private()
    wrong = replace(DOCUMENT.blocks[1], promises=DOCUMENT.blocks[0].promises)
    with pytest.raises(DocumentRejected) as refused:
        replace(DOCUMENT, blocks=(DOCUMENT.blocks[0], wrong, DOCUMENT.blocks[2])).require_private()
    assert refused.value.field == "blocks[1].claims[0].level"


def test_tables_for_strata_are_only_in_arms_with_these_strata() -> None:
    """With other questions of as many answers they would be believed of the wrong groups."""
    document = in_strata(((60, 40), (50, 50)), ((30, 20), (10, 40)))
    (block,) = document.blocks
    sex = question("sex", "f", "m")
    of_region, of_sex = (
        Arm(name, 1 << 15, (strata,), (block.id,))
        for name, strata in (("a", "region"), ("b", "sex"))
    )
    with pytest.raises(DocumentRejected) as refused:
        replace(document, strata=(*document.strata, sex), arms=Arms("arm", (of_region, of_sex)))
    assert refused.value.field == "blocks[0].claims[0].prior.tables"
    same = Arms("arm", (of_region, replace(of_sex, strata=("region",))))
    assert len(replace(document, arms=same).views) == 2


def test_a_block_in_no_arm_is_refused_even_under_the_id_of_a_public_question() -> None:
    block = replace(ldp_block("other"), id="affair")
    with pytest.raises(DocumentRejected) as refused:
        replace(DOCUMENT, blocks=(*DOCUMENT.blocks, block))
    assert refused.value.field == "arms.arms"
