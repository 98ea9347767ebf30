# SPDX-License-Identifier: Apache-2.0
"""Thesis, chapter 3: sanitised responses, products of sanitisations, and least errors.

All numbers are fractions, and E stands for e^ε. `needed_delta` tries every set of outputs. For
products with many outputs, δ is computed only for the worst set: the outputs with P(y|x) >
E·P(y|x').
"""

import random
from fractions import Fraction

import pytest
from frankly_design.families.sanitisation import error_bound_discrete
from frankly_protocol.audit import Claim, worst

from papers.sanitisation import delta_needed, error_bound
from tests.frankly_design.maths import random_mechanism
from tests.papers.exact import different, distribution, needed_delta, power
from tests.papers.registry import paper


def parents(
    seed: int, count: int, most: int = 3
) -> list[tuple[list[list[Fraction]], Fraction, Fraction]]:
    """Draw mechanisms for one person with 2 to `most` answers, each with a level E and its least δ at E."""
    rng, drawn = random.Random(seed), []
    for _ in range(count):
        m = rng.randint(2, most)
        table = [distribution(rng, m) for _ in range(m)]
        E = 1 + Fraction(rng.randint(0, 30), 10)
        drawn.append((table, E, needed_delta(table, different(m), E)))
    return drawn


@paper("Thesis Figure 2.3")
def test_no_band_around_a_density_is_necessary() -> None:
    """Erratum 9.25: δ bounds sets, so moving mass δ into a cell of width w keeps (ε, δ)-DP, however
    dense the cell is.

    Both densities are step functions. One is 1/12 on a length of 12, as in Figure 2.3; the other has the cell.
    """
    delta, E = Fraction(5, 100), Fraction(27, 10)  # E ≤ e, the figure's ε = 1
    for width in (Fraction(1, 10), Fraction(1, 10**6)):
        widths = [6 - width / 2, width, 6 - width / 2]
        plain = [w / 12 for w in widths]
        spiked = [(1 - delta) * p for p in plain]
        spiked[1] += delta
        assert sum(plain) == sum(spiked) == 1
        for P, Q in ((plain, spiked), (spiked, plain)):  # the positive part covers all sets at once
            assert sum(max(Fraction(0), p - E * q) for p, q in zip(P, Q, strict=True)) <= delta
        density, band = spiked[1] / width, E * Fraction(1, 12) + delta
        assert density > band
        assert density > delta / width


@paper("Thesis Appendix A")
def test_single_outputs_do_not_decide_and_the_verifier_tries_all_sets() -> None:
    """Erratum 9.4: with three or more outputs, δ is the max over i, k of Σ_j max(0, P_ij − E·P_kj),
    not of one term."""
    rng, apart = random.Random(31), 0
    for _ in range(100):
        mechanism = random_mechanism(rng, 3, 3, 8)
        table = [[Fraction(w, 256) for w in row] for row in mechanism.weights]
        E = 1 + Fraction(rng.randint(0, 30), 10)
        delta = needed_delta(table, different(3), E)
        positive = max(
            sum(max(Fraction(0), u - E * v) for u, v in zip(table[x], table[z], strict=True))
            for x, z in different(3)
        )
        assert delta == positive
        worst_case = worst(mechanism, Claim("dp", E.as_integer_ratio(), delta=(0, 1)))
        assert worst_case.ratio == delta_needed(mechanism, E) == delta
        single = max(
            max(u - E * v for u, v in zip(table[x], table[z], strict=True)) for x, z in different(3)
        )
        assert single <= delta
        apart += max(Fraction(0), single) < delta
    assert apart > 10


@paper("Thesis Thm 3.4", "Thesis Cor 3.1")
def test_functions_of_a_private_report_are_private() -> None:
    """This holds for every query; all queries are private only if the identity query is private."""
    rng = random.Random(34)
    for table, E, delta in parents(34, 60):
        identity = [[Fraction(y == z) for z in range(len(table[0]))] for y in range(len(table[0]))]
        same = [
            [
                sum((u * identity[y][z] for y, u in enumerate(row)), Fraction(0))
                for z in range(len(row))
            ]
            for row in table
        ]
        assert needed_delta(same, different(len(table)), E) == max(delta, Fraction(0))
        kernel = [distribution(rng, 3) for _ in table[0]]
        processed = [
            [sum((u * kernel[y][z] for y, u in enumerate(row)), Fraction(0)) for z in range(3)]
            for row in table
        ]
        assert needed_delta(processed, different(len(table)), E) <= max(delta, Fraction(0))


@paper("Thesis Thm 3.5", "Thesis Cor 4.3", "Thesis Lemma 3.3")
def test_a_product_needs_the_delta_of_its_parent() -> None:
    """The condition is necessary and sufficient, checked for databases of two and three people."""
    for table, E, delta in parents(35, 12, most=2):
        assert needed_delta(*power(table, 2), E) == max(delta, Fraction(0))
    for table, E, delta in parents(36, 3, most=2):
        assert needed_delta(*power(table, 3), E) == max(delta, Fraction(0))
    # A product with more outputs has too many sets.
    larger = [(drawn, 2) for drawn in parents(37, 30)]
    larger += [(drawn, 3) for drawn in parents(40, 4) if len(drawn[0]) == 3]
    assert [people for _, people in larger].count(3) > 0
    for (table, E, delta), people in larger:
        rows, near = power(table, people)
        worst_set = max(
            sum(max(Fraction(0), u - E * v) for u, v in zip(rows[i], rows[j], strict=True))
            for i, j in near
        )
        assert worst_set == max(delta, Fraction(0))


def metric(rng: random.Random, m: int) -> list[list[Fraction]]:
    """Draw a metric of points on a line or in a star."""
    at, arm = [rng.randint(0, 9) for _ in range(m)], [rng.randint(1, 5) for _ in range(m)]
    return [
        [Fraction(0 if i == j else abs(at[i] - at[j]) + arm[i] + arm[j]) for j in range(m)]
        for i in range(m)
    ]


@paper("Thesis Thm 3.6", "Thesis Thm 3.7", "Thesis Lemma 3.5", "Thesis Def 3.6")
def test_the_least_error_of_a_private_answer() -> None:
    rng = random.Random(38)
    for table, E, needed in parents(38, 100, most=5):
        m = len(table)
        d = metric(rng, m)
        error = max(sum(u * d[x][y] for y, u in enumerate(row)) for x, row in enumerate(table))
        diameter = max(map(max, d))
        nearest = min(d[i][j] for i, j in different(m))
        delta = max(needed, Fraction(0))
        assert error >= error_bound(E, delta, diameter) == diameter * (1 - delta) / (2 * (1 + E))
        assert (
            error
            >= error_bound_discrete(E, delta, m, nearest)
            == nearest * (m - 1) * (1 - delta) / (m - 1 + E)
        )
        assert error > 0 or delta == 1


@paper("Thesis Example 3.7", "Thesis Example 3.8")
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_the_symmetric_mechanism_needs_exactly_its_delta_and_has_the_least_error(m: int) -> None:
    for E, delta in (
        (Fraction(3, 2), Fraction(0)),
        (Fraction(2), Fraction(1, 10)),
        (Fraction(9), Fraction(2, 5)),
    ):
        p = (1 - delta) / (m - 1 + E)
        table = [[1 - (m - 1) * p if i == j else p for j in range(m)] for i in range(m)]
        assert needed_delta(table, different(m), E) == delta
        assert (m - 1) * p == (m - 1) * (1 - delta) / (
            m - 1 + E
        )  # its error is the bound of Theorem 3.7
        more_accurate = [
            [u + (Fraction(1, 10**9) * (m - 1 if i == j else -1)) for j, u in enumerate(row)]
            for i, row in enumerate(table)
        ]
        assert needed_delta(more_accurate, different(m), E) > delta
