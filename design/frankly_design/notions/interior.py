# SPDX-License-Identifier: Apache-2.0
"""Tables well inside a cone whose entries are 0 at given places (docs/maths/rounding.md, claim 8).

Rounding mixes such a table into an optimum, so that the zeros of the optimum remain zeros.
"""

from collections.abc import Sequence

import numpy as np

from frankly_design.notions.cones import Cone
from frankly_design.numeric.lazy import sparse
from frankly_design.tables.linear import Polytope

# Larger programmes would take longer than the search itself.
_MAX_ENTRIES = 1_000_000
# With less slack than this the solver's tolerances would decide.
_LEAST_SLACK = 1e-7
# Scale of the returned integers: finer than the 2^-48 of published weights.
_BITS = 60


def interior_table(cone: Cone, support: Sequence[Sequence[bool]]) -> list[list[int]] | None:
    """Return the table with the most slack among those that are 0 outside `support`.

    Maximise t subject to Σ_y Q(y|x) = 1, r·q ≥ t·|r| for each row r of the cone and each column q,
    and Q(y|x) ≥ t on the support. Rows that the zeros satisfy with equality need no slack.

    Parameters
    ----------
    support : shape (answers, reports), row = truth; every row and column has a True.

    Returns
    -------
    Integers proportional to the rows, all positive on the support, or None if there is no such
    table with slack, or if the programme is too large. The solver's tolerances may leave the table
    slightly outside the cone; the exact verifier decides.
    """
    rows = np.array([[float(v) for v in row] for row in cone.lifted_rows()])
    rows /= np.abs(rows).sum(axis=1, keepdims=True)
    places = np.array(support)
    auxiliary = rows.shape[1] - cone.answers
    if places.shape[1] * rows.size > _MAX_ENTRIES:
        return None
    sizes = places.sum(axis=0) + auxiliary
    starts = np.append(0, np.cumsum(sizes))
    slack = int(starts[-1])  # index of the variable t; each column's variables come before it
    blocks, sums = [], np.zeros((cone.answers, slack + 1))
    for column, start in zip(places.T, starts, strict=False):
        answers = np.flatnonzero(column)
        within = rows[:, np.append(column, np.ones(auxiliary, bool))]
        has_slack = np.any(within[:, : len(answers)], axis=1)
        block = np.zeros((len(rows) + len(answers), slack + 1))
        block[: len(rows), start : start + within.shape[1]] = within
        block[: len(rows), slack] = -1.0 * has_slack
        block[len(rows) :, start : start + len(answers)] = np.eye(len(answers))
        block[len(rows) :, slack] = -1
        blocks.append(sparse.csc_array(block))
        sums[answers, start + np.arange(len(answers))] = 1
    inequalities = sum(block.shape[0] for block in blocks)
    ones = np.ones(cone.answers)
    # Auxiliary variables are at most a few times the largest entry, see `Cone.lifted_rows`.
    polytope = Polytope(
        sparse.csc_array(sparse.vstack([*blocks, sparse.csc_array(sums)])),
        np.append(np.zeros(inequalities), ones),
        np.append(np.full(inequalities, np.inf), ones),
        np.zeros(slack + 1),
        np.append(np.full(slack, 4.0), 1.0),
    )
    point = polytope.vertex(np.append(np.zeros(slack), 1.0))
    if point is None or point[slack] < _LEAST_SLACK:
        return None
    table = np.zeros(places.shape)
    for y, (column, start) in enumerate(zip(places.T, starts, strict=False)):
        table[column, y] = point[start : start + int(column.sum())]
    scaled: list[list[float]] = (table * 2.0**_BITS).tolist()
    return [list(map(int, row)) for row in scaled]
