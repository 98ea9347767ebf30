# SPDX-License-Identifier: Apache-2.0
"""Which columns a round of pricing adds."""

import numpy as np
import pytest
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.pricing import pricer_for
from frankly_design.tables.limits import Limits

from tests.frankly_design.optimum.variance.cases import listed


def test_columns_nearly_equal_to_the_best_do_not_crowd_out_others() -> None:
    base = next(b for b in listed(61, 30, max_answers=5) if len(b.rays) > 12)
    p, a = base.prior, base.answers
    prices = Prices(Objective(np.eye(a), p), 3 * np.eye(a), p)
    best = base.rays[int(np.argmax(prices.worth(base.rays)))]
    # A share of another ray is mixed in, so that no two are equal.
    shares = np.linspace(1e-6, 1e-3, 200)[:, None]
    crowd = np.vstack([(1 - shares) * best + shares * ray for ray in base.rays])
    pricer = pricer_for(Listed(np.vstack([base.rays, crowd]), p), Limits())
    columns, largest = pricer.price(prices, np.empty((0, a)))
    assert np.allclose(columns[0], best)
    assert largest == pytest.approx(prices.worth(base.rays).max())
    distances = np.abs(columns[:, None] - base.rays).max(axis=2)
    reached = len(set(np.argmin(distances, axis=1).tolist()))
    # By worth alone, all columns of the round are near one or two rays.
    assert reached >= len(columns) / 2
