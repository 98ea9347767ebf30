# SPDX-License-Identifier: Apache-2.0
"""Sentences about estimates, which never claim more than the numbers in them."""

import random
import re
from statistics import NormalDist
from typing import Any

import pytest
from frankly_design.estimate.margins import widened
from frankly_server.web.results.sentences import (
    flag_words,
    group_sentences,
    interval_words,
    scale_sentences,
    sentences_of,
)
from frankly_server.web.results.words import Words

EN = Words("en")
Z = NormalDist().inv_cdf(0.975)


def row(choice: str, estimate: float, se: float, **changes: Any) -> dict[str, Any]:
    body = {"choice": choice, "label": {"en": choice}, "estimate": estimate, "se": se, "low": estimate - Z * se,
            "high": estimate + Z * se, "privacy_cost": 0.5, "poisoning_up": 0.02, "poisoning_down": 0.01,
            "versions_p": None, "flags": []}  # fmt: skip
    return body | changes


def question(values: dict[str, float], se: float, **changes: Any) -> dict[str, Any]:
    """Return a question with independent estimates that have the same standard error."""
    size = len(values)
    covariance = [[se * se if i == j else 0.0 for j in range(size)] for i in range(size)]
    return {
        "rows": [row(name, share, se) for name, share in values.items()],
        "covariance": covariance,
    } | changes


@pytest.mark.parametrize("seed", range(80))
def test_an_interval_in_words_contains_the_interval(seed: int) -> None:
    draw = random.Random(seed)
    low, high = sorted(draw.uniform(-0.2, 1.2) for _ in range(2))
    sentence = interval_words(low, high, EN)
    numbers = [float(number) / 100 for number in re.findall(r"(-?[\d.]+)%", sentence)]
    stated_low = numbers[0] if sentence.startswith(("between", "at least")) else 0.0
    stated_high = numbers[-1] if sentence.startswith(("between", "at most")) else 1.0
    assert stated_low <= max(low, 0) + 1e-9
    assert stated_high >= min(high, 1) - 1e-9
    # The interval in words is wider by less than one percentage point on each side, or a tenth for
    # a narrow interval.
    possible = max(0.0, min(high, 1) - max(low, 0))
    assert stated_high - stated_low <= possible + 0.02 + 1e-9


def z(level: float, comparisons: int) -> float:
    return NormalDist().inv_cdf(1 - (1 - level) / (2 * comparisons))


# Name -> (shares, standard error, part of the sentence about the ranking).
RANKED: dict[str, tuple[dict[str, float], float, str]] = {
    "clear": ({"no": 0.7, "yes": 0.3}, 0.02, "“no” is the most common answer"),
    "unclear": (
        {"no": 0.52, "yes": 0.48},
        0.05,
        "Which of “no” and “yes” is more common is unclear",
    ),
    "two lead": (
        {"a": 0.42, "b": 0.40, "c": 0.18},
        0.02,
        "Which of “a” and “b” is more common is unclear",
    ),
    "none": ({"a": 0.34, "b": 0.33, "c": 0.33}, 0.05, "Which answer is the most common is unclear"),
}


@pytest.mark.parametrize("name", RANKED)
def test_the_most_common_answer_is_named_only_where_it_is_clear(name: str) -> None:
    values, se, winner_text = RANKED[name]
    assert winner_text in " ".join(sentences_of(question(values, se), 0.95, EN).findings)


@pytest.mark.parametrize("seed", range(60))
def test_a_lead_is_stated_exactly_where_all_comparisons_hold_together(seed: int) -> None:
    draw = random.Random(seed)
    values = {name: draw.random() for name in "abcd"}
    se = draw.choice([0.01, 0.05, 0.1])
    findings = " ".join(sentences_of(question(values, se), 0.95, EN).findings)
    first, *other_values = sorted(values.values(), reverse=True)
    reach = z(0.95, 6) * se * 2**0.5
    assert ("is the most common answer" in findings) == all(
        first - value > reach for value in other_values
    )


def compared(choice: str, difference: float, half: float) -> dict[str, Any]:
    return {"choice": choice, "label": {"en": choice}, "by": "r=n", "reference": "r=s",
            "unit": "share", "difference": difference,
            "low_all": difference - half, "high_all": difference + half}  # fmt: skip


@pytest.mark.parametrize("apart", [-0.4, -0.05, 0.05, 0.4])
def test_groups_differ_only_beyond_the_error_of_all_comparisons(apart: float) -> None:
    rows = [compared("no", -apart, 0.1), compared("yes", apart, 0.1)]
    (sentence,) = group_sentences(rows, {"r=n": "North", "r=s": "South"}.__getitem__, EN)
    if abs(apart) < 0.1:
        assert sentence == "The one difference tested is not distinguishable from chance."
    else:
        higher, lower = ("North", "South") if apart > 0 else ("South", "North")
        start = f"“yes” is more common in “{higher}” than in “{lower}”, by"
        assert sentence == f"{start} 30 to 50 percentage points."


def test_differences_without_simultaneous_intervals_are_not_reported() -> None:
    row = compared("yes", 0.4, 0.1) | {"low_all": None, "high_all": None}
    assert group_sentences([row], str, EN) == (
        "Nothing is said of 1 difference, for want of an interval.",
    )


def test_a_difference_without_an_interval_is_not_called_indistinguishable() -> None:
    unknown = compared("often", 0.4, 0.1) | {"low_all": None, "high_all": None}
    rows = [compared("no", -0.05, 0.1), compared("yes", 0.02, 0.1), unknown]
    assert group_sentences(rows, str, EN) == (
        "None of the 2 differences tested is distinguishable from chance.",
        "Nothing is said of 1 further difference, for want of an interval.",
    )


def test_differences_that_are_not_stated_are_counted() -> None:
    """Of three choices, the last one cannot be estimated: neither of the others follows from the other."""
    rows = [
        compared(choice, difference, 0.01) | {"by": f"r={group}"}
        for group in "abc"
        for choice, difference in (("no", 0.3), ("yes", -0.1))
    ]
    *stated, rest = group_sentences(rows, str, EN)
    assert len(stated) == 3
    assert rest == "And 3 further differences are distinguishable from chance."
    assert len(group_sentences(rows[:4], str, EN)) == 4


def test_the_mean_of_the_groups_has_no_name_and_a_weighted_sum_no_sentence() -> None:
    mean = compared("yes", 0.4, 0.1) | {"reference": "mean"}
    total = compared("yes", 0.4, 0.1) | {"by": "+1 × n -1 × s", "reference": ""}
    assert group_sentences([mean, total], {"r=n": "North"}.__getitem__, EN) == (
        "“yes” is more common in “North” than in all groups together, by 30 to 50 percentage points.",
    )


def test_shares_of_a_group_or_a_period_are_not_those_of_all() -> None:
    for by, people in (
        (None, "all who took part"),
        ({"region": "north"}, "all in this group who took part"),
        ({"week": "2026-W01"}, "all in this period who took part"),
        ({"region": "north", "month": "2026-05"}, "all in this group and period who took part"),
    ):
        words = sentences_of(question({"yes": 0.5}, 0.05, by=by), 0.95, EN).findings[0]
        assert words == f"“yes”: between 40% and 60% of {people}."


def test_a_median_is_one_of_the_numbers_of_the_scale() -> None:
    one = {"choice": "median", "estimate": 12345.5, "low": 1000.0, "high": 125000.0}
    assert scale_sentences([one], EN) == ("The median's range begins at 12345.5 (1000 to 125000).",)
    mean = {"choice": "mean", "estimate": 2.2, "low": 1.94, "high": 2.46}
    assert (
        scale_sentences([mean], EN)[0] == "Mean of the answers with a score: 2.20 (1.94 to 2.46)."
    )


def test_limits_state_costs_of_privacy_effects_of_fakes_and_errors_once() -> None:
    question_result = question({"rare": -0.02, "no": 0.72, "yes": 0.3}, 0.02)
    for row_fields, cost in zip(question_result["rows"], (0.999, 0.5, 0.7), strict=True):
        row_fields |= {"flags": ["pooled", "imprecise", "a_new_flag"], "privacy_cost": cost}
    limits = sentences_of(question_result, 0.95, EN).limits
    # The cost of an answer that nobody gives is nearly everything, and says nothing of the others.
    assert limits[0] == (
        "For “no”, privacy costs as much precision as losing 50% of the answers would."
    )
    assert "up to 2.0 points" in limits[1]
    assert [limit[:12] for limit in limits[2:]] == ["The interval"]
    assert flag_words("a_new_flag") == "A new flag."


def test_an_impossible_estimate_is_read_as_the_nearest_possible() -> None:
    low = {"rows": [row("yes", -0.3, 0.1), row("no", 1.3, 0.1)], "covariance": None}
    findings = " ".join(sentences_of(low, 0.95, EN).findings)
    assert "“yes”: the interval lies beyond what is possible; read it as none." in findings
    assert "read it as all" in findings


@pytest.mark.parametrize(("p", "p_text"), [(0.0004, "(p < 0.001)"), (0.0321, "(p = 0.032)")])
def test_different_versions_are_reported(p: float, p_text: str) -> None:
    question_result = question({"no": 0.7, "yes": 0.3}, 0.02)
    question_result["rows"] = [
        row_fields | {"versions_p": p, "flags": ["pooled", "versions_differ"]}
        for row_fields in question_result["rows"]
    ]
    last_finding = sentences_of(question_result, 0.95, EN).findings[-1]
    assert last_finding.startswith(
        f"The versions of the survey differ by more than chance usually explains {p_text}"
    )
    assert "look at each version separately" in last_finding


def test_indistinguishable_versions_are_not_called_equal() -> None:
    question_result = question({"no": 0.7, "yes": 0.3}, 0.02)
    question_result["rows"] = [
        row_fields | {"versions_p": 0.41, "flags": ["pooled"]}
        for row_fields in question_result["rows"]
    ]
    expected = (
        "Taken together, the differences between the versions of the survey are not distinguishable from "
        "noise (p = 0.410)."
    )
    assert sentences_of(question_result, 0.95, EN).findings[-1] == expected


def test_a_share_of_a_group_that_may_be_empty_has_no_number() -> None:
    rows = [row("yes | often", 3.2, 9.0, low=None, high=None), row("no | often", -2.2, 9.0)]
    findings = sentences_of({"rows": rows, "covariance": None}, 0.95, EN, "row").findings
    assert (
        findings[0]
        == "“yes | often”: nothing can be said, as perhaps nobody has the answer after the bar."
    )
    rows = [row("yes | often", 0.5, 0.05)]
    findings = sentences_of({"rows": rows, "covariance": None}, 0.95, EN, "row").findings
    assert findings == (
        "“yes | often”: between 40% and 60% of those with the answer after the bar.",
    )


def test_estimates_without_a_number_or_an_error_are_described() -> None:
    nothing = row("yes | often", 0, 0) | {
        "estimate": None,
        "se": None,
        "low": None,
        "high": None,
        "flags": ["unbounded"],
    }
    unknown = row("a", 0.3, 0.1) | {
        "se": None,
        "low": None,
        "high": None,
        "flags": ["interval_unknown"],
    }
    sentences = sentences_of(
        {"rows": [nothing, unknown, row("b", 0.5, 0.05)], "covariance": None}, 0.95, EN, "row"
    )
    assert sentences.findings[1:] == (
        "“a”: there is an estimate, but how far it may be off is unknown.",
        "“yes | often”: nothing can be said, as perhaps nobody has the answer after the bar.",
    )
    assert any("no interval: its error is unknown" in limit for limit in sentences.limits)


def test_a_ratio_without_a_denominator_is_not_lost_for_ever() -> None:
    """The question has other figures that cannot be estimated, so all its rows have that flag."""
    numbers = {"estimate": None, "low": None, "high": None}
    ratio = row("yes | often", 0, 0, flags=["not_identifiable", "unbounded"]) | numbers
    findings = sentences_of({"rows": [ratio], "covariance": None}, 0.95, EN, "row").findings
    assert findings == (
        "“yes | often”: nothing can be said, as perhaps nobody has the answer after the bar.",
    )


def test_the_largest_effect_of_fakes_is_rounded_up() -> None:
    limits = sentences_of(question({"no": 0.7, "yes": 0.3}, 0.02), 0.95, EN).limits
    assert "up to 2.0 points" in limits[1]
    rows = [row("no", 0.7, 0.02, poisoning_up=0.02001)]
    assert (
        "up to 2.1 points" in sentences_of({"rows": rows, "covariance": None}, 0.95, EN).limits[1]
    )


def test_shares_that_are_not_identifiable_are_reported() -> None:
    sentences = sentences_of({"rows": [], "covariance": None}, 0.95, EN)
    assert sentences.findings == ()
    assert "cannot be estimated, however many answers come in" in sentences.limits[0]


def test_a_missing_translation_falls_back_to_another_language() -> None:
    assert (
        "“yes”"
        in sentences_of(question({"yes": 0.2, "no": 0.8}, 0.01), 0.95, Words("fr")).findings[1]
    )


def wilson(share: float, n: int, quantile: float) -> tuple[float, float]:
    middle, half = (
        share + quantile**2 / (2 * n),
        quantile * (share * (1 - share) / n + quantile**2 / 4 / n**2) ** 0.5,
    )
    return (middle - half) / (1 + quantile**2 / n), (middle + half) / (1 + quantile**2 / n)


@pytest.mark.parametrize("n", [12, 100, 2000])
@pytest.mark.parametrize("comparisons", [2, 6, 66])
def test_a_score_interval_is_widened_to_the_level_of_all_comparisons(
    n: int, comparisons: int
) -> None:
    """The test compares with Wilson's interval at that level, also for an estimated error of 0."""
    wider = z(0.95, comparisons)
    for share in [k / n for k in (0, 1, 2, n // 4, n // 2, n - 1, n)]:
        low, high = wilson(share, n, Z)
        se = (share * (1 - share) / n) ** 0.5
        ends = widened(share, (low, high), se, Z, wider)
        half_widths = share - ends[0], ends[1] - share
        expected_low, expected_high = wilson(share, n, wider)
        assert half_widths[0] >= share - expected_low - 1e-12
        assert half_widths[1] >= expected_high - share - 1e-12
        assert max(half_widths) <= (wider / Z) ** 2 * max(
            share - low, high - share, Z * 0.5 / n**0.5
        )


def test_no_lead_is_certain_because_all_reports_are_equal() -> None:
    """For 100 equal reports of GRR at ε = 4, the estimated error is 0, but the true share may be 98%."""
    rows = [
        row("yes", 1.0187, 0.0, low=0.9803, high=1.0187),
        row("no", -0.0187, 0.0, low=-0.0187, high=0.0197),
    ]
    findings = sentences_of(
        {"rows": rows, "covariance": [[0.0, 0.0], [0.0, 0.0]]}, 0.95, EN
    ).findings
    assert (
        findings[-1]
        == "“yes” is the most common answer: 96.0 to 100.0 percentage points ahead of “no”."
    )
