# SPDX-License-Identifier: Apache-2.0
"""Sections of the estimates page, based on a result of the analysis."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from frankly_analyst import Estimate, RandomAnswers
from frankly_analyst.charts import Scale as ChartScale
from frankly_analyst.drawing import draw
from frankly_analyst.plots import NUMBER, percent
from frankly_analyst.shown import Range
from frankly_analyst.svg import Svg
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import CONTRAST, MEAN, Question, decimal_text

from frankly_server.analysis.periods import DAYS, PERIODS
from frankly_server.analysis.request import VERSION
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.sentences import (
    Sentences,
    flag_sentences,
    group_sentences,
    is_trend,
    scale_sentences,
    sentences_of,
    sources_words,
    trend_sentences,
)
from frankly_server.web.results.words import Words

_MOST_DIFFERENCES: Final = 6
"""Largest number of differences between groups that are stated one by one."""
FigureRows = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""Questions of a result about scales, or about wanted figures, by their id and group name."""


@dataclass(frozen=True, slots=True)
class EstimatesTable:
    """One table of numbers: a question, or a question within one group.

    name : name of the group, or "". n : number of reports used for the question. wanted : rows of the
    figure for which the question is asked; () for its shares. product : shares
    of the selected product, by choice; None if the page shows unbiased estimates. intervals :
    intervals of these shares, [low, high] by choice. random_answers : sentences about people who answer
    at random, and about the law that is assumed of them; () without an instructed item. labels : of
    the rows. figures : the figures to draw, of the selected product. scale_said, scale_rows :
    sentences about the mean and the median, and the rows of the scale. warned : rows of the figures, if
    they are no shares. words : the language.
    """

    name: str
    status: str
    n: int
    received: int
    needed: int
    rows: Sequence[Mapping[str, Any]]
    product: Mapping[str, float] | None
    intervals: Mapping[str, tuple[float, float]]
    sentences: Sentences
    words: Words
    wanted: Sequence[Mapping[str, Any]] = ()
    random_answers: Sequence[str] = ()
    labels: Sequence[str] = ()
    figures: Sequence[Estimate] = ()
    scale_said: Sequence[str] = ()
    scale_rows: Sequence[Mapping[str, Any]] = ()
    warned: Sequence[Mapping[str, Any]] = ()

    @property
    def limits(self) -> Sequence[str]:
        """Return how far the figures can be trusted."""
        # What is said of shares is not true of other figures of the question.
        return (
            tuple(flag_sentences(self.warned, self.words)) if self.warned else self.sentences.limits
        )

    @property
    def mean(self) -> list[Estimate]:
        """Return the mean of a scale, [] without one."""
        return [Estimate.from_json(row, None, ()) for row in _means_of(self)]

    @property
    def has_corrected(self) -> bool:
        """True if some row has a corrected figure."""
        return any(row["corrected"] is not None for row in (*self.rows, *self.wanted))


@dataclass(frozen=True, slots=True)
class Differences:
    """Sentences that compare groups. short : the largest differences. every : all of them."""

    short: tuple[str, ...] = ()
    every: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A question with its groups and sentences.

    found : its results of the analysis, by group: of shares, or with the wanted figures as their rows.
    differences, mean_differences : how the groups' shares differ, and their means. documents : the versions
    whose reports are in these results, oldest first. names : of groups. corner : the questions of a table's
    rows and columns.
    """

    text: str
    groups: Sequence[EstimatesTable]
    found: Sequence[Mapping[str, Any]]
    differences: Differences
    mean_differences: Differences
    documents: Sequence[SurveyDocument]
    names: "Names"
    corner: tuple[str, str] | None = None

    @property
    def asked(self) -> list[tuple[SurveyDocument, Question]]:
        """The question in each of these versions; [] for a table of several."""
        name = self.found[0]["id"]
        return [(one, one.questions[name]) for one in self.documents if name in one.questions]

    @property
    def with_versions(self) -> str:
        """The text with the numbers of these versions."""
        words, numbers = self.names.words, [str(document.version) for document in self.documents]
        listed = words.listed(numbers)
        return words.say("in_versions", question=self.text, versions=listed, n=len(numbers))

    @property
    def possible(self) -> Range | None:
        """The smallest and the largest score in these versions, None without two different ones."""
        scores = [
            float(choice.score)
            for _, question in self.asked
            for choice in question.choices
            if choice.score is not None
        ]
        return (min(scores), max(scores)) if len(set(scores)) > 1 else None

    @property
    def ends(self) -> str:
        """What the smallest and the largest score mean; "" without scores, or if the labels are the scores."""
        if not self.asked:
            return ""
        _, question = self.asked[-1]
        scored = [
            (choice.score, self.names.of(choice.label))
            for choice in question.choices
            if choice.score is not None
        ]
        said = [(decimal_text(score), label) for score, label in sorted(scored)]
        if len(said) < 2 or all(score == label for score, label in said):
            return ""
        words = self.names.words
        ends = [
            words.say("score_is", score=words.figure(score), answer=words.quoted(label))
            for score, label in (said[0], said[-1])
        ]
        return words.say("scores", ends=words.listed(ends))

    @property
    def worded(self) -> list[str]:
        """What is said of versions that asked this in other words than the newest of them."""
        of, words, said = self.names.of, self.names.words, list[str]()
        for found in self.found:
            # Only arms of one table have different words.
            if found["text"] != self.found[0]["text"]:
                group = self.names.group(found["by"])
                said.append(self._asked_by(f"{group[:1].upper()}{group[1:]}", found["text"]))
        if not said:
            said += self._worded_in_arms()
        if not self.asked:
            return said
        (_, newest) = self.asked[-1]
        for document, question in self.asked[:-1]:
            version = str(document.version)
            if of(question.text) != of(newest.text):
                said.append(self._asked_by(words.say("version", version=version), question.text))
            labels = [of(choice.label) for choice in question.choices]
            if labels != [of(choice.label) for choice in newest.choices]:
                listed = words.listed([words.quoted(label) for label in labels])
                said.append(words.say("version_answers", version=version, answers=listed))
        return said

    def _asked_by(self, who: str, text: Mapping[str, str]) -> str:
        words = self.names.words
        return words.say("asked", who=who, question=words.quoted(self.names.of(text)))

    def _worded_in_arms(self) -> list[str]:
        """What is said of arms that asked this in other words, where their answers are taken together."""
        name, of, words = self.found[0]["id"], self.names.of, self.names.words
        if any(
            one.arms is not None and one.arms.id in (self.found[0]["by"] or {})
            for one in self.documents
        ):
            return []
        said = dict[str, None]()
        for document in self.documents:
            for arm, view in document.views.items():
                question = {**view.open_questions, **view.questions}.get(name)
                if question is not None and of(question.text) != of(self.found[0]["text"]):
                    text = words.quoted(of(question.text))
                    said[words.say("arm_asked", arm=arm, question=text)] = None
        return list(said)

    @property
    def random_answers(self) -> list[str]:
        """What is said of people who answer at random, of several groups each with its name."""
        told = [group for group in self.groups if group.random_answers]
        return [self._named(group, group.random_answers[0]) for group in told]

    def _named(self, group: EstimatesTable, sentence: str) -> str:
        """Return a sentence about a group with its name, if it has one."""
        if not group.name:
            return sentence
        return self.names.words.say("named", name=group.name, sentence=sentence)

    def of_means(self) -> "Section":
        """Return the section with the groups' means as its figures; unchanged for a question without them.

        Of a scale they say more than the shares of each of its values, which are the section's figures otherwise.
        """
        known = [group for group in self.groups if group.status != "insufficient"]
        if not any(group.name for group in known) or not all(group.mean for group in known):
            return self
        return replace(
            self,
            groups=[
                replace(group, figures=group.mean, warned=_means_of(group)) for group in self.groups
            ],
            found=[
                {**question, "rows": _means_of(group)}
                for question, group in zip(self.found, self.groups, strict=True)
            ],
            differences=self.mean_differences,
        )

    def limits(self, *, of_figures: bool = False) -> Iterator[str]:
        """Yield how far the shares, or the figures to draw, can be trusted; of several groups each with its name."""
        known = [group for group in self.groups if group.status != "insufficient"]
        for group in known:
            for said in group.limits if of_figures else group.sentences.limits:
                yield self._named(group, said) if len(known) > 1 else said

    @property
    def is_number(self) -> bool:
        """True if its figures are no shares."""
        return any(row.unit == NUMBER or row.choice == CONTRAST for row in self.figures)

    @property
    def figures(self) -> list[Estimate]:
        """Return the figures to draw, of all groups."""
        return [row for group in self.groups for row in group.figures]

    def chart(self, scale: ChartScale | None = None, note: str | None = None) -> Svg | None:
        """Return the chart, None if there is nothing to draw, or too much. scale, note : of `draw`."""
        return draw(
            self.text,
            self.figures,
            group=self.names.label,
            scale=scale,
            possible=self.possible,
            note=note,
            corner=self.corner,
            words=self.names.words,
        )

    @property
    def common_flags(self) -> list[str]:
        """Return the flags of every row of two or more, which the page states once."""
        rows = [row for group in self.groups for row in group.rows]
        return (
            [f for f in rows[0]["flags"] if all(f in r["flags"] for r in rows)] if rows[1:] else []
        )


def _means_of(group: EstimatesTable) -> list[Mapping[str, Any]]:
    return [row for row in group.scale_rows if row["choice"] == MEAN]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of questions, choices and groups by id, in one language of the newest version.

    words : that language, and the texts around the names. documents : the survey's versions, oldest first.
    """

    words: Words
    questions: Mapping[str, str]
    choices: Mapping[str, Sequence[str]]
    groups: Mapping[str, Mapping[str, str]]
    documents: Sequence[SurveyDocument]

    @property
    def language(self) -> str:
        """The language of the names."""
        return self.words.labels

    def of(self, texts: Mapping[str, str]) -> str:
        """Return the text in that language, or else in its first language."""
        return self.words.text(texts)

    def group(self, by: Mapping[str, str] | None) -> str:
        """Return the name of a group, or "" if there is none."""
        return self.words.listed([self._value(*one) for one in (by or {}).items()])

    def _value(self, name: str, value: str) -> str:
        if name in (*PERIODS, DAYS):
            return value
        if name == VERSION:
            return self.words.say("version_group", version=value)
        return self.groups.get(name, {}).get(value, f"{name} {value}")

    def label(self, group: str) -> str:
        """Return the name of a group from its label in a result, such as `region=north`."""
        return self.group(dict(part.split("=", 1) for part in group.split(" ")))


def names_of(documents: Sequence[SurveyDocument], words: Words | None = None) -> Names:
    """Return the names of a survey.

    documents : its versions, oldest first. words : None for English about names in the first language of the
    newest version.
    """
    words = words or Words(documents[-1].languages[0])
    of = words.text
    questions = documents[-1].questions.values()
    groups: dict[str, dict[str, str]] = {}
    for document in documents:
        for question in document.strata:
            # A choice that the newest version does not have keeps its name.
            named = {choice.id: of(choice.label) for choice in question.choices}
            groups[question.id] = groups.get(question.id, {}) | named
    return Names(
        words,
        {question.id: of(question.text) for question in questions},
        {question.id: [of(choice.label) for choice in question.choices] for question in questions},
        groups,
        documents,
    )


def named_sources(answer: Mapping[str, Any], names: Names) -> list[str]:
    """Return what a result says of the sources, by their names."""
    found = answer["sources"]
    of_sources = {} if found is None else names.groups.get(found["question"], {})
    return sources_words(found, of_sources, names.words)


def sections_of(
    answer: Mapping[str, Any],
    asked: Asked,
    names: Names,
    scales: Mapping[str, Any] | None = None,
    wanted: Mapping[str, Any] | None = None,
) -> list[Section]:
    """Return one section per question, in order of first appearance, with all its groups.

    scales, wanted : the results of the same request for scales and for wanted figures, None if there
    are none.
    """
    figures = _figures(scales, names), _figures(wanted, names)
    compared = answer["comparisons"], scales["comparisons"] if scales else ()
    sections = [
        _section(questions, asked, names, figures, compared)
        for questions in _together(answer["questions"], names)
    ]
    texts = [section.text for section in sections]
    return [
        replace(section, text=section.with_versions)
        if texts.count(section.text) > 1 and section.documents
        else section
        for section in sections
    ]


def _together(
    questions: Sequence[Mapping[str, Any]], names: Names
) -> list[list[Mapping[str, Any]]]:
    """Return the results of each question, of all its groups; apart where versions ask it in different forms."""
    together: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    form: tuple[str, ...] = ()
    before, arms = "", {one.arms.id for one in names.documents if one.arms is not None}
    for question in questions:
        # A group without reports has no documents: it belongs to the form before it, as the analysis lists them.
        own = [_form(document, question["id"]) for document in _documents([question], names)]
        form = own[0] if own else form if before == question["id"] else ()
        before = question["id"]
        # By text too, because versions may ask different questions under the same id; not of arms, which
        # are to be compared.
        texts = () if arms & set(question["by"] or {}) else map(str, question["text"].values())
        key = (question["id"], *texts, form)
        together.setdefault(key, []).append(question)
    return list(together.values())


def _form(document: SurveyDocument, question_id: str) -> tuple[str, ...]:
    """Return the choice ids of a question, () for a table of several."""
    question = document.questions.get(question_id)
    return () if question is None else tuple(choice.id for choice in question.choices)


def _documents(questions: Sequence[Mapping[str, Any]], names: Names) -> list[SurveyDocument]:
    """Return the documents whose reports are in these results, oldest first."""
    digests = {digest for question in questions for digest in question["documents"]}
    return [document for document in names.documents if document.digest in digests]


def _figures(result: Mapping[str, Any] | None, names: Names) -> FigureRows:
    figures: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in result["questions"] if result else ():
        figures.setdefault((one["id"], names.group(one["by"])), []).append(one)
    return figures


def _rows_about(
    question: Mapping[str, Any], figures: FigureRows, names: Names
) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the same question: versions may have other choices under one id."""
    documents = set(question["documents"])
    for one in figures.get((question["id"], names.group(question["by"])), ()):
        if documents.intersection(one["documents"]):
            rows: Sequence[Mapping[str, Any]] = one["rows"]
            return rows
    return ()


def _section(
    questions: Sequence[Mapping[str, Any]],
    asked: Asked,
    names: Names,
    figures: tuple[FigureRows, FigureRows],
    compared: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]],
) -> Section:
    level = asked.request.level
    groups = [_group(question, asked, level, names, *figures) for question in questions]
    digests = {digest for question in questions for digest in question["documents"]}
    shares, scales = (
        [
            one
            for one in entries
            if one["question"] == questions[0]["id"]
            and digests.intersection(one["documents"])
            and not one["within"]
        ]
        for entries in compared
    )
    return Section(
        names.of(questions[0]["text"]),
        groups,
        [
            {**question, "rows": group.wanted or question["rows"]}
            for question, group in zip(questions, groups, strict=True)
        ],
        _differences(shares, asked, names, is_mean=False),
        _differences(scales, asked, names, is_mean=True),
        _documents(questions, names),
        names,
        None
        if asked.row is None or asked.column is None
        else (names.questions[asked.row], names.questions[asked.column]),
    )


def _group(
    question: Mapping[str, Any],
    asked: Asked,
    level: float,
    names: Names,
    scale_rows: FigureRows,
    wanted_rows: FigureRows,
) -> EstimatesTable:
    name = names.group(question["by"])
    has_result = question["status"] != "insufficient"
    wanted = _rows_about(question, wanted_rows, names)
    # Without a wanted figure these are the shares, which have a table already.
    if [row["choice"] for row in wanted] == [row["choice"] for row in question["rows"]]:
        wanted = ()
    scale = _rows_about(question, scale_rows, names)
    return EstimatesTable(
        name=name,
        status=question["status"],
        n=question["n"],
        received=question["received"],
        needed=question["needed"],
        rows=question["rows"],
        product=None if asked.product == "unbiased" else question[asked.product] or {},
        intervals={}
        if asked.product == "unbiased"
        else question[f"{asked.product}_interval"] or {},
        sentences=sentences_of(question, level, names.words, asked.request.percent).after(
            scale_sentences(scale, names.words)
        )
        if has_result
        else Sentences((), ()),
        wanted=wanted,
        random_answers=_random_answers(question, names),
        labels=[names.of(row["label"]) for row in question["rows"]],
        figures=[
            Estimate.from_json(row, names.language, ()) for row in wanted or _drawn(question, asked)
        ],
        scale_said=scale_sentences(scale, names.words),
        scale_rows=scale,
        warned=wanted,
        words=names.words,
    )


def _differences(
    entries: Sequence[Mapping[str, Any]], asked: Asked, names: Names, *, is_mean: bool
) -> Differences:
    """Return what is said of comparisons of one question. is_mean : True for those of its mean, else of all rows."""

    def of(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [row for row in rows if not is_mean or row["choice"] == MEAN]

    rows, words = of([row for entry in entries for row in entry["rows"]]), names.words
    step = asked.period if asked.period is not None and asked.by is None else ""
    trends = [entry["trend"] for entry in entries if step and entry["trend"] is not None]
    slopes = [
        sentence
        for trend in trends
        for sentence in trend_sentences(of(trend["rows"]), trend["per"], words)
    ]
    # A rise over all periods is not denied by steps, none of which is clear by itself.
    has_trend = any(is_trend(of(trend["rows"])) for trend in trends)
    every = group_sentences(rows, names.label, words, step=step, most=len(rows))
    short = group_sentences(
        rows, names.label, words, step=step, most=_MOST_DIFFERENCES, has_trend=has_trend
    )
    return Differences((*slopes, *short), (*slopes, *every))


def _drawn(question: Mapping[str, Any], asked: Asked) -> Sequence[Mapping[str, Any]]:
    """Return the shares of the product that the page shows."""
    rows: Sequence[Mapping[str, Any]] = question["rows"]
    if asked.product == "unbiased":
        return rows
    shares, intervals = question[asked.product] or {}, question[f"{asked.product}_interval"] or {}
    ends = {choice: intervals.get(choice, (None, None)) for choice in shares}
    return [
        {**row, "estimate": shares[choice], "low": ends[choice][0], "high": ends[choice][1]}
        for row in rows
        if (choice := row["choice"]) in shares
    ]


def _random_answers(question: Mapping[str, Any], names: Names) -> list[str]:
    """Return what is said of people who answer at random; [] without an instructed item or anchor."""
    if question["random_answers"] is None:
        return _known(question["id"], names)
    found = RandomAnswers.from_json(question["random_answers"])
    rows = [Estimate.from_json(row, names.language, ()) for row in question["rows"]]
    words, said = names.words, found.sentences(rows, names.words)
    if not found.shown:
        return said
    laws = [
        f"{names.questions.get(name, name)} {_law(name, law, names)}"
        for name, law in (found.law or {}).items()
    ]
    return [*said, words.say("random_law", laws="; ".join(laws))]


def _known(question: str, names: Names) -> list[str]:
    """Return what is known of all answers to a question of the newest version; [] if nothing is."""
    asked = names.documents[-1].questions.get(question)
    if asked is None or asked.anchor is None or asked.is_repeated:
        return []
    words = names.words
    shares = words.listed(
        [
            f"{words.quoted(names.of(choice.label))} {words.figure(percent(float(share)))}"
            for choice, share in zip(asked.choices, asked.anchor.shares, strict=True)
        ]
    )
    text = words.quoted(names.of(asked.text))
    return [words.say("known", question=text, shares=shares, source=asked.anchor.source)]


def _law(question: str, law: Mapping[str, float], names: Names) -> str:
    words = names.words
    if len({round(chance, 9) for chance in law.values()}) == 1:
        return words.say("random_alike", n=len(law))
    labels = dict(zip(law, names.choices.get(question, law), strict=False))
    return words.listed(
        [
            f"{words.quoted(labels[choice])} {words.figure(percent(chance))}"
            for choice, chance in law.items()
        ]
    )
