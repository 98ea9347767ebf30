# SPDX-License-Identifier: Apache-2.0
"""Claims of a design request: its notions with their levels, under its priors (spec 1.4, 1.9)."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.families import PAIRS
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.notion import Asked
from frankly_design.notions.declared.registry import DECLARED
from frankly_design.notions.prior import Prior, pairs, protected
from frankly_design.requests.choices import DesignChoices
from frankly_design.requests.levels import Levels

_WITHOUT_PARAMETERS: Final = "super-binary-mangat"
"""A family without parameters; requests for it may omit the level of any notion."""


class RequestedClaims:
    """Claims and prior of a request; both are over pairs (s, u) for rldp and its families.

    choices : the notions, the ceiling cap and the mechanism. public : the request's prior.
    others : additional priors, under which every prior-based notion must also hold. secrets : names
    of the prior's rows, if any.

    Raises InvalidInput, naming the field.
    """

    def __init__(
        self,
        choices: DesignChoices,
        public: Prior,
        others: Sequence[Prior] = (),
        secrets: Sequence[str] = (),
    ) -> None:
        self._priors, self._secrets = (public, *others), secrets
        for i, prior in enumerate(others):
            # The claims of all priors constrain the same columns.
            if prior.answers != public.answers:
                raise InvalidInput(
                    Problem.PRIOR_SHAPE,
                    f"every prior needs the same {public.answers} answers",
                    f"priors[{i}].joint",
                )
        self._levels_optional = choices.replaces_level or choices.mechanism == _WITHOUT_PARAMETERS
        notions = self._notions(choices)
        names = {levels.notion or "" for levels, _ in notions}
        of_pairs = {levels.notion or "" for levels, _ in notions if levels.has_pairs}
        if of_pairs and not names <= {*of_pairs, "ldp"}:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"{min(of_pairs)} has pairs as answers and cannot be combined with prior-based notions",
                "notions",
            )
        self._paired = choices.mechanism in PAIRS or bool(of_pairs)
        self.prior = pairs(public) if self._paired else public
        if choices.mechanism == "non-robust":
            # An answer of probability 0 occurs in no constraint, so the optimum could reveal it.
            protected(self.prior)
        claims = [claim for levels, field in notions for claim in self._claims(levels, field)]
        # The cap is one more claim: ε-LDP of the answer, which holds under every prior.
        if choices.ceiling_cap is not None:
            claims.append(answer_ldp(Fraction(choices.ceiling_cap)))
        self.claims = tuple(claims)

    @property
    def joints(self) -> set[tuple[tuple[int, ...], ...]]:
        """The counts of the request's priors, in all forms that claims may contain."""
        over_pairs = {pairs(prior).joint for prior in self._priors if self._paired}
        return {prior.joint for prior in self._priors} | over_pairs

    def _notions(self, choices: DesignChoices) -> list[tuple[Levels, str]]:
        """Return each notion with its levels, and the path of its fields."""
        # A family with explicit parameters satisfies LDP at some level, so ldp is then the notion.
        # The family without parameters satisfies it at no level.
        if choices.notion is None and not choices.notions and self._levels_optional:
            notion = "dpv" if choices.mechanism == _WITHOUT_PARAMETERS else "ldp"
            return [(choices.model_copy(update={"notion": notion}), "")]
        if (choices.notion is None) == (not choices.notions):
            raise InvalidInput(Problem.FIELD_MISSING, "give either notion or notions", "notion")
        if not choices.notions:
            return [(choices, "")]
        if choices.given:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN,
                "with notions, give the levels within each of them",
                min(choices.given),
            )
        return [(levels, f"notions[{i}].") for i, levels in enumerate(choices.notions)]

    def _claims(self, levels: Levels, field: str) -> list[Claim]:
        """Return the claims of one notion: one per prior if the notion is prior-based."""
        declared = DECLARED[levels.notion or ""]
        # A level that the notion does not use is refused, because its author may believe that the
        # level is promised.
        unused = levels.given - declared.levels
        if unused:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN,
                f"{levels.notion} has the fields {', '.join(sorted(declared.levels))}",
                field + min(unused),
            )
        # Missing levels are determined by the design.
        is_optional = self._levels_optional and declared.may_be_open
        if is_optional and not levels.given & set(_PLACEHOLDERS):
            # Placeholder levels are parsed, so that the other fields are checked, and then dropped.
            placeholders = {
                name: text for name, text in _PLACEHOLDERS.items() if name in declared.required
            }
            claims = self._claims(levels.model_copy(update=placeholders), field)
            return [replace(claim, level=None, low_level=None) for claim in claims]
        for name in declared.required:
            if name not in levels.given:
                raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", field + name)
        return declared.claims(self._asked(levels, field))

    def _asked(self, levels: Levels, field: str) -> Asked:
        """Return the levels as exact numbers; 0 for those that the notion does not have."""
        ball: Any = levels.robust
        return Asked(
            self._priors,
            self.prior.answers,
            paired=self._paired,
            field=field,
            epsilon=Fraction(levels.epsilon or 0),
            low=_nats_or_none(levels.epsilon_low),
            high=_nats_or_none(levels.epsilon_high),
            delta=Fraction(levels.delta or 0),
            dpv=Fraction(levels.dpv or 0),
            epsilons=[[_nats_or_none(level) for level in row] for row in levels.epsilons],
            attributes=levels.attributes,
            ball=(Decimal(ball.order), ball.n, ball.beta) if ball else (None, None, None),
            has_boxes=getattr(ball, "polyhedra", "simplex") == "box",
            diagonal=levels.diagonal,
            sensitive=self._row(levels),
        )

    def _row(self, levels: Levels) -> int:
        """Return the row of dpv's secret; -1, which is refused later, for an unknown name."""
        match levels.sensitive:
            case None:
                return 1
            case int(row):
                return row
            case name:
                return self._secrets.index(name) if name in self._secrets else -1


def _nats_or_none(level: str | None) -> Fraction | None:
    """Return a level in nats; None for a level that is not promised."""
    return None if level in (None, "inf") else Fraction(level or 0)


_PLACEHOLDERS: Final = {"epsilon": "1", "epsilon_low": "1", "epsilon_high": "1", "dpv": "1"}
