# SPDX-License-Identifier: Apache-2.0
"""Limits of an app (acceptance step 10), decided in exact arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from frankly_protocol.audit import (
    DEVICE_CAP,
    Charge,
    ReportLevel,
    chance_up,
    exp_lower,
    largest_level,
    ln_up,
    parse_chance,
    parse_nats,
    total_charge,
)
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.budget import Budget, chance_text, nats_left
from frankly_protocol.problems import Problem
from frankly_protocol.promises import Promise
from frankly_protocol.schema import HEX128

from frankly_sdk.errors import BudgetExceeded, PolicyRefused
from frankly_sdk.link import is_host

_MIN, _MAX = Fraction(1, 100), Fraction(64)
_NOTHING = Charge(Fraction(1))


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one app.

    cap : nats of log-odds, 0.01 to 64, as a decimal string. It bounds the total cost of all surveys
        answered by one respondent, and how far one report can move the odds of any secret that its
        survey declares.
    max_ceiling : nats, 0.01 to 64; if given, blocks that rest on a prior must have a ceiling of at
        most this. Without it, such blocks are accepted only through a pinned link.
    allow_unpinned : accept links without a digest and without a log; then the server's operator
        could show each device a different document.
    require_log : accept only documents in a witnessed transparency log, pinned or not.
    delta_cap : at least 0 and less than 1: the largest total δ of the (ε, δ) promises used, over
        all surveys answered by one respondent. With 0, only promises with δ = 0 are used; all other
        blocks are charged their ceilings.
    final_surveys : ids of surveys that may cost more than the cap, or an infinite amount. A
        respondent can answer one if nothing has been charged before and the odds of every declared
        secret (of the answers, if none is declared) stay within the cap; nothing else can be
        answered afterwards.
    collect_hosts : names of hosts that may collect reports in addition to the link's, such as
        ``reports.example``.

    Raises InvalidInput: eps_format, eps_not_finite or eps_out_of_range for limits; field_type for
    switches that are not True or False, for ids that are not 32 lower-case hex digits, and for
    invalid host names.
    """

    cap: str = DEVICE_CAP
    max_ceiling: str | None = None
    allow_unpinned: bool = False
    require_log: bool = False
    delta_cap: str = "0"
    final_surveys: tuple[str, ...] = ()
    collect_hosts: tuple[str, ...] = ()
    # The caps as ratios, rounded down; computed here so that only a comparison is left while the
    # store is locked.
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
        for name in ("allow_unpinned", "require_log"):  # the string "false" would be true
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(Problem.FIELD_TYPE, "expected True or False", name)
        _require_ids(self.final_surveys)
        object.__setattr__(self, "final_surveys", tuple(self.final_surveys))
        object.__setattr__(self, "_limit", exp_lower(cap))
        ceiling_limit = None if max_ceiling is None else exp_lower(max_ceiling)
        object.__setattr__(self, "_ceiling_limit", ceiling_limit)

        hosts: object = self.collect_hosts  # a string would be read as one host per letter
        if not (isinstance(hosts, tuple) and all(map(is_host, hosts))):
            raise InvalidInput(
                Problem.FIELD_TYPE,
                'expected a tuple of host names in lower case, such as ("reports.example",)',
                "collect_hosts",
            )

    def wants_log(self, pin: str | None) -> bool:
        """Return True if a survey must be in a log; `pin` is the link's digest or None."""
        return self.require_log or (pin is None and not self.allow_unpinned)

    def level(self, document: SurveyDocument) -> ReportLevel:
        """Return the level of a document's whole report, with δ up to the app's cap; of arms, the largest."""
        return largest_level(document.versions, Fraction(self.delta_cap))

    def check(
        self,
        document: SurveyDocument,
        level: ReportLevel,
        *,
        pinned: bool,
        spent: Sequence[Charge],
        logged: bool = False,
    ) -> Charge:
        """Return the ledger's charge for the survey, in addition to `spent`.

        level : the result of the method `level`, so that only comparisons remain.
        spent : the respondent's earlier charges.

        Raises PolicyRefused or BudgetExceeded unless the survey may be answered.
        """
        # Refusals that depend on the document alone come first, so that the reason given does not
        # change with the ledger.
        self._check_ceilings(document, pinned)
        # Required even for pinned links: a pin fixes one document, but only a log makes it public.
        if self.require_log and not logged:
            raise PolicyRefused(
                "unlogged", "this app requires a witnessed log, and none lists this survey"
            )
        if not (pinned or logged or self.allow_unpinned):
            raise PolicyRefused(
                "unpinned",
                "use the link that ends in #sha256=…, so that everyone gets the same survey",
            )
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
        """Return the budget of a respondent, before and after answering the survey.

        spent : the respondent's earlier charges, including that of this survey if `is_answered`.
        """
        before = total_charge(spent)
        # `spent` already includes an answered survey; charging it again would show too small a
        # remaining budget.
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
        """Return True if a charge fits in addition to `before`, or may use up the whole budget."""
        if self._exceeds(charge.odds):
            # Such a survey takes the whole budget, so nothing may have been charged before.
            return survey in self.final_surveys and before == _NOTHING
        together = total_charge([before, charge])
        return not self._exceeds(together.odds) and together.delta <= Fraction(self.delta_cap)

    def _check_secrets(self, document: SurveyDocument, level: ReportLevel) -> None:
        """Refuse a report that can move the odds of a secret by more than the cap.

        If the survey declares no secrets, the odds of the answers are compared.
        """
        bounds: list[tuple[str | None, Fraction | None]] = [
            (name, s.odds) for name, s in level.secrets.items()
        ]
        for secret, odds in bounds or [(None, level.answers.odds)]:
            if self._exceeds(odds):
                movement = f"its report can move the odds about {f'“{secret}”' if secret else 'the answers'}"
                detail = f"{movement} by {ln_up(odds)} nats{self._but_for(document)}, but this app allows {self.cap}"
                cause = _not_counted(document, secret)
                if cause is not None:
                    raise PolicyRefused(
                        "composition", f"{detail}: {cause}, or give them lower ceilings", "blocks"
                    )
                raise PolicyRefused(
                    "cap", f"{detail}: lower the survey's levels, or raise the app's cap", "blocks"
                )

    def _check_cost(self, document: SurveyDocument, level: ReportLevel) -> None:
        """Refuse a report that uses up the whole budget, unless it is in final_surveys."""
        if self._exceeds(level.cost.odds) and document.survey not in self.final_surveys:
            detail = f"it costs {ln_up(level.cost.odds)} nats{self._but_for(document)}, but this app allows {self.cap}"
            way_out = (
                "publish it with lower ceilings, or let the app name this survey in final_surveys"
            )
            raise PolicyRefused(
                "final",
                f"{detail}: nothing else could ever be answered here afterwards; {way_out}",
                "blocks",
            )

    def _over_budget(self, document: SurveyDocument, charge: Charge, before: Charge) -> str:
        # This can happen if an update of the app lowered its cap on δ.
        if before.delta > Fraction(self.delta_cap):
            return (
                f"earlier answers have used up a δ of {chance_up(before.delta)}, but this app allows "
                f"{self.delta_cap}"
            )
        if document.survey in self.final_surveys and self._exceeds(charge.odds):
            return (
                "it uses up the whole budget, so it must be answered before any other survey, but another one has "
                "been answered"
            )
        together = total_charge([before, charge])
        cost = f"it would cost {ln_up(together.odds)} nats{self._but_for(document)}, but this app allows {self.cap}"
        return f"with earlier answers {cost}"

    def _exceeds(self, odds: Fraction | None) -> bool:
        return odds is None or odds > self._limit

    def _but_for(self, document: SurveyDocument) -> str:
        """Return a remark on the δ that the promises need if the app allows less, otherwise ""."""
        delta = sum((_least_delta(block.promises) for block in document.blocks), Fraction(0))
        if delta <= Fraction(self.delta_cap):
            return ""
        return (
            f" (its promises need a δ of {chance_up(delta)}, and this app allows {self.delta_cap})"
        )

    def _check_ceilings(self, document: SurveyDocument, pinned: bool) -> None:
        # With a pin, the author of the link, who has read the document, vouches for the prior.
        limit = self._ceiling_limit
        for i, block in enumerate(document.blocks):
            if not block.rests_on_prior or (pinned and limit is None):
                continue
            if limit is None or block.ceiling is None or block.ceiling > limit:
                raise PolicyRefused(
                    "ceiling",
                    "this block's promise rests on a prior, the link does not pin the survey, and its ceiling of "
                    f"{ln_up(block.ceiling)} nats is more than this app allows",
                    f"blocks[{i}].ceiling",
                )


def _require_ids(surveys: object) -> None:
    # A single string would be read as one id per letter.
    if not isinstance(surveys, tuple | list):
        raise InvalidInput(Problem.FIELD_TYPE, "expected a tuple of survey ids", "final_surveys")
    for i, survey in enumerate(surveys):
        if not isinstance(survey, str) or not HEX128.fullmatch(survey):
            raise InvalidInput(
                Problem.FIELD_TYPE,
                "a survey id is 32 lower-case hex digits, as in its link after /s/",
                f"final_surveys[{i}]",
            )


def _least_delta(promises: Sequence[Promise]) -> Fraction:
    return min(
        (Fraction(*p.claim.delta) for p in promises if p.claim.delta is not None),
        default=Fraction(0),
    )


def _not_counted(document: SurveyDocument, secret: str | None) -> str | None:
    """Return the reason why a promise about a secret cannot be used, or None."""
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
        return "with public questions, a promise that rests on a prior is used only if it has counts for every stratum"
    if sum(block.rests_on_prior for block in document.blocks) > 1:
        return "only one block's promise that rests on a prior is used; ask these questions in one block"
    return None
