# SPDX-License-Identifier: Apache-2.0
"""Limits of an app (acceptance step 10), decided in exact arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import (
    DEVICE_CAP,
    Charge,
    ReportLevel,
    chance_up,
    exp_lower,
    ln_up,
    parse_chance,
    parse_nats,
    report_level,
    total_charge,
)
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk.errors import BudgetExceeded, PolicyRefused

_MIN, _MAX = Fraction(1, 100), Fraction(64)


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one app.

    cap : nats of log-odds that all surveys answered by this install may cost together, 0.01 to 64, as a decimal string.
    final_surveys : ids of surveys that may use up the budget for ever, because their cost is infinite or above the cap.
    max_ceiling : nats; if given, blocks that rest on a prior must have a ceiling within it, and may then come unpinned.
    require_log : accept only documents that a watched transparency log vouches for, pinned or not.
    delta_cap : the chance, at least 0 and less than 1, with which the cap may fail: the δ of all (ε, δ) promises that
    count as stated, over all surveys answered by this install. With 0 every such block counts its ceiling.
    allow_unpinned : accept links without a digest and without a log; then whoever runs the server may show every device
    another document.

    Raises InvalidInput (eps_format, eps_not_finite, eps_out_of_range) for limits that are no plain decimals, and
    (field_type) for switches that are neither True nor False.
    """

    cap: str = DEVICE_CAP
    max_ceiling: str | None = None
    allow_unpinned: bool = False
    require_log: bool = False
    delta_cap: str = "0"
    final_surveys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parse_nats(self.cap, "cap", _MIN, _MAX)
        if self.max_ceiling is not None:
            parse_nats(self.max_ceiling, "max_ceiling", _MIN, _MAX)
        parse_chance(self.delta_cap, "delta_cap")
        for name in ("allow_unpinned", "require_log"):  # the text "false" would count as yes
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(Problem.FIELD_TYPE, "expected True or False", name)

    def wants_log(self, pin: str | None) -> bool:
        """Tell whether a survey with this pin (None: without) needs a log's word."""
        return self.require_log or (pin is None and not self.allow_unpinned)

    def level(self, document: SurveyDocument) -> ReportLevel:
        """Return the level of a document's whole report, with as much δ as the app allows."""
        return report_level(document, Fraction(self.delta_cap))

    def check(
        self,
        document: SurveyDocument,
        level: ReportLevel,
        *,
        pinned: bool,
        spent: Sequence[Charge],
        logged: bool = False,
    ) -> Charge:
        """Return what the ledger charges for the survey on top of what was `spent`; `level` as `level` gives it.

        Raises PolicyRefused or BudgetExceeded unless it may be answered.
        """
        self._check_ceilings(document, pinned)
        if self.require_log and not logged:
            raise PolicyRefused("unlogged", "no log that somebody watches vouches for this survey, as this app demands")
        if not (pinned or logged or self.allow_unpinned):
            words = "use the link that ends in #sha256=…, so that everyone gets the same survey"
            raise PolicyRefused("unpinned", words)
        self._check_level(document, level)
        return self._charge(document, level, spent)

    def _check_level(self, document: SurveyDocument, level: ReportLevel) -> None:
        """Refuse a report that tells more about a secret than the cap allows, or that would use up the budget."""
        if self._exceeds(level.odds):
            asked = (
                f"its report tells up to {ln_up(level.odds)} nats{self._but_for(document)}, this app allows {self.cap}"
            )
            if any(block.rests_on_prior for block in document.blocks):
                raise PolicyRefused("composition", f"{_why(document)}: {asked}", "blocks")
            raise PolicyRefused("cap", asked, "blocks")
        if self._exceeds(level.cost.odds) and document.survey not in self.final_surveys:
            words = (
                f"answering costs {ln_up(level.cost.odds)} nats{self._but_for(document)}, this app allows {self.cap}: "
                "no other survey could ever be answered here. An app that wants this names the survey in final_surveys"
            )
            raise PolicyRefused("final", words, "blocks")

    def _charge(self, document: SurveyDocument, level: ReportLevel, spent: Sequence[Charge]) -> Charge:
        before = total_charge(spent)
        charge = level.charge(Fraction(self.delta_cap) - before.delta)
        if not spent and document.survey in self.final_surveys:
            return charge
        together = total_charge([before, charge])
        if self._exceeds(together.odds):
            cost = f"it would cost {ln_up(together.odds)} nats{self._but_for(document)}, this app allows {self.cap}"
            raise BudgetExceeded(f"with what was answered before {cost}")
        if together.delta > Fraction(self.delta_cap):
            raise BudgetExceeded(
                f"what was answered before holds up to a chance of {chance_up(before.delta)}, this app allows "
                f"{self.delta_cap}"
            )
        return charge

    def _exceeds(self, odds: Fraction | None) -> bool:
        return odds is None or odds > self._limit

    def _but_for(self, document: SurveyDocument) -> str:
        """Say which chance of failure has not been taken into account, if that makes a difference."""
        delta = report_level(document, Fraction(1)).cost.delta
        if delta <= Fraction(self.delta_cap):
            return ""
        return f" (its promises fail with a chance of up to {chance_up(delta)}, and this app allows {self.delta_cap})"

    @property
    def _limit(self) -> Fraction:
        return exp_lower(Fraction(self.cap))

    def _check_ceilings(self, document: SurveyDocument, pinned: bool) -> None:
        most = exp_lower(Fraction(self.max_ceiling)) if self.max_ceiling is not None else None
        for i, block in enumerate(document.blocks):
            if not block.rests_on_prior or (pinned and most is None):
                continue
            if most is None or block.ceiling is None or block.ceiling > most:
                raise PolicyRefused(
                    "ceiling",
                    "this block's promise rests on a prior that nobody has vouched for, and its ceiling of "
                    f"{ln_up(block.ceiling)} nats is more than this app allows",
                    f"blocks[{i}].ceiling",
                )


def _why(document: SurveyDocument) -> str:
    if document.strata and not all(p.is_stratified for block in document.blocks for p in block.promises if p.secret):
        return "a promise that rests on a prior counts beside public questions only with counts for each stratum"
    return "only one promise per secret that rests on a prior counts as stated"
