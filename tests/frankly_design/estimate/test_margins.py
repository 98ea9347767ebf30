# SPDX-License-Identifier: Apache-2.0
"""Margins of error: levels, quantiles, ends, and the projection onto the simplex."""

from decimal import Decimal
from math import sqrt
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate.margins import (
    METHODS,
    OF_TWO_ENDS,
    Margins,
    chebyshev_factor,
    normal_quantile,
    require_level,
    times,
)
from frankly_design.kinds.projection import onto_simplex
from frankly_protocol.errors import InvalidInput


@pytest.mark.parametrize(
    "level", [0, 1, 95, -0.5, 1.5, float("nan"), float("inf"), True, None, "0.95", [0.95], {}]
)
def test_levels_out_of_range(level: Any) -> None:
    with pytest.raises(InvalidInput, match=r"use 0\.95") as caught:
        require_level(level)
    assert (caught.value.code, caught.value.field) == ("confidence_range", "level")


def test_levels_in_range() -> None:
    assert require_level(Decimal("0.9")) == 0.9
    assert require_level(0.5) == 0.5


@pytest.mark.parametrize(
    ("level", "z"), [(0.9, 1.644853627), (0.95, 1.959963985), (0.99, 2.575829304)]
)
def test_normal_quantiles(level: float, z: float) -> None:
    assert normal_quantile(level) == pytest.approx(z, abs=1e-9)
    assert normal_quantile(0.95, 5) == pytest.approx(
        2.575829304, abs=1e-9
    )  # 95% for five targets is 99% for each


def test_factors() -> None:
    assert times(2, (0.1, None)) == (0.2, None)
    assert chebyshev_factor(0.75) == 2
    assert chebyshev_factor(0.95) == pytest.approx(sqrt(20))


@pytest.mark.parametrize("method", METHODS)
def test_ends_are_the_estimate_plus_or_minus_a_half_width_or_given(method: str) -> None:
    fields = {
        name: (((0.1, 0.7), None) if name in OF_TWO_ENDS else (0.25, None))
        for name in (*METHODS, "uncut")
    }
    fields["uncut"] = ((-3.0, 4.0), None)
    ends = Margins(**fields).ends(method, (0.5, None))  # type: ignore[arg-type]
    assert ends == (((0.1, 0.7) if method in OF_TWO_ENDS else (0.25, 0.75)), None)


@pytest.mark.parametrize(
    ("values", "nearest"),
    [
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([-0.2, 0.5, 0.7], [0, 0.4, 0.6]),
        ([1.4, -0.1, -0.3], [1, 0, 0]),
        ([5.0, 5.0, 5.0, 5.0], [0.25] * 4),
        ([-3.0, -3.0], [0.5, 0.5]),
    ],
)
def test_projection_onto_the_simplex(values: list[float], nearest: list[float]) -> None:
    np.testing.assert_allclose(onto_simplex(np.array(values)), nearest, atol=1e-15)


def test_projection_is_the_nearest_of_a_grid() -> None:
    steps = np.arange(41) / 40
    points = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12])
    for values in np.array(
        [[0.9, 0.4, -0.2], [0.1, 0.1, 0.1], [2.0, -1.0, 0.5], [-0.3, -0.2, 0.9]]
    ):
        projection = onto_simplex(values)
        assert projection.sum() == pytest.approx(1)
        assert projection.min() >= 0
        assert (
            np.sum((projection - values) ** 2)
            <= np.min(np.sum((points - values) ** 2, axis=1)) + 1e-12
        )
