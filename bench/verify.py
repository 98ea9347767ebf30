# SPDX-License-Identifier: Apache-2.0
"""Cost of exact verification on a device, of a plain verifier, and of the worst documents.

worst_accepted: CPU seconds of verifying and of the report's level for the slowest document that
fills the work budget or 4 MiB (every kind and notion, in several shapes). too_large: the same for
documents that must be refused or be fast. gap_srlip_2^8: longest freeze of a page in Chromium while
it opens eight yes-or-no questions under SRLIP, with a worker and without.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

from _runner import Result, main, ratios, timed, turns
from _verify import limits
from frankly_protocol.audit import Claim, worst
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

ROUNDS = 5
BITS, D = 48, 1 << 48
Matrix = list[list[Fraction]]


def measure() -> Result:
    """Time each notion at realistic document sizes, and the plain verifier if it is fast enough."""
    table, joint = _table(64), _joint(64, 64)
    wide = _joint(5, 1000)
    pairs = ((1, 3), (1, 4), (1, 6))
    trials: dict[str, Callable[[], object]] = {
        "ldp_64x64": lambda: worst(table, Claim("ldp", (1, 1))),
        "plain_ldp_64x64": lambda: _plain_ldp(table),
        "lip_64_secrets": lambda: worst(table, Claim("lip", (1, 1), joint)),
        "plain_lip_64_secrets": lambda: _plain_lip(table, joint),
        "secret_ldp_64_secrets": lambda: worst(table, Claim("secret-ldp", (1, 1), joint)),
        "srlip_4x4x4": lambda: worst(table, Claim("srlip", (1, 1), joint, attributes=(4, 4, 4))),
        "rldp_8x3": lambda: worst(_table(24), Claim("rldp", (1, 1), lower_bounds=(pairs,) * 8)),
        "dp_64x64": lambda: worst(table, Claim("dp", (2, 1), delta=(0, 1))),
        "lip_unary_1000": lambda: worst(
            UnaryMechanism(BITS, 1000, D // 2, D // 5), Claim("lip", (1, 1), wide)
        ),
        "lip_subset_1000": lambda: worst(
            SubsetMechanism(BITS, 1000, 300, D // 2), Claim("lip", (1, 1), wide)
        ),
        "dp_product_8x8": lambda: worst(
            ProductMechanism((_table(8),) * 2), Claim("dp", (3, 1), delta=(0, 1))
        ),
    }
    seconds = turns({name: timed(trial) for name, trial in trials.items()}, ROUNDS)
    samples = {f"{name}_s": values for name, values in seconds.items()}
    for name in ("ldp_64x64", "lip_64_secrets"):
        samples[f"ratio_{name}_plain"] = ratios(seconds[name], seconds[f"plain_{name}"])
    accepted, too_large = limits.judged()
    for language in ("python", "node"):
        samples[f"worst_accepted_{language}_s"] = [max(row[f"{language}_s"] for row in accepted)]
        samples[f"worst_accepted_{language}_read_s"] = [
            max(row[f"{language}_read_s"] for row in accepted)
        ]
        samples[f"too_large_{language}_s"] = [max(row[f"{language}_s"] for row in too_large)]
    samples |= limits.opened()
    at_most = {
        "ldp_64x64_s": 0.001,
        "lip_64_secrets_s": 0.05,
        "lip_unary_1000_s": 0.05,
        "gap_srlip_2^8_worker_ms": 50,
    }
    at_most |= {name: 2.0 for name in samples if name.startswith(("worst_accepted", "too_large"))}
    return Result("verify", samples, at_most, extra={"accepted": accepted, "too_large": too_large})


def _table(answers: int) -> DenseMechanism:
    """Return randomised response with unequal off-diagonal weights."""
    rows = []
    for x in range(answers):
        row = [D // (3 * answers) + 977 * ((x * y) % 13) for y in range(answers)]
        row[x] += D - sum(row)
        rows.append(tuple(row))
    return DenseMechanism(BITS, tuple(rows))


def _joint(secrets: int, answers: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(1 + (s * 31 + x * 17 + s * x) % 101 for x in range(answers)) for s in range(secrets)
    )


def _plain_ldp(mechanism: DenseMechanism) -> Fraction:
    columns = _columns(mechanism)
    return max(
        column[x] / column[z]
        for column in columns
        for x, z in permutations(range(mechanism.answers), 2)
    )


def _plain_lip(mechanism: DenseMechanism, joint: tuple[tuple[int, ...], ...]) -> Fraction:
    total = sum(map(sum, joint))
    average = [Fraction(sum(row[x] for row in joint), total) for x in range(mechanism.answers)]
    by_secret = [[Fraction(n, sum(row)) for n in row] for row in joint]
    level = Fraction(1)
    for column in _columns(mechanism):
        everybody = _mean(average, column)
        for conditional in by_secret:
            chance = _mean(conditional, column)
            level = max(level, chance / everybody, everybody / chance)
    return level


def _mean(weights: list[Fraction], values: list[Fraction]) -> Fraction:
    return sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0))


def _columns(mechanism: DenseMechanism) -> Matrix:
    answers = range(mechanism.answers)
    return [[mechanism.probability(y, x) for x in answers] for y in range(mechanism.reports)]


if __name__ == "__main__":
    main(__doc__, measure)
