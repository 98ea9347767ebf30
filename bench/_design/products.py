# SPDX-License-Identifier: Apache-2.0
"""Answers of several attributes through one mechanism per attribute, instead of one over all of them together.

`sequential` is sound for SRLIP (DESIGN §9.15): in a chosen order each Q^j keeps its share ε_j of the level with respect
to P(S, X^j | x_J, y_<j), for all values x_J of any other attributes and all reports y_<j of the mechanisms before it.
P(y | s, x_J) / P(y | x_J) is the product of these ratios, so it keeps Σ ε_j. `independent` is the paper's Theorem 4,
which leaves the reports out of its conditions and is not SRLIP in general. Both in floats; P has the shape (c, *sizes).

A column of Q^j is two or three numbers when scaled, so its polytope's vertices are listed (Qhull), and one programme
over them is the best Q^j.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

from _design.enumeration import FloatArray

_STEPS = 4
_UNUSED = 1e-12


@dataclass(frozen=True)
class Product:
    """One mechanism per attribute, each of shape (values, reports), and I(X; Y) in nats of all of them together."""

    factors: tuple[FloatArray, ...]
    information: float

    @property
    def table(self) -> FloatArray:
        """Q(y|x), shape (answers, reports), answers and reports row-major."""
        table = np.ones((1, 1))
        for Q in self.factors:
            table = np.kron(table, Q).astype(np.float64)
        return table


def best_sequential(P: FloatArray, epsilon: float) -> Product:
    """Return the most informative sequential product over all orders and a grid of splits of ε."""
    m = P.ndim - 1
    found = (
        sequential(P, order, [epsilon * share for share in split])
        for split in _splits(m)
        for order in permutations(j for j in range(m) if split[j])
    )
    return max(found, key=lambda one: one.information)


def _splits(m: int) -> Iterator[tuple[float, ...]]:
    """Yield equal parts, and all splits into quarters."""
    yield (1 / m,) * m
    for parts in product(range(_STEPS + 1), repeat=m):
        if sum(parts) == _STEPS:
            yield tuple(part / _STEPS for part in parts)


def sequential(P: FloatArray, order: Sequence[int], levels: Sequence[float]) -> Product:
    """Choose Q^j for each attribute of `order` in turn, the best for I(X; Y^j | Y^<j); the others tell nothing."""
    factors = [np.ones((size, 1)) for size in P.shape[1:]]
    for j in order:
        before = order[: order.index(j)]
        beside = [_beside(factors[i] if i in before else None, size) for i, size in enumerate(P.shape[1:])]
        told = [factors[i] for i in range(P.ndim - 1)]  # a later attribute's factor is still the constant one
        joint = _contracted(P.sum(axis=0)[None], told, j)[0]
        factors[j] = _best(_contracted(P, beside, j), joint, levels[j])
    return Product(tuple(factors), information(P.sum(axis=0), factors))


def independent(P: FloatArray, epsilon: float) -> Product:
    """Choose every Q^j by itself at ε/m, the best for I(X^j; Y^j)  [Funnel Theorem 4, (20)-(23)]."""
    m = P.ndim - 1
    beside = [_beside(None, size) for size in P.shape[1:]]
    factors = []
    for j in range(m):
        alone = _contracted(P.sum(axis=0)[None], [np.ones((size, 1)) for size in P.shape[1:]], j)[0]
        factors.append(_best(_contracted(P, beside, j), alone, epsilon / m))
    return Product(tuple(factors), information(P.sum(axis=0), factors))


def information(shares: FloatArray, factors: Sequence[FloatArray]) -> float:
    """I(X; Y) = H(Y) − Σ_j H(Y^j | X^j) in nats, as Y^j depends on X^j alone. shares : P(x), shape (*sizes,)."""
    sent = shares
    for j, Q in enumerate(factors):
        sent = np.moveaxis(np.tensordot(sent, Q, axes=(j, 0)), -1, j)
    noise = 0.0
    for j, Q in enumerate(factors):
        own = shares.sum(axis=tuple(i for i in range(shares.ndim) if i != j))
        noise += float(own @ [_entropy(row) for row in Q])
    return _entropy(sent) - noise


def level(P: FloatArray, table: FloatArray) -> float:
    """Return the least ε for which a mechanism is ε-SRLIP, by Definition 3 itself; inf if there is none."""
    sent = np.moveaxis((P.reshape(len(P), -1, 1) * table).reshape(*P.shape, table.shape[1]), -1, 0)  # P(y, s, x)
    for axis in range(1, P.ndim):
        P = np.concatenate([P, P.sum(axis=axis, keepdims=True)], axis=axis)
        sent = np.concatenate([sent, sent.sum(axis=axis + 1, keepdims=True)], axis=axis + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log((sent / P) / (sent.sum(axis=1) / P.sum(axis=0))[:, None]))
    known = (P > 0) & (sent.sum(axis=1) > 0)[:, None]
    return float(np.max(ratio[known]))


def printed_level(P: FloatArray, j: int, Q: FloatArray) -> float:
    """Return the least ε_j for which Q^j meets the conditions of Theorem 4: given x_J, without any reports."""
    given = _contracted(P, [_beside(None, size) for size in P.shape[1:]], j)
    mass = given.sum(axis=2, keepdims=True)
    own, average = given @ Q / mass, given.sum(axis=0) @ Q / mass.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log(own / average))
    return float(np.max(ratio[np.broadcast_to(mass > 0, ratio.shape) & (average > 0)]))


def _beside(Q: FloatArray | None, size: int) -> FloatArray:
    """Return what may be known of another attribute: its value, or its report (None: it has not been sent)."""
    return np.hstack([np.eye(size), np.ones((size, 1)) if Q is None else Q])


def _contracted(P: FloatArray, beside: Sequence[FloatArray], j: int) -> FloatArray:
    """Return P(s, x_j, known of the others), shape (c, conditions, values of j)."""
    for i, M in enumerate(beside):
        if i != j:
            P = np.moveaxis(np.tensordot(P, M, axes=(i + 1, 0)), -1, i + 1)
    return np.moveaxis(P, j + 1, -1).reshape(len(P), -1, P.shape[j + 1])


def _best(given: FloatArray, joint: FloatArray, epsilon: float) -> FloatArray:
    """Maximise I(X^j; Y^j | Y^<j) over the Q^j that are ε-LIP under every condition.

    given : P(s, condition, x_j), shape (c, conditions, values). joint : P(y_<j, x_j), shape (reports, values).
    """
    v = _vertices(_rows(given, np.exp(epsilon)), joint.sum(axis=0))
    expected = v @ joint.T  # P(y_<j) times how likely each column is after y_<j
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(v[:, None, :] * joint.sum(axis=1)[:, None] / expected[..., None])
        gains = np.where(v[:, None, :] > 0, joint * v[:, None, :] * logs, 0.0).sum(axis=(1, 2))
    found = linprog(-gains, A_eq=v.T, b_eq=np.ones(v.shape[1]), bounds=(0, None), method="highs")
    if found.status != 0:
        raise ArithmeticError(f"the programme over {len(v)} vertices: {found.message}")
    used = found.x > _UNUSED
    Q = v[used].T * found.x[used]
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def _rows(given: FloatArray, E: float) -> FloatArray:
    """Return rows r with r·q ≥ 0: E·P(y|·) ≥ P(y|s, ·) and the reverse, under every condition that can occur."""
    rows = []
    for cell in np.moveaxis(given, 1, 0):
        present = cell[cell.sum(axis=1) > 0]
        if len(present) > 1:  # a secret that the condition determines is not told by the report
            own = present / present.sum(axis=1, keepdims=True)
            average = present.sum(axis=0) / present.sum()
            rows += [E * average - own, E * own - average]
    return np.vstack(rows)


def _vertices(rows: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the vertices v of {v ≥ 0, rows·v ≥ 0, shares·v = 1}, shape (n, values), by t = shares∘v = (z, 1 − Σz)."""
    scaled = np.vstack([rows / shares, np.eye(len(shares))])
    halves = np.hstack([scaled[:, -1:] - scaled[:, :-1], -scaled[:, -1:]])  # normal·z + offset ≤ 0
    z = HalfspaceIntersection(halves, shares[:-1]).intersections if len(shares) > 2 else _ends(halves)
    t = np.hstack([z, 1 - z.sum(axis=1, keepdims=True)])
    return np.asarray(np.unique(np.round(t.clip(0), 13), axis=0) / shares)


def _ends(halves: FloatArray) -> FloatArray:
    """Return both ends of an interval, shape (2, 1): Qhull wants two dimensions."""
    normal, offset = halves.T
    return np.array(
        [[np.max(-offset[normal < 0] / normal[normal < 0])], [np.min(-offset[normal > 0] / normal[normal > 0])]]
    )


def _entropy(q: FloatArray) -> float:
    positive = q[q > 0]
    return -float(np.sum(positive * np.log(positive)))
