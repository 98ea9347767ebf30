# SPDX-License-Identifier: Apache-2.0
"""Results of a survey, made to be shown: for the admin pages, and for whoever has a link to them."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final
from urllib.parse import urlencode

from flask import Response
from frankly_analyst.charts import Scale
from frankly_analyst.drawing import label_of, lines_of
from frankly_analyst.formats import to_spreadsheet
from frankly_analyst.shown import Shown
from frankly_analyst.svg import Svg
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.result import READ
from frankly_server.services import Services
from frankly_server.surveys.summary import read_texts
from frankly_server.surveys.trial import TRIAL_S
from frankly_server.web import estimates_request, reading, visitors
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.denial import denial_sentences
from frankly_server.web.results.found import Found, found_of
from frankly_server.web.results.sections import (
    EstimatesTable,
    Names,
    Section,
    named_sources,
    names_of,
)
from frankly_server.web.results.sentences import arms_words, association_sentence
from frankly_server.web.results.view import View, views_of
from frankly_server.web.results.words import Words
from frankly_server.web.searching import search_once, without_slot

_FIELDS: Final = ("show", "denial", "language")
_MOST_KEPT: Final = 32
_MOST_RANDOM: Final = 12
"""Largest number of groups of which is said how many people answer at random."""
_FILE: Final = re.compile(r"([1-9][0-9]{0,3})\.(svg|csv)")
_KINDS: Final = {"svg": "image/svg+xml", "csv": "text/csv; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of the table behind a chart. n : number of reports."""

    group: str
    label: str
    shown: Shown
    n: int


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one question.

    said, further, limits, denied : sentences about it, all differences if there are more, how far it can be
    trusted, and how large shares can be if some people deny. waiting : what is said of groups without a result
    yet. about : how many reports are about it, "" if all are. has_n : False for shares of people with one
    answer, whose number is not known.
    """

    number: int
    text: str
    chart: Svg | None
    said: Sequence[str]
    further: Sequence[str]
    limits: Sequence[str]
    denied: Sequence[str]
    waiting: Sequence[str]
    about: str
    has_n: bool
    rows: Sequence[ShownRow]

    @property
    def has_groups(self) -> bool:
        """True if the rows are those of groups."""
        return any(row.group for row in self.rows)


def values(
    services: Services,
    survey: OpenedSurvey,
    path: str,
    view: str | None = None,
    words: Words | None = None,
) -> dict[str, Any]:
    """Return the values of the template `results_body.html`.

    path : of the page; charts are below it. view : what to show, None for what the request's query asks. words : the
    language of the page, of `language_of`; None for English about names in the survey's first language.
    Raises InvalidInput for an invalid query, and `searches.Busy`.
    """
    documents = services.surveys.versions(survey.id)
    if not documents:
        return {"path": path, "results": None}
    asked = _asked(documents) if view is None else View.of(view, documents)
    names = names_of(documents, words)
    found = _found(services, survey, documents, asked, names.words)
    languages = documents[-1].languages if words is not None else ()
    # Files have the language of the page, which may be that of the browser.
    own = {"language": names.language} if len(languages) > 1 else {}
    return {
        "words": names.words,
        "languages": languages,
        "own": own,
        "asked": urlencode(({"show": asked.value} if asked.value else {}) | own),
        "path": path,
        "name": "-".join([survey.name, *asked.words]),
        "view": asked,
        "views": views_of(documents, names),
        "today": services.surveys.now().date(),
        "n": found[0].answer["n"],
        "results": _results(found),
        "random": list(
            dict.fromkeys(
                said for _, section in _sections(found) for said in section.random_answers
            )
        )[:_MOST_RANDOM],
        "arms": arms_words(found[0].answer["arms"], names.words),
        "sources": named_sources(found[0].answer, names),
        "protection": _protection(services, _answered(documents, found[0]), names.words),
        "is_read": READ in found[0].answer["notes"],
        "level": asked.requests[0].request.level,
    }


def language_of(documents: Sequence[SurveyDocument]) -> Words:
    """Return the language in which the request asks for a page of results, one of the newest version's.

    By its query, or else by its header Accept-Language; the first of the version if it has none of these. An address
    with a language that only an earlier version has still works, because people pass it on. Raises
    InvalidInput(field_type) for a language in the query that no version has.
    """
    languages = documents[-1].languages
    asked = reading.query(_FIELDS).get("language")
    if asked is not None and not any(asked in one.languages for one in documents):
        raise InvalidInput(Problem.FIELD_TYPE, f"one of {', '.join(languages)}", "language")
    tag = asked if asked in languages else visitors.language_of(languages)
    return Words(tag, tag)


def chart(
    services: Services, survey: OpenedSurvey, name: str, words: Words | None = None
) -> Response:
    """Return one chart as a file, as the request's query asks.

    name : such as ``2.svg`` or ``2.csv``. words : see `values`.
    Raises InvalidInput(not_found) for another name, and like `values`.
    """
    documents, match = services.surveys.versions(survey.id), _FILE.fullmatch(name)
    value = reading.query(("show", "language")).get("show", "")
    if match and documents:
        asked = View.of(value, documents)
        place, form = int(match[1]) - 1, match[2]
        names = names_of(documents, words)
        found = _found(services, survey, documents, asked, names.words)
        content = _file(found, names, services.surveys.now().date(), place, form)
        if content is not None:
            response = Response(content, content_type=_KINDS[form])
            file = "-".join([survey.name, *asked.words, f"{place + 1}.{form}"])
            response.headers["Content-Disposition"] = f'attachment; filename="{file}"'
            return response
    raise InvalidInput(Problem.NOT_FOUND, "there is no such chart", "name")


def _asked(documents: Sequence[SurveyDocument]) -> View:
    """Return the view that the request's query asks for."""
    query = reading.query(_FIELDS)
    # A slider always has a value: 0 says nothing of denial.
    fields = estimates_request.read({"denial": query.get("denial") or "0"})
    return View.of(query.get("show", ""), documents, fields["denial"] or None)


def _found(
    services: Services,
    survey: OpenedSurvey,
    documents: Sequence[SurveyDocument],
    view: View,
    words: Words,
) -> list[Found]:
    """Return what the analysis finds for a view; kept until the next release, because many may read it at once."""

    def find(asked: Asked) -> Found:
        return found_of(services, survey.id, documents, asked, completion=False, words=words)

    kept: OrderedDict[tuple[Any, ...], list[Found]] = services.kept_views
    digests = tuple(one.digest for one in documents)
    language = words.language, words.labels
    mark = services.intake.release_mark(survey.id)
    key = (survey.id, view.value, view.denial, language, digests, mark)
    known = kept.get(key)
    if known is not None:
        return known
    with without_slot(services.analyses):
        # Another request may have waited for the same before this one.
        known = kept.get(key)
        if known is not None:
            return known
        first, *others = view.requests
        found = [find(first)]
        for asked in others:
            # Shares within rows are not estimated for large tables, and not shown for too few answers.
            try:
                found.append(find(asked))
            except InvalidInput as refused:
                if refused.problem is not Problem.UNSUPPORTED:
                    raise
        kept[key] = found
        # Other threads may remove results, too.
        with suppress(KeyError):
            while len(kept) > _MOST_KEPT:
                kept.popitem(last=False)
        return found


def _sections(found: Sequence[Found]) -> list[tuple[Found, Section]]:
    """Return the sections of the page, with what they were found in."""
    shown = []
    for one in found:
        for section in one.sections:
            text = section.text
            if one.answer["percent"] is not None and section.corner is not None:
                row, column = section.corner
                words = section.names.words
                text = words.say("apart", column=column, row=words.quoted(row))
            shown.append((one, replace(section, text=text).of_means()))
    return shown


def _results(found: Sequence[Found], note: str | None = None) -> list[Result]:
    """Return the results of the questions. note : of the charts as files."""
    sections = _sections(found)
    # Shares have one scale on the whole page, so that the bars of two questions can be compared.
    alike = [
        line
        for one, section in sections
        if not section.is_number and one.answer["percent"] is None
        for line in lines_of(section.figures)
    ]
    scale = Scale.of_shares(alike)
    return [
        _result(i, one, section, None if _has_own_scale(one, section) else scale, note)
        for i, (one, section) in enumerate(sections, 1)
    ]


def _has_own_scale(found: Found, section: Section) -> bool:
    """Return True for numbers, changes over time, which are small, and shares of other people."""
    return section.is_number or found.asked.period is not None or bool(found.answer["percent"])


def _result(
    number: int, found: Found, section: Section, scale: Scale | None, note: str | None
) -> Result:
    words = section.names.words
    estimated = [one for one in section.groups if one.status != "insufficient"]
    differences = section.differences
    return Result(
        number=number,
        text=section.text,
        chart=section.chart(scale, note),
        said=tuple(_said(found, section, estimated)),
        further=differences.every if len(differences.every) > len(differences.short) else (),
        limits=list(section.limits(of_figures=True)),
        denied=tuple(denial_sentences(section.figures, words)),
        waiting=tuple(_waiting(section)),
        about=_about(section),
        has_n=not found.answer["percent"],
        rows=[
            ShownRow(
                section.names.label(row.by) if row.by else "",
                label_of(row, words),
                _shown(row, section),
                row.n,
            )
            for row in section.figures
        ],
    )


def _shown(row: Any, section: Section) -> Shown:
    return Shown.row(row, section.possible).said_in(section.names.words)


def _said(found: Found, section: Section, estimated: Sequence[EstimatesTable]) -> Iterator[str]:
    yield from section.worded
    if section.is_number and section.ends:
        yield section.ends
    yield from section.differences.short
    # Of several groups the chart has the figures, and the sentences are about their differences.
    if len(section.groups) != 1 or not estimated:
        return
    (group,), words = estimated, section.names.words
    if found.asked.row is not None:
        # Of a table the chart has the figures, too.
        if found.answer["percent"] is None:
            yield association_sentence(section.found[0]["independence"], words)
    elif not group.wanted:
        yield from group.sentences.findings
    elif group.scale_said:
        yield from group.scale_said
    else:
        for row in section.figures:
            shown = _shown(row, section)
            name = "figure_ends" if shown.ends else "figure_is"
            label = label_of(row, words)
            yield words.say(name, name=label, figure=shown.text, ends=shown.ends)


def _waiting(section: Section) -> Iterator[str]:
    say = section.names.words.say
    for group in section.groups:
        if group.status == "insufficient":
            name = "waiting_group" if group.name else "waiting"
            yield say(name, group=group.name, n=group.n, needed=group.needed)


def _about(section: Section) -> str:
    n, received = (sum(getattr(one, name) for one in section.groups) for name in ("n", "received"))
    if n >= received:
        return ""
    return section.names.words.say("about_question", n=n, received=received)


def _protection(
    services: Services, documents: Sequence[SurveyDocument], words: Words
) -> list[tuple[str, Sequence[str]]]:
    """Return what people read about their protection before they answered: (versions, sentences)."""
    told: dict[tuple[str, ...], list[str]] = {}
    for document in documents:
        try:
            language = words.labels if words.labels in document.languages else None
            arguments = document.payload(), language
            promised = search_once(
                services, promises, *arguments, seconds=TRIAL_S, places=services.analyses
            )
        except InvalidInput:
            # A process that ends without a result must not take the figures with it.
            return []
        for arm, sentences in promised:
            name = str(document.version)
            if arm:
                name = words.say("version_arm", version=name, arm=arm)
            told.setdefault(sentences, []).append(name)
    if len(told) == 1:
        return [("", next(iter(told)))]
    return [
        (words.say("versions", versions="; ".join(names)), sentences)
        for sentences, names in told.items()
    ]


def _answered(documents: Sequence[SurveyDocument], found: Found) -> Sequence[SurveyDocument]:
    """Return the versions that somebody has answered, or else the newest."""
    numbers = {one["digest"]: one["n"] for one in found.answer["documents"]}
    return [one for one in documents if numbers.get(one.digest)] or documents[-1:]


def promises(
    payload: bytes, language: str | None = None
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the sentences of each arm about what devices do, and what can be learnt from it.

    With the arm's id, "" without arms. language : one of the document's, the first by default.
    """
    versions = SurveyDocument.parse(payload).versions
    reads = [(version.arm or "", read_texts(version, language)) for version in versions]
    # Without how long it takes and where the results go, and without the network address.
    return tuple(
        (arm, tuple(dict.fromkeys((*read.summary[1:-1], *read.overall)))) for arm, read in reads
    )


def _file(found: Sequence[Found], names: Names, today: date, place: int, form: str) -> bytes | None:
    sections = _sections(found)
    if place >= len(sections):
        return None
    one, section = sections[place]
    if form == "svg":
        n = sum(one["n"] for one in section.found if one["status"] != "insufficient")
        words, title = names.words, names.of(one.answer["title"])
        level = words.figure(f"{100 * one.answer['level']:g}%")
        note = words.say("chart_note", title=title, n=n, level=level, date=words.date(today))
        drawn = _results(found, note)[place].chart
        return None if drawn is None else drawn.encode()
    texts = {names.language: section.text}
    body = {**one.answer, "questions": [{**found, "text": texts} for found in section.found]}
    return to_spreadsheet(body, names.language, names.label)
