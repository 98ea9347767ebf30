# SPDX-License-Identifier: Apache-2.0
"""Arms of survey files: chances, what each asks, and what arms give to promises on a prior."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest
from frankly_protocol.audit import report_level
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.surveys.arms_definition import arms_of
from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.live import without_result
from frankly_server.surveys.summary import summary_of
from frankly_server.surveys.trial import drafted, rehearse

from tests.contract.test_arms import FILE

NOW = datetime(2026, 6, 1, tzinfo=UTC)
URL = "https://collect.example"


def shares(*written: str) -> list[int]:
    """Return the chances of arms with these shares, with a block each."""
    blocks = "".join(
        f'  - {{id: b{i}, notion: ldp, epsilon: "1", questions: [{{id: q, type: yes-no, text: {{en: Q?}}}}]}}\n'
        for i, _ in enumerate(written)
    )
    arms = "".join(
        f"  - {{id: a{i}, share: {share}, blocks: [b{i}]}}\n" for i, share in enumerate(written)
    )
    text = (
        'name: x\ntitle: {en: X}\nlanguages: [en]\nbudget: "1"\naccept_small_cells: true\n'
        f"blocks:\n{blocks}arms:\n{arms}"
    )
    found = arms_of(parse_definition(text.encode()))
    assert found is not None
    return [arm.chance for arm in found.arms]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (("1", "1"), [32768, 32768]),
        (("1", "3"), [16384, 49152]),
        (("1", "1", "1"), [21846, 21845, 21845]),
        (("0.001", "1000"), [1, 65535]),
        (("0.2", "0.3", "0.5"), [13107, 19661, 32768]),
        (("1",) * 8, [8192] * 8),
    ],
)
def test_shares_become_chances_that_sum_to_all(
    written: tuple[str, ...], expected: list[int]
) -> None:
    found = shares(*written)
    assert sum(found) == 65536
    whole = sum(Fraction(one) for one in written)
    for chance, share in zip(found, written, strict=True):
        assert abs(chance - Fraction(share) / whole * 65536) <= 1.5
    assert found == pytest.approx(expected, abs=1)


def definition() -> SurveyDefinition:
    return parse_definition(FILE)


def test_what_no_arm_names_is_asked_in_all_of_them() -> None:
    document = drafted(definition(), NOW, URL)
    asked = {
        name: ([q.id for q in view.strata], [block.id for block in view.blocks])
        for name, view in document.views.items()
    }
    assert asked == {
        "clear": (["region", "paid"], ["cars"]),
        "weak": (["region"], ["cars", "weak"]),
        "strong": (["region"], ["cars", "strong"]),
    }


LIP = """\
  - id: {name}
    notion: lip
    epsilon: "0.5"
    prior: {{secret: ill, secrets: ["no", "yes"], source: "a table", joint: {joint}}}
    questions: [{{id: {name}, type: yes-no, text: {{en: "{name}?"}}}}]
"""
TWO = (
    'name: two\ntitle: {en: Two}\nlanguages: [en]\nbudget: "1.1"\nblocks:\n'
    + LIP.format(name="drinks", joint="[[60, 20], [10, 10]]")
    + LIP.format(name="smokes", joint="[[50, 30], [5, 15]]")
)
ARMS = "arms:\n  - {id: a, blocks: [drinks]}\n  - {id: b, blocks: [smokes]}\n"


def test_arms_let_every_promise_on_a_prior_count() -> None:
    """In one report only one such promise counts; with arms each report has one, and asks no more."""
    with pytest.raises(InvalidInput) as refused:
        drafted(parse_definition(TWO.encode()), NOW, URL)
    assert refused.value.problem is Problem.BUDGET_EXCEEDED
    document = drafted(parse_definition((TWO + ARMS).encode()), NOW, URL)
    for name, asked in (("a", ["drinks"]), ("b", ["smokes"])):
        view = document.views[name]
        assert list(view.questions) == asked
        assert report_level(view).secrets["ill"].counted == asked[0]
    largest = max(
        report_level(view).secrets["ill"].odds or Fraction(0) for view in document.views.values()
    )
    assert document.report_level.secrets["ill"].odds == largest


def test_the_summary_counts_each_arms_answers() -> None:
    document = drafted(definition(), NOW, URL)
    summary = summary_of(document, 1000)
    about = {row.text: row.about for row in summary.rows}
    assert about == {
        "Do you have a car?": 1000,
        "Paid cash? (arm clear)": 250,
        "Did you pay anybody in cash? (arm weak)": 250,
        "Did you pay in cash? (arm strong)": 500,
    }
    assert [name.split(",")[0] for name, _ in summary.reads] == [
        "Arm clear",
        "Arm weak",
        "Arm strong",
    ]
    assert len(summary.arms) == 3
    # Cells of the region in each arm; the clear answer divides none.
    assert "About 6 are expected to wait" in " ".join(summary.results)
    (few,) = without_result(document, 60)
    assert "“Paid cash? (arm clear)” (15)" in few
    assert "Do you have a car?" not in few


def test_a_trial_report_is_of_one_arm() -> None:
    document = drafted(definition(), NOW, URL)
    answers = {"paid": "yes", "car": "no", "region": "n"}
    for number, arm in ((0, "clear"), (16384, "weak"), (40000, "strong")):
        first = iter([number])
        report = rehearse(document, answers, lambda bits, first=first: next(first, 0) % (1 << bits))
        assert f'"arm":"{arm}"' in report.report
