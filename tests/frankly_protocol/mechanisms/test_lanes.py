# SPDX-License-Identifier: Apache-2.0
"""Packed comparisons of many numbers, which give the same results as separate comparisons."""

from itertools import product

from frankly_protocol.mechanisms.lanes import Fields, Thresholds
from hypothesis import given
from hypothesis import strategies as st

BITS = st.integers(4, 48)


@given(st.data(), BITS, st.integers(1, 40))
def test_one_number_against_many_thresholds(data: st.DataObject, bits: int, lanes: int) -> None:
    top = 1 << bits
    threshold = st.one_of(st.integers(0, top), st.sampled_from((0, 1, top - 1, top)))
    rows = data.draw(
        st.lists(st.lists(threshold, min_size=lanes, max_size=lanes), min_size=1, max_size=3)
    )
    packed = Thresholds.of(bits, rows)
    u = data.draw(st.one_of(st.integers(0, top - 1), st.sampled_from((0, top - 1))))
    for row, thresholds in zip(packed.rows, rows, strict=True):
        for edge in {u, *(t - 1 for t in thresholds if t), *(t for t in thresholds if t < top)}:
            assert packed.passed(edge, row) == sum(edge >= t for t in thresholds)


@given(st.data(), BITS, st.integers(1, 40))
def test_many_numbers_against_a_threshold_each(data: st.DataObject, bits: int, k: int) -> None:
    top = 1 << bits
    threshold = st.one_of(st.integers(0, top), st.sampled_from((0, 1, top - 1, top)))
    row_threshold, common_threshold = data.draw(threshold), data.draw(threshold)
    near = st.sampled_from(
        [
            u
            for t in (row_threshold, common_threshold)
            for u in (0, t - 1, t, top - 1)
            if 0 <= u < top
        ]
    )
    numbers = data.draw(st.lists(st.one_of(st.integers(0, top - 1), near), min_size=k, max_size=k))
    u = sum(number << bits * i for i, number in enumerate(numbers))
    fields = Fields.of(bits, k, row_threshold, common_threshold)
    for row in range(k):
        expected = sum(
            (n < (row_threshold if i == row else common_threshold)) << i
            for i, n in enumerate(numbers)
        )
        assert fields.below(u, row) == expected


def test_every_pair_of_numbers_of_four_bits() -> None:
    for row_threshold, common_threshold in product(range(17), repeat=2):
        fields = Fields.of(4, 2, row_threshold, common_threshold)
        for low, high in product(range(16), repeat=2):
            assert (
                fields.below(low | high << 4, 0)
                == (low < row_threshold) | (high < common_threshold) << 1
            )
            assert (
                fields.below(low | high << 4, 1)
                == (low < common_threshold) | (high < row_threshold) << 1
            )


@given(st.data(), BITS, st.integers(1, 40))
def test_intermediate_integers_have_one_size(data: st.DataObject, bits: int, lanes: int) -> None:
    """Intermediate integers have the same length for all draws and rows, so the work is constant."""
    top = 1 << bits
    rows = [
        tuple(sorted(data.draw(st.lists(st.integers(0, top), min_size=lanes, max_size=lanes))))
        for _ in range(2)
    ]
    packed = Thresholds.of(bits, rows)
    fields = Fields.of(bits, lanes, *data.draw(st.tuples(st.integers(0, top), st.integers(0, top))))
    threshold_sizes, field_sizes = set[int](), set[int]()
    for u in (0, 1, top - 1, data.draw(st.integers(0, top - 1))):
        for row in packed.rows:
            threshold_sizes.add(
                ((u * packed.ones | packed.spare) - row & packed.spare).bit_length()
            )
        for even, odd in fields.rows:
            field_sizes |= {
                ((u & fields.even | fields.spare) - t & fields.spare).bit_length()
                for t in (even, odd)
            }
    assert len(threshold_sizes) == len(field_sizes) == 1
