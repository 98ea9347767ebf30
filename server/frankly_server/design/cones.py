# SPDX-License-Identifier: Apache-2.0
"""Privacy notions as cones: whole-number rows r with r·q ≥ 0 on one report's column q ≥ 0 (DESIGN §2).

Every notion is a list of pairs of averages (A, B) with A·q ≤ (p/q')·B·q, multiplied out so that only integers remain.
Orientation: a column q holds Q(y|x) for one report y over all answers x (Funnel writes it as a row of Q_{y|x}).
"""

from math import comb, gcd

from frankly_protocol.audit import NOTIONS
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.prior import Prior
from frankly_server.design.vertices import MAX_CANDIDATES, Ray, extreme_rays

Level = tuple[int, int]
Rows = list[list[int]]

MAX_RAYS = 4096


def require_notion(notion: object) -> str:
    """Return the notion if it exists here. Raises InvalidInput(unsupported), listing those that do."""
    if not isinstance(notion, str) or notion not in NOTIONS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the notions are {', '.join(NOTIONS)}", "notion")
    return notion


def inequalities(notion: str, level: Level, prior: Prior) -> Rows:
    """Return the rows of the notion's cone, beside q ≥ 0; `level` is (p, q) with E = p/q > 1.

    A prior-based notion needs mass on every answer and secret (`Prior.require_protection`).
    """
    if notion == "ldp":
        return _answer_rows(level, prior.answers)
    prior.require_protection()
    return _average_rows(level, prior) if notion == "lip" else _secret_rows(level, prior)


def admits_identity(notion: str, level: Level, prior: Prior) -> bool:
    """Tell whether every answer may be sent as it is: whether each unit vector lies in the cone, exactly."""
    if notion == "ldp":
        return False  # E is finite
    return all(r >= 0 for row in inequalities(notion, level, prior) for r in row)


def rays_of(notion: str, level: Level, prior: Prior) -> list[Ray]:
    """Return all extreme rays of the notion's cone as whole-number columns, exactly inside it.

    Raises InvalidInput(optimiser_limit) where there would be too many, naming what to use instead.
    """
    _require_size(notion, prior)
    if notion == "ldp":
        return answer_rays(level, prior.answers)
    rays = extreme_rays(inequalities(notion, level, prior), prior.answers)
    if len(rays) > MAX_RAYS:
        raise _too_large(notion)
    return rays


def answer_rays(level: Level, answers: int) -> list[Ray]:
    """Return the 2^a − 2 extreme rays of the ε-LDP cone: columns with entries q and p, at least one of each.

    Proof: docs/maths/cones.md, claim 2.
    """
    common = gcd(*level)
    p, q = level[0] // common, level[1] // common
    return [tuple(p if mask >> x & 1 else q for x in range(answers)) for mask in range(1, 2**answers - 1)]


def _answer_rows(level: Level, answers: int) -> Rows:
    p, q = level
    pairs = [(x, other) for x in range(answers) for other in range(answers) if x != other]
    return [[p if i == other else -q if i == x else 0 for i in range(answers)] for x, other in pairs]


def _secret_rows(level: Level, prior: Prior) -> Rows:
    """P(y|s) ≤ E·P(y|t) for all s ≠ t  [Funnel Def 1, eq. 5]."""
    p, q = level
    masses = prior.masses
    return [
        [
            p * below * masses[s] - q * above * masses[t]
            for above, below in zip(prior.joint[s], prior.joint[t], strict=True)
        ]
        for s in range(prior.secrets)
        for t in range(prior.secrets)
        if s != t
    ]


def _average_rows(level: Level, prior: Prior) -> Rows:
    """P(y|s) ≤ E·P(y) and P(y) ≤ E·P(y|s) for all s  [Funnel Def 2, eq. 10]."""
    p, q = level
    shares, total = prior.shares, prior.total
    rows = []
    for row, mass in zip(prior.joint, prior.masses, strict=True):
        rows.append([p * n * mass - q * joint * total for joint, n in zip(row, shares, strict=True)])
        rows.append([p * joint * total - q * n * mass for joint, n in zip(row, shares, strict=True)])
    return rows


def _require_size(notion: str, prior: Prior) -> None:
    a, c = prior.answers, prior.secrets
    if notion == "ldp":
        if 2**a - 2 > MAX_RAYS:
            raise _too_large(notion)
        return
    if notion == "lip":  # a ray with k nonzero entries: k-1 secrets at the upper or at the lower side of the average
        candidates = sum(comb(a, k) * comb(c, k - 1) * 2 ** (k - 1) for k in range(1, min(a, c + 1) + 1))
    else:  # k secrets at the top or at the bottom, at least one at each
        candidates = sum(comb(a, k) * comb(c, k) * (2**k - 2) for k in range(2, min(a, c) + 1))
    if candidates > MAX_CANDIDATES:
        raise _too_large(notion)


def _too_large(notion: str) -> InvalidInput:
    words = "this many answers have too many candidate columns to list them all: use the mechanism grr"
    if notion != "ldp":
        words += " with the notion ldp, which also protects every secret"
    return InvalidInput(Problem.OPTIMISER_LIMIT, words, "mechanism")
