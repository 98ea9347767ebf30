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
from frankly_design.estimate.margins import normal_quantile, widened
from frankly_design.estimate.scales import MEDIAN
from frankly_protocol.questions import MEAN

from frankly_server.analysis.periods import DAYS, PERIODS
from frankly_server.web.results.words import FLAGS, WARNED, Words

_PEOPLE: Final = {"": "all_who", ANSWERED: "answered_who"}
"""Whose shares these are, by the request's `percent`; whoever prefers not to say has taken part."""
_WITHIN: Final = {
    (): "",
    ("group",): "within_group",
    ("period",): "within_period",
    ("group", "period"): "within_both",
}
_BEYOND: Final = 1e-9  # a share counts as impossible only if it is, not by its binary error
_DIFFER: Final = 0.05
"""Below this p-value the page says that completion differs."""
MOST_STATED: Final = 3
"""Largest number of shares or differences that the sentences mention, unless there is one more."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences about one question. findings : its results. limits : their reliability."""

    findings: tuple[str, ...]
    limits: tuple[str, ...]

    def after(self, findings: tuple[str, ...]) -> "Sentences":
        """Return these sentences with additional findings in front."""
        return Sentences((*findings, *self.findings), self.limits)


def sentences_of(
    question: Mapping[str, Any], level: float, words: Words, percent: str | None = None
) -> Sentences:
    """Return the sentences about one question of the analysis that has enough reports.

    percent : "row" or "column" for shares within a row or column, "answered" for those among the people
    who answered; None for shares of all.
    """
    known = [row for row in question["rows"] if not _is_lost(row)]
    rows = sorted(known, key=lambda row: math.inf if row["estimate"] is None else -row["estimate"])
    if not rows:
        return Sentences((), (words.say("all_lost"),))
    # One more sentence is shorter than a note that one row is left out.
    stated_rows = rows if len(rows) <= MOST_STATED + 1 else rows[:MOST_STATED]
    people = _people(percent, question.get("by"), words)
    share_sentences = [_share(row, words, people, percent) for row in stated_rows]
    lost = [words.label(row) for row in question["rows"] if _is_lost(row)]
    findings = (
        *share_sentences,
        *([words.say("some_lost", answers=words.listed(lost))] if lost else []),
        *_ranking(question, level, words),
        *_versions(rows[0], _combined(question), words),
    )
    return Sentences(findings, (*_limits(rows, words), *flag_sentences(rows, words)))


def arms_words(arms: Sequence[Mapping[str, Any]], words: Words) -> list[str]:
    """Return a sentence on the sizes of the arms of each version that has arms, from the analysis."""
    said = [_sizes(one["arms"], one["p"], words) for one in arms]
    if len(arms) < 2:
        return said
    names = [words.say("version", version=str(one["version"])) for one in arms]
    return [
        words.say("named", name=name, sentence=sentence)
        for name, sentence in zip(names, said, strict=True)
    ]


def sources_words(
    found: Mapping[str, Any] | None, names: Mapping[str, str], words: Words
) -> list[str]:
    """Return a sentence on the random answers of each source, from the analysis; [] without one.

    names : of the sources, by id.
    """
    sources = [] if found is None else found["sources"]
    if len(sources) < 2 or any(one["p"] is None for one in sources):
        return []
    said = [_answering(one, names.get(one["source"], one["source"]), words) for one in sources]
    if not any(one["flagged"] for one in sources):
        said.append(words.say("sources_none"))
    if found is not None:
        others = (names.get(one, one) for one in found["others"])
        said += [words.say("source_unknown", source=name) for name in others]
    return [*said, words.say("sources_forged")]


def _answering(source: Mapping[str, Any], name: str, words: Words) -> str:
    share, low, high = (
        words.figure(percent(source[one])) for one in ("random", "random_low", "random_high")
    )
    ends = words.say("ends", low=low, high=high)
    if source["random_low"] >= 1:
        about = words.say("source_all")
    elif not 0 <= source["random"] <= 1:
        about = words.say("source_outside", share=share, ends=ends)
    else:
        about = words.say("source_share", share=share, ends=ends)
    if not source["flagged"]:
        return words.say("source_fine", source=name, about=about)
    return words.say("source_flagged", source=name, about=about, p=words.p(source["p"]))


def _sizes(arms: Sequence[Mapping[str, Any]], p: float | None, words: Words) -> str:
    if p is None:
        return words.say("arms_too_few")
    chances = sum(arm["chance"] for arm in arms)
    return words.say(
        "arms_as_signed" if p >= _DIFFER else "arms_not_as_signed",
        n=sum(arm["n"] for arm in arms),
        arms=words.together([words.say("arm_count", arm=arm["arm"], n=arm["n"]) for arm in arms]),
        shares=words.together([words.figure(percent(arm["chance"] / chances)) for arm in arms]),
        p=words.p(p),
    )


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
    words: Words,
    *,
    step: str = "",
    most: int = MOST_STATED,
    has_trend: bool = False,
) -> tuple[str, ...]:
    """Return sentences about differences between groups, from comparisons of the analysis.

    comparisons : rows of comparisons with simultaneous intervals. group_name : function from a
    group's label to its name. step : "day", "week" or "month" if the groups are periods, each compared with the one
    before. most : number of differences that are stated, if there are more than one more. has_trend : True if
    something rises or falls over all groups, which is then not denied by differences that are all unclear.
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
    sentences = [_difference(row, group_name, words) for row in stated]
    # Not every pair is tested: of periods, only each with the one before.
    kind, steps = ("steps", {"steps": words.say(f"step_{step}")}) if step else ("differences", {})
    if tested and not clear and not has_trend:
        sentences.append(words.say(f"{kind}_none", n=len(tested), **steps))
    elif len(clear) > len(stated):
        sentences.append(words.say("differences_more", n=len(clear) - len(stated)))
    if clear and (others := len(tested) - len(clear)):
        sentences.append(words.say(f"{kind}_others", n=others, **steps))
    untested = len(pairs) - len(tested)
    if untested:
        name = "differences_untested_more" if tested else "differences_untested"
        sentences.append(words.say(name, n=untested))
    return tuple(sentences)


def trend_sentences(slopes: Sequence[Mapping[str, Any]], per: str, words: Words) -> tuple[str, ...]:
    """Return sentences about straight lines through the groups, from a trend of the analysis.

    slopes : its rows, whose differences are those of one `per`, such as a month.
    """
    pairs = _without_complements(slopes)
    tested = [row for row in pairs if row["low_all"] is not None or row.get("p_holm") is not None]
    clear = [row for row in tested if _is_clear(row)]
    clear.sort(key=lambda row: -abs(row["difference"]))
    if tested and not clear:
        return (words.say("slopes_none"),)
    return tuple(_slope(row, per, words) for row in clear[: MOST_STATED + 1])


def is_trend(slopes: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if `trend_sentences` say by how much something rises or falls."""
    return any(
        row["low_all"] is not None and _is_clear(row) for row in _without_complements(slopes)
    )


def _slope(row: Mapping[str, Any], per: str, words: Words) -> str:
    what, moves = _what(row, words), "rises" if row["difference"] > 0 else "falls"
    if row["low_all"] is None:
        return words.say(f"{moves}_p", what=what, p=words.p(row["p_holm"]))
    low, high = sorted((abs(row["low_all"]), abs(row["high_all"])))
    return words.say(f"{moves}_{per}", what=what, by=_by(row, low, high, words))


def _what(row: Mapping[str, Any], words: Words) -> str:
    """Return the figure that differs."""
    if row["unit"] != NUMBER:
        return words.label(row)
    name: str = row["choice"]
    return words.say("the_mean") if name == MEAN else words.say("the_figure", name=name)


def _by(row: Mapping[str, Any], low: float, high: float, words: Words) -> str:
    """Return the ends of a difference without its sign."""
    if row["unit"] == NUMBER:
        return Shown.of(low, low, high, NUMBER).said_in(words).ends
    return _points(low, high, words)


def association_sentence(test: Mapping[str, Any] | None, words: Words) -> str:
    """Return whether two questions' answers depend on each other, from the test of the analysis."""
    if test is None or test["p"] is None:
        return words.say("related_unknown")
    return words.say("related_unclear" if test["p"] >= _DIFFER else "related", p=words.p(test["p"]))


def scale_sentences(rows: Sequence[Mapping[str, Any]], words: Words) -> tuple[str, ...]:
    """Return sentences about the mean and the median from the rows of a question's scale."""
    named = {row["choice"]: row for row in rows}
    mean, median, sentences = named.get(MEAN), named.get(MEDIAN), []
    if mean is not None and None not in (mean["estimate"], mean["low"]):
        shown = Shown.of(mean["estimate"], mean["low"], mean["high"], NUMBER).said_in(words)
        sentences.append(words.say("mean_is", figure=shown.text, ends=shown.ends))
    if median is not None and median["estimate"] is not None:
        shown = Shown.exact(median["estimate"], median["low"], median["high"]).said_in(words)
        name = "median_is" if mean else "median_begins"
        sentences.append(words.say(name, figure=shown.text, ends=shown.ends))
    return tuple(sentences)


def interval_words(low: float, high: float, words: Words) -> str:
    """Return a share's interval in words, with its ends rounded outwards."""
    if low <= 0 and high >= 1:
        return words.say("anything")
    low, high = (min(1.0, max(0.0, end)) for end in (low, high))
    shown = Shown.of(low, low, high).said_in(words)
    if low <= 0:
        return words.say("at_most", high=shown.high_text)
    if high >= 1:
        return words.say("at_least", low=shown.low_text)
    return words.say("between", low=shown.low_text, high=shown.high_text)


def flag_words(flag: str) -> str:
    """Return the explanation of a flag in English."""
    return FLAGS.get(flag, f"{flag.replace('_', ' ').capitalize()}.")


def _is_lost(row: Mapping[str, Any]) -> bool:
    """Return True for a figure that no number of reports can estimate."""
    # Once a figure of a question is lost, all its rows have that flag, also a ratio whose denominator is
    # estimated as zero, which more reports may change.
    flags = row["flags"]
    return row["estimate"] is None and "not_identifiable" in flags and "unbounded" not in flags


def _people(percent: str | None, by: Mapping[str, str] | None, words: Words) -> str:
    """Return the people whose shares these are. by : the group and the period, None for everybody."""
    kinds = {"period" if name in (*PERIODS, DAYS) else "group" for name in by or {}}
    within = _WITHIN[tuple(sorted(kinds))]
    return words.say(
        _PEOPLE.get(percent or "", "bar_who"), within=words.say(within) if within else ""
    )


def _share(row: Mapping[str, Any], words: Words, people: str, percent: str | None) -> str:
    answer = words.label(row)
    if "interval_unknown" in row["flags"]:
        return words.say("share_unknown", answer=answer)
    if row["low"] is None:
        who = "answered" if percent == ANSWERED else "bar"
        return words.say(f"share_nobody_{who}", answer=answer)
    if row["low"] > 1 + _BEYOND or row["high"] < -_BEYOND:
        nearest = "all" if row["low"] > 1 else "none"
        return words.say(f"share_beyond_{nearest}", answer=answer)
    interval = interval_words(row["low"], row["high"], words)
    return words.say("share", answer=answer, interval=interval, people=people)


def _combined(question: Mapping[str, Any]) -> str:
    """Return what the question's figures combine."""
    if not question.get("arms"):
        return "versions"
    return "arms" if len(question["documents"]) == 1 else "both"


def _versions(row: Mapping[str, Any], combined: str, words: Words) -> Iterator[str]:
    """Yield a sentence on the test for differences between the combined versions or arms."""
    p = row["versions_p"]
    if p is not None:
        # One test of all versions: two of them may still differ by more than a test of these two allows.
        found = "differ" if "versions_differ" in row["flags"] else "alike"
        yield words.say(f"{combined}_{found}", p=words.p(p))


def _ranking(question: Mapping[str, Any], level: float, words: Words) -> Iterator[str]:
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
    best = words.label(rows[top])
    if not unclear and gap is not None:
        points = _points(*gap[:2], words)
        yield words.say("most_common", answer=best, points=points, next=words.label(rows[gap[2]]))
    elif len(unclear) == len(rows) - 1 and len(rows) > 2:
        # Of the others, one may be ahead of another by more than the noise.
        yield words.say("common_unclear", answer=best)
    else:
        names = [best, *(words.label(rows[i]) for i in unclear[:MOST_STATED])]
        name = "more_unclear" if len(unclear) == 1 else "most_unclear"
        others = "_others" if len(unclear) > MOST_STATED else ""
        yield words.say(f"{name}{others}", answers=words.together(names))


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


def _limits(rows: Sequence[Mapping[str, Any]], words: Words) -> Iterator[str]:
    # The cost differs between the rows: it is nearly all of the precision for an answer that hardly
    # anybody gives. So the sentence names its row.
    largest = max(
        (r for r in rows if None not in (r["privacy_cost"], r["estimate"])),
        key=lambda row: row["estimate"],
        default=None,
    )
    if largest is not None:
        cost = largest["privacy_cost"]
        lost = words.figure(f"{min(99, round(100 * cost))}%")
        if cost > 0.99:
            lost = words.say("more_than", share=lost)
        yield words.say("privacy_cost", answer=words.label(largest), lost=lost)
    shifts = [
        max(row["poisoning_up"], row["poisoning_down"])
        for row in rows
        if row["poisoning_up"] is not None
    ]
    if shifts:
        yield words.say("fake", points=words.figure(_up(100 * max(shifts))))


def flag_sentences(rows: Sequence[Mapping[str, Any]], words: Words) -> Iterator[str]:
    """Yield the warnings about figures that are shown beside them."""
    for flag in WARNED:
        flagged = [words.label(row) for row in rows if flag in row["flags"]]
        sentence = words.say(f"flag_{flag}")
        if len(flagged) == len(rows):
            yield sentence
        elif flagged:
            # A warning on one answer must not be read as one on the others.
            if words.language == "en":
                sentence = f"{sentence[0].lower()}{sentence[1:]}"
            yield words.say("named", name=words.listed(flagged), sentence=sentence)


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


def _difference(row: Mapping[str, Any], group_name: Callable[[str], str], words: Words) -> str:
    """Return the sentence about a difference whose simultaneous interval excludes 0."""
    higher, lower = (
        # The mean of the groups is no group, so it has no name.
        words.say("all_groups") if name == MEAN_OF_GROUPS else words.quoted(group_name(name))
        for name in (row["by"], row["reference"])
    )
    if row["difference"] < 0:
        higher, lower = lower, higher
    kind = "higher" if row["unit"] == NUMBER else "common"
    named = {"what": _what(row, words), "higher": higher, "lower": lower}
    if row["low_all"] is None:
        return words.say(f"{kind}_p", **named, p=words.p(row["p_holm"]))
    low, high = sorted((abs(row["low_all"]), abs(row["high_all"])))
    return words.say(f"{kind}_by", **named, by=_by(row, low, high, words))


def _points(low: float, high: float, words: Words) -> str:
    if low >= 1:
        return words.say("points", high="100")
    shown = Shown.of(low, low, high, possible=(-1.0, 1.0))
    low_text, high_text = (text.removesuffix("%") for text in (shown.low_text, shown.high_text))
    if float(low_text) == 0:
        # A difference is not said to be perhaps none: its lower end has a digit that is not zero, if two decimals do.
        digits = next((d for d in (1, 2) if math.floor(low * 10 ** (d + 2) + _BEYOND)), None)
        if digits is None:
            return words.say("points_at_most", high=words.figure(high_text))
        low_text = f"{math.floor(low * 10 ** (digits + 2) + _BEYOND) / 10**digits:.{digits}f}"
    if low_text == high_text:
        return words.say("points", high=words.figure(high_text))
    return words.say("points_ends", low=words.figure(low_text), high=words.figure(high_text))


def _up(points: float) -> str:
    """Return a number of points that must not be exceeded, rounded up."""
    digits = 1 if points >= 0.95 else 2
    # As in `Shown`: the binary error of a number does not change its last digit.
    return f"{math.ceil(points * 10**digits - _BEYOND) / 10**digits:.{digits}f}"
