# SPDX-License-Identifier: Apache-2.0
"""Published analyses of randomised responses, whose estimates and errors equal ours to 3 digits."""

from fractions import Fraction
from math import hypot
from pathlib import Path

import pytest
from frankly_design.estimate import Estimate, estimate

from tests.frankly_design.estimate.published import (
    ANALYSES,
    ROUNDED,
    VAN_DEN_HOUT,
    LieDetector,
    Published,
    warner,
)


def analysed(analysis: Published) -> Estimate:
    return estimate(analysis.mechanism, list(analysis.counts), population=analysis.population)


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_a_published_analysis_has_the_same_three_digits(analysis: Published, root: Path) -> None:
    ours = analysed(analysis)
    page = (root / "docs" / "published.md").read_text(encoding="utf-8")
    assert analysis.name in page
    figures = [*zip(analysis.estimates, ours.unbiased, strict=True),
               *zip(analysis.errors, ours.se, strict=True)]  # fmt: skip
    for published, value in figures:
        if published is not None:
            assert value is not None
            assert f"{value:.3g}" == f"{published:.3g}"
            assert f"{published:.3g}" in page


@pytest.mark.parametrize("analysis", ROUNDED, ids=lambda analysis: analysis.name)
def test_a_rounded_share_is_ours(analysis: Published) -> None:
    assert analysed(analysis).unbiased[0] == pytest.approx(analysis.estimates[0], abs=0.005)


def test_the_likeliest_shares_of_both_questions() -> None:
    """The maximum of the likelihood is at the boundary: 0.165, 0, 0.190 and 0.645."""
    joint = next(a for a in ANALYSES if a.source == VAN_DEN_HOUT and len(a.counts) == 4)
    assert analysed(joint).mle == pytest.approx((0.1649982, 0, 0.1901168, 0.6448848), abs=2e-5)


def test_the_lie_detector_is_a_difference_of_two_groups() -> None:
    design = LieDetector()
    # The shares of "yes" in each group come from the design without noise.
    plain = Published("", "", warner(Fraction(1)), (1, 1), (), ()).mechanism
    groups = [estimate(plain, [n - yes, yes]) for yes, n in zip(design.yes, design.n, strict=True)]
    (first, one), (second, two) = (
        (float(group.unbiased[1] or 0), float(group.se[1] or 0)) for group in groups
    )
    gap = float(design.p[1] - design.p[0])
    assert 1 - (first - second) / gap == pytest.approx(design.estimate, rel=1e-5)
    assert hypot(one, two) / gap == pytest.approx(design.error, rel=1e-4)
