# SPDX-License-Identifier: Apache-2.0
"""Robust, Examples 1 and 2: the Rényi divergence; the ball F and the set F′ of its projections.

F′ contains every distribution whose P(·|s) all lie in the projections F_s  [Robust §4.1, (37)].
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from frankly_design.notions.balls import Ball, confidence_ball
from frankly_design.notions.walk import vertices
from frankly_design.numeric.lazy import optimize
from frankly_design.tables.spread import directions
from numpy.typing import ArrayLike

from papers import robust_common as common
from papers.channel import FloatArray
from papers.figure import Check, Figure, Panel, Row, Rows, Run
from papers.robust_common import Estimate

ESTIMATE, TRUTH = ((7, 10), (26, 57)), ((10, 10), (20, 60))
_PEOPLE, _BETA = 100, "0.05"
_PRINTED = ((0.1620, 0.7171), (0.1923, 0.4663))  # (37): P(u₁|s₁), P(u₁|s₂)
_LEVELS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.7", "1", "1.3", "1.6", "2")
_QUICK_LEVELS = ("0.3", "1")
_BEST_F, _BEST_PRODUCT = "best over F", "best over F′ (PolyOpt)"
_MOST_RAYS = 100_000
_F, _PRODUCT, _AS_PRINTED = "F", "F′", "F′, as printed"
_HALVINGS = 60
_CORNERS, _QUICK_CORNERS = 360, 60


def renyi_divergence(p: ArrayLike, r: ArrayLike, order: float) -> float:
    """Return D_α(p‖r) in nats, of two distributions of the same shape  [Robust (21)].

    order : α > 0; at 1 it is the Kullback-Leibler divergence.

    Returns math.inf for α ≥ 1 if r is 0 at a value where p is positive, and for α < 1 if p and r
    are never both positive.
    """
    p, r = np.ravel(np.asarray(p, dtype=float)), np.ravel(np.asarray(r, dtype=float))
    common_values = (p > 0) & (r > 0)
    if not common_values.any() or (order >= 1 and bool(np.any((p > 0) & (r <= 0)))):
        return math.inf
    log_p, log_r = np.log(p[common_values]), np.log(r[common_values])
    if order == 1:
        return float(np.exp(log_p) @ (log_p - log_r))
    return float(np.logaddexp.reduce(order * log_p + (1 - order) * log_r)) / (order - 1)


def nearest(estimate: ArrayLike, conditionals: ArrayLike, order: float) -> FloatArray:
    """Return the P with the given P(·|s) that is nearest to the estimate: P_s ∝ P̂_s·e^((α−1)/α·D_α(P̂(·|s)‖P(·|s))).

    These masses minimise Σ_s P̂_s^α P_s^(1−α) M_s (Hölder; docs/maths/robust.md, claim 16).

    Parameters
    ----------
    estimate : P̂(s, u), shape (secrets, values), every secret with mass.
    conditionals : P(u|s), the same shape, at a finite divergence from the estimate's.
    """
    joint, R = np.asarray(estimate, dtype=float), np.asarray(conditionals, dtype=float)
    mass = joint.sum(axis=1)
    far = [renyi_divergence(p / m, r, order) for p, m, r in zip(joint, mass, R, strict=True)]
    weights = mass * np.exp((order - 1) / order * np.array(far))
    return np.asarray((weights / weights.sum())[:, None] * R)


def in_product(ball: Ball, P: ArrayLike) -> bool:
    """Return True if P is in F′: each P(·|s) with mass lies in the projection F_s  [Robust (37)]."""
    joint = np.asarray(P, dtype=float)
    return all(
        renyi_divergence(ball.conditional(s), row / row.sum(), float(ball.order))
        <= ball.conditional_radius(s)
        for s, row in enumerate(joint)
        if row.sum() > 0
    )


def _example(order: Fraction = Fraction(2)) -> Ball:
    return confidence_ball(ESTIMATE, order, _PEOPLE, _BETA)


def _shares(counts: ArrayLike) -> FloatArray:
    table = np.asarray(counts, dtype=float)
    return np.asarray(table / table.sum())


def _divergences(run: Run) -> Iterator[Row]:
    for tenth in range(1, 51, 7 if run.quick else 1):
        order = Fraction(tenth, 10)
        near = renyi_divergence(_shares(ESTIMATE), _shares(TRUTH), float(order))
        yield Row("a", "D_α(P̂‖P*)", float(order), near)
        yield Row("a", "B", float(order), _example(order).radius)


def _outline(run: Run) -> Iterator[Row]:
    """Yield the edge of F in the plane of (P(u₁|s₁), P(u₁|s₂)), the corners of F′, and both distributions."""
    ball = _example()
    yield from (Row("b", _F, float(x), float(y)) for x, y in edge(ball, 16 if run.quick else 72))
    ends = [(float(ball.least(s)[0]), float(ball.greatest(s)[0])) for s in (0, 1)]
    for name, (across, up) in ((_PRODUCT, ends), (_AS_PRINTED, _PRINTED)):
        yield from (Row("b", name, x, y) for x in across for y in up)
    for name, joint in (("P̂", _shares(ESTIMATE)), ("P*", _shares(TRUTH))):
        yield Row("b", name, *(float(v) for v in joint[:, 0] / joint.sum(axis=1)))


def edge(ball: Ball, corners: int) -> FloatArray:
    """Return points in order along the edge of {(P(u₁|s₁), P(u₁|s₂)) : P ∈ F}, shape (corners, 2).

    ball : of two secrets and two values.
    """
    centre = np.array([ball.conditional(s)[0] for s in (0, 1)])
    angles = (2 * math.pi * k / corners for k in range(corners))
    return np.array([centre + _reach(ball, centre * [math.cos(v), math.sin(v)]) for v in angles])


def _reach(ball: Ball, direction: FloatArray) -> FloatArray:
    """Return the length of the step from P̂ along `direction` to the edge of F, by bisection."""
    estimate = _shares(ball.counts)
    centre = estimate[:, 0] / estimate.sum(axis=1)
    low, high = 0.0, 1.0
    while _within(ball, centre + high * direction):
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = _within(ball, centre + middle * direction)
        low, high = (middle, high) if inside else (low, middle)
    return low * direction


def _within(ball: Ball, first: FloatArray) -> bool:
    """Return True if some P in F has these P(u₁|s)."""
    if np.any(first <= 0) or np.any(first >= 1):
        return False
    estimate, order = _shares(ball.counts), float(ball.order)
    P = nearest(estimate, np.stack([first, 1 - first], axis=1), order)
    return renyi_divergence(estimate, P, order) <= ball.radius


def best_over(points: FloatArray, estimate: FloatArray, epsilon: float) -> FloatArray:
    """Return the table of largest I(X;Y) with P(y|s) ≤ e^ε P(y|t) at every point, shape (4, reports).

    points : (P(u₁|s₁), P(u₁|s₂)) in rows. The condition is linear in both, so it also holds in the
    convex hull of the points. estimate : P̂(s, u), shape (2, 2).
    """
    E, p = math.exp(epsilon), estimate.ravel()
    first, second = (np.stack([v, 1 - v], axis=1) for v in points.T)
    rows = np.vstack([np.hstack([-first, E * second]), np.hstack([E * first, -second])])
    V = vertices(rows, p, directions(0, 1, len(p))[0], _MOST_RAYS)
    if V is None:
        raise ArithmeticError("the rays of the cone cannot be listed")
    V = np.maximum(V, 0.0)
    logs = np.log(np.where(V > 0, V, 1.0) / (V @ p)[:, None])
    share = optimize.linprog(-(V * logs) @ p, A_eq=V.T, b_eq=np.ones(len(p)), method="highs").x
    return np.asarray((V[share > 0] * share[share > 0, None]).T)


def _informations(run: Run) -> Iterator[Row]:
    example, estimate = Estimate(ESTIMATE, _BETA), _shares(ESTIMATE)
    points = edge(example.ball, _QUICK_CORNERS if run.quick else _CORNERS)
    for text in run.points(_LEVELS, _QUICK_LEVELS):
        epsilon = float(Fraction(text))
        yield Row("c", _BEST_F, epsilon, example.utility(best_over(points, estimate, epsilon)))
        product = example.table(common.POLYOPT, Fraction(text), common.steps(run))
        yield Row("c", _BEST_PRODUCT, epsilon, example.utility(product))


def _rows(run: Run) -> Iterator[Row]:
    yield from _divergences(run)
    yield from _outline(run)
    yield from _informations(run)


def _checks(rows: Rows) -> Iterator[Check]:
    yield Check.near("D₂(P̂‖P*)", renyi_divergence(_shares(ESTIMATE), _shares(TRUTH), 2), 0.0281, 6e-5,
                     always=True)  # fmt: skip
    yield Check.near("B", _example().radius, 0.0752, 6e-5, always=True)
    yield rows.ordered("P* is in F at every order", "a", "D_α(P̂‖P*)", "B", always=True)
    ball = _example()
    for s, (low, high) in enumerate(_PRINTED):
        yield Check.near(f"(37): least P(u₁|s{'₁₂'[s]})", float(ball.least(s)[0]), low, 6e-5, expected=False,
                         always=True)  # fmt: skip
        yield Check.near(f"(37): largest P(u₁|s{'₁₂'[s]})", float(ball.greatest(s)[0]), high, 6e-5, expected=False,
                         always=True)  # fmt: skip
    outline = [row for row in rows.all if (row.panel, row.curve) == ("b", _F)]
    beyond = _PRINTED[0][0] - min(row.x for row in outline)
    yield Check("F lies in F′ as printed: how far F goes beyond its left edge", beyond, holds=beyond <= 0,
                expected=False, always=True)  # fmt: skip
    rectangle = math.prod(float(ball.greatest(s)[0] - ball.least(s)[0]) for s in (0, 1))
    yield Check("F′ is larger than F: F's share of the rectangle", _area(outline) / rectangle)
    yield rows.ordered("designing for F′ costs utility", "c", _BEST_PRODUCT, _BEST_F, always=True)
    gains = [
        row.y / rows.y("c", _BEST_PRODUCT, x) - 1 for x, row in rows.curve("c", _BEST_F).items()
    ]
    yield Check("designing for F′ costs utility: most that F alone would gain", max(gains))


def _area(outline: list[Row]) -> float:
    """Return the area of a polygon from its corners in order."""
    ahead = [*outline[1:], outline[0]]
    return abs(sum(p.x * q.y - q.x * p.y for p, q in zip(outline, ahead, strict=True))) / 2


FIGURES = (
    Figure(
        "robust-example-2", "Examples 1 and 2", "The ball F, and F′ that its projections span",
        (Panel("a", "Rényi divergence and radius", "α", "nats", from_zero=True),
         Panel("b", "what F and F′ allow", "P(u₁|s₁)", "P(u₁|s₂)", kind="points"),
         Panel("c", "best utility under either", "ε", "I(X;Y) / H(X)")),
        {"P̂": ".07, .10 / .26, .57 from n = 100", "P*": ".10, .10 / .20, .60", "β": _BETA,
         "F′": "the corners of its rectangle; all of it is allowed",
         "best over F": f"every ray of the cone of {_CORNERS} points on the edge of F (quick: {_QUICK_CORNERS})",
         "best over F′": "PolyOpt without the rows s₁ = s₂ (errata 11)"},
        _rows, _checks,
        notes=("F is drawn by the distribution nearest to P̂ that has the two conditional ones (docs/maths/robust.md, "
               "claim 16)", "the paper prints F′ with the bounds of Example 2 (errata 7)"),
    ),
)  # fmt: skip
