# SPDX-License-Identifier: Apache-2.0
"""Poisoning bound: no attack exceeds the bound, and the best attack attains it."""

import random
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.estimate import estimate
from frankly_design.requests.estimate import estimate_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_design.maths import random_mechanism

WARNER = DenseMechanism(4, ((12, 4), (4, 12)))


@pytest.mark.slow
def test_every_attack_stays_within_and_the_worst_reaches_the_bound(full: bool) -> None:
    """The test compares estimates with m fakes, of one symbol or random mixtures, and estimates
    without fakes."""
    rng = random.Random(11)
    for _ in range(1000 if full else 20):
        mechanism = random_mechanism(rng, 3, 4)
        honest = [rng.randrange(1, 40) for _ in range(4)]
        fakes = rng.randrange(1, 20)
        attacks = [[fakes if y == best else 0 for y in range(4)] for best in range(4)]
        for _ in range(5):
            mixed = [rng.randrange(4) for _ in range(fakes)]
            attacks.append([mixed.count(y) for y in range(4)])
        beta = Fraction(fakes, sum(honest) + fakes)
        truth = estimate(mechanism, honest).unbiased
        reached_up, reached_down = [False] * 3, [False] * 3
        for attack in attacks:
            estimated = estimate(
                mechanism, [h + f for h, f in zip(honest, attack, strict=True)], beta=beta
            )
            for t in range(3):
                moved = (estimated.unbiased[t] or 0) - (truth[t] or 0)
                up, down = estimated.poisoning.up[t] or 0, estimated.poisoning.down[t] or 0
                assert -down - 1e-9 <= moved <= up + 1e-9
                reached_up[t] |= moved == pytest.approx(up)
                reached_down[t] |= -moved == pytest.approx(down)
        assert all(reached_up)
        assert all(reached_down)


def test_one_percent_moves_a_share_at_one_nat_by_the_known_figure() -> None:
    """With 1% fakes, two choices, ε = 1 and a true share of 0, the share rises by β/(1−β)·max V =
    0.0160 (spec 9.4)."""
    on = round(2**48 * 0.7310585786300049)
    mechanism = DenseMechanism(48, ((on, 2**48 - on), (2**48 - on, on)))
    result = estimate(mechanism, [on // 2**28, (2**48 - on) // 2**28])
    assert result.unbiased[1] == pytest.approx(0, abs=1e-4)
    assert result.poisoning.up[1] == pytest.approx(0.016, abs=1e-4)


@pytest.mark.parametrize("beta", [1, -0.1, 2, True, "0.1", None])
def test_a_share_of_fakes_out_of_range_is_refused(beta: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        estimate_json({"weights": [[12, 4], [4, 12]], "bits": 4, "counts": [3, 4], "beta": beta})
    assert (caught.value.code, caught.value.field) == ("field_type", "beta")


def test_without_fakes_no_estimate_changes() -> None:
    assert estimate(WARNER, [5, 5], beta=Fraction(0)).poisoning.up == (0, 0)
