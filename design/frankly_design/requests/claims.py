# SPDX-License-Identifier: Apache-2.0
"""Claims of a design request: its notions with their levels, under its priors (spec 1.4, 1.9)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.families import PAIRS
from frankly_design.notions import promises
from frankly_design.notions.ball_bounds import ball_bounds
from frankly_design.notions.balls import confidence_ball
from frankly_design.notions.boxes import box_claims
from frankly_design.notions.prior import Prior
from frankly_design.requests.choices import DesignChoices
from frankly_design.requests.levels import ONE_SIDED, Levels

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
        names = {levels.notion for levels, _ in notions}
        if "rldp" in names and not names <= {"rldp", "ldp"}:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "rldp has pairs as answers and cannot be combined with prior-based notions",
                "notions",
            )
        self._paired = choices.mechanism in PAIRS or "rldp" in names
        self.prior = promises.pairs(public) if self._paired else public
        if choices.mechanism == "non-robust":
            # An answer of probability 0 occurs in no constraint, so the optimum could reveal it.
            promises.protected(self.prior)
        claims = [claim for levels, field in notions for claim in self._claims(levels, field)]
        # The cap is one more claim: ε-LDP of the answer, which holds under every prior.
        if choices.ceiling_cap is not None:
            claims.append(promises.answer_ldp(Fraction(choices.ceiling_cap)))
        self.claims = tuple(claims)

    @property
    def joints(self) -> set[tuple[tuple[int, ...], ...]]:
        """The counts of the request's priors, in all forms that claims may contain."""
        over_pairs = {promises.pairs(prior).joint for prior in self._priors if self._paired}
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
        notion = levels.notion or ""
        required, optional = _LEVELS[notion]
        # A level that the notion does not use is refused, because its author may believe that the
        # level is promised.
        unused = levels.given - {*required, *optional}
        if unused:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN,
                f"{notion} has the fields {', '.join(sorted({*required, *optional}))}",
                field + min(unused),
            )
        # Missing levels are determined by the design. pml and pmc need a level, because an alip
        # claim with levels from the design bounds both sides. metric-ldp needs its levels,
        # because a design determines only a single one.
        is_optional = self._levels_optional and notion not in (*ONE_SIDED, "metric-ldp")
        if is_optional and not levels.given & set(_PLACEHOLDERS):
            # Placeholder levels are parsed, so that the other fields are checked, and then dropped.
            placeholders = {name: _PLACEHOLDERS[name] for name in required if name in _PLACEHOLDERS}
            claims = self._claims(levels.model_copy(update=placeholders), field)
            return [replace(claim, level=None, low_level=None) for claim in claims]
        for name in required:
            if name not in levels.given:
                raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", field + name)
        if notion == "metric-ldp":
            epsilons = [[_nats_or_none(e) for e in row] for row in levels.epsilons]
            return [promises.between_pairs(epsilons, self.prior.answers)]
        if notion in _PRIOR_FREE:
            return [_PRIOR_FREE[notion](levels)]
        if notion == "rldp":
            return self._robust(levels, field)
        if notion == "srlip" and self._paired:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "srlip protects attributes, which answers (s, x) do not have: use lip",
                field + "notion",
            )
        claims = [self._under(prior, levels) for prior in self._priors]
        if not self._paired:
            return claims
        # Claims with the same counts over pairs (s, x) protect s in the same way.
        joints = [promises.pairs(prior).joint for prior in self._priors]
        return [replace(claim, joint=joint) for claim, joint in zip(claims, joints, strict=True)]

    def _under(self, prior: Prior, levels: Levels) -> Claim:
        """Return the claim of a prior-based notion under one prior."""
        match levels.notion:
            case "alip":
                low, high = map(_nats_or_none, (levels.epsilon_low, levels.epsilon_high))
                return promises.two_sided(prior, low, high)
            case "pml":
                return promises.two_sided(prior, None, _epsilon(levels))
            case "pmc":
                return promises.two_sided(prior, _epsilon(levels), None)
            case "srlip":
                return promises.side_channels(prior, _epsilon(levels), levels.attributes)
            case "dpv":
                return promises.no_violation(prior, Fraction(levels.dpv or 0), self._row(levels))
            case notion:
                return promises.promise(notion or "", prior, _epsilon(levels))

    def _row(self, levels: Levels) -> int:
        """Return the row of dpv's secret; -1, which is refused later, for an unknown name."""
        match levels.sensitive:
            case None:
                return 1
            case int(row):
                return row
            case name:
                return self._secrets.index(name) if name in self._secrets else -1

    def _robust(self, levels: Levels, field: str) -> list[Claim]:
        # The ball around the counts takes the role of additional priors.
        if len(self._priors) > 1:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "the uncertainty of rldp comes from robust, not from a list of priors",
                "priors",
            )
        ball: Any = levels.robust
        confidence = confidence_ball(self._priors[0].joint, Decimal(ball.order), ball.n, ball.beta)
        epsilon = _epsilon(levels)
        if getattr(ball, "polyhedra", "simplex") == "simplex":
            return [promises.robust(ball_bounds(confidence), epsilon, diagonal=levels.diagonal)]
        # Boxes compare only different secrets.
        if levels.diagonal:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "diagonal is allowed only with the polyhedra simplex",
                field + "diagonal",
            )
        return list(box_claims(confidence, epsilon))


def _nats_or_none(level: str | None) -> Fraction | None:
    """Return a level in nats; None for a level that is not promised."""
    return None if level in (None, "inf") else Fraction(level or 0)


def _epsilon(levels: Levels) -> Fraction:
    return Fraction(levels.epsilon or 0)


_PRIOR_FREE: Final[dict[str, Callable[[Levels], Claim]]] = {
    "ldp": lambda levels: promises.answer_ldp(_epsilon(levels)),
    "dp": lambda levels: promises.differential(_epsilon(levels), Fraction(levels.delta or 0)),
}
_LEVELS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "ldp": (("epsilon",), ()),
    "dp": (("epsilon", "delta"), ()),
    "secret-ldp": (("epsilon",), ()),
    "lip": (("epsilon",), ()),
    "alip": (("epsilon_low", "epsilon_high"), ()),
    "pml": (("epsilon",), ()),
    "pmc": (("epsilon",), ()),
    "srlip": (("epsilon", "attributes"), ()),
    "rldp": (("epsilon", "robust"), ("diagonal",)),
    "dpv": (("dpv",), ("sensitive",)),
    "metric-ldp": (("epsilons",), ()),
}
"""Notion → its required and its optional levels."""
_PLACEHOLDERS: Final = {"epsilon": "1", "epsilon_low": "1", "epsilon_high": "1", "dpv": "1"}
