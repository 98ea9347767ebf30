# SPDX-License-Identifier: Apache-2.0
"""Robust local differential privacy: mechanisms for an uncertain distribution of (S, U).

`balls` and `bounds` turn counts, order, n and β into the polytopes D_s of an rldp claim.
`secret_rr` and `independent_reporting` are the paper's two explicit mechanisms; `leakage` measures
the leakage of S of any mechanism. The paper's non-robust optimum is the notion secret-ldp over
answers (s, u) with the prior `promises.pairs(prior)`; its PolyOpt is the optimum over rldp with
`diagonal`.
"""

from frankly_server.design.robust.balls import Ball, confidence_ball
from frankly_server.design.robust.bounds import Bounds, ball_bounds, is_vacuous, lower_bounds
from frankly_server.design.robust.independent_reporting import (
    Split,
    ValueLeak,
    best_split,
    distance_bound,
    independent_reporting,
)
from frankly_server.design.robust.leakage import (
    BallLeakage,
    realised_epsilon,
    worst_case_epsilon,
    worst_case_over_ball,
)
from frankly_server.design.robust.secret_rr import no_bounds, secret_rr

__all__ = [
    "Ball",
    "BallLeakage",
    "Bounds",
    "Split",
    "ValueLeak",
    "ball_bounds",
    "best_split",
    "confidence_ball",
    "distance_bound",
    "independent_reporting",
    "is_vacuous",
    "lower_bounds",
    "no_bounds",
    "realised_epsilon",
    "secret_rr",
    "worst_case_epsilon",
    "worst_case_over_ball",
]
