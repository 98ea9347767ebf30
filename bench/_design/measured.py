# SPDX-License-Identifier: Apache-2.0
"""Timed searches for the most informative mechanism, with a time limit."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from frankly_protocol.audit import Claim
from frankly_server.design import Design, DesignRequest, Prior, design
from frankly_server.design.tables.limits import Limits

GAP = 1e-6


@dataclass(frozen=True)
class Measured:
    """A design and the seconds it took."""

    design: Design
    seconds: float

    @property
    def certified(self) -> bool:
        """True if the value is proven to be within GAP nats of the optimum."""
        return self.design.gap is not None and self.design.gap <= GAP


def most_informative(prior: Prior, claim: Claim, limit_s: float, gap: float = GAP) -> Measured:
    """Maximise I(X; Y); stop after `limit_s` seconds with the best design so far and its bound."""
    start = time.perf_counter()
    limits = Limits.within(limit_s, time.perf_counter, gap=gap)
    request = DesignRequest(
        prior,
        (claim,),
        objective="information",
        accept_identity=True,
        accept_unidentifiable=True,
        limits=limits,
    )
    return Measured(design(request), time.perf_counter() - start)


@dataclass(frozen=True)
class Summary:
    """Summary of designs: mean information and bound, largest gap, median and longest time."""

    value: float
    bound: float
    gap: float
    median_s: float
    most_s: float
    certified: int
    all_certified: bool

    @classmethod
    def of(cls, runs: Sequence[Measured]) -> "Summary":
        """Summarise designs; a missing bound counts as infinite."""
        bounds = [float("inf") if run.design.bound is None else run.design.bound for run in runs]
        seconds = [run.seconds for run in runs]
        certified = sum(run.certified for run in runs)
        return cls(
            value=statistics.fmean(run.design.information for run in runs),
            bound=statistics.fmean(bounds),
            gap=max(
                bound - run.design.information for bound, run in zip(bounds, runs, strict=True)
            ),
            median_s=statistics.median(seconds),
            most_s=max(seconds),
            certified=certified,
            all_certified=certified == len(runs),
        )
