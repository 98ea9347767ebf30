# SPDX-License-Identifier: Apache-2.0
"""Token buckets, compared with an exact model on the test's clock."""

from fractions import Fraction

import pytest
from frankly_server.intake.buckets import MAX_NAMES, Buckets
from hypothesis import given
from hypothesis import strategies as st

steps = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), min_size=1, max_size=40)


@given(steps=steps, per_s=st.sampled_from([1, 2, 8]), burst=st.integers(1, 10))
def test_decisions_equal_those_of_the_model(
    steps: list[tuple[int, int]], per_s: int, burst: int
) -> None:
    buckets, level, now = Buckets(per_s, burst), Fraction(burst), 0
    for quarters, cost in steps:  # quarters of a second are exact in binary
        level, now = min(Fraction(burst), level + Fraction(quarters * per_s, 4)), now + quarters
        decision = buckets.take("a", now / 4, cost)
        assert decision.level == max(0, level)
        assert decision.full_s == (burst - level) / per_s
        assert (decision.wait_s == 0) == (level >= 1)
        if level >= 1:
            level -= cost
        else:
            assert decision.wait_s == (1 - level) / per_s
            assert buckets.look("a", now / 4 + decision.wait_s).wait_s == 0.0
            assert decision.retry_after_s >= decision.wait_s


def test_names_have_separate_buckets_and_reading_takes_nothing() -> None:
    buckets = Buckets(1, 2)
    assert [buckets.take("a", 0).wait_s for _ in range(3)] == [0, 0, 1]
    assert [buckets.look("b", 0).level for _ in range(3)] == [2, 2, 2]


def test_a_clock_set_back_adds_no_tokens() -> None:
    buckets = Buckets(1, 1)
    buckets.take("a", 100)
    assert buckets.take("a", 50).wait_s == 1.0


def test_memory_is_bounded_and_the_oldest_name_is_forgotten() -> None:
    buckets = Buckets(1, 1)
    for number in range(MAX_NAMES + 1):
        buckets.take(str(number), 0)
    assert len(buckets._levels) == MAX_NAMES
    assert buckets.look("0", 0).level == 1
    assert buckets.look("1", 0).level == 0


@pytest.mark.parametrize(("per_s", "burst"), [(0, 1), (-1, 1), (1, 0.5)])
def test_a_bucket_that_never_fills_is_refused(per_s: float, burst: float) -> None:
    with pytest.raises(ValueError, match="positive rate"):
        Buckets(per_s, burst)
