# SPDX-License-Identifier: Apache-2.0
"""Command `frankly estimate --json` of spec 1.9."""

import json
from typing import Any

import pytest
from frankly_design.estimate.margins import METHODS, OF_TWO_ENDS
from frankly_design.requests.estimate import estimate_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

GIVEN = {"weights": [[12, 4], [4, 12]], "bits": 4, "counts": [300, 700]}
OUT = {
    "n", "unbiased", "covariance", "se", "se_privacy", "se_sampling", "worst_case_se", "margins", "projected", "rank",
    "identifiable", "flags", "poisoning", "mle", "mle_gap", "design_effect", "privacy_cost", "efficiency", "fit_p",
    "row_flags", "informative", "projected_interval", "mle_interval",
}  # fmt: skip


def estimate_fields(**options: Any) -> Any:
    body = parse_json(json.dumps({**GIVEN, **options}).encode(), decimals=True)
    return json.loads(json.dumps(estimate_json(body)))


def test_the_fields_of_an_estimate() -> None:
    response = estimate_fields()
    assert set(response) == OUT
    assert set(response["margins"]) == set(METHODS)
    assert response["n"] == 1000
    assert response["unbiased"] == pytest.approx([0.1, 0.9])
    assert response["margins"]["clt"][0] == pytest.approx(1.959963985 * response["se"][0])
    assert response["identifiable"] is True
    for method in OF_TWO_ENDS:
        for value, (low, high) in zip(
            response["unbiased"], response["margins"][method], strict=True
        ):
            assert low < value < high


def test_every_option_is_accepted() -> None:
    response = estimate_fields(
        design_prior=[0.25, 0.75],
        targets=[[0.5, 0], [1, -1]],
        population=2000,
        census=False,
        level=0.9,
    )
    assert response["unbiased"] == pytest.approx([0.05, -0.8])
    assert response["margins"]["clt"][0] == pytest.approx(1.644853627 * response["se"][0])
    assert estimate_fields(design_prior=None, population=None, targets="shares", census=True)[
        "se_sampling"
    ] == [0, 0]


def test_shares_if_some_people_deny_them() -> None:
    response = estimate_fields(denial=0.2)
    assert set(response) == OUT | {"denied"}
    for share, (_, high), row in zip(
        response["unbiased"], response["margins"]["score"], response["denied"], strict=True
    ):
        assert row["denied_estimate"] == pytest.approx(share / 0.8)
        assert row["denied_high"] == pytest.approx(min(1, high / 0.8))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"denial": 1}, "field_type"),
        ({"denial": -0.1}, "field_type"),
        ({"denial": "some"}, "field_type"),
        ({"denial": 0.2, "targets": [[1, -1]]}, "unsupported"),
    ],
)
def test_a_denial_that_cannot_be_is_refused(options: Any, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        estimate_fields(**options)
    assert (refused.value.code, refused.value.field) == (code, "denial")


def test_sets_and_products_are_accepted_by_kind() -> None:
    unary = {"kind": "unary", "params": {"bits": 4, "answers": 2, "keep": 8, "flip": 4}}
    counts = {"n": 100, "pairs": [[40, 12], [12, 35]]}
    response = json.loads(json.dumps(estimate_json({**unary, "counts": counts})))
    assert response["unbiased"] == pytest.approx([(0.40 - 0.25) * 4, (0.35 - 0.25) * 4])
    factors = [GIVEN["weights"], GIVEN["weights"]]
    product = {
        "kind": "product",
        "params": {"bits": 4, "factors": factors},
        "counts": [400, 100, 100, 400],
    }
    response = json.loads(json.dumps(estimate_json(product)))
    # This is [[.4, .1], [.1, .4]], decoded on both sides by [[1.5, −.5], [−.5, 1.5]].
    assert response["unbiased"] == pytest.approx([0.85, -0.35, -0.35, 0.85])


def test_no_reports() -> None:
    response = estimate_fields(counts=[0, 0])
    assert response["unbiased"] == [None, None]
    assert response["flags"] == ["no_reports"]


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("an unknown kind", {"kind": "cube"}, "field_type", "kind"),
    (
        "counts of sets for a table",
        {"counts": {"n": 3, "pairs": [[1, 0], [0, 1]]}},
        "counts_invalid",
        "counts",
    ),
    ("unknown key", {"alpha": 0.01}, "field_unknown", "alpha"),
    ("row off by one", {"weights": [[12, 4], [4, 13]]}, "weights_invalid", "weights[1]"),
    ("weight as decimal", {"weights": [[12.0, 4], [4, 12]]}, "field_type", "weights[0][0]"),
    ("ragged", {"weights": [[12, 4], [16]]}, "field_type", "weights"),
    ("bits as text", {"bits": "4"}, "field_type", "bits"),
    ("bits too many", {"bits": 64}, "weights_invalid", "bits"),
    ("counts missing one", {"counts": [3]}, "counts_invalid", "counts"),
    ("counts null", {"counts": None}, "counts_invalid", "counts"),
    ("level one", {"level": 1}, "confidence_range", "level"),
    ("level null", {"level": None}, "confidence_range", "level"),
    ("targets a word", {"targets": "share"}, "targets_invalid", "targets"),
    ("target null", {"targets": [[None, 1]]}, "field_type", "targets[0][0]"),
    ("target absurd", {"targets": [["1e-99", 1]]}, "field_type", "targets[0][0]"),
    ("prior a number", {"design_prior": 1}, "prior_shape", "design_prior"),
    ("prior empty", {"design_prior": []}, "prior_shape", "design_prior"),
    ("prior negative", {"design_prior": [1.5, -0.5]}, "prior_value", "design_prior"),
    ("population true", {"population": True}, "field_type", "population"),
    ("census as number", {"census": 1}, "field_type", "census"),
]


@pytest.mark.parametrize(
    ("options", "code", "field"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_refusals(options: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        estimate_fields(**options)
    assert (caught.value.code, caught.value.field) == (code, field)


def test_missing_fields_are_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        estimate_json({"weights": [[12, 4], [4, 12]], "bits": 4})
    assert (caught.value.code, caught.value.field) == ("field_missing", "counts")
