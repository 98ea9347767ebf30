# SPDX-License-Identifier: Apache-2.0
"""`design`, `frontier` and `compare`: every option as in JSON, and listings of single designs."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import frankly_design as fd
import numpy as np
import pandas as pd
import pytest
from frankly_design.engine.request import MECHANISMS
from frankly_design.requests.design import DesignInput, design_json
from frankly_protocol.audit import require_private
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.interface import test_forms
from tests.frankly_design.interface.given import JOINT, SMALL, anything, read
from tests.refusals import refusal

LIP, LDP = fd.LIP("0.25"), fd.LDP(1)
LIP_JSON, LDP_JSON = {"notion": "lip", "epsilon": "0.25"}, {"notion": "ldp", "epsilon": 1}
FURTHER = [[50, 100, 200, 150], [80, 90, 70, 20]]
THREE, SKEWED, TWO = [[5, 3, 2]], [[50, 3, 2]], [[3, 5]]
ORDERED = [[1, 0.5, 0, -1], [0, 1, 1, 0]]
OPEN_LDP, OPEN_JSON = fd.LDP(), {"notion": "ldp"}
DP, DP_JSON = fd.DP(1, "0.1"), {"notion": "dp", "epsilon": 1, "delta": "0.1"}
ROWS: list[tuple[str, Any, fd.Notion, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # name, prior, notion, options in Python, levels in JSON, options in JSON
    ("objective", JOINT, LIP, {"objective": "information"}, LIP_JSON, {"objective": "information"}),
    ("hamming", JOINT, LIP, {"objective": "hamming"}, LIP_JSON, {"objective": "hamming"}),
    ("mechanism", THREE, LDP, {"mechanism": "oue"}, LDP_JSON, {"mechanism": "oue"}),
    ("targets", JOINT, LIP, {"targets": ORDERED}, LIP_JSON, {"targets": ORDERED}),
    ("array of targets", JOINT, LIP, {"targets": np.array(ORDERED)}, LIP_JSON, {"targets": ORDERED}),
    ("table of targets", JOINT, LIP, {"targets": pd.DataFrame(ORDERED)}, LIP_JSON, {"targets": ORDERED}),
    ("targets of fractions", JOINT, LIP, {"targets": [[Fraction(1, 2), 0, 0, 0]]}, LIP_JSON, {"targets": [[0.5, 0, 0,
     0]]}),
    ("one target", JOINT, LIP, {"targets": [1, 0, 0, -1]}, LIP_JSON, {"targets": [[1, 0, 0, -1]]}),
    ("shares", JOINT, LIP, {"targets": "shares"}, LIP_JSON, {"targets": "shares"}),
    ("criterion", THREE, LDP, {"criterion": "worst"}, LDP_JSON, {"criterion": "worst"}),
    ("truths", THREE, LDP, {"truths": ["prior", "even", (1, 1, 8)]}, LDP_JSON, {"truths": ["prior", "even", [1, 1,
     8]]}),
    ("array of truths", THREE, LDP, {"truths": np.array([[1, 1, 8], [3, 3, 4]])}, LDP_JSON, {"truths": [[1, 1, 8], [3,
     3, 4]]}),
    ("ball of truths", THREE, LDP, {"truths": {"around": "even", "radius": 0.25}}, LDP_JSON,
     {"truths": {"around": "even", "radius": 0.25}}),
    ("variance_cap", SKEWED, fd.LDP(2), {"objective": "information", "variance_cap": 2.5},
     {"notion": "ldp", "epsilon": 2}, {"objective": "information", "variance_cap": 2.5}),
    ("priors", JOINT, LIP, {"priors": [FURTHER]}, LIP_JSON, {"priors": [{"joint": FURTHER}]}),
    ("array of priors", JOINT, LIP, {"priors": (np.array(FURTHER),)}, LIP_JSON, {"priors": [{"joint": FURTHER}]}),
    ("tables of priors", JOINT, LIP, {"priors": [pd.DataFrame(FURTHER)]}, LIP_JSON, {"priors": [{"joint": FURTHER}]}),
    ("ceiling_cap", JOINT, LIP, {"ceiling_cap": 1.5}, LIP_JSON, {"ceiling_cap": "1.5"}),
    ("method", THREE, LDP, {"method": "vertices"}, LDP_JSON, {"method": "vertices"}),
    ("accept_unidentifiable", THREE, fd.LDP(0.1), {"objective": "information", "accept_unidentifiable": False},
     {"notion": "ldp", "epsilon": 0.1}, {"objective": "information", "accept_unidentifiable": False}),
    ("accept_identity", JOINT, fd.LIP(5), {"accept_identity": True}, {"notion": "lip", "epsilon": 5},
     {"accept_identity": True}),
    ("limits", JOINT, LIP, {"limits": {"gap": 0.5, "memory": np.int64(512)}}, LIP_JSON,
     {"limits": {"gap": 0.5, "memory": 512}}),
    ("p00 and p11", TWO, OPEN_LDP, {"mechanism": "warner", "p00": 0.75, "p11": Decimal("0.75")}, OPEN_JSON,
     {"mechanism": "warner", "p00": 0.75, "p11": "0.75"}),
    ("alpha", THREE, OPEN_LDP, {"mechanism": "grr", "alpha": "0.75"}, OPEN_JSON, {"mechanism": "grr", "alpha": "0.75"}),
    ("region", TWO, DP, {"mechanism": "binary", "region": "whole"}, DP_JSON, {"mechanism": "binary",
     "region": "whole"}),
    ("lift_measure", JOINT, LIP, {"mechanism": "watchdog", "lift_measure": "chi2"}, LIP_JSON,
     {"mechanism": "watchdog", "lift_measure": "chi2"}),
    ("lift_order", JOINT, LIP, {"mechanism": "watchdog", "lift_measure": "alpha", "lift_order": np.int64(3)}, LIP_JSON,
     {"mechanism": "watchdog", "lift_measure": "alpha", "lift_order": 3}),
]  # fmt: skip
ELSEWHERE = {"prior", "notion", "epsilon", "notions"}
"""Fields that every request of ROWS has, or that test_notions.py shows."""
LEVELS = {
    "epsilon_low", "epsilon_high", "delta", "dpv", "epsilons", "attributes", "robust", "diagonal", "sensitive",
}  # fmt: skip
"""Fields that are arguments of notions; test_notions.py shows that its table has them all."""


@pytest.mark.parametrize(
    ("prior", "notion", "options", "levels", "more"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_an_option_is_that_of_json(
    prior: Any, notion: fd.Notion, options: Any, levels: dict[str, Any], more: dict[str, Any]
) -> None:
    expected = design_json(read({"prior": {"joint": prior}, **levels, **more}))
    assert fd.design(prior, notion, **options).to_json() == expected


@pytest.mark.parametrize(
    ("name", "prior", "notion", "options"), [row[:4] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_no_option_of_the_table_is_ignored(
    name: str, prior: Any, notion: fd.Notion, options: Any
) -> None:
    # Otherwise a row would also pass if an option was lost on both ways.
    without_effect = {"shares", "method", "limits", "accept_identity"}
    needed = {"p00 and p11", "alpha"}  # without them the level is missing
    if name in without_effect | needed:
        return
    kept = {
        key: options[key]
        for key in ("objective", "mechanism")
        if key in options and len(options) > 1
    }
    assert (
        fd.design(prior, notion, **options).to_json() != fd.design(prior, notion, **kept).to_json()
    )


def test_the_tables_have_every_field_of_a_request() -> None:
    shown = {name for row in ROWS for name in row[5]} | set(FRONTIER) | set(test_forms.REQUEST)
    assert shown | ELSEWHERE | LEVELS == set(DesignInput.model_fields)


def test_an_unidentifiable_or_unchanged_answer_can_be_refused() -> None:
    error = refusal(InvalidInput, fd.design, JOINT, fd.LIP(5), accept_identity=False)
    assert error.code == "identity_mechanism"
    assert not fd.design(THREE, fd.LDP("0.1"), objective="information").identifiable
    kept = fd.design(THREE, fd.LDP("0.1"), objective="information", accept_unidentifiable=False)
    assert kept.identifiable


def test_the_method_reaches_the_search() -> None:
    error = refusal(InvalidInput, fd.design, [[1] * 20], LDP, method="vertices")
    assert (error.code, error.field) == ("optimiser_limit", "method")
    assert fd.design([[1] * 20], LDP).certified


def test_a_search_is_followed_and_stopped() -> None:
    stages: list[str] = []
    fd.design(JOINT, LIP, progress=lambda stage, *_: stages.append(stage))
    assert stages
    stopped = fd.design(JOINT, LIP, objective="variance", stopped=lambda: True)
    best = fd.design(JOINT, LIP)
    assert stopped.value > best.value
    assert stopped.bound is not None
    assert stopped.bound <= best.value
    stopped.verify()


def test_limits_act_on_the_time_of_the_timer() -> None:
    ticks = iter([0.0])
    hurried = fd.design(JOINT, LIP, timer=lambda: next(ticks, 6.0), limits={"seconds": 5})
    patient = fd.design(JOINT, LIP, timer=lambda: 0.0, limits={"seconds": 5})
    assert hurried.value > patient.value == fd.design(JOINT, LIP).value


BAD: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("unknown", {"gamma": 1}, "field_unknown", "gamma", "accept_identity"),
    ("a level outside its notion", {"epsilon": 1}, "field_unknown", "epsilon", "the options are"),
    ("a second notion", {"notion": "ldp"}, "field_unknown", "notion", "the options are"),
    ("a frontier", {"frontier": 5}, "field_unknown", "frontier", "the options are"),
    ("a form", {"form": {"questions": [{"choices": 2}], "epsilon": 1}}, "field_unknown", "form",
     "the options are"),
    ("mechanism", {"mechanism": "laplace"}, "unsupported", "mechanism", "subset-selection"),
    ("objective", {"objective": "fairness"}, "unsupported", "objective", "hamming"),
    ("criterion", {"criterion": "best"}, "unsupported", "criterion", "worst"),
    ("method", {"method": "guess"}, "unsupported", "method", "vertices"),
    ("limits", {"limits": 60}, "field_type", "limits", ""),
    ("limit", {"limits": {"nodes": 1}}, "field_unknown", "limits.nodes", "not known"),
    ("seconds", {"limits": {"seconds": 5}}, "field_missing", "timer", "time.monotonic"),
    ("gap", {"limits": {"gap": 2}}, "field_type", "limits.gap", "1e-12"),
    ("targets of another width", {"targets": [[1, 0]]}, "targets_invalid", "targets", "4 numbers"),
    ("targets of nan", {"targets": [[float("nan"), 0, 0, 0]]}, "field_type", "targets[0]", "nan"),
    ("empty targets", {"targets": []}, "prior_shape", "targets", "rows"),
    ("zero target", {"targets": [[0, 0, 0, 0]]}, "targets_invalid", "targets[0]", "zero"),
    ("targets in words", {"targets": "means"}, "field_type", "targets", ""),
    ("truths", {"truths": ["odd"]}, "prior_shape", "truths[0]", "even"),
    ("truths of nan", {"truths": [[float("nan"), 1, 1, 1]]}, "field_type", "truths[0][0]", "nan"),
    ("prior of another width", {"priors": [[[1, 2]]]}, "prior_shape", "priors[0].joint", "list of tables"),
    ("prior in words", {"priors": ["even"]}, "prior_shape", "priors[0].joint", "rows"),
    ("variance_cap", {"variance_cap": 0, "objective": "information"}, "field_type", "variance_cap", "positive"),
    ("ceiling_cap", {"ceiling_cap": 99}, "eps_out_of_range", "ceiling_cap", "20"),
    ("flag", {"accept_identity": 1}, "field_type", "accept_identity", "true or false"),
    ("chance", {"p00": 1.5, "mechanism": "warner"}, "field_type", "p00", "between 0 and 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code", "field", "said"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_options(options: dict[str, Any], code: str, field: str, said: str) -> None:
    error = refusal(InvalidInput, fd.design, JOINT, LIP, **options)
    assert (error.code, error.field) == (code, field)
    assert said in error.detail


# -- the frontier ----------------------------------------------------------------------------------

FRONTIER = {"frontier": 4}
FIGURES = ("information", "variance", "information_bound", "variance_bound")


def test_a_frontier_has_the_points_of_json_and_their_mechanisms() -> None:
    response = design_json(read({"prior": {"joint": JOINT}, **LIP_JSON, **FRONTIER}))
    found = fd.frontier(JOINT, LIP, anything(np.int64(4)))
    assert list(found) == response["frontier"]
    assert len(found) == len(found.found) == 4
    claims = fd.design(JOINT, LIP).claims
    p = np.array(JOINT).sum(axis=0) / 750
    for row, mechanism in zip(found, found.found, strict=True):
        assert tuple(row) == FIGURES
        require_private(mechanism, *claims)
        Q = np.array(mechanism.weights) / 2.0**mechanism.bits
        logs = np.log(np.where(Q > 0, Q / (p @ Q), 1.0))
        assert row["information"] == pytest.approx(float(p @ np.sum(Q * logs, axis=1)), rel=1e-9)
        variance = np.trace(np.linalg.inv((Q / (p @ Q)) @ Q.T)) - p @ p
        assert row["variance"] == pytest.approx(float(variance), rel=1e-6)
        assert row["information"] <= row["information_bound"] * (1 + 1e-9)
        assert row["variance"] >= row["variance_bound"] * (1 - 1e-9)
    steps = np.diff([row["information"] for row in found])
    assert steps == pytest.approx(np.full(3, steps[0]), rel=1e-3)
    assert found[0]["variance"] == pytest.approx(fd.design(JOINT, LIP).variance, rel=1e-6)
    most = fd.design(JOINT, LIP, objective="information").information
    assert found[-1]["information"] == pytest.approx(most, rel=1e-6)


BAD_FRONTIERS: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("one point", {"points": 1}, "field_type", "points", "2"),
    ("too many points", {"points": 201}, "field_type", "points", "200"),
    ("half a point", {"points": 2.5}, "field_type", "points", "whole"),
    ("unknown", {"gamma": 1}, "unsupported", "gamma", "ceiling_cap"),
    ("criterion", {"criterion": "worst"}, "unsupported", "criterion", "ceiling_cap"),
    ("truths", {"truths": ["prior"]}, "unsupported", "truths", "ceiling_cap"),
]


@pytest.mark.parametrize(
    ("options", "code", "field", "said"),
    [case[1:] for case in BAD_FRONTIERS],
    ids=[c[0] for c in BAD_FRONTIERS],
)
def test_bad_frontiers(options: dict[str, Any], code: str, field: str, said: str) -> None:
    error = refusal(InvalidInput, fd.frontier, JOINT, LIP, **options)
    assert (error.code, error.field) == (code, field)
    assert said in error.detail


def test_answers_sent_unchanged_have_no_frontier() -> None:
    assert refusal(InvalidInput, fd.frontier, JOINT, fd.LIP(5), 3).code == "identity_mechanism"


# -- comparisons -----------------------------------------------------------------------------------

COLUMNS = (
    "mechanism",
    "information",
    "normalised_information",
    "variance",
    "hamming",
    "answer_ldp",
    "reports",
)


@pytest.mark.parametrize(
    ("prior", "notions"),
    [
        ([[2, 3, 5]], fd.LDP(1)),
        (SMALL, fd.LIP("0.2")),
        (SMALL, fd.RLDP(1, 75)),
        (TWO, fd.DP(1, "0.1")),
    ],
    ids=["ldp", "lip", "rldp", "dp"],
)
def test_a_comparison_has_the_rows_of_single_designs(prior: Any, notions: fd.Notion) -> None:
    """Mechanisms over other answers, and those that do not fit, are left out by default."""
    singles: dict[str, fd.Design] = {}
    for name in MECHANISMS:
        try:
            singles[name] = fd.design(prior, notions, mechanism=name)
        except InvalidInput:
            continue
    # The number of rows of the integer table says which answers a mechanism is over.
    answers = next(iter(singles.values())).mechanism.answers
    expected = [name for name, made in singles.items() if made.mechanism.answers == answers]
    found = fd.compare(prior, notions, expected)
    assert [row["mechanism"] for row in found] == expected
    assert [made.name for made in found.found] == expected
    for row, made in zip(found, found.found, strict=True):
        assert tuple(row) == COLUMNS
        single = singles[row["mechanism"]]
        assert made.mechanism == single.mechanism
        for name in COLUMNS[1:]:
            assert row[name] == getattr(single, name)
    if len(prior) > 1:
        assert list(fd.compare(prior, notions)) == list(found)


def test_a_comparison_passes_its_options_on() -> None:
    found = fd.compare(JOINT, LIP, ("optimal",), objective="information", ceiling_cap=2)
    single = fd.design(JOINT, LIP, objective="information", ceiling_cap=2)
    assert found.found[0].to_json() == single.to_json()
    assert found[0]["answer_ldp"] <= 2 < math.inf


def test_a_named_mechanism_that_does_not_fit_is_refused_by_its_name() -> None:
    error = refusal(InvalidInput, fd.compare, THREE, LDP, ["optimal", "warner"])
    assert (error.code, error.field) == ("unsupported", "mechanism")
    assert error.detail.startswith("warner: ")
    assert refusal(InvalidInput, fd.compare, THREE, LDP, ["laplace"]).detail.startswith("laplace: ")


# -- tables with labels ----------------------------------------------------------------------------

FRAME = pd.DataFrame(JOINT, index=["ill", "well"], columns=list("abcd"))


def test_further_tables_are_read_by_their_labels() -> None:
    turned = list("dbca")
    targets = pd.DataFrame([[1, 0, 0, -1]], columns=list("abdc"))
    by_label = fd.design(FRAME, LIP, targets=targets, priors=[(FRAME + 3)[turned]])
    by_place = fd.design(FRAME, LIP, targets=[[1, 0, -1, 0]], priors=[FRAME + 3])
    assert by_label.to_json() == by_place.to_json()
    made = fd.design(FRAME, fd.LIP("0.2"))
    channel = made.to_frame().loc[turned]
    found, expected = fd.measure(channel, FRAME), fd.measure(made.mechanism, FRAME)
    for name in ("lip", "secret_ldp", "information", "information_secret", "variance"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9)
    for field, options in {
        "priors[0].joint": {"priors": [FRAME.rename(columns={"a": "z"})]},
        "targets": {"targets": targets.rename(columns={"a": "z"})},
    }.items():
        assert refusal(InvalidInput, fd.design, FRAME, LIP, **options).field == field


def test_whole_numbers_are_counts_also_as_floats() -> None:
    assert fd.design(FRAME.astype(float), LIP).to_json() == fd.design(FRAME, LIP).to_json()


def test_a_secret_is_named_by_its_label() -> None:
    by_label = fd.design(FRAME, fd.DPV("0.5", "well"))
    assert by_label.to_json() == fd.design(FRAME, fd.DPV("0.5", 1)).to_json()


def test_seconds_need_a_clock() -> None:
    functions: tuple[Any, ...] = (fd.design, fd.frontier, fd.compare)
    for function in functions:
        error = refusal(InvalidInput, function, JOINT, LIP, limits={"seconds": 5})
        assert (error.field, error.code) == ("timer", "field_missing")


NOTHING_FITS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("a prior that is none", [[0.8, 0.5]], {}, "prior.joint"),
    ("an option that is none", JOINT, {"objectve": "x"}, "objectve"),
    ("an objective that is none", JOINT, {"objective": "x"}, "objective"),
]


@pytest.mark.parametrize(
    ("prior", "options", "field"),
    [row[1:] for row in NOTHING_FITS],
    ids=[r[0] for r in NOTHING_FITS],
)
def test_a_comparison_without_any_mechanism_is_refused(
    prior: Any, options: dict[str, Any], field: str
) -> None:
    assert refusal(InvalidInput, fd.compare, prior, fd.LDP(1), **options).field == field


def test_levels_between_answers_are_read_by_their_labels() -> None:
    levels = pd.DataFrame(1.0, index=list("abcd"), columns=list("abcd"))
    levels.loc["a", "d"] = levels.loc["d", "a"] = 3
    for label in "abcd":
        levels.loc[label, label] = 0
    turned = levels.loc[list("dbca"), list("cadb")]
    by_label, expected = (fd.design(FRAME, fd.MetricLDP(one)) for one in (turned, levels))
    assert by_label.to_json() == expected.to_json()
    error = refusal(InvalidInput, fd.design, FRAME, fd.MetricLDP(levels.rename(index={"a": "z"})))
    assert (error.code, error.field) == ("prior_shape", "epsilons")
    for bad in (None, 1.0, [1, 2, 3]):
        assert refusal(InvalidInput, fd.design, FRAME, fd.MetricLDP(bad)).field == "epsilons"


def test_secrets_of_further_priors_are_read_by_their_labels() -> None:
    further = pd.DataFrame(
        [[100, 80, 60, 30], [40, 110, 210, 140]], columns=list("abcd"), index=["well", "ill"]
    )
    notion = fd.DPV("0.7", "well")
    by_label = fd.design(FRAME, notion, priors=[further])
    assert (
        by_label.to_json()
        == fd.design(FRAME, notion, priors=[further.loc[["ill", "well"]]]).to_json()
    )
    law = further.to_numpy() @ by_label.channel
    assert (law[0] / law.sum(axis=0)).max() <= 0.7 + 1e-9


def test_a_secret_that_is_the_answer_is_named_by_the_answer() -> None:
    series = pd.Series([50, 30, 20], index=list("abc"))
    framed = pd.DataFrame([[50, 30, 20]], columns=list("abc"), index=[1])
    expected = fd.design([[50, 30, 20]], fd.DPV("0.6", 1)).to_json()
    assert fd.design(series, fd.DPV("0.6", "b")).to_json() == expected
    assert fd.design(framed, fd.DPV("0.6", 1)).to_json() == expected
    assert "'a', 'b', 'c'" in refusal(InvalidInput, fd.design, series, fd.DPV("0.6", "z")).detail


@pytest.mark.parametrize("labels", [[3, 1, 2, 0], [True, False]], ids=["numbers", "booleans"])
def test_labels_that_look_like_places_are_labels(labels: list[Any]) -> None:
    prior = pd.DataFrame([JOINT[0][: len(labels)], JOINT[1][: len(labels)]], columns=labels)
    wanted = sorted(labels)
    made = fd.design(prior, fd.LIP("0.2"))
    targets = pd.DataFrame([[1] + [0] * (len(labels) - 1)], columns=wanted)
    place, counts = labels.index(wanted[0]), [10 + y for y in range(made.reports)]
    assert made.estimate(counts=counts, targets=targets).shares == pytest.approx(
        made.estimate(counts=counts).shares[[place]]
    )


def test_truths_are_read_by_their_labels() -> None:
    truth = pd.Series([70, 1, 1, 1], index=list("dabc"))
    for by_label in ([truth], pd.DataFrame([truth.to_numpy()], columns=list("dabc"))):
        made = fd.design(FRAME, fd.LIP("0.2"), truths=by_label)
        assert made.to_json() == fd.design(FRAME, fd.LIP("0.2"), truths=[[1, 1, 1, 70]]).to_json()


def test_tables_of_pairs_are_read_by_their_labels() -> None:
    made = fd.design(FRAME, fd.SecretLDP(1), mechanism="secret-rr")
    turned = made.to_frame().iloc[::-1]
    assert fd.measure(turned, FRAME)["secret_ldp"] == pytest.approx(made.measure()["secret_ldp"])


def test_a_frontier_is_not_computed_under_dp() -> None:
    assert refusal(InvalidInput, fd.frontier, [1, 2], fd.DP(1, "0.1"), 3).code == "unsupported"
