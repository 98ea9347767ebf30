# SPDX-License-Identifier: Apache-2.0
"""Reading what a JSON request promises: notions, their levels, their priors and what else they rest on (DESIGN §7)."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, parse_epsilon, parse_nats
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design import promises
from frankly_server.design.prior import Prior
from frankly_server.design.robust.bounds import lower_bounds
from frankly_server.records import flag, number, record, whole

LEVELS = frozenset({"epsilon", "epsilon_low", "epsilon_high", "dpv", "attributes", "robust", "diagonal", "sensitive"})
_MOST_CEILING = Fraction(20)


class Asked:
    """The priors of a request, and the claims made of its notions."""

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
        notions = _notions(given)
        names = {promises.require_notion(notion["notion"]) for notion, _ in notions}
        if "rldp" in names and not names <= {"rldp", "ldp"}:
            words = "the answers of rldp are pairs (s, u), those of the other prior-based notions are not"
            raise InvalidInput(Problem.UNSUPPORTED, words, "notions")
        self.prior = promises.pairs(self._public) if "rldp" in names else self._public
        self.claims = tuple(claim for notion, field in notions for claim in self._claims(notion, field))
        if "ceiling_cap" in given:
            cap = parse_nats(given["ceiling_cap"], "ceiling_cap", Fraction(1, 100), _MOST_CEILING)
            self.claims = (*self.claims, promises.answer_ldp(cap))

    def _claims(self, given: Mapping[str, Any], field: str) -> list[Claim]:
        """Return the claims of one notion: one, or one for each prior."""
        notion = given["notion"]
        unused = LEVELS & set(given) - _USED[notion]
        if unused:
            words = f"{notion} takes {', '.join(sorted(_USED[notion]))}"
            raise InvalidInput(Problem.FIELD_UNKNOWN, words, field + min(unused))
        if notion == "ldp":
            return [promises.answer_ldp(_epsilon(given, field))]
        if notion == "rldp":
            return [self._robust(given, field)]
        return [_OF_A_PRIOR[notion](prior, given, field) for prior in (self._public, *self._others)]

    def _robust(self, given: Mapping[str, Any], field: str) -> Claim:
        if self._others:
            words = "rldp takes its uncertainty from robust, not from a list of priors"
            raise InvalidInput(Problem.UNSUPPORTED, words, "priors")
        ball = record(_needed(given, "robust", field), {"order", "n", "beta"}, field=field + "robust")
        bounds = lower_bounds(self._public.joint, ball["order"], ball["n"], ball["beta"])
        diagonal = flag(given.get("diagonal", False), field + "diagonal")
        return promises.robust(bounds, _epsilon(given, field), diagonal=diagonal)


def read_prior(value: Any) -> Prior:
    """Read {"joint": …}. Raises InvalidInput, naming the field."""
    return Prior.from_rows(record(value, {"joint"}, field="prior")["joint"])


def _notions(given: Mapping[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Return each notion with its levels, and the path of its fields."""
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
    value = _needed(given, "dpv", field)
    read = number(Decimal(value) if isinstance(value, str) and _is_decimal(value) else value, field + "dpv")
    return promises.no_violation(prior, Fraction(read), whole(given.get("sensitive", 1), field + "sensitive"))


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
    "secret-ldp": {"epsilon"},
    "lip": {"epsilon"},
    "alip": {"epsilon_low", "epsilon_high"},
    "srlip": {"epsilon", "attributes"},
    "rldp": {"epsilon", "robust", "diagonal"},
    "dpv": {"dpv", "sensitive"},
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
