# SPDX-License-Identifier: Apache-2.0
"""Dense sampler: it draws the published row, tested with all draws for small denominators and all
edges for 48 bits."""

from collections import Counter
from itertools import accumulate
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput, RandomnessError
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import mechanisms


@given(mechanisms(bits=8), st.data())
def test_every_draw_of_a_small_mechanism_follows_the_published_row(
    mechanism: DenseMechanism, data: st.DataObject
) -> None:
    truth = data.draw(st.integers(0, mechanism.answers - 1))
    draws = Counter(
        mechanism.sample(truth, lambda _bits, u=u: u) for u in range(mechanism.denominator)
    )
    assert tuple(draws[y] for y in range(mechanism.reports)) == mechanism.weights[truth]


@given(mechanisms(bits=48))
def test_the_48_bit_map_changes_exactly_at_the_cumulative_weights(
    mechanism: DenseMechanism,
) -> None:
    for truth, row in enumerate(mechanism.weights):
        sent = [y for y, w in enumerate(row) if w]
        edges = list(accumulate(row[y] for y in sent))
        for y, start, end in zip(sent, [0, *edges], edges, strict=False):
            assert mechanism.sample(truth, lambda _b, u=start: u) == y
            assert mechanism.sample(truth, lambda _b, u=end - 1: u) == y


BAD_WEIGHTS: list[tuple[Any, Any, str]] = [
    (48, ((2**48 + 1, 0), (0, 2**48)), "weights[0]"),
    (48, ((2**48 - 1, 0), (0, 2**48)), "weights[0]"),
    (4, ((17, -1), (8, 8)), "weights[0]"),
    (4, ((8.0, 8), (8, 8)), "weights[0]"),
    (4, ((8, 8), (True, 15)), "weights[1]"),
    (4, ((8, 8), (16,)), "weights[1]"),
    (4, ((16,),), "weights"),
    (4, ((8, 8, 0), (8, 8, 0)), "weights"),
    (4, ((), ()), "weights"),
    (3, ((4, 4), (4, 4)), "bits"),
    (49, ((2**48, 2**48), (2**48, 2**48)), "bits"),
    (True, ((1, 1), (1, 1)), "bits"),
]


@pytest.mark.parametrize(("bits", "weights", "field"), BAD_WEIGHTS)
def test_tables_that_are_no_mechanism_are_refused(bits: Any, weights: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        DenseMechanism(bits, weights)
    assert (caught.value.code, caught.value.field) == ("weights_invalid", field)


@pytest.mark.parametrize(
    ("weights", "unchanged"),
    [(((16, 0), (0, 16)), True), (((9, 7, 0), (0, 0, 16)), True), (((16, 0), (1, 15)), False)],
)
def test_answers_are_sent_unchanged_if_every_report_has_one_truth(
    weights: Any, unchanged: bool
) -> None:
    assert DenseMechanism(4, weights).sends_unchanged is unchanged


def test_without_randomness_nothing_is_drawn() -> None:
    def broken(_bits: int) -> int:
        raise OSError("no entropy")

    with pytest.raises(RandomnessError):
        DenseMechanism(4, ((8, 8), (8, 8))).sample(0, broken)
