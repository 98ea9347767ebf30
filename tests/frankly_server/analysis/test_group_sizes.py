# SPDX-License-Identifier: Apache-2.0
"""Populations of known group sizes, against exact arithmetic and by enumeration.

Claims 12 and 13 of docs/maths/comparisons.md.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import comb, prod, sqrt
from typing import Any, Final

import numpy as np
import pytest
from frankly_analyst import Estimates
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, UnaryMechanism
from frankly_server.analysis import Analysis, encode
from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.pooling import Pooled, pool, weigh_groups
from frankly_server.analysis.request import Request
from frankly_server.store import Database
from scipy import stats

from tests.frankly_protocol.samples import armed
from tests.frankly_server.analysis.samples import (
    LIP,
    Counts,
    block_about,
    document_of,
    grr,
    part,
    question,
    received,
    result,
)
from tests.frankly_server.analysis.test_periods import SURVEY, _collect
from tests.refusals import code_and_field

WARNER: Final = DenseMechanism(4, ((12, 4), (4, 12)))
SETS: Final = UnaryMechanism(8, 2, 200, 60)
SIZES: Final = {"c0": 500, "c1": 300.5, "c2": 1}
TEXT: Final = json.dumps(SIZES)
POPULATION: Final = {"weighted": "region"}
Z: Final = float(stats.norm.ppf(0.975))


def sources(*versions: tuple[Mechanism, Mapping[str, Counts]], **of_choices: Any) -> list[Received]:
    """Return versions of a survey with one question and four regions, with counts by region."""
    return [
        received(
            document_of(
                (block_about(mechanism, question("q", mechanism.answers, **of_choices)),),  # type: ignore[arg-type]
                (question("region", 4),),
                version,
            ),
            groups,
        )
        for version, (mechanism, groups) in enumerate(versions, start=1)
    ]


def apart(found: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the tables of the groups by name, and that of the population."""
    *groups, population = found["questions"]
    assert population["by"] == POPULATION
    return {one["by"]["region"]: one for one in groups}, population


def law(mechanism: Mechanism) -> list[list[Fraction]]:
    """Return the probability of each symbol given each answer, exactly."""
    if isinstance(mechanism, UnaryMechanism):
        keep, flip = (Fraction(v, 2**mechanism.bits) for v in (mechanism.keep, mechanism.flip))
        size = mechanism.answers
        return [
            [
                prod(
                    chance if symbol >> bit & 1 else 1 - chance
                    for bit in range(size)
                    for chance in [keep if bit == x else flip]
                )
                for symbol in range(2**size)
            ]
            for x in range(size)
        ]
    assert isinstance(mechanism, DenseMechanism)
    return [[Fraction(int(w), mechanism.denominator) for w in row] for row in mechanism.weights]


def decoded(mechanism: Mechanism) -> list[list[Fraction]]:
    """Return the unbiased scores of each symbol for each choice, (Q D⁻¹ Qᵀ)⁻¹ Q D⁻¹, exactly.

    D is the law of symbols under equal shares, the prior of these documents.
    """
    Q = law(mechanism)
    size, scaled = len(Q), [[v / sum(column) for v in column] for column in zip(*Q, strict=True)]
    rows = [
        [sum(q * s[j] for q, s in zip(Q[i], scaled, strict=True)) for j in range(size)]
        + [s[i] for s in scaled]
        for i in range(size)
    ]
    for i in range(size):  # Gauss and Jordan
        pivot = next(k for k in range(i, size) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(size):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [list(scores) for scores in zip(*(row[size:] for row in rows), strict=True)]


def moments(
    mechanism: Mechanism, counts: Counts
) -> tuple[int, list[Fraction], list[list[Fraction]]]:
    """Return n, the shares, and the unbiased estimate of their covariance, exactly."""
    scores = decoded(mechanism)
    n, size = int(sum(counts)), len(scores[0])
    number = [int(c) for c in counts]
    p = [
        Fraction(sum(c * s[x] for c, s in zip(number, scores, strict=True))) / n
        for x in range(size)
    ]
    second = [
        [sum(c * s[i] * s[j] for c, s in zip(number, scores, strict=True)) / n for j in range(size)]
        for i in range(size)
    ]
    return (
        n,
        p,
        [[(second[i][j] - p[i] * p[j]) / (n - 1) for j in range(size)] for i in range(size)],
    )


def of_population(
    *versions: tuple[Mechanism, Mapping[str, Counts]],
) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Return Σ W_g p_g and Σ W_g² V_g, in which versions have the weights n_v/n_g."""
    total = sum(Fraction(str(size)) for size in SIZES.values())
    shares, covariance = [Fraction(0)] * 9, [[Fraction(0)] * 9 for _ in range(9)]
    for name, size in SIZES.items():
        each = [moments(mechanism, groups[name]) for mechanism, groups in versions]
        reports = sum(n for n, _, _ in each)
        for n, p, C in each:
            w = Fraction(str(size)) / total * Fraction(n, reports)
            for i in range(len(p)):
                shares[i] += w * p[i]
                for j in range(len(p)):
                    covariance[i][j] += w * w * C[i][j]
    return shares, covariance


THREE: Final = {"c0": (60, 50, 90), "c1": (45, 40, 25), "c2": (22, 61, 37), "c3": (9, 1, 2)}
LATER: Final = {"c0": (40, 50, 60), "c1": (15, 20, 45), "c2": (62, 21, 17), "c3": (1, 1, 2)}
FOUR: Final = {name: (*counts, 30) for name, counts in THREE.items()}
SETS_COUNTS: Final = {name: (*counts, 31) for name, counts in LATER.items()}
VERSIONS: Final[dict[str, list[tuple[Mechanism, Mapping[str, Counts]]]]] = {
    "a table": [(grr(3, 1.5), THREE)],
    "an optimum": [(LIP, FOUR)],
    "sets": [(SETS, SETS_COUNTS)],
    "two versions": [(grr(3, 1), THREE), (grr(3, 2.5), LATER)],
}

CLOSE: Final = dict.fromkeys(VERSIONS, 1e-12) | {"sets": 1e-6}
"""Relative tolerance of standard errors; those of sets are computed from pairs of answers."""


@pytest.mark.parametrize("name", VERSIONS)
def test_it_is_the_weighted_mean_of_the_groups_exactly(name: str) -> None:
    versions = VERSIONS[name]
    groups, population = apart(result(*sources(*versions), by="region", group_sizes=TEXT))
    shares, covariance = of_population(*versions)
    # Of a group that is not named nothing is shown, and nothing is needed.
    assert groups["c3"]["status"] == ("ok" if name in ("an optimum", "sets") else "insufficient")
    assert population["status"] == "ok"
    assert population["n"] == sum(groups[g]["n"] for g in SIZES)
    for i, row in enumerate(population["rows"]):
        assert row["by"] == "weighted=region"
        assert row["estimate"] == pytest.approx(float(shares[i]), abs=1e-12)
        assert row["se"] == pytest.approx(sqrt(covariance[i][i]), rel=CLOSE[name])
        assert population["covariance"][i] == pytest.approx(
            [float(v) for v in covariance[i][: len(population["rows"])]], abs=1e-12
        )


def test_groups_that_were_sampled_unequally() -> None:
    """Shares 0.4, 0.1 and 0.6 of groups of equal size, of which one answered twice as often."""
    counts = {"c0": (220, 180), "c1": (140, 60), "c2": (90, 110)}  # the expected counts
    (alone,) = result(*sources((WARNER, counts)))["questions"] or [None]
    found = result(
        *sources((WARNER, counts)), by="region", group_sizes='{"c0": 7, "c1": 7, "c2": 7}'
    )
    _, population = apart(found)
    assert [row["estimate"] for row in population["rows"]] == pytest.approx([19 / 30, 11 / 30])
    parts = [part(WARNER, c) for c in counts.values()]
    assert pool(parts, Request()).mean.unbiased == pytest.approx((0.625, 0.375))
    assert alone is not None
    # The sizes 2, 1 and 1 of the sample give the estimate of all reports together.
    _, sampled = apart(
        result(*sources((WARNER, counts)), by="region", group_sizes='{"c0": 2, "c1": 1, "c2": 1}')
    )
    assert [row["estimate"] for row in sampled["rows"]] == pytest.approx([0.625, 0.375])
    # Groups that differ explain a part of the variance of all answers (0.375 · 0.625 less that within).
    pooled_se = sqrt(0.4375 * 0.5625 / 0.25 / 799)
    assert sampled["rows"][1]["se"] < pooled_se


METHODS: Final = (
    "score",
    "clt",
    "chebyshev",
    "chebyshev_plugin",
    "simultaneous",
    "simultaneous_plugin",
)


@pytest.mark.parametrize("census", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", VERSIONS)
def test_errors_and_intervals_follow_from_those_of_the_groups(
    name: str, method: str, census: bool
) -> None:
    found = result(
        *sources(*VERSIONS[name]), by="region", group_sizes=TEXT, method=method, census=census
    )
    groups, population = apart(found)
    weights = {g: size / sum(SIZES.values()) for g, size in SIZES.items()}
    for i, row in enumerate(population["rows"]):
        of_groups = [(w, groups[g]["rows"][i]) for g, w in weights.items()]
        estimate = sum(w * one["estimate"] for w, one in of_groups)
        assert row["estimate"] == pytest.approx(estimate, abs=1e-12)
        for column in ("se", "se_privacy", "se_sampling", "worst_case_se"):
            squares = sum((w * one[column]) ** 2 for w, one in of_groups)
            assert row[column] == pytest.approx(sqrt(squares), abs=1e-12)
        assert row["method"] == method
        below = sqrt(sum((w * (one["estimate"] - one["low"])) ** 2 for w, one in of_groups))
        above = sqrt(sum((w * (one["high"] - one["estimate"])) ** 2 for w, one in of_groups))
        if method != "score" or all(0 < one["low"] < one["high"] < 1 for _, one in of_groups):
            assert row["low"] == pytest.approx(estimate - below, abs=1e-9)
            assert row["high"] == pytest.approx(estimate + above, abs=1e-9)


def test_figures_that_are_not_those_of_a_weighted_mean_are_empty() -> None:
    groups, population = apart(result(*sources((LIP, FOUR)), by="region", group_sizes=TEXT))
    columns = ("poisoning_up", "poisoning_down", "privacy_cost", "efficiency", "versions_p")
    tables = ("projected", "projected_interval", "mle", "mle_interval", "mle_gap", "fit_p")
    assert {row[name] for row in population["rows"] for name in columns} == {None}
    assert {population[name] is None for name in (*tables, "random_answers")} == {True}
    # A group alone has them.
    assert all(groups["c0"][name] is not None for name in ("projected", "mle", "fit_p"))
    assert all(groups["c0"]["rows"][0][name] is not None for name in columns[:-1])


@pytest.mark.parametrize("name", VERSIONS)
def test_a_ratio_is_one_of_weighted_sums_with_fiellers_interval(name: str) -> None:
    """Not the weighted sum of the groups' ratios, whose weights would be those of all people."""
    targets = {"q": {"part": {"of": {"c1": 1}, "over": {"c0": 1, "c1": 1}}}}
    versions = VERSIONS[name]
    found = result(
        *sources(*versions), by="region", group_sizes=TEXT, targets=targets, method="clt"
    )
    groups, population = apart(found)
    p, covariance = of_population(*versions)
    C = np.array([[float(v) for v in row[:2]] for row in covariance[:2]])
    a, b = float(p[1]), float(p[0] + p[1])
    vaa, vab, vbb = C[1, 1], C[1, 0] + C[1, 1], C.sum()
    (row,) = population["rows"]
    assert row["estimate"] == pytest.approx(a / b, abs=1e-12)
    rho = a / b
    assert row["se"] == pytest.approx(sqrt(vaa - 2 * rho * vab + rho**2 * vbb) / b, rel=CLOSE[name])
    # (a − ρb)² = z²·var(a − ρb), a quadratic equation in ρ.
    roots = np.roots([b * b - Z * Z * vbb, -2 * (a * b - Z * Z * vab), a * a - Z * Z * vaa])
    assert (row["low"], row["high"]) == pytest.approx(tuple(sorted(roots)), rel=1e-6)
    of_ratios = sum(
        size / sum(SIZES.values()) * groups[g]["rows"][0]["estimate"] for g, size in SIZES.items()
    )
    if name != "sets":  # whose two choices have a sum near 1 in every group
        assert abs(row["estimate"] - of_ratios) > 1e-4


def test_a_mean_of_scores_and_a_median() -> None:
    scores = (Fraction(1), Fraction(2), Fraction(5))
    versions = VERSIONS["two versions"]
    _, population = apart(
        result(*sources(*versions, score=scores), by="region", group_sizes=TEXT, targets="scales")
    )
    p, C = of_population(*versions)
    rows = {row["choice"]: row for row in population["rows"]}
    mean = sum(s * v for s, v in zip(scores, p, strict=False))
    variance = sum(scores[i] * scores[j] * C[i][j] for i, j in product(range(3), repeat=2))
    assert rows["mean"]["estimate"] == pytest.approx(float(mean), abs=1e-12)
    assert rows["mean"]["se"] == pytest.approx(sqrt(variance), abs=1e-12)
    assert rows["up to 2"]["estimate"] == pytest.approx(float(p[0] + p[1]), abs=1e-12)
    below = 0 if p[0] >= Fraction(1, 2) else 1 if p[0] + p[1] >= Fraction(1, 2) else 2
    assert rows["median"]["estimate"] == scores[below]
    assert rows["median"]["by"] == "weighted=region"


def test_weights_of_versions_by_inverse_variance() -> None:
    found = result(
        *sources(*VERSIONS["two versions"]),
        by="region",
        group_sizes=TEXT,
        weights="inverse-variance",
    )
    groups, population = apart(found)
    for i, row in enumerate(population["rows"]):
        each = [(s / sum(SIZES.values()), groups[g]["rows"][i]) for g, s in SIZES.items()]
        assert row["estimate"] == pytest.approx(sum(w * r["estimate"] for w, r in each), abs=1e-12)
        assert row["se"] == pytest.approx(sqrt(sum((w * r["se"]) ** 2 for w, r in each)), abs=1e-12)


def weighed(counts: Sequence[tuple[int, int]], shares: Sequence[float], method: str) -> Pooled:
    request = Request(method=method)
    groups = [[part(WARNER, one)] for one in counts]
    return weigh_groups([(parts, pool(parts, request)) for parts in groups], shares, request)


def outcomes(
    n: int, truths: Sequence[Fraction]
) -> Iterator[tuple[list[tuple[int, int]], Fraction]]:
    """Yield the counts of groups of n reports each, with their probability."""
    ones = [Fraction(1, 4) + p / 2 for p in truths]
    for yes in product(range(n + 1), repeat=len(truths)):
        chance = Fraction(1)
        for k, q in zip(yes, ones, strict=True):
            chance *= comb(n, k) * q**k * (1 - q) ** (n - k)
        yield [(n - k, k) for k in yes], chance


def test_it_is_unbiased_and_so_is_its_variance() -> None:
    """Claim 12, by every outcome of three reports in each of two groups."""
    truths, shares = (Fraction(4, 5), Fraction(1, 10)), (0.75, 0.25)
    total = square = variance = 0.0
    for counts, chance in outcomes(3, truths):
        mean = weighed(counts, shares, "clt").mean
        value = mean.unbiased[1]
        assert value is not None
        assert mean.covariance is not None
        total += float(chance) * value
        square += float(chance) * value**2
        variance += float(chance) * float(mean.covariance[1][1] or 0)
    assert total == pytest.approx(0.75 * 0.8 + 0.25 * 0.1, abs=1e-12)
    assert variance == pytest.approx(square - total**2, abs=1e-12)


@pytest.mark.parametrize("truths", [(0, 1), (Fraction(1, 2), Fraction(1, 10))])
def test_kl_covers_every_population(truths: Sequence[Fraction]) -> None:
    """Claim 13, by every outcome of eight reports in each of two groups; the largest group dominates."""
    shares, missed = (0.9, 0.1), Fraction(0)
    true = float(0.9 * truths[0] + 0.1 * truths[1])
    for counts, chance in outcomes(8, [Fraction(p) for p in truths]):
        ends = weighed(counts, shares, "kl").ends[1]
        assert ends is not None
        missed += chance if not ends[0] - 1e-9 <= true <= ends[1] + 1e-9 else 0
    assert missed <= Fraction(5, 100)


def test_exact_gives_kl_with_a_flag_as_comparisons_do() -> None:
    of = sources(*VERSIONS["a table"])
    _, by_kl = apart(result(*of, by="region", group_sizes=TEXT, method="kl"))
    groups, by_exact = apart(result(*of, by="region", group_sizes=TEXT, method="exact"))
    assert groups["c0"]["rows"][0]["method"] != "score"
    for row, other in zip(by_exact["rows"], by_kl["rows"], strict=True):
        assert row == other | {"flags": [*other["flags"], "exact_not_available"]}
        assert row["method"] == "kl"


def test_independence_is_tested_with_the_estimated_covariance() -> None:
    """In each group the questions are independent, in the population they are not."""
    product_of = {"c0": (810, 90, 90, 10), "c1": (10, 90, 90, 810)}
    open_answers = DenseMechanism(
        4, tuple(tuple(16 * (x == y) for y in range(4)) for x in range(4))
    )
    document = document_of(
        (block_about(open_answers, question("a", 2), question("b", 2)),), (question("region", 2),)
    )
    groups, population = apart(
        result(
            received(document, product_of),
            by="region",
            group_sizes='{"c0": 1, "c1": 1}',
            targets=["a", "b"],
        )
    )
    assert groups["c0"]["independence"]["p"] > 0.99
    p = np.array([row["estimate"] for row in population["rows"]]).reshape(2, 2)
    difference = p[0, 0] - p[0].sum() * p[:, 0].sum()
    r, c = p[0].sum(), p[:, 0].sum()
    slope = np.array([1 - r - c, -r, -c, 0])  # of p00 − (p00 + p01)(p00 + p10)
    variance = slope @ np.array(population["covariance"]) @ slope
    assert population["independence"]["statistic"] == pytest.approx(difference**2 / variance)
    assert population["independence"]["p"] < 1e-6


# Groups that are missing.


def test_a_named_group_below_the_minimum_leaves_the_population_without_estimates() -> None:
    found = result(
        *sources(*VERSIONS["a table"]), by="region", group_sizes='{"c0": 1, "c1": 1, "c3": 0.001}'
    )
    groups, population = apart(found)
    assert groups["c3"]["status"] == population["status"] == "insufficient"
    assert population["rows"] == []
    assert population["covariance"] is None
    # c3 has 12 of at least 20 reports.
    assert (population["n"], population["needed"]) == (200 + 110 + 12, 200 + 110 + 20)
    read = Estimates.from_json(found)
    assert read.insufficient == {"q (region=c3)": 8, "q (weighted=region)": 8}
    line = next(
        row for row in csv.DictReader(io.StringIO(read.to_csv())) if "weighted" in row["by"]
    )
    assert (line["by"], line["status"], line["estimate"]) == ("weighted=region", "insufficient", "")


def test_a_choice_that_a_table_lacks_has_no_reports() -> None:
    """The second version asks another question, and has a region more."""
    first = document_of((block_about(WARNER, question("q", 2)),), (question("region", 2),))
    second = document_of((block_about(WARNER, question("r", 2)),), (question("region", 3),), 2)
    found = result(
        received(first, {"c0": (30, 30), "c1": (20, 40)}),
        received(second, {"c0": (30, 30), "c1": (20, 40), "c2": (35, 25)}),
        by="region",
        group_sizes='{"c0": 1, "c2": 1}',
    )
    populations = {one["id"]: one for one in found["questions"] if one["by"] == POPULATION}
    assert populations["r"]["status"] == "ok"
    assert populations["q"]["status"] == "insufficient"
    assert (populations["q"]["n"], populations["q"]["needed"]) == (60, 80)


def test_the_notes_say_who_is_in_the_population() -> None:
    notes = result(*sources(*VERSIONS["a table"]), by="region", group_sizes='{"c0": 3, "c2": 1}')[
        "notes"
    ]
    (note,) = [one for one in notes if one.startswith("weighted=region")]
    assert "these groups: c0 75%, c2 25%." in note
    assert "Not part of it: c1, c3." in note
    assert "Reports without an answer to region are in no group." in note
    without = result(*sources(*VERSIONS["a table"]), by="region")["notes"]
    assert not [one for one in without if "weighted" in one]


def test_one_population_for_each_period() -> None:
    document = document_of((block_about(WARNER, question("q", 2)),), (question("region", 2),))
    weeks = {"2026-W18": ((40, 20), (30, 30)), "2026-W19": ((20, 40), (5, 5))}
    source = received(document, {})
    for week, (a, b) in weeks.items():
        source = source.with_cells(received(document, {"c0": a, "c1": b}, week).cells)
    found = result(source, by="region,week", group_sizes='{"c0": 3, "c1": 1}')["questions"]
    assert [one["by"] for one in found[-2:]] == [POPULATION | {"week": week} for week in weeks]
    assert len(found) == 6
    first, second = found[-2:]
    assert first["rows"][1]["by"] == "weighted=region week=2026-W18"
    shares = [(20 / 60 - 0.25) * 2, (30 / 60 - 0.25) * 2]
    assert first["rows"][1]["estimate"] == pytest.approx(0.75 * shares[0] + 0.25 * shares[1])
    assert (second["status"], second["n"], second["needed"]) == ("insufficient", 70, 80)


def test_comparisons_are_of_the_groups_alone() -> None:
    of = sources(*VERSIONS["two versions"])
    with_sizes = result(*of, by="region", group_sizes=TEXT, compare="all")
    without = result(*of, by="region", compare="all")
    assert with_sizes["comparisons"] == without["comparisons"] != []
    assert with_sizes["questions"][:-1] == without["questions"]


def test_denial_is_that_of_the_population() -> None:
    _, population = apart(
        result(*sources(*VERSIONS["a table"]), by="region", group_sizes=TEXT, denial=0.2)
    )
    for row in population["rows"]:
        assert row["denied_estimate"] == pytest.approx(row["estimate"] / 0.8)


def test_units_of_sizes_do_not_matter() -> None:
    of = sources(*VERSIONS["two versions"])
    _, one = apart(result(*of, by="region", group_sizes='{"c0": 0.1, "c1": 0.3}'))
    _, other = apart(result(*of, by="region", group_sizes='{"c0": 1000, "c1": 3000}'))
    assert one == other


def test_a_result_replays(sqlite: Database) -> None:
    _collect(sqlite)
    for by in ("region", "region,month"):
        found = Analysis(sqlite).estimates(
            SURVEY, by=by, group_sizes='{"north": 0.1, "south": 2.30}', targets="shares"
        )
        assert found["group_sizes"] == '{"north": 0.1, "south": 2.30}'
        assert any("weighted" in one["by"] for one in found["questions"])
        assert Analysis(sqlite).replay(json.loads(encode(found))) == encode(found)


def test_every_export_has_its_rows() -> None:
    read = Estimates.from_json(
        result(*sources(*VERSIONS["a table"]), by="region", group_sizes=TEXT)
    )
    lines = [
        row for row in csv.DictReader(io.StringIO(read.to_csv())) if row["by"] == "weighted=region"
    ]
    assert [float(line["estimate"]) for line in lines] == [
        row.estimate for row in read.of("q", "weighted=region")
    ]
    assert [line["choice"] for line in lines] == ["c0", "c1", "c2"]
    assert "weighted=region" in read.to_spreadsheet().decode("utf-8-sig")
    assert "weighted=region (n 430)" in str(read)
    assert "weighted=region" in read._repr_html_()
    # c3 has too few reports, and those of the population are those of its groups.
    assert "(n=430)" in str(read.plot("q"))
    assert "430 reports" in str(read.plot("q"))
    assert "430 reports" in str(read.plot("q", by="weighted=region"))
    assert "weighted region (n=430)" in str(read.plot("q"))
    assert ("weighted=region", "estimate") in read.to_pandas(wide=True).columns


# Requests that are refused.

REFUSED: Final[dict[str, tuple[dict[str, Any], tuple[str, str]]]] = {
    "no JSON": ({"group_sizes": "c0=1"}, ("field_type", "group_sizes")),
    "no text": ({"group_sizes": {"c0": 1, "c1": 1}}, ("field_type", "group_sizes")),
    "a list": ({"group_sizes": "[1, 2]"}, ("field_type", "group_sizes")),
    "a text": ({"group_sizes": '"c0"'}, ("field_type", "group_sizes")),
    "empty": ({"group_sizes": ""}, ("field_type", "group_sizes")),
    "no group": ({"group_sizes": "{}"}, ("field_type", "group_sizes")),
    "one group": ({"group_sizes": '{"c0": 1}'}, ("field_type", "group_sizes")),
    "a group twice": ({"group_sizes": '{"c0": 1, "c0": 2, "c1": 1}'}, ("field_type", "group_sizes")),
    "zero": ({"group_sizes": '{"c0": 1, "c1": 0}'}, ("field_type", "group_sizes")),
    "below zero": ({"group_sizes": '{"c0": 1, "c1": -1}'}, ("field_type", "group_sizes")),
    "no number": ({"group_sizes": '{"c0": 1, "c1": "many"}'}, ("field_type", "group_sizes")),
    "true": ({"group_sizes": '{"c0": 1, "c1": true}'}, ("field_type", "group_sizes")),
    "not finite": ({"group_sizes": '{"c0": 1, "c1": NaN}'}, ("field_type", "group_sizes")),
    "huge": ({"group_sizes": '{"c0": 1, "c1": 1e400}'}, ("field_type", "group_sizes")),
    "half a surrogate": ({"group_sizes": '{"c0": 1, "\ud800": 1}'}, ("field_type", "group_sizes")),
    "an unknown group": ({"group_sizes": '{"c0": 1, "c9": 1}'}, ("strata_invalid", "group_sizes")),
    "a label": ({"group_sizes": '{"c0": 1, "C1": 1}'}, ("strata_invalid", "group_sizes")),
    "no by": ({"by": None}, ("unsupported", "group_sizes")),
    "versions": ({"by": "version"}, ("unsupported", "group_sizes")),
    "periods": ({"by": "week"}, ("unsupported", "group_sizes")),
    "versions and periods": ({"by": "version,week"}, ("unsupported", "group_sizes")),
    "an unknown question": ({"by": "sex"}, ("strata_invalid", "by")),
    "a sequence": ({"method": "sequence"}, ("unsupported", "method")),
    "a population": ({"population": 1000}, ("unsupported", "population")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_sizes_are_refused(name: str) -> None:
    fields, expected = REFUSED[name]
    asked = {"by": "region", "group_sizes": TEXT} | fields
    of = sources(*VERSIONS["a table"])
    assert code_and_field(InvalidInput, result, *of, **asked) == expected


SAID: Final = {
    '{"c0": 1, "S\u00fcden": 1}': "ids of their choices",
    r'{"c0": 1, "S\u00fcden": 1}': "ids of their choices",
    '{"c0": 1, "c1": 1e13}': "below 10^13",
    '{"c0": 1, "c1": "1e300"}': "below 10^13",
    '{"c0": 1, "c1": 1e-13}': "10^-12",
    '{"c0": 1, "c1": null}': "sizes are numbers",
    '{"c0": 1, "c1": 0}': "above 0: leave a group out",
    '{"c0": 1}': "at least two groups",
    '{"c0": 1, "c0": 1}': "each group once",
    '{"c0": 1': "as JSON such as",
    '{"c0": 1, "c1": ' + " " * 2**14 + "1}": "at most 16,384 characters",
}


@pytest.mark.parametrize("text", SAID)
def test_each_error_says_what_is_wrong(text: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(SAID[text])) as refused:
        result(*sources(*VERSIONS["a table"]), by="region", group_sizes=text)
    assert refused.value.field == "group_sizes"


def test_decimals_may_be_texts_which_are_exact() -> None:
    of = sources(*VERSIONS["a table"])
    _, one = apart(result(*of, by="region", group_sizes='{"c0": 0.1, "c1": 3}'))
    _, other = apart(result(*of, by="region", group_sizes='{"c0": "0.1", "c1": "3"}'))
    assert one == other


def test_a_choice_that_the_newest_version_lacks_is_in_no_group() -> None:
    """Its reports are in the first version, whose people could still choose it."""
    first = document_of((block_about(WARNER, question("q", 2)),), (question("region", 3),))
    second = document_of((block_about(WARNER, question("q", 2)),), (question("region", 2),), 2)
    of = (
        received(first, {"c0": (30, 30), "c1": (20, 40), "c2": (10, 50)}),
        received(second, {"c0": (30, 30), "c1": (20, 40)}),
    )
    found = result(*of, by="region", group_sizes='{"c0": 1, "c1": 1}')
    (note,) = [one for one in found["notes"] if one.startswith("weighted=region")]
    assert (
        "without an answer to region, or with one that its newest version lacks (c2), are in no group."
        in note
    )
    assert [one["n"] for one in found["questions"]] == [120, 120, 240]
    with pytest.raises(InvalidInput, match="no longer has c2; the groups are c0, c1"):
        result(*of, by="region", group_sizes='{"c0": 1, "c2": 1}')


def test_the_error_names_the_groups() -> None:
    with pytest.raises(InvalidInput, match="the groups are c0, c1, c2, c3"):
        result(*sources(*VERSIONS["a table"]), by="region", group_sizes='{"c0": 1, "x": 1}')


def test_two_versions_have_no_exact_interval() -> None:
    of = sources(*VERSIONS["two versions"])
    asked = {"by": "region", "group_sizes": TEXT, "method": "exact"}
    assert code_and_field(InvalidInput, result, *of, **asked) == ("unsupported", "method")


def test_arms_are_no_groups_of_a_population() -> None:
    """Devices draw their arms: none has a size in a population."""
    versions = [Received(view, {}, 0) for view in armed().versions]
    asked = {"by": "arm", "group_sizes": '{"strong": 1, "weak": 1}'}
    assert code_and_field(InvalidInput, result, *versions, **asked) == (
        "unsupported",
        "group_sizes",
    )
