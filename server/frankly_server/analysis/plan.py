# SPDX-License-Identifier: Apache-2.0
"""Survey planning (`frankly plan --json`): any two of ε, n and margin give the third (DESIGN §7)."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.design.asked import read_prior
from frankly_server.design.interface import design_json
from frankly_server.design.promises import pairs
from frankly_server.estimate.decoder import Targets, shares
from frankly_server.estimate.inputs import checked_prior, checked_targets
from frankly_server.estimate.interface import read_mechanism
from frankly_server.estimate.margins import require_level
from frankly_server.estimate.planner import Plan, Setting, least_level

_PLAN_FIELDS: Final = frozenset(
    "solve_for n epsilon margin level method population subgroup response_rate targets frontier".split()
)
_MECHANISM_FIELDS: Final = frozenset("kind bits weights params".split())
_SOLVE_FOR: Final = ("n", "epsilon", "margin")
_LEVELS: Final = (10, 10_000)  # legal range of ε, in thousandths of a nat
_CURVE_FACTORS: Final = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_MAX_POINTS: Final = 50

Timer = Callable[[], float]


def _never_stopped() -> bool:
    return False


def plan_within(obj: Any, timer: Timer, seconds: float) -> dict[str, Any]:
    """Plan as `plan_json` does, with at most `seconds` for all design searches together.

    At the deadline each search returns its best design so far.
    Raises InvalidInput, also if the request has `limits`.
    """
    if isinstance(obj, Mapping) and "limits" in obj:
        raise InvalidInput(
            Problem.UNSUPPORTED, "the server sets the limits: leave them out", "limits"
        )
    deadline = timer() + seconds
    return plan_json(obj, timer, lambda: timer() > deadline)


def plan_json(
    obj: Any, timer: Timer, stopped: Callable[[], bool] = _never_stopped
) -> dict[str, Any]:
    """Plan a survey from a JSON request.

    In: a design input (prior, notion, mechanism, …; see `design_json`) or a mechanism (weights and bits, or kind and
    params; optional design_prior); solve_for "n", "epsilon" or "margin" and the other two of n, epsilon, margin (with a
    mechanism, or a notion that has other levels, there is no epsilon, so n or margin is solved for); optional level
    (0.95), method ("clt" or "chebyshev"), population, subgroup (share of respondents), response_rate, targets ("shares"
    or rows), frontier (number of levels, 2 to 50, at which margin and information are computed; with
    a design input).
    Out: solve_for, n, epsilon (null if the request has none), margin, margins (per target), invited,
    level, method, curve (margin at n/4 to 4n), regret (of the design, see `design_json`; null for a
    mechanism) and, if requested, frontier.
    stopped : once it returns True, each search returns its best design so far.

    Raises InvalidInput, naming the field.
    """
    request = REQUEST.record(
        obj, None, {"solve_for"}, frozenset(obj) if isinstance(obj, Mapping) else frozenset()
    )
    solve_for = request["solve_for"]
    if solve_for not in _SOLVE_FOR:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"solve for one of {', '.join(_SOLVE_FOR)}", "solve_for"
        )
    fixed = "weights" in request or "params" in request
    source: _Source = _MechanismSource(request) if fixed else _DesignSource(request, timer, stopped)
    # The design itself requires epsilon or not, because some notions have other levels.
    needed = [name for name in ("n", "margin") if name != solve_for]
    for name in needed:
        if name not in request:
            raise InvalidInput(
                Problem.FIELD_MISSING,
                f"to solve for {solve_for}, give {' and '.join(needed)}",
                name,
            )
    if solve_for in request or (fixed and ("epsilon" in request or solve_for == "epsilon")):
        name = solve_for if solve_for in request else "epsilon"
        detail = (
            "a mechanism has its level already"
            if fixed and name == "epsilon"
            else "leave out what is solved for"
        )
        raise InvalidInput(Problem.UNSUPPORTED, detail, name)
    solved = _solved(request, solve_for, source)
    if "frontier" in request:
        solved["frontier"] = source.frontier(_points(request["frontier"]), solved["n"])
    return {"solve_for": solve_for} | solved


class _Source:
    """Source of plans; `level` is ε in nats as a decimal text, None for the source's own level."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request, self.setting = request, _setting(request)

    def at(self, level: str | None) -> Plan:
        mechanism, prior, _ = self.mechanism(level)
        return Plan(
            mechanism,
            _targets(self.request.get("targets", "shares"), mechanism),
            prior,
            self.setting,
        )

    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        """Return the mechanism at a level, its design prior and its information."""
        raise InvalidInput(Problem.UNSUPPORTED, "this needs a design input", level or "epsilon")

    def regret(self, level: str | None) -> dict[str, str] | None:  # noqa: ARG002 - a design's is known
        """Return the regret of the design at a level, None for a fixed mechanism."""
        return None

    def frontier(self, points: int, n: int) -> list[dict[str, Any]]:
        """Return margin and information at levels from 0.1 to 8 nats, evenly spaced in logarithm."""
        rows = []
        for i in range(points):
            level = _nats(round(100 * 80 ** (i / (points - 1))))
            _, _, information = self.mechanism(level)
            rows.append(
                {"epsilon": level, "margin": self.at(level).margin(n), "information": information}
            )
        return rows


class _MechanismSource(_Source):
    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        if level is not None:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "a mechanism has its level already: give a design input",
                "frontier",
            )
        mechanism, request = read_mechanism(
            self.request, frozenset(), _PLAN_FIELDS | {"design_prior"}
        )
        prior = request.get("design_prior")
        return mechanism, None if prior is None else checked_prior(mechanism, prior), 0.0


class _DesignSource(_Source):
    def __init__(
        self, request: Mapping[str, Any], timer: Timer, stopped: Callable[[], bool]
    ) -> None:
        super().__init__(request)
        self._design_input = {
            key: value for key, value in request.items() if key not in _PLAN_FIELDS
        }
        if "targets" in request:
            self._design_input["targets"] = request["targets"]
        self._timer, self._stopped = timer, stopped
        self._cache: dict[str | None, tuple[Mechanism, tuple[int, ...] | None, float]] = {}
        self._regrets: dict[str | None, dict[str, str] | None] = {}

    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        # `at` and `regret` use the same design, and a search for it may take seconds.
        if level not in self._cache:
            design_input = self._design_input | ({} if level is None else {"epsilon": level})
            design = design_json(design_input, self._timer, stopped=self._stopped)
            designed, _ = read_mechanism(
                {key: design[key] for key in _MECHANISM_FIELDS & set(design)},
                frozenset(),
                _MECHANISM_FIELDS,
            )
            prior = design["parameters"].get("decoder_prior")
            masses = _masses(self._design_input, designed) if prior is None else tuple(prior)
            self._cache[level] = designed, masses, design["information"]
            self._regrets[level] = design["regret"]
        return self._cache[level]

    def regret(self, level: str | None) -> dict[str, str] | None:
        self.mechanism(level)
        return self._regrets[level]


def _solved(request: Mapping[str, Any], solve_for: str, source: _Source) -> dict[str, Any]:
    level = str(request["epsilon"]) if "epsilon" in request else None
    if solve_for == "margin":
        n = _reports(request["n"], source.setting)
        plan = source.at(level)
    elif solve_for == "n":
        plan = source.at(level)
        n = plan.reports(_margin(request["margin"]))
    else:
        n, margin = _reports(request["n"], source.setting), _margin(request["margin"])
        thousandths = least_level(lambda e: source.at(_nats(e)).margin(n) <= margin, *_LEVELS)
        if thousandths is None:
            detail = f"no level up to {_LEVELS[1] // 1000} gives this margin with {n} reports: collect more"
            raise InvalidInput(Problem.UNSUPPORTED, detail, "margin")
        level = _nats(thousandths)
        plan = source.at(level)
    setting = source.setting
    around = sorted({max(1, int(n * f)) for f in _CURVE_FACTORS})
    return {
        "n": n,
        "epsilon": level,
        "margin": plan.margin(n),
        "margins": plan.margins(n),
        "invited": setting.invited(n),
        "level": setting.level,
        "method": setting.method,
        "curve": [
            {"n": m, "margin": plan.margin(m)}
            for m in around
            if setting.population is None or m <= setting.population
        ],
        "regret": source.regret(level),
    }


def _setting(request: Mapping[str, Any]) -> Setting:
    method = request.get("method", "clt")
    if method not in ("clt", "chebyshev"):
        raise InvalidInput(Problem.FIELD_TYPE, "plan by clt or chebyshev", "method")
    population = request.get("population")
    if population is not None and REQUEST.whole(population, "population") < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population is at least two people", "population"
        )
    return Setting(
        require_level(request.get("level", 0.95)),
        method,
        population,
        _share(request.get("subgroup", 1), "subgroup"),
        _share(request.get("response_rate", 1), "response_rate"),
    )


def _share(value: Any, field: str) -> float:
    read = REQUEST.number(value, field)
    if not 0 < read <= 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give a share above 0, at most 1", field)
    return float(read)


def _reports(value: Any, setting: Setting) -> int:
    n = REQUEST.whole(value, "n")
    if not 1 <= n <= (setting.population or 10**12):
        raise InvalidInput(
            Problem.COUNTS_INVALID, "give at least 1 report, and no more than there are people", "n"
        )
    return n


def _margin(value: Any) -> float:
    read = REQUEST.number(value, "margin")
    if read <= 0 or abs(read.adjusted()) > 12:
        raise InvalidInput(
            Problem.FIELD_TYPE, "give a margin above 0, such as 0.03 for ±3 points", "margin"
        )
    return float(read)


def _points(value: Any) -> int:
    points = REQUEST.whole(value, "frontier")
    if not 2 <= points <= _MAX_POINTS:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"give a number of levels from 2 to {_MAX_POINTS}", "frontier"
        )
    return points


def _targets(value: Any, mechanism: Mechanism) -> Targets:
    if value == "shares":
        return shares(mechanism.answers)
    rows = [
        [Fraction(REQUEST.number(v, "targets")) for v in row]
        for row in REQUEST.table(value, "targets")
    ]
    return checked_targets(mechanism, rows)


def _masses(design_input: Mapping[str, Any], designed: Mechanism) -> tuple[int, ...]:
    """Return the masses of the mechanism's answers under the design input's prior; some answer with pairs (s, x)."""
    prior = read_prior(design_input["prior"])
    return (prior if prior.answers == designed.answers else pairs(prior)).shares


def _nats(thousandths: int) -> str:
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"
