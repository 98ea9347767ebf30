# SPDX-License-Identifier: Apache-2.0
"""Live figures for admins: numbers of released reports, bands for pending and refused ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, prod, sqrt
from typing import Final

from frankly_design.estimate.planner import Setting, least_reports
from frankly_design.kinds.parts import cell_questions, estimated_in_arms
from frankly_protocol.blocks import Question
from frankly_protocol.documents import SurveyDocument

from frankly_server.intake.times import next_release
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.preview import stated_of, wanted_plan

SMALL: Final = 10  # a smaller number could reveal that a single person has answered
_LADDER: Final = (1, 2, 5)
Margins = tuple[float | None, ...]
"""Results of `margins_of_one_report`."""


@dataclass(frozen=True, slots=True)
class VersionCount:
    """Number of released reports of one version, and the next release time (UTC)."""

    version: int
    digest: str
    n: int
    next_release: datetime


@dataclass(frozen=True, slots=True)
class BlockOutlook:
    """Expected precision of a block: current margin (half-width at 95%), and missing reports.

    text : its question, in the first language; joint questions have × between them. figure : what
    is wanted of it (`WantedPlan`). is_number : True if margins are shares of the range of a number.
    margin : None with fewer than 10 reports, or if some figure cannot be estimated. more : reports missing for
    the target; 0 if it is reached, None if it cannot be reached.
    """

    text: str
    figure: str
    is_number: bool
    margin: float | None
    target: float
    more: int | None


@dataclass(frozen=True, slots=True)
class Live:
    """Figures of the answers page. n : number of released reports of all versions.

    accepted, refusals : bands, because the exact numbers change with every report.
    outlook : None if the margins are not known.
    """

    n: int
    accepted: str
    versions: Sequence[VersionCount]
    refusals: Mapping[str, str]
    outlook: Sequence[BlockOutlook] | None


def live(
    documents: Sequence[tuple[SurveyDocument, int]],
    accepted: str,
    refusals: Mapping[tuple[str, str], int],
    target: float,
    now: datetime,
    margins: Margins | None,
) -> Live:
    """Return the live figures of a survey.

    documents : versions with their numbers of released reports. accepted : `received_band`.
    target : a half-width above 0. margins : `margins_of_one_report` of the newest version, None if
    they are not known. The outlook treats the released reports of all versions as reports of the
    newest version's mechanisms.
    """
    total = sum(n for _, n in documents)
    by_code: Counter[str] = Counter()
    for (_, code), n in refusals.items():
        by_code[code] += n
    return Live(
        n=total,
        accepted=accepted,
        versions=[
            VersionCount(
                document.version, document.digest, n, next_release(document.release_every, now)
            )
            for document, n in documents
        ],
        refusals={code: band(n) for code, n in sorted(by_code.items())},
        outlook=None if margins is None else _outlook(documents[-1][0], margins, total, target),
    )


def band(n: int) -> str:
    """Return a band such as “20 to 49”: exact numbers would show when a person answers."""
    if n == 0:
        return "none"
    if n < SMALL:
        return f"fewer than {SMALL}"
    # Bands of the series 1, 2, 5, 10, …: a single report rarely changes the band.
    power = 10 ** (len(str(n)) - 1)
    low = max(step * power for step in _LADDER if step * power <= n)
    high = min(step * power for step in (*_LADDER, 10) if step * power > n)
    return f"{low:,} to {high - 1:,}"


def received_band(accepted: int, was_erased: bool) -> str:
    """Return the band of the received reports.

    was_erased : True if reports were erased before. Then none and a few are not told apart: after
    each erasure, the first report would show when somebody answers.
    """
    return band(max(accepted, 1) if was_erased else accepted)


def expected_pending(choices: Iterable[int], step: int) -> int:
    """Return the expected number of pending reports: half a step in each cell (rounded down).

    choices : number of choices of each public question.
    """
    return prod(choices) * step // 2


def cells_of(document: SurveyDocument) -> list[list[int]]:
    """Return the numbers of choices of the public questions that divide cells, of each arm."""
    return [
        [len(question.choices) for question in cell_questions(version)]
        for version in document.versions
    ]


def margins_of_one_report(document: SurveyDocument) -> Margins:
    """Return the half-width at 95% of everything in `stated_of` as if n were one report.

    It falls with the square root of n. Half-widths of numbers are shares of their range.
    None if some figure cannot be estimated. This takes seconds for a document of many large blocks.
    """
    plans = (wanted_plan(stated).plan for stated in stated_of(document))
    return tuple(None if plan is None else plan.margin(1) for plan in plans)


def text_of(questions: Sequence[Question], document: SurveyDocument, arm: str = "") -> str:
    """Return the text of questions in the document's first language, with × between, and their arm."""
    text = " × ".join(question.text[document.languages[0]] for question in questions)
    return f"{text} (arm {arm})" if arm else text


def without_result(document: SurveyDocument, answers: int) -> tuple[str, ...]:
    """Return a warning if questions will have no result; () if all will have one.

    answers : number of people who answer. A report on a form is about some of its questions only,
    so a question may stay below the minimum although the survey does not.
    """
    few = [
        f"“{text_of(block.questions, document, arm)}” ({about})"
        for arm, block, share_of_reports in estimated_in_arms(document)
        if (about := int(answers * share_of_reports)) < document.min_reports
    ]
    if not few:
        return ()
    return (
        f"A result needs {document.min_reports} answers. If {answers} people answer, expect "
        f"none for {', '.join(few)}: the numbers are the answers to expect about each.",
    )


def may_be_without_result(definition: SurveyDefinition) -> tuple[str, ...]:
    """Return a warning if questions of a draft may have no result, as far as is known before a design."""
    people, least = definition.expected_reports, definition.min_reports
    if people < least:
        return (f"A result needs {least} answers. If {people} people answer, there will be none.",)
    form = definition.form
    if form is None or people >= least * len(form.questions):
        return ()
    return (
        f"A result needs {least} answers about its question, and a report on a form is about some of "
        f"the questions only. Its margins say which have no result if {people} people answer.",
    )


def required_reports(document: SurveyDocument, margins: Margins, target: float) -> int | None:
    """Return the number of reports at which every half-width at 95% is at most `target`.

    margins : `margins_of_one_report`. Returns None if some figure cannot be estimated.
    """
    report_counts = []
    for stated, margin in zip(stated_of(document), margins, strict=True):
        if margin is None:
            return None
        report_counts.append(ceil(_reports(margin, target) / stated.share))
    return max(report_counts)


def _outlook(
    document: SurveyDocument, margins: Margins, n: int, target: float
) -> list[BlockOutlook]:
    outlook = []
    for stated, of_one in zip(stated_of(document), margins, strict=True):
        shown = int(n * stated.share)
        margin = of_one / sqrt(shown) if of_one is not None and shown >= SMALL else None
        missing = (
            None if of_one is None else max(0, ceil(_reports(of_one, target) / stated.share) - n)
        )
        text = text_of(stated.questions, document, stated.arm)
        outlook.append(BlockOutlook(text, stated.figure, stated.is_number, margin, target, missing))
    return outlook


def _reports(margin: float, target: float) -> int:
    """Return the least n with a half-width of at most `target`. margin : that of one report."""
    return least_reports(lambda n: [margin / sqrt(n)], (target,), Setting())
