# SPDX-License-Identifier: Apache-2.0
"""Sentences that explain estimates and their reliability.

Comparisons have a simultaneous level over all comparisons of their kind (Bonferroni), because the
same data determine which comparison is shown. Figures are rounded as in the tables, by `Shown`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_analyst.comparisons import p_text
from frankly_analyst.plots import NUMBER, percent
from frankly_analyst.request import ANSWERED
from frankly_analyst.request import MEAN as MEAN_OF_GROUPS
from frankly_analyst.shown import Shown
from frankly_design.estimate.flags import SENTENCES as OF_ESTIMATES
from frankly_design.estimate.margins import normal_quantile, widened
from frankly_design.estimate.scales import MEDIAN
from frankly_protocol.questions import MEAN

from frankly_server.analysis.periods import DAYS, PERIODS

FLAGS: Final = OF_ESTIMATES | {
    "pooled": "Several versions of the survey, or its arms, are combined.",
    "versions_differ": "They differ by more than chance does in 95 of 100 surveys: look at each separately.",
    "corrected_uncounted": "Reports with this and what tells how many answer at random are not counted: no correction.",
    "too_few_attentive": "Too little is known of how many people answer at random: no figure is corrected for them.",
    "random_law_unknown": "What an answer at random would be is not known here: no figure is corrected for them.",
    "corrected_impossible": "No possible value is in the corrected interval: chance, or another law of random answers.",
    "corrected_unbounded": "Corrected for people who answer at random, the figure could be anything.",
    "exact_not_available": "The requested method is not available here: the interval is by kl, always valid.",
    "unbounded": "The denominator of this ratio may be zero: its interval has no ends, so nothing is known about it.",
    "interval_unknown": "The estimate has no interval: its error is unknown because not all shares can be estimated.",
    "score_instead": "Ratios have no interval by the requested method: the usual approximate one is shown.",
}
_PEOPLE: Final = {"": ("all", "who took part"), ANSWERED: ("those", "who answered it")}
"""Whose shares these are, by the request's `percent`; whoever prefers not to say has taken part."""
_BEYOND: Final = 1e-9  # a share counts as impossible only if it is, not by its binary error
_DIFFER: Final = 0.05
"""Below this p-value the page says that completion differs."""
MOST_STATED: Final = 3
"""Largest number of shares or differences that the sentences mention, unless there is one more."""
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
    stated_rows = rows if len(rows) <= MOST_STATED + 1 else rows[:MOST_STATED]
    population_text = _population(percent, question.get("by"))
    share_sentences = [_share(row, language, population_text, percent) for row in stated_rows]
    lost = [_label(row, language) for row in question["rows"] if _is_lost(row)]
    findings = (
        *share_sentences,
        *(
            [f"However many answers come in, no share can be estimated of {', '.join(lost)}."]
            if lost
            else []
        ),
        *_ranking(question, level, language),
        *_versions(rows[0], _combined(question)),
    )
    return Sentences(findings, (*_limits(rows, language), *flag_sentences(rows, language)))


def arms_words(arms: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence on the sizes of the arms of each version that has arms, from the analysis."""
    return [
        (f"Version {one['version']}: " if len(arms) > 1 else "") + _sizes(one["arms"], one["p"])
        for one in arms
    ]


def sources_words(found: Mapping[str, Any] | None, names: Mapping[str, str]) -> list[str]:
    """Return a sentence on the random answers of each source, from the analysis; [] without one.

    names : of the sources, by id.
    """
    sources = [] if found is None else found["sources"]
    if len(sources) < 2 or any(one["p"] is None for one in sources):
        return []
    said = [f"{_named(one['source'], names)}: {_answering(one)}" for one in sources]
    if not any(one["flagged"] for one in sources):
        said.append("The test has flagged none of these sources.")
    if found is not None and found["others"]:
        said += [f"{_named(one, names)}: too little is known." for one in found["others"]]
    return [
        *said,
        "Only people or programs that answer at random are seen like this. Forged answers that look like those of "
        "other people are not.",
    ]


def _named(source: str, names: Mapping[str, str]) -> str:
    return names.get(source, source)


def _answering(source: Mapping[str, Any]) -> str:
    share, low, high = source["random"], source["random_low"], source["random_high"]
    if low >= 1:
        about = "more seems to be wrong than if all of its people answered at random"
    elif not 0 <= share <= 1:
        about = (
            f"the share of people who answer at random is estimated as {percent(share)} ({percent(low)} to "
            f"{percent(high)}), which chance can put outside 0 to 100%"
        )
    else:
        about = f"about {percent(share)} of the people answer at random ({percent(low)} to {percent(high)})"
    if not source["flagged"]:
        return f"{about}."
    return (
        f"{about}, more than chance explains beside the other sources ({p_text(source['p'])}). Ask how its people "
        "were found before you use its answers."
    )


def _sizes(arms: Sequence[Mapping[str, Any]], p: float | None) -> str:
    total, chances = sum(arm["n"] for arm in arms), sum(arm["chance"] for arm in arms)
    numbers = _and([f"{arm['arm']} in {arm['n']:,}" for arm in arms])
    if p is None:
        return "There are too few answers to test whether devices draw the arms as they should."
    shares = _and([percent(arm["chance"] / chances) for arm in arms])
    drawn = f"Of {total:,} answers, devices drew {numbers}."
    if p >= _DIFFER:
        return (
            f"{drawn} This is not distinguishable from the signed shares of {shares} ({p_text(p)})."
        )
    return (
        f"{drawn} This differs from the signed shares of {shares} by more than chance usually explains "
        f"({p_text(p)}): people may leave one arm more than another, and then arms can differ although "
        "nobody answers differently. Look for the reason before you compare them."
    )


def _and(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def completion_words(completion: Mapping[str, Any]) -> str:
    """Return a sentence about the test that giving up does not depend on what a device draws."""
    p = completion["test"]["p"]
    if p is None:
        if completion["parts"] and all(part["chance"] == 1 for part in completion["parts"]):
            return "Every report is about every question, so there is nothing to test."
        return "There are too few reports to test this."
    if p >= _DIFFER:
        return f"Chance makes differences as large as these in at least 5 of 100 surveys ({p_text(p)})."
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
    comparisons: Sequence[Mapping[str, Any]],
    group_name: Callable[[str], str],
    language: str,
    *,
    tested_words: str = "tested",
    most: int = MOST_STATED,
) -> tuple[str, ...]:
    """Return sentences about differences between groups, from comparisons of the analysis.

    comparisons : rows of comparisons with simultaneous intervals. group_name : function from a
    group's label to its name. tested_words : which differences these are. most : number of differences that are
    stated, if there are more than one more.
    """
    # A weighted sum of groups has no reference, and is no difference between two of them.
    pairs = _without_complements([row for row in comparisons if row["reference"]])
    tested = [row for row in pairs if row["low_all"] is not None or row.get("p_holm") is not None]
    if not pairs:
        return ()
    clear = [row for row in tested if _is_clear(row)]
    clear.sort(key=lambda row: -abs(row["difference"]))
    # One more sentence is shorter than a note that one difference is left out.
    stated = clear if len(clear) <= most + 1 else clear[:most]
    sentences = [_difference(row, group_name, language) for row in stated]
    if tested and not clear:
        # Not every pair is tested: of periods, only each with the one before.
        sentences.append(
            f"None of the {len(tested)} differences {tested_words} is distinguishable from chance."
            if len(tested) > 1
            else f"The one difference {tested_words} is not distinguishable from chance."
        )
    elif len(clear) > len(stated):
        rest = len(clear) - len(stated)
        sentences.append(f"And {rest} further differences are distinguishable from chance.")
    if clear and (others := len(tested) - len(clear)):
        sentences.append(
            f"The other {others} differences {tested_words} are not distinguishable from chance."
            if others > 1
            else f"The other difference {tested_words} is not distinguishable from chance."
        )
    untested = len(pairs) - len(tested)
    if untested:
        sentences.append(
            f"Nothing is said of {untested}{' further' if tested else ''} "
            f"{'differences' if untested > 1 else 'difference'}, "
            "for want of an interval."
        )
    return tuple(sentences)


def trend_sentences(
    slopes: Sequence[Mapping[str, Any]], per: str, language: str
) -> tuple[str, ...]:
    """Return sentences about straight lines through the groups, from a trend of the analysis.

    slopes : its rows, whose differences are those of one `per`, such as a month.
    """
    pairs = _without_complements(slopes)
    tested = [row for row in pairs if row["low_all"] is not None or row.get("p_holm") is not None]
    clear = [row for row in tested if _is_clear(row)]
    clear.sort(key=lambda row: -abs(row["difference"]))
    if tested and not clear:
        return ("No rise or fall along a straight line is distinguishable from chance.",)
    return tuple(_slope(row, per, language) for row in clear[: MOST_STATED + 1])


def _slope(row: Mapping[str, Any], per: str, language: str) -> str:
    what = f"The {row['choice']}" if row["unit"] == NUMBER else _label(row, language)
    moves = f"{what} {'rises' if row['difference'] > 0 else 'falls'}"
    if row["low_all"] is None:
        return f"{moves} along a straight line ({p_text(row['p_holm'])}, adjusted for all tests of the question)."
    low, high = sorted((abs(row["low_all"]), abs(row["high_all"])))
    by = Shown.of(low, low, high, NUMBER).ends if row["unit"] == NUMBER else _points(low, high)
    return f"{moves} by {by} a {per}, along a straight line."


def association_sentence(test: Mapping[str, Any] | None) -> str:
    """Return whether two questions' answers depend on each other, from the test of the analysis."""
    if test is None or test["p"] is None:
        return "Whether the answers to the two questions depend on each other cannot be tested."
    if test["p"] >= _DIFFER:
        return (
            "A relation between the answers to the two questions is not distinguishable from chance "
            f"({p_text(test['p'])})."
        )
    return (
        "The answers to the two questions are related: if they were not, chance would make differences as large as "
        f"these in fewer than 5 of 100 surveys ({p_text(test['p'])})."
    )


def scale_sentences(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return sentences about the mean and the median from the rows of a question's scale."""
    named = {row["choice"]: row for row in rows}
    mean, median, sentences = named.get(MEAN), named.get(MEDIAN), []
    if mean is not None and None not in (mean["estimate"], mean["low"]):
        shown = Shown.of(mean["estimate"], mean["low"], mean["high"], NUMBER)
        sentences.append(f"Mean of the answers with a score: {shown.text} ({shown.ends}).")
    if median is not None and median["estimate"] is not None:
        shown = Shown.exact(median["estimate"], median["low"], median["high"])
        what = "Median of the answers with a score:" if mean else "The median's range begins at"
        sentences.append(f"{what} {shown.text} ({shown.ends}).")
    return tuple(sentences)


def interval_words(low: float, high: float) -> str:
    """Return a share's interval in words, with its ends rounded outwards."""
    if low <= 0 and high >= 1:
        return "anything from none to all (nothing can be said)"
    low, high = (min(1.0, max(0.0, end)) for end in (low, high))
    shown = Shown.of(low, low, high)
    if low <= 0:
        return f"at most {shown.high_text}"
    if high >= 1:
        return f"at least {shown.low_text}"
    return f"between {shown.low_text} and {shown.high_text}"


def flag_words(flag: str) -> str:
    """Return the explanation of a flag."""
    return FLAGS.get(flag, f"{flag.replace('_', ' ').capitalize()}.")


def _is_lost(row: Mapping[str, Any]) -> bool:
    """Return True for a figure that no number of reports can estimate."""
    # Once a figure of a question is lost, all its rows have that flag, also a ratio whose denominator is
    # estimated as zero, which more reports may change.
    flags = row["flags"]
    return row["estimate"] is None and "not_identifiable" in flags and "unbounded" not in flags


def _population(percent: str | None, by: Mapping[str, str] | None) -> str:
    """Return the people whose shares these are. by : the group and the period, None for everybody."""
    quantity, who = _PEOPLE.get(percent or "", ("those", "with the answer after the bar"))
    kinds = {"period" if name in (*PERIODS, DAYS) else "group" for name in by or {}}
    within = f" in this {' and '.join(sorted(kinds))}" if kinds else ""
    return f"{quantity}{within} {who}"


def _share(row: Mapping[str, Any], language: str, population_text: str, percent: str | None) -> str:
    label = _label(row, language)
    if "interval_unknown" in row["flags"]:
        return f"{label}: there is an estimate, but how far it may be off is unknown."
    if row["low"] is None:
        nobody = "answered it" if percent == ANSWERED else "has the answer after the bar"
        return f"{label}: nothing can be said, as perhaps nobody {nobody}."
    if row["low"] > 1 + _BEYOND or row["high"] < -_BEYOND:
        nearest = "all" if row["low"] > 1 else "none"
        return f"{label}: the interval lies beyond what is possible; read it as {nearest}."
    return f"{label}: {interval_words(row['low'], row['high'])} of {population_text}."


def _combined(question: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the question's figures combine, and one of it."""
    if not question.get("arms"):
        return "versions", "each version"
    if len(question["documents"]) == 1:
        return "arms", "each arm"
    return "versions and arms", "each of them"


def _versions(row: Mapping[str, Any], combined: tuple[str, str]) -> Iterator[str]:
    """Yield a sentence on the test for differences between the combined versions or arms."""
    what, each = combined
    p = row["versions_p"]
    if p is None:
        return
    if "versions_differ" in row["flags"]:
        yield (
            f"The {what} of the survey differ by more than chance usually explains ({p_text(p)}). These "
            f"figures are of all {what} together; look at {each} separately."
        )
    else:
        # One test of all versions: two of them may still differ by more than a test of these two allows.
        yield (
            f"Taken together, the differences between the {what} of the survey are not distinguishable "
            f"from noise ({p_text(p)})."
        )


def _ranking(question: Mapping[str, Any], level: float, language: str) -> Iterator[str]:
    """Yield the most common answer, or the answers that are too close for a ranking."""
    covariance, rows = question["covariance"], question["rows"]
    # Without some share or its error, the most common answer is not known.
    if covariance is None or len(rows) < 2 or any(row["low"] is None for row in rows):
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
        # Of the others, one may be ahead of another by more than the noise.
        yield f"Which answer is the most common is unclear: the lead of {best} over each other is within the noise."
    else:
        names = [best, *(_label(rows[i], language) for i in unclear[:MOST_STATED])]
        suffix = " and others" if len(unclear) > MOST_STATED else ""
        more = "more" if len(unclear) == 1 else "most"
        yield f"Which of {', '.join(names[:-1])} and {names[-1]}{suffix} is {more} common is unclear."


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
            f"{_up(100 * max(shifts))} points."
        )


def flag_sentences(rows: Sequence[Mapping[str, Any]], language: str) -> Iterator[str]:
    """Yield the warnings about figures that are shown beside them."""
    for flag in _WARNED:
        flagged = [_label(row, language) for row in rows if flag in row["flags"]]
        words = flag_words(flag)
        if len(flagged) == len(rows):
            yield words
        elif flagged:
            # A warning on one answer must not be read as one on the others.
            yield f"{', '.join(flagged)}: {words[0].lower()}{words[1:]}"


def _label(row: Mapping[str, Any], language: str) -> str:
    return _quoted(row["label"].get(language) or next(iter(row["label"].values())))


def _quoted(text: str) -> str:
    return f"“{text}”"


def _without_complements(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows without those that the other choice of the same two groups determines."""
    together: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        together.setdefault((row["by"], row["reference"]), []).append(row)
    kept = []
    for of_pair in together.values():
        # Two rows may also be what is left of three, one of which cannot be estimated.
        if len(of_pair) == 2 and abs(sum(row["difference"] for row in of_pair)) < _BEYOND:
            kept.append(max(reversed(of_pair), key=lambda row: row["low_all"] is not None))
        else:
            kept += of_pair
    return kept


def _is_clear(row: Mapping[str, Any]) -> bool:
    """Return True for a difference that chance hardly explains, even among all that are tested together."""
    if row["low_all"] is not None:
        return bool(row["low_all"] > 0 or row["high_all"] < 0)
    # Ratios have no simultaneous intervals, but p-values adjusted for all tests of the question.
    return bool(row["p_holm"] < _DIFFER and row["difference"])


def _difference(row: Mapping[str, Any], group_name: Callable[[str], str], language: str) -> str:
    """Return the sentence about a difference whose simultaneous interval excludes 0."""
    low, high = row["low_all"], row["high_all"]
    higher, lower = (
        # The mean of the groups is no group, so it has no name.
        "all groups together" if name == MEAN_OF_GROUPS else _quoted(group_name(name))
        for name in (row["by"], row["reference"])
    )
    if row["difference"] < 0:
        higher, lower = lower, higher
    what = (
        f"The {row['choice']} is higher"
        if row["unit"] == NUMBER
        else f"{_label(row, language)} is more common"
    )
    if low is None:
        return f"{what} in {higher} than in {lower} ({p_text(row['p_holm'])}, adjusted for all tests of the question)."
    if high < 0:
        low, high = -high, -low
    if row["unit"] == NUMBER:
        return f"{what} in {higher} than in {lower}, by {Shown.of(low, low, high, NUMBER).ends}."
    return f"{what} in {higher} than in {lower}, by {_points(low, high)}."


def _points(low: float, high: float) -> str:
    if low >= 1:
        return "100 percentage points"
    shown = Shown.of(low, low, high, possible=(-1.0, 1.0))
    ends = dict.fromkeys(text.removesuffix("%") for text in (shown.low_text, shown.high_text))
    if float(next(iter(ends))) == 0:
        # A difference is not said to be perhaps none: its lower end has a digit that is not zero, if two decimals do.
        digits = next((d for d in (1, 2) if math.floor(low * 10 ** (d + 2) + _BEYOND)), None)
        high_text = list(ends)[-1]
        if digits is None:
            return f"at most {high_text} percentage points"
        ends = dict.fromkeys(
            [f"{math.floor(low * 10 ** (digits + 2) + _BEYOND) / 10**digits:.{digits}f}", high_text]
        )
    return f"{' to '.join(ends)} percentage points"


def _up(points: float) -> str:
    """Return a number of points that must not be exceeded, rounded up."""
    digits = 1 if points >= 0.95 else 2
    # As in `Shown`: the binary error of a number does not change its last digit.
    return f"{math.ceil(points * 10**digits - _BEYOND) / 10**digits:.{digits}f}"
