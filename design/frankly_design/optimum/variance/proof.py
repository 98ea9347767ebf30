# SPDX-License-Identifier: Apache-2.0
"""Certificate of a bound: prices Z, ν and the proof that no column exceeds them (spec 1.6)."""

from dataclasses import dataclass

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance import branch
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.pricing import VariancePricer, pricer_for
from frankly_design.optimum.variance.relaxation import affordable, relax
from frankly_design.tables.limits import Limits

# Margin for rounding errors of a worth, relative to Σ|ν|; without it a bound could be too high.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class VarianceCertificate:
    """Proof that no mechanism of the cone has a smaller F than `bound`.

    prices : Z and ν with g(v) + |Zᵀv|² ≤ ν·v on the base.
    exact : True if the prices were checked on every vertex of the base; False if a relaxation
        proves the bound, which may then be far below the optimum.
    route : rays, patterns, vertices, counts (these four are exact), boxes, products or directions.
    """

    prices: Prices
    exact: bool
    route: str

    @property
    def bound(self) -> float:
        """Lower bound of F, see `Prices.bound`."""
        return self.prices.bound()


def exact_certificate(
    prices: Prices, largest_worth: float, pricer: VariancePricer
) -> VarianceCertificate:
    """Return the certificate of an exact pricer whose largest worth is `largest_worth`."""
    rounding = _ROUNDING * float(np.abs(prices.nu).sum())
    return VarianceCertificate(prices.raised(largest_worth + rounding), pricer.exact, pricer.route)


def prove(base: ColumnBase, prices: Prices, A: FloatArray, limits: Limits) -> VarianceCertificate:
    """Return the best certificate for the base, from any Z and ν, optimal or not.

    Parameters
    ----------
    A : shape (a, a), the A(θ) of some mechanism. If vertices cannot be listed, the relaxation
        computes its own Z and ν, starting from A.
    """
    pricer = pricer_for(base, limits)
    if pricer.exact:
        _, largest_worth = pricer.price(prices, np.empty((0, base.answers)))
        return exact_certificate(prices, largest_worth, pricer)
    return relaxed_certificate(base, prices, A, limits)


def branched_certificate(
    base: ColumnBase, prices: Prices, scale: float, tolerance: float, limits: Limits
) -> tuple[VarianceCertificate, FloatArray] | None:
    """Return the branch-and-bound certificate, and the columns worth more than `tolerance`.

    Returns None if the base has no programme.
    """
    proved = branch.bound(base, prices, scale, tolerance, limits)
    if proved is None:
        return None
    columns, largest_worth = proved
    raised = prices.raised(largest_worth + _ROUNDING * float(np.abs(prices.nu).sum()))
    return VarianceCertificate(raised, exact=False, route="boxes"), columns


def relaxed_certificate(
    base: ColumnBase, prices: Prices, A: FloatArray, limits: Limits
) -> VarianceCertificate:
    """Return the best certificate that needs no list of columns."""
    high = _largest_entries(base) if prices.objective.informative else None
    certificates = [
        identity_certificate(base.prior, prices.objective, high),
        _secant_bound(base, prices),
    ]
    if base.rows is not None and affordable(len(base.rows), base.answers):
        objective = prices.objective
        high = _largest_entries(base)
        low = None
        if objective.informative:
            low = np.array([max(0.0, -base.highest(-unit)) for unit in np.eye(base.answers)])
        relaxation = relax(base.rows, base.prior, objective.W, A, high, low, limits.out_of_time)
        relaxed_prices = Prices(objective, relaxation.Z, relaxation.nu)
        certificates.append(VarianceCertificate(relaxed_prices, False, "products"))
    return max(certificates, key=lambda c: c.bound)


def identity_certificate(
    p: FloatArray, objective: Objective, high: FloatArray | None = None
) -> VarianceCertificate:
    """Return the bound that holds even for the mechanism that sends answers unchanged.

    high : upper bounds of each v_x, shape (a,); 1/p_x by default, since p·v = 1.

    v is an average of the columns e_x/p_x with weights p_x v_x, so by convexity
    |Zᵀv|² ≤ Σ_x p_x v_x |Z_x/p_x|². Also g(v) ≤ Σ_x p_x v_x ln h_x with h_x the largest v_x. Here
    Z = diag(p)Wᵀ, so that answers with p_x = 0 have Z_x = 0.
    """
    W = objective.W
    # Z = diag(p)Wᵀ gives |Z_x/p_x|² = Σ_t W_tx², hence this ν.
    nu = p * np.sum(W**2, axis=0)
    if objective.informative:
        largest = 1 / np.where(p > 0, p, 1.0) if high is None else np.maximum(high, 1.0)
        nu = nu + p * np.log(largest)
    return VarianceCertificate(Prices(objective, p[:, None] * W.T, nu), False, "directions")


def _secant_bound(base: ColumnBase, prices: Prices) -> VarianceCertificate:
    """Return the certificate with ν raised by an upper bound of the largest worth.

    Along each eigenvector of ZZᵀ the square is bounded by its secant, w² ≤ (l + u)w − lu for
    l ≤ w ≤ u. The sum of the secants is linear, and `highest` bounds it.
    """
    p, Z = base.prior, prices.Z
    # On the base, centring changes |Zᵀv|² only by a linear function, and shortens the intervals.
    centred = Z - np.outer(p, Z.sum(axis=0))
    shift = Z.sum(axis=0)
    linear = 2 * Z @ shift - prices.nu
    constant = -float(shift @ shift)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    for value, vector in zip(values, vectors.T, strict=True):
        if value > 1e-14 * values[-1]:
            low, high = -base.highest(-vector), base.highest(vector)
            linear = linear + value * (low + high) * vector
            constant -= value * low * high
    if prices.objective.informative:
        linear = linear + p * np.log(np.maximum(_largest_entries(base), 1.0))
    return VarianceCertificate(prices.raised(base.highest(linear) + constant), False, "directions")


def _largest_entries(base: ColumnBase) -> FloatArray:
    """Return an upper bound of each v_x on the base: 1/p_x (since p·v = 1), or a smaller one."""
    p = base.prior
    return np.array(
        [
            min(1 / p[x] if p[x] > 0 else np.inf, base.highest(unit))
            for x, unit in enumerate(np.eye(base.answers))
        ]
    )
