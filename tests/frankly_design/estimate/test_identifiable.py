# SPDX-License-Identifier: Apache-2.0
"""Identifiable combinations under set mechanisms, compared with the rank of the full table."""

import numpy as np
import pytest
from frankly_design.estimate.identifiable import in_words
from frankly_protocol.mechanisms import DenseMechanism, SubsetMechanism, UnaryMechanism

NAMES = ["never", "some", "often", "always"]


@pytest.mark.parametrize(
    ("mechanism", "rank"),
    [
        (UnaryMechanism(4, 3, 12, 4), 3),
        (UnaryMechanism(4, 3, 4, 12), 3),
        (SubsetMechanism(4, 4, 2, 11), 4),
        (SubsetMechanism(4, 4, 2, 8), 1),  # the truth is in the set as often as any other answer
    ],
)
def test_sets_identify_all_shares_or_only_their_sum(
    mechanism: UnaryMechanism | SubsetMechanism, rank: int
) -> None:
    names = NAMES[: mechanism.answers]
    Q = [
        [float(mechanism.probability(y, x)) for y in mechanism.symbols()] for x in range(len(names))
    ]
    descriptions = in_words(mechanism, names)
    assert descriptions.rank == rank == np.linalg.matrix_rank(np.array(Q))
    assert descriptions.can == tuple(
        f"the share of {label}" for label in (names if rank > 1 else [" + ".join(names)])
    )
    assert len(descriptions.cannot) == len(names) - rank


def test_differences_are_written_with_a_minus() -> None:
    """The third answer's row is 2 × the first row minus the second row."""
    mechanism = DenseMechanism(4, ((4, 8, 4), (8, 4, 4), (0, 12, 4)))
    words = in_words(mechanism, NAMES[:3])
    assert words.can == ("the share of never + 2 × often", "the share of some − often")
    assert words.cannot in (("never against some and often",), ("some and often against never",))
