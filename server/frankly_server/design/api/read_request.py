# SPDX-License-Identifier: Apache-2.0
"""Claims of a JSON request: notions with their levels, priors and other data (spec 1.9)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, parse_epsilon, parse_nats
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.design.api.read_truths import read_truths
from frankly_server.design.families import PAIRS, Explicit
from frankly_server.design.families.family import REGIONS
from frankly_server.design.notions import promises
from frankly_server.design.notions.ball_bounds import ball_bounds
from frankly_server.design.notions.balls import confidence_ball
from frankly_server.design.notions.lift_criteria import MAX_ORDER, MEASURES
from frankly_server.design.notions.polyhedra import box_claims
from frankly_server.design.notions.prior import Prior

LEVELS = frozenset(
    "epsilon epsilon_low epsilon_high delta dpv attributes robust diagonal sensitive".split()
)
EXPLICIT = frozenset("p00 p11 alpha region lift_measure lift_order".split())
_MAX_CEILING = Fraction(20)
_OWN_PARAMETERS = frozenset({"p00", "p11", "alpha"})
"""With one of these a family is built at its own parameters, and notions may omit their level."""
_POLYHEDRA = ("simplex", "box")
_WITHOUT_PARAMETERS = "super-binary-mangat"
"""A family without parameters: its notions may always omit their level."""
_REQUIRED_LEVELS = {"alip": ("epsilon_low", "epsilon_high"), "dpv": ("dpv",)}


class RequestedClaims:
    """Priors, claims, a family's own parameters (`explicit`) and plausible truths of a request.

    Raises InvalidInput, naming the field.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._public = read_prior(fields["prior"])
        self._other_priors = [
            Prior.from_rows(
                REQUEST.record(entry, f"priors[{i}]", {"joint"})["joint"],
                f"priors[{i}].joint",
            )
            for i, entry in enumerate(_list(fields.get("priors", []), "priors"))
        ]
        for i, prior in enumerate(self._other_priors):
            # The claims of all priors constrain the same columns.
            if prior.answers != self._public.answers:
                message = f"every prior needs the same {self._public.answers} answers"
                raise InvalidInput(Problem.PRIOR_SHAPE, message, f"priors[{i}].joint")
        self.explicit = _explicit(fields)
        mechanism = fields.get("mechanism")
        # Anything other than a string is refused later, by `request.check`; here it may be unhashable.
        self._paired = isinstance(mechanism, str) and mechanism in PAIRS
        own_parameters = bool(_OWN_PARAMETERS & set(fields))
        self._levels_optional = own_parameters or mechanism == _WITHOUT_PARAMETERS
        notions = _notions(fields, level_optional=self._levels_optional)
        names = {promises.require_notion(notion["notion"]) for notion, _ in notions}
        if "rldp" in names and not names <= {"rldp", "ldp"}:
            message = "the answers of rldp are pairs (s, u), those of the other prior-based notions are not"
            raise InvalidInput(Problem.UNSUPPORTED, message, "notions")
        self._paired = self._paired or "rldp" in names
        self.prior = promises.pairs(self._public) if self._paired else self._public
        if (
            mechanism == "non-robust"
        ):  # an answer without mass has no rows, so the optimum could reveal it
            promises.protected(self.prior)
        self.claims = tuple(
            claim for notion, field in notions for claim in self._claims(notion, field)
        )
        # The cap is one more claim: ε-LDP of the answer, which holds under every prior.
        if "ceiling_cap" in fields:
            cap = parse_nats(fields["ceiling_cap"], "ceiling_cap", Fraction(1, 100), _MAX_CEILING)
            self.claims = (*self.claims, promises.answer_ldp(cap))
        self.truths = read_truths(fields.get("truths"), self.prior)

    def _claims(self, fields: Mapping[str, Any], field: str) -> list[Claim]:
        """Return the claims of one notion: one for each prior if the notion rests on priors."""
        notion = fields["notion"]
        # A level that the notion does not use is refused: its author may believe that it is
        # promised.
        unused = LEVELS & set(fields) - _LEVEL_KEYS[notion]
        if unused:
            message = f"{notion} takes {', '.join(sorted(_LEVEL_KEYS[notion]))}"
            raise InvalidInput(Problem.FIELD_UNKNOWN, message, field + min(unused))
        required = _REQUIRED_LEVELS.get(notion, ("epsilon",))
        if self._levels_optional and not any(key in fields for key in required):
            # Placeholder levels are read, so that the other fields are checked, and then dropped.
            placeholders = self._claims({**fields, **_PLACEHOLDER_LEVELS[notion]}, field)
            return [replace(claim, level=None, low_level=None) for claim in placeholders]
        if notion == "ldp":
            return [promises.answer_ldp(_epsilon(fields, field))]
        if notion == "dp":
            return [promises.differential(_epsilon(fields, field), _delta(fields, field))]
        if notion == "rldp":
            return self._robust(fields, field)
        read_claim = _CLAIM_READERS[notion]
        claims = [read_claim(prior, fields, field) for prior in (self._public, *self._other_priors)]
        if not self._paired:
            return claims
        if notion == "srlip":
            message = "srlip is about the attributes of an answer, and here answers are pairs (s, x): use lip"
            raise InvalidInput(Problem.UNSUPPORTED, message, field + "notion")
        # The same counts over pairs (s, x): the protection of s is the same.
        pairs = [promises.pairs(prior).joint for prior in (self._public, *self._other_priors)]
        return [replace(claim, joint=joint) for claim, joint in zip(claims, pairs, strict=True)]

    @property
    def joints(self) -> set[tuple[tuple[int, ...], ...]]:
        """The counts of the request's priors, in the form that claims carry."""
        priors = (self._public, *self._other_priors)
        over_pairs = {promises.pairs(prior).joint for prior in priors if self._paired}
        return {prior.joint for prior in priors} | over_pairs

    def _robust(self, fields: Mapping[str, Any], field: str) -> list[Claim]:
        if self._other_priors:
            message = "rldp takes its uncertainty from robust, not from a list of priors"
            raise InvalidInput(Problem.UNSUPPORTED, message, "priors")
        ball = REQUEST.record(
            _required_field(fields, "robust", field),
            field + "robust",
            {"order", "n", "beta"},
            {"polyhedra"},
        )
        confidence = confidence_ball(self._public.joint, ball["order"], ball["n"], ball["beta"])
        diagonal = REQUEST.flag(fields.get("diagonal", False), field + "diagonal")
        if ball.get("polyhedra", "simplex") not in _POLYHEDRA:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "the polyhedra are simplex and box",
                field + "robust.polyhedra",
            )
        if ball.get("polyhedra") != "box":
            return [
                promises.robust(ball_bounds(confidence), _epsilon(fields, field), diagonal=diagonal)
            ]
        if diagonal:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "diagonal belongs to the polyhedra simplex",
                field + "diagonal",
            )
        return list(box_claims(confidence, _epsilon(fields, field)))


def read_prior(value: Any) -> Prior:
    """Read {"joint": …}. Raises InvalidInput, naming the field."""
    return Prior.from_rows(REQUEST.record(value, "prior", {"joint"})["joint"])


def _explicit(fields: Mapping[str, Any]) -> Explicit:
    """Read a family's own parameters. Raises InvalidInput, naming the field."""
    measure, order = fields.get("lift_measure", "lift"), fields.get("lift_order", 2)
    if measure not in MEASURES or measure == "ldp":
        message = f"the measures are {', '.join(m for m in MEASURES if m != 'ldp')}"
        raise InvalidInput(Problem.UNSUPPORTED, message, "lift_measure")
    if not 2 <= REQUEST.whole(order, "lift_order") <= MAX_ORDER:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"the order is a whole number from 2 to {MAX_ORDER}",
            "lift_order",
        )
    if fields.get("region", "honest") not in REGIONS:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"the regions are {' and '.join(REGIONS)}",
            "region",
        )
    alpha = fields.get("alpha")
    return Explicit(
        p00=_probability(fields, "p00"),
        p11=_probability(fields, "p11"),
        alpha=None if alpha is None else parse_nats(alpha, "alpha", Fraction(1, 100), _MAX_CEILING),
        region=fields.get("region", "honest"),
        lift_measure=measure,
        lift_order=order,
    )


def _probability(fields: Mapping[str, Any], key: str) -> Fraction | None:
    value = fields.get(key)
    if value is None:
        return None
    probability = _decimal(value, key)
    if not 0 <= probability <= 1:
        raise InvalidInput(Problem.FIELD_TYPE, "a probability lies between 0 and 1", key)
    return probability


def _decimal(value: Any, field: str) -> Fraction:
    """Return a number, or a plain decimal string, exactly."""
    read = REQUEST.number(
        Decimal(value) if isinstance(value, str) and _is_decimal(value) else value, field
    )
    if read and abs(read.adjusted()) > 60:
        raise InvalidInput(Problem.FIELD_TYPE, "give a number of ordinary size", field)
    return Fraction(read)


def _delta(fields: Mapping[str, Any], field: str) -> Fraction:
    read = _decimal(_required_field(fields, "delta", field), field + "delta")
    if not 0 <= read < 1:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE,
            "delta is at least 0 and less than 1",
            field + "delta",
        )
    return read


def _notions(
    fields: Mapping[str, Any],
    *,
    level_optional: bool,
) -> list[tuple[dict[str, Any], str]]:
    """Return each notion with its levels, and the path of its fields.

    level_optional : if the request names no notion, return ldp without a level.
    """
    if level_optional and "notion" not in fields and "notions" not in fields:
        fields = {**fields, "notion": "ldp"}
    if ("notion" in fields) == ("notions" in fields):
        raise InvalidInput(Problem.FIELD_MISSING, "give either notion or notions", "notion")
    if "notion" in fields:
        return [({key: fields[key] for key in {"notion", *LEVELS} & set(fields)}, "")]
    extra = LEVELS & set(fields)
    if extra:
        raise InvalidInput(
            Problem.FIELD_UNKNOWN,
            "with notions, each carries its own levels",
            min(extra),
        )
    listed = _list(fields["notions"], "notions")
    if not 1 <= len(listed) <= 16:
        raise InvalidInput(Problem.FIELD_TYPE, "give 1 to 16 notions", "notions")
    return [
        (REQUEST.record(entry, f"notions[{i}]", {"notion"}, LEVELS), f"notions[{i}].")
        for i, entry in enumerate(listed)
    ]


def _two_sided(prior: Prior, fields: Mapping[str, Any], field: str) -> Claim:
    low = _side(_required_field(fields, "epsilon_low", field), field + "epsilon_low")
    high = _side(_required_field(fields, "epsilon_high", field), field + "epsilon_high")
    return promises.two_sided(prior, low, high)


def _side(value: Any, field: str) -> Fraction | None:
    """Read a level of alip; null and "inf" mean that this side is not promised."""
    return None if value is None or value == "inf" else parse_epsilon(value, field)


def _side_channels(prior: Prior, fields: Mapping[str, Any], field: str) -> Claim:
    entries = _list(_required_field(fields, "attributes", field), field + "attributes")
    sizes = [REQUEST.whole(size, f"{field}attributes[{i}]") for i, size in enumerate(entries)]
    return promises.side_channels(prior, _epsilon(fields, field), sizes)


def _violation(prior: Prior, fields: Mapping[str, Any], field: str) -> Claim:
    bound = _decimal(_required_field(fields, "dpv", field), field + "dpv")
    return promises.no_violation(
        prior,
        bound,
        REQUEST.whole(fields.get("sensitive", 1), field + "sensitive"),
    )


def _is_decimal(text: str) -> bool:
    # Forty characters are enough for every level, and keep exact fractions short.
    return len(text) <= 40 and text.isascii() and text.replace(".", "", 1).isdigit()


def _single_level(prior: Prior, fields: Mapping[str, Any], field: str) -> Claim:
    return promises.promise(fields["notion"], prior, _epsilon(fields, field))


_CLAIM_READERS: dict[str, Callable[[Prior, Mapping[str, Any], str], Claim]] = {
    "secret-ldp": _single_level,
    "lip": _single_level,
    "alip": _two_sided,
    "srlip": _side_channels,
    "dpv": _violation,
}
_LEVEL_KEYS = {
    "ldp": {"epsilon"},
    "dp": {"epsilon", "delta"},
    "secret-ldp": {"epsilon"},
    "lip": {"epsilon"},
    "alip": {"epsilon_low", "epsilon_high"},
    "srlip": {"epsilon", "attributes"},
    "rldp": {"epsilon", "robust", "diagonal"},
    "dpv": {"dpv", "sensitive"},
}


_PLACEHOLDER_LEVELS: dict[str, dict[str, Any]] = {
    **{notion: {"epsilon": "1"} for notion in ("ldp", "dp", "secret-ldp", "lip", "srlip", "rldp")},
    "alip": {"epsilon_low": "1", "epsilon_high": "1"},
    "dpv": {"dpv": "1"},
}


def _epsilon(fields: Mapping[str, Any], field: str) -> Fraction:
    return parse_epsilon(_required_field(fields, "epsilon", field), field + "epsilon")


def _required_field(fields: Mapping[str, Any], key: str, field: str) -> Any:
    if key not in fields:
        raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", field + key)
    return fields[key]


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(Problem.FIELD_TYPE, "give a list", field)
    return list(value)
