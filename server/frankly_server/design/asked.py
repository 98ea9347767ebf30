# SPDX-License-Identifier: Apache-2.0
"""Reading what a JSON request promises: notions, their levels, their priors and what else they rest on (DESIGN §7)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, parse_epsilon, parse_nats
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design import promises
from frankly_server.design.families import PAIRS, Explicit
from frankly_server.design.families.base import REGIONS
from frankly_server.design.lift.criteria import MAX_ORDER, MEASURES
from frankly_server.design.plausible import read_truths
from frankly_server.design.prior import Prior
from frankly_server.design.robust.balls import confidence_ball
from frankly_server.design.robust.bounds import ball_bounds
from frankly_server.design.robust.polyhedra import box_claims
from frankly_server.records import flag, number, record, whole

LEVELS = frozenset("epsilon epsilon_low epsilon_high delta dpv attributes robust diagonal sensitive".split())
EXPLICIT = frozenset("p00 p11 alpha region lift_measure lift_order".split())
_MOST_CEILING = Fraction(20)
_OWN = frozenset({"p00", "p11", "alpha"})
"""With one of these a family is built at its own parameters, and notions may leave their level open."""
_POLYHEDRA = ("simplex", "box")
_FIXED = "super-binary-mangat"
"""A family without a parameter, for which that is always so."""
_LEVEL_OF = {"alip": ("epsilon_low", "epsilon_high"), "dpv": ("dpv",)}


class Asked:
    """The priors of a request, the claims made of its notions, a family's own parameters (`explicit`), and truths."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._public = read_prior(given["prior"])
        self._others = [
            Prior.from_rows(record(entry, {"joint"}, field=f"priors[{i}]")["joint"], f"priors[{i}].joint")
            for i, entry in enumerate(_list(given.get("priors", []), "priors"))
        ]
        for i, other in enumerate(self._others):
            if other.answers != self._public.answers:
                words = f"every prior needs the same {self._public.answers} answers"
                raise InvalidInput(Problem.PRIOR_SHAPE, words, f"priors[{i}].joint")
        self.explicit = _explicit(given)
        self._paired = given.get("mechanism") in PAIRS if isinstance(given.get("mechanism"), str) else False
        self._open = bool(_OWN & set(given)) or given.get("mechanism") == _FIXED
        notions = _notions(given, at_once=self._open)
        names = {promises.require_notion(notion["notion"]) for notion, _ in notions}
        if "rldp" in names and not names <= {"rldp", "ldp"}:
            words = "the answers of rldp are pairs (s, u), those of the other prior-based notions are not"
            raise InvalidInput(Problem.UNSUPPORTED, words, "notions")
        self._paired = self._paired or "rldp" in names
        self.prior = promises.pairs(self._public) if self._paired else self._public
        trusts = given.get("mechanism") == "non-robust"
        if trusts:  # the optimum can send what has no mass as it likes
            promises.protected(self.prior)
        self.claims = tuple(claim for notion, field in notions for claim in self._claims(notion, field))
        if "ceiling_cap" in given:
            cap = parse_nats(given["ceiling_cap"], "ceiling_cap", Fraction(1, 100), _MOST_CEILING)
            self.claims = (*self.claims, promises.answer_ldp(cap))
        self.truths = read_truths(given.get("truths"), self.prior)

    def _claims(self, given: Mapping[str, Any], field: str) -> list[Claim]:
        """Return the claims of one notion: one, or one for each prior."""
        notion = given["notion"]
        unused = LEVELS & set(given) - _USED[notion]
        if unused:
            words = f"{notion} takes {', '.join(sorted(_USED[notion]))}"
            raise InvalidInput(Problem.FIELD_UNKNOWN, words, field + min(unused))
        if self._open and not any(key in given for key in _LEVEL_OF.get(notion, ("epsilon",))):
            # Read as at any level, which is then taken away again: the rest is checked all the same.
            return [
                replace(claim, level=None, low_level=None) for claim in self._claims({**given, **_ANY[notion]}, field)
            ]
        if notion == "ldp":
            return [promises.answer_ldp(_epsilon(given, field))]
        if notion == "dp":
            return [promises.differential(_epsilon(given, field), _delta(given, field))]
        if notion == "rldp":
            return self._robust(given, field)
        claims = [_OF_A_PRIOR[notion](prior, given, field) for prior in (self._public, *self._others)]
        if not self._paired:
            return claims
        if notion == "srlip":
            words = "the parts of an answer x cannot be told from a pair (s, x): ask for lip"
            raise InvalidInput(Problem.UNSUPPORTED, words, field + "notion")
        # The secret's row of the counts, over pairs: what is protected of s is the same.
        pairs = [promises.pairs(prior).joint for prior in (self._public, *self._others)]
        return [replace(claim, joint=joint) for claim, joint in zip(claims, pairs, strict=True)]

    @property
    def joints(self) -> set[tuple[tuple[int, ...], ...]]:
        """The counts that the request itself holds, as claims carry them."""
        priors = (self._public, *self._others)
        return {prior.joint for prior in priors} | {promises.pairs(prior).joint for prior in priors if self._paired}

    def _robust(self, given: Mapping[str, Any], field: str) -> list[Claim]:
        if self._others:
            words = "rldp takes its uncertainty from robust, not from a list of priors"
            raise InvalidInput(Problem.UNSUPPORTED, words, "priors")
        ball = record(_needed(given, "robust", field), {"order", "n", "beta"}, {"polyhedra"}, field + "robust")
        made = confidence_ball(self._public.joint, ball["order"], ball["n"], ball["beta"])
        diagonal = flag(given.get("diagonal", False), field + "diagonal")
        if ball.get("polyhedra", "simplex") not in _POLYHEDRA:
            raise InvalidInput(Problem.UNSUPPORTED, "the polyhedra are simplex and box", field + "robust.polyhedra")
        if ball.get("polyhedra") != "box":
            return [promises.robust(ball_bounds(made), _epsilon(given, field), diagonal=diagonal)]
        if diagonal:
            raise InvalidInput(Problem.UNSUPPORTED, "diagonal belongs to the polyhedra simplex", field + "diagonal")
        return list(box_claims(made, _epsilon(given, field)))


def read_prior(value: Any) -> Prior:
    """Read {"joint": …}. Raises InvalidInput, naming the field."""
    return Prior.from_rows(record(value, {"joint"}, field="prior")["joint"])


def _explicit(given: Mapping[str, Any]) -> Explicit:
    """Read a family's own parameters. Raises InvalidInput, naming the field."""
    measure, order = given.get("lift_measure", "lift"), given.get("lift_order", 2)
    if measure not in MEASURES or measure == "ldp":
        words = f"the measures are {', '.join(m for m in MEASURES if m != 'ldp')}"
        raise InvalidInput(Problem.UNSUPPORTED, words, "lift_measure")
    if not 2 <= whole(order, "lift_order") <= MAX_ORDER:
        raise InvalidInput(Problem.FIELD_TYPE, f"the order is a whole number from 2 to {MAX_ORDER}", "lift_order")
    if given.get("region", "honest") not in REGIONS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the regions are {' and '.join(REGIONS)}", "region")
    alpha = given.get("alpha")
    return Explicit(
        p00=_chance(given, "p00"),
        p11=_chance(given, "p11"),
        alpha=None if alpha is None else parse_nats(alpha, "alpha", Fraction(1, 100), _MOST_CEILING),
        region=given.get("region", "honest"),
        lift_measure=measure,
        lift_order=order,
    )


def _chance(given: Mapping[str, Any], key: str) -> Fraction | None:
    value = given.get(key)
    if value is None:
        return None
    read = _decimal(value, key)
    if not 0 <= read <= 1:
        raise InvalidInput(Problem.FIELD_TYPE, "a probability lies between 0 and 1", key)
    return read


def _decimal(value: Any, field: str) -> Fraction:
    """Return a number, or a plain decimal string, exactly."""
    read = number(Decimal(value) if isinstance(value, str) and _is_decimal(value) else value, field)
    if read and abs(read.adjusted()) > 60:
        raise InvalidInput(Problem.FIELD_TYPE, "give a number of ordinary size", field)
    return Fraction(read)


def _delta(given: Mapping[str, Any], field: str) -> Fraction:
    read = _decimal(_needed(given, "delta", field), field + "delta")
    if not 0 <= read < 1:
        raise InvalidInput(Problem.EPS_OUT_OF_RANGE, "delta is at least 0 and less than 1", field + "delta")
    return read


def _notions(given: Mapping[str, Any], *, at_once: bool) -> list[tuple[dict[str, Any], str]]:
    """Return each notion with its levels, and the path of its fields; ldp at its own level if `at_once` and none is."""
    if at_once and "notion" not in given and "notions" not in given:
        given = {**given, "notion": "ldp"}
    if ("notion" in given) == ("notions" in given):
        raise InvalidInput(Problem.FIELD_MISSING, "give either notion or notions", "notion")
    if "notion" in given:
        return [({key: given[key] for key in {"notion", *LEVELS} & set(given)}, "")]
    extra = LEVELS & set(given)
    if extra:
        raise InvalidInput(Problem.FIELD_UNKNOWN, "with notions, each carries its own levels", min(extra))
    listed = _list(given["notions"], "notions")
    if not 1 <= len(listed) <= 16:
        raise InvalidInput(Problem.FIELD_TYPE, "give 1 to 16 notions", "notions")
    return [(record(entry, {"notion"}, LEVELS, f"notions[{i}]"), f"notions[{i}].") for i, entry in enumerate(listed)]


def _two_sided(prior: Prior, given: Mapping[str, Any], field: str) -> Claim:
    low = _side(_needed(given, "epsilon_low", field), field + "epsilon_low")
    high = _side(_needed(given, "epsilon_high", field), field + "epsilon_high")
    return promises.two_sided(prior, low, high)


def _side(value: Any, field: str) -> Fraction | None:
    """Read a level of alip: null or "inf" is not promised."""
    return None if value is None or value == "inf" else parse_epsilon(value, field)


def _side_channels(prior: Prior, given: Mapping[str, Any], field: str) -> Claim:
    sizes = _list(_needed(given, "attributes", field), field + "attributes")
    read = [whole(size, f"{field}attributes[{i}]") for i, size in enumerate(sizes)]
    return promises.side_channels(prior, _epsilon(given, field), read)


def _violation(prior: Prior, given: Mapping[str, Any], field: str) -> Claim:
    bound = _decimal(_needed(given, "dpv", field), field + "dpv")
    return promises.no_violation(prior, bound, whole(given.get("sensitive", 1), field + "sensitive"))


def _is_decimal(text: str) -> bool:
    return len(text) <= 40 and text.isascii() and text.replace(".", "", 1).isdigit()


def _one_level(prior: Prior, given: Mapping[str, Any], field: str) -> Claim:
    return promises.promise(given["notion"], prior, _epsilon(given, field))


_OF_A_PRIOR: dict[str, Callable[[Prior, Mapping[str, Any], str], Claim]] = {
    "secret-ldp": _one_level,
    "lip": _one_level,
    "alip": _two_sided,
    "srlip": _side_channels,
    "dpv": _violation,
}
_USED = {
    "ldp": {"epsilon"},
    "dp": {"epsilon", "delta"},
    "secret-ldp": {"epsilon"},
    "lip": {"epsilon"},
    "alip": {"epsilon_low", "epsilon_high"},
    "srlip": {"epsilon", "attributes"},
    "rldp": {"epsilon", "robust", "diagonal"},
    "dpv": {"dpv", "sensitive"},
}


_ANY: dict[str, dict[str, Any]] = {
    **{notion: {"epsilon": "1"} for notion in ("ldp", "dp", "secret-ldp", "lip", "srlip", "rldp")},
    "alip": {"epsilon_low": "1", "epsilon_high": "1"},
    "dpv": {"dpv": "1"},
}


def _epsilon(given: Mapping[str, Any], field: str) -> Fraction:
    return parse_epsilon(_needed(given, "epsilon", field), field + "epsilon")


def _needed(given: Mapping[str, Any], key: str, field: str) -> Any:
    if key not in given:
        raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", field + key)
    return given[key]


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(Problem.FIELD_TYPE, "give a list", field)
    return list(value)
