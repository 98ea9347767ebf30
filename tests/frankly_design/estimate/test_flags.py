# SPDX-License-Identifier: Apache-2.0
"""Flags of rows and of the evidence, with each condition tested at its limit."""

import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.flags import row_flags
from frankly_protocol.mechanisms import DenseMechanism

WARNER = DenseMechanism(4, ((12, 4), (4, 12)))
CONSTANT = DenseMechanism(4, ((8, 8), (8, 8)))
NEARLY_CONSTANT = DenseMechanism(
    40, (((1 << 39) + 1, (1 << 39) - 1), ((1 << 39) - 1, (1 << 39) + 1))
)


@pytest.mark.parametrize(
    ("mechanism", "counts", "expected"),
    [
        (WARNER, [60, 40], set()),
        (WARNER, [0, 0], {"no_reports"}),
        (WARNER, [1, 0], {"one_report"}),
        (CONSTANT, [60, 40], {"not_identifiable"}),
        (NEARLY_CONSTANT, [60, 40], {"ill_conditioned"}),
    ],
)
def test_flags_of_the_evidence(
    mechanism: DenseMechanism, counts: list[int], expected: set[str]
) -> None:
    flags = set(estimate(mechanism, counts, methods=()).flags)
    of_evidence = {"no_reports", "one_report", "not_identifiable", "ill_conditioned"}
    assert flags & of_evidence == expected


ROWS: dict[str, tuple[tuple[float, tuple[float, float], int | None], list[str]]] = {
    "no flag": ((0.5, (0.4, 0.6), 50), []),
    "two thirds": ((0.3, (0.1, 0.49), 50), []),
    "more than two thirds": ((0.3, (0.09, 0.4), 50), ["imprecise"]),
    "more than two thirds above": ((0.3, (0.29, 0.51), None), ["imprecise"]),
    "an estimate of 0": ((0.0, (-0.001, 0.001), 50), ["imprecise"]),
    "all possible values": ((0.9, (-0.2, 1.2), 50), ["imprecise", "margin_too_wide"]),
    "four informative reports": ((0.5, (0.4, 0.6), 4), ["few_informative"]),
    "five": ((0.5, (0.4, 0.6), 5), []),
    "far above what is possible": ((1.51, (1.3, 1.7), 50), ["reports_do_not_fit"]),
    "far below": ((-0.51, (-0.6, -0.4), 50), ["reports_do_not_fit"]),
    "not so far": ((1.49, (1.3, 1.7), 50), []),
}


@pytest.mark.parametrize("name", ROWS)
def test_flags_of_a_margin(name: str) -> None:
    (value, ends, informative), expected = ROWS[name]
    assert row_flags(value, ends, (0.0, 1.0), informative, 0.1) == expected


def test_flags_without_a_margin() -> None:
    assert row_flags(None, None, (0.0, 1.0), None, None) == []
    assert row_flags(0.5, (-3, 3), (float("-inf"), float("inf")), None, None) == ["imprecise"]


def test_a_constant_answer_has_no_flags() -> None:
    assert row_flags(1.0, (1.0 - 1e-16, 1.0), (1.0, 1.0), 0, 0.0) == []
