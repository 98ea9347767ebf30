# SPDX-License-Identifier: Apache-2.0
"""Evidence: the extreme values of one decoded report, compared with decoding each report, and no reports."""

from fractions import Fraction
from typing import Any

import pytest
from frankly_design.estimate import Joint, SetCounts, estimate
from frankly_design.estimate.estimator import evidence_of
from frankly_design.kinds import listed
from frankly_design.kinds.decoder import shares
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_design.estimate.published import ORDINARY, SKEWED

WARNER = DenseMechanism(4, ((12, 4), (3, 13)))


@pytest.mark.parametrize("mechanism", [SKEWED, ORDINARY, ProductMechanism((WARNER, SKEWED))])
def test_ends_equal_those_of_single_reports(mechanism: DenseMechanism | ProductMechanism) -> None:
    a = mechanism.answers
    for targets in (
        shares(a),
        (tuple(map(Fraction, range(a))), tuple(map(Fraction, range(0, -a, -1)))),
    ):
        alone = []
        for y in range(mechanism.reports):
            moments = evidence_of(
                mechanism, [int(i == y) for i in range(mechanism.reports)], targets, None
            )
            alone.append([v for v in moments.exact if v is not None])
        expected = [(min(column), max(column)) for column in zip(*alone, strict=True)]
        assert evidence_of(mechanism, [1] * mechanism.reports, targets, None).ends() == expected


UNARY = UnaryMechanism(4, 3, 9, 4)
NOTHING = ((0,) * 3,) * 3
NO_REPORTS: dict[str, tuple[Any, Any]] = {
    "table": (SKEWED, [0] * 4),
    "product": (ProductMechanism((WARNER, WARNER)), [0] * 4),
    "unary": (UNARY, SetCounts(0, NOTHING)),
    "subset": (SubsetMechanism(4, 3, 1, 11), SetCounts(0, NOTHING)),
    "joint": (Joint((WARNER, UNARY)), {}),
}


@pytest.mark.parametrize("kind", NO_REPORTS)
def test_without_reports_every_kind_has_no_estimates(kind: str) -> None:
    mechanism, counts = NO_REPORTS[kind]
    result = estimate(mechanism, counts)
    nothing = (None,) * mechanism.answers
    assert (result.n, result.flags, result.identifiable) == (0, ("no_reports",), True)
    assert (
        result.unbiased
        == result.se
        == result.worst_case_se
        == result.projected
        == result.mle
        == nothing
    )
    assert result.margins.score == result.margins.kl == result.margins.clt == nothing


def test_scores_above_the_limit_have_no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals then use only the range; the limit applies to scores times answers times reports."""
    cells = 3 * SKEWED.answers * SKEWED.reports
    for most, has_law in ((cells, True), (cells - 1, False)):
        monkeypatch.setattr(listed, "MOST_LAWS", most)
        scores = evidence_of(SKEWED, [4, 3, 2, 1], shares(3), None).scores()
        assert [score.law is not None for score in scores] == [has_law] * 3
