# SPDX-License-Identifier: Apache-2.0
"""Comparisons and tests of groups, checked with scipy for open answers and with formulas for noisy
answers."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.analysis.contrasts import Contrast, Sample
from frankly_server.analysis.counted_document import CellCounts, Key, Received
from frankly_server.analysis.pooling import pool
from frankly_server.analysis.request import Request
from scipy import stats

from tests.frankly_server.analysis.samples import (
    LIP,
    Counts,
    block_about,
    document_of,
    grr,
    law,
    part,
    question,
    received,
    result,
)
from tests.refusals import code_and_field

OPEN = {
    k: DenseMechanism(4, tuple(tuple(16 * (x == y) for y in range(k)) for x in range(k)))
    for k in (2, 3, 6)
}
"""Mechanisms that add no noise: tests of them must be those of any textbook."""
TABLE = {"c0": (30, 50, 20), "c1": (45, 40, 25), "c2": (22, 61, 37)}
Z = stats.norm.ppf(0.975)


def _compared(
    mechanism: DenseMechanism, groups: Mapping[str, Counts], scores: Sequence[float] = (), **asked: Any
) -> dict[str, Any]:  # fmt: skip
    kinds = {"score": scores} if scores else {}
    region = question("region", len(groups), **kinds)
    document = document_of((block_about(mechanism, question("q", mechanism.answers)),), (region,))
    (found,) = result(received(document, groups), by="region", **asked)["comparisons"]
    return dict(found)


def _row(found: Mapping[str, Any], by: str, choice: str) -> dict[str, Any]:
    return next(
        dict(row)
        for row in found["rows"]
        if row["choice"] == choice and by in (row["by"], row["by"].removeprefix("region="))
    )


def test_homogeneity_of_open_answers_is_pearsons_test() -> None:
    found = _compared(OPEN[3], TABLE, compare="first")["homogeneity"]
    expected = stats.chi2_contingency(np.array(list(TABLE.values())), correction=False)
    assert (found["statistic"], found["df"], found["p"]) == pytest.approx(
        (expected.statistic, expected.dof, expected.pvalue)
    )


def test_a_pair_of_open_answers_is_tested_by_the_pooled_z_test() -> None:
    found = _compared(OPEN[2], {"c0": (40, 25), "c1": (30, 42), "c2": (20, 20)}, compare="all")
    assert [(r["by"], r["reference"]) for r in found["rows"][::2]] == [
        ("region=c1", "region=c0"), ("region=c2", "region=c0"), ("region=c2", "region=c1")
    ]  # fmt: skip
    expected = stats.chi2_contingency([[40, 25], [30, 42]], correction=False).pvalue
    row = _row(found, "c1", "c1")
    assert row["p"] == pytest.approx(expected)
    assert row["difference"] == pytest.approx(42 / 72 - 25 / 65)
    assert (row["n"], row["n_reference"]) == (72, 65)
    assert row["ratio"] == pytest.approx((42 / 72) / (25 / 65))
    # Two choices need only one test, so the family has one test for each pair.
    assert found["family"]["size"] == 3
    adjusted = [r["p_holm"] for r in found["rows"] if r["by"] == "region=c1"]
    assert adjusted == pytest.approx([min(3 * expected, 1)] * 2)


def test_the_difference_by_score_is_newcombes() -> None:
    """Differences of Wilson intervals (Newcombe's method 10) apply where they are not narrower than
    Wald's intervals."""
    (a, n), (b, m) = (27, 60), (12, 75)
    row = _row(
        _compared(OPEN[2], {"c0": (m - b, b), "c1": (n - a, a)}, compare="first"), "c1", "c1"
    )

    def wilson(k: int, size: int) -> tuple[float, float]:
        ends = stats.binomtest(k, size).proportion_ci(0.95, method="wilson")
        half = Z * sqrt(k / size * (1 - k / size) / (size - 1))
        return max(k / size - ends.low, half), max(ends.high - k / size, half)

    (below, above), (other_below, other_above) = wilson(a, n), wilson(b, m)
    gap = a / n - b / m
    assert (row["low"], row["high"]) == pytest.approx(
        (gap - np.hypot(below, other_above), gap + np.hypot(above, other_below))
    )
    assert row["low_all"] == pytest.approx(row["low"])  # one pair with two choices is one test


def test_the_trend_of_open_answers_is_cochran_and_armitages() -> None:
    groups = {"c0": (60, 10), "c1": (50, 20), "c2": (40, 35)}
    scores = (0, 1, 3)
    found = _compared(OPEN[2], groups, scores, compare="first")["trend"]
    assert found["per"] == "unit of region"
    row = found["rows"][1]
    n = np.array([sum(counts) for counts in groups.values()])
    yes = np.array([counts[1] for counts in groups.values()])
    p, centred = yes.sum() / n.sum(), np.array(scores) - (n @ scores) / n.sum()
    z = (yes @ centred) / sqrt(p * (1 - p) * (n @ centred**2))
    assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(z)))
    # The slope equals that of least squares over all people.
    people = [(s, x) for s, counts in zip(scores, groups.values(), strict=True)
              for x in (0, 1) for _ in range(counts[x])]  # fmt: skip
    assert row["difference"] == pytest.approx(stats.linregress(*zip(*people, strict=True)).slope)


def test_groups_without_an_order_have_no_trend() -> None:
    assert _compared(OPEN[3], TABLE, compare="first")["trend"] is None
    two = {name: TABLE[name] for name in ("c0", "c1")}
    assert _compared(OPEN[3], two, (1, 2), compare="first")["trend"] is None


@pytest.mark.parametrize("census", [False, True])
@pytest.mark.parametrize("method", ["clt", "score", "chebyshev"])
def test_noisy_groups_by_hand(method: str, census: bool) -> None:
    """Randomised response is decoded by hand; in a census, only its noise remains."""
    mechanism, counts = grr(3, 1), {"c0": (90, 60, 50), "c1": (50, 70, 60)}
    on, off = (float(w) / mechanism.denominator for w in mechanism.weights[0][:2])
    found = _compared(mechanism, counts, compare="first", method=method, census=census)
    sizes = {name: sum(of) for name, of in counts.items()}
    shares = {name: (np.array(of) / sizes[name] - off) / (on - off) for name, of in counts.items()}
    pooled = (np.sum(list(counts.values()), axis=0) / sum(sizes.values()) - off) / (on - off)
    for x in range(3):
        row = _row(found, "c1", f"c{x}")
        gap = shares["c1"][x] - shares["c0"][x]
        rate = off + (on - off) * pooled[x]
        of_one = rate * (1 - rate) - (on - off) ** 2 * pooled[x] * (1 - pooled[x]) * census
        variance = of_one / (on - off) ** 2 * sum(1 / n for n in sizes.values())
        assert row["difference"] == pytest.approx(gap)
        assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(gap) / sqrt(variance)))
        assert row["low"] <= gap <= row["high"]
        if method == "clt":
            assert row["high"] - gap == pytest.approx(Z * row["se"])
            assert row["high_all"] - gap == pytest.approx(stats.norm.ppf(1 - 0.025 / 3) * row["se"])
        if method == "chebyshev":
            assert (row["high_all"] - gap) / (row["high"] - gap) == pytest.approx(sqrt(3))


def test_pooled_versions_are_compared_within_each_version() -> None:
    region, q = question("region", 2), question("q", 2)
    first, second = grr(2, 1), grr(2, 3)
    counts = ({"c0": (70, 50), "c1": (60, 80)}, {"c0": (30, 20), "c1": (45, 55)})
    sources = [
        received(document_of((block_about(m, q),), (region,), version), of)
        for version, (m, of) in enumerate(zip((first, second), counts, strict=True), 1)
    ]
    (found,) = result(*sources, by="region", compare="first")["comparisons"]
    row = _row(found, "c1", "c1")
    gap, variance = 0.0, 0.0
    for mechanism, of in zip((first, second), counts, strict=True):
        on, off = (float(w) / mechanism.denominator for w in mechanism.weights[0])
        share = sum(of[g][1] for g in of) / sum(map(sum, of.values()))
        for name, sign in (("c1", 1), ("c0", -1)):
            n, total = sum(of[name]), sum(sum(c[name]) for c in counts)
            gap += sign * n / total * (of[name][1] / n - off) / (on - off)
            variance += (n / total) ** 2 * share * (1 - share) / (on - off) ** 2 / n
    assert row["difference"] == pytest.approx(gap)
    assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(gap) / sqrt(variance)))


def test_versions_are_compared_by_version() -> None:
    q = question("q", 3)
    sources = [
        received(document_of((block_about(grr(3, 1), q),), version=v), {"": of})
        for v, of in ((1, (90, 60, 50)), (2, (50, 70, 60)))
    ]
    (found,) = result(*sources, by="version", compare="previous")["comparisons"]
    assert {(r["by"], r["reference"]) for r in found["rows"]} == {("version=2", "version=1")}
    pooled = result(*sources)["questions"][0]["rows"][0]["versions_p"]
    assert found["homogeneity"]["p"] == pytest.approx(pooled)


def test_periods_are_compared_and_their_trend_is_per_period() -> None:
    document = document_of((block_about(OPEN[2], question("q", 2)),))
    weeks = {"2026-W01": (40, 10), "2026-W02": (30, 20), "2026-W05": (10, 40)}
    cells: dict[Key, CellCounts] = {
        ((0,), "", week): CellCounts(50, {(0,): no, (1,): yes}) for week, (no, yes) in weeks.items()
    }
    cells[(0,), "", ""] = CellCounts(150, {(0,): 80, (1,): 70})
    (found,) = result(Received(document, cells, 1), by="week", compare="previous")["comparisons"]
    assert [(r["by"], r["reference"]) for r in found["rows"][1::2]] == [
        ("week=2026-W02", "week=2026-W01"), ("week=2026-W05", "week=2026-W02")
    ]  # fmt: skip
    slope = stats.linregress([0, 1, 4], [0.2, 0.4, 0.8]).slope
    assert found["trend"]["per"] == "week"
    assert found["trend"]["rows"][1]["difference"] == pytest.approx(slope)


def test_a_weighted_sum_and_the_mean_of_groups() -> None:
    weights = {"c0": 1, "c1": -0.5, "c2": -0.5}
    found = _compared(OPEN[3], TABLE, compare=json.dumps(weights), method="clt")
    shares = {name: np.array(of) / sum(of) for name, of in TABLE.items()}
    row = found["rows"][1]
    assert row["difference"] == pytest.approx(sum(w * shares[g][1] for g, w in weights.items()))
    errors = [w**2 * shares[g][1] * (1 - shares[g][1]) / (sum(TABLE[g]) - 1) for g, w in weights.items()]  # fmt: skip
    assert row["se"] == pytest.approx(sqrt(sum(errors)))
    assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(row["difference"]) / row["se"]))
    total = np.sum(list(TABLE.values()), axis=0)
    for name, share in shares.items():
        mean = _row(_compared(OPEN[3], TABLE, compare="mean"), name, "c1")
        assert mean["difference"] == pytest.approx(share[1] - total[1] / total.sum())
        assert (mean["reference"], mean["ratio"]) == ("mean", None)


@pytest.mark.parametrize("compare", ["c1", "first", "all", "previous"])
def test_a_reference_is_subtracted(compare: str) -> None:
    rows = _compared(OPEN[3], TABLE, compare=compare)["rows"]
    pairs = list(dict.fromkeys((r["by"][-1], r["reference"][-1]) for r in rows))
    first = ["10", "20"]
    expected = {"c1": ["01", "21"], "first": first, "all": [*first, "21"], "previous": ["10", "21"]}
    assert ["".join(pair) for pair in pairs] == expected[compare]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no groups": ({"compare": "first"}, "unsupported", "compare"),
    "an unknown group": ({"by": "region", "compare": "c9"}, "strata_invalid", "compare"),
    "unknown groups": ({"by": "region", "compare": '{"c0": 1, "west": -1}'}, "strata_invalid", "compare"),
    "one group": ({"by": "region", "compare": '{"c0": 1}'}, "field_type", "compare"),
    "no weights": ({"by": "region", "compare": '{"c0": "a lot", "c1": -1}'}, "field_type", "compare"),
    "no JSON": ({"by": "region", "compare": "{c0: 1}"}, "field_type", "compare"),
    "nothing": ({"by": "region", "compare": ""}, "field_type", "compare"),
    "a number": ({"by": "region", "compare": 1}, "field_type", "compare"),
    "a sequence": ({"by": "region", "compare": "all", "method": "sequence"}, "unsupported", "method"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_comparison_that_cannot_be_made_is_refused(name: str) -> None:
    asked, code, field = REFUSED[name]
    region = question("region", 3)
    document = document_of((block_about(OPEN[3], question("q", 3)),), (region,))
    assert code_and_field(InvalidInput, result, received(document, TABLE), **asked) == (code, field)


def test_groups_with_too_few_reports_are_named() -> None:
    found = _compared(OPEN[3], TABLE | {"c3": (3, 4, 5)}, compare="first")
    assert found["left_out"] == ["region=c3"]
    assert len(found["groups"]) == 3
    assert _compared(OPEN[3], {"c0": (3, 4, 5), "c1": (30, 40, 50)}, compare="c0")["rows"] == []


def _cross(
    mechanism: DenseMechanism, counts: Counts, sizes: tuple[int, int], **asked: Any
) -> dict[str, Any]:
    questions = question("a", sizes[0]), question("b", sizes[1])
    document = document_of((block_about(mechanism, *questions),))
    (found,) = result(received(document, {"": counts}), targets=["a", "b"], **asked)["questions"]
    return dict(found["independence"])


def test_independence_of_open_answers_is_pearsons_test() -> None:
    table = np.array([[30, 20, 10], [25, 40, 35]])
    found = _cross(OPEN[6], table.ravel(), (2, 3))
    expected = stats.chi2_contingency(table, correction=False)
    assert (found["statistic"], found["df"], found["p"]) == pytest.approx(
        (expected.statistic, expected.dof, expected.pvalue)
    )
    effect = found["effect"]
    assert effect["name"] == "Cramér's V"
    # The estimator subtracts the noise of the cells, so the estimate is below the plug-in value.
    plug_in = stats.contingency.association(table, method="cramer")
    assert 0 < effect["low"] < effect["estimate"] < plug_in < effect["high"]


def test_phi_has_a_sign() -> None:
    table = np.array([[30, 20], [10, 40]])
    mechanism = grr(4, 6)
    found = _cross(mechanism, np.rint(1e4 * (table.ravel() / 100) @ law(mechanism)), (2, 2))
    assert found["effect"]["name"] == "phi"
    plug_in = stats.contingency.association(table, method="cramer")
    assert found["effect"]["estimate"] == pytest.approx(plug_in, abs=1e-3)
    flipped = _cross(mechanism, np.rint(1e4 * (table[::-1].ravel() / 100) @ law(mechanism)), (2, 2))
    assert flipped["effect"]["estimate"] == pytest.approx(-plug_in, abs=1e-3)


@pytest.mark.parametrize("lower", [0.9, 0.95])
def test_kl_covers_every_difference(lower: float) -> None:
    """The test enumerates all outcomes of two groups of 6 and 8 reports at unequal true shares."""
    mechanism, request = grr(2, 2), Request(method="kl", level=lower)
    on, off = (float(w) / mechanism.denominator for w in mechanism.weights[0])
    sizes = (6, 8)

    def sample(name: str, n: int, k: int) -> Sample:
        own = part(mechanism, (n - k, k))
        pooled = pool([own], request)
        rows = {"yes": {"estimate": pooled.mean.unbiased[1], "se": pooled.mean.se[1]}}
        return Sample(name, name, [own], [""], pooled, rows, {"yes": (1,)})

    ends = {}
    for k, j in product(range(sizes[0] + 1), range(sizes[1] + 1)):
        samples = [sample("a", sizes[0], k), sample("b", sizes[1], j)]
        found = Contrast(samples, (1.0, -1.0), request, 1).of("yes")
        assert found is not None
        ends[k, j] = found.ends
    for a, b in ((0.0, 0.0), (0.0, 1.0), (0.5, 0.2), (1.0, 0.9), (0.1, 0.1)):
        chances = [stats.binom(n, off + (on - off) * p) for n, p in zip(sizes, (a, b), strict=True)]
        missed = sum(
            chances[0].pmf(k) * chances[1].pmf(j)
            for (k, j), pair in ends.items()
            if pair is None or not pair[0] - 1e-12 <= a - b <= pair[1] + 1e-12
        )
        assert missed <= 1 - lower


SIZES = [500, *(pytest.param(n, marks=pytest.mark.full_only) for n in (2000, 10_000))]
SIZED: dict[str, tuple[DenseMechanism, Sequence[float]]] = {
    "grr": (grr(4, 1), (0.4, 0.3, 0.2, 0.1)),
    "grr, rare": (grr(4, 4), (0.86, 0.13, 0.005, 0.005)),
    "lip": (LIP, (0.173, 0.253, 0.36, 0.214)),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", SIZED)
def test_groups_that_are_equal_differ_in_five_percent(name: str, n: int, full: bool) -> None:
    """The test checks the size of tests of pairs, of all groups, of trends, and of the family by
    Holm's method."""
    mechanism, truth = SIZED[name]
    runs, rng = 2000 if full else 60, np.random.default_rng(n)
    rates = np.array(truth) @ law(mechanism)
    hits = np.zeros(4)
    for _ in range(runs):
        counts = {f"c{i}": rng.multinomial(n // (i + 1), rates) for i in range(3)}
        found = _compared(mechanism, counts, (1, 2, 3), compare="first")
        rows = found["rows"]
        hits += [
            rows[3]["p"] < 0.05,
            found["homogeneity"]["p"] < 0.05,
            found["trend"]["rows"][2]["p"] < 0.05,
            any(row["p_holm"] < 0.05 for row in rows),
        ]
    # The limit is one percentage point above nominal, plus 3.5 Monte Carlo standard errors.
    assert np.all(hits / runs <= 0.06 + 3.5 * sqrt(0.06 * 0.94 / runs)), hits / runs


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", [1, 3])
def test_independent_questions_are_dependent_in_five_percent(
    epsilon: float, n: int, full: bool
) -> None:
    mechanism, runs, rng = grr(8, epsilon), 2000 if full else 60, np.random.default_rng(n)
    rates = np.outer([0.7, 0.3], [0.4, 0.3, 0.2, 0.1]).ravel() @ law(mechanism)
    found = [_cross(mechanism, rng.multinomial(n, rates), (2, 4)) for _ in range(runs)]
    share = np.mean([test["p"] < 0.05 for test in found])
    assert share <= 0.06 + 3.5 * sqrt(0.06 * 0.94 / runs)
    # The true Cramér's V is 0, and its interval contains 0 at least as often as the test accepts.
    covered = np.mean([test["effect"] is None or test["effect"]["low"] <= 0 for test in found])
    assert covered >= 0.94 - 3.5 * sqrt(0.06 * 0.94 / runs)
