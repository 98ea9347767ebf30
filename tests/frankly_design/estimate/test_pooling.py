# SPDX-License-Identifier: Apache-2.0
"""Sums of independent estimates, checked by hand; `tests/frankly_server/analysis` pools whole versions."""

from math import hypot

import numpy as np
import pytest
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.pooling import (
    combined_ends,
    homogeneity,
    kl_ends,
    pseudo_inverse,
    weighted_root,
    weighted_sum,
)
from frankly_design.kinds.decoder import shares
from frankly_protocol.mechanisms import DenseMechanism

WEIGHTS = ((0.25, 1.0, 0.5), (0.75, -2.0, 0.5))
VALUES = ((0.2, 3.0, 0.4), (0.6, 1.0, None))


def test_lower_ends_come_from_lower_ends_and_upper_ends_from_upper_ends() -> None:
    ends = (((0.1, 0.6), (2.9, 3.5), (0.0, 1.0)), ((0.58, 0.9), (0.7, 1.1), None))
    first, second, unknown = combined_ends(WEIGHTS, VALUES, ends)
    assert first == pytest.approx(
        (0.5 - hypot(0.25 * 0.1, 0.75 * 0.02), 0.5 + hypot(0.25 * 0.4, 0.75 * 0.3))
    )
    # A negative weight swaps the sides.
    assert second == pytest.approx((1.0 - hypot(0.1, 2 * 0.1), 1.0 + hypot(0.5, 2 * 0.3)))
    assert unknown is None


def test_errors_of_a_sum_add_in_squares() -> None:
    assert weighted_sum(WEIGHTS, VALUES) == pytest.approx((0.5, 1.0, None))
    assert weighted_root(WEIGHTS, VALUES) == pytest.approx((hypot(0.05, 0.45), hypot(3, 2), None))


def test_the_test_of_equal_versions_does_not_depend_on_units() -> None:
    values = [np.array([0.5, 0.1]), np.array([0.5, 0.3])]
    covariance = np.diag([2e-5, 2e-5])
    units = np.array([1.0, 1e-6])
    unscaled = homogeneity(values, [covariance] * 2)
    rescaled = homogeneity([units * x for x in values], [covariance * np.outer(units, units)] * 2)
    assert unscaled is not None
    assert rescaled is not None
    assert rescaled.p == pytest.approx(unscaled.p, rel=1e-6)
    assert unscaled.p < 1e-100


def test_a_sum_has_chernoff_ends_if_every_part_identifies_its_target() -> None:
    whole = DenseMechanism(4, ((12, 2, 2), (2, 12, 2), (2, 2, 12)))
    alike = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))  # answers 1 and 2 have equal rows
    parts = [
        evidence_of(mechanism, counts, shares(3), None)
        for mechanism, counts in ((whole, [50, 30, 20]), (alike, [60, 40]))
    ]
    assert [part.known for part in parts] == [[0, 1, 2], [0]]
    first, second, third = kl_ends(parts, 0.95)
    assert first is not None
    total = sum(float(part.exact[0] or 0) for part in parts)
    assert first[0] < total < first[1]
    assert second is third is None
    assert all(ends is not None for ends in kl_ends(parts[:1], 0.95))


def test_the_pseudo_inverse_does_not_depend_on_the_scale_of_its_matrix() -> None:
    for size in (1e-30, 1e-6, 1.0, 1e20):
        inverse, rank = pseudo_inverse(size * np.diag([1.0, 2.0, 0.0]))
        assert rank == 2
        assert inverse * size == pytest.approx(np.diag([1.0, 0.5, 0.0]))
    assert pseudo_inverse(np.zeros((2, 2)))[1] == 0
