# SPDX-License-Identifier: Apache-2.0
"""The certificate: Z and ν, and how it is known that no column of the base is worth more than ν charges (DESIGN §2)."""

from dataclasses import dataclass

import numpy as np

from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.base import Base
from frankly_server.design.variance.objective import Objective, Prices
from frankly_server.design.variance.pricing import Pricer, pricer_for
from frankly_server.design.variance.relaxation import affordable, relax

_ROUNDING = 1e-13


@dataclass(frozen=True)
class Certificate:
    """No mechanism of the cone has a smaller F than `bound`.

    prices : Z and ν with g(v) + |Zᵀv|² ≤ ν·v on the base. exact : every vertex of the base was looked at; otherwise a
    relaxation says so, and `bound` may be some way below the optimum. route : rays, patterns, vertices, counts
    (all of them exact), products or directions.
    """

    prices: Prices
    exact: bool
    route: str

    @property
    def bound(self) -> float:
        """The lower bound of F, see `Prices.bound`."""
        return self.prices.bound()


def proven(prices: Prices, most: float, pricer: Pricer) -> Certificate:
    """Return the certificate of prices on which an exact pricer found no column worth more than `most`."""
    rounding = _ROUNDING * float(np.abs(prices.nu).sum())
    return Certificate(prices.raised(most + rounding), pricer.exact, pricer.route)


def prove(base: Base, prices: Prices, A: FloatArray, limits: Limits) -> Certificate:
    """Return a valid certificate from any Z and ν, be they right or wrong; the best of what the base allows.

    Parameters
    ----------
    A : shape (a, a), that of some mechanism of the base; where rays cannot be listed, the products of the rows of the
    cone take Z and ν of their own, starting from A.
    """
    pricer = pricer_for(base, limits)
    if pricer.exact:
        _, most = pricer.price(prices, np.empty((0, base.answers)))
        return proven(prices, most, pricer)
    return relaxed(base, prices, A, limits)


def relaxed(base: Base, prices: Prices, A: FloatArray, limits: Limits) -> Certificate:
    """Return the best certificate that needs no list of columns."""
    certificates = [_everything(base, prices.objective), _directions(base, prices)]
    if base.rows is not None and affordable(len(base.rows), base.answers):
        objective = prices.objective
        high = _high(base)
        low = None
        if objective.informative:
            low = np.array([max(0.0, -base.highest(-unit)) for unit in np.eye(base.answers)])
        found = relax(base.rows, base.prior, objective.W, A, high, low, limits.out_of_time)
        certificates.append(Certificate(Prices(objective, found.Z, found.nu), False, "products"))
    return max(certificates, key=lambda c: c.bound)


def _everything(base: Base, objective: Objective) -> Certificate:
    """Bound by what no mechanism at all beats, sending the answer itself.

    v = Σ_x p_x v_x·(e_x/p_x) is an average where p_x > 0, so by convexity |Zᵀv|² ≤ Σ_x p_x v_x |Z_x/p_x|², and
    g(v) ≤ Σ_x p_x v_x ln h_x with h_x the largest v_x. Z = diag(p)Wᵀ; answers with p_x = 0 get Z_x = 0.
    """
    p, W = base.prior, objective.W
    nu = p * np.sum(W**2, axis=0)
    if objective.informative:
        nu = nu + p * np.log(np.maximum(_high(base), 1.0))
    return Certificate(Prices(objective, p[:, None] * W.T, nu), False, "directions")


def _directions(base: Base, prices: Prices) -> Certificate:
    """Raise ν by a bound of the largest worth: along each axis of ZZᵀ, w² ≤ (l + u)w − lu where l ≤ w ≤ u."""
    p, Z = base.prior, prices.Z
    centred = Z - np.outer(p, Z.sum(axis=0))  # the same function on the base, up to a linear one
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
        linear = linear + p * np.log(np.maximum(_high(base), 1.0))
    return Certificate(prices.raised(base.highest(linear) + constant), False, "directions")


def _high(base: Base) -> FloatArray:
    """Return the largest value of each v_x, from above: p_x v_x ≤ p·v = 1."""
    p = base.prior
    return np.array(
        [min(1 / p[x] if p[x] > 0 else np.inf, base.highest(unit)) for x, unit in enumerate(np.eye(base.answers))]
    )
