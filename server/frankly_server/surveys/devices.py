# SPDX-License-Identifier: Apache-2.0
"""The level of a survey's whole report before it is designed, and what devices with the usual cap make of a survey.

Warnings are told before anybody is sent a link that nobody can use. They are no refusals: an app may allow more, and a
survey may be the only one that its people ever answer. A promise that a public answer voids is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import DEVICE_CAP, ReportLevel, exp_lower, is_endless, ln_up, report_level
from frankly_protocol.audit.report import LevelBlock, LevelDocument
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.promises import Promise

from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.priors import asked_of

_CAP = exp_lower(Fraction(DEVICE_CAP))


@dataclass(frozen=True, slots=True)
class _ExpectedBlock:
    """A block before it is designed: its promises, and the ceiling that its prior-free ones set; None if unknown."""

    id: str
    promises: Sequence[Promise]
    ceiling: Fraction | None


@dataclass(frozen=True, slots=True)
class ExpectedForm:
    """A form before it is designed. A ceiling that no prior-free notion bounds counts as infinite."""

    blocks: Sequence[_ExpectedBlock]
    strata: Sequence[object]

    @property
    def report_level(self) -> ReportLevel:
        """An upper bound on the level of the whole report."""
        return report_level(self)


def expected_form(definition: SurveyDefinition) -> ExpectedForm:
    """Return the form of a definition. Raises InvalidInput for one that cannot be designed, or not be published."""
    form = ExpectedForm([_expected(definition, i) for i in range(len(definition.blocks))], definition.strata)
    require_stated(form)
    return form


def require_stated(form: LevelDocument) -> None:
    """Raise InvalidInput(unsupported) for a promise that public answers void, where no ceiling within the cap is left.

    A public answer and a report together can tell a secret although the counts of everybody are true.
    """
    for i, block in enumerate(form.blocks):
        if is_unstated(block, form) and (block.ceiling is None or block.ceiling > _CAP):
            words = (
                f"beside public questions, the counts of everybody promise nothing, and the ceiling of {block.id} is "
                f"not within {DEVICE_CAP} nats. {_way_out(block)}set ceiling_cap to {DEVICE_CAP} or less"
            )
            raise InvalidInput(Problem.UNSUPPORTED, words, f"blocks[{i}].prior")


def is_unstated(block: LevelBlock, form: LevelDocument) -> bool:
    """Return True if the block states its ceiling only: a promise under counts of everybody beside public questions."""
    return bool(form.strata) and any(p.secret is not None and not p.is_stratified for p in block.promises)


def warnings_of(form: SurveyDocument | ExpectedForm) -> tuple[str, ...]:
    """Return what to know of a survey before its link is given out: a sentence each, none if all is well."""
    level, found = form.report_level, []
    usual = f"{DEVICE_CAP} nats, the limit of devices whose app sets no other"
    final = (
        "There an app refuses the survey unless it names it in final_surveys, and whoever answers can never answer "
        "another."
    )
    if level.odds is not None and level.odds > _CAP:
        words = f"The whole report tells up to {ln_up(level.odds)} nats, more than {usual}: there nobody can answer it."
        found.append(words)
    elif endless := [block.id for block in form.blocks if is_endless(block.ceiling)]:
        words = f"No backstop: {', '.join(endless)}. Answering costs more than {usual}. {final} Set ceiling_cap."
        found.append(words)
    elif level.cost.odds is None or level.cost.odds > _CAP:
        words = (
            f"Answering costs {ln_up(level.cost.odds)} nats, more than {usual}. {final} Lower a level or ceiling_cap."
        )
        found.append(words)
    found += [
        f"Beside public questions, the counts of everybody promise nothing: of {block.id}, only the ceiling of "
        f"{ln_up(block.ceiling)} nats is stated. {_way_out(block)}protect the answer itself (ldp)."
        for block in form.blocks
        if is_unstated(block, form)
    ]
    return tuple(found)


def _way_out(block: LevelBlock) -> str:
    robust = any(promise.claim.notion == "rldp" for promise in block.promises)
    return "Take another notion, or " if robust else "Give counts for each stratum (prior.strata), or "


def _expected(definition: SurveyDefinition, i: int) -> _ExpectedBlock:
    block = definition.blocks[i]
    promises = asked_of(block, f"blocks[{i}]").promises
    claims = [promise.claim for promise in promises]
    free = [Fraction(*claim.level) for claim in claims if claim.notion == "ldp" and claim.level is not None]
    return _ExpectedBlock(block.id, promises, min(free, default=None))
