# SPDX-License-Identifier: Apache-2.0
"""Time limits of whole requests: each stage after the search, with a clock that the test sets."""

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from frankly_design.engine import engine, measured
from frankly_design.engine import regret as regret_module
from frankly_design.form import FormQuestion, FormRequest
from frankly_design.form.comparisons import separate_blocks
from frankly_design.kinds.kind import Kind
from frankly_design.optimum import solver
from frankly_design.requests import design as design_requests
from frankly_design.requests.design import design_json
from frankly_design.requests.design_fields import within
from frankly_design.requests.plan import plan_json
from frankly_design.tables import quantise
from frankly_design.tables.limits import FINISH_S, Limits, TimeExceeded
from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

JOINT = [[120, 300, 500, 81], [50, 20, 30, 7]]
REQUEST: dict[str, Any] = {
    "prior": {"joint": JOINT},
    "notion": "lip",
    "epsilon": "0.2",
    "limits": {"seconds": 10},
}


@pytest.fixture(autouse=True)
def no_cached_regret() -> None:
    """Clear the cached comparisons, because a comparison cached by another test would need no time."""
    regret_module._regret.cache_clear()
    regret_module._peers.cache_clear()


class Clock:
    """A clock in seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def late_before(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, place: Any, name: str, seconds: float
) -> None:
    """Set the clock to `seconds` when `place.name` is called."""
    original: Callable[..., Any] = getattr(place, name)

    def called(*args: Any, **options: Any) -> Any:
        clock.now = seconds
        return original(*args, **options)

    monkeypatch.setattr(place, name, called)


def test_limits_follow_the_clock() -> None:
    clock = Clock()
    limits = Limits.within(10, clock)
    seen = []
    for now in (0.0, 5.5, 10.5, 10.1 + FINISH_S / 2, 10.1 + FINISH_S):
        clock.now = now
        polls = (limits.half_time, limits.out_of_time, limits.search_overdue, limits.overdue)
        seen.append([poll() for poll in polls])
    assert seen == [[i < n for i in range(4)] for n in range(5)]


def test_a_search_that_is_stopped_is_overdue_soon_after() -> None:
    clock, stopped = Clock(), False
    limits = Limits.within(60, clock, lambda: stopped)
    clock.now = 20.0
    assert not limits.out_of_time()
    stopped = True
    assert limits.out_of_time()
    assert not limits.overdue()
    clock.now = 20.1 + FINISH_S
    assert limits.overdue()
    with pytest.raises(TimeExceeded, match="allow more seconds"):
        limits.require_time()


@pytest.mark.parametrize(
    ("place", "name", "left_out"),
    [
        (Kind, "information_and_hamming", ["information", "normalised_information"]),
        (measured, "measures", ["measures"]),
        (design_requests, "regret", ["regret"]),
        (design_requests, "frontier", ["frontier"]),
    ],
)
def test_a_figure_that_is_late_is_left_out(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, left_out: list[str]
) -> None:
    """The time is up when the figure begins, so it and the later figures are left out."""
    clock = Clock()
    late_before(monkeypatch, clock, place, name, 10.1 + FINISH_S)
    response = design_json({**REQUEST, "frontier": 3}, clock)
    late = ["information", "measures", "regret", "frontier"]
    later = late[late.index(left_out[0]) + 1 :]
    assert response["left_out"] == [*left_out, *later]
    for figure in response["left_out"]:
        assert response[figure] in (None, {}, [])
    (promised,) = response["parameters"]["claims"]
    mechanism = DenseMechanism(response["bits"], tuple(map(tuple, response["weights"])))
    require_private(mechanism, Claim("lip", tuple(promised["level"]), tuple(map(tuple, JOINT))))


def test_the_objective_is_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    late_before(monkeypatch, clock, Kind, "information_and_hamming", 10.1 + FINISH_S)
    response = design_json({**REQUEST, "objective": "information"}, clock)
    assert response["left_out"] == ["measures", "regret"]
    assert response["information"] == response["parameters"]["value"] > 0


def test_the_variance_of_the_shares_is_left_out_if_targets_are_the_objective(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    late_before(monkeypatch, clock, Kind, "variances", 10.1 + FINISH_S)
    response = design_json({**REQUEST, "targets": [[1, 0, 0, 0]]}, clock)
    assert response["left_out"] == ["variance", "measures"]
    assert response["variance"] is None
    assert response["parameters"]["value"] > 0


@pytest.mark.parametrize("targets", ["shares", [[1, 0, 0, 0]]])
def test_without_time_to_round_and_verify_the_design_is_refused(
    monkeypatch: pytest.MonkeyPatch, targets: Any
) -> None:
    clock = Clock()
    late_before(monkeypatch, clock, engine, "_rows", 10.1 + FINISH_S)
    with pytest.raises(InvalidInput, match="use the mechanism grr") as caught:
        design_json({**REQUEST, "targets": targets}, clock)
    assert (caught.value.problem, caught.value.field) == (Problem.OPTIMISER_LIMIT, "mechanism")


def test_the_verifier_is_interrupted_between_two_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, attempts = Clock(), 0
    verify = require_private

    def slow(*args: Any) -> None:
        nonlocal attempts
        attempts += 1
        clock.now += 16.0
        verify(*args)

    monkeypatch.setattr(quantise, "require_private", slow)
    with pytest.raises(TimeExceeded):
        design_json(REQUEST, clock)
    assert attempts == 1  # at 0 seconds; at 16, the whole request's time is up


@pytest.mark.parametrize("objective", ["variance", "information", "hamming"])
@pytest.mark.parametrize("base", ["listed", "generated"])
def test_a_search_without_a_mechanism_gives_randomised_response(
    monkeypatch: pytest.MonkeyPatch, objective: str, base: str
) -> None:
    clock = Clock()
    joint = JOINT if base == "listed" else [[7 * i % 11 + 1 for i in range(16)]] * 2
    request = {**REQUEST, "prior": {"joint": joint}, "notion": "ldp", "objective": objective}
    late_before(monkeypatch, clock, solver, "_known_columns", 10.1 + FINISH_S / 2)
    response = design_json(request, clock)
    if "search" not in response["left_out"]:
        # A short list of rays needs no search, and the solution was found before the next poll.
        assert base == "listed"
        assert response["certified"] or objective == "variance"
        return
    value, bound = response["parameters"]["value"], response["parameters"]["bound"]
    assert value <= bound if objective == "information" else bound <= value
    assert not response["certified"]
    assert "randomised response" in response["warnings"][0]
    rows = response["matrix"]
    # The ratio of the diagonal to the other entries equals the level.
    assert rows[0][0] / rows[0][1] == pytest.approx(np.exp(0.2), rel=1e-6)


def test_a_family_that_is_late_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    late_before(monkeypatch, clock, engine, "_family_request", 10.1 + FINISH_S)
    with pytest.raises(TimeExceeded):
        design_json({**REQUEST, "mechanism": "oue"}, clock)


def test_a_late_regret_is_not_remembered() -> None:
    clock = Clock()
    prior = [693, 1, 1, 1, 1, 1, 1, 1]
    skewed = {**REQUEST, "prior": {"joint": [prior]}, "notion": "ldp", "epsilon": "2"}
    in_time = design_json(skewed, clock)
    regret_module._regret.cache_clear()
    regret_module._peers.cache_clear()
    designed = DenseMechanism(in_time["bits"], tuple(map(tuple, in_time["weights"])))
    claim = Claim("ldp", tuple(in_time["parameters"]["claims"][0]["level"]))
    late = Limits.within(0, clock)
    clock.now = 0.1 + FINISH_S
    with pytest.raises(TimeExceeded):
        regret_module.regret(designed, (claim,), tuple(prior), late)
    found = regret_module.regret(designed, (claim,), tuple(prior))
    assert (found and found.to_json()) == in_time["regret"] is not None


def test_a_plan_ends_with_its_time() -> None:
    request = {key: REQUEST[key] for key in ("prior", "notion", "epsilon")}
    clock = Clock()
    expected = plan_json({**request, "solve_for": "margin", "n": 1000}, clock)
    assert within(plan_json, {**request, "solve_for": "margin", "n": 1000}, clock, 10) == expected

    calls = 0

    def advancing() -> float:
        nonlocal calls
        calls += 1
        return 0.01 * calls  # 1,200 readings until the plan is overdue

    with pytest.raises(TimeExceeded):
        within(
            plan_json, {**request, "solve_for": "n", "margin": 0.01, "frontier": 50}, advancing, 10
        )
    # Searches that end with a late poll continue to the next poll.
    assert 1000 < calls <= 1250


def test_separate_blocks_of_a_form_end_with_its_time() -> None:
    questions = tuple(
        FormQuestion(tuple(1 + 7 * (i + j) % 13 for j in range(3 + i % 4))) for i in range(8)
    )
    clock = Clock()
    request = FormRequest(questions, Fraction(2), limits=Limits.within(10, clock))
    best = separate_blocks(request)
    clock.now = 10.1
    early = separate_blocks(request)
    assert early.value > best.value
    assert sum(early.levels) == pytest.approx(2) == sum(best.levels)


def heavy_requests() -> list[tuple[str, dict[str, Any]]]:
    rng = np.random.default_rng(5)

    def joint(secrets: int, answers: int) -> dict[str, Any]:
        return {"joint": rng.integers(1, 400, (secrets, answers)).tolist()}

    zipf = {"joint": [[10_000 // (x + 1) for x in range(64)]]}
    ldp, lip = {"notion": "ldp", "epsilon": "1"}, {"notion": "lip", "epsilon": "1"}
    tops = [[int(x < 5) for x in range(64)], [int(x > 30) for x in range(64)]]
    questions = [{"choices": [7 * i % 13 + 1 + j for j in range(3 + i % 8)]} for i in range(20)]
    robust = {"notion": "rldp", "epsilon": "1", "robust": {"order": 1, "n": 10000, "beta": "0.05"}}
    return [
        ("64 even", {"prior": {"joint": [[1] * 64]}, **ldp}),
        ("64 zipf", {"prior": zipf, **ldp}),
        ("64 random", {"prior": joint(1, 64), **ldp}),
        ("64 random, information", {"prior": joint(1, 64), **ldp, "objective": "information"}),
        ("64 random, targets", {"prior": joint(1, 64), **ldp, "targets": tops}),
        ("128 random", {"prior": joint(1, 128), **ldp}),
        ("256 subsets", {"prior": joint(1, 256), **ldp, "mechanism": "subset-selection"}),
        ("256 random", {"prior": joint(1, 256), **ldp}),
        ("256 random, information", {"prior": joint(1, 256), **ldp, "objective": "information"}),
        ("lip 42 x 15", {"prior": joint(42, 15), **lip}),
        ("lip 42 x 15, information", {"prior": joint(42, 15), **lip, "objective": "information"}),
        ("lip 64 x 64", {"prior": joint(64, 64), **lip}),
        ("lip 64 x 64, oue", {"prior": joint(64, 64), **lip, "mechanism": "oue"}),
        ("lip 256 x 256", {"prior": joint(256, 256), **lip}),
        ("rldp 10 x 20", {"prior": joint(10, 20), **robust}),
        ("form", {"form": {"questions": questions, "epsilon": "2"}}),
        ("frontier", {"prior": joint(4, 12), **lip, "frontier": 50}),
    ]


@pytest.mark.full_only
@pytest.mark.parametrize(("name", "request_body"), heavy_requests())
def test_heavy_requests_end_in_time(name: str, request_body: dict[str, Any]) -> None:
    """The test measures CPU seconds of this process, so that other work on the machine does not count."""
    start = time.process_time()
    try:
        response = design_json({**request_body, "limits": {"seconds": 3}}, time.process_time)
        assert name == "form" or response["parameters"]["claims"]
    except TimeExceeded:
        # On a slow machine even randomised response takes too long to verify at these sizes.
        assert name in ("lip 64 x 64", "lip 256 x 256")
    # The last step before a poll takes less than a second.
    assert time.process_time() - start <= 3 + FINISH_S + 1
