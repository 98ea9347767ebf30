# SPDX-License-Identifier: Apache-2.0
"""What a correction by anchors costs: the largest factor of the standard error, searched for."""

from dataclasses import replace
from math import ceil, sqrt
from pathlib import Path

import numpy as np
import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_protocol.questions import Anchor
from frankly_server.surveys.correction import correction_factor, correction_in_words
from frankly_server.surveys.preview import stated_of, wanted_plan
from frankly_server.surveys.summary import summary_of

from tests.frankly_design.kinds.test_parts import form_block
from tests.frankly_server.analysis.samples import block_about, document_of, grr, law, question

NOBODY, TWELFTH, QUARTER = Anchor((1, 0), "a"), Anchor((11, 1), "b"), Anchor((3, 1), "c")


def beside(mechanism: DenseMechanism, *anchors: tuple[DenseMechanism, Anchor]) -> SurveyDocument:
    """Return a document about one question and anchors, a block each."""
    blocks = [block_about(mechanism, question("q", mechanism.answers))]
    for i, (table, anchor) in enumerate(anchors):
        known = replace(question(f"a{i}", len(anchor.counts)), anchor=anchor)
        blocks.append(block_about(table, known))
    return document_of(tuple(blocks))


def factors(document: SurveyDocument) -> dict[tuple[str, ...], float | None]:
    return {
        tuple(q.id for q in stated.questions): correction_factor(
            document, stated, wanted_plan(stated)
        )
        for stated in stated_of(document)
    }


def kept_variance(mechanism: DenseMechanism, anchor: Anchor) -> float:
    """Return n times the variance of κ̂ by an anchor of two choices, without random answers."""
    a = anchor.counts[1] / sum(anchor.counts)
    q = law(mechanism)
    keep, flip = q[1, 1], q[0, 1]
    seen = a * keep + (1 - a) * flip
    return float(seen * (1 - seen) / (keep - flip) ** 2 / (a - 0.5) ** 2)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("anchor", [NOBODY, TWELFTH, QUARTER])
def test_the_factor_is_the_largest_over_all_shares(epsilon: float, anchor: Anchor) -> None:
    mechanism = grr(2, epsilon)
    found = factors(beside(mechanism, (mechanism, anchor)))
    v, q = kept_variance(mechanism, anchor), law(mechanism)
    largest = 0.0
    for theta in np.linspace(0, 1, 501):
        seen = theta * q[1, 1] + (1 - theta) * q[0, 1]
        of_share = seen * (1 - seen) / (q[1, 1] - q[0, 1]) ** 2
        largest = max(largest, sqrt((of_share + (theta - 0.5) ** 2 * v) / of_share))
    assert found["q",] == pytest.approx(largest, rel=1e-9)
    assert found["a0",] is None


def test_three_choices_and_several_anchors() -> None:
    mechanism, two = grr(3, 1.0), grr(2, 2.0)
    found = factors(beside(mechanism, (two, NOBODY), (two, TWELFTH)))
    # The information at 10 % of random answers weighs the anchors.
    weights, variances, q = [], [], law(two)
    for anchor in (NOBODY, TWELFTH):
        a = anchor.counts[1] / sum(anchor.counts)
        seen = (0.9 * a + 0.05) * q[1, 1] + (1 - 0.9 * a - 0.05) * q[0, 1]
        weights.append(((q[1, 1] - q[0, 1]) * (a - 0.5)) ** 2 / (seen * (1 - seen)))
        variances.append(kept_variance(two, anchor))
    parts = np.array(weights) / sum(weights)
    v = float(parts**2 @ np.array(variances))
    rng, table, largest = np.random.default_rng(3), law(mechanism), 0.0
    decoded = np.linalg.inv(table)
    corners = [np.eye(3)[i] for i in range(3)]
    for p in [*corners, *rng.dirichlet(np.full(3, 0.3), 2000)]:
        seen = p @ table
        for target in range(3):
            spread = seen @ decoded[:, target] ** 2 - p[target] ** 2
            largest = max(largest, sqrt(1 + (p[target] - 1 / 3) ** 2 * v / spread))
    assert found["q",] == pytest.approx(largest, rel=1e-9)


def test_an_anchor_in_a_form_is_shown_as_often_as_a_question() -> None:
    pool = Pool((0, 1, 2), 1, Cover(2, 1))
    form = AgreementMechanism(5, 3, 1, (2, 2, 2), ((0,), (1,), (2,)), (Component(32, 1, (pool,)),))
    block = form_block(form)
    known = replace(block.questions[2], anchor=NOBODY)
    document = document_of((replace(block, questions=(*block.questions[:2], known)),))
    # One question of three, each at the same level: as in blocks with a third of the reports each.
    assert factors(document)["q0",] == pytest.approx(sqrt(2))
    alone = block_about(grr(2, 1.0), replace(question("a", 2), anchor=NOBODY))
    with_block = factors(document_of((form_block(form), alone)))
    keep = 3 / 4  # agree is three times disagree
    spread = keep * (1 - keep) / (2 * keep - 1) ** 2
    v = kept_variance(grr(2, 1.0), NOBODY) / 3
    assert with_block["q0",] == pytest.approx(sqrt(1 + 0.25 * v / spread))


def test_words_say_the_factor_and_warn_above_one_and_a_half() -> None:
    mechanism = grr(2, 2.0)
    assert list(correction_in_words(document_of((block_about(mechanism, question("q", 2)),)))) == []
    (fine,) = correction_in_words(beside(mechanism, (mechanism, NOBODY)))
    assert "up to about 1.42 times" in fine
    assert "up to about 2.00 times as many people" in fine
    much, warning = correction_in_words(beside(mechanism, (mechanism, TWELFTH)))
    factor = sqrt(
        1 + 0.25 * kept_variance(mechanism, TWELFTH) / kept_variance(mechanism, NOBODY) * 4
    )
    assert f"up to about {ceil(100 * factor) / 100:.2f} times" in much
    assert "“q?”" in warning


def test_the_pages_state_what_anchors_cost(root: Path) -> None:
    """The table of docs/admin.md and the hint of the page of a question: a share of 3 %, ε = 2."""
    mechanism = grr(2, 2.0)
    q = law(mechanism)
    seen = 0.03 * q[1, 1] + 0.97 * q[0, 1]
    of_share = seen * (1 - seen) / (q[1, 1] - q[0, 1]) ** 2
    costs = [
        sqrt(1 + 0.47**2 * kept_variance(mechanism, one) / of_share)
        for one in (NOBODY, TWELFTH, QUARTER)
    ]
    guide = (root / "docs" / "admin.md").read_text(encoding="utf-8")
    table = guide.partition("| how many say yes to the anchor |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert [(row[1], row[2].split()[0]) for row in rows] == [
        (f"{cost:.2f}", f"{cost**2:.1f}") for cost in costs
    ]
    hint = "server/frankly_server/web/admin/templates/admin/question_form.html"
    words = " ".join((root / hint).read_text(encoding="utf-8").split())
    for cost in costs:
        assert f"{cost:.2f}" in words


def test_the_summary_says_it_too() -> None:
    document = beside(grr(2, 2.0), (grr(2, 2.0), TWELFTH))
    assert summary_of(document, 1000).correction == tuple(correction_in_words(document))
    assert summary_of(document_of(document.blocks[:1]), 1000).correction == ()


def test_answers_sent_without_noise_have_no_factor() -> None:
    truth = DenseMechanism(4, ((16, 0), (0, 16)))
    assert factors(beside(truth, (grr(2, 1.0), NOBODY)))["q",] is None
