# SPDX-License-Identifier: Apache-2.0
"""What devices with the usual limit make of a survey: told before anybody is sent a link that nobody can use.

These are warnings, not refusals: an app may allow more, and a survey may be the only one that its people ever answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import DEVICE_CAP, ReportLevel, exp_lower, is_endless, ln_up, report_level
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.promises import Promise

from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.priors import asked_of, promises_of


@dataclass(frozen=True, slots=True)
class _Expected:
    """A block before it is designed: its promises, and a ceiling if one of them is prior-free."""

    id: str
    promises: Sequence[Promise]
    ceiling: Fraction | None


@dataclass(frozen=True, slots=True)
class _Form:
    """A form before it is designed."""

    blocks: Sequence[_Expected]
    strata: Sequence[object]


def warnings_of(document: SurveyDocument) -> tuple[str, ...]:
    """Return what to know of a document before its link is given out: a sentence each, none if all is well."""
    endless = [block.id for block in document.blocks if is_endless(block.ceiling)]
    return _warnings(document.report_level, endless)


def expected_warnings(definition: SurveyDefinition) -> tuple[str, ...]:
    """Return the same of a definition, as far as it can be told before mechanisms are designed.

    Raises InvalidInput for a definition that cannot be designed.
    """
    blocks = [_expected(definition, i) for i in range(len(definition.blocks))]
    return _warnings(
        report_level(_Form(blocks, definition.strata)), [block.id for block in blocks if block.ceiling is None]
    )


def _expected(definition: SurveyDefinition, i: int) -> _Expected:
    block = definition.blocks[i]
    claims = asked_of(block, f"blocks[{i}]").claims
    free = [Fraction(*claim.level) for claim in claims if claim.notion == "ldp" and claim.level is not None]
    return _Expected(block.id, promises_of(block, claims), min(free, default=None))


def _warnings(level: ReportLevel, endless: Sequence[str]) -> tuple[str, ...]:
    most, found = exp_lower(Fraction(DEVICE_CAP)), []
    usual = f"{DEVICE_CAP} nats, the limit of devices whose app sets no other"
    dear = level.odds is not None and level.odds > most
    if dear:
        found.append(f"The form costs {ln_up(level.odds)} nats, more than {usual}: there nobody can answer it.")
    if endless:
        found.append(
            f"No backstop: {', '.join(endless)}. Between surveys every block counts its ceiling; without one, whoever "
            "answers can answer no other survey from the same device. Set ceiling_cap."
        )
    elif not dear and (level.cost.odds is None or level.cost.odds > most):
        found.append(
            f"Between surveys every block counts its ceiling, together {ln_up(level.cost.odds)} nats, more than "
            f"{usual}: whoever answers there can answer no other survey. Lower a level or ceiling_cap."
        )
    return tuple(found)
