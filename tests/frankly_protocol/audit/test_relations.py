# SPDX-License-Identifier: Apache-2.0
"""Relations between the notions, taken from the papers and checked by arithmetic."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import pytest
from frankly_protocol.audit import AVERAGE, Claim, require_private, worst
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.audit.definitions import ONE, mechanisms_over
from tests.frankly_protocol.samples import is_private, joints
from tests.refusals import refusal

Ratio = tuple[int, int]
ORDER: list[tuple[int, int]] = [(1, 1), (9, 8), (3, 2), (2, 1), (5, 1)]


def largest(levels: list[Fraction | None]) -> Fraction | None:
    return None if None in levels else max(level for level in levels if level is not None)


@given(mechanisms_over(3), joints(3), st.sampled_from(ORDER))
def test_lift_with_equal_levels_is_lip(
    mechanism: DenseMechanism, joint: tuple[tuple[int, ...], ...], E: Ratio
) -> None:
    lip, alip = Claim("lip", E, joint), Claim("alip", E, joint, low_level=E)
    assert is_private(mechanism, lip) == is_private(mechanism, alip)
    verdict = worst(mechanism, alip)
    assert verdict.ratio == largest(list(verdict.needed.values())) == worst(mechanism, lip).ratio


SHUT = DenseMechanism(4, ((8, 8), (0, 16)))
"""Answer 1 never causes report 0: under DIAGONAL its lift is 2 upwards, infinite downwards."""
DIAGONAL = ((1, 0), (0, 1))


def test_the_two_sides_of_lift_have_their_own_levels() -> None:
    both = worst(SHUT, Claim("alip", (9, 1), DIAGONAL, low_level=(9, 1)))
    assert both.ratio is None
    assert (both.field, both.report, both.pair) == ("low_level", 0, (AVERAGE, 1))
    assert both.other is not None
    assert both.other.ratio == 2
    assert (both.other.field, both.other.pair) == ("level", (0, AVERAGE))
    assert both.needed == {"level": 2, "low_level": None}
    upper = Claim("alip", (2, 1), DIAGONAL)
    require_private(SHUT, upper)
    assert worst(SHUT, upper).needed == both.needed
    assert worst(SHUT, upper).field == "level"
    for broken, field in (
        (replace(upper, level=(2**50 * 2 - 1, 2**50)), "level"),
        (replace(upper, level=None, low_level=(2**53 - 1, 1)), "low_level"),
    ):
        assert refusal(DocumentRejected, require_private, SHUT, broken).field == field


def test_the_side_that_is_further_beyond_its_own_level_comes_first() -> None:
    mechanism = DenseMechanism(4, ((12, 4), (4, 12)))  # lift 3/2 upwards, 2 downwards
    claim = Claim("alip", (2, 1), DIAGONAL, low_level=(2, 1))
    assert worst(mechanism, claim).needed == {"level": Fraction(3, 2), "low_level": 2}
    assert worst(mechanism, claim).field == "low_level"
    assert (
        worst(mechanism, replace(claim, level=(5, 4))).field == "level"
    )  # 1.2 times its level, compared with 1
    assert is_private(mechanism, replace(claim, level=(3, 2)))
    assert not is_private(mechanism, replace(claim, level=(5, 4)))


@given(mechanisms_over(5), joints(5))
def test_with_one_attribute_the_side_channel_adds_nothing_to_lip(
    mechanism: DenseMechanism, joint: tuple[tuple[int, ...], ...]
) -> None:
    """J = ∅ is LIP itself; given x, the report is independent of s, because it depends only on x."""
    assert (
        worst(mechanism, Claim("srlip", ONE, joint, attributes=(5,))).ratio
        == worst(mechanism, Claim("lip", ONE, joint)).ratio
    )


@given(mechanisms_over(6), joints(6), st.sampled_from([(2, 3), (3, 2)]))
def test_the_side_channel_is_lip_under_the_prior_given_each_known_part(
    mechanism: DenseMechanism, joint: tuple[tuple[int, ...], ...], sizes: tuple[int, int]
) -> None:
    levels: list[Fraction | None] = [worst(mechanism, Claim("lip", ONE, joint)).ratio]
    for fixed in [*((a, None) for a in range(sizes[0])), *((None, b) for b in range(sizes[1]))]:
        inside = [
            all(k in (None, v) for k, v in zip(fixed, x, strict=True))
            for x in product(*map(range, sizes))
        ]
        conditional = [tuple(n * i for n, i in zip(row, inside, strict=True)) for row in joint]
        possible_rows = tuple(
            row for row in conditional if any(row)
        )  # the other secrets have N(s, x_J) = 0
        if len(possible_rows) > 1:
            levels.append(worst(mechanism, Claim("lip", ONE, possible_rows)).ratio)
    assert worst(mechanism, Claim("srlip", ONE, joint, attributes=sizes)).ratio == largest(levels)


def test_a_secret_that_cannot_occur_given_the_known_attributes_is_ignored() -> None:
    """If N(s, x_J) = 0, P(y|s, x_J) is undefined; treating it as 0 would make every ratio infinite."""
    determined = ((1, 1, 0, 0), (0, 0, 1, 1))  # s = x1, answers (x1, x2)
    second = DenseMechanism(4, ((12, 4), (4, 12), (12, 4), (4, 12)))  # depends on x2 only
    assert worst(second, Claim("srlip", ONE, determined, attributes=(2, 2))).ratio == 1
    absent = ((1, 1, 1, 1), (1, 1, 0, 0))  # s = 1 never has x1 = 1
    first = DenseMechanism(4, ((4, 12), (4, 12), (8, 8), (8, 8)))  # depends on x1 only
    # P(y=0|s) = 6/16, 4/16 and P(y=0) = 32/96, with or without x2; given x1, s has no effect.
    verdict = worst(first, Claim("srlip", ONE, absent, attributes=(2, 2)))
    assert (verdict.ratio, verdict.report, verdict.pair) == (Fraction(4, 3), 0, (AVERAGE, 1))


def test_a_condition_is_named_by_attribute() -> None:
    """With sizes 2 and 3, the report depends on s only where x2 = 2, a value that x1 does not have."""
    mechanism = DenseMechanism(4, ((8, 8), (8, 8), (4, 12), (8, 8), (8, 8), (12, 4)))
    joint = ((1, 1, 1, 1, 1, 3), (1, 1, 3, 1, 1, 1))
    assert worst(mechanism, Claim("srlip", ONE, joint, attributes=(2, 3))).condition == (None, 2)


def test_the_other_secrets_are_compared_whichever_is_absent() -> None:
    """Given x1 = 0, two secrets are possible, with P(y = 0) = 12/16 and 4/16, and 8/16 on average."""
    rows = ((0, 0, 1, 1), (1, 0, 1, 1), (0, 1, 1, 1))
    mechanism = DenseMechanism(4, ((12, 4), (4, 12), (8, 8), (8, 8)))
    for joint in permutations(rows):
        verdict = worst(mechanism, Claim("srlip", ONE, joint, attributes=(2, 2)))
        assert (verdict.ratio, verdict.condition) == (2, (0, None))
        assert verdict.pair[verdict.pair[0] == AVERAGE] != joint.index(rows[0])


XOR = ((1, 0, 0, 1), (0, 1, 1, 0))
"""S = X1 xor X2 for two fair bits, answers (x1, x2) row-major  [erratum 9.15]."""


def test_the_xor_that_refutes_funnel_theorem_4_is_refused() -> None:
    first = DenseMechanism(4, ((16, 0), (16, 0), (0, 16), (0, 16)))
    second = DenseMechanism(4, ((16, 0), (0, 16), (16, 0), (0, 16)))
    product_of_both = DenseMechanism(
        4, tuple(tuple(16 if x == y else 0 for y in range(4)) for x in range(4))
    )
    for single in (first, second):
        assert worst(single, Claim("lip", ONE, XOR)).ratio == 1
    with pytest.raises(DocumentRejected) as caught:
        require_private(product_of_both, Claim("srlip", (2**53 - 1, 1), XOR, attributes=(2, 2)))
    assert caught.value.detail.startswith("srlip: report 0: no finite ratio")
    # One bit alone already determines S for a reader who knows the other attribute.
    verdict = worst(first, Claim("srlip", ONE, XOR, attributes=(2, 2)))
    assert verdict.ratio is None
    assert verdict.condition in ((None, 0), (None, 1))


def dpv(p00: int, p11: int, ones: int, of: int, alpha: Ratio = ONE) -> tuple[DenseMechanism, Claim]:
    """Return a mechanism with rows [[p00, 1−p00], [1−p11, p11]] in units of 2^-48, and a claim; a
    share of ones/of is sensitive."""
    D = 1 << 48
    joint = ((of - ones, 0), (0, ones))
    return DenseMechanism(48, ((p00, D - p00), (D - p11, p11))), Claim(
        "dpv", alpha, joint, sensitive=1
    )


@pytest.mark.parametrize(("hits", "total"), [(1, 2), (1, 10), (3, 4), (1, 1000)])
def test_the_degree_of_privacy_violation_equals_that_of_theorem_6_4(hits: int, total: int) -> None:
    """The degree follows Thesis (6.25) for p00 + p11 > 1 and (6.27) for p00 + p11 < 1."""
    D, pi = 1 << 48, Fraction(hits, total)
    for i, j in product((1, 3, 5, 8, 11, 16), repeat=2):
        p00, p11 = Fraction(i, 16), Fraction(j, 16)
        yes = 1 - p00 + pi * (p00 + p11 - 1)
        if p00 + p11 == 1 or not 0 < yes < 1:
            continue
        printed = p11 * pi / yes if p00 + p11 > 1 else (1 - p11) * pi / (1 - yes)
        verdict = worst(*dpv(int(p00 * D), int(p11 * D), hits, total))
        assert (verdict.ratio, verdict.report, verdict.pair) == (
            printed,
            int(p00 + p11 > 1),
            (1, AVERAGE),
        )


@pytest.mark.parametrize(
    ("hits", "total", "alpha"),
    [(1, 10, (1, 3)), (1, 3, (1, 2)), (7, 1000, (1, 4)), (2, 5, (99, 100))],
)
def test_warner_and_mangat_satisfy_a_degree_to_the_last_unit(
    hits: int, total: int, alpha: Ratio
) -> None:
    """By Thesis (6.28), p_m = (α − π)/(α(1 − π)); rounded down, the mechanisms satisfy α, but not
    one unit above."""
    D, pi, a = 1 << 48, Fraction(hits, total), Fraction(*alpha)
    warner = a * (1 - pi) / (a * (1 - pi) + pi * (1 - a))
    mangat = (a - pi) / (a * (1 - pi))
    for p in (int(warner * D), int(warner * D) + 1):
        within = Fraction(p, D) <= warner
        assert is_private(*dpv(p, p, hits, total, alpha)) == within
        assert is_private(*dpv(D - p, D - p, hits, total, alpha)) == within  # (6.30)
    for p in (int(mangat * D), int(mangat * D) + 1):
        assert is_private(*dpv(p, D, hits, total, alpha)) == (Fraction(p, D) <= mangat)


def test_no_mechanism_has_a_degree_below_the_share_of_holders() -> None:
    """By Thesis (6.29), α ≥ π; a report that does not depend on the answer attains the bound."""
    constant, claim = dpv(1 << 47, 1 << 47, 1, 4, (1, 4))
    assert is_private(constant, claim)
    assert not is_private(constant, replace(claim, level=(2**50 - 1, 2**52)))
    assert worst(constant, claim).ratio == Fraction(1, 4)


@given(mechanisms_over(6), st.sampled_from([2, 3, 6]))
def test_without_bounds_and_with_the_diagonal_the_robust_notion_is_plain_ldp(
    mechanism: DenseMechanism, s: int
) -> None:
    """This is erratum 9.11."""
    zero_bounds = (((0, 1),) * (6 // s),) * s
    ldp_ratio = worst(mechanism, Claim("ldp", ONE)).ratio
    assert (
        worst(mechanism, Claim("rldp", ONE, lower_bounds=zero_bounds, diagonal=True)).ratio
        == ldp_ratio
    )
    off_diagonal = worst(mechanism, Claim("rldp", ONE, lower_bounds=zero_bounds)).ratio
    assert largest([off_diagonal, ldp_ratio]) == ldp_ratio


@given(
    mechanisms_over(6),
    st.lists(
        st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any), min_size=2, max_size=2
    ),
)
def test_without_slack_the_robust_notion_is_secret_ldp(
    mechanism: DenseMechanism, N: list[list[int]]
) -> None:
    """If L[s] sums to 1, D_s is a single point, which gives secret-LDP under the block-diagonal
    prior of (s, u)."""
    bounds = tuple(tuple((n, sum(row)) for n in row) for row in N)
    joint = ((*N[0], 0, 0, 0), (0, 0, 0, *N[1]))
    secret_ldp_ratio = worst(mechanism, Claim("secret-ldp", ONE, joint)).ratio
    for diagonal in (False, True):
        assert (
            worst(mechanism, Claim("rldp", ONE, lower_bounds=bounds, diagonal=diagonal)).ratio
            == secret_ldp_ratio
        )


def test_an_intersection_names_the_notion_that_fails() -> None:
    mechanism = DenseMechanism(4, ((12, 4), (4, 12)))
    lip, backstop = Claim("lip", (5, 4), ((3, 2), (2, 3))), Claim("ldp", (3, 1))
    require_private(mechanism, lip, backstop)
    require_private(mechanism, backstop, lip, replace(lip, joint=((4, 3), (3, 4))))
    for claims, detail in [
        ((lip, replace(backstop, level=(2, 1))), "ldp: report 0: 3 is needed, 2 is promised"),
        (
            (backstop, replace(lip, level=(11, 10))),
            "lip: report 0: 10/9 is needed, 11/10 is promised",
        ),
        ((lip, replace(lip, joint=DIAGONAL)), "lip: report 0: 2 is needed, 5/4 is promised"),
    ]:
        assert refusal(DocumentRejected, require_private, mechanism, *claims).detail == detail
