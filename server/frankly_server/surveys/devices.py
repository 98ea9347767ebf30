# SPDX-License-Identifier: Apache-2.0
"""Level of a complete report before its design, and warnings for admins before they send a link.

There are warnings if devices with the default cap would refuse the survey, or if respondents could
confuse two choices. These are not errors, because an app may allow a higher cap, a survey may be
the only one that its respondents ever answer, and similar labels may be intended. Two cases are
errors: a promise that public answers void, unless a ceiling within the cap remains, and labels that
no reader could distinguish.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Final

from frankly_protocol.arms import Arms
from frankly_protocol.audit import (
    DEVICE_CAP,
    Claim,
    ReportLevel,
    exp_lower,
    is_endless,
    largest_level,
    level_for,
    ln_up,
)
from frankly_protocol.audit.bounds import times
from frankly_protocol.audit.report import LevelBlock, LevelDocument
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.languages import explained_in
from frankly_protocol.problems import Problem
from frankly_protocol.promises import Promise

from frankly_server.surveys.arms_definition import arms_of
from frankly_server.surveys.asked import without_refusal
from frankly_server.surveys.definition import FORM_ID, SurveyDefinition
from frankly_server.surveys.lookalikes import LabelledQuestion, lookalikes
from frankly_server.surveys.priors import block_request
from frankly_server.surveys.question_definition import QuestionDefinition

# Rounded down, so that a level above the cap always causes a warning.
_CAP = exp_lower(Fraction(DEVICE_CAP))

_MOST_PAIRS: Final = 20


@dataclass(frozen=True, slots=True)
class _ExpectedBlock:
    """A block before its design. ceiling : odds bound of its ldp promises, None if it has none."""

    id: str
    promises: Sequence[Promise]
    ceiling: Fraction | None


@dataclass(frozen=True, slots=True)
class ExpectedForm:
    """A survey before its design. A ceiling without an ldp promise is treated as infinite."""

    blocks: Sequence[LevelBlock]
    strata: Sequence[LabelledQuestion]
    questions: Mapping[str, LabelledQuestion]
    languages: Sequence[str]
    open_questions: Mapping[str, LabelledQuestion]
    """The public questions and the instructed item."""
    arms: Arms | None = None

    @property
    def versions(self) -> "tuple[ExpectedForm, ...]":
        """What a device may ask: each arm, or all of it without arms."""
        if self.arms is None:
            return (self,)
        blocks = {block.id: block for block in self.blocks}
        return tuple(
            replace(
                self,
                blocks=[blocks[name] for name in arm.blocks],
                strata=[question for question in self.strata if question.id in arm.strata],
                arms=None,
            )
            for arm in self.arms.arms
        )

    @property
    def report_level(self) -> ReportLevel:
        """An upper bound on the level of the whole report."""
        return largest_level(self.versions)


def expected_form(definition: SurveyDefinition) -> ExpectedForm:
    """Return a survey definition as an `ExpectedForm`.

    Raises the InvalidInput errors of `block_request`, `require_stated` and `require_distinct`.
    """
    # Checked here and not in the definition, so that older drafts can still be opened and edited.
    require_distinct(definition)
    form = ExpectedForm(
        [*(_expected(definition, i) for i in range(len(definition.blocks))), *_forms(definition)],
        definition.strata,
        {question.id: question for question in definition.drawn_questions},
        definition.languages,
        {question.id: question for question in _open(definition).values()},
        arms_of(definition),
    )
    require_stated(form)
    return form


def require_distinct(definition: SurveyDefinition) -> None:
    """Raise InvalidInput(choices_collide) if no reader could distinguish two choices (ADR 0025)."""
    for place, question in (*_open(definition).items(), *definition.places):
        for pair in lookalikes(question):
            if pair.is_refused:
                raise InvalidInput(
                    Problem.CHOICES_COLLIDE,
                    f"{pair}. Type one of them again on one keyboard, or change its words",
                    f"{place}.choices",
                )


def require_stated(form: SurveyDocument | ExpectedForm) -> None:
    """Raise InvalidInput(unsupported) for a void promise without a ceiling within the cap.

    Public answers void a promise based on counts of all people: together with a report, they can
    reveal a secret even if the counts are true.
    """
    for i, block in enumerate(form.blocks):
        # With a ceiling within the cap, the void promise only causes a warning.
        if is_void(block, form) and (block.ceiling is None or block.ceiling > _CAP):
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "with public questions, counts of all people give no protection, and the ceiling "
                f"of {block.id} is not within {DEVICE_CAP} nats. {_way_out(block)}set ceiling_cap "
                f"to {DEVICE_CAP} or less",
                f"blocks[{i}].prior",
            )


def is_within(level: ReportLevel, budget: str) -> bool:
    """Return True if a report reveals at most `budget` nats."""
    return level.odds is not None and level.odds <= exp_lower(Fraction(budget))


def require_budget(level: ReportLevel, budget: str) -> None:
    """Raise InvalidInput(budget_exceeded) if a report reveals more than `budget` nats."""
    if is_within(level, budget):
        return
    secret_odds = {name: secret.odds for name, secret in level.secrets.items()}
    secret_odds = secret_odds or {"the answers": level.answers.odds}
    secrets_text = ", ".join(f"{ln_up(odds)} about {name}" for name, odds in secret_odds.items())
    # Blocks are listed with prior-free bounds, which hold for any prior.
    blocks_text = ", ".join(f"{line.block} {ln_up(line.odds)}" for line in level.lines)
    unlimited = [line.block for line in level.lines if is_endless(line.odds)]
    way_out = (
        f"give {', '.join(unlimited)} a ceiling_cap"
        if unlimited
        else "lower a level or ceiling_cap, or raise the budget"
    )
    raise InvalidInput(
        Problem.BUDGET_EXCEEDED,
        f"the whole report reveals more than the budget of {budget} nats of log-odds: up to "
        f"{secrets_text}; the bounds of its blocks under any prior knowledge: {blocks_text}; "
        f"{way_out}",
        "budget",
    )


def is_void(block: LevelBlock, form: SurveyDocument | ExpectedForm) -> bool:
    """Return True if the public questions of an arm, or of a document without arms, void a promise."""
    return any(
        is_unstated(block, version)
        for version in form.versions
        if any(one.id == block.id for one in version.blocks)
    )


def is_unstated(block: LevelBlock, form: LevelDocument) -> bool:
    """Return True if public questions void a promise, so that only the ceiling is stated."""
    return bool(form.strata) and any(
        p.secret is not None and not p.is_stratified for p in block.promises
    )


def warnings_of(form: SurveyDocument | ExpectedForm, *, in_nats: bool = True) -> tuple[str, ...]:
    """Return warnings for an admin before the link is sent, one sentence each.

    in_nats : False for readers of the pages, to whom a factor of odds or a share says more.
    """
    level = form.report_level
    warnings = [
        *_cap_warnings(form, level, _Amounts() if in_nats else _Factors()),
        *_void_promises(form, in_nats=in_nats),
    ]
    for question in (*form.questions.values(), *form.open_questions.values()):
        warnings += _confusable(question)
    if isinstance(form, SurveyDocument):
        warnings += without_refusal(form)
    unexplained = [tag for tag in form.languages if not explained_in(tag)]
    if unexplained:
        warnings.append(
            f"Devices explain the survey in English to readers of {', '.join(unexplained)}, because the SDK "
            "has no texts in their language; an app can bring its own."
        )
    return tuple(warnings)


def _confusable(question: LabelledQuestion) -> Iterator[str]:
    """Yield a warning for each of the first confusable pairs: there can be half a million."""
    pairs = lookalikes(question)
    for pair in islice(pairs, _MOST_PAIRS):
        yield f"In a list of answers, {pair}. Change one of them if people could take it for the other."
    if next(pairs, None) is not None:
        yield f"Further answers of “{question.id}” look alike, too."


class _Amounts:
    """Words of the warnings for readers of survey files, in nats."""

    limit = f"{DEVICE_CAP} nats, the limit of devices whose app sets no other"
    lower, cap = "Lower a level or ceiling_cap.", "Set ceiling_cap."

    def reveals(self, odds: Fraction | None) -> str:
        """Return how much a report reveals."""
        return f"reveals up to {ln_up(odds)} nats"

    def costs(self, odds: Fraction | None) -> str:
        """Return what answering costs."""
        return f"costs {ln_up(odds)} nats, "


class _Factors:
    """Words of the warnings for readers of the pages."""

    limit = "devices allow whose app sets no other limit"
    lower, cap = "Choose a stronger protection, or a backstop.", "Keep a backstop (Protection)."

    def reveals(self, odds: Fraction | None) -> str:
        """Return how much a report reveals."""
        return f"can change odds by up to ×{times(odds)}"

    def costs(self, _odds: Fraction | None) -> str:
        """Return what answering costs."""
        return "costs "


def _cap_warnings(
    form: LevelDocument, level: ReportLevel, say: _Amounts | _Factors
) -> Iterator[str]:
    """Yield at most one warning about the cap of devices, the most serious first."""
    more = f"more than {say.limit}"
    final_text = (
        "Such an app refuses the survey unless the app lists it in final_surveys; people who "
        "answer it can never answer another survey."
    )
    if level.odds is not None and level.odds > _CAP:
        yield f"The whole report {say.reveals(level.odds)}, {more}: such devices cannot answer it."
    elif endless := [block.id for block in form.blocks if is_endless(block.ceiling)]:
        yield f"No backstop: {', '.join(endless)}. Answering costs {more}. {final_text} {say.cap}"
    elif level.cost.odds is None or level.cost.odds > _CAP:
        yield f"Answering {say.costs(level.cost.odds)}{more}. {final_text} {say.lower}"


def _void_promises(form: SurveyDocument | ExpectedForm, *, in_nats: bool) -> Iterator[str]:
    for block in form.blocks:
        if is_void(block, form):
            stated = (
                f"the ceiling of {ln_up(block.ceiling)} nats is stated"
                if in_nats
                else f"it is stated that odds change by at most ×{times(block.ceiling)}"
            )
            yield (
                f"With public questions, counts of all people protect nothing: for {block.id}, only {stated}. "
                f"{_way_out(block)}protect the answer itself (ldp)."
            )


def _way_out(block: LevelBlock) -> str:
    robust = any(promise.claim.lower_bounds is not None for promise in block.promises)
    return (
        "Choose another notion, or "
        if robust
        else "Give counts for each stratum (prior.strata), or "
    )


def _open(definition: SurveyDefinition) -> Mapping[str, QuestionDefinition]:
    """Return the questions asked in the clear, by place: public ones and the instructed item."""
    item = {} if definition.instructed is None else {"instructed": definition.instructed}
    return {f"strata[{k}]": question for k, question in enumerate(definition.strata)} | item


def _forms(definition: SurveyDefinition) -> Iterator[_ExpectedBlock]:
    if definition.form is not None:
        level = level_for(Fraction(definition.form_epsilon))
        yield _ExpectedBlock(FORM_ID, [Promise(Claim("ldp", level))], Fraction(*level))


def _expected(definition: SurveyDefinition, i: int) -> _ExpectedBlock:
    block = definition.blocks[i]
    promises = block_request(block, f"blocks[{i}]").promises
    claims = [promise.claim for promise in promises]
    # Other notions depend on a prior or bound only the secret, so there is no ceiling yet.
    ldp_levels = [
        Fraction(*claim.level)
        for claim in claims
        if claim.notion == "ldp" and claim.level is not None
    ]
    return _ExpectedBlock(block.id, promises, min(ldp_levels, default=None))
