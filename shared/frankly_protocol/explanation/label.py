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

from frankly_protocol.audit import Claim, ReportLevel
from frankly_protocol.blocks import Block, Promise, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation import fits
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.mechanisms.fit import Fit, Range

_SECONDS = 10  # for one question
_MOST_ODDS = 99
"""Larger factors of odds turn 50 of 100 people into more than 99."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a report tells about some questions, the same for each of them.

    questions : ids; a box has its own. names : what the person reads, in the same order. sentences :
    to show; a picture of `fit` can replace them. notes : further sentences. fit : the chances behind
    them; None if they would take too long to compute.
    """

    questions: tuple[str, ...]
    names: tuple[str, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    fit: Fit | None


def summary(
    document: SurveyDocument,
    level: ReportLevel,
    told: Sequence[Consequence],
    language: str,
    texts: Texts,
) -> Iterator[str]:
    """Yield what to read before the first question: in English at most 90 words."""
    say, blocks = texts.say, document.blocks
    is_random = [block.mechanism.is_random for block in blocks]
    has_plain = not all(is_random) or any(one.fit is not None and one.fit.is_plain for one in told)
    asked = sum(map(_number_asked, blocks)) + len(document.open_questions)
    is_most = any(block.asks_drawn for block in blocks) or bool(_sources(document))
    minutes = ceil(asked * _SECONDS / 60)
    name = "asked_most" if is_most else "asked"
    yield say(name, n=asked, minutes=minutes, host=host_of(document))
    if has_plain:
        yield say("as_is")
    if len(document.strata) == 1:
        yield say("open_one", question=document.strata[0].text[language])
    elif document.strata:
        yield say("open", n=len(document.strata))
    if document.instructed:
        yield say("item")
    if any(is_random):
        has_open = has_plain or bool(document.open_questions)
        yield say("mixed_rest" if has_open else "mixed")
        yield from _picked(document, say)
        rest = "unsure_rest" if has_open else "unsure"
        yield say(rest if _is_bounded(level) else "nearly")
    if document.token and document.token.invites:
        yield say("invited_some" if document.token.is_mixed else "invited")
    yield say("address")


def _picked(document: SurveyDocument, say: Callable[..., str]) -> Iterator[str]:
    """Yield how many questions a report is about, if a single form has fewer than all of them."""
    form = document.blocks[0].form
    if len(document.blocks) > 1 or form is None:
        return
    drawn, every = form.questions_drawn, len(form.choices)
    # A person sees the boxes of a question as one question, and a report counts each.
    if drawn[1] < every and not any(question.box for question in document.blocks[0].questions):
        yield say("few", some="–".join(map(str, dict.fromkeys(drawn))), all=every)
        if not _sources(document):
            yield say("few_rest")


def consequences(
    document: SurveyDocument, guesses: Sequence[str], language: str, texts: Texts
) -> tuple[Consequence, ...]:
    """Return what a report tells about each question; questions that do not differ are together.

    guesses : for each block, the sentence on a guess, for questions without a Fit.
    """
    names, sources = _names(document, language), _sources(document)
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[str, Fit | None]]] = {}
    for block, guess in zip(document.blocks, guesses, strict=True):
        for question, fit in zip(block.questions, fits.fits(block), strict=True):
            numbers, notes = _told(fit, question.id in sources, texts)
            if len(block.questions) == 1:
                notes += of_answers(question, block.promises, block.ceiling, language, texts)
            key = (tuple(numbers) if fit else (guess,), tuple(notes))
            found.setdefault(key, []).append((question.id, fit))
    return tuple(
        Consequence(
            tuple(name for name, _ in pairs),
            tuple(names[name] for name, _ in pairs),
            *key,
            pairs[0][1],
        )
        for key, pairs in found.items()
    )


def of_answers(
    question: Question,
    promises: Sequence[Promise],
    ceiling: Fraction | None,
    language: str,
    texts: Texts,
) -> Iterator[str]:
    """Yield how far a suspicion of each answer can rise that a promise protects more than others.

    question : the only one of its block. promises, ceiling : those of the block; the ceiling bounds
    odds, None if it does not. language : of the answers' labels.

    If P(y|s) ≤ r·P(y|x) for all y and every other answer x, then whoever believes s with any p
    believes it with p·P(y|s) / (p·P(y|s) + Σ_x p_x·P(y|x)) ≤ p·r / (p·r + 1 - p) after y: the p_x of
    the other answers add up to 1 - p, and each P(y|x) is at least P(y|s)/r.
    """
    if question.box is not None:
        return
    for s, choice in enumerate(question.choices):
        rows = [bound for promise in promises if (bound := _row_bound(promise.claim, s))]
        if not rows:
            continue
        odds = min(rows if ceiling is None else [*rows, ceiling])
        if odds <= _MOST_ODDS:
            yield _belief("answer_alone", odds, texts, answer=choice.label[language])


def beliefs(level: ReportLevel, texts: Texts, *, has_open: bool, is_random: bool) -> Iterator[str]:
    """Yield how far a report can raise a suspicion about the answers, and about each secret.

    has_open : True if some questions are sent as they are, without a block. is_random : False if
    all blocks send their answers unchanged.
    """
    given = "_given" if has_open else ""
    if _is_bounded(level):
        yield _belief(f"belief{given}", level.answers.odds, texts)
    elif is_random:
        yield texts.say("nearly")
    for name, secret in level.secrets.items():
        # A secret that is bounded as the answers themselves are needs no sentence of its own.
        if secret.odds is None or secret.delta or secret.odds == level.answers.odds:
            continue
        if secret.odds <= _MOST_ODDS:
            yield _belief(f"belief_secret{given}", secret.odds, texts, secret=name)


def host_of(document: SurveyDocument) -> str:
    """Return the host to which reports are sent, with its port unless that is the usual one."""
    address = urlsplit(document.collect_url)
    host = address.netloc.rpartition("@")[2].lower()
    return host.removesuffix({"https": ":443", "http": ":80"}.get(address.scheme, ":"))


def name_of(question: Question, language: str) -> str:
    """Return the question that the person reads, for a box with its label."""
    if question.box is None:
        return question.text[language]
    return f"{question.box.text[language]} – {question.box.label[language]}"


def _names(document: SurveyDocument, language: str) -> dict[str, str]:
    """Return the names of all randomised questions; those of the same words are numbered."""
    names = {name: name_of(question, language) for name, question in document.questions.items()}
    words, seen = list(names.values()), dict[str, int]()
    for name, word in names.items():
        seen[word] = seen.get(word, 0) + 1
        if words.count(word) > 1:
            names[name] = f"{word} ({seen[word]})"
    return names


def _sources(document: SurveyDocument) -> set[str]:
    """Return the questions whose answers decide whether another question is skipped."""
    return {q.ask_if.question for q in document.questions.values() if q.ask_if}


def _number_asked(block: Block) -> int:
    """Return how many questions a person is asked at most; the boxes of one count as one."""
    groups = len(list(groupby(block.questions, lambda one: one.box.of if one.box else one.id)))
    if not block.asks_drawn or block.form is None:
        return groups
    # What a drawn question depends on is asked too, and all boxes of its group.
    is_simple = not any(question.box or question.ask_if for question in block.questions)
    return block.form.questions_drawn[1] if is_simple else groups


def _is_bounded(level: ReportLevel) -> bool:
    odds = level.answers.odds
    return odds is not None and odds <= _MOST_ODDS and not level.answers.delta


def _told(fit: Fit | None, is_source: bool, texts: Texts) -> tuple[list[str], list[str]]:
    """Return the sentences with the numbers of a Fit, and the notes to them.

    is_source : what is sent about a question that a rule skips hints at the answer.
    """
    say = texts.say
    notes = [say("hint")] if is_source else []
    if fit is None:
        return [], notes
    if fit.is_plain:
        return [say("given")], []
    together = [say("together")] if fit.is_joint else []
    if fit.own[1] == 0:
        return [say("alone" if notes or together else "nothing")], together + notes
    is_silent = fit.silent[1] * 200 >= 1 and not is_source
    silent = [say("silent", silent=people(fit.silent))] if is_silent else []
    return [*silent, say("fits", own=people(fit.own), other=people(fit.other))], together + notes


def people(chances: Range) -> str:
    """Return chances as numbers of 100 people, such as 62, 60–65, <1 or >99."""
    numbers = [_people(chance) for chance in chances]
    return "–".join(dict.fromkeys(numbers))


def _people(chance: Fraction) -> str:
    n = floor(100 * chance + Fraction(1, 2))
    if n == 0 and chance:
        return "<1"
    return ">99" if n == 100 and chance < 1 else str(n)


def _row_bound(claim: Claim, s: int) -> Fraction | None:
    """Return the bound on P(y|s) / P(y|x) for every other answer x, or None if the claim has none.

    Also None if the claim is for all pairs: then the bound of the whole report says enough.
    """
    levels = claim.levels or ()
    pairs = [(x, one) for x, row in enumerate(levels) for z, one in enumerate(row) if z != x]
    row, rest = [one for x, one in pairs if x == s], [one for x, one in pairs if x != s]
    if not row or None in row or None not in rest:
        return None
    return Fraction(*(claim.level or (1, 1))) * max(Fraction(*one) for one in row if one)


def _belief(name: str, odds: Fraction | None, texts: Texts, **values: str) -> str:
    assert odds is not None  # noqa: S101 - the callers have checked it

    def after(before: int) -> int:
        """Return the largest number of 100 people after a report, rounded up."""
        return ceil(100 * odds * before / (100 - before + odds * before))

    return texts.say(name, few=after(5), half=after(50), **values)
