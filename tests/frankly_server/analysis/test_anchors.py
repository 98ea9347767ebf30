# SPDX-License-Identifier: Apache-2.0
"""Figures corrected by questions with known shares, from counts, against formulas written out."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.parts import counted_blocks, counted_symbols
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_protocol.questions import Anchor
from frankly_server.analysis.anchors import anchors_of, overlap_of, pairs_with_anchors
from frankly_server.analysis.counted_document import CellCounts, Key, Received
from frankly_server.analysis.groups import Group
from frankly_server.analysis.part import Part
from frankly_server.store import ReleasedBatch
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.sections import names_of, sections_of
from scipy import stats

from tests.frankly_design.kinds.test_parts import form_block
from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.samples import question as named
from tests.frankly_protocol.samples import with_item
from tests.frankly_server.analysis.samples import (
    Counts,
    block_about,
    document_of,
    grr,
    law,
    question,
    result,
)
from tests.refusals import refusal

KEEP = DenseMechanism(4, ((12, 4), (4, 12)))  # says the truth with a chance of 3/4
NOBODY = Anchor((1, 0), "nobody can")
TWELFTH = Anchor((11, 1), "register")


def anchor(name: str = "known", known: Anchor = NOBODY) -> Any:
    return replace(question(name, len(known.counts)), anchor=known)


def source(
    by_region: Mapping[str, Sequence[Counts]],
    *known: Anchor,
    version: int = 1,
    mechanisms: Sequence[DenseMechanism] = (),
) -> Received:
    """Return a document about q and anchors, a block each, with the counts of each by region."""
    about = [question("q", 2), *(anchor(f"a{i}", one) for i, one in enumerate(known))]
    blocks = zip(mechanisms or [KEEP] * len(about), about, strict=True)
    strata = (named("region", *by_region),) if "" not in by_region else ()
    document = document_of(tuple(block_about(*pair) for pair in blocks), strata, version)
    cells: dict[Key, CellCounts] = {}
    for region, of_blocks in by_region.items():
        told = json.dumps({"region": region}, separators=(",", ":")) if region else ""
        for i, counts in enumerate(of_blocks):
            cells[(i,), told, ""] = CellCounts(sum(counts), {(y,): n for y, n in enumerate(counts)})
    return Received(document, cells, 1)


def share_of(counts: Counts) -> float:
    """Return the unbiased share of the second choice under KEEP."""
    return (counts[1] / sum(counts) - 0.25) / 0.5


def expected(counts: Counts, *anchors: tuple[Counts, float]) -> tuple[float, float]:
    """Return λ̂ and the corrected share of the second choice under KEEP; anchors : with their share."""
    # Two choices: the information of an anchor about κ at κ = 0.9.
    kept, weights = [], []
    for of_anchor, known in anchors:
        kept.append((share_of(of_anchor) - 0.5) / (known - 0.5))
        read = 0.25 + 0.5 * (0.9 * known + 0.1 * 0.5)
        weights.append((0.5 * (known - 0.5)) ** 2 / (read * (1 - read)))
    attentive = sum(w * k for w, k in zip(weights, kept, strict=True)) / sum(weights)
    return 1 - attentive, 0.5 + (share_of(counts) - 0.5) / attentive


def yes(found: Mapping[str, Any]) -> Any:
    return found["rows"][1]


def question_of(body: Mapping[str, Any], name: str, place: int = 0) -> Any:
    return [entry for entry in body["questions"] if entry["id"] == name][place]


@pytest.mark.parametrize("known", [NOBODY, TWELFTH, Anchor((0, 7), "everybody does")])
def test_a_share_is_corrected_by_an_anchor(known: Anchor) -> None:
    counts, of_anchor = (1200, 800), {0: (1400, 600), 1: (1350, 650), 7: (620, 1380)}
    numbers = of_anchor[known.counts[1]]
    body = result(source({"": (counts, numbers)}, known))
    share = known.counts[1] / sum(known.counts)
    lam, value = expected(counts, (numbers, share))
    found = question_of(body, "q")
    said = found["random_answers"]
    assert yes(found)["corrected"] == pytest.approx(value)
    assert said["random"] == pytest.approx(lam)
    assert (said["n"], said["failed"], said["choices"], said["anchors"]) == (
        2000,
        None,
        None,
        ["a0"],
    )
    assert said["random_low"] < lam < said["random_high"]
    assert (said["law_p"], said["shown"], said["missing"]) == (None, True, 0)
    # The delta method, with the covariance λκ(θ − ρ)/n of t and κ̂.
    v = numbers[1] / 2000 * (1 - numbers[1] / 2000) / 1999 / 0.25 / (share - 0.5) ** 2
    var_t = 0.4 * 0.6 / 1999 / 0.25
    cov = lam * (share_of(counts) - 0.5) / 2000
    se = sqrt(var_t - 2 * (value - 0.5) * cov + (value - 0.5) ** 2 * v) / (1 - lam)
    assert yes(found)["corrected_se"] == pytest.approx(se)


def test_the_table_of_an_anchor_is_not_corrected() -> None:
    body = result(source({"": ((1200, 800), (1400, 600))}, NOBODY), targets="shares")
    found = question_of(body, "a0")
    assert found["random_answers"] is None
    assert all(row["corrected"] is None for row in found["rows"])


def test_without_random_answers_the_figure_is_the_usual_one() -> None:
    """κ̂ = 1 exactly if a quarter of the reports on a share of 0 say the other answer."""
    found = question_of(result(source({"": ((1200, 800), (1500, 500))}, NOBODY)), "q")
    assert found["random_answers"]["random"] == pytest.approx(0)
    assert yes(found)["corrected"] == pytest.approx(yes(found)["estimate"])


def test_fewer_random_answers_than_none_are_said_as_they_are() -> None:
    found = question_of(result(source({"": ((1200, 800), (1560, 440))}, NOBODY)), "q")
    lam, value = expected((1200, 800), ((1560, 440), 0))
    assert lam < 0
    assert found["random_answers"]["random"] == pytest.approx(lam)
    assert yes(found)["corrected"] == pytest.approx(value)


def test_several_anchors_are_stacked() -> None:
    of_anchors = ((1400, 600), (1300, 700))
    body = result(source({"": ((1200, 800), *of_anchors)}, NOBODY, TWELFTH))
    found = question_of(body, "q")
    lam, value = expected((1200, 800), (of_anchors[0], 0), (of_anchors[1], 1 / 12))
    assert found["random_answers"]["random"] == pytest.approx(lam)
    assert found["random_answers"]["anchors"] == ["a0", "a1"]
    assert yes(found)["corrected"] == pytest.approx(value)
    # Two anchors of one share test whether both tell the same: their difference is normal.
    kept = [(share_of(n) - 0.5) / (a - 0.5) for n, a in zip(of_anchors, (0, 1 / 12), strict=True)]
    fitted = 1 - lam
    variances = []
    for a in (0, 1 / 12):
        at = 0.25 + 0.5 * (fitted * a + lam * 0.5)
        variances.append(at * (1 - at) / 0.25 / (a - 0.5) ** 2 / 2000)
    spread = sum(variances) - 2 * lam * fitted / 2000
    p = stats.chi2.sf((kept[0] - kept[1]) ** 2 / spread, 1)
    assert found["random_answers"]["law_p"] == pytest.approx(p)
    assert found["random_answers"]["law_n"] == 2000


def test_an_anchor_of_three_choices_tests_the_law() -> None:
    known, mechanism = Anchor((1, 0, 0), "one of three"), grr(3, 1.5)
    about = (block_about(KEEP, question("q", 2)), block_about(mechanism, anchor("a", known)))
    document = document_of(about)

    def p_of(shares_at_random: Sequence[float]) -> float | None:
        answers = 0.8 * np.array([1, 0, 0]) + 0.2 * np.array(shares_at_random)
        counts = np.rint(20_000 * answers @ law(mechanism)).astype(int)
        cells: dict[Key, CellCounts] = {
            ((0,), "", ""): CellCounts(20_000, {(0,): 12_000, (1,): 8_000}),
            ((1,), "", ""): CellCounts(
                int(counts.sum()), {(y,): int(n) for y, n in enumerate(counts)}
            ),
        }
        found = question_of(result(Received(document, cells, 1)), "q")["random_answers"]
        return found["law_p"]

    even, uneven = p_of([1 / 3] * 3), p_of([0.1, 0.8, 0.1])
    assert even is not None
    assert even > 0.9
    assert uneven is not None
    assert uneven < 1e-6


def test_groups_have_their_own_share_if_it_is_precise_and_else_one_of_all() -> None:
    precise = {"n": ((9000, 3000), (8500, 3500)), "s": ((4000, 8000), (8200, 3800))}
    body = result(source(precise, NOBODY), by="region")
    for place, (counts, of_anchor) in enumerate(precise.values()):
        found = question_of(body, "q", place)
        assert yes(found)["corrected"] == pytest.approx(expected(counts, (of_anchor, 0))[1])
        assert not found["random_answers"]["common"]
    few = {"n": ((300, 100), (280, 120)), "s": ((130, 270), (270, 130))}
    body = result(source(few, NOBODY), by="region")
    lam, _ = expected((1, 1), ((550, 250), 0))
    ps = set()
    for place, (counts, _) in enumerate(few.values()):
        found = question_of(body, "q", place)
        assert found["random_answers"]["random"] == pytest.approx(lam)
        assert found["random_answers"]["common"]
        assert yes(found)["corrected"] == pytest.approx(0.5 + (share_of(counts) - 0.5) / (1 - lam))
        ps.add(found["random_answers"]["common_p"])
    (p,) = ps
    kept = [(share_of(of_anchor) - 0.5) / -0.5 for _, of_anchor in few.values()]
    seen = 0.25 + 0.5 * (0.5 * lam)
    variances = [seen * (1 - seen) / 400 / 0.25 / 0.25] * 2
    assert p == pytest.approx(stats.chi2.sf((kept[0] - kept[1]) ** 2 / sum(variances), 1))


def test_versions_with_one_common_share_have_the_error_of_one_survey() -> None:
    """Two versions with half of the counts each are as precise as one with all of them.

    The error of a common λ̂ is in both, so it must not be counted as if it were in each apart.
    """
    # By region nobody is precise enough, so the results of all groups are used.
    few = {"n": ((300, 100), (250, 150)), "s": ((130, 270), (250, 150))}
    half = {region: tuple((a // 2, b // 2) for a, b in blocks) for region, blocks in few.items()}
    one = result(source(few, NOBODY), by="region")
    two = result(source(half, NOBODY), source(half, NOBODY, version=2), by="region")
    for place in range(2):
        single, split = (question_of(body, "q", place) for body in (one, two))
        assert single["random_answers"]["common"]
        assert split["random_answers"]["common"]
        assert yes(split)["corrected"] == pytest.approx(yes(single)["corrected"])
        assert yes(split)["corrected_se"] == pytest.approx(yes(single)["corrected_se"], rel=0.01)


def test_a_version_without_anchor_leaves_all_uncorrected() -> None:
    plain = source({"": ((1200, 800),)})
    body = result(plain, source({"": ((1200, 800), (1400, 600))}, NOBODY, version=2))
    found = question_of(body, "q")
    assert found["random_answers"] is None
    assert yes(found)["corrected"] is None


def test_the_first_reports_of_a_version_do_not_end_the_correction() -> None:
    """Their κ̂ alone tells nothing, so both versions have that of all reports."""
    old = source({"": ((2400, 1600), (2800, 1200))}, NOBODY)
    for first in ((1, 1), (2, 0), (12, 8)):
        new = source({"": (first, first)}, NOBODY, version=2)
        found = question_of(result(old, new), "q")
        said = found["random_answers"]
        assert said["shown"]
        assert yes(found)["corrected"] is not None
        both = (2800 + first[0], 1200 + first[1])
        assert said["random"] == pytest.approx(expected((1, 1), (both, 0))[0])
        assert not said["common"]


def test_a_question_that_was_an_anchor_of_a_version_is_not_corrected_by_itself() -> None:
    before = source({"": ((1300, 700), (1300, 700))}, TWELFTH)
    blocks = before.document.blocks
    now = replace(before.document, version=2, prev=before.document.digest)
    plain = replace(blocks[1], questions=(replace(blocks[1].questions[0], anchor=None),))
    other = block_about(KEEP, anchor("a1"))
    now = replace(now, blocks=(blocks[0], plain, other))
    cells = {**before.cells, ((2,), "", ""): CellCounts(2000, {(0,): 1400, (1,): 600})}
    after = Received(now, cells, 1)
    for by, places in (("version", 2), (None, 1)):
        body = result(before, after, **({"by": by} if by else {}))
        for place in range(places):
            found = question_of(body, "a0", place)
            is_anchor = by is None or place == 0
            assert (yes(found)["corrected"] is None) is is_anchor


def test_versions_with_an_item_and_with_anchors_are_not_corrected_together() -> None:
    asked = with_item(source({"": ((1200, 800),)}).document)
    cells: dict[Key, CellCounts] = {((0,), "", ""): CellCounts(2000, {(0,): 1200, (1,): 800})}
    batch = ReleasedBatch(1, "", "2026-06-02T00:00:00Z", 2000, 150)
    old = Received(asked, cells, 1).with_batches([batch])
    new = source({"": ((1200, 800), (1400, 600))}, NOBODY, version=2)
    assert question_of(result(old, new), "q")["random_answers"] is None
    body = result(old, new, by="version")
    assert [question_of(body, "q", i)["random_answers"]["failed"] for i in (0, 1)] == [150, None]


def test_a_stated_law_changes_what_the_anchor_tells() -> None:
    body = result(
        source({"": ((1200, 800), (1400, 600))}, NOBODY),
        random=json.dumps({"a0": {"c0": 1, "c1": 3}, "q": {"c0": 1, "c1": 1}}),
    )
    lam = share_of((1400, 600)) / 0.75
    found = question_of(body, "q")
    assert found["random_answers"]["random"] == pytest.approx(lam)
    assert yes(found)["corrected"] == pytest.approx(0.5 + (share_of((1200, 800)) - 0.5) / (1 - lam))


def test_an_anchor_like_the_stated_law_corrects_nothing() -> None:
    counts = source({"": ((1200, 800), (1400, 600))}, TWELFTH)
    body = result(counts, random=json.dumps({"a0": {"c0": 11, "c1": 1}}))
    assert question_of(body, "q")["random_answers"] is None


# Anchors in a form


def form(pick: int) -> AgreementMechanism:
    """Return a form of three yes/no questions, of which a report shows some."""
    score = pick
    pool = Pool((0, 1, 2), pick, Cover(2, 1))
    return AgreementMechanism(
        5, 3, 1, (2, 2, 2), ((0,), (1,), (2,)), (Component(32, score, (pool,)),)
    )


def form_document(mechanism: AgreementMechanism) -> SurveyDocument:
    block = form_block(mechanism)
    known = replace(block.questions[2], anchor=NOBODY)
    return document_of((replace(block, questions=(*block.questions[:2], known)),))


def reports_of(mechanism: AgreementMechanism, n: int) -> list[tuple[int, ...]]:
    """Return reports of people of whom a third says yes to the first two questions."""
    table, rng = agreement_table(mechanism), Random(3)
    symbols, drawn = list(table), []
    chances = [[float(row[x]) for row in table.values()] for x in range(8)]
    for _ in range(n):
        truth = sum(int(rng.random() < yes) << i for yes, i in ((0.3, 2), (0.3, 1), (0.05, 0)))
        drawn += rng.choices(symbols, chances[truth])
    return drawn


def counted(document: SurveyDocument, reports: Sequence[Sequence[Any]]) -> Received:
    """Return reports, as symbols of the blocks, as cells of single counted blocks and of all pairs."""
    mechanisms = [block.mechanism for block in counted_blocks(document)]
    rows = [counted_symbols(mechanisms, symbols) for symbols in reports]
    places = [i for i, one in enumerate(mechanisms) if not isinstance(one, AgreementMechanism)]
    tallies: dict[tuple[int, ...], Counter[tuple[int, ...]]] = {}
    wanted: list[tuple[int, ...]] = [(i,) for i in places]
    for blocks in [*wanted, *((i, j) for i in places for j in places if i < j)]:
        shown = [tuple(row[i] for i in blocks) for row in rows]
        tallies[blocks] = Counter(entry for entry in shown if None not in entry)
    cells: dict[Key, CellCounts] = {((0,), "", ""): CellCounts(len(rows), {})}
    for blocks, tally in tallies.items():
        cells[blocks, "", ""] = CellCounts(sum(tally.values()), tally)
    return Received(document, cells, 1)


@pytest.mark.parametrize("pick", [1, 2, 3])
def test_the_covariance_in_a_form_is_that_of_reports_with_both(pick: int) -> None:
    mechanism = form(pick)
    document = form_document(mechanism)
    symbols = reports_of(mechanism, 400)
    found = counted(document, [[one] for one in symbols])
    blocks = counted_blocks(document)
    part = Part(
        (blocks[1],), found.cells[(1,), "", ""].n, found.cells[(1,), "", ""].tally, shares(2)
    )
    overlap = overlap_of(found, Group(None, (found,)), part, {})
    assert overlap is not None
    # From the reports: which show both, and what each adds to the two estimates.
    rows = [counted_symbols([block.mechanism for block in blocks], [one]) for one in symbols]
    decoders = [np.linalg.pinv(law(blocks[i].mechanism)) for i in (1, 3)]  # type: ignore[arg-type]
    both = [(row[1], row[3]) for row in rows if row[1] is not None and row[3] is not None]
    first = np.array([decoders[0][y] for y, _ in both]).reshape(-1, 2)
    # κ is 1 − 2 · the share of the second choice.
    kept = np.array([1 - 2 * decoders[1][z][1] for _, z in both])
    expected = np.zeros(2)
    if both:
        expected = ((first - first.mean(axis=0)) * kept[:, None]).sum(axis=0)
        expected /= sum(row[1] is not None for row in rows) * sum(
            row[3] is not None for row in rows
        )
    assert (len(both) > 0) is (pick > 1)
    assert overlap.covariance == pytest.approx(expected, abs=1e-12)
    assert (overlap.n, overlap.weight) == (400, 1)
    assert bool(pairs_with_anchors(document, (1,))) is (pick > 1)


def test_figures_of_a_form_use_the_overlap() -> None:
    mechanism = form(2)
    document = form_document(mechanism)
    found = counted(document, [[one] for one in reports_of(mechanism, 3000)])
    body = result(found)
    entry = question_of(body, "q0")
    said = entry["random_answers"]
    assert said["n"] == found.cells[(3,), "", ""].n
    part = Part(
        (counted_blocks(document)[1],), entry["n"], found.cells[(1,), "", ""].tally, shares(2)
    )
    overlap = overlap_of(found, Group(None, (found,)), part, {})
    assert overlap is not None
    kept = 1 - said["random"]
    t, theta = entry["rows"][1]["estimate"], 0.5 + (entry["rows"][1]["estimate"] - 0.5) / kept
    assert yes(entry)["corrected"] == pytest.approx(theta)
    evidence = part.evidence(shares(2))
    var_t = evidence.spread()[1, 1] / (entry["n"] - 1)
    of_anchor = found.cells[(3,), "", ""]
    table = counted_blocks(document)[3].mechanism
    decoded = np.linalg.pinv(law(table))  # type: ignore[arg-type]
    values = np.array(
        [1 - 2 * decoded[z][1] for (z,), n in of_anchor.tally.items() for _ in range(n)]
    )
    v = values.var(ddof=1) / len(values)
    se = sqrt(var_t - 2 * (theta - 0.5) * overlap.covariance[1] + (theta - 0.5) ** 2 * v) / kept
    assert yes(entry)["corrected_se"] == pytest.approx(se)
    assert t != theta


def test_several_questions_of_the_form_of_an_anchor_are_not_corrected() -> None:
    mechanism = form(3)
    document = form_document(mechanism)
    found = counted(document, [[one] for one in reports_of(mechanism, 3000)])
    body = result(found, targets=["q0", "q1"])
    entry = body["questions"][0]
    assert not entry["random_answers"]["shown"]
    assert all("corrected_uncounted" in row["flags"] for row in entry["rows"])
    assert all(row["corrected"] is None for row in entry["rows"])


def test_without_counts_of_both_nothing_is_corrected() -> None:
    mechanism = form(2)
    found = counted(form_document(mechanism), [[one] for one in reports_of(mechanism, 3000)])
    without = {key: cell for key, cell in found.cells.items() if len(key[0]) == 1}
    entry = question_of(result(replace(found, cells=without)), "q0")
    assert all("corrected_uncounted" in row["flags"] for row in entry["rows"])
    assert not entry["random_answers"]["shown"]


def test_an_anchor_that_fewer_reports_show_than_the_minimum_corrects_nothing() -> None:
    mechanism = form(1)
    document = replace(form_document(mechanism), min_reports=30)
    symbols = reports_of(mechanism, 3000)
    without = [[one] for one in symbols if one[1] != 2]
    shown = [[one] for one in symbols if one[1] == 2]
    for number, is_told in ((29, False), (30, True)):
        body = result(counted(document, [*without, *shown[:number]]))
        assert (question_of(body, "q0")["random_answers"] is not None) is is_told


# A repeated question

EQUAL = Cover(4, None, ((0b1001, 1), (0b0110, 1)))


def repeating(pick: int) -> AgreementMechanism:
    """Return a form of two yes/no questions and the first one again, with a part for both copies."""
    alone = Component(16, 1, (Pool((0, 1), 1, Cover(2, 1)),))
    beside = (Pool((1,), 1, Cover(2, 1)),) if pick > 1 else ()
    both = (*beside, Pool((2,), 1, EQUAL))
    return AgreementMechanism(
        5, 3, 1, (2, 2, 2), ((0,), (1,), (0, 2)), (alone, Component(16, pick, both))
    )


def repeated_document(mechanism: AgreementMechanism) -> SurveyDocument:
    block = form_block(mechanism)
    again = replace(block.questions[2], anchor=Anchor(repeats="q0"))
    return document_of((replace(block, questions=(*block.questions[:2], again)),))


def answered(mechanism: AgreementMechanism, n: int, random: float) -> list[list[tuple[int, ...]]]:
    """Return reports of people, a share of whom answers at random; others give the same answer twice."""
    table, rng = agreement_table(mechanism), Random(5)
    symbols, drawn = list(table), []
    chances = [[float(row[x]) for row in table.values()] for x in range(8)]
    for _ in range(n):
        first, second = int(rng.random() < 0.3), int(rng.random() < 0.1)
        # Joint answers of the three questions, the last one fastest.
        truth = rng.randrange(8) if rng.random() < random else 5 * first + 2 * second
        drawn.append(rng.choices(symbols, chances[truth]))
    return drawn


@pytest.mark.parametrize("pick", [1, 2])
def test_a_repeated_question_tells_who_answers_at_random(pick: int) -> None:
    mechanism = repeating(pick)
    document = repeated_document(mechanism)
    found = counted(document, answered(mechanism, 6000, 0.25))
    body = result(found)
    assert [entry["id"] for entry in body["questions"]] == ["q0", "q1"]
    said = question_of(body, "q1")["random_answers"]
    assert said["anchors"] == ["q2"]
    # From the sets "equal" and "different" alone; half of the random pairs are equal.
    tally = found.cells[(3,), "", ""].tally
    table = counted_blocks(document)[3].mechanism
    q = law(table)  # type: ignore[arg-type]
    assert q[0].tolist() == q[3].tolist()
    read, guess = q[0], q.mean(axis=0)
    values = np.linalg.lstsq(np.array([read, guess]), np.array([1.0, 0.0]), rcond=None)[0]
    n = sum(tally.values())
    kept = sum(values[y] * count for (y,), count in tally.items()) / n
    assert said["n"] == n
    if len(read) == 2:
        assert said["random"] == pytest.approx(1 - kept)
    assert said["random"] == pytest.approx(0.25, abs=0.15)
    for name in ("q0", "q1"):
        entry = question_of(body, name)
        t = yes(entry)["estimate"]
        expected = 0.5 + (t - 0.5) / (1 - said["random"])
        assert yes(entry)["corrected"] == pytest.approx(expected)
    shown = [pairs_with_anchors(document, (i,)) for i in (1, 2)]
    assert shown == [[], [(2, 3)] if pick > 1 else []]


def test_a_repeated_question_has_the_stated_law_of_the_first() -> None:
    mechanism = repeating(1)
    found = counted(repeated_document(mechanism), answered(mechanism, 3000, 0.25))
    skewed = {"q0": {"0": 4, "1": 1}, "q1": {"0": 1, "1": 1}}
    once = result(found, random=json.dumps(skewed))
    twice = result(found, random=json.dumps(skewed | {"q2": skewed["q0"]}))
    uniform = result(found, random=json.dumps(skewed | {"q2": {"0": 1, "1": 1}}))
    said, other, third = (
        question_of(body, "q1")["random_answers"] for body in (once, twice, uniform)
    )
    assert said["random"] == pytest.approx(other["random"])
    assert said["random"] != pytest.approx(third["random"])
    # What is assumed of the anchor is said too.
    assert said["law"] == {name: {"0": 0.8, "1": 0.2} for name in ("q0", "q2")} | {
        "q1": {"0": 0.5, "1": 0.5}
    }


def test_a_repeated_question_has_no_results_of_its_own() -> None:
    mechanism = repeating(1)
    found = counted(repeated_document(mechanism), answered(mechanism, 300, 0.0))
    assert refusal(InvalidInput, result, found, targets=["q2"]).code == "targets_invalid"
    assert refusal(InvalidInput, result, found, targets=["q0", "q2"]).code == "targets_invalid"


def test_a_table_that_tells_more_than_equality_is_no_anchor() -> None:
    """Its law for equal answers depends on the answer, whose share is not known."""
    cover = Cover(4, 1)
    mechanism = replace(
        repeating(1),
        components=(repeating(1).components[0], Component(16, 1, (Pool((2,), 1, cover),))),
    )
    document = repeated_document(mechanism)
    assert anchors_of(document, {}) == []
    assert len(anchors_of(repeated_document(repeating(1)), {})) == 1


def test_a_page_shows_a_question_that_a_later_version_repeats() -> None:
    """The version before has results of it; of the newest nothing is known beforehand."""
    mechanism = repeating(1)
    document = repeated_document(mechanism)
    (block,) = document.blocks
    plain = replace(block, questions=tuple(replace(q, anchor=None) for q in block.questions))
    alone = replace(document, blocks=(plain,))
    before = counted(alone, answered(mechanism, 300, 0.0))
    newest = replace(document, version=2, prev=alone.digest)
    after = counted(newest, answered(mechanism, 300, 0.0))
    documents = [before.document, after.document]
    body = result(before, after)
    assert "q2" in [entry["id"] for entry in body["questions"]]
    shown = sections_of(body, Asked(), names_of(documents))
    (of_copy,) = [one for one in shown if one.found[0]["id"] == "q2"]
    assert [group.random_answers for group in of_copy.groups] == [[]]
