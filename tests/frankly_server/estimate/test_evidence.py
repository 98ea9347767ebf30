# SPDX-License-Identifier: Apache-2.0
"""The least and the largest value that one report decodes to, by decoding every report alone."""

from fractions import Fraction

import pytest
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism
from frankly_server.estimate.decoder import shares
from frankly_server.estimate.estimator import evidence_of

from tests.frankly_server.estimate.test_chernoff import ORDINARY, SKEWED

WARNER = DenseMechanism(4, ((12, 4), (3, 13)))


@pytest.mark.parametrize("mechanism", [SKEWED, ORDINARY, ProductMechanism((WARNER, SKEWED))])
def test_ends_are_those_of_single_reports(mechanism: DenseMechanism | ProductMechanism) -> None:
    a = mechanism.answers
    for targets in (shares(a), (tuple(map(Fraction, range(a))), tuple(map(Fraction, range(0, -a, -1))))):
        alone = []
        for y in range(mechanism.reports):
            found = evidence_of(mechanism, [int(i == y) for i in range(mechanism.reports)], targets, None)
            alone.append([v for v in found.exact if v is not None])
        wanted = [(min(column), max(column)) for column in zip(*alone, strict=True)]
        assert evidence_of(mechanism, [1] * mechanism.reports, targets, None).ends() == wanted
