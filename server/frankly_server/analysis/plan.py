# SPDX-License-Identifier: Apache-2.0
"""`frankly plan --json`: any two of level ε, reports n and margin give the third (DESIGN §7)."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_server.design.asked import read_prior
from frankly_server.design.interface import design_json
from frankly_server.design.promises import pairs
from frankly_server.estimate.decoder import Targets, shares
from frankly_server.estimate.inputs import checked_prior, checked_targets
from frankly_server.estimate.interface import read_mechanism
from frankly_server.estimate.margins import require_level
from frankly_server.estimate.planner import Plan, Setting, least_level
from frankly_server.records import number, record, table, whole

_OWN: Final = frozenset(
    "solve_for n epsilon margin level method population subgroup response_rate targets frontier".split()
)
_MECHANISM: Final = frozenset("kind bits weights params".split())
_SOLVED: Final = ("n", "epsilon", "margin")
_LEVELS: Final = (10, 10_000)  # thousandths of a nat: what a level may be
_AROUND: Final = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_MOST_POINTS: Final = 50

Timer = Callable[[], float]


def _go_on() -> bool:
    return False


def plan_within(obj: Any, timer: Timer, seconds: float) -> dict[str, Any]:
    """Plan as `plan_json`, every search together for so long at most; what is the best until then is planned with.

    Raises InvalidInput, also for limits of the caller's own.
    """
    if isinstance(obj, Mapping) and "limits" in obj:
        raise InvalidInput(Problem.UNSUPPORTED, "the server sets the limits: leave them out", "limits")
    deadline = timer() + seconds
    return plan_json(obj, timer, lambda: timer() > deadline)


def plan_json(obj: Any, timer: Timer, stopped: Callable[[], bool] = _go_on) -> dict[str, Any]:
    """Plan a survey from a JSON request.

    In: a design input (prior, notion, mechanism, …; see `design_json`) or a mechanism (weights and bits, or kind and
    params; optional design_prior); solve_for "n", "epsilon" or "margin" and the other two of n, epsilon, margin (with a
    mechanism, or a notion that has other levels, there is no epsilon, so n or margin is solved for); optional level
    (0.95), method ("clt" or "chebyshev"), population, subgroup (share of respondents), response_rate, targets ("shares"
    or rows), frontier (2 to 50 levels at which margin and information are told, with a design input).
    Out: solve_for, n, epsilon (null where none was given), margin, margins (per target), invited, level, method, curve
    (margin at n/4 to 4n), regret (of the design, see `design_json`; null for a mechanism) and, if asked for, frontier.
    stopped : once true, each design is the best found so far.

    Raises InvalidInput, naming the field.
    """
    given = record(obj, frozenset({"solve_for"}), frozenset(obj) if isinstance(obj, Mapping) else frozenset())
    solve_for = given["solve_for"]
    if solve_for not in _SOLVED:
        raise InvalidInput(Problem.FIELD_TYPE, f"solve for one of {', '.join(_SOLVED)}", "solve_for")
    fixed = "weights" in given or "params" in given
    source: _Source = _Given(given) if fixed else _Designed(given, timer, stopped)
    # Whether there must be an epsilon is for the design to say: some notions have other levels.
    needed = [name for name in ("n", "margin") if name != solve_for]
    for name in needed:
        if name not in given:
            raise InvalidInput(Problem.FIELD_MISSING, f"to solve for {solve_for}, give {' and '.join(needed)}", name)
    if solve_for in given or (fixed and ("epsilon" in given or solve_for == "epsilon")):
        name = solve_for if solve_for in given else "epsilon"
        words = "a mechanism has its level already" if fixed and name == "epsilon" else "leave out what is solved for"
        raise InvalidInput(Problem.UNSUPPORTED, words, name)
    solved = _solved(given, solve_for, source)
    if "frontier" in given:
        solved["frontier"] = source.frontier(_points(given["frontier"]), solved["n"])
    return {"solve_for": solve_for} | solved


class _Source:
    """Where plans come from: `at(epsilon)` in thousandths of a nat."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given, self.setting = given, _setting(given)

    def at(self, level: str | None) -> Plan:
        mechanism, prior, _ = self.mechanism(level)
        return Plan(mechanism, _targets(self.given.get("targets", "shares"), mechanism), prior, self.setting)

    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        """Return the mechanism at a level, its design prior and its information."""
        raise InvalidInput(Problem.UNSUPPORTED, "this needs a design input", level or "epsilon")

    def regret(self, level: str | None) -> dict[str, str] | None:  # noqa: ARG002 - a design's is known
        """Return the regret of the design at a level, None for a mechanism that is given."""
        return None

    def frontier(self, points: int, n: int) -> list[dict[str, Any]]:
        """Return margin and information at levels from a tenth of a nat to eight, evenly in their logarithm."""
        found = []
        for i in range(points):
            level = _nats(round(100 * 80 ** (i / (points - 1))))
            _, _, information = self.mechanism(level)
            found.append({"epsilon": level, "margin": self.at(level).margin(n), "information": information})
        return found


class _Given(_Source):
    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        if level is not None:
            raise InvalidInput(
                Problem.UNSUPPORTED, "a mechanism has its level already: give a design input", "frontier"
            )
        mechanism, given = read_mechanism(self.given, frozenset(), _OWN | {"design_prior"})
        prior = given.get("design_prior")
        return mechanism, None if prior is None else checked_prior(mechanism, prior), 0.0


class _Designed(_Source):
    def __init__(self, given: Mapping[str, Any], timer: Timer, stopped: Callable[[], bool]) -> None:
        super().__init__(given)
        self._asked = {key: value for key, value in given.items() if key not in _OWN}
        if "targets" in given:
            self._asked["targets"] = given["targets"]
        self._timer, self._stopped = timer, stopped
        self._known: dict[str | None, tuple[Mechanism, tuple[int, ...] | None, float]] = {}
        self._regrets: dict[str | None, dict[str, str] | None] = {}

    def mechanism(self, level: str | None) -> tuple[Mechanism, tuple[int, ...] | None, float]:
        if level not in self._known:
            asked = self._asked | ({} if level is None else {"epsilon": level})
            found = design_json(asked, self._timer, stopped=self._stopped)
            designed, _ = read_mechanism({key: found[key] for key in _MECHANISM & set(found)}, frozenset(), _MECHANISM)
            prior = found["parameters"].get("decoder_prior")
            masses = _masses(self._asked, designed) if prior is None else tuple(prior)
            self._known[level] = designed, masses, found["information"]
            self._regrets[level] = found["regret"]
        return self._known[level]

    def regret(self, level: str | None) -> dict[str, str] | None:
        self.mechanism(level)
        return self._regrets[level]


def _solved(given: Mapping[str, Any], solve_for: str, source: _Source) -> dict[str, Any]:
    level = str(given["epsilon"]) if "epsilon" in given else None
    if solve_for == "margin":
        n = _reports(given["n"], source.setting)
        plan = source.at(level)
    elif solve_for == "n":
        plan = source.at(level)
        n = plan.reports(_margin(given["margin"]))
    else:
        n, margin = _reports(given["n"], source.setting), _margin(given["margin"])
        thousandths = least_level(lambda e: source.at(_nats(e)).margin(n) <= margin, *_LEVELS)
        if thousandths is None:
            words = f"no level up to {_LEVELS[1] // 1000} gives this margin with {n} reports: collect more"
            raise InvalidInput(Problem.UNSUPPORTED, words, "margin")
        level = _nats(thousandths)
        plan = source.at(level)
    setting = source.setting
    around = sorted({max(1, int(n * f)) for f in _AROUND})
    return {
        "n": n,
        "epsilon": level,
        "margin": plan.margin(n),
        "margins": plan.margins(n),
        "invited": setting.invited(n),
        "level": setting.level,
        "method": setting.method,
        "curve": [
            {"n": m, "margin": plan.margin(m)} for m in around if setting.population is None or m <= setting.population
        ],
        "regret": source.regret(level),
    }


def _setting(given: Mapping[str, Any]) -> Setting:
    method = given.get("method", "clt")
    if method not in ("clt", "chebyshev"):
        raise InvalidInput(Problem.FIELD_TYPE, "plan by clt or chebyshev", "method")
    population = given.get("population")
    if population is not None and whole(population, "population") < 2:
        raise InvalidInput(Problem.COUNTS_INVALID, "a population is at least two people", "population")
    return Setting(
        require_level(given.get("level", 0.95)),
        method,
        population,
        _share(given.get("subgroup", 1), "subgroup"),
        _share(given.get("response_rate", 1), "response_rate"),
    )


def _share(value: Any, field: str) -> float:
    read = number(value, field)
    if not 0 < read <= 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give a share above 0, at most 1", field)
    return float(read)


def _reports(value: Any, setting: Setting) -> int:
    n = whole(value, "n")
    if not 1 <= n <= (setting.population or 10**12):
        raise InvalidInput(Problem.COUNTS_INVALID, "give at least 1 report, and no more than there are people", "n")
    return n


def _margin(value: Any) -> float:
    read = number(value, "margin")
    if read <= 0 or abs(read.adjusted()) > 12:
        raise InvalidInput(Problem.FIELD_TYPE, "give a margin above 0, such as 0.03 for ±3 points", "margin")
    return float(read)


def _points(value: Any) -> int:
    points = whole(value, "frontier")
    if not 2 <= points <= _MOST_POINTS:
        raise InvalidInput(Problem.FIELD_TYPE, f"give a number of levels from 2 to {_MOST_POINTS}", "frontier")
    return points


def _targets(value: Any, mechanism: Mechanism) -> Targets:
    if value == "shares":
        return shares(mechanism.answers)
    rows = [[Fraction(number(v, "targets")) for v in row] for row in table(value, "targets")]
    return checked_targets(mechanism, rows)


def _masses(asked: Mapping[str, Any], designed: Mechanism) -> tuple[int, ...]:
    """Return the masses of the mechanism's answers under the design input's prior; some answer with pairs (s, x)."""
    prior = read_prior(asked["prior"])
    return (prior if prior.answers == designed.answers else pairs(prior)).shares


def _nats(thousandths: int) -> str:
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"
