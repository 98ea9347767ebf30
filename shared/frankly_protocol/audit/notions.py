# SPDX-License-Identifier: Apache-2.0
"""Exact verification of privacy notions on integer mechanisms (spec 1.3, 2.3).

Each notion requires, for every report's column w, that A·w ≤ E·B·w for pairs (A, B) of averages
over answers:

- ``ldp``         A = e_x, B = e_x'                                     (ε-LDP of the answer)
- ``secret-ldp``  A = P(·|s), B = P(·|s')                               (Funnel, Definition 1)
- ``lip``         A = P(·|s), B = P, and the reverse                    (Funnel, Definition 2)
- ``alip``        the two sides of lip, each with its own level         (Lift, Definition 3)
- ``srlip``       as lip, but given x_J, for every attribute subset J   (Funnel, Definition 3)
- ``rldp``        A in D_s, B in D_s', the distributions above L        (Robust, Definition 1, Theorem 2)
- ``metric-ldp``  A = e_x, B = e_x', E = level·L[x][x'], for the pairs that have a level
- ``dpv``         A = P(s, ·), B = P, E = α ≤ 1, for one sensitive s    (Thesis, 6.24)

``dp``, (ε, δ)-DP of the answer, is the exception: Σ_y max(0, Q(y|x) − E·Q(y|x')) ≤ δ for all x, x'
(erratum 9.4).

Tables are verified report by report, and so are products if a notion requires it (`ratios`); other
products factor by factor (`products`); unary and subset mechanisms by the shape that all their
reports share (`sets`). The agreement kind has two weights, whose ratio is its level for all answers
together; only ``ldp`` can be promised for it.

All comparisons are exact, between integers or Fractions. Funnel writes Q transposed (b×a); here,
rows are true answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from frankly_protocol.audit.claims import Claim, require_sound
from frankly_protocol.audit.data import Ratio
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.audit.kinds import verifier_of
from frankly_protocol.audit.ratios import Candidate, Condition
from frankly_protocol.audit.work import require_verifiable
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import AnyMechanism, Symbol


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest ratio of a mechanism under a claim, and where it occurs.

    ratio : exp(ε) for the least ε that could be promised, None if infinite; metric-ldp: the least
        factor by which its levels have to be multiplied, at least 1; dpv: the largest
        P(sensitive|y); dp: the least δ.
    report : the symbol. For dp, which sums over symbols: of a table, one with the largest term; of
        a product, one with the largest likelihood ratio; otherwise one with a positive term.
    pair : the numerator's and the denominator's answer (ldp, dp, metric-ldp) or secret; AVERAGE
        represents the prior's average.
    field : the field of the claim that bounds this ratio: "level", "delta" for dp, "low_level" for
        the lower side of alip.
    condition : srlip: the attribute values x_J given, or None for an attribute outside J.
    other : alip: the other side. The side with the larger ratio to its level comes first; a side
        that is not promised comes second, with its ratio.
    """

    ratio: Fraction | None
    report: Symbol
    pair: tuple[int, int]
    field: str = "level"
    condition: Condition | None = None
    other: "Worst | None" = None

    @property
    def needed(self) -> dict[str, Fraction | None]:
        """The least level for each field of the claim: "level", and for alip also "low_level".

        For dp the only field is "delta".
        """
        return {side.field: side.ratio for side in (self, self.other) if side}


def require_private(mechanism: AnyMechanism, *claims: Claim) -> None:
    """Raise unless the mechanism keeps every claim, in exact arithmetic.

    Raises DocumentRejected("privacy") for a claim that fails, is malformed or cannot be verified
    for a product of this size (the detail begins with its notion), and if there are no claims;
    DocumentRejected("work_limit") if verification would take too long; UnsupportedDocument for an
    unknown notion.
    """
    # Without this check, an empty list of claims would pass.
    if not claims:
        raise DocumentRejected("privacy", "nothing is promised", "notion")
    for claim in claims:
        result = worst(mechanism, claim)
        # `worst` returns a promised side first.
        level = Fraction(*(_promised(claim)[result.field] or (0, 1)))
        if result.ratio is None or result.ratio > level:
            needed = (
                "no finite ratio can be promised"
                if result.ratio is None
                else f"{result.ratio} is needed"
            )
            report = mechanism.symbol_json(result.report)  # type: ignore[arg-type]  # its own symbol
            raise DocumentRejected(
                "privacy",
                f"{claim.notion}: report {report}: {needed}, {level} is promised",
                result.field,
            )


def worst(mechanism: AnyMechanism, claim: Claim) -> Worst:
    """Return the ratio that the mechanism needs for a claim, with the report and pair that need it.

    The result is not compared with the promised level (`require_private` does that); for alip, the
    levels decide which side comes first.

    Raises UnsupportedDocument for an unknown notion, DocumentRejected("privacy") for a claim that
    is malformed or cannot be verified for a product of this size, DocumentRejected("work_limit") if
    verification would take too long.
    """
    require_sound(claim, mechanism.answers)
    require_verifiable(mechanism, claim)
    verifier = verifier_of(mechanism)
    candidates, some = verifier.candidates(mechanism, claim), verifier.some(mechanism)
    notion = DECLARED[claim.notion]
    start, high, *low = Candidate(notion.least, 1, some, (0, 0)), *notion.bounds
    if not low:
        return replace(_largest(candidates, start), field=high)
    every = list(candidates)
    sides = [
        replace(_largest((c for c in every if not c.low), start), field=high),
        replace(_largest((c for c in every if c.low), start), field=low[0]),
    ]
    promised = _promised(claim)
    first, second = sorted(
        sides, key=lambda side: _beyond(side, promised[side.field]), reverse=True
    )
    return replace(first, other=second)


def ceiling(mechanism: AnyMechanism) -> Fraction | None:
    """Return max_y max_x Q(y|x) / min_x Q(y|x), the bound that holds under every prior (spec 2.6).

    Returns None if it is infinite.
    """
    return worst(mechanism, Claim("ldp", (1, 1))).ratio


def stated_ceiling(mechanism: AnyMechanism) -> Fraction | None:
    """Return the ceiling as documents state it.

    It is exact if numerator and denominator are below 2^53, otherwise rounded up.

    Returns None if it is infinite or above 2^53 − 1 (36.7 nats), which is practically no
    protection.
    """
    exact = ceiling(mechanism)
    if exact is None or exact > MAX_INT:
        return None
    # Documents contain only integers below 2^53, because JavaScript reads larger ones inexactly.
    if max(exact.as_integer_ratio()) <= MAX_INT:
        return exact
    # The largest number of fraction bits for which the rounded numerator fits into 53 bits.
    bits = 53 - (exact.numerator // exact.denominator).bit_length()
    return Fraction(-((-exact.numerator << bits) // exact.denominator), 1 << bits)


def is_endless(ratio: Fraction | None) -> bool:
    """Return True if a ceiling is infinite, or above 2^24 (16.6 nats) and explained as infinite.

    Rounding turns some zeros of an optimum into a few units of 2^-48. A report with such a chance
    practically rules an answer out, so the explanation treats it as one that does.
    """
    return ratio is None or ratio > 1 << 24


def _promised(claim: Claim) -> dict[str, Ratio | None]:
    return {"level": claim.level, "low_level": claim.low_level, "delta": claim.delta}


def _beyond(side: Worst, level: Ratio | None) -> tuple[bool, Fraction]:
    """Return a sort key: a side's ratio over its level; smallest if the side is not promised."""
    if level is None:
        return False, Fraction(0)
    return side.ratio is None, (side.ratio or 0) / Fraction(*level)


def _largest(candidates: Iterable[Candidate], best: Candidate) -> Worst:
    """Return the largest of the ratios and `best`."""
    for candidate in candidates:
        # Cross products compare the ratios exactly and also order infinity (d = 0).
        if candidate.n * best.d > best.n * candidate.d:  # never true for 0/0
            best = candidate
    ratio = Fraction(best.n, best.d) if best.d else None
    return Worst(ratio, best.report, best.pair, "level", best.condition)
