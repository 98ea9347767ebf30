# SPDX-License-Identifier: Apache-2.0
"""Measures of tables, compared with the verifier and with their definitions."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.measures import measure, nats, secret_channel
from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives
from frankly_protocol.audit import Claim, worst

from tests.frankly_design.maths import random_mechanism, random_prior

PRIOR = Prior.from_rows([[3, 1, 2], [1, 1, 4]])
IDENTITY = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_levels_are_those_the_verifier_finds_rounded_up() -> None:
    rng = random.Random(51)
    for _ in range(40):
        prior, mechanism = random_prior(rng, 4, 3), random_mechanism(rng, 4, 5)
        measured = measure(mechanism.weights, prior)
        for name, notion in (("answer_ldp", "ldp"), ("secret_ldp", "secret-ldp"), ("lip", "lip")):
            ratio = worst(
                mechanism, Claim(notion, (1, 1), None if notion == "ldp" else prior.joint)
            ).ratio
            assert measured[name] == nats(ratio)
        assert measured["lip"] == max(measured["alip_low"], measured["alip_high"])


def test_the_identity_under_a_prior() -> None:
    measured = measure(IDENTITY, PRIOR)
    # P(s) = ½; P(s=0|x) = 3/4, 1/2, 1/3.
    assert measured["alip_high"] == pytest.approx(math.log(1.5), rel=1e-12)
    assert measured["alip_low"] == pytest.approx(math.log(2), rel=1e-12)
    assert measured["secret_ldp"] == pytest.approx(math.log(3), rel=1e-12)
    assert measured["answer_ldp"] == measured["ceiling"] == math.inf
    assert measured["normalised_information"] == pytest.approx(1, rel=1e-12)
    assert measured["variance"] == pytest.approx(
        1 - sum((n / 12) ** 2 for n in (4, 2, 6)), rel=1e-12
    )
    assert measured["rank"] == 3


def test_a_constant_report_reveals_nothing_and_estimates_nothing() -> None:
    measured = measure([[3, 5], [3, 5], [3, 5]], PRIOR)
    for name in (
        "lip",
        "secret_ldp",
        "answer_ldp",
        "information",
        "information_secret",
        "normalised_information",
    ):
        assert measured[name] == 0
    assert measured["ceiling"] == 1
    assert measured["variance"] == math.inf
    assert measured["rank"] == 1


def test_informations_against_their_definition() -> None:
    rng = random.Random(52)
    for _ in range(30):
        prior, mechanism = random_prior(rng, 3, 2), random_mechanism(rng, 3, 4)
        measured = measure(mechanism.weights, prior)
        joint = np.array(prior.joint) / prior.total
        Q = np.array(mechanism.weights) / 2.0**48
        for name, both in (
            ("information", joint.sum(axis=0)[:, None] * Q),
            ("information_secret", joint @ Q),
        ):
            independent = both.sum(axis=1, keepdims=True) * both.sum(axis=0, keepdims=True)
            expected = np.sum(both * np.log(np.where(both > 0, both / independent, 1)))
            assert measured[name] == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_secrets_without_mass_and_impossible_reports_are_left_out() -> None:
    prior = Prior.from_rows([[3, 0], [0, 0], [2, 0]])
    measured = measure([[2, 2, 0], [0, 2, 2]], prior)  # report 2 never comes from answer 0
    assert measured["lip"] == 0
    assert measured["information"] == 0
    assert measured["information_secret"] == 0
    assert secret_channel([[2, 2, 0], [0, 2, 2]], prior)[1] == [0, 0, 0]


def test_where_the_prior_is_zero_the_variance_is_the_limit() -> None:
    # At p = (1, 0), the identity has no variance, and Warner's mechanism has the variance of its
    # report.
    assert objectives.variance([[1, 0], [0, 1]], [5, 0]) == pytest.approx(0, abs=1e-15)
    assert objectives.variance([[3, 1], [1, 3]], [5, 0]) == pytest.approx(
        2 * (3 / 16) / (1 / 4), rel=1e-12
    )
    near = objectives.variance([[2, 2, 0], [0, 2, 2]], [10**9, 1])
    assert objectives.variance([[2, 2, 0], [0, 2, 2]], [1, 0]) == pytest.approx(near, abs=1e-8)


def test_zero_cells_make_lip_infinite() -> None:
    measured = measure(IDENTITY, Prior.from_rows([[3, 0, 2], [1, 1, 4]]))
    assert measured["lip"] == measured["alip_low"] == measured["secret_ldp"] == math.inf
    assert measured["alip_high"] < math.inf


def test_levels_near_zero_do_not_cancel() -> None:
    ratio = Fraction(10**30 + 1, 10**30)
    assert nats(ratio) == pytest.approx(1e-30, rel=1e-12)
    assert nats(Fraction(10**400, 1)) == pytest.approx(400 * math.log(10), rel=1e-12)
    assert nats(Fraction(1)) == 0
    assert nats(None) == math.inf


def test_the_variance_in_floats_equals_that_of_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(53)
    mechanism = random_mechanism(rng, 5, 7)
    exact = objectives.variance(mechanism.weights, [3, 1, 4, 1, 5])
    monkeypatch.setattr(objectives, "EXACT_ANSWERS", 0)
    assert objectives.variance(mechanism.weights, [3, 1, 4, 1, 5]) == pytest.approx(exact, rel=1e-9)
