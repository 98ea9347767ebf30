# SPDX-License-Identifier: Apache-2.0
"""Protocols of Funnel, compared with its formulas (24)-(30), subset by subset, with scipy's roots."""

import random
from collections.abc import Callable
from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy.optimize import brentq

from tests.frankly_design.families.asking import (
    Floats,
    ask,
    floats,
    grr_matrix,
    lip_of,
    mechanism_of,
)

JOINTS = [
    [[120, 300, 500, 70], [50, 20, 30, 90]],
    [[7, 1, 4, 9, 2], [3, 8, 1, 1, 5], [2, 2, 9, 3, 1]],
    [[900, 80, 20], [10, 70, 20]],
]


def conditionals(joint: list[list[int]]) -> tuple[Floats, Floats]:
    P = np.array(joint, dtype=float)
    return P / P.sum(axis=1, keepdims=True), P.sum(axis=0) / P.sum()


def lip_grr(alpha: float, joint: list[list[int]]) -> float:
    """Return (26)."""
    conditional, p = conditionals(joint)
    return float(
        np.max(np.abs(np.log((1 + (exp(alpha) - 1) * conditional) / (1 + (exp(alpha) - 1) * p))))
    )


def lip_oue(alpha: float, joint: list[list[int]]) -> float:
    """Return (29) over all 2^a subsets."""
    conditional, p = conditionals(joint)
    sets = np.array(list(product((0, 1), repeat=len(p)))).T
    return float(
        np.max(
            np.abs(
                np.log(
                    (1 + (exp(alpha) - 1) * conditional @ sets) / (1 + (exp(alpha) - 1) * p @ sets)
                )
            )
        )
    )


def lip_cr(alpha: float, joint: list[list[int]]) -> float:
    """Return (30)."""
    conditional, p = conditionals(joint)
    everyone = conditional.sum(axis=0)
    return float(
        np.max(
            np.abs(
                np.log(
                    ((exp(alpha) - 1) * conditional + everyone) / ((exp(alpha) - 1) * p + everyone)
                )
            )
        )
    )


FORMULAS: dict[str, Callable[[float, list[list[int]]], float]] = {
    "grr": lip_grr,
    "oue": lip_oue,
    "symmetric-unary": lip_oue,  # members of a set have e^α times the likelihood of others
    "conditional-reporting": lip_cr,
}


@pytest.mark.slow
@pytest.mark.parametrize("joint", JOINTS, ids=len)
@pytest.mark.parametrize("epsilon", ["0.3", pytest.param("0.1", marks=pytest.mark.full_only)])
@pytest.mark.parametrize("family", FORMULAS)
def test_alpha_is_the_root_of_the_paper(family: str, epsilon: str, joint: list[list[int]]) -> None:
    level = FORMULAS[family]
    root = brentq(lambda alpha: level(alpha, joint) - float(epsilon), 1e-9, 30, xtol=1e-13)
    response = ask(family, joint, notion="lip", epsilon=epsilon)
    assert response["parameters"]["alpha"] == pytest.approx(root, abs=1e-8)
    assert response["parameters"]["alpha"] <= root + 1e-12


@pytest.mark.parametrize("family", FORMULAS)
def test_alpha_is_infinite_where_the_raw_answer_keeps_the_level(family: str) -> None:
    joint = JOINTS[0]
    raw = lip_of(np.eye(4), joint)
    above, below = f"{raw + 0.001:.3f}", f"{raw - 0.001:.3f}"
    assert ask(family, joint, notion="lip", epsilon=above)["parameters"]["alpha"] == "inf"
    assert ask(family, joint, notion="lip", epsilon=below)["parameters"]["alpha"] < 20


@pytest.mark.parametrize("family", FORMULAS)
def test_with_an_empty_cell_a_finite_root_exists_at_every_level(family: str) -> None:
    """By erratum 9.19, the LIP of the identity is infinite if a cell is empty."""
    joint = [[5, 0, 9, 4], [3, 8, 1, 6]]
    response = ask(family, joint, notion="lip", epsilon="6")
    root = brentq(lambda alpha: FORMULAS[family](alpha, joint) - 6, 1e-9, 30, xtol=1e-13)
    assert response["parameters"]["alpha"] == pytest.approx(root, rel=1e-6)
    assert response["parameters"]["identity"] is False


def test_grr_and_oue_are_the_papers_tables() -> None:
    joint, alpha = JOINTS[1], 1.25
    assert floats(mechanism_of(ask("grr", joint, alpha="1.25"))) == pytest.approx(
        grr_matrix(5, alpha), abs=1e-13
    )
    Q = floats(mechanism_of(ask("oue", joint, alpha="1.25")))
    for mask in range(32):  # (28)
        size = mask.bit_count()
        for x in range(5):
            power = 5 - size - (0 if mask >> x & 1 else 1)
            printed = exp(power * alpha) / (2 * (exp(alpha) + 1) ** 4)
            assert Q[x, mask] == pytest.approx(printed, rel=1e-11)


def test_conditional_reporting_is_algorithm_1() -> None:
    """The test enumerates every path of the algorithm, with the error in its second line corrected."""
    joint, alpha = JOINTS[1], 0.75
    conditional, p = conditionals(joint)
    c, a = conditional.shape
    Q = floats(mechanism_of(ask("conditional-reporting", joint, alpha="0.75")))
    for s, x in product(range(c), range(a)):
        expected = np.zeros(a)
        for sent in range(c):
            chance = (exp(alpha) if sent == s else 1) / (exp(alpha) + c - 1)
            expected += chance * (np.eye(a)[x] if sent == s else conditional[sent])
        assert Q[s * a + x] == pytest.approx(expected, abs=1e-12)
    P = np.array(joint) / np.sum(joint)
    channel = sum(P[s][:, None] * Q[s * a : (s + 1) * a] for s in range(c)) / p[:, None]
    information = float(np.sum(p[:, None] * channel * np.log(channel / (p @ channel))))
    information_x = ask("conditional-reporting", joint, alpha="0.75")["parameters"]["information_x"]
    assert information_x == pytest.approx(information, rel=1e-9)


@pytest.mark.slow
def test_conditional_reporting_keeps_alpha_ldp_of_the_secret_and_often_less(full: bool) -> None:
    """The test covers Funnel Proposition 1 and the bound before it."""
    rng = random.Random(11)
    for _ in range(20 if full else 4):
        joint = [[rng.randint(1, 60) for _ in range(4)] for _ in range(3)]
        response = ask("conditional-reporting", joint, notion="secret-ldp", alpha="1.5")
        assert response["measures"]["lip"] == pytest.approx(lip_cr(1.5, joint), abs=1e-9)
        assert response["measures"]["secret_ldp"] < 1.5


def test_unary_encoding_of_many_answers_has_no_table() -> None:
    rng = random.Random(3)
    joint = [[rng.randint(1, 90) for _ in range(40)] for _ in range(3)]
    response = ask("oue", joint, notion="lip", epsilon="0.2")
    assert (
        response["kind"],
        response["matrix"],
        response["information"],
        response["identifiable"],
    ) == ("unary", None, None, True)
    conditional, p = conditionals(joint)
    ratio, worst = exp(response["parameters"]["alpha"]) - 1, 0.0
    # The worst set is a prefix in the order of likelihood, so brute force tries all prefixes in
    # both orders.
    for row in conditional:
        order = np.argsort(row / p)
        for turned in (order, order[::-1]):
            sums = [(row[turned[:k]].sum(), p[turned[:k]].sum()) for k in range(41)]
            worst = max(worst, *(abs(log((1 + ratio * r) / (1 + ratio * v))) for r, v in sums))
    assert worst == pytest.approx(0.2, abs=1e-8)
    q = response["parameters"]["q"]
    chances = [q + v * (0.5 - q) for v in p]
    # This is the variance of a set's size; spreading the excess evenly removes a 40th of it.
    lacking = 0.25 + 39 * q * (1 - q)
    expected = (sum(v * (1 - v) for v in chances) - lacking / 40) / (0.5 - q) ** 2
    assert response["variance"] == pytest.approx(expected, rel=1e-12)
    assert response["measures"]["lip"] <= 0.2
    assert sum(response["parameters"]["target_variances"]) == pytest.approx(response["variance"])


def test_subset_selection_takes_the_best_size() -> None:
    """The test tries all sizes in floats, with p, q and the variance of counting."""
    for epsilon, joint in (
        ("0.5", [[3, 1, 2, 4, 6, 2, 1]]),
        ("1", [[1] * 12]),
        ("2", [[5, 9, 1, 1]]),
        ("0.1", [[1] * 9]),
    ):
        E, a = exp(float(epsilon)), len(joint[0])
        shares = np.array(joint[0]) / np.sum(joint)
        spreads = {}
        for k in range(1, a):
            inside = k * E / (k * E + a - k)
            p, q = inside, (inside * (k - 1) + (1 - inside) * k) / (a - 1)
            spreads[k] = float(sum(v * (1 - v) for v in q + shares * (p - q)) / (p - q) ** 2)
        response = ask("subset-selection", joint, notion="ldp", epsilon=epsilon)
        assert response["parameters"]["size"] == min(spreads, key=lambda k: spreads[k])
        assert response["parameters"]["alpha"] == pytest.approx(float(epsilon), abs=1e-9)
        assert response["measures"]["answer_ldp"] <= float(epsilon)
        assert response["variance"] == pytest.approx(min(spreads.values()), rel=1e-9)
