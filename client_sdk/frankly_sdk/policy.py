# SPDX-License-Identifier: Apache-2.0
"""What an app allows (acceptance step 10): decided in exact arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_protocol.audit import (
    DEVICE_CAP,
    FormLevel,
    chance_up,
    exp_lower,
    form_level,
    ledger_total,
    ln_up,
    parse_chance,
    parse_nats,
)
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk.errors import BudgetExceeded, PolicyRefused
from frankly_sdk.link import is_host
from frankly_sdk.store import Charge

_MIN, _MAX = Fraction(1, 100), Fraction(64)


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one app.

    cap : nats that all surveys answered by this install may cost together, 0.01 to 64, as a decimal string.
    max_ceiling : nats; if given, blocks that rest on a prior must have a ceiling within it, and may then come unpinned.
    require_log : accept only documents that a watched transparency log vouches for, pinned or not.
    delta_cap : the chance, at least 0 and less than 1, with which the cap may fail: the δ of all (ε, δ) promises that
    count as stated, over all surveys answered by this install. With 0 every such block counts its ceiling.
    allow_unpinned : accept links without a digest and without a log; then whoever runs the server may show every device
    another document.
    collect_hosts : names of hosts that may collect reports besides the one in the link, such as ``reports.example``.

    Raises InvalidInput (eps_format, eps_not_finite, eps_out_of_range) for limits that are no plain decimals, and
    (field_type) for switches that are neither True nor False and for hosts that are no names.
    """

    cap: str = DEVICE_CAP
    max_ceiling: str | None = None
    allow_unpinned: bool = False
    require_log: bool = False
    delta_cap: str = "0"
    collect_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parse_nats(self.cap, "cap", _MIN, _MAX)
        if self.max_ceiling is not None:
            parse_nats(self.max_ceiling, "max_ceiling", _MIN, _MAX)
        parse_chance(self.delta_cap, "delta_cap")
        for name in ("allow_unpinned", "require_log"):  # the text "false" would count as yes
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(Problem.FIELD_TYPE, "expected True or False", name)

        hosts: object = self.collect_hosts  # one text would count as hosts of one letter each
        if not (isinstance(hosts, tuple) and all(map(is_host, hosts))):
            words = 'expected a tuple of names of hosts in lower case, such as ("reports.example",)'
            raise InvalidInput(Problem.FIELD_TYPE, words, "collect_hosts")

    def wants_log(self, pin: str | None) -> bool:
        """Tell whether a survey with this pin (None: without) needs a log's word."""
        return self.require_log or (pin is None and not self.allow_unpinned)

    def check(
        self, document: SurveyDocument, *, pinned: bool, spent: Sequence[Charge], logged: bool = False
    ) -> FormLevel:
        """Return what the survey costs on top of what was `spent`.

        Raises PolicyRefused or BudgetExceeded unless it may be answered.
        """
        self._check_ceilings(document, pinned)
        if self.require_log and not logged:
            raise PolicyRefused("unlogged", "no log that somebody watches vouches for this survey, as this app demands")
        if not (pinned or logged or self.allow_unpinned):
            words = "use the link that ends in #sha256=…, so that everyone gets the same survey"
            raise PolicyRefused("unpinned", words)
        allowed = Fraction(self.delta_cap)
        form = form_level(document.blocks, allowed)
        if form.level is None or form.level > self._limit:
            asked = f"the survey costs {ln_up(form.level)} nats{self._but_for(document)}, this app allows {self.cap}"
            if sum(block.rests_on_prior for block in document.blocks) > 1:
                words = f"only one promise per secret that rests on a prior counts as stated, so {asked}"
                raise PolicyRefused("composition", words, "blocks")
            raise PolicyRefused("cap", asked, "blocks")
        # What was answered before has used up some of the δ: the blocks of this form have the rest.
        rest = max(Fraction(0), allowed - sum(known.delta for known in spent))
        form = form_level(document.blocks, rest) if rest != allowed else form
        total = ledger_total([*map(_counted, spent), form], allowed)
        if total is None or total > self._limit:
            together = f"it would cost {ln_up(total)} nats{self._but_for(document)}, this app allows {self.cap}"
            raise BudgetExceeded(f"with what was answered before {together}")
        return form

    def _but_for(self, document: SurveyDocument) -> str:
        """Say which chance of failure has not been taken into account, if that makes a difference."""
        delta = form_level(document.blocks, Fraction(1)).delta
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


def _counted(charge: Charge) -> FormLevel:
    """Return what an answered survey counts in the ledger's terms."""
    ceiling = None if charge.delta else charge.cost
    return FormLevel(None, ceiling, (), free=charge.cost, free_delta=charge.delta)
