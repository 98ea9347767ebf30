# SPDX-License-Identifier: Apache-2.0
"""Every sentence about results is true: a reader recomputes from the numbers what each sentence claims.

`Reader` knows each kind of sentence by a pattern; one that it does not know fails. It shares no code
with the page: it has its own words for flags, and its own formulas.
"""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import Any, Final

import pytest
from frankly_analyst import Estimate
from frankly_server.web.results.denial import denial_sentences
from frankly_server.web.results.sentences import (
    association_sentence,
    completion_words,
    group_sentences,
    scale_sentences,
    sentences_of,
    trend_sentences,
)
from frankly_server.web.results.words import Words

from tests.frankly_server.analysis.samples import (
    LIP,
    block_about,
    document_of,
    grr,
    question,
    received,
    result,
)
from tests.frankly_server.analysis.test_completion import ALL, DRAWN, completions, of_people

Row = Mapping[str, Any]
EN: Final = Words("en")
TINY: Final = 1e-9
PERIODS: Final = {"day", "days", "week", "month"}
WARNED: Final = {
    "outside_unit_interval": "outside 0 to 100%",
    "imprecise": "farther from the estimate than two thirds of it",
    "margin_too_wide": "farther than all possible values are apart",
    "not_identifiable": "cannot be estimated, however many reports come in",
    "reports_do_not_fit": "hardly ever produces such reports",
    "few_informative": "ewer than 5 reports differ",
    "unbounded": "denominator of this ratio may be zero",
    "interval_unknown": "its error is unknown",
    "score_instead": "the usual approximate one is shown",
}
"""Part of the sentence about each flag that is explained beside the findings."""


def quantile(level: float, comparisons: int) -> float:
    return NormalDist().inv_cdf(1 - (1 - level) / (2 * comparisons))


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def like(value: int, text: str) -> str:
    """Return a number with as many decimals as a text has."""
    return f"{value:.{len(text.partition('.')[2])}f}"


def is_around(stated: tuple[str, str], low: float, high: float, unit: float) -> bool:
    """Whether stated ends contain an interval, exceed it by less than their last digit, and have as many
    digits as its width deserves."""
    width = high - low
    first, last = (number(text) / unit for text in stated)
    last_digit = max(10.0 ** -len(text.partition(".")[2]) for text in stated) / unit
    # Not more digits than a width deserves, and not fewer than a reader needs.
    assert last_digit <= max(width / 10, 0.01 / unit) * (1 + TINY), (stated, low, high)
    assert width == 0 or last_digit > width / 101 or last_digit == 1 / unit, (stated, low, high)
    slack = TINY * (1 + abs(low) + abs(high))
    return (
        low - last_digit - slack < first <= low + slack
        and high - slack <= last < high + last_digit + slack
    )


def are_points(stated: Sequence[str], ends: tuple[float, float]) -> bool:
    """Whether a positive difference between these ends is stated right: ["at most ", high], [both], or [low, high]."""
    *low, high = stated
    if ends[0] >= 1:
        return (low, high) == ([], "100")
    if low and number_of_decimals(low[0]) > number_of_decimals(high):
        # It would be 0 with the digits of the other end.
        last = 10.0 ** -number_of_decimals(low[0])
        assert 0 < number(low[0]) <= 100 * ends[0] + TINY < number(low[0]) + last + 2 * TINY
        low = [like(0, high)]
    if low == ["at most "]:
        assert 0 < 100 * ends[0] < 0.01 + TINY
        low = [like(0, high)]
    return is_around((low[0] if low else high, high), ends[0], min(1.0, ends[1]), 100)


def number_of_decimals(text: str) -> int:
    return -1 if not text[0].isdigit() else len(text.partition(".")[2])


def lead(question: Row, level: float, i: int, j: int) -> tuple[float, float]:
    """Interval of row i minus row j at the level of all pairs: MOVER by hand, never inside the normal one."""
    rows, cov = question["rows"], question["covariance"]
    z, wider = quantile(level, 1), quantile(level, math.comb(len(rows), 2))
    gap = rows[i]["estimate"] - rows[j]["estimate"]

    def far(row: Row, end: str) -> float:
        distance = row["estimate"] - row["low"] if end == "low" else row["high"] - row["estimate"]
        of_normal = z * row["se"]
        excess = max(0.0, distance - of_normal)
        cubic = wider * row["se"] + (wider / z) ** 3 * excess
        return min(cubic, (wider / z) ** 2 * max(distance, of_normal))

    product = cov[i][i] * cov[j][j]
    r = cov[i][j] / math.sqrt(product) if cov[i][i] > 0 and cov[j][j] > 0 else -1.0
    r = min(0.0, max(-1.0, r))
    normal = wider * math.sqrt(max(0.0, cov[i][i] + cov[j][j] - 2 * cov[i][j]))

    def together(a: float, b: float) -> float:
        return max(normal, math.sqrt(max(0.0, a * a + b * b - 2 * r * a * b)))

    low = gap - together(far(rows[i], "low"), far(rows[j], "high"))
    return low, gap + together(far(rows[i], "high"), far(rows[j], "low"))


class Reader:
    """A reader of sentences about one question. said : kinds of sentences that were read."""

    def __init__(self, found: Row, level: float, language: str, percent: str | None) -> None:
        self.found, self.level, self.percent = found, level, percent
        self.rows = found["rows"]
        texts = [
            row["label"].get(language) or next(iter(row["label"].values())) for row in self.rows
        ]
        self.of_label = dict(zip(texts, self.rows, strict=True))
        assert len(self.of_label) == len(self.rows)
        ordered = sorted(map(re.escape, texts), key=len, reverse=True)
        self.label = f"“(?:{'|'.join(ordered)})”"
        self.said: list[tuple[str, tuple[str, ...]]] = []

    def read(self, sentence: str) -> None:
        for kind, pattern in PATTERNS.items():
            match = re.fullmatch(pattern.replace("LABEL", self.label), sentence)
            if match is None:
                continue
            parts = tuple(part for part in match.groups() if part is not None)
            assert getattr(self, kind)(*parts), (sentence, self.rows)
            self.said.append((kind, parts))
            return
        raise AssertionError(f"nobody can read: {sentence}")

    def read_all(self, findings: Sequence[str], limits: Sequence[str]) -> None:
        for sentence in (*findings, *limits):
            self.read(sentence)
        kinds = [kind for kind, _ in self.said]
        lost = [row for row in self.rows if self.is_lost(row)]
        known = len(self.rows) - len(lost)
        shares = sum(kinds.count(kind) for kind in ("between", "at_most", "at_least", "nothing", "beyond",
                                                    "unknown", "no_interval"))  # fmt: skip
        assert shares == (known if known <= 4 else 3)
        assert kinds.count("lost") == (1 if lost and known else 0)
        assert kinds.count("all_lost") == (not known)
        is_ranked = self.found["covariance"] is not None and len(self.rows) > 1
        is_ranked = is_ranked and all(row["low"] is not None for row in self.rows)
        assert sum(kinds.count(k) for k in ("first", "none_first", "unclear")) == is_ranked
        rest = [row for row in self.rows if row not in lost]
        assert ("fakes" in kinds) == any(row["poisoning_up"] is not None for row in rest)
        assert ("cost" in kinds) == any(row["privacy_cost"] is not None for row in rest)
        flags = {flag for row in rest for flag in row["flags"]} & set(WARNED)
        assert kinds.count("flag") == len(flags)

    # Shares.

    @staticmethod
    def is_lost(row: Row) -> bool:
        """No number of reports can estimate it, rather than: its denominator may be zero."""
        return row["estimate"] is None and "unbounded" not in row["flags"]

    def row(self, label: str) -> Row:
        row: Row = self.of_label[label.removeprefix("“").removesuffix("”")]
        return row

    def is_of(self, people: str) -> bool:
        by = set(self.found.get("by") or {})
        within = ["group"] * bool(by - PERIODS) + ["period"] * bool(by & PERIODS)
        where = f"in this {' and '.join(within)} " if within else ""
        return (
            people
            == {
                None: f"all {where}who took part",
                "answered": f"those {where}who answered it",
                "row": f"those {where}with the answer after the bar",
                "column": f"those {where}with the answer after the bar",
            }[self.percent]
        )

    def between(self, label: str, low: str, high: str, people: str) -> bool:
        row = self.row(label)
        assert 0 < row["low"] <= row["high"] < 1
        return is_around((low, high), row["low"], row["high"], 100) and self.is_of(people)

    def at_most(self, label: str, high: str, people: str) -> bool:
        row = self.row(label)
        assert row["low"] <= 0
        end = max(0.0, row["high"])
        return is_around((like(0, high), high), 0, end, 100) and self.is_of(people)

    def at_least(self, label: str, low: str, people: str) -> bool:
        row = self.row(label)
        assert row["high"] >= 1
        end = min(1.0, row["low"])
        return is_around((low, like(100, low)), end, 1, 100) and self.is_of(people)

    def nothing(self, label: str, people: str) -> bool:
        row = self.row(label)
        return row["low"] <= 0 and row["high"] >= 1 and self.is_of(people)

    def beyond(self, label: str, nearest: str) -> bool:
        row = self.row(label)
        return (row["low"] > 1 and nearest == "all") or (row["high"] < 0 and nearest == "none")

    def unknown(self, label: str) -> bool:
        row = self.row(label)
        return (
            row["estimate"] is not None and row["low"] is None and "unbounded" not in row["flags"]
        )

    def no_interval(self, label: str, nobody: str) -> bool:
        is_right = "answered it" if self.percent == "answered" else "has the answer after the bar"
        row = self.row(label)
        return row["low"] is None and "interval_unknown" not in row["flags"] and nobody == is_right

    def lost(self, labels: str) -> bool:
        named = re.findall(self.label, labels)
        return [self.row(label) for label in named] == [r for r in self.rows if self.is_lost(r)]

    def all_lost(self) -> bool:
        return all(self.is_lost(row) for row in self.rows)

    # Ranking.

    def ends(self, label: str, other: str) -> tuple[float, float]:
        i, j = (self.rows.index(self.row(name)) for name in (label, other))
        return lead(self.found, self.level, i, j)

    def quoted(self, row: Row) -> str:
        return next(f"“{label}”" for label, one in self.of_label.items() if one is row)

    def first(self, label: str, *parts: str) -> bool:
        *stated, second = parts
        best = self.row(label)
        others = [row for row in self.rows if row is not best]
        assert all(self.ends(label, self.quoted(row))[0] > 0 for row in others)
        assert self.row(second)["estimate"] == max(row["estimate"] for row in others)
        return are_points(stated, self.ends(label, second))

    def none_first(self, label: str) -> bool:
        best = self.row(label)
        assert len(self.rows) > 2
        assert best["estimate"] == max(row["estimate"] for row in self.rows)
        return all(self.ends(label, self.quoted(r))[0] <= 0 for r in self.rows if r is not best)

    def unclear(self, labels: str, others: str, more: str = "") -> bool:
        others, more = (others, more) if more else ("", others)
        best, *close = re.findall(self.label, labels)
        assert self.row(best)["estimate"] == max(row["estimate"] for row in self.rows)
        rest = [self.quoted(row) for row in self.rows if self.quoted(row) != best]
        unclear = {label for label in rest if self.ends(best, label)[0] <= 0}
        assert more == ("more" if len(unclear) == 1 else "most")
        assert (others != "") == (len(unclear) > len(close))
        return len(close) == min(3, len(unclear)) and unclear.issuperset(close)

    # Versions and reliability.

    def p_value(self, text: str) -> bool:
        return is_p(text, self.rows[0]["versions_p"])

    def combines(self, what: str) -> bool:
        """Return True if the figures are of several of these."""
        parts = [("arms", bool(self.found.get("arms")))]
        parts.insert(0, ("versions", not parts[0][1] or len(self.found["documents"]) > 1))
        return what == " and ".join(name for name, is_so in parts if is_so)

    def differ(self, what: str, p: str, all_of: str, each: str) -> bool:
        assert what == all_of
        assert each in ("of them" if " " in what else what.removesuffix("s"))
        return self.combines(what) and self.p_value(p) and self.rows[0]["versions_p"] < 0.05

    def agree(self, what: str, p: str) -> bool:
        return self.combines(what) and self.p_value(p) and self.rows[0]["versions_p"] >= 0.05

    def cost(self, label: str, more: str, percent: str = "") -> bool:
        row = self.row(label)
        common = [
            r["estimate"] for r in self.rows if None not in (r["privacy_cost"], r["estimate"])
        ]
        assert row["estimate"] == max(common)
        if percent:
            return percent == "99" and row["privacy_cost"] > 0.99
        return abs(100 * row["privacy_cost"] - number(more)) <= 0.5 + TINY <= 99.5

    def fakes(self, points: str) -> bool:
        shifts = [row[end] for row in self.rows for end in ("poisoning_up", "poisoning_down")]
        largest = 100 * max(shift for shift in shifts if shift is not None)
        return (
            largest - TINY <= number(points) < largest + (0.1 + TINY if largest >= 0.95 else 0.01)
        )

    def flag(self, *parts: str) -> bool:
        *labels, sentence = parts
        (named,) = [flag for flag, words in WARNED.items() if words in sentence]
        rows = [row for row in self.rows if not self.is_lost(row)]
        flagged = [row for row in rows if named in row["flags"]]
        if not labels:
            return flagged == rows
        # What is said of some answers names exactly these.
        of = [self.row(label) for label in re.findall(self.label, labels[0])]
        return len(of) == len(flagged) < len(rows) and all(row in flagged for row in of)


PATTERNS: Final = {
    "between": r"(LABEL): between ([\d.]+)% and ([\d.]+)% of (.+)\.",
    "at_most": r"(LABEL): at most ([\d.]+)% of (.+)\.",
    "at_least": r"(LABEL): at least ([\d.]+)% of (.+)\.",
    "nothing": r"(LABEL): anything from none to all \(nothing can be said\) of (.+)\.",
    "beyond": r"(LABEL): the interval lies beyond what is possible; read it as (all|none)\.",
    "unknown": r"(LABEL): there is an estimate, but how far it may be off is unknown\.",
    "no_interval": r"(LABEL): nothing can be said, as perhaps nobody (.+)\.",
    "lost": r"However many answers come in, no share can be estimated of (LABEL(?:, LABEL)*)\.",
    "all_lost": r"This question's shares cannot be estimated, however many answers come in\.",
    "first": r"(LABEL) is the most common answer: (at most )?(?:([\d.]+) to )?([\d.]+) percentage points "
    r"ahead of (LABEL)\.",
    "none_first": r"Which answer is the most common is unclear: the lead of (LABEL) over each other is within the "
    r"noise\.",
    "unclear": r"Which of (LABEL(?:, LABEL)* and LABEL)( and others)? is (more|most) common is unclear\.",
    "differ": r"The (versions|arms|versions and arms) of the survey differ by more than chance usually explains "
    r"\((.+)\)\. These figures are of all (versions|arms|versions and arms) together; look at each (.+) separately\.",
    "agree": r"Taken together, the differences between the (versions|arms|versions and arms) of the survey are not "
    r"distinguishable from noise \((.+)\)\.",
    "cost": r"For (LABEL), privacy costs as much precision as losing (more than )?(\d+)% of the answers would\.",
    "fakes": r"If one report in a hundred were fake, a share could be off by up to ([\d.]+) points\.",
    "flag": r"(?:(LABEL(?:, LABEL)*): )?([^“]*(?:"
    + "|".join(map(re.escape, WARNED.values()))
    + r")[^“]*\.)",
}


def is_p(text: str, p: float) -> bool:
    if text == "p < 0.001":
        return p < 0.001
    return text.startswith("p = ") and abs(number(text[4:]) - p) <= 0.0005 + TINY and p >= 0.001


def check(found: Row, level: float, language: str = "en", percent: str | None = None) -> list[str]:
    """Read all sentences about a question; return their kinds."""
    reader = Reader(found, level, language, percent)
    words = sentences_of(found, level, Words(language), percent)
    reader.read_all(words.findings, words.limits)
    return [kind for kind, _ in reader.said]


# Invented results.

LABELS: Final = (
    "Yes", "No", "50% or more", "“often” (daily)", "a “b” and “c”", "Café \\d+ [x]", "a | b", "Nein, nie.",
)  # fmt: skip
FIGURES: Final = (
    "estimate", "se", "low", "high", "privacy_cost", "poisoning_up", "poisoning_down",
)  # fmt: skip


def some_row(draw: random.Random, place: int, common: dict[str, Any]) -> dict[str, Any]:
    estimate = draw.choice([0.0, 1.0, 0.29, 1 / 3, 0.5, draw.uniform(-0.4, 1.4), draw.random()])
    se = draw.choice([0.0, 10 ** draw.uniform(-6, 0)])
    z = quantile(0.95, 1)
    low, high = (max(z * se, draw.choice([0, 0, 0.01, 0.2])) for _ in range(2))
    german = {"de": f"{LABELS[place]} (de)"} if draw.random() < 0.8 else {}
    row = common | {
        "choice": f"c{place}",
        "label": {**german, "en": LABELS[place]} if draw.random() < 0.8 else {"en": LABELS[place]},
        "estimate": estimate,
        "se": se,
        "low": estimate - low,
        "high": estimate + high,
        "privacy_cost": draw.choice([None, 0.0, 0.4, 0.985, 0.99, 0.9949, 1.0, draw.random()]),
        "poisoning_up": None,
        "poisoning_down": None,
    }
    if draw.random() < 0.8:
        for end in ("poisoning_up", "poisoning_down"):
            row[end] = draw.choice([0.0, 0.02, 0.0095, 10 ** draw.uniform(-6, 2)])
    own = [flag for flag in WARNED if draw.random() < 0.1]
    own = [f for f in own if f not in ("unbounded", "interval_unknown", "not_identifiable")]
    row["flags"] = [*common["flags"], *own]
    return row


def some_gap(draw: random.Random, row: Row, *, is_lost: bool) -> dict[str, Any]:
    """Return the fields of a row that lacks something, {} of most rows."""
    none: dict[str, Any] = dict.fromkeys(FIGURES)
    if is_lost and draw.random() < 0.5:
        return none
    no_ends = {"low": None, "high": None}
    kinds = (
        no_ends | {"se": None, "flags": [*row["flags"], "interval_unknown"]},
        no_ends | {"flags": [*row["flags"], "unbounded"]},
        none | {"flags": [*row["flags"], "unbounded"]},
    )
    return draw.choice(kinds) if draw.random() < 0.1 else {}


def some_question(draw: random.Random) -> dict[str, Any]:
    p = draw.choice([None, None, 0.0004, 0.001, 0.0321, 0.05, 0.4, 1.0])
    flags = ["pooled"] * (p is not None) + ["versions_differ"] * (p is not None and p < 0.05)
    has_lost = draw.random() < 0.15
    common: dict[str, Any] = {
        "versions_p": p,
        "flags": [*flags, *(["not_identifiable"] if has_lost else [])],
    }
    rows = [some_row(draw, place, common) for place in range(draw.randint(1, 8))]
    rows = [row | some_gap(draw, row, is_lost=has_lost) for row in rows]
    size = range(len(rows))
    r = draw.uniform(-1 / max(1, len(rows) - 1), 1)
    errors = [row["se"] or 0.0 for row in rows]
    covariance = [[errors[i] * errors[j] * (1 if i == j else r) for j in size] for i in size]
    by = draw.choice(
        [None, None, {"region": "north"}, {"week": "2026-W01"}, {"a": "b", "days": "1"}]
    )
    is_given = draw.random() < 0.8
    parts = draw.choice(
        [{}, {"arms": ["a", "b"], "documents": ["x"]}, {"arms": ["a"], "documents": ["x", "y"]}]
    )
    return {"rows": rows, "covariance": covariance if is_given else None, "by": by, **parts}


def test_sentences_about_invented_results_are_true() -> None:
    draw, seen = random.Random(5), set[str]()
    for _ in range(700):
        found, percent = some_question(draw), draw.choice([None, None, "row", "column", "answered"])
        seen.update(
            check(found, draw.choice([0.8, 0.95, 0.999]), draw.choice(["en", "de", "fr"]), percent)
        )
    assert seen == set(PATTERNS)


def test_sentences_about_clear_and_close_results_are_true() -> None:
    """Errors of the size of the differences between the shares, where a wrong level would be noticed."""
    draw, seen = random.Random(6), list[str]()
    for _ in range(400):
        size, z = draw.randint(2, 5), quantile(0.95, 1)
        shares = [draw.random() for _ in range(size)]
        shares = [share / sum(shares) for share in shares]
        n = 10 ** draw.uniform(1.5, 4)
        common: dict[str, Any] = {
            "versions_p": None,
            "flags": [],
            "privacy_cost": 0.5,
            "poisoning_up": 0.02,
            "poisoning_down": 0.03,
        }
        rows = []
        for place, share in enumerate(shares):
            se = math.sqrt(share * (1 - share) / n)
            ends = {"low": share - z * se, "high": share + z * se + 1 / n}
            labelled = {
                "choice": f"c{place}",
                "label": {"en": LABELS[place]},
                "estimate": share,
                "se": se,
            }
            rows.append(common | labelled | ends)
        cov = [[(a * (a == b) - a * b) / n for b in shares] for a in shares]
        seen += check({"rows": rows, "covariance": cov}, 0.95)
    assert min(seen.count(kind) for kind in ("first", "none_first", "unclear")) > 20


# Groups.


def sorted_out(rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    """Return the differences of pairs of groups, those with an interval, and those that are not 0, largest first."""
    pairs: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["reference"]:
            pairs.setdefault((row["by"], row["reference"]), []).append(row)
    # The last of two choices says everything of both, if one is more as much as the other is less.
    both = [
        [of[1] if of[1]["low_all"] is not None else of[0]]
        if len(of) == 2 and math.isclose(of[0]["difference"], -of[1]["difference"], abs_tol=TINY)
        else of
        for of in pairs.values()
    ]
    single = [row for of in both for row in of]
    tested = [row for row in single if row["low_all"] is not None or row["p_holm"] is not None]
    clear = [
        row
        for row in tested
        if (
            row["p_holm"] < 0.05
            if row["low_all"] is None
            else not row["low_all"] <= 0 <= row["high_all"]
        )
    ]
    clear.sort(key=lambda row: abs(row["difference"]), reverse=True)
    return single, tested, clear


DIFFERENCE: Final = re.compile(
    r"“(.+)” is more common in (.+) than in (.+), by (at most )?(?:([\d.]+) to )?([\d.]+) percentage points\."
)
HIGHER: Final = re.compile(r"The mean is higher in (.+) than in (.+), by ([\d.]+) to ([\d.]+)\.")


def is_true_of(row: Row, sentence: str, names: Callable[[str], str]) -> bool:
    is_number = row["unit"] == "number"
    if row["low_all"] is None:
        return is_by_p(row, sentence, names)
    match = (HIGHER if is_number else DIFFERENCE).fullmatch(sentence)
    assert match, sentence
    *label, higher, lower = match.groups()[: 2 if is_number else 3]
    of = [
        "all groups together" if group == "mean" else f"“{names(group)}”"
        for group in (row["by"], row["reference"])
    ]
    ends = (row["low_all"], row["high_all"])
    if [higher, lower] != of:
        assert [lower, higher] == of
        ends = (-ends[1], -ends[0])
    assert ends[0] > 0
    stated = [part for part in match.groups()[len(label) + 2 :] if part is not None]
    if is_number:
        return is_around((stated[0], stated[1]), *ends, 1)
    assert label == [row["label"]["en"]]
    return are_points(stated, ends)


def is_by_p(row: Row, sentence: str, names: Callable[[str], str]) -> bool:
    """A mean among people who answered has no simultaneous interval, but an adjusted p-value."""
    match = re.fullmatch(
        r"The mean is higher in (.+) than in (.+) \((p .+), adjusted for all tests of the question\)\.",
        sentence,
    )
    assert match, sentence
    of = [
        "all groups together" if group == "mean" else f"“{names(group)}”"
        for group in (row["by"], row["reference"])
    ]
    expected = of if row["difference"] > 0 else of[::-1]
    return (
        [match[1], match[2]] == expected and is_p(match[3], row["p_holm"]) and row["p_holm"] < 0.05
    )


def check_groups(rows: Sequence[Row], names: Callable[[str], str]) -> list[str]:
    """Read the sentences about differences between groups; return their kinds."""
    sentences = list(group_sentences(rows, names, EN))
    single, tested, clear = sorted_out(rows)
    if not single:
        assert sentences == []
        return []
    kinds = []
    if len(single) > len(tested):
        words = re.fullmatch(
            r"Nothing is said of (\d+) (further )?(differences?), for want of an interval\.",
            sentences.pop(),
        )
        assert words
        assert int(words[1]) == len(single) - len(tested)
        assert (words[2] is None) == (not tested)
        assert (words[3] == "difference") == (words[1] == "1")
        kinds.append("untested")
    if not tested:
        assert sentences == []
        return kinds
    if not clear:
        none = re.fullmatch(
            r"None of the (\d+) differences tested is distinguishable from chance\.", sentences[0]
        )
        assert (
            none or sentences[0] == "The one difference tested is not distinguishable from chance."
        )
        assert len(tested) == (int(none[1]) if none else 1)
        assert len(sentences) == 1
        return [*kinds, "none"]
    if len(tested) > len(clear):
        rest = re.fullmatch(
            r"The other (?:(\d+) differences tested are|difference tested is) not distinguishable from chance\.",
            sentences.pop(),
        )
        assert rest
        assert int(rest[1] or 1) == len(tested) - len(clear)
        assert rest[1] != "1"
        kinds.append("others")
    if len(clear) > 4:
        more = re.fullmatch(
            r"And (\d+) further differences are distinguishable from chance\.", sentences.pop()
        )
        assert more
        assert int(more[1]) == len(clear) - 3
        kinds.append("more")
    assert len(sentences) == (len(clear) if len(clear) <= 4 else 3)
    for sentence, row in zip(sentences, clear, strict=False):
        assert is_true_of(row, sentence, names), (sentence, row)
    return [*kinds, "clear"]


def some_comparisons(draw: random.Random) -> list[dict[str, Any]]:
    choices, groups, unit = draw.randint(1, 4), draw.randint(2, 5), "share"
    if draw.random() < 0.2:
        choices, unit = 1, "number"
    reference = draw.choice(["all", "mean", "", "first"])
    pairs = {
        "all": [(j, i) for j in range(groups) for i in range(j)],
        "first": [(j, 0) for j in range(1, groups)],
    }
    named = [(f"r={j}", f"r={i}") for j, i in pairs.get(reference, [])] or [
        (f"r={j}", reference) for j in range(groups)
    ]
    scale, rows = 10 ** draw.uniform(-3, 0.2), []
    for by, of in named:
        first = draw.uniform(-1, 1) * scale
        for c in range(choices):
            difference = (
                -first if c and choices == 2 else first if not c else draw.uniform(-1, 1) * scale
            )
            half = draw.choice([0.0, scale * draw.random(), 2 * scale])
            is_known = draw.random() < 0.9
            rows.append({
                "choice": "mean" if unit == "number" else f"c{c}", "label": {"en": LABELS[c]}, "by": by,
                "reference": of, "difference": difference, "unit": unit,
                "p_holm": draw.choice([None, 0.0004, 0.0499, 0.05, 0.7]) if unit == "number" else None,
                "low_all": difference - half if is_known else None,
                "high_all": difference + half if is_known else None,
            })  # fmt: skip
    # What cannot be estimated has no row.
    return [row for row in rows if draw.random() < 0.95]


def test_sentences_about_invented_trends_are_true() -> None:
    """A line rises or falls only where its interval excludes 0; none of them does where that is said."""
    draw, seen = random.Random(9), set[str]()
    line = re.compile(
        r"(?:“(.+)”|The mean) (rises|falls) by (at most )?(?:([\d.]+) to )?([\d.]+)( percentage points)? a month, "
        r"along a straight line\."
    )
    by_p = re.compile(
        r"The mean (rises|falls) along a straight line \((p .+), adjusted for all tests of the question\)\."
    )
    for _ in range(400):
        rows = [row | {"reference": ""} for row in some_comparisons(draw) if row["by"] == "r=1"]
        sentences = trend_sentences(rows, "month", EN)
        _, tested, clear = sorted_out([row | {"reference": "x"} for row in rows])
        if not clear:
            none = "No rise or fall along a straight line is distinguishable from chance."
            assert sentences == ((none,) if tested else ())
            seen.add("none" if tested else "untested")
            continue
        assert len(sentences) == min(4, len(clear))
        for sentence, row in zip(sentences, clear, strict=False):
            if row["low_all"] is None:
                stated_p = by_p.fullmatch(sentence)
                assert stated_p
                assert (stated_p[1] == "rises") == (row["difference"] > 0)
                assert is_p(stated_p[2], row["p_holm"])
                seen.add("by p")
                continue
            match = line.fullmatch(sentence)
            assert match, sentence
            label, moves, *stated, points = match.groups()
            assert (points is None) == (row["unit"] == "number") == (label is None)
            assert label in (None, row["label"]["en"])
            ends = (row["low_all"], row["high_all"])
            ends = ends if moves == "rises" else (-ends[1], -ends[0])
            assert ends[0] > 0
            parts = [part for part in stated if part is not None]
            if points is None:
                assert is_around((parts[0], parts[1]), *ends, 1)
            else:
                assert are_points(parts, ends)
            seen.add(moves)
    assert seen == {"none", "untested", "rises", "falls", "by p"}


def test_a_relation_is_stated_only_where_chance_hardly_explains_it() -> None:
    untested = "Whether the answers to the two questions depend on each other cannot be tested."
    assert [association_sentence(test, EN) for test in (None, {"p": None})] == [untested] * 2
    for p in (0.0, 0.0004, 0.001, 0.0321, 0.0499, 0.05, 0.0501, 0.3, 1.0):
        words = association_sentence({"p": p}, EN)
        match = re.search(r"\((p [<=] [\d.]+)\)\.$", words)
        assert match
        assert is_p(match[1], p)
        assert words.startswith("The answers to the two questions are related: ") == (p < 0.05)
        assert ("is not distinguishable from chance" in words) == (p >= 0.05)


def test_sentences_about_invented_differences_are_true() -> None:
    draw, seen = random.Random(7), set[str]()
    for _ in range(600):
        seen.update(
            check_groups(
                some_comparisons(draw), {f"r={i}": f"North {i}% “x”" for i in range(9)}.__getitem__
            )
        )
    assert seen == {"untested", "none", "others", "more", "clear"}


# Scales and completion.


def check_scale(rows: Sequence[Row]) -> None:
    named = {row["choice"]: row for row in rows}
    sentences = list(scale_sentences(rows, EN))
    mean, median = named.get("mean"), named.get("median")
    figures = r"(−?[\d.]+) \((−?[\d.]+) to (−?[\d.]+)\)\."
    if mean is not None and mean["low"] is not None:
        match = re.fullmatch("Mean of the answers with a score: " + figures, sentences.pop(0))
        assert match
        value, low, high = match.groups()
        assert is_around((low, high), mean["low"], mean["high"], 1), match[0]
        assert number(low) <= number(value) <= number(high)
        last = 10.0 ** -len(value.partition(".")[2])
        assert abs(number(value) - mean["estimate"]) <= last / 2 + TINY
    if median is not None and median["estimate"] is not None:
        words = "Median of the answers with a score:" if mean else "The median's range begins at"
        match = re.fullmatch(f"{words} {figures}", sentences.pop(0))
        assert match
        exact = [Fraction(text.replace("−", "-")) for text in match.groups()]
        assert list(map(float, exact)) == [median[key] for key in ("estimate", "low", "high")]
    assert sentences == []


def test_sentences_about_invented_scales_are_true() -> None:
    draw = random.Random(8)
    for _ in range(300):
        numbers = sorted(
            round(draw.uniform(-1, 1) * 10 ** draw.randint(0, 6), draw.randint(0, 6))
            for _ in range(3)
        )
        low, value, high = sorted(draw.gauss(2, 10 ** draw.uniform(-4, 5)) for _ in range(3))
        rows: list[Row] = [{"choice": "up to 3", "estimate": 0.4, "low": 0.3, "high": 0.5}]
        for name, ends in (("mean", (low, value, high)), ("median", numbers)):
            known = ends if draw.random() < 0.8 else (None, value if name == "mean" else None, None)
            if draw.random() < 0.75:
                rows.append(
                    {"choice": name, "low": known[0], "estimate": known[1], "high": known[2]}
                )
        check_scale(rows)


def check_completion(found: Row) -> None:
    words, p, parts = completion_words(found), found["test"]["p"], found["parts"]
    if p is None:
        is_whole = bool(parts) and min(part["chance"] for part in parts) == 1
        assert words == (
            "Every report is about every question, so there is nothing to test."
            if is_whole
            else "There are too few reports to test this."
        )
        return
    many = re.fullmatch(
        r"Chance makes differences as large as these in at least 5 of 100 surveys \((.+)\)\.", words
    )
    few = re.fullmatch(
        r"Chance makes differences as large as these in fewer than 5 of 100 surveys \((.+?)\), more often if one looks "
        r"after every release\. They can mean that (.+)\.", words)  # fmt: skip
    match = many if p >= 0.05 else few
    assert match, words
    assert is_p(match[1], p)
    if few:
        assert ("people gave up" in few[2]) == (found["ask"] == "drawn")
        assert ("everybody is asked everything" in few[2]) == (found["ask"] == "all")


@pytest.mark.parametrize("p", [None, 0.0, 0.0009, 0.001, 0.0499, 0.05, 0.7, 1.0])
@pytest.mark.parametrize("ask", ["drawn", "all"])
def test_sentences_about_completion_are_true(ask: str, p: float | None) -> None:
    for chances in ((), (1, 1), (1, 0.5)):
        parts = [{"chance": chance} for chance in chances]
        check_completion({"ask": ask, "test": {"p": p}, "parts": parts})


def test_sentences_about_the_completion_of_the_analysis_are_true() -> None:
    for document in (DRAWN, ALL):
        for finish in ((1, 1, 1, 1), (0.99, 1, 1, 1), (0.5, 1, 1, 1)):
            for n in (5, 900):
                for found in completions(of_people(document, n, finish, (0.3,) * 4)):
                    check_completion(found)


# Denial.

SHARE: Final = r"([\d.]+)%"
DENIED: Final = (
    rf"“(.+)”: the share(, corrected for random answers,)? is (?:about {SHARE}|between {SHARE} and {SHARE}) "
    rf"\((?:interval {SHARE} to {SHARE}|(no interval)|(beyond what is possible))\)\."
)


def is_rounded(text: str, value: float) -> bool:
    """Whether a text is a value, cut to 0 to 1, to the nearest of its last digit."""
    last = 10.0 ** -len(text.partition(".")[2])
    return abs(number(text) - 100 * min(1.0, max(0.0, value))) <= last / 2 + TINY


def check_denied(rows: Sequence[Row]) -> list[str]:
    """Read the sentences about denial; return how each of them states a share."""
    said = list(denial_sentences([Estimate.from_json(row, "en", ("en",)) for row in rows], EN))
    stated = [row for row in rows if row["denied_estimate"] is not None]
    kinds = []
    for sentence, row in zip(said, stated, strict=True):
        match = re.fullmatch(DENIED, sentence)
        assert match, sentence
        label, corrected, about, least, most, low, high, unknown, beyond = match.groups()
        texts = row["label"]
        assert label == (texts.get("en") or next(iter(texts.values())))
        names = ("corrected", "corrected_low") if corrected else ("estimate", "low")
        assert bool(corrected) == (row["corrected"] is not None)
        value, end = (row[name] for name in names)
        assert is_rounded(about or least, value), (sentence, row)
        assert is_rounded(about or most, row["denied_estimate"]), (sentence, row)
        if about is None:
            assert number(least) < number(most)
        ends = end, row["denied_high"]
        if unknown:
            assert None in ends
        elif beyond:
            assert ends[0] > 1 or ends[1] < 0
        else:
            possible = [min(1.0, max(0.0, one)) for one in ends]
            assert is_around((low, high), possible[0], possible[1], 100), (sentence, row)
        kinds.append("unknown" if unknown else "beyond" if beyond else "about" if about else "two")
    return kinds


def test_sentences_about_invented_denial_are_true() -> None:
    draw, seen = random.Random(9), set[str]()
    base = {field.name: None for field in fields(Estimate)} | {"documents": (), "flags": ()}
    for _ in range(800):
        denial = draw.choice([0.0, 0.05, 0.2, 0.9])
        rows: list[Row] = []
        for place in range(draw.randint(1, 5)):
            row: dict[str, Any] = dict(base, level=0.95, unit="share", n=100)
            row |= some_row(draw, place, {"flags": []})
            if draw.random() < 0.1:
                row |= {"low": None, "high": None}
            prefix = "" if draw.random() < 0.6 else "corrected_"
            if prefix:
                row |= {"corrected": row["estimate"], "corrected_low": row["low"]}
                row |= {"corrected_high": row["high"], "estimate": 0.77, "low": 0.7, "high": 0.9}
            value, high = row["corrected" if prefix else "estimate"], row[f"{prefix}high"]
            if draw.random() < 0.9:
                row["denied_estimate"] = value / (1 - denial)
                top = None if high is None else min(1.0, high / (1 - denial))
                row["denied_high"] = None if high is None or top is None else max(high, top)
            rows.append(row)
        seen |= set(check_denied(rows))
    assert seen == {"unknown", "beyond", "about", "two"}


def test_sentences_about_denial_in_the_analysis_are_true() -> None:
    q, kinds = question("q", 4), set[str]()
    for mechanism in MECHANISMS.values():
        document = document_of((block_about(mechanism, q),))
        for counts in COUNTS.values():
            for denial, method in product((0.0, 0.2, 0.9), ("score", "clt", "kl")):
                found = result(
                    received(document, {"": counts}),
                    targets="shares",
                    denial=denial,
                    method=method,
                    level=0.8,
                )
                kinds |= set(check_denied(found["questions"][0]["rows"]))
    assert kinds >= {"about", "two"}
    # Nothing is said of figures that are no share of an answer.
    scored = document_of((block_about(MECHANISMS["strong"], question("q", 4, **SCORES)),))
    (one,) = result(received(scored, {"": (60, 50, 40, 50)}), targets="scales", denial=0.2)[
        "questions"
    ]
    rows = [Estimate.from_json(row, "en", ("en",)) for row in one["rows"]]
    assert not any("“Mean”" in said or "“Median”" in said for said in denial_sentences(rows, EN))


# Results of the analysis.

SCORES: Final = {"score": [Fraction(x) for x in (-2, 0, 1, 5)]}
MECHANISMS: Final = {"weak": grr(4, 0.4), "strong": grr(4, 4), "skewed": LIP, "open": grr(4, 25)}
COUNTS: Final = {
    "even": (52, 48, 50, 50), "tie": (400, 400, 100, 100), "alike": (60, 0, 0, 0), "clear": (9000, 2000, 800, 100),
}  # fmt: skip


def results_of(mechanism: str, counts: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield requests with their results."""
    q = question("q", 4, **SCORES)
    region = question("region", 3)
    first = document_of((block_about(MECHANISMS[mechanism], q),), (region,))
    of = COUNTS[counts]
    groups = {"c0": of, "c1": of[::-1], "c2": [max(n, 9) for n in of]}
    sources = [
        received(first, {**groups, "": [sum(c) for c in zip(*groups.values(), strict=True)]})
    ]
    for asked in (
        {},
        {"method": "kl", "level": 0.8},
        {"method": "clt", "level": 0.999},
        {"method": "simultaneous"},
    ):
        yield asked, result(*sources, targets="shares", **asked)
    for compare in ("all", "mean", "previous"):
        yield {}, result(received(first, groups), by="region", compare=compare, targets="shares")
    yield {}, result(*sources, targets="scales")
    second = document_of((block_about(grr(4, 1), q),), (region,), version=2)
    yield {}, result(*sources, received(second, {"": of[::-1]}), targets="shares")


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sentences_about_results_of_the_analysis_are_true(mechanism: str, counts: str) -> None:
    for asked, found in results_of(mechanism, counts):
        for one in found["questions"]:
            if one["status"] == "insufficient":
                continue
            if any(row["choice"] == "median" for row in one["rows"]):
                check_scale(one["rows"])
            else:
                check(one, asked.get("level", 0.95))
        for compared in found["comparisons"]:
            check_groups(compared["rows"], lambda label: label.removeprefix("region="))


@pytest.mark.parametrize("percent", ["row", "column", "answered"])
def test_sentences_about_percentages_of_the_analysis_are_true(percent: str) -> None:
    a, b = question("a", 2), question("b", 2, role=[None, "prefer-not-to-say"])
    both = document_of((block_about(grr(4, 1), a, b),))
    for counts in ((400, 100, 100, 400), (52, 48, 50, 50), (900, 0, 0, 0), (30, 0, 30, 0)):
        targets = "shares" if percent == "answered" else ["a", "b"]
        for method in ("score", "kl"):
            found = result(
                received(both, {"": counts}), targets=targets, percent=percent, method=method
            )
            for one in found["questions"]:
                check(one, 0.95, percent=percent)
