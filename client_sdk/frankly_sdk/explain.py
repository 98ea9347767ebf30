# SPDX-License-Identifier: Apache-2.0
"""Plain words about a survey (acceptance step 11): what is asked, what leaves, and what that can tell anybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.report import Report

LIMITS = (
    "What this cannot protect: your network address is visible to whoever runs the server unless you use a relay; a "
    "device or operating system in strange hands sees everything; nobody can stop somebody from making you answer."
)


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """One block in words and figures.

    guess : chance that the best guess from what leaves is right, if all answers were equally likely before;
    blind : the same chance without it. ratio : how far odds can move, E. ceiling : the same under any prior; None if
    infinite.
    """

    block: str
    questions: tuple[str, ...]
    guess: Fraction
    blind: Fraction
    ratio: Fraction
    ceiling: Fraction | None
    words: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything worth knowing before answering; `str()` of it is what to show."""

    title: str
    blocks: tuple[BlockExplanation, ...]
    form_nats: str
    signed_by: tuple[str, ...]
    leaves: str
    words: str

    def __str__(self) -> str:
        return self.words


def explain(document: SurveyDocument, signed_by: Sequence[str], language: str | None = None) -> Explanation:
    """Explain a verified document; `language` is one of the document's, the first by default."""
    chosen = language if language in document.languages else document.languages[0]
    blocks = tuple(_block(block, chosen) for block in document.blocks)
    nats = ln_up(document.form_level.level)
    leaves = _leaves(document)
    lines = [
        document.title[chosen],
        *([document.consent[chosen]] if document.consent else []),
        "Your answers are randomised here, on this device. Only random symbols leave it; your answers never do.",
        *(block.words for block in blocks),
        f"Answering everything costs {nats} nats: no combination of what leaves moves odds by more than "
        f"×{_times(document.form_level.level)}.",
        f"What leaves, once, as {document.report_length} bytes: {leaves}",
        f"Signed by: {', '.join(key[:16] for key in signed_by)}. A signature says who made the survey, not that a "
        "prior is true.",
        LIMITS,
    ]
    return Explanation(document.title[chosen], blocks, nats, tuple(signed_by), leaves, "\n\n".join(lines))


def _block(block: Block, language: str) -> BlockExplanation:
    asked = tuple(question.text[language] for question in block.questions)
    columns = list(zip(*block.mechanism.weights, strict=True))
    answers = block.mechanism.answers
    # Bayes vulnerability under equally likely answers: Σ_y max_x Q(y|x) / a.
    guess = Fraction(sum(max(column) for column in columns), block.mechanism.denominator * answers)
    blind = Fraction(1, answers)
    lines = [
        " ".join(asked),
        f"  Whoever guesses your answer from what leaves is right {_percent(guess)} of the time; by guessing blindly, "
        f"{_percent(blind)}.",
        f"  {_promise(block)}",
    ]
    if guess == 1:
        lines.append("  Your answer to this is sent unchanged.")
    return BlockExplanation(block.id, asked, guess, blind, block.ratio, block.ceiling, "\n".join(lines))


def _promise(block: Block) -> str:
    if block.prior is None:
        times = _times(block.ratio)
        return f"Nobody’s odds between two answers of yours change by more than ×{times}, whatever they know."
    what = {
        "lip": f"Nobody’s belief about your “{block.prior.secret}” changes by more than ×{_times(block.ratio)}",
        "secret-ldp": f"Nobody’s odds about your “{block.prior.secret}” change by more than ×{_times(block.ratio)}",
    }[block.notion]
    ceiling = (
        "Without that, there is no limit: some symbols rule out some answers for certain."
        if block.ceiling is None
        else f"Without that, odds change by at most ×{_times(block.ceiling)}."
    )
    return (
        f"{what}, as long as this published table is true: {block.prior.source}. {ceiling} "
        "The answer itself is protected by that second limit only."
    )


def _leaves(document: SurveyDocument) -> str:
    """Return the report as it will look, with placeholders where random things stand."""
    strata = {question.id: "your public answer" for question in document.strata}
    sample = Report(document.digest, "0" * 32, tuple(0 for _ in document.blocks), strata).to_bytes(0).decode("ascii")
    symbols = ",".join(f"0–{block.mechanism.reports - 1}" for block in document.blocks)
    return sample.replace('"' + "0" * 32 + '"', "<32 random hex digits>").replace(
        f'"y":[{",".join("0" for _ in document.blocks)}]', f'"y":[{symbols}]'
    )


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:.1f}%"


def _times(ratio: Fraction | None) -> str:
    """Return a ratio with two decimals, rounded up: a promise is never shown smaller than it is."""
    if ratio is None:
        return "∞"
    hundredths = -(-ratio.numerator * 100 // ratio.denominator)
    return f"{hundredths // 100}.{hundredths % 100:02}"
