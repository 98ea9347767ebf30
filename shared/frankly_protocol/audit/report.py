# SPDX-License-Identifier: Apache-2.0
"""The privacy level of a whole report, all blocks and public answers (docs/maths/whole_report.md).

A report contains the public answers z in the clear and one symbol of every block. Levels are
ratios instead of nats, so that they are combined by exact multiplication; None is infinite. They
are stated *given the public answers*: the prior belief is P(s | z).

- A prior-free bound holds under every prior, for the answers and for every secret: a block's
  ceiling, or its (ε, δ) promise if its δ fits into the app's cap on δ. The product over the blocks
  bounds how far the odds of anything can move. The ledger charges this product, and the cost of
  several reports is the product of their charges.
- For a secret, one block may use its own promise about that secret instead; all others use their
  prior-free bounds. This bound depends on the prior: if a block has several priors for the secret,
  one of them must be true. In a document with public questions, a promise is used only if its prior
  is published per stratum: a public answer and a block together can determine a secret that neither
  of them reveals alone (S = X xor Z).
- Units: ε-LIP bounds odds by 2ε, (ε_l, ε_u)-ALIP by ε_l + ε_u, and ε-secret-LDP implies ε-LIP. The
  `level` of a secret is a ratio of odds if only secret-ldp and rldp are promised for it, otherwise
  a lift; `odds` is the ratio by which the odds of two secrets can move.
- SRLIP also holds against someone who knows answers to some questions of its own block, and so does
  a product that uses this promise. Against someone who knows answers to other blocks' questions,
  only the prior-free bounds hold, under every notion.
- A bound on a posterior (DPV) is not a level: it is multiplied by the other blocks' ceilings
  (`posteriors`), and for levels the block uses its prior-free bound.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Final, Protocol

from frankly_protocol.audit.bounds import chance_up, ln_up
from frankly_protocol.audit.claims import Claim
from frankly_protocol.audit.declared import DECLARED

if TYPE_CHECKING:
    from frankly_protocol.promises import Promise

DEVICE_CAP: Final = "5"
"""Default cap, in nats of log-odds, on the total cost of all surveys that one respondent answers
on a device."""


class LevelBlock(Protocol):
    """The part of a block that a report's level depends on."""

    @property
    def id(self) -> str:
        """The block's id within its document."""
        ...

    @property
    def promises(self) -> "Sequence[Promise]":
        """All promises about the block."""
        ...

    @property
    def ceiling(self) -> Fraction | None:
        """The bound under every prior as a ratio; None if infinite."""
        ...


class LevelDocument(Protocol):
    """The part of a survey document that its report's level depends on."""

    @property
    def blocks(self) -> Sequence[LevelBlock]:
        """The blocks."""
        ...

    @property
    def strata(self) -> Sequence[object]:
        """The public questions."""
        ...


@dataclass(frozen=True, slots=True)
class Charge:
    """Cost of one or more answered surveys: the largest ratio of odds and its δ.

    odds is None if infinite; the bound holds up to an additive probability of delta.
    """

    odds: Fraction | None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class BlockCharge:
    """Prior-free bound of one block: its `ceiling` or its (ε, δ) promise `dp`.

    An infinite bound has `odds` None.
    """

    block: str
    counted_by: str
    odds: Fraction | None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class SecretLevel:
    """Bound on the information of the whole report about one secret, given the public answers.

    level : in the `unit` of the secret's notions, "odds" for secret-ldp and rldp, else "lift".
    odds : the bound as a ratio of odds. delta : as in (ε, δ)-DP, P(T|s) ≤ odds · P(T|t) + delta for
    every set T of reports.
    counted : id of the block whose promise is used for `odds`, or None if every block uses its
        prior-free bound.
    strata_lift, strata_odds : bounds for the public answers alone: the largest P(s|z)/P(s) or
    inverse, and the largest change of the odds of two secrets; 1 without public questions, None if
    infinite or not known.
    """

    level: Fraction | None
    odds: Fraction | None
    unit: str
    delta: Fraction = Fraction(0)
    counted: str | None = None
    strata_lift: Fraction | None = Fraction(1)
    strata_odds: Fraction | None = Fraction(1)


@dataclass(frozen=True, slots=True)
class AnswersLevel:
    """Bound on the information about the answers, or anything else, under every prior."""

    level: Fraction | None
    odds: Fraction | None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Posterior:
    """Bound on P(secret = its value number `sensitive` | report), if the block's prior is true."""

    block: str
    secret: str
    sensitive: int
    bound: Fraction


@dataclass(frozen=True, slots=True, repr=False)
class ReportLevel:
    """The level of a whole report.

    secrets : one entry for every declared secret. answers : the bound on the answers themselves.
    cost : the amount that the ledger charges if its δ is still available. ceiling : the cost if the
    app allows no δ. lines : each block's part of the cost. posteriors : the promised bounds on
    posteriors.
    """

    secrets: Mapping[str, SecretLevel]
    answers: AnswersLevel
    cost: Charge
    ceiling: Fraction | None
    lines: tuple[BlockCharge, ...]
    posteriors: tuple[Posterior, ...] = ()

    def __repr__(self) -> str:
        # `odds` is one of these values, so a name is found if there is a secret.
        names = [name for name, secret in self.secrets.items() if secret.odds == self.odds]
        subject = repr(names[0]) if names else "the answers"
        delta = f", δ {chance_up(self.cost.delta)}" if self.cost.delta else ""
        return (
            f"<ReportLevel: odds of {subject} change by at most {ln_up(self.odds)} nats; "
            f"cost {ln_up(self.cost.odds)} nats{delta}>"
        )

    @property
    def odds(self) -> Fraction | None:
        """The largest change of the odds of a declared secret.

        If no secret is declared, the largest change of the odds of the answers.
        """
        return largest([secret.odds for secret in self.secrets.values()] or [self.answers.odds])

    def charge(self, delta_left: Fraction) -> Charge:
        """Return the charge: the cost if its δ fits into `delta_left`, else the ceilings."""
        return self.cost if self.cost.delta <= delta_left else Charge(self.ceiling)


def report_level(document: LevelDocument, delta_cap: Fraction = Fraction(0)) -> ReportLevel:
    """Return the level of the whole report on a document whose promises hold.

    delta_cap : the largest total δ. (ε, δ) promises are used as long as their δ fits: first those
    of blocks with an infinite ceiling, then the others, each by increasing δ. All other blocks use
    their ceilings.
    """
    return _level(document, delta_cap, _secrets(document.blocks))


def largest_level(
    versions: Sequence[LevelDocument], delta_cap: Fraction = Fraction(0)
) -> ReportLevel:
    """Return the largest level of a report on any of these versions of a document, figure by figure.

    Versions are the views of the arms, or a document without arms alone.
    """
    if len(versions) == 1:
        return report_level(versions[0], delta_cap)
    names = _secrets([block for version in versions for block in version.blocks])
    return _largest([_level(version, delta_cap, names) for version in versions])


def _level(document: LevelDocument, delta_cap: Fraction, secrets: Sequence[str]) -> ReportLevel:
    """Return the level of a report, also about `secrets` that no block promises anything of."""
    lines = _charges(document.blocks, delta_cap)
    cost = Charge(
        product(line.odds for line in lines), sum((line.delta for line in lines), Fraction(0))
    )
    has_strata = bool(document.strata)
    return ReportLevel(
        secrets={name: _secret(document.blocks, lines, name, has_strata) for name in secrets},
        answers=AnswersLevel(cost.odds, cost.odds, cost.delta),
        cost=cost,
        ceiling=product(block.ceiling for block in document.blocks),
        lines=lines,
        posteriors=tuple(_posteriors(document.blocks, has_strata)),
    )


def _largest(levels: Sequence[ReportLevel]) -> ReportLevel:
    """Return the largest of several levels, figure by figure: a bound that holds in every arm."""
    posteriors: dict[tuple[str, str, int], list[Posterior]] = {}
    for one in (one for level in levels for one in level.posteriors):
        posteriors.setdefault((one.block, one.secret, one.sensitive), []).append(one)
    odds = largest([level.cost.odds for level in levels])
    delta = max(level.cost.delta for level in levels)
    lines = {line.block: line for level in reversed(levels) for line in level.lines}
    return ReportLevel(
        secrets={
            name: _largest_of([level.secrets[name] for level in levels])
            for name in levels[0].secrets
        },
        answers=AnswersLevel(odds, odds, delta),
        cost=Charge(odds, delta),
        ceiling=largest([level.ceiling for level in levels]),
        lines=tuple(dict.fromkeys(lines[line.block] for level in levels for line in level.lines)),
        # An arm without the promise bounds nothing.
        posteriors=tuple(
            max(found, key=lambda p: p.bound)
            if len(found) == len(levels)
            else replace(found[0], bound=Fraction(1))
            for found in posteriors.values()
        ),
    )


def _largest_of(levels: Sequence[SecretLevel]) -> SecretLevel:
    odds = largest([level.odds for level in levels])
    return SecretLevel(
        level=largest([level.level for level in levels]),
        odds=odds,
        # A bound on odds bounds lifts too.
        unit="odds" if all(level.unit == "odds" for level in levels) else "lift",
        delta=max(level.delta for level in levels),
        counted=next(level.counted for level in levels if level.odds == odds),
        strata_lift=largest([level.strata_lift for level in levels]),
        strata_odds=largest([level.strata_odds for level in levels]),
    )


def total_charge(charges: Iterable[Charge]) -> Charge:
    """Return the total cost of several answered surveys."""
    charge_list = list(charges)
    delta = sum((charge.delta for charge in charge_list), Fraction(0))
    return Charge(product(charge.odds for charge in charge_list), delta)


def lift_bound(claim: Claim) -> Fraction | None:
    """Return E with P(y|s) / P(y) within [1/E, E] under the claim, or None if there is none.

    For dp, the bound holds up to δ. For metric-ldp, E is the largest level of a pair.
    """
    return DECLARED[claim.notion].lift_bound(claim)


def odds_bound(claim: Claim) -> Fraction | None:
    """Return E with P(y|s) / P(y|t) ≤ E under the claim, or None if there is none.

    For dp, the bound holds up to δ.
    """
    return DECLARED[claim.notion].odds_bound(claim)


def largest(ratios: Sequence[Fraction | None]) -> Fraction | None:
    """Return the largest ratio, or None if one is infinite."""
    finite = [ratio for ratio in ratios if ratio is not None]
    return max(finite) if len(finite) == len(ratios) else None


def product(ratios: Iterable[Fraction | None]) -> Fraction | None:
    """Return the product, or None if a factor is infinite."""
    factors = list(ratios)
    finite = [ratio for ratio in factors if ratio is not None]
    if len(finite) < len(factors):
        return None
    # One reduction at the end: with a hundred factors of 53 bits, a reduction at every step would
    # take most of the time.
    return Fraction(
        prod(ratio.numerator for ratio in finite), prod(ratio.denominator for ratio in finite)
    )


def _charges(blocks: Sequence[LevelBlock], delta_cap: Fraction) -> tuple[BlockCharge, ...]:
    lines = [BlockCharge(block.id, "ceiling", block.ceiling) for block in blocks]
    # Greedy choice in sorted order: blocks with an infinite ceiling first, then the least δ.
    spent = Fraction(0)
    for (_, delta), i, bound, notion in sorted(_approximate(blocks)):
        # Each block uses one promise: the δ of a second one would gain nothing.
        if lines[i].counted_by == "ceiling" and spent + delta <= delta_cap:
            spent += delta
            lines[i] = BlockCharge(blocks[i].id, notion, bound, delta)
    return tuple(lines)


def _approximate(
    blocks: Sequence[LevelBlock],
) -> Iterable[tuple[tuple[bool, Fraction], int, Fraction, str]]:
    """Yield ((ceiling is finite, δ), position, E, notion) of each (ε, δ) claim with E below the ceiling."""
    for i, block in enumerate(blocks):
        for claim in (promise.claim for promise in block.promises):
            bounds = DECLARED[claim.notion].approximate(claim)
            if bounds is not None and (block.ceiling is None or bounds[0] < block.ceiling):
                yield (block.ceiling is not None, bounds[1]), i, bounds[0], claim.notion


def _secrets(blocks: Sequence[LevelBlock]) -> list[str]:
    return sorted(
        {
            promise.secret
            for block in blocks
            for promise in block.promises
            if promise.secret is not None
        }
    )


def _secret(
    blocks: Sequence[LevelBlock], lines: Sequence[BlockCharge], name: str, has_strata: bool
) -> SecretLevel:
    about = {
        i: [promise for promise in block.promises if promise.secret == name]
        for i, block in enumerate(blocks)
    }
    about = {i: promises for i, promises in about.items() if promises}
    # Lift and odds are minimised separately: the best block for one need not be the best for the
    # other.
    level, level_delta, _ = _least(lines, _bounds(about, lift_bound, has_strata))
    odds, delta, counted = _least(lines, _bounds(about, odds_bound, has_strata))
    promises = [promise for block_promises in about.values() for promise in block_promises]
    lift, strata_odds = _strata_bounds(promises) if has_strata else (Fraction(1), Fraction(1))
    return SecretLevel(
        level=level,
        odds=odds,
        unit="odds"
        if all(DECLARED[promise.claim.notion].unit == "odds" for promise in promises)
        else "lift",
        delta=max(delta, level_delta),
        counted=None if counted is None else blocks[counted].id,
        strata_lift=lift,
        strata_odds=strata_odds,
    )


def _bounds(
    about: "Mapping[int, Sequence[Promise]]",
    bound_of: Callable[[Claim], Fraction | None],
    has_strata: bool,
) -> dict[int, Fraction]:
    """Return each block's bound for a secret, by the block's position.

    A block's bound is the largest, over its priors, of the least bound promised under a prior,
    because any of the priors may be the true one. A block without a bound under one of its priors
    is omitted. The result is empty if the blocks list different values of the secret, or if one of
    several lists none (rldp): the name may then refer to two secrets, and a promise about one does
    not cover the other.
    """
    values = [{_values(promise) for promise in promises} for promises in about.values()]
    # Different values under one name mean different secrets, so bounds must not be combined.
    if len(about) > 1 and any(None in named or named != values[0] for named in values):
        return {}
    block_bounds = {}
    for i, promises in about.items():
        under: dict[object, list[Fraction]] = {}
        for promise in promises:
            bound = bound_of(promise.claim) if promise.is_stratified or not has_strata else None
            tables = None if promise.prior is None else tuple(promise.prior.by_stratum)
            prior_bounds = under.setdefault(
                (tables, promise.claim.joint, promise.claim.lower_bounds), []
            )
            prior_bounds.extend([] if bound is None else [bound])
        # A prior without a bound may be the true one, so the block then has no bound.
        if all(under.values()):
            # All promises under one prior hold together; only one of the priors is true.
            block_bounds[i] = max(map(min, under.values()))
    return block_bounds


def _values(promise: "Promise") -> tuple[str, ...] | None:
    """Return the names of the secret's values in a fixed order; None for rldp, which names none."""
    return None if promise.prior is None else tuple(sorted(promise.prior.secrets))


def _least(
    lines: Sequence[BlockCharge], bounds: Mapping[int, Fraction]
) -> tuple[Fraction | None, Fraction, int | None]:
    """Return the least valid product, its δ, and the position of the block that uses its promise.

    The position is None if all blocks use their prior-free bounds. Each promised bound is compared
    with the bound that it would replace, as a ratio, so that only one product is computed.
    """
    # One promise can replace one infinite ceiling; with two, the product stays infinite.
    infinite = [i for i, line in enumerate(lines) if line.odds is None]
    gains = [
        (bound / (lines[i].odds or 1), i) for i, bound in bounds.items() if infinite in ([], [i])
    ]
    gain, chosen = min(gains, default=(Fraction(1), None))
    counted = chosen if infinite or gain < 1 else None
    ratio = product(bounds[i] if i == counted else line.odds for i, line in enumerate(lines))
    delta = sum((line.delta for i, line in enumerate(lines) if i != counted), Fraction(0))
    return ratio, delta, counted


def _strata_bounds(promises: "Sequence[Promise]") -> tuple[Fraction | None, Fraction | None]:
    """Return the largest lift and change of odds due to the public answers; None if unknown."""
    priors = [
        promise.prior.by_stratum
        for promise in promises
        if promise.prior is not None and promise.is_stratified
    ]
    if len(priors) < len(promises) or not promises:
        return None, None
    strata_bounds = [
        _bounds_from_masses([[sum(row) for row in table] for table in tables]) for tables in priors
    ]
    return largest([lift for lift, _ in strata_bounds]), largest(
        [odds for _, odds in strata_bounds]
    )


def _bounds_from_masses(masses: Sequence[Sequence[int]]) -> tuple[Fraction | None, Fraction | None]:
    """Return max P(s|z)/P(s) or inverse, and max (P(s|z)/P(t|z)) / (P(s)/P(t)).

    masses : counts [z][s]. Both results are None if infinite.
    """
    totals = [sum(column) for column in zip(*masses, strict=True)]
    # Where a secret cannot occur in a stratum, the public answer alone rules it out.
    if any(0 in row for row in masses):
        return None, None
    lifts, odds = [], []
    for row in masses:
        lift = [
            Fraction(n * sum(totals), sum(row) * mass) for n, mass in zip(row, totals, strict=True)
        ]
        lifts += [max(lift), 1 / min(lift)]
        odds.append(max(lift) / min(lift))
    return max(lifts), max(odds)


def _posteriors(blocks: Sequence[LevelBlock], has_strata: bool) -> Iterable[Posterior]:
    for i, block in enumerate(blocks):
        other_ceilings = product(
            other_block.ceiling for j, other_block in enumerate(blocks) if j != i
        )
        # The ceilings of the other blocks bound how far their symbols can move the posterior.
        for promise in block.promises:
            claim = promise.claim
            if (
                DECLARED[claim.notion].is_posterior
                and claim.level
                and claim.sensitive is not None
                and promise.secret is not None
            ):
                is_bounded = other_ceilings is not None and (
                    promise.is_stratified or not has_strata
                )
                bound = (
                    min(Fraction(1), Fraction(*claim.level) * other_ceilings)
                    if other_ceilings and is_bounded
                    else Fraction(1)
                )
                yield Posterior(block.id, promise.secret, claim.sensitive, bound)
