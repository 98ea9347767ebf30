# SPDX-License-Identifier: Apache-2.0
"""Estimates in the format of the analyst's client."""

from frankly_analyst import Estimate


def estimate(question: str) -> Estimate:
    """Return a share of 30% ± 4%."""
    return Estimate(
        question=question,
        choice="yes",
        label="Yes",
        estimate=0.3,
        se=0.02,
        se_privacy=0.015,
        se_sampling=0.0132,
        margin=0.04,
        low=0.26,
        high=0.34,
        level=0.95,
        method="score",
        n=1000,
        mechanism="warner",
        notion="ldp",
        epsilon="1.0000",
        ceiling="1.0000",
        documents=("sha256:" + "0" * 64,),
        flags=(),
    )
