# SPDX-License-Identifier: Apache-2.0
"""Explanation of a survey (acceptance step 11): questions, report and privacy bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, product

from frankly_protocol.audit import ReportLevel, ln_up
from frankly_protocol.blocks import Block, Choice, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    SubsetMechanism,
    Symbol,
    UnaryMechanism,
    columns,
)
from frankly_protocol.report import Report

from frankly_sdk._figures import percent, times
from frankly_sdk._promised import block_promises, cost, whole_report
from frankly_sdk.budget import Budget

LIMITS = (
    "What this cannot protect: your network address is visible to the server’s operator unless "
    "you use a relay; a device or operating system that someone else controls sees everything; nobody can "
    "stop someone from forcing you to answer, and nobody can check that an answer is true. Once "
    "sent, an answer cannot be withdrawn. If this app's memory is erased, it no longer knows that "
    "you have answered; answering again would then reveal more about you."
)
_TOKENS = {
    "invite": "Your invitation is sent with the report, unchanged: the person who handed it out can tell from it which "
    "random result is yours.",
    "rsa-pss": "Your token is sent with the report, unchanged; it was signed without being seen, so it does not "
    "show whom it was given to.",
}
_MAX_TABLE = 64  # largest number of chances to list; larger tables are in the signed document
_NEVER = Fraction(1, 1 << 24)


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """One block in words and numbers.

    same : smallest and largest chance, over the answers, that the symbol names the true answer;
        None if the symbols do not correspond to answers.
    unchanged : True if every symbol stands for one answer, so that the answer is sent unchanged.
    guess : chance that the best guess from the symbol is right, if all answers are equally likely.
    blind : the same chance without the symbol.
    ratio : the level of the first promise, None if it does not bound a ratio on both sides.
    ceiling : the largest ratio by which odds can move under any prior; None if infinite or above
        2^53 − 1.
    """

    block: str
    questions: tuple[str, ...]
    same: tuple[Fraction, Fraction] | None
    unchanged: bool
    guess: Fraction
    blind: Fraction
    ratio: Fraction | None
    ceiling: Fraction | None
    words: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that a respondent should know before answering; show the result of `str()`.

    form_nats : the ledger's charge for the form, in nats of log-odds, rounded up.
    form_delta : the δ that is also charged, 0 unless the app allows one; if the respondent has less
        δ left, `level.ceiling` is charged instead of both.
    leaves : the report with placeholders for its random values.
    example : a report of this length, with the longest symbols and without a token.
    words : the whole explanation.
    level : the level of the whole report.
    """

    title: str
    blocks: tuple[BlockExplanation, ...]
    form_nats: str
    signed_by: tuple[str, ...]
    leaves: str
    example: bytes
    words: str
    level: ReportLevel

    def __str__(self) -> str:
        return self.words

    @property
    def form_delta(self) -> Fraction:
        """The δ that is charged together with `form_nats`."""
        return self.level.cost.delta


def explain(
    document: SurveyDocument,
    level: ReportLevel,
    signed_by: Sequence[str],
    language: str | None = None,
    budget: Budget | None = None,
) -> Explanation:
    """Explain a verified document.

    level : the level of its whole report, under the app's own cap on δ.
    language : one of the document's; otherwise the document's first is used.
    budget : the budget of the respondent who is to answer.
    """
    chosen = language if language in document.languages else document.languages[0]
    blocks = tuple(_block(block, chosen, bool(document.strata)) for block in document.blocks)
    leaves = _leaves(document)
    lines = [
        document.title[chosen],
        *([f"The survey’s own words: “{document.consent[chosen]}”"] if document.consent else []),
        "The report is made here, on this device; nothing is sent except what is listed below.",
        *([_public(document, chosen)] if document.strata else []),
        *([_TOKENS[document.token.kind]] if document.token else []),
        *(block.words for block in blocks),
        "\n".join(whole_report(document, level)),
        cost(level, budget),
        f"What is sent, once, padded with spaces to {document.report_length} bytes: {leaves}",
        f"Signed by: {', '.join(key[:16] for key in signed_by)}. A signature says who made the survey, not that a "
        "prior is true.",
        LIMITS,
    ]
    words, nats = "\n\n".join(lines), ln_up(level.cost.odds)
    return Explanation(
        document.title[chosen],
        blocks,
        nats,
        tuple(signed_by),
        leaves,
        _example(document),
        words,
        level,
    )


def _block(block: Block, language: str, has_strata: bool) -> BlockExplanation:
    question_texts = tuple(
        dict.fromkeys((question.box or question).text[language] for question in block.questions)
    )
    mechanism = block.mechanism
    guess, blind = _guesses(mechanism)
    same = _same(mechanism)
    lines = [
        *_questions(block.questions, language),
        *_chances(block, same, language),
        _guess_sentence(mechanism, guess, blind),
        *block_promises(block, has_strata),
    ]
    return BlockExplanation(
        block=block.id,
        questions=question_texts,
        same=same,
        unchanged=mechanism.sends_unchanged,
        guess=guess,
        blind=blind,
        ratio=block.ratio,
        ceiling=block.ceiling,
        words="\n  ".join(lines),
    )


def _questions(questions: Sequence[Question], language: str) -> Iterator[str]:
    """Yield every question with its possible answers; a question with boxes once, with all of them."""
    for box, group in groupby(questions, lambda question: question.box and question.box.of):
        first, *more = list(group)
        if box is None:
            for question in (first, *more):
                kind = "a number, of which only the range is used: " if question.asks_number else ""
                yield f"{question.text[language]} ({kind}{_choices(question.choices, language)})"
            continue
        boxes = [question.box for question in (first, *more) if question.box is not None]
        labels = " / ".join(one.label[language] for one in boxes)
        yield f"{boxes[0].text[language]} (any of: {labels})"
    if any(question.ask_if for question in questions):
        yield (
            "Your device skips questions that an earlier answer rules out. It answers them with the choice "
            "made for that, randomised like any other answer: the report does not show what you were asked."
        )


def _guess_sentence(mechanism: AnyMechanism, guess: Fraction, blind: Fraction) -> str:
    if isinstance(mechanism, AgreementMechanism) and len(mechanism.choices) > 1:
        return (
            f"A guess at one of these answers from this alone is right at most {percent(guess)} of the time, where a "
            f"blind guess is right {percent(blind)}, if all answers are equally common."
        )
    return (
        f"A guess from this alone is right {percent(guess)} of the time; a blind guess, {percent(blind)}, if all "
        "answers are equally common."
    )


def _guesses(mechanism: AnyMechanism) -> tuple[Fraction, Fraction]:
    """Return the chances that the best guess is right, from the symbol and without it.

    All answers are assumed to be equally likely. For the agreement kind, the guess is about the
    question on which a symbol reveals most.
    """
    if not isinstance(mechanism, AgreementMechanism):
        return mechanism.guess, Fraction(1, mechanism.answers)
    chances = zip(mechanism.guesses, mechanism.choices, strict=True)
    return max(
        ((guess, Fraction(1, choices)) for guess, choices in chances),
        key=lambda pair: pair[0] / pair[1],
    )


def _same(mechanism: AnyMechanism) -> tuple[Fraction, Fraction] | None:
    """Return the smallest and the largest chance on the diagonal.

    Returns None unless the diagonal is the strict maximum of every column.
    """
    if mechanism.sends_unchanged:
        return Fraction(1), Fraction(1)
    if not isinstance(mechanism, DenseMechanism) or mechanism.reports != mechanism.answers:
        return None
    # A symbol names an answer only if it is more likely under it than under any other.
    for y, column in enumerate(zip(*mechanism.weights, strict=True)):
        if any(w >= column[y] for x, w in enumerate(column) if x != y):
            return None
    chances = [mechanism.probability(x, x) for x in range(mechanism.answers)]
    return min(chances), max(chances)


def _chances(block: Block, same: tuple[Fraction, Fraction] | None, language: str) -> Iterator[str]:
    """Yield the chance that the report names the truth, or the chances of every symbol."""
    mechanism = block.mechanism
    # First, because the sentences below would say that the result is random.
    if mechanism.sends_unchanged:
        yield "Your answer to this is sent unchanged: every symbol that can be sent stands for one answer."
    elif same is not None:
        low, high = map(percent, same)
        chance = low if same[0] == same[1] else f"{low} to {high}, depending on the answer"
        yield f"The random result names your true answer with a chance of {chance}; otherwise it names another one."
    elif isinstance(mechanism, AgreementMechanism):
        yield from _agreement(mechanism)
    elif isinstance(mechanism, UnaryMechanism):
        keep, flip = (
            Fraction(weight, mechanism.denominator) for weight in (mechanism.keep, mechanism.flip)
        )
        yield (
            "The random result is a yes or a no for every answer: for the true one a yes with a chance of "
            f"{percent(keep)}, for any other with a chance of {percent(flip)}."
        )
    elif isinstance(mechanism, SubsetMechanism):
        inside = Fraction(mechanism.inside, mechanism.denominator)
        yield (
            f"The random result is a set of {mechanism.size} of the {mechanism.answers} answers; the true one is "
            f"among them with a chance of {percent(inside)}."
        )
    # A larger table would distract from the sentences about the promises.
    elif mechanism.answers * mechanism.reports > _MAX_TABLE:
        yield (
            f"The random result is one of {mechanism.reports} symbols; their chances for every answer are listed "
            "in the signed survey."
        )
    else:
        yield "The random result is one of these symbols:"
        yield from _table(block, language)


def _agreement(mechanism: AgreementMechanism) -> Iterator[str]:
    """Yield sentences on the draw of a report about many questions."""
    low, high = mechanism.questions_drawn
    most = len(mechanism.choices)
    number = str(low) if low == high else f"{low} to {high}"
    if low < most:
        yield (
            f"Your device picks {number} of these {most} questions at random; your answers do not influence which. "
            "The report is about these questions only."
        )
    yield (
        "For each question in the report your device draws a random set of its answers. Sets that hold your true "
        "answers are likelier: a report in which enough of them do is "
        f"×{times(mechanism.level)} as likely as any other. The chances are listed in the signed survey."
    )


def _table(block: Block, language: str) -> Iterator[str]:
    """Yield one line per answer: the chances of the symbols."""
    assert not isinstance(block.mechanism, AgreementMechanism)  # noqa: S101 - has its own sentences
    chances = columns(block.mechanism)
    labels = product(
        *([choice.label[language] for choice in question.choices] for question in block.questions)
    )
    for x, label in enumerate(labels):
        row = [
            (" and ".join(map(str, _parts(symbol))), column[x])
            for symbol, column in chances.items()
        ]
        likely = ", ".join(
            f"{name} with a chance of {percent(chance)}" for name, chance in row if chance > _NEVER
        )
        # Rounding turns zeros of an optimum into a few units of 2^-48. A row has at most 64 chances,
        # and 64 · 2^-24 is below 0.001%.
        remainder = (
            ", any other with a chance below 0.001%"
            if any(0 < chance <= _NEVER for _, chance in row)
            else ""
        )
        yield f"  if your answer is {' / '.join(label)}: {likely}{remainder}."


def _parts(symbol: Symbol) -> tuple[int, ...]:
    return symbol if isinstance(symbol, tuple) else (symbol,)


def _public(document: SurveyDocument, language: str) -> str:
    questions = "; ".join(question.text[language] for question in document.strata)
    return f"These answers are sent as you give them, not randomised: {questions}"


def _example(document: SurveyDocument) -> bytes:
    strata = {question.id: question.choices[0].id for question in document.strata}
    # The longest symbols show that every report fits the padded length.
    symbols = tuple(block.mechanism.longest_symbol_json() for block in document.blocks)
    return Report(document.digest, "0" * 32, symbols, strata).to_bytes(document.report_length)


def _leaves(document: SurveyDocument) -> str:
    """Return the report as it will look, with placeholders for its random values."""
    strata = {question.id: "your public answer" for question in document.strata}
    token = "your token" if document.token else None
    report = Report(document.digest, "0" * 32, tuple(0 for _ in document.blocks), strata, token)
    # Written by the code that writes real reports, so that the form is the same.
    sample = report.to_bytes(0).decode("ascii")
    symbols = ",".join(_shape(block.mechanism) for block in document.blocks)
    return sample.replace('"' + "0" * 32 + '"', "<32 random hex digits>").replace(
        f'"y":[{",".join("0" for _ in document.blocks)}]', f'"y":[{symbols}]'
    )


def _shape(mechanism: AnyMechanism) -> str:
    """Return a placeholder for a symbol: its range or length."""
    if isinstance(mechanism, AgreementMechanism):
        sizes = [1 + 2 * len(component.slots) for component in mechanism.components]
        least = "" if min(sizes) == max(sizes) else f"{min(sizes)} to "
        return f"[<{least}{max(sizes)} numbers: a component, then parts and their sets>]"
    widest = mechanism.longest_symbol_json()
    if isinstance(widest, str):
        return f"<{len(widest)} hex digits>"
    return (
        f"0–{widest}"
        if isinstance(widest, int)
        else f"[{','.join(f'0–{part}' for part in widest)}]"
    )


def _choices(choices: Sequence[Choice], language: str) -> str:
    return " / ".join(choice.label[language] for choice in choices)
