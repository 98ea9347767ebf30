# SPDX-License-Identifier: Apache-2.0
"""Sentences that explain estimates and their reliability.

Comparisons have a simultaneous level over all comparisons of their kind (Bonferroni), because the
same data determine which comparison is shown.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_analyst.comparisons import p_text
from frankly_analyst.plots import NUMBER, figure, interval
from frankly_analyst.request import ANSWERED
from frankly_protocol.questions import MEAN

from frankly_server.estimate.margins import normal_quantile, widened
from frankly_server.scales import MEDIAN

FLAGS: Final = {
    "outside_unit_interval": "The estimate lies outside 0 to 100%, as noise can cause for a rare or a common answer.",
    "imprecise": "The interval reaches farther from the estimate than two thirds of it: too uncertain for most uses.",
    "not_identifiable": "Some figures of this question cannot be estimated, however many reports come in.",
    "reports_do_not_fit": "The mechanism hardly ever produces such reports: a fault, fake reports, or rare chance.",
    "margin_too_wide": "The interval's half-width exceeds the range of possible values: it says almost nothing.",
    "few_informative": "Fewer than 5 reports differ from the most common one here: the interval rests on very few.",
    "ill_conditioned": "The mechanism hardly shows some differences: small errors are magnified.",
    "pooled": "Several versions of the survey are combined.",
    "versions_differ": "The versions differ by more than chance does in 95 of 100 surveys: look at each separately.",
    "too_few_attentive": "Too little is known of how many people answer at random: no figure is corrected for them.",
    "random_law_unknown": "What an answer at random would be is not known here: no figure is corrected for them.",
    "corrected_impossible": "No possible value is in the corrected interval: chance, or another law of random answers.",
    "corrected_unbounded": "Corrected for people who answer at random, the figure could be anything.",
    "exact_not_available": "The requested method is not available here: the interval is by kl, always valid.",
    "unbounded": "The denominator of this ratio may be zero: its interval has no ends, so nothing is known about it.",
    "interval_unknown": "The estimate has no interval: its error is unknown because not all shares can be estimated.",
    "score_instead": "Ratios have no interval by the requested method: the usual approximate one is shown.",
    "mle_not_converged": "The search for the most likely shares stopped early.",
    "outside_simplex": "Taken together, the estimates are not possible shares; each of them is still unbiased.",
    "design_prior_replaced": "The published prior could not be used for decoding; equal shares were used instead.",
    "privacy_part_negative": "The part of the error due to privacy could not be separated.",
    "sampling_part_negative": "The part of the error due to sampling could not be separated; it is small.",
}
_PEOPLE: Final = {"": "all who took part", ANSWERED: "those who answered it"}
"""Whose shares these are, by the request's `percent`; whoever prefers not to say has taken part."""
_DIFFER: Final = 0.05
"""Below this p-value the page says that completion differs."""
_MAX_STATED = 3  # the sentences mention at most this many shares or differences
_WARNED: Final = (
    "outside_unit_interval",
    "imprecise",
    "margin_too_wide",
    "few_informative",
    "not_identifiable",
    "reports_do_not_fit",
    "unbounded",
    "interval_unknown",
    "score_instead",
)
"""Flags that are explained next to the findings; the page explains all flags below its tables."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences about one question. findings : its results. limits : their reliability."""

    findings: tuple[str, ...]
    limits: tuple[str, ...]

    def after(self, findings: tuple[str, ...]) -> "Sentences":
        """Return these sentences with additional findings in front."""
        return Sentences((*findings, *self.findings), self.limits)


def sentences_of(
    question: Mapping[str, Any], level: float, language: str, percent: str | None = None
) -> Sentences:
    """Return the sentences about one question of the analysis that has enough reports.

    percent : "row" or "column" for shares within a row or column, "answered" for those among the people
    who answered; None for shares of all.
    """
    known = [row for row in question["rows"] if not _is_lost(row)]
    rows = sorted(known, key=lambda row: math.inf if row["estimate"] is None else -row["estimate"])
    if not rows:
        return Sentences(
            (), ("This question's shares cannot be estimated, however many answers come in.",)
        )
    # One more sentence is shorter than a note that one row is left out.
    stated_rows = rows if len(rows) <= _MAX_STATED + 1 else rows[:_MAX_STATED]
    population_text = _PEOPLE.get(percent or "", "those with the answer after the bar")
    share_sentences = [_share(row, language, population_text) for row in stated_rows]
    lost = [_label(row, language) for row in question["rows"] if _is_lost(row)]
    findings = (
        *share_sentences,
        *(
            [f"However many answers come in, no share can be estimated of {', '.join(lost)}."]
            if lost
            else []
        ),
        *_ranking(question, level, language),
        *_versions(rows[0], population_text if percent else "all who took part"),
    )
    return Sentences(findings, (*_limits(rows, language), *_flags(rows)))


def completion_words(completion: Mapping[str, Any]) -> str:
    """Return a sentence about the test that giving up does not depend on what a device draws."""
    p = completion["test"]["p"]
    if p is None:
        return "There are too few reports to test this."
    if p >= _DIFFER:
        return f"The differences are no larger than chance often makes them ({p_text(p)})."
    drawn = "people gave up more often at some questions, or where more were asked, or reports are forged"
    whole = (
        "devices do not follow the document, or reports are forged; people cannot be the cause, "
        "because everybody is asked everything"
    )
    return (
        f"Chance makes differences as large as these in fewer than 5 of 100 surveys ({p_text(p)}), more often if "
        f"one looks after every release. They can mean that {drawn if completion['ask'] == 'drawn' else whole}."
    )


def group_sentences(
    comparisons: Sequence[Mapping[str, Any]], group_name: Callable[[str], str], language: str
) -> tuple[str, ...]:
    """Return sentences about differences between groups, from comparisons of the analysis.

    comparisons : rows of comparisons with simultaneous intervals. group_name : function from a
    group's label to its name.
    """
    tested = [row for row in comparisons if row["low_all"] is not None]
    if not tested:
        return ()
    # Two shares sum to 1, so one of them determines the other.
    choices = list(dict.fromkeys(row["choice"] for row in tested))
    shown = [row for row in tested if len(choices) != 2 or row["choice"] == choices[-1]]
    differences = []
    for row in shown:
        ends = (row["low_all"], row["high_all"])
        higher, lower = row["by"], row["reference"]
        if ends[1] < 0:
            ends, (higher, lower) = (-ends[1], -ends[0]), (lower, higher)
        if ends[0] > 0:
            sentence = (
                f"{_label(row, language)} is more common in {_quoted(group_name(higher))} than in "
                f"{_quoted(group_name(lower))}, by {_points(*ends)}."
            )
            differences.append((abs(row["difference"]), sentence))
    if not differences:
        return ("No difference between them is distinguishable from noise.",)
    return tuple(
        sentence for _, sentence in sorted(differences, key=lambda pair: -pair[0])[:_MAX_STATED]
    )


def scale_sentences(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return sentences about the mean and the median from the rows of a question's scale."""
    named = {row["choice"]: row for row in rows}
    mean, median, sentences = named.get(MEAN), named.get(MEDIAN), []
    if mean is not None and None not in (mean["estimate"], mean["low"]):
        ends = interval(mean["low"], mean["high"], NUMBER)
        sentences.append(
            f"Mean of the answers with a score: {figure(mean['estimate'], NUMBER)} ({ends})."
        )
    if median is not None and median["estimate"] is not None:
        ends = interval(median["low"], median["high"], NUMBER)
        what = "Median of the answers with a score:" if mean else "The median's range begins at"
        sentences.append(f"{what} {figure(median['estimate'], NUMBER)} ({ends}).")
    return tuple(sentences)


def interval_words(low: float, high: float) -> str:
    """Return a share's interval in words, with its ends rounded outwards."""
    if low <= 0 and high >= 1:
        return "anything from none to all (nothing can be said)"
    if low <= 0:
        return f"at most {_up(high, high)}%"
    if high >= 1:
        return f"at least {_down(low, 1 - low)}%"
    width = high - low
    return f"between {_down(low, width)}% and {_up(high, width)}%"


def flag_words(flag: str) -> str:
    """Return the explanation of a flag."""
    return FLAGS.get(flag, f"{flag.replace('_', ' ').capitalize()}.")


def _is_lost(row: Mapping[str, Any]) -> bool:
    """Return True for a figure that no number of reports can estimate."""
    return row["estimate"] is None and "not_identifiable" in row["flags"]


def _share(row: Mapping[str, Any], language: str, population_text: str) -> str:
    label = _label(row, language)
    if "interval_unknown" in row["flags"]:
        return f"{label}: there is an estimate, but how far it may be off is unknown."
    if row["low"] is None:
        return f"{label}: nothing can be said, as perhaps nobody has the answer after the bar."
    if row["low"] >= 1 or row["high"] <= 0:
        return f"{label}: the estimate lies beyond what is possible; read it as {'all' if row['low'] >= 1 else 'none'}."
    return f"{label}: {interval_words(row['low'], row['high'])} of {population_text}."


def _versions(row: Mapping[str, Any], population_text: str) -> Iterator[str]:
    """Yield a sentence on the test for differences between the combined versions.

    population_text : the people whose shares are estimated.
    """
    p = row["versions_p"]
    if p is None:
        return
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if "versions_differ" in row["flags"]:
        yield (
            f"The versions of the survey differ by more than chance usually explains ({chance}). These "
            f"are the shares of {population_text}, in all versions; look at each version separately."
        )
    else:
        yield f"No difference between the versions of the survey is distinguishable from noise ({chance})."


def _ranking(question: Mapping[str, Any], level: float, language: str) -> Iterator[str]:
    """Yield the most common answer, or the answers that are too close for a ranking."""
    covariance, rows = question["covariance"], question["rows"]
    # Without some share, the most common answer is not known.
    if covariance is None or len(rows) < 2 or any(row["estimate"] is None for row in rows):
        return
    pairs = math.comb(len(rows), 2)
    order = sorted(range(len(rows)), key=lambda i: -rows[i]["estimate"])
    top, unclear, gap = order[0], [], None
    for index in order[1:]:
        pair_covariance = [[covariance[i][j] for j in (top, index)] for i in (top, index)]
        ends = _ahead((rows[top], rows[index]), pair_covariance, level, pairs)
        if ends[0] <= 0:
            unclear.append(index)
        elif gap is None and not unclear:
            gap = (*ends, index)
    best = _label(rows[top], language)
    if not unclear and gap is not None:
        yield f"{best} is the most common answer: {_points(*gap[:2])} ahead of {_label(rows[gap[2]], language)}."
    elif len(unclear) == len(rows) - 1 and len(rows) > 2:
        yield "Which answer is the most common is unclear: the differences are within the noise."
    else:
        names = [best, *(_label(rows[i], language) for i in unclear[:_MAX_STATED])]
        suffix = " and others" if len(unclear) > _MAX_STATED else ""
        yield f"Which of {', '.join(names[:-1])} and {names[-1]}{suffix} is more common is unclear."


def _ahead(
    rows: tuple[Mapping[str, Any], Mapping[str, Any]],
    covariance: Sequence[Sequence[float]],
    level: float,
    pairs: int,
) -> tuple[float, float]:
    """Return the interval (low, high) of the difference of two shares.

    The level is simultaneous for `pairs` comparisons (Bonferroni). The distances between an estimate
    and the ends of its interval are combined like standard errors (MOVER) [Zou and Donner 2008].
    """
    # The sentence must hold for all pairs simultaneously, not only for a pair chosen afterwards.
    z, wider = normal_quantile(level), normal_quantile(level, pairs)
    (below, above), (other_below, other_above) = (
        (row["estimate"] - low, high - row["estimate"])
        for row in rows
        for low, high in [widened(row["estimate"], (row["low"], row["high"]), row["se"], z, wider)]
    )
    (variance, covariance_term), (_, other_variance) = covariance
    # Only a negative correlation is used, which widens the interval, because with few reports a
    # positive correlation may be chance. Without variances, -1 is assumed: distances are then
    # added.
    correlation = (
        max(-1.0, min(0.0, covariance_term / math.sqrt(variance * other_variance)))
        if variance > 0 and other_variance > 0
        else -1.0
    )
    normal = wider * math.sqrt(max(0.0, variance + other_variance - 2 * covariance_term))
    gap = rows[0]["estimate"] - rows[1]["estimate"]
    down = math.sqrt(below**2 + other_above**2 - 2 * correlation * below * other_above)
    up = math.sqrt(above**2 + other_below**2 - 2 * correlation * above * other_below)
    return gap - max(down, normal), gap + max(up, normal)


def _limits(rows: Sequence[Mapping[str, Any]], language: str) -> Iterator[str]:
    # The cost differs between the rows: it is nearly all of the precision for an answer that hardly
    # anybody gives. So the sentence names its row.
    largest = max(
        (r for r in rows if None not in (r["privacy_cost"], r["estimate"])),
        key=lambda row: row["estimate"],
        default=None,
    )
    if largest is not None:
        cost = largest["privacy_cost"]
        lost = "more than 99%" if cost > 0.99 else f"{round(100 * cost)}%"
        yield (
            f"For {_label(largest, language)}, privacy costs as much precision as losing {lost} "
            "of the answers would."
        )
    shifts = [
        max(row["poisoning_up"], row["poisoning_down"])
        for row in rows
        if row["poisoning_up"] is not None
    ]
    if shifts:
        yield (
            "If one report in a hundred were fake, a share could be off by up to "
            f"{_number(100 * max(shifts))} points."
        )


def _flags(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    present = {flag for row in rows for flag in row["flags"]}
    yield from (flag_words(flag) for flag in _WARNED if flag in present)


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
    # 1e-9, so that the binary error of a share such as 0.29 does not change the last digit.
    return f"{math.floor(100 * share * scale + 1e-9) / scale:.{_digits(width)}f}"


def _up(share: float, width: float) -> str:
    scale = 10 ** _digits(width)
    return f"{math.ceil(100 * share * scale - 1e-9) / scale:.{_digits(width)}f}"


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"
