# SPDX-License-Identifier: Apache-2.0
"""Robust local differential privacy: uncertainty about the distribution of (S, U), and mechanisms that live with it.

`balls` and `bounds` turn counts, order, n and β into the polytopes D_s that an rldp claim speaks of; `secret_rr` and
`independent_reporting` are the paper's two explicit mechanisms; `leakage` measures what any mechanism leaks of S. The
paper's non-robust optimum is the notion secret-ldp over answers (s, u), whose prior is `promises.pairs(prior)`, and its
PolyOpt the optimum over rldp with `diagonal`.
"""

from frankly_server.design.robust.balls import Ball, confidence_ball
from frankly_server.design.robust.bounds import Bounds, ball_bounds, lower_bounds, says_nothing
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
    "lower_bounds",
    "no_bounds",
    "realised_epsilon",
    "says_nothing",
    "secret_rr",
    "worst_case_epsilon",
    "worst_case_over_ball",
]
