# SPDX-License-Identifier: Apache-2.0
"""Corrected figures of a result: from numbers of the item, beside the uncorrected ones."""

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import erfc, sqrt
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate.margins import normal_quantile
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.analysis.counted_document import CellCounts, Key, Received
from frankly_server.store import ReleasedBatch
from scipy.stats import binomtest

from tests.frankly_protocol.samples import question as named
from tests.frankly_protocol.samples import with_item
from tests.frankly_server.analysis.samples import Counts, block_about, document_of, question, result

KEEP = DenseMechanism(4, ((12, 4), (4, 12)))  # says the truth with a chance of 3/4
ROW = ("corrected", "corrected_se", "corrected_low", "corrected_high")
Failed = tuple[int, bool]
"""How many failed, and whether the reports of those who failed are counted apart."""


def source(
    by_region: Mapping[str, tuple[Counts, Failed, Counts]],
    *,
    mechanism: DenseMechanism = KEEP,
    about: tuple[Any, ...] = (question("q", 2),),
    version: int = 1,
    choices: int = 4,
) -> Received:
    """Return a document with an item, and counts of all reports and of those who failed, by region."""
    strata = (named("region", *by_region),) if "" not in by_region else ()
    document = with_item(
        document_of((block_about(mechanism, *about),), strata, version), choices=choices
    )
    cells: dict[Key, CellCounts] = {}
    batches = []
    for region, (counts, (failed, is_apart), of_failed) in by_region.items():
        answers = {"region": region} if region else {}
        both: list[tuple[dict[str, str], Any, int]] = [(answers, np.array(counts), failed)]
        if is_apart:
            rest = np.array(counts) - np.array(of_failed)
            both = [
                ({"check": "failed"} | answers, np.array(of_failed), failed),
                ({"check": "passed"} | answers, rest, 0),
            ]
        for told, numbers, number in both:
            text = json.dumps(told, separators=(",", ":"), sort_keys=True) if told else ""
            tally: dict[tuple[int, ...], int] = {(y,): int(n) for y, n in enumerate(numbers)}
            cells[(0,), text, ""] = CellCounts(sum(tally.values()), tally)
            day = "2026-06-02T00:00:00Z"
            batches.append(ReleasedBatch(1, text, day, sum(tally.values()), number))
    return Received(document, cells, 1).with_batches(batches)


def shares_of(counts: Counts) -> float:
    """Return the unbiased share of the second choice under KEEP."""
    return (counts[1] / sum(counts) - 0.25) / 0.5


def wilson(count: int, n: int, keep: float = 0.75) -> tuple[float, float]:
    """Return the score interval of the share of the second choice, not cut: Wilson's, or the normal
    one where that is wider."""
    wilsons, share = binomtest(count, n).proportion_ci(0.95, "wilson"), count / n
    normal = normal_quantile(0.95) * sqrt(share * (1 - share) / (n - 1))
    ends = min(wilsons.low, share - normal), max(wilsons.high, share + normal)
    return (ends[0] - 1 + keep) / (2 * keep - 1), (ends[1] - 1 + keep) / (2 * keep - 1)


def expected(counts: Counts, failed: int, n: int, k: int, rho: float = 0.5) -> tuple[float, ...]:
    """Return θ̂, its delta error and the ends, written out for the second choice under KEEP."""
    t, size = shares_of(counts), int(sum(counts))
    lam = failed / n * k / (k - 1)
    v = failed / n * (1 - failed / n) / n * (k / (k - 1)) ** 2
    share = counts[1] / size
    var_t = share * (1 - share) / (size - 1) / 0.25
    cov = lam * (t - rho) / n  # of t and κ̂
    theta = rho + (t - rho) / (1 - lam)
    se = sqrt(var_t - 2 * (theta - rho) * cov + (theta - rho) ** 2 * v) / (1 - lam)
    z = normal_quantile(0.95)

    def holds(x: float, variance_of_t: float) -> bool:
        variance = variance_of_t - 2 * (x - rho) * cov + (x - rho) ** 2 * v
        return (t - rho - (x - rho) * (1 - lam)) ** 2 <= z**2 * variance

    ends = []
    for side, end in zip((-1, 1), wilson(int(counts[1]), size), strict=True):
        inside, outside = theta, theta + side * 5
        for _ in range(200):
            middle = (inside + outside) / 2
            is_inside = holds(middle, ((end - t) / z) ** 2)
            inside, outside = (middle, outside) if is_inside else (inside, middle)
        ends.append(inside)
    return theta, se, *ends


def figures(row: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(row[name] for name in ROW)


def test_a_share_is_corrected_beside_the_uncorrected_one() -> None:
    alone = source({"": ((1200, 800), (150, False), (0, 0))})
    (found,) = result(alone)["questions"]
    no, yes = found["rows"]
    assert yes["estimate"] == pytest.approx(shares_of((1200, 800)))
    assert figures(yes) == pytest.approx(expected((1200, 800), 150, 2000, 4))
    assert no["corrected"] == pytest.approx(1 - yes["corrected"])
    said = found["random_answers"]
    assert (said["n"], said["failed"], said["choices"]) == (2000, 150, 4)
    assert said["random"] == pytest.approx(0.1)
    assert said["law"] == {"q": {"c0": 0.5, "c1": 0.5}}
    assert (said["law_n"], said["law_p"], said["shown"], said["missing"]) == (0, None, True, 0)
    # The same counts without an item have the same estimate, and nothing else.
    without = Received(replace(alone.document, instructed=None), alone.cells, 1)
    (plain,) = result(without)["questions"]
    assert plain["random_answers"] is None
    assert plain["rows"][1] == yes | dict.fromkeys(ROW) | {"documents": plain["documents"]}


def test_nobody_who_failed_changes_no_figure() -> None:
    (found,) = result(source({"": ((1200, 800), (0, False), (0, 0))}))["questions"]
    row = found["rows"][1]
    assert figures(row) == pytest.approx([row[name] for name in ("estimate", "se", "low", "high")])


@pytest.mark.parametrize(("failed", "missing"), [(600, True), (740, True), (760, False)])
def test_too_many_random_answers_are_not_corrected(failed: int, missing: bool) -> None:
    (found,) = result(source({"": ((600, 400), (failed, False), (0, 0))}))["questions"]
    said = found["random_answers"]
    item_se = sqrt(failed / 1000 * (1 - failed / 1000) / 1000) * 4 / 3
    is_shown = failed * 4 / 3 < 1000 and item_se <= 0.25 * (1 - failed / 1000 * 4 / 3)
    assert said["shown"] is is_shown
    assert (said["missing"] is not None) is missing
    for row in found["rows"]:
        assert ("too_few_attentive" in row["flags"]) is not is_shown
        assert (row["corrected"] is None) is not is_shown


def test_groups_are_corrected_by_their_own_results_if_these_are_precise() -> None:
    precise = {"n": ((1800, 1200), (150, False), (0, 0)), "s": ((900, 2100), (450, False), (0, 0))}
    found = result(source(precise), by="region")["questions"]
    for entry, (counts, (failed, _), _) in zip(found, precise.values(), strict=True):
        assert figures(entry["rows"][1]) == pytest.approx(expected(counts, failed, 3000, 4))
        assert entry["random_answers"]["common"] is False
        assert entry["random_answers"]["common_p"] < 1e-6
    rough = {"n": ((60, 40), (45, False), (0, 0)), "s": ((1800, 1200), (150, False), (0, 0))}
    found = result(source(rough), by="region")["questions"]
    for entry, (counts, _, _) in zip(found, rough.values(), strict=True):
        assert figures(entry["rows"][1]) == pytest.approx(expected(counts, 195, 3100, 4))
        assert entry["random_answers"]["common"] is True
        assert entry["random_answers"]["n"] == 3100


def test_the_law_is_tested_by_those_known_to_have_failed() -> None:
    def tested(of_failed: Counts, *, is_apart: bool = True, **asked: Any) -> dict[str, Any]:
        entry = source({"": ((1200, 800), (sum(of_failed), is_apart), of_failed)})
        (found,) = result(entry, **asked)["questions"]
        told: dict[str, Any] = found["random_answers"]
        return told

    # 64 reports that say yes half of the time; at the law the variance of one is 1/4.
    assert tested((32, 32))["law_p"] == pytest.approx(1.0)
    off = tested((44, 20))
    assert off["law_n"] == 64
    assert off["law_p"] == pytest.approx(erfc(sqrt((20 - 32) ** 2 / 16 / 2)))  # χ² with one degree
    # Under another law the same reports fit: a quarter of the answers are yes, so 3/8 of the reports.
    stated = tested((40, 24), random='{"q": {"c0": 3, "c1": 1}}')
    assert stated["law_p"] == pytest.approx(1.0)
    assert stated["law"] == {"q": {"c0": 0.75, "c1": 0.25}}
    assert tested((44, 20), is_apart=False)["law_p"] is None
    few = tested((15, 14))  # more than the document's minimum of 20, but too few for χ²
    assert (few["law_n"], few["law_p"]) == (0, None)


def test_who_is_known_to_have_failed_counts_by_the_law() -> None:
    """The figure is that of the reports that passed, ρ + (t − ρ)·f/κ̂, with its own error."""
    counts, of_failed = (1200, 800), (90, 60)
    (found,) = result(source({"": (counts, (150, True), of_failed)}))["questions"]
    row = found["rows"][1]
    passed = np.array(counts) - np.array(of_failed)
    t, f, lam, n = shares_of(passed), 1 - 150 / 2000, 0.1, 2000
    assert row["corrected"] == pytest.approx(0.5 + (t - 0.5) * f / (1 - lam))
    # One report's score, with 1/2 for those who failed.
    mean = f * t + (1 - f) * 0.5
    scores = [(-0.5, passed[0]), (1.5, passed[1]), (0.5, 150)]
    variance = sum(k * (score - mean) ** 2 for score, k in scores) / (n - 1) / n
    v = 150 / n * f / n * (4 / 3) ** 2
    theta = row["corrected"]
    covariance = lam * (mean - 0.5) / n
    se = sqrt(variance - 2 * (theta - 0.5) * covariance + (theta - 0.5) ** 2 * v) / (1 - lam)
    assert row["corrected_se"] == pytest.approx(se)
    assert row["estimate"] == pytest.approx(shares_of(counts))


def test_a_stated_law_changes_the_corrected_figure() -> None:
    alone = source({"": ((1200, 800), (150, False), (0, 0))})
    (found,) = result(alone, random='{"q": {"c0": 4, "c1": 1}}')["questions"]
    assert figures(found["rows"][1]) == pytest.approx(expected((1200, 800), 150, 2000, 4, rho=0.2))


def test_versions_are_corrected_each_by_its_item_and_pooled() -> None:
    first = source({"": ((600, 400), (60, False), (0, 0))})
    second = source({"": ((1700, 1300), (100, False), (0, 0))}, version=2, choices=2)
    (found,) = result(first, second)["questions"]
    parts = [
        (0.25, shares_of((600, 400)), 60 / 1000 * 4 / 3),
        (0.75, shares_of((1700, 1300)), 100 / 3000 * 2),
    ]
    above = sum(w * (t - lam * 0.5) for w, t, lam in parts)
    below = sum(w * (1 - lam) for w, _, lam in parts)
    assert found["rows"][1]["corrected"] == pytest.approx(above / below)
    # A version without an item cannot be corrected, so nothing is.
    plain = Received(replace(second.document, instructed=None), second.cells, 1)
    (found,) = result(first, plain)["questions"]
    assert found["random_answers"] is None
    assert found["rows"][1]["corrected"] is None


def test_means_and_contrasts_are_corrected() -> None:
    table = DenseMechanism(4, ((10, 3, 3), (3, 10, 3), (3, 3, 10)))
    scored = question("q", 3, score=[Fraction(0), Fraction(1), Fraction(2)])
    counts = (900, 600, 500)
    three = source({"": (counts, (150, False), (0, 0, 0))}, mechanism=table, about=(scored,))
    p = [(n / 2000 - 3 / 16) / (7 / 16) for n in counts]
    lam = 0.1
    true = [(share - lam / 3) / (1 - lam) for share in p]
    (found,) = result(three, targets="scales")["questions"]
    rows = {row["choice"]: row for row in found["rows"]}
    assert rows["mean"]["corrected"] == pytest.approx(true[1] + 2 * true[2])
    assert rows["median"]["corrected"] is None
    asked = {"q": {"up": {"c2": 1, "c0": -1}, "ratio": {"of": {"c2": 1}, "over": {"c1": 1}}}}
    (found,) = result(three, targets=asked)["questions"]
    up, ratio = found["rows"]
    assert up["corrected"] == pytest.approx(true[2] - true[0])
    assert ratio["corrected"] == pytest.approx(true[2] / true[1])
    assert ratio["corrected_low"] < ratio["corrected"] < ratio["corrected_high"]


@pytest.mark.parametrize(
    ("random", "code", "field"),
    [
        ("{", "field_type", "random"),
        ("[]", "field_type", "random"),
        ("{}", "field_type", "random"),
        ('{"q": 1}', "field_type", "random"),
        ('{"q": {}}', "field_type", "random"),
        ('{"q": {"c0": 0, "c1": 0}}', "field_type", "random"),
        ('{"q": {"c0": -1, "c1": 2}}', "field_type", "random"),
        ('{"q": {"c0": "many"}}', "field_type", "random"),
        (7, "field_type", "random"),
        ('{"x": {"c0": 1}}', "targets_invalid", "random.x"),
        ('{"q": {"x": 1}}', "targets_invalid", "random.q"),
    ],
)
def test_a_wrong_law_is_refused_by_name(random: Any, code: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        result(source({"": ((1200, 800), (150, False), (0, 0))}), random=random)
    assert (refused.value.code, refused.value.field) == (code, field)


def test_a_law_without_an_item_is_refused() -> None:
    alone = source({"": ((1200, 800), (150, False), (0, 0))})
    without = Received(replace(alone.document, instructed=None), alone.cells, 1)
    with pytest.raises(InvalidInput, match="no figure is corrected") as refused:
        result(without, random='{"q": {"c0": 1}}')
    assert (refused.value.code, refused.value.field) == ("unsupported", "random")


@pytest.mark.parametrize("counts", [(100, 0), (99, 1), (0, 100)])
@pytest.mark.parametrize("failed", [0, 1, 5])
def test_an_interval_contains_its_figure_and_is_no_point(counts: Counts, failed: int) -> None:
    table = DenseMechanism(8, ((251, 5), (5, 251)))
    (found,) = result(source({"": (counts, (failed, False), (0, 0))}, mechanism=table))["questions"]
    for row in found["rows"]:
        assert row["corrected_low"] <= row["corrected"] <= row["corrected_high"]
        assert row["corrected_high"] - row["corrected_low"] > 0.01
        is_possible = row["corrected_low"] <= 1 and row["corrected_high"] >= 0
        assert is_possible is ("corrected_impossible" not in row["flags"])
        assert is_possible or failed == 5


def test_versions_with_other_items_have_one_mean_share_of_random_answers() -> None:
    first = source({"": ((600, 400), (50, False), (0, 0))}, choices=2)  # λ̂ = 10 %
    second = source({"": ((1700, 1300), (225, False), (0, 0))}, version=2)  # the same
    (found,) = result(first, second)["questions"]
    said = found["random_answers"]
    assert said["random"] == pytest.approx(0.1)
    assert said["random_low"] < 0.1 < said["random_high"]
    assert (said["n"], said["failed"], said["choices"]) == (4000, 275, 4)


def test_groups_below_the_minimum_have_no_part_in_the_correction_of_others() -> None:
    answers = []
    for failed in (0, 1, 5):
        two = {"n": ((1800, 1200), (300, False), (0, 0)), "s": ((3, 2), (failed, False), (0, 0))}
        north, south = result(source(two), by="region")["questions"]
        assert south["status"] == "insufficient"
        assert south["random_answers"] is None
        answers.append(north["random_answers"])
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0]["common"], answers[0]["common_p"], answers[0]["failed"]) == (
        False,
        None,
        300,
    )


def test_a_law_without_the_choices_of_a_version_is_not_known() -> None:
    three = question("q", 3)
    table = DenseMechanism(4, ((10, 3, 3), (3, 10, 3), (3, 3, 10)))
    two = source({"": ((1200, 800), (150, False), (0, 0))})
    later = source(
        {"": ((900, 600, 500), (150, False), (0, 0, 0))}, mechanism=table, about=(three,), version=2
    )
    found = result(two, later, random='{"q": {"c2": 1}}')["questions"]
    for entry in found:
        size = len(entry["rows"])
        assert entry["random_answers"]["shown"] is (size == 3)
        assert all(("random_law_unknown" in row["flags"]) is (size == 2) for row in entry["rows"])
    part = result(two, later, random='{"q": {"c0": 1, "c1": 1, "c2": 2}}')["questions"]
    laws = [entry["random_answers"]["law"]["q"] for entry in part]
    assert {"c0": 0.5, "c1": 0.5} in laws
    assert sum(row["corrected"] for entry in part for row in entry["rows"]) == pytest.approx(2)
