# SPDX-License-Identifier: Apache-2.0
"""Plans of waves: sums of levels, sums of people, and margins compared with simulated panels."""

import json
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from frankly_design.requests.design_fields import within
from frankly_design.requests.waves import DIVISIONS, waves_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

SIX = {"prior": {"joint": [[7, 3]]}, "notion": "ldp", "epsilon": "3", "waves": 6, "n": 2000}


def plan(**changed: Any) -> dict[str, Any]:
    request = parse_json(json.dumps(SIX | changed).encode(), decimals=True)
    return waves_json(request, lambda: 0.0)


@pytest.fixture(scope="module")
def six() -> dict[str, Any]:
    return plan()


def test_nobody_spends_more_than_the_total(six: dict[str, Any]) -> None:
    for name in DIVISIONS:
        for group in six[name]["groups"]:
            waves = group["last"] - group["first"] + 1
            assert Fraction(group["epsilon"]) * waves == Fraction(group["total"]) <= 3


def test_everybody_is_in_one_group(six: dict[str, Any]) -> None:
    for name in DIVISIONS:
        assert sum(group["n"] for group in six[name]["groups"]) == 2000
        assert sum(group["share"] for group in six[name]["groups"]) == pytest.approx(1)


def test_the_best_division_of_six_waves(six: dict[str, Any]) -> None:
    """The figures are those of docs/maths/waves.md: six waves, 3 nats, 20% change."""
    assert six["equal"]["ratio"] == pytest.approx(2.705, abs=0.01)
    assert six["once"]["ratio"] == pytest.approx(1.071, abs=0.01)
    assert six["excess"] <= 1.001
    assert {group["last"] - group["first"] for group in six["best"]["groups"]} == {0, 1}


def test_a_level_is_rounded_down_to_thousandths() -> None:
    groups = plan(epsilon="1", waves=3)["equal"]["groups"]
    assert (groups[0]["epsilon"], groups[0]["total"]) == ("0.333", "0.999")


def test_margins_equal_those_of_simulated_panels(six: dict[str, Any]) -> None:
    """Everybody answers six waves by Warner's mechanism; the target is the difference of two waves'
    shares."""
    random, n, runs = np.random.default_rng(21), 500, 400
    honest = exp(0.5) / (1 + exp(0.5))
    truth = random.random((runs, n)) < 0.3
    shares = []
    for _ in range(2):
        reports = np.where(random.random(truth.shape) < honest, truth, ~truth)
        shares.append((reports.mean(axis=1) - (1 - honest)) / (2 * honest - 1))
        redrawn = random.random(truth.shape) < 1 - six["persistence"]
        truth = np.where(redrawn, random.random(truth.shape) < 0.3, truth)
    margin = plan(n=n)["equal"]["changes"][0]["margin"]
    assert np.mean(np.abs(shares[1] - shares[0]) <= margin) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        ({"waves": 1}, "field_type", "waves"),
        ({"waves": 53}, "field_type", "waves"),
        ({"n": 0}, "field_type", "n"),
        ({"n": None}, "field_type", "n"),
        ({"changed": 1}, "field_type", "changed"),
        ({"changed": 0.5}, "unsupported", "changed"),
        ({"changed": "a lot"}, "field_type", "changed"),
        ({"epsilon": "0.05"}, "eps_out_of_range", "waves"),
        ({"epsilon": None}, "field_missing", "epsilon"),
        ({"notion": "lip"}, "unsupported", "notion"),
        ({"level": 1}, "confidence_range", "level"),
        ({"prior": None}, "field_missing", "prior"),
        ({"wave": 3}, "field_unknown", "wave"),
        # Before these requests were refused, they caused a division by zero and endless work.
        ({"prior": {"joint": [[7, 0]]}}, "prior_value", "prior"),
        ({"prior": {"joint": [[1] * 20]}, "waves": 52}, "unsupported", "waves"),
    ],
)
def test_refused(changed: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan(**changed)
    assert (refused.value.code, refused.value.field) == (code, field)


def test_a_server_sets_its_own_limits() -> None:
    with pytest.raises(InvalidInput) as refused:
        within(waves_json, SIX | {"limits": {"seconds": 1}}, lambda: 0.0, 20)
    assert refused.value.field == "limits"
