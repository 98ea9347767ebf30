# SPDX-License-Identifier: Apache-2.0
"""The label of a survey: a summary to read before the first question, and what a report can tell.

All numbers are frequencies of people. They follow from the verified document alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import ceil, floor
from urllib.parse import urlsplit

from frankly_protocol.audit import ReportLevel
from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_sdk._fits import Fit, Range, fits
from frankly_sdk._texts import Texts

_SECONDS = 10  # for one question
_MOST_ODDS = 99
"""Larger factors of odds turn 50 of 100 people into more than 99."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a report tells about some questions, the same for each of them.

    questions : ids; a box has its own. names : what the person reads, in the same order. sentences :
    to show. fit : the chances behind them; None if an answer is sent unchanged, or if the chances
    would take too long to compute.
    """

    questions: tuple[str, ...]
    names: tuple[str, ...]
    sentences: tuple[str, ...]
    fit: Fit | None


def summary(document: SurveyDocument, level: ReportLevel, texts: Texts) -> Iterator[str]:
    """Yield what to read before the first question: in English at most 90 words."""
    say, blocks = texts.say, document.blocks
    unchanged = [block.mechanism.sends_unchanged for block in blocks]
    asked = _number_asked(document)
    is_most = any(
        block.asks_drawn or any(question.ask_if for question in block.questions) for block in blocks
    )
    yield say(
        "asked_most" if is_most else "asked",
        n=asked,
        minutes=ceil(asked * _SECONDS / 60),
        host=host_of(document),
    )
    if any(unchanged):
        yield say("as_is")
    if document.strata:
        yield say("open", n=len(document.strata))
    if document.instructed:
        yield say("item")
    if not all(unchanged):
        has_open = any(unchanged) or bool(document.open_questions)
        yield say("mixed_rest" if has_open else "mixed")
        yield from _picked(document, say)
        if _is_bounded(level):
            yield say("unsure_rest" if has_open else "unsure")
        elif not any(unchanged):
            yield say("nearly")
    if document.token and document.token.kind == "invite":
        yield say("invited")
    yield say("address")


def _picked(document: SurveyDocument, say: Callable[..., str]) -> Iterator[str]:
    """Yield how many questions a report is about, if a single form has fewer than all of them."""
    mechanism = document.blocks[0].mechanism
    if len(document.blocks) > 1 or not isinstance(mechanism, AgreementMechanism):
        return
    drawn, every = mechanism.questions_drawn, len(mechanism.choices)
    # A person sees the boxes of a question as one question, and a report counts each.
    if drawn[1] < every and not any(question.box for question in document.blocks[0].questions):
        yield say("few", some="–".join(map(str, dict.fromkeys(drawn))), all=every)


def consequences(
    document: SurveyDocument, guesses: Sequence[str], language: str, texts: Texts
) -> tuple[Consequence, ...]:
    """Return what a report tells about each question; questions that do not differ are together.

    guesses : for each block, the sentence on a guess, for questions without a Fit.
    """
    found: dict[tuple[str, ...], list[tuple[Question, Fit | None]]] = {}
    for block, guess in zip(document.blocks, guesses, strict=True):
        for question, fit in zip(block.questions, _fits(block), strict=True):
            found.setdefault(tuple(_told(block, fit, guess, texts)), []).append((question, fit))
    return tuple(
        Consequence(
            tuple(question.id for question, _ in pairs),
            tuple(name_of(question, language) for question, _ in pairs),
            sentences,
            pairs[0][1],
        )
        for sentences, pairs in found.items()
    )


def beliefs(document: SurveyDocument, level: ReportLevel, texts: Texts) -> Iterator[str]:
    """Yield how far a report can raise a suspicion about the answers, and about each secret."""
    given = "_given" if document.open_questions else ""
    if _is_bounded(level):
        yield _belief(f"belief{given}", level.answers.odds, texts)
    elif not all(block.mechanism.sends_unchanged for block in document.blocks):
        yield texts.say("nearly")
    for name, secret in level.secrets.items():
        # A secret that is bounded as the answers themselves are needs no sentence of its own.
        if secret.odds is None or secret.delta or secret.odds == level.answers.odds:
            continue
        if secret.odds <= _MOST_ODDS:
            yield _belief(f"belief_secret{given}", secret.odds, texts, name)


def host_of(document: SurveyDocument) -> str:
    """Return the host to which reports are sent."""
    return urlsplit(document.collect_url).netloc


def name_of(question: Question, language: str) -> str:
    """Return the question that the person reads, for a box with its label."""
    if question.box is None:
        return question.text[language]
    return f"{question.box.text[language]} – {question.box.label[language]}"


def _number_asked(document: SurveyDocument) -> int:
    """Return the number of questions that a person can be shown; the boxes of one count as one."""
    grouped = (
        groupby(block.questions, lambda one: one.box.of if one.box else one.id)
        for block in document.blocks
    )
    return sum(len(list(group)) for group in grouped) + len(document.open_questions)


def _is_bounded(level: ReportLevel) -> bool:
    odds = level.answers.odds
    return odds is not None and odds <= _MOST_ODDS and not level.answers.delta


def _fits(block: Block) -> Sequence[Fit | None]:
    return [None] * len(block.questions) if block.mechanism.sends_unchanged else fits(block)


def _told(block: Block, fit: Fit | None, guess: str, texts: Texts) -> Iterator[str]:
    if block.mechanism.sends_unchanged:
        yield texts.say("given")
    elif fit is None:
        yield guess
    elif fit.silent[0] == 1:
        yield texts.say("nothing")
    else:
        if fit.silent[1] * 200 >= 1:
            yield texts.say("silent", silent=people(fit.silent))
        yield texts.say("fits", own=people(fit.own), other=people(fit.other))


def people(chances: Range) -> str:
    """Return chances as numbers of 100 people, such as 62, 60–65, <1 or >99."""
    numbers = [_people(chance) for chance in chances]
    return "–".join(dict.fromkeys(numbers))


def _people(chance: Fraction) -> str:
    n = floor(100 * chance + Fraction(1, 2))
    if n == 0 and chance:
        return "<1"
    return ">99" if n == 100 and chance < 1 else str(n)


def _belief(name: str, odds: Fraction | None, texts: Texts, secret: str = "") -> str:
    assert odds is not None  # noqa: S101 - the callers have checked it

    def after(before: int) -> int:
        """Return the largest number of 100 people after a report, rounded up."""
        return ceil(100 * odds * before / (100 - before + odds * before))

    return texts.say(name, few=after(5), half=after(50), secret=secret)
