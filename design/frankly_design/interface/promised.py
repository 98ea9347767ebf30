# SPDX-License-Identifier: Apache-2.0
"""Verified claims in sentences; every number is rounded so that the sentence stays true."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, ln_up

Labels = Sequence[Any]


def sentences(claims: Sequence[Claim], secrets: Labels, priors: Collection[Any]) -> list[str]:
    """Return what claims promise: one sentence for each notion that is claimed under several priors.

    Where levels differ between the priors, because the design determined them, it has the largest. So
    have claims at the corners of boxes of counts. priors : the counts of the requested priors.
    """
    several = len({claim.joint for claim in claims} & set(priors)) > 1
    groups: dict[object, list[Claim]] = {}
    for place, claim in enumerate(claims):
        is_corner = claim.joint is not None and claim.joint not in priors
        key = (claim.notion, claim.sensitive) if several or is_corner else place
        groups.setdefault((key, is_corner), []).append(claim)
    return [
        sentence(_weakest(group), secrets, priors, several=several) for group in groups.values()
    ]


def _weakest(claims: Sequence[Claim]) -> Claim:
    """Return a claim with the largest levels of the claims; no level is the largest."""
    first = claims[0]
    levels, lows = [one.level for one in claims], [one.low_level for one in claims]
    return replace(first, level=_largest(levels), low_level=_largest(lows))


def _largest(levels: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [level for level in levels if level is not None]
    return max(known, key=lambda level: Fraction(*level)) if len(known) == len(levels) else None


def sentence(
    claim: Claim, secrets: Labels, priors: Collection[Any] = (), *, several: bool = False
) -> str:
    """Return what a claim promises for every report.

    secrets : the labels of the secrets, as in `Design`. priors : the counts of the requested priors;
    a claim of secret-ldp under other counts is that of a corner of a ball of counts, for rldp.
    several : True if the same is claimed under several priors.
    """
    level, low = _ratio(claim.level), _ratio(claim.low_level)
    nats, times = _nats(level), factor(level)
    known = "if one of the priors is true" if several else "if the prior is true"
    match claim.notion:
        case "ldp":
            return f"{nats}-LDP: whatever is sent, it was {_from_answers(times)}."
        case "dp":
            delta = _up(Fraction(*claim.delta or (0, 1)))
            return (
                f"({nats}, {delta})-DP: the chance that the report is in a set is under one answer at "
                f"most {times} times that under any other, plus {delta}."
            )
        case "secret-ldp" if claim.joint in priors or not priors:
            return f"{nats}-LDP of the secret: whatever is sent, it was {_from_secrets(times)}, {known}."
        case "lip":
            return f"{nats}-LIP: a report {_changes(times, times)}, {known}."
        case "alip":
            sides = factor(level) if level else "", factor(low) if low else ""
            return f"({_nats(low)}, {nats})-ALIP: a report {_changes(*sides)}, {known}."
        case "srlip":
            given = "to whoever knows any of the attributes"
            return f"{nats}-SRLIP: a report {_changes(times, times)}, also {given}, {known}."
        case "rldp" | "secret-ldp":
            return (
                f"{nats}-RLDP: under every distribution of the ball around the counts, whatever is sent "
                f"was {_from_secrets(times)}."
            )
        case "dpv":
            name = secrets[claim.sensitive or 0]
            return f"No report makes the secret {name!r} more probable than {_up(level)}, {known}."
    return "Metric LDP: a pair of answers with a level gives every report with chances whose ratio is at most e^level."


def _from_answers(times: str) -> str:
    said = "at most … times as likely from one true answer as from any other"
    return said.replace("…", times)


def _from_secrets(times: str) -> str:
    return "at most … times as likely from one secret as from any other".replace("…", times)


def _changes(up: str, down: str) -> str:
    """Return how far a report moves the probability of a secret; "" for a side without a bound."""
    sides = [f"multiplies it by at most {up}"] * bool(up) + [
        f"divides it by at most {down}"
    ] * bool(down)
    open_side = "" if up and down else ", without a bound on the other side"
    return f"changes the probability of each secret: it {' or '.join(sides)}{open_side}"


def _ratio(level: tuple[int, int] | None) -> Fraction | None:
    return None if level is None else Fraction(*level)


def factor(level: Fraction | None) -> str:
    """Return e^ε with four significant digits, rounded up; "∞" for None."""
    return "∞" if level is None else _up(level)


def _nats(level: Fraction | None) -> str:
    text = ln_up(level, 4)
    return text if level is None else f"{Decimal(text).normalize():f}"


def _up(value: Fraction | None) -> str:
    if value is None:
        return "∞"
    with localcontext() as context:
        context.prec, context.rounding = 4, ROUND_CEILING
        return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():f}"
