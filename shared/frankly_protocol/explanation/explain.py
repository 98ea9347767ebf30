# SPDX-License-Identifier: Apache-2.0
"""Explanation of a survey (acceptance step 11): questions, report and privacy bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from html import escape
from itertools import groupby, product

from frankly_protocol.audit import ReportLevel, ln_up
from frankly_protocol.audit.bounds import times
from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.budget import Budget
from frankly_protocol.explanation.catalogue import Catalogue, Texts, require_texts
from frankly_protocol.explanation.figures import percent
from frankly_protocol.explanation.label import Consequence, beliefs, consequences, name_of, summary
from frankly_protocol.explanation.promised import block_promises, cost, whole_report
from frankly_protocol.mechanisms import Symbol, columns
from frankly_protocol.mechanisms.base import Sentence, Shape
from frankly_protocol.report import Report
from frankly_protocol.tokens import TokenRule

_NEVER = Fraction(1, 1 << 24)


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """One block in words and numbers.

    same : smallest and largest chance, over the answers, that the symbol names the true answer;
        None if the symbols do not correspond to answers.
    unchanged : True if every symbol corresponds to one answer, so that the answer is sent
        unchanged.
    guess : chance that the best guess from the symbol is right, if all combinations of the block's
        answers are equally likely. For the agreement kind the guess is at one question, the one for
        which this chance is largest; for any other kind it is at all answers of the block at once.
    blind : the same chance without the symbol.
    guess_words : the sentence with these two chances; it names what the guess is about.
    ratio : the level of the first promise, or None if it does not bound a ratio on both sides.
    ceiling : the largest ratio by which odds can move under any prior; None if infinite or above
        2^53 − 1.
    """

    block: str
    questions: tuple[str, ...]
    same: tuple[Fraction, Fraction] | None
    unchanged: bool
    guess: Fraction
    blind: Fraction
    guess_words: str
    ratio: Fraction | None
    ceiling: Fraction | None
    words: str


@dataclass(frozen=True, slots=True)
class Section:
    """Some paragraphs of the full explanation under one heading."""

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Everything that a respondent should know before answering.

    Show `summary`, then `consequences` and `overall`, and keep `details` one step away; or show the
    result of `str()`, which has them all.

    summary : sentences to read before the first question; in English at most 90 words.
    consequences : what a report tells about each question, in frequencies of people.
    overall : what it tells about all of them together.
    details : the full technical text.
    form_nats : the ledger's charge for the form, in nats of log-odds, rounded up.
    form_delta : the δ that is also charged, 0 unless the app allows one; if the respondent has less
        δ left, `level.ceiling` is charged instead of both.
    report_template : the report with placeholders for its random values.
    example : a report of the padded length, with the longest symbols and without a token.
    words : the whole explanation.
    level : the level of the whole report.
    language : the language of the sentences, one of frankly_protocol.languages.EXPLAINED.
    """

    title: str
    summary: tuple[str, ...]
    consequences: tuple[Consequence, ...]
    overall: tuple[str, ...]
    details: tuple[Section, ...]
    blocks: tuple[BlockExplanation, ...]
    form_nats: str
    signed_by: tuple[str, ...]
    report_template: str
    example: bytes
    words: str
    level: ReportLevel
    language: str

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return f"<Explanation of {self.title!r}, {len(self.words)} characters: print it>"

    def _repr_html_(self) -> str:
        """Return the explanation as HTML for notebooks, with the details folded."""
        told = "".join(
            f"<li>{escape('; '.join(one.names))}{_html(*one.sentences, *one.notes)}</li>"
            for one in self.consequences
        )
        details = "".join(
            f"<h4>{escape(section.heading)}</h4>{_html(*section.paragraphs)}"
            for section in self.details
        )
        return (
            f'<div lang="{escape(self.language)}" dir="auto"><h3>{escape(self.title)}</h3>'
            f"{_html(' '.join(self.summary))}<ul>{told}</ul>{_html(*self.overall)}"
            f"<details><summary>…</summary>{details}</details></div>"
        )

    @property
    def form_delta(self) -> Fraction:
        """The δ that is charged together with `form_nats`."""
        return self.level.cost.delta


def _html(*paragraphs: str) -> str:
    """Return paragraphs as HTML; line breaks and indents stay."""
    style = "white-space: pre-wrap"
    return "".join(f'<p style="{style}">{escape(text)}</p>' for text in paragraphs)


def explain(
    document: SurveyDocument,
    level: ReportLevel,
    signed_by: Sequence[str],
    language: str | None = None,
    budget: Budget | None = None,
    texts: Catalogue | None = None,
) -> Explanation:
    """Explain a verified document.

    level : the level of its whole report, under the app's own cap on δ.
    language : one of the document's; otherwise the document's first is used. The sentences are in
        the same language if it is one of frankly_protocol.languages.EXPLAINED, otherwise in English.
    budget : the budget of the respondent who is to answer.
    texts : an app's own texts, which replace those of the same part and name in texts/.

    Raises InvalidInput, as `require_texts` does.
    """
    if texts is not None:
        require_texts(texts)
    chosen = language if language in document.languages else document.languages[0]
    words = Texts(chosen, "explanation", texts)
    say, label = words.say, words.part("label")
    blocks = tuple(_block(block, chosen, bool(document.strata), words) for block in document.blocks)
    template, item = _report_template(document, words), document.instructed
    told = consequences(document, [block.guess_words for block in blocks], chosen, label)
    is_fit = any(one.fit and one.fit.own[1] and not one.fit.is_plain for one in told)
    has_open = bool(document.open_questions)
    is_random = not all(block.mechanism.sends_unchanged for block in document.blocks)
    overall = (
        *([label.say("fitting")] if is_fit else []),
        # In an arm without blocks all is sent as it is.
        *(beliefs(level, label, has_open=has_open, is_random=is_random) if blocks else ()),
    )
    parts: dict[str, list[str]] = {
        "sent": [
            say("made_here"),
            *([_public(document, chosen, words)] if document.strata else []),
            *([say("instructed", question=item.question.text[chosen])] if item else []),
            *_arms(document, words),
            *_anchors(document, chosen, words),
            *([say(_token(document.token))] if document.token else []),
        ],
        "questions": [block.words for block in blocks],
        "limits": ["\n".join(whole_report(document, level, words))] if blocks else [],
        "open": [say("limits"), *([say("unread")] if say("unread") else [])],
        "technical": [
            *([cost(level, budget, words)] if blocks else []),
            say("sent", n=document.report_length, report=template),
            say("signed", keys=", ".join(key[:16] for key in signed_by)),
        ],
    }
    details = tuple(
        Section(label.say(f"part_{name}"), tuple(paragraphs))
        for name, paragraphs in parts.items()
        if paragraphs
    )
    first = tuple(summary(document, level, told, chosen, label))
    paragraphs = [
        document.title[chosen],
        *([say("own_words", text=document.consent[chosen])] if document.consent else []),
        " ".join(first),
        *("\n".join(("; ".join(one.names), *one.sentences, *one.notes)) for one in told),
        *overall,
        *(text for section in details for text in (section.heading, *section.paragraphs)),
    ]
    return Explanation(
        title=document.title[chosen],
        summary=first,
        consequences=told,
        overall=overall,
        details=details,
        blocks=blocks,
        form_nats=ln_up(level.cost.odds),
        signed_by=tuple(signed_by),
        report_template=template,
        example=_example(document),
        words="\n\n".join(paragraphs),
        level=level,
        language=words.language,
    )


def _block(block: Block, language: str, has_strata: bool, texts: Texts) -> BlockExplanation:
    question_texts = tuple(
        dict.fromkeys((question.box or question).text[language] for question in block.questions)
    )
    mechanism = block.mechanism
    guess, blind = mechanism.guess, mechanism.blind_guess
    guess_words = _guess_sentence(block, guess, blind, language, texts)
    same = mechanism.named
    lines = [
        *_questions(block.questions, language, texts),
        *_law(block, same, language, texts),
        guess_words,
        *block_promises(block, has_strata, texts),
    ]
    return BlockExplanation(
        block=block.id,
        questions=question_texts,
        same=same,
        unchanged=mechanism.sends_unchanged,
        guess=guess,
        blind=blind,
        guess_words=guess_words,
        ratio=block.ratio,
        ceiling=block.ceiling,
        words="\n  ".join(lines),
    )


def _questions(questions: Sequence[Question], language: str, texts: Texts) -> Iterator[str]:
    """Yield every question with its possible answers; a question with boxes once, with all of them."""
    for box, group in groupby(questions, lambda question: question.box and question.box.of):
        first, *more = list(group)
        if box is None:
            for question in (first, *more):
                name = "number_question" if question.asks_number else "question"
                choices = " / ".join(choice.label[language] for choice in question.choices)
                yield texts.say(name, text=question.text[language], choices=choices)
            continue
        boxes = [question.box for question in (first, *more) if question.box is not None]
        labels = " / ".join(one.label[language] for one in boxes)
        yield texts.say("box_question", text=boxes[0].text[language], choices=labels)
    if any(question.ask_if for question in questions):
        yield texts.say("skipped")


def _guess_sentence(
    block: Block, guess: Fraction, blind: Fraction, language: str, texts: Texts
) -> str:
    """Return a sentence with the chances of a right guess, which names what is guessed."""
    chances = {"guess": texts.figure(percent(guess)), "blind": texts.figure(percent(blind))}
    if len(block.questions) == 1:
        return texts.say("guess", **chances)
    if block.form is None:
        return texts.say("guess_of_all", **chances)
    easiest = block.form.easiest
    names = [name_of(question, language) for question in block.questions]
    name = names[easiest]
    # Questions of the same words are told apart by their order.
    if names.count(name) > 1:
        name += f" ({names[: easiest + 1].count(name)})"
    return texts.say("guess_of_many", question=name, **chances)


def _law(
    block: Block, same: tuple[Fraction, Fraction] | None, language: str, texts: Texts
) -> Iterator[str]:
    """Yield the chance that the report names the truth, or what its kind says about its law."""
    say = texts.say
    # Checked first, because the sentences below would say that the result is random.
    if block.mechanism.sends_unchanged:
        yield say("unchanged")
    elif same is not None:
        low, high = (texts.figure(percent(share)) for share in same)
        yield say("named" if same[0] == same[1] else "named_range", chance=low, low=low, high=high)
    else:
        for sentence in block.mechanism.sentences:
            yield _say(sentence, texts)
            if sentence.is_draw:
                yield from _drawn(block, texts)
            if sentence.lists_symbols:
                yield from _table(block, language, texts)


def _say(sentence: Sentence, texts: Texts) -> str:
    """Return a kind's sentence with its figures in the notation of the language."""
    chances = {name: texts.figure(percent(chance)) for name, chance in sentence.chances.items()}
    ratios = {name: texts.figure(times(ratio)) for name, ratio in sentence.ratios.items()}
    return texts.say(sentence.name, **sentence.numbers, **chances, **ratios)


def _drawn(block: Block, texts: Texts) -> Iterator[str]:
    """Yield sentences on the questions of a form of which only some are drawn."""
    if any(question.box for question in block.questions):
        yield texts.say("boxes_drawn" if block.asks_drawn else "boxes_count")
    if block.asks_drawn:
        yield texts.say("asked_drawn")


def _table(block: Block, language: str, texts: Texts) -> Iterator[str]:
    """Yield one line per answer: the chances of the symbols."""
    chances, say = columns(block.numbered_mechanism), texts.say
    labels = product(
        *([choice.label[language] for choice in question.choices] for question in block.questions)
    )
    for x, label in enumerate(labels):
        row = [(_symbol(symbol, texts), column[x]) for symbol, column in chances.items()]
        likely = ", ".join(
            say("chance_of", symbol=name, chance=texts.figure(percent(chance)))
            for name, chance in row
            if chance > _NEVER
        )
        # Rounding turns zeros of an optimum into a few units of 2^-48. A row has at most 64 chances,
        # and 64 · 2^-24 is below 0.001%.
        is_rare = any(0 < chance <= _NEVER for _, chance in row)
        rest = say("rare", chance=texts.figure("0.001%")) if is_rare else ""
        yield say("symbols_of", answer=" / ".join(label), chances=likely, rest=rest)


def _symbol(symbol: Symbol, texts: Texts) -> str:
    parts = [str(part) for part in (symbol if isinstance(symbol, tuple) else (symbol,))]
    return reduce(lambda first, second: texts.say("and", first=first, second=second), parts)


def _public(document: SurveyDocument, language: str, texts: Texts) -> str:
    questions = "; ".join(question.text[language] for question in document.strata)
    return texts.say("public_answers", questions=questions)


def _token(rule: TokenRule) -> str:
    """Return the name of the sentence on the token; one of mixed sources holds for people of each."""
    return "invite_some" if rule.is_mixed else rule.weakest


def _arms(document: SurveyDocument, texts: Texts) -> Iterator[str]:
    """Yield a sentence on the arm that a view is of."""
    if document.arms is not None and document.arm is not None:
        yield texts.say("arms", n=len(document.arms.arms), arm=document.arm)


def _anchors(document: SurveyDocument, language: str, texts: Texts) -> Iterator[str]:
    """Yield a sentence for each question that has an anchor: known shares, or an earlier question."""
    for one in document.questions.values():
        if one.anchor is not None:
            name = "anchor" if one.anchor.repeats is None else "repeated"
            yield texts.say(name, question=one.text[language], source=one.anchor.source)


def _example(document: SurveyDocument) -> bytes:
    choices = {name: question.choices[0].id for name, question in document.open_questions.items()}
    strata = document.open_answers(choices)
    # The longest symbols show that every report fits the padded length.
    symbols = tuple(block.mechanism.longest_symbol_json() for block in document.blocks)
    return Report(document.digest, "0" * 32, symbols, strata).to_bytes(document.report_length)


def _report_template(document: SurveyDocument, texts: Texts) -> str:
    """Return the report as it will look, with placeholders for its random values."""
    strata = document.open_answers(dict.fromkeys(document.open_questions, "?"))
    if document.instructed:
        strata[document.instructed.id] = "!"
    token = "?" if document.token else None
    y = tuple(0 for _ in document.blocks)
    # Built with the code that writes real reports, so that the format is the same.
    sample = Report(document.digest, "0" * 32, y, strata, token).to_bytes(0).decode("ascii")
    symbols = ",".join(_shape(block.mechanism.symbol_shape, texts) for block in document.blocks)
    for part, placeholder in (
        ('"' + "0" * 32 + '"', texts.say("random_digits")),
        (f'"y":[{",".join("0" for _ in y)}]', f'"y":[{symbols}]'),
        ('"token":"?"', f'"token":"{texts.say("token")}"'),
        (':"?"', f':"{texts.say("public_answer")}"'),
        (':"!"', f':"{texts.say("passed")}"'),
    ):
        sample = sample.replace(part, placeholder)
    return sample


def _shape(shape: Shape, texts: Texts) -> str:
    """Return a placeholder for a symbol: its range or length."""
    if isinstance(shape, tuple):
        return f"[{','.join(_shape(part, texts) for part in shape)}]"
    return f"0–{shape}" if isinstance(shape, int) else _say(shape, texts)
