# SPDX-License-Identifier: Apache-2.0
"""Plain words about a survey (acceptance step 11): what is asked, what leaves, and what that can tell anybody."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from frankly_protocol.audit import ReportLevel, is_endless, ln_up
from frankly_protocol.blocks import Block, Choice, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, SubsetMechanism, Symbol, UnaryMechanism, columns
from frankly_protocol.report import Report

LIMITS = (
    "What this cannot protect: your network address is visible to whoever runs the server unless you use a relay; a "
    "device or operating system in strange hands sees everything; nobody can stop somebody from making you answer, and "
    "nobody can check that an answer is true. Once sent, an answer cannot be withdrawn. If this app's memory is erased "
    "it no longer knows that you have answered; answering again then would tell more about you."
)
_TOKENS = {
    "invite": "Your invitation leaves with that as it is: whoever handed it out can tell by it which random result is "
    "yours.",
    "rsa-pss": "Your token leaves with that as it is; it was signed unseen, so that it does not tell whom it was given "
    "to.",
}
_MAX_TABLE = 64  # chances; more than that is no longer read by anybody
_NEVER = Fraction(1, 1 << 24)


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """One block in words and figures.

    same : least and greatest chance, over the answers, that what leaves names the true answer; None if the symbols do
    not correspond to answers. guess : chance that the best guess from what leaves is right, if all answers were equally
    likely before; blind : the same chance without it. ratio : the first promise as a ratio, None if it is none.
    ceiling : how far odds can move under any prior; None if infinite.
    """

    block: str
    questions: tuple[str, ...]
    same: tuple[Fraction, Fraction] | None
    guess: Fraction
    blind: Fraction
    ratio: Fraction | None
    ceiling: Fraction | None
    words: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything worth knowing before answering; `str()` of it is what to show.

    leaves : the report with words where random things will stand. example : a report of this very shape and length.
    form_delta : the chance with which `form_nats` fails, 0 unless the app allows one.
    """

    title: str
    blocks: tuple[BlockExplanation, ...]
    form_nats: str
    signed_by: tuple[str, ...]
    leaves: str
    example: bytes
    words: str
    form_delta: Fraction = Fraction(0)

    def __str__(self) -> str:
        return self.words


def explain(
    document: SurveyDocument, level: ReportLevel, signed_by: Sequence[str], language: str | None = None
) -> Explanation:
    """Explain a verified document; `language` is one of the document's, the first by default.

    level : of its whole report, by the app's own cap on δ.
    """
    chosen = language if language in document.languages else document.languages[0]
    blocks = tuple(_block(block, chosen) for block in document.blocks)
    leaves = _leaves(document)
    lines = [
        document.title[chosen],
        *([f"The survey’s own words: “{document.consent[chosen]}”"] if document.consent else []),
        "Your answers are randomised here, on this device; only what is listed below leaves it.",
        *([_public(document, chosen)] if document.strata else []),
        *([_TOKENS[document.token.kind]] if document.token else []),
        *(block.words for block in blocks),
        _ledger(level),
        f"What leaves, once, as {document.report_length} bytes (spaces fill the end): {leaves}",
        f"Signed by: {', '.join(key[:16] for key in signed_by)}. A signature says who made the survey, not that a "
        "prior is true.",
        LIMITS,
    ]
    words, nats = "\n\n".join(lines), ln_up(level.cost.odds)
    told = (tuple(signed_by), leaves, _example(document), words)
    return Explanation(document.title[chosen], blocks, nats, *told, level.cost.delta)


def _block(block: Block, language: str) -> BlockExplanation:
    asked = tuple(question.text[language] for question in block.questions)
    mechanism = block.mechanism
    guess = mechanism.guess
    blind = Fraction(1, mechanism.answers)
    same = _same(block)
    lines = [
        *(f"{question.text[language]} ({_choices(question.choices, language)})" for question in block.questions),
        *_chances(block, same, language),
        f"Whoever guesses from what leaves is right {_percent(guess)} of the time; by guessing blindly, "
        f"{_percent(blind)}, if all answers are equally common.",
        *_promises(block),
    ]
    words = "\n  ".join(lines)
    return BlockExplanation(block.id, asked, same, guess, blind, block.ratio, block.ceiling, words)


def _same(block: Block) -> tuple[Fraction, Fraction] | None:
    """Return the range of the chances on the diagonal if every symbol y speaks for answer y more than for any other."""
    if not isinstance(block.mechanism, DenseMechanism) or block.mechanism.reports != block.mechanism.answers:
        return None
    weights = block.mechanism.weights
    for y, column in enumerate(zip(*weights, strict=True)):
        if any(w >= column[y] for x, w in enumerate(column) if x != y):
            return None
    chances = [block.mechanism.probability(x, x) for x in range(len(weights))]
    return min(chances), max(chances)


def _chances(block: Block, same: tuple[Fraction, Fraction] | None, language: str) -> Iterator[str]:
    """Say how often what leaves names the truth, or list the chances of every symbol."""
    if same is not None and same[0] == 1:
        yield "Your answer to this is sent unchanged."
    elif same is not None:
        low, high = map(_percent, same)
        chance = low if same[0] == same[1] else f"{low} to {high}, depending on the answer"
        yield f"What leaves names your true answer with a chance of {chance}; otherwise it names another one."
    elif isinstance(block.mechanism, UnaryMechanism):
        D = block.mechanism.denominator
        keep, flip = Fraction(block.mechanism.keep, D), Fraction(block.mechanism.flip, D)
        yield (
            f"What leaves is a yes or a no for every answer: for the true one a yes with a chance of {_percent(keep)}, "
            f"for any other with a chance of {_percent(flip)}."
        )
    elif isinstance(block.mechanism, SubsetMechanism):
        inside = Fraction(block.mechanism.inside, block.mechanism.denominator)
        yield (
            f"What leaves is a random set of {block.mechanism.size} of the {block.mechanism.answers} answers; the true "
            f"one is among them with a chance of {_percent(inside)}."
        )
    elif block.mechanism.answers * block.mechanism.reports > _MAX_TABLE:
        yield (
            f"What leaves is one of {block.mechanism.reports} symbols that do not stand for answers; their chances for "
            "every answer are listed in the signed survey."
        )
    else:
        yield "What leaves is a symbol that does not stand for one answer:"
        chances = columns(block.mechanism)
        labels = product(*([c.label[language] for c in question.choices] for question in block.questions))
        for x, label in enumerate(labels):
            row = [(" and ".join(map(str, _parts(y))), column[x]) for y, column in chances.items()]
            # Rounding leaves a few units of 2^-48 where an optimum has zeros: never, for any reader.
            told = ", ".join(f"{y} with a chance of {_percent(chance)}" for y, chance in row if chance > _NEVER)
            yield f"  if your answer is {' / '.join(label)}: {told}."


def _parts(symbol: Symbol) -> tuple[int, ...]:
    return symbol if isinstance(symbol, tuple) else (symbol,)


def _promises(block: Block) -> Iterator[str]:
    """Say every promise, then what is left of them if a table is not true."""
    for promise in block.promises:
        yield _promise(promise)
    if not block.rests_on_prior:
        return
    yield (
        "Without that, there is no limit: some symbols rule out some answers for certain. The answer itself is not "
        "protected."
        if is_endless(block.ceiling)
        else f"Without that, odds change by at most ×{_times(block.ceiling)}, which is also what protects the answer "
        "itself."
    )


def _promise(promise: Promise) -> str:
    claim = promise.claim
    level = Fraction(*claim.level) if claim.level else None
    if promise.secret is None:
        words = f"Nobody’s odds between two answers of yours change by more than ×{_times(level)}, whatever they know"
        if claim.delta is None:
            return f"{words}."
        n, d = claim.delta
        return f"{words}, except with a chance of at most {_percent_up(Fraction(n, d))}."
    return f"{_about(promise)}, as long as this published table is true: {promise.source}."


def _about(promise: Promise) -> str:
    """Say what a promise that rests on public knowledge bounds."""
    claim, secret = promise.claim, promise.secret
    times = _times(Fraction(*claim.level)) if claim.level else "∞"
    if claim.notion == "dpv" and claim.level and promise.prior and claim.sensitive is not None:
        value = promise.prior.secrets[claim.sensitive]
        return f"Nobody can be surer than {_percent_up(Fraction(*claim.level))} that your “{secret}” is “{value}”"
    if claim.notion == "alip":
        low = _times(Fraction(*claim.low_level)) if claim.low_level else "∞"
        return f"Nobody’s belief about your “{secret}” grows by more than ×{times} or shrinks by more than ÷{low}"
    if claim.notion in ("lip", "srlip"):
        known = ", even for those who know some of your answers here" if claim.notion == "srlip" else ""
        return f"Nobody’s belief about your “{secret}” changes by more than ×{times}{known}"
    return f"Nobody’s odds about your “{secret}” change by more than ×{times}"


def _ledger(level: ReportLevel) -> str:
    """Say what the whole form costs, and which block counts how."""
    counted = ", ".join(f"{line.block} by its {line.counted_by}, {ln_up(line.odds)}" for line in level.lines)
    told = "; ".join(
        f"Nobody’s odds about your “{name}” change by more than ×{_times(s.odds)}" for name, s in level.secrets.items()
    )
    return f"Answering everything costs {ln_up(level.cost.odds)} nats ({counted}). {told}"


def _public(document: SurveyDocument, language: str) -> str:
    asked = "; ".join(question.text[language] for question in document.strata)
    return f"These answers leave as you give them, not randomised: {asked}"


def _example(document: SurveyDocument) -> bytes:
    strata = {question.id: question.choices[0].id for question in document.strata}
    symbols = tuple(block.mechanism.longest_symbol_json() for block in document.blocks)
    return Report(document.digest, "0" * 32, symbols, strata).to_bytes(document.report_length)


def _leaves(document: SurveyDocument) -> str:
    """Return the report as it will look, with placeholders where random things stand."""
    strata = {question.id: "your public answer" for question in document.strata}
    token = "your token" if document.token else None
    report = Report(document.digest, "0" * 32, tuple(0 for _ in document.blocks), strata, token)
    sample = report.to_bytes(0).decode("ascii")
    symbols = ",".join(_shape(block.mechanism) for block in document.blocks)
    return sample.replace('"' + "0" * 32 + '"', "<32 random hex digits>").replace(
        f'"y":[{",".join("0" for _ in document.blocks)}]', f'"y":[{symbols}]'
    )


def _shape(mechanism: Mechanism) -> str:
    """Return what a symbol will look like."""
    widest = mechanism.longest_symbol_json()
    if isinstance(widest, str):
        return f"<{len(widest)} hex digits>"
    return f"0–{widest}" if isinstance(widest, int) else f"[{','.join(f'0–{part}' for part in widest)}]"


def _choices(choices: Sequence[Choice], language: str) -> str:
    return " / ".join(choice.label[language] for choice in choices)


def _percent(share: Fraction) -> str:
    """Return a share in per cent; only what is certain reads as 0 or 100."""
    # rounding: to the nearest tenth, for reading only; promises are rounded up, in `_times`.
    tenths = min(max(round(share * 1000), 1), 999) if 0 < share < 1 else int(share * 1000)
    return f"{tenths // 10}.{tenths % 10}%"


def _percent_up(share: Fraction) -> str:
    """Return a bound on a share in per cent, rounded up to a thousandth."""
    thousandths = -(-share.numerator * 100_000 // share.denominator)
    return f"{thousandths // 1000}.{thousandths % 1000:03}%"


def _times(ratio: Fraction | None) -> str:
    """Return a ratio with two decimals, rounded up: a promise is never shown smaller than it is."""
    if ratio is None:
        return "∞"
    hundredths = -(-ratio.numerator * 100 // ratio.denominator)
    return f"{hundredths // 100}.{hundredths % 100:02}"
