# SPDX-License-Identifier: Apache-2.0
"""Trial of a draft: the report that a device would send, drawn by the same mechanisms.

A trial does not sign, store or count anything.
"""

import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from math import prod
from typing import Any, Final, cast

from frankly_analyst.charts import Line, Scale, intervals
from frankly_analyst.shown import Shown
from frankly_design.estimate import Estimate, estimate
from frankly_design.estimate.margins import DEFAULT
from frankly_design.kinds.parts import chance_shown, part_blocks, part_table
from frankly_design.kinds.registry import kind_of
from frankly_protocol.audit import stated_ceiling
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import Truth
from frankly_protocol.problems import Problem
from frankly_protocol.report import Report, SymbolJson

from frankly_server.surveys.correction import correction_factor
from frankly_server.surveys.definition import BlockDefinition, SurveyDefinition
from frankly_server.surveys.drafting import Place, draft_document, draft_part, time_slices
from frankly_server.surveys.live import text_of
from frankly_server.surveys.preview import Stated, margin_points, previewed, stated_of, wanted_plan

RandomBits = Callable[[int], int]
PEOPLE: Final = 1000
SEARCH_S: Final = 8.0
"""Seconds for all searches of a draft in total; the admin and a server thread wait for them."""
TRIAL_S: Final = 20.0
"""Seconds within which a trial is complete: its searches take at most `SEARCH_S`, then they finish."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A report as a device would send it. length : length in bytes after padding."""

    report: str
    length: int
    sent: tuple["SentSymbol", ...]


@dataclass(frozen=True, slots=True)
class SentSymbol:
    """One block's symbol in the form in which it is sent.

    chance : probability of the symbol for this answer. min_chance, max_chance : the smallest and
    largest probability over all answers.
    """

    block: str
    symbol: SymbolJson
    chance: Fraction
    min_chance: Fraction
    max_chance: Fraction


def drafted(
    definition: SurveyDefinition,
    now: datetime,
    url: str,
    timer: Callable[[], float] = time.monotonic,
) -> SurveyDocument:
    """Return the document of a draft as if published at `now`, with designs found within SEARCH_S.

    Raises the InvalidInput errors of publishing.
    """
    slices = time_slices(timer, SEARCH_S, len(definition.parts))
    blocks = [draft_part(definition, i, limits) for i, limits in enumerate(slices)]
    # A made-up survey id, because the document is never signed.
    return draft_document(definition, blocks, Place("0" * 32, 1, None, now, url))


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """What to expect of a question or table of a draft, for each of `answer_points`.

    questions : their ids. text : their words. about : numbers of reports about it. figure : what is wanted of it
    (`WantedPlan`). margins : half-widths at 95% of that figure, the widest of several; None if there
    are no reports, or some figure cannot be estimated. is_number : False for margins of shares. factor : see
    `correction_factor`.
    """

    questions: tuple[str, ...]
    text: str
    about: tuple[int, ...]
    figure: str
    margins: tuple[float | None, ...]
    is_number: bool
    factor: float | None = None


def answer_points(definition: SurveyDefinition) -> tuple[int, ...]:
    """Return the numbers of answers for which margins are shown, the expected one too."""
    return margin_points(None, definition.expected_reports)


def expectations(
    definition: SurveyDefinition, now: datetime, url: str
) -> tuple[SurveyDocument, list[ExpectedRow]]:
    """Return the draft's document, and what to expect of each of its questions and tables.

    Raises the InvalidInput errors of `drafted`.
    """
    document = drafted(definition, now, url)
    return document, expected_rows(document, wanted_pairs(definition), answer_points(definition))


def wanted_pairs(definition: SurveyDefinition) -> tuple[tuple[str, str], ...]:
    """Return the pairs of questions of which a draft wants a joint table, by their ids."""
    return definition.form.cross_tables if definition.form else ()


def expected_rows(
    document: SurveyDocument, pairs: Sequence[tuple[str, str]], points: Sequence[int]
) -> list[ExpectedRow]:
    """Return what to expect of each question and table of a document, for these numbers of answers.

    pairs : as of `wanted_pairs`; those of other questions are left out.
    """
    rows = []
    for stated in (*stated_of(document), *separate_pairs(document, pairs)):
        wanted = wanted_plan(stated)
        plan, about = wanted.plan, tuple(int(n * stated.share) for n in points)
        margins = tuple(
            None if plan is None or n < 1 else (wanted.span or 1) * plan.margin(n) for n in about
        )
        ids = tuple(one.id for one in stated.questions)
        text = text_of(stated.questions, document, stated.arm)
        factor = correction_factor(document, stated, wanted)
        rows.append(ExpectedRow(ids, text, about, wanted.figure, margins, stated.is_number, factor))
    return rows


def separate_pairs(document: SurveyDocument, pairs: Sequence[tuple[str, str]]) -> Iterator[Stated]:
    """Yield the joint tables of pairs that the form's design keeps in separate parts."""
    block = document.blocks[-1]  # the form is the last block
    form = block.form
    if form is None:
        return
    ids = [question.id for question in block.questions]
    for pair in pairs:
        if not set(pair) <= set(ids):
            continue
        single = [i for i, part in enumerate(form.parts) if part in {(ids.index(q),) for q in pair}]
        if len(single) < len(pair):
            continue  # both are in one part, which is stated already
        alone, parts = part_blocks(block), tuple(single)
        table = part_table(form, parts)
        joint = replace(
            block,
            questions=tuple(alone[i].questions[0] for i in parts),
            mechanism=table,
            design_prior=tuple(
                map(prod, itertools.product(*(alone[i].design_prior for i in parts)))
            ),
            ceiling=stated_ceiling(table),
        )
        yield Stated(joint, joint.questions, chance_shown(form, parts))


def tried(block: BlockDefinition, everybody_says: str | None) -> tuple[Block, str | None]:
    """Return the designed block, and the plot if everybody gives one of its answers."""
    drawn = previewed(block).block
    if everybody_says not in block.joint_answers:
        return drawn, None
    return drawn, _plot_of_equal_answers(block, drawn, block.joint_answers.index(everybody_says))


def _plot_of_equal_answers(block: BlockDefinition, drawn: Block, x: int) -> str:
    """Return a plot of the estimate from a thousand people with answer `x`."""
    estimate = simulate(drawn, x)
    lines = [
        Line.of(name, Shown.of(share, *ends, possible=(0.0, 1.0)), 1.0 if i == x else 0.0)
        for i, (name, share, ends) in enumerate(
            zip(
                block.joint_answers,
                estimate.unbiased,
                estimate.margins.ends(DEFAULT, estimate.unbiased),
                strict=True,
            )
        )
        if share is not None and ends is not None
    ]
    title = "Estimate from a thousand equal answers"
    return intervals(title, [("", lines)], Scale.of_shares(lines)) if lines else ""


def rehearse(
    document: SurveyDocument, answers: Mapping[str, str], randbits: RandomBits = secrets.randbits
) -> Rehearsal:
    """Return a device's report of made-up answers. answers : choice ids by question id.

    Public questions and an instructed item need answers too. With arms, it is of one that is drawn here.

    Raises InvalidInput(field_missing) for a question whose answer is missing or unknown.
    """
    if document.arms is not None and document.views:
        document = document.views[document.arms.draw(randbits)]
    for question in (*document.questions.values(), *document.open_questions.values()):
        if question.index(answers.get(question.id, "")) is None:
            raise InvalidInput(
                Problem.FIELD_MISSING, "choose an answer to every question", question.id
            )
    sent = tuple(_sent(block, block.truth(answers), randbits) for block in document.blocks)
    strata = document.open_answers({name: answers[name] for name in document.open_questions})
    token = "0" * 43 if document.token else None  # a placeholder, which no server accepts
    report = Report(
        document.digest,
        f"{randbits(128):032x}",
        tuple(sent_block.symbol for sent_block in sent),
        strata,
        token,
    )
    return Rehearsal(report.to_bytes(0).decode("ascii"), document.report_length, sent)


def simulate(
    block: Block, truth: int, people: int = PEOPLE, randbits: RandomBits = secrets.randbits
) -> Estimate:
    """Return the estimate from reports of `people` who all have the same joint answer."""
    mechanism = block.numbered_mechanism
    counts = kind_of(mechanism).count(mechanism.sample(truth, randbits) for _ in range(people))
    return estimate(mechanism, counts, design_prior=block.design_prior)


def _sent(block: Block, truth: int | Truth, randbits: RandomBits) -> SentSymbol:
    mechanism: Any = block.mechanism
    symbol = mechanism.sample(truth, randbits)
    if block.form is not None:
        chance, low, high = block.form.chances(symbol, cast("Truth", truth))
        return SentSymbol(block.id, mechanism.symbol_json(symbol), chance, low, high)
    chances = [mechanism.probability(symbol, x) for x in range(mechanism.answers)]
    assert isinstance(truth, int)  # noqa: S101 - as `Block.truth` says
    return SentSymbol(
        block.id, mechanism.symbol_json(symbol), chances[truth], min(chances), max(chances)
    )
