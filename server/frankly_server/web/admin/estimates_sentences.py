# SPDX-License-Identifier: Apache-2.0
"""What estimates say, in plain sentences, and what they do not say.

Every comparison is made at a level at which all comparisons of its kind hold together (Bonferroni): which two are
compared is seen in the same data.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from frankly_server.estimate.margins import normal_quantile

FLAGS: Final = {
    "outside_unit_interval": "The estimate lies outside 0 to 100%: what noise does to a rare or a usual answer.",
    "imprecise": "The interval reaches farther than two thirds of the estimate: too uncertain for most uses.",
    "not_identifiable": "Some shares cannot be told from these reports, however many come in.",
    "reports_do_not_fit": "The reports do not look as the mechanism makes them: a fault, fakes, or rare chance.",
    "margin_too_wide": "The interval reaches farther than all that is possible: these reports say next to nothing.",
    "few_informative": "Fewer than 5 reports say anything else of it than most do: the interval rests on very few.",
    "ill_conditioned": "The mechanism is nearly blind for some differences: small errors are magnified.",
    "pooled": "Several versions of the survey are combined.",
    "versions_differ": "The versions differ by more than chance does in 95 of 100 surveys: look at each version apart.",
    "exact_not_available": "The method asked for does not exist here: the interval is that of kl, which always holds.",
    "unbounded": "The denominator of this ratio may be zero: its interval has no end, so nothing is known of it.",
    "interval_unknown": "The estimate has no interval: its error cannot be told where not all shares can be.",
    "score_instead": "Ratios have no interval by the method asked for: theirs is the usual one, which nearly holds.",
    "mle_not_converged": "The search for the likeliest shares stopped early.",
    "outside_simplex": "Taken together, the estimates are not possible shares; each of them is still unbiased.",
    "design_prior_replaced": "The published prior could not be used for decoding; equal shares were.",
    "privacy_part_negative": "How much of the error is due to privacy could not be told apart.",
    "sampling_part_negative": "How much of the error is due to sampling could not be told apart; it is small.",
}
_SPOKEN = 3
_WARNED: Final = (
    "outside_unit_interval", "imprecise", "margin_too_wide", "few_informative", "not_identifiable",
    "reports_do_not_fit", "unbounded", "interval_unknown", "score_instead",
)  # fmt: skip
"""Flags that are said beside the findings; all of them are explained below the tables."""


@dataclass(frozen=True, slots=True)
class Said:
    """findings : what can be said. limits : how far it can be trusted, and what cannot be said."""

    findings: tuple[str, ...]
    limits: tuple[str, ...]


def said_of(question: Mapping[str, Any], level: float, language: str, percent: str | None = None) -> Said:
    """Return what one question's shares say; `question` is of an answer of the analysis, status ok.

    percent : "row" or "column" where the shares are within these.
    """
    rows = sorted(question["rows"], key=lambda row: math.inf if row["estimate"] is None else -row["estimate"])
    if not rows:
        return Said((), ("Nothing can be told of this question's answers, however many come in.",))
    spoken = rows if len(rows) <= _SPOKEN + 1 else rows[:_SPOKEN]
    whole = "those who answered" if percent is None else "those with the answer after the bar"
    first = [_share(row, language, whole) for row in spoken]
    findings = (
        *first,
        *_ranking(question, level, language),
        *_versions(rows[0], whole if percent else "all who answered"),
    )
    return Said(findings, (*_limits(rows), *_flags(rows)))


def said_of_groups(groups: Sequence[tuple[str, Mapping[str, Any]]], level: float, language: str) -> tuple[str, ...]:
    """Return how groups (name, question of status ok) differ; their respondents are different people."""
    told = [(name, {row["choice"]: row for row in group["rows"] if row["low"] is not None}) for name, group in groups]
    shared = [choice for choice in told[0][1] if all(choice in rows for _, rows in told)] if told else []
    shared = shared[-1:] if len(shared) == 2 else shared  # of two choices one says it all
    compared = [(choice, a, b) for choice in shared for a, b in combinations(told, 2)]
    found = []
    for choice, (one, here), (other, there) in compared:
        pair = [(one, here[choice]), (other, there[choice])]
        (more, top), (less, low) = sorted(pair, key=lambda named: -named[1]["estimate"])
        covariance = [[top["se"] ** 2, 0.0], [0.0, low["se"] ** 2]]
        ends = _ahead((top, low), covariance, level, len(compared))
        if ends[0] > 0:
            label = _label(top, language)
            words = f"{label} is more common in {_quoted(more)} than in {_quoted(less)}, by {_points(*ends)}."
            found.append((top["estimate"] - low["estimate"], words))
    if not compared:
        return ()
    if not found:
        return ("No difference between them can be told from noise.",)
    return tuple(words for _, words in sorted(found, key=lambda pair: -pair[0])[:_SPOKEN])


def interval_words(low: float, high: float) -> str:
    """Return an interval of a share in words; its ends are rounded outwards, so that the words promise no more."""
    if low <= 0 and high >= 1:
        return "anything from none to all (nothing can be said)"
    if low <= 0:
        return f"at most {_up(high, high)}%"
    if high >= 1:
        return f"at least {_down(low, 1 - low)}%"
    width = high - low
    return f"between {_down(low, width)}% and {_up(high, width)}%"


def flag_words(flag: str) -> str:
    """Return what a flag means."""
    return FLAGS.get(flag, f"{flag.replace('_', ' ').capitalize()}.")


def _share(row: Mapping[str, Any], language: str, whole: str) -> str:
    label = _label(row, language)
    if "interval_unknown" in row["flags"]:
        return f"{label}: there is an estimate, but how far it may be off cannot be told."
    if row["low"] is None:
        return f"{label}: nothing can be said, for those with the answer after the bar may be none."
    if row["low"] >= 1 or row["high"] <= 0:
        return f"{label}: the estimate lies beyond what is possible; read it as {'all' if row['low'] >= 1 else 'none'}."
    return f"{label}: {interval_words(row['low'], row['high'])} of {whole}."


def _versions(row: Mapping[str, Any], whole: str) -> Iterator[str]:
    """Say whether the versions that are combined differ; whole : whose shares these are."""
    p = row["versions_p"]
    if p is None:
        return
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if "versions_differ" in row["flags"]:
        yield (
            f"The versions of the survey differ by more than chance usually does ({chance}): these are the shares of "
            f"{whole}, whichever version; look at each version apart."
        )
    else:
        yield f"No difference between the versions of the survey can be told from noise ({chance})."


def _ranking(question: Mapping[str, Any], level: float, language: str) -> Iterator[str]:
    """Say which answer is the most common, or which cannot be told apart from it."""
    covariance, given = question["covariance"], question["rows"]
    if covariance is None or len(given) < 2:
        return
    pairs = math.comb(len(given), 2)
    order = sorted(range(len(given)), key=lambda i: -given[i]["estimate"])
    top, unclear, gap = order[0], [], None
    for other in order[1:]:
        both = [[covariance[i][j] for j in (top, other)] for i in (top, other)]
        ends = _ahead((given[top], given[other]), both, level, pairs)
        if ends[0] <= 0:
            unclear.append(other)
        elif gap is None and not unclear:
            gap = (*ends, other)
    best = _label(given[top], language)
    if not unclear and gap is not None:
        yield f"{best} is the most common answer: {_points(*gap[:2])} ahead of {_label(given[gap[2]], language)}."
    elif len(unclear) == len(given) - 1 and len(given) > 2:
        yield "Which answer is the most common cannot be told: the differences are within the noise."
    else:
        names = [best, *(_label(given[i], language) for i in unclear[:_SPOKEN])]
        more = " and others" if len(unclear) > _SPOKEN else ""
        yield f"Which of {', '.join(names[:-1])} and {names[-1]}{more} is more common cannot be told."


def _ahead(
    rows: tuple[Mapping[str, Any], Mapping[str, Any]], covariance: Sequence[Sequence[float]], level: float, pairs: int
) -> tuple[float, float]:
    """Return how far one share is ahead of another, at a level at which so many comparisons hold together.

    The distances of an end from its estimate are combined as standard errors are [Zou and Donner 2008], by a
    correlation that makes the interval wider, never by one that makes it narrower: few reports can pretend one. Where
    no error is seen, none is known, and the distances add.
    """
    z, wider = normal_quantile(level), normal_quantile(level, pairs)
    (below, above), (other_below, other_above) = (widened(row, z, wider) for row in rows)
    (own, shared), (_, other) = covariance
    correlation = max(-1.0, min(0.0, shared / math.sqrt(own * other))) if own > 0 and other > 0 else -1.0
    normal = wider * math.sqrt(max(0.0, own + other - 2 * shared))
    gap = rows[0]["estimate"] - rows[1]["estimate"]
    down = math.sqrt(below**2 + other_above**2 - 2 * correlation * below * other_above)
    up = math.sqrt(above**2 + other_below**2 - 2 * correlation * above * other_below)
    return gap - max(down, normal), gap + max(up, normal)


def widened(row: Mapping[str, Any], z: float, wider: float) -> tuple[float, float]:
    """Return how far a row's interval reaches below and above its estimate at the quantile `wider` instead of z.

    A score interval's distance is that of the normal one, which grows with the quantile, and an excess that grows no
    faster than its cube; all of it grows no faster than its square.
    """
    normal, times = z * row["se"], wider / max(z, 1e-9)
    below, above = (
        min(wider * row["se"] + times**3 * max(0.0, distance - normal), times**2 * max(distance, normal))
        for distance in (row["estimate"] - row["low"], row["high"] - row["estimate"])
    )
    return below, above


def _limits(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    costs = [row["privacy_cost"] for row in rows if row["privacy_cost"] is not None]
    if costs and max(costs) > 0.99:
        yield "Privacy costs more than 99% of the precision that the bare answers would give."
    elif costs:
        yield f"Privacy costs as much precision as losing {round(100 * max(costs))}% of the answers would."
    moved = [max(row["poisoning_up"], row["poisoning_down"]) for row in rows if row["poisoning_up"] is not None]
    if moved:
        yield f"If one report in a hundred were fake, a share could be off by up to {_number(100 * max(moved))} points."


def _flags(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found = {flag for row in rows for flag in row["flags"]}
    yield from (flag_words(flag) for flag in _WARNED if flag in found)


def _label(row: Mapping[str, Any], language: str) -> str:
    return _quoted(row["label"].get(language) or next(iter(row["label"].values())))


def _quoted(text: str) -> str:
    return f"“{text}”"


def _points(low: float, high: float) -> str:
    width = min(high, 1.0) - low
    return (
        f"{_down(low, width)} to {_up(min(high, 1.0), width)} percentage points"
        if width > 0
        else "100 percentage points"
    )


def _digits(width: float) -> int:
    return 0 if width >= 0.03 else 1 if width >= 0.003 else 2


def _down(share: float, width: float) -> str:
    scale = 10 ** _digits(width)
    return f"{math.floor(100 * share * scale + 1e-9) / scale:.{_digits(width)}f}"


def _up(share: float, width: float) -> str:
    scale = 10 ** _digits(width)
    return f"{math.ceil(100 * share * scale - 1e-9) / scale:.{_digits(width)}f}"


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"
