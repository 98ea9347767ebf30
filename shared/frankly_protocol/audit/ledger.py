# SPDX-License-Identifier: Apache-2.0
"""What adds up: the one ledger rule (DESIGN §3.6), in exact products of ratios instead of sums of logarithms.

- Prior-free levels always add (by their ceilings); (ε, δ) levels add both parts, as far as the δ cap allows.
- One prior-based block per secret may stand beside any number of prior-free ones and counts its own level: what the
  others send changes P(y|s) by their ceilings at most. "One" is counted per secret: a block that is prior-based for
  another secret counts its ceiling, and so does the same block or question answered again, and every block of another
  document.
- Sums keep the notion's unit: ε-LIP is 2ε secret-LDP, (ε_l, ε_u)-ALIP is ε_l + ε_u, ε secret-LDP is ε-LIP. `level` is
  in the notion's own unit (lift where notions meet), `odds` in that of secret-LDP.
- For SRLIP the sum holds for attribute subsets inside that block only: who knows answers to other blocks' questions is
  held off by the ceilings.
- A bound on a posterior (DPV) is no level: it multiplies by the others' ceilings (`posteriors`), and the block counts
  its ceiling.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Final, Protocol

from frankly_protocol.audit.claims import Claim

DEVICE_CAP: Final = "5"
"""Nats that all surveys answered from one device may cost together, where an app sets no other limit."""


class LedgerPromise(Protocol):
    """What the ledger needs to know of a promise: what is claimed, and the name of the secret it protects, if any."""

    @property
    def claim(self) -> Claim:
        """The claim."""
        ...

    @property
    def secret(self) -> str | None:
        """The secret a prior-based notion protects; None for a prior-free notion."""
        ...


class LedgerBlock(Protocol):
    """What the ledger needs to know of a block."""

    @property
    def id(self) -> str:
        """The block's id within its document."""
        ...

    @property
    def promises(self) -> Sequence[LedgerPromise]:
        """Everything that is promised of the block."""
        ...

    @property
    def ceiling(self) -> Fraction | None:
        """The leakage under every prior as a ratio; None if infinite."""
        ...


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """How one block counts: by its promised `level`, its `ceiling` or its (ε, δ) `dp`; value None is infinite."""

    block: str
    counted_by: str
    value: Fraction | None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The most that P(secret = its value number `sensitive` | everything sent) can be, if the block's prior is true."""

    block: str
    secret: str
    sensitive: int
    bound: Fraction


@dataclass(frozen=True, slots=True)
class FormLevel:
    """What answering a whole form costs, as ratios (None is infinite).

    level : the smallest sound bound for every declared secret, in the unit of its blocks' notion; where secret-LDP and
    LIP blocks meet it bounds LIP (ε secret-LDP is ε-LIP, the reverse would need 2ε). ceiling : the bound under every
    prior, for any secret. lines : how each block counted for `level`. delta : the δ that goes with `level`.
    odds : `level` as secret-LDP: how far the odds of two secrets can move. free, free_delta : the prior-free bound with
    its δ, within the cap. posteriors : bounds on posteriors that are promised.
    """

    level: Fraction | None
    ceiling: Fraction | None
    lines: tuple[LedgerLine, ...]
    delta: Fraction = Fraction(0)
    odds: Fraction | None = None
    free: Fraction | None = None
    free_delta: Fraction = Fraction(0)
    posteriors: tuple[Posterior, ...] = ()


def form_level(blocks: Sequence[LedgerBlock], delta_cap: Fraction = Fraction(0)) -> FormLevel:
    """Return the smallest sound sum over the blocks of one document, and how each block counted.

    delta_cap : how much δ the sum may carry. Blocks with an (ε, δ) claim count by it, the least δ first and before all
    those whose ceiling is infinite, as long as the cap lasts; with a cap of 0 every one counts its ceiling.
    """
    everything = _product(block.ceiling for block in blocks)
    free = _lines(blocks, None, None, delta_cap)
    dearest = _dearest(blocks, delta_cap, odds=False)
    return FormLevel(
        level=_total(dearest),
        ceiling=everything,
        lines=dearest,
        delta=_delta(dearest),
        odds=_total(_dearest(blocks, delta_cap, odds=True)),
        free=_total(free),
        free_delta=_delta(free),
        posteriors=tuple(_posteriors(blocks)),
    )


def ledger_total(forms: Sequence[FormLevel], delta_cap: Fraction = Fraction(0)) -> Fraction | None:
    """Return what several documents cost together: across documents every block counts its prior-free bound.

    The (ε, δ) bounds are used as long as the cap lasts, first where the ceiling is infinite and the least δ first; the
    ceilings count otherwise.
    """
    if len(forms) == 1 and forms[0].delta <= delta_cap:
        return forms[0].level
    spent, counted = Fraction(0), list[Fraction | None]()
    for form in sorted(forms, key=lambda form: (form.ceiling is not None, form.free_delta)):
        approximate = 0 < form.free_delta <= delta_cap - spent
        spent += form.free_delta if approximate else 0
        counted.append(form.free if approximate else form.ceiling)
    return _product(counted)


def lift_bound(claim: Claim) -> Fraction | None:
    """Return E with P(y|s) / P(y) within [1/E, E] under the claim; None if it promises no such thing."""
    if claim.notion == "alip":
        sides = [Fraction(*side) for side in (claim.level, claim.low_level) if side is not None]
        return max(sides) if len(sides) == 2 else None
    return Fraction(*claim.level) if claim.level is not None and claim.notion != "dpv" else None


def odds_bound(claim: Claim) -> Fraction | None:
    """Return E with P(y|s) / P(y|t) ≤ E under the claim; None if it promises no such thing."""
    if claim.notion == "alip" and claim.level is not None and claim.low_level is not None:
        return Fraction(*claim.level) * Fraction(*claim.low_level)
    bound = lift_bound(claim)
    return bound**2 if bound is not None and claim.notion in ("lip", "srlip") else bound


def _dearest(blocks: Sequence[LedgerBlock], delta_cap: Fraction, *, odds: bool) -> tuple[LedgerLine, ...]:
    """Return the lines of the secret that costs most: the form must be safe for each of its secrets."""
    secrets = sorted({p.secret for block in blocks for p in block.promises if p.secret is not None})
    options = []
    for secret in secrets:
        # Let each block about this secret be the one that counts its level; keep the cheapest choice.
        choices = [_lines(blocks, None, None, delta_cap)]
        for i, block in enumerate(blocks):
            bound = _about(block, secret, odds=odds)
            if bound is not None:
                choices.append(_lines(blocks, i, bound, delta_cap))
        options.append(min(choices, key=lambda lines: _order(_total(lines))))
    return max(options or [_lines(blocks, None, None, delta_cap)], key=lambda lines: _order(_total(lines)))


def _about(block: LedgerBlock, secret: str, *, odds: bool) -> Fraction | None:
    """Return the bound a block promises about a secret: the least under each of its priors, the largest of those."""
    under: dict[object, list[Fraction]] = {}
    for promise in block.promises:
        if promise.secret == secret:
            bound = odds_bound(promise.claim) if odds else lift_bound(promise.claim)
            known = under.setdefault((promise.claim.joint, promise.claim.lower_bounds), [])
            known.extend([] if bound is None else [bound])
    return max(map(min, under.values())) if under and all(under.values()) else None


def _lines(
    blocks: Sequence[LedgerBlock], by_level: int | None, level: Fraction | None, delta_cap: Fraction
) -> tuple[LedgerLine, ...]:
    lines = [LedgerLine(block.id, "ceiling", block.ceiling) for block in blocks]
    if by_level is not None:
        lines[by_level] = LedgerLine(blocks[by_level].id, "level", level)
    spent = Fraction(0)
    for delta, i, bound in sorted(_approximate(blocks)):
        if i != by_level and spent + delta[1] <= delta_cap:
            spent += delta[1]
            lines[i] = LedgerLine(blocks[i].id, "dp", bound, delta[1])
    return tuple(lines)


def _approximate(blocks: Sequence[LedgerBlock]) -> Iterable[tuple[tuple[bool, Fraction], int, Fraction]]:
    """Yield ((the ceiling is finite, δ), position, E) of the (ε, δ) claims that are below their block's ceiling."""
    for i, block in enumerate(blocks):
        for claim in (promise.claim for promise in block.promises):
            if claim.notion == "dp" and claim.level is not None and claim.delta is not None:
                bound = Fraction(*claim.level)
                if block.ceiling is None or bound < block.ceiling:
                    yield (block.ceiling is not None, Fraction(*claim.delta)), i, bound


def _posteriors(blocks: Sequence[LedgerBlock]) -> Iterable[Posterior]:
    for i, block in enumerate(blocks):
        others = _product(other.ceiling for j, other in enumerate(blocks) if j != i)
        for promise in block.promises:
            claim = promise.claim
            if claim.notion == "dpv" and claim.level and claim.sensitive is not None and promise.secret is not None:
                bound = Fraction(1) if others is None else min(Fraction(1), Fraction(*claim.level) * others)
                yield Posterior(block.id, promise.secret, claim.sensitive, bound)


def _total(lines: Sequence[LedgerLine]) -> Fraction | None:
    return _product(line.value for line in lines)


def _delta(lines: Sequence[LedgerLine]) -> Fraction:
    return sum((line.delta for line in lines), Fraction(0))


def _order(total: Fraction | None) -> tuple[bool, Fraction]:
    return total is None, total or Fraction(0)


def _product(values: Iterable[Fraction | None]) -> Fraction | None:
    known = list(values)
    return None if None in known else prod((v for v in known if v is not None), start=Fraction(1))
