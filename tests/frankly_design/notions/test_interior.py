# SPDX-License-Identifier: Apache-2.0
"""Tables with given zeros well inside a cone (docs/maths/rounding.md, claim 8)."""

from fractions import Fraction
from itertools import product

import pytest
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.belief import two_sided
from frankly_design.notions.interior import interior_table
from frankly_design.notions.prior import Prior
from frankly_design.notions.promises import promise
from frankly_protocol.audit import Claim, level_for

EVEN = Prior.from_rows([[1, 1, 1, 1]])
PAIR = Prior.from_rows([[3, 1, 1], [1, 1, 3]])


def slacks(cone: Cone, table: list[list[int]]) -> list[Fraction]:
    """Return r·q / (|r|·largest row sum) of every row and column, in fractions."""
    total = max(map(sum, table))
    columns = list(zip(*table, strict=True))
    return [
        Fraction(sum(n * v for n, v in zip(row, column, strict=True)), sum(map(abs, row)) * total)
        for row, column in product(cone.rows(), columns)
    ]


CASES = {
    "pml, three of four answers": (
        Cone((two_sided(EVEN, None, Fraction("0.5")),), 4),
        [[x != y for y in range(4)] for x in range(4)],
    ),
    "lip, one zero": (
        Cone((promise("lip", PAIR, Fraction("0.6")),), 3),
        [[True, True], [False, True], [True, True]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_table_has_the_zeros_and_slack_everywhere_else(name: str) -> None:
    cone, support = CASES[name]
    table = interior_table(cone, support)
    assert table is not None
    assert [[v > 0 for v in row] for row in table] == support
    assert max(map(sum, table)) - min(map(sum, table)) < 1 << 25  # of 2^60
    assert min(slacks(cone, table)) > Fraction(1, 100)


def test_by_symmetry_the_table_of_most_slack_is_even() -> None:
    """Under pml with E = e^½ and a column of three equal entries of 1/3, the slack is (3E/4 − 1)/3."""
    cone, support = CASES["pml, three of four answers"]
    table = interior_table(cone, support)
    assert table is not None
    largest = max(map(max, table))
    assert all(v == 0 or largest - v < 1 << 25 for row in table for v in row)


@pytest.mark.parametrize(
    ("cone", "support"),
    [
        # ldp allows no zeros at all.
        (Cone((Claim("ldp", level_for(Fraction(1))),), 2), [[True, False], [True, True]]),
        # pml at E = e^0.5 allows no report that only two of four answers send: 2E/4 < 1.
        (CASES["pml, three of four answers"][0], [[x // 2 == y for y in range(2)] for x in range(4)]),
    ],
)  # fmt: skip
def test_without_slack_there_is_no_table(cone: Cone, support: list[list[bool]]) -> None:
    assert interior_table(cone, support) is None


def test_too_large_a_programme_is_not_solved() -> None:
    prior = Prior.from_rows([[1] * 256])
    cone = Cone((two_sided(prior, None, Fraction(1)),), 256)
    assert interior_table(cone, [[True] * 256] * 256) is None
