# SPDX-License-Identifier: Apache-2.0
"""Summary of a whole survey before it is published: what respondents read, and what the results will be.

The words for respondents are those of `explain`, which devices show; nothing is said twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import floor, hypot, log10
from typing import Final

from frankly_analyst.plots import percent
from frankly_design.form.joint_tables import comparable_pairs, excess_in_words
from frankly_design.requests.whole_report import (
    LevelFactors,
    cost_share_words,
    cost_words,
    level_factors,
)
from frankly_protocol.audit import ReportLevel
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.explain import Explanation, Section, explain
from frankly_protocol.explanation.label import of_answers
from frankly_protocol.questions import CONTRAST, DISTRIBUTION, MEAN

from frankly_server.surveys.asked import asked_in_words
from frankly_server.surveys.correction import correction_in_words
from frankly_server.surveys.devices import warnings_of
from frankly_server.surveys.live import cells_of, expected_pending
from frankly_server.surveys.preview import stated_of, wanted_plan
from frankly_server.surveys.trial import ExpectedRow, expected_rows
from frankly_server.surveys.verdicts import verdict

_FIGURES: Final = {
    "shares": "share of each answer",
    MEAN: "mean",
    DISTRIBUTION: "share at or below each value",
    CONTRAST: "the contrast asked for",
}
_MOST_NAMED: Final = 8
_PERIODS: Final = {"day": "once a day, after midnight (UTC)", "hour": "once an hour"}
_FOUND: Final = 2.8016 / 1.9600  # the sum of the quantiles of 97.5 % and 80 %, by the first
NO_RESULT: Final = "no result"
UNKNOWN: Final = "cannot be estimated"


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """What a report tells about some questions, as respondents read it. names : of the questions."""

    names: tuple[str, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadSection:
    """Lines of the full explanation under one heading."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """What respondents read, in one language of the document.

    own_language : of the survey's own words. language : of the sentences; English if the SDK has no
    texts in the survey's language. own_words : the survey's own text before the questions, or "".
    named : of the notes, those on single answers that are protected more than others. how_to_read : what
    the sentences about questions mean by a result that fits. overall : the others about all questions.
    sent, limits, unprotected : sections of the full explanation: what leaves the device, bounds of the
    whole report, and what is not protected.
    """

    own_language: str
    language: str
    title: str
    own_words: str
    summary: tuple[str, ...]
    groups: tuple[ReadGroup, ...]
    named: tuple[str, ...]
    how_to_read: tuple[str, ...]
    overall: tuple[str, ...]
    sent: ReadSection
    limits: ReadSection
    unprotected: ReadSection

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every sentence of the page of publishing, in its order."""
        grouped = (text for group in self.groups for text in (*group.names, *group.sentences))
        return (*self.summary, *self.overall, *self.how_to_read, *grouped, *self.limits.lines)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """What to expect of a question or table.

    questions : ids. text : its questions. figure : what is estimated, in words. about : number of answers
    about it, of those expected. margin : such as ±13.0 points; `NO_RESULT` or `UNKNOWN` without one. word : of
    `verdicts`, "" for figures that are not shares. points : that margin in percentage points, None without a word.
    """

    questions: tuple[str, ...]
    text: str
    figure: str
    about: int
    margin: str
    word: str
    points: float | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole survey in plain texts.

    reads : what respondents read, by arm; "" without arms. people : number of people expected.
    asked : how many questions a person is asked. results : when
    results appear, in sentences. correction : what the correction by anchors costs, () without one.
    arms : which differences between arms can be expected to be found.
    pairs : which two questions can be compared, "" if there is only one. factors : bounds of a whole
    report by secret. cost, expert_cost : what answering costs a device, without and with nats.
    warnings : of `warnings_of`. quality : of the form's design, for experts.
    """

    reads: tuple[tuple[str, ReadTexts], ...]
    people: int
    min_reports: int
    asked: str
    rows: tuple[SummaryRow, ...]
    results: tuple[str, ...]
    correction: tuple[str, ...]
    arms: tuple[str, ...]
    pairs: str
    factors: tuple[LevelFactors, ...]
    has_strata: bool
    cost: str
    expert_cost: str
    warnings: tuple[str, ...]
    quality: tuple[str, ...]

    @property
    def read(self) -> ReadTexts:
        """What respondents read; of arms, the first of them."""
        return self.reads[0][1]

    @property
    def has_no_result(self) -> bool:
        """True if some question will have no result."""
        return any(row.margin == NO_RESULT for row in self.rows)


def document_summary(payload: bytes, people: int, pairs: Sequence[tuple[str, str]] = ()) -> Summary:
    """Return the summary of a document, of which `payload` are the bytes; for a process of its own."""
    return summary_of(SurveyDocument.parse(payload), people, pairs)


def summary_of(
    document: SurveyDocument, people: int, pairs: Sequence[tuple[str, str]] = ()
) -> Summary:
    """Return the summary of a document.

    people : number of people expected to answer. pairs : of a draft's wanted tables, see
    `trial.expected_rows`.
    """
    level = document.report_level
    return Summary(
        reads=tuple(read_by_arm(document)),
        people=people,
        min_reports=document.min_reports,
        asked=asked_in_words(document),
        rows=tuple(summary_rows(document, people, pairs)),
        results=tuple(_results(document)),
        correction=tuple(correction_in_words(document)),
        arms=tuple(_found_between(document, people)),
        pairs="" if document.views else _pairs(document),
        factors=tuple(level_factors(level)),
        has_strata=bool(document.strata),
        cost=cost_share_words(level),
        expert_cost=cost_words(level),
        warnings=warnings_of(document, in_nats=False),
        quality=tuple(_quality(document)),
    )


def read_texts(document: SurveyDocument, language: str | None = None) -> ReadTexts:
    """Return what respondents read, in one of the document's languages, the first by default.

    Of arms, that of the one that costs most.
    """
    one = max(document.versions, key=lambda version: _cost(version.report_level))
    return _read(one, explain(one, one.report_level, (), language), language)


def _cost(level: ReportLevel) -> tuple[bool, Fraction]:
    """Return a cost to compare; an infinite one is the largest."""
    return level.cost.odds is None, level.cost.odds or Fraction(0)


def read_by_arm(document: SurveyDocument) -> Iterator[tuple[str, ReadTexts]]:
    """Yield what respondents read in each arm, with its name and its chance; "" without arms."""
    for version in document.versions:
        yield arm_name(version), read_texts(version)


def arm_name(version: SurveyDocument) -> str:
    """Return the name and the chance of the arm that a view is of; "" for a document without arms."""
    if version.arms is None or version.arm is None:
        return ""
    share = next(arm.share for arm in version.arms.arms if arm.id == version.arm)
    return f"Arm {version.arm}, which {percent(float(share))} of the devices draw"


def _read(
    document: SurveyDocument, explanation: Explanation, language: str | None = None
) -> ReadTexts:
    own = language or document.languages[0]
    fitting = Texts(explanation.language, "label").say("fitting")
    # In the order of `explain`: sent, questions, limits, open, technical; an arm without blocks lacks two.
    sent, *bounds, unprotected, _ = map(_section, explanation.details)
    limits = bounds[1] if bounds else ReadSection("", ())
    return ReadTexts(
        own_language=own,
        language=explanation.language,
        title=explanation.title,
        own_words=(document.consent or {}).get(own, ""),
        summary=explanation.summary,
        groups=tuple(
            ReadGroup(one.names, (*one.sentences, *one.notes)) for one in explanation.consequences
        ),
        named=tuple(_named(document, own, explanation.language)),
        how_to_read=tuple(one for one in explanation.overall if one == fitting),
        overall=tuple(one for one in explanation.overall if one != fitting),
        sent=sent,
        limits=limits,
        unprotected=unprotected,
    )


def _named(document: SurveyDocument, own: str, language: str) -> Iterator[str]:
    texts = Texts(language, "label")
    for block in document.blocks:
        if len(block.questions) == 1:
            (question,) = block.questions
            yield from of_answers(question, block.promises, block.ceiling, own, texts)


def _section(section: Section) -> ReadSection:
    lines = (line.strip() for text in section.paragraphs for line in text.split("\n"))
    return ReadSection(section.heading, tuple(lines))


def summary_rows(
    document: SurveyDocument, people: int, pairs: Sequence[tuple[str, str]]
) -> list[SummaryRow]:
    """Return a row for each question, in the document's order, then for tables of several."""
    order = [(question,) for question in document.questions]
    rows = sorted(
        expected_rows(document, pairs, (people,)),
        key=lambda row: order.index(row.questions) if row.questions in order else len(order),
    )
    return [_row(row, document.min_reports) for row in rows]


def _row(row: ExpectedRow, min_reports: int) -> SummaryRow:
    (about,), (margin,) = row.about, row.margins
    shown = SummaryRow(row.questions, row.text, _FIGURES[row.figure], about, UNKNOWN, "")
    if about < min_reports:
        return replace(shown, margin=NO_RESULT)
    if margin is None:
        return shown
    if row.is_number:
        return replace(shown, margin=f"±{_figure(margin)}")
    points = f"±{margin * 100:.1f} points"
    if row.figure == CONTRAST:
        return replace(shown, margin=points)
    return replace(shown, margin=points, word=verdict(margin), points=round(100 * margin, 1))


def _figure(margin: float) -> str:
    """Return a margin in the unit of a number, with two significant digits."""
    decimals = max(0, 1 - floor(log10(margin))) if margin > 0 else 0
    return f"{margin:,.{decimals}f}"


def releases(document: SurveyDocument) -> tuple[str, str]:
    """Return when a question has a result, and when and how answers are released."""
    same = " that have the same answers to the public questions" if document.strata else ""
    if document.arms is not None:
        # Answers of different arms are never counted together for a release.
        same = " of one arm" + (
            " that have the same answers to its public questions (those that another arm protects do not count)"
            if document.strata
            else ""
        )
    return (
        f"A question has a result once {document.min_reports:,} released answers are about it.",
        f"Answers are released {_PERIODS[document.release_every]}, never one by one: at least "
        f"{document.release_step} together{same}.",
    )


def _found_between(document: SurveyDocument, people: int) -> Iterator[str]:
    """Yield, for each question of several arms, the differences that a test is likely to find.

    Margins are 1.96 standard errors; a difference is found in 80 of 100 surveys if it is 2.80 of its own.
    """
    margins: dict[str, list[tuple[str, float]]] = {}
    texts, language = dict[str, str](), document.languages[0]
    for stated in stated_of(document):
        plan, about = wanted_plan(stated).plan, int(people * stated.share)
        if (
            stated.arm
            and stated.figure == "shares"
            and len(stated.questions) == 1
            and plan
            and about
        ):
            asked = stated.questions[0]
            texts.setdefault(asked.id, asked.text[language])
            named = margins.setdefault(asked.id, [])
            named.append((stated.arm, plan.margin(about)))
    for question, arms in margins.items():
        text = texts[question]
        for (first, m), (second, other) in combinations(arms, 2):
            points = 100 * hypot(m, other) * _FOUND
            yield (
                f"“{text}”: a difference of {points:.1f} points between the arms {first} and {second} is found in "
                "about 80 of 100 such surveys, a larger one more often."
            )


def _results(document: SurveyDocument) -> Iterator[str]:
    first, release = releases(document)
    waiting = sum(expected_pending(cells, document.release_step) for cells in cells_of(document))
    yield first
    yield f"{release} About {waiting:,} are expected to wait at any time."


def _pairs(document: SurveyDocument) -> str:
    """Return a sentence about the joint tables of two questions; "" if there is only one question."""
    explanation = explain(document, document.report_level, ())
    names = {
        question: name
        for one in explanation.consequences
        for question, name in zip(one.questions, one.names, strict=True)
    }
    every = list(combinations([q for q in document.questions.values() if not q.is_repeated], 2))
    if not every:
        return ""
    comparable = comparable_pairs(document)
    if len(comparable) == len(every):
        return "Any two questions can be compared: results then have a table of both."
    if not comparable:
        return (
            "No two questions can be compared. To compare a pair, name it under “Compare two questions” on the page "
            "of the questions, before you publish: later only a new version helps."
        )
    listed = "; ".join(f"“{names[a]}” with “{names[b]}”" for a, b in comparable[:_MOST_NAMED])
    others = len(comparable) - _MOST_NAMED
    more = f"; and {others:,} more" if others > 0 else ""
    return f"Of two questions, only these can be compared: {listed}{more}."


def _quality(document: SurveyDocument) -> list[str]:
    certificates = [
        block.certificate
        for block in document.blocks
        if block.form is not None and block.certificate is not None
    ]
    return [
        excess_in_words(float(one.value), float(one.bound))
        for one in certificates
        if one.bound is not None and float(one.bound) > 0
    ]
