# SPDX-License-Identifier: Apache-2.0
"""Certificates: no mechanism beats a valid certificate, and false certificates are corrected."""

import random

import numpy as np
import pytest
from frankly_design.notions.walk import vertices
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.patterns import blocks
from frankly_design.optimum.variance.proof import prove, relaxed_certificate
from frankly_design.tables.limits import Limits

from tests.frankly_design.optimum.variance.cases import (
    AnswerLdp,
    ByRows,
    information,
    level,
    lip_base,
    listed,
    patterns,
    random_mechanisms,
    variances,
    worth,
)


@pytest.mark.parametrize("base", listed(41, 10))
def test_no_random_mechanism_is_below_the_bound(base: Listed) -> None:
    rng, W = random.Random(1), np.eye(base.answers)
    bound = least_variance(base, W).bound
    for theta in random_mechanisms(base.rays, rng, 300):
        assert variances(base.rays, theta, W, base.prior).sum() >= bound


@pytest.mark.parametrize(
    ("answers", "secrets", "epsilon"), [(4, 2, 0.3), (5, 4, 0.5), (6, 6, 1.0), (7, 3, 0.2)]
)
@pytest.mark.parametrize("informative", [False, True])
def test_the_products_prove_a_bound_that_no_mechanism_exceeds(
    answers: int, secrets: int, epsilon: float, informative: bool
) -> None:
    base = lip_base(answers, answers, secrets, epsilon)
    V = vertices(base.rows, base.prior, np.arange(1.0, answers + 1), 5000)
    assert V is not None
    V = np.maximum(V, 0.0)
    W = 0.3 * np.eye(answers)
    optimum = least_variance(base, W)
    objective = Objective(W, base.prior, informative)
    A = (optimum.columns.T * optimum.theta) @ optimum.columns
    prices = Prices(
        objective, np.asarray(np.linalg.solve(A, W.T), dtype=np.float64), np.zeros(answers)
    )
    certificate = relaxed_certificate(base, prices, A, Limits())
    assert not certificate.exact
    assert certificate.route == "products"
    # The certificate holds at every vertex of the base,
    assert worth(V, certificate.prices).max() <= 1e-7 * np.abs(certificate.prices.nu).sum()
    # so no mechanism is below its bound.
    rng = random.Random(answers)
    columns = np.vstack([V, np.ones(answers)])
    for theta in random_mechanisms(columns, rng, 100):
        F = variances(columns, theta, W, base.prior).sum() + float(np.sum((W @ base.prior) ** 2))
        F -= information(columns, theta, base.prior) if informative else 0.0
        assert certificate.bound <= F
    if not informative:
        best = optimum.value + objective.constant()
        assert 0.5 * best <= certificate.bound <= best


@pytest.mark.parametrize("informative", [False, True])
def test_a_false_certificate_is_corrected_by_every_route(informative: bool) -> None:
    p, E = np.array([0.4, 0.3, 0.2, 0.1]), level("1")
    V = patterns(E, p)
    optimum = least_variance(Listed(V, p), np.eye(4))
    objective = Objective(np.eye(4), p, informative)
    A = (optimum.columns.T * optimum.theta) @ optimum.columns
    true = optimum.certificate.prices
    false = Prices(objective, true.Z, 0.5 * true.nu)
    assert false.bound() > objective.constant() + optimum.value  # the certificate claims too much
    assert worth(V, false).max() > 0
    rows = AnswerLdp(E, p).rows
    for base in (Listed(V, p), AnswerLdp(E, p), ByRows(rows, p)):
        proved = prove(base, false, A, Limits())
        assert worth(V, proved.prices).max() <= 1e-9
        F = (
            optimum.value
            + objective.constant()
            - (information(optimum.columns, optimum.theta, p) if informative else 0.0)
        )
        assert proved.bound <= F
    checked = relaxed_certificate(ByRows(rows, p), false, A, Limits())
    assert worth(V, checked.prices).max() <= 1e-7


def test_directions_prove_a_bound_if_nothing_else_can() -> None:
    class Hidden(ByRows):
        rows = None  # type: ignore[assignment]

    p = np.array([0.5, 0.3, 0.2])
    V = patterns(level("1"), p)
    base = Hidden.__new__(Hidden)
    object.__setattr__(base, "prior", p)
    object.__setattr__(base, "maximise", lambda c: V[int(np.argmax(V @ c))])
    object.__setattr__(base, "highest", lambda c: float((V @ c).max()))
    optimum = least_variance(base, np.eye(3))
    best = least_variance(Listed(V, p), np.eye(3))
    assert optimum.certificate.route == "directions"
    assert not optimum.certificate.exact
    assert 0 < optimum.bound <= best.value <= optimum.value * (1 + 1e-9)
    assert optimum.value == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("informative", [False, True])
def test_every_pattern_is_priced(informative: bool) -> None:
    # For 13 answers, there is more than one block of patterns on either side.
    rng = random.Random(13)
    p = np.array([rng.expovariate(1.0) for _ in range(13)])
    p /= p.sum()
    Z = np.array([[rng.gauss(0, 1) for _ in range(4)] for _ in range(13)])
    prices = Prices(
        Objective(np.eye(4, 13), p, informative), Z, np.array([rng.gauss(0, 1) for _ in range(13)])
    )
    expected = worth(patterns(2.5, p), prices)
    priced = list(blocks(prices, 2.5))
    best = max(float(w.max()) for w, _ in priced)
    constant = float(worth(np.ones((1, 13)), prices)[0])
    assert best == pytest.approx(max(expected.max(), constant), rel=1e-9)
    for w, V in priced:
        np.testing.assert_allclose(worth(V, prices), w, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(V @ p, 1, atol=1e-12)
