# SPDX-License-Identifier: Apache-2.0
"""Comparing many numbers at once gives what comparing them one by one gives."""

from itertools import product

from frankly_protocol.mechanisms.lanes import Fields, Thresholds
from hypothesis import given
from hypothesis import strategies as st

BITS = st.integers(4, 48)


@given(st.data(), BITS, st.integers(1, 40))
def test_one_number_against_many_thresholds(data: st.DataObject, bits: int, lanes: int) -> None:
    top = 1 << bits
    threshold = st.one_of(st.integers(0, top), st.sampled_from((0, 1, top - 1, top)))
    rows = data.draw(st.lists(st.lists(threshold, min_size=lanes, max_size=lanes), min_size=1, max_size=3))
    packed = Thresholds.of(bits, rows)
    u = data.draw(st.one_of(st.integers(0, top - 1), st.sampled_from((0, top - 1))))
    for row, thresholds in enumerate(rows):
        for edge in {u, *(t - 1 for t in thresholds if t), *(t for t in thresholds if t < top)}:
            assert packed.passed(edge, row) == sum(edge >= t for t in thresholds)


@given(st.data(), BITS, st.integers(1, 40))
def test_many_numbers_against_one_threshold(data: st.DataObject, bits: int, k: int) -> None:
    top = 1 << bits
    threshold = data.draw(st.one_of(st.integers(0, top), st.sampled_from((0, 1, top - 1, top))))
    near = st.sampled_from([u for u in (0, threshold - 1, threshold, top - 1) if 0 <= u < top])
    numbers = data.draw(st.lists(st.one_of(st.integers(0, top - 1), near), min_size=k, max_size=k))
    u = sum(number << bits * i for i, number in enumerate(numbers))
    assert Fields.of(bits, k, threshold).below(u) == sum((n < threshold) << i for i, n in enumerate(numbers))


def test_every_pair_of_numbers_of_four_bits() -> None:
    for threshold in range(17):
        fields = Fields.of(4, 2, threshold)
        for low, high in product(range(16), repeat=2):
            assert fields.below(low | high << 4) == (low < threshold) | (high < threshold) << 1
