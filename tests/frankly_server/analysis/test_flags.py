# SPDX-License-Identifier: Apache-2.0
"""Flags of estimates on the rows that they concern, and the narrower margins of finite populations."""

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.kinds import likelihood
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_server.analysis import Analysis, encode
from frankly_server.store import Database

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_server.samples import SURVEY, put, released, row
from tests.frankly_server.store.counted import D, block, dense

Asked = dict[str, Any]
SPARE = DenseMechanism(48, ((D // 2, D // 4, D // 8, D // 8), (D // 8, D // 8, D // 2, D // 4)))
FLAT = DenseMechanism(48, ((D // 2 + 9, D // 2 - 9), (D // 2 - 9, D // 2 + 9)))
MIXED = DenseMechanism(48, ((D // 2, D // 2, 0), (0, D // 2, D // 2), (D // 4, D // 2, D // 4)))
"""Three answers, none of whose shares is identifiable: the third row is the mean of the others."""

FLAGS: dict[str, tuple[Mechanism, tuple[int, ...], Asked]] = {
    "outside_simplex": (dense(2, 2, Random(1)), (300, 0), {}),
    "outside_unit_interval": (dense(2, 2, Random(1)), (300, 0), {}),
    "imprecise": (SPARE, (25, 20, 15, 15), {}),
    "margin_too_wide": (FLAT, (30, 30), {}),
    "few_informative": (dense(2, 2, Random(1)), (300, 4), {}),
    "reports_do_not_fit": (SPARE, (300, 0, 0, 300), {}),
    "ill_conditioned": (FLAT, (150, 150), {}),
    "exact_not_available": (SPARE, (120, 70, 70, 50), {"method": "exact"}),
    "unbounded": (
        SPARE,
        (40, 20, 11, 10),
        {"targets": {"b-0": {"odds": {"of": {"c0": 1}, "over": {"c1": 1}}}}},
    ),
    "score_instead": (
        SPARE,
        (120, 70, 70, 50),
        {"method": "kl", "targets": {"b-0": {"odds": {"of": {"c0": 1}, "over": {"c1": 1}}}}},
    ),
    "interval_unknown": (
        MIXED,
        (100, 60, 40),
        {"census": True, "targets": {"b-0": {"more": {"c0": 1, "c1": -1}}}},
    ),
    "sampling_part_negative": (dense(2, 2, Random(1)), (300, 0), {}),
}


def _received(database: Database, mechanism: Mechanism, counts: tuple[int, ...]) -> SurveyDocument:
    document = put(database, survey(block("b", mechanism)))
    released(
        database,
        document,
        [row(y, document=document.digest) for y, n in enumerate(counts) for _ in range(n)],
    )
    return document


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_on_the_row_it_concerns(sqlite: Database, flag: str) -> None:
    mechanism, counts, options = FLAGS[flag]
    _received(sqlite, mechanism, counts)
    (question_result,) = Analysis(sqlite).estimates(SURVEY, **options)["questions"]
    assert any(flag in row["flags"] for row in question_result["rows"]), [
        row["flags"] for row in question_result["rows"]
    ]


def test_many_plausible_reports_have_no_flag(sqlite: Database) -> None:
    _received(sqlite, SPARE, (1250, 750, 1250, 750))
    (question_result,) = Analysis(sqlite).estimates(SURVEY)["questions"]
    assert [row["flags"] for row in question_result["rows"]] == [[], []]


def test_targets_that_are_not_identifiable_have_no_figures_and_all_are_flagged(
    sqlite: Database,
) -> None:
    """None of the three shares is identifiable, but the difference of the first two is."""
    _received(sqlite, MIXED, (120, 200, 80))
    targets = {"b-0": {"first more than second": {"c0": 1, "c1": -1}, "the third": {"c2": 1}}}
    (question_result,) = Analysis(sqlite).estimates(SURVEY, targets=targets)["questions"]
    first, third = question_result["rows"]
    assert first["estimate"] == pytest.approx(2 * (120 - 80) / 400)
    assert third["estimate"] is None
    assert all("not_identifiable" in row["flags"] for row in (first, third))
    assert question_result["status"] == "ok"
    (variance, covariance), others = question_result["covariance"]
    assert variance == pytest.approx(first["se"] ** 2)
    assert [covariance, *others] == [None] * 3
    # Without any figure, the question is not "ok".
    only = {"b-0": {"the third": {"c2": 1}}}
    (lost,) = Analysis(sqlite).estimates(SURVEY, targets=only)["questions"]
    assert (lost["status"], len(lost["rows"])) == ("not_identifiable", 1)


@pytest.mark.parametrize("options", [{"census": True}, {"population": 1000}])
def test_an_estimate_without_an_error_keeps_its_row(sqlite: Database, options: Asked) -> None:
    _received(sqlite, MIXED, (100, 60, 40))
    targets = {"b-0": {"more": {"c0": 1, "c1": -1}}}
    result = Analysis(sqlite).estimates(SURVEY, targets=targets, **options)
    (row,) = result["questions"][0]["rows"]
    assert row["estimate"] == pytest.approx(2 * (100 - 40) / 200)
    assert [row[name] for name in ("se", "margin", "low", "high")] == [None] * 4
    assert "interval_unknown" in row["flags"]
    (bound,) = Analysis(sqlite).estimates(SURVEY, targets=targets, method="kl", **options)[
        "questions"
    ][0]["rows"]
    assert bound["low"] < row["estimate"] < bound["high"]
    assert (bound["se"], "interval_unknown" in bound["flags"]) == (None, False)
    assert Analysis(sqlite).replay(json.loads(encode(result))) == encode(result)


HALF = DenseMechanism(4, ((12, 4), (4, 12)))
"""75 reports of 0 and 25 of 1 decode to exactly 1 and 0."""


@pytest.mark.parametrize("method", ["score", "clt"])
def test_a_ratio_by_an_estimated_zero_keeps_its_row(sqlite: Database, method: str) -> None:
    _received(sqlite, HALF, (75, 25))
    targets = {"b-0": {"odds": {"of": {"c0": 1}, "over": {"c1": 1}}}}
    (row,) = Analysis(sqlite).estimates(SURVEY, targets=targets, method=method)["questions"][0][
        "rows"
    ]
    assert [row[name] for name in ("estimate", "se", "margin", "low", "high")] == [None] * 5
    assert "unbounded" in row["flags"]
    assert "score_instead" not in row["flags"]


def test_a_denominator_that_is_always_zero_is_refused(sqlite: Database) -> None:
    _received(sqlite, HALF, (75, 25))
    with pytest.raises(InvalidInput, match="denominator is 0") as refused:
        Analysis(sqlite).estimates(
            SURVEY, targets={"b-0": {"x": {"of": {"c0": 1}, "over": {"c1": 0}}}}
        )
    assert refused.value.field == "targets.b-0.x"


def test_constants_are_not_flagged_as_imprecise_and_a_ratio_over_everybody_is_a_share(
    sqlite: Database,
) -> None:
    _received(sqlite, dense(2, 2, Random(1)), (300, 0))
    untargeted = Analysis(sqlite).estimates(SURVEY)["questions"][0]["rows"]
    assert all(
        {"few_informative", "outside_unit_interval"} <= set(row["flags"]) for row in untargeted
    )
    everybody = {"c0": 1, "c1": 1}
    targets = {
        "all": everybody,
        "none": {"c0": 0},
        "one": {"c1": 1},
        "part": {"of": {"c1": 3}, "over": {"c0": 3, "c1": 3}},
    }
    (question_result,) = Analysis(sqlite).estimates(SURVEY, targets={"b-0": targets}, method="kl")[
        "questions"
    ]
    rows = {row["choice"]: row for row in question_result["rows"]}
    of_margin = {"few_informative", "margin_too_wide", "imprecise", "outside_unit_interval"}
    assert [rows[name]["estimate"] for name in ("all", "none")] == pytest.approx([1, 0])
    assert not of_margin & {*rows["all"]["flags"], *rows["none"]["flags"]}
    assert "outside_unit_interval" in rows["one"]["flags"]
    assert rows["part"] == rows["one"] | {"choice": "part", "label": {"en": "part"}}
    ratio_targets = {"b-0": {"inverse": {"of": everybody, "over": {"c0": 1}}}}
    (inverse,) = Analysis(sqlite).estimates(SURVEY, targets=ratio_targets)["questions"][0]["rows"]
    assert "few_informative" in inverse["flags"]  # because of its denominator


def test_a_search_that_did_not_end_is_flagged_with_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """No mechanism is known for which the search fails, so the test disables its Newton steps."""
    monkeypatch.setattr(likelihood, "_NEWTON_STEPS", 0)
    rng = np.random.default_rng(3)
    rows = 0.9999 * rng.dirichlet(np.ones(9)) + 0.0001 * rng.dirichlet(np.full(9, 0.5), size=6)
    weights = [[int(v * D) for v in row_weights] for row_weights in rows]
    for row_weights in weights:
        row_weights[row_weights.index(max(row_weights))] += D - sum(row_weights)
    counts = [12319, 42481, 38948, 30614, 39964, 54105, 70580, 83363, 78772]
    estimated = estimate(DenseMechanism(48, tuple(map(tuple, weights))), counts)
    assert "mle_not_converged" in estimated.flags
    assert estimated.mle_gap is not None
    assert estimated.mle_gap > 1e-3


def test_a_design_prior_that_leaves_a_report_without_mass_is_replaced_and_flagged() -> None:
    mechanism = DenseMechanism(4, ((16, 0, 0), (0, 8, 8), (0, 4, 12)))
    estimated = estimate(mechanism, [10, 20, 30], design_prior=(1, 0, 0))
    assert "design_prior_replaced" in estimated.flags
    assert estimated.unbiased == estimate(mechanism, [10, 20, 30]).unbiased


def test_the_page_of_flags_names_them_all(root: Path) -> None:
    page_text = (root / "docs" / "estimates.md").read_text()
    other_flags = ("not_identifiable", "pooled", "versions_differ", "version_left_out", "design_prior_replaced",
              "mle_not_converged", "privacy_part_negative")  # fmt: skip
    assert [flag for flag in (*FLAGS, *other_flags) if f"`{flag}`" not in page_text] == []


def test_a_population_takes_its_share_of_the_sampling_error(sqlite: Database) -> None:
    counts, people = (
        (100, 60, 100, 60),
        500,
    )  # expected counts at equal shares, where the error equals its floor
    document = _received(sqlite, SPARE, counts)
    options: tuple[dict[str, Any], ...] = ({}, {"population": people})
    sample, finite = (
        Analysis(sqlite).estimates(SURVEY, **case_options)["questions"][0]["rows"][0]
        for case_options in options
    )
    assert finite["estimate"] == sample["estimate"]
    assert finite["se_privacy"] == pytest.approx(sample["se_privacy"])
    assert finite["se_sampling"] == pytest.approx(sample["se_sampling"] * (1 - 320 / people) ** 0.5)
    assert finite["se"] == pytest.approx(
        (finite["se_privacy"] ** 2 + finite["se_sampling"] ** 2) ** 0.5
    )
    assert finite["margin"] < sample["margin"]
    expected = estimate(document.blocks[0].numbered_mechanism, counts, population=people)
    assert finite["worst_case_se"] == expected.worst_case_se[0]
    result = Analysis(sqlite).estimates(SURVEY, population=people)
    assert result["population"] == people
    assert Analysis(sqlite).replay(json.loads(encode(result))) == encode(result)


BAD: dict[str, tuple[Asked, str, str]] = {
    "fewer people than reports": ({"population": 309}, "counts_invalid", "population"),
    "one person": ({"population": 1}, "counts_invalid", "population"),
    "no number": ({"population": "many"}, "field_type", "population"),
    "half a person": ({"population": Fraction(1, 2)}, "field_type", "population"),
    "a population of a census": (
        {"population": 400, "census": True},
        "counts_invalid",
        "population",
    ),
    "of a version": ({"population": 400, "by": "version"}, "unsupported", "population"),
    "of a week": ({"population": 400, "by": "week"}, "unsupported", "population"),
    "of some days": ({"population": 400, "since": "2026-06-01"}, "unsupported", "population"),
    "a confidence sequence": ({"population": 400, "method": "sequence"}, "unsupported", "method"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_populations(sqlite: Database, name: str) -> None:
    _received(sqlite, SPARE, (120, 70, 70, 50))
    options, code, field = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        Analysis(sqlite).estimates(SURVEY, **options)
    assert (refused.value.code, refused.value.field) == (code, field)


def test_a_population_of_several_versions_is_refused(sqlite: Database) -> None:
    first = put(sqlite, survey(ldp_block("affair", "1")))
    second = put(sqlite, survey(ldp_block("affair", "0.5"), version=2, prev=first.digest))
    for document in (first, second):
        released(sqlite, document, [row(i % 2, document=document.digest) for i in range(100)])
    with pytest.raises(InvalidInput, match="each of the pooled versions"):
        Analysis(sqlite).estimates(SURVEY, population=1000)
