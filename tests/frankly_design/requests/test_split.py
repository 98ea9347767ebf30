# SPDX-License-Identifier: Apache-2.0
"""Plans of two arms: reference figures, formulas written again, and refusals that name the field."""

import json
from math import ceil, exp, sqrt
from statistics import NormalDist
from typing import Any

import pytest
from frankly_design.estimate.split_plan import reports_needed
from frankly_design.requests.design_fields import within
from frankly_design.requests.split import split_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput

Z, Z_POWER = NormalDist().inv_cdf(0.975), NormalDist().inv_cdf(0.8)
SECRET: dict[str, Any] = {"epsilon": "4", "mechanism": "grr"}
ARMS: list[dict[str, Any]] = [SECRET | {"share": 0.08}, SECRET | {"share": 0.03}]
CLEAR = {"clear": True, "share": 0.03}
TWO: dict[str, Any] = {"choices": 2, "arms": ARMS}


def plan(**changed: Any) -> dict[str, Any]:
    request = parse_json(json.dumps(TWO | changed).encode(), decimals=True)
    return split_json(request, lambda: 0.0)


def variance(share: float, epsilon: float | None) -> float:
    """Return the variance of one report of randomised response; without a level, of the answer."""
    kept = 1.0 if epsilon is None else exp(epsilon) / (1 + exp(epsilon))
    seen = share * kept + (1 - share) * (1 - kept)
    return seen * (1 - seen) / (2 * kept - 1) ** 2


def needed(
    first: tuple[float, float | None], second: tuple[float, float | None], share: float = 0.5
) -> float:
    """Return the reports for a power of 80% of the test of two groups, before rounding up."""
    arms = (first, second)
    parts = (share, 1 - share)
    precisions = [
        part * (1.0 if e is None else ((exp(e) - 1) / (exp(e) + 1)) ** 2)
        for part, (_, e) in zip(parts, arms, strict=True)
    ]
    common = sum(w * p for w, (p, _) in zip(precisions, arms, strict=True)) / sum(precisions)
    tested = sqrt(sum(variance(common, e) / part for part, (_, e) in zip(parts, arms, strict=True)))
    actual = sqrt(sum(variance(p, e) / part for part, (p, e) in zip(parts, arms, strict=True)))
    return ((Z * tested + Z_POWER * actual) / (first[0] - second[0])) ** 2


def test_reference_figures() -> None:
    """8% against 3%, both at ε = 4: the test needs a few more reports than the plain formula."""
    found = plan()
    assert reports_needed(0.05, variance(0.08, 4), variance(0.03, 4), 0.5, 0.8, 0.05) == 884
    assert found["n"] == ceil(needed((0.08, 4), (0.03, 4))) == 890
    assert (found["per_arm"], found["chance"], found["solve_for"]) == ([445, 445], 32768, "n")
    assert found["variances"] == pytest.approx([variance(0.08, 4), variance(0.03, 4)], rel=1e-6)
    assert found["difference"] == pytest.approx(0.05)
    assert 0.8 <= found["power"] < 0.801
    best = found["best"]
    assert (best["n"], best["per_arm"]) == (886, [414, 472])
    assert best["n"] == ceil(needed((0.08, 4), (0.03, 4), best["chance"] / 65536))


@pytest.mark.parametrize("chance", [10_000, 32_768, 60_000])
@pytest.mark.parametrize("level", ["1", "4"])
def test_an_arm_in_the_clear_has_the_variance_of_its_answers(chance: int, level: str) -> None:
    first = {"epsilon": level, "mechanism": "grr", "share": 0.2}
    found = plan(arms=[first, {"clear": True, "share": 0.1}], chance=chance)
    assert found["variances"][1] == pytest.approx(0.1 * 0.9)
    expected = needed((0.2, float(level)), (0.1, None), chance / 65536)
    # Weights are whole numbers, so the level is not exactly met.
    assert found["n"] == pytest.approx(expected, rel=1e-4, abs=1)
    assert found["best"]["n"] <= found["n"]


def test_the_power_of_a_number_of_reports_inverts_the_plan() -> None:
    for power in (0.5, 0.8, 0.95):
        n = plan(power=power)["n"]
        found = plan(n=n)
        assert found["power"] >= power - 1e-12
        assert found["power"] == pytest.approx(power, abs=2e-3)
        assert (found["solve_for"], found["n"], found["best"]["n"]) == ("power", n, n)
        assert found["best"]["power"] >= found["power"]


def test_a_higher_level_needs_more_reports() -> None:
    assert plan(level=0.9)["n"] < plan()["n"] < plan(level=0.99)["n"]


def test_the_target_is_the_last_choice_unless_named() -> None:
    shares = [{"shares": [0.5, 0.3, 0.2]}, {"shares": [0.4, 0.25, 0.35]}]
    arms = [SECRET | one for one in shares]
    found = plan(choices=3, arms=arms)
    assert (found["target"], found["difference"]) == (2, pytest.approx(-0.15))
    assert plan(choices=3, arms=arms, target=2) == found
    assert plan(choices=3, arms=arms, target=0)["difference"] == pytest.approx(0.1)
    turned = [SECRET | {"shares": one["shares"][::-1]} for one in shares]
    assert plan(choices=3, arms=turned, target=0)["n"] == found["n"]
    # Of two choices, `share` is that of the target wherever it is.
    first, last = plan(target=0), plan()
    assert (first["n"], first["difference"]) == (last["n"], pytest.approx(last["difference"]))
    listed = [SECRET | {"shares": [0.92, 0.08]}, SECRET | {"shares": [0.97, 0.03]}]
    assert plan(arms=listed) == plan()


def test_mechanisms_are_designed_for_the_expected_counts() -> None:
    guesses = ([0.6, 0.2, 0.1, 0.06, 0.04], [0.5, 0.2, 0.1, 0.06, 0.14])
    arms = [{"epsilon": "0.5", "shares": guess} for guess in guesses]
    even, skewed = (plan(choices=choices, arms=arms)["n"] for choices in (5, [60, 20, 10, 6, 4]))
    assert even != skewed
    assert even == pytest.approx(skewed, rel=0.2)


def test_the_optimum_of_two_choices_is_randomised_response() -> None:
    arms = [{"epsilon": "4", "share": share} for share in (0.08, 0.03)]
    assert plan(arms=arms)["n"] == 890


def test_people_who_do_not_respond_are_invited_too() -> None:
    found = plan(response_rate=0.4)
    assert found["invited"] == ceil(found["n"] / 0.4)
    assert found["best"]["invited"] == ceil(found["best"]["n"] / 0.4)


def test_a_small_difference_needs_many_reports() -> None:
    found = plan(arms=[SECRET | {"share": 0.031}, CLEAR])
    assert found["n"] == pytest.approx(needed((0.031, 4), (0.03, None)), rel=1e-4)


def test_few_reports_have_no_best_chance() -> None:
    assert plan(n=9)["best"] is None
    assert plan(n=2)["per_arm"] == [1, 1]


def arms(first: dict[str, Any], second: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"arms": [first, CLEAR if second is None else second]}


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown field": ({"x": 1}, "field_unknown", "x"),
    "limits": ({"limits": {}}, "field_unknown", "limits"),
    "one choice": ({"choices": 1}, "choices_count", "choices"),
    "no choices": ({"choices": None}, "choices_count", "choices"),
    "no arms": ({"arms": None}, "field_type", "arms"),
    "one arm": ({"arms": ARMS[:1]}, "field_type", "arms"),
    "three arms": ({"arms": [*ARMS, CLEAR]}, "field_type", "arms"),
    "an arm that is a number": ({"arms": [1, CLEAR]}, "field_type", "arms[0]"),
    "an unknown field of an arm": (arms(SECRET | {"x": 1}), "field_unknown", "arms[0].x"),
    "an arm without a level": (arms({"share": 0.1}), "field_missing", "arms[0].epsilon"),
    "a clear arm with a level": (
        arms(ARMS[0], CLEAR | {"epsilon": "1"}), "unsupported", "arms[1].epsilon",
    ),
    "a clear arm with a mechanism": (
        arms(ARMS[0], CLEAR | {"mechanism": "grr"}), "unsupported", "arms[1].mechanism",
    ),
    "clear as a text": (arms({"clear": "perhaps", "share": 0.1}), "field_type", "arms[0].clear"),
    "a level of 0": (arms(ARMS[0] | {"epsilon": "0"}), "eps_out_of_range", "arms[0].epsilon"),
    "a huge level": (arms(CLEAR, ARMS[0] | {"epsilon": "99"}), "eps_out_of_range", "arms[1].epsilon"),
    "an unknown mechanism": (arms(ARMS[0] | {"mechanism": "x"}), "unsupported", "arms[0].mechanism"),
    "a mechanism of another notion": (
        arms(CLEAR, ARMS[0] | {"mechanism": "polyopt"}), "unsupported", "arms[1].mechanism",
    ),
    "no guess": (arms(SECRET), "field_missing", "arms[0].shares"),
    "two guesses": (arms(ARMS[0] | {"shares": [0.9, 0.1]}), "unsupported", "arms[0].shares"),
    "a share above 1": (arms(SECRET | {"share": 1.1}), "field_type", "arms[0].share"),
    "a share as a text": (arms(SECRET | {"share": "0.1"}), "field_type", "arms[0].share"),
    "a negative share": (arms(SECRET | {"shares": [1, -0.1]}), "field_type", "arms[0].shares[1]"),
    "shares that do not sum to 1": (arms(SECRET | {"shares": [0.9, 0.1001]}), "prior_sum", "arms[0].shares"),
    "a share too many": (arms(SECRET | {"shares": [0.8, 0.1, 0.1]}), "prior_shape", "arms[0].shares"),
    "one share of three choices": ({"choices": 3}, "prior_shape", "arms[0].share"),
    "no such target": ({"target": 2}, "targets_invalid", "target"),
    "a negative target": ({"target": -1}, "field_type", "target"),
    "no chance": ({"chance": 0}, "field_type", "chance"),
    "a certain arm": ({"chance": 65536}, "field_type", "chance"),
    "a chance as a share": ({"chance": 0.5}, "field_type", "chance"),
    "one report": ({"n": 1}, "field_type", "n"),
    "too many reports": ({"n": 10**12 + 1}, "field_type", "n"),
    "n and power": ({"n": 100, "power": 0.9}, "unsupported", "power"),
    "a low power": ({"power": 0.4}, "field_type", "power"),
    "a certain power": ({"power": 1}, "field_type", "power"),
    "a level of confidence of 1": ({"level": 1}, "confidence_range", "level"),
    "a test that mostly rejects": ({"level": 0.4}, "confidence_range", "level"),
    "nobody responds": ({"response_rate": 0}, "field_type", "response_rate"),
    "no difference": (arms(SECRET | {"share": 0.03}), "unsupported", "arms"),
    "a tiny difference": (arms(SECRET | {"share": 0.0300001}), "unsupported", "arms"),
    "nothing random": (
        arms({"clear": True, "share": 1}, {"clear": True, "share": 0}), "unsupported", "arms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_faults_name_their_field(name: str) -> None:
    changed, code, field = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        plan(**changed)
    assert (refused.value.code, refused.value.field) == (code, field)


def test_arms_and_choices_are_needed() -> None:
    for name in TWO:
        with pytest.raises(InvalidInput) as refused:
            split_json({key: value for key, value in TWO.items() if key != name}, lambda: 0.0)
        assert (refused.value.code, refused.value.field) == ("field_missing", name)


def test_the_server_sets_the_limits() -> None:
    with pytest.raises(InvalidInput) as refused:
        within(split_json, TWO | {"limits": {}}, lambda: 0.0, 20)
    assert (refused.value.code, refused.value.field) == ("unsupported", "limits")
