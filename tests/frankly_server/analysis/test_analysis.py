# SPDX-License-Identifier: Apache-2.0
"""Estimates computed from counts alone, each with its uncertainty (bad inputs 46, 47, 49, 50)."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.estimator import checked_evidence
from frankly_design.estimate.pooling import kl_ends
from frankly_design.kinds.decoder import shares
from frankly_protocol.audit import Claim, ceiling, level_for
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_server.analysis import Analysis
from frankly_server.store import Database
from frankly_server.store.reports import reports

from tests.frankly_protocol.samples import ldp_block, lip_block, question, survey
from tests.frankly_server.samples import SURVEY, put, released, row
from tests.narrowing import dense_of
from tests.refusals import refusal

NUMBERS = ("estimate", "se", "se_privacy", "se_sampling", "margin", "low", "high")


def _receive(
    database: Database, document: SurveyDocument, counts: Sequence[Sequence[int]], stratum: str = ""
) -> None:
    """Store and release reports with these counts of symbols."""
    columns = [[y for y, n in enumerate(block) for _ in range(n)] for block in counts]
    rows = [
        replace(row(*symbols, document=document.digest), strata=stratum)
        for symbols in zip(*columns, strict=True)
    ]
    released(database, document, rows)


def _rows(result: dict[str, Any], question_id: str) -> list[dict[str, Any]]:
    return next(q["rows"] for q in result["questions"] if q["id"] == question_id)


def test_rows_are_the_estimators_with_names(database: Database) -> None:
    document = put(database, survey(ldp_block("affair", "1"), lip_block("marriage")))
    _receive(database, document, [[130, 70], [150, 50]])
    result = Analysis(database).estimates(SURVEY, level=0.9)
    assert (result["n"], result["level"], result["method"], result["census"]) == (
        200,
        0.9,
        "score",
        False,
    )
    assert result["documents"] == [{"digest": document.digest, "version": 1, "n": 200}]
    assert [(q["id"], q["status"], q["n"], q["needed"]) for q in result["questions"]] == [
        ("affair", "ok", 200, 50),
        ("marriage", "ok", 200, 50),
    ]
    expected = estimate(
        document.blocks[0].numbered_mechanism, [130, 70], design_prior=(1, 1), level=0.9
    )
    for t, estimate_row in enumerate(_rows(result, "affair")):
        assert [estimate_row[name] for name in ("estimate", "se", "se_privacy", "se_sampling")] == [
            expected.unbiased[t],
            expected.se[t],
            expected.se_privacy[t],
            expected.se_sampling[t],
        ]
        assert (estimate_row["low"], estimate_row["high"]) == expected.margins.score[t]
        assert estimate_row["margin"] == max(
            estimate_row["high"] - estimate_row["estimate"],
            estimate_row["estimate"] - estimate_row["low"],
        )
        assert (estimate_row["question"], estimate_row["choice"], estimate_row["label"]["en"]) == (
            "affair",
            ("no", "yes")[t],
            ("no", "yes")[t],
        )
        assert (estimate_row["n"], estimate_row["level"], estimate_row["documents"]) == (
            200,
            0.9,
            [document.digest],
        )
        assert (
            estimate_row["mechanism"],
            estimate_row["notion"],
            estimate_row["epsilon"],
            estimate_row["ceiling"],
        ) == ("warner", "ldp", "1.0000", "1.0000")
    assert {estimate_row["ceiling"] for estimate_row in _rows(result, "marriage")} == {"inf"}


def test_no_row_lacks_its_uncertainty(sqlite: Database) -> None:
    _receive(sqlite, put(sqlite, survey()), [[60, 40], [70, 30]])
    for options in ({}, {"census": True}, {"simultaneous": True}, {"level": 0.5}):
        for question_result in Analysis(sqlite).estimates(SURVEY, **options)["questions"]:
            for estimate_row in question_result["rows"]:
                assert all(isinstance(estimate_row[name], float) for name in NUMBERS)
                assert estimate_row["n"] == 100
                assert estimate_row["documents"]


def test_a_census_has_privacy_noise_only(sqlite: Database) -> None:
    _receive(sqlite, put(sqlite, survey()), [[60, 40], [70, 30]])
    sample, census = (
        _rows(Analysis(sqlite).estimates(SURVEY, census=c), "affair")[0] for c in (False, True)
    )
    assert census["estimate"] == sample["estimate"]
    assert census["se_sampling"] == 0
    assert census["se"] == pytest.approx(sample["se_privacy"])
    assert census["margin"] < sample["margin"]


def test_margins_for_all_choices_at_once_are_wider(sqlite: Database) -> None:
    _receive(sqlite, put(sqlite, survey()), [[60, 40], [70, 30]])
    single, both = (Analysis(sqlite).estimates(SURVEY, simultaneous=s) for s in (False, True))
    assert both["method"] == "simultaneous"
    assert _rows(both, "affair")[0]["margin"] > _rows(single, "affair")[0]["margin"]


@pytest.mark.parametrize("n", [0, 1, 2, 49])
def test_too_few_reports_give_no_number(database: Database, n: int) -> None:
    document = put(database, survey())
    _receive(database, document, [[n, 0], [n, 0]])
    result = Analysis(database).estimates(SURVEY)
    assert result["n"] == n
    for question_result in result["questions"]:
        assert (
            question_result["status"],
            question_result["n"],
            question_result["needed"],
            question_result["rows"],
        ) == ("insufficient", n, 50, [])


def test_the_minimum_is_that_of_the_versions_whose_answers_are_used(sqlite: Database) -> None:
    """An admin who lowers the minimum sees it at once, unless answers of an older version count too."""
    first = put(sqlite, replace(survey(), min_reports=100))
    second = put(sqlite, replace(survey(version=2, prev=first.digest), min_reports=60))
    for document, tallies, status, needed in (
        (second, [[30, 29], [30, 29]], "insufficient", 60),
        (second, [[1, 0], [1, 0]], "ok", 60),
        (first, [[19, 20], [19, 20]], "insufficient", 100),
        (second, [[1, 0], [1, 0]], "ok", 100),
    ):
        _receive(sqlite, document, tallies)
        found = Analysis(sqlite).estimates(SURVEY)["questions"]
        assert {(q["status"], q["needed"]) for q in found} == {(status, needed)}


def test_estimates_outside_the_unit_interval_are_flagged_not_clipped(sqlite: Database) -> None:
    _receive(sqlite, put(sqlite, survey()), [[100, 0], [100, 0]])
    no, yes = _rows(Analysis(sqlite).estimates(SURVEY), "affair")
    assert no["estimate"] > 1
    assert yes["estimate"] < 0
    assert "outside_unit_interval" in no["flags"]
    assert "outside_unit_interval" in yes["flags"]


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, float("nan"), float("inf")])
def test_confidence_levels_out_of_range(sqlite: Database, level: float) -> None:
    put(sqlite, survey())
    with pytest.raises(InvalidInput, match=r"0\.95") as refused:
        Analysis(sqlite).estimates(SURVEY, level=level)
    assert (refused.value.code, refused.value.field) == ("confidence_range", "level")


@pytest.mark.parametrize("survey_id", ["", "cd" * 16, "../x", "' OR 1=1 --", "\x00", "\ud800"])
def test_unknown_surveys(sqlite: Database, survey_id: str) -> None:
    put(sqlite, survey())
    assert refusal(InvalidInput, Analysis(sqlite).estimates, survey_id).code == "survey_unknown"


def test_reports_are_never_read(database: Database) -> None:
    _receive(database, put(database, survey()), [[60, 40], [70, 30]])
    with database.engine.begin() as connection:
        connection.execute(reports.delete())
    assert Analysis(database).estimates(SURVEY)["n"] == 100


def test_strata_are_counted_together(sqlite: Database) -> None:
    survey_document = replace(survey(ldp_block()), strata=(question("region", "north", "south"),))
    document = put(sqlite, survey_document)
    _receive(sqlite, document, [[30, 10]], '{"region":"north"}')
    _receive(sqlite, document, [[30, 30]], '{"region":"south"}')
    row = _rows(Analysis(sqlite).estimates(SURVEY), "affair")[0]
    assert (
        row["estimate"]
        == estimate(document.blocks[0].numbered_mechanism, [60, 40], design_prior=(1, 1)).unbiased[
            0
        ]
    )


def _grr(choices: int, epsilon: str = "2") -> tuple[DenseMechanism, tuple[int, int]]:
    level = level_for(Fraction(epsilon))
    off = -(-(level[1] << 48) // (level[0] + (choices - 1) * level[1]))
    on = (1 << 48) - (choices - 1) * off
    return DenseMechanism(
        48, tuple(tuple(on if y == x else off for y in range(choices)) for x in range(choices))
    ), level


def test_questions_randomised_together_get_their_own_shares(sqlite: Database) -> None:
    mechanism, level = _grr(6)
    questions = (question("sex", "f", "m"), question("drinks", "never", "some", "often"))
    block = Block(
        "both",
        questions,
        mechanism,
        (Promise(Claim("ldp", level)),),
        (1,) * 6,
        ceiling(mechanism),
        "grr",
        None,
    )
    document = put(sqlite, survey(block))
    counts = [40, 30, 20, 30, 20, 10]  # f-never, f-some, f-often, m-never, m-some, m-often
    _receive(sqlite, document, [counts])
    joint = [v or 0.0 for v in estimate(mechanism, counts, design_prior=(1,) * 6).unbiased]
    result = Analysis(sqlite).estimates(SURVEY)
    assert [row["estimate"] for row in _rows(result, "sex")] == pytest.approx(
        [sum(joint[:3]), sum(joint[3:])]
    )
    pairs = [joint[i] + joint[i + 3] for i in range(3)]
    assert [row["estimate"] for row in _rows(result, "drinks")] == pytest.approx(pairs)
    assert [questions["block"] for questions in result["questions"]] == ["both", "both"]


def _versions(database: Database, *, later: Block) -> tuple[SurveyDocument, SurveyDocument]:
    first = put(database, survey(ldp_block("affair", "1")))
    second = put(database, survey(later, version=2, prev=first.digest))
    _receive(database, first, [[130, 70]])
    _receive(database, second, [[240, 160]])
    return first, second


def _by_hand(mechanism: DenseMechanism, counts: Sequence[int]) -> tuple[float, float, float]:
    """Return the share of yes, standard error, and variance at equal shares of a symmetric mechanism."""
    on = float(mechanism.probability(0, 0))
    k, n = 2 * on - 1, sum(counts)
    rate = counts[1] / n
    return (rate - (1 - on)) / k, sqrt(rate * (1 - rate) / (n - 1)) / k, 0.25 / k**2 / n


def test_versions_with_the_same_question_are_pooled(database: Database) -> None:
    first, second = _versions(database, later=ldp_block("affair", "0.5"))
    (question_result,) = Analysis(database).estimates(SURVEY, method="clt")["questions"]
    estimates = [
        _by_hand(dense_of(d.blocks[0].numbered_mechanism), c)
        for d, c in ((first, [130, 70]), (second, [240, 160]))
    ]
    weights = [200 / 600, 400 / 600]
    for t, estimate_row in enumerate(question_result["rows"]):
        value = sum(w * share for w, (share, _, _) in zip(weights, estimates, strict=True))
        se = sqrt(
            sum((w * error) ** 2 for w, (_, error, _) in zip(weights, estimates, strict=True))
        )
        assert estimate_row["estimate"] == pytest.approx(value if t == 1 else 1 - value)
        assert estimate_row["se"] == pytest.approx(se)
        assert estimate_row["margin"] == pytest.approx(1.959963984540054 * se)
        assert (estimate_row["n"], estimate_row["documents"]) == (
            600,
            [first.digest, second.digest],
        )
        assert (estimate_row["mechanism"], estimate_row["epsilon"]) == ("warner", "1.0000, 0.5000")
        assert "pooled" in estimate_row["flags"]
    assert sum(
        estimate_row["estimate"] for estimate_row in question_result["rows"]
    ) == pytest.approx(1)
    precisions = [1 / at_prior for _, _, at_prior in estimates]
    (precise,) = Analysis(database).estimates(SURVEY, weights="inverse-variance")["questions"]
    value = sum(p * share for p, (share, _, _) in zip(precisions, estimates, strict=True)) / sum(
        precisions
    )
    assert precise["rows"][1]["estimate"] == pytest.approx(value)
    for method in ("exact", "sequence"):
        with pytest.raises(InvalidInput) as refused:
            Analysis(database).estimates(SURVEY, method=method)
        assert (refused.value.code, refused.value.field) == ("unsupported", "method")
    apart = Analysis(database).estimates(SURVEY, method="exact", by="version")["questions"]
    assert [(q["by"], q["n"]) for q in apart] == [({"version": "1"}, 200), ({"version": "2"}, 400)]


def test_guaranteed_ends_of_a_pooled_row_equal_those_of_all_reports_together(
    sqlite: Database,
) -> None:
    first, second = _versions(sqlite, later=ldp_block("affair", "0.5"))
    (question_result,) = Analysis(sqlite).estimates(SURVEY, census=True, method="kl")["questions"]
    scaled = [
        tuple(tuple(w * n / 600 for w in row) for row in shares(2))
        for n in map(Fraction, (200, 400))
    ]
    estimates = [
        checked_evidence(document.blocks[0].numbered_mechanism, counts, targets, (1, 1))
        for document, counts, targets in zip(
            (first, second), ([130, 70], [240, 160]), scaled, strict=True
        )
    ]
    expected = kl_ends(estimates, 0.95)
    for pooled_row, ends in zip(question_result["rows"], expected, strict=True):
        assert (pooled_row["low"], pooled_row["high"]) == pytest.approx(ends)


def test_ends_of_a_pooled_row_add_its_parts_distances_in_squares(sqlite: Database) -> None:
    """The distances of the parts are not clipped at 0 and 1; only the pooled ends are clipped."""
    first, second = _versions(sqlite, later=ldp_block("affair", "0.5"))
    (question_result,) = Analysis(sqlite).estimates(SURVEY, census=True)["questions"]
    apart = [
        (
            sum(counts) / 600,
            estimate(
                document.blocks[0].numbered_mechanism, counts, design_prior=(1, 1), census=True
            ),
        )
        for document, counts in ((first, [130, 70]), (second, [240, 160]))
    ]
    assert any(
        part_estimate.margins.score != part_estimate.margins.uncut for _, part_estimate in apart
    )
    for t, estimate_row in enumerate(question_result["rows"]):
        estimates = [
            (w, part_estimate.unbiased[t] or 0.0, part_estimate.margins.uncut[t] or (0.0, 0.0))
            for w, part_estimate in apart
        ]
        below = sqrt(sum((w * (value - low)) ** 2 for w, value, (low, _) in estimates))
        above = sqrt(sum((w * (high - value)) ** 2 for w, value, (_, high) in estimates))
        assert estimate_row["low"] == pytest.approx(max(0.0, estimate_row["estimate"] - below))
        assert estimate_row["high"] == pytest.approx(min(1.0, estimate_row["estimate"] + above))


def test_the_parts_of_a_census_are_weighted_by_their_size(sqlite: Database) -> None:
    first, second = _versions(sqlite, later=ldp_block("affair", "0.5"))
    (question_result,) = Analysis(sqlite).estimates(SURVEY, census=True)["questions"]
    estimates = [
        estimate(document.blocks[0].numbered_mechanism, counts, design_prior=(1, 1), census=True)
        for document, counts in ((first, [130, 70]), (second, [240, 160]))
    ]
    pooled = (
        200 * (estimates[0].unbiased[0] or 0.0) + 400 * (estimates[1].unbiased[0] or 0.0)
    ) / 600
    assert question_result["rows"][0]["estimate"] == pytest.approx(pooled)


def test_versions_with_different_questions_are_not_pooled(sqlite: Database) -> None:
    mechanism, level = _grr(3)
    questions = (question("affair", "no", "yes", "unsure"),)
    block = Block(
        "affair",
        questions,
        mechanism,
        (Promise(Claim("ldp", level)),),
        (1,) * 3,
        ceiling(mechanism),
        "grr",
        None,
    )
    first = put(sqlite, survey(ldp_block("affair", "1")))
    second = put(sqlite, survey(block, version=2, prev=first.digest))
    _receive(sqlite, first, [[130, 70]])
    _receive(sqlite, second, [[100, 60, 40]])
    result = Analysis(sqlite).estimates(SURVEY)["questions"]
    assert [(q["id"], q["documents"], len(q["rows"])) for q in result] == [
        ("affair", [second.digest], 3),
        ("affair", [first.digest], 2),
    ]


def test_choices_that_cannot_be_estimated_have_no_figures(sqlite: Database) -> None:
    half = 1 << 47
    weights = (
        (1 << 48, 0),
        (half, half),
        (half, half),
    )  # b and c have equal rows, so only their sum is identifiable
    mechanism = DenseMechanism(48, weights)
    questions = (question("q", "a", "b", "c"),)
    block = Block(
        "q",
        questions,
        mechanism,
        (Promise(Claim("ldp", (1 << 48, 1))),),
        (1, 1, 1),
        None,
        "optimal",
        None,
    )
    document = put(sqlite, survey(block))
    _receive(sqlite, document, [[70, 30]])
    rows = _rows(Analysis(sqlite).estimates(SURVEY), "q")
    assert [row["choice"] for row in rows if row["estimate"] is not None] == ["a"]
    assert all("not_identifiable" in row["flags"] for row in rows)
    for lost in rows[1:]:
        figures = ("estimate", "se", "margin", "low", "high", "se_privacy", "efficiency")
        assert [lost[name] for name in figures] == [None] * len(figures)
