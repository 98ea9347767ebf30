# SPDX-License-Identifier: Apache-2.0
"""Cost of one survey for one respondent, and the remaining budget before and after."""

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from frankly_protocol.audit import Charge, chance_up, ln_up
from frankly_protocol.explanation.catalogue import Texts

_UNIT = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Budget:
    """Cost of one survey for one respondent, and the remaining budget before and after.

    Amounts are nats of log-odds as decimal strings: costs are rounded up, remaining amounts down;
    "inf" is infinite.

    cost : the ledger's charge, "0.0000" if the survey has been answered.
    delta : the δ charged as well; the bound holds up to this additive probability.
    cap : the app's cap. spent : the earlier charges.
    left, left_after : the remaining budget before and after answering; equal if nothing would be
        charged.
    is_answered : True if this respondent has already answered.
    is_final : True if the cost is above the cap, so that nothing else can be answered afterwards.
    can_answer : True if the survey is unanswered and the budget has room for it.
    """

    cost: str
    delta: str
    cap: str
    spent: str
    left: str
    left_after: str
    is_answered: bool
    is_final: bool
    can_answer: bool

    def __str__(self) -> str:
        """Return one sentence for the respondent, in English."""
        return self.sentence(Texts("en", "budget"))

    def sentence(self, texts: Texts) -> str:
        """Return one sentence for the respondent."""
        say, figure = texts.part("budget").say, texts.figure
        left = say("left", left=figure(self.left), cap=figure(self.cap))
        if self.is_answered:
            return say("answered", left=left)
        if not self.can_answer:
            return say("not_enough", cost=figure(self.cost), left=left)
        if self.is_final:
            return say("final", cap=figure(self.cap))
        return say(
            "costs" if self.delta == "0" else "costs_delta",
            cost=figure(self.cost),
            delta=figure(self.delta),
            left=left,
            after=figure(self.left_after),
        )


def nats_left(cap: str, spent: Charge) -> str:
    """Return the remaining nats of a cap, rounded down."""
    # An infinite cost uses up any cap.
    if spent.odds is None:
        return "0.0000"
    with localcontext() as context:
        # The precision suffices for any cap, so that only the quantisation below rounds.
        context.prec = 60
        remaining = Decimal(str(cap)) - Decimal(ln_up(spent.odds))
        return str(max(remaining, Decimal(0)).quantize(_UNIT, rounding=ROUND_FLOOR))


def chance_text(chance: Fraction) -> str:
    """Return a chance as a decimal, rounded up; "0" for zero."""
    return chance_up(chance) if chance else "0"
