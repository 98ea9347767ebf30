# SPDX-License-Identifier: Apache-2.0
"""Limits of an app (acceptance step 10), decided in exact arithmetic."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from frankly_protocol.promises import Promise

from frankly_sdk.budget import Budget, chance_text, nats_left
from frankly_sdk.errors import BudgetExceeded, PolicyRefused
from frankly_sdk.link import is_host

_MIN, _MAX = Fraction(1, 100), Fraction(64)
_SURVEY = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NOTHING = Charge(Fraction(1))


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one app.

    cap : nats of log-odds, 0.01 to 64, as a decimal string. It bounds what all surveys answered by
        one respondent cost together, and how far one report can move the odds of any secret that
        its survey declares.
    max_ceiling : nats; if given, blocks that rest on a prior must have a ceiling within it, and may
        then come unpinned.
    allow_unpinned : accept links without a digest and without a log; then the server's operator may
        show every device another document.
    require_log : accept only documents in a witnessed transparency log, pinned or not.
    delta_cap : at least 0 and less than 1: what the δ of all (ε, δ) promises that count as stated
        may add up to, over all surveys answered by one respondent. With 0 every such block counts
        its ceiling.
    final_surveys : ids of surveys that cost more than the cap, or an infinite amount, and may be
        answered all the same by a respondent to whom nothing has been charged, if the odds of every
        declared secret (of the answers, where none is declared) stay within the cap; nothing else
        can be answered afterwards.
    collect_hosts : names of hosts that may collect reports besides the one in the link, such as
        ``reports.example``.

    Raises InvalidInput (eps_format, eps_not_finite, eps_out_of_range) for limits that are no plain
    decimals, and (field_type) for switches that are neither True nor False, for ids that are not 32
    lower-case hex digits, and for hosts that are no names.
    """

    cap: str = DEVICE_CAP
    max_ceiling: str | None = None
    allow_unpinned: bool = False
    require_log: bool = False
    delta_cap: str = "0"
    final_surveys: tuple[str, ...] = ()
    collect_hosts: tuple[str, ...] = ()
    # The caps as ratios, rounded down, so that only a comparison remains while the store is locked.
    _limit: Fraction = field(init=False, repr=False, compare=False)
    _ceiling_limit: Fraction | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cap = parse_nats(self.cap, "cap", _MIN, _MAX)
        max_ceiling = (
            None
            if self.max_ceiling is None
            else parse_nats(self.max_ceiling, "max_ceiling", _MIN, _MAX)
        )
        parse_chance(self.delta_cap, "delta_cap")
        for name in ("allow_unpinned", "require_log"):  # the text "false" would count as yes
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(Problem.FIELD_TYPE, "expected True or False", name)
        _require_ids(self.final_surveys)
        object.__setattr__(self, "final_surveys", tuple(self.final_surveys))
        object.__setattr__(self, "_limit", exp_lower(cap))
        ceiling_limit = None if max_ceiling is None else exp_lower(max_ceiling)
        object.__setattr__(self, "_ceiling_limit", ceiling_limit)

        hosts: object = self.collect_hosts  # one text would count as hosts of one letter each
        if not (isinstance(hosts, tuple) and all(map(is_host, hosts))):
            detail = (
                'expected a tuple of names of hosts in lower case, such as ("reports.example",)'
            )
            raise InvalidInput(Problem.FIELD_TYPE, detail, "collect_hosts")

    def wants_log(self, pin: str | None) -> bool:
        """Return True if a survey with this pin (None: without) must be in a log."""
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
        """Return what the ledger charges for the survey on top of what was `spent`.

        level : the result of `level`. Nothing of the document is computed again, only compared.

        Raises PolicyRefused or BudgetExceeded unless it may be answered.
        """
        # Refusals by the document alone come first; those by the ledger change from day to day.
        self._check_ceilings(document, pinned)
        # Demanded even of pinned links: a pin shows one document, a log that all see the same one.
        if self.require_log and not logged:
            raise PolicyRefused(
                "unlogged",
                "no witnessed log vouches for this survey, as this app demands",
            )
        if not (pinned or logged or self.allow_unpinned):
            detail = "use the link that ends in #sha256=…, so that everyone gets the same survey"
            raise PolicyRefused("unpinned", detail)
        self._check_secrets(document, level)
        self._check_cost(document, level)
        before = total_charge(spent)
        charge = self._charge(level, before)
        if not self._has_room(document.survey, charge, before):
            raise BudgetExceeded(self._over_budget(document, charge, before))
        return charge

    def budget(
        self,
        document: SurveyDocument,
        level: ReportLevel,
        spent: Sequence[Charge],
        *,
        is_answered: bool,
    ) -> Budget:
        """Return what a respondent who has `spent` so much pays for the survey.

        `spent` holds it if it is answered.
        """
        before = total_charge(spent)
        # An answered survey is in `spent` already; charging it again would show too little left.
        charge = _NOTHING if is_answered else self._charge(level, before)
        can_answer = not is_answered and self._has_room(document.survey, charge, before)
        return Budget(
            cost=ln_up(charge.odds),
            delta=chance_text(charge.delta),
            cap=str(self.cap),
            spent=ln_up(before.odds),
            left=nats_left(self.cap, before),
            left_after=nats_left(
                self.cap, total_charge([before, charge]) if can_answer else before
            ),
            is_answered=is_answered,
            is_final=self._exceeds(charge.odds),
            can_answer=can_answer,
        )

    def _charge(self, level: ReportLevel, before: Charge) -> Charge:
        return level.charge(max(Fraction(0), Fraction(self.delta_cap) - before.delta))

    def _has_room(self, survey: str, charge: Charge, before: Charge) -> bool:
        """Return True if a charge fits on top of `before`, or may use up the budget for ever."""
        if self._exceeds(charge.odds):
            # Such a survey takes the whole budget, so only an untouched one has room for it.
            return survey in self.final_surveys and before == _NOTHING
        together = total_charge([before, charge])
        return not self._exceeds(together.odds) and together.delta <= Fraction(self.delta_cap)

    def _check_secrets(self, document: SurveyDocument, level: ReportLevel) -> None:
        """Refuse a report whose odds exceed the cap, for a secret or else for the answers."""
        bounds: list[tuple[str | None, Fraction | None]] = [
            (name, s.odds) for name, s in level.secrets.items()
        ]
        for secret, odds in bounds or [(None, level.answers.odds)]:
            if self._exceeds(odds):
                movement = f"its report can move the odds about {f'“{secret}”' if secret else 'the answers'}"
                detail = f"{movement} by {ln_up(odds)} nats{self._but_for(document)}, this app allows {self.cap}"
                cause = _not_counted(document, secret)
                if cause is not None:
                    raise PolicyRefused(
                        "composition",
                        f"{detail}: {cause}, or give them lower ceilings",
                        "blocks",
                    )
                raise PolicyRefused(
                    "cap",
                    f"{detail}: ask for smaller levels, or allow more",
                    "blocks",
                )

    def _check_cost(self, document: SurveyDocument, level: ReportLevel) -> None:
        """Refuse a report that uses up the whole budget, unless it is in final_surveys."""
        if self._exceeds(level.cost.odds) and document.survey not in self.final_surveys:
            detail = f"it costs {ln_up(level.cost.odds)} nats{self._but_for(document)}, this app allows {self.cap}"
            way_out = (
                "publish it with lower ceilings, or let the app name this survey in final_surveys"
            )
            raise PolicyRefused(
                "final",
                f"{detail}: nothing could ever be answered here after it; {way_out}",
                "blocks",
            )

    def _over_budget(self, document: SurveyDocument, charge: Charge, before: Charge) -> str:
        # Possible after an app has lowered its cap on δ.
        if before.delta > Fraction(self.delta_cap):
            return (
                f"what was answered before has used up a δ of {chance_up(before.delta)}, this app allows "
                f"{self.delta_cap}"
            )
        if document.survey in self.final_surveys and self._exceeds(charge.odds):
            return "it uses up the whole budget, so that it can only be answered first; something was answered before"
        together = total_charge([before, charge])
        cost = f"it would cost {ln_up(together.odds)} nats{self._but_for(document)}, this app allows {self.cap}"
        return f"with what was answered before {cost}"

    def _exceeds(self, odds: Fraction | None) -> bool:
        return odds is None or odds > self._limit

    def _but_for(self, document: SurveyDocument) -> str:
        """Name the δ that promises need and the app does not allow, if there is one."""
        delta = sum((_least_delta(block.promises) for block in document.blocks), Fraction(0))
        if delta <= Fraction(self.delta_cap):
            return ""
        return (
            f" (its promises need a δ of {chance_up(delta)}, and this app allows {self.delta_cap})"
        )

    def _check_ceilings(self, document: SurveyDocument, pinned: bool) -> None:
        # A pin vouches for the prior: the author of the link has read the document.
        limit = self._ceiling_limit
        for i, block in enumerate(document.blocks):
            if not block.rests_on_prior or (pinned and limit is None):
                continue
            if limit is None or block.ceiling is None or block.ceiling > limit:
                raise PolicyRefused(
                    "ceiling",
                    "this block's promise rests on a prior that no pin vouches for, and its ceiling of "
                    f"{ln_up(block.ceiling)} nats is more than this app allows",
                    f"blocks[{i}].ceiling",
                )


def _require_ids(surveys: object) -> None:
    # a single id is a text, whose letters would count one by one
    if not isinstance(surveys, tuple | list):
        raise InvalidInput(Problem.FIELD_TYPE, "expected a tuple of survey ids", "final_surveys")
    for i, survey in enumerate(surveys):
        if not isinstance(survey, str) or not _SURVEY.fullmatch(survey):
            detail = "a survey id is 32 lower-case hex digits, as in its link after /s/"
            raise InvalidInput(Problem.FIELD_TYPE, detail, f"final_surveys[{i}]")


def _least_delta(promises: Sequence[Promise]) -> Fraction:
    return min(
        (Fraction(*p.claim.delta) for p in promises if p.claim.delta is not None),
        default=Fraction(0),
    )


def _not_counted(document: SurveyDocument, secret: str | None) -> str | None:
    """Return the reason why a promise about a secret is not counted as stated, or None."""
    about = [
        promise
        for block in document.blocks
        for promise in block.promises
        if promise.secret == secret
    ]
    if (
        secret is not None
        and document.strata
        and not all(promise.is_stratified for promise in about)
    ):
        return "beside public questions a promise that rests on a prior counts only with counts for every stratum"
    if sum(block.rests_on_prior for block in document.blocks) > 1:
        return "only one block's promise that rests on a prior counts; ask these questions in one block"
    return None
