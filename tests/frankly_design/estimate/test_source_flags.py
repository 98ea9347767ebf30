# SPDX-License-Identifier: Apache-2.0
"""Flags of sources: their size and power by enumeration of all counts, and Fisher's test in fractions."""

from collections.abc import Callable
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from frankly_design.estimate.anchors import Anchored, AnchorScore, Counted, Stack
from frankly_design.estimate.source_flags import LEVEL, at_least, is_flagged, source_tests
from frankly_design.estimate.validity import Item
from frankly_design.numeric.arrays import FloatArray
from frankly_protocol.mechanisms import DenseMechanism

SOURCES, N = 5, 2000
"""As in docs/maths/validity.md: five sources of 2,000 people, one with 10% fakes that tick at random."""
BITS = 32
YES = round((1 << BITS) / (1 + np.exp(-2)))
"""Weight of the true answer of a yes/no question at ε = 2."""
MECHANISM = DenseMechanism(BITS, ((YES, (1 << BITS) - YES), ((1 << BITS) - YES, YES)))
CONSTANT = AnchorScore.of(MECHANISM, (Fraction(1), Fraction(0)), (Fraction(1, 2),) * 2)
assert CONSTANT is not None


def anchored(yes: int, n: int) -> Anchored:
    """Return the anchor of a source of which `yes` of `n` reports say the known answer."""
    assert CONSTANT is not None
    return Anchored(n, (Stack(n, (Counted(CONSTANT, np.array([yes, n - yes])),), (1.0,)),))


def law(n: int, random: float) -> tuple[FloatArray, int]:
    """Return the chances of counts of the known answer, and the first count; random : share at random."""
    keep = YES / (1 << BITS)
    p = (1 - random) * keep + random / 2
    first, last = (int(n * p + side * 9 * sqrt(n * p * (1 - p))) for side in (-1, 1))
    first, last = max(0, first), min(n, last)
    logs = [
        _log_choose(n, k) + k * np.log(p) + (n - k) * np.log1p(-p) for k in range(first, last + 1)
    ]
    return np.exp(np.array(logs)), first


def _log_choose(n: int, k: int) -> float:
    from math import lgamma

    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def flagged(own: FloatArray, others: FloatArray) -> FloatArray:
    """Return where counts of one source and of the four others flag it, by formulas of its own."""
    keep = YES / (1 << BITS)
    k_own, k_others = (own / N - 0.5) / (keep - 0.5), (others / (4 * N) - 0.5) / (keep - 0.5)
    common = np.clip((k_own + 4 * k_others) / 5, 0, 1)
    p = 0.5 + common * (keep - 0.5)
    spread = np.sqrt(p * (1 - p) * (1 / N + 1 / (4 * N))) / (keep - 0.5)
    return (k_others - k_own) / spread >= NormalDist().inv_cdf(1 - LEVEL / SOURCES)


def chance_of_flag(own: float, others: tuple[float, ...]) -> float:
    """Return the exact chance that one source is flagged. own, others : shares that answer at random."""
    mine, first = law(N, own)
    joint, start = np.ones(1), 0
    for random in others:
        chances, low = law(N, random)
        joint, start = np.convolve(joint, chances), start + low
    grid = flagged(
        (first + np.arange(len(mine)))[:, None].astype(float),
        (start + np.arange(len(joint)))[None, :].astype(float),
    )
    return float(mine @ grid @ joint)


@pytest.mark.parametrize(
    ("base", "low", "high"), [(0.0, 0.97, 1.0), (0.1, 0.89, 0.92), (0.2, 0.74, 0.78)]
)
def test_a_source_with_ten_percent_of_random_fakes_is_found(
    base: float, low: float, high: float
) -> None:
    fakes = base + 0.1 * (1 - base)
    assert low <= chance_of_flag(fakes, (base,) * 4) <= high


@pytest.mark.parametrize("base", [0.0, 0.1, 0.2])
def test_honest_sources_are_hardly_ever_flagged(base: float) -> None:
    """With fakes elsewhere in fewer than 1% of surveys; without any in at most 6%, all sources together."""
    fakes = base + 0.1 * (1 - base)
    assert chance_of_flag(base, (base, base, base, fakes)) < 0.01 / 4
    assert 0.04 < SOURCES * chance_of_flag(base, (base,) * 4) < 0.06


def test_the_tests_flag_as_enumerated() -> None:
    rng = np.random.default_rng(1)
    for _ in range(400):
        yes = rng.integers(1550, 1780, SOURCES)
        tests = source_tests([anchored(int(k), N) for k in yes])
        assert tests is not None
        for i, p in enumerate(tests):
            others = float(yes.sum() - yes[i])
            assert is_flagged(p, SOURCES) == flagged(np.array(float(yes[i])), np.array(others))


def test_fisher_s_tail_is_that_of_counting() -> None:
    for total in range(1, 12):
        for marked in range(total + 1):
            for drawn in range(total + 1):
                ways = [comb(marked, j) * comb(total - marked, drawn - j) for j in range(drawn + 1)]
                for k in range(-1, drawn + 3):
                    exact = Fraction(sum(ways[max(k, 0) :]), comb(total, drawn))
                    assert at_least(k, drawn, marked, total) == pytest.approx(
                        float(exact), abs=1e-12
                    )


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("failing", [0.02, 0.1, 0.5])
def test_by_an_item_some_source_is_flagged_in_at_most_a_twentieth(n: int, failing: float) -> None:
    """Given the number that fail in all, each test has at most its level, for few reports too."""
    for failed in {round(3 * n * failing), round(3 * n * failing) + 1}:
        size = sum(
            (
                Fraction(comb(n, k) * comb(2 * n, failed - k), comb(3 * n, failed))
                for k in range(min(n, failed) + 1)
                if is_flagged(at_least(k, n, failed, 3 * n), 3)
            ),
            Fraction(0),
        )
        assert size <= Fraction(1, 20) / 3


def test_an_item_finds_the_source_whose_people_do_not_read() -> None:
    tests = source_tests([Item(400, 8, 4), Item(400, 34, 4), Item(500, 9, 4)])
    assert tests is not None
    assert [is_flagged(p, 3) for p in tests] == [False, True, False]
    # Fewer random answers than the others are no reason to look at a source.
    assert source_tests([Item(400, 0, 4), Item(400, 40, 4)])[0] > 0.99  # type: ignore[index]


REFUSED: dict[str, Callable[[], list[Item | Anchored]]] = {
    "one source": lambda: [Item(10, 1, 4)],
    "items of different versions": lambda: [Item(10, 1, 4), Item(10, 1, 5)],
    "an item and an anchor": lambda: [Item(10, 1, 4), anchored(8, 10)],
}


@pytest.mark.parametrize("name", REFUSED)
def test_sources_that_cannot_be_compared_have_no_test(name: str) -> None:
    assert source_tests(REFUSED[name]()) is None
